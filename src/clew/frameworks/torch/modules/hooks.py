"""The hooks of modules: functions that run around a call, and what a model sets up at its first call.

A program consists of its hooks too, so they are read like its own functions. Hooks that appear during a call are
noticed; those that the first call puts on for good are followed by a second run.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import partial
from typing import Any

import torch
from torch.nn.modules import module as torch_module
from torch.utils.hooks import RemovableHandle

from clew.capture.guards.notes import Variable
from clew.capture.state.reachable import behind, check_slots, signature_of
from clew.capture.state.slots import Slot
from clew.capture.state.surroundings import functions_of
from clew.errors import CaptureError
from clew.ir.arguments import map_aggregate
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.source import is_installed

__all__ = [
    "HooksOfAll",
    "behind",
    "check_slots",
    "count_of_global_hooks",
    "functions_behind",
    "has_own_hooks",
    "hook_tables",
    "hooks",
    "hooks_made",
    "shared_hooks",
    "signature_of",
]


def functions_behind(programs: Iterable[Any]) -> list[Any]:
    """The Python functions of all parts of a program, each once; modules of one class have the same."""
    kinds: set[type] = set()
    found: dict[Any, None] = {}
    for part in programs:
        kind = type(part)
        if isinstance(part, torch.nn.Module) and _OWN_FUNCTIONS.isdisjoint(vars(part)):
            if kind in kinds:
                continue
            kinds.add(kind)
        found.update(dict.fromkeys(functions_of(part)))
    return list(found)


_OWN_FUNCTIONS = frozenset({"__func__", "__wrapped__", "__code__"})
"""Attributes by which a single object can be something else than its class says."""


def hooks(parts: Iterable[torch.nn.Module]) -> list[Any]:
    """The functions hooked to some modules."""
    holders = [hooks for part in parts for hooks in (part._forward_hooks, part._forward_pre_hooks)]
    return [hook for hooks in holders for hook in hooks.values()]


def shared_hooks() -> list[dict[int, Any]]:
    """The tables of functions that run with every module."""
    tables = (torch_module._global_forward_pre_hooks, torch_module._global_forward_hooks)
    return [*tables, torch_module._global_backward_pre_hooks, torch_module._global_backward_hooks]


class HooksOfAll:
    """The hooks of users' that run with every module, as they were; those of packages look on."""

    def __init__(self) -> None:
        self.tables = shared_hooks()
        self.before = self._now()

    def _now(self) -> list[Any]:
        held = [hook for table in self.tables for hook in table.values()]
        codes = [getattr(hook, "__code__", None) for hook in held]
        return [hook for hook, code in zip(held, codes, strict=True) if code is None or not is_installed(code)]

    def has_changed(self) -> bool:
        """Whether there are others now."""
        return self._now() != self.before

    @staticmethod
    def quick_tests(hooks: HooksOfAll, bind: Callable[[Any], str]) -> list[str]:
        """The expressions that are true where there may be others (``runtime/fast/direct.py``)."""
        return ["True"] if hooks.before else [bind(table) for table in hooks.tables]

    def __deepcopy__(self, memo: dict[int, Any]) -> HooksOfAll:
        return self


hooks_made: Callable[[], int] = partial(getattr, RemovableHandle, "next_id")
"""The number that the next hook will get, on whatever module or tensor."""


def hook_tables(part: torch.nn.Module) -> list[dict[int, Any]]:
    """The tables of functions that run with a module, and with its gradients."""
    return [part._forward_pre_hooks, part._forward_hooks, part._backward_pre_hooks, part._backward_hooks]


def count_of_global_hooks() -> int:
    """How many hooks run with every module."""
    return len(torch_module._global_forward_hooks) + len(torch_module._global_forward_pre_hooks)


def has_own_hooks(module: torch.nn.Module) -> bool:
    """Whether functions of the user's run before or after a module."""
    if not module._forward_hooks and not module._forward_pre_hooks:
        return False
    held = (*module._forward_hooks.values(), *module._forward_pre_hooks.values())
    return any(not str(getattr(hook, "__module__", type(hook).__module__)).startswith("torch.") for hook in held)


_Table = dict[int, Any]
_TABLES = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks_with_kwargs",
)


class HookTables:
    """The tables of hooks of all modules that a program reaches, as they were before a run."""

    def __init__(self, parts: Iterable[torch.nn.Module] = ()) -> None:
        self._kept: list[tuple[_Table, _Table]] = []
        self.watch(parts)

    def watch(self, parts: Iterable[torch.nn.Module]) -> None:
        """Remember the hooks of more modules."""
        tables = (held[name] for held in map(vars, parts) for name in _TABLES if name in held)
        self._kept += [(table, table.copy()) for table in tables]

    def have_changed(self) -> bool:
        """Whether a module has other hooks than before."""
        return any(table != before for table, before in self._kept)

    def check(
        self, known: SetUp | None, nodes: Iterable[Node], changed_state: Container[Any], can_be: bool
    ) -> list[tuple[_Table, _Table]]:
        """The hooks that a first run has put into each table; a run with everything set up must record the same.

        Raises where a run changes hooks in any other way, and where there ``can_be`` no such thing.
        """
        changed = [(table, before) for table, before in self._kept if table != before]
        was_taken = any(table.get(key) is not hook for table, before in changed for key, hook in before.items())
        if not can_be or was_taken or (changed and known is not None):
            raise _refusal()
        if known is not None:
            known.check(nodes, changed_state)
        return [(table, {key: table[key] for key in table if key not in before}) for table, before in changed]

    def put_back(self) -> None:
        """Let all tables be as they were."""
        for table, before in self._kept:
            if table != before:
                table.clear()
                table.update(before)


class SetUp:
    """What a program does to its modules at its first call, and what that call recorded."""

    def __init__(
        self, added: list[tuple[_Table, _Table]], changed: Iterable[Slot], nodes: Iterable[Node], needs_flags: bool
    ) -> None:
        self._added = added
        changed = list(changed)
        self._flags = [(slot.variable, slot.variable.get()) for slot in changed if _is_flag(slot)]
        self._rest = {slot.key for slot in changed if not _is_flag(slot)}
        if needs_flags and not self._flags:
            raise _refusal()
        self._before: list[tuple[Variable, Any]] = []
        self._recorded = _recorded(nodes)
        self._is_known = False

    def do(self) -> None:
        """Set the modules up, unless they are."""
        if all(variable.get() is value for variable, value in self._flags) and self._is_known:
            return
        self._before = [(variable, variable.get()) for variable, _ in self._flags]
        for variable, value in self._flags:
            variable.put(value)
        for table, hooks in self._added:
            table.update(hooks)

    def undo(self) -> None:
        """Let the modules be as they were before."""
        for variable, before in self._before:
            variable.put(before)
        for table, hooks in self._added:
            for key in hooks:
                table.pop(key, None)

    def check(self, nodes: Iterable[Node], changed: Container[Any]) -> None:
        """Raise unless the first run with everything set up has recorded what the run before it did, and ``changed``,
        or will change, the same state."""
        if not self._is_known and (self._recorded != _recorded(nodes) or any(key not in changed for key in self._rest)):
            raise _refusal()
        self._is_known = True

    def __repr__(self) -> str:
        return f"{sum(len(hooks) for _, hooks in self._added)} hooks"


def set_up(first_call: SetUp) -> None:
    """Do to modules around a program what it does to them when it is called first."""
    first_call.do()


def _refusal() -> CaptureError:
    """The error for a program whose next call would be another one."""
    return CaptureError(
        "the program adds hooks to a module, or takes some away, for its next call",
        why="the graph was captured with the hooks that there were",
        fixes=("do it before the capture",),
    )


def _is_flag(slot: Slot) -> bool:
    return isinstance(slot.owner, torch.nn.Module) and type(slot.variable.get()) is bool


def _recorded(nodes: Iterable[Node]) -> list[tuple[Any, ...]]:
    """The nodes of a run, to be compared with those of another run of the same program."""
    return [(node.op, node.name, node.target, _shown(node.args), _shown(node.kwargs)) for node in nodes]


def _shown(arguments: Any) -> str:
    return repr(map_aggregate(arguments, lambda leaf: str(leaf) if isinstance(leaf, Graph) else leaf))
