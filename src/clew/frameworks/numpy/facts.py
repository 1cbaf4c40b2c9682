"""Shapes, ranks and dtypes of arrays as values of the graph, and what the classes of results depend on.

``x.shape`` is a tuple of traced sizes whose length stays free while it is indexed, cut, joined, compared or handed on;
whoever walks it, or unpacks it, relies on the rank. ``x.dtype`` may be handed to NumPy and compared; its parts, its
text and its hash are guarded. ``x.ndim`` is a traced number.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy

from clew.capture.bytecode.try_blocks import handlers_of
from clew.capture.recording.list_proxies import TupleProxy
from clew.capture.recording.recorder import Pending, Scalar
from clew.frameworks.numpy.array_proxy import (
    SLOTS,
    Reliance,
    Traced,
    TracedArray,
    TracedGeneric,
    TracedInt,
    TracedList,
    TracedPython,
    made_stand_in,
    relying,
)
from clew.ir.arguments import bodies_of, leaves
from clew.ir.effects import pure
from clew.ir.node import Node
from clew.ir.types import ArrayType

if TYPE_CHECKING:
    from clew.frameworks.numpy.recorder import NumpyRecorder


_PARTS = frozenset("kind char num name str type itemsize".split())


class TracedShape(TupleProxy):
    """The shape of an array, or a part of one, of whatever length."""

    recorder: NumpyRecorder
    array: Any = None
    """The array, if it is one of the arguments: how many sizes there must be is checked before the program runs."""

    def fix_length(self) -> tuple[Any, ...]:
        """Rely on the rank from now on."""
        if self.is_whole:
            recorder, node = self.recorder, self.recorder.resolve(self.place)
            is_shape = node.target is getattr and node.args[1] == "shape"
            rank = recorder.create(getattr, (node.args[0], "ndim")) if is_shape else recorder.create(len, (node,))
            recorder.guard(rank, tuple.__len__(self))
            self.fixed = tuple.__getitem__(self, slice(None))
        return self.plain

    def _reach(self, place: int) -> None:
        """Rely on there being so many sizes: nobody may use this one, and then the graph would not ask for it."""
        recorder, node = self.recorder, self.recorder.resolve(self.place)
        is_shape, least = node.target is getattr and node.args[1] == "shape", place if place >= 0 else -place - 1
        if self.array is not None:
            recorder.least_ranks[id(self.array)] = max(least + 1, recorder.least_ranks.get(id(self.array), 0))
        else:
            rank = recorder.create(getattr, (node.args[0], "ndim")) if is_shape else recorder.create(len, (node,))
            recorder.guard(recorder.create(operator.gt, (rank, least)), True)
            recorder.sizes_of_results = True

    def __getitem__(self, key: Any) -> Any:
        if not self.is_whole:
            return self.plain[key]
        if type(key) is int and -tuple.__len__(self) <= key < tuple.__len__(self):
            self._reach(key)
            node = self.recorder.create(operator.getitem, (self.recorder.resolve(self.place), key))
            return _number(self.recorder, self.recorder.concrete(tuple.__getitem__(self, key)), node)
        if type(key) is TracedInt and not self.recorder.bodies.open:
            size = tuple.__getitem__(self, self.recorder.concrete(key))
            node = self.recorder.create(operator.getitem, self.recorder.argument((self, key)))
            return _number(self.recorder, self.recorder.concrete(size), node)
        bounds = (key.start, key.stop, key.step) if isinstance(key, slice) else (0.5,)
        if any(type(bound) not in (int, type(None)) for bound in bounds):
            return self.fix_length()[key]
        node = self.recorder.create(operator.getitem, (self.recorder.resolve(self.place), key))
        return shape(self.recorder.concrete(tuple.__getitem__(self, key)), node, self.recorder, kind=type(self))

    def __add__(self, other: Any) -> Any:
        return self._joined(self, other)

    def __radd__(self, other: Any) -> Any:
        return self._joined(other, self)

    def _joined(self, first: Any, second: Any) -> Any:
        if not isinstance(first, tuple) or not isinstance(second, tuple):
            return NotImplemented
        if not self.is_whole:
            return (*first, *second)
        recorder = self.recorder
        plain = (*recorder.concrete(first), *recorder.concrete(second))
        node = recorder.create(operator.add, (recorder.argument(first), recorder.argument(second)))
        return shape(plain, node, recorder, kind=type(self))

    def __eq__(self, other: object) -> Any:
        return self._compared(operator.eq, other)

    def __ne__(self, other: object) -> Any:
        return self._compared(operator.ne, other)

    def _compared(self, function: Callable[..., Any], other: Any) -> Any:
        if not isinstance(other, tuple):
            return NotImplemented
        recorder = self.recorder
        answer = function(recorder.concrete(self), recorder.concrete(other))
        if not self.is_whole:
            return answer
        node = recorder.create(function, (recorder.argument(self), recorder.argument(other)))
        return _number(recorder, answer, node)

    __hash__ = TupleProxy.__hash__


def _number(recorder: NumpyRecorder, plain: Any, place: Any) -> Any:
    """The proxy of a size, or of what a comparison says: a number of Python's, whatever the arrays are."""
    return relying(recorder.result(plain, place), Reliance.NOTHING)


def shape(
    plain: tuple[int, ...],
    place: Any,
    recorder: NumpyRecorder,
    array: Any = None,
    kind: type[TracedShape] = TracedShape,
) -> Any:
    """The proxy of a shape; of an ``array`` among the arguments, if it is given."""
    made = kind(_number(recorder, size, Pending(operator.getitem, (place, index))) for index, size in enumerate(plain))
    made.place, made.recorder, made.fixed, made.array = place, recorder, None, array
    return made


class TracedSizes(Traced):
    """Stands in a call for a shape, of whatever length."""

    __slots__ = SLOTS
    __class__ = property(lambda self: TracedSizes)  # type: ignore[assignment]  # no tuple, which would be walked


def whole_shape(plain: tuple[int, ...], place: Any, recorder: NumpyRecorder) -> Any:
    """The proxy of a shape as an argument."""
    return made_stand_in(TracedSizes, plain, place, recorder)


class TracedWhole(Traced):
    """A proxy of an argument that the program only hands on to calls: whatever comes is given to them."""

    __slots__ = SLOTS
    __class__ = property(lambda self: TracedWhole)  # type: ignore[assignment]  # nobody looks into it


def is_whole(value: Any) -> bool:
    """Whether a value is a proxy of such an argument."""
    return type(value) is TracedWhole


def whole_argument(plain: Any, place: Any, recorder: NumpyRecorder) -> Any:
    """The proxy of such an argument."""
    return relying(made_stand_in(TracedWhole, plain, place, recorder), Reliance.DTYPE)


class TracedDtype(Traced):
    """A proxy of a dtype."""

    __slots__ = SLOTS

    def __hash__(self) -> int:
        self.recorder.reveal(self)
        return hash(self.plain)

    def __bool__(self) -> bool:
        self.recorder.reveal(self)
        return bool(self.plain)


def dtype(plain: Any, place: Any, recorder: NumpyRecorder) -> Any:
    """The proxy of a dtype; the dtype itself, relied on, for programs that compare objects."""
    if recorder.identity.of_objects:
        recorder.guard(place, plain)
        return plain
    return relying(made_stand_in(TracedDtype, plain, place, recorder), Reliance.NOTHING)


def dtype_attribute(recorder: NumpyRecorder, traced: Any, name: str) -> Any:
    """A part of a dtype: that alone is relied on where it tells everything that the program can see."""
    found = traced.plain if name == "dtype" else getattr(traced.plain, name)  # as which NumPy takes it
    if name in _PARTS:
        recorder.guard(recorder.create(getattr, (recorder.resolve(traced.place), name)), found)
    else:
        recorder.reveal(traced)
    return found


def can_compare(traced: Any, other: Any) -> bool:
    """Whether a dtype may be compared with something by a call of the graph."""
    return isinstance(traced, TracedDtype) and isinstance(other, (type, str, numpy.dtype, TracedDtype, type(None)))


# ---- what the class of a result depends on ---------------------------------------------------------------------------
#
# What it depends on of which class the result of a call of NumPy's is: an array, a number, or several of them. The
# graph makes the same calls on arrays of any rank and dtype, so these matter only where the program sees a class: it
# asks, or updates a value in place. ``guard_kind`` guards of which classes everything is that a call gave, and for
# programs that are shown ranks and dtypes as plain facts (``recorder.traces_facts``) these too.


VARYING_KINDS = frozenset(
    "eig eigvals roots poly real_if_close apply_along_axis apply_over_axes piecewise fromfunction load loadtxt "
    "genfromtxt fromfile fromregex fromstring frombuffer cov corrcoef cross min_scalar_type polyfit".split()
)
"""Functions whose results have a dtype or rank that depends on sizes, values, files or functions of the user."""

DATA_BOOLS = frozenset(
    "where array asarray asanyarray full full_like select choose copyto put place insert append".split()
)
"""Functions for which a flag among the arguments is data; for all others it says what shall be done."""


def _is_traced_number(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    numbers = [leaf for leaf in leaves((args, kwargs)) if issubclass(type(leaf), Scalar)]
    return any(type(number.plain) in (int, float) for number in numbers)


def _always(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return True


VARYING_RANKS: dict[str, Callable[[tuple[Any, ...], dict[str, Any]], bool]] = {
    "squeeze": _always,
    "tensordot": _is_traced_number,
    "array": _is_traced_number,  # a very large int makes it another dtype
    "asarray": _is_traced_number,
    "asanyarray": _is_traced_number,
    "full": _is_traced_number,
}
"""Functions whose results vary for some arguments."""

_COMPLEX_WHERE_NEEDED = frozenset(getattr(numpy.emath, name) for name in numpy.emath.__all__)


def gives_several(target: Any, value: Any) -> bool:
    """Whether a call gives a list or tuple of which it is not known that there are always as many."""
    if not isinstance(value, (list, tuple)) or hasattr(value, "_fields"):
        return False
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    return name not in _FIXED_NUMBERS and name != "tolist" and not isinstance(target, numpy.ufunc)


_FIXED_NUMBERS = frozenset("unique histogram qr svd slogdet eig eigh lstsq modf frexp divmod linspace".split())
"""Functions that give as many arrays as the flags among their arguments say."""


def varies(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], traces_facts: bool = False) -> bool:
    """Whether the kind of what a call gives must be guarded."""
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    asking = None if traces_facts else VARYING_RANKS.get(name)
    if any(type(value) is TracedList for value in args):  # an empty one gives another dtype and rank
        return True
    if name in VARYING_KINDS or (asking is not None and asking(args, kwargs)):
        return True
    if isinstance(target, numpy.ufunc):
        return all(kind.startswith("O") for kind in target.types)  # made of a function of the user's
    return not isinstance(target, str) and callable(target) and target in _COMPLEX_WHERE_NEEDED


def is_data(node: Node, recorder: NumpyRecorder) -> bool:
    """Whether a value comes from what arrays hold, or changes in a loop, not from shapes, dtypes and numbers given."""
    waiting, seen = [node], set()
    while waiting:
        found = waiting.pop()
        if found in seen:
            continue
        seen.add(found)
        is_inner = found.op == "placeholder" and found.graph is not recorder.bodies.outermost
        if isinstance(found.value_type, ArrayType) or is_inner or bodies_of(found):
            return True
        if not _asks_fact(found):
            waiting += found.all_input_nodes
    return False


def _asks_fact(node: Node) -> bool:
    """Whether a value is a fact about an array that does not depend on what arrays hold."""
    of_shape = node.target is len or (node.target is getattr and node.args[1] in _OF_SHAPES)
    array = node.args[0] if of_shape else None
    if isinstance(array, Node) and isinstance(array.value_type, ArrayType):
        return not _is_selection(array)
    return node.target is type or (node.target is getattr and node.args[1] in ("dtype", "ndim"))


def _is_selection(array: Node) -> bool:
    """Whether as many items are in an array as some other array says: those at a mask, or what differs from zero."""
    if array.op == "placeholder":
        return False
    name = array.target if isinstance(array.target, str) else getattr(array.target, "__name__", "")
    if name == "getitem":
        owner, key = array.args[0], array.args[1]
        made = isinstance(owner, Node) and owner.value_type is None and _is_selection(owner)
        return made or any(isinstance(part, Node) and _is_mask(part) for part in leaves((key,)))
    return name in _SELECTING


def _is_mask(node: Node) -> bool:
    return isinstance(node.value_type, ArrayType) and "bool" in str(node.value_type)


_SELECTING = frozenset(
    "nonzero flatnonzero argwhere unique unique_values unique_counts compress extract intersect1d union1d setdiff1d "
    "setxor1d trim_zeros delete repeat".split()
)
_OF_SHAPES = frozenset({"shape", "size", "nbytes", "strides", "flags"})


def guard_kind(recorder: NumpyRecorder, value: Any, place: Any) -> None:
    """Guard what kind of value a call gave, and of what its parts are."""
    if isinstance(value, tuple):
        recorder.guard(recorder.create(len, (recorder.resolve(place),)), len(value))
        for index, item in enumerate(value):
            guard_kind(recorder, item, Pending(operator.getitem, (place, index)))
    elif type(value) is list:
        if recorder.traces_facts:
            recorder.guard(recorder.create(type, (recorder.resolve(place),)), list)
            recorder.guard(recorder.create(len, (recorder.resolve(place),)), len(value))
        for index, item in enumerate(value):
            guard_kind(recorder, item, Pending(operator.getitem, (place, index)))
    elif isinstance(value, (numpy.ndarray, numpy.generic, bool, int, float, complex)) or value is None:
        node = recorder.resolve(place)
        recorder.guard(recorder.create(type, (node,)), type(value))
        if isinstance(value, numpy.ndarray) and not recorder.traces_facts:
            recorder.guard(recorder.create(getattr, (node, "dtype")), value.dtype)
            recorder.guard(recorder.create(getattr, (node, "ndim")), value.ndim)


_ELEMENTWISE = (
    "add sub mul truediv floordiv mod pow lshift rshift and_ or_ xor lt le gt ge eq ne neg abs pos invert "
    "iadd isub imul itruediv ifloordiv imod ipow ilshift irshift iand ior ixor setitem"
)
_OPERATORS = frozenset({*(getattr(operator, name) for name in _ELEMENTWISE.split()), len, int, float, complex, bool})
_REDUCING = frozenset(
    "sum mean max min prod std var all any argmax argmin amax amin nansum nanmean nanmax nanmin median norm "
    "trace".split()
)
_KEEPING = frozenset(
    "copy astype clip round conj conjugate ravel flatten cumsum cumprod argsort fill zeros_like ones_like empty_like "
    "full_like where nan_to_num expand_dims flip concatenate stack isclose allclose array_equal".split()
)
"""Functions and methods of these names give arrays of an axis or more where they are given such, or a Python bool."""
_BY_RANK = frozenset(
    "reshape transpose swapaxes moveaxis dot inner outer vdot matmul einsum tensordot vstack hstack tile repeat take "
    "sort median norm inv det solve diff trace diagonal diag roll pad broadcast_to atleast_1d atleast_2d".split()
)
"""Of these, ranks decide what they give."""
_STREAMS = (numpy.random.Generator, numpy.random.RandomState)
_STRETCHES = (slice, type(None), type(...))
_KINDS = "biufc"


@pure
def holds_numbers(value: Any) -> bool:
    """Whether an array holds numbers or truths, and no objects, texts or dates."""
    return value.dtype.kind in _KINDS


@pure
def has_an_axis(value: Any) -> bool:
    """Whether an array is more than a single number."""
    return bool(value.ndim > 0)


@pure
def has_axes(value: Any, count: int) -> bool:
    """Whether an array has so many axes, or more."""
    return bool(value.ndim >= count)


@pure
def is_number(value: Any) -> bool:
    """Whether a value is a number: of Python's, but no truth, or of NumPy's."""
    return type(value) in _PYTHON_NUMBERS or isinstance(value, numpy.number)


@pure
def is_number_or_array(value: Any) -> bool:
    """Whether a value is a number, or an array of numbers."""
    return is_number(value) or (type(value) is numpy.ndarray and value.dtype.kind in _KINDS)


@pure
def is_array(value: Any) -> bool:
    """Whether a value is an array, and no number."""
    return isinstance(value, numpy.ndarray)


_PYTHON_NUMBERS = frozenset({int, float, complex})


def may_be_another(array: Any) -> bool:
    """Whether arrays of other dtypes and ranks could stand for this one."""
    return type(array) is numpy.ndarray and holds_numbers(array) and has_an_axis(array)


def reliance_of(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Reliance:
    """What it depends on whether the result of a call is an array with an axis, or a number."""
    own = own_reliance(target, args, kwargs)
    given = [leaf.reliance for leaf in leaves((args, kwargs)) if issubclass(type(leaf), Traced)]
    return Reliance.NOTHING if own is None else max([own, *given])


def own_reliance(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Reliance | None:
    """The same, besides what it depends on of which classes the arguments are; None for what is always a number."""
    if any(map(is_whole, leaves((args, kwargs)))):
        return Reliance.DTYPE
    return None if _gives_number(target, args, kwargs) else _own_reliance(target, args, kwargs)


def _gives_number(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call gives a number, whatever arrays it is given."""
    if kwargs.get("out") is not None:
        return False
    if isinstance(target, str):
        name = target
    else:
        name = getattr(target, "__name__", "")
        if target in _CONVERSIONS:
            return True
        if target is not getattr(numpy, name, None) and target is not getattr(numpy.linalg, name, None):
            return False
    is_whole = len(args) == 1 and set(kwargs) <= {"axis"} and kwargs.get("axis") is None
    return (is_whole and name in _REDUCING) or (isinstance(target, str) and name == "item")


_CONVERSIONS = frozenset({len, int, float, complex, bool})


def _own_reliance(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Reliance:
    """What it depends on besides the arguments being arrays with an axis, or numbers."""
    if kwargs.get("out") is not None:
        return Reliance.DTYPE
    if not any(_is_of_arrays(leaf) for leaf in leaves((args, kwargs))):
        return Reliance.NOTHING
    if target is operator.getitem:
        return _reliance_of_key(args[1])
    if isinstance(target, str) and isinstance(args[0].plain, _STREAMS):  # of a size that may be a shape
        is_traced = any(issubclass(type(leaf), Traced) for leaf in leaves((args[1:], kwargs)))
        return Reliance.RANK if is_traced else Reliance.NOTHING
    if isinstance(target, numpy.ufunc):
        return Reliance.NOTHING if target.signature is None else Reliance.RANK
    is_method, name = isinstance(target, str), target if isinstance(target, str) else getattr(target, "__name__", "")
    if not is_method and target in _OPERATORS:
        return Reliance.NOTHING
    if target is operator.matmul:
        return Reliance.RANK
    if not is_method and target is not getattr(numpy, name, None) and target is not getattr(numpy.linalg, name, None):
        return Reliance.DTYPE
    if name in _REDUCING:
        is_simple = len(args) == 1 and set(kwargs) <= {"keepdims", "axis"}
        return Reliance.NOTHING if is_simple and kwargs.get("keepdims") is True else Reliance.RANK
    return Reliance.NOTHING if name in _KEEPING else Reliance.RANK if name in _BY_RANK else Reliance.DTYPE


def is_arithmetic(target: Any, args: tuple[Any, ...]) -> bool:
    """Whether a call is an operator between numbers of Python's, or facts, whatever the arrays of the program are."""
    is_operator = not isinstance(target, str) and target in _OPERATORS
    return is_operator and all(type(value) in _LITERALS or _is_number_or_fact(value) for value in args)


_LITERALS = (int, float, bool, str)


def _is_number_or_fact(value: Any) -> bool:
    is_one = issubclass(type(value), Traced) and type(value) not in (TracedArray, TracedGeneric)
    return is_one and value.reliance is Reliance.NOTHING


def _is_of_arrays(value: Any) -> bool:
    return issubclass(type(value), Traced) and not issubclass(type(value), TracedPython)


def _is_position(value: Any) -> bool:
    """Whether a value is a whole number, and no truth, whatever the dtypes of arrays are."""
    node = getattr(value.place, "node", value.place) if type(value) is TracedGeneric else None
    name = getattr(node, "target", "")
    return (name if isinstance(name, str) else getattr(name, "__name__", "")) in _POSITIONS


_POSITIONS = frozenset({"argmax", "argmin", "count_nonzero", "nanargmax", "nanargmin"})


def _reliance_of_key(key: Any) -> Reliance:
    """Items at a stretch are an array in any case, and those that another array names; single ones are by rank."""
    if type(key) is TracedArray:
        return Reliance.NOTHING if may_be_another(key.plain) else Reliance.DTYPE
    parts = key if type(key) is tuple else (key,)
    if all(type(part) in _STRETCHES for part in parts):
        return Reliance.NOTHING
    is_plain = all(type(part) in _STRETCHES or type(part) in (int, TracedInt) or _is_position(part) for part in parts)
    return Reliance.RANK if is_plain else Reliance.DTYPE


_UNSEEN = (TypeError, AttributeError, ValueError)
"""What Python itself raises where a value is a number, and not an array, or the other way round."""


def may_catch_class(function: FunctionType) -> bool:
    """Whether a function, or one inside of it, may go another way where a value is of another class."""
    return any(_catches_unseen(code, function.__globals__) for code in _all_codes(function.__code__))


def _catches_unseen(code: CodeType, names: dict[str, Any]) -> bool:
    for _, _, asked in handlers_of(code):
        for name in asked or ("BaseException",):
            first, *rest = name.split(".")
            kind = names.get(first, getattr(builtins, first, None))
            for part in rest:
                kind = getattr(kind, part, None)
            if not isinstance(kind, type) or any(issubclass(error, kind) for error in _UNSEEN):
                return True
    return False


def _all_codes(code: CodeType) -> list[CodeType]:
    return [code, *(inner for part in _inside(code) for inner in _all_codes(part))]


def _inside(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]
