"""Instructions read the same on every Python, so that nothing else has to know which one it runs on."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import clew
from clew.capture.bytecode.instructions import instructions_of, stored_in, variables_of
from clew.capture.python.caches import only_calculates
from clew.capture.symbolic.proxy import assert_fn
from clew.frameworks.torch.calls.constructors import call_tensor


def names_of(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    silent = ("RESUME", "NOP", "COPY_FREE_VARS", "MAKE_CELL")
    return [(one.opname, one.argval) for one in instructions_of(function.__code__) if one.opname not in silent]


def two_variables(a: Any, b: Any) -> Any:
    c, d = b, a; return c  # noqa: E702


def test_an_instruction_for_two_variables_is_two() -> None:
    loads = [("LOAD_FAST", "b"), ("LOAD_FAST", "a")]
    names = names_of(two_variables)
    assert names[:2] == loads
    assert {name for opname, name in names if opname == "STORE_FAST"} == {"c", "d"}
    assert names[-2:] == [("LOAD_FAST", "c"), ("RETURN_VALUE", None)]


def of_constants() -> int:
    return 1234567


def test_a_returned_constant_is_loaded_and_returned() -> None:
    assert names_of(of_constants) == [("LOAD_CONST", 1234567), ("RETURN_VALUE", None)]


def with_methods(x: Any) -> Any:
    y = x.squeeze().repeat(2)
    return math.sqrt(y.real)


def test_methods_and_functions_of_modules_that_are_called_are_loaded_as_methods() -> None:
    loads = [(opname, name) for opname, name in names_of(with_methods) if opname in ("LOAD_METHOD", "LOAD_ATTR")]
    assert loads == [("LOAD_METHOD", "squeeze"), ("LOAD_METHOD", "repeat"), ("LOAD_METHOD", "sqrt"),
                     ("LOAD_ATTR", "real")]  # fmt: skip


def with_truth(x: Any, y: Any) -> Any:
    if x and not y:
        return x
    return y


def test_a_truth_is_asked_by_the_jump() -> None:
    names = [opname for opname, _ in names_of(with_truth)]
    assert "TO_BOOL" not in names
    assert any(name.startswith("POP_JUMP_IF_") for name in names)
    assert not any("FORWARD" in name or "BACKWARD" in name for name in names if "IF" in name)


def several_calls(f: Any, x: Any) -> Any:
    return f(x, f(x, key=x), *[1], **{"a": x.y(1, 2)}) + len(x)


def test_effects_add_up_to_nothing_where_nothing_jumps() -> None:
    steps = [one for one in instructions_of(several_calls.__code__) if one.opname != "RESUME"]
    assert sum(one.effect for one in steps) == 0
    assert all(sum(one.effect for one in steps[:end]) >= 0 for end in range(len(steps)))


class Caller:
    """Notes where its caller stands."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        return stored_in(frame.f_code, frame.f_lasti)


def test_the_variable_that_gets_a_result_is_found() -> None:
    call = Caller()
    first = call(1, key=2); second = first  # noqa: E702
    third = fourth = call()
    assert (first, second, third, fourth) == ("first", "first", "third", "third")


def test_variables_are_read_inside_of_a_comprehension_that_hides_a_shared_one() -> None:
    found = []

    def look() -> bool:
        found.append(variables_of(sys._getframe(1)))
        return True

    def program(labels: list[Any]) -> Any:
        label = None

        def change() -> None:
            nonlocal label
            label = 3

        change()
        return [look() for label in labels], label

    assert program([1.5, "text"]) == ([True, True], 3)
    assert len(found) == 2
    assert all(variables.get("label", 1.5) in (1.5, "text") for variables in found)


def writes(x: str) -> None:
    x.encode()


def test_a_method_that_is_not_known_is_more_than_a_calculation() -> None:
    assert not only_calculates(writes)
    assert only_calculates(of_constants)


def makes(x: Any) -> Any:
    return torch.Tensor(x)


def asks(x: Any) -> Any:
    return isinstance(x, torch.Tensor)


def test_a_constructor_that_is_called_is_told_from_one_that_is_named() -> None:
    assert call_tensor([makes])
    assert not call_tensor([asks])


def through_the_file(x: Any) -> Any:
    return np.stack([x, x]).sum()


def through_a_local_name(x: Any) -> Any:
    import numpy as inner

    return max(x.sum(), inner.stack([x, x]).max())


@pytest.mark.parametrize("program", [through_the_file, through_a_local_name])
def test_calls_through_modules_are_recorded(program: Callable[[Any], Any]) -> None:
    captured = clew.trace(program, (np.arange(3.0),))
    assert "stack" in captured.code
    for x in (np.arange(3.0) + 1, -np.arange(3.0)):
        assert captured(x) == program(x)


def test_an_assertion_about_a_comparison_is_recorded() -> None:
    class Tracer(clew.Tracer):
        trace_asserts = True

    made: dict[str, Any] = {}
    exec('def program(x):\n    assert x.sum() > 0, "positive"\n    return x * 2', made)  # pytest rewrites its own
    graph = Tracer().trace(made["program"])
    assert ["positive"] == [node.args[1] for node in graph.nodes if node.target is assert_fn]
