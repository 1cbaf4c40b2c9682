"""Arguments of a program named by position: which are constants of the capture, and which are stateful objects.

In come positions as the user writes them (``static_argnums=1``, ``arg_stateful_idxs=[[0, "cache"]]``); out come the
names of parameters, or the objects themselves. A position that leads nowhere is an error at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from clew.capture.example.contents import follows
from clew.errors import CaptureError


def static_names(fn: Any, nums: int | Iterable[int] | None, names: str | Iterable[str] | None) -> frozenset[str]:
    """The names of the parameters that are constants, given by number or by name."""
    parameters = list(inspect.signature(fn).parameters.values()) if nums is not None or names is not None else []
    wanted = [names] if isinstance(names, str) else list(names or ())
    for number in [nums] if isinstance(nums, int) else list(nums or ()):
        if not -len(parameters) <= number < len(parameters) or _is_starred(parameters[number]):
            raise CaptureError(
                f"static_argnums names the argument {number}, but there is no parameter for it alone",
                why=f"the parameters are {', '.join(parameter.name for parameter in parameters) or 'none'}",
            )
        wanted.append(parameters[number].name)
    known = {parameter.name for parameter in parameters}
    gathers = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    unknown = [name for name in wanted if name not in known and not gathers]
    if unknown:
        raise CaptureError(
            f"static_argnames names {unknown[0]!r}, which is no parameter",
            why=f"the parameters are {', '.join(sorted(known)) or 'none'}",
        )
    return frozenset(wanted)


def _is_starred(parameter: inspect.Parameter) -> bool:
    return parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)


def stateful_parts(arguments: Any, paths: Iterable[Any] | None, option: str) -> list[Any]:
    """The objects at nested positions of the arguments, each a list of steps: ``[[0], [1, "cache"]]``."""
    found = []
    for path in paths or ():
        steps = [path] if isinstance(path, (int, str)) else list(path)
        value = arguments
        for step in steps:
            value = _step(value, step, f"{option} names {steps}")
        found.append(_checked(value, f"what {option} names at {steps}"))
    return found


def stateful_objects(objects: Sequence[Any] | None) -> list[Any]:
    """The objects that ``stateful=`` lists."""
    for value in objects or ():
        if not hasattr(value, "__dict__"):
            raise _without_attributes(value, "what stateful= lists")
    return list(objects or ())


def _step(value: Any, step: Any, what: str) -> Any:
    try:
        return value[step]
    except (TypeError, LookupError):
        if isinstance(step, str) and hasattr(value, step):
            return getattr(value, step)
    raise CaptureError(f"{what}, but a {type(value).__name__} has nothing at {step!r}")


def _checked(value: Any, what: str) -> Any:
    if not follows(value) and not hasattr(value, "__dict__"):
        raise _without_attributes(value, what)
    return value


def _without_attributes(value: Any, what: str) -> CaptureError:
    return CaptureError(
        f"{what} is a {type(value).__name__}, which has no attributes",
        why="reads and writes of a stateful object's attributes are in the graph",
        fixes=("name an object",),
    )
