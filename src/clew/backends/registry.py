"""The back ends by name: those of Clew, one file each, and those that other packages announce.

A package announces one as an entry point of the group ``clew.backends``: the object is a class derived from
``Backend``, or an instance of one. It is imported when its name is first asked for.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from clew.errors import BackendError, MissingFramework, a_or_an
from clew.ir.graph import Graph
from clew.ir.node import Node

GROUP = "clew.backends"
_OWN = {
    "python": "clew.backends.registry.Python",
    "inductor": "clew.backends.inductor.Inductor",
    "cudagraphs": "clew.backends.cuda_graphs.CudaGraphs",
    "inductor-cudagraphs": "clew.backends.inductor.RecordedInductor",
    "xla": "clew.backends.xla.Xla",
    "onnxruntime": "clew.backends.onnx_runtime.OnnxRuntime",
}
_NEEDS = {
    "inductor": ("torch",),
    "cudagraphs": ("torch",),
    "inductor-cudagraphs": ("torch",),
    "xla": ("jax",),
    "onnxruntime": ("torch", "onnx", "onnx_ir", "onnxscript", "onnxruntime"),
}
"""What must be installed for them."""


class Backend:
    """What a back end tells of itself. ``segment`` is all that one of another package must define."""

    name = ""
    takes_attempts = False
    """Whether segments may have calls whose errors the program catches."""
    keeps_all = False
    """Whether the program stays as it is: there is nothing to compile."""

    def prepare(self, captured: Any) -> Any:
        """The program that is to be compiled, another one perhaps; an error if it is none for this back end."""
        return captured

    def arrange(self, graph: Graph, root: Any) -> None:
        """Change a graph of the program, a copy that is this back end's own, before segments are looked for."""

    def finish(self, captured: Any, prepared: Any) -> Any:
        """What is called like ``captured`` and runs ``prepared``, in whose graph the segments stand now."""
        return prepared

    def reason_against(self, node: Node) -> str:
        """Why a node stays in Python; empty if a segment may have it."""
        return ""

    def takes_block(self, manager: Node) -> bool:
        """Whether a segment may have a whole ``with`` block of this context manager."""
        return False

    def reads_attributes(self, root: Any, path: str) -> bool:
        """Whether segments read this attribute of the program themselves, instead of being given its value."""
        return False

    def segment(self, graph: Graph, name: str, fallback: bool) -> Callable[..., Any]:
        """What runs a run of nodes: called with the root of the program, unless its ``takes_root`` is false, and the
        values of the graph's inputs."""
        raise NotImplementedError


class Python(Backend):
    """The generated code, as it is."""

    name = "python"
    keeps_all = True


def backend_named(wanted: Any) -> Backend:
    """The back end of a name; one that is given is taken as it is."""
    if isinstance(wanted, Backend):
        return wanted
    found = _loaded(wanted)
    made = found() if isinstance(found, type) else found
    if not isinstance(made, Backend):
        raise BackendError(f"the back end {wanted!r} is {a_or_an(made)}", fixes=("derive it from clew.Backend",))
    return made


def _check_installed(wanted: str, package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise MissingFramework(
            f"backend={wanted!r} needs {package}, which is not installed", fixes=(f"pip install {package}",)
        )


def _loaded(wanted: Any) -> Any:
    if wanted in _OWN:
        module, _, name = _OWN[wanted].rpartition(".")
        for package in _NEEDS.get(wanted, ()):
            _check_installed(wanted, package)
        return getattr(importlib.import_module(module), name)
    for one in entry_points(group=GROUP):
        if one.name == wanted:
            return one.load()
    raise BackendError(
        f"there is no back end {wanted!r}",
        fixes=(f"one of {', '.join(backends())}", f"install a package that announces it in the group {GROUP!r}"),
    )


def backends() -> list[str]:
    """The names of all back ends, those of other packages last."""
    return list(dict.fromkeys([*_OWN, *(one.name for one in entry_points(group=GROUP))]))
