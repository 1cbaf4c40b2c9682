"""Whether bound code may run: all that it relies on is as it was found.

What was found comes in; out comes a function that compares it with what there is now. It is asked before each call,
when little of what it looks at is near the processor: so it is written out, without loops, and looks at nothing twice.
Importing this file imports torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.modules import module as hooks_of_all

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
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
    """What bound code relies on; a dict is that of a module, ``vars(module)``."""

    modules: dict[int, torch.nn.Module] = field(default_factory=dict)
    """Modules that must stay of their classes."""
    functions: dict[tuple[Any, str], Any] = field(default_factory=dict)
    """Attributes of classes and of Python modules that must stay what they are."""
    lengths: list[dict[str, Any]] = field(default_factory=list)
    """Dicts that must not become longer or shorter."""
    inner_lengths: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    """The same for a dict in such a dict."""
    called: list[dict[str, Any]] = field(default_factory=list)
    """Dicts of modules whose calls are written otherwise: they must have no hooks, and no ``forward`` of their own;"""
    passing_on: list[dict[str, Any]] = field(default_factory=list)
    """those among them that may give back what they are given."""
    parts: list[tuple[dict[str, Any], str, torch.nn.Module]] = field(default_factory=list)
    """Modules that must stay the parts of others, under these names."""
    own: dict[str, Any] = field(default_factory=dict)
    """A dict in which there must be none of these"""
    not_own: frozenset[str] = frozenset()


_USUAL = """
def ready():
    if compiling() or modes() or dispatching() or tracing() or any(everywhere):
        return None
    if Module.__call__ is not call or Module._call_impl is not call_impl or Module.__getattr__ is not find:
        return None
    try:
        if [*map(type, modules)] != classes or [*map(getattr, owners, names)] != functions:
            return False
"""
_END = """        return not_own.isdisjoint(own_attributes)
    except (KeyError, AttributeError):
        return False
"""


def ready_while(found: Found) -> Callable[[], bool | None]:
    """A function that is true while all is as it was found; None if that is so, but somebody looks at each call."""
    modules, functions = tuple(found.modules.values()), found.functions
    names: dict[str, Any] = {
        "Module": torch.nn.Module, "call": _CALL, "call_impl": _CALL_IMPL, "find": _GETATTR, "everywhere": _everywhere,
        "modules": modules, "classes": [*map(type, modules)], "owners": tuple(owner for owner, _ in functions),
        "names": tuple(name for _, name in functions), "functions": [*functions.values()],
        "own_attributes": found.own, "not_own": found.not_own, "is_grad_enabled": torch.is_grad_enabled, **SURROUNDINGS,
    }  # fmt: skip
    lines = [f"        {line}\n" for line in (*_lines_of_dicts(found, names), *_lines_of_parts(found, names))]
    exec(compile("".join([_USUAL, *lines, _END]), _FILE, "exec", dont_inherit=True), names)
    ready: Callable[[], bool | None] = names["ready"]
    return ready


def _lines_of_dicts(found: Found, names: dict[str, Any]) -> list[str]:
    """The tests of hooks and lengths, by dicts."""
    facts: dict[str, list[str]] = {}
    for one in found.called:
        own = _name(one, names)
        facts[own] = [*(f"own[{kind!r}]" for kind in HOOKS[:2]), '"forward" in own']
    for one in found.passing_on:
        facts[_name(one, names)] += [f"own[{kind!r}]" for kind in HOOKS[2:]]
    for one in found.lengths:
        facts.setdefault(_name(one, names), []).append(f"len(own) != {len(one)}")
    for one, kind in found.inner_lengths:
        facts.setdefault(_name(one, names), []).append(f"len(own[{kind!r}]) != {len(one[kind])}")
    lines = [
        line for own, tests in facts.items() for line in (f"own = {own}", f"if {' or '.join(tests)}: return False")
    ]
    passing_on = {id(one) for one in found.passing_on}
    others = [_name(one, names) for one in found.called if id(one) not in passing_on]
    hooks = [f"{own}[{kind!r}]" for own in others for kind in HOOKS[2:]]
    # without gradients, hooks of the backward pass are put on nothing but what has come in
    return [*lines, f"if is_grad_enabled() and ({' or '.join(hooks)}): return False"] if hooks else lines


def _lines_of_parts(found: Found, names: dict[str, Any]) -> list[str]:
    """The tests of the parts of modules."""
    facts: dict[str, list[str]] = {}
    for place, (one, step, part) in enumerate(found.parts):
        names[f"part{place}"] = part
        facts.setdefault(_name(one, names), []).append(f"parts[{step!r}] is not part{place}")
    tests = {f'parts = {own}["_modules"]': f"if {' or '.join(tests)}: return False" for own, tests in facts.items()}
    return [line for pair in tests.items() for line in pair]


def _name(one: dict[str, Any], names: dict[str, Any]) -> str:
    """What the code calls a dict."""
    name = f"own{id(one)}"
    names[name] = one
    return name
