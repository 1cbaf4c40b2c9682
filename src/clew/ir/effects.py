"""What a node does besides computing its value: the ground on which dead code may be dropped.

The rule of the house is that an unknown effect is an effect. Pure is only what somebody vouched for: this file for
Python's own functions, a framework's guest for its own, the user with ``pure``. ``has_side_effect`` overrides all.
"""

from __future__ import annotations

import builtins
import math
import operator
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from clew.ir.arguments import FLAT, Reference, bodies_of
from clew.ir.control_flow import CONTROL, Loop, choose, control_of
from clew.ir.guests import Effect, guest_of, present
from clew.ir.types import ArrayType, ListType, TupleType

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

FIRST_WRITE = "first_write"
"""Marks, in the meta of a node, where a graph begins to write the program's state; the text has a line for it."""

WRITING_OPERATORS = frozenset(
    getattr(operator, name)
    for name in (
        "iadd iand iconcat ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor setitem delitem"
    ).split()
)

_PURE_BUILTINS = (
    "abs all any bin bool bytes callable chr complex dict divmod enumerate float format frozenset getattr hasattr hash "
    "hex id int isinstance issubclass len list max min oct ord pow range repr reversed round set slice sorted str sum "
    "tuple type zip"
)
_PURE_METHODS = frozenset(
    "count endswith find format get index items join keys lower replace rsplit split startswith strip upper values "
    "copy is_integer bit_length __getitem__ __len__ __contains__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__".split()
)

_pure: set[Any] = {
    *(getattr(builtins, name) for name in _PURE_BUILTINS.split()),
    *(function for name, function in vars(math).items() if callable(function)),
    *(
        function
        for name, function in vars(operator).items()
        if callable(function) and function not in WRITING_OPERATORS and not isinstance(function, type)
    ),
    operator.attrgetter,
    operator.itemgetter,
    choose,
}
effectful: set[Any] = set()
_drawing: set[Any] = set()
_harmless: set[Any] = set()


def has_side_effect(fn: FunctionT) -> FunctionT:
    """Declare that calling ``fn`` has an effect, so that no pass drops it. Usable as a decorator."""
    effectful.add(fn)
    _pure.discard(fn)
    return fn


def pure(fn: FunctionT) -> FunctionT:
    """Declare that ``fn`` only computes its result, so that unused calls of it may be dropped."""
    _pure.add(fn)
    effectful.discard(fn)
    return fn


def draws_numbers(fn: FunctionT) -> FunctionT:
    """Declare that ``fn`` computes its result and draws random numbers, and does nothing else."""
    _drawing.add(fn)
    return fn


def harmless(fn: FunctionT) -> FunctionT:
    """Declare that ``fn``, a function of Clew's, reaches nothing but its arguments, so that any text may name it.

    Nothing is said of its effect: that it may raise, or look at what changes, is why its calls stay.
    """
    _harmless.add(fn)
    return fn


def is_declared(fn: Any) -> bool:
    """Whether somebody has declared that calling ``fn`` has an effect, of whatever kind."""
    return _is_in(fn, effectful)


def is_known(fn: Any) -> bool:
    """Whether somebody has declared what calling ``fn`` does."""
    return any(_is_in(fn, declared) for declared in (_pure, effectful, _drawing, _harmless, CONTROL))


_RESHAPING = re.compile(r"(t|transpose|swapaxes|swapdims|squeeze|unsqueeze|resize|resize_as|set|as_strided)_|set_data")
_SETTING_FILES = frozenset({"clew.capture.state.slots", "clew.capture.state.writes"})


def sets_state(target: Any) -> bool:
    """Whether a function sets what a captured program keeps, an attribute, item or variable: those of two files do."""
    return getattr(target, "__module__", "") in _SETTING_FILES


def may_reshape(node: Any) -> bool:
    """Whether a call may give a value that is there already another shape, dtype or device."""
    target = node.target
    return _RESHAPING.fullmatch(target if isinstance(target, str) else getattr(target, "__name__", "")) is not None


def effect_of(node: Any, root: Any = None) -> Effect:
    """The effect of running ``node``; ``UNKNOWN`` when nobody vouches for it.

    ``root`` has the modules that the node may call; by default it is the owner of the node's graph.
    """
    root = node.graph.owning_module if root is None else root
    if node.op == "call_function":
        effect = _function_effect(node)
    elif node.op == "call_method":
        effect = _method_effect(node)
    elif node.op == "call_module":
        effect = _module_effect(node, root)
    else:
        effect = Effect.NONE
    return effect if effect is not Effect.NONE else _effect_of_bodies(node, root)


def is_impure(node: Any, impure_random: bool = True) -> bool:
    """True when ``node`` must stay even if nobody uses its value; inputs and the output always must."""
    if node.op in ("placeholder", "output"):
        return True
    effect = effect_of(node)
    return effect is not Effect.NONE and (impure_random or effect is not Effect.RANDOM)


def _function_effect(node: Any) -> Effect:
    target = node.target
    if _is_in(target, effectful):
        return Effect.WRITE
    if _is_in(target, CONTROL):
        return _control_effect(node)
    if _is_in(target, WRITING_OPERATORS):
        return Effect.WRITE
    if _is_in(target, _pure):
        return Effect.NONE
    if _is_in(target, _drawing):
        return Effect.RANDOM
    guest = guest_of(target)
    known = None if guest is None else guest.function_effect(target, node.args, node.kwargs)
    return Effect.UNKNOWN if known is None else known


def _control_effect(node: Any) -> Effect:
    """Branches and loops do what their bodies do, if these are graphs; iterating may use up what is iterated over."""
    control = control_of(node)
    if control is None:
        return Effect.UNKNOWN
    if not isinstance(control, Loop) or not control.is_for or _can_be_iterated_again(control.iterable):
        return Effect.NONE
    return Effect.UNKNOWN


def _can_be_iterated_again(value: Any) -> bool:
    if isinstance(getattr(value, "value_type", None), (ArrayType, ListType, TupleType)):
        return True
    if isinstance(value, Reference):
        return _is_in(getattr(value, "target", None), (range, list, tuple, sorted, dict, set))
    return isinstance(value, (list, tuple, dict, str, range))


def _is_in(target: Any, functions: Any) -> bool:
    try:
        return target in functions
    except TypeError:  # a callable without a hash cannot have been registered
        return False


def _effect_of_bodies(node: Any, root: Any) -> Effect:
    """A pure function that is handed graphs (control flow) has the effects of their nodes."""
    return worst(effect_of(inner, root) for body in bodies_of(node) for inner in body.nodes)


_ORDER = [Effect.NONE, Effect.RANDOM, Effect.WRITE, Effect.UNKNOWN]


def worst(effects: Iterable[Effect]) -> Effect:
    """The effect that matters most among several; none of none. What draws numbers and writes is no mere draw."""
    return max(effects, key=_ORDER.index, default=Effect.NONE)


def _method_effect(node: Any) -> Effect:
    name = node.target
    if name.endswith("_") and not name.endswith("__"):
        return Effect.WRITE
    for guest in present():
        known = guest.method_effect(name, node.args, node.kwargs)
        if known is not None:
            return known
    return Effect.NONE if name in _PURE_METHODS else Effect.UNKNOWN


def _module_effect(node: Any, root: Any) -> Effect:
    module = resolve(root, node.target)
    if module is None:
        return Effect.UNKNOWN
    declared = getattr(module, "_is_impure", None)
    if declared is not None:
        return Effect.WRITE if declared else Effect.NONE
    graph = getattr(module, "_graph_alone", None)
    if graph is not None:
        return worst(effect_of(inner, module) for inner in graph.nodes)
    guest = guest_of(type(module))
    known = None if guest is None else guest.module_effect(module)
    return Effect.UNKNOWN if known is None else known


def resolve(root: Any, path: str) -> Any:
    """The attribute of ``root`` at a dotted path, or None."""
    for atom in path.split("."):
        root = getattr(root, atom, None)
        if root is None:
            return None
    return root


# ---- the effects of all nodes of a graph, asked once for equal calls -------------------------------------------------
#
# Frameworks answer what a call does from its function and arguments, which takes time; a large graph makes few
# different calls. The cache key is the target, the literals, and for nodes the annotations and types at their places:
# all that a framework can know of a node ahead of a run.


class KnownEffects:
    """Answers like ``effect_of``; the answers for plain calls of functions and methods are kept."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Effect, Any]] = {}

    def of(self, node: Any, root: Any = None) -> Effect:
        """The effect of running ``node``."""
        key = _key(node)
        if key is None:
            return effect_of(node, root)
        try:
            found = self._known.get(key)
        except TypeError:  # an annotation without a hash
            return effect_of(node, root)
        if found is None:
            found = self._known[key] = effect_of(node, root), node  # which keeps alive what the key knows by identity
        return found[0]


def _key(node: Any) -> Any:
    """What alike calls have in common; None for nodes that are asked about one by one."""
    if node.op not in ("call_function", "call_method") or node.kwargs or not FLAT.issuperset(map(type, node.args)):
        return None
    target = node.target if isinstance(node.target, str) else id(node.target)
    return node.op, target, tuple(map(_key_of_argument, node.args))


def _key_of_argument(item: Any) -> Any:
    return _known_of(item) if isinstance(item, Reference) else (type(item), repr(item))


def _known_of(node: Any) -> Any:
    return node.type, node.value_type
