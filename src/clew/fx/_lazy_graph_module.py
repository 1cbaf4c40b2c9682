"""torch.fx._lazy_graph_module: modules whose code is made when it is first needed.

That holds for all graph modules of Clew. ``_LazyGraphModule`` adds torch.fx's words for it: ``recompile`` only notes
that new code is wanted, ``real_recompile`` makes it, and ``_needs_recompile`` tells whether somebody waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

from clew.codegen.python import PythonCode
from clew.fx.torch_source import definitions_beside
from clew.ir.graph import Graph
from clew.runtime.module import GraphModule

_WAITING = "_waiting_for_code"


class _LazyGraphModule(GraphModule):
    """A graph module that tells whether its code is made."""

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__(root, graph, class_name)
        self.recompile()

    @classmethod
    def from_graphmodule(cls, gm: GraphModule) -> GraphModule:
        """The module itself if it is of this class, else one with the same graph."""
        return gm if isinstance(gm, _LazyGraphModule) else _LazyGraphModule(gm, gm.graph)

    @staticmethod
    def force_recompile(gm: GraphModule) -> None:
        """Make the code of a module of this class."""
        if isinstance(gm, _LazyGraphModule):
            gm.real_recompile()

    def recompile(self) -> None:  # type: ignore[override]
        """Note that new code is wanted."""
        self.__dict__[_WAITING] = True

    def real_recompile(self) -> None:
        """Make the code, if somebody waits for it."""
        if self._needs_recompile():
            self._real_recompile()

    def _real_recompile(self) -> PythonCode:
        self.__dict__[_WAITING] = False
        return super().recompile()

    _made_code = _real_recompile

    @property
    def code(self) -> str:
        """The program as Python, for reading."""
        self.real_recompile()
        return super().code

    def _needs_recompile(self) -> bool:
        return bool(self.__dict__.get(_WAITING))


# ---- which class modules are made of ---------------------------------------------------------------------------------

_uses_lazy: ContextVar[bool] = ContextVar("clew_fx_uses_lazy", default=False)
_skips_lazy: ContextVar[bool] = ContextVar("clew_fx_skips_lazy", default=False)


@contextmanager
def _set(flag: ContextVar[bool], value: bool) -> Iterator[None]:
    token = flag.set(value)
    try:
        yield
    finally:
        flag.reset(token)


def _use_lazy_graph_module(should_use: bool) -> AbstractContextManager[None]:
    """Inside, modules are made of ``_LazyGraphModule``, or are not."""
    return _set(_uses_lazy, should_use and not _skips_lazy.get())


def _force_skip_lazy_graph_module() -> AbstractContextManager[None]:
    """Inside, ``_use_lazy_graph_module`` does nothing."""
    return _set(_skips_lazy, True)


def _get_graph_module_cls() -> type[GraphModule]:
    return _LazyGraphModule if _uses_lazy.get() else GraphModule


def in_chosen_class(module: Any) -> Any:
    """A module that was just made, as one of the class that modules are to be made of."""
    kind = _get_graph_module_cls()
    return module if kind is GraphModule else kind(module, module.graph, type(module).__name__)


def _make_graph_module(*args: Any, graph_module_cls: type[GraphModule] | None = None, **kwargs: Any) -> GraphModule:
    return (graph_module_cls or _get_graph_module_cls())(*args, **kwargs)


__getattr__ = definitions_beside(globals())
