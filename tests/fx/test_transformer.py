"""Transformer: a new module from a symbolic run, each method overridden."""

import operator

import pytest
import torch

from . import wrapped
from .helpers import Inner, LinearOnly, Outer, names, node_called, of, only, opcodes, targets

X = torch.randn(2, 4)


@pytest.mark.parametrize("make", [Inner, Outer])
def test_no_change(fx, make):
    root = make()
    traced = fx.symbolic_trace(root)
    transformed = fx.Transformer(traced).transform()
    assert isinstance(transformed, fx.GraphModule) and transformed is not traced
    assert opcodes(transformed.graph) == opcodes(traced.graph)
    assert targets(transformed.graph) == targets(traced.graph)
    torch.testing.assert_close(transformed(X), root(X))


def test_original_is_left_alone(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(x))
    before = names(traced.graph)
    fx.Transformer(traced).transform()
    assert names(traced.graph) == before


class SwapFunctions:
    def call_function(self, target, args, kwargs):
        if target is torch.sigmoid:
            return torch.neg(*args, **kwargs)
        return super().call_function(target, args, kwargs)

    def call_method(self, target, args, kwargs):
        if target == "neg":
            first, *rest = args
            return first.sigmoid(*rest, **kwargs)
        return super().call_method(target, args, kwargs)


def test_op_swap(fx):
    swap = type("Swap", (SwapFunctions, fx.Transformer), {})
    traced = fx.symbolic_trace(lambda x: torch.sigmoid(x).neg())
    transformed = swap(traced).transform()
    torch.testing.assert_close(transformed(X), torch.neg(X).sigmoid())
    assert torch.neg in targets(transformed.graph) and "sigmoid" in targets(transformed.graph)


def test_op_expansion_with_operators(fx):
    class Expand(fx.Transformer):
        def call_function(self, target, args, kwargs):
            if target is torch.square:
                return args[0] * args[0]
            return super().call_function(target, args, kwargs)

    transformed = Expand(fx.symbolic_trace(lambda x: torch.square(x))).transform()
    assert only(transformed.graph, "call_function").target is operator.mul


def test_call_module_removed(fx):
    class Skip(fx.Transformer):
        def call_module(self, target, args, kwargs):
            return args[0]

    transformed = Skip(fx.symbolic_trace(LinearOnly())).transform()
    assert opcodes(transformed.graph) == ["placeholder", "output"]


def test_call_module_replaced_by_functions(fx):
    class Functional(fx.Transformer):
        def call_module(self, target, args, kwargs):
            weight = self.tracer.create_proxy("get_attr", f"{target}.weight", (), {})
            return torch.nn.functional.linear(args[0], weight)

    transformed = Functional(fx.symbolic_trace(LinearOnly())).transform()
    assert only(transformed.graph, "get_attr").target == "linear.weight"
    assert transformed(torch.ones(1, 3)).shape == (1, 2)


def test_get_attr_replaced(fx):
    class Constant(fx.Transformer):
        def get_attr(self, target, args, kwargs):
            return 3.0

    transformed = Constant(fx.symbolic_trace(Inner())).transform()
    assert "get_attr" not in opcodes(transformed.graph)


def test_placeholder_added(fx):
    class Extra(fx.Transformer):
        def placeholder(self, target, args, kwargs):
            first = super().placeholder(target, args, kwargs)
            super().placeholder(target + "_mask", args, kwargs)
            return first

    transformed = Extra(fx.symbolic_trace(lambda x: x + 1)).transform()
    assert [node.target for node in of(transformed.graph, "placeholder")] == ["x", "x_mask"]


def test_output_changed(fx):
    class Both(fx.Transformer):
        def output(self, target, args, kwargs):
            result = super().output(target, args, kwargs)
            return (result, result)

    assert Both(fx.symbolic_trace(lambda x: x + 1)).transform()(1) == (2, 2)


def test_default_values_are_kept(fx):
    def with_default(x, n=3):
        return x + n

    assert fx.Transformer(fx.symbolic_trace(with_default)).transform()(1) == 4


def test_structured_outputs(fx):
    traced = fx.symbolic_trace(lambda x: {"a": x, "b": [x + 1, (x,)]})
    assert fx.Transformer(traced).transform()(1) == {"a": 1, "b": [2, (1,)]}


def test_multiple_outputs(fx):
    def several(x):
        a, b = torch.split(x, 1)
        return a + b, a - b

    traced = fx.symbolic_trace(several)
    transformed = fx.Transformer(traced).transform()
    torch.testing.assert_close(transformed(X), several(X))


def test_wrapped_functions_stay(fx):
    traced = fx.symbolic_trace(wrapped.calls_by_decorator)
    transformed = fx.Transformer(traced).transform()
    assert wrapped.by_decorator in targets(transformed.graph)
    torch.testing.assert_close(transformed(X), wrapped.calls_by_decorator(X))


def test_python_functions_are_not_entered(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(wrapped.never_registered, (x,)))
    transformed = fx.Transformer(fx.GraphModule({}, graph)).transform()
    assert wrapped.never_registered in targets(transformed.graph)


def test_tensor_constants_stay(fx):
    traced = fx.symbolic_trace(lambda x: x + torch.ones(4))
    torch.testing.assert_close(fx.Transformer(traced).transform()(X), X + 1)


def test_parameters_are_shared(fx):
    root = Inner()
    transformed = fx.Transformer(fx.symbolic_trace(root)).transform()
    assert transformed.scale is root.scale


def test_new_tensor_constants_may_appear(fx):
    class Shift(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(target, args, kwargs) + torch.ones(4)

    transformed = Shift(fx.symbolic_trace(lambda x: torch.relu(x))).transform()
    torch.testing.assert_close(transformed(X), X.relu() + 1)


def test_meta_of_the_output_is_kept(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(x))
    only(traced.graph, "output").meta["key"] = "value"
    assert only(fx.Transformer(traced).transform().graph, "output").meta["key"] == "value"


def test_stack_traces_are_kept(fx):
    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    root = Outer()
    traced = fx.GraphModule(root, tracer.trace(root))
    transformed = fx.Transformer(traced).transform()
    for before, after in zip(traced.graph.nodes, transformed.graph.nodes, strict=True):
        if before.op in ("call_function", "call_method", "call_module"):
            assert "helpers.py" in after.stack_trace


def test_module_stack_is_kept(fx):
    transformed = fx.Transformer(fx.symbolic_trace(Outer())).transform()
    stack = node_called(transformed.graph, "inner_scale").meta["nn_module_stack"]
    assert [path for path, _ in stack.values()] == ["inner"]


def test_transform_twice(fx):
    traced = fx.symbolic_trace(Outer())
    twice = fx.Transformer(fx.Transformer(traced).transform()).transform()
    torch.testing.assert_close(twice(X), traced(X))


def test_class_of_transformer(fx):
    assert issubclass(fx.Transformer, fx.Interpreter)


def test_proxies_flow_through_the_methods(fx):
    kinds = []

    class Watch(fx.Transformer):
        def call_function(self, target, args, kwargs):
            kinds.append(type(args[0]))
            return super().call_function(target, args, kwargs)

    Watch(fx.symbolic_trace(lambda x: torch.relu(x))).transform()
    assert issubclass(kinds[0], fx.Proxy)
