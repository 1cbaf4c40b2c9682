"""Which framework a value belongs to, judged by its class and the classes it derives from.

A user's own subclass of a framework's module, parameter or array is the framework's too. The answer is kept for each
class, and forgotten with it, because a tracer asks for every argument and attribute.
"""

from __future__ import annotations

import weakref
from typing import Any

from clew.ir.guests import Guest, guest

_owners: weakref.WeakKeyDictionary[type, Guest | None] = weakref.WeakKeyDictionary()
_UNKNOWN = object()


def owner_of(value: Any) -> Guest | None:
    """The framework whose class, or whose class's subclass, ``value`` is an instance of."""
    return owner_of_class(type(value))


def owner_of_class(kind: type) -> Guest | None:
    """The framework that ``kind``, or the nearest of its bases, comes from."""
    found: Any = _owners.get(kind, _UNKNOWN)
    if found is _UNKNOWN:
        packages = (base.__module__.partition(".")[0] for base in kind.__mro__ if isinstance(base.__module__, str))
        found = _owners[kind] = next((host for package in packages if (host := guest(package)) is not None), None)
    owner: Guest | None = found
    return owner
