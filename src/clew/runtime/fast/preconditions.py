"""What bound code relies on: statements that compare it with what there is now.

``Found`` comes in; out come statements that raise where something has changed, and a function of them. They run before
each call, when little of what they look at is in the processor's cache: so they are written out, without loops, and
what belongs to one module stands together. Importing this file imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.modules import module as hooks_of_all

from clew.runtime.fast.module_fingerprint import HOOKS

_CALL, _CALL_IMPL, _GETATTR = torch.nn.Module.__call__, torch.nn.Module._call_impl, torch.nn.Module.__getattr__
"""What stands between a call of a module and its ``forward``; a tool that traces puts its own there."""
_FILE = f"{__file__} (ready)"  # a file of Clew's: whoever captures a program passes over it
_everywhere = tuple(getattr(hooks_of_all, f"_global{name}") for name in HOOKS)
SURROUNDINGS: dict[str, Callable[[], Any]] = {
    "compiling": torch.compiler.is_dynamo_compiling,
    "modes": torch._C._len_torch_function_stack,
    "dispatching": torch._C._len_torch_dispatch_stack,
    "tracing": torch._C._is_tracing,
}
"""What tells whether somebody looks at each call of torch."""


@dataclass
class Found:
    """What bound code relies on. Modules have names: the one of a dict, ``vars(module)``, is its module's too."""

    modules: dict[str, torch.nn.Module] = field(default_factory=dict)
    """Modules that must stay of their classes."""
    functions: dict[tuple[Any, str], Any] = field(default_factory=dict)
    """Attributes of classes and of Python modules that must stay what they are."""
    lengths: dict[str, int] = field(default_factory=dict)
    """Dicts that must not become longer or shorter."""
    inner_lengths: dict[str, dict[str, int]] = field(default_factory=dict)
    """The same for dicts in such a dict."""
    called: dict[str, bool] = field(default_factory=dict)
    """Dicts of modules whose calls are written otherwise: they must have no hooks, and no ``forward`` of their own.
    True for those that never give back what they are given."""
    parts: dict[str, dict[str, str]] = field(default_factory=dict)
    """Which modules must stay the parts of a module, by their names there."""
    own: dict[str, Any] = field(default_factory=dict)
    """A dict in which there must be none of these"""
    not_own: frozenset[str] = frozenset()


PREFIX = "_ready_"
"""What names of this file begin with in the globals of generated code."""
OWN = f"{PREFIX}own"
"""The local that is the dict of the module which the statements are about."""
FAILED = (KeyError, AttributeError)
"""What is raised where something is not as it was found."""
_RAISE = f"raise {PREFIX}KeyError"
UNUSUAL = " or ".join(f"{PREFIX}{name}()" for name in SURROUNDINGS)
"""True while somebody looks at each call of torch: then the plain code runs."""
LOOKED_AT = " or ".join(f"{PREFIX}{name}()" for name in ("compiling", "modes"))
"""True while somebody looks at the code itself, in order to capture it."""
ELSEWHERE = (
    f"{UNUSUAL} or {PREFIX}any({PREFIX}everywhere) or {PREFIX}Module.__call__ is not {PREFIX}call "
    f"or {PREFIX}Module._call_impl is not {PREFIX}call_impl or {PREFIX}Module.__getattr__ is not {PREFIX}find"
)
"""True while a call of a module is something else than its ``forward``, for all modules."""


def surroundings() -> dict[str, Any]:
    """The globals of the expressions of this file."""
    usual = {"Module": torch.nn.Module, "call": _CALL, "call_impl": _CALL_IMPL, "find": _GETATTR}
    plain = {one.__name__: one for one in (any, getattr, len, map, type, KeyError)}  # the program may have such names
    found = {"everywhere": _everywhere, **plain, **usual, **SURROUNDINGS}
    return {f"{PREFIX}{name}": value for name, value in found.items()}


def ready_while(found: Found, names: dict[str, Any]) -> Callable[[], bool | None]:
    """A function that is true while all is as it was found; None if that is so, but somebody looks at each call."""
    lines = "".join(f"        {line}\n" for line in statements(found, names, {}))
    text = f"def ready():\n    if {ELSEWHERE}: return None\n    try:\n{lines}    except {PREFIX}failed: return False\n"
    made = {**names, f"{PREFIX}failed": FAILED}
    exec(compile(f"{text}    return True\n", _FILE, "exec", dont_inherit=True), made)
    ready: Callable[[], bool | None] = made["ready"]
    return ready


def statements(found: Found, names: dict[str, Any], reads: Mapping[str, Sequence[str]]) -> list[str]:
    """Statements that raise one of ``FAILED`` where something has changed; their names are put among ``names``.

    ``reads`` are statements to do with a dict, by its name; they call it ``OWN``.
    """
    names.update(surroundings())
    lines = []
    for own in dict.fromkeys([*found.called, *found.modules, *found.parts, *reads]):
        tests = _tests_of(own, found, names)
        lines += [f"{OWN} = {own}", *([f"if {' or '.join(tests)}: {_RAISE}"] if tests else ()), *reads.get(own, ())]
    hooks = " or ".join(f"{own}[{kind!r}]" for own, is_new in found.called.items() if is_new for kind in HOOKS[2:])
    if hooks:  # without gradients, hooks of the backward pass are put on nothing but what has come in
        names[f"{PREFIX}is_grad_enabled"] = torch.is_grad_enabled
        lines.append(f"if {PREFIX}is_grad_enabled() and ({hooks}): {_RAISE}")
    return lines + _tests_of_functions(found, names)


def _tests_of(own: str, found: Found, names: dict[str, Any]) -> list[str]:
    """What must not be true of a module and its dict."""
    tests = []
    if own in found.modules:
        names[f"{own}_class"] = type(found.modules[own])
        tests.append(f"{PREFIX}type({own}_module) is not {own}_class")
    if own in found.called:
        kinds = HOOKS[:2] if found.called[own] else HOOKS
        tests += [*(f"{OWN}[{kind!r}]" for kind in kinds), f'"forward" in {OWN}']
    if own in found.lengths:
        tests.append(f"{PREFIX}len({OWN}) != {found.lengths[own]}")
    sizes = found.inner_lengths.get(own, {})
    tests += [f"{PREFIX}len({OWN}[{kind!r}]) != {size}" for kind, size in sizes.items()]
    parts = [f"[{step!r}] is not {part}_module" for step, part in found.parts.get(own, {}).items()]
    if parts:
        tests.append(f'({PREFIX}parts := {OWN}["_modules"]){parts[0]}')
        tests += [f"{PREFIX}parts{one}" for one in parts[1:]]
    return tests


def _tests_of_functions(found: Found, names: dict[str, Any]) -> list[str]:
    """The statements about what stands in classes and Python modules, and about attributes that go before others."""
    tests = []
    if found.functions:
        owners, attributes = zip(*found.functions, strict=True)
        names |= {f"{PREFIX}owners": owners, f"{PREFIX}attributes": attributes}
        names[f"{PREFIX}functions"] = [*found.functions.values()]
        tests.append(f"[*{PREFIX}map({PREFIX}getattr, {PREFIX}owners, {PREFIX}attributes)] != {PREFIX}functions")
    if found.not_own:
        names |= {f"{PREFIX}own_attributes": found.own, f"{PREFIX}not_own": found.not_own}
        tests.append(f"not {PREFIX}not_own.isdisjoint({PREFIX}own_attributes)")
    return [f"if {' or '.join(tests)}: {_RAISE}"] if tests else []
