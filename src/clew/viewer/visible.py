"""What of a picture is shown: which boxes are open, which part stands for each, and the edges between those.

A picture comes in, with how deep it is to be opened; parts that are drawn come out. Of equal boxes in a row the first
stands for all; small steps (sizes, dtypes, inputs that nobody uses) are left out unless asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from clew.viewer.picture import Box, Picture, Step

SHOWN = 40
"""How many parts are shown where nobody says how deep to go."""


@dataclass
class Visible:
    """The parts of a picture that are drawn."""

    picture: Picture
    details: bool
    open: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.open.add(self.picture.root.number)
        self._firsts: dict[int, int] = {}
        for part in self.picture.parts:
            first = -1
            for item in part.items if isinstance(part, Box) else ():
                if isinstance(item, Box):
                    first = item.number if item.copies else first
                    self._firsts[item.number] = first

    def items(self, box: Box) -> list[Step | Box]:
        """The parts of a box that are shown."""
        return [
            item for item in box.items if (self.details or not item.is_minor) and self.first(item.number) == item.number
        ]

    def first(self, number: int) -> int:
        """The number of what stands for a part among its equals."""
        return self._firsts.get(number, number)

    def is_open(self, part: Step | Box) -> bool:
        """Whether the inside of a part is shown."""
        return part.number in self.open

    def seen(self, number: int) -> int | None:
        """The number of what is drawn where a part is; None if it is left out."""
        chain = [number]
        while self.picture.parents[chain[-1]] >= 0:
            chain.append(self.picture.parents[chain[-1]])
        for one in reversed(chain):
            if self.picture.parts[one].is_minor and not self.details:
                return None
            first = self.first(one)
            if first != one or one not in self.open:
                return first
        return number

    def edges(self) -> dict[tuple[int, int], int]:
        """Edges between what is drawn, each with how many values go along it."""
        found: dict[tuple[int, int], set[int]] = {}
        for begin, end in self.picture.edges:
            one, other = self.seen(begin), self.seen(end)
            if one is None or other is None or one == other:
                continue
            if self._is_hidden(begin) or self._is_hidden(end):
                continue
            found.setdefault((one, other), set()).add(begin)
        return {edge: len(values) for edge, values in found.items()}

    def _is_hidden(self, number: int) -> bool:
        return not self.details and self.picture.parts[number].is_minor


def visible(picture: Picture, depth: int | None = None, details: bool = False) -> Visible:
    """What is shown of a picture that is opened to a depth: 0 is the parts of the program itself. Without one, boxes
    are opened, largest first, while there are few parts in all."""
    found = Visible(picture, details)
    if depth is not None:
        _open_to(found, picture.root, depth)
        return found
    sizes = {part.number: sum(1 for _ in part.steps()) for part in picture.parts if isinstance(part, Box)}
    shown: list[Step | Box] = found.items(picture.root)
    while True:
        closed = [item for item in shown if isinstance(item, Box) and not found.is_open(item)]
        fitting = [box for box in closed if len(shown) + len(found.items(box)) - 1 <= SHOWN]
        if not fitting:
            return found
        chosen = max(fitting, key=lambda box: sizes[box.number])
        found.open.add(chosen.number)
        shown = [item for item in shown if item is not chosen] + found.items(chosen)


def _open_to(found: Visible, box: Box, depth: int) -> None:
    for item in found.items(box):
        if isinstance(item, Box) and depth > 0:
            found.open.add(item.number)
            _open_to(found, item, depth - 1)
