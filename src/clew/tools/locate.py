"""Which node is wrong: a captured graph is run beside a fresh capture of the original, on the input that showed it.

Both are interpreted node by node, one after the other on the same state, and their calls are aligned. The first call
of the captured graph that gives another value, or that the original does not make before one does, is the culprit.
"""

from __future__ import annotations

import difflib
import inspect
from typing import Any

import torch

from clew.capture.example.guards import CHECKS
from clew.capture.example.options import Options
from clew.errors import ClewError
from clew.ir.effects import effect_of
from clew.ir.format import format_target
from clew.ir.graph import Graph
from clew.ir.guests import Effect, present
from clew.ir.interpreter import Interpreter
from clew.ir.node import Node
from clew.runtime.choose import make_captured
from clew.runtime.function import GraphFunction
from clew.tools.calls import Call
from clew.tools.examples import copied
from clew.tools.pictures import Picture, Tolerance, difference, picture
from clew.tools.world import World

Place = tuple[Node | None, str]
NOWHERE: Place = (None, "")
_UNFILLED = frozenset({"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"})
"""Functions whose values are whatever was in memory."""


class Recording(Interpreter):
    """Runs a graph and keeps a picture of each value, as it was when its node had run."""

    def __init__(self, root: Any, graph: Graph) -> None:
        super().__init__(root, graph=graph)
        self.extra_traceback = False
        self.seen: dict[Node, Picture] = {}
        self.failed: tuple[Node, Exception] | None = None

    def run_node(self, n: Node) -> Any:
        """The value of one node, remembered."""
        try:
            value = super().run_node(n)
        except Exception as error:
            self.failed = (n, error)
            raise
        self.seen[n] = picture(value)
        return value


def locate(captured: Any, fn: Any, call: Call, world: World, tolerance: Tolerance) -> Place:
    """The first node of ``captured`` that does not do what the original does, and why it is thought so."""
    try:
        reference = _captured_again(fn, copied(call))
    except Exception as error:  # the original cannot be captured on this input, so there is nothing to compare with
        return _failing_node(captured, call, world) or (None, f"no second capture: {str(error).partition(chr(10))[0]}")
    finally:
        world.put_back()
    wanted = _record(reference, call, world)
    got = _record(captured, call, world)
    if got.failed is not None and wanted.failed is None:
        return got.failed[0], f"it raises {type(got.failed[1]).__name__}"
    return _first_difference(wanted, got, tolerance)


def _captured_again(fn: Any, call: Call) -> Any:
    framework = next(present())
    found = framework.capture(fn, call[0], call[1], Options())
    return make_captured(framework.package, found, "again", live=False)


def _failing_node(captured: Any, call: Call, world: World) -> Place | None:
    failed = _record(captured, call, world).failed
    return None if failed is None else (failed[0], f"it raises {type(failed[1]).__name__}")


def _record(program: Any, call: Call, world: World) -> Recording:
    """Run a program's graph on a copy of the call, and put everything back."""
    recording = Recording(program.root if isinstance(program, GraphFunction) else program, program.graph)
    try:
        recording.run(initial_env=_bound(program, copied(call)))
    except Exception as error:
        if recording.failed is None:
            raise ClewError(f"the graph cannot be run on this input: {error}") from error
    finally:
        world.put_back()
    return recording


def _bound(program: Any, call: Call) -> dict[Node, Any]:
    """The value of each placeholder."""
    bound = inspect.signature(getattr(program, "forward", program)).bind(*call[0], **call[1])
    bound.apply_defaults()
    inputs = program.graph.find_nodes(op="placeholder")
    return {node: bound.arguments[str(node.target).lstrip("*")] for node in inputs}


def _steps(recording: Recording) -> list[Node]:
    """The nodes that can be told from others: all calls but guards, attributes, and the output."""
    return [node for node in recording.graph.nodes if node.op != "placeholder" and not _is_guard(node)]


def _is_guard(node: Node) -> bool:
    return node.op == "call_function" and node.target in CHECKS


def _key(node: Node) -> tuple[str, str]:
    return node.op, format_target(node.target)


def _first_difference(wanted: Recording, got: Recording, tolerance: Tolerance) -> Place:
    """The first guilty node; where all common values agree, the first call that only one of the programs makes."""
    theirs, ours = _steps(wanted), _steps(got)
    matcher = difflib.SequenceMatcher(None, [*map(_key, theirs)], [*map(_key, ours)], autojunk=False)
    partings: list[Place] = []
    trusted: set[Node] = set()
    for tag, start, end, our_start, our_end in matcher.get_opcodes():
        if tag != "equal":
            partings += _partings(theirs[start:end], ours[our_start:our_end], ours[min(our_start, len(ours) - 1)])
            continue
        for left, right in zip(theirs[start:end], ours[our_start:our_end], strict=True):
            found = _value_difference(wanted, got, left, right, tolerance)
            if found is not None:
                return _guilty(right, partings, trusted) or (right, found)
            if right in got.seen and got.seen[right].data is not None:
                _add_with_inputs(right, trusted)
    suspects = [parting for parting in partings if parting[0] not in trusted] or partings
    return suspects[0] if suspects else NOWHERE


def _value_difference(wanted: Recording, got: Recording, left: Node, right: Node, limit: Tolerance) -> str | None:
    if left not in wanted.seen or right not in got.seen or _key(right)[1].rpartition(".")[2] in _UNFILLED:
        return None
    if issubclass(wanted.seen[left].kind, torch.nn.Module):  # of a class of its own in each capture
        return None
    return difference(wanted.seen[left], got.seen[right], right.name, limit)


def _partings(theirs: list[Node], ours: list[Node], following: Node) -> list[Place]:
    """The places where the two programs make other calls: each such call of ours, or the one that comes too early."""
    original = ", ".join(format_target(node.target) for node in theirs[:3]) or "nothing"
    captured = ", ".join(format_target(node.target) for node in ours[:3]) or "nothing"
    reason = f"here the captured graph calls {captured}, the original {original}"
    return [(node, reason) for node in ours or [following]]


def _guilty(node: Node, partings: list[Place], trusted: set[Node]) -> Place | None:
    """The first call of ours alone that a wrong value may come from: as an input, or through a write."""
    sources: set[Node] = set()
    _add_with_inputs(node, sources)
    for earlier in node.graph.nodes:
        if earlier is node:
            break
        if earlier.op != "placeholder" and not _is_guard(earlier) and effect_of(earlier) is not Effect.NONE:
            _add_with_inputs(earlier, sources)
    return next((place for place in partings if place[0] not in trusted and place[0] in sources), None)


def _add_with_inputs(node: Node, found: set[Node]) -> None:
    """Add a node and all that its value comes from."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.all_input_nodes
