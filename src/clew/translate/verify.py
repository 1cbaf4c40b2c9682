"""Is a translation its original? Both run on the same inputs, each on arrays of its own framework.

Comes in: a translated program, the original and example calls with the original's arrays. Goes out: one case for each
call: equal within the tolerance of the dtype, guarded, or WRONG with the first node whose value differs. Gradients of
the weights are compared for the first call. State is as it was afterwards; random numbers are another stream, so that
of programs that draw them kinds and shapes alone are compared.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy

from clew import tree
from clew.capture.current_capture import LOCK
from clew.capture.options import Options
from clew.errors import ClewError, GuardError
from clew.ir.guests import guest
from clew.ir.interpreter import Interpreter
from clew.ir.node import Node
from clew.runtime.choose import make_captured
from clew.tools.cases import EQUAL, GUARDED, SEED, WRONG, Call, Case, calls_from, gone, named
from clew.translate.check import difference
from clew.translate.program import SOURCES, conversion, prepared_graph
from clew.translate.sources.source import Source


@dataclass(frozen=True)
class _Pair:
    """A translation and its original, and what compares their arrays."""

    made: Any
    fn: Any
    source: Source
    convert: Callable[[Any], Any]
    atol: float
    rtol: float

    def there(self, call: Call) -> Call:
        """A call with arrays of the target."""
        leaves, structure = tree.flatten(call)
        given = [self.convert(self.source.to_numpy(one)) if self.source.is_array(one) else one for one in leaves]
        args, kwargs = tree.unflatten(given, structure)
        return args, kwargs

    def differ(self, have: Any, want: Any) -> str:
        """How two arrays differ; empty if they do not."""
        have = numpy.asarray(have.detach().cpu() if hasattr(have, "detach") else have)
        want = self.source.to_numpy(want) if self.source.is_array(want) else numpy.asarray(want)
        return difference(have, want, self.atol, self.rtol)


def compare(made: Any, fn: Any, inputs: Any, atol: float, rtol: float, gradients: bool) -> list[Case]:
    """The calls that were given, or the example, then noise of the same form made from the first."""
    source, convert = conversion(made.translated_from, made.framework)
    pair = _Pair(made, fn, source, convert, atol, rtol)
    calls = calls_from(inputs, SimpleNamespace(_example=vars(made).get("_original_example")), _gone)
    cases = [_case(name, pair, call) for name, call in (*named(calls), ("noise", _noise(pair, calls[0])))]
    if gradients and cases[0].status == EQUAL and not cases[0].detail:
        told = _slopes_differ(pair, calls[0])
        cases[0] = Case(cases[0].name, WRONG, told) if told else cases[0]
    return cases


def _gone(kind: Any) -> Any:
    raise gone(kind)


def _noise(pair: _Pair, call: Call) -> Call:
    """Other values of the same kinds: whole numbers between those that there were."""
    generator = numpy.random.RandomState(SEED)

    def other(leaf: Any) -> Any:
        if not pair.source.is_array(leaf):
            return leaf
        array = pair.source.to_numpy(leaf)
        if array.dtype.kind in "fcV":
            return pair.source.like(leaf, generator.standard_normal(array.shape))
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        return pair.source.like(leaf, generator.randint(low, high + 1, array.shape))

    leaves, structure = tree.flatten(call)
    args, kwargs = tree.unflatten([other(leaf) for leaf in leaves], structure)
    return args, kwargs


def _case(name: str, pair: _Pair, call: Call) -> Case:
    state = getattr(pair.made, "state", None)
    try:
        got, error = _outcome(pair.made, pair.there(call))
    finally:
        if state is not None:
            pair.made.state = state
    if isinstance(error, GuardError):
        return Case(name, GUARDED, error.what, None, error.where)
    with pair.source.undisturbed(pair.fn):
        want, failure = _outcome(pair.fn, copy.deepcopy(call))
    if error is not None or failure is not None:
        both = error is not None and failure is not None
        told = f"both raise {type(failure).__name__}" if both else f"{error!r} instead of {failure!r}"
        return Case(name, EQUAL if both else WRONG, told)
    detail = _results_differ(pair, got, want)
    if not detail:
        return Case(name, EQUAL, "random numbers are another stream" if pair.made.draws else "")
    node = None if pair.made.draws else _first_node(pair, call)
    line = "" if node is None or node.source is None else node.source.describe()
    return Case(name, WRONG, detail, None if node is None else node.name, line)


def _outcome(program: Any, call: Call) -> tuple[Any, Exception | None]:
    try:
        return program(*call[0], **call[1]), None
    except Exception as error:  # which both may raise
        return None, error


def _results_differ(pair: _Pair, got: Any, want: Any) -> str:
    found, wanted = tree.flatten(got)[0], tree.flatten(want)[0]
    if len(found) != len(wanted):
        return f"{len(found)} results, not {len(wanted)}"
    for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
        is_number = isinstance(other, (bool, int, float, complex))
        if not pair.source.is_array(other) and not is_number:
            continue
        problem = pair.differ(one, other)
        if problem and not (pair.made.draws and problem.endswith(")") and "numbers differ" in problem):
            return f"result {place}: {problem}"
    return ""


def _slopes_differ(pair: _Pair, call: Call) -> str:
    """What differs between the gradients of the sum of all results for the weights; empty where nothing does."""
    find = getattr(pair.made, "slopes", None)
    if find is None or pair.made.draws or not pair.made.params:
        return ""
    with pair.source.undisturbed(pair.fn):
        wanted = pair.source.slopes(pair.fn, copy.deepcopy(call))
    if not wanted:
        return ""
    found = find(*pair.there(call))
    for name in wanted.keys() & found.keys():
        problem = pair.differ(found[name], wanted[name])
        if problem:
            return f"the gradient of {name}: {problem}"
    return ""


# ---- the first node that differs -------------------------------------------------------------------------------------


def _first_node(pair: _Pair, call: Call) -> Node | None:
    """The first node of the translation whose value is not that of the original's node of the same name."""
    try:
        package = pair.made.translated_from
        found = guest(package)
        assert found is not None
        with pair.source.undisturbed(pair.fn), LOCK:
            captured = found.capture(pair.fn, *copy.deepcopy(call), Options.of())
            program = make_captured(package, captured, "original", False)
            graph, constants = prepared_graph(program.graph, importlib.import_module(SOURCES[package]))
            there = _Noting(graph, constants)
            there.run(*copy.deepcopy(call[0]), **copy.deepcopy(call[1]))
    except (ClewError, RuntimeError, TypeError, ValueError, AttributeError):
        return None
    args, kwargs = pair.there(call)
    here = _Noting(pair.made.graph, {}, pair.made.root if hasattr(pair.made, "root") else pair.made)
    here.run(*args, **kwargs)
    for node, value in here.found.items():
        other = there.by_name.get(node.name)
        if other is not None and pair.source.is_array(other) and hasattr(value, "shape") and pair.differ(value, other):
            return node
    return None


class _Noting(Interpreter):
    """Keeps what the nodes of a graph give."""

    def __init__(self, graph: Any, constants: dict[str, Any], root: Any = None) -> None:
        super().__init__(graph.owning_module if root is None else root, False, graph)
        self.constants = constants
        self.extra_traceback = False
        self.found: dict[Node, Any] = {}
        self.by_name: dict[str, Any] = {}

    def _check(self, guards: Any) -> None:
        """The calls are those that ran before."""

    def fetch_attr(self, target: str) -> Any:
        return self.constants[target] if target in self.constants else super().fetch_attr(target)

    def run_node(self, n: Node) -> Any:
        value = super().run_node(n)
        if n.graph is self.graph and n.op.startswith("call"):
            self.found[n] = value
            self.by_name[n.name] = value
        return value
