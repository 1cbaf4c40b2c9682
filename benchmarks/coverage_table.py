"""The results of the coverage run as text: counts, and one table of all architectures in Markdown.

In come the rows of the results file; out comes the page docs/coverage.md, or a one-line summary. Nothing is measured
here, and nothing is left out: an architecture that was skipped is listed with its reason.
"""

from __future__ import annotations

import platform
import re
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_FOLDER = re.compile(r"/[^\s'\"]*-packages/")
SUITES = {"transformers": "Architectures of transformers", "zoo": "Models in plain torch"}
RAN = ("general", "guarded", "WRONG", "failed", "refused", "timeout")
VARIED = ("example", "values", "batch", "one", "length", "size", "padded")
HEAD = f"| name | class | outcome | {' | '.join(VARIED)} | nodes | guards | eager ms | capture ms |"


def counts(rows: list[dict[str, Any]]) -> dict[str, str]:
    """How many architectures were tried, ran eagerly, and came to each outcome, with its share of those that ran."""
    outcomes = Counter(row["outcome"] for row in rows)
    ran = sum(outcomes[outcome] for outcome in RAN)

    def share(count: int) -> str:
        return f"{count} ({count / ran:.1%})" if ran else str(count)

    return {
        "tried": str(len(rows)),
        "ran eagerly": str(ran),
        "captured": share(sum("nodes" in row for row in rows)),
        "equal on the example": share(sum(row.get("example") == "equal" for row in rows)),
        "general": share(outcomes["general"]),
        "guarded": share(outcomes["guarded"]),
        "general, or general with dynamic=True": share(
            outcomes["general"] + sum(row.get("dynamic") == "general" for row in rows)
        ),
        "wrong with dynamic=True": str(sum(row.get("dynamic") == "WRONG" for row in rows)),
        "refused": share(outcomes["refused"]),
        "failed": share(outcomes["failed"]),
        "out of time": share(outcomes["timeout"]),
        "wrong": share(outcomes["WRONG"]),
        "other image or sound sizes equal": str(sum(row.get("size") == "general" for row in rows)),
        "other image or sound sizes guarded": str(sum(row.get("size") == "guarded" for row in rows)),
        "padded masks equal": str(sum(row.get("padded") == "general" for row in rows)),
        "padded masks guarded": str(sum(row.get("padded") == "guarded" for row in rows)),
        "blind (the result does not depend on the input, or is not finite)": str(sum("blind" in row for row in rows)),
    }


def summary(rows: list[dict[str, Any]]) -> str:
    """The counts in one line."""
    return ", ".join(f"{name}: {count}" for name, count in counts(rows).items())


def versions() -> str:
    """What the figures were measured with."""
    packages = ", ".join(f"{name} {_version(name)}" for name in ("torch", "transformers"))
    return f"Python {platform.python_version()}, {packages}"


def markdown(rows: list[dict[str, Any]]) -> str:
    """The whole page."""
    parts = [
        "# Coverage",
        "What `clew.trace` captures from one example: architectures with small random weights, each called afterwards\n"
        "with other values, at two other batch sizes (`one` is a batch of one), at another length of text, at another\n"
        "size of images or sound, and with a padded attention mask, all without a new capture. `general`: the same\n"
        "result, bit for bit; `guarded`: refused by a guard; `n/a`: the model itself does not take that input. An\n"
        "architecture counts as general when it is at all batch sizes and lengths, of text or of sound; images of\n"
        "another size and padded masks have columns and counts of their own.\n"
        f"Made by `python -m benchmarks.coverage` with {versions()};\n"
        "processor time, best of two.",
    ]
    for suite, title in SUITES.items():
        part = [row for row in rows if row.get("suite", "transformers") == suite]
        if part:
            parts += _section(title, sorted(part, key=lambda row: str(row["name"])))
    return "\n\n".join(parts) + "\n"


def _section(title: str, rows: list[dict[str, Any]]) -> list[str]:
    ran = [row for row in rows if row["outcome"] in RAN]
    others = [row for row in ran if row["outcome"] != "general"]
    skipped = [row for row in rows if row["outcome"] not in RAN]
    parts = [f"## {title}", "\n".join(f"- {name}: {count}" for name, count in counts(rows).items())]
    parts.append("\n".join([HEAD, "|" + " --- |" * HEAD.count(" | ") + " --- |", *map(_line, ran)]))
    if others:
        parts += ["### Not captured, guarded or wrong: why", "\n".join(map(_reason, others))]
    if skipped:
        parts += ["### Skipped: did not run eagerly from a shrunk configuration", "\n".join(map(_reason, skipped))]
    return parts


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


def _line(row: dict[str, Any]) -> str:
    shown = [row["name"], row.get("class", ""), row["outcome"]]
    shown += [row.get(key, "") for key in (*VARIED, "nodes")]
    shown += [len(row["guards"]) if "guards" in row else "", row.get("eager_ms", ""), row.get("capture_ms", "")]
    return "| " + " | ".join(map(str, shown)) + " |"


def _reason(row: dict[str, Any]) -> str:
    place = row.get("where", "").rpartition("site-packages/")[2].removeprefix(f"{Path.cwd()}/")
    where = f" ({place})" if place else ""
    reason = _FOLDER.sub("", f"{row.get('reason', '')}{where}")
    return f"- {row['name']}: {row['outcome']}: {reason}"
