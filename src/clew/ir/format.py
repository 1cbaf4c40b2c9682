"""How nodes, targets, annotations and whole graphs look to people, in the spelling that users of torch.fx know.

Pure functions from data to strings: one line for a node, and ``table`` with one row for each node of a graph (opcode,
name, target, args, kwargs, and types where any is known). The text that is read back as a graph is in ``text``.
"""

from __future__ import annotations

import os
import types
import typing
from typing import TYPE_CHECKING, Any

from clew.ir.arguments import Reference, all_nodes, bodies_of
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
    owner = getattr(function, "__self__", None)
    if isinstance(function, types.MethodType) and isinstance(owner, type):  # a class's own, which may be inherited
        return f"{owner.__module__}.{owner.__qualname__}.{function.__name__}"
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
    known = node.value_type if node.type is None else format_type(node.type)
    annotation = "" if known is None else f"{known} "
    if node.op == "output":
        return f"return {node.args[0] if node.args else None}"
    head = f"%{node.name} : {annotation}[num_users={len(node.users)}] = {node.op}[target={format_target(node.target)}]"
    if node.op == "placeholder":
        return head + (f"(default={format_argument(node.args[0])})" if node.args else "")
    if node.op == "get_attr":
        return head
    return f"{head}(args = {format_argument(node.args)}, kwargs = {format_argument(node.kwargs)})"


# ---- the listing of a graph ------------------------------------------------------------------------------------------


def listing(graph: Graph, limit: int | None = None, indent: str = "") -> str:
    """All nodes, one a line, under the paths and classes of the modules that they were recorded in; bodies of control
    flow below the nodes that they belong to. Of more than ``limit`` nodes the first are shown."""
    inputs = ", ".join(f"%{node.name}" for node in graph.nodes if node.op == "placeholder")
    lines = [f"{indent}graph({inputs}):"]
    inside = indent + "    "
    around: str | None = ""
    for place, node in enumerate(graph.nodes):
        if place == limit:
            rest = len(graph.nodes) - place
            lines.append(f"{inside}# and {rest} more nodes: print(graph) shows all")
            break
        heading = _heading(node, around)
        if heading != around:
            around = heading
            if heading:
                lines.append(f"{inside}# {heading}")
        lines.append(inside + str(node.format_node()))
        lines += [listing(body, limit, inside + "    ") for body in bodies_of(node)]
    return "\n".join(lines)


def _heading(node: Node, around: str | None) -> str | None:
    """The path and class of the innermost module that a node is inside of; inputs and outputs are inside of none."""
    stack = list(((node._meta or {}).get("nn_module_stack") or {}).values())
    if stack and node.op == "call_module" and stack[-1][0] == node.target:
        stack.pop()
    if not stack:
        return around if node.op == "output" else ""
    path, kind = stack[-1]
    return f"{path}: {getattr(kind, '__name__', str(kind).rpartition('.')[2])}" if path else ""


# ---- the table of a graph --------------------------------------------------------------------------------------------

COLUMNS = ("opcode", "name", "target", "args", "kwargs")


def row(node: Node) -> tuple[str, ...]:
    """The five cells of a node."""
    args = format_argument(node.args).replace("%", "")
    kwargs = format_argument(node.kwargs).replace("%", "")
    return node.op, node.name, format_target(node.target), args, kwargs


COLOURS = {
    "placeholder": "33", "output": "33", "get_attr": "35",
    "call_module": "34", "call_function": "36", "call_method": "32",
}  # fmt: skip
"""The colours of opcodes, as numbers of terminals."""


def calls_in(graph: Graph) -> list[tuple[str, ...]]:
    """All nodes, those of bodies too, without what is known of their values: equal for programs that do the same."""
    return [row(node) for node in all_nodes(graph)]


def table(graph: Graph, colour: bool = False) -> str:
    """All nodes, aligned, under a header; with ``colour`` in those of a terminal."""
    nodes = list(graph.nodes)
    typed = any(node.value_type is not None for node in nodes)
    header = (*COLUMNS, "type") if typed else COLUMNS
    rows = [(*row(node), str(node.value_type or "")) if typed else row(node) for node in nodes]
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]
    rule = tuple("-" * width for width in widths)
    lines = [_aligned(cells, widths) for cells in (header, rule, *rows)]
    if colour:
        starts = widths[0] + 2 + widths[1]
        painted = (_painted(line, starts, COLOURS[node.op]) for line, node in zip(lines[2:], nodes, strict=True))
        lines = [f"\x1b[1m{lines[0]}\x1b[0m", f"\x1b[2m{lines[1]}\x1b[0m", *painted]
    return "\n".join(lines)


def _painted(line: str, start: int, colour: str) -> str:
    """A line with its opcode and name in a colour; control characters of names stay text."""
    plain = "".join(character if character.isprintable() else repr(character)[1:-1] for character in line)
    return f"\x1b[{colour}m{plain[:start]}\x1b[0m{plain[start:]}"


def wants_colour(stream: Any) -> bool:
    """Whether a stream is a terminal that shows colours; NO_COLOR and TERM=dumb say no."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    asked = getattr(stream, "isatty", None)
    return asked is not None and bool(asked())


def _aligned(cells: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
