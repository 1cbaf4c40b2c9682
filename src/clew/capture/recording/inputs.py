"""The arguments of the example become placeholders, one for each parameter of the original.

What they hold enters the capture as ``inputs`` describes: nests are taken apart by nodes, made only for what is used.
Parameters that the example leaves out are inputs with their defaults: numbers among them are traced like those that are
given, what the program never reads is not relied on, and all others must be left out again.
"""

from __future__ import annotations

import inspect
from types import CodeType
from typing import Any

from clew.capture.bytecode.instructions import instructions_of
from clew.capture.guards import notes
from clew.capture.recording.nested_values import Inputs
from clew.capture.state.containers import follows
from clew.errors import ExampleMismatch
from clew.ir.node import Node


def bind(
    inputs: Inputs, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], target: Any = None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Make a placeholder for each parameter; the arguments to run the program with.

    ``target`` is the function that gets them as they are; None if another may see which were given.
    """
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ExampleMismatch(
            f"the example does not fit {signature}: {error}",
            fixes=("give the arguments of one call: args=(...), kwargs={...}",),
        ) from None
    code = _code_with(target, signature)
    entered: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        node = _placeholder(inputs, name, parameter)
        if name in bound.arguments:
            entered[name] = _enter(inputs, bound.arguments[name], node, name, parameter)
        elif code is not None and not _mentions(code, name):
            continue
        elif code is not None and inputs.takes_number(parameter.default, name) and _may_be_passed(parameter):
            entered[name] = inputs.enter(parameter.default, node, name)
        else:
            _check_nothing_given(inputs, node, name, parameter)
    bound.arguments = entered
    return _as_passed(signature, bound, len(args))


def _code_with(target: Any, signature: inspect.Signature) -> CodeType | None:
    """The code of a function that has the parameters of a signature itself."""
    code = getattr(getattr(target, "__func__", target), "__code__", None)
    if not isinstance(code, CodeType) or not _BLIND.isdisjoint(code.co_names):
        return None
    return code if signature.parameters.keys() <= {*code.co_varnames} else None


_BLIND = frozenset({"locals", "vars", "exec", "eval", "dir", "_getframe", "currentframe"})
"""Functions by which a function may read variables that it does not name."""
_OF_LOCALS = ("FAST", "DEREF", "CLOSURE", "CELL")


def _mentions(code: CodeType, name: str) -> bool:
    """Whether a function does anything with a parameter."""
    steps = [one for one in instructions_of(code) if any(kind in one.opname for kind in _OF_LOCALS)]
    return any(one.argval == name or (isinstance(one.argval, tuple) and name in one.argval) for one in steps)


def _may_be_passed(parameter: inspect.Parameter) -> bool:
    """Whether a parameter that was left out can be given by its name."""
    return parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)


def _enter(inputs: Inputs, value: Any, node: Node, name: str, parameter: inspect.Parameter) -> Any:
    """Arguments gathered by ``**`` come in a dict that nobody else holds, whose writes nobody sees."""
    entered = inputs.enter(value, node, name)
    if parameter.kind is parameter.VAR_KEYWORD:
        inputs.containers = [held for held in inputs.containers if held.value is not value]
        del inputs.recorder.objects[id(value)]
    return entered


def _as_passed(
    signature: inspect.Signature, bound: inspect.BoundArguments, count: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
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


def _placeholder(inputs: Inputs, name: str, parameter: inspect.Parameter) -> Node:
    stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
    stars = "**" if parameter.kind is parameter.VAR_KEYWORD else stars
    value = parameter.default
    default = () if value is parameter.empty else (Default(value) if follows(value) else value,)
    kind = {"keyword_only": True} if parameter.kind is parameter.KEYWORD_ONLY else {}
    kind = {"positional_only": True} if parameter.kind is parameter.POSITIONAL_ONLY else kind
    return inputs.recorder.graph.create_node("placeholder", stars + name, default, kind, name)


class Default:
    """Stands for a default value that is one object, which may be changed: a list, say."""

    def __init__(self, value: Any) -> None:
        self.text = repr(value)

    def __repr__(self) -> str:
        return self.text


def _check_nothing_given(inputs: Inputs, node: Node, name: str, parameter: inspect.Parameter) -> None:
    """A parameter that was left to its default must be left so again: the program saw the plain default. An array that
    is a default is an input like any other."""
    if inputs.recorder.is_array(parameter.default):
        inputs.enter(parameter.default, node, name)
    elif parameter.default is not parameter.empty:
        inputs.default(node.args[0], node, name)
    elif parameter.kind is parameter.VAR_POSITIONAL:
        inputs.checks.append((notes.require_length, node, 0))
    elif parameter.kind is parameter.VAR_KEYWORD:
        inputs.checks.append((notes.require_keys, node, ()))
