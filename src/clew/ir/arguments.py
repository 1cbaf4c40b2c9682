"""Arguments of nodes: what they may hold, how to walk them, and the graphs among them.

In come the nests that users write (lists, tuples, dicts, slices, ranges of nodes and plain values); out come the same
nests with lists and dicts made immutable, because a node must hear of every change of its arguments. Walking never
enters a nested graph: a body's arguments are its own nodes, and only its attributes are those of the outermost graph's
root. ``bodies_of``, ``nested_graphs`` and ``all_nodes`` are for those who want to go inside.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from operator import attrgetter
from typing import Any, NoReturn

from clew import tree

Argument = Any
"""What a node may take: a Node, a Graph, a plain value, or a nest of these in tuples, lists, dicts, slices, ranges."""

Target = Callable[..., Any] | str
"""What a node calls or names: a function for call_function, a string for all other opcodes."""

BASE_TYPES = (str, int, float, bool, complex, bytes, type(None), type(...))
"""Plain values that every graph may hold; a framework adds its own (dtypes, devices) when it wakes."""

_ADVICE = "build new arguments and assign them to the node: node.args = new_args, node.kwargs = new_kwargs"


class ImmutableError(NotImplementedError, TypeError):
    """An argument of a node was to be changed in place."""


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise ImmutableError(f"'{type(self).__name__}' object does not support mutation: {_ADVICE}")


class immutable_list(list):  # type: ignore[type-arg]
    """A list that refuses to change; it compares, slices and copies like a list."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return immutable_list, (tuple(self),)

    def __deepcopy__(self, memo: dict[int, Any]) -> immutable_list:
        return immutable_list([copy.deepcopy(item, memo) for item in self])


class immutable_dict(dict):  # type: ignore[type-arg]
    """A dict that refuses to change; it compares and copies like a dict."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return immutable_dict, (tuple(self.items()),)

    def __deepcopy__(self, memo: dict[int, Any]) -> immutable_dict:
        return immutable_dict({key: copy.deepcopy(value, memo) for key, value in self.items()})


tree.register(immutable_list, lambda nest: (tuple(nest), None), lambda context, items: immutable_list(items))
tree.register(
    immutable_dict,
    lambda nest: (tuple(nest.values()), tuple(nest)),
    lambda keys, items: immutable_dict(zip(keys, items, strict=True)),
)

EMPTY_DICT: immutable_dict = immutable_dict()


def rebuilt_tuple(original: Any, items: list[Any]) -> Any:
    """A tuple, named tuple or other kind of tuple like ``original`` with other items."""
    if type(original) is tuple:
        return tuple(items)
    if hasattr(original, "_make"):  # which leaves out what a class of its own does when it is made
        return type(original)._make(items)
    return type(original)(*items) if hasattr(original, "_fields") else type(original)(items)


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Apply ``fn`` to every leaf of the nest ``a``; lists and dicts of the result are immutable."""
    if not isinstance(a, (tuple, list, dict, slice)):
        return fn(a)
    if isinstance(a, tuple):
        return rebuilt_tuple(a, [map_aggregate(item, fn) for item in a])
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in a.items()})
    return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))


def is_leaf(value: object) -> bool:
    """True when ``map_aggregate`` would hand this value to its function as it is."""
    return not isinstance(value, (tuple, list, dict, slice))


def leaves(a: Any) -> Iterable[Any]:
    """The leaves of the nest ``a`` from left to right, without recursion on the caller's stack for flat nests."""
    if isinstance(a, (tuple, list)):
        for item in a:
            if is_leaf(item):
                yield item
            else:
                yield from leaves(item)
    elif isinstance(a, dict):
        for item in a.values():
            yield from leaves(item)
    elif isinstance(a, slice):
        yield from leaves((a.start, a.stop, a.step))
    else:
        yield a


class Reference:
    """The mark of what stands, inside an argument, for the value of another node: Node derives from it."""

    __slots__ = ()
    name: str


class Body:
    """The mark of a program that stands inside an argument as a value: Graph derives from it."""

    __slots__ = ()


def map_arg(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Apply ``fn`` to every node in the nest ``a``; all other leaves stay."""
    if not callable(fn):
        raise AssertionError(f"map_arg(a, fn) needs a function as fn, not {fn!r}")
    return _with_references(a, fn)


def _with_references(a: Any, fn: Callable[[Any], Any]) -> Any:
    if isinstance(a, Reference):
        return fn(a)
    if type(a) in FLAT:
        return a
    if type(a) is tuple:
        return tuple([_with_references(item, fn) for item in a])
    return a if is_leaf(a) else map_aggregate(a, lambda leaf: fn(leaf) if isinstance(leaf, Reference) else leaf)


def references(a: Any) -> list[Any]:
    """The nodes in the nest ``a``, each once, in the order of their first appearance."""
    return list(dict.fromkeys(leaf for leaf in leaves(a) if isinstance(leaf, Reference)))


# ---- graphs among arguments ------------------------------------------------------------------------------------------

FLAT: set[type] = {int, float, bool, str, type(None)}
"""Classes of arguments that hold no graph for certain; the class of nodes is added where it is defined."""


def bodies_of(node: Any) -> list[Any]:
    """The graphs among the arguments of a node, each once, in order."""
    args, kwargs = node.args, node.kwargs
    if FLAT.issuperset(map(type, args)) and not kwargs:
        return []
    found: list[Any] = []
    for argument in (*args, *kwargs.values()):
        if isinstance(argument, Reference) or type(argument) in FLAT:
            continue
        for leaf in leaves(argument):
            if isinstance(leaf, Body) and not any(leaf is body for body in found):
                found.append(leaf)
    return found


def with_bodies(nodes: Iterable[Any]) -> list[tuple[Any, list[Any]]]:
    """The nodes that have graphs among their arguments, in order, and these graphs; a quick walk, as they are few."""
    nodes = nodes if isinstance(nodes, list) else list(nodes)
    is_flat = FLAT.issuperset
    arguments = chain.from_iterable([node.args for node in nodes])
    if is_flat(map(type, arguments)) and not any(map(attrgetter("kwargs"), nodes)):
        return []
    candidates = [node for node in nodes if node.kwargs or not is_flat(map(type, node.args))]
    found = [(node, bodies_of(node)) for node in candidates]
    return [(node, bodies) for node, bodies in found if bodies]


def nested_graphs(graph: Any) -> Iterator[Any]:
    """All graphs inside a graph, at any depth, each once."""
    seen: set[int] = set()
    waiting = [graph]
    while waiting:
        around = waiting.pop()
        for _, bodies in with_bodies(around.nodes) if around._may_nest else ():
            for body in bodies:
                if id(body) not in seen:
                    seen.add(id(body))
                    waiting.append(body)
                    yield body


def all_with_bodies(graph: Any) -> Iterator[tuple[Any, list[Any]]]:
    """The nodes of a graph, and of those inside it, that have graphs among their arguments, and these graphs."""
    if graph._may_nest:
        for around in (graph, *nested_graphs(graph)):
            yield from with_bodies(around.nodes)


def all_nodes(graph: Any) -> Iterator[Any]:
    """The nodes of a graph, then those of the graphs inside it."""
    yield from graph.nodes
    for body in nested_graphs(graph):
        yield from body.nodes
