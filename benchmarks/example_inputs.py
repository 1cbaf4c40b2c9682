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

from benchmarks import more_inputs
from benchmarks.more_inputs import config_number, configs_of, number_of

TEXT = ("input_ids", "attention_mask", "decoder_input_ids", "bbox")
MORE = ("pixel_values", "input_values", "input_features", "pixel_mask", "past_values", "input_points")
GRIDS = ("grid_thw", "image_grid_thw")
BINS = ("input_dim", "num_mel_bins", "input_feat_per_channel", "feature_size", "input_feat_size")
PADDING = 3


@dataclass(frozen=True)
class Recipe:
    """Which arguments to give, and the layout of the one that is not text."""

    names: tuple[str, ...]
    layout: str
    size: int
    width: int = 0

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
        if name in ("input_ids", "decoder_input_ids", "qformer_input_ids"):
            more = self.layout.removeprefix("codes") if self.layout.startswith("codes") else ""
            codes = [config_number(model, "num_codebooks", 1) + int(digit) for digit in more]
            return torch.randint(*_free_ids(model), (batch, length, *codes))
        if name in ("attention_mask", "qformer_attention_mask"):
            return torch.ones(batch, length, dtype=torch.int64)
        if name in GRIDS:
            side = 4 + 2 * (grow > 0)
            return torch.tensor([[1, side, side]]).repeat(batch, 1)
        if self.layout[:4] == "grid":
            return _patches(model, batch * (4 + 2 * (grow > 0)) ** 2, self.layout)
        if name in more_inputs.MAKERS:
            return more_inputs.MAKERS[name](model, more_inputs.Sizes(batch, length, self.size + grow, self.layout))
        if name == "pixel_values":
            return _pixels(model, batch, self.size + grow, (self.width or self.size) + grow, self.layout)
        return _sound(model, batch, self.size + grow, self.layout)


def recipes(model: nn.Module) -> Iterator[Recipe]:
    """The ways to try, the plainest first."""
    parameters = inspect.signature(model.forward).parameters
    accepted = list(parameters)
    main = getattr(model, "main_input_name", "input_ids")
    if main not in accepted:
        main = next((name for name in accepted if name in (*TEXT, *MORE)), accepted[0])
    if "grid_thw" in accepted:
        yield from (Recipe((main, "grid_thw"), layout, 0) for layout in ("grid", "grid_two", "grid_images"))
    needed = [name for name, parameter in parameters.items() if _is_needed(parameter)]
    for names in _argument_sets(main, accepted, needed):
        kinds = [name for name in names if name in MORE]
        yield from (Recipe(names, *layout) for layout in _layouts(model, kinds))
    if main == "input_ids" and "input_ids" in accepted:
        yield from (Recipe(("input_ids",), layout, 0) for layout in ("codes0", "codes1"))


def _is_needed(parameter: inspect.Parameter) -> bool:
    variadic = (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and parameter.kind not in variadic


def _argument_sets(main: str, accepted: list[str], needed: list[str]) -> list[tuple[str, ...]]:
    def chosen(*wanted: str) -> tuple[str, ...]:
        return tuple(name for name in accepted if name in wanted or name in needed)

    text = TEXT if main == "input_ids" else ("decoder_input_ids",)
    extra = tuple(name for name in more_inputs.MAKERS if not name.endswith(("embeds", "states")))
    sets = [chosen(main, *text), chosen(main), chosen(main, *text, "pixel_values"), chosen("pixel_values", *TEXT)]
    sets += [chosen(main, *text, "input_features"), chosen(main, *text, "input_values")]
    sets += [chosen("pixel_values", "input_points"), chosen(main, *TEXT, *MORE), chosen("input_ids")]
    sets += [chosen(main, "encoder_hidden_states"), chosen(main, *extra), chosen(main, *TEXT, *extra)]
    sets += [chosen(main, "pixel_values", *TEXT, *extra)]
    return [names for names in dict.fromkeys(sets) if names]


def _layouts(model: nn.Module, kinds: list[str]) -> Iterator[tuple[Any, ...]]:
    if not kinds:
        yield "", 0
    elif {"pixel_values", "pixel_mask"} & set(kinds):
        whole = config_number(model, "image_size", 64)
        yield from [("image", *sides) for sides in _oblong(model)]
        sizes = dict.fromkeys([whole, 64, 128, 224])
        yield from product(("image", "video", "patches"), (size for size in sizes if size <= 512))
    elif kinds == ["past_values"]:
        yield from (("flat", 0), ("channels", 0), ("lags", 0))
    else:
        window = 2 * config_number(model, "max_source_positions", 32)
        yield from [("wave", 4000), ("mel_first", window), ("mel_last", 64), ("channels", 4000)]
        yield from [("mel_first", 64), ("mel_last", config_number(model, "max_length", 128)), ("wave", 16000)]
        yield from [("wave", 3840), ("mel_first", 100)]


def _oblong(model: nn.Module) -> Iterator[tuple[int, int]]:
    """The sides of the images of a model that takes no squares."""
    for config in configs_of(model):
        size = getattr(config, "image_size", None)
        if isinstance(size, (list, tuple)) and len(size) == 2 and size[0] != size[1]:
            yield size[0], size[1]


def _free_ids(model: nn.Module) -> tuple[int, int]:
    """A range of token numbers that every part's vocabulary has and that no special token bears."""
    known = [number_of(config, "vocab_size") for config in configs_of(model)]
    smallest = min([200, *(size for size in known if size is not None and size > 2)])
    return (10, smallest) if smallest > 20 else (2, smallest)


def _pixels(model: nn.Module, batch: int, size: int, width: int, layout: str) -> Tensor:
    channels = config_number(model, "num_channels", 3)
    if layout == "video":
        return torch.rand(batch, config_number(model, "num_frames", 2), channels, size, size)
    if layout == "patches":
        patch = config_number(model, "patch_size", 16)
        return torch.rand(batch, (size // patch) ** 2, channels * patch * patch)
    return torch.rand(batch, channels, size, width)


def _patches(model: nn.Module, count: int, layout: str) -> Tensor:
    """Patches of all images in one row after the other, each patch flat, as the models with a grid take them."""
    channels = config_number(model, "num_channels", 0) or config_number(model, "in_channels", 3)
    patch = config_number(model, "patch_size", 14)
    if layout == "grid_images":
        return torch.rand(count, channels, patch, patch)
    if layout == "grid_two":
        return torch.rand(count, 2 * channels * patch * patch)
    return torch.rand(count, channels * config_number(model, "temporal_patch_size", 1) * patch * patch)


def _sound(model: nn.Module, batch: int, size: int, layout: str) -> Tensor:
    bins = next((count for name in BINS if (count := config_number(model, name, 0))), 80)
    if layout == "wave":
        return torch.randn(batch, size)
    if layout == "channels":
        return torch.randn(batch, config_number(model, "audio_channels", 1), size)
    return torch.randn(batch, bins, size) if layout == "mel_first" else torch.randn(batch, size, bins)
