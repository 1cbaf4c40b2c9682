"""What `control_flow` asks of a capture: branches in the graph, guards alone, or an error at the first question."""

from __future__ import annotations

import pytest

import clew
from tests.control_flow.examination import CAPTURED, all_nodes, examine
from tests.control_flow.register import all_constructs
from tests.footguns.harness import GUARDED

NAMES = ("scale_or_shift", "halve_until_short", "first_negative_row", "lambda_with_ternary", "count_positive")
CONTROL = (clew.cond, clew.while_loop, clew.for_loop)


@pytest.mark.parametrize("name", NAMES)
def test_branches_and_loops_are_captured_unless_guards_are_asked_for(name: str) -> None:
    (program,) = all_constructs(name)
    assert examine(program, thorough=False).status == CAPTURED
    assert examine(program, thorough=False, control_flow="capture").status == CAPTURED
    assert examine(program, thorough=False, control_flow="guard").status == GUARDED


@pytest.mark.parametrize("name", NAMES)
def test_guards_alone_leave_no_node_of_control_flow(name: str) -> None:
    (program,) = all_constructs(name)
    case = program.build()
    args, kwargs = case.example()
    captured = clew.trace(case.callable(), args=args, kwargs=kwargs, control_flow="guard")
    assert not [node for node in all_nodes(captured.graph) if node.target in CONTROL]
    assert captured.guards


@pytest.mark.parametrize("name", NAMES)
def test_an_error_names_the_line_that_asked(name: str) -> None:
    (program,) = all_constructs(name)
    case = program.build()
    args, kwargs = case.example()
    with pytest.raises(clew.ClewError) as caught:
        clew.trace(case.callable(), args=args, kwargs=kwargs, control_flow="error")
    assert "constructs" in str(caught.value), "the error does not name the user's file"
