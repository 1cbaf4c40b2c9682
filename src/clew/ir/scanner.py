"""Walks over a text from left to right and says, when something is wrong, in which line and what was expected.

In comes a text; the place in it only moves forward. Every complaint is a TextError that shows the line. This is the
ground under the readers of values and graphs; it knows nothing of either.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from clew.errors import TextError

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANKS = " \t\r\n#"  # the empty string, which stands for the end of the text, is in it too
_WIDTH = 120


class Scanner:
    """A text and the place in it up to which it has been read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0

    def skip(self) -> str:
        """Pass over blanks, line breaks and comments; the character that comes next, empty at the end."""
        first = self.text[self.place : self.place + 1]
        if first not in _BLANKS:
            return first
        self.place = _BLANK.match(self.text, self.place).end()  # type: ignore[union-attr]
        return self.text[self.place : self.place + 1]

    def accept(self, characters: str) -> bool:
        """Pass over ``characters`` if they come next; otherwise stay, before the blanks as well."""
        place = self.place
        if not self.text.startswith(characters, place):
            if self.text[place : place + 1] not in _BLANKS:
                return False
            self.skip()
            if not self.text.startswith(characters, self.place):
                self.place = place
                return False
        self.place += len(characters)
        return True

    def expect(self, characters: str, expected: str = "") -> None:
        """Pass over ``characters``; an error if something else comes next."""
        if not self.accept(characters):
            self.skip()
            raise self.error(expected or f"'{characters}'")

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Pass over what ``pattern`` matches here, if it does; blanks are not skipped."""
        match = pattern.match(self.text, self.place)
        if match is not None:
            self.place = match.end()
        return match

    def take(self, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        """Pass over blanks and what ``pattern`` matches; an error if it does not."""
        self.skip()
        match = self.match(pattern)
        if match is None:
            raise self.error(expected)
        return match

    def line_at(self, place: int) -> str:
        """``line 3: %x = ...``: the line around a place, with its number."""
        number = self.text.count("\n", 0, place) + 1
        start = self.text.rfind("\n", 0, place) + 1
        end = self.text.find("\n", place)
        line = self.text[start : len(self.text) if end < 0 else end].strip()
        shown = line if line.isprintable() else repr(line)
        return f"line {number}: {shown if len(shown) <= _WIDTH else shown[:_WIDTH] + '...'}"

    def error(self, expected: str, place: int | None = None) -> TextError:
        """The error that something else than ``expected`` stands here."""
        place = self.place if place is None else place
        rest = self.text[place : place + 30].partition("\n")[0]
        found = (
            repr(rest) if rest.strip() else "the end of the line" if place < len(self.text) else "the end of the text"
        )
        return self.fault(f"expected {expected}, found {found}", place)

    def fault(self, what: str, place: int | None = None, *, why: str = "", fixes: Sequence[str] = ()) -> TextError:
        """An error at a place of the text: the present one, if none is given."""
        where = self.line_at(self.place if place is None else place)
        number = where.partition(":")[0]
        return TextError(f"{number}: {what}", where=where, why=why, fixes=fixes)
