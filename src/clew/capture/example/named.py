"""Arguments of a program named by position: which are constants of the capture, and which are stateful objects.

In come positions as the user writes them (``static_argnums=1``, ``arg_stateful_idxs=[[0, "cache"]]``); out come the
names of parameters, or the objects themselves. A position that leads nowhere is an error at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from clew.capture.example.contents import follows
from clew.capture.example.programs import signature_of
from clew.errors import CaptureError, a_or_an


def static_names(
    fn: Any, names: str | Iterable[str] | None, option: str = "static", nums: int | Iterable[int] | None = None
) -> frozenset[str]:
    """The names of the parameters that are constants, given by name in ``option``, or by number."""
    wanted = _listed(option, names, str, "names of parameters")
    numbers = _listed("static_argnums", nums, int, "positions of arguments")
    if not wanted and not numbers:
        return frozenset()
    parameters = list(signature_of(fn).parameters.values())
    why = f"the parameters are {', '.join(parameter.name for parameter in parameters) or 'none'}"
    for number in numbers:
        if not -len(parameters) <= number < len(parameters) or _is_starred(parameters[number]):
            raise CaptureError(
                f"static_argnums names the argument {number}, but there is no parameter for it alone", why=why
            )
        wanted.append(parameters[number].name)
    gathers = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    unknown = [name for name in wanted if name not in signature_of(fn).parameters and not gathers]
    if unknown:
        raise CaptureError(f"{option} names {unknown[0]!r}, which is no parameter", why=why)
    return frozenset(wanted)


def _listed(option: str, value: Any, kind: type, what: str) -> list[Any]:
    """One value or several as a list; an error if they are of another kind."""
    values = [value] if isinstance(value, kind) else list(value) if isinstance(value, Iterable) else value
    if values is None:
        return []
    if not isinstance(values, list) or not all(isinstance(one, kind) for one in values):
        raise CaptureError(f"{option}={value!r} names no parameters", fixes=(f"give {what}",))
    return values


def _is_starred(parameter: inspect.Parameter) -> bool:
    return parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)


def stateful_parts(arguments: Any, paths: Iterable[Any] | None, option: str) -> list[Any]:
    """The objects at nested positions of the arguments, each a list of steps: ``[[0], [1, "cache"]]``."""
    if paths is not None and not isinstance(paths, (list, tuple)):
        raise CaptureError(f"{option}={paths!r} is no list of positions", fixes=(f"{option}=[[{paths!r}]]",))
    found = []
    for path in paths or ():
        steps = [path] if isinstance(path, (int, str)) else list(path)
        value = arguments
        for step in steps:
            value = _step(value, step, f"{option} names {steps}")
        found.append(_checked(value, f"what {option} names at {steps}"))
    return found


def stateful_objects(objects: Sequence[Any] | None) -> tuple[Any, ...]:
    """The objects that ``stateful=`` lists."""
    for value in objects or ():
        if not hasattr(value, "__dict__"):
            raise _without_attributes(value, "what stateful= lists")
    return tuple(objects or ())


def _step(value: Any, step: Any, what: str) -> Any:
    try:
        return value[step]
    except (TypeError, LookupError):
        if isinstance(step, str) and hasattr(value, step):
            return getattr(value, step)
    raise CaptureError(f"{what}, but {a_or_an(value)} has nothing at {step!r}")


def _checked(value: Any, what: str) -> Any:
    if not follows(value) and not hasattr(value, "__dict__"):
        raise _without_attributes(value, what)
    return value


def _without_attributes(value: Any, what: str) -> CaptureError:
    return CaptureError(
        f"{what} is {a_or_an(value)}, which has no attributes",
        why="reads and writes of a stateful object's attributes are in the graph",
        fixes=("name an object",),
    )
