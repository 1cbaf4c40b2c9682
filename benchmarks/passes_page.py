"""What passes did to the models of the coverage corpus, as lines for a terminal and as the page ``docs/passes.md``.

In come the rows of ``benchmarks.passes_corpus``; every outcome that is neither equal nor unchanged is listed with its
reason.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

BAD = ("WRONG", "failed")
"""How the outcomes begin that must not be."""
KINDS = ("equal", "unchanged", "equal in double precision", "guarded", "refused", "n/a", "timeout", *BAD)
_FOLDER = re.compile(r"/[^\s'\"]*-packages/")
Rows = dict[str, dict[str, Any]]


def outcome_of(row: dict[str, Any]) -> str:
    """What became of an architecture: the worst of what became of the passes on it."""
    outcomes = row["passes"].values()
    if not outcomes:
        return str(row["outcome"])
    if row.get("unstable"):
        return "n/a"
    bad = [one for one in outcomes if one.startswith(BAD)]
    late = any(one.startswith("timeout") for one in outcomes)
    return bad[0].partition(":")[0] if bad else "late" if late else "equal"


def _kind(outcome: str) -> str:
    return outcome.partition(":")[0].partition(",")[0]


def _counts(rows: Rows, label: str) -> Counter[str]:
    stable = [row for row in rows.values() if not row.get("unstable")]
    return Counter(_kind(row["passes"][label]) for row in stable if label in row["passes"])


def _guarded(rows: Rows, label: str) -> int:
    return sum("is guarded" in row["passes"].get(label, "") for row in rows.values())


def summary(rows: Rows, labels: list[str]) -> list[str]:
    """How many architectures there are of each outcome, for each pass, and those that went wrong."""
    outcomes = Counter(row["outcome"] for row in rows.values())
    lines = [f"{len(rows)} architectures: " + ", ".join(f"{count} {name}" for name, count in outcomes.most_common())]
    for label in labels:
        lines.append(f"  {label:<22} " + ", ".join(f"{n} {kind}" for kind, n in _counts(rows, label).most_common()))
    lines += [f"  {line}" for line in _exceptions(rows, BAD)]
    return [*lines, f"without a formula: {_unknown(rows)}"]


def _unknown(rows: Rows) -> str:
    found = Counter(name for row in rows.values() for name in row.get("unknown", ()))
    return ", ".join(f"{name} ({count})" for name, count in found.most_common()) or "none"


def _exceptions(rows: Rows, kinds: tuple[str, ...]) -> list[str]:
    return [
        f"{name}, {label}: {_FOLDER.sub('', outcome)}"
        for name, row in sorted(rows.items())
        for label, outcome in row["passes"].items()
        if outcome.startswith(kinds) and not row.get("unstable")
    ]


def markdown(found: dict[str, Any], labels: list[str]) -> str:
    """The whole page."""
    rows = found["rows"]
    ran = {name: row for name, row in rows.items() if row["outcome"] != "skipped"}
    outcomes = Counter(row["outcome"] for row in ran.values())
    made = Counter(row.get("made", "") for row in rows.values())
    versions = ";\n".join(f"{name} ({count} architectures)" for name, count in made.most_common())
    parts = [
        "# Passes over all architectures",
        HEAD.format(versions=versions, device=found["machine"].get("device of place", "meta")),
        f"- tried: {len(rows)}\n- ran eagerly: {len(ran)}\n"
        + "\n".join(f"- {TOLD.get(name, name)}: {count}" for name, count in outcomes.most_common()),
        "\n".join([_row(["pass", *KINDS, "another batch is guarded"]), _row(["---"] * (len(KINDS) + 2))])
        + "\n"
        + "\n".join(_line(rows, label) for label in labels),
        f"Operations that `clew.profile` has no formula for: {_unknown(rows)}.",
    ]
    for title, kinds in TITLES:
        lines = _exceptions(rows, kinds)
        if lines:
            parts += [f"## {title}", "\n".join(f"- {line}" for line in lines)]
    parts += _reasons(rows, "Not captured, or not in time", [one for one in outcomes if one in ("timeout", "failed")])
    parts += _reasons(rows, "Another result at each call", ["n/a"])
    return "\n\n".join(parts + _reasons(rows, "Skipped: did not run from a shrunk configuration", ["skipped"])) + "\n"


HEAD = """\
Each pass on a capture of each architecture of the [coverage corpus](coverage.md) (small random weights), verified, and
compared with what the model computes on another batch, or on the example where a guard refuses that one: `equal` within
0.002 of the largest number. `unchanged`: the pass found nothing to do. `guarded`: a guard of the capture refuses the
other device. `refused`: an error says that torch's exporter does not take the program, though it takes the model.
`n/a`: the model itself does not run in double precision, on the other device ({device}) or through torch's exporter, so
that there is nothing to compare with. Where a model chooses the largest of nearly equal numbers, and another order of
additions chooses another, it is judged in double precision.
Made by `python -m benchmarks.passes_corpus` with {versions}."""
TITLES = (
    ("Wrong or failed", BAD),
    ("Refused or guarded", ("refused", "guarded")),
    ("Out of time", ("timeout",)),
    ("Not to be judged", ("n/a",)),
)
TOLD = {
    "equal": "every pass equal",
    "late": "some pass not in time, the others equal",
    "n/a": "another result at each call, so that nothing is judged",
}


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _line(rows: Rows, label: str) -> str:
    counts = _counts(rows, label)
    return _row([f"`{label}`", *(str(counts[kind]) for kind in KINDS), str(_guarded(rows, label))])


def _reasons(rows: Rows, title: str, outcomes: list[str]) -> list[str]:
    lines = [
        f"- {name}: {_FOLDER.sub('', row.get('reason', 'no reason was kept'))}"
        for name, row in sorted(rows.items())
        if row["outcome"] in outcomes and (not row.get("passes") or row.get("unstable"))
    ]
    return [f"## {title}", "\n".join(lines)] if lines else []
