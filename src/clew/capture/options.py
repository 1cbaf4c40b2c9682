"""The options of a capture: one object, from ``clew.trace`` down to each run of the program.

``Options.of`` takes the user's words and refuses at once what means nothing to any framework; a framework refuses what
means nothing to it, with reasons that it keeps as data. Here too: the example's arguments checked, and arguments named
by position (``static_argnums=1``, ``arg_stateful_idxs=[[0, "cache"]]``) turned into names or objects.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType, NoneType
from typing import TYPE_CHECKING, Any, NamedTuple

from clew.capture.state.containers import follows
from clew.capture.state.reachable import signature_of
from clew.errors import CaptureError, a_or_an

if TYPE_CHECKING:
    from clew.capture.state.slots import Slot


_WORDS = {
    "opaque": ("call", "error"),
    "control_flow": ("capture", "guard", "error"),
    "guards": ("read", "all", "none"),
}
"""The options that are words, with those that they know."""
LEFT_OUT = "guards_left_out"
"""The note at the output of a graph that says which guards it does without, as the user has asked."""
_WRITTEN_AS = {"stateful_arguments": "arg_stateful_idxs"}
"""The options that users know by another name."""


class Options(NamedTuple):
    """The options of ``clew.trace`` and its like; a framework reads those that mean something to it."""

    leaves: Any = None
    static: frozenset[str] = frozenset()
    live: bool = False
    """Whether the capture works on the original itself, as those of lazy graphs do."""
    keep: bool = False
    """Whether what the captured run did stays done, because its result is that of a call."""
    include_generators: bool = True
    array_caching: bool = True
    opaque: str = "call"
    control_flow: str = "capture"
    dynamic: bool = False
    guards: str = "read"
    """What is guarded of variables around the program: what it read of them, all that they hold, or nothing."""
    keeps_unused: bool = True
    """Whether calls stay whose results nobody uses, where they may raise."""
    max_paths: int = 64
    """How many paths of a program are recorded; a line that more follow from is guarded."""
    stateful: tuple[Any, ...] = ()
    """Objects whose attributes are all inputs of the graph."""
    stateful_arguments: tuple[Any, ...] = ()
    """Objects that may come again after the program has set attributes of them."""
    lifted: dict[Any, Slot] | None = None
    """Places that other captures of the same module change; gets those that this one does."""

    @classmethod
    def of(cls, **asked: Any) -> Options:
        """The options as a user has written them; a word that says nothing is an error."""
        options = cls(**asked)
        for name, known in _WORDS.items():
            if getattr(options, name) not in known:
                choices = " or ".join(f'"{choice}"' for choice in known)
                raise CaptureError(f"{name}={getattr(options, name)!r} says nothing", fixes=(f"give {choices}",))
        if type(options.max_paths) is not int or options.max_paths < 1:
            raise CaptureError(f"max_paths={options.max_paths!r} allows no path", fixes=("give a number, 1 or more",))
        return options

    @property
    def refuses_opaque(self) -> bool:
        """Whether calls that cannot be looked into are errors."""
        return self.opaque == "error"

    @property
    def refuses_questions(self) -> bool:
        """Whether branches on data are errors."""
        return self.control_flow == "error"

    def refuse(self, framework: str, reasons: Mapping[str, str]) -> None:
        """Raise if one of the options in ``reasons``, which mean nothing to a framework, was given."""
        for name, why in reasons.items():
            if getattr(self, name) != Options._field_defaults[name]:
                option = _WRITTEN_AS.get(name, name)
                what = f"{option} says nothing in a program of {framework}"
                raise CaptureError(what, why=why, fixes=(f"leave {option} out",))


def check_callable(fn: Any) -> None:
    """Raise if there is nothing to run."""
    if not callable(fn):
        is_whole = isinstance(fn, ModuleType)
        fix = "clew.trace_graph takes a Python module" if is_whole else "give a function, a method or a callable object"
        raise CaptureError(f"{a_or_an(fn)} cannot be called, so it cannot be captured", fixes=(fix,))
    if isinstance(fn, type) and hasattr(fn, "named_parameters") and hasattr(fn, "state_dict"):
        raise CaptureError(
            f"{fn.__name__} is a class of modules, and calling it makes a module",
            fixes=(f"capture a module: clew.trace({fn.__name__}(...), args)",),
        )


def given(args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of the example. A lone array is an error: it would be taken apart into its rows."""
    if not isinstance(args, (tuple, list, NoneType)):
        named = "name them: kwargs=..." if isinstance(args, Mapping) else "put it into a tuple: args=(x,)"
        raise CaptureError(f"args is {a_or_an(args)}, not a tuple of arguments", fixes=(named,))
    if not isinstance(kwargs, (Mapping, NoneType)):
        raise CaptureError(
            f"kwargs is {a_or_an(kwargs)}, not a dict of named arguments",
            fixes=('name each: kwargs={"x": x}',),
        )
    return tuple(args or ()), dict(kwargs or {})


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
