"""Tables of plain text: rows in, aligned lines out, and numbers as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]


def table(rows: Sequence[Row], numbers: Sequence[str] = ()) -> str:
    """Rows under a header; the columns ``numbers`` stand to the right, and those that are empty are left out."""
    if not rows:
        return ""
    columns = [column for column in rows[0] if any(str(row[column]) for row in rows)]
    cells = [[str(row[column]) for column in columns] for row in rows]
    widths = [max(map(len, (column, *(line[place] for line in cells)))) for place, column in enumerate(columns)]
    lines = [columns, ["-" * width for width in widths], *cells]
    return "\n".join(_line(line, columns, widths, numbers) for line in lines)


def _line(cells: list[str], columns: list[str], widths: list[int], numbers: Sequence[str]) -> str:
    found = zip(cells, columns, widths, strict=True)
    padded = (cell.rjust(width) if name in numbers else cell.ljust(width) for cell, name, width in found)
    return "  ".join(padded).rstrip()


def amount(number: float | None, unit: str = "") -> str:
    """A number with three digits and a prefix: ``4.09 G``; a question mark for one that is not known."""
    if number is None:
        return "?"
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g} {prefix}{unit}"
    return f"{number:.3g} {unit}".rstrip()


def duration(seconds: float | None) -> str:
    """Seconds, in milliseconds or microseconds where they are few; nothing where nothing was measured."""
    if seconds is None:
        return ""
    for size, unit in ((1, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"
