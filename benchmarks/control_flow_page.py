"""The results of the table of control flow as a page: docs/control_flow_table.md.

In come the rows of the results file; out comes Markdown. Nothing is measured here, and no program is left out: one that
Clew does not capture as a whole is listed with the reason.
"""

from __future__ import annotations

import platform
from collections import Counter
from importlib.metadata import version
from typing import Any

from tests.control_flow.register import CONSTRUCTS, all_constructs

Rows = dict[str, dict[str, Any]]
TITLES = {
    "clew": "Clew",
    "clew lazy": "Clew, lazy",
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

A cell gives one word where all programs of the construct share it, and counts otherwise. `torch.export` may choose
dynamic sizes for itself; Dynamo is `torch.compile(backend="eager", fullgraph=True)`: refused means that it would break
the graph. Made by `python -m benchmarks.control_flow --table` with {versions}.
"""


def markdown(rows: Rows) -> str:
    """The page."""
    versions = f"Python {platform.python_version()}, torch {version('torch')}"
    parts = [INTRODUCTION.format(versions=versions), _table(rows), _totals(rows), _reasons(rows)]
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
    order = [word for word in (*WORDS, *counts) if counts[word]]
    words = list(dict.fromkeys(order))
    shown = [word if len(words) == 1 else f"{word} {counts[word]}" for word in words]
    return ", ".join(shown).replace("wrong", "**wrong**")


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
    lines = ["## What Clew does not capture as one graph", ""]
    for construct, names in _names().items():
        for name in names:
            row = rows.get(f"clew:{name}")
            if row is not None and row["outcome"] != "captured":
                reason = str(row.get("reason", "")).replace("|", "\\|")
                lines.append(f"- {CONSTRUCTS[construct]}, `{name}`: {row['outcome']}: {reason}")
    return "\n".join(lines)
