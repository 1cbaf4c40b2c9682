"""The result of the example becomes the output node: arrays and traced numbers as nodes, nests as they are.

Objects of classes that the capture can build again (named tuples, dataclasses, dicts with a class of their own, plain
objects that hold arrays) are built anew at each call, by a node; the example's own objects are never returned.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from typing import Any

from clew.capture.example.recorder import Recorder, Scalar
from clew.errors import CaptureError

_CONSTANTS = (str, bytes, complex, int, float, bool, type(None), type(...))


def rebuild(kind: type, state: dict[str, Any]) -> Any:
    """An object of a class with these attributes, made without its constructor."""
    made: Any = object.__new__(kind)
    made.__dict__.update(state)
    return made


def rebuild_mapping(kind: type, items: dict[Any, Any], state: dict[str, Any]) -> Any:
    """A dict of a class of its own with these items and attributes."""
    made: Any = (OrderedDict if issubclass(kind, OrderedDict) else dict).__new__(kind)
    put = OrderedDict.__setitem__ if isinstance(made, OrderedDict) else dict.__setitem__
    for key, value in items.items():
        put(made, key, value)
    made.__dict__.update(state)
    return made


def plain(recorder: Recorder, value: Any) -> Any:
    """A result of the recorded run as the program itself would give it: plain numbers, original objects."""
    kind = type(value)
    if issubclass(kind, Scalar):
        return value.plain
    if recorder.is_array(value):
        return recorder.original(value)
    if kind is tuple:
        return tuple(plain(recorder, item) for item in value)
    if kind is list:
        return [plain(recorder, item) for item in value]
    if kind is dict:
        return {key: plain(recorder, item) for key, item in value.items()}
    if isinstance(value, dict):
        entries = {key: plain(recorder, item) for key, item in value.items()}
        return rebuild_mapping(kind, entries, plain(recorder, vars(value)))
    if isinstance(value, tuple):
        items = [plain(recorder, item) for item in value]
        return kind(*items) if hasattr(value, "_fields") else value.__class__(items)
    if kind.__module__.partition(".")[0] not in ("torch", "builtins", "numpy") and hasattr(value, "__dict__"):
        vars(value).update(plain(recorder, vars(value)))
    return value


def output_of(recorder: Recorder, value: Any) -> Any:
    """What the output node holds for a result."""
    if issubclass(type(value), Scalar) or recorder.is_array(value):
        return recorder.argument(value)
    if isinstance(value, _CONSTANTS) or type(value).__module__ == "torch":
        return value
    kind = type(value)
    if kind is dict:
        return {key: output_of(recorder, item) for key, item in value.items()}
    if kind is list:
        return [output_of(recorder, item) for item in value]
    if kind is tuple:
        return tuple(output_of(recorder, item) for item in value)
    if isinstance(value, tuple):
        items = tuple(output_of(recorder, item) for item in value)
        if hasattr(value, "_fields"):
            return recorder.create(kind, items)
        return recorder.create(value.__class__, (items,))
    if isinstance(value, dict):
        entries = {key: output_of(recorder, item) for key, item in value.items()}
        return recorder.create(rebuild_mapping, (kind, entries, _state(recorder, value)))
    if dataclasses.is_dataclass(value) or hasattr(value, "__dict__"):
        return recorder.create(rebuild, (kind, _state(recorder, value)))
    raise CaptureError(
        f"the result holds a {kind.__name__}, which cannot be built again",
        fixes=("return arrays, numbers, or nests of these",),
    )


def _state(recorder: Recorder, value: Any) -> dict[str, Any]:
    return {name: output_of(recorder, item) for name, item in vars(value).items()}
