"""A function with a backward pass of its own, whose two passes are captured programs.

What the forward pass remembers for the backward pass is a result of its graph. Importing this file imports torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from clew import tree


class CustomGradient:
    """Two captured programs as one function that autograd can go through.

    ``forward`` gives the result, the tensors to save and what else the context remembers; ``backward`` takes these two,
    which of the arguments need gradients, and the gradients of the results.
    """

    def __init__(self, name: str, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        self.__name__, self.forward, self.backward = name, forward, backward

    def __call__(self, *args: Any) -> Any:
        return _Function.apply(self, *args)

    def __repr__(self) -> str:
        return f"{self.__name__} with its backward pass"


class _Function(torch.autograd.Function):
    """Calls the graphs, which were captured for plain tensors: a parameter goes in as one, and comes out as itself."""

    @staticmethod
    def forward(ctx: Any, passes: CustomGradient, *args: Any) -> Any:
        given = tuple(map(_without_class, args))
        own = {id(new): one for new, one in zip(given, args, strict=True)}
        result, saved, rest = passes.forward(*given)
        ctx.save_for_backward(*(own.get(id(one), one) for one in saved))
        ctx.passes, ctx.rest = passes, rest
        return tree.tree_map(lambda one: own.get(id(one), one), result)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        saved = tuple(map(_without_class, ctx.saved_tensors))
        found = ctx.passes.backward(saved, ctx.rest, tuple(ctx.needs_input_grad[1:]), *gradients)
        return None, *(found if isinstance(found, tuple) else (found,))


def _without_class(value: Any) -> Any:
    return value.view_as(value) if type(value) is torch.nn.Parameter else value
