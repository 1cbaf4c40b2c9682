"""What bundles of PyTorch's programs have: tensors in mapped memory, and modules. Importing this file imports torch.

A module is made bare and filled with what the file says of it: no code of its class runs. Tensors that shared memory
share it again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MethodType
from typing import Any

import torch

from clew.errors import BundleError
from clew.frameworks.torch.custom_gradient import CustomGradient
from clew.frameworks.torch.unchanged import restored
from clew.io.bundle.values import JSON, SPARSE, STRUCTURE, Decoder
from clew.io.bundle.weights import ALIGNMENT, NAMES, Weights
from clew.ir.permissions import Permissions

_LARGEST = 1 << 31


def _dtype(name: str) -> torch.dtype:
    """A dtype that safetensors does not have, by its name."""
    found = vars(torch).get(name)
    if not isinstance(found, torch.dtype):
        raise BundleError(f"the file has numbers of an unknown kind, {name!r}")
    return found


class TorchDecoder(Decoder):
    """Reads values of one file of a program of torch."""

    def __init__(
        self, manifest: JSON, weights: Weights, permissions: Permissions, of_program: Callable[[JSON, Decoder], Any]
    ) -> None:
        super().__init__(manifest, weights, permissions, of_program)
        self._generators: dict[int, torch.Generator] = {}
        self._made: dict[int, torch.Tensor] = {}
        self._built: dict[int, torch.nn.Module] = {}
        self._open: set[int] = set()
        self._stored: dict[str, torch.Tensor] = {}

    def of_framework(self, kind: str, held: JSON) -> Any:
        """A tensor or a module by its number, a device, a size, or what a constant tensor must be."""
        if kind == "tensor":
            return self.tensor(held)
        if kind == "module":
            return self.module(held)
        if kind == "Unchanged":
            return restored(*self.parts(held))
        if kind == "generator":
            return self._generator(held)
        if kind == "apply":
            return self._apply(str(held))
        if kind == "gradient":
            name, *passes = held
            return CustomGradient(str(name), *(self.of_program(one, self) for one in passes))
        if kind == "device":
            return torch.device(held)
        return torch.Size(held) if kind == "size" else super().of_framework(kind, held)

    # ---- tensors -------------------------------------------------------------------------------------------------

    def tensor(self, place: JSON) -> torch.Tensor:
        """A tensor by its number."""
        if place not in self._made:
            entry = self.tensors[place]
            found = self._sparse(entry) if "layout" in entry else self._memory(entry)
            if entry.get("device"):
                found = found.to(torch.device(entry["device"]))
            if entry.get("parameter"):
                found = torch.nn.Parameter(found, requires_grad=bool(entry["requires_grad"]))
            elif entry.get("requires_grad"):
                found.requires_grad_()
            self._made[place] = found
        return self._made[place]

    def _apply(self, name: str) -> Any:
        kind = self.permissions.find(name)
        if not isinstance(kind, type) or not issubclass(kind, torch.autograd.Function):
            raise BundleError(f"{name} is no torch.autograd.Function")
        return MethodType(vars(torch.autograd.Function)["apply"].__func__, kind)

    def _generator(self, place: JSON) -> torch.Generator:
        if place not in self._generators:
            entry = self.tensors[place]
            made = self._generators[place] = torch.Generator(str(entry["generator"]))
            made.set_state(self.value(entry["state"]))
        return self._generators[place]

    def _sparse(self, entry: JSON) -> torch.Tensor:
        layout, shape = entry["layout"], entry["shape"]
        parts = [self.value(part) for part in entry["parts"]]
        if layout not in SPARSE or any(type(size) is not int or not 0 <= size < _LARGEST for size in shape):
            raise BundleError("a sparse tensor of the file has an impossible layout or shape")
        if layout == "sparse_coo":
            indices, values = parts
            made = torch.sparse_coo_tensor(indices, values, shape, check_invariants=True)
            return made._coalesced_(bool(entry["coalesced"]))
        outer, inner, values = parts
        kind = getattr(torch, layout)
        return torch.sparse_compressed_tensor(outer, inner, values, shape, layout=kind, check_invariants=True)

    def _memory(self, entry: JSON) -> torch.Tensor:
        name = entry["data"]
        if name not in self._stored:
            mapped = self._mapped(name)
            self._stored[name] = mapped.view(_dtype(entry["dtype"])) if "dtype" in entry else mapped
        found = self._stored[name]
        if "stride" not in entry:
            return found
        shape, stride, offset = entry["shape"], entry["stride"], entry["offset"]
        numbers = [*shape, *stride, offset]
        if any(type(one) is not int or not 0 <= one < _LARGEST for one in numbers) or len(shape) != len(stride):
            raise BundleError("a tensor of the file has an impossible shape")
        last = offset + sum((size - 1) * step for size, step in zip(shape, stride, strict=True)) if all(shape) else 0
        if last >= max(found.numel(), 1):
            raise BundleError("a tensor of the file reaches beyond its memory")
        return found.as_strided(shape, stride, offset)

    def _mapped(self, name: str) -> torch.Tensor:
        """A tensor over the memory of the file itself; a copy where it does not lie as torch would place it, because
        some kernels round differently there."""
        entry = self.weights.entry(name)
        dtype, count = getattr(torch, NAMES[entry.dtype]), math.prod(entry.shape)
        if count == 0:
            return torch.empty(entry.shape, dtype=dtype)
        flat = torch.frombuffer(self.weights.memory, dtype=dtype, count=count, offset=entry.start)
        return (flat.clone() if entry.start % ALIGNMENT else flat).reshape(entry.shape)

    # ---- modules -------------------------------------------------------------------------------------------------

    def module(self, place: JSON) -> torch.nn.Module:
        """A module by its number, with its parts."""
        if place in self._open:
            raise BundleError("a module of the file is a part of itself")
        if place not in self._built:
            self._open.add(place)
            entry = self.modules[place]
            if "program" in entry:
                self._built[place] = self._program(entry["program"])
                self._open.discard(place)
                return self._built[place]
            kind = self.permissions.find(entry["class"])
            if not isinstance(kind, type) or not issubclass(kind, torch.nn.Module):
                raise BundleError(
                    f"{entry['class']} is no class of modules that may be loaded",
                    why="a class of yours is run only if you allow it, and it must be imported",
                    fixes=[f"clew.load(path, allow=[..., {entry['class']!r}])"],
                )
            module = kind.__new__(kind)
            torch.nn.Module.__init__(module)
            self._built[place] = module
            self._fill(module, entry)
            self._open.discard(place)
        return self._built[place]

    def _program(self, entry: JSON) -> torch.nn.Module:
        made = self.of_program(entry, self)
        if not isinstance(made, torch.nn.Module):
            raise BundleError("a program of the file that should be a module is none")
        return made

    def _fill(self, module: torch.nn.Module, entry: JSON) -> None:
        held = vars(module)
        held["training"] = bool(entry["training"])
        for name in ("parameters", "buffers"):
            held[f"_{name}"].update({str(key): self.value(one) for key, one in entry[name].items()})
        held["_non_persistent_buffers_set"].update(map(str, entry["not_saved"]))
        parts = {str(key): None if one is None else self.module(one) for key, one in entry["modules"].items()}
        held["_modules"].update(parts)
        held.update({str(key): self.value(one) for key, one in entry["attributes"].items() if key not in STRUCTURE})
