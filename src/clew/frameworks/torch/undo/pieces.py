"""What torch does for the recording of branches and loops: undoing what a piece did to tensors and random states,
running a piece without recording it, and telling which tensors may stand in one place.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy
import torch

from clew.capture.control_flow.body_recorder import ConstructSite, Support
from clew.capture.guards.notes import MISSING
from clew.capture.recording.list_proxies import ListProxy
from clew.capture.recording.recorder import Scalar
from clew.errors import CaptureError
from clew.frameworks.numpy.array_proxy import TracedArray, is_traced
from clew.frameworks.numpy.undo import Rewinding
from clew.frameworks.torch import number_functions
from clew.frameworks.torch.facts import TracedDtype
from clew.frameworks.torch.scalars import is_data, is_free, is_out_of_reach, repeated
from clew.frameworks.torch.transforms.bodies import PlainNumbers
from clew.ir.graph import Graph

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

_READING = (object.__getattribute__, torch.nn.Module.__getattribute__)


class TorchSupport(Support):
    """The support for one run."""

    recorder: TorchRecorder
    opens_loops = True

    def __init__(self, recorder: TorchRecorder) -> None:
        self.recorder = recorder

    def attribute(self, owner: Any, name: str) -> Any:
        """What an object, or a module among its parts, holds under a name that its class does not define."""
        held = getattr(owner, "__dict__", None)
        if type(held) is not dict or hasattr(type(owner), name) or type(owner).__getattribute__ not in _READING:
            return MISSING
        return held.get(name, held["_modules"].get(name, MISSING) if isinstance(owner, torch.nn.Module) else MISSING)

    def is_array(self, value: Any) -> bool:
        """True for tensors, arrays, and stand-ins of arrays."""
        return type(value) is TracedArray or bool(self.recorder.is_array(value))

    def fresh(self, array: Any) -> Any:
        """Another tensor object over the same memory; an array itself, whose stand-in will be another."""
        recorder = self.recorder
        if not isinstance(array, torch.Tensor):
            return array
        with recorder.paused():
            alias = torch.ops.aten.alias(array)
            vars(alias).update(vars(array))
        recorder.aliases[id(alias)] = (alias, recorder.original(array))
        return alias

    def kind(self, value: Any) -> Any:
        """The type of a number; class, dtype and rank of an array; device and layout of a tensor too."""
        if issubclass(type(value), Scalar):
            return self.kind(value.plain) if is_traced(value) else type(value.plain)
        if isinstance(value, numpy.ndarray):
            return type(value), value.dtype, value.ndim
        if not isinstance(value, torch.Tensor):
            return type(value)
        with torch._C.DisableTorchFunction():
            return type(value) is torch.nn.Parameter, value.dtype, value.ndim, value.device, value.layout

    def is_data(self, value: Any) -> bool:
        """True for tensors, and for numbers that come out of them; not for what has the same answer at each call."""
        if issubclass(type(value), Scalar):
            return self._is_own(value) and is_free(self.recorder.resolve(value.place), self.recorder)
        if isinstance(value, torch.Tensor):
            node = self.recorder.known(value)
            return node is None or not is_out_of_reach(node)
        return isinstance(value, (numpy.ndarray, numpy.generic))

    def is_of_modes(self, value: Any) -> bool:
        """True for traced numbers that hang on the modes of parts, and on dtypes, alone."""
        return self._is_own(value) and bool(self.recorder.is_of_modes(value.place))

    def _is_own(self, value: Any) -> bool:
        """Whether a value is a traced number of this run."""
        is_number = issubclass(type(value), Scalar)
        return is_number and (value.recorder is self.recorder or value.recorder.owner is self.recorder)

    def is_fact(self, value: Any) -> bool:
        """True for dtypes that were read."""
        return type(value) is TracedDtype and self._is_own(value)

    def note_differences(self, site: ConstructSite, arrays: list[Any]) -> None:
        """Whether a tensor requires a gradient, and is a leaf, may depend on the way: the program must not ask then."""
        with torch._C.DisableTorchFunction():
            found = {array.requires_grad for array in arrays if isinstance(array, torch.Tensor)}
            has_leaf = any(array.requires_grad and array.is_leaf for array in arrays if isinstance(array, torch.Tensor))
        if (len(found) > 1 or has_leaf) and self.recorder.properties.mixed_at is None:
            self.recorder.properties.mixed_at = site

    def plain_range(self, *args: Any) -> Any:
        """A ``range`` that Python walks, of which some numbers may be traced."""
        return number_functions._range(*args)

    def rows(self, array: Any) -> list[Any]:
        """The items of a tensor in the example."""
        with self.recorder.paused():
            return list(self.recorder.concrete(array))

    def listed(self, arrays: Sequence[Any]) -> None:
        """Items of arrays of one axis are numbers, which do not follow what is written to the array later."""
        if self.recorder.arrays is not None:
            self.recorder.arrays.listed += [array.plain for array in arrays if is_traced(array)]

    def parts(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Any, tuple[Any, ...], list[Any]] | None:
        """``x.unbind(dim)`` and ``torch.unbind(x, dim)`` of a plain tensor."""
        array = args[0] if function is torch.unbind and args else getattr(function, "__self__", None)
        others = args[1:] if function is torch.unbind else args
        others += (kwargs["dim"],) if set(kwargs) == {"dim"} else ()
        if not isinstance(array, torch.Tensor) or type(array) not in (torch.Tensor, torch.nn.Parameter):
            return None
        if set(kwargs) - {"dim"} or len(others) > 1 or not all(type(one) is int for one in others):
            return None
        with self.recorder.paused():
            return torch.unbind, array, others, list(torch.unbind(array, *others))

    def index(self, array: Any) -> Any:
        """``operator.index`` of a tensor, for a range."""
        recorder = self.recorder
        with recorder.paused():
            value = operator.index(array)
        return recorder.result(value, recorder.create(int, (recorder.node_of(array),)))

    def shape(self, value: Any) -> Any:
        """The shape of a tensor; None for a number."""
        if not isinstance(value, torch.Tensor):
            return None
        with torch._C.DisableTorchFunction():
            return tuple(value.shape)

    def is_constant(self, array: Any) -> bool:
        """True for parameters, buffers and tensors around the program, and what is made of such alone."""
        node = self.recorder.argument(array)
        return node.op == "get_attr" or self.recorder.folding.is_known(node)

    def as_list(self, array: Any, unpacks: bool) -> Any:
        """The numbers of a tensor as a list of any length; how long the rows in it are is relied on."""
        recorder = self.recorder
        if not isinstance(array, torch.Tensor):
            return None
        node = recorder.node_of(array)
        with recorder.paused():
            if array.dim() not in (1, 1 + unpacks) or self.is_constant(array):
                return None
            recorder.rely("number_kind")
            for size in recorder.shape(array)[1:]:
                operator.index(size)  # which guards it
            value = array.tolist()
        return ListProxy(
            value, recorder.create_node("call_method", "tolist", (node,), {}, is_result=True), recorder, True
        )

    def repeated(self, items: Any, number: Any) -> Any:
        """A list of numbers as often as a size says."""
        return repeated(items, number) if self._is_own(number) else None

    def is_node_of_data(self, node: Any) -> bool:
        """Whether the value of a node depends on what tensors hold, or changes from round to round."""
        return is_data(node, self.recorder)

    def truth(self, value: Any) -> bool:
        """The truth of a tensor or number in the example."""
        with self.recorder.paused():
            return bool(self.recorder.concrete(value))

    @contextmanager
    def rewinding(self) -> Iterator[None]:
        """Put tensors that are written to inside, and random states, back at the end."""
        recorder = self.recorder
        rollback, no_return, expected = recorder.rollback, recorder.rollback.no_return, recorder.streams.expected
        saved: dict[int, tuple[Any, Any]] = {}
        shapes: dict[int, tuple[Any, Any]] = {}

        def keep(tensor: torch.Tensor) -> None:
            _save(tensor, saved)
            shapes.setdefault(id(tensor), (tensor, _geometry(tensor)))

        arrays = None if recorder.arrays is None else Rewinding(recorder.arrays)
        with recorder.paused():
            torch_state, other_states, modes = torch.get_rng_state(), recorder.streams.now(), _modes()
        rollback.keepers.append(keep)
        steps, graded = rollback.undo.begin()
        properties, bodies = dict(recorder.properties.read), recorder.bodies
        around = [bodies.outermost, *(body.graph for body in bodies.open[:-1])]
        try:
            yield
            with recorder.paused():
                if _modes() != modes:
                    raise CaptureError("it leaves torch in another mode")
                if any(_geometry(tensor) != shape for tensor, shape in shapes.values()):
                    raise CaptureError("it changes the shape of a tensor in place")
            if recorder.streams.moved_unseen():
                raise CaptureError("random numbers of Python or NumPy are drawn in a way that cannot be recorded")
        finally:
            if arrays is not None:
                arrays.rewind()
            rollback.keepers.pop()
            rollback.no_return, recorder.streams.expected = no_return, expected
            properties |= self._read_around(around)  # the next way asks for what this one has asked for
            with recorder.paused():
                rollback.undo.run_from(steps, graded)
                torch._C._set_grad_enabled(modes[0])
                torch.set_default_dtype(modes[1])
                torch.set_rng_state(torch_state)
                recorder.streams.put(other_states)
                torch._C._set_grad_enabled(False)
                for tensor, shape in shapes.values():
                    if _geometry(tensor) != shape:
                        _reshape(tensor, shape)
                torch._C._set_grad_enabled(modes[0])
                for storage, copy in saved.values():
                    storage.copy_(copy)
            recorder.properties.read.clear()
            recorder.properties.read.update(properties)

    def _read_around(self, graphs: list[Graph]) -> dict[Any, Any]:
        """The properties that were read of tensors of these graphs: each is one node there, for all who read it."""
        tensors = {key: known[0]() for key, known in self.recorder.properties.read.items()}
        owners = {key: self.recorder.known(tensor) for key, tensor in tensors.items() if tensor is not None}
        found = [key for key, node in owners.items() if node is not None and any(node.graph is one for one in graphs)]
        return {key: self.recorder.properties.read[key] for key in found}

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """Run what follows on plain values, without recording it."""
        recorder = self.recorder
        recorder.open, recorder.depth = False, recorder.depth + 1
        try:
            with PlainNumbers(recorder), nullcontext() if recorder.arrays is None else recorder.arrays.comparing():
                yield
        finally:
            recorder.open, recorder.depth = True, recorder.depth - 1
            recorder.streams.expected = recorder.streams.now()
            recorder.properties.read.clear()


def _modes() -> tuple[Any, ...]:
    """What decides what torch does, besides the arguments of its functions."""
    autocast = [(torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in ("cpu", "cuda")]
    return torch._C.is_grad_enabled(), torch.get_default_dtype(), torch.is_inference_mode_enabled(), autocast


def _geometry(tensor: torch.Tensor) -> Any:
    """How a tensor lies in its memory."""
    with torch._C.DisableTorchFunction():
        if tensor.layout is not torch.strided:
            return None
        return tuple(tensor.shape), tensor.stride(), tensor.storage_offset()


def _reshape(tensor: torch.Tensor, geometry: Any) -> None:
    """Let a tensor lie in its memory as it did."""
    with torch._C.DisableTorchFunction():
        tensor.as_strided_(*geometry)


def _save(tensor: torch.Tensor, saved: dict[int, tuple[Any, Any]]) -> None:
    """Keep what a tensor's memory holds, once."""
    with torch._C.DisableTorchFunction():
        if tensor.is_meta or tensor.layout is not torch.strided:
            return
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in saved:
            saved[storage.data_ptr()] = (storage, storage.clone())
