"""Passes of torch.fx, each once on torch.fx's graphs and once on Clew's: the same results."""

import importlib
import operator

import pytest
import torch
from torch import nn


@pytest.fixture(params=["torch.fx", "clew.fx"])
def load(request):
    """Imports a submodule by its name under torch.fx; the package itself without one."""
    return lambda name="": importlib.import_module(f"{request.param}.{name}".rstrip("."))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 4)
        self.scale = nn.Parameter(torch.rand(4))

    def forward(self, x):
        y = torch.relu(self.first(x))
        z = self.second(y) * self.scale
        return z + x, y.sum()


def example():
    return torch.rand(3, 4)


def check_same(module, model, *inputs):
    torch.testing.assert_close(module(*inputs), model(*inputs))


# ---- splitting -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"keep_original_order": True}, {"keep_original_node_name": True}])
def test_split_module(load, options):
    model = Block()
    traced = load().symbolic_trace(model)
    seen = []

    def place(node):
        seen.append(node)
        return int(node.target != "first")

    names = {}
    split = load("passes.split_module").split_module(traced, model, place, names, **options)
    assert set(seen) <= set(traced.graph.nodes)
    assert isinstance(split, load().GraphModule)
    assert all(isinstance(child, load().GraphModule) for child in split.children())
    assert len(list(split.children())) >= 2
    check_same(split, model, example())


def test_split_by_tags(load):
    model = Block()
    traced = load().symbolic_trace(model)
    for node in traced.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            node.tag = "a" if node.target == "first" else "b"
    split = load("passes.split_utils").split_by_tags(traced, ["a", "b"])
    assert [name for name, _ in split.named_children()] == ["a", "b"]
    check_same(split, model, example())


def test_splitter_base(load):
    splitter_base = load("passes.splitter_base")
    support = load("passes.operator_support")
    traced = load().symbolic_trace(Block())
    load("passes.shape_prop").ShapeProp(traced).propagate(example())

    class Splitter(splitter_base._SplitterBase):
        pass

    class Supports(support.OperatorSupport):
        def is_node_supported(self, submodules, node):
            return node.op == "call_module"

    settings = splitter_base._SplitterSettingBase()
    splitter = Splitter(traced, (example(),), Supports(), settings, return_tuple=False)
    split = splitter()
    assert any("_run_on_acc" in name for name, _ in split.named_children())
    check_same(split, traced, example())


def test_capability_based_partitioner(load):
    support = load("passes.operator_support")
    infra = load("passes.infra.partitioner")

    def program(a, b):
        c = torch.add(a, b)
        d = torch.relu(c)
        e = torch.sin(d)
        return torch.add(e, d)

    class Supports(support.OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            return node.op == "call_function" and node.target in (torch.add, torch.relu)

    traced = load().symbolic_trace(program)
    partitioner = infra.CapabilityBasedPartitioner(traced, Supports(), allows_single_node_partition=True)
    partitions = partitioner.propose_partitions()
    found = {frozenset(node.name for node in partition.nodes) for partition in partitions}
    assert found == {frozenset({"add", "relu"}), frozenset({"add_1"})}
    fused = partitioner.fuse_partitions(partitions)
    assert sum(node.op == "call_module" for node in fused.graph.nodes) == 2
    check_same(fused, program, torch.rand(3), torch.rand(3))


def test_fuser_takes_nodes_of_the_graph(load):
    fuser = load("passes.utils.fuser_utils")
    traced = load().symbolic_trace(lambda x: torch.relu(torch.sin(x)) + 1)
    nodes = [node for node in traced.graph.nodes if node.name in ("sin", "relu")]
    fused = fuser.fuse_by_partitions(traced, [dict.fromkeys(nodes)])
    assert [node.op for node in fused.graph.nodes].count("call_module") == 1
    x = torch.rand(3)
    torch.testing.assert_close(fused(x), torch.relu(torch.sin(x)) + 1)


def test_net_minimizer(load):
    base = load("passes.net_min_base")
    common = load("passes.tools_common")
    traced = load().symbolic_trace(Block())
    load("passes.shape_prop").ShapeProp(traced).propagate(example())
    accelerated = {node for node in traced.graph.nodes if node.op in common.CALLABLE_NODE_OPS}

    class Minimizer(base._MinimizerBase):
        def run_a(self, mod, inputs, report_idx=-1):
            return mod(*inputs)

        def run_b(self, mod, inputs, report_idx=-1):
            return mod(*inputs)

    compare = lambda a, b, names: (0.0, True)
    settings = base._MinimizerSettingBase(traverse_method="sequential")
    minimizer = Minimizer(traced, (example(),), compare, settings)
    minimizer.nodes = minimizer._collect_nodes(None, None)
    assert set(minimizer.nodes) <= set(traced.graph.nodes)
    assert minimizer.minimize() == set()
    assert accelerated


def test_legalize_graph_and_names(load):
    common = load("passes.tools_common")
    traced = load().symbolic_trace(Block())
    names = [common.get_node_target(dict(traced.named_modules()), node) for node in traced.graph.nodes
             if node.op in common.CALLABLE_NODE_OPS]
    assert names[:2] == ["torch.nn.modules.linear.Linear", "torch.relu"]
    relu = next(node for node in traced.graph.nodes if node.target is torch.relu)
    relu.prepend(next(node for node in traced.graph.nodes if node.op == "output"))
    legal = common.legalize_graph(traced)
    legal.graph.lint()
    assert list(legal.graph.nodes)[-1].op == "output"


# ---- passes on passes ------------------------------------------------------------------------------------------------


def test_pass_manager_of_infra(load):
    infra = load("passes.infra.pass_manager")
    pass_base = load("passes.infra.pass_base")

    class Exchange(pass_base.PassBase):
        def call(self, graph_module):
            changed = False
            for node in graph_module.graph.nodes:
                if node.target is torch.relu:
                    node.target, changed = torch.sigmoid, True
            return pass_base.PassResult(graph_module, changed)

    traced = load().symbolic_trace(lambda x: torch.relu(x) + 1)
    manager = infra.PassManager(passes=[Exchange()], run_checks_after_each_pass=True, steps=2)
    result = manager(traced)
    result.graph_module.recompile()
    x = torch.rand(3)
    torch.testing.assert_close(result.graph_module(x), torch.sigmoid(x) + 1)


def test_pass_manager_of_functions(load):
    manager = load("passes.pass_manager")
    calls = []

    def one(module):
        calls.append(1)
        return module

    passes = manager.PassManager([manager.loop_pass(one, 3)])
    traced = load().symbolic_trace(lambda x: x + 1)
    assert passes(traced) is traced
    assert calls == [1, 1, 1]


def test_graph_transform_observer(load):
    observed = load("passes.graph_transform_observer")
    traced = load().symbolic_trace(lambda x: torch.relu(x) + 1)
    relu = next(node for node in traced.graph.nodes if node.target is torch.relu)
    with observed.GraphTransformObserver(traced, "exchange") as observer:
        with traced.graph.inserting_after(relu):
            new = traced.graph.call_function(torch.sigmoid, relu.args)
        relu.replace_all_uses_with(new)
        traced.graph.erase_node(relu)
    assert observer is not None
    traced.recompile()
    torch.testing.assert_close(traced(torch.ones(2)), torch.sigmoid(torch.ones(2)) + 1)


# ---- looking ---------------------------------------------------------------------------------------------------------


def test_source_partitions(load):
    matcher = load("passes.utils.source_matcher_utils")
    graph = load().Graph()
    x = graph.placeholder("x")
    first, second = graph.call_function(torch.relu, (x,)), graph.call_function(torch.sin, (x,))
    for number, node in enumerate((first, second)):
        node.meta["source_fn_stack"] = [(f"l{number}", nn.Linear if number else nn.ReLU)]
    graph.output((first, second))
    found = matcher.get_source_partitions(graph, [nn.Linear])
    assert list(found) == [nn.Linear]
    assert found[nn.Linear][0].nodes == [second]
    assert found[nn.Linear][0].input_nodes == [x]


def test_sizes_of_nodes(load):
    manipulation = load("passes.graph_manipulation")
    traced = load().symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    manipulation.get_size_of_all_nodes(traced, [example()])
    assert all(node.op == "output" or node.size_bytes.total_size > 0 for node in traced.graph.nodes)


def test_replaced_targets(load):
    manipulation = load("passes.graph_manipulation")
    traced = load().symbolic_trace(lambda x: x + torch.relu(x))
    manipulation.replace_target_nodes_with(traced, "call_function", torch.relu, "call_function", torch.sigmoid)
    traced.recompile()
    torch.testing.assert_close(traced(torch.ones(2)), 1 + torch.sigmoid(torch.ones(2)))


def test_attributes_lifted_to_nodes(load):
    traced = load().symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    load("passes.param_fetch").lift_lowering_attrs_to_nodes(traced)
    linear = next(node for node in traced.graph.nodes if node.op == "call_module")
    assert linear.attrs_for_lowering["name"] == "torch.nn.modules.linear.Linear"
    assert linear.attrs_for_lowering["weight"] is traced.get_submodule("0").weight


def test_fake_tensors(load):
    fake = load("passes.fake_tensor_prop")
    traced = load().symbolic_trace(Block())
    mode = torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True)
    fake.FakeTensorProp(traced, mode).propagate(example())
    shapes = [tuple(node.meta["val"].shape) for node in traced.graph.nodes if node.op == "call_module"]
    assert shapes == [(3, 8), (3, 4)]


def test_graph_drawer(load):
    pytest.importorskip("pydot")
    traced = load().symbolic_trace(Block())
    drawer = load("passes.graph_drawer").FxGraphDrawer(traced, "block")
    assert "first" in drawer.get_dot_graph().to_string()


def test_annotated_items(load):
    annotate = load("passes.annotate_getitem_nodes")
    graph = load().Graph()
    pair = graph.placeholder("pair", tuple[torch.Tensor, int])
    item = graph.call_function(operator.getitem, (pair, 1))
    graph.output(item)
    annotate.annotate_getitem_nodes(graph)
    assert item.type is int


# ---- passes over ATen calls ------------------------------------------------------------------------------------------


def test_common_subexpressions_of_aten(load):
    traced = load("experimental.proxy_tensor").make_fx(lambda x: x.cos() + x.cos())(torch.rand(3))
    assert isinstance(traced, load().GraphModule)
    result = load("passes.dialect.common.cse_pass").CSEPass()(traced)
    assert result.modified
    cosines = [node for node in result.graph_module.graph.nodes if node.target is torch.ops.aten.cos.default]
    assert len(cosines) == 1
    x = torch.rand(3)
    torch.testing.assert_close(result.graph_module(x), x.cos() + x.cos())


def test_reinplace(load):
    def program(x):
        return x.clone().add(1)

    traced = load("experimental.proxy_tensor").make_fx(program)(torch.rand(3))
    changed = load("passes.reinplace").reinplace(traced, torch.rand(3))
    assert any("add_" in str(node.target) for node in changed.graph.nodes)
    torch.testing.assert_close(changed(torch.ones(3)), torch.full((3,), 2.0))


# ---- experimental ----------------------------------------------------------------------------------------------------


def test_constants_folded(load):
    class Folded(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.rand(4))

        def forward(self, x):
            return x * (self.weight + self.weight)

    model = Folded()
    folded = load("experimental.const_fold").split_const_subgraphs(model)
    folded.run_folding()
    assert isinstance(folded, load().GraphModule)
    check_same(folded, model, torch.rand(4))


@pytest.mark.parametrize("kind", ["NormalizeArgs", "NormalizeOperators"])
def test_normalized(load, kind):
    traced = load().symbolic_trace(Block())
    normal = getattr(load("experimental.normalize"), kind)(traced).transform()
    check_same(normal, traced, example())
    relu = next(node for node in normal.graph.nodes if node.target is torch.relu)
    assert set(relu.kwargs) == ({"input"} if kind == "NormalizeArgs" else set())


def test_annotated_with_schemas(load):
    traced = load().symbolic_trace(Block())
    annotated = load("experimental.schema_type_annotation").AnnotateTypesWithSchema(traced).transform()
    assert next(node for node in annotated.graph.nodes if node.target == "first").type is torch.Tensor
    check_same(annotated, traced, example())


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout()

    def forward(self, x):
        return self.drop(torch.relu(self.norm(self.conv(x))))


def test_convolution_and_normalisation_fused(load):
    optimization = load("experimental.optimization")
    model = Convolution().eval()
    fused = optimization.fuse(model)
    assert isinstance(fused, load().GraphModule)
    assert not any(isinstance(child, nn.BatchNorm2d) for child in fused.modules() if child is not fused.conv)
    check_same(fused, model, torch.rand(1, 3, 8, 8))
    without = optimization.remove_dropout(model)
    assert not any(node.target == "drop" for node in load().symbolic_trace(without).graph.nodes)


def test_merged_products(load):
    def program(a, b, c):
        return torch.matmul(a, c) + torch.matmul(b, c)

    module = load("experimental.merge_matmul").merge_matmul(load().symbolic_trace(program))
    a, b, c = torch.rand(2, 3), torch.rand(2, 3), torch.rand(3, 4)
    torch.testing.assert_close(module(a, b, c), program(a, b, c))
    assert sum(node.target is torch.matmul for node in module.graph.nodes) == 1


class Asserting(nn.Module):
    def forward(self, x):
        assert x.sum(), "must not be zero"
        return torch.relu(x)


def test_rewritten_asserts(load):
    rewriter = load("experimental.rewriter")
    traced = rewriter.RewritingTracer().trace(Asserting())
    ops = [node.op for node in traced.nodes]
    assert ops == ["placeholder", "call_method", "call_function", "call_function", "output"]
    assert torch._assert in [node.target for node in traced.nodes]


def test_accelerator_partitioner(load):
    partitioner = load("experimental.accelerator_partitioner")
    utils = load("experimental.partitioner_utils")
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    traced = load().symbolic_trace(model)
    load("passes.graph_manipulation").get_size_of_all_nodes(traced, [example()])
    devices = [utils.Device("one", 300, 0), utils.Device("two", 300, 1)]
    found = partitioner.Partitioner().partition_graph(traced, model, utils.PartitionerConfig(devices))
    check_same(found.module_with_submodules, model, example())


def test_gradual_types(load):
    checker = load("experimental.graph_gradual_typechecker")
    tensor_type = load("tensor_type")

    def program(x: tensor_type.TensorType((1, 2, tensor_type.Dyn))):
        return torch.add(x, x)

    traced = load().symbolic_trace(program)
    assert checker.GraphTypeChecker({}, traced).type_check()
    added = next(node for node in traced.graph.nodes if node.op == "call_function")
    assert added.type == tensor_type.TensorType((1, 2, tensor_type.Dyn))


def test_traced_on_meta(load):
    tracer = load("experimental.meta_tracer")

    class Branching(nn.Module):
        def forward(self, x):
            return x + 1 if x.shape[0] > 2 else x - 1

    traced = tracer.symbolic_trace(Branching(), {"x": torch.rand(3, device="meta")})
    torch.testing.assert_close(traced(torch.ones(3)), torch.full((3,), 2.0))
