"""Example inputs for a transformers model, made from its signature and configuration.

In come the model, a batch size and a length; out come keyword arguments. ``recipes`` gives the ways to try, the
plainest first: which arguments are given, and how images and sound are laid out. The caller takes the first recipe
that the model accepts when it is run eagerly. The same recipe makes the inputs of other batch sizes and lengths.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig

TEXT = ("input_ids", "attention_mask", "decoder_input_ids", "bbox")
MORE = ("pixel_values", "input_values", "input_features", "pixel_mask", "past_values", "input_points")
GRIDS = ("grid_thw", "image_grid_thw")
PADDING = 3


@dataclass(frozen=True)
class Recipe:
    """Which arguments to give, and the layout of the one that is not text."""

    names: tuple[str, ...]
    layout: str
    size: int

    def make(
        self, model: nn.Module, batch: int, length: int, grow: int = 0, seed: int = 0, padded: bool = False
    ) -> dict[str, Any]:
        """The keyword arguments at this batch size; ``length`` is of text, ``grow`` enlarges images and sound."""
        torch.manual_seed(seed)
        made = {name: self._one(name, model, batch, length, grow) for name in self.names}
        if padded and "attention_mask" in made:
            made["attention_mask"][0, -PADDING:] = 0
        return made

    def _one(self, name: str, model: nn.Module, batch: int, length: int, grow: int) -> Tensor:
        if name in ("input_ids", "decoder_input_ids"):
            return torch.randint(*_free_ids(model), (batch, length))
        if name == "attention_mask":
            return torch.ones(batch, length, dtype=torch.int64)
        if name == "bbox":
            return torch.tensor([[1, 2, 30, 40]]).expand(batch, length, 4).clone()
        if name == "pixel_mask":
            return torch.ones(batch, self.size + grow, self.size + grow, dtype=torch.int64)
        if name == "input_points":
            return torch.rand(batch, 1, 2, 2) * self.size
        if name == "past_values":
            return _series(model, batch, self.layout)
        if name in GRIDS:
            side = 4 + 2 * (grow > 0)
            return torch.tensor([[1, side, side]]).repeat(batch, 1)
        if self.layout == "grid":
            return _patches(model, batch * (4 + 2 * (grow > 0)) ** 2)
        if name == "pixel_values":
            return _pixels(model, batch, self.size + grow, self.layout)
        return _sound(model, batch, self.size + grow, self.layout)


def recipes(model: nn.Module) -> Iterator[Recipe]:
    """The ways to try, the plainest first."""
    accepted = list(inspect.signature(model.forward).parameters)
    main = getattr(model, "main_input_name", "input_ids")
    if main not in accepted:
        main = next((name for name in accepted if name in (*TEXT, *MORE)), accepted[0])
    if "grid_thw" in accepted:
        yield Recipe((main, "grid_thw"), "grid", 0)
    for names in _argument_sets(main, accepted):
        kinds = [name for name in names if name in MORE]
        yield from (Recipe(names, layout, size) for layout, size in _layouts(model, kinds))


def _argument_sets(main: str, accepted: list[str]) -> list[tuple[str, ...]]:
    def chosen(*wanted: str) -> tuple[str, ...]:
        return tuple(name for name in accepted if name in wanted)

    text = TEXT if main == "input_ids" else ("decoder_input_ids",)
    sets = [chosen(main, *text), chosen(main), chosen(main, *text, "pixel_values"), chosen("pixel_values", *TEXT)]
    sets += [chosen(main, *text, "input_features"), chosen(main, *text, "input_values")]
    sets += [chosen("pixel_values", "input_points"), chosen(main, *TEXT, *MORE), chosen("input_ids")]
    return [names for names in dict.fromkeys(sets) if names]


def _layouts(model: nn.Module, kinds: list[str]) -> Iterator[tuple[str, int]]:
    if not kinds:
        yield "", 0
    elif {"pixel_values", "pixel_mask"} & set(kinds):
        sizes = dict.fromkeys([_config(model, "image_size", 64), 64, 128, 224])
        yield from product(("image", "video", "patches"), (size for size in sizes if size <= 512))
    elif kinds == ["past_values"]:
        yield from (("flat", 0), ("channels", 0))
    else:
        window = 2 * _config(model, "max_source_positions", 32)
        yield from [("wave", 4000), ("mel_first", window), ("mel_last", 64), ("channels", 4000)]
        yield from [("mel_first", 64), ("mel_last", _config(model, "max_length", 128)), ("wave", 16000)]


def _free_ids(model: nn.Module) -> tuple[int, int]:
    """A range of token numbers that every part's vocabulary has and that no special token bears."""
    known = [_number(config, "vocab_size") for config in _configs(model)]
    smallest = min([200, *(size for size in known if size is not None and size > 2)])
    return (10, smallest) if smallest > 20 else (2, smallest)


def _pixels(model: nn.Module, batch: int, size: int, layout: str) -> Tensor:
    channels = _config(model, "num_channels", 3)
    if layout == "video":
        return torch.rand(batch, _config(model, "num_frames", 2), channels, size, size)
    if layout == "patches":
        patch = _config(model, "patch_size", 16)
        return torch.rand(batch, (size // patch) ** 2, channels * patch * patch)
    return torch.rand(batch, channels, size, size)


def _patches(model: nn.Module, count: int) -> Tensor:
    """Patches of all images in one row after the other, each patch flat, as the models with a grid take them."""
    channels = _config(model, "num_channels", 0) or _config(model, "in_channels", 3)
    patch = _config(model, "patch_size", 14)
    return torch.rand(count, channels * _config(model, "temporal_patch_size", 1) * patch * patch)


def _sound(model: nn.Module, batch: int, size: int, layout: str) -> Tensor:
    bins = _config(model, "num_mel_bins", 0) or _config(model, "input_feat_per_channel", 80)
    if layout == "wave":
        return torch.randn(batch, size)
    if layout == "channels":
        return torch.randn(batch, _config(model, "audio_channels", 1), size)
    return torch.randn(batch, bins, size) if layout == "mel_first" else torch.randn(batch, size, bins)


def _series(model: nn.Module, batch: int, layout: str) -> Tensor:
    length = _config(model, "context_length", 32)
    if layout == "flat":
        return torch.rand(batch, length)
    return torch.rand(batch, length, _config(model, "num_input_channels", 1))


def _config(model: nn.Module, name: str, default: int) -> int:
    """A number of the configuration or else of a part of it."""
    found = (_number(config, name) for config in _configs(model))
    return next((value for value in found if value is not None), default)


def _configs(model: nn.Module) -> list[Any]:
    """The configuration and those inside it, the outermost first."""
    found = [model.config]
    for config in found:
        found += [part for part in vars(config).values() if isinstance(part, PreTrainedConfig)]
    return found


def _number(config: Any, name: str) -> int | None:
    """A configured number, the first of a list, or the height of a size; None where there is none."""
    value = getattr(config, name, None)
    if isinstance(value, dict):
        value = value.get("height")
    if isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value if isinstance(value, int) and not isinstance(value, bool) else None
