"""Symbolic tracing: what becomes a node, how nodes are called, what is refused."""

import functools
import math
import operator

import pytest
import torch
import torch.nn.functional as F

from .helpers import Inner, LinearOnly, Outer, names, of, only, opcodes, targets, traced_same

X = torch.randn(2, 4)


def test_function_becomes_placeholder_call_output(fx):
    traced = traced_same(fx, lambda x: torch.relu(x), X)
    assert opcodes(traced.graph) == ["placeholder", "call_function", "output"]
    assert only(traced.graph, "call_function").target is torch.relu


def test_identity_has_two_nodes(fx):
    traced = traced_same(fx, lambda x: x, X)
    assert opcodes(traced.graph) == ["placeholder", "output"]


def test_result_is_a_graph_module_and_an_nn_module(fx):
    traced = fx.symbolic_trace(LinearOnly())
    assert isinstance(traced, fx.GraphModule)
    assert isinstance(traced, torch.nn.Module)


def test_tracer_returns_a_graph_and_keeps_root(fx):
    module = LinearOnly()
    tracer = fx.Tracer()
    graph = tracer.trace(module)
    assert isinstance(graph, fx.Graph)
    assert tracer.root is module


def test_tracer_makes_an_empty_root_for_a_function(fx):
    tracer = fx.Tracer()
    graph = tracer.trace(lambda x: x + 1)
    assert isinstance(tracer.root, torch.nn.Module)
    assert fx.GraphModule(tracer.root, graph)(torch.ones(2)).tolist() == [2.0, 2.0]


def test_module_class_name_is_kept(fx):
    assert type(fx.symbolic_trace(LinearOnly())).__name__ == "LinearOnly"


def test_function_name_becomes_class_name(fx):
    def my_function(x):
        return x

    assert type(fx.symbolic_trace(my_function)).__name__ == "my_function"


def test_method_call_is_call_method(fx):
    traced = traced_same(fx, lambda x: x.relu(), X)
    node = only(traced.graph, "call_method")
    assert node.target == "relu"
    assert node.args == (of(traced.graph, "placeholder")[0],)


def test_module_call_is_call_module(fx):
    traced = traced_same(fx, LinearOnly(), torch.randn(5, 3))
    assert only(traced.graph, "call_module").target == "linear"


def test_keyword_arguments_stay_keywords(fx):
    traced = traced_same(fx, lambda x: torch.sum(x, dim=1, keepdim=True), X)
    node = only(traced.graph, "call_function")
    assert node.kwargs == {"dim": 1, "keepdim": True}


def test_positional_arguments_stay_positional(fx):
    traced = traced_same(fx, lambda x: torch.transpose(x, 0, 1), X)
    node = only(traced.graph, "call_function")
    assert node.args[1:] == (0, 1)
    assert node.kwargs == {}


def test_names_follow_targets(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(x).sigmoid())
    assert names(traced.graph) == ["x", "relu", "sigmoid", "output"]


def test_repeated_targets_are_numbered(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(torch.relu(torch.relu(x))))
    assert names(traced.graph) == ["x", "relu", "relu_1", "relu_2", "output"]


def test_nested_module_path_in_name_and_target(fx):
    traced = fx.symbolic_trace(Outer())
    calls = of(traced.graph, "call_module")
    assert [node.target for node in calls] == ["inner.linear", "norm", "tail.0", "tail.1"]
    assert [node.name for node in calls] == ["inner_linear", "norm", "tail_0", "tail_1"]


def test_builtin_names_are_not_shadowed(fx):
    traced = fx.symbolic_trace(lambda x: torch.max(torch.sum(x)))
    assert names(traced.graph) == ["x", "sum_1", "max_1", "output"]


def test_camel_case_functions_become_snake_case(fx):
    def camelCase(x):
        return x

    graph = fx.Graph()
    assert graph.call_function(camelCase, (graph.placeholder("x"),)).name == "camel_case"


def test_unused_input_keeps_its_placeholder(fx):
    traced = fx.symbolic_trace(lambda x, y: x + 1)
    assert [node.target for node in of(traced.graph, "placeholder")] == ["x", "y"]
    assert torch.equal(traced(X, None), X + 1)


def test_call_on_literals_alone_is_not_recorded(fx):
    traced = traced_same(fx, lambda x: x + math.sqrt(4.0), X)
    assert opcodes(traced.graph) == ["placeholder", "call_function", "output"]
    assert only(traced.graph, "call_function").args[1] == 2.0


def test_math_functions_are_wrapped_automatically(fx):
    traced = fx.symbolic_trace(lambda x: math.sqrt(x.size(0)))
    assert only(traced.graph, "call_function").target is math.sqrt
    assert traced(torch.zeros(9)) == 3.0


def test_math_is_unpatched_after_tracing(fx):
    before = math.sqrt
    fx.symbolic_trace(lambda x: math.sqrt(x))
    assert math.sqrt is before


def test_module_call_is_unpatched_after_tracing(fx):
    before = torch.nn.Module.__call__, torch.nn.Module.__getattr__
    fx.symbolic_trace(Outer())
    assert (torch.nn.Module.__call__, torch.nn.Module.__getattr__) == before


def test_patches_are_undone_after_an_error(fx):
    before = torch.nn.Module.__call__, torch.nn.Module.__getattr__, math.sqrt

    def fails(x):
        raise KeyError("from the user")

    with pytest.raises(KeyError):
        fx.symbolic_trace(fails)
    assert (torch.nn.Module.__call__, torch.nn.Module.__getattr__, math.sqrt) == before


def test_static_branch_is_followed(fx):
    class Switch(torch.nn.Module):
        def __init__(self, activate):
            super().__init__()
            self.activate = activate

        def forward(self, x):
            return torch.relu(x) if self.activate else x

    assert len(of(fx.symbolic_trace(Switch(True)).graph, "call_function")) == 1
    assert len(of(fx.symbolic_trace(Switch(False)).graph, "call_function")) == 0


def test_static_loop_is_unrolled(fx):
    def repeated(x):
        for _ in range(3):
            x = torch.sin(x)
        return x

    assert len(of(traced_same(fx, repeated, X).graph, "call_function")) == 3


def test_if_on_symbolic_value_is_refused(fx):
    def branch(x):
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(fx.TraceError, match="symbolically traced variables cannot be used as inputs to control flow"):
        fx.symbolic_trace(branch)


def test_trace_error_is_a_value_error(fx):
    assert issubclass(fx.TraceError, ValueError)


def test_for_over_symbolic_value_is_refused(fx):
    def loop(x):
        return [row for row in x]

    with pytest.raises(fx.TraceError, match="Proxy object cannot be iterated"):
        fx.symbolic_trace(loop)


def test_star_of_symbolic_value_is_refused(fx):
    with pytest.raises(fx.TraceError, match="Proxy object cannot be iterated"):
        fx.symbolic_trace(lambda x: torch.add(*x))


def test_len_of_symbolic_value_is_refused_with_advice(fx):
    with pytest.raises(RuntimeError, match="'len' is not supported in symbolic tracing by default"):
        fx.symbolic_trace(lambda x: len(x))


def test_unpacking_an_input_makes_getitems(fx):
    def unpack(pair):
        a, b = pair
        return a + b

    traced = fx.symbolic_trace(unpack)
    picks = [node for node in traced.graph.nodes if node.target is operator.getitem]
    assert [node.args[1] for node in picks] == [0, 1]
    assert traced((torch.ones(2), torch.ones(2))).tolist() == [2.0, 2.0]


def test_nested_unpacking(fx):
    def unpack(x):
        (a, b), c = x
        return a - b + c

    traced = fx.symbolic_trace(unpack)
    assert traced(((torch.tensor(5.0), torch.tensor(2.0)), torch.tensor(1.0))) == 4.0


def test_tuple_result(fx):
    traced = traced_same(fx, lambda x: (x, x + 1), X)
    assert isinstance(traced(X), tuple)
    assert isinstance(only(traced.graph, "output").args[0], tuple)


def test_list_and_dict_results(fx):
    traced = traced_same(fx, lambda x: {"a": x + 1, "b": [x, x * 2]}, X)
    assert set(traced(X)) == {"a", "b"}


def test_constant_result(fx):
    assert fx.symbolic_trace(lambda x: 3)(X) == 3
    assert fx.symbolic_trace(lambda x: "text")(X) == "text"
    assert fx.symbolic_trace(lambda x: None)(X) is None


def test_default_argument_is_kept(fx):
    def with_default(x, scale=2.0):
        return x * scale

    traced = traced_same(fx, with_default, X)
    assert of(traced.graph, "placeholder")[1].args == (2.0,)
    assert torch.equal(traced(X, 3.0), X * 3.0)


def test_default_none_is_kept(fx):
    def with_none(x, other=None):
        return x

    traced = fx.symbolic_trace(with_none)
    assert of(traced.graph, "placeholder")[1].args == (None,)
    assert torch.equal(traced(X), X)


def test_keyword_call_of_the_traced_module(fx):
    traced = fx.symbolic_trace(lambda x, y: x - y)
    assert torch.equal(traced(y=X, x=X), torch.zeros_like(X))
    assert torch.equal(traced(y=X, x=3 * X), 3 * X - X)


def test_keyword_only_argument(fx):
    def keyword_only(x, *, k):
        return x + k

    traced = fx.symbolic_trace(keyword_only)
    assert [node.target for node in of(traced.graph, "placeholder")] == ["x", "k"]
    assert torch.equal(traced(X, k=1), X + 1)


def test_star_args_are_one_placeholder(fx):
    class Star(torch.nn.Module):
        def forward(self, *args, **kwargs):
            return args[0] + kwargs["foo"]

    traced = fx.symbolic_trace(Star())
    assert [node.target for node in of(traced.graph, "placeholder")] == ["*args", "**kwargs"]
    assert torch.equal(traced(X, foo=X), X + X)


def test_star_args_without_self_is_refused(fx):
    class NoSelf(torch.nn.Module):
        def forward(*args, **kwargs):
            self = args[0]
            return torch.relu(self)

    with pytest.raises(RuntimeError, match="cannot be part of \\*args expansion"):
        fx.symbolic_trace(NoSelf())


def test_decorated_function_is_unwrapped_for_its_signature(fx):
    def passing(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            return fn(*args, **kwargs)

        return wrapper

    class Decorated(torch.nn.Module):
        @passing
        def forward(self, x):
            return x + 1

    assert fx.symbolic_trace(Decorated())(torch.zeros(2)).tolist() == [1.0, 1.0]


def test_closure_values_are_constants(fx):
    scale = 3.0
    traced = fx.symbolic_trace(lambda x: x * scale)
    assert only(traced.graph, "call_function").args[1] == 3.0


def test_retracing_gives_the_same_graph(fx):
    first = fx.symbolic_trace(Outer())
    second = fx.symbolic_trace(first)
    assert names(first.graph) == names(second.graph)
    assert targets(first.graph) == targets(second.graph)
    torch.testing.assert_close(first(X), second(X))


def test_gradient_flows_through(fx):
    module = Inner()
    traced = fx.symbolic_trace(module)
    traced(X).sum().backward()
    assert module.scale.grad is not None


def test_functional_and_torch_functions_keep_their_identity(fx):
    traced = fx.symbolic_trace(lambda x: F.gelu(F.dropout(x, 0.5, False)))
    assert [node.target for node in of(traced.graph, "call_function")] == [F.dropout, F.gelu]


def test_builtin_callable_from_torch_ops(fx):
    traced = traced_same(fx, lambda x: torch.ops.aten.relu(x), X)
    assert len(of(traced.graph, "call_function")) == 1


def test_overload_of_torch_ops(fx):
    traced = traced_same(fx, lambda x: torch.ops.aten.add.Tensor(x, x), X)
    assert only(traced.graph, "call_function").target is torch.ops.aten.add.Tensor


def test_scripted_submodule_becomes_a_method_call(fx):
    class Holder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scripted = torch.jit.script(torch.nn.ReLU())

        def forward(self, x):
            return self.scripted(x)

    traced = fx.symbolic_trace(Holder())
    assert opcodes(traced.graph) == ["placeholder", "get_attr", "call_method", "output"]
    assert only(traced.graph, "call_method").target == "forward"
    torch.testing.assert_close(traced(X), X.relu())


def test_torch_assert_is_recorded(fx):
    def checked(x):
        torch._assert(x.sum() > -1e9, "too small")
        return x

    traced = fx.symbolic_trace(checked)
    assert torch._assert in targets(traced.graph)


def test_traced_function_name_can_be_called_twice(fx):
    def helper(x):
        return x * 2

    traced = fx.symbolic_trace(lambda x: helper(helper(x)))
    assert names(traced.graph) == ["x", "mul", "mul_1", "output"]


def test_tracing_a_non_function_is_refused(fx):
    with pytest.raises((AssertionError, TypeError, ValueError)):
        fx.Tracer().trace(torch.relu)


def test_bound_method_of_module_forward_needs_the_module(fx):
    traced = fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
    assert only(traced.graph, "call_module").target == "0"


def test_tracing_two_functions_with_one_tracer(fx):
    tracer = fx.Tracer()
    first = tracer.trace(lambda x: x + 1)
    second = tracer.trace(lambda x: x * 2)
    assert targets(first)[1] is operator.add
    assert targets(second)[1] is operator.mul


def test_multiple_tracers_in_one_call_are_refused(fx):
    left, right = fx.Graph(), fx.Graph()
    a, b = fx.Proxy(left.placeholder("a")), fx.Proxy(right.placeholder("b"))
    with pytest.raises(RuntimeError, match="multiple different tracers"):
        torch.add(a, b)


def test_traced_module_has_training_flag_of_root(fx):
    module = LinearOnly().eval()
    assert fx.symbolic_trace(module).training is False
    assert fx.symbolic_trace(LinearOnly()).training is True


def test_meta_names_the_module_stack(fx):
    traced = fx.symbolic_trace(Outer())
    node = [node for node in traced.graph.nodes if node.target == "inner.linear"][0]
    stack = node.meta["nn_module_stack"]
    assert [path for path, _ in stack.values()] == ["inner", "inner.linear"]
    assert [kind for _, kind in stack.values()] == [Inner, torch.nn.Linear]
