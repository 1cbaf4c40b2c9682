"""Effects that hang on arguments: dropout draws only while training, batch norm writes only with statistics.

In come the name of a function and its arguments by the names of their parameters. A flag that is a node may be
anything, so it counts as set. All tables are keyed by the plain name, which torch's Python functions, C functions and
operators share.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from clew.ir.guests import Effect

# Name -> the chance, and the flag, that must both be on for random numbers to be drawn.
DRAWS_WHEN: dict[str, tuple[str | None, tuple[str, ...]]] = {
    **dict.fromkeys(
        "dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout feature_alpha_dropout "
        "native_dropout".split(),
        ("p", ("training", "train")),
    ),
    "rrelu": (None, ("training",)),
    "rrelu_with_noise": (None, ("training",)),
    "rrelu_with_noise_functional": (None, ("training",)),
    "multi_head_attention_forward": ("dropout_p", ("training",)),
    **dict.fromkeys("lstm gru rnn_tanh rnn_relu".split(), ("dropout", ("train",))),
    **dict.fromkeys(
        "scaled_dot_product_attention _scaled_dot_product_attention_math _scaled_dot_product_flash_attention "
        "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_efficient_attention "
        "_scaled_dot_product_cudnn_attention _flash_attention_forward _efficient_attention_forward".split(),
        ("dropout_p", ()),
    ),
}
# These draw whatever their arguments are, unless the samples are handed in.
DRAWS_ALWAYS = frozenset(
    "gumbel_softmax lobpcg pca_lowrank svd_lowrank fractional_max_pool2d fractional_max_pool3d "
    "fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices".split()
)
# Name -> the flag under which the running statistics, if there are any, are written; the schemas do not say so.
WRITES_STATISTICS_WHEN: dict[str, str | None] = {
    **dict.fromkeys(
        "batch_norm native_batch_norm cudnn_batch_norm miopen_batch_norm _batch_norm_impl_index".split(), "training"
    ),
    "instance_norm": "use_input_stats",
    **dict.fromkeys("batch_norm_update_stats batch_norm_gather_stats batch_norm_gather_stats_with_counts".split()),
}
# These normalise rows of their weight in place when a largest norm is given.
RENORMALISES = frozenset({"embedding", "embedding_bag"})
# These call a function of the user's if one is given.
CALLS_BACK = {"triplet_margin_with_distance_loss": "distance_function"}

_ABSENT = object()


def ends_in_place(name: str) -> bool:
    """True for names like ``add_``, by which torch marks what writes to its first argument."""
    return name.endswith("_") and not name.endswith("__")


def is_off(value: Any) -> bool:
    """True for a flag or chance that is surely not set: a node, a traced number, or an argument that is not there, may
    be anything."""
    return type(value) in (bool, int, float) and not value


def argument_effect(name: str, calls: Iterable[dict[str, Any]]) -> Effect:
    """The worst effect that the arguments ask of a function that else is pure, over all readings of the call."""
    return worst(one_effect(name, named) for named in calls)


def one_effect(name: str, named: dict[str, Any]) -> Effect:
    """The effect under one reading of the arguments."""
    if named.get("out") is not None or not is_off(named.get("inplace", False)) or _writes_state(name, named):
        return Effect.WRITE
    if named.get(CALLS_BACK.get(name, "")) is not None:
        return Effect.UNKNOWN
    return Effect.RANDOM if draws(name, named) else Effect.NONE


def draws(name: str, named: dict[str, Any]) -> bool:
    """Whether the call uses random numbers, as far as the tables know."""
    if name in DRAWS_ALWAYS:
        return named.get("_random_samples", named.get("random_samples")) is None
    if name not in DRAWS_WHEN:
        return False
    chance, flags = DRAWS_WHEN[name]
    switches = [named[flag] for flag in flags if flag in named]
    chance_is_off = chance is not None and is_off(named.get(chance, _ABSENT))
    return not chance_is_off and not any(map(is_off, switches))


def _writes_state(name: str, named: dict[str, Any]) -> bool:
    if name in RENORMALISES and named.get("max_norm") is not None:
        return True
    if name not in WRITES_STATISTICS_WHEN:
        return False
    flag = WRITES_STATISTICS_WHEN[name]
    is_on = flag is None or not is_off(named.get(flag, _ABSENT))
    has_statistics = any(named.get(key, _ABSENT) is not None for key in ("running_mean", "running_var"))
    return is_on and has_statistics


_ORDER = [Effect.NONE, Effect.RANDOM, Effect.WRITE, Effect.UNKNOWN]


def worst(effects: Iterable[Effect]) -> Effect:
    """The effect that matters most among several; none of none."""
    return max(effects, key=_ORDER.index, default=Effect.NONE)
