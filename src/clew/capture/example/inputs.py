"""The arguments of the example become placeholders, one for each parameter of the original.

Nests are taken apart by nodes, made only for what the program uses. What is no array and no number is a constant of
the capture, and guarded: the length of a list, the keys of a dict, a string, None, a flag of any other kind.
"""

from __future__ import annotations

import dataclasses
import inspect
import operator
from collections.abc import Callable
from typing import Any

from clew.capture.example import guards
from clew.capture.example.recorder import Pending, Recorder, expression_of
from clew.errors import CaptureError
from clew.ir.node import Node

_NUMBERS = (int, float, bool)


class Inputs:
    """Makes placeholders for one signature, and the values that the program is run on."""

    def __init__(self, recorder: Recorder, wrap_number: Callable[[Any, Any], Any], static: frozenset[str]) -> None:
        self.recorder = recorder
        self.wrap_number = wrap_number
        self.static = static
        self.arrays: list[tuple[Any, Any]] = []
        self._checks: list[tuple[Any, Any, Any]] = []
        self._containers: list[tuple[Any, Any, str]] = []
        self.callables: list[Any] = []

    def bind(self, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """The arguments to run the program with."""
        bound = signature.bind(*args, **kwargs)
        given = dict(bound.arguments)
        for name, parameter in signature.parameters.items():
            node = self._placeholder(name, parameter)
            if name in given:
                bound.arguments[name] = self._enter(given[name], node, name)
            else:
                self._check_nothing_given(node, name, parameter)
        self._write_checks()
        for _, place in self.arrays:
            self.recorder.resolve(place)
        return self._as_passed(signature, bound, len(args))

    @staticmethod
    def _as_passed(signature: inspect.Signature, bound: inspect.BoundArguments, count: int) -> tuple[Any, Any]:
        """Positional arguments by position and named ones by name, as the caller passed them."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            kind = signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                args += value
            elif kind is inspect.Parameter.VAR_KEYWORD:
                kwargs |= value
            elif len(args) < count and kind is not inspect.Parameter.KEYWORD_ONLY:
                args.append(value)
            else:
                kwargs[name] = value
        return tuple(args), kwargs

    def _placeholder(self, name: str, parameter: inspect.Parameter) -> Node:
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else stars
        default = () if parameter.default is parameter.empty else (parameter.default,)
        kind = {"keyword_only": True} if parameter.kind is parameter.KEYWORD_ONLY else {}
        return self.recorder.graph.create_node("placeholder", stars + name, default, kind, name)

    def _check_nothing_given(self, node: Node, name: str, parameter: inspect.Parameter) -> None:
        """A parameter that was left to its default must be left so again: the program saw the plain default."""
        if parameter.default is not parameter.empty:
            self._constant(parameter.default, node, name)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            self._checks.append((guards.require_length, node, 0))
        elif parameter.kind is parameter.VAR_KEYWORD:
            self._checks.append((guards.require_keys, node, ()))

    def _enter(self, value: Any, place: Any, name: str) -> Any:
        """The value as the program shall see it; what it holds is tied to nodes, what it is is guarded."""
        if self.recorder.is_array(value):
            self.recorder.track(value, place)
            self.arrays.append((value, place))
            return value
        if type(value) in _NUMBERS and name not in self.static:
            self._checks.append((guards.require_type, place, type(value)))
            return self.wrap_number(value, place)
        if isinstance(value, (list, tuple)) and type(value).__module__ in ("builtins", "clew.ir.arguments"):
            self._checks.append((guards.require_type, place, type(value)))
            self._checks.append((guards.require_length, place, len(value)))
            items = [self._enter(item, Pending(operator.getitem, (place, i)), name) for i, item in enumerate(value)]
            return self._watched(type(value)(items), name)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            self._checks.append((guards.require_type, place, type(value)))
            fields = (self._enter(getattr(value, f), Pending(getattr, (place, f)), name) for f in value._fields)
            return type(value)(*fields)
        if type(value) is dict:
            self._checks.append((guards.require_type, place, dict))
            self._checks.append((guards.require_keys, place, tuple(value)))
            entries = {k: self._enter(v, Pending(operator.getitem, (place, k)), name) for k, v in value.items()}
            return self._watched(entries, name)
        return self._constant(value, place, name)

    def _watched(self, container: Any, name: str) -> Any:
        """A container that the program must leave as it is."""
        held = tuple(container.items()) if isinstance(container, dict) else tuple(container)
        self._containers.append((container, held, name))
        return container

    def check_containers(self) -> None:
        """Raise if the program changed a list or dict among its arguments."""
        for container, held, name in self._containers:
            now = tuple(container.items()) if isinstance(container, dict) else tuple(container)
            pairs = zip(now, held, strict=False)
            if len(now) != len(held) or any(not _same_item(left, right) for left, right in pairs):
                raise CaptureError(
                    f"the program changes the {type(container).__name__} that it gets as {name!r}",
                    why="the graph would leave it as it is",
                    fixes=("return the new values instead",),
                )

    def _constant(self, value: Any, place: Any, name: str) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            self._checks.append((guards.require_type, place, type(value)))
            changed = {
                field.name: self._enter(getattr(value, field.name), Pending(getattr, (place, field.name)), name)
                for field in dataclasses.fields(value)
                if field.init
            }
            return dataclasses.replace(value, **changed)
        if value is None or isinstance(value, (str, bytes, complex, *_NUMBERS)):
            self._checks.append((guards.require, place, value))
            return value
        if callable(value) or type(value).__module__ == "torch":
            self._checks.append((guards.require_same, place, value))
            self.callables.append(value)
            return value
        raise CaptureError(
            f"the argument {name!r} holds a {type(value).__name__}, which cannot be followed",
            why="capture follows arrays, numbers, strings, None, dataclasses and nests of these",
            fixes=("pass its parts as arguments",),
        )

    def _write_checks(self) -> None:
        for check, place, expected in self._checks:
            node = self.recorder.resolve(place)
            shown = expected.__name__ if isinstance(expected, type) else repr(expected)
            text = f"{_WORDS[check].format(expression_of(node))} {shown}"
            self.recorder.create(check, (node, expected, text))


def _same_item(left: Any, right: Any) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right) == 2:
        return left is right or (left[0] is right[0] and left[1] is right[1])
    return left is right


_WORDS = {
    guards.require: "{} ==",
    guards.require_same: "{} is",
    guards.require_type: "type({}) is",
    guards.require_length: "len({}) ==",
    guards.require_keys: "tuple({}) ==",
}
