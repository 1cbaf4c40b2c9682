"""Calls of modules in a torch program: a leaf is one node of the graph, any other module is entered.

A call comes in; its result goes out, recorded. A leaf is entered all the same where its inside matters: hooks of the
user's run in it, the program changes what it holds, or it works on other tensors than its own for a while.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import torch

from clew.capture.example.state import State
from clew.frameworks.torch import usual
from clew.frameworks.torch.entry_guards import is_plain_tensor
from clew.frameworks.torch.leaves import Leaves
from clew.frameworks.torch.modules import module_effect, writes_only_itself, written_by
from clew.frameworks.torch.places import Modules, check_hooks, tensors_held, tensors_in
from clew.frameworks.torch.programs import count_of_global_hooks, has_own_hooks
from clew.frameworks.torch.recording import TorchRecorder
from clew.ir.arguments import leaves
from clew.ir.guests import Effect


class ModuleCalls:
    """The calls of modules in one run; ``paths`` has the parts of the captured module, which itself has none, and
    ``islands`` what the capture cannot follow."""

    def __init__(
        self,
        recorder: TorchRecorder,
        state: State,
        modules: Modules | None,
        paths: dict[Any, str],
        is_leaf: Leaves,
        islands: list[Any],
    ) -> None:
        self.recorder = recorder
        self.state = state
        self.modules = modules
        self.paths = paths
        self.islands = islands
        self.entered: dict[str, torch.nn.Module] = {}
        """Leaves that were entered all the same, by their paths."""
        self._is_leaf = is_leaf
        self._leaves: dict[torch.nn.Module, bool] = {}
        self._plain: set[torch.nn.Module] = set()  # leaves that hold no tensors of classes of their own
        self._held = {part: tensors_held(part) for part in self.paths}
        self._global_hooks = count_of_global_hooks()

    def call(self, original: Any, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a module: one node for a leaf, its inside for any other."""
        path = self.paths.get(module)
        if path is None or not self._is_one_node(module, path):
            return self._enter_module(original, module, path, args, kwargs)
        if self._must_enter(module):
            self.entered[path] = module
            return self._enter_module(original, module, path, args, kwargs)
        effect, call = module_effect(module), partial(original, module)
        writes = effect not in (Effect.NONE, Effect.RANDOM)
        if not writes and not kwargs and not self.islands:
            value = usual.call_layer(self.recorder, path, call, args, sys._getframe(1), module in self._plain)
            if value is not usual.UNUSUAL:
                return value
        written: list[Any] = [*written_by(module)] if writes else []
        if writes and not writes_only_itself(module):
            written += leaves((args, kwargs))
        why = "it is compiled by torch.jit" if isinstance(module, torch.jit.ScriptModule) else ""
        if module in self.islands:
            why = "the capture cannot follow it"
        if type(module).__module__.startswith("torch."):
            return self.recorder.whole("call_module", path, call, args, kwargs, written, why)
        with self.recorder.streams.followed():
            return self.recorder.whole("call_module", path, call, args, kwargs, written, why, module)

    def _is_one_node(self, module: torch.nn.Module, path: str) -> bool:
        """Whether a part of the captured module is a leaf."""
        known = self._leaves.get(module)
        if known is None:
            known = self._leaves[module] = bool(path) and self._is_leaf(module, path)
            if known and not module._modules and all(is_plain_tensor(one) for _, one in tensors_in(module)):
                self._plain.add(module)
        return known

    def _must_enter(self, module: torch.nn.Module) -> bool:
        """Whether the inside of a leaf matters: the user's hooks run in it, or the program changes what it holds."""
        if count_of_global_hooks() != self._global_hooks or self._is_lent(module):
            return True
        parts = list(module.modules()) if module._modules else [module]
        if self.recorder.touched and self.modules is not None and self.modules.must_enter(parts, self.recorder.touched):
            return True
        return any(map(has_own_hooks, parts)) or self.state.changes(parts)

    def _is_lent(self, module: torch.nn.Module) -> bool:
        """Whether a module has other tensors than its own right now, as inside ``torch.func.functional_call``."""
        if not module._modules:
            return tensors_held(module) != self._held.get(module)
        return any(tensors_held(part) != self._held.get(part) for part in module.modules())

    def _enter_module(self, original: Any, module: Any, path: str | None, args: Any, kwargs: Any) -> Any:
        check_hooks(module)
        name = path if path is not None else f"<{type(module).__name__}>"
        key = self.recorder.enter_module(name, path or "", type(module), sys._getframe())
        try:
            return original(module, *args, **kwargs)
        finally:
            self.recorder.leave_module(key)
