"""How nodes, targets, annotations and whole graphs look to people, in the spelling that users of torch.fx know.

Pure functions from data to strings: one line for a node, and ``table`` with one row for each node of a graph (opcode,
name, target, args, kwargs, and types where any is known). The text that is read back as a graph is in ``text``.
"""

from __future__ import annotations

import types
import typing
from typing import TYPE_CHECKING, Any

from clew.ir.arguments import Reference
from clew.ir.guests import guest_of, package_of

if TYPE_CHECKING:
    from clew.ir.graph import Graph
    from clew.ir.node import Node


_PUBLIC_MODULES = {"_operator": "operator", "_functools": "functools"}


def qualified_name(function: Any) -> str:
    """The dotted name under which ``function`` can be written by a user: ``torch.relu``, ``operator.add``."""
    guest = guest_of(function)
    known = None if guest is None else guest.qualified_name(function)
    if known is not None:
        return known
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    if name is None:
        return f"{type(function).__module__}.{type(function).__qualname__}"
    owner = getattr(function, "__objclass__", None)
    if owner is not None and "." not in name:
        name = f"{owner.__qualname__}.{name}"
    module = getattr(function, "__module__", None) or package_of(function)
    return f"{_PUBLIC_MODULES.get(module, module)}.{name}"


def format_target(target: Any) -> str:
    """A target as people read it: the string itself, or the function's qualified name."""
    return target if isinstance(target, str) else qualified_name(target)


def format_type(annotation: Any) -> str:
    """A type annotation as a user would write it."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        if annotation.__module__ == "builtins":
            return annotation.__qualname__
        return qualified_name(annotation)
    if annotation is ...:
        return "..."
    if isinstance(annotation, types.FunctionType):
        return annotation.__name__
    origin = typing.get_origin(annotation)
    if origin is not None and not isinstance(annotation, types.UnionType) and origin is not typing.Union:
        name = format_type(origin) if isinstance(annotation, types.GenericAlias) else _alias_name(annotation)
        inner = ", ".join(format_type(argument) for argument in typing.get_args(annotation))
        return f"{name}[{inner}]" if inner else name
    return repr(annotation).replace("NoneType", "None")


def _alias_name(annotation: Any) -> str:
    return f"typing.{getattr(annotation, '_name', None) or repr(annotation)}"


def format_argument(argument: Any) -> str:
    """An argument in one line: nodes as ``%name``, nests in Python's notation."""
    if isinstance(argument, Reference):
        return f"%{argument.name}"
    if isinstance(argument, tuple) and hasattr(argument, "_fields"):
        fields = zip(argument._fields, argument, strict=True)
        return f"{type(argument).__name__}({', '.join(f'{k}={format_argument(v)}' for k, v in fields)})"
    if isinstance(argument, tuple):
        inner = ", ".join(map(format_argument, argument))
        return f"({inner},)" if len(argument) == 1 else f"({inner})"
    if isinstance(argument, list):
        return f"[{', '.join(map(format_argument, argument))}]"
    if isinstance(argument, dict):
        return f"{{{', '.join(f'{key}: {format_argument(value)}' for key, value in argument.items())}}}"
    if isinstance(argument, slice):
        return f"slice({', '.join(map(format_argument, (argument.start, argument.stop, argument.step)))})"
    if hasattr(argument, "find_nodes"):
        return f"<graph of {len(argument.nodes)} nodes>"
    return str(argument)


def format_node(node: Any) -> str:
    """One line that tells all about a node: name, number of users, opcode, target and arguments."""
    annotation = f"{format_type(node.type)} " if node.type is not None else ""
    if node.op == "output":
        return f"return {node.args[0] if node.args else None}"
    head = f"%{node.name} : {annotation}[num_users={len(node.users)}] = {node.op}[target={format_target(node.target)}]"
    if node.op == "placeholder":
        return head + (f"(default={format_argument(node.args[0])})" if node.args else "")
    if node.op == "get_attr":
        return head
    return f"{head}(args = {format_argument(node.args)}, kwargs = {format_argument(node.kwargs)})"


# ---- the table of a graph --------------------------------------------------------------------------------------------

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
