"""Users' own handlers and filters of loggers, which run when a program logs.

A handler that a user has written is part of the program: it runs when the program logs, and its variables and
attributes are watched like those of the program's own functions.
"""

from __future__ import annotations

import inspect
import logging
import sysconfig
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any

_LIBRARIES = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), "<frozen")
STANDARD = frozenset({*vars(logging.Handler()), *vars(logging.StreamHandler()), "name", "nlen"})
"""The attributes that a handler or filter has from the library."""


def own_handlers(value: Any) -> list[Any]:
    """The handlers and filters of users' classes that see what is logged through a logger, or through the module."""
    return [one for one in _handlers_and_filters(value) if any(True for _ in functions_of_handler(one))]


def _handlers_and_filters(value: Any) -> list[Any]:
    """All handlers and filters that see what is logged through a logger, or through the module."""
    logger = logging.root if value is logging else getattr(value, "logger", value)
    found: list[Any] = list(logger.filters) if isinstance(logger, logging.Logger) else []
    while isinstance(logger, logging.Logger):
        for handler in logger.handlers:
            found += [handler, *handler.filters]
        logger = logger.parent if logger.propagate else None
    return found


def is_logger(value: Any) -> bool:
    """Whether something is logged through a value: a logger, or the module."""
    return value is logging or isinstance(value, (logging.Logger, logging.LoggerAdapter))


def handlers_and_filters(values: Iterable[Any]) -> list[Any]:
    """Those of all loggers among some values, each once."""
    found = {
        id(one): one for logger in filter(is_logger, values) for one in _handlers_and_filters(logger)
    }  # most loggers share the root's handlers
    return [one for one in found.values() if any(True for _ in functions_of_handler(one))]


def functions_of_handler(handler: Any) -> Iterator[FunctionType]:
    """The functions of a user's that a handler or filter consists of."""
    if isinstance(handler, FunctionType):
        members: list[Any] = [handler]
    else:
        members = [member for kind in type(handler).__mro__ for member in vars(kind).values()]
        members += [inspect.unwrap(getattr(value, "__func__", value)) for value in vars(handler).values()]
    for member in members:
        if isinstance(member, FunctionType) and not member.__code__.co_filename.startswith(_LIBRARIES):
            yield member
