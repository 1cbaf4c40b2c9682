"""Programs written with libraries that wrap a framework: einops and array-api-compat.

Each is a function of tensors; ``PROGRAMS`` gives it with a maker of arguments for a batch size. Those of keras are in
``keras_programs``, because keras chooses its backend when it is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import array_api_compat
import torch
from einops import einsum, rearrange, reduce, repeat


class Program(NamedTuple):
    """A program, the library that it is written with, and its arguments for a batch size."""

    library: str
    function: Callable[..., Any]
    inputs: Callable[[int], tuple[Any, ...]]


def attention(query: Any, key: Any, value: Any) -> Any:
    """Attention with two heads, in the words of einops."""
    query, key, value = (rearrange(part, "b n (h d) -> b h n d", h=2) for part in (query, key, value))
    scores = einsum(query, key, "b h i d, b h j d -> b h i j") * query.shape[-1] ** -0.5
    mixed = einsum(scores.softmax(-1), value, "b h i j, b h j d -> b h i d")
    return rearrange(mixed, "b h n d -> b n (h d)")


def pooled(image: Any) -> Any:
    """The largest of four pixels, and back to the old width."""
    small = reduce(image, "b c (h 2) (w 2) -> b c h w", "max")
    return repeat(small, "b c h w -> b c h (w two)", two=2)


def patches(image: Any) -> Any:
    """An image as a sequence of patches, each less its mean."""
    parts = rearrange(image, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=2)
    return parts - reduce(parts, "b n d -> b n 1", "mean")


def standardised(x: Any) -> Any:
    """Columns with mean 0 and deviation 1, in the words of the array API."""
    xp = array_api_compat.array_namespace(x)
    shifted = x - xp.mean(x, axis=0, keepdims=True)
    return shifted / (xp.std(x, axis=0, correction=1) + 1.0)


def distances(x: Any, y: Any) -> Any:
    """All distances between rows, and the nearest row for each, in the words of the array API."""
    xp = array_api_compat.array_namespace(x, y)
    squares = xp.sum((xp.expand_dims(x, axis=1) - xp.expand_dims(y, axis=0)) ** 2, axis=-1)
    return xp.sqrt(squares), xp.argmin(squares, axis=1), xp.permute_dims(squares, (1, 0))


def clipped(x: Any) -> Any:
    """Outliers cut off, the rest accumulated, in the words of the array API."""
    xp = array_api_compat.array_namespace(x)
    limited = xp.where(xp.abs(x) > 1.0, xp.zeros_like(x), x)
    return xp.concat([xp.cumulative_sum(limited, axis=1), xp.max(limited, axis=1, keepdims=True)], axis=1)


def _tensors(*shapes: tuple[int, ...]) -> tuple[Any, ...]:
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.rand(shape, generator=generator) for shape in shapes)


PROGRAMS = {
    "attention": Program("einops", attention, lambda n: _tensors((n, 4, 8), (n, 4, 8), (n, 4, 8))),
    "pooled": Program("einops", pooled, lambda n: _tensors((n, 3, 4, 6))),
    "patches": Program("einops", patches, lambda n: _tensors((n, 3, 4, 4))),
    "standardised": Program("array-api-compat", standardised, lambda n: _tensors((n + 2, 3))),
    "distances": Program("array-api-compat", distances, lambda n: _tensors((n + 1, 3), (5, 3))),
    "clipped": Program("array-api-compat", clipped, lambda n: _tensors((n + 1, 4))),
}
