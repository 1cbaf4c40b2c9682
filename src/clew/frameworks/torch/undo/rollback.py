"""Putting tensors and random states back after a capture.

A tensor is copied when it is about to be written to, and not before. A change of a tensor that nobody announced cannot
be in the graph and is refused.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from clew.errors import CaptureError
from clew.frameworks.torch.calls.tensor_mutation import Undo

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


class Rollback:
    """What must be as it was when the capture ends."""

    def __init__(self, recorder: TorchRecorder | None = None) -> None:
        self.recorder = recorder
        self.undo = Undo()
        self.keepers: list[Callable[[torch.Tensor], None]] = []
        """Who else keeps what a tensor holds before a write: pieces of the program that will be undone."""
        self.no_return = ""
        """What the program has done to an argument that a guard that fails later could not take back."""
        self._watched: list[tuple[torch.Tensor, Any]] = []
        self._storages: dict[int, torch.Tensor] = {}
        self._saved: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
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
            self._watched.append((tensor, _mark(tensor)))
            self._flags.append((tensor, tensor.requires_grad))
            self._storages.setdefault(_storage(tensor), tensor)

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

    def save(self, tensor: torch.Tensor) -> None:
        """Keep a copy of what a tensor, about to be written to, holds: of the watched one that shares its memory."""
        with torch._C.DisableTorchFunction():
            owner = self._storages.get(_storage(tensor))
            if owner is not None and self.recorder is not None:
                self.undo.keep_facts(tensor)
            if owner is not None and id(owner) not in self._saved:
                self._saved[id(owner)] = (owner, each_once(owner).clone())
        for keep in self.keepers:
            keep(tensor)

    def check_unseen(self) -> None:
        """Raise if the program changed something that no node of the graph changes."""
        recorder = self.recorder
        assert recorder is not None, "a run has one"
        if recorder.streams.moved_unseen():
            raise CaptureError(
                "the program draws random numbers from Python or NumPy",
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
            for tensor, copy in self._saved.values():
                each_once(tensor).copy_(copy)
            for tensor, flag in self._flags:
                if tensor.is_leaf and tensor.requires_grad != flag:
                    tensor.requires_grad_(flag)
                elif tensor.requires_grad and not flag:  # a value with a history was written into one without
                    (tensor if tensor._base is None else tensor._base).detach_()
        for tensor, before in self._attributes:
            vars(tensor).clear()
            vars(tensor).update(before)


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
    return id(tensor) if storage.device.type == "meta" else storage.data_ptr()  # the storage of a fake tensor
