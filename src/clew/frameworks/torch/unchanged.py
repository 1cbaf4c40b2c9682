"""What a pass relies on that computes something of a torch program ahead of time, as expressions and tests of guards.

``Unchanged`` is what a tensor was when something was computed of it: facts and a digest of its numbers. The test of
that name holds for a tensor that is the same still; a look at its version is enough as long as nobody wrote to it, and
the digest has the last word. ``settings`` is what a call with constant arguments hangs on besides them.
``resting_flags`` tells in which modes a call of a module only computes its result, ``is_hooked`` whether a user
listens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.modules import activation, batchnorm, dropout, instancenorm, module, rnn
from torch.utils import _device
from torch.utils.weak import WeakIdKeyDictionary

from clew.frameworks.torch.effects import module_effect, part_effect
from clew.ir.effects import pure
from clew.ir.guards import Test, register
from clew.ir.guests import Effect


class Unchanged:
    """A tensor as it was. Copies and pickles know the digest, and look once whether the tensor that they meet is it."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.facts, self.digest = _facts(tensor), _digest(tensor)
        self._note(WeakIdKeyDictionary(), tensor)

    def _note(self, seen: Any, tensor: torch.Tensor) -> None:
        self._seen = seen
        if not tensor.is_inference():  # those have no version
            seen[tensor] = (tensor._version, tensor.data_ptr())

    def holds(self, tensor: Any) -> bool:
        """Whether this is the tensor, or one like it, and nobody has changed it."""
        if not isinstance(tensor, torch.Tensor):
            return False
        known = self._seen.get(tensor)
        if known is not None and known == (tensor._version, tensor.data_ptr()) and _facts(tensor) == self.facts:
            return True
        if _facts(tensor) != self.facts or _digest(tensor) != self.digest:
            return False
        self._note(self._seen, tensor)
        return True

    def __repr__(self) -> str:
        return f"<{self.digest[:8]}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unchanged) and (self.facts, self.digest) == (other.facts, other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (self.facts, self.digest)


def restored(facts: tuple[Any, ...], digest: str) -> Unchanged:
    """What was saved of a tensor that must not change."""
    found = Unchanged.__new__(Unchanged)
    found.facts, found.digest, found._seen = facts, digest, WeakIdKeyDictionary()
    return found


def _facts(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.device, tuple(tensor.shape), tensor.stride(), tensor.requires_grad


def _digest(tensor: torch.Tensor) -> str:
    plain = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return hashlib.blake2b(plain.numpy().tobytes(), digest_size=16).hexdigest()


UNCHANGED = register(
    Test(
        "unchanged",
        lambda value, expected: expected.holds(value),
        lambda subject, expected: f"{subject} is unchanged",
        lambda value: "it holds other numbers, or is of another dtype or device",
        ("run the pass again, on a new capture, after the change",),
    )
)


def can_be_kept(tensor: Any) -> bool:
    """Whether a value is a tensor whose numbers can be looked at: of torch's own classes, dense, with data."""
    return (
        type(tensor) in (torch.Tensor, nn.Parameter)
        and tensor.layout is torch.strided
        and not tensor.is_quantized
        and tensor.device.type != "meta"
    )


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def is_hooked(part: nn.Module) -> bool:
    """Whether functions of the user's run with calls of a module, or with the gradients through it."""
    tables = (module._global_forward_hooks, module._global_forward_pre_hooks, module._global_backward_hooks)
    return any(tables) or any(getattr(part, name, None) for name in _HOOKS) or "forward" in vars(part)


@pure
def settings() -> tuple[Any, ...]:
    """What a call of torch with constant arguments hangs on besides them."""
    autocast = tuple(torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda"))
    device = _device.CURRENT_DEVICE or torch.device("cpu")  # a compiler that reads has put its mode aside
    return torch.get_default_dtype(), device, autocast


_AT_REST = (
    dropout._DropoutNd, batchnorm._BatchNorm, instancenorm._InstanceNorm, rnn.RNNBase, activation.MultiheadAttention,
    activation.RReLU,
)  # fmt: skip
"""Modules of torch whose effects all belong to training: random numbers that they draw, statistics that they write."""


def resting_flags(root: nn.Module, path: str) -> list[str] | None:
    """The flags of a module at ``path``, and of its parts, that must be off for a call to only compute its result.

    None if a call does more all the same, or if one of the flags is on.
    """
    if module_effect(root) in (None, Effect.UNKNOWN):
        return None
    found = []
    for name, part in _with_effects(root):
        if not isinstance(part, _AT_REST) or isinstance(part, nn.SyncBatchNorm) or getattr(part, "inplace", False):
            return None
        if part.training:
            return None
        found.append(".".join(filter(None, (path, name, "training"))))
    return found


def _with_effects(root: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    for name, part in root.named_modules():
        if part_effect(part) is not Effect.NONE:
            yield name, part
