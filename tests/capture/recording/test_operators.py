"""Operators of a program stay operators in the graph of its capture, with their operands in the order of the source."""

import dis
import operator

import pytest
import torch

import clew
from clew.capture.recording.operators import operation_at

MATRIX = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
BITS = torch.tensor([[5, 3], [1, 6]])
PROGRAMS = {
    "x + y": operator.add, "x - y": operator.sub, "x * y": operator.mul, "x / y": operator.truediv,
    "x // y": operator.floordiv, "x % y": operator.mod, "x ** 2": operator.pow, "x @ y": operator.matmul,
    "b & b": operator.and_, "b | 1": operator.or_, "b ^ b": operator.xor, "b << 1": operator.lshift,
    "b >> 1": operator.rshift, "x < y": operator.lt, "x <= y": operator.le, "x > y": operator.gt, "x >= y": operator.ge,
    "x == y": operator.eq, "x != y": operator.ne, "-x": operator.neg, "+x": operator.pos, "~b": operator.invert,
    "x[0]": operator.getitem, "x[:, 0]": operator.getitem, "x[0:1]": operator.getitem,
    "2 + x": operator.add, "2 - x": operator.sub, "2 * x": operator.mul, "2 / x": operator.truediv,
    "2 // x": operator.floordiv, "2 % x": operator.mod, "2 ** x": operator.pow, "1 & b": operator.and_,
    "1 << b": operator.lshift, "2 < x": operator.lt, "2 >= x": operator.ge, "2 == x": operator.eq,
    "x * 2": operator.mul, "3 * x.sum(0)": operator.mul, "x.sum(0) + 3": operator.add,
}  # fmt: skip


def function(text):
    """A function of x, y and b that gives the value of an expression."""
    scope = {"torch": torch, "operator": operator}
    exec(compile(f"def program(x, y, b):\n    return {text}", "<program>", "exec"), scope)
    return scope["program"]


def calls(captured):
    return [node for node in captured.graph.nodes if node.op in ("call_function", "call_method")]


@pytest.mark.parametrize("text", PROGRAMS)
def test_an_operator_is_recorded_and_written_as_itself(text):
    program = function(text)
    captured = clew.trace(program, (MATRIX, MATRIX.T, BITS))
    assert calls(captured)[-1].target is PROGRAMS[text]
    assert captured.code.strip().endswith(f"return {text}")
    for replay in (captured, lambda *inputs: clew.ir.interpreter.Interpreter(captured).run(*inputs)):
        assert torch.equal(replay(MATRIX + 1, MATRIX, BITS), program(MATRIX + 1, MATRIX, BITS))


CALLS = ["x.add(y)", "torch.mul(x, y)", "sum([x, y], x)", "operator.add(x, y)", "x.__getitem__(0)"]


@pytest.mark.parametrize("text", CALLS)
def test_a_call_stays_a_call(text):
    captured = clew.trace(function(text), (MATRIX, MATRIX, BITS))
    assert calls(captured)[-1].target not in (operator.add, operator.mul, operator.getitem)


def test_items_are_assigned_and_writes_in_place_stay_methods():
    def program(x):
        x = x.clone()
        x[0, 1] = 7
        x[:1] = x[1:] + x.shape[0]
        x += 1
        x <<= 1
        return x

    captured = clew.trace(program, (BITS,))
    assert "[0, 1] = 7" in captured.code and ".add_(1)" in captured.code
    assert torch.equal(captured(BITS + 3), program(BITS + 3))


def test_a_sum_that_takes_the_place_of_a_number():
    def program(x):
        total = 0
        for row in (x[0], x[1]):
            total += row
        return total

    captured = clew.trace(program, (MATRIX,))
    targets = [node.target for node in calls(captured)]
    assert targets.count(operator.add) == 1 and targets[-1] == "add_"  # the second row is added in place
    assert torch.equal(captured(MATRIX * 2), program(MATRIX * 2))


def test_an_operator_inside_a_try_is_an_attempt():
    def program(x, y):
        try:
            return x @ y
        except RuntimeError:
            return x

    captured = clew.trace(program, (MATRIX, MATRIX))
    assert torch.equal(captured(MATRIX, MATRIX), MATRIX @ MATRIX)
    with pytest.raises(clew.GuardError):
        captured(MATRIX, torch.ones(3, 3))


def test_operators_of_libraries_stay_operators():
    class Doubling(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.RMSNorm(2)

        def forward(self, x):
            return torch.functional.norm(x) + self.layer(x)

    captured = clew.trace(Doubling(), (MATRIX,))
    assert calls(captured)[-1].target is operator.add


def test_a_literal_on_the_left_is_seen_across_calls():
    code = compile("2 * f(x, 1)[0]", "<program>", "eval")
    offset = [instruction.offset for instruction in dis.get_instructions(code) if instruction.opname == "BINARY_OP"][0]
    assert operation_at(code, offset) == (operator.mul, True)
    assert operation_at(code, 0) is None
