"""``wrap``: functions that stay one call in the graph instead of being traced through.

A function is wrapped by its name at module level, or as a decorator. The registry keeps the module's globals and the
name; while a trace runs, that name holds a function that makes a call node if any argument is a proxy.
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeVar

from clew import tree
from clew.capture.patches import Patches
from clew.capture.symbolic.proxy import Proxy
from clew.ir.arguments import leaves
from clew.ir.guests import Guest
from clew.ir.names import Memo

WrappedT = TypeVar("WrappedT", bound="str | Callable[..., Any]")

handle_call: ContextVar[Callable[..., Any] | None] = ContextVar("clew_wrapped_call", default=None)
"""What calls of wrapped functions are handed to, as ``(function, args, kwargs)``, where no proxies are at work."""

wrapped_functions: dict[tuple[int, str], dict[str, Any]] = {}
"""Globals in which a function stays one call, by their ``id`` and its name: torch.fx's ``_wrapped_fns_to_patch``."""
wrapped_methods: list[tuple[type, str]] = []
"""Methods of classes that stay one call, by torch.fx's private name ``_wrapped_methods_to_patch``."""


def wrap(fn_or_name: WrappedT) -> WrappedT:
    """Keep calls of a function as single nodes; call it at module level with a name, or use it as a decorator.

    ``wrap("len")``, ``wrap("sqrt")`` after ``from math import sqrt``, ``wrap(my_function)``, ``@wrap``.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(f"wrap takes a function or the name of one, not {type(fn_or_name).__name__}")
    name: str | None = fn_or_name if isinstance(fn_or_name, str) else getattr(fn_or_name, "__name__", None)
    if name is None:
        raise AssertionError(f"wrap needs a function with a name, not {fn_or_name!r}")
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError(
            "wrap must be called at the top level of a module, because it finds the function by its name there"
        )
    register(frame.f_globals, str(name))
    return fn_or_name


def register(names: dict[str, Any], name: str) -> None:
    """Let calls through ``names[name]`` be single nodes."""
    wrapped_functions[(id(names), name)] = names


def unregister(identity: int, name: str) -> None:
    """Forget what ``register`` noted for the globals of this ``id``: those of a generated function end with it."""
    wrapped_functions.pop((identity, name), None)


def is_wrapped(function: Any) -> bool:
    """True for a function that some module has wrapped."""
    return any(names.get(name) is function for (_, name), names in wrapped_functions.items())


def find_proxy(*arguments: Any) -> Proxy | None:
    """The first proxy in the arguments of a call, in nests of any kind."""
    for leaf in leaves(arguments):
        if isinstance(leaf, Proxy):
            return leaf
    for leaf in tree.flatten(arguments)[0]:
        if isinstance(leaf, Proxy):
            return leaf
    return None


def recorder(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that records calls with proxies, or reports to ``handle_call``, and otherwise is the original."""

    @functools.wraps(original, updated=())
    def recording(*args: Any, **kwargs: Any) -> Any:
        handler = handle_call.get()
        if handler is not None:
            return handler(original, args, kwargs)
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return original(*args, **kwargs)
        result = proxy.tracer.create_proxy("call_function", original, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    recording.__clew_original__ = original  # type: ignore[attr-defined]
    return recording


def install(patches: Patches) -> None:
    """Put recorders in the place of all wrapped functions."""
    for (_, name), names in list(wrapped_functions.items()):
        patches.in_dict(names, name, _recorder_once, default=getattr(builtins, name, None))


def install_those_of(patches: Patches, guest: Guest) -> None:
    """Put recorders in the place of what a framework's own ``wrap`` has noted, and of wrapped methods."""
    functions, methods = guest.wrapped_elsewhere()
    for names, name in functions:
        patches.in_dict(names, name, _recorder_once, default=getattr(builtins, name, None))
    for kind, name in (*methods, *wrapped_methods):
        patches.on_class(kind, name, functools.partial(_method_recorder, name=name), inherited=True)


def _method_recorder(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(original, updated=())
    def recording(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return original(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return recording


def install_for(patches: Patches, names: dict[str, Any], functions: Iterable[Any], beside: str = "_") -> None:
    """Put recorders in the place of those ``functions`` that the globals ``names`` hold, ``beside`` some names."""
    install_by_identity(patches, names, set(map(id, functions)), beside)


def install_by_identity(patches: Patches, names: dict[str, Any], wanted: set[int], beside: str = "_") -> None:
    """Put recorders in the place of those functions, given by their ``id``, that the globals ``names`` hold."""
    found = [name for name, value in names.items() if id(value) in wanted or type(value) is FunctionType]
    for name in found:
        value = names[name]
        if not name.startswith(beside) and id(original_of(value)) in wanted and callable(value):
            patches.in_dict(names, name, _recorder_once)


def original_of(value: Any) -> Any:
    """The function behind a recorder, which another trace may have put in place already."""
    return vars(value).get("__clew_original__", value) if type(value) is FunctionType else value


def _recorder_once(function: Any) -> Any:
    if type(function) is BuiltinFunctionType:
        return _recorders[function]
    return function if hasattr(function, "__clew_original__") else recorder(function)


_recorders: Memo[Any, Callable[..., Any]] = Memo(recorder, 1024)
"""Recorders of functions in C, above all those of ``math``, which every trace needs again."""
