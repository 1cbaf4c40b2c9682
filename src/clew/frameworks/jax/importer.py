"""A jaxpr becomes nodes: one call for each equation, written as a user would write it.

A closed jaxpr and the nodes of its inputs come in; out come the nodes of its results. Each node has the source line and
the type of its equation. Constants of a few elements are written out; others are attributes of the root, and reach
bodies as operands, because a body sees nothing but what it is given. A friendly spelling is used only where tracing it
gives exactly the equation.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy
from jax.extend import core

from clew.errors import CaptureError
from clew.frameworks.jax import calls, private
from clew.frameworks.jax.calls import as_jaxpr
from clew.frameworks.jax.primitives import Inner, Slot, Way, placed, plain, plain_dict, ways_of
from clew.frameworks.jax.staging import this_trace
from clew.frameworks.jax.types import kind_of_aval, spec_of_aval, type_of_aval
from clew.ir.arguments import map_aggregate
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.source import PACKAGE_FOLDER, SourceLine

# ---- is a call the same as an equation? ------------------------------------------------------------------------------
#
# Is a call the same as an equation of a jaxpr? It is traced, and the jaxpr that comes out must be that one equation.
# Compared are the primitive, its parameters (jaxprs among them equation by equation), the operands, constants with
# their dtype and weak type, and the results. So a friendly spelling is exact on the installed JAX, or it is not used.


ONE, SEVERAL = "one", "several"

EQUIVALENT = {"add_any": "add"}
"""Primitives that compute what another one does."""

_IGNORED = frozenset({"computation", "debug_info", "jvp_jaxpr_fun", "fwd_jaxpr_thunk", "bwd", "out_trees"})
"""Parameters that are functions of Python; of rules of derivatives the place in the source is compared instead."""
_RULES = ("jvp_jaxpr_fun", "fwd_jaxpr_thunk", "bwd")


def is_equation(way: Way, eqn: Any, literals: dict[int, Any], whole: bool = False) -> str:
    """Whether tracing a call gives exactly this equation; ``literals`` are the operands that are written out.

    With ``whole`` calls of jitted functions stay calls, as in a program that is not compiled as a whole.
    The answer is ONE or SEVERAL, as the call gives its result or a sequence of results; nothing if it is another.
    """
    places = [place for place, operand in enumerate(eqn.invars) if place not in literals]
    try:
        made, shape = jax.make_jaxpr(functools.partial(_run, way, literals, places, whole), return_shape=True)(
            *(spec_of_aval(eqn.invars[place].aval) for place in places)
        )
    except Exception:  # a call that cannot even be made is none that could stand here
        return ""
    if len(made.eqns) != 1 or made.consts:
        return ""
    found = made.eqns[0]
    if not _same_primitive(found.primitive, eqn.primitive) or list(made.jaxpr.outvars) != list(found.outvars):
        return ""
    given = dict(zip(places, made.jaxpr.invars, strict=True))
    if len(found.invars) != len(eqn.invars) or len(found.outvars) != len(eqn.outvars):
        return ""
    operands = all(_same_operand(one, other, given.get(place)) for place, (one, other) in enumerate(
        zip(found.invars, eqn.invars, strict=True)))  # fmt: skip
    results = all(_same_aval(one.aval, other.aval) for one, other in zip(found.outvars, eqn.outvars, strict=True))
    if not (operands and results and _same_params(found.params, eqn.params)):
        return ""
    return SEVERAL if isinstance(shape, (tuple, list)) else ONE


def _same_primitive(made: Any, wanted: Any) -> bool:
    return made is wanted or EQUIVALENT.get(wanted.name) == made.name


def _run(way: Way, literals: dict[int, Any], places: list[int], whole: bool, *given: Any) -> Any:
    if whole:
        this_trace()
    values = {**literals, **dict(zip(places, given, strict=True))}

    def fill(leaf: Any) -> Any:
        if isinstance(leaf, Slot):
            return values[leaf.place]
        return core.jaxpr_as_fun(as_jaxpr(leaf.jaxpr)) if isinstance(leaf, Inner) else leaf

    args, kwargs = _filled(way.args, fill), _filled(way.kwargs, fill)
    if any(isinstance(leaf, Inner) for leaf in way.args):
        args = tuple(_single(one) if callable(one) and place else one for place, one in enumerate(args))
    return way.target(*args, **kwargs)


def _filled(nest: Any, fill: Callable[[Any], Any]) -> Any:
    """A nest of arguments with the slots, which are tuples themselves, filled; its lists and dicts are plain ones."""
    if isinstance(nest, (Slot, Inner)):
        return fill(nest)
    if type(nest) is tuple:
        return tuple(_filled(item, fill) for item in nest)
    if type(nest) is list:
        return [_filled(item, fill) for item in nest]
    return {key: _filled(item, fill) for key, item in nest.items()} if type(nest) is dict else nest


def _single(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a jaxpr gives a list; a body with one result gives that itself."""

    def run(*operands: Any) -> Any:
        results = function(*jax.tree_util.tree_leaves(operands))
        return results[0] if len(results) == 1 else tuple(results)

    return run


def _same_operand(made: Any, wanted: Any, variable: Any) -> bool:
    if variable is not None:
        return made is variable
    if not isinstance(made, core.Literal) or not isinstance(wanted, core.Literal):
        return False
    return _same_aval(made.aval, wanted.aval) and _same_bits(_typed(made), _typed(wanted))


def _typed(literal: Any) -> numpy.ndarray[Any, Any]:
    return numpy.asarray(literal.val).astype(literal.aval.dtype)


def _same_bits(one: Any, other: Any) -> bool:
    left, right = numpy.asarray(one), numpy.asarray(other)
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


def _same_aval(one: Any, other: Any) -> bool:
    return kind_of_aval(one) == kind_of_aval(other)


def _same_params(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(_same_param(name, one[name], other[name]) for name in one)


def _same_param(name: str, one: Any, other: Any) -> bool:
    if name in _RULES:
        return _place(one) == _place(other)
    if name in _IGNORED:
        return True
    one, other = placed(one), placed(other)
    if isinstance(one, (core.Jaxpr, core.ClosedJaxpr)):
        return isinstance(other, type(one)) and same_jaxpr(as_jaxpr(one), as_jaxpr(other))
    if isinstance(one, (tuple, list)) and isinstance(other, (tuple, list)):
        return len(one) == len(other) and all(_same_param(name, *pair) for pair in zip(one, other, strict=True))
    if isinstance(one, numpy.ndarray) or isinstance(other, numpy.ndarray):
        return _same_bits(one, other)
    return one is other or bool(one == other)


def _place(rule: Any) -> Any:
    return getattr(getattr(rule, "debug_info", None), "func_src_info", rule)


def same_jaxpr(one: Any, other: Any) -> bool:
    """Whether two closed jaxprs are the same program: the same equations on the same variables and constants."""
    left, right = one.jaxpr, other.jaxpr
    names: dict[Any, Any] = {}
    pairs = [(left.constvars, right.constvars), (left.invars, right.invars)]
    for mine, theirs in pairs:
        if len(mine) != len(theirs) or not all(_same_aval(a.aval, b.aval) for a, b in zip(mine, theirs, strict=True)):
            return False
        names.update(zip(mine, theirs, strict=True))
    if len(left.eqns) != len(right.eqns) or not all(map(_same_bits_of, one.consts, other.consts)):
        return False
    for first, second in zip(left.eqns, right.eqns, strict=True):
        if first.primitive is not second.primitive or not _same_values(first.invars, second.invars, names):
            return False
        if len(first.outvars) != len(second.outvars) or not _same_params(first.params, second.params):
            return False
        names.update(zip(first.outvars, second.outvars, strict=True))
    return _same_values(left.outvars, right.outvars, names)


def _same_bits_of(one: Any, other: Any) -> bool:
    return one is other or (hasattr(one, "dtype") and _same_bits(one, other))


def _same_values(mine: Any, theirs: Any, names: dict[Any, Any]) -> bool:
    if len(mine) != len(theirs):
        return False
    for one, other in zip(mine, theirs, strict=True):
        if isinstance(one, core.Literal) or isinstance(other, core.Literal):
            if not _same_operand(one, other, None):
                return False
        elif names.get(one) is not other:
            return False
    return True


def map_slots(nest: Any, fill: Callable[[Any], Any]) -> Any:
    """The arguments of a way with what ``fill`` gives for its slots and bodies."""
    return map_aggregate(_filled(nest, fill), lambda leaf: leaf)


# ---- a jaxpr as a graph ----------------------------------------------------------------------------------------------


Handler = Callable[["Importer", Any], "Sequence[Any] | None"]
"""Writes the nodes of an equation with bodies and gives those of its results; None if it cannot."""

HANDLERS: dict[str, Handler] = {}
"""By the name of the primitive; ``control`` fills it."""

_MOST_WRITTEN = 32
"""Constants with more elements are kept as attributes."""

_MOST_CHOICES = 4096


class Choice(NamedTuple):
    """How an equation is written: the call, whether its numbers are plain, whether it gives a sequence of results."""

    way: Way
    plain_numbers: bool
    is_several: bool


_choices: dict[Any, Choice | None] = {}


class Importer:
    """Writes the equations of one jaxpr into one graph; ``outer`` is the importer of the graph around a body."""

    def __init__(
        self, graph: Graph, constant: Callable[[Any], Node], outer: Importer | None = None, whole: bool = False
    ) -> None:
        self.graph = graph
        self.whole = whole
        self.values: dict[Any, Any] = {}
        self.makers: dict[Any, Any] = {}
        self.outer = outer
        self.open_rules: tuple[Any, ...] = outer.open_rules if outer is not None else ()
        self._constant = constant
        self._literals: dict[Any, Node] = {}

    def run(self, closed: Any, operands: Sequence[Any]) -> list[Any]:
        """Write all equations; the nodes of the results."""
        jaxpr = closed.jaxpr
        for variable, value in zip(jaxpr.constvars, closed.consts, strict=True):
            self.values[variable] = self.constant(value, variable.aval)
        self.values.update(zip(jaxpr.invars, operands, strict=True))
        for eqn in jaxpr.eqns:
            self._equation(eqn)
        return [self.read(variable) for variable in jaxpr.outvars]

    # ---- values --------------------------------------------------------------------------------------------------

    def read(self, variable: Any) -> Any:
        """The node of a variable, or of a literal as an array of just its type."""
        if isinstance(variable, core.Literal):
            return self.literal(variable)
        return self.values[variable]

    def literal(self, literal: Any) -> Node:
        """A node for a number that stands in a jaxpr: an array of its dtype and weak type."""
        value = numpy.asarray(literal.val)
        if value.shape:
            return self.constant(literal.val, literal.aval)
        key = (kind_of_aval(literal.aval), value.tobytes())
        if key not in self._literals:
            name, number = literal.aval.dtype.name, _number(value)
            if getattr(literal.aval, "weak_type", False):
                node = self.graph.call_function(calls.weak, (number, name))
            else:
                node = self.graph.call_function(getattr(jnp, name), (number,))
            self._literals[key] = self.typed(node, literal.aval)
        return self._literals[key]

    def constant(self, value: Any, aval: Any) -> Node:
        """The node of a constant array: written out if it is small, otherwise an attribute of the root."""
        array = value if isinstance(value, numpy.ndarray) else None
        if isinstance(value, jax.Array) and not jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            array = numpy.asarray(value)
        is_small = array is not None and array.size <= _MOST_WRITTEN and array.dtype.kind in "biufc"
        if is_small and array is not None and not getattr(aval, "weak_type", False):
            dtype = getattr(jnp, aval.dtype.name)
            return self.typed(self.graph.call_function(jnp.array, (_numbers(array), dtype)), aval)
        return self._constant(value)

    def typed(self, node: Node, aval: Any) -> Node:
        """The node, with the type that is known of its value."""
        object.__setattr__(node, "value_type", type_of_aval(aval))
        return node

    # ---- equations -----------------------------------------------------------------------------------------------

    def _equation(self, eqn: Any) -> None:
        _check_context(eqn)
        last = self.graph._root._prev
        handler = HANDLERS.get(eqn.primitive.name)
        results = handler(self, eqn) if handler is not None else None
        if results is None:
            results = self._plain(eqn)
        for variable, value in zip(eqn.outvars, results, strict=True):
            self.values[variable] = value
            self.makers[variable] = eqn
        source = source_of(eqn)
        node = last._next
        while node is not self.graph._root:
            if node.source is None:
                node.source = source
            node = node._next

    def _plain(self, eqn: Any) -> Sequence[Any]:
        found = None if eqn.effects else self._choice(eqn)
        if found is not None:
            return self.write(found, eqn)
        return self._bound(eqn)

    def _choice(self, eqn: Any) -> Choice | None:
        """The nicest way to write an equation, and whether its numbers are plain; remembered for equal equations."""
        key = _key(eqn, self.whole)
        if key is not None and key in _choices:
            return _choices[key]
        found = next((choice for way in ways_of(eqn) if (choice := fitting(way, eqn, self.whole)) is not None), None)
        if key is not None:
            if len(_choices) >= _MOST_CHOICES:
                _choices.clear()
            _choices[key] = found
        return found

    def write(self, choice: Choice, eqn: Any) -> Sequence[Any]:
        """The nodes of a call for an equation."""

        def fill(leaf: Any) -> Any:
            if isinstance(leaf, Inner):
                return self.body(leaf.jaxpr)[0]
            operand = eqn.invars[leaf.place]
            is_number = choice.plain_numbers and isinstance(operand, core.Literal)
            return _number(numpy.asarray(operand.val)) if is_number else self.read(operand)

        args, kwargs = map_slots(choice.way.args, fill), map_slots(choice.way.kwargs, fill)
        node = self.graph.create_node("call_function", choice.way.target, args, kwargs)
        return self.results(node, eqn, choice.is_several)

    def results(self, node: Node, eqn: Any, is_several: bool) -> Sequence[Any]:
        """The nodes of the results of an equation whose call is ``node``."""
        if not is_several:
            return [self.typed(node, eqn.outvars[0].aval)]
        used = [not isinstance(variable, core.DropVar) for variable in eqn.outvars]
        items = [
            self.typed(self.graph.call_function(operator.getitem, (node, place)), variable.aval) if is_used else node
            for place, (variable, is_used) in enumerate(zip(eqn.outvars, used, strict=True))
        ]
        return items

    def _bound(self, eqn: Any) -> Sequence[Any]:
        """The general path: the primitive itself, with its parameters."""
        params = {name: self._param(value) for name, value in eqn.params.items()}
        operands = [self.read(variable) for variable in eqn.invars]
        target = calls.perform if eqn.effects else calls.bind
        node = self.graph.call_function(target, (eqn.primitive, *operands), params)
        return self.results(node, eqn, eqn.primitive.multiple_results)

    def _param(self, value: Any) -> Any:
        """A parameter of a primitive: jaxprs in it as nodes that make them of bodies, all else as it is."""
        if isinstance(value, (core.Jaxpr, core.ClosedJaxpr)):
            closed = as_jaxpr(value)
            body, free = self.body(closed)
            if free:
                _refuse("a primitive with a body that holds a large constant", "no call can hand the constant over")
            kinds = tuple(kind_of_aval(variable.aval) for variable in closed.jaxpr.invars)
            options = {"opened": True} if isinstance(value, core.Jaxpr) else {}
            return self.graph.call_function(calls.closed_jaxpr, (body, kinds), options)
        if type(value).__name__ == "PRNGImpl":
            return self.graph.call_function(calls.prng, (value.name,))
        if isinstance(value, tuple) and any(isinstance(leaf, (core.Jaxpr, core.ClosedJaxpr)) for leaf in value):
            parts = [self._param(item) for item in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return plain(value)

    # ---- bodies --------------------------------------------------------------------------------------------------

    def body(
        self,
        jaxpr: Any,
        arrange: Callable[[Graph, list[Any]], list[Any]] | None = None,
        pack: Callable[[list[Any]], Any] | None = None,
        whole: bool = False,
    ) -> tuple[Graph, list[Node]]:
        """A jaxpr as a graph of its own, and the nodes of this graph that it needs besides its inputs.

        Those come first among its parameters. ``arrange`` makes the parameters for the inputs, one each if it is not
        given; ``pack`` says what the body returns for its results: the result itself, or a tuple if there are several.
        """
        closed = as_jaxpr(jaxpr)
        graph = Graph()
        free: dict[Node, Node] = {}

        def constant(value: Any) -> Node:
            outside = self._constant(value)
            if outside not in free:
                first = next(iter(graph.nodes), None)
                with graph.inserting_before(first) if first is not None else graph.inserting_after():
                    free[outside] = graph.placeholder(outside.name)
            return free[outside]

        inner = Importer(graph, constant, self, whole)
        variables = closed.jaxpr.invars
        operands = (arrange or (lambda made, given: [self._parameter(made, one) for one in given]))(graph, variables)
        results = inner.run(closed, operands)
        graph.output((pack or _packed)(results))
        ordered = [node for node in graph.nodes if node in free.values()]
        inside = {mine: outside for outside, mine in free.items()}
        return graph, [inside[node] for node in ordered]

    def _parameter(self, graph: Graph, variable: Any, name: str = "") -> Node:
        return self.typed(graph.placeholder(name or _letter(len(graph.nodes))), variable.aval)


def _letter(place: int) -> str:
    """Parameters of bodies are named as in a jaxpr: a, b, c and so on."""
    return chr(ord("a") + place) if place < 26 else f"a{place}"


def _packed(results: list[Any]) -> Any:
    return results[0] if len(results) == 1 else tuple(results)


def fitting(way: Way, eqn: Any, whole: bool = False) -> Choice | None:
    """A way that is the equation, with its numbers written plainly if that is the same, or as arrays of their type."""
    literals = {place: one for place, one in enumerate(eqn.invars) if isinstance(one, core.Literal)}
    if any(numpy.shape(one.val) for one in literals.values()):
        literals = {}
    tries = [(True, {place: _number(numpy.asarray(one.val)) for place, one in literals.items()})] if literals else []
    for plain_numbers, given in (*tries, (False, {place: one.val for place, one in literals.items()}), (False, {})):
        found = is_equation(way, eqn, given, whole)
        if found:
            return Choice(way, plain_numbers, found == SEVERAL)
    return None


def _number(value: numpy.ndarray[Any, Any]) -> Any:
    """A Python number for an array of one element."""
    if value.dtype.kind in "biufc":
        return value.item()
    return float(value)  # the narrow floats


def _numbers(value: numpy.ndarray[Any, Any]) -> Any:
    return value.tolist()


def _key(eqn: Any, whole: bool) -> Any:
    """What decides how an equation is written; None if that cannot be compared."""
    operands = tuple(
        (kind_of_aval(one.aval), numpy.asarray(one.val).tobytes() if isinstance(one, core.Literal) else None)
        for one in eqn.invars
    )
    results = tuple(kind_of_aval(one.aval) for one in eqn.outvars)
    params = tuple(sorted(plain_dict(eqn.params).items(), key=lambda item: item[0]))
    settings = (whole, setting("jax_enable_x64"))
    key = (eqn.primitive, operands, results, params, settings)
    try:
        hash(key)
    except TypeError:  # a parameter that is a list, say
        return (eqn.primitive, operands, results, repr(params), settings)
    return key if not any(isinstance(value, (core.Jaxpr, core.ClosedJaxpr)) for _, value in params) else None


def setting(name: str) -> Any:
    """A setting of JAX, as it is in this context; None if this version does not have it."""
    return getattr(jax.config, name, None)


def source_of(eqn: Any) -> SourceLine | None:
    """The user's line that made an equation."""
    traceback = eqn.source_info.traceback
    frames = () if traceback is None else private.user_frames(traceback)
    for frame in frames:
        if not frame.file_name.startswith(PACKAGE_FOLDER):
            return SourceLine(frame.file_name, frame.start_line, frame.function_name.rpartition(".")[2])
    return None


def _check_context(eqn: Any) -> None:
    """Raise if an equation was made under a setting that the program changed on its way."""
    context = getattr(eqn, "ctx", None)
    if context is None:
        return
    if getattr(context, "compute_type", None) is not None or getattr(context, "xla_metadata", None):
        _refuse("the program says where or how a part of it is compiled", "the calls of the graph would not say so")
    if getattr(context, "threefry_partitionable", None) not in (None, setting("jax_threefry_partitionable")):
        _refuse("the program changes how random numbers are made on its way", "the graph runs under one setting")
    wide = {"float64", "int64", "uint64", "complex128"}
    avals = [variable.aval for variable in eqn.outvars]
    if not setting("jax_enable_x64") and any(getattr(getattr(one, "dtype", None), "name", "") in wide for one in avals):
        _refuse("the program turns on numbers of 64 bits on its way", "the graph runs under one setting")


def _refuse(what: str, why: str) -> NoReturn:
    raise CaptureError(what, why=why, fixes=("set it around the whole program, before the capture",))
