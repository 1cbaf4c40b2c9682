"""The nodes of a graph as a table of plain text, one row a node.

The columns are opcode, name, target, args and kwargs; a column of types is added when any type is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.ir.format import format_argument, format_target

if TYPE_CHECKING:
    from clew.ir.graph import Graph
    from clew.ir.node import Node

COLUMNS = ("opcode", "name", "target", "args", "kwargs")


def row(node: Node) -> tuple[str, ...]:
    """The five cells of a node."""
    args = format_argument(node.args).replace("%", "")
    kwargs = format_argument(node.kwargs).replace("%", "")
    return node.op, node.name, format_target(node.target), args, kwargs


def table(graph: Graph) -> str:
    """All nodes, aligned, under a header."""
    nodes = list(graph.nodes)
    typed = any(node.value_type is not None for node in nodes)
    header = (*COLUMNS, "type") if typed else COLUMNS
    rows = [(*row(node), str(node.value_type or "")) if typed else row(node) for node in nodes]
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]
    rule = tuple("-" * width for width in widths)
    return "\n".join(_aligned(cells, widths) for cells in (header, rule, *rows))


def _aligned(cells: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
