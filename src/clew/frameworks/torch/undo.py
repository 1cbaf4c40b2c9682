"""Putting tensors and random states back: after a capture, between the paths of a branch, when a guard fails midway.

`Rollback` is for a whole capture. A tensor is copied when it is about to be written to, and not before; of a large one
only the part that is written (`WriteLog`). A change of a tensor that nobody announced cannot be in the graph and is
refused. `TorchSupport` rewinds a piece of a program that is run once for each path.
"""

from __future__ import annotations

import operator
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from clew.capture.control_flow.body_recorder import ConstructSite, Support
from clew.capture.location import MISSING
from clew.capture.recording.list_proxies import ListProxy
from clew.capture.recording.recorder import Scalar
from clew.errors import CaptureError, a_or_an
from clew.frameworks.numpy.array_proxy import TracedArray, is_traced
from clew.frameworks.numpy.undo import Rewinding
from clew.frameworks.torch.calls.tensor_mutation import Undo
from clew.frameworks.torch.facts import TracedDtype
from clew.frameworks.torch.scalars import is_data, is_free, is_measured, is_out_of_reach, repeated
from clew.frameworks.torch.transforms.bodies import KeepingWrites
from clew.ir.graph import Graph

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder


_MOST_COPIED = 2**24
"""Of larger tensors of inference mode nobody notices writes that go past torch."""


def _mark(tensor: torch.Tensor) -> Any:
    """What tells later whether a tensor was written to: its version; a copy if it is one of inference mode."""
    if not tensor.is_inference():
        return tensor._version
    return tensor.detach().clone() if tensor.nbytes <= _MOST_COPIED else None


def _is_as_marked(tensor: torch.Tensor, mark: Any) -> bool:
    if not isinstance(mark, torch.Tensor):
        return mark is None or tensor._version == mark
    return mark.is_meta or torch.equal(tensor.detach().nan_to_num(), mark.nan_to_num())


_SMALL = 2**20
"""Tensors up to this number of bytes are copied whole; of larger ones what a call writes to, where that is known."""
_BY_INDEX = frozenset(("index_copy_", "index_fill_", "index_add_"))


class Region(NamedTuple):
    """What a part of a tensor holds, and how to write it there again."""

    held: torch.Tensor
    put: Callable[[torch.Tensor], Any]


def region_of(name: str, tensor: torch.Tensor, args: Sequence[Any]) -> Region:
    """The part of an argument, a view perhaps of much more, that a call in place of this name may write to."""
    view = each_once(tensor)
    if args and args[0] is tensor and view.shape == tensor.shape:
        if name == "__setitem__" and all(map(_is_basic, args[1] if type(args[1]) is tuple else (args[1],))):
            view = view[args[1]]
        elif name in _BY_INDEX and len(args) > 2 and type(args[1]) is int:
            axis, index = args[1], args[2].detach().clone()
            return Region(view.index_select(axis, index), lambda copy: view.index_copy_(axis, index, copy))
    return Region(view, view.copy_)


def _is_basic(index: Any) -> bool:
    """Whether an index picks a view: no list, no tensor, no truth value, no traced number."""
    if type(index) is slice:
        return all(type(part) in (int, type(None)) for part in (index.start, index.stop, index.step))
    return type(index) in (int, type(None), type(...))


class WriteLog:
    """What memory held before each write to it; never more than one and a half times the memory itself."""

    def __init__(self) -> None:
        self._steps: list[tuple[Callable[[Any], Any], Any]] = []
        self._bytes: dict[int, int] = {}
        """How much is kept of each memory; -1 for all of it."""

    def __contains__(self, key: int) -> bool:
        return key in self._bytes

    def __bool__(self) -> bool:
        return bool(self._bytes)

    def keep(self, key: int, whole: Any, size: int, find_region: Callable[[], Region] | None) -> None:
        """Keep what is about to be written of ``whole``, a tensor or storage of ``size`` bytes that ``key`` names."""
        kept = self._bytes.get(key, 0)
        if kept < 0:
            return
        region = find_region() if find_region is not None and size > _SMALL else None
        if region is not None and kept + region.held.nbytes <= size // 2:
            self._bytes[key] = kept + region.held.nbytes
            self._steps.append((region.put, region.held.clone()))
        else:
            self._bytes[key] = -1
            self._steps.append((whole.copy_, whole.clone()))

    def put_back(self) -> None:
        """Write everything again, the last first."""
        for put, copy in reversed(self._steps):
            put(copy)


class Rollback:
    """What must be as it was when the capture ends."""

    def __init__(self, recorder: TorchRecorder | None = None) -> None:
        self.recorder = recorder
        self.undo = Undo()
        self.keepers: list[Callable[[torch.Tensor, Callable[[], Region] | None], None]] = []
        """Who else keeps what a tensor holds before a write: pieces of the program that will be undone."""
        self.no_return = ""
        """What the program has done to an argument that a guard that fails later could not take back."""
        self._watched: list[tuple[torch.Tensor, Any]] = []
        self._storages: dict[int, torch.Tensor] = {}
        self._saved = WriteLog()
        self._attributes: list[tuple[torch.Tensor, dict[str, Any]]] = []
        self._flags: list[tuple[torch.Tensor, bool]] = []
        self._generators: list[tuple[torch.Generator, torch.Tensor]] = []

    def watch(self, tensors: list[torch.Tensor]) -> None:
        """Remember how things are now."""
        self._torch_random = torch.get_rng_state()
        self._gradients = torch.is_grad_enabled()
        self._dtype = torch.get_default_dtype()
        self._autocast = torch.is_autocast_enabled("cpu")
        if self.recorder is not None:  # which has looked already, and NumPy takes its time to tell
            self._python_random, self._numpy_random, _ = self.recorder.streams.expected
        else:
            self._python_random = random.getstate()
            self._numpy_random = sys.modules["numpy.random"].get_state() if "numpy.random" in sys.modules else None
        for tensor in tensors:
            self.watch_tensor(tensor)

    def watch_attributes(self, tensor: torch.Tensor) -> None:
        """Remember the attributes that a tensor carries."""
        self._attributes.append((tensor, dict(vars(tensor))))

    def watch_tensor(self, tensor: torch.Tensor) -> None:
        """Remember a tensor that the program did not make."""
        if isinstance(tensor, UninitializedTensorMixin):
            raise CaptureError(
                "a lazy module has no parameters yet", why="they are made at the first call", fixes=("call it once",)
            )
        with torch._C.DisableTorchFunction():
            for one in self._with_memory(tensor):
                self._watched.append((one, _mark(one)))
                self._flags.append((one, one.requires_grad))
                self._storages.setdefault(_storage(one), one)

    def _with_memory(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """The tensors that hold the numbers of one, which a capture cannot follow: those of each machine, say."""
        if self.recorder is not None or not is_traceable_wrapper_subclass(tensor):
            return [tensor]
        parts = [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]]
        return [one for part in parts if isinstance(part, torch.Tensor) for one in self._with_memory(part)]

    def has_saved(self) -> bool:
        """Whether a tensor that the program did not make was written to."""
        return bool(self._saved)

    def watched(self) -> list[torch.Tensor]:
        """The tensors that were there before the program ran, as far as it has used them."""
        return [tensor for tensor, _ in self._watched]

    def save_generator(self, generator: torch.Generator) -> None:
        """Remember the state of a generator before the program first draws from it."""
        if all(known is not generator for known, _ in self._generators):
            self._generators.append((generator, generator.get_state()))

    def save(self, tensor: torch.Tensor, find_region: Callable[[], Region] | None = None) -> None:
        """Keep what a tensor, about to be written to, holds: of the watched one that shares its memory; ``find_region``
        tells which part of it is written, if the call is known to write no more."""
        with torch._C.DisableTorchFunction():
            for one in self._with_memory(tensor):
                owner = self._storages.get(_storage(one))
                if owner is None:
                    continue
                if self.recorder is not None:
                    self.undo.keep_facts(one)
                whole = each_once(owner)
                self._saved.keep(id(owner), whole, _size(whole), find_region if one is tensor else None)
        for keep in self.keepers:
            keep(tensor, find_region)

    def check_unseen(self, where: str) -> None:
        """Raise if the program, which stands ``where``, changed something that no node of the graph changes."""
        recorder = self.recorder
        assert recorder is not None, "a run has one"
        if recorder.streams.moved_unseen():
            raise CaptureError(
                "the program draws random numbers from Python or NumPy",
                where=where,
                why="they would be frozen in the graph",
                fixes=("use torch's random numbers", "pass the random value as an argument"),
            )
        if recorder.generators.moved_unseen():
            raise CaptureError(
                "the program seeds a torch.Generator, or draws from it, by means that the capture does not see",
                why="the graph would not",
                fixes=("seed it before the call", "make the generator in the program"),
            )
        for tensor, version in self._watched:
            if id(tensor) not in self._saved and not _is_as_marked(tensor, version):
                raise CaptureError("the program changed a tensor in a way that the capture did not see")
        for tensor, before in self._attributes:
            if vars(tensor) != before and not recorder.array_attributes.knows(tensor):
                raise CaptureError(
                    f"the program changes attributes of a tensor: {sorted(before)}",
                    why="it does so by means that the capture does not see",
                )

    def put_back(self) -> None:
        """Let everything be as it was."""
        if self.recorder is not None:
            self.undo.run()
            self.recorder.array_attributes.put_back()
        torch.set_rng_state(self._torch_random)
        if torch.is_grad_enabled() is not self._gradients:
            torch._C._set_grad_enabled(self._gradients)
        if torch.get_default_dtype() is not self._dtype:
            torch.set_default_dtype(self._dtype)
        if torch.is_autocast_enabled("cpu") is not self._autocast:  # a capture was given up inside
            torch._C.set_autocast_enabled("cpu", self._autocast)
        for generator, state in self._generators:
            generator.set_state(state)
        random.setstate(self._python_random)
        if self._numpy_random is not None:
            sys.modules["numpy.random"].set_state(self._numpy_random)
        with torch._C.DisableTorchFunction():
            self._saved.put_back()
            for tensor, flag in self._flags:
                if tensor.is_leaf and tensor.requires_grad != flag:
                    tensor.requires_grad_(flag)
                elif tensor.requires_grad and not flag:  # a value with a history was written into one without
                    _forget_history(tensor)
        for tensor, before in self._attributes:
            vars(tensor).clear()
            vars(tensor).update(before)


def _forget_history(tensor: torch.Tensor) -> None:
    """Let a tensor require no gradient; a view, which torch detaches not in place, becomes a new view of its base."""
    base = tensor._base
    (tensor if base is None else base).detach_()
    if base is not None and tensor.requires_grad:
        view = base.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        torch._C._swap_tensor_impl(tensor, view)  # type: ignore[attr-defined]


def _size(tensor: torch.Tensor) -> int:
    """The bytes of a tensor that lies in memory as it says; of others nobody knows how they are written."""
    is_plain = tensor.layout is torch.strided and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    return tensor.nbytes if is_plain and not tensor.is_meta else 0


def each_once(tensor: torch.Tensor) -> torch.Tensor:
    """A view of a tensor without history; of an expanded one, whose elements share memory, each element once: torch
    writes to no other."""
    view = tensor.detach()
    if view.layout is torch.strided and not torch._C._functorch.is_functorch_wrapped_tensor(view):
        for axis, (size, stride) in enumerate(zip(view.shape, view.stride(), strict=True)):
            if stride == 0 and size > 1:
                view = view.narrow(axis, 0, 1)
    return view


def _storage(tensor: torch.Tensor) -> int:
    """What tells the memory of one tensor from that of others; its identity where it has none, as on meta."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):  # inside vmap or grad
        tensor = torch._C._functorch.get_unwrapped(tensor)
    if tensor.is_meta or tensor.layout is not torch.strided:
        return id(tensor)
    storage = tensor.untyped_storage()
    if storage.device.type == "meta":  # the storage of a fake tensor
        return id(tensor)
    try:
        return storage.data_ptr()
    except RuntimeError as error:
        raise _made_of_others(tensor) from error


def _made_of_others(tensor: torch.Tensor) -> CaptureError:
    """The error for a tensor that other tensors, or other machines, hold the numbers of."""
    is_distributed = type(tensor).__module__.startswith("torch.distributed.")
    shared = "capture the module before it is distributed; fully_shard and parallelize_module take the capture"
    return CaptureError(
        f"the program works on {a_or_an(tensor)}, which has no memory of its own and cannot be captured",
        why="the capture could not tell what is written to it, and put it back",
        fixes=(shared if is_distributed else "give the program the plain tensors that it is made of",),
    )


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
        """True for tensors, arrays, and proxies of arrays."""
        return type(value) is TracedArray or bool(self.recorder.is_array(value))

    def fresh(self, array: Any) -> Any:
        """Another tensor object over the same memory; an array itself, whose proxy will be another."""
        return self.recorder.fresh(array) if isinstance(array, torch.Tensor) else array

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

    def is_measured(self, value: Any) -> bool:
        """True for traced numbers that follow from sizes and numbers."""
        return self._is_own(value) and is_measured(self.recorder.resolve(value.place), self.recorder)

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
        """Whether a tensor requires a gradient, and is a leaf, may depend on the path: it must not be asked then."""
        with torch._C.DisableTorchFunction():
            found = {array.requires_grad for array in arrays if isinstance(array, torch.Tensor)}
            has_leaf = any(array.requires_grad and array.is_leaf for array in arrays if isinstance(array, torch.Tensor))
        if (len(found) > 1 or has_leaf) and self.recorder.properties.mixed_at is None:
            self.recorder.properties.mixed_at = site

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

    def is_whole_number(self, value: Any) -> bool:
        """Whether a value is a traced whole number, or a tensor that holds one alone."""
        if not isinstance(value, torch.Tensor):
            return super().is_whole_number(value)
        with torch._C.DisableTorchFunction():
            is_integer = not (value.is_floating_point() or value.is_complex() or value.dtype is torch.bool)
            return is_integer and value.dim() == 0

    def places(self, group: Any) -> list[Any] | None:
        """The parts of a list of modules, too."""
        is_modules = type(group) in (torch.nn.ModuleList, torch.nn.Sequential)
        return list(range(len(group))) if is_modules else super().places(group)

    def indexed(self, array: Any, index: Any) -> Any:
        """The rows of a tensor that a list names."""
        if not isinstance(array, torch.Tensor):
            return None
        return self.recorder.call(torch.Tensor.__getitem__, (array, index), {})

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
        saved = WriteLog()
        shapes: dict[int, tuple[Any, Any]] = {}

        def keep(tensor: torch.Tensor, find_region: Callable[[], Region] | None) -> None:
            _save(tensor, saved, find_region)
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
                saved.put_back()
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
            comparing = nullcontext() if recorder.arrays is None else recorder.arrays.comparing()
            with KeepingWrites(recorder), comparing:
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


def _save(tensor: torch.Tensor, saved: WriteLog, find_region: Callable[[], Region] | None) -> None:
    """Keep what a tensor's memory holds, or the part of it that is written."""
    with torch._C.DisableTorchFunction():
        if tensor.is_meta or tensor.layout is not torch.strided:
            return
        storage = tensor.untyped_storage()
        saved.keep(storage.data_ptr(), storage, storage.nbytes(), find_region)
