"""Graph: an ordered list of nodes, which is a program of one basic block, and the guards it relies on.

The nodes form a doubly linked list closed by a root, so that inserting, moving and erasing cost what they touch and
nothing more. A graph is data: checking is in ``verify``, text in ``text``, Python in the room ``codegen``; methods
that torch.fx's users expect here are thin calls of those. A graph knows where new nodes go (``InsertPoint``) and tells
whoever asked of each edit (``Watchers``); whoever holds code made of the graph listens for changes.
"""

from __future__ import annotations

import copy
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar

from clew.errors import CodegenError, ErasedNode, ForeignNode, OutputCount, StillUsed
from clew.ir.arguments import FLAT, Body, map_aggregate, map_arg, nested_graphs, with_bodies
from clew.ir.effects import is_impure, resolve
from clew.ir.format import listing, table, wants_colour
from clew.ir.gc_pause import CollectorPaused
from clew.ir.guards import Carried, Guard, Guards
from clew.ir.module_calls import find
from clew.ir.names import Memo, Namespace, snake_case
from clew.ir.node import (
    Node,
    NodeList,
    Order,
    check_opcode,
    drop_inputs,
    make_node,
    order_of,
    set_meta,
    set_next,
    set_position,
    set_prev,
    set_source,
    set_type,
)
from clew.ir.pickling import pack, unpack
from clew.ir.verify import verify

if TYPE_CHECKING:
    from clew.ir.node import Node


class NoDefault:
    """The mark of an input without a default value, since None may be one."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT = NoDefault()


class InsertPoint:
    """Where new nodes go, from the moment it is made until the end of the ``with`` block, if it is used as one."""

    __slots__ = ("_before", "_graph")

    def __init__(self, graph: Graph, anchor: Node, after: bool) -> None:
        self._graph = graph
        self._before = (graph._anchor, graph._after)
        graph._anchor, graph._after = anchor, after

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._graph._anchor, self._graph._after = self._before


@dataclass
class Watchers:
    """Functions that are told of single edits: of nodes made, erased, and exchanged for another in a user."""

    created: list[Callable[[Node], Any]] = field(default_factory=list)
    erased: list[Callable[[Node], Any]] = field(default_factory=list)
    replaced: list[Callable[..., Any]] = field(default_factory=list)


SHOWN_IN_REPR = 100
"""How many nodes ``repr`` shows of a graph; ``str`` shows all."""


class Graph(Body):
    """A program as a list of nodes; ``owning_module`` is what paths of get_attr and call_module nodes refer to."""

    default_codegen: ClassVar[Callable[[], Any] | None] = None
    viewer: ClassVar[Callable[..., Any] | None] = None
    """What draws graphs: it stands in a later room, which ``clew`` announces here."""
    _may_nest = False
    """True once a graph has stood among the arguments of a node."""
    _guards: tuple[Guard, ...] = ()
    """The assumptions that are checked before the program runs."""
    _code_guards: tuple[Guard, ...] = ()
    """Those on the code of the captured program itself: checked first, as long as its functions are in this process,
    and listed, written and saved nowhere."""
    _copied_inputs: dict[Node, Node] | None = None
    """Inputs of graphs with guards, and those that stand for them here; None before there is one."""

    def __init__(
        self,
        owning_module: Any = None,
        tracer_cls: type | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root: Node = make_node(self, "", "root", "", (), {})
        self._anchor: Node = self._root
        self._after = False
        self._watchers: Watchers | None = None
        self._len = 0
        self._names = Namespace()
        self._listeners: list[Callable[[], None]] = []
        self._index: dict[str, dict[Node, None]] | None = None
        self._order: Order | None = None
        self._free_attributes: dict[Node, dict[str, Any]] = {}
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._chosen_codegen: Any = None

    # ---- looking -------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> NodeList:
        """The nodes in order."""
        return NodeList(self)

    @property
    def owning_module(self) -> Any:
        """The module, or other root object, whose attributes the graph refers to; None for a graph on its own."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module: Any) -> None:
        self._owning_module = module

    @property
    def _graph_namespace(self) -> Namespace:
        return self._names

    @property
    def guards(self) -> Guards:
        """The assumptions of the graph: those checked before it runs, then those on values that it computes."""
        return Guards(self)

    @guards.setter
    def guards(self, guards: Iterable[Guard]) -> None:
        self.set_guards(tuple(guards))

    def set_guards(self, guards: tuple[Guard, ...]) -> None:
        """Let these be checked before the program runs, and no others."""
        self._guards = guards
        self._announce()

    def output_node(self) -> Node:
        """The output node; an error if there is none."""
        last = self._root._prev
        if last.op == "output":
            return last
        outputs = self.find_nodes(op="output")
        if not outputs:
            raise OutputCount("this graph has no output node", fixes=["add one with graph.output(value)"])
        return outputs[0]

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """All nodes of an opcode, and of a target if one is given, in the order of the graph."""
        if self._index is None:
            self._index = {}
            for node in self.nodes:
                self._index.setdefault(node.op, {})[node] = None
        found = [node for node in self._index.get(op, ()) if target is None or node.target == target]
        if sort:
            found.sort(key=lambda node: node._sort_key)
        return found

    @property
    def _find_nodes_lookup_table(self) -> NodeList:
        return NodeList(self)

    def find(
        self,
        *,
        module: str | None = None,
        op: Any = None,
        kind: type | str | None = None,
        line: str | int | None = None,
        name: str | None = None,
    ) -> list[Node]:
        """All nodes, also of nested graphs, that meet each condition given: inside of a module whose path is like
        ``module`` (``layer3.*``) or whose class, or its name, is ``kind``; doing ``op``, a function however it is
        spelled, a class of modules or the name of an operation; of a source line (``model.py:12``); of a name, or
        variable, of the user."""
        return find(self, module, op, kind, line, name)

    def _number_nodes(self) -> None:
        """Let every node know its place; done anew only when the order has changed since."""
        order_of(self).number()

    # ---- changing ------------------------------------------------------------------------------------------------

    def _before_change(self, node: Node, field: str, value: Any) -> None:
        """Called by nodes ahead of a change that generated code depends on."""
        if self._listeners:
            self._announce()
        if self._index is not None and field in ("op", "target"):
            self._index = None

    def _announce(self) -> None:
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener()

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` once, at the next change of this graph or of one inside it."""
        self._listeners.append(listener)
        for body in nested_graphs(self):
            if self._announce not in body._listeners:
                body._listeners.append(self._announce)

    def _link(self, node: Node, before: Node) -> None:
        """Put ``node`` right before ``before``, taking it out of where it was."""
        if node is before:
            return
        set_next(node._prev, node._next)
        set_prev(node._next, node._prev)
        previous = before._prev
        set_prev(node, previous)
        set_next(node, before)
        set_next(previous, node)
        set_prev(before, node)
        if self._order is not None:
            self._order.dissolve(self)
        if self._listeners:
            self._announce()

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node at the insertion point; its name is made unique, after ``name`` or the target."""
        if args is None:
            args = ()
        elif not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, not {type(args).__name__}")
        if kwargs is not None and not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, not {type(kwargs).__name__}")
        try:
            candidate = _candidates[target] if name is None else name
        except TypeError:  # a callable without a hash
            candidate = self._target_to_str(target)
        if op != "call_function" or not callable(target):
            check_opcode(op, target, candidate)
        before = self._anchor._next if self._after else self._anchor
        node = make_node(self, self._names.create_name(candidate), op, target, args, kwargs, type_expr, before)
        self._len += 1
        if self._order is not None:
            self._order.dissolve(self)
        if self._listeners:
            self._announce()
        if self._index is not None:
            self._index.setdefault(op, {})[node] = None
        if self._watchers is not None:
            for watcher in self._watchers.created:
                watcher(node)
        return node

    def _append_exact(
        self, op: str, name: str, target: Any, args: tuple[Any, ...], kwargs: Any, type_expr: Any = None
    ) -> Node:
        """Add a node at the end under this very name, which no other node of the graph bears: for faithful copies."""
        node = make_node(self, name, op, target, args, kwargs, type_expr, self._root)
        self._names.reserve(name)
        self._len += 1
        if self._order is not None:
            self._order.dissolve(self)
        if self._index is not None:
            self._index.setdefault(op, {})[node] = None
        return node

    @staticmethod
    def _target_to_str(target: Any) -> str:
        try:
            return _candidates[target]
        except TypeError:  # a callable without a hash
            return snake_case(type(target).__name__)

    def erase_node(self, to_erase: Node) -> None:
        """Take a node without users out of the graph."""
        if to_erase.users:
            users = ", ".join(user.name for user in to_erase.users)
            count = len(to_erase.users)
            raise StillUsed(
                f"Tried to erase Node {to_erase.name} but it still had {count} users in the graph: {users}",
                fixes=["node.replace_all_uses_with(other) first, or erase the users before it"],
            )
        if to_erase.graph is not self:
            raise ForeignNode(f"node {to_erase.name} is of another graph: this is the wrong graph to erase it from")
        if self._guards and to_erase.op == "placeholder":
            self._check_unguarded(to_erase)
        if to_erase._erased:
            warnings.warn(f"node {to_erase.name} is already erased", stacklevel=2)
            return
        set_next(to_erase._prev, to_erase._next)
        set_prev(to_erase._next, to_erase._prev)
        set_position(to_erase, 0)
        if self._anchor is to_erase:
            self._anchor = to_erase._prev if self._after else to_erase._next
        if self._watchers is not None:
            for watcher in self._watchers.erased:
                watcher(to_erase)
        self._len -= 1
        if self._order is not None:
            self._order.dissolve(self)
        if self._index is not None:
            self._index[to_erase.op].pop(to_erase, None)
        drop_inputs(to_erase)

    def _check_unguarded(self, node: Node) -> None:
        """Raise if a guard reads the input that is to be erased."""
        reading = next((one for one in self._guards if node in one.inputs), None)
        if reading is not None:
            raise StillUsed(
                f"Tried to erase the input {node.name}, which the guard {reading} reads",
                fixes=[f"drop the guard first: graph.guards.drop(subject={node.name!r})"],
            )

    def inserting_before(self, n: Node | None = None) -> InsertPoint:
        """From now on, or inside a ``with``, new nodes go before ``n`` (at the front of all without ``n``)."""
        return self.inserting_after(self._root) if n is None else InsertPoint(self, self._own(n), after=False)

    def inserting_after(self, n: Node | None = None) -> InsertPoint:
        """From now on, or inside a ``with``, each new node goes right after ``n`` (to the end without ``n``).

        Of several nodes made there the last one made stands first, as in torch.fx.
        """
        return self.inserting_before(self._root) if n is None else InsertPoint(self, self._own(n), after=True)

    def _own(self, node: Node) -> Node:
        if node.graph is not self:
            raise ForeignNode(f"node {node.name} is not in graph: it belongs to another one")
        if node._erased:
            raise ErasedNode(f"node {node.name} was erased, so nothing can be inserted there")
        return node

    # ---- one method an opcode ------------------------------------------------------------------------------------

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = NO_DEFAULT) -> Node:
        """Add an input."""
        args = () if default_value is NO_DEFAULT or default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add the reading of an attribute of the root, given by its dotted path."""
        if self._owning_module is not None and resolve(self._owning_module, qualified_name) is None:
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule: "
                f"{qualified_name!r} is no attribute of it yet; set it before the graph runs",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of the submodule at the dotted path ``module_name``."""
        if self._owning_module is not None and resolve(self._owning_module, module_name) is None:
            warnings.warn(
                "Attempted to insert a call_module Node with no underlying reference in the owning GraphModule: "
                f"{module_name!r} is no submodule of it yet; add_submodule it before the graph runs",
                stacklevel=2,
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of the method ``method_name`` of ``args[0]``."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Add a call of ``the_function``."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Add the output: what the graph returns."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    # ---- copying -------------------------------------------------------------------------------------------------

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Add a copy of a node of any graph; ``arg_transform`` gives for each of its inputs the one to use here.

        What the other graph assumes of inputs that have a copy here, this one assumes from then on.
        """
        carried = Carried(node, arg_transform) if node.graph._guards and node.graph is not self else None
        transform = arg_transform if carried is None else carried.transform
        args = map_arg(node.args, transform)
        kwargs = map_arg(node.kwargs, transform)
        twin = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        add_notes(node, twin)
        if carried is not None:
            carried.carry_to(twin)
        return twin

    def graph_copy(self, g: Graph, val_map: dict[Node, Any], return_output_node: bool = False) -> Any:
        """Add copies of all nodes of ``g`` that ``val_map`` does not name; returns what ``g``'s output becomes here."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        twin = type(self)(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        memo[id(self)] = twin
        twin._chosen_codegen = copy.deepcopy(self._chosen_codegen, memo)
        twins: dict[Any, Any] = {}

        def translate(leaf: Any) -> Any:
            if isinstance(leaf, Node):
                return twins.get(leaf, leaf)
            return copy.deepcopy(leaf, memo) if is_graph(leaf) else memo.get(id(leaf), leaf)

        with CollectorPaused():
            for node in self.nodes:
                is_flat = FLAT.issuperset(map(type, node.args))
                args = tuple(map(translate, node.args)) if is_flat else map_aggregate(node.args, translate)
                kwargs = map_aggregate(node.kwargs, translate) if node.kwargs else None
                copied = twins[node] = twin._append_exact(node.op, node.name, node.target, args, kwargs, node.type)
                memo[id(node)] = copied
                add_notes(node, copied)
        twin._names = self._names.copy()
        twin._guards = tuple(one.translated(translate) for one in self._guards)
        twin._code_guards = self._code_guards
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        return unpack, pack(self)

    # ---- torch.fx's names for what other files do ----------------------------------------------------------------

    def lint(self) -> None:
        """Raise an error that names the node if the graph breaks a rule of the IR."""
        verify(self)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase nodes that nobody uses and that have no effect; True if there were any."""
        verify(self)
        must_stay = is_impure if is_impure_node is None else is_impure_node
        before = self._len
        for node in reversed(self.nodes):
            if not node.users and node.op != "output" and not must_stay(node):
                self.erase_node(node)
        having = with_bodies(self.nodes) if self._may_nest else ()
        inner = [body.eliminate_dead_code(is_impure_node) for _, bodies in having for body in bodies]
        return self._len < before or any(inner)

    @property
    def _codegen(self) -> Any:
        if self._chosen_codegen is None:
            if Graph.default_codegen is None:
                raise CodegenError("no code generator is registered", fixes=["import clew, not a part of it"])
            self._chosen_codegen = Graph.default_codegen()
        return self._chosen_codegen

    @_codegen.setter
    def _codegen(self, codegen: Any) -> None:
        self.set_codegen(codegen)

    def set_codegen(self, codegen: Any) -> None:
        """Let ``codegen`` write the Python of this graph from now on."""
        self._chosen_codegen = codegen
        self._announce()

    def python_code(self, root_module: str, **options: Any) -> Any:
        """The graph as Python: source text and the globals that it needs."""
        return self._codegen.python_code(self, root_module, **options)

    def on_generate_code(self, make_transformer: Callable[[Any], Any]) -> Any:
        """Install a function over the lines of generated code; a context manager that takes it out again."""
        self._announce()
        return self._codegen.install_transformer(self, make_transformer)

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, made of the arguments of the generated function."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The result of the generated function, made of the value of the output node."""
        return self._codegen.process_outputs(out)

    def print_tabular(self) -> None:
        """Print the nodes as a table, in colour where standard output is a terminal."""
        print(table(self, wants_colour(sys.stdout)))

    def view(self, path: Any = None, **options: Any) -> Any:
        """The graph as a picture, written to a file if a path is given: ``clew.view``."""
        if Graph.viewer is None:
            raise CodegenError("no room that draws graphs is loaded", fixes=["import clew"])
        return Graph.viewer(self, path, **options)

    def _repr_html_(self) -> str:
        return str(self.view()._repr_html_())

    def __str__(self) -> str:
        return listing(self)

    def __repr__(self) -> str:
        return listing(self, SHOWN_IN_REPR)


def is_graph(value: Any) -> bool:
    """True for a nested graph among the arguments of a node."""
    return isinstance(value, Graph)


def _candidate(target: Any) -> str:
    """What a node with this target would like to be called."""
    name = target if isinstance(target, str) else getattr(target, "__name__", None) or type(target).__name__
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
    return snake_case(name)


_candidates: Memo[Any, str] = Memo(_candidate, 8192)


def add_notes(node: Node, twin: Node) -> None:
    """Let a node that was just made have what is known of another besides its operation."""
    if node.value_type is not None:
        set_type(twin, node.value_type)
    if node.source is not None:
        set_source(twin, node.source)
    if node._meta:
        set_meta(twin, {**(twin._meta or {}), **node._meta})
