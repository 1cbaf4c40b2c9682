"""The targets of speed: how the value of each comes out of the figures, and what stands in its way where it is missed.

A target compares one number with a limit. ``reason`` is written where it is missed; what a profiler shows stands in the
page's own table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.figures import Figure, value_of

Figures = list[Figure]


@dataclass(frozen=True)
class Target:
    """What is wanted, how it is read off the figures, and why it may be missed."""

    text: str
    limit: float
    read: Callable[[Figures], float | None]
    unit: str = ""
    reason: str = ""
    at_least: bool = False
    """Whether more is better."""

    def verdict(self, figures: Figures) -> tuple[str, str, str]:
        """The value, whether the target is reached or by how much it is missed, and why."""
        value = self.read(figures)
        if value is None:
            return "", "not measured", ""
        written = f"{value:,.3g}{self.unit}" if value < 1000 else f"{value:,.0f}{self.unit}"
        if value >= self.limit if self.at_least else value <= self.limit:
            return written, "reached", ""
        missed = self.limit / value if self.at_least else value / self.limit
        return written, f"missed by {(missed - 1):.0%}", self.reason


def value(section: str, program: str, tool: str) -> Callable[[Figures], float | None]:
    """One figure as it is."""
    return lambda figures: value_of(figures, section, program, tool)


def ratio(section: str, program: str, tool: str, base: str) -> Callable[[Figures], float | None]:
    """One figure over another of the same program."""

    def read(figures: Figures) -> float | None:
        over, under = (value_of(figures, section, program, name) for name in (tool, base))
        return None if over is None or not under else over / under

    return read


def growth(figures: Figures) -> float | None:
    """The cost of an operation in a long chain over that in a short one."""
    long, short = (value_of(figures, "capture", f"chain of {size}", "Clew") for size in ("100,000", "1,000"))
    return None if long is None or not short else long / short


def capture_over_eager(program: str) -> Callable[[Figures], float | None]:
    """A capture over the eager call."""
    return ratio("capture", program, "Clew", "eager call")


def replay_over_hand(program: str) -> Callable[[Figures], float | None]:
    """A call of what was captured over the function written by hand."""
    return ratio("replay", program, "Clew", "by hand")


def _largest(section: str) -> Callable[[Figures], float | None]:
    def read(figures: Figures) -> float | None:
        return max((one.value for one in figures if one.section == section and one.value is not None), default=None)

    return read


def _least_lead(section: str, tool: str, peer: str) -> Callable[[Figures], float | None]:
    """The smallest lead of a tool over another among the programs that both have."""

    def read(figures: Figures) -> float | None:
        names = dict.fromkeys(one.program for one in figures if one.section == section)
        pairs = [(value_of(figures, section, name, tool), value_of(figures, section, name, peer)) for name in names]
        return min((theirs / mine for mine, theirs in pairs if mine and theirs), default=None)

    return read


def _peak(program: str) -> Callable[[Figures], float | None]:
    """How much more memory a capture needs at its peak than an eager call."""

    def read(figures: Figures) -> float | None:
        mine, eager = (value_of(figures, "memory", program, tool) for tool in ("clew", "eager"))
        return None if mine is None or eager is None else mine - eager

    return read


PER_OPERATION = (
    "each operation costs a call of torch's override, the node, its source line, its type, "
    "and its share of code generation and `compile()`: see the profile below"
)
COLLECTOR = "the garbage collector walks what is kept, and `compile()` grows faster than its source"
MODULES = "what is left is the modules' own Python, which both tools run"
DEVICE = "torch makes a new object each time it is asked for a device, and the guard compares it"
WRAPPER = "`GraphFunction.__call__` is one more Python function, which hands arguments and keywords on"
LOOK = "the look for hooks and changed parts before each call, and reading parameters out of their dicts"
WALKING = "walking and checking do little more than follow pointers in both tools; all rows are in the table below"
AS_IT_IS = (
    "the graph keeps what a person would leave out (sizes in each layer, `contiguous()`, a `gather` of "
    "token types), and checks its guards"
)
RESNET, BERT = "ResNet-50, 224 px", "BERT-base"
CHAIN = value("capture", "chain of 1,000", "Clew")
OWN = value("import", "share of `import clew`", "Clew's own files")
FRAMEWORKS = value("import", "after `import clew`", "frameworks loaded")
ONE = replay_over_hand("one-op call")
TARGETS = [
    Target("capture, chain of 1,000: at most 25 us per op", 25, CHAIN, " us", PER_OPERATION),
    Target("capture, chain of 100,000: at most 1.5x the cost per op of 1,000", 1.5, growth, "x", COLLECTOR),
    Target("capture, ResNet-50: at most 1.4x eager", 1.4, capture_over_eager(RESNET), "x", PER_OPERATION),
    Target("capture, BERT-base: at most 1.4x eager", 1.4, capture_over_eager(BERT), "x", PER_OPERATION),
    Target(
        "symbolic capture: at least 2x ahead of torch.fx on each program",
        2.0, _least_lead("symbolic", "Clew", "torch.fx"), "x", MODULES, at_least=True,
    ),
    Target("peak memory of a capture, ResNet-50: at most 30 MB over eager, graph included", 30, _peak(RESNET), " MB"),
    Target("peak memory of a capture, BERT-base: at most 30 MB over eager, graph included", 30, _peak(BERT), " MB"),
    Target("replay, MLP of 50 layers: at most 1.05x by hand", 1.05, replay_over_hand("MLP of 50 layers"), "x", LOOK),
    Target("replay, tiny ResNet: at most 1.05x by hand", 1.05, replay_over_hand("tiny ResNet"), "x", LOOK),
    Target("replay, tiny BERT: at most 1.05x by hand", 1.05, replay_over_hand("tiny BERT"), "x", AS_IT_IS),
    Target("replay, one-op call: at most 1.5 us where by hand is 0.9 us, so 1.67x", 1.67, ONE, "x", WRAPPER),
    Target("guards: at most 100 ns each, the dearest kind", 100, _largest("guards"), " ns", DEVICE),
    Target(
        "graph work: at least 3x ahead of torch.fx in each row",
        3.0, _least_lead("graph work", "clew", "torch.fx"), "x", WALKING, at_least=True,
    ),
    Target("memory: at most 600 bytes a node", 600, value("memory", "graph of 10,000 nodes", "clew"), " bytes"),
    Target("`import clew`: at most 100 ms of its own", 100, OWN, " ms"),
    Target("`import clew` loads no framework", 0, FRAMEWORKS),
]  # fmt: skip
