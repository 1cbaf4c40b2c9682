"""wrap: functions left whole, by name, by value, as a decorator, builtins and functions of other modules."""

import builtins
import math
import pickle

import pytest
import torch

from . import wrapped
from .helpers import node_called, of, only, opcodes, targets, traced_same

X = torch.randn(3, 3)


def test_wrapped_by_name_is_one_call(fx):
    traced = traced_same(fx, wrapped.calls_by_name, X, X)
    assert targets(traced.graph)[2] is wrapped.by_name
    assert len(of(traced.graph, "call_function")) == 2


def test_wrapped_by_value_is_one_call(fx):
    traced = traced_same(fx, wrapped.calls_by_value, X)
    assert wrapped.by_value in targets(traced.graph)


def test_wrapped_as_decorator_is_one_call(fx):
    traced = traced_same(fx, wrapped.calls_by_decorator, X)
    node = of(traced.graph, "call_function")[0]
    assert node.target is wrapped.by_decorator
    assert node.kwargs == {"scale": 3.0}


def test_wrap_returns_what_it_was_given(fx):
    namespace = {"fx": fx, "result": None}
    exec("def f(x): return x\nresult = fx.wrap(f)\nname = fx.wrap('f')", namespace)
    assert namespace["result"] is namespace["f"]
    assert namespace["name"] == "f"


def test_wrapped_function_is_restored_after_tracing(fx):
    before = wrapped.by_name
    fx.symbolic_trace(wrapped.calls_by_name)
    assert wrapped.by_name is before


def test_wrapped_function_works_outside_of_tracing(fx):
    assert wrapped.calls_by_name(1, 2) == 8


def test_wrapped_with_proxies_in_a_list(fx):
    traced = traced_same(fx, wrapped.calls_with_list, X, X)
    node = only(traced.graph, "call_function")
    assert node.target is wrapped.with_list
    assert list(node.args[0]) == of(traced.graph, "placeholder")


def test_wrapped_on_constants_is_called_at_once(fx):
    traced = traced_same(fx, wrapped.calls_on_constants, X)
    assert wrapped.by_name not in targets(traced.graph)
    assert only(traced.graph, "call_function").args[1] == 4


def test_len_wrapped(fx):
    traced = fx.symbolic_trace(wrapped.calls_len)
    assert only(traced.graph, "call_function").target is len
    assert traced(X) == 3


def test_len_wrapped_in_a_module(fx):
    traced = fx.symbolic_trace(wrapped.CallsLen())
    assert only(traced.graph, "call_function").target is len
    assert traced([1, 2, 3, 4]) == 4


def test_len_is_the_builtin_again_after_tracing(fx):
    fx.symbolic_trace(wrapped.calls_len)
    assert "len" not in vars(wrapped)
    assert builtins.len is len


def test_getattr_wrapped_with_default(fx):
    traced = traced_same(fx, wrapped.calls_getattr, X)
    node = of(traced.graph, "call_function")[-1]
    assert node.target is getattr
    assert node.args[1] == "nonexistent_attr"


def test_sqrt_imported_by_name_and_len(fx):
    traced = traced_same(fx, wrapped.calls_sqrt_of_len, X)
    assert targets(traced.graph)[1:3] == [len, math.sqrt]


def test_sqrt_code_names_math(fx):
    assert "sqrt(" in fx.symbolic_trace(wrapped.calls_sqrt_of_len).code


def test_wrapped_with_a_submodule(fx):
    module = wrapped.CallsByName()
    traced = traced_same(fx, module, X)
    assert opcodes(traced.graph) == ["placeholder", "call_module", "call_function", "output"]


def test_wrapped_function_with_a_context_manager_inside(fx):
    traced = traced_same(fx, wrapped.calls_context, X)
    assert wrapped.inside_context in targets(traced.graph)


def test_wrapped_decorated_function(fx):
    traced = traced_same(fx, wrapped.calls_decorated, X)
    assert only(traced.graph, "call_function").target is wrapped.decorated_elsewhere


def test_wrapped_call_of_a_scripted_function(fx):
    traced = traced_same(fx, wrapped.calls_a_scripted_one, X)
    assert only(traced.graph, "call_function").target is wrapped.call_scripted


def test_unregistered_function_is_traced_through(fx):
    traced = fx.symbolic_trace(lambda x: wrapped.never_registered(x))
    assert wrapped.never_registered not in targets(traced.graph)


def test_retracing_keeps_the_wrapped_call(fx):
    traced = fx.symbolic_trace(wrapped.calls_by_name)
    again = fx.symbolic_trace(traced)
    assert wrapped.by_name in targets(again.graph)
    torch.testing.assert_close(again(X, X), wrapped.calls_by_name(X, X))


def test_transformer_keeps_the_wrapped_call(fx):
    traced = fx.symbolic_trace(wrapped.calls_by_name)
    transformed = fx.Transformer(traced).transform()
    assert wrapped.by_name in targets(transformed.graph)


def test_interpreter_runs_the_wrapped_call(fx):
    traced = fx.symbolic_trace(wrapped.calls_by_value)
    torch.testing.assert_close(fx.Interpreter(traced).run(X), wrapped.calls_by_value(X))


def test_pickled_graph_still_calls_the_wrapped_function(fx):
    traced = fx.symbolic_trace(wrapped.calls_by_name)
    loaded = pickle.loads(pickle.dumps(traced))
    assert wrapped.by_name in targets(loaded.graph)
    torch.testing.assert_close(loaded(X, X), wrapped.calls_by_name(X, X))


def test_wrap_inside_a_function_is_refused(fx):
    def inner():
        fx.wrap("by_name")

    with pytest.raises(NotImplementedError, match="top level of a module"):
        inner()


def test_wrap_of_neither_name_nor_callable_is_refused(fx):
    with pytest.raises(RuntimeError, match="(?i)type|callable|function"):
        fx.wrap(3)


def test_autowrap_functions(fx):
    tracer = fx.Tracer(autowrap_functions=(wrapped.never_registered,))
    graph = tracer.trace(calls_never_registered)
    assert wrapped.never_registered in targets(graph)


never_registered = wrapped.never_registered


def calls_never_registered(x):
    return never_registered(x)


def test_autowrap_modules(fx):
    tracer = fx.Tracer(autowrap_modules=(wrapped,))
    graph = tracer.trace(lambda x: wrapped.never_registered(x))
    assert wrapped.never_registered in targets(graph)


def test_autowrap_modules_replaces_math(fx):
    tracer = fx.Tracer(autowrap_modules=(wrapped,))
    with pytest.raises((TypeError, RuntimeError, fx.TraceError)):
        tracer.trace(lambda x: math.floor(math.sqrt(x)))


def test_autowrapped_constant_calls_are_not_recorded(fx):
    tracer = fx.Tracer(autowrap_functions=(wrapped.never_registered,))
    graph = tracer.trace(lambda x: x + never_registered(3))
    assert len(of(graph, "call_function")) == 1


@pytest.mark.parametrize("name", ["ceil", "floor", "exp", "log", "sin", "sqrt", "trunc"])
def test_each_math_function(fx, name):
    function = getattr(math, name)
    traced = fx.symbolic_trace(lambda x: getattr(math, name)(x))
    assert only(traced.graph, "call_function").target is function
    assert traced(2.5) == function(2.5)


def test_wrapped_call_has_its_name(fx):
    traced = fx.symbolic_trace(wrapped.calls_by_name)
    assert node_called(traced.graph, "by_name").target is wrapped.by_name
