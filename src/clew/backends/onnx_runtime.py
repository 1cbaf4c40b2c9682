"""onnxruntime: segments of torch programs as ONNX, which torch's exporter writes and onnxruntime runs.

Weights are inputs of a segment and are read at each call; sizes are fixed, so that each combination of sizes is a file
of its own, in memory. Always holds: what onnxruntime gives for the example was compared with what torch gives; results
have the strides that torch's have, and those that are views of what was given are views again. Importing this file
imports torch and onnxruntime.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import onnxruntime
import torch

from clew.backends.result_views import ResultViews
from clew.backends.torch_backend import TorchBackend
from clew.backends.torch_segment import Flat
from clew.errors import BackendError
from clew.ir.effects import effect_of
from clew.ir.guests import Effect
from clew.ir.node import Node


class OnnxRuntime(TorchBackend):
    """Graphs of ONNX, run by onnxruntime."""

    name = "onnxruntime"
    takes_symbols = False

    def reason_against(self, node: Node) -> str:
        found = super().reason_against(node)
        effect = effect_of(node, getattr(node.graph.owning_module, "_self", None))
        if found or effect is Effect.NONE:
            return found
        return "it draws random numbers" if effect is Effect.RANDOM else "it writes into memory"

    def compiled(self, flat: Flat, fakes: list[Any], mode: Any, example: list[Any]) -> Callable[..., Any]:
        if torch.is_grad_enabled() and any(one.requires_grad for one in example):
            raise BackendError(
                "onnxruntime has no backward pass, and something here requires gradients",
                fixes=("call it under torch.no_grad()", 'backend="inductor" compiles the backward pass too'),
            )
        plain = [one.detach() for one in example]
        with torch.no_grad():
            wanted = flat.run(*plain)
            session = _session(flat, plain)
        made = _Run(session, plain, wanted)
        _compare(made(*plain), wanted)
        return made


class _Module(torch.nn.Module):
    """A function of tensors, as torch's exporter wants it."""

    def __init__(self, flat: Flat) -> None:
        super().__init__()
        self.run = flat.run

    def forward(self, *given: Any) -> Any:
        return self.run(*given)


def _session(flat: Flat, example: list[torch.Tensor]) -> onnxruntime.InferenceSession:
    program = torch.export.export(_Module(flat), tuple(example), strict=False)
    names = [_name(place) for place in range(len(example))]
    with contextlib.redirect_stdout(None):
        made = torch.onnx.export(program, dynamo=True, verbose=False, input_names=names)
    assert made is not None, "it was not asked to write a file"
    is_on_gpu = any(one.is_cuda for one in example)
    providers = ["CUDAExecutionProvider"] if is_on_gpu else ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(made.model_proto.SerializeToString(), providers=providers)


def _name(place: int) -> str:
    return f"input_{place}"


class _Run:
    """Calls a session like the function that it was made of."""

    def __init__(self, session: onnxruntime.InferenceSession, example: list[torch.Tensor], wanted: Any) -> None:
        self.session = session
        known = {one.name for one in session.get_inputs()}
        self.inputs = [(place, _name(place)) for place in range(len(example)) if _name(place) in known]
        self.views = ResultViews(example, wanted)
        self.kinds = [(one.shape, one.stride(), one.device, one.is_contiguous()) for one in wanted]

    def __call__(self, *given: torch.Tensor) -> list[torch.Tensor]:
        feeds = {name: given[place].detach().contiguous().cpu().numpy() for place, name in self.inputs}
        found = self.session.run(None, feeds)
        return self.views.made(given, lambda place: self._copied(place, found[place]))

    def _copied(self, place: int, array: Any) -> torch.Tensor:
        """An array as a tensor with the strides of torch's."""
        size, stride, device, is_contiguous = self.kinds[place]
        found = torch.from_numpy(array).to(device)
        return found if is_contiguous else found.new_empty_strided(size, stride).copy_(found)


def _compare(found: list[torch.Tensor], wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        try:
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3, equal_nan=True)
        except AssertionError as error:
            text = str(error).replace("\n", " ").strip()
            raise BackendError("onnxruntime gives another result than torch", why=text) from error
