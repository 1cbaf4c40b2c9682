"""``translate``: a captured program of one framework as a program of another.

Comes in: what ``clew.trace`` gave, and the name of a framework. Goes out: a ``Translated``, or with ``dry_run`` the
list of all that cannot be carried over; without it such a list is an error. Layers are entered and writes made
functional first, on a copy: the captured program stays as it is. Always holds: everything is translated, or nothing.
"""

from __future__ import annotations

import copy
import importlib
import importlib.util
import inspect
import operator
from typing import Any

import numpy

from clew.capture.bytecode.try_blocks import attempt, attempt_method
from clew.capture.control_flow.raising import raise_error
from clew.capture.state.slots import ROOT, assign, has_attribute
from clew.errors import CaptureError, MissingFramework
from clew.frameworks import PACKAGES
from clew.ir.arguments import all_nodes, bodies_of, nested_graphs
from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.guards import Call, Guard, guard
from clew.ir.guests import guest, package_of
from clew.ir.node import Node
from clew.ir.types import ArrayType
from clew.passes.program import graph_in
from clew.translate.check import Gone, check_example, compiled_difference, gone
from clew.translate.equal_items import warn_of_equal_items
from clew.translate.guards import drop_implied, enter_guards, entry_constants, entry_guards
from clew.translate.nests import stands_for
from clew.translate.observed import observe
from clew.translate.refusals import Refusal, error_of
from clew.translate.translator import Program, Translator, assigned_paths, read_paths
from clew.translate.values import Array
from clew.translate.writer import Writer, leaves_of, mapped, nodes_of

SOURCES = {name: f"clew.translate.sources.{name}" for name in ("torch", "numpy", "jax", "tensorflow")}
TARGETS = {name: f"clew.translate.targets.{name}" for name in ("jax", "numpy", "tensorflow", "torch")}
"""The files of the frameworks; they import the framework, so they wait until they are needed."""


def translate(program: Any, to: str, *, dry_run: bool = False, check: bool = True) -> Any:
    """What ``clew.translate`` does; see there."""
    graph = graph_in(program)
    check_target(to)
    source = _framework_of(program, graph)
    if source == to:
        raise CaptureError(f"this is a program of {to} already", fixes=("leave to= out",))
    check_pair(source, to)
    made, found = _translated(program, graph, source, to)
    name = getattr(program, "__name__", type(program).__name__)
    if dry_run:
        return list(dict.fromkeys(found))
    if found:
        raise error_of(name, to, found)
    if check:
        check_example(program, made, *conversion(source, to))
        _check_compiled(program, made, source, to)
    return made


def _check_compiled(program: Any, made: Any, source: str, to: str) -> None:
    """Let a program not be compiled that gives other results then than in plain calls, as its original does."""
    plain = getattr(importlib.import_module(TARGETS[to]), "PLAIN", None)
    if plain is None:
        return
    told = compiled_difference(program, made, *conversion(source, to), plain[1])
    if told:
        reason = (
            "the original asks whether a compiler traces it, and gives other results for the example then "
            f"({told}); translated.guards.drop(kind='mode') gives those"
        )
        _never_compiled(made, plain[1], reason)
        made.notes = (*made.notes, f"it runs, but cannot be compiled: {reason}")


def _never_compiled(made: Any, is_compiling: Any, reason: str) -> None:
    never = Guard(Call(is_compiling, ()), "equals", False, "mode", None, reason, "no compiler traces the program")
    made._graph.set_guards((never, *made._graph.guards.entry))


def check_pair(source: str, to: str) -> None:
    """Refuse what no table or no namespace is there for."""
    if source not in SOURCES or to not in TARGETS:
        raise CaptureError(
            f"to={to!r}: there is no translation from {source} to {to}",
            fixes=(f"from {' or '.join(SOURCES)} to {' or '.join(TARGETS)}",),
        )


def conversion(source: str, to: str) -> tuple[Any, Any]:
    """What knows the arrays of the source, and what makes arrays of the target of NumPy's."""
    target = importlib.import_module(TARGETS[to])
    namespace = Writer(Graph(), target.NAMESPACE).namespace
    return importlib.import_module(SOURCES[source]).SOURCE(), namespace.convert


def check_target(to: str) -> None:
    """Refuse a framework that is not known or not installed."""
    if to not in PACKAGES:
        raise CaptureError(f"to={to!r} names no framework that Clew knows", fixes=(f"one of {', '.join(PACKAGES)}",))
    if importlib.util.find_spec(to) is None:
        raise MissingFramework(
            f"to={to!r} asks for a framework, and {to} is not installed", fixes=(f"pip install clew[{to}]",)
        )


def _framework_of(program: Any, graph: Graph) -> str:
    """The framework whose functions a graph calls."""
    told = getattr(type(program), "framework", "")
    if told:
        return str(told)
    root = graph.owning_module
    for name in ("torch", "jax", "tensorflow", "numpy"):
        found = guest(name)
        if found is not None and (found.owns(program) or found.owns(root)):
            return name
    used = [
        package_of(node.target) for one in (graph, *nested_graphs(graph)) for node in one.nodes if callable(node.target)
    ]
    return next((name for name in ("torch", "jax", "tensorflow") if name in used), "numpy")


def _translated(program: Any, graph: Graph, source: str, to: str) -> tuple[Any, list[Refusal]]:
    """The translation, or what stands in its way; for plain calls alone where only compiled ones cannot be."""
    knows, target = importlib.import_module(SOURCES[source]), importlib.import_module(TARGETS[to])
    made, refusals = _attempt(program, graph, knows, target, target.NAMESPACE)
    plain = getattr(target, "PLAIN", None)
    if refusals and plain is not None:
        namespace, is_compiling = plain
        made, others = _attempt(program, graph, knows, target, namespace)
        if others:
            return None, others
        told = "; ".join(dict.fromkeys(map(str, refusals)))
        _never_compiled(made, is_compiling, f"what compiled calls do in the original cannot be carried over: {told}")
        made.notes = (*made.notes, f"it runs, but cannot be compiled: {told}")
    if made is not None:
        made.translated_from = source
        vars(made)["_original_example"] = vars(program).get("_example")
    return made, [] if made is not None else refusals


def _attempt(program: Any, graph: Graph, knows: Any, target: Any, namespace: Any) -> tuple[Any, list[Refusal]]:
    prepared = _copied(graph)
    source = knows.SOURCE()
    if source.reads_calls:
        _without_attempts(prepared)
    constants: dict[str, Any] = {}
    refusals = knows.prepare(prepared, constants)
    drop_implied(prepared, source.implied)
    if source.reads_calls:
        enter_guards(prepared, source.implied)
    shared = Program(source, namespace, prepared.owning_module, constants)
    shared.refusals += refusals
    shared.examples = _examples(program)
    shared.assigned = assigned_paths((prepared, *nested_graphs(prepared)))
    shared.read_paths = read_paths((prepared, *nested_graphs(prepared)))
    shared.observe = lambda: _observed(program, prepared, shared)
    result = _Outermost(shared, prepared)
    if shared.refusals:
        return None, shared.refusals
    name = getattr(program, "__name__", type(program).__name__)
    made = target.make(result.written, shared.params, shared.state, name, tuple(shared.kinds))
    made.needs_key, made.draws, made.notes = result.key is not None, result.draws > 0, tuple(shared.notes)
    made.changes_state = bool(shared.assigned or shared.versions)
    made._graph.lint()
    return made, []


def prepared_graph(graph: Graph, knows: Any) -> tuple[Graph, dict[str, Any]]:
    """A copy of a graph as it is translated: layers entered, writes made functional; and the constants of that."""
    prepared = _copied(graph)
    if knows.SOURCE.reads_calls:
        _without_attempts(prepared)
    constants: dict[str, Any] = {}
    knows.prepare(prepared, constants)
    return prepared, constants


_BY_DATA = (
    "getitem index gather take scatter put one_hot multinomial nll_loss cross_entropy bincount "
    "div mod remainder linalg cholesky inverse solve pinv lu_factor"
).split()
"""Parts of the names of functions that fail for some numbers, where other frameworks give numbers; tables give nan."""


def _fails_by_data(function: Any, args: list[Any]) -> bool:
    """Whether the numbers that arrays hold may tell if a call fails."""
    if function is operator.getitem and not any(isinstance(leaf, Node) for leaf in leaves_of(args[1:])):
        return False  # plain places: the sizes tell
    name = getattr(function, "__module__", None) or "", getattr(function, "__name__", str(function))
    is_of_arrays = any(isinstance(leaf, Node) and isinstance(leaf.value_type, ArrayType) for leaf in leaves_of(args))
    return is_of_arrays and any(one in ".".join(name) for one in _BY_DATA)


def _without_attempts(graph: Graph) -> None:
    """Calls of which the capture relies on that they do not fail, as the calls themselves."""
    for each in (graph, *nested_graphs(graph)):
        for node in list(each.nodes):
            if node.op != "call_function" or node.target not in (attempt, attempt_method) or not node.args:
                continue
            function, *args = node.args
            if isinstance(function, Node) or _fails_by_data(function, args):
                continue
            op = "call_function" if node.target is attempt else "call_method"
            with each.inserting_before(node):
                made = each.create_node(op, function, tuple(args), dict(node.kwargs))
            made.source, made.value_type, name = node.source, node.value_type, node.name
            made.meta.update(node.meta)
            node.replace_all_uses_with(made)
            each.erase_node(node)
            made._rename(name)


def _observed(program: Any, graph: Graph, shared: Program) -> dict[Node, Any]:
    """What nodes give for the example, where that is plain."""
    example = vars(program).get("_example")
    if example is None:
        return {}
    try:
        args, kwargs = example.call(gone)
    except Gone:
        return {}
    root = graph.owning_module
    before = {path: resolve(root, path) for path in shared.assigned if has_attribute(root, path)}
    if len(before) < len(shared.assigned):
        return {}  # it makes attributes that are not there yet
    held = copy.deepcopy(list(before.values()))
    with shared.source.undisturbed(root):
        try:
            return observe(graph, shared.constants, args, kwargs, shared.source)
        finally:
            for (path, value), earlier in zip(before.items(), held, strict=True):
                assign(root, path, value)
                shared.source.restore(value, earlier)


def _examples(program: Any) -> dict[str, Any]:
    """The arguments of the example by the names of the parameters, where it is still there."""
    example = vars(program).get("_example")
    if example is None:
        return {}
    args, kwargs = example.call(stands_for)
    bound = inspect.signature(getattr(program, "forward", program)).bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def _copied(graph: Graph) -> Graph:
    """A copy of a graph that may be changed, on the same root."""
    made = copy.deepcopy(graph)
    made.owning_module = graph.owning_module
    return made


class _Outermost:
    """The translation of the graph of a program: its inputs, its state, its random numbers, its guards."""

    def __init__(self, program: Program, graph: Graph) -> None:
        self.program = program
        self.written = Graph()
        self.writer = Writer(self.written, program.namespace, program.notes)
        self.writer.outermost = True
        self.writer.rebind, self.writer.next_key = self._rebind, self._next_key
        self.key: Node | None = None
        self.draws = 0
        self.inputs: dict[Node, Node] = {}
        translator = Translator(program, graph, self.writer, {})
        self._enter(translator, graph)
        result = translator.run()
        self.writer.origin = None
        self._write_state()
        self.written.output(nodes_of(mapped(result, translator.spelled)))
        if not program.refusals:
            _erase_unused(self.written)
            self._forget_key()
            self.written.set_guards(tuple(entry_guards(graph, self.inputs, self.written, translator)))

    def _enter(self, translator: Translator, graph: Graph) -> None:
        """The inputs come first; those that a guard fixes are plain values inside."""
        fixed = entry_constants(graph)
        for node in graph.find_nodes(op="placeholder"):
            self.writer.origin = None
            value = translator._one(node)
            given = [one for one in self.written.find_nodes(op="placeholder") if one.target == node.target]
            made = given[0] if given else self.written.placeholder(str(node.target))
            self.inputs[node] = made
            translator.env[node] = self.program.source.constant(fixed[node]) if node in fixed else value

    def _forget_key(self) -> None:
        """Ask for no key where nobody uses what is drawn, as in layers that are only left out in training."""
        if self.key is not None and not self.key.users:
            self.written.erase_node(self.key)
            self.key, self.draws = None, 0

    def _rebind(self, value: Array, new: Any) -> None:
        made = self.writer.namespace.cast(new, value.dtype)
        if not isinstance(made, Array) or made.spec.shape != value.spec.shape:
            made = self.writer.namespace.broadcast_to(
                self.writer.namespace.as_array(made, value.dtype), value.spec.shape
            )
        self.program.versions[value.path] = made

    def _write_state(self) -> None:
        for path, value in self.program.versions.items():
            root = self.written.get_attr(ROOT)
            held = self.program.params.pop(path, None)
            if held is not None:
                self.program.state[path] = held
            self.writer.node("call_function", assign, (root, path, value))

    def _next_key(self) -> Any:
        """The key of the next draw: a number of its own for each, folded into the key that the caller gives."""
        number, self.draws = self.draws, self.draws + 1
        if not self.writer.namespace.key_name:
            return None
        if self.key is None:
            inputs = [node for node in self.written.nodes if node.op == "placeholder"]
            last = next((node for node in reversed(inputs) if not str(node.target).startswith("**")), None)
            anchor = (
                self.written.inserting_after(last)
                if last is not None
                else self.written.inserting_before(next(iter(self.written.nodes)))
            )
            names = {str(node.target).lstrip("*") for node in inputs}
            name = self.writer.namespace.key_name
            with anchor:
                self.key = self.written.placeholder(name if name not in names else f"random_{name}", default_value=None)
        return self.writer.namespace.split_key(self.key, number)


_KEPT = (
    assign,
    guard,
    raise_error,
    warn_of_equal_items,
    operator.setitem,
    numpy.add.at,
    numpy.multiply.at,
    numpy.maximum.at,
    numpy.minimum.at,
)
"""Functions that are called for what they do."""


def _erase_unused(graph: Graph) -> None:
    """Erase what nobody uses: rows make nodes that a later one may not need."""
    for inner in nested_graphs(graph):
        _erase_from(inner)
    _erase_from(graph)


def _erase_from(graph: Graph) -> None:
    for node in reversed(list(graph.nodes)):
        if node.users or node.op in ("placeholder", "output"):
            continue
        if _is_kept(node) or any(_is_kept(inner) for body in bodies_of(node) for inner in all_nodes(body)):
            continue
        if node.op == "call_method" and node.target in ("__enter__", "__exit__", "watch"):
            continue
        graph.erase_node(node)


def _is_kept(node: Node) -> bool:
    return node.op == "call_function" and node.target in _KEPT
