"""PyTorch as a source: the names of its functions, its dtypes, devices and in-place calls, its weights.

Importing this file imports torch, and with it the rows of torch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy
import torch

from clew import tree
from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.guests import package_of
from clew.ir.node import Node
from clew.ir.types import ArrayType
from clew.passes.functionalize import functionalize
from clew.passes.inline_modules import inline_modules
from clew.translate.apart import Given
from clew.translate.refusals import Refusal
from clew.translate.rows import (
    torch_aten,
    torch_by_data,
    torch_complex,
    torch_creation,
    torch_indexing,
    torch_layers,
    torch_linalg,
    torch_plain,
    torch_python,
    torch_recurrent,
    torch_reductions,
    torch_strides,
)
from clew.translate.rows.torch_elementwise import TORCH
from clew.translate.sources.source import NOTHING, Source, Special
from clew.translate.sources.torch_decompositions import Decompositions, Kind
from clew.translate.sources.torch_functions import SPECIAL
from clew.translate.sources.torch_modules import enter_layers
from clew.translate.values import Dtype, Place
from clew.translate.writer import Writer, mapped

ROWS = (
    torch_aten,
    torch_by_data,
    torch_complex,
    torch_creation,
    torch_indexing,
    torch_layers,
    torch_linalg,
    torch_python,
    torch_recurrent,
    torch_reductions,
    torch_strides,
)
"""The files of rows; importing them fills the table."""

_IN_PLACE: dict[Callable[..., Any], str] = {
    getattr(operator, f"i{name}"): f"operator.{name}"
    for name in "add sub mul truediv floordiv mod pow matmul lshift rshift xor".split()
} | {operator.iand: "operator.and_", operator.ior: "operator.or_", operator.setitem: "operator.setitem"}


_VIEWS = frozenset(
    "view reshape flatten unflatten permute transpose t swapaxes swapdims movedim moveaxis expand expand_as squeeze "
    "unsqueeze narrow select getitem slice split chunk tensor_split unbind diagonal unfold detach contiguous to type "
    "type_as float half double bfloat16 int long short bool byte char cpu cuda real imag view_as reshape_as ravel "
    "broadcast_to broadcast_tensors split_with_sizes positive alias adjoint resolve_conj resolve_neg conj data "
    "T mT mH H requires_grad_ dropout as_tensor asarray meshgrid atleast_1d atleast_2d atleast_3d hsplit vsplit dsplit "
    "lift_fresh view_of _unsafe_view _reshape_alias cond while_loop for_loop choose chunk unsafe_chunk unsafe_split "
    "pad".split()
)
"""Functions that may return their argument, or a view of it; some of them only in special cases."""


class TorchSource(Source):
    """PyTorch."""

    framework = "torch"
    table = TORCH
    reads_calls = True
    marks = ("_dynamo_",)

    def __init__(self) -> None:
        self.decompositions = Decompositions(self.table)

    def folded(self, node: Node, args: Any, kwargs: Any) -> Any:
        name = self.names(node)[-1]
        if name in ("finfo", "iinfo") and args and isinstance(args[0], Dtype):
            return getattr(torch, name)(getattr(torch, args[0]))
        if name in ("device", "get_default_device"):
            return Place("cpu")
        return self.constant(torch.get_default_dtype()) if name == "get_default_dtype" else NOTHING

    def is_parameter(self, value: Any) -> bool:
        return isinstance(value, torch.nn.Parameter) and value.is_floating_point()

    def identity(self, value: Any) -> Any:
        if value.numel() == 0:
            return id(value)
        return (value.data_ptr(), tuple(value.shape), value.stride(), value.dtype)

    def dtype_of(self, value: Any) -> str:
        return str(value.dtype).removeprefix("torch.")

    def without_gradients(self) -> AbstractContextManager[Any]:
        return torch.no_grad()

    @contextmanager
    def undisturbed(self, program: Any = None) -> Iterator[None]:
        is_module = isinstance(program, torch.nn.Module)
        before = {name: one.detach().clone() for name, one in program.named_buffers()} if is_module else {}
        try:
            with torch.random.fork_rng(devices=[]):
                yield
        finally:
            with torch.no_grad():
                for name, one in program.named_buffers() if is_module else ():
                    if name in before and before[name].shape == one.shape:
                        one.copy_(before[name])

    def restore(self, array: Any, earlier: Any) -> None:
        if isinstance(array, torch.Tensor):
            with torch.no_grad():
                array.copy_(earlier)

    def like(self, array: Any, numbers: Any) -> Any:
        return torch.from_numpy(numpy.array(numbers)).to(array.dtype)

    def slopes(self, program: Any, call: Any) -> dict[str, Any]:
        if not isinstance(program, torch.nn.Module):
            return {}
        weights = {name: one for name, one in program.named_parameters() if one.requires_grad}
        with torch.enable_grad():
            found = tree.flatten(program(*call[0], **call[1]))[0]
            floats = [one for one in found if isinstance(one, torch.Tensor) and one.is_floating_point()]
            floats = [one.float().sum() for one in floats if one.requires_grad]
            if not floats:
                return {}
            slopes = torch.autograd.grad(sum(floats[1:], floats[0]), list(weights.values()), allow_unused=True)
        return {name: one for name, one in zip(weights, slopes, strict=True) if one is not None}

    def from_numpy(self, value: Any) -> Any:
        return torch.from_numpy(numpy.array(value))

    def to_numpy(self, value: Any) -> Any:
        plain = value.detach().cpu().resolve_conj().resolve_neg()
        if plain.dtype is torch.bfloat16:
            return plain.float().numpy().astype("bfloat16")
        return plain.numpy()

    def taken_apart(self, node: Node, args: Any, kwargs: Any, given: list[tuple[Any, bool, Any]]) -> Any:
        function: Any = node.target
        if node.op == "call_method":
            function = getattr(torch.Tensor, str(node.target), None)
            if not (args and isinstance(args[0], Given)):
                return None
        elif node.op != "call_function" or node.target is getattr or not _is_of_torch(function):
            return None
        args, kwargs = mapped((args, kwargs), _as_torch)
        kinds = [Kind(kind.dtype, _shape(kind), fixed) if number is None else number for kind, fixed, number in given]
        return None if function is None else self.decompositions.of(function, args, kwargs, kinds)

    def names(self, node: Node) -> list[str]:
        """Those of a function with its own derivative tell whose it is."""
        owner = getattr(node.target, "__self__", None)
        if isinstance(owner, type) and issubclass(owner, torch.autograd.Function):
            return [f"{owner.__module__.removeprefix('torch.')}.{owner.__qualname__}.apply"]
        return super().names(node)

    def special(self, node: Node) -> Special | None:
        return SPECIAL.get(self.names(node)[0]) if node.op == "call_function" else None

    def plain_result(self, writer: Writer, node: Node, given: tuple[Any, Any], dtype: str) -> Any:
        return torch_plain.plain_of(writer, self.names(node)[-1], *given, dtype)

    def plain_attribute(self, root: Any, path: str, value: Any) -> Any:
        """A whole number in a buffer that is not saved with the weights."""
        owner, _, name = path.rpartition(".")
        kept = getattr(resolve(root, owner) if owner else root, "_non_persistent_buffers_set", ())
        is_whole = not value.ndim and not value.is_floating_point() and not value.is_complex()
        return value.item() if name in kept and is_whole else None

    def may_share(self, node: Node) -> bool:
        name = str(node.args[1]) if node.target is getattr else self.names(node)[-1].rpartition(".")[2]
        return name in _VIEWS or self.table.find(self.names(node)) is None

    def spellings(self, name: str) -> list[str]:
        last = name.rpartition(".")[2]
        if name.startswith(("linalg.", "fft.", "special.", "distributions.", "sparse.")):
            return [name]
        return [name, f"nn.functional.{last}", last] if name.startswith(("_C._nn", "nn.functional")) else [name, last]

    def constant(self, value: Any) -> Any:
        kind = type(value)
        if kind.__module__ != "torch":
            return value
        if kind.__name__ == "dtype":
            return Dtype(str(value).removeprefix("torch."))
        if kind.__name__ in ("device", "layout", "memory_format"):
            return Place(str(value))
        return tuple(value) if kind.__name__ == "Size" else value

    def written(self, node: Node) -> tuple[str, int] | None:
        if node.op == "call_method":
            name = str(node.target)
        elif node.target in _IN_PLACE:
            return _IN_PLACE[node.target], 0
        elif node.op == "call_function" and package_of(node.target) == "torch":
            name = self.names(node)[-1]
        else:
            return None
        if name == "__setitem__":
            return "operator.setitem", 0
        if not name.endswith("_") or name.endswith("__") or name == "requires_grad_":
            return None
        return name[:-1], 0


def _is_of_torch(function: Any) -> bool:
    return package_of(function) == "torch" or isinstance(function, torch.jit.ScriptFunction)


def _as_torch(leaf: Any) -> Any:
    """A plain value of rows as an argument of torch's functions."""
    if isinstance(leaf, Dtype):
        return getattr(torch, leaf)
    return torch.device("cpu") if isinstance(leaf, Place) else leaf


def _shape(kind: ArrayType) -> tuple[int, ...]:
    return tuple(one if isinstance(one, int) else 2 for one in kind.shape)


def prepare(graph: Graph, constants: dict[str, Any]) -> list[Refusal]:
    """Enter the layers of a graph, and make writes functional; what cannot be done comes out."""
    inline_modules(graph)
    refusals = enter_layers(graph, constants)
    functionalize(graph)
    return refusals


SOURCE = TorchSource
