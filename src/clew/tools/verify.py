"""``verify``: is a captured program the original? Both run on the same inputs, and all that can be seen is compared.

Comes in: a capture, the original, example calls. Goes out: a ``Verification``, one case for each call: equal, guarded
(the capture said that it does not hold there) or WRONG, with the first node that differs. Nothing is changed.
"""

from __future__ import annotations

import importlib
from dataclasses import asdict, dataclass
from typing import Any

from clew.errors import ClewError, VerificationError, a_or_an
from clew.ir import verify as rules
from clew.ir.graph import Graph
from clew.runtime.choose import framework_of
from clew.runtime.function import GraphFunction
from clew.tools.cases import EQUAL, GUARDED, WRONG, Case

TRANSLATION = "translation"
COMPARISONS = {
    "torch": "clew.tools.compare_torch",
    "jax": "clew.tools.compare_jax",
    "tensorflow": "clew.tools.compare_tensorflow",
    "numpy": "clew.tools.compare_numpy",
    TRANSLATION: "clew.translate.verify",
}
"""The files that compare programs of each framework; they import the framework, so they wait until they are needed."""


@dataclass(frozen=True)
class Verification:
    """What a comparison found. True when no case is wrong; prints as a table."""

    name: str
    cases: list[Case]

    @property
    def ok(self) -> bool:
        """Whether no case is wrong; a refused input is not wrong."""
        return all(case.status != WRONG for case in self.cases)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        counts = [(status, sum(case.status == status for case in self.cases)) for status in (EQUAL, GUARDED, WRONG)]
        width = max((len(case.name) for case in self.cases), default=0)
        lines = [f"{self.name}: " + ", ".join(f"{count} {status}" for status, count in counts if count)]
        for case in self.cases:
            lines.append(f"  {case.name.ljust(width)}  {case.status.ljust(len(GUARDED))}  {case.detail}".rstrip())
            if case.node is not None:
                place = f", {case.line}" if case.line else ""
                lines.append(f"  {' ' * width}  {' ' * len(GUARDED)}  first at node {case.node}{place}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"name": self.name, "ok": self.ok, "cases": [asdict(case) for case in self.cases]}

    def raise_if_wrong(self) -> None:
        """Raise ``VerificationError`` with the table if a case is wrong."""
        wrong = next((case for case in self.cases if case.status == WRONG), None)
        if wrong is not None:
            node = "" if wrong.node is None else f"node {wrong.node}"
            where = ", ".join(part for part in (node, wrong.line) if part)
            raise VerificationError(f"the captured program is not the original\n{self}", where=where)


def verify(
    graph: Any,
    fn: Any = None,
    inputs: Any = None,
    *,
    atol: float = 0.0,
    rtol: float = 0.0,
    gradients: bool = True,
) -> Verification:
    """Run a captured program beside its original and compare all that can be seen.

    ``graph`` is what a capture gave (or its ``Graph``), ``fn`` the original, ``inputs`` a pair (args, kwargs) or a list
    of pairs. Each is replayed as it is; then noise of the same form and other batch sizes are made from the first.
    Values are compared exactly unless ``atol`` or ``rtol`` says otherwise; so are structure, dtypes, effects on
    arguments and state, random numbers, and gradients. The rules of the IR come first, and a broken one is raised;
    without ``fn`` they are all that is checked.
    """
    captured = program_of(graph)
    rules.verify(captured.graph)
    if fn is None:
        return Verification(getattr(captured, "__name__", type(captured).__name__), [Case("rules of the graph", EQUAL)])
    framework = getattr(type(captured), "framework", "") or framework_of(fn, (inputs,), {}).package
    if getattr(captured, "translated_from", "") and framework_of(fn, (inputs,), {}).package != framework:
        framework = TRANSLATION
    compare = importlib.import_module(COMPARISONS.get(framework, COMPARISONS["numpy"])).compare
    cases = compare(captured, fn, inputs, atol, rtol, gradients)
    return Verification(getattr(fn, "__name__", type(fn).__name__), cases)


def program_of(graph: Any) -> Any:
    """The program to run for what the user gave."""
    if isinstance(graph, Graph):
        owner = graph.owning_module
        return owner if getattr(owner, "graph", None) is graph else GraphFunction(owner, graph)
    if isinstance(getattr(graph, "graph", None), Graph):
        return graph
    several = hasattr(graph, "captures")
    raise ClewError(
        f"{a_or_an(graph)} is no graph",
        why="a lazy graph is as many graphs as it has captures" if several else "",
        fixes=("give one of its captures: lazy.captures[0]",) if several else ("give what clew.trace returned",),
    )
