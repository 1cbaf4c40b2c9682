"""Objects by the dotted names that text gives them, and the names of objects.

A name is looked up in modules that are loaded already; only packages that are known to be harmless to import, or that
the caller vouches for, are loaded for it. Looking up calls nothing: it goes from modules to classes to their members.
``name_for`` gives a name only if looking it up gives back the very same object.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Collection
from types import BuiltinMethodType, MethodType, ModuleType
from typing import Any

from clew.ir.format import qualified_name

OPEN_PACKAGES = frozenset("builtins operator math typing collections torch numpy jax tensorflow clew".split())
"""Packages that may be imported, submodules included, when a text names something in them."""

MOVED = {
    "clew.capture.python.draws": "clew.capture.python.random_numbers",
    "clew.capture.python.environment": "clew.capture.python.system",
    "clew.capture.python.processes": "clew.capture.python.system",
    "clew.capture.state.stateful_arguments": "clew.capture.state.writes",
    "clew.frameworks.jax.kinds": "clew.frameworks.jax.types",
    "clew.frameworks.numpy.ranks_and_dtypes": "clew.frameworks.numpy.facts",
    "clew.frameworks.torch.calls.handlers": "clew.frameworks.torch.calls.dispatch",
    "clew.frameworks.torch.transforms.control_flow": "clew.frameworks.torch.transforms.interception",
}
"""Modules of Clew whose functions older texts and bundles name, and where these functions are now."""

DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)


class NotFound(LookupError):
    """No object has this name; the message says at which part the search ended."""


def find(name: str, modules: Collection[str] = ()) -> Any:
    """The object with the dotted name; ``modules`` are packages that may be imported besides the open ones."""
    module, _, last = name.rpartition(".")
    package, *atoms = (f"{MOVED[module]}.{last}" if module in MOVED else name).split(".")
    is_open = package in OPEN_PACKAGES or package in modules
    found = sys.modules.get(package)
    if found is None:
        if not is_open:
            raise NotFound(f"the package {package!r} is not imported")
        found = _imported(package)
    path = package
    for atom in atoms:
        found = _member(found, path, atom, is_open)
        path = f"{path}.{atom}"
    return found


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise NotFound(f"{name} cannot be imported: {error}") from error


def _member(owner: Any, path: str, atom: str, is_open: bool) -> Any:
    if isinstance(owner, ModuleType) and not is_open:
        # A module's own __getattr__ may import and run anything, so only what is there already is looked at.
        if atom in vars(owner):
            return vars(owner)[atom]
    elif _may_be_asked(owner):
        try:
            return getattr(owner, atom)
        except (AttributeError, ImportError, RuntimeError):  # torch.ops and lazy modules raise all three
            pass
    else:
        raise NotFound(f"{path} is neither a module nor a class, so it has no member {atom!r} that text may name")
    submodule = f"{path}.{atom}"
    if submodule in sys.modules:
        return sys.modules[submodule]
    if is_open and isinstance(owner, ModuleType) and hasattr(owner, "__path__") and not atom.startswith("__"):
        return _imported(submodule)
    raise NotFound(f"{path} has no member {atom!r}")


def _may_be_asked(owner: Any) -> bool:
    """Modules and classes, and the objects of frameworks that hold functions (torch.ops.aten.add, numpy.add)."""
    if isinstance(owner, (ModuleType, type)):
        return True
    return type(owner).__module__.partition(".")[0] in OPEN_PACKAGES - {"builtins"}


def is_same_object(left: Any, right: Any) -> bool:
    """Identity; methods, which Python makes anew at each look, are the same when they are of the same object."""
    if left is right:
        return True
    return type(left) is type(right) and isinstance(left, (MethodType, BuiltinMethodType)) and bool(left == right)


def name_for(value: Any) -> str | None:
    """A dotted name under which ``find`` gives ``value`` itself; None if there is none."""
    name = value.__name__ if isinstance(value, ModuleType) else qualified_name(value)
    if not DOTTED.fullmatch(name):
        return None
    try:
        found = find(name)
    except NotFound:
        return None
    return name if is_same_object(found, value) else None
