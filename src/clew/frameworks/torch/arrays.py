"""NumPy inside a torch program: what ``x.numpy()`` gives is a stand-in, and NumPy's calls on it are nodes of the graph.

``numpy.asarray`` of a tensor gives one too; ``torch.from_numpy``, ``as_tensor``, ``asarray`` and ``tensor`` of one lead
back. A tensor and an array may be one memory, in the graph as in the program; whoever writes to such memory, from
either side, is refused. If anything goes wrong with a stand-in, the capture starts over without any, and the function
that leaves torch stays one call.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import torch

from clew.capture.example.recorder import Scalar
from clew.capture.symbolic.patches import Patches
from clew.frameworks.numpy.islands import cannot_follow
from clew.frameworks.numpy.recording import NumpyRecorder
from clew.frameworks.numpy.traced import TracedPython, is_traced
from clew.frameworks.torch.by_name import noted
from clew.ir.arguments import leaves
from clew.ir.guests import guest
from clew.ir.node import Node

Current = Callable[[], Any]
_AWAY = ("asarray", "array", "ascontiguousarray")
_array = numpy.array
_BACK = ("from_numpy", "as_tensor", "asarray")


class WithoutArrays(BaseException):
    """A stand-in for an array came where it cannot be followed: the capture starts over without stand-ins."""


class ArrayRecorder(NumpyRecorder):
    """Records NumPy's calls for a recorder of torch's, in its graph."""

    owner: Any

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.compares_objects = owner.needs_identity
        self.errors = owner.numpy_errors
        self.errstates: list[tuple[Any, Node]] = []
        self.listed: list[Any] = []
        self.unwritten: list[tuple[Any, Any]] = []
        self.raised: Exception | None = None
        self.rollback = self
        self.crossed: list[Any] = []
        """Arrays whose memory is a tensor's."""
        self._thread = threading.get_ident()
        self._memory: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        guest("numpy")  # which lets frames of NumPy's be hidden

    def __getattr__(self, name: str) -> Any:
        return getattr(self.owner, name)

    @property
    def open(self) -> bool:  # type: ignore[override]
        """Whether the capture goes on."""
        return bool(self.owner.open)

    @property
    def depth(self) -> int:  # type: ignore[override]
        """How many recorded calls are being made right now."""
        return int(self.owner.depth)

    # ---- what the recorder of torch's calls does -----------------------------------------------------------------

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What happens inside is one recorded call, and is not recorded again."""
        with self.owner.paused():
            yield

    def _create(self, *args: Any, **kwargs: Any) -> Node:
        node: Node = self.owner._create(*args, **kwargs)
        return node

    def resolve(self, place: Any) -> Node:
        """The node itself, made now if it was pending."""
        node: Node = self.owner.resolve(place)
        return node

    def guard(self, place: Any, answer: Any, why: str = "") -> None:
        """Note that the program relied on a value."""
        self.owner.guard(place, answer, why)

    def truth(self, place: Any, answer: bool, is_data: bool, is_fixed: bool = False) -> bool:
        """The program asks whether a value is true."""
        return bool(self.owner.truth(place, answer, is_data, is_fixed))

    def note_failure(self, error: Exception, call: Any = None, args: tuple[Any, ...] = (), kwargs: Any = None) -> None:
        """A call has failed."""
        self.owner.note_failure(error)

    def check_opaque(self, target: Any, why: str) -> None:
        """A call is about to be kept whose inside the graph does not hold."""
        self.owner.check_opaque(target, why)

    # ---- values --------------------------------------------------------------------------------------------------

    def argument(self, value: Any) -> Any:
        """What a node holds for a value; arrays that nobody follows are refused."""
        if any(isinstance(leaf, numpy.ndarray) and not is_traced(leaf) for leaf in leaves(value)):
            raise cannot_follow("an array that did not come out of a tensor")
        return self.owner.argument(value)

    def result(self, value: Any, place: Any) -> Any:
        """The result of a call: numbers of Python's are those of torch's captures."""
        return self.owner.result(value, place) if type(value) in (bool, int, float) else super().result(value, place)

    def can_operate(self, traced: Any, other: Any) -> bool:
        """Whether an operator between a stand-in and this is NumPy's business."""
        return issubclass(type(other), Scalar) or super().can_operate(traced, other)

    def _record(
        self, op: str, target: Any, call: Any, args: Any, kwargs: Any, written: Any = (), form: Any = None
    ) -> Any:
        if op == "call_method" and any(True for _ in written):
            raise cannot_follow(f"the method {target}, which torch takes for another one,")
        if self.open and any(isinstance(leaf, torch.Tensor) for leaf in leaves((args, kwargs))):
            raise cannot_follow("a function of NumPy's that is given a tensor")
        return super()._record(op, target, call, args, kwargs, written, form)

    # ---- the border ----------------------------------------------------------------------------------------------

    def save(self, array: Any) -> None:
        """An array is about to be written to: refused if it is the memory of a tensor."""
        if any(numpy.may_share_memory(array, known) for known in self.crossed):
            raise cannot_follow("a write to the memory of a tensor through an array")

    def check_tensor(self, tensor: torch.Tensor) -> None:
        """A tensor is about to be written to: refused if its memory is that of an array."""
        with torch._C.DisableTorchFunction():
            if tensor.is_meta or tensor.layout is not torch.strided or not self.crossed:
                return
            storage = tensor.untyped_storage()
            start, end = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        for array in self.crossed:
            low, high = numpy.lib.array_utils.byte_bounds(array)
            if low < end and start < high:
                raise cannot_follow("a write to a tensor whose memory is that of an array")

    def taken(self, tensor: Any) -> Any:
        """``tensor.numpy()``."""
        value = self._crossing(torch.Tensor.numpy, tensor, (), {})
        node = self.owner._create("call_method", "numpy", (self.owner.argument(tensor),), {}, is_result=True)
        return self.result(value, node)

    def made(self, function: Any, tensor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``numpy.asarray(tensor)``, or another function of NumPy's that makes an array of a tensor."""
        if any(isinstance(leaf, torch.Tensor) or is_traced(leaf) for leaf in leaves((args, kwargs))):
            raise cannot_follow("an array that is made of several tensors")
        value = self._crossing(function, tensor, args, kwargs)
        arguments = self.owner.argument((tensor, *args)), self.owner.argument(kwargs)
        return self.result(value, self.owner.create(function, *arguments, is_result=True))

    def _crossing(self, function: Any, tensor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make an array of a tensor, whose dtype and rank are facts from here on."""
        owner = self.owner
        is_piece = owner.paths is not None and owner.paths.body is not None
        if owner.bodies.is_in_function or is_piece or type(tensor) is not torch.Tensor:
            raise cannot_follow("an array that is made of a tensor here")
        for fact in ("dtype", "device", "rank", "layout"):
            owner.rely(fact)
        owner.needs_identity = True  # from here on no other object may stand for a value
        value = owner._perform(function, (tensor, *args), kwargs)
        if kwargs.get("copy") is not True and function is not _array:
            self.crossed.append(value)
        return value

    def given(self, function: Any, array: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A tensor that is made of an array."""
        owner = self.owner
        node_args = owner.argument((array, *args)), owner.argument(kwargs)
        value = owner._perform(function, (array, *args), kwargs)
        self.crossed.append(array.plain)
        return owner.result(value, owner.create(function, *node_args, is_result=True))


def install(patches: Patches, current: Current) -> None:
    """Let the functions that make tensors of arrays report to the capture that ``current`` names."""
    for name in _AWAY:
        patches.in_dict(vars(numpy), name, noted(functools.partial(_leading_away, current=current)))
    for name in _BACK:
        patches.in_dict(vars(torch), name, noted(functools.partial(_leading_back, current=current)))


@functools.cache
def _leading_away(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        recorder = current() if args and isinstance(args[0], (torch.Tensor, numpy.ndarray)) else None
        if recorder is None or not recorder.follows_arrays:
            return original(*args, **kwargs)
        if isinstance(args[0], torch.Tensor):
            return recorder.border().made(original, args[0], args[1:], kwargs)
        return args[0].recorder.call(original, args, kwargs) if is_traced(args[0]) else original(*args, **kwargs)

    return make


@functools.cache
def _leading_back(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        recorder = current() if args and is_traced(args[0]) else None
        if recorder is None or isinstance(args[0], TracedPython) or args[0].recorder.owner is not recorder:
            return original(*args, **kwargs)
        return args[0].recorder.given(original, args[0], args[1:], kwargs)

    return make
