"""The results of the coverage run as text: counts, and one table of all architectures in Markdown.

In come the rows of the results file; out comes the page docs/coverage.md, or a one-line summary. Nothing is measured
here, and nothing is left out: an architecture that was skipped is listed with its reason.
"""

from __future__ import annotations

import platform
from collections import Counter
from pathlib import Path
from typing import Any

import torch
import transformers

RAN = ("general", "guarded", "WRONG", "failed", "refused", "timeout")
HEAD = "| name | class | outcome | example | values | batch | one | length | size "
HEAD += "| nodes | guards | eager ms | capture ms |"


def counts(rows: list[dict[str, Any]]) -> dict[str, int]:
    """How many architectures were tried, ran eagerly, and came to each outcome."""
    outcomes = Counter(row["outcome"] for row in rows)
    return {
        "tried": len(rows),
        "eager ok": sum(outcomes[outcome] for outcome in RAN),
        "captured": sum("nodes" in row for row in rows),
        "equal on the example": sum(row.get("example") == "equal" for row in rows),
        "general": outcomes["general"],
        "guarded": outcomes["guarded"],
        "refused": outcomes["refused"],
        "failed": outcomes["failed"],
        "out of time": outcomes["timeout"],
        "wrong": outcomes["WRONG"],
        "blind (the result does not depend on the input, or is not finite)": sum("blind" in row for row in rows),
    }


def summary(rows: list[dict[str, Any]]) -> str:
    """The counts in one line."""
    return ", ".join(f"{name}: {count}" for name, count in counts(rows).items())


def markdown(rows: list[dict[str, Any]]) -> str:
    """The whole page."""
    rows = sorted(rows, key=lambda row: row["name"])
    ran = [row for row in rows if row["outcome"] in RAN]
    skipped = [row for row in rows if row["outcome"] not in RAN]
    versions = f"Python {platform.python_version()}, torch {torch.__version__}, transformers {transformers.__version__}"
    parts = [
        "# Coverage of transformers",
        "Every architecture of the installed transformers that runs from a shrunk random configuration, captured by\n"
        "`clew.trace` from one example. `general`: right at other batch sizes and lengths without a new capture;\n"
        "`guarded`: refused there by a guard; `n/a`: the model itself does not take that size.\n"
        f"Made by `python -m benchmarks.coverage` with {versions}; processor time, best of two.",
        "\n".join(f"- {name}: {count}" for name, count in counts(rows).items()),
        "\n".join([HEAD, "|" + " --- |" * 13, *map(_line, ran)]),
        "## Not captured, guarded or wrong: why",
        "\n".join(_reason(row) for row in ran if row["outcome"] != "general"),
        "## Skipped: did not run eagerly from a shrunk configuration",
        "\n".join(_reason(row) for row in skipped),
    ]
    return "\n\n".join(parts) + "\n"


def _line(row: dict[str, Any]) -> str:
    shown = [row["name"], row.get("class", ""), row["outcome"]]
    shown += [row.get(key, "") for key in ("example", "values", "batch", "one", "length", "size", "nodes")]
    shown += [len(row["guards"]) if "guards" in row else "", row.get("eager_ms", ""), row.get("capture_ms", "")]
    return "| " + " | ".join(map(str, shown)) + " |"


def _reason(row: dict[str, Any]) -> str:
    place = row.get("where", "").rpartition("site-packages/")[2].removeprefix(f"{Path.cwd()}/")
    where = f" ({place})" if place else ""
    return f"- {row['name']}: {row['outcome']}: {row.get('reason', '')}{where}"
