"""Examines one program of the register: what became of its control flow, and whether everything about it is right.

A program comes in with a subject ("trace": captured from its example, "dynamic": the same, with loops over sizes kept,
"lazy": captured as it is called); a `Finding` goes out. It is `captured` when one graph, in which nothing stayed a call
of Python, is right on every input; `opaque` when that holds but for such a call; `guarded` when some input is refused
(or needed a capture of its own); `refused` when the example is; WRONG otherwise. Gradients are judged in calls of their
own, on inputs that ask for them.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

import clew
from clew.errors import ClewError
from clew.runtime.lazy import LazyGraph
from tests.control_flow.register import Construct
from tests.footguns.harness import CAPTURE, GUARDED, SECONDS, WRONG, Outcome, classify, worst
from tests.footguns.ledger import Case, Inputs, MakeInputs, Program
from tests.footguns.world import quietly, restored, seed_everything

CAPTURED, OPAQUE, REFUSED = "captured", "opaque", "refused"
STATUSES = (CAPTURED, OPAQUE, GUARDED, REFUSED, WRONG)
"""From the best to the worst."""
SUBJECTS = ("trace", "dynamic", "lazy")
HAS_POLICY = "control_flow" in inspect.signature(clew.trace).parameters


@dataclasses.dataclass(frozen=True)
class Finding:
    """What was found out about one program.

    `gradients` is the verdict of the calls that run backward ("" where there were none), `missing` the statements that
    the generated code ought to have and has not, `again` says how the graph of the generated code differs from the
    graph ("" where it does not).
    """

    name: str
    construct: str
    status: str
    reason: str = ""
    gradients: str = ""
    missing: tuple[str, ...] = ()
    again: str = ""
    captures: int = 1
    outcomes: tuple[Outcome, ...] = ()

    @property
    def shortcomings(self) -> list[str]:
        """What a captured program falls short of: "code" (statements are missing), "again" (no fixpoint)."""
        return ["code"] * bool(self.missing) + ["again"] * bool(self.again)


def examine(
    program: Construct, subject: str = "trace", seconds: float = SECONDS, *, thorough: bool = True, **options: Any
) -> Finding:
    """Captures a program of the register and judges it on all its inputs; `options` go to `clew.trace`.

    Gradients and the generated code are looked at in captures from an example, unless it shall not be `thorough`.
    """
    kept: list[Any] = []
    options = options | ({"dynamic": True} if subject == "dynamic" else {})
    outcomes = classify(program, _capture(subject, options, kept), seconds)
    status, reason = _status(outcomes, kept)
    finding = Finding(program.name, program.kind, status, reason, captures=len(_captures(kept)))
    if subject != "lazy" and thorough:
        backward = classify(with_gradients(program), _capture(subject, options, []), seconds)
        outcomes += backward
        finding = _add_gradients(finding, backward)
    if finding.status == CAPTURED and subject != "lazy" and thorough:
        again = compare_again(program, kept[0], options)
        finding = dataclasses.replace(finding, missing=missing_statements(program, kept[0].code), again=again)
    return dataclasses.replace(finding, outcomes=tuple(outcomes))


def _add_gradients(finding: Finding, backward: list[Outcome]) -> Finding:
    found = dataclasses.replace(finding, gradients=worst(backward))
    if found.gradients != WRONG or finding.status == WRONG:
        return found
    return dataclasses.replace(found, status=WRONG, reason=f"with gradients: {_reason(backward, WRONG)}")


def _capture(subject: str, options: dict[str, Any], kept: list[Any]) -> Callable[..., Any]:
    def capture(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        made = clew.trace(fn, **options) if subject == "lazy" else clew.trace(fn, args=args, kwargs=kwargs, **options)
        kept.append(made)
        return made

    return capture


def _captures(kept: list[Any]) -> list[Any]:
    """All graphs that the capture made, in their callables."""
    return [one for made in kept for one in (made.captures if isinstance(made, LazyGraph) else [made])]


def _status(outcomes: list[Outcome], kept: list[Any]) -> tuple[str, str]:
    verdict = worst(outcomes)
    if verdict == WRONG:
        return WRONG, _reason(outcomes, WRONG)
    if verdict == GUARDED:
        refused = any(one.status == GUARDED and one.call in (CAPTURE, "example") for one in outcomes)
        return (REFUSED if refused else GUARDED), _reason(outcomes, GUARDED)
    graphs = _captures(kept)
    if not graphs:
        return REFUSED, "the program itself fails on the example"
    if len(graphs) > 1:
        return GUARDED, f"{len(graphs)} captures"
    calls = [node for one in graphs for node in all_nodes(one.graph) if "opaque" in node.meta]
    return (OPAQUE, f"a call of {calls[0].target} stays") if calls else (CAPTURED, "")


def _reason(outcomes: list[Outcome], status: str) -> str:
    return next(f"{one.call}: {one.reason}" for one in outcomes if one.status == status)


def with_gradients(program: Program) -> Program:
    """The same program on inputs whose floating tensors ask for gradients, and with a backward of its results."""

    def build() -> Case:
        case = program.build()
        example, *others = (functools.partial(_asking, make) for make in (case.example, *case.others))
        return dataclasses.replace(case, example=example, others=others, gradients=True)

    return Program(program.name, program.kind, build)


def _asking(make: MakeInputs) -> Inputs:
    def ask(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.requires_grad_() if tensor.is_floating_point() else tensor

    args, kwargs = pytree.tree_map_only(torch.Tensor, ask, make())
    return args, kwargs


def all_nodes(graph: Any) -> Iterator[Any]:
    """The nodes of a graph and of the graphs among their arguments."""
    for node in graph.nodes:
        yield node
        for inner in _bodies((node.args, node.kwargs)):
            yield from all_nodes(inner)


def _bodies(value: Any) -> Iterator[Any]:
    if isinstance(value, clew.Graph):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _bodies(part)
    elif isinstance(value, dict):
        yield from _bodies(list(value.values()))


def missing_statements(program: Construct, code: str) -> tuple[str, ...]:
    """The statements that the program's generated code ought to show and does not; guards do not count."""
    found = {"if": False, "while": False, "for": False}
    for node in ast.walk(ast.parse(code)):
        found["if"] |= isinstance(node, ast.IfExp) or (isinstance(node, ast.If) and not _is_guard(node))
        found["while"] |= isinstance(node, ast.While)
        found["for"] |= isinstance(node, (ast.For, ast.ListComp))
    return tuple(word for word in program.shows if not found[word])


def _is_guard(node: ast.If) -> bool:
    called = [getattr(line.value, "func", None) for line in node.body if isinstance(line, ast.Expr)]
    names = [one.id.lstrip("_") if isinstance(one, ast.Name) else "" for one in called]
    return bool(called) and all(name.startswith(("require", "guard")) for name in names)


def compare_again(program: Program, captured: Any, options: dict[str, Any]) -> str:
    """Captures the generated code on the example; says where its graph differs, or why there is none."""
    with restored(), quietly():
        seed_everything(0)
        args, kwargs = program.build().example()
        try:
            again = clew.trace(generated(captured), args=args, kwargs=kwargs, **options)
        except (ClewError, TypeError, AttributeError, NameError) as error:
            return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        first, second = outline(captured.graph), outline(again.graph)
    places = [place for place, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]]
    if not places and len(first) == len(second):
        return ""
    place = places[0] if places else min(len(first), len(second))
    shown = [lines[place] if place < len(lines) else "the end" for lines in (first, second)]
    return f"line {place}: {shown[0]} became {shown[1]}"


def generated(captured: Any) -> Callable[..., Any]:
    """The function of the generated code, bound to what holds its attributes."""
    if isinstance(captured, torch.nn.Module):
        forward: Callable[..., Any] = captured.forward
        return forward
    return types.MethodType(captured._compile()[1], captured.root)


def outline(graph: Any) -> list[str]:
    """A graph line by line without its guards, its values numbered: equal for graphs that differ in names alone."""
    return _outline(graph, {}, "")


def _outline(graph: Any, numbers: dict[Any, str], indent: str) -> list[str]:
    lines, guarding = [], guards_and_what_feeds_them(graph)
    for node in graph.nodes:
        if node in guarding:
            continue
        numbers[node] = f"%{len(numbers)}"
        args = pytree.tree_map(lambda leaf: _leaf(leaf, numbers), (tuple(node.args), dict(node.kwargs)))
        target = getattr(node.target, "__qualname__", node.target) if node.op != "placeholder" else ""
        lines.append(f"{indent}{numbers[node]} = {node.op} {target} {args}")
        for inner in _bodies((node.args, node.kwargs)):
            lines += _outline(inner, numbers, indent + "    ")
    return lines


def guards_and_what_feeds_them(graph: Any) -> set[Any]:
    """The guards of a graph, and the nodes that are there for them alone."""
    found: set[Any] = set()
    for node in reversed(graph.nodes):
        is_guard = str(getattr(node.target, "__name__", "")).startswith(("require", "guard"))
        if is_guard or (node.op != "placeholder" and node.users and found.issuperset(node.users)):
            found.add(node)
    return found


def _leaf(leaf: Any, numbers: dict[Any, str]) -> str:
    if isinstance(leaf, clew.Node):
        return numbers.get(leaf, "?")
    if isinstance(leaf, clew.Graph):
        return "graph"
    try:
        return repr(leaf)
    except ClewError:  # a graph must not hold a traced number; its like is equal to nothing
        return f"a traced value, {id(leaf)}"
