"""What the tests of passes have in common: a capture before and after, and the checks that hold for every pass."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import torch

import clew


def passed(apply: Callable[[Any], Any], fn: Any, *args: Any, tolerance: float = 0.0, symbolic: bool = False) -> Any:
    """The capture of a program after a pass, which does what the original does in every way to run it."""
    captured = clew.symbolic_trace(fn) if symbolic else clew.trace(fn, args)
    assert apply(captured) is captured
    captured.graph.lint()
    same_as(captured, fn, args, tolerance)
    return captured


def same_as(captured: Any, fn: Any, args: tuple[Any, ...], tolerance: float = 0.0) -> None:
    """Code, interpreter, copy and pickle give what the original gives."""
    expected = fn(*copy.deepcopy(args))
    reloaded = [pickle.loads(pickle.dumps(captured))] if isinstance(fn, torch.nn.Module) else []
    for program in (captured, clew.Interpreter(captured).run, copy.deepcopy(captured), *reloaded):
        result = program(*copy.deepcopy(args))
        torch.testing.assert_close(result, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


def lines(captured: Any) -> list[str]:
    """The text of the graph without its guards and types."""
    text = clew.to_text(captured.graph).partition("} where {")[0]
    rows = [line.strip() for line in text[text.index("graph(") :].splitlines()[1:]]
    return [row for row in rows if row not in ("}", "")]


def targets(captured: Any) -> list[str]:
    """What the graph calls and reads, in order."""
    named = [node.target for node in captured.graph.nodes if node.op not in ("placeholder", "output")]
    return [name if isinstance(name, str) else name.__name__ for name in named]


def owner_of(graph: clew.Graph, attributes: dict[str, Any]) -> Any:
    """The module of a drawn graph."""
    root = torch.nn.Module()
    for name, value in attributes.items():
        setattr(root, name, value)
    return clew.GraphModule(root, graph)
