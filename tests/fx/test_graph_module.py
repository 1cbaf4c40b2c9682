"""GraphModule: roots, attributes, submodules, state, running, recompiling."""

import copy

import pytest
import torch

from .helpers import Inner, LinearOnly, Outer, names, of, only

X = torch.randn(2, 4)


def linear_graph(fx, target="linear"):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_module(target, (x,)))
    return graph


def test_from_a_module_root(fx):
    root = LinearOnly()
    module = fx.GraphModule(root, linear_graph(fx))
    assert module.linear is root.linear
    torch.testing.assert_close(module(torch.ones(1, 3)), root(torch.ones(1, 3)))


def test_only_referenced_attributes_are_copied(fx):
    root = Outer()
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_module("inner.linear", (x,)))
    module = fx.GraphModule(root, graph)
    assert hasattr(module.inner, "linear")
    assert not hasattr(module, "norm") and not hasattr(module.inner, "scale")


def test_from_a_dict_root(fx):
    linear = torch.nn.Linear(3, 2)
    module = fx.GraphModule({"linear": linear}, linear_graph(fx))
    assert module.linear is linear


def test_dict_root_with_nested_names(fx):
    linear = torch.nn.Linear(3, 2)
    graph = linear_graph(fx, "a.b.c")
    module = fx.GraphModule({"a.b.c": linear}, graph)
    assert module.a.b.c is linear
    module.graph.lint()


def test_dict_root_parent_before_child(fx):
    parent, weight = torch.nn.Linear(3, 3), torch.nn.Parameter(torch.ones(3))
    graph = fx.Graph()
    x = graph.placeholder("x")
    inner = graph.get_attr("parent.extra")
    graph.output(graph.call_function(torch.add, (graph.call_module("parent", (x,)), inner)))
    module = fx.GraphModule({"parent.extra": weight, "parent": parent}, graph)
    assert module.parent is parent and module.parent.extra is weight


def test_dict_root_with_tensors(fx):
    graph = fx.Graph()
    graph.output(graph.call_function(torch.add, (graph.get_attr("a"), graph.get_attr("b"))))
    module = fx.GraphModule({"a": torch.ones(2), "b": torch.nn.Parameter(torch.ones(2))}, graph)
    assert set(dict(module.named_buffers())) == {"a"}
    assert set(dict(module.named_parameters())) == {"b"}
    assert module().tolist() == [2.0, 2.0]


def test_dict_root_with_a_missing_target(fx):
    with pytest.raises(RuntimeError, match="referenced target linear but that target was not provided"):
        fx.GraphModule({}, linear_graph(fx))


def test_other_roots_are_refused(fx):
    with pytest.raises(RuntimeError, match="(?i)unsupported type"):
        fx.GraphModule(3, fx.Graph())


def test_class_name(fx):
    assert type(fx.GraphModule({}, fx.Graph())).__name__ == "GraphModule"
    assert type(fx.GraphModule({}, fx.Graph(), class_name="Mine")).__name__ == "Mine"
    assert fx.GraphModule({}, fx.Graph(), "Mine")._get_name() == "Mine"
    layer = LinearOnly()
    assert type(fx.GraphModule(layer, fx.Tracer().trace(layer))).__name__ == "GraphModule"


def test_each_instance_has_its_own_forward(fx):
    one, two = fx.symbolic_trace(lambda x: x + 1), fx.symbolic_trace(lambda x: x * 5)
    assert one(2) == 3 and two(2) == 10
    assert isinstance(one, fx.GraphModule) and isinstance(two, fx.GraphModule)


def test_plain_tensor_attribute_becomes_a_buffer(fx):
    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.ones(4)

        def forward(self, x):
            return x + self.table

    assert set(dict(fx.symbolic_trace(Plain()).named_buffers())) == {"table"}


def test_non_tensor_attribute_is_copied(fx):
    root = torch.nn.Module()
    root.setting = "value"
    graph = fx.Graph()
    graph.output(graph.get_attr("setting"))
    assert fx.GraphModule(root, graph)() == "value"


def test_graph_property(fx):
    graph = linear_graph(fx)
    module = fx.GraphModule(LinearOnly(), graph)
    assert module.graph is graph
    assert graph.owning_module is module


def test_graph_setter_recompiles(fx):
    module = fx.symbolic_trace(lambda x: x + 1)
    module.graph = fx.symbolic_trace(lambda x: x * 5).graph
    assert module(2) == 10
    assert module.graph.owning_module is module


def test_graph_setter_refuses_other_things(fx):
    module = fx.symbolic_trace(lambda x: x + 1)
    with pytest.raises((AssertionError, TypeError)):
        module.graph = 3


def test_recompile_after_an_edit(fx):
    module = fx.symbolic_trace(lambda x: torch.relu(x))
    only(module.graph, "call_function").target = torch.neg
    result = module.recompile()
    assert isinstance(result, fx.PythonCode)
    assert module(torch.tensor(1.0)) == -1.0
    assert "torch.neg" in module.code


def test_edit_with_a_new_submodule(fx):
    module = fx.symbolic_trace(LinearOnly())
    module.add_submodule("extra", torch.nn.Linear(2, 5))
    call = only(module.graph, "call_module")
    with module.graph.inserting_after(call):
        extra = module.graph.call_module("extra", (call,))
    module.graph.output_node().args = (extra,)
    module.graph.lint()
    module.recompile()
    assert module(torch.ones(1, 3)).shape == (1, 5)


def test_add_submodule_nested(fx):
    module = fx.symbolic_trace(LinearOnly())
    assert module.add_submodule("a.b.c", torch.nn.ReLU())
    assert isinstance(module.get_submodule("a.b.c"), torch.nn.ReLU)
    assert type(module.a) is torch.nn.Module


def test_add_submodule_replaces(fx):
    module = fx.symbolic_trace(LinearOnly())
    replacement = torch.nn.Linear(3, 7)
    assert module.add_submodule("linear", replacement)
    assert module(torch.ones(1, 3)).shape == (1, 7)


def test_add_submodule_under_a_parameter_is_refused(fx):
    module = fx.symbolic_trace(LinearOnly())
    assert module.add_submodule("linear.weight.x", torch.nn.ReLU()) is False


def test_delete_submodule(fx):
    module = fx.symbolic_trace(LinearOnly())
    assert module.delete_submodule("linear") is True
    assert not hasattr(module, "linear")


@pytest.mark.parametrize("target", ["nowhere", "linear.nowhere", "nowhere.linear", "linear.weight", "linear.weight.x"])
def test_delete_submodule_that_is_none(fx, target):
    module = fx.symbolic_trace(LinearOnly())
    assert module.delete_submodule(target) is False
    assert hasattr(module, "linear")


def test_delete_nested_submodule(fx):
    module = fx.symbolic_trace(Outer())
    assert module.delete_submodule("inner.linear") is True
    assert hasattr(module, "inner") and not hasattr(module.inner, "linear")


def test_delete_all_unused_submodules(fx):
    module = fx.symbolic_trace(Outer())
    module.add_submodule("unused.child", torch.nn.ReLU())
    module.add_submodule("inner.other", torch.nn.ReLU())
    expected = module(X)
    module.delete_all_unused_submodules()
    assert not hasattr(module, "unused") and not hasattr(module.inner, "other")
    torch.testing.assert_close(module(X), expected)


def test_delete_all_unused_keeps_children_of_leaves(fx):
    class Leaves(fx.Tracer):
        def is_leaf_module(self, m, name):
            return True

    root = Outer()
    module = fx.GraphModule(root, Leaves().trace(root))
    module.delete_all_unused_submodules()
    assert module.get_submodule("inner.linear") is root.inner.linear
    torch.testing.assert_close(module(X), root(X))


def test_delete_all_unused_keeps_owners_of_parameters(fx):
    class Reads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x):
            return x @ self.linear.weight

    module = fx.symbolic_trace(Reads())
    module.delete_all_unused_submodules()
    assert module(X).shape == (2, 4)


def test_state_dict_has_the_root_keys(fx):
    root = Outer()
    assert set(fx.symbolic_trace(root).state_dict()) == set(root.state_dict())


def test_load_state_dict(fx):
    one, two = Outer(), Outer()
    traced = fx.symbolic_trace(one)
    traced.load_state_dict(two.state_dict())
    torch.testing.assert_close(traced(X), two(X))


def test_parameters_are_shared_until_copied(fx):
    root = Outer()
    traced = fx.symbolic_trace(root)
    with torch.no_grad():
        root.inner.scale.zero_()
    torch.testing.assert_close(traced(X), root(X))


def test_reassigned_parameter_is_used(fx):
    traced = fx.symbolic_trace(Inner())
    traced.scale = torch.nn.Parameter(torch.zeros(4))
    torch.testing.assert_close(traced(X), torch.ones(2, 4))


def test_reassigned_module_is_used(fx):
    traced = fx.symbolic_trace(LinearOnly())
    traced.linear = torch.nn.Linear(3, 9)
    assert traced(torch.ones(1, 3)).shape == (1, 9)


def test_to_dtype(fx):
    traced = fx.symbolic_trace(Outer()).to(torch.float64)
    assert traced(X.double()).dtype is torch.float64


def test_to_meta_device(fx):
    traced = fx.symbolic_trace(Outer()).to("meta")
    assert traced(X.to("meta")).shape == (2, 3)


def test_train_and_eval(fx):
    module = torch.nn.Sequential(torch.nn.Dropout(0.99))
    traced = fx.symbolic_trace(module)
    assert torch.equal(traced.eval()(torch.ones(50)), torch.ones(50))
    assert not torch.equal(traced.train()(torch.ones(50)), torch.ones(50))


def test_requires_grad(fx):
    traced = fx.symbolic_trace(Inner()).requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in traced.parameters())


def test_optimizer_step(fx):
    traced = fx.symbolic_trace(LinearOnly())
    optimizer = torch.optim.SGD(traced.parameters(), lr=0.1)
    before = traced.linear.weight.detach().clone()
    traced(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    assert not torch.equal(before, traced.linear.weight)


def test_forward_hooks_run(fx):
    traced = fx.symbolic_trace(LinearOnly())
    traced.register_forward_hook(lambda module, args, out: out * 0)
    traced.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    assert traced(torch.ones(1, 3)).tolist() == [[0.0, 0.0]]


def test_hooks_of_submodules_run(fx):
    traced = fx.symbolic_trace(LinearOnly())
    traced.linear.register_forward_hook(lambda module, args, out: out * 0)
    assert traced(torch.ones(1, 3)).abs().sum() == 0


def test_functional_call(fx):
    traced = fx.symbolic_trace(LinearOnly())
    zeros = {name: torch.zeros_like(value) for name, value in traced.named_parameters()}
    assert torch.func.functional_call(traced, zeros, (torch.ones(1, 3),)).abs().sum() == 0


@pytest.mark.parametrize("make", [LinearOnly, Inner, Outer])
def test_script_of_the_result(fx, make):
    root = make()
    traced = fx.symbolic_trace(root)
    x = torch.randn(2, 3 if make is LinearOnly else 4)
    torch.testing.assert_close(torch.jit.script(traced)(x), root(x))


def test_script_of_a_constant(fx):
    def plus_one(x):
        return x + torch.ones(2)

    traced = fx.symbolic_trace(plus_one)
    assert torch.jit.script(traced)(torch.ones(2)).tolist() == [2.0, 2.0]


def test_jit_trace_of_the_result(fx):
    root = Outer()
    torch.testing.assert_close(torch.jit.trace(fx.symbolic_trace(root), (X,))(X), root(X))


def test_vmap_and_grad_of_the_result(fx):
    traced = fx.symbolic_trace(lambda x: torch.sin(x).sum())
    torch.testing.assert_close(torch.func.grad(traced)(X), torch.cos(X))
    torch.testing.assert_close(torch.func.vmap(traced)(X), torch.sin(X).sum(1))


def test_meta_is_a_dict(fx):
    traced = fx.symbolic_trace(LinearOnly())
    assert traced.meta == {}
    traced.meta["key"] = 1
    assert copy.deepcopy(traced).meta == {"key": 1}


def test_shallow_copy_shares_state(fx):
    traced = fx.symbolic_trace(Inner())
    traced.meta["k"] = 1
    copied = copy.copy(traced)
    assert copied.scale is traced.scale
    assert copied.meta == {"k": 1}
    torch.testing.assert_close(copied(X), traced(X))


def test_subclass_keeps_its_methods(fx):
    class Mine(fx.GraphModule):
        def extra(self):
            return "extra"

    module = Mine(LinearOnly(), linear_graph(fx))
    assert module.extra() == "extra"
    assert isinstance(module, Mine)
    assert module(torch.ones(1, 3)).shape == (1, 2)


def test_subclass_with_its_own_call(fx):
    class Mine(fx.GraphModule):
        def __call__(self, *args, **kwargs):
            return ("wrapped", super().__call__(*args, **kwargs))

    module = Mine(LinearOnly(), linear_graph(fx))
    assert module(torch.ones(1, 3))[0] == "wrapped"


def test_subclass_with_init_arguments(fx):
    class Mine(fx.GraphModule):
        def __init__(self, root, graph, note):
            super().__init__(root, graph)
            self.note = note

    assert Mine({}, fx.Graph(), "hello").note == "hello"


def test_named_children_and_modules(fx):
    traced = fx.symbolic_trace(Outer())
    assert [name for name, _ in traced.named_children()] == ["inner", "norm", "tail"]


def test_training_loop_gives_the_same_gradients(fx):
    root = Outer()
    other = copy.deepcopy(root)
    fx.symbolic_trace(root)(X).sum().backward()
    other(X).sum().backward()
    for ours, theirs in zip(root.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


def test_call_with_too_few_arguments(fx):
    with pytest.raises(TypeError):
        fx.symbolic_trace(lambda x, y: x + y)(1)


def test_call_with_too_many_arguments(fx):
    with pytest.raises(TypeError):
        fx.symbolic_trace(lambda x: x)(1, 2)


def test_replicate_for_data_parallel(fx):
    traced = fx.symbolic_trace(LinearOnly())
    replica = traced._replicate_for_data_parallel()
    assert replica is not traced
    torch.testing.assert_close(replica(torch.ones(1, 3)), traced(torch.ones(1, 3)))


def test_retrace_after_an_edit(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(x))
    only(traced.graph, "call_function").target = torch.neg
    traced.recompile()
    again = fx.symbolic_trace(traced)
    assert names(again.graph)[0] == "x"
    assert only(again.graph, "call_function").target is torch.neg


def test_two_modules_may_not_fight_over_one_graph(fx):
    graph = linear_graph(fx)
    one = fx.GraphModule(LinearOnly(), graph)
    two = fx.GraphModule(LinearOnly(), graph)
    x = torch.ones(1, 3)
    assert one(x).shape == two(x).shape
    assert not torch.equal(one(x), two(x))


def test_placeholders_become_the_signature(fx):
    traced = fx.symbolic_trace(lambda first, second: first + second)
    assert traced.forward(second=1, first=2) == 3
    assert [node.target for node in of(traced.graph, "placeholder")] == ["first", "second"]
