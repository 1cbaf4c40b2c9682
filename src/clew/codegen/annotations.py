"""Type annotations as code.

An annotation comes in; out comes an expression that evaluates to an equal one. What cannot be written so is bound as
a global of the code, whole.
"""

from __future__ import annotations

import builtins
import types
import typing
from typing import Any

from clew.codegen.locals import plain
from clew.codegen.scope import Scope


def annotation(kind: Any, scope: Scope) -> str:
    """The annotation as an expression in ``scope``."""
    if kind is type(None):
        return scope.name_of(kind)  # None itself would say, if the code is captured again, that nothing is annotated
    text = _written(kind, scope)
    return text if _means(text, kind, scope) else scope.bind("annotation", kind)


def _means(text: str, kind: Any, scope: Scope) -> bool:
    """Whether the text evaluates back; it is made of checked names and plain literals alone."""
    try:
        found = eval(text, {"__builtins__": builtins, **scope.globals})
        wanted = kind.__forward_arg__ if isinstance(kind, typing.ForwardRef) else kind
        return bool(found == wanted)
    except (TypeError, NameError, AttributeError, SyntaxError, ValueError):
        return False


def _written(kind: Any, scope: Scope) -> str:
    if kind is None or kind is type(None):
        return "None"
    if kind is ...:
        return "..."
    if isinstance(kind, (str, typing.ForwardRef)):
        return repr(plain(kind if isinstance(kind, str) else kind.__forward_arg__))
    if isinstance(kind, list):
        return f"[{_joined(kind, scope)}]"
    if isinstance(kind, tuple):
        return f"({_joined(kind, scope)}{',' if len(kind) == 1 else ''})"
    arguments = typing.get_args(kind)
    if isinstance(kind, types.UnionType):
        return " | ".join(_written(argument, scope) for argument in arguments)
    origin = typing.get_origin(kind)
    if origin is None:
        return _typing_name(kind, scope) or scope.name_of(kind)
    return _subscripted(kind, origin, arguments, scope)


def _subscripted(kind: Any, origin: Any, arguments: tuple[Any, ...], scope: Scope) -> str:
    if origin is typing.Union:
        members = [argument for argument in arguments if argument is not type(None)]
        name = "Optional" if len(members) == 1 and len(arguments) == 2 else "Union"
        return f"{_from_typing(name, scope)}[{_joined(members if name == 'Optional' else arguments, scope)}]"
    if origin is typing.Literal:
        return f"{_from_typing('Literal', scope)}[{', '.join(map(scope.spell, arguments))}]"
    if origin is typing.Annotated:
        notes = ", ".join(map(scope.spell, arguments[1:]))
        return f"{_from_typing('Annotated', scope)}[{_written(arguments[0], scope)}, {notes}]"
    head = _typing_name(kind, scope) or scope.name_of(origin)
    return f"{head}[{_joined(arguments, scope) or '()'}]"


def _joined(kinds: Any, scope: Scope) -> str:
    return ", ".join(_written(kind, scope) for kind in kinds)


def _typing_name(kind: Any, scope: Scope) -> str | None:
    """``List`` for ``typing.List[int]``: aliases of typing keep their own name."""
    if type(kind).__module__ != "typing" and kind is not typing.Any:
        return None
    name = getattr(kind, "_name", None) or getattr(kind, "__name__", None)
    known = getattr(typing, name, None) if isinstance(name, str) else None
    if known is None or (known is not kind and typing.get_origin(known) is not typing.get_origin(kind)):
        return None
    return _from_typing(str(name), scope)


def _from_typing(name: str, scope: Scope) -> str:
    return scope.imported("typing", name, getattr(typing, name))
