"""Guards that others imply are dropped; those that say something new stay, and guards name the line that asked."""

import operator

import pytest
import torch

import clew
from clew.capture.guards import notes
from clew.capture.guards.redundant import drop_implied
from clew.errors import GuardError
from clew.ir.graph import Graph

SIGNS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def kept(program, *args):
    """The guards of a capture that are no entry guards."""
    captured = clew.trace(program, args, control_flow="guard")
    return [str(guard) for guard in captured.guards if "type(" not in str(guard) and "ndim" not in str(guard)]


def test_an_exact_size_implies_bounds_and_differences():
    def program(x):
        n = x.shape[0]
        if n == 5 and n <= 512 and n != 1 and n > 0 and n % 2 == 1 and n + 1 == 6:
            return x * 2
        return x

    assert kept(program, torch.ones(5)) == ["x.shape[0] == 5"]


def test_bounds_narrow_step_by_step():
    def program(x):
        n = x.shape[0]
        if n >= 0 and n > 1 and n > 0 and n != 1 and n <= 8 and n < 9 and n != 8 and n <= 7:
            return x * 2
        return x

    assert kept(program, torch.ones(5)) == ["x.shape[0] > 1", "x.shape[0] <= 8", "x.shape[0] != 8"]


def test_the_same_question_of_another_node():
    def program(x, y):
        if x.shape[0] == y.shape[0] and y.sum() > 0:
            x = x * 2
        if x.shape[0] > 3 and bool(y.sum() > 0):
            x = x + 1
        return x * 3 if x.shape[0] > 3 and x.shape[0] > 2 else x

    found = kept(program, torch.ones(5), torch.ones(5))
    assert [text for text in found if "shape" in text] == [
        "x.shape[0] == y.shape[0]",
        "x.shape[0] > 3",
    ]


def test_numbers_among_the_arguments():
    def program(x, n, scale):
        if n > 2 and n >= 3 and scale > 0.5 and scale > 0.5 and scale > 0.25:
            return x * scale
        return x

    found = kept(program, torch.ones(5), 4, 1.5)
    assert found == ["n > 2", "scale > 0.5", "scale > 0.25"]


def test_what_is_read_after_a_write_is_another_value():
    graph = Graph()
    x = graph.placeholder("x")
    for _ in range(2):
        truth = graph.call_function(bool, (x,))
        graph.call_function(notes.require, (truth, True, "x"))
        graph.call_function(notes.require_length, (x, 1, "len(x) == 1"))
    graph.call_method("add_", (x, 1))
    graph.call_function(notes.require, (graph.call_function(bool, (x,)), True, "x again"))
    graph.call_function(notes.require_length, (x, 1, "len(x) == 1 again"))
    graph.output(x)
    drop_implied(graph)
    assert texts(graph) == ["x", "len(x) == 1", "x again", "len(x) == 1 again"]


def texts(graph):
    """What the guards of a recorded graph say."""
    return [node.args[2] for node in graph.nodes if node.target in notes.CHECKS]


def test_types_are_told_apart():
    graph = Graph()
    x = graph.placeholder("x")
    for kind in (int, int, bool):
        graph.call_function(notes.require_type, (x, kind, kind.__name__))
    for value in (1, True, 1.0, 1):
        graph.call_function(notes.require, (x, value, repr(value)))
    graph.output(x)
    drop_implied(graph)
    assert texts(graph) == ["int", "bool", "1", "True", "1.0"]


@pytest.mark.parametrize("first", SIGNS)
@pytest.mark.parametrize("second", SIGNS)
def test_dropping_changes_no_verdict(first, second):
    """All pairs of comparisons with small numbers, both answers: the graph without the dropped guards decides alike."""
    for left in range(3):
        for right in range(4):
            for answers in ((True, True), (True, False), (False, True), (False, False)):
                passing = [n for n in range(6) if (first(n, left), second(right, n)) == answers]
                graph = Graph()
                size = graph.call_method("size", (graph.placeholder("x"), 0))
                one = graph.call_function(first, (size, left))
                other = graph.call_function(second, (right, size))
                graph.call_function(notes.require, (one, answers[0], "one"))
                graph.call_function(notes.require, (other, answers[1], "other"))
                graph.output(size)
                drop_implied(graph)
                if passing:
                    module = clew.GraphModule({}, graph)
                    assert [n for n in range(6) if _passes(module, torch.ones(n))] == passing


def _passes(module, x):
    try:
        module(x)
    except GuardError:
        return False
    return True


def test_entry_guards_name_the_line_that_asked_first():
    def program(x):
        y = x * 2
        if y.device.type == "cpu":
            return y
        return x

    captured = clew.trace(program, (torch.ones(2),))
    guard = next(guard for guard in captured.guards if "device" in str(guard))
    assert guard.kind == "type" and str(guard) == "x.device.type == 'cpu'"
    assert guard.source is not None and guard.source.text == 'if y.device.type == "cpu":'
    with pytest.raises(GuardError, match='if y.device.type == "cpu"'):
        captured(torch.ones(2, device="meta"))


def test_what_adds_nothing_to_a_size_is_the_size():
    def program(x):
        n, past = x.shape[0], 0
        if past + n == n and n - past == n and n * 1 == n // 1:
            return x * 2
        return x

    assert kept(program, torch.ones(5)) == []


def test_a_long_expression_is_named():
    def program(x):
        scores = ((x.exp() / x.exp().sum(0, True)).cumsum(0).clamp(0, 1) * x.shape[0])[x > 0]
        return scores * 2 if scores.shape[0] > 3 else scores

    assert kept(program, torch.ones(5)) == ["scores.shape[0] > 3"]
