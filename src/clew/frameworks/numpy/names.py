"""The names under which users write NumPy's functions and classes: ``numpy.add``, ``numpy.linalg.norm``.

A name is only given when it leads back to the same object. Methods of ufuncs (``numpy.add.reduce``) and the functions
of ``numpy.random``, which Python makes anew at each look, count as the same when they are of the same object. Ufuncs
of SciPy are found where SciPy shows them.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy

_HOMES = (
    "numpy", "numpy.linalg", "numpy.fft", "numpy.random", "numpy.lib.stride_tricks", "numpy.emath", "numpy.strings",
    "numpy.char", "numpy.dtypes", "numpy.lib", "numpy.polynomial.polynomial", "scipy.special",
)  # fmt: skip


def qualified_name(thing: Any) -> str | None:
    """The dotted public name of a function or class of NumPy; None if no name leads to it."""
    name = getattr(thing, "__name__", None)
    if not isinstance(name, str):
        return _name_of_instance(thing)
    owner = getattr(thing, "__self__", None)
    if isinstance(owner, numpy.ufunc):
        outer = qualified_name(owner)
        return None if outer is None else f"{outer}.{name}"
    for home in (*_HOMES, getattr(thing, "__module__", None) or ""):
        place = sys.modules.get(home) or (numpy.emath if home == "numpy.emath" else None)
        found = getattr(place, name, None)
        if found is thing or (found is not None and owner is not None and _is_same_method(found, thing)):
            return f"{home}.{name}"
    return None


def _name_of_instance(thing: Any) -> str | None:
    """Objects such as ``numpy.r_``, and ufuncs whose name is a variable of the module."""
    return next((f"numpy.{name}" for name in ("r_", "c_", "mgrid", "ogrid") if getattr(numpy, name) is thing), None)


def _is_same_method(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)
