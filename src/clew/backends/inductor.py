"""Inductor: segments of torch programs compiled by torch's own compiler, without the part that reads Python.

Clew's graph of a segment is handed to ``torch._inductor.compile_fx``, which makes its backward pass as well, where
gradients are wanted. Random numbers are those of plain torch: Inductor is told to draw them as that does.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch._guards import TracingContext, tracing
from torch._inductor.compile_fx import compile_fx

from clew.backends.cuda_graphs import CudaGraphs
from clew.backends.torch_backend import TorchBackend
from clew.backends.torch_segment import Flat


class Inductor(TorchBackend):
    """Kernels in C++ or Triton, made by torch's compiler."""

    name = "inductor"

    def compiled(self, flat: Flat, fakes: list[Any], mode: Any, example: list[Any]) -> Callable[..., Any]:
        with tracing(TracingContext(mode)):
            found: Any = compile_fx(fx_module(flat, len(fakes)), fakes, config_patches=_OPTIONS)
        return found  # type: ignore[no-any-return]


class RecordedInductor(CudaGraphs):
    """Kernels of Inductor, recorded once and launched as a whole."""

    name = "inductor-cudagraphs"
    needs_fakes = True

    def compiled(self, flat: Flat, fakes: list[Any], mode: Any, example: list[Any]) -> Callable[..., Any]:
        self.check(flat, example)
        with torch.no_grad():
            made = Inductor().compiled(flat, fakes, mode, example)
        return super().compiled(flat._replace(run=lambda *given: tuple(made(*given))), fakes, mode, example)


_OPTIONS = {"fallback_random": True}


def fx_module(flat: Flat, inputs: int) -> torch.fx.GraphModule:
    """A module of torch.fx that is one call of the function, in the form in which the compiler wants programs."""

    @functools.wraps(flat.run)
    def segment(*given: Any) -> Any:
        return flat.run(*given)

    segment.__module__, segment.__qualname__ = __name__, segment.__name__
    graph = torch.fx.Graph()
    given = [graph.placeholder(f"input_{place}") for place in range(inputs)]
    called = graph.call_function(segment, tuple(given))
    graph.output(tuple(graph.call_function(operator.getitem, (called, place)) for place in range(flat.results)))
    return torch.fx.GraphModule(torch.nn.Module(), graph)
