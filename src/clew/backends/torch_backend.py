"""What back ends for programs of torch have in common: which nodes a segment may have, and what it reads itself.

A back end derives from ``TorchBackend`` and defines ``compiled``. Importing this file imports torch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from clew.backends.registry import Backend
from clew.backends.torch_attributes import holder_of, is_plain_layer
from clew.backends.torch_segment import Flat, TorchSegment
from clew.capture.bytecode.try_blocks import attempted
from clew.capture.state.slots import ROOT
from clew.errors import BackendError
from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.guests import package_of
from clew.ir.node import Node
from clew.ir.types import ArrayType

_PACKAGES = frozenset(("torch", "operator", "_operator", "builtins", "math"))
_CLEWS = frozenset(("choose", "rotary_embedding", "with_item", "fitted"))
"""Clew's own functions that are made of torch's."""
_METHODS = frozenset(
    "backward register_hook retain_grad requires_grad_ detach_ set_ resize_ numpy item tolist data_ptr untyped_storage "
    "storage share_memory_ pin_memory nonzero unique masked_select __enter__ __exit__ apply_ map_".split()
)
_FUNCTIONS = frozenset(
    "backward grad nonzero argwhere unique unique_consecutive masked_select from_numpy save load manual_seed "
    "set_grad_enabled set_default_dtype".split()
)
_BLOCKS = (torch.no_grad, torch.autocast, torch.amp.autocast, torch.cpu.amp.autocast, torch.cuda.amp.autocast)
_FACTS_OF_GRADIENTS = frozenset(("grad", "grad_fn", "data", "is_leaf", "_version"))


class TorchBackend(Backend):
    """A back end that compiles functions of tensors."""

    takes_attempts = True
    takes_symbols = True
    """Whether sizes and numbers that differ between calls may be symbols."""
    needs_fakes = True
    """Whether ``compiled`` asks for fakes of its arguments; only one that takes no symbols may do without."""

    def prepare(self, captured: Any) -> Any:
        if getattr(type(captured), "framework", "torch" if hasattr(captured, "state_dict") else "") != "torch":
            raise BackendError(
                f"{self.name} compiles programs of torch, and this is none", fixes=('backend="xla" for JAX',)
            )
        return captured

    def reason_against(self, node: Node) -> str:
        return reason_against(node)

    def takes_block(self, manager: Node) -> bool:
        return manager.target in _BLOCKS

    def reads_attributes(self, root: Any, path: str) -> bool:
        return segment_reads(root, path)

    def segment(self, graph: Graph, name: str, fallback: bool) -> Callable[..., Any]:
        return TorchSegment(graph, name, fallback, self)

    def compiled(self, flat: Flat, fakes: list[Any], mode: Any, example: list[Any]) -> Callable[..., Any]:
        """A function that does what ``flat.run`` does on values like the ``example``; ``fakes`` stand for these, in
        ``mode``. It is called with one value for each, and gives a sequence."""
        raise NotImplementedError


def segment_reads(root: Any, path: str) -> bool:
    """Whether an attribute is found among the modules of a program; a program's own constants are given instead."""
    own = getattr(root, "_self", None)
    return path != ROOT and own is not None and holder_of(own, path) is not None and path not in _constants(root, own)


def _constants(root: Any, own: Any) -> dict[str, Any]:
    return {} if root is own else vars(root)


def reason_against(node: Node) -> str:
    """Why a node stays in Python; empty if it need not."""
    node = attempted(node)
    if node.op == "call_module":
        own = getattr(node.graph.owning_module, "_self", None)
        layer = resolve(own, str(node.target)) if own is not None else None
        return "" if is_plain_layer(layer) else "it is a layer of the user's, or somebody listens to it"
    if node.op == "call_method":
        return f".{node.target}() needs the real tensor" if node.target in _METHODS else ""
    return _against_function(node)


def _against_function(node: Node) -> str:
    name = getattr(node.target, "__name__", "")
    if node.target is getattr and len(node.args) > 1 and node.args[1] in _FACTS_OF_GRADIENTS:
        return f".{node.args[1]} needs the real tensor"
    if _is_held(node):
        return "it reads an object of the program"
    package = package_of(node.target)
    if package == "clew" and name in _CLEWS:
        return ""
    if package not in _PACKAGES:
        return f"it is a function of {package}"
    if name in _FUNCTIONS and package == "torch":
        return f"{name} needs the real tensor"
    is_asking = node.target in (bool, int, float, print, id, hash)
    return f"{name}() asks for a plain value" if is_asking else ""


def _is_held(node: Node) -> bool:
    """Whether a node reads what an object of the program, one that is no tensor, holds."""
    if node.target not in (getattr, operator.getitem) or not isinstance(node.args[0], Node):
        return False
    holder = node.args[0]
    return not isinstance(holder.value_type, ArrayType) and (holder.op == "get_attr" or _is_held(holder))
