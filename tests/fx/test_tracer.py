"""Tracer: each documented method overridden, each documented flag set."""

import copy
import operator

import pytest
import torch

from . import wrapped
from .helpers import Inner, LinearOnly, Outer, names, of, only, opcodes, targets

X = torch.randn(2, 4)


def test_is_leaf_module_default(fx):
    tracer = fx.Tracer()
    assert tracer.is_leaf_module(torch.nn.Linear(1, 1), "a")
    assert not tracer.is_leaf_module(torch.nn.Sequential(), "b")
    assert not tracer.is_leaf_module(Inner(), "c")


def test_is_leaf_module_all(fx):
    class AllLeaves(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return True

    graph = AllLeaves().trace(Outer())
    assert [node.target for node in of(graph, "call_module")] == ["inner", "norm", "tail"]


def test_is_leaf_module_none(fx):
    class NoLeaves(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return False

    module = LinearOnly()
    graph = NoLeaves().trace(module)
    assert opcodes(graph) == ["placeholder", "get_attr", "get_attr", "call_function", "output"]
    assert only(graph, "call_function").target is torch.nn.functional.linear
    x = torch.randn(2, 3)
    torch.testing.assert_close(fx.GraphModule(module, graph)(x), module(x))


def test_is_leaf_module_is_given_the_path(fx):
    seen = []

    class Recording(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            seen.append((type(m).__name__, module_qualified_name))
            return super().is_leaf_module(m, module_qualified_name)

    Recording().trace(Outer())
    assert seen == [
        ("Inner", "inner"), ("Linear", "inner.linear"), ("LayerNorm", "norm"),
        ("Sequential", "tail"), ("Linear", "tail.0"), ("ReLU", "tail.1"),
    ]  # fmt: skip


def test_path_of_module(fx):
    module = Outer()
    paths = []

    class Asking(fx.Tracer):
        def call_module(self, m, forward, args, kwargs):
            paths.append(self.path_of_module(m))
            return super().call_module(m, forward, args, kwargs)

    Asking().trace(module)
    assert paths == ["inner", "inner.linear", "norm", "tail", "tail.0", "tail.1"]


def test_path_of_module_outside_of_a_trace(fx):
    tracer = fx.Tracer()
    tracer.root = Outer()
    assert tracer.path_of_module(tracer.root.inner.linear) == "inner.linear"


def test_path_of_a_foreign_module_is_an_error(fx):
    foreign = torch.nn.Linear(4, 4)

    class Holder(torch.nn.Module):
        def forward(self, x):
            return foreign(x)

    with pytest.raises(NameError, match="module is not installed as a submodule"):
        fx.symbolic_trace(Holder())


def test_call_module_override_replaces_the_call(fx):
    class Doubling(fx.Tracer):
        def call_module(self, m, forward, args, kwargs):
            return args[0] * 2

    graph = Doubling().trace(LinearOnly())
    assert targets(graph)[1] is operator.mul


def test_call_module_may_point_at_a_nested_graph_module(fx):
    module = Outer()
    expected = module(X)
    module.add_module("nested", fx.symbolic_trace(module.inner))

    class Nesting(fx.Tracer):
        def call_module(self, m, forward, args, kwargs):
            if isinstance(m, Inner):
                return self.create_proxy("call_module", "nested", args, kwargs)
            return super().call_module(m, forward, args, kwargs)

    graph = Nesting().trace(module)
    assert targets(graph)[1] == "nested"
    traced = fx.GraphModule(module, graph)
    assert isinstance(traced.nested, fx.GraphModule)
    torch.testing.assert_close(traced(X), expected)


def test_call_module_sees_keyword_arguments(fx):
    seen = {}

    class Recording(fx.Tracer):
        def call_module(self, m, forward, args, kwargs):
            seen.update(kwargs)
            return super().call_module(m, forward, args, kwargs)

    class Keyword(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.linear(input=x)

    graph = Recording().trace(Keyword())
    assert list(seen) == ["input"]
    assert list(only(graph, "call_module").kwargs) == ["input"]


def test_create_arg_override_supports_more_types(fx):
    class Box:
        def __init__(self, value):
            self.value = value

    class Boxes(fx.Tracer):
        def create_arg(self, a):
            if isinstance(a, Box):
                return self.create_arg(a.value)
            return super().create_arg(a)

    graph = Boxes().trace(lambda x: wrapped.by_name(x, Box(3)))
    assert only(graph, "call_function").args[1] == 3


def test_create_arg_refuses_unknown_types(fx):
    class Strange:
        pass

    with pytest.raises(NotImplementedError, match="argument of type"):
        fx.symbolic_trace(lambda x: wrapped.by_name(x, Strange()))


def test_create_arg_protocol_on_the_value(fx):
    class Knows:
        def __fx_create_arg__(self, tracer):
            return tracer.create_node("call_function", torch.zeros, (2,), {}, name="known")

    graph = fx.Tracer().trace(lambda x: wrapped.by_name(x, Knows()))
    assert "known" in names(graph)


def test_create_arg_on_aggregates(fx):
    graph = fx.Graph()
    tracer = fx.GraphAppendingTracer(graph)
    proxy = fx.Proxy(graph.placeholder("x"), tracer)
    node = proxy.node
    assert tracer.create_arg(proxy) is node
    assert tracer.create_arg((proxy, 1)) == (node, 1)
    assert tracer.create_arg([proxy, [proxy]]) == [node, [node]]
    assert tracer.create_arg({"k": proxy}) == {"k": node}
    assert tracer.create_arg(slice(proxy, None, 2)) == slice(node, None, 2)
    assert tracer.create_arg(range(1, 5, 2)) == range(1, 5, 2)
    assert tracer.create_arg(None) is None
    assert tracer.create_arg(...) is ...
    assert tracer.create_arg(torch.float32) is torch.float32


def test_create_arg_refuses_proxies_as_keys(fx):
    with pytest.raises(RuntimeError, match="(?i)cannot contain a Node"):
        fx.symbolic_trace(lambda x: wrapped.by_name(x, {x: 1}))


def test_create_node_override_tags_every_node(fx):
    class Tagging(fx.Tracer):
        def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
            node = super().create_node(kind, target, args, kwargs, name, type_expr)
            node.tag = "seen"
            return node

    graph = Tagging().trace(lambda a, b, c: a + b + c)
    assert [node.tag for node in graph.nodes] == ["seen"] * 6


def test_create_node_override_may_refuse(fx):
    class NoInPlace(fx.Tracer):
        def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
            text = target if isinstance(target, str) else target.__name__
            if text.endswith("_"):
                raise RuntimeError("in-place operations are not allowed")
            return super().create_node(kind, target, args, kwargs, name)

    with pytest.raises(RuntimeError, match="in-place"):
        NoInPlace().trace(lambda x: x.relu_())
    assert len(NoInPlace().trace(lambda x: x.relu()).nodes) == 3


def test_create_proxy_override_sees_every_call(fx):
    kinds = []

    class Recording(fx.Tracer):
        def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
            kinds.append(kind)
            return super().create_proxy(kind, target, args, kwargs, name, type_expr, proxy_factory_fn)

    Recording().trace(Inner())
    assert kinds == ["placeholder", "call_module", "get_attr", "call_function", "call_function"]


def test_proxy_override_gives_another_class(fx):
    class MyProxy(fx.Proxy):
        pass

    class MyTracer(fx.Tracer):
        def proxy(self, node):
            return MyProxy(node, self)

    kinds = []

    def check(x):
        kinds.append(type(x))
        y = torch.relu(x)
        kinds.append(type(y))
        return y

    MyTracer().trace(check)
    assert kinds == [MyProxy, MyProxy]


def test_to_bool_override_answers(fx):
    class Yes(fx.Tracer):
        def to_bool(self, obj):
            return True

    graph = Yes().trace(lambda x: torch.relu(x) if x.sum() > 0 else torch.neg(x))
    assert torch.relu in targets(graph)


def test_to_bool_override_reads_the_node(fx):
    class Knows(fx.Tracer):
        def to_bool(self, obj):
            return obj.node.target is operator.gt

    def chooses(x):
        first = torch.relu(x) if x > 0 else x
        return torch.neg(first) if x < 0 else first

    graph = Knows().trace(chooses)
    assert torch.relu in targets(graph)
    assert torch.neg not in targets(graph)


def test_iter_override_in_a_for_loop(fx):
    class Three(fx.Tracer):
        def iter(self, obj):
            return (obj[i] for i in range(3))

    def total(x):
        out = 0
        for item in x:
            out = out + item
        return out

    traced = fx.GraphModule({}, Three().trace(total))
    assert traced([1, 2, 3]) == 6


def test_keys_override_allows_double_star(fx):
    class Known(fx.Tracer):
        def keys(self, obj):
            return iter(["input", "other"])

    graph = Known().trace(lambda options: torch.add(**options))
    traced = fx.GraphModule({}, graph)
    assert traced({"input": torch.ones(1), "other": torch.ones(1)}).item() == 2.0


def test_keys_default_is_a_method_call(fx):
    graph = fx.Tracer().trace(lambda d: d.keys())
    assert only(graph, "call_method").target == "keys"


def test_getattr_override_sees_attributes(fx):
    seen = []

    class Recording(fx.Tracer):
        def getattr(self, attr, attr_val, parameter_proxy_cache):
            seen.append(attr)
            return super().getattr(attr, attr_val, parameter_proxy_cache)

    Recording().trace(Inner())
    assert {"linear", "scale", "shift"} <= set(seen)


def test_getattr_override_may_hand_out_the_value(fx):
    class Plain(fx.Tracer):
        def getattr(self, attr, attr_val, parameter_proxy_cache):
            return attr_val

    class Reads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(4))

        def forward(self, x):
            assert isinstance(self.weight, torch.nn.Parameter)
            return x * self.weight.shape[0]

    graph = Plain().trace(Reads())
    assert only(graph, "call_function").args[1] == 4


def test_create_args_for_root_override(fx):
    class Renames(fx.Tracer):
        def create_args_for_root(self, root_fn, is_module, concrete_args=None):
            function, args = super().create_args_for_root(root_fn, is_module, concrete_args)
            self.seen = len(args)
            return function, args

    tracer = Renames()
    tracer.trace(LinearOnly())
    assert tracer.seen == 2


def test_get_fresh_qualname(fx):
    tracer = fx.Tracer()
    tracer.root = torch.nn.Module()
    assert tracer.get_fresh_qualname("_const") == "_const0"
    tracer.root._const0 = 1
    second = tracer.get_fresh_qualname("_const")
    assert second.startswith("_const") and second != "_const0"
    setattr(tracer.root, second, 1)
    assert not hasattr(tracer.root, tracer.get_fresh_qualname("_const"))


def test_record_stack_traces(fx):
    class Recording(fx.Tracer):
        record_stack_traces = True

    graph = Recording().trace(Outer())
    node = [node for node in graph.nodes if node.target == "inner.linear"][0]
    assert "helpers.py" in node.stack_trace
    assert "self.linear(x)" in node.stack_trace


def test_stack_trace_goes_from_the_outermost_frame_inwards(fx):
    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    graph = tracer.trace(Outer())
    node = [node for node in graph.nodes if node.target is operator.mul][0]
    outer = node.stack_trace.index("self.tail(self.norm(self.inner(x)).relu())")
    assert outer < node.stack_trace.index("return self.linear(x) * self.scale")


def test_proxy_buffer_attributes_off(fx):
    class Reads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.arange(4.0))

        def forward(self, x):
            return x + self.table[1:]

    graph = fx.Tracer().trace(Reads())
    assert only(graph, "get_attr").target == "_tensor_constant0"


def test_proxy_buffer_attributes_on(fx):
    class Buffers(fx.Tracer):
        proxy_buffer_attributes = True

    class Reads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.arange(4.0))

        def forward(self, x):
            return x + self.table[1:]

    graph = Buffers().trace(Reads())
    assert only(graph, "get_attr").target == "table"
    assert operator.getitem in targets(graph)


class Grows(torch.nn.Module):
    """Branches on the shape of its own parameter."""

    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(size))

    def forward(self, x):
        if self.weight.shape[0] > 10 or self.weight.dim() > 3 or self.weight.size()[0] < 0:
            return x
        return x * self.weight.numel() + self.weight.ndim + self.weight.nelement()


def test_param_shapes_constant_off(fx):
    with pytest.raises(fx.TraceError):
        fx.Tracer().trace(Grows(2))


@pytest.mark.parametrize("size", [2, 20])
def test_param_shapes_constant_on(fx, size):
    module = Grows(size)
    graph = fx.Tracer(param_shapes_constant=True).trace(module)
    torch.testing.assert_close(fx.GraphModule(module, graph)(torch.ones(3)), module(torch.ones(3)))


def test_param_shapes_constant_gives_parameter_proxies(fx):
    seen = []

    class Reads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2, 3))

        def forward(self, x):
            seen.append(self.weight)
            return x + self.weight

    fx.Tracer(param_shapes_constant=True).trace(Reads())
    (proxy,) = seen
    assert isinstance(proxy, fx.ParameterProxy) and isinstance(proxy, fx.Proxy)
    assert (proxy.shape, proxy.size(), proxy.dim(), proxy.ndim) == ((2, 3), (2, 3), 2, 2)
    assert (proxy.numel(), proxy.nelement()) == (6, 6)
    assert "weight" in repr(proxy)


def test_check_mutable_operations(fx):
    def uses_out(x):
        buffer = torch.empty(4)
        torch.sigmoid(x, out=buffer)
        return buffer

    tracer = fx.Tracer()
    tracer.check_mutable_operations = True
    with pytest.raises(RuntimeError, match="mutable operation"):
        tracer.trace(uses_out)


def test_traced_func_name(fx):
    class TwoWays(torch.nn.Module):
        def forward(self, x):
            return x + 1

        def other(self, x):
            return x * 3

    class Other(fx.Tracer):
        traced_func_name = "other"

    assert targets(Other().trace(TwoWays()))[1] is operator.mul


def test_traced_func_name_must_exist(fx):
    class Missing(fx.Tracer):
        traced_func_name = "no_such_method"

    with pytest.raises((AssertionError, AttributeError), match="no_such_method"):
        Missing().trace(LinearOnly())


def test_graph_knows_its_tracer_class(fx):
    class Mine(fx.Tracer):
        pass

    assert Mine().trace(lambda x: x)._tracer_cls is Mine


def test_tracer_can_be_deep_copied(fx):
    tracer = fx.Tracer()
    tracer.trace(lambda x: x + 1)
    assert isinstance(copy.deepcopy(tracer), fx.Tracer)


def test_tracer_derives_from_tracer_base(fx):
    assert issubclass(fx.Tracer, fx.TracerBase)
    assert issubclass(fx.GraphAppendingTracer, fx.TracerBase)


def test_scope_follows_modules(fx):
    scopes = {}

    class Watching(fx.Tracer):
        def create_node(self, *args, **kwargs):
            node = super().create_node(*args, **kwargs)
            scopes[node.name] = (self.scope.module_path, self.scope.module_type)
            return node

    tracer = Watching()
    tracer.trace(Outer())
    assert scopes["mul"] == ("inner", Inner)
    assert scopes["relu"] == ("", None)
    assert tracer.node_name_to_scope["inner_linear"] == ("inner.linear", torch.nn.Linear)


def test_scope_context_manager_restores(fx):
    scope = fx.Scope("a", int)
    with fx.ScopeContextManager(scope, fx.Scope("b", str)) as current:
        assert (current.module_path, current.module_type) == ("b", str)
        assert scope is current
    assert (scope.module_path, scope.module_type) == ("a", int)


def test_module_called_twice_is_two_entries_of_the_stack(fx):
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.linear(self.linear(x))

    graph = fx.Tracer().trace(Twice())
    keys = [next(iter(node.meta["nn_module_stack"])) for node in of(graph, "call_module")]
    assert keys == ["linear", "linear@1"]


def test_custom_tracer_init_arguments(fx):
    class Leafy(fx.Tracer):
        def __init__(self, leaves):
            super().__init__()
            self.leaves = leaves

        def is_leaf_module(self, m, module_qualified_name):
            return isinstance(m, self.leaves) or super().is_leaf_module(m, module_qualified_name)

    graph = Leafy((Inner,)).trace(Outer())
    assert of(graph, "call_module")[0].target == "inner"
