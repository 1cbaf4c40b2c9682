"""Inputs that only some models of transformers take, each made by its name; and the numbers of a configuration.

In come the model and the sizes that are asked for; out comes one tensor. A size that the model's own configuration
fixes, such as its width, is read from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig


class Sizes(NamedTuple):
    """What is asked for: ``side`` is of images, or the frames of sound."""

    batch: int
    length: int
    side: int
    layout: str


def _ones(*names: str) -> Callable[[nn.Module, Sizes], Tensor]:
    """A mask of ones over the batch and these sizes."""
    return lambda model, sizes: torch.ones(sizes.batch, *(getattr(sizes, name) for name in names), dtype=torch.int64)


def _embedded(*names: str) -> Callable[[nn.Module, Sizes], Tensor]:
    """Vectors as wide as the model, or as the first of these numbers of its configuration."""

    def make(model: nn.Module, sizes: Sizes) -> Tensor:
        known = (config_number(model, name, 0) for name in (*names, "hidden_size", "d_model"))
        return torch.randn(sizes.batch, sizes.length, next((size for size in known if size), 64))

    return make


def _box(model: nn.Module, sizes: Sizes) -> Tensor:
    return torch.tensor([[1, 2, 30, 40]]).expand(sizes.batch, sizes.length, 4).clone()


def _points(model: nn.Module, sizes: Sizes) -> Tensor:
    return torch.rand(sizes.batch, 1, 2, 2) * sizes.side


def _patches_of_side(model: nn.Module, sizes: Sizes) -> int:
    return sizes.side // config_number(model, "patch_size", 16)


def _spatial_shapes(model: nn.Module, sizes: Sizes) -> Tensor:
    return torch.full((sizes.batch, 2), _patches_of_side(model, sizes))


def _patch_mask(model: nn.Module, sizes: Sizes) -> Tensor:
    return torch.ones(sizes.batch, _patches_of_side(model, sizes) ** 2, dtype=torch.int64)


def _patch_places(model: nn.Module, sizes: Sizes) -> Tensor:
    side = torch.arange(_patches_of_side(model, sizes))
    return torch.cartesian_prod(side, side).expand(sizes.batch, -1, -1).clone()


def _image(model: nn.Module, sizes: Sizes) -> Tensor:
    return torch.rand(sizes.batch, config_number(model, "num_channels", 3), sizes.side, sizes.side)


def _flat_patches(model: nn.Module, sizes: Sizes) -> Tensor:
    """Patches, each with its row and column in front."""
    width = config_number(model, "patch_embed_hidden_size", 0) or config_number(model, "hidden_size", 64)
    places = torch.cartesian_prod(torch.arange(1, sizes.length + 1), torch.ones(1, dtype=torch.int64))
    return torch.cat((places.expand(sizes.batch, -1, -1), torch.rand(sizes.batch, sizes.length, width)), dim=-1)


def _past(model: nn.Module, sizes: Sizes) -> int:
    """How many steps of the past a forecaster reads."""
    length = config_number(model, "context_length", 32)
    if sizes.layout != "lags":
        return length
    return length + max(getattr(model.config, "lags_sequence", None) or [0])


def _series(model: nn.Module, sizes: Sizes) -> Tensor:
    length = _past(model, sizes)
    if sizes.layout == "channels":
        return torch.rand(sizes.batch, length, config_number(model, "num_input_channels", 1))
    return torch.rand(sizes.batch, length)


def _future(model: nn.Module) -> int:
    return config_number(model, "prediction_length", 8)


def _time_features(model: nn.Module, sizes: Sizes, steps: int) -> Tensor:
    return torch.rand(sizes.batch, steps, config_number(model, "num_time_features", 0))


def _decisions(name: str, default: int) -> Callable[[nn.Module, Sizes], Tensor]:
    return lambda model, sizes: torch.rand(sizes.batch, sizes.length, config_number(model, name, default))


def _steps(model: nn.Module, sizes: Sizes) -> Tensor:
    return torch.arange(sizes.length).expand(sizes.batch, -1).clone()


def _words(model: nn.Module, sizes: Sizes) -> Tensor:
    return torch.randint(2, 40, (sizes.batch, config_number(model, "task_seq_len", sizes.length)))


def _regions(model: nn.Module, sizes: Sizes) -> Tensor:
    return torch.rand(sizes.batch, 7, config_number(model, "visual_feat_dim", 64))


def _frames(model: nn.Module, sizes: Sizes) -> Tensor:
    bins = config_number(model, "input_feat_size", 0) or config_number(model, "num_mel_bins", 80)
    return torch.randn(sizes.batch, 64 + sizes.side, bins)


MAKERS: dict[str, Callable[[nn.Module, Sizes], Tensor]] = {
    "bbox": _box,
    "pixel_mask": _ones("side", "side"),
    "input_points": _points,
    "past_values": _series,
    "past_time_features": lambda model, sizes: _time_features(model, sizes, _past(model, sizes)),
    "past_observed_mask": lambda model, sizes: torch.ones_like(_series(model, sizes)),
    "future_values": lambda model, sizes: torch.rand(sizes.batch, _future(model)),
    "future_time_features": lambda model, sizes: _time_features(model, sizes, _future(model)),
    "spatial_shapes": _spatial_shapes,
    "target_sizes": _spatial_shapes,
    "pixel_attention_mask": _patch_mask,
    "pixel_position_ids": _patch_places,
    "prompt_pixel_values": _image,
    "prompt_masks": _image,
    "flattened_patches": _flat_patches,
    "input_features_mask": _ones("side"),
    "audio_mel": _frames,
    "audio_mel_mask": lambda model, sizes: torch.zeros(sizes.batch, 64 + sizes.side, dtype=torch.bool),
    "query_embeds": _embedded(),
    "hidden_states": _embedded(),
    "inputs_embeds": _embedded(),
    "noise_embeds": _embedded(),
    "context_hidden_states": _embedded(),
    "encoder_hidden_states": _embedded("encoder_hidden_size"),
    "action_embeds": _embedded(),
    "latents": lambda model, sizes: _embedded()(model, sizes).transpose(1, 2).contiguous(),
    "task_inputs": _words,
    "visual_feats": _regions,
    "visual_pos": lambda model, sizes: torch.rand(sizes.batch, 7, 4),
    "states": _decisions("state_dim", 17),
    "actions": _decisions("act_dim", 4),
    "rewards": _decisions("", 1),
    "returns_to_go": _decisions("", 1),
    "timesteps": _steps,
    "image_attention_mask": lambda model, sizes: torch.ones(sizes.batch, sizes.length, 2, dtype=torch.int64),
}


def config_number(model: nn.Module, name: str, default: int) -> int:
    """A number of the configuration or else of a part of it."""
    found = (number_of(config, name) for config in configs_of(model))
    return next((value for value in found if value is not None), default)


def configs_of(model: nn.Module) -> list[Any]:
    """The configuration and those inside it, the outermost first."""
    found = [model.config]
    for config in found:
        found += [part for part in vars(config).values() if isinstance(part, PreTrainedConfig)]
    return found


def number_of(config: Any, name: str) -> int | None:
    """A configured number, the first of a list, or the height of a size; None where there is none."""
    value = getattr(config, name, None)
    if isinstance(value, dict):
        value = value.get("height")
    if isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value if isinstance(value, int) and not isinstance(value, bool) else None
