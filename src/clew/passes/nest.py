"""From a flat graph to one graph for each module that was called, those of equal modules shared.

In comes a flat graph; out comes a ``Nest``: the graph of the root, and for each path of a module the graphs of its
calls, in which attributes and modules have paths seen from that module, and calls of inner modules are ``call_module``
nodes. The inputs of such a graph are the values from around that it uses, in the order of their first use; its output
is the value that is used outside, or a tuple of several. Modules of one class whose graphs do not differ share one.
Which node of the flat graph each node of a call stands for is kept, by name, so that ``flatten`` finds back.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import getitem
from typing import Any

from clew.capture.guards.notes import CHECKS
from clew.ir.arguments import map_aggregate
from clew.ir.equality import same_graph
from clew.ir.graph import Graph, is_graph
from clew.ir.node import Node
from clew.passes.module_regions import Call, Regions, Relative

Chain = tuple[str, ...]
"""Which call is meant: the names of the nodes that make the calls around it, from the root's graph inwards."""

STACK = "nn_module_stack"


@dataclass
class Nest:
    """A graph in pieces."""

    root: Graph
    kind: str
    pieces: dict[str, list[Graph]] = field(default_factory=dict)
    """The graphs of the module at each path: one for each way in which it is called, often shared with other paths."""
    kinds: dict[str, str] = field(default_factory=dict)
    """The class of the module at each path."""
    origins: dict[Chain, dict[str, str]] = field(default_factory=dict)
    """For each call the names in the flat graph of what its nodes stand for."""
    moved: dict[str, str] = field(default_factory=dict)
    """Where constants of the root are held that a single module uses, and what is held there."""


@dataclass(eq=False)
class _Instance:
    """The graph of one call, before it is known which others are like it."""

    call: Call
    graph: Graph
    flat: list[Node | None]
    """For each node of the graph the node of the flat graph that it stands for, if there is one."""
    labels: list[tuple[bool, str]]
    """For each node of the graph what it might be called, and whether the user chose that."""


@dataclass(eq=False)
class _Definition:
    """What calls that do the same have in common."""

    kind: str
    called: tuple[tuple[str, int], ...]
    """The targets of inner calls, and the definitions that they mean."""
    instances: list[_Instance] = field(default_factory=list)
    graph: Graph | None = None


def nest(graph: Graph, relative: Relative, may_be_piece: Callable[[str], bool], constants: Iterable[str] = ()) -> Nest:
    """The pieces of a flat graph; ``constants`` are attributes of the root that any module may hold in its place."""
    return _Nesting(Regions(graph, relative, may_be_piece), set(constants)).result()


class _Nesting:
    def __init__(self, regions: Regions, constants: set[str]) -> None:
        self.regions = regions
        self.owner = regions.owner
        self._chains = {call: call.chain for call in set(self.owner.values())}
        self._needs: dict[Call, list[Node]] = {}
        self._gives: dict[Call, list[Node]] = {}
        self.moved: dict[str, str] = {}
        self._local: dict[Node, tuple[Call, str]] = {}
        self.definitions: dict[str, list[_Definition]] = {}
        self._definition_of: dict[Call, _Definition] = {}
        self._known: dict[Any, list[_Definition]] = {}
        for call in self._calls(regions.root):
            self._gives[call] = []
        self._note_given()
        self._move_constants(constants)

    def result(self) -> Nest:
        """All pieces."""
        calls = list(self._calls(self.regions.root))
        for call in calls[:-1]:
            self._define(call)
        root = self._build(self.regions.root, None)
        root = self._build(self.regions.root, [label for _, label in root.labels])
        for definition in dict.fromkeys(self._definition_of.values()):
            names = _agreed([instance.labels for instance in definition.instances])
            definition.graph = self._build(definition.instances[0].call, names).graph
            _agree_on_types(definition)
        found = Nest(root.graph, root.call.kind, moved=self.moved)
        made = zip(root.flat, root.graph.nodes, strict=True)
        carry_guards(self.regions.graph, {flat: node for flat, node in made if flat is not None}, root.graph)
        for call in calls[:-1]:
            found.kinds[call.path] = call.kind
        for path, definitions in self.definitions.items():
            found.pieces[path] = [one.graph for one in definitions if one.graph is not None]
        self._note_origins(root, root.graph, (), found.origins)
        return found

    def _calls(self, call: Call) -> Iterable[Call]:
        """A call and all inside of it, inner ones first."""
        for item in call.items:
            if isinstance(item, Call):
                yield from self._calls(item)
        yield call

    # ---- what goes in and out --------------------------------------------------------------------------------------

    def _is_inside(self, node: Node, call: Call) -> bool:
        return any(one is call for one in self._chains[self.owner[node]])

    def _site(self, node: Node, call: Call) -> Call:
        """The call in which an attribute is read that a node of ``call`` uses: the innermost that can reach it."""
        if node in self._local:
            return self._local[node][0]
        while call.parent is not None and self.regions.relative(call.path, node.target) is None:
            call = call.parent
        return call

    def _comes_from_outside(self, value: Node, call: Call) -> bool:
        if self.regions.is_read(value):
            return self._site(value, call) is not call
        return not self._is_inside(value, call)

    def needs(self, call: Call) -> list[Node]:
        """The values from outside that a call uses, in the order of their first use."""
        if call not in self._needs:
            used = (self.needs(one) if isinstance(one, Call) else self.regions.used_by(one) for one in call.items)
            values = dict.fromkeys(value for some in used for value in some)
            self._needs[call] = [value for value in values if self._comes_from_outside(value, call)]
        return self._needs[call]

    def _note_given(self) -> None:
        """Find the values of each call that are used outside of it."""
        for node, owner in self.owner.items():
            if self.regions.is_read(node):
                continue
            for call in self._chains[owner][1:]:
                if any(not self._is_inside(user, call) for user in self.regions.users_of(node)):
                    self._gives[call].append(node)

    def _move_constants(self, constants: set[str]) -> None:
        """Let a module that alone uses a constant hold it, if it is called only once."""
        reads = [node for node in self.owner if node.op == "get_attr" and node.target in constants]
        targets = Counter(node.target for node in reads)
        paths = Counter(call.path for call in self._gives)
        counts: Counter[str] = Counter()
        for node in reads:
            chains = [self._chains[self.owner[user]] for user in node.users]
            site = [step[0] for step in zip(*chains, strict=False) if all(one is step[0] for one in step)][-1:]
            if not site or targets[node.target] > 1 or paths[site[0].path] > 1 or not self.regions.is_read(node):
                continue
            if site[0].parent is not None:
                name = f"_constant{counts[site[0].path]}"
                counts[site[0].path] += 1
                self._local[node] = (site[0], name)
                self.moved[f"{site[0].path}.{name}"] = node.target

    # ---- graphs --------------------------------------------------------------------------------------------------

    def _build(self, call: Call, names: list[str] | None) -> _Instance:
        return _Builder(self, call, names).built()

    def _define(self, call: Call) -> None:
        """Find the definition that a call shares with others, or begin one."""
        instance = self._build(call, None)
        inner = [item for item in call.items if isinstance(item, Call)]
        called = tuple((self.target(call, item), id(self._definition_of[item])) for item in inner)
        steps = tuple((node.op, node.target if isinstance(node.target, str) else "") for node in instance.graph.nodes)
        alike = self._known.setdefault((call.kind, called, steps), [])
        found = next((one for one in alike if same_graph(one.instances[0].graph, instance.graph)), None)
        if found is None:
            found = _Definition(call.kind, called)
            alike.append(found)
        found.instances.append(instance)
        self._definition_of[call] = found
        here = self.definitions.setdefault(call.path, [])
        if found not in here:
            here.append(found)

    def target(self, call: Call, inner: Call) -> str:
        """The path by which a call reaches one inside of it; further ways to be called are methods of their own."""
        path = self.path(call, inner.path)
        number = self.definitions[inner.path].index(self._definition_of[inner])
        return method(path, number)

    def path(self, call: Call, path: str) -> str:
        """What stands at a path of the root, seen from the module of a call."""
        found = self.regions.relative(call.path, path)
        assert found is not None, f"{path} cannot be reached from {call.path}"
        return found

    def read_target(self, node: Node, call: Call) -> str:
        """The path of an attribute that is read in a call."""
        return self._local[node][1] if node in self._local else self.path(call, node.target)

    def is_moved(self, node: Node) -> bool:
        """True for the reading of a constant that a module holds in the root's place."""
        return node in self._local

    def gives(self, call: Call) -> list[Node]:
        """The values of a call that are used outside, in the order in which they come about."""
        return self._gives[call]

    def _note_origins(
        self, instance: _Instance, graph: Graph, chain: Chain, origins: dict[Chain, dict[str, str]]
    ) -> None:
        nodes = list(graph.nodes)
        pairs = zip(nodes, instance.flat, strict=True)
        origins[chain] = {node.name: flat.name for node, flat in pairs if flat is not None}
        inner = [item for item in instance.call.items if isinstance(item, Call)]
        calling = [node for node, flat in zip(nodes, instance.flat, strict=True) if flat is None]
        calling = [node for node in calling if node.op == "call_module"]
        for item, node in zip(inner, calling, strict=True):
            definition = self._definition_of[item]
            found = next(one for one in definition.instances if one.call is item)
            assert definition.graph is not None
            self._note_origins(found, definition.graph, (*chain, node.name), origins)


class _Builder:
    """Writes the graph of one call; without ``names`` its nodes are numbered, so that equal graphs are equal."""

    def __init__(self, nesting: _Nesting, call: Call, names: list[str] | None) -> None:
        self.nesting = nesting
        self.call = call
        self.names = names
        self.graph = Graph()
        self.found: dict[Node, Any] = {}
        self.flat: list[Node | None] = []
        self.labels: list[tuple[bool, str]] = []
        self._is_root = call.parent is None
        self._given: set[str] = set()

    def built(self) -> _Instance:
        """The graph with what is known of its nodes."""
        for item in self.call.items if self._is_root and self.names is not None else ():
            if not isinstance(item, Call):
                self.graph._names.reserve(item.name)  # it keeps its name, which no call before it may take
        for value in () if self._is_root else self.nesting.needs(self.call):
            self.found[value] = node = self._add(None, "placeholder", value.name, (), {}, value)
            node.target = node.name
        for item in self.call.items:
            if isinstance(item, Call):
                self._add_call(item)
            else:
                self._read(item._inputs)
                self._copy(item)
        if not self._is_root:
            given = self.nesting.gives(self.call)
            values = tuple(self.found[node] for node in given)
            self._add(None, "output", "output", (values[0] if len(values) == 1 else values or None,), {})
        return _Instance(self.call, self.graph, self.flat, self.labels)

    def _add(
        self,
        flat: Node | None,
        op: str,
        target: Any,
        args: Any,
        kwargs: Any,
        like: Node | str = "",
        annotation: Any = None,
    ) -> Node:
        self.flat.append(flat)
        self.labels.append((False, like or op) if isinstance(like, str) else _label(like, self._is_root))
        if self.names is None:
            name = f"v{len(self.labels)}"
        elif flat is not None and self._is_root and flat.name not in self._given:
            name = flat.name
        else:
            name = self.graph._names.create_name(self.names[len(self.labels) - 1])
        self._given.add(name)
        return self.graph._append_exact(op, name, target, args, kwargs, annotation)

    def _read(self, values: Iterable[Node]) -> None:
        """Read the attributes and facts among these values that are not known here yet."""
        for value in values:
            if value not in self.found and self.nesting.regions.is_fact(value):
                self._read(value._inputs)
                self._copy(value)
            elif value not in self.found:
                target = self.nesting.read_target(value, self.call)
                like = target.strip("_") if self.nesting.is_moved(value) else value
                self.found[value] = node = self._add(value, "get_attr", target, (), {}, like, value.type)
                self._note(value, node)

    def _copy(self, node: Node) -> None:
        target = self.nesting.path(self.call, node.target) if node.op in ("get_attr", "call_module") else node.target
        args = node.args
        if node.op == "call_function" and node.target in CHECKS and not self._is_root:
            args = args[:2] if self.names is None else (*args[:2], *map(self._renamed, args[2:3]), *args[3:])
        args, kwargs = map_aggregate(args, self._translate), map_aggregate(node.kwargs, self._translate)
        self.found[node] = copied = self._add(node, node.op, target, args, kwargs, node, node.type)
        self._note(node, copied)

    def _note(self, flat: Node, node: Node) -> None:
        """Carry over what is known of a node; where it was recorded is told by the piece in which it is."""
        if self.names is not None:
            note_like(flat, node)
            if not self._is_root:
                node.meta.pop(STACK, None)

    def _renamed(self, text: Any) -> Any:
        """The text of an assumption in which values have the names that they have here."""
        names = {flat.name: node.name for flat, node in self.found.items() if isinstance(node, Node)}
        return re.sub(r"\b[A-Za-z_]\w*", lambda word: names.get(word[0], word[0]), text) if type(text) is str else text

    def _translate(self, leaf: Any) -> Any:
        if isinstance(leaf, Node):
            return self.found[leaf]
        if is_graph(leaf):
            return body_with(leaf, lambda path: self.nesting.path(self.call, path), numbered=self.names is None)
        return leaf

    def _add_call(self, inner: Call) -> None:
        needs, gives = self.nesting.needs(inner), self.nesting.gives(inner)
        self._read(needs)
        args = tuple(self.found[value] for value in needs)
        like = gives[0] if len(gives) == 1 else module_label(inner.path)
        node = self._add(None, "call_module", self.nesting.target(self.call, inner), args, {}, like)
        if len(gives) == 1:
            self.found[gives[0]] = node
            return
        for place, value in enumerate(gives):
            self.found[value] = self._add(None, "call_function", getitem, (node, place), {}, value)


def carry_guards(graph: Graph, twins: dict[Node, Node], twin: Graph) -> None:
    """Let a graph have the assumptions that are kept beside another; ``twins`` are its inputs by those of the other."""
    guards = vars(graph).get("_guards", ())
    if guards:
        vars(twin)["_guards"] = tuple(one.mapped(lambda leaf: twins.get(leaf, leaf)) for one in guards)


def method(path: str, number: int) -> str:
    """The path by which the graph of this number of a module is called."""
    return f"{path}.forward_{number + 1}" if number else path


def note_like(node: Node, twin: Node) -> None:
    """Let a node have type, source and notes of another."""
    twin.value_type, twin.source = node.value_type, node.source
    twin.meta = dict(node.meta)


def body_with(body: Graph, target: Callable[[str], str], numbered: bool = False) -> Graph:
    """A copy of a body with other paths, and with numbers for names so that equal ones are equal."""
    twin = Graph()
    twins: dict[Node, Node] = {}

    def translate(leaf: Any) -> Any:
        return twins[leaf] if isinstance(leaf, Node) else body_with(leaf, target, numbered) if is_graph(leaf) else leaf

    for place, node in enumerate(body.nodes):
        args, kwargs = map_aggregate(node.args, translate), map_aggregate(node.kwargs, translate)
        name = f"v{place}" if numbered else node.name
        path = target(node.target) if node.op in ("get_attr", "call_module") else node.target
        path = name if numbered and node.op == "placeholder" else path
        if numbered and node.op == "call_function" and node.target in CHECKS:
            args = args[:2]  # how the assumption is told, and which line asked first, is no matter
        twins[node] = twin._append_exact(node.op, name, path, args, kwargs, node.type)
        if not numbered:
            note_like(node, twins[node])
    return twin


def _label(value: Node, exact: bool) -> tuple[bool, str]:
    """What a value may be called inside of a module: not by a path from the root, and without a number."""
    name = re.sub(r"_\d+$", "", value.name) or value.name
    given = re.sub(r"\W", "_", Graph._target_to_str(value.target))
    is_chosen = value.op == "placeholder" or name != re.sub(r"_\d+$", "", given)
    if exact:
        return is_chosen, value.name
    if value.op in ("get_attr", "call_module") and not is_chosen:
        return is_chosen, module_label(value.target)
    return is_chosen, name


def module_label(path: str) -> str:
    """What a module, or a value that it gives, may be called after its path."""
    *around, name = path.split(".")
    return "_".join([*around[-1:], name]) if name.isdigit() else name


def _agreed(labels: list[list[tuple[bool, str]]]) -> list[str]:
    """For each node the name that most calls have for it, of those that users chose, the later ones if in doubt."""
    found = []
    for some in map(list, zip(*labels, strict=True)):
        counts = Counter(some)
        found.append(max(reversed(some), key=lambda one: (one[0], counts[one]))[1])
    return found


def _agree_on_types(definition: _Definition) -> None:
    """A node of a shared graph has a type only if it is the same in all calls."""
    assert definition.graph is not None
    for place, node in enumerate(definition.graph.nodes):
        flat = [instance.flat[place] for instance in definition.instances]
        types = [one.value_type for one in flat if one is not None]
        if any(one != types[0] for one in types):
            node.value_type = None
