"""Traced numbers in torch: sizes, items and lengths that remember their node.

They derive from torch's symbolic numbers, because torch's C++ argument parser takes nothing else in the place of an
int, and answer ``int`` when asked for their class, because programs ask. Arithmetic on them is recorded; wherever
Python forces one into a plain value, a guard is: so a shape stays general unless the program really relied on it.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy
import torch

from clew.capture.bytecode.statements import is_for_errors, is_only_shown
from clew.capture.bytecode.try_blocks import ARITHMETIC
from clew.capture.control_flow.runtime import before_fact
from clew.capture.guards.lifting import Dependence
from clew.capture.python.messages import marked
from clew.capture.python.random_numbers import DRAWS
from clew.capture.recording.list_proxies import ListProxy
from clew.capture.recording.numbers import operator_methods
from clew.capture.recording.recorder import Recorder, Scalar
from clew.frameworks.torch.tracing_tools import is_tracer
from clew.ir.arguments import bodies_of
from clew.ir.node import Node
from clew.ir.source import is_installed, user_frame
from clew.ir.types import ArrayType, ScalarType

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

_TYPES = {kind: ScalarType(kind.__name__) for kind in (bool, int, float)}


def traced(value: Any, place: Any, recorder: Recorder) -> Any:
    """The traced number of a plain one."""
    kind = type(value)
    cls = TracedBool if kind is bool else TracedInt if kind is int else TracedFloat if kind is float else None
    if cls is None:
        return value
    if recorder.code.gets_plain_numbers and recorder.running:
        recorder.guard(place, value)
        return value
    if type(place) is Node and place.value_type is None:
        object.__setattr__(place, "value_type", _TYPES[kind])
    number: Any = object.__new__(cls)
    number.plain, number.place, number.recorder = value, place, recorder
    return bool(number) if kind is bool and recorder.identity.of_truths and recorder.open else number


def _plain(value: Any) -> Any:
    return value.plain if isinstance(type(value), type) and issubclass(type(value), Scalar) else value


def compute(recorder: Recorder, function: Callable[..., Any], *values: Any) -> Any:
    """Apply a function to numbers, some of them traced, and record that."""
    try:
        result = function(*map(_plain, values))
    except Exception as error:
        recorder.note_failure(error, function, tuple(map(recorder.argument, values)) if recorder.open else ())
        raise
    if not recorder.open:
        return result
    place = recorder.calculate(function, values)
    if place is None:
        given = tuple(recorder.argument(value) for value in values)
        place = recorder.create(function, given, is_result=True, errors=ARITHMETIC)
    elif type(place) is int or type(place) is bool:
        return place
    return traced(result, place, recorder)


def _is_number(value: Any) -> bool:
    kind = type(value)
    return kind in (int, float, bool) or issubclass(kind, (TracedInt, TracedFloat, TracedBool))


def _binary(function: Callable[..., Any], reflected: bool) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if not _is_number(other):
            return NotImplemented
        left, right = (other, self) if reflected else (self, other)
        return compute(self.recorder, function, left, right)

    return method


def repeated(items: Any, number: Any) -> Any:
    """A list of numbers as often as a traced number says, of whatever length; None if it is anything else."""
    is_count = type(number) is TracedInt
    if type(items) is not list or not is_count or not all(map(_is_repeatable, items)):
        return None
    recorder = number.recorder
    node = recorder.create(operator.mul, (recorder.argument(items), recorder.argument(number)))
    return ListProxy(items * number.plain, node, recorder, True, number=number)


def _is_repeatable(item: Any) -> bool:
    """Whether an item is a number, or a tuple of numbers, which nobody can change."""
    items = item if type(item) is tuple else (item,)
    return all(_is_number(one) and one.__class__ is not bool for one in items)


def _power(self: Any, other: Any, *modulo: Any) -> Any:
    """``pow`` with two arguments or three."""
    if not all(map(_is_number, (other, *modulo))):
        return NotImplemented
    return compute(self.recorder, pow if modulo else operator.pow, self, other, *modulo)


def _unary(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, *digits: Any) -> Any:
        return compute(self.recorder, function, self, *(one for one in digits if one is not None))

    return method


def _shown(function: Callable[[Any], str], field: str) -> Callable[[Any], str]:
    """Python wants the text of a number: guarded unless it is only shown to people."""

    def method(self: Any) -> str:
        return text_of_value(self, field) or function(self.plain)

    return method


def is_text_read(recorder: Recorder, frame: FrameType | None, place: Any, plain: Any) -> bool:
    """Whether the program reads the text of a value at this frame: people alone do not count, and neither does an error
    that the graph does not raise; what such an error tells is noted."""
    if is_only_shown(frame, recorder.paths is None):
        return False
    if is_for_errors(frame):
        recorder.error_notes.told.append((place, plain))
        return False
    return True


def text_of_value(value: Any, field: str) -> str | None:
    """What stands for the text of a number or fact that the program prints; None for its own, which is relied on if the
    program reads it."""
    frame = user_frame(3)
    mark = marked(frame, field, value)
    if mark is None and is_text_read(value.recorder, frame, value.place, value.plain):
        value.recorder.guard(value.place, value.plain)
    return mark


def _truth(self: Any) -> bool:
    """Python asks whether a number is true: only that is relied on, not the number itself."""
    answer, recorder = bool(self.plain), self.recorder
    if not recorder.open or recorder.finishing:  # the program has asked all that it asks
        return answer
    if is_decided(recorder, self.place):
        return answer
    node = recorder.resolve(self.place)
    if is_of_dtypes(node, recorder):  # a branch of the graph, if the function that asks can be rewritten
        before_fact(recorder)
        return bool(recorder.truth(self.place, answer, False, is_fixed=True))
    asks_data = is_free(node, recorder)
    if asks_data and recorder.options.refuses_questions and is_of_modes(node, recorder):  # no data of the user's
        asks_data = False
    if not asks_data and recorder.paths is not None and not recorder.options.refuses_questions:
        is_library = is_installed(sys._getframe(1).f_code)
        asks_data = bool(recorder.asks_for_batch(node) if is_library else is_measured(node, recorder))
    chosen = bool(recorder.truth(self.place, answer, asks_data, is_fixed=True))
    is_whole = recorder.paths is None or recorder.paths.body is None
    if type(self.plain) is bool and is_whole:  # a piece is run for each answer, all with this number
        self.plain = chosen  # on the way that the run goes it is nothing else
    return chosen


def is_decided(recorder: TorchRecorder, place: Any) -> bool:
    """Whether a value follows from literals of the program alone, and is therefore the same at each call."""
    around = recorder.bodies.outermost if recorder.bodies.is_used else None
    node = recorder.resolve(place)
    return is_out_of_reach(node) or bool(recorder.folding.decides(node, around))


_BELOW = frozenset({"lt", "__lt__"})
_UNIFORM = torch.rand  # while a capture is under way, the module has another one


def is_out_of_reach(node: Node) -> bool:
    """Whether a comparison is never true, since it asks whether a number that was just drawn from [0, 1) is below one
    that is not above zero: a layer that is left out with probability zero, say."""
    if getattr(node.target, "__name__", node.target) not in _BELOW or node.kwargs or len(node.args) != 2:
        return False
    drawn, limit = node.args
    is_limit = type(limit) in (int, float) and limit <= 0  # type: ignore[operator]
    return is_limit and isinstance(drawn, Node) and _is_uniform(drawn) and len(drawn.users) == 1


def _is_uniform(node: Node) -> bool:
    """Whether a node gives uniform numbers, which nobody has changed since as long as it has one user."""
    return node.target == _UNIFORM and "out" not in node.kwargs and not node.all_input_nodes


FACT_PROPERTIES = frozenset(
    "dtype device layout itemsize is_quantized is_nested is_cuda is_cpu is_meta is_sparse is_sparse_csr is_mkldnn "
    "is_mps is_xla is_xpu is_vulkan is_ipu is_maia is_mtia is_ort".split()
)
_FACT_CALLS = frozenset("is_floating_point is_complex element_size is_signed type get_device result_type".split())
"""What follows from the dtypes and devices of tensors, and from nothing that they hold."""
_OF_SHAPES = frozenset({"shape", "ndim", "nbytes", "_version"})
MODE = "training"
"""The attribute that says whether a module is training, or one of its parts."""


def is_mode(node: Node) -> bool:
    """Whether a node reads a mode, of a part or of what runs the program."""
    if node.op == "get_attr":
        return str(node.target).rpartition(".")[2] == MODE
    return is_tracer(node)


def is_of_modes(node: Node, recorder: Recorder) -> bool:
    """Whether a value hangs on modes and dtypes, and on nothing else but constants."""
    return Dependence(recorder.bodies).depends_on(node, lambda found: is_mode(found) or _is_dtype(found))


def is_of_dtypes(node: Node, recorder: Recorder) -> bool:
    """Whether a value hangs on dtypes, and on nothing else but constants."""
    return Dependence(recorder.bodies).depends_on(node, _is_dtype)


def _is_dtype(node: Node) -> bool:
    return node.target is getattr and node.args[1] == "dtype"


_OF_SIZES = frozenset({"size", "dim", "numel", "nelement", "ndimension", "stride", "storage_offset"})


def is_data(node: Node, recorder: Recorder) -> bool:
    """Whether a number comes from what arrays hold or from a mode, is drawn, or changes in a loop: not from shapes and
    numbers."""
    waiting, seen = [node], set()
    while waiting:
        found = waiting.pop()
        if found in seen:
            continue
        seen.add(found)
        is_inner = found.op == "placeholder" and found.graph is not recorder.bodies.outermost
        if _is_fact(found) or (found.op == "call_method" and _is_of_facts(found)):
            continue
        if isinstance(found.value_type, ArrayType) or is_inner or is_mode(found):
            return True
        if _counts_columns(found):
            continue
        asks_shape = found.op == "call_method" and found.target in _OF_SIZES
        if asks_shape or found.target is len or (found.target is getattr and found.args[1] in _OF_SHAPES):
            measured = found.args[0]
            if _is_sized_by_data(measured):
                return True
            waiting += measured.all_input_nodes if getattr(measured, "target", None) is range else ()
            continue
        if found.op in ("call_method", "call_module") or bodies_of(found) or _is_drawn(found):
            return True
        waiting += found.all_input_nodes
    return False


def is_free(node: Node, recorder: TorchRecorder) -> bool:
    """Whether the graph shall hold for other values of a number: it comes from data; or any may be free, and this one
    follows from more than the dtypes and devices of tensors."""
    return is_data(node, recorder) or bool(recorder.options.dynamic and not _is_of_facts(node))


def is_measured(node: Node, recorder: TorchRecorder) -> bool:
    """Whether a value follows from sizes, numbers or flags, and not from facts about tensors alone."""
    waiting, seen = [node], set()
    while waiting:
        found = waiting.pop()
        if found in seen or _is_fact(found):
            continue
        seen.add(found)
        if found.op in ("placeholder", "get_attr"):
            if found.value_type in _TYPES.values():
                return True
            continue
        if found.target in (operator.getitem, getattr) and _is_given(found):
            return True
        if found.target is len or (found.op == "call_method" and found.target in _MEASURING):
            return True
        waiting += found._inputs
    return False


_MEASURING = frozenset({"size", "numel", "nelement"})


def _is_given(node: Node) -> bool:
    """Whether a node takes a number out of a shape, a container or an object, which is no tensor."""
    owner: Any = node.args[0]
    if owner.target is getattr and owner.args[1] == "shape":
        return True
    if _is_fact(node) or isinstance(owner.value_type, ArrayType):
        return False
    return owner.op == "placeholder" or (owner.target in (operator.getitem, getattr) and _is_given(owner))


def _is_of_facts(node: Node) -> bool:
    """Whether a value follows from dtypes and devices, and from nothing else."""
    waiting, seen = [node], set()
    while waiting:
        found = waiting.pop()
        if found not in seen and not _is_fact(found):
            seen.add(found)
            if not found._inputs or isinstance(found.value_type, ArrayType):
                return False
            waiting += found._inputs
    return True


def _is_fact(node: Node) -> bool:
    """Whether a node reads a dtype, a device, or what follows from these."""
    if node.target is getattr:
        return node.args[1] in FACT_PROPERTIES
    return _name_of(node) in _FACT_CALLS and not isinstance(node.value_type, ArrayType)


def _is_drawn(node: Node) -> bool:
    return any(node.target is function for function in DRAWS)


_SIZED_BY_DATA = frozenset({"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive"})
_MOST_STEPS = 8


def _counts_columns(node: Node) -> bool:
    """Whether a number is that of the columns of ``nonzero``, ``len(x.nonzero().t())`` or ``len(torch.where(x))``: the
    rank of what was asked."""
    measured = node.args[0] if node.args else None
    if not isinstance(measured, Node):
        return False
    if node.target is len and _gives_columns(measured):
        return True
    is_first = node.target is operator.getitem and node.args[1] == 0 and measured.target is getattr
    is_length = node.target is len and measured.target == "unbind" and measured.args[1:] == (0,)
    if not (is_length or (is_first and measured.args[1] == "shape")):
        return False
    turned: Any = measured.args[0]
    found: Any = turned.args[0] if turned.op == "call_method" and turned.target == "t" else None
    return isinstance(found, Node) and _name_of(found) in ("nonzero", "argwhere")


def _gives_columns(node: Node) -> bool:
    """Whether a node gives the places that fulfil a condition as a tuple, an array for each axis."""
    name = _name_of(node)
    is_where = name == "where" and len(node.args) == 1 and not node.kwargs
    return is_where or (name == "nonzero" and node.kwargs.get("as_tuple") is True)


def _name_of(node: Node) -> str:
    return str(node.target if node.op == "call_method" else getattr(node.target, "__name__", ""))


def _is_sized_by_data(value: Any) -> bool:
    """Whether a size of an array depends on what arrays hold: as many as fulfil a condition, say.

    Only a few steps are followed, each to the array that gives the next one its size.
    """
    for _ in range(_MOST_STEPS):
        if not isinstance(value, Node) or value.op not in ("call_function", "call_method"):
            return False
        name = value.target if value.op == "call_method" else getattr(value.target, "__name__", "")
        if name in _SIZED_BY_DATA or (name == "where" and len(value.args) == 1 and not value.kwargs):
            return True
        index = value.args[1] if value.target is operator.getitem else None
        indices = index if isinstance(index, tuple) else (index,)
        arrays = [one for one in indices if isinstance(one, Node) and isinstance(one.value_type, ArrayType)]
        if any(isinstance(one.value_type, ArrayType) and one.value_type.dtype == "bool" for one in arrays):
            return True
        value = next(iter([*arrays, *value.args]), None)
    return False


def _hash(self: Any) -> int:
    """A cache that nobody watches would keep the number beyond the capture; else the value is forced."""
    if self.recorder.running:
        self.recorder.caches.before_hash(sys._getframe(1))
    if self.recorder.finishing:  # a key that the program has used: it was relied on then
        return hash(self.plain)
    return int(_forced(hash)(self))


def _forced(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Python wants the plain value: the capture relies on it from now on."""

    def method(self: Any) -> Any:
        _leave(self)
        return function(self.plain)

    return method


def _leave(number: Any, is_numpy: bool = False) -> None:
    """The value of a number is relied on; if it is NumPy in a package that wants it, its calls may be recorded."""
    recorder = number.recorder
    if recorder.running and recorder.numpy_use.packages is not None:
        recorder.numpy_use.packages.check_number(sys._getframe(2), is_numpy)
    if recorder.running:
        recorder.numpy_use.met.note(sys._getframe(2))
    recorder.guard(number.place, number.plain)


def _format(self: Any, spec: str) -> str:
    return text_of_value(self, f"{{:{spec}}}") or format(self.plain, spec)


def _array(self: Any, dtype: Any = None, copy: Any = None) -> Any:
    _leave(self, is_numpy=True)
    return numpy.asarray(self.plain, dtype)


def _ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy computes with a number: recorded where its calls are, else the number is relied on."""
    recorder = self.recorder
    if recorder.open and not recorder.depth and recorder.arrays is not None:
        return recorder.arrays.ufunc(ufunc, method, inputs, kwargs)
    for value in inputs:
        if issubclass(type(value), Scalar):
            _leave(value, is_numpy=True)
    return getattr(ufunc, method)(*map(_plain, inputs), **kwargs)


def _reduce(self: Any, protocol: int = 4) -> Any:
    self.recorder.guard(self.place, self.plain)
    return type(self.plain), (self.plain,)


def _deepcopy(self: Any, memo: Any) -> Any:
    return self


def _class_members(spoofed: type) -> dict[str, Any]:
    members = operator_methods(_binary, _unary) | {"__class__": property(lambda self: spoofed)}
    forced: dict[str, Callable[[Any], Any]] = {"__index__": operator.index, "__int__": int}
    forced["__float__"] = float
    forced["__complex__"] = complex
    members |= {name: _forced(function) for name, function in forced.items()}
    members["__hash__"] = _hash
    members["__bool__"] = _truth
    members |= {"__repr__": _shown(repr, "{!r}"), "__str__": _shown(str, "{}")}
    members |= {"__array__": _array, "__array_ufunc__": _ufunc}
    members |= {"__format__": _format, "__pow__": _power}
    members |= {"__reduce_ex__": _reduce, "__deepcopy__": _deepcopy, "__copy__": lambda self: self}
    return members


class _Node:
    """What torch's Python code asks of the ``node`` of a symbolic number."""

    def __init__(self, number: Any) -> None:
        self.number = number

    def is_int(self) -> bool:
        return type(self.number) is TracedInt

    def is_float(self) -> bool:
        return type(self.number) is TracedFloat

    def is_bool(self) -> bool:
        return type(self.number) is TracedBool

    def is_constant(self) -> bool:
        return False

    def is_nested_int(self) -> bool:
        return False

    def maybe_as_int(self) -> Any:
        return None

    def expect_true(self, file: str = "", line: int = 0) -> bool:
        return bool(self.number)

    def expect_size(self, file: str = "", line: int = 0) -> bool:
        return bool(self.number >= 0)

    def guard_bool(self, file: str = "", line: int = 0) -> bool:
        return bool(self.number)

    def guard_int(self, file: str = "", line: int = 0) -> int:
        return int(self.number)

    def guard_float(self, file: str = "", line: int = 0) -> float:
        return float(self.number)


NODE = property(_Node)

TracedInt = type(
    "TracedInt",
    (torch.SymInt, Scalar),
    {
        **_class_members(int),
        "node": NODE,
        "bit_length": _unary(int.bit_length),
        "is_integer": lambda self: True,
        "real": property(lambda self: self),
        "imag": 0,
        "numerator": property(lambda self: self),
        "denominator": 1,
        "conjugate": lambda self: self,
        "as_integer_ratio": lambda self: (self, 1),
        "bit_count": _unary(int.bit_count),
        "to_bytes": lambda self, *args, **kwargs: int(self).to_bytes(*args, **kwargs),
    },
)
TracedFloat = type(
    "TracedFloat",
    (torch.SymFloat, Scalar),
    {
        **_class_members(float),
        "node": NODE,
        "is_integer": _unary(float.is_integer),
        "real": property(lambda self: self),
        "imag": 0.0,
        "conjugate": lambda self: self,
        "as_integer_ratio": _forced(float.as_integer_ratio),
        "hex": _forced(float.hex),
    },
)
TracedBool = type("TracedBool", (torch.SymBool, Scalar), {**_class_members(bool), "node": NODE})


class TracedSize(tuple):  # type: ignore[type-arg]
    """A shape whose sizes are traced numbers; it answers ``torch.Size`` when asked for its class."""

    __class__ = property(lambda self: torch.Size)  # type: ignore[assignment, misc]

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def numel(self) -> Any:
        """The product of the sizes."""
        product: Any = 1
        for size in self:
            product = product * size
        return product

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return TracedSize(found) if isinstance(index, slice) else found

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            return torch.Size() + other  # which says what it takes
        return TracedSize((*self, *other))

    def __radd__(self, other: Any) -> Any:
        return TracedSize((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        return TracedSize(tuple.__mul__(self, other))

    __rmul__ = __mul__
