"""When a piece of a pattern equals a piece of a graph: literals, attributes, modules and calls.

In come two values or two nodes, out comes yes or no, or the pairs of arguments that are still to be compared. Calls are
paired as written, and by their canonical forms (``spellings``), with operands that may change places in both orders.
Equality is strict, because a pattern that matches falsely changes a program: ``1``, ``1.0`` and ``True`` are three
literals, ``0.0`` and ``-0.0`` two, nan equals nan. Stateless modules and plain constant tensors are literals too.
What has state (a module with parameters, a parameter, a buffer) is bound by its class, as a stand-in for any such;
a graph module keeps its plain tensors as buffers, so those of a pattern that is one are bound in this way as well.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from clew.errors import ClewError
from clew.ir.arguments import Reference, is_leaf, leaves
from clew.ir.effects import resolve
from clew.ir.equality import same_number
from clew.ir.guests import guest_of, present
from clew.ir.node import Node
from clew.ir.spellings import Form, may_swap

Pair = tuple[Any, Any, bool]
"""A value of the pattern, one of the graph, and whether a list may stand for a tuple."""

_INDEXING = frozenset({"getitem", "setitem", "delitem", "__getitem__", "__setitem__", "__delitem__"})


def kind_of(value: Any) -> type:
    """The class of a value; lists and dicts are of one kind with their immutable twins."""
    for base in (list, dict):
        if isinstance(value, base) and type(value).__module__ == "clew.ir.arguments":
            return base
    return type(value)


def same_value(left: Any, right: Any) -> bool:
    """True when two nests hold the same nodes and the same literals in the same containers."""
    pairs: list[Pair] = [(left, right, False)]
    while pairs:
        one, other, loose = pairs.pop()
        if isinstance(one, Reference) or isinstance(other, Reference):
            more: list[Pair] | None = [] if one is other else None
        else:
            more = unfold(one, other, loose)
        if more is None:
            return False
        pairs += more
    return True


def unfold(left: Any, right: Any, loose: bool, ignore_literals: bool = False) -> list[Pair] | None:
    """What is left to compare of two values that are no nodes: pairs of members; None when they differ."""
    if ignore_literals and not _holds_nodes(left) and not _holds_nodes(right):
        return []
    if isinstance(left, (tuple, list)) and isinstance(right, (tuple, list)):
        alike = kind_of(left) is kind_of(right) or (loose and not hasattr(left, "_fields"))
        if not alike or len(left) != len(right):
            return None
        return [(one, other, loose) for one, other in zip(left, right, strict=True)]
    if kind_of(left) is not kind_of(right):
        return None
    if isinstance(left, dict):
        return _by_key(left, right, loose)
    if isinstance(left, slice):
        return [(left.start, right.start, loose), (left.stop, right.stop, loose), (left.step, right.step, loose)]
    return [] if same_literal(left, right) else None


def _holds_nodes(value: Any) -> bool:
    return any(isinstance(leaf, Reference) for leaf in leaves(value))


def _by_key(left: dict[Any, Any], right: dict[Any, Any], loose: bool) -> list[Pair] | None:
    """Pairs of the values under equal keys, whatever their order."""
    keys = {(type(key), key): key for key in right}
    if len(left) != len(right) or any((type(key), key) not in keys for key in left):
        return None
    return [(value, right[key], loose) for key, value in left.items()]


def same_literal(left: Any, right: Any) -> bool:
    """True for two leaves of one class and one value."""
    if left is right:
        return True
    if kind_of(left) is not kind_of(right):
        return False
    if isinstance(left, (float, complex)):
        return same_number(left, right)
    guest = guest_of(left)
    known = None if guest is None else guest.same_value(left, right)
    if known is not None:
        return bool(known)
    if hasattr(left, "shape") and hasattr(left, "dtype"):
        return _same_array(left, right)
    return (left == right) is True


def _same_array(left: Any, right: Any) -> bool:
    if left.dtype != right.dtype or tuple(left.shape) != tuple(right.shape):
        return False
    both_nan = (left != left) & (right != right)
    return bool(((left == right) | both_nan).all())


# ---- nodes -----------------------------------------------------------------------------------------------------------


def same_operation(left: Node, right: Node, ignore_literals: bool = False) -> bool:
    """True when the two nodes do the same thing to their arguments."""
    if left.op != right.op:
        return False
    if left.op in ("placeholder", "output"):
        return True
    if left.op in ("get_attr", "call_module"):
        mine, theirs = (resolve(node.graph.owning_module, node.target) for node in (left, right))
        if mine is None or theirs is None:
            return bool(left.target == right.target)
        same = same_module if left.op == "call_module" else _same_attribute(left, right)
        return same(mine, theirs, ignore_literals)
    return left.target is right.target or bool(left.target == right.target)


def same_module(left: Any, right: Any, ignore_literals: bool = False) -> bool:
    """True for modules of one class; those without parameters and buffers must be configured alike as well."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if not hasattr(left, "named_parameters"):
        return bool(left == right)
    return ignore_literals or has_state(left) or has_state(right) or same_configuration(left, right)


def has_state(module: Any) -> bool:
    """True when a module, or one inside of it, holds parameters or buffers."""
    return any(True for _ in module.parameters()) or any(True for _ in module.buffers())


def same_configuration(left: Any, right: Any) -> bool:
    """True when two modules of one class have equal settings, and so have the modules inside of them.

    Settings are the public attributes that are neither state nor modules; being in training mode is none of them.
    """
    inner_left, inner_right = dict(left.named_modules()), dict(right.named_modules())
    if inner_left.keys() != inner_right.keys():
        return False
    pairs = [(inner_left[path], inner_right[path]) for path in inner_left]
    return all(type(one) is type(other) and same_value(_settings(one), _settings(other)) for one, other in pairs)


def _settings(module: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if name[0] != "_" and name != "training"}


def _same_attribute(left: Node, right: Node) -> Callable[[Any, Any, bool], bool]:
    if is_state(left.graph.owning_module, left.target) and is_state(right.graph.owning_module, right.target):
        return lambda mine, theirs, ignore_literals: type(mine) is type(theirs)
    return lambda mine, theirs, ignore_literals: (
        kind_of(mine) is kind_of(theirs) and (ignore_literals or same_value(mine, theirs))
    )


def is_state(root: Any, path: str) -> bool:
    """True when the path leads to a parameter or a buffer: something whose value is not fixed."""
    holder_path, _, name = path.rpartition(".")
    holder = resolve(root, holder_path) if holder_path else root
    return name in getattr(holder, "_parameters", ()) or name in getattr(holder, "_buffers", ())


# ---- arguments -------------------------------------------------------------------------------------------------------


Named = list[tuple[Any, Pair]]
"""Pairs of arguments, each behind the name or the position of its parameter."""


def pairings(
    left: Node, right: Node, mine: tuple[Form, ...], theirs: tuple[Form, ...], as_written: bool
) -> list[Named]:
    """The ways in which the arguments of two calls can be paired: as they are written, and by the forms of both."""
    ways = []
    written = pair_arguments(left, right) if as_written else None
    if written is not None:
        ways.append(written)
    for one, other in ((one, other) for one in mine for other in theirs):
        if (one.framework, one.operation) == (other.framework, other.operation):
            swapped = other.swapped() if may_swap(other, right) else None
            ways += [found for form in (other, swapped) if form and (found := _by_form(one, form)) is not None]
            break
    return ways


def _by_form(one: Form, other: Form) -> Named | None:
    if one.arguments.keys() != other.arguments.keys():
        return None
    return [(name, (value, other.arguments[name], True)) for name, value in one.arguments.items()]


def shared_operation(mine: tuple[Form, ...], theirs: tuple[Form, ...]) -> bool:
    """Whether two calls have forms of one operation."""
    operations = {(form.framework, form.operation) for form in mine}
    return any((form.framework, form.operation) in operations for form in theirs)


def pair_arguments(left: Node, right: Node) -> Named | None:
    """The arguments of two calls, one of the pattern and one of the graph, paired by position and name."""
    loose = list_equals_tuple(right)
    if len(left.args) == len(right.args) and left.kwargs.keys() == right.kwargs.keys():
        pairs: Named = [(place, (left.args[place], right.args[place], loose)) for place in range(len(left.args))]
        return pairs + [(name, (value, right.kwargs[name], loose)) for name, value in left.kwargs.items()]
    if left.op != right.op or left.op not in ("call_function", "call_module"):
        return None
    for named in (_by_schema, _by_signature, _by_guest):
        mine, theirs = named(left), named(right)
        if mine is not None and theirs is not None and mine.keys() == theirs.keys():
            return [(name, (value, theirs[name], loose)) for name, value in mine.items()]
    return None


def list_equals_tuple(node: Node) -> bool:
    """True when the call takes a list and a tuple alike: a framework's function that does no indexing."""
    if node.op == "call_function":
        return getattr(node.target, "__name__", "") not in _INDEXING and guest_of(node.target) is not None
    if node.op == "call_method" and node.target not in _INDEXING and any(not is_leaf(item) for item in node.args):
        return any(guest.method_effect(node.target, node.args, node.kwargs) is not None for guest in present())
    return node.op == "output"


def _by_schema(node: Node) -> dict[str, Any] | None:
    """The arguments of a call of an operator that carries a schema, by name, defaults filled in."""
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None:
        return None
    named: dict[str, Any] = {}
    for position, parameter in enumerate(schema.arguments):
        if parameter.name in node.kwargs:
            named[parameter.name] = node.kwargs[parameter.name]
        elif not parameter.kwarg_only and position < len(node.args):
            named[parameter.name] = node.args[position]
        else:
            named[parameter.name] = parameter.default_value
    return named


def _by_signature(node: Node) -> dict[str, Any] | None:
    """The arguments of a call of a Python function or module, by name, defaults filled in."""
    if node.op == "call_function":
        signature, args = _signature_of(node.target), node.args
    else:
        module = resolve(node.graph.owning_module, node.target)
        signature, args = _signature_of(getattr(type(module), "forward", None)), (None, *node.args)
    if signature is None:
        return None
    try:
        call = signature.bind(*args, **node.kwargs)
    except TypeError:  # the call does not fit the signature, so nothing can be said about it
        return None
    call.apply_defaults()
    return dict(call.arguments)


def _signature_of(function: Any) -> inspect.Signature | None:
    try:
        return _cached_signature(function)
    except TypeError:  # a callable without a hash
        return None


@functools.lru_cache(maxsize=1024)
def _cached_signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # no callable, or a builtin without a signature
        return None


def _by_guest(node: Node) -> dict[str, Any] | None:
    """The arguments as the framework names them."""
    root = node.graph.owning_module
    try:
        found = node.normalized_arguments(root, normalize_to_only_use_kwargs=True)
    except ClewError:  # the framework cannot tell which overload is meant, so nothing is known
        return None
    return None if found is None or found[0] else dict(found[1])
