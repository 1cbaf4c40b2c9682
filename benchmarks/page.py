"""The page of the benchmarks, written from the figures: method, machine, targets, and a table for each section."""

from __future__ import annotations

import math
from collections.abc import Iterable

from benchmarks.figures import Figure, value_of
from benchmarks.targets import TARGETS

HEAD = """\
# Speed

Clew beside the tools that people use instead, measured in one process and in turns. What counts are the ratios within a
table: absolute times are those of one machine. `python -m benchmarks --table docs/benchmarks.md` writes this page;
`python -m benchmarks replay guards` measures some sections alone, `--json FILE` keeps the figures, `--quick` is a first
look.

## Method

- All tools of a table run in the same process, one thread each, and take turns; a figure is the median of up to 41
  turns (15 for captures, 3 for tools that take seconds). A turn of a short call is a loop of some ten milliseconds.
- Time is processor time of the process. Before a turn that is one capture the garbage collector runs; what the
  imports have made is frozen first. The collector is on while a tool is measured, as it is for users.
- A capture holds all that a tool needs to be called afterwards. Clew's includes guards, types, source lines, names, and
  generated and compiled code; `torch.compile`'s includes its first call. Gradients are off.
- What a tool has captured is compared with the original before it is timed. A tool that fails says so in its cell, and
  below the table why.
- "By hand" is the function that a person would write for speed (`benchmarks/programs.py`): functional calls alone
  (`F.linear`, `torch.layer_norm`, `torch.batch_norm`), parameters, buffers and settings bound beforehand as plain
  names. It looks for no hooks, replaced weights, modes or guards, and leaves out what the model computes for nothing.

| machine | |
| --- | --- |
"""


def markdown(machine: dict[str, str], figures: list[Figure]) -> str:
    """The whole page."""
    parts = [HEAD + "\n".join(f"| {name} | {value} |" for name, value in machine.items()), _targets(figures)]
    parts += [
        _section(figures, "capture", "Capture from an example", CAPTURE),
        _section(figures, "symbolic", "Symbolic capture", "Without an example, in microseconds per node of the graph."),
        _replay(figures),
        _section(figures, "guards", "Guards", GUARDS, tools_as_rows=False),
        _section(figures, "lazy dispatch", "Dispatch of a lazy graph", LAZY),
        _graph_work(figures),
        _section(figures, "memory", "Memory", MEMORY, tools_as_rows=False),
        _section(figures, "import", "Import", IMPORT, tools_as_rows=False),
        _section(figures, "profile", "Where the time of a capture goes", PROFILE, tools_as_rows=False),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


CAPTURE = """\
One capture. Chains are in microseconds per operation, models in seconds. jax.make_jaxpr and tf.function trace the same
chain written in their own functions. Inductor is measured at replay only: it compiles C++ in other processes."""
GUARDS = """\
What a guard that holds costs, apart from what it guards: a function with fifty of them beside the same without."""
LAZY = """\
A call of a one-op program through `clew.trace(fn)`, which looks for a capture whose guards hold: microseconds. That
the module still has the parts, classes and hooks of the capture is looked at by the capture itself."""
MEMORY = """\
Bytes of Python objects per node of a graph; and what the peak of a process that captures lies above one that has only
loaded the model, in megabytes: the result, temporary tensors, the graph, and the tool's own code."""
IMPORT = """\
Processor time of a new process over that of an empty one, in milliseconds; and the share of it that the interpreter
spends in Clew's own files, as `-X importtime` tells it."""
GRAPH_WORK = """\
Microseconds per node: Clew, torch.fx, and how many times Clew is ahead. The slope is the exponent with which Clew's
whole time grows with the number of nodes: 1 is linear. `python -m benchmarks.graph_work --million` goes further."""
PROFILE = """\
Share of the time inside of each file, callees not counted, by Python's own profiler, which makes calls dearer than they
are."""


def _targets(figures: list[Figure]) -> str:
    lines = ["## Targets", "", *_scale(figures), "| target | measured | | why |", "| --- | --- | --- | --- |"]
    for target in TARGETS:
        value, verdict, reason = target.verdict(figures)
        lines.append(f"| {target.text} | {value} | {verdict} | {reason} |")
    return "\n".join(lines)


def _scale(figures: list[Figure]) -> list[str]:
    """How fast the machine was while it measured, beside the one on which the targets were set."""
    one = value_of(figures, "replay", "one-op call", "by hand")
    if one is None:
        return []
    first = "Targets in microseconds and nanoseconds were set where one addition of small tensors takes 0.9 us. On this"
    return [first, f"machine, with what else was running on it, the same addition took {one:.1f} us.", ""]


def _section(figures: list[Figure], section: str, title: str, text: str, tools_as_rows: bool = True) -> str:
    """A section as one table of tools and programs, or as a list of all its figures."""
    own = [one for one in figures if one.section == section]
    if not own:
        return ""
    table = _grid(own) if tools_as_rows else _list(own)
    return "\n\n".join([f"## {title}", text, table, *_failures(own)])


def _grid(figures: list[Figure]) -> str:
    programs = list(dict.fromkeys(one.program for one in figures))
    tools = dict.fromkeys(one.tool for one in figures)
    cells = {(one.tool, one.program): _cell(one) for one in figures}
    rows = [[tool, *(cells.get((tool, program), "") for program in programs)] for tool in tools]
    return _lines(["tool", *(f"{program}, {_unit(figures, program)}" for program in programs)], rows)


def _unit(figures: list[Figure], program: str) -> str:
    return next(one.unit for one in figures if one.program == program)


def _list(figures: list[Figure]) -> str:
    return _lines(
        ["what", "of", "value"], [[one.program, one.tool, f"{_cell(one)} {one.unit}".strip()] for one in figures]
    )


def _cell(one: Figure) -> str:
    if one.value is None:
        return "not measured" if one.note.startswith("not measured") else "fails"
    return number(one.value)


def number(value: float) -> str:
    """A number with the digits that mean something."""
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _failures(figures: list[Figure]) -> list[str]:
    failed = [one for one in figures if one.value is None and one.note]
    lines = [f"- {one.tool} on {one.program}: {one.note}" for one in failed]
    return ["\n".join(lines)] if lines else []


def _lines(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _replay(figures: list[Figure]) -> str:
    """Ratios to the function written by hand; the one-op call in microseconds."""
    own = [one for one in figures if one.section == "replay"]
    if not own:
        return ""
    programs = list(dict.fromkeys(one.program for one in own))
    tools = dict.fromkeys(one.tool for one in own)
    rows = [[tool, *(_replay_cell(own, program, tool) for program in programs)] for tool in tools]
    heads = [program if program != "one-op call" else "one-op call, us" for program in programs]
    text = "One call of what was captured, as a ratio to the function written by hand; the one-op call in microseconds."
    return "\n\n".join(["## Replay", text, _lines(["tool", *heads], rows), *_failures(own)])


def _replay_cell(figures: list[Figure], program: str, tool: str) -> str:
    value = value_of(figures, "replay", program, tool)
    if value is None:
        known = any((one.program, one.tool) == (program, tool) for one in figures)
        return "fails" if known else ""
    if program == "one-op call":
        return f"{value:.2f}"
    base = value_of(figures, "replay", program, "by hand")
    return f"{value / base:.2f}" if base else ""


def _graph_work(figures: list[Figure]) -> str:
    """Each kind of work with Clew, torch.fx and the lead, a column for each size."""
    own = [one for one in figures if one.section == "graph work"]
    if not own:
        return ""
    sizes = list(dict.fromkeys(one.program.rpartition(", ")[2] for one in own))
    works = dict.fromkeys(one.program.rpartition(", ")[0] for one in own)
    cells = {work: [_work_cell(own, f"{work}, {size}") for size in sizes] for work in works}
    rows = [[work, *cells[work], _slope(own, work, sizes)] for work in works]
    heads = ["work", *(f"{size} nodes" for size in sizes), "slope"]
    return "\n\n".join(["## Graph work", GRAPH_WORK, _lines(heads, rows)])


def _slope(figures: list[Figure], work: str, sizes: list[str]) -> str:
    """The exponent with which Clew's whole time grows from the least size to the largest: 1 is linear."""
    found = [(int(size.replace(",", "")), value_of(figures, "graph work", f"{work}, {size}", "clew")) for size in sizes]
    (small, first), (large, last) = found[0], found[-1]
    if not first or not last or small == large:
        return ""
    return f"{1 + math.log(last / first) / math.log(large / small):.2f}"


def _work_cell(figures: list[Figure], program: str) -> str:
    mine, theirs = (value_of(figures, "graph work", program, tool) for tool in ("clew", "torch.fx"))
    if mine is None:
        return ""
    return number(mine) if not theirs else f"{number(mine)} / {number(theirs)} / {theirs / mine:.1f}x"
