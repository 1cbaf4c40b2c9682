"""Which nodes are written inside of the statement that uses them: ``while x.norm() > 1:`` instead of three lines.

For code that runs (``tree_before``): a node and one of its arguments come in; out come the nodes right before it that
make this argument and nothing else. For code that is shown to people (``inlined_for_reading``): the nodes of a block
come in; out come those that have no line of their own, because they are sizes, facts and attributes, or values without
a name of the user's that the next statement alone uses. Always holds: an expression computes its nodes in the very
order in which they stand, and stays short.
"""

from __future__ import annotations

import keyword
import operator
import re
from collections.abc import Collection, Iterable
from typing import Any

from clew.codegen.scope import Scope
from clew.codegen.statements import SHOWN, expression, is_operator, makes_statement, statement
from clew.ir.arguments import bodies_of, leaves, references
from clew.ir.control_flow import is_control
from clew.ir.effects import may_reshape, sets_state
from clew.ir.graph import Graph
from clew.ir.names import snake_case
from clew.ir.node import Node
from clew.ir.types import ScalarType

_MOST = 6
"""More operations than that are no longer easy to read in one line."""


def tree_before(user: Node, value: Any, bound: Collection[Node] = ()) -> list[Node]:
    """The nodes that are written where ``user`` has ``value``, the last one first; those ``bound`` have variables."""
    found: list[Node] = []
    waiting: list[tuple[Any, Node]] = [(value, user)]
    node = user._prev
    while waiting and len(found) < _MOST:
        wanted, reader = waiting.pop()
        if wanted is node and node not in bound and can_be_inside(node, reader):
            found.append(node)
            waiting += [(leaf, node) for leaf in leaves((node.args, node.kwargs)) if isinstance(leaf, Node)]
            node = node._prev
    return found


def can_be_inside(node: Node, user: Node) -> bool:
    """Whether a node can be written as a part of the statement of its only user."""
    if node.op in ("placeholder", "output", "root") or node.type is not None or list(node.users) != [user]:
        return False
    if sum(leaf is node for leaf in leaves((user.args, user.kwargs))) != 1 or bodies_of(node):
        return False
    if node.op == "call_method" and node.target in ("__enter__", "__exit__"):
        return False
    return not is_control(node) and not is_item_of_control(node) and not makes_statement(node)


def is_item_of_control(node: Node) -> bool:
    """True for a node that takes apart what a branch or a loop returns: it may have no statement of its own."""
    if node.target is not operator.getitem or not node.args:
        return False
    return isinstance(node.args[0], Node) and is_control(node.args[0])


def write_inside(nodes: list[Node], scope: Scope, root: str) -> None:
    """Let the nodes of a tree be written where they are used."""
    for node in reversed(nodes):
        scope.write_inline(node, expression(node, scope, root), is_operator(node))


# ---- code for reading ------------------------------------------------------------------------------------------------

_WIDTH = 108
_FACTS = frozenset({"shape", "dtype", "device", "ndim"})
_NUMBERED = re.compile(r"_\d+$")


def inlined_for_reading(nodes: list[Node], fixed: Collection[Node], scope: Scope, root: str) -> set[Node]:
    """Let values be written where they are used; those that are, and have no statement, come out.

    ``fixed`` are the nodes that are written in ways of their own, branches for one, and so are the values they use.
    """
    kept = {*fixed, *(used for node in fixed for used in node.all_input_nodes)}
    reads = _reads(nodes, kept, scope, root)
    found = set(reads)
    for node in reversed(nodes):
        if node not in found and node not in fixed and node.op != "placeholder":
            found |= _tree(node, kept | found, reads, scope, root)
    return found


def _reads(nodes: list[Node], kept: set[Node], scope: Scope, root: str) -> set[Node]:
    """Sizes, facts and attributes, which are the same wherever they are read."""
    if any(map(may_reshape, nodes)):
        return set()
    names_set = {_name_set(node) for node in nodes if _sets(node)}
    found: set[Node] = set()
    for node in nodes:
        is_outside = node.op == "get_attr" or (node.target in SHOWN and not isinstance(node.args[0], type))
        is_outside = is_outside and not node.all_input_nodes and not _is_among(node, names_set)
        is_read = is_outside or _is_fact(node) or _is_size(node, found)
        if is_read and node.users and node not in kept and node.type is None:
            scope.write_inline(node, expression(node, scope, root), is_operator(node))
            found.add(node)
    return found


def _sets(node: Node) -> bool:
    """Whether a node sets an attribute: then those are read where the program reads them."""
    target: Any = node.target
    return node.op == "call_function" and (target is setattr or target is delattr or sets_state(target))


def _name_set(node: Node) -> str:
    """The name of the attribute that a node sets, whatever object has it; empty where that is not known."""
    path = node.args[1] if len(node.args) > 1 else None
    return path.rpartition(".")[2] if isinstance(path, str) else ""


def _is_among(node: Node, names_set: set[str]) -> bool:
    """Whether one of these names is on the way to an attribute that a node reads."""
    return bool(names_set) and ("" in names_set or not names_set.isdisjoint(str(node.target).split(".")))


def _is_fact(node: Node) -> bool:
    return node.target is getattr and not node.kwargs and len(node.args) == 2 and node.args[1] in _FACTS


def _is_size(node: Node, read: set[Node]) -> bool:
    """A size, or a short calculation with sizes that one statement uses."""
    if node.op != "call_function" or node.kwargs or is_item_of_control(node):
        return False
    if node.target is operator.getitem and len(node.args) == 2:
        return node.args[0] in read and _is_fact(node.args[0]) and not list(references(node.args[1]))
    is_number = isinstance(node.value_type, ScalarType) and is_operator(node) and len(node.users) == 1
    return is_number and all(not isinstance(part, Node) or part in read for part in node.args)


def _tree(user: Node, kept: set[Node], reads: set[Node], scope: Scope, root: str) -> set[Node]:
    """The values right before a statement that it alone uses, if it stays short with them; ``reads``, which are written
    elsewhere, may stand in between."""
    found: list[Node] = []
    waiting = [(used, user) for used in references((user.args, user.kwargs))]
    node = user._prev
    while waiting and len(found) < _MOST:
        wanted, reader = waiting.pop()
        while node in reads:
            node = node._prev
        if wanted is node and node not in kept and _is_unnamed(node) and can_be_inside(node, reader):
            found.append(node)
            waiting += [(used, node) for used in references((node.args, node.kwargs))]
            node = node._prev
    if user.op == "output" and found:  # a result that is made there stands in the ``return``, however long
        found = found[:1] if _width(user, scope, root) + _length(found[0], scope, root) > _WIDTH else found
    while found:
        for part in reversed(found):
            scope.write_inline(part, expression(part, scope, root), is_operator(part))
        if _width(user, scope, root) <= _WIDTH or (user.op == "output" and len(found) == 1):
            break
        scope.forget_inline(found.pop())
    return set(found)


def _length(node: Node, scope: Scope, root: str) -> int:
    return len(expression(node, scope, root))


def _width(user: Node, scope: Scope, root: str) -> int:
    if user.op == "output":
        return len(scope.spell(user.args[0])) + len("    return ") if user.args else 0
    return len(statement(user, scope, root)) + 4


def _is_unnamed(node: Node) -> bool:
    """Whether a node is called after what it computes, and not like a variable of the user's."""
    makes = node.target in SHOWN and isinstance(node.args[0], type)  # shown as a call of the class
    own = snake_case(node.args[0].__name__) if makes else re.sub(r"\W", "_", Graph._target_to_str(node.target))
    return _NUMBERED.sub("", node.name) == _NUMBERED.sub("", own)


def renamed_for_reading(nodes: list[Node], inlined: set[Node], fixed: Collection[Node], scope: Scope) -> None:
    """Let a value have the name of an earlier one that nobody reads any more: ``x = f(x)``, as the user wrote it; or
    that name with the smallest number that is free, so that equal layers read the same.

    ``fixed`` are values that other statements set or read, under the names that they have. What was ``inlined`` is so
    no longer: with the new names, which are shorter, more of it fits into a line.
    """
    places = {node: place for place, node in enumerate(nodes)}
    last = _last_reads(nodes, inlined, places)
    owners = {scope.locals.name(node): node for node in nodes if node.op == "placeholder"}
    known = {scope.locals.name(node) for node in nodes}
    families = _families(known)
    set_elsewhere = {scope.locals.name(node) for node in nodes if node in fixed}

    def is_free(name: str, node: Node) -> bool:
        owner = owners.get(name)
        return name not in set_elsewhere if owner is None else last.get(owner, -1) <= places[node]

    for node in nodes:
        if node.op in ("placeholder", "output") or node in inlined or not node.users:
            continue
        name = scope.locals.name(node)
        if node in fixed:
            owners[name] = node
            continue
        stem = _last_word(node, known, scope)
        is_path = node.op in ("call_module", "get_attr") and _is_unnamed(node)  # whose numbers mean something
        names = [stem] if stem else [] if is_path else families[_NUMBERED.sub("", name)]
        wanted = next((one for one in (*names, name) if is_free(one, node)), None) or scope.locals.fresh(name)
        if wanted != name:
            scope.locals.rename(node, wanted)
        owners[wanted] = node
    for node in inlined:
        scope.forget_inline(node)
        if scope.locals.name(node) in owners:
            scope.locals.rename(node, scope.locals.fresh(node.name))


def _families(names: Iterable[str]) -> dict[str, list[str]]:
    """The names that differ in their numbers alone, the smallest numbers first."""
    found: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda name: (len(name), name)):
        found.setdefault(_NUMBERED.sub("", name), []).append(name)
    return found


def _last_word(node: Node, known: set[str], scope: Scope) -> str:
    """The last word of the path of a module, for what it gives, where the node is called after all of the path."""
    word = str(node.target).rpartition(".")[2] if node.op == "call_module" and _is_unnamed(node) else ""
    if not word.isidentifier() or (word not in known and (keyword.iskeyword(word) or word in scope.names)):
        return ""
    scope.names.reserve(word)
    known.add(word)
    return word


def _last_reads(nodes: list[Node], inlined: set[Node], places: dict[Node, int]) -> dict[Node, int]:
    """The place of the last statement that reads each value, itself or inside of what is written there."""
    last: dict[Node, int] = {}
    for node in reversed(nodes):
        place = last.get(node, places[node]) if node in inlined else places[node]
        for used in node.all_input_nodes:
            last[used] = max(last.get(used, -1), place)
    return last


_WIDEST = 112


def wrapped(text: str) -> str:
    """A statement that is too long, with the arguments of its outermost call in lines of their own."""
    start = text.find("(")
    if len(text) <= _WIDEST or start < 0 or text[-1] != ")" or "\n" in text:
        return text
    parts, depth, begin, quote = [], 0, start + 1, ""
    for place in range(start + 1, len(text) - 1):
        one = text[place]
        if quote:
            quote = "" if one == quote and text[place - 1] != "\\" else quote
        elif one in "'\"":
            quote = one
        elif one in ")]}" and depth == 0:
            return text  # this call is not the outermost one
        else:
            depth += (one in "([{") - (one in ")]}")
            if one == "," and depth == 0:
                parts.append(text[begin:place].strip())
                begin = place + 1
    parts.append(text[begin:-1].strip())
    lines, line = [], "   "
    for part in parts:
        if len(line) + len(part) + 2 > _WIDEST and line.strip():
            lines.append(line)
            line = "   "
        line += f" {part},"
    return "\n".join([text[: start + 1], *lines, line if lines else line[:-1], ")"])
