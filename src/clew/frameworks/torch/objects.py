"""Which object a tensor is, where it comes from, and whether it may be kept: questions of the recorder about tensors.

A tensor and the recorder come in. Answers that a program can see (is this the tensor that I gave? does it require a
gradient?) are guarded where the inputs alone do not decide them.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from clew.frameworks.torch.refusals import refusal

MAY_GIVE_BACK = frozenset(
    "contiguous to type type_as float double half bfloat16 int long short char byte bool cpu cuda cfloat cdouble conj "
    "resolve_conj resolve_neg coalesce dropout alpha_dropout feature_dropout feature_alpha_dropout real positive pad "
    "to_dense atleast_1d atleast_2d atleast_3d sum_to_size cat concat reshape view_as_real".split()
)
"""Functions that give back the very tensor that they are given, if nothing is left to be done to it."""


def given_back(recorder: Any, value: torch.Tensor, node: Any, args: tuple[Any, ...]) -> Any:
    """In a program that asks which object a tensor is: the argument that a call gave back, guarded as such; None
    if it gave back none."""
    name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
    found = None
    for arg in args:
        if isinstance(arg, torch.Tensor) and (arg is value or name in MAY_GIVE_BACK):
            recorder.guard(recorder.create(operator.is_, (node, recorder.node_of(arg))), arg is value)
            found = arg if arg is value else found
    return found


def ask_history(recorder: Any, tensor: Any, name: str, func: Any) -> Any:
    """Whether a tensor has a gradient follows from the inputs, unless parameters have a part in it."""
    recorder.rely("requires_grad")
    answer = func(tensor)
    if name != "grad_fn" and _is_of_parameters(recorder, tensor):
        recorder.guard(recorder.create(getattr, (recorder.node_of(tensor), name)), answer)
    return answer


def _is_of_parameters(recorder: Any, tensor: Any) -> bool:
    """Whether a tensor is one of the program's surroundings, or was computed from such."""
    waiting, seen = [recorder.node_of(tensor)], set()
    while waiting:
        node = waiting.pop()
        if node not in seen:
            if node.op in ("get_attr", "call_module"):
                return True
            seen.add(node)
            waiting += node.all_input_nodes
    return False


def alias_of_sparse(value: torch.Tensor) -> torch.Tensor:
    """Another object for a sparse tensor, of which torch makes no views."""
    if value.requires_grad:
        raise refusal("a sparse tensor with a gradient that a call gives back as it is")
    return value.detach()


_MOST_ELEMENTS = 1 << 20


def can_be_kept(value: Any) -> bool:
    """Whether a result may be kept for all calls: a plain tensor of moderate size that holds data."""
    if type(value) is not torch.Tensor or value.requires_grad or value.is_inference():
        return False
    return not value.is_meta and value.layout is torch.strided and value.numel() <= _MOST_ELEMENTS


def is_small(tensor: Any) -> bool:
    """Whether it costs little to see at each call that a tensor still holds what it held; NaN equals nothing."""
    if tensor.is_inference() or not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided:
        return False
    with torch._C.DisableTorchFunction():
        if tensor.is_meta or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return True  # fake ones hold nothing
        return tensor.numel() <= _MOST_COMPARED and bool(torch.equal(tensor, tensor.clone()))


_MOST_COMPARED = 1 << 14


def share_memory(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether a write to one tensor may be seen in the other."""
    return bool(torch._C._is_alias_of(left, right))  # type: ignore[attr-defined]
