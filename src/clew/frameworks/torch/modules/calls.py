"""Which modules stay one call in a graph: torch's own layers, unless the user says otherwise."""

from __future__ import annotations

import fnmatch
import functools
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import torch

from clew.capture.bytecode.try_blocks import FRAMEWORK, is_tried
from clew.capture.recording.recorder import past_forwarding
from clew.capture.state.state import State
from clew.errors import CaptureError
from clew.frameworks.torch.calls import fast_path
from clew.frameworks.torch.effects import module_effect, writes_only_itself, written_by
from clew.frameworks.torch.entry_guards import is_plain_tensor
from clew.frameworks.torch.modules.hooks import count_of_global_hooks, has_own_hooks
from clew.frameworks.torch.modules.state import Modules, check_entered, tensors_held, tensors_in
from clew.frameworks.torch.recorder import TorchRecorder
from clew.frameworks.torch.refusals import refusal
from clew.ir.arguments import leaves
from clew.ir.guests import Effect
from clew.ir.module_calls import note_call

Leaves = Callable[[Any, str], bool]


def default_leaves(module: Any, path: str) -> bool:
    """torch's own layers, and compiled modules, stay calls; containers are entered."""
    kind: Any = type(module)
    return _is_leaf_class(kind)


@functools.lru_cache(maxsize=4096)
def _is_leaf_class(kind: Any) -> bool:
    containers = (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)
    if issubclass(kind, torch.jit.ScriptModule):
        return True
    return bool(kind.__module__.startswith("torch.nn.modules")) and not issubclass(kind, containers)


def leaf_policy(leaves: Any) -> Leaves:
    """The predicate for what a user may give: None, "none", a class, a path pattern, a predicate, or a list of them."""
    if leaves is None:
        return default_leaves
    if leaves == "none":
        return lambda module, path: False
    if isinstance(leaves, str):
        return lambda module, path: fnmatch.fnmatchcase(path, leaves)
    if isinstance(leaves, type):
        return lambda module, path: isinstance(module, leaves)
    if isinstance(leaves, (tuple, list, set, frozenset)):
        policies = [leaf_policy(one) for one in leaves]
        return lambda module, path: any(policy(module, path) for policy in policies)
    if callable(leaves):
        return leaves  # type: ignore[no-any-return]
    raise CaptureError(
        f"leaves={leaves!r} names no modules",
        fixes=('give "none", a class, a path pattern such as "encoder.*", a predicate, or a list of these',),
    )


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
        if path is None and isinstance(module, torch.jit.ScriptModule):
            raise refusal(
                "a module that torch.jit has compiled, and that is no part of the program's own module,",
                "what it computes and changes is not seen",
            )
        if path is None or not self._is_one_node(module, path):
            return self._enter_module(original, module, path, args, kwargs)
        if self._must_enter(module) or (self._can_enter(module) and self._matters_inside(module, sys._getframe(1))):
            self.entered[path] = module
            return self._enter_module(original, module, path, args, kwargs)
        self.recorder.module_stack.leaf = type(module)
        effect, call = module_effect(module), partial(original, module)
        writes = effect not in (Effect.NONE, Effect.RANDOM)
        if not writes and not kwargs and not self.islands:
            value = fast_path.call_layer(self.recorder, path, call, args, sys._getframe(1), module in self._plain)
            if value is not fast_path.UNUSUAL:
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

    def _can_enter(self, module: torch.nn.Module) -> bool:
        """Whether a leaf is one because it is torch's own, and nobody has asked for that."""
        is_own = type(module).__module__.startswith("torch.nn.modules")
        return is_own and module not in self.islands and not isinstance(module, torch.jit.ScriptModule)

    def _matters_inside(self, module: torch.nn.Module, frame: FrameType | None) -> bool:
        """Whether the program would catch an error of this call, so that the calls inside must not fail, or asks which
        tensors are one, and the module gives back what it got in another mode: that is guarded inside."""
        if self.recorder.identity.is_asked and module_effect(module) is Effect.RANDOM:
            return True
        code, gate = self.recorder.code, self.recorder.module_stack.gate
        return is_tried(past_forwarding(frame), code.executed, FRAMEWORK, gate)

    def _is_lent(self, module: torch.nn.Module) -> bool:
        """Whether a module has other tensors than its own right now, as inside ``torch.func.functional_call``."""
        if not module._modules:
            return tensors_held(module) != self._held.get(module)
        return any(tensors_held(part) != self._held.get(part) for part in module.modules())

    def _enter_module(self, original: Any, module: Any, path: str | None, args: Any, kwargs: Any) -> Any:
        check_entered(module)
        name = path if path is not None else f"<{type(module).__name__}>"
        key = self.recorder.module_stack.enter(name, path or "", type(module), sys._getframe())
        try:
            result = original(module, *args, **kwargs)
        finally:
            self.recorder.module_stack.leave(key)
        if path and self.recorder.open:
            note_call(key, path, args, kwargs, result, self.recorder.held)
        return result
