"""A program that is captured and translated when it is called, once for each kind of arguments.

Comes in: a callable of the source, and what captures it. It is called with arrays of the target, or of the source, and
gives arrays of the target. A call whose arguments no translation so far is for makes a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from clew import tree
from clew.errors import CaptureError
from clew.ir.guests import guest
from clew.translate.program import check_pair, conversion, translate


class LazyTranslation:
    """Translates a program at its first call, and again where what was assumed of the arguments does not hold."""

    def __init__(self, fn: Any, capture: Callable[..., Any], source: str, to: str, limit: int = 16) -> None:
        check_pair(source, to)
        self.original = fn
        self.translations: list[Any] = []
        self._capture = capture
        self._to = to
        self._limit = limit
        self._source, self._convert = conversion(source, to)
        self.__name__ = getattr(fn, "__name__", type(fn).__name__)
        self.__doc__ = getattr(fn, "__doc__", None)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        there = self._mapped((args, kwargs), self._to_target)
        for one in self.translations:
            if one.check(*there[0], **there[1]) is None:
                return one(*there[0], **there[1])
        if len(self.translations) == self._limit:
            raise CaptureError(
                f"{self.__name__} was translated {self._limit} times, and none of them is for these arguments",
                fixes=("call it with fewer kinds of arguments",),
            )
        here = self._mapped((args, kwargs), self._to_source)
        made = translate(self._capture(self.original, *here, keep=False)[0], self._to)
        self.translations.append(made)
        return made(*there[0], **there[1])

    def _mapped(self, nest: Any, change: Callable[[Any], Any]) -> Any:
        """Each leaf changed; one that is given twice stays one object."""
        leaves, structure = tree.flatten(nest)
        changed = {id(leaf): change(leaf) for leaf in leaves}
        return tree.unflatten([changed[id(leaf)] for leaf in leaves], structure)

    def _to_target(self, leaf: Any) -> Any:
        return self._convert(self._source.to_numpy(leaf)) if self._source.is_array(leaf) else leaf

    def _to_source(self, leaf: Any) -> Any:
        found = guest(self._to)
        is_array = found is not None and found.array_class is not None and isinstance(leaf, found.array_class)
        return self._source.from_numpy(numpy.asarray(leaf)) if is_array else leaf
