"""The results of the table of control flow as a page: docs/control_flow_table.md.

In come the rows of the results file; out comes Markdown. Nothing is measured here, and no program is left out: one that
Clew does not capture as a whole is listed with the reason.
"""

from __future__ import annotations

import json
import platform
import re
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import control_flow_speed
from benchmarks.control_flow_tools import NO_TWIN
from tests.control_flow import export_corpus
from tests.control_flow.register import CONSTRUCTS, all_constructs

Rows = dict[str, dict[str, Any]]
TITLES = {
    "clew": "Clew",
    "clew dynamic": "Clew, `dynamic=True`",
    "clew lazy": "Clew, lazy",
    "clew numpy": "Clew, with NumPy",
    "fx": "torch.fx",
    "jit.trace": "jit.trace",
    "jit.script": "jit.script",
    "export": "torch.export",
    "dynamo": "Dynamo, one graph",
}
WORDS = ("captured", "opaque", "guarded", "refused", "wrong")

INTRODUCTION = """\
# Control flow, construct by construct

What becomes of Python control flow that depends on values, in Clew and in five other tools. Each program is captured
on one example and called on at least four further inputs, most of which go another way. Compared are results, their
structure, effects on arguments and state, random numbers, and for Clew also gradients.

- **captured**: one capture is right on all inputs;
- **opaque**: right on all inputs, but a part of the program stays a call of Python (Clew only);
- **guarded**: right, or an error that says so; a lazy graph or Dynamo makes a further capture instead;
- **refused**: the capture itself fails with an error;
- **wrong**: on some input another result or effect, and no error.

A cell gives one word where all programs of the construct share it, and counts otherwise. The column of NumPy is about
those programs that can be said with it, their calls translated (`tests/control_flow/numpy_twins.py`). `torch.export`
may choose dynamic sizes for itself; Dynamo is `torch.compile(backend="eager", fullgraph=True)`: refused means that it
would break the graph; jit.script takes parameters without annotations for tensors, and refuses where they are not. Made
by `python -m benchmarks.control_flow --table` with {versions}.
"""

SPEED_HEAD = """\
## Speed

The capture and the original take turns in one process; best times per call. Below 1 the capture is faster. Calls
include the guards of the arguments. Made by `python -m benchmarks.control_flow`.

"""
SPEED = Path(__file__).with_name("control_flow_speed.json")
ADDRESS = re.compile(r"at 0x[0-9a-f]+")
ADVICE = """\
A guarded program is right wherever it answers. `clew.trace(fn)` without an example captures again where a guard fails,
and keeps all captures; `clew.explain` names the line. To have one graph for all inputs, change that line:"""
_ROUNDS = (
    "The number of rounds is fixed by a guard: let the loop decide by a value (`while`), or say it without a loop."
)
_MESSAGE = (
    "An error is raised by the graph where it leaves the program and nothing but local variables has changed before; "
    "inside of a `with`, or with a class that has an `__init__` of its own, it is guarded."
)
HINTS = {
    "for_rows": _ROUNDS,
    "for_size": _ROUNDS,
    "for_enumerate": _ROUNDS,
    "for_range": _ROUNDS,
    "nested_loops": _ROUNDS,
    "append": "A list whose length depends on data has no place in a graph: use a tensor, with a mask beside it.",
    "in_place": _ROUNDS,
    "assert": _MESSAGE,
    "raise": _MESSAGE,
    "item": "Keys that are there on one way only are guarded: set the key on both ways.",
    "try": "An error that depends on data cannot be foreseen: test for its cause with an `if`.",
    "print": "Text made of values is guarded where it decides something; print outside of the program.",
    "random": "Numbers of `random` in a branch: draw before the branch, or use torch's random numbers.",
    "merged": "Ask for the fact inside each way, before they meet.",
    "impossible": "The untaken way cannot be run on the example: capture with an example that takes it.",
}


def markdown(rows: Rows) -> str:
    """The page."""
    versions = f"Python {platform.python_version()}, torch {version('torch')}"
    parts = [INTRODUCTION.format(versions=versions), _table(rows), _totals(rows), _corpus(), _speed(), _reasons(rows)]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts if part)


def summary(rows: Rows, tool: str) -> str:
    """The counts of one tool in one line."""
    counts = Counter(row["outcome"] for name, row in rows.items() if name.partition(":")[0] == tool)
    return ", ".join(f"{word} {counts[word]}" for word in (*WORDS, *sorted(set(counts) - set(WORDS))) if counts[word])


def _names() -> dict[str, list[str]]:
    names: dict[str, list[str]] = {construct: [] for construct in CONSTRUCTS}
    for program in all_constructs():
        names[program.kind].append(program.name)
    return names


def _table(rows: Rows) -> str:
    lines = [_line(["construct", "programs", *TITLES.values()]), _line(["---"] * (2 + len(TITLES)))]
    for construct, names in _names().items():
        cells = [_cell([rows.get(f"{tool}:{name}") for name in names]) for tool in TITLES]
        lines.append(_line([CONSTRUCTS[construct], str(len(names)), *cells]))
    return "\n".join(lines)


def _cell(rows: list[dict[str, Any] | None]) -> str:
    counts = Counter("not measured" if row is None else str(row["outcome"]) for row in rows)
    del counts[NO_TWIN]
    order = [word for word in (*WORDS, *counts) if counts[word]]
    words = list(dict.fromkeys(order))
    shown = [word if len(words) == 1 else f"{word} {counts[word]}" for word in words]
    return ", ".join(shown).replace("wrong", "**wrong**") or "-"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _totals(rows: Rows) -> str:
    counts = {
        tool: Counter(row["outcome"] for name, row in rows.items() if name.startswith(f"{tool}:")) for tool in TITLES
    }
    lines = ["## Totals", "", _line(["tool", *WORDS]), _line(["---"] * (1 + len(WORDS)))]
    lines += [_line([TITLES[tool], *(str(counts[tool][word]) for word in WORDS)]) for tool in TITLES]
    broken = [row for name, row in rows.items() if name.startswith("dynamo:") and "breaks" in row]
    after = Counter(row["with breaks"] for row in broken)
    breaks = sum(row["breaks"] for row in broken)
    lines += [
        "",
        f"Where Dynamo finds no one graph and may break it, it does so {breaks} times in {len(broken)} programs;",
    ]
    lines.append(f"its results then: {', '.join(f'{word} {after[word]}' for word in WORDS if after[word])}.")
    return "\n".join(lines)


def _reasons(rows: Rows) -> str:
    lines = ["## What Clew does not capture as one graph, and what to do", "", ADVICE]
    for construct, names in _names().items():
        found = [(name, rows[f"clew:{name}"]) for name in names if f"clew:{name}" in rows]
        others = [(name, row) for name, row in found if row["outcome"] != "captured"]
        if others:
            hint = HINTS.get(construct, "")
            lines += ["", f"**{CONSTRUCTS[construct]}.** {hint}".rstrip(), ""]
            lines += [f"- `{name}`: {row['outcome']}: {_one_line(row)}" for name, row in others]
    return "\n".join(lines)


def _one_line(row: dict[str, Any]) -> str:
    text = str(row.get("reason", "")).replace("`", "'").replace("|", "\\|")
    text = ADDRESS.sub("at ...", text)
    return text if len(text) <= 160 else text[:157] + "..."


def _corpus() -> str:
    """The counts of torch's own corpus of hard cases, and the cases that Clew does not capture."""
    found = export_corpus.read()
    titles = {"trace": "Clew", "dynamic": "Clew, `dynamic=True`", "lazy": "Clew, lazy", "export": "torch.export"}
    lines = ["## torch's corpus of hard cases", ""]
    lines.append(
        f"The {len(found['trace'])} cases of `torch._export.db.examples`, on their examples and on inputs made"
    )
    lines.append("from them (`python -m tests.control_flow.export_corpus`):")
    lines += ["", _line(["tool", *WORDS]), _line(["---"] * (1 + len(WORDS)))]
    for subject, title in titles.items():
        counts = Counter(found[subject].values())
        lines.append(_line([title, *(str(counts[word]) for word in WORDS)]))
    lines += ["", _line(["case that is not captured by all", *titles.values()]), _line(["---"] * 5)]
    for case in sorted(found["trace"]):
        words = [found[subject][case] for subject in titles]
        if set(words) != {"captured"}:
            lines.append(_line([f"`{case}`", *words]))
    return "\n".join(lines)


def _speed() -> str:
    """The timings of the last run, as they were written."""
    if not SPEED.exists():
        return ""
    timings = [control_flow_speed.Timing(*row) for row in json.loads(SPEED.read_text())]
    return SPEED_HEAD + control_flow_speed.markdown(timings)
