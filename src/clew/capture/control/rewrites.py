"""The functions of one capture that are rewritten: those that have asked for data, for as long as the capture runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType

from clew.capture.control.rewrite import is_one_expression, lines_of_loops, replaced_inside, rewritten
from clew.capture.control.runtime import RUNTIME
from clew.capture.symbolic.patches import REWRITTEN, Patches

Key = tuple[str, int, str]
_known: dict[CodeType, CodeType | None] = {}
_MOST_KNOWN = 1024


class Rewrites:
    """Which functions are rewritten, by file, line and name."""

    def __init__(self) -> None:
        self.functions: list[FunctionType] = []
        self._met: list[FunctionType] = []
        self._wanted: set[Key] = set()
        self._refused: set[Key] = set()
        self._for_modes: set[tuple[str, int]] = set()

    def is_wanted(self, code: CodeType, line: int = 0, is_for_modes: bool = False) -> bool:
        """Whether a function that asks for data is to be rewritten from now on, which was not so before.

        With a ``line``, only if a loop begins there.
        """
        key = _key(code)
        if not is_for_modes and key[:2] in self._for_modes:
            self._for_modes.remove(key[:2])
            return True
        if "clew_" in code.co_qualname or key in self._wanted or key in self._refused:
            return False
        homes = (found for function in self._known() for found in _codes(function.__code__))
        original = next((found for found in homes if _key(found) == key), None)
        if line and original is not None and line not in lines_of_loops(original):
            return False
        if original is None or _rewritten(original) is None:
            self._refused.add(key)
            return False
        self._add(key, is_for_modes)
        return True

    def meet(self, function: FunctionType) -> None:
        """Let a function be rewritten that nobody knew would be called, if it gives what one expression is."""
        if function not in self._met and is_one_expression(function.__code__):
            self._met.append(function)

    def _known(self) -> list[FunctionType]:
        return [*self.functions, *self._met]

    def _add(self, key: Key, is_for_modes: bool) -> None:
        self._wanted.add(key)
        if is_for_modes and "-packages" in key[0]:
            self._for_modes.add(key[:2])

    def is_for_modes(self, site: tuple[str, int, int]) -> bool:
        """Whether a branch stands in a library's function that was rewritten only because it asks for modes."""
        return site[:2] in self._for_modes

    def want(self, codes: Iterable[CodeType]) -> None:
        """Let functions be rewritten from the start that will ask for modes."""
        for code in codes:
            if _key(code) not in self._wanted and "clew_" not in code.co_qualname and _rewritten(code) is not None:
                self._add(_key(code), is_for_modes=True)

    def install(self, patches: Patches) -> None:
        """Let the functions run what they were rewritten to."""
        for function in self._known() if self._wanted else ():
            codes = [code for code in _codes(function.__code__) if _key(code) in self._wanted]
            changes = {code: new for code in codes if (new := _rewritten(code)) is not None}
            if changes:
                patches.on_function(function, replaced_inside(function.__code__, changes), layer=REWRITTEN)


def _key(code: CodeType) -> Key:
    return code.co_filename, code.co_firstlineno, code.co_qualname


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code and those of the functions made inside of it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


def _rewritten(code: CodeType) -> CodeType | None:
    if code not in _known:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[code] = rewritten(code, RUNTIME)
    return _known[code]
