"""Node: one step of a graph, in one of six opcodes.

| opcode        | target            | args, kwargs                 | value                                  |
|---------------|-------------------|------------------------------|----------------------------------------|
| placeholder   | parameter's name  | () or (default value,)       | an input                               |
| get_attr      | dotted path       | ()                           | an attribute of the root               |
| call_function | the function      | the function's               | target(*args, **kwargs)                |
| call_method   | the method's name | the object, then the method's| getattr(args[0], target)(*args[1:], ..)|
| call_module   | dotted path       | the module's                 | root.path(*args, **kwargs)             |
| output        | "output"          | (the result,)                | what the graph returns                 |

Always holds: ``a in b.users`` exactly when ``b`` appears in the arguments of ``a``. Every change of a field that
generated code depends on is announced to the graph, so that code follows by itself. At the end of the file: the nodes
of a graph in order, and how they are walked.
"""

from __future__ import annotations

import enum
import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from clew.errors import BadArgument, BadArgumentIndex, BadMeta, BadTarget, ErasedNode, ForeignNode, UnknownOpcode
from clew.ir.arguments import EMPTY_DICT, FLAT, Body, Reference, immutable_dict, immutable_list, map_arg, rebuilt_tuple
from clew.ir.effects import is_impure
from clew.ir.format import format_node, format_target
from clew.ir.guests import guest_of, module_guest
from clew.ir.source import SourceLine

if TYPE_CHECKING:
    from clew.ir.graph import Graph
    from clew.ir.types import Type


class Opcode(enum.StrEnum):
    """The six opcodes. A node's ``op`` is the plain string."""

    PLACEHOLDER = "placeholder"
    GET_ATTR = "get_attr"
    CALL_FUNCTION = "call_function"
    CALL_METHOD = "call_method"
    CALL_MODULE = "call_module"
    OUTPUT = "output"


OPCODES = frozenset(str(opcode.value) for opcode in Opcode)


def check_opcode(op: str, target: Any, name: str) -> None:
    """Raise unless ``op`` is one of the six opcodes and ``target`` fits it."""
    if op == "call_function":
        if not callable(target):
            raise BadTarget(
                f"node {name!r} has the target {target!r} of type {type(target).__name__}, but a Callable is expected",
                why="a call_function node calls its target",
                fixes=["pass the function itself; for the name of a method use call_method, for a path call_module"],
            )
    elif op not in OPCODES:
        raise UnknownOpcode(
            f"node {name!r} has the unknown opcode {op!r}", fixes=[f"use one of {', '.join(sorted(OPCODES))}"]
        )
    elif not isinstance(target, str):
        raise BadTarget(
            f"node {name!r} has the target {target!r} of type {type(target).__name__}, but a str is expected",
            why=f"the target of a {op} node is a name",
            fixes=["use call_function for a function"],
        )


# ---- attributes that users set ---------------------------------------------------------------------------------------


class FreeAttributes:
    """Attributes that users put on nodes besides the fields that nodes have: ``node.visited = True``.

    Nearly no node has any, so a node spends no room on a dictionary for them: the graph keeps them under their nodes.
    Nodes learn to look there when the first is set, because a ``__getattr__`` makes every read of a field slower.
    """

    __slots__ = ()

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """The attributes that users have set, of this node alone."""
        FreeAttributes.__getattr__ = _find  # type: ignore[attr-defined]
        kept: dict[str, Any] = self.graph._free_attributes.setdefault(self, {})  # type: ignore[attr-defined]
        return kept

    def __delattr__(self, name: str) -> None:
        if hasattr(type(self), name):
            object.__delattr__(self, name)
        elif name in self.__dict__:
            del self.__dict__[name]
        else:
            raise _missing(self, name)


def _find(node: Any, name: str) -> Any:
    """The free attribute of a node; asked only for what is no field of nodes."""
    kept = {} if name == "graph" else node.graph._free_attributes.get(node, {})
    if name in kept:
        return kept[name]
    raise _missing(node, name)


def _missing(node: Any, name: str) -> AttributeError:
    return AttributeError(f"{type(node).__name__!r} object has no attribute {name!r}", name=name, obj=node)


# ---- nodes -----------------------------------------------------------------------------------------------------------

_PLAIN = frozenset({int, float, bool, str, type(None), complex, bytes, type(...)})
_ANNOUNCED = frozenset({"op", "target", "type", "value_type"})


class NodeFields(Reference):
    """The fields of a node, without the announcing of changes; a node is born as this and then becomes a Node."""

    __slots__ = (
        "__weakref__",
        "_inputs",
        "_meta",
        "_next",
        "_position",
        "_prev",
        "args",
        "graph",
        "kwargs",
        "name",
        "op",
        "source",
        "target",
        "type",
        "users",
        "value_type",
    )

    graph: Graph
    op: str
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    type: Any
    users: dict[Node, None]
    value_type: Type | None
    source: SourceLine | None
    _inputs: tuple[Node, ...]
    _meta: dict[str, Any] | None
    _prev: Node
    _next: Node
    _position: int
    """The place in the graph, from 1, when it was last numbered; 0 for a node that was erased."""


_put: dict[str, Callable[[Any, Any], None]] = {
    field: getattr(NodeFields, field).__set__ for field in NodeFields.__slots__ if not field.startswith("__")
}
set_args, set_kwargs, set_inputs = _put["args"], _put["kwargs"], _put["_inputs"]
set_source, set_type, set_meta = _put["source"], _put["value_type"], _put["_meta"]
set_prev, set_next, set_position = _put["_prev"], _put["_next"], _put["_position"]


def make_node(
    graph: Graph,
    name: str,
    op: str,
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    annotation: Any = None,
    before: Node | None = None,
) -> Node:
    """A node in the list right before another, or in a list of its own; its inputs know it as a user already."""
    node: Any = NodeFields()
    node.graph = graph
    node.name = name
    node.op = op
    node.target = target
    node.type = annotation
    node.users = {}
    node.value_type = node.source = node._meta = None
    node._position = 1
    inputs: dict[Node, None] = {}
    node.args = frozen = freeze_tuple(args, inputs, graph)
    node.kwargs = freeze(kwargs, inputs, graph) if kwargs else EMPTY_DICT
    # Arguments that are nothing but different nodes are at the same time the inputs.
    node._inputs = args if frozen is args and not kwargs and len(inputs) == len(args) else tuple(inputs)
    if before is None:
        node._prev = node._next = node
        node.__class__ = Node
    else:
        previous = node._prev = before._prev
        node._next = before
        node.__class__ = Node
        set_next(previous, node)
        set_prev(before, node)
    for used in inputs:
        if used.graph is graph:
            used.users[node] = None
    result: Node = node
    return result


class Node(NodeFields, FreeAttributes):
    """One step of a graph. Assign ``args``, ``kwargs``, ``target``, ``op``, ``name`` freely: all accounts follow."""

    __slots__ = ()

    def __new__(
        cls,
        graph: Graph,
        name: str,
        op: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> Node:
        check_opcode(op, target, name)
        return make_node(graph, name, op, target, args, kwargs, return_type)

    def __setattr__(self, field: str, value: Any) -> None:
        if field == "args":
            replace_arguments(self, value, self.kwargs)
        elif field == "kwargs":
            replace_arguments(self, self.args, value)
        elif field == "name":
            self._rename(value)
        else:
            if field in _ANNOUNCED:
                self.graph._before_change(self, field, value)
            if hasattr(type(self), field):
                object.__setattr__(self, field, value)
            else:
                self.__dict__[field] = value

    def __repr__(self) -> str:
        return self.name

    def __lt__(self, other: Node) -> bool:
        return self._sort_key < other._sort_key

    def __le__(self, other: Node) -> bool:
        return self._sort_key <= other._sort_key

    def __gt__(self, other: Node) -> bool:
        return self._sort_key > other._sort_key

    def __ge__(self, other: Node) -> bool:
        return self._sort_key >= other._sort_key

    @property
    def _erased(self) -> bool:
        return not self._position

    @property
    def _sort_key(self) -> int:
        self.graph._number_nodes()
        return self._position

    @property
    def meta(self) -> dict[str, Any]:
        """Free room for passes: whatever they note about the node. Copied along with it."""
        if self._meta is None:
            object.__setattr__(self, "_meta", {})
        return self._meta  # type: ignore[return-value]

    @meta.setter
    def meta(self, value: dict[str, Any]) -> None:
        object.__setattr__(self, "_meta", value)

    @property
    def next(self) -> Node:
        """The next node of the graph, or its root (``op == "root"``) after the last."""
        return self._next

    @property
    def prev(self) -> Node:
        """The previous node of the graph, or its root before the first."""
        return self._prev

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes in ``args`` and then in ``kwargs``, each once."""
        return list(self._inputs)

    @property
    def _input_nodes(self) -> dict[Node, None]:
        return dict.fromkeys(self._inputs)

    @_input_nodes.setter
    def _input_nodes(self, nodes: Iterable[Node]) -> None:
        set_inputs(self, tuple(nodes))

    @property
    def stack_trace(self) -> str | None:
        """The stack recorded while tracing, innermost frame last; by default the one line of ``source``."""
        recorded = None if self._meta is None else self._meta.get("stack_trace")
        if recorded is not None:
            return str(recorded)
        return None if self.source is None else self.source.as_stack_trace()

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def prepend(self, x: Node) -> None:
        """Move ``x``, a node of the same graph, right before this one."""
        _check_same_graph(self, x)
        if x is not self:
            self.graph._link(x, self)

    def append(self, x: Node) -> None:
        """Move ``x``, a node of the same graph, right after this one."""
        _check_same_graph(self, x)
        if x is not self:
            self.graph._link(x, self._next if self._next is not x else x._next)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Put ``arg`` in the place of the existing positional argument ``idx``."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Insert ``arg`` before the positional argument ``idx``."""
        if not 0 <= idx <= len(self.args):
            raise BadArgumentIndex(
                f"node {self.name} has {len(self.args)} positional arguments, so none can be inserted at {idx}",
                fixes=[f"use an index between 0 and {len(self.args)}"],
            )
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set the keyword argument ``key`` to ``arg``."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Any) -> None:
        """Put ``new_input``, a node or any other argument, wherever ``old_input`` appears in the arguments."""
        if not isinstance(old_input, Node):
            raise BadArgument(f"replace_input_with on node {self.name} replaces a node, not {old_input!r}")
        if self.graph._watchers is not None:
            for watcher in self.graph._watchers.replaced:
                watcher(old=old_input, new=getattr(new_input, "name", new_input), user=self)
        if old_input in self._inputs:
            if isinstance(new_input, Node):
                swap_input(self, old_input, new_input)
            else:
                change = partial(_other_for, old_input, new_input)
                self.args, self.kwargs = map_arg(self.args, change), map_arg(self.kwargs, change)

    def replace_all_uses_with(
        self,
        replace_with: Any,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let the users of this node use ``replace_with``: all of them, or those that ``delete_user_cb`` accepts.

        With ``propagate_meta`` the replacement, which must have no ``meta`` of its own, takes over this node's.
        Returns the users that were changed.
        """
        if propagate_meta:
            if replace_with.meta:
                raise BadMeta(
                    f"{replace_with.name} has a meta of its own: {sorted(map(str, replace_with.meta))}",
                    why="propagate_meta=True would overwrite it",
                    fixes=["clear it first, or copy the keys you want yourself"],
                )
            replace_with.meta.update(self.meta)
        changed = list(self.users) if delete_user_cb is None else [user for user in self.users if delete_user_cb(user)]
        watchers = self.graph._watchers
        is_watched = watchers is not None and watchers.replaced
        exchange = _exchange_told if is_watched or not isinstance(replace_with, Node) else swap_input
        for user in changed:
            exchange(user, self, replace_with)
        return changed

    def is_impure(self, impure_random: bool = True) -> bool:
        """True when the node must stay even if unused: it writes, draws random numbers, or nobody knows."""
        return is_impure(self, impure_random)

    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """``(args, kwargs)`` matched to the target's signature with defaults filled in, or None if it has none."""
        if self.op not in ("call_function", "call_module"):
            return None
        guest = guest_of(self.target) if self.op == "call_function" else module_guest(root)
        guest = guest or module_guest(root)
        options = {
            "arg_types": arg_types,
            "kwarg_types": kwarg_types,
            "normalize_to_only_use_kwargs": normalize_to_only_use_kwargs,
        }
        return None if guest is None else guest.normalized_arguments(self, root, options)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """One line that tells all about the node."""
        return format_node(self)

    _pretty_print_target = staticmethod(format_target)

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            name = self.graph._names.create_name(candidate)
            self.graph._before_change(self, "name", name)
            if self.graph._watchers is not None:
                for watcher, user in itertools.product(self.graph._watchers.replaced, self.users):
                    watcher(old=self, new=name, user=user)
            object.__setattr__(self, "name", name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        twin: Node | None = memo.get(id(self))
        if twin is None:
            self.graph.__deepcopy__(memo)
            twin = memo[id(self)]
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        return _node_at, (self.graph, self._sort_key - 1)


FLAT.add(Node)


def _node_at(graph: Graph, index: int) -> Node:
    return list(graph.nodes)[index]


def freeze_tuple(args: Any, inputs: dict[Node, None], graph: Graph) -> tuple[Any, ...]:
    """The positional arguments made immutable; their nodes are noted in ``inputs``, graphs are told to ``graph``."""
    for item in args:
        kind = type(item)
        if kind is Node:
            inputs[item] = None
        elif kind not in _PLAIN:
            inputs_again: dict[Node, None] = {}
            frozen = tuple([freeze(item, inputs_again, graph) for item in args])
            inputs.update(inputs_again)
            return frozen
    return args if type(args) is tuple else tuple(args)


def freeze(value: Any, inputs: dict[Node, None], graph: Graph) -> Any:
    """A nest made immutable; nodes in it are noted in ``inputs``, graphs are told to ``graph``."""
    kind = type(value)
    if kind is Node:
        inputs[value] = None
    elif kind in _PLAIN:
        return value
    elif isinstance(value, tuple):
        return rebuilt_tuple(value, [freeze(item, inputs, graph) for item in value])
    elif isinstance(value, list):
        return immutable_list([freeze(item, inputs, graph) for item in value])
    elif isinstance(value, dict):
        return immutable_dict({key: freeze(item, inputs, graph) for key, item in value.items()})
    elif isinstance(value, slice):
        return slice(*(freeze(part, inputs, graph) for part in (value.start, value.stop, value.step)))
    elif isinstance(value, Body):
        graph._may_nest = True
    return value


def replace_arguments(node: Node, args: Any, kwargs: Any) -> None:
    """Give ``node`` other arguments and keep the accounts of users."""
    if not isinstance(args, (tuple, list)):
        raise BadArgument(
            f"args of node {node.name} must be a tuple, not {type(args).__name__}",
            fixes=["write (x,) for a single argument"],
        )
    inputs: dict[Node, None] = {}
    args = freeze_tuple(args, inputs, node.graph)
    kwargs = freeze(kwargs, inputs, node.graph) if kwargs else EMPTY_DICT
    node.graph._before_change(node, "args", args)
    for used in node._inputs:
        if used not in inputs:
            used.users.pop(node, None)
    for used in inputs:
        if used.graph is node.graph:
            used.users[node] = None
    set_args(node, args)
    set_kwargs(node, kwargs)
    set_inputs(node, tuple(inputs))


def swap_input(node: Node, old: Node, new: Node) -> None:
    """Put ``new`` where ``old`` stands in the arguments of ``node``; the nests stay frozen, so only nodes change."""
    node.graph._before_change(node, "args", None)
    set_args(node, _swapped(node.args, old, new))
    if node.kwargs:
        set_kwargs(node, _swapped(node.kwargs, old, new))
    inputs = tuple([new if used is old else used for used in node._inputs])
    if new in node._inputs:
        inputs = tuple(dict.fromkeys(inputs))
    set_inputs(node, inputs)
    old.users.pop(node, None)
    if new.graph is node.graph:
        new.users[node] = None


def _exchange_told(node: Node, old: Node, new: Any) -> None:
    node.replace_input_with(old, new)


def _other_for(old: Node, new: Any, used: Node) -> Any:
    return new if used is old else used


def _swapped(value: Any, old: Node, new: Node) -> Any:
    """The frozen nest with one node exchanged for another."""
    kind = type(value)
    if kind is tuple:
        items = [new if item is old else item if type(item) in FLAT else _swapped(item, old, new) for item in value]
        return tuple(items)
    if kind is Node:
        return new if value is old else value
    if kind in _PLAIN:
        return value
    if isinstance(value, tuple):
        return rebuilt_tuple(value, [_swapped(item, old, new) for item in value])
    if isinstance(value, list):
        return immutable_list([_swapped(item, old, new) for item in value])
    if isinstance(value, dict):
        return immutable_dict({key: _swapped(item, old, new) for key, item in value.items()})
    if isinstance(value, slice):
        return slice(*(_swapped(part, old, new) for part in (value.start, value.stop, value.step)))
    return value


def drop_inputs(node: Node) -> None:
    """Let go of all inputs of a node that is being erased: None stands in their places."""
    if not node._inputs:
        return
    node.graph._before_change(node, "args", None)
    if FLAT.issuperset(map(type, node.args)):
        set_args(node, tuple([None if type(item) is Node else item for item in node.args]))
    else:
        set_args(node, map_arg(node.args, _nothing))
    if node.kwargs:
        set_kwargs(node, map_arg(node.kwargs, _nothing))
    for used in node._inputs:
        used.users.pop(node, None)
    set_inputs(node, ())


def _nothing(node: Any) -> None:
    return None


def _check_same_graph(anchor: Node, moved: Node) -> None:
    if anchor.graph is not moved.graph:
        raise ForeignNode(
            f"{moved.name} cannot be moved next to {anchor.name}: they belong to different graphs",
            fixes=["copy it with graph.node_copy(node, arg_transform) first"],
        )
    for node in (anchor, moved):
        if node._erased:
            raise ErasedNode(f"node {node.name} was erased from its graph", fixes=["create a new node"])


# ---- the nodes of a graph in order -----------------------------------------------------------------------------------

# The nodes are linked, and a walk follows the links: erasing, inserting and moving nodes meanwhile is fine. A walk that
# reaches the end of a graph whose order has not changed meanwhile caches that order as a list. Until the next change
# walks follow the list, which is cheaper. A change empties it; a walk under way then goes on along the links from the
# node it stands on. So what a walk meets never depends on whether there is a list.

_FEW = 16
_SMALL = 32
"""Graphs with fewer nodes are walked along the links always, because to begin a walk along a list costs more."""


class NodeList:
    """The nodes of a graph in order. Erasing or inserting nodes while iterating is fine."""

    __slots__ = ("graph",)

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __len__(self) -> int:
        return self.graph._len

    def __contains__(self, node: object) -> bool:
        return isinstance(node, Node) and node.graph is self.graph and not node._erased and node.op != "root"

    def __iter__(self) -> Iterator[Node]:
        graph = self.graph
        if graph._len < _SMALL:
            return _along(graph._root)
        order = graph._order
        return order.walk() if order is not None and order.is_whole else _first_walk(graph)

    def __reversed__(self) -> Iterator[Node]:
        root = self.graph._root
        node = root._prev
        while node is not root:
            if node._position:  # else it was erased while somebody stood on the node after it
                yield node
            node = node._prev

    def __repr__(self) -> str:
        return f"[{', '.join(node.name for node in self)}]"


class Order(list[Node]):
    """All nodes of a graph in order if it ``is_whole``; true until the order changes, which empties it."""

    __slots__ = ("_marks", "_many", "is_numbered", "is_whole")

    def __init__(self) -> None:
        self.is_whole = False
        self.is_numbered = False
        self._marks: list[weakref.ref[_Mark]] = []
        self._many = _FEW

    def walk(self) -> Iterator[Node]:
        """The nodes, one after the other, also if the order changes meanwhile."""
        mark = _Mark(iter(self))
        if len(self._marks) >= self._many:  # what is left of walks that have ended
            self._marks = [reference for reference in self._marks if reference() is not None]
            self._many = _FEW + 2 * len(self._marks)
        self._marks.append(weakref.ref(mark))
        return chain(mark.steps, _onward(mark))

    def dissolve(self, graph: Graph) -> None:
        """The order of ``graph`` is about to change: walks under way learn where they stand, and this list is over."""
        graph._order = None
        if not self.is_whole:
            return
        for reference in self._marks:
            mark = reference()
            if mark is not None:
                place = len(self) - mark.steps.__length_hint__()
                mark.stands_on = self[place - 1] if place else graph._root
        self.clear()

    def number(self) -> None:
        """Let every node know its place."""
        if not self.is_numbered:
            for position, node in enumerate(self, start=1):
                set_position(node, position)
            self.is_numbered = True


class _Mark:
    """One walk along a list: its steps, and the node it stood on when the list was over."""

    __slots__ = ("__weakref__", "stands_on", "steps")

    def __init__(self, steps: Any) -> None:
        self.steps = steps
        self.stands_on: Node | None = None


def order_of(graph: Graph) -> Order:
    """The nodes of a graph in order, to be looked at only, and only until the graph changes."""
    order = graph._order
    if order is None or not order.is_whole:
        order = graph._order = Order()
        note = order.append
        root = graph._root
        node = root._next
        while node is not root:
            note(node)
            node = node._next
        order.is_whole = True
    return order


def listed(graph: Graph) -> list[Node]:
    """The nodes of a graph in order, in a list of one's own."""
    return order_of(graph).copy()


def _first_walk(graph: Graph) -> Iterator[Node]:
    """Along the links from the first node on, noting the order; along the list, if there is one by now."""
    if graph._order is not None and graph._order.is_whole:
        yield from graph._order.walk()
        return
    order = graph._order = Order()
    root = graph._root
    node = root._next
    while node is not root:
        if node._position:  # else it was erased while somebody stood on the node before it
            order.append(node)
            yield node
        node = node._next
    if graph._order is order:  # which a change would have taken away
        order.is_whole = True


def _onward(mark: _Mark) -> Iterator[Node]:
    """Along the links from where a walk stood when its list was over; nothing if it came to the end before."""
    if mark.stands_on is not None:
        yield from _along(mark.stands_on)


def _along(node: Node) -> Iterator[Node]:
    """The nodes behind ``node``, or all if it is the root, whatever happens to them meanwhile."""
    root = node.graph._root
    node = node._next
    while node is not root:
        if node._position:  # else it was erased while somebody stood on the node before it
            yield node
        node = node._next
