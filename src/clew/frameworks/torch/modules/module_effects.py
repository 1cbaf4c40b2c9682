"""What calling a module of ``torch.nn`` does besides computing its result, in any mode that it may be in.

A module is vouched for when its class is torch's own, its forward is the class's, and no hooks are registered; then
the parts decide: the worst effect among the module and all modules in it. A class of a user answers None: unknown.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules import activation, batchnorm, dropout, instancenorm, module, pooling, rnn, sparse
from torch.nn.utils import parametrize

from clew.frameworks.torch.effects import worst
from clew.ir.guests import Effect

_KNOWN_ACTIVATIONS = (functional.relu, functional.gelu)
_TALKING = ("torch.nn.parallel",)


def module_effect(root: nn.Module) -> Effect | None:
    """The effect of calling ``root``; None when its class is not torch's own."""
    if not _is_torchs_own(root):
        return None
    if module._global_forward_hooks or module._global_forward_pre_hooks:
        return Effect.UNKNOWN
    return worst(_one_effect(part) for part in root.modules()) if root._modules else _one_effect(root)


def written_by(root: nn.Module) -> Iterator[Tensor]:
    """The tensors of a module that calling it may write to: its buffers, and weights brought to a norm first."""
    yield from root.buffers()
    for part in root.modules():
        if isinstance(part, (sparse.Embedding, sparse.EmbeddingBag)) and part.max_norm is not None:
            yield part.weight


def written_now(root: nn.Module) -> Iterator[Tensor]:
    """The tensors of a module that calling it in the mode that it is in may write to: norms write while training."""
    is_resting = isinstance(root, _NORMS) and _is_torchs_own(root) and not root.training
    return iter(()) if is_resting else written_by(root)


_NORMS = (batchnorm._NormBase, instancenorm._InstanceNorm)


def writes_only_itself(root: nn.Module) -> bool:
    """Whether a module, of torch's own, writes to nothing but its own tensors when it is called."""
    if module_effect(root) in (None, Effect.UNKNOWN):
        return False
    return not any(getattr(part, "inplace", False) for part in root.modules())


def _is_torchs_own(part: nn.Module) -> bool:
    """True for exactly the classes of ``torch.nn``, and those that torch derived from them to hold parametrizations."""
    kind: Any = type(part)
    if kind.__module__ == parametrize.__name__ and parametrize.is_parametrized(part):
        kind = kind.__bases__[0]
    return _is_class_of_torch(kind)


@functools.lru_cache(maxsize=1024)
def _is_class_of_torch(kind: Any) -> bool:
    inside = kind.__module__ == "torch.nn" or kind.__module__.startswith("torch.nn.")
    return inside and kind is not nn.Module and not kind.__module__.startswith(_TALKING)


def _one_effect(part: nn.Module) -> Effect:
    """The effect of one module, its children left aside."""
    has_hooks = part._forward_hooks or part._forward_pre_hooks
    if has_hooks or "forward" in vars(part) or not _is_torchs_own(part):
        return Effect.UNKNOWN
    if getattr(part, "inplace", False):
        return Effect.WRITE
    kind: Any = type(part)
    rule = _rule_for(kind)
    return Effect.NONE if rule is None else rule(part)


@functools.lru_cache(maxsize=1024)
def _rule_for(kind: type) -> Callable[[Any], Effect] | None:
    return next((rule for kinds, rule in _RULES if issubclass(kind, kinds)), None)


def _dropout(part: Any) -> Effect:
    return Effect.RANDOM if part.p else Effect.NONE


def _norm(part: Any) -> Effect:
    """Running statistics are written while training; a synchronised norm talks to other processes then."""
    has_statistics = part.track_running_stats or part.running_mean is not None
    return Effect.WRITE if has_statistics or isinstance(part, nn.SyncBatchNorm) else Effect.NONE


def _with_dropout(part: Any) -> Effect:
    return Effect.RANDOM if part.dropout else Effect.NONE


def _randomised_relu(part: Any) -> Effect:
    return Effect.RANDOM


def _fractional_pool(part: Any) -> Effect:
    return Effect.RANDOM if part._random_samples is None else Effect.NONE


def _embedding(part: Any) -> Effect:
    return Effect.WRITE if part.max_norm is not None else Effect.NONE


def _with_callback(field: str) -> Callable[[Any], Effect]:
    """A module that calls what the user gave it: pure if that is one of torch's known activations or a module."""

    def rule(part: Any) -> Effect:
        callback = getattr(part, field)
        known = callback is None or callback in _KNOWN_ACTIVATIONS or isinstance(callback, nn.Module)
        return Effect.NONE if known else Effect.UNKNOWN

    return rule


def _distance(part: Any) -> Effect:
    """The default distance is a module of torch's own, so it is judged as a child."""
    is_default = isinstance(part.distance_function, nn.PairwiseDistance)
    return Effect.NONE if is_default else Effect.UNKNOWN


def _spectral_norm(part: Any) -> Effect:
    """A step of the power iteration is written into buffers at each call while training."""
    return Effect.WRITE


def _unknown(part: Any) -> Effect:
    return Effect.UNKNOWN


_RULES: tuple[tuple[Any, Callable[[Any], Effect]], ...] = (
    (dropout._DropoutNd, _dropout),
    (_NORMS, _norm),
    (rnn.RNNBase, _with_dropout),
    (activation.MultiheadAttention, _with_dropout),
    (activation.RReLU, _randomised_relu),
    ((pooling.FractionalMaxPool2d, pooling.FractionalMaxPool3d), _fractional_pool),
    ((sparse.Embedding, sparse.EmbeddingBag), _embedding),
    ((nn.TransformerEncoderLayer, nn.TransformerDecoderLayer), _with_callback("activation")),
    (nn.TripletMarginWithDistanceLoss, _distance),
    (nn.utils.parametrizations._SpectralNorm, _spectral_norm),
    (nn.modules.lazy.LazyModuleMixin, _unknown),
)
