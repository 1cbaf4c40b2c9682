"""``to_svg``: a graph as a drawing for papers, made without a browser.

A captured program or a graph comes in; SVG comes out, with text as text, in colours that stay apart in print. Each
open box is laid out by itself, inner ones first; values that cross its border pass through points on it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from clew.viewer.document import class_of
from clew.viewer.families import family_of
from clew.viewer.formats import lines_of
from clew.viewer.layered import Key, Placed, Point, placed
from clew.viewer.picture import Box, Picture, Step, picture_of
from clew.viewer.visible import Visible, visible

HEADER, PADDING, MARGIN = 26.0, 14.0, 12.0
COLOURS = {
    "input": "#4a5568", "output": "#4a5568", "weight": "#8b7355", "matrix": "#2f5fe0", "attention": "#c2327f",
    "normalization": "#7c4dd6", "activation": "#e07b00", "embedding": "#0b8f6a", "pool": "#0e86a8", "shape": "#98a2b3",
    "guard": "#b3261e",
}  # fmt: skip
_STYLE = """
text { font-family: Inter, "Helvetica Neue", Helvetica, Arial, sans-serif; fill: #161b26; }
.title { font-size: 12px; font-weight: 600; }
.second { font-size: 10px; fill: #5b6577; }
.type { font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.card { fill: #ffffff; stroke: #b6bfcd; }
.group { fill: #f5f7fd; stroke: #b6c2d6; }
.mask { fill: #f5f7fd; }
.control { stroke: #e07b00; stroke-dasharray: 6 3; }
.end { fill: #eef1f6; stroke: #4a5568; }
.edge { fill: none; stroke: #7a8699; stroke-width: 1.2; }
"""


@dataclass
class _Inside:
    """An open box, laid out: its size, and what is drawn in it, relative to its corner."""

    width: float = 0.0
    height: float = 0.0
    places: dict[int, Point] = field(default_factory=dict)
    lines: list[tuple[list[Point], bool]] = field(default_factory=list)
    """Points of edges, and whether there is an arrow at the end."""
    ports: dict[Key, float] = field(default_factory=dict)


def to_svg(captured: Any, path: str | Path | None = None, *, depth: int | None = None, details: bool = False) -> str:
    """The graph as an SVG drawing; ``depth`` says how many levels of modules are opened (by default as many as stay
    easy to read), ``details`` adds sizes, dtypes and inputs that nobody uses."""
    picture = picture_of(captured)
    drawing = _Drawing(picture, visible(picture, depth, details))
    whole = drawing.inside(picture.root)
    width, height = whole.width + 2 * MARGIN, whole.height + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{_text("Graph of " + picture.name)}">',
        f"<title>{_text(picture.name)}</title>",
        f"<style>{_STYLE}</style>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto" '
        'markerUnits="userSpaceOnUse"><path d="M0.5,0.8 L7,4 L0.5,7.2 Z" fill="#7a8699"/></marker></defs>',
        *drawing.drawn(picture.root, MARGIN, MARGIN),
        "</svg>",
    ]
    text = "\n".join(lines) + "\n"
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


class _Drawing:
    """Lays out and draws the boxes of one picture."""

    def __init__(self, picture: Picture, shown: Visible) -> None:
        self.picture, self.shown = picture, shown
        self.holder = getattr(picture.program, "root", picture.program)
        self._known: dict[int, _Inside] = {}
        self._within: dict[int, dict[tuple[int, int], set[int]]] = {}
        self._entering: dict[int, dict[int, set[int]]] = {}
        self._leaving: dict[int, dict[int, set[int]]] = {}
        self._sort_edges()

    def _sort_edges(self) -> None:
        """For each open box the edges between its parts, and the values that come in and go out."""
        for begin, end in self.picture.edges:
            if self.shown.seen(begin) is None or self.shown.seen(end) is None:
                continue
            one, other = self._chain(begin), self._chain(end)
            while one and other and one[0] == other[0]:
                around = one.pop(0)
                other.pop(0)
            if not one or not other or self.shown.first(one[0]) == self.shown.first(other[0]):
                continue
            pair = (self.shown.first(one[0]), self.shown.first(other[0]))
            self._within.setdefault(around, {}).setdefault(pair, set()).add(begin)
            for box, inner in itertools.pairwise(one):
                self._leaving.setdefault(box, {}).setdefault(begin, set()).add(self.shown.first(inner))
            for box, inner in itertools.pairwise(other):
                self._entering.setdefault(box, {}).setdefault(begin, set()).add(self.shown.first(inner))

    def _chain(self, number: int) -> list[int]:
        """The boxes around a part, from the outermost to itself."""
        found = [number]
        while self.picture.parents[found[0]] >= 0:
            found.insert(0, self.picture.parents[found[0]])
        return found

    # ---- layout ----------------------------------------------------------------------------------------------

    def size(self, part: Step | Box) -> tuple[float, float]:
        """The size of what is drawn for a part."""
        if isinstance(part, Box) and self.shown.is_open(part):
            inner = self.inside(part)
            return inner.width, inner.height
        first, second = lines_of(self.picture, part)
        width = max(_width(first, 7.2), _width(second, 6.2)) + 26
        return min(max(width, 72.0), 260.0), 40.0 if second else 28.0

    def inside(self, box: Box) -> _Inside:
        """An open box, laid out."""
        if box.number not in self._known:
            self._known[box.number] = self._laid_out(box)
        return self._known[box.number]

    def _laid_out(self, box: Box) -> _Inside:
        items = self.shown.items(box)
        sizes: dict[Key, tuple[float, float]] = {item.number: self.size(item) for item in items}
        edges: list[tuple[Key, Key]] = [*self._within.get(box.number, {})]
        is_root = box is self.picture.root
        entering = {} if is_root else self._entering.get(box.number, {})
        leaving = {} if is_root else self._leaving.get(box.number, {})
        first: list[Key] = [("in", value) for value in entering]
        last: list[Key] = [("out", value) for value in leaving]
        sizes.update(dict.fromkeys([*first, *last], (6.0, 1.0)))
        edges += [(("in", value), item) for value, ends in entering.items() for item in ends]
        edges += [(item, ("out", value)) for value, ends in leaving.items() for item in ends]
        return self._measured(box, items, placed(sizes, edges, first, last), sizes)

    def _measured(
        self, box: Box, items: list[Step | Box], found: Placed, sizes: dict[Key, tuple[float, float]]
    ) -> _Inside:
        """Put the border around what is inside, and the ends of edges where they belong."""
        is_root = box is self.picture.root
        padding, top = (0.0, 0.0) if is_root else (PADDING, HEADER)
        wanted = 0.0 if is_root else _width(" ".join(lines_of(self.picture, box)), 7.0) + 24
        extra = max(wanted - (found.right - found.left + 2 * padding), 0) / 2
        left = found.left - padding - extra
        made = _Inside(found.right - found.left + 2 * (padding + extra), found.height + top + padding)
        for key, (x, y) in found.middles.items():
            if isinstance(key, int):
                made.places[key] = (x - left - sizes[key][0] / 2, y + top - sizes[key][1] / 2)
            else:
                made.ports[key] = x - left
        for (begin, end), bends in found.bends.items():
            moved = [(x - left, y + top) for x, y in bends]
            made.lines += self._lines(made, begin, end, moved, sizes)
        return made

    def _lines(
        self, made: _Inside, begin: Key, end: Key, bends: list[Point], sizes: dict[Key, tuple[float, float]]
    ) -> Iterator[tuple[list[Point], bool]]:
        """The lines of an edge: one for each value where an end of it is an open box, otherwise one for all."""
        if not isinstance(begin, int):
            assert isinstance(end, int) and isinstance(begin, tuple)
            port = made.ports[begin]
            yield (
                [(port, 0.0), (port, HEADER - 2), *bends, self._end(made, end, begin[1], sizes, "in")],
                self._is_step(end),
            )
        elif not isinstance(end, int):
            assert isinstance(end, tuple)
            port = made.ports[end]
            yield [self._end(made, begin, end[1], sizes, "out"), *bends, (port, made.height)], False
        else:
            values = self._values(begin, end)
            for value in values:
                ends = self._end(made, begin, value, sizes, "out"), self._end(made, end, value, sizes, "in")
                yield [ends[0], *bends, ends[1]], self._is_step(end)
                if self._is_step(begin) and self._is_step(end):
                    break

    def _values(self, begin: int, end: int) -> list[int]:
        around = self.picture.parents[begin]
        return sorted(self._within.get(around, {}).get((begin, end), {begin}))

    def _is_step(self, number: int) -> bool:
        return number not in self.shown.open

    def _end(self, made: _Inside, number: int, value: Any, sizes: dict[Key, tuple[float, float]], side: str) -> Point:
        """Where an edge meets a part: in the middle, or at the port of the value if the part is open."""
        x, y = made.places[number]
        width, height = sizes[number]
        down = y if side == "in" else y + height
        part = self.picture.parts[number]
        if isinstance(part, Box) and self.shown.is_open(part):
            return x + self.inside(part).ports.get((side, value), width / 2), down
        return x + width / 2, down

    # ---- drawing ---------------------------------------------------------------------------------------------

    def drawn(self, box: Box, x: float, y: float) -> Iterator[str]:
        """What is in a box whose corner is at a point."""
        inner = self.inside(box)
        for points, has_arrow in inner.lines:
            arrow = ' marker-end="url(#arrow)"' if has_arrow else ""
            yield f'<path class="edge" d="{_curve(points, x, y)}"{arrow}/>'
        for item in self.shown.items(box):
            left, top = inner.places[item.number]
            if isinstance(item, Box) and self.shown.is_open(item):
                yield from self._group(item, x + left, y + top)
            else:
                yield from self._card(item, x + left, y + top)

    def _group(self, box: Box, x: float, y: float) -> Iterator[str]:
        inner = self.inside(box)
        first, second = lines_of(self.picture, box)
        kind = "group control" if box.role == "control" else "group"
        size = f'width="{inner.width:.1f}" height="{inner.height:.1f}"'
        yield f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size} rx="9"/>'
        yield from self.drawn(box, x, y)
        width = min(_width(first, 7.2) + _width(second, 5.6) + 14, inner.width - 12)
        yield f'<rect class="mask" x="{x + 6:.1f}" y="{y + 5:.1f}" width="{width:.1f}" height="17"/>'
        yield (
            f'<text x="{x + 10:.1f}" y="{y + 17:.1f}"><tspan class="title">{_text(first)}</tspan>'
            f'<tspan class="second" dx="6">{_text(second)}</tspan></text>'
        )

    def _card(self, item: Step | Box, x: float, y: float) -> Iterator[str]:
        width, height = self.size(item)
        first, second = lines_of(self.picture, item)
        is_end = isinstance(item, Step) and item.node.op in ("placeholder", "output")
        radius = height / 2 if is_end else 7
        rect = f'width="{width:.1f}" height="{height:.1f}" rx="{radius:g}"/>'
        if isinstance(item, Box) and item.copies > 1:
            for shift in (6, 3):
                yield f'<rect class="card" x="{x + shift:.1f}" y="{y + shift:.1f}" {rect}'
        yield f'<rect class="{"end" if is_end else "card"}" x="{x:.1f}" y="{y:.1f}" {rect}'
        if isinstance(item, Step) and not is_end:
            colour = COLOURS.get(family_of(item.node, class_of(item.node, self.holder)), "#5b6577")
            yield f'<rect x="{x:.1f}" y="{y + 7:.1f}" width="3.5" height="{height - 14:.1f}" rx="1.7" fill="{colour}"/>'
        middle = x + width / 2
        line = y + (16.5 if second else height / 2 + 4)
        yield _line("title", middle, line, _cut(first, width, 7.2))
        if second:
            kind = "second type" if isinstance(item, Step) else "second"
            yield _line(kind, middle, y + 31, _cut(second, width, 6.2))


def _line(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{_text(text)}</text>'


def _text(text: str) -> str:
    return escape("".join(one for one in text if one.isprintable()), quote=True)


def _width(text: str, letter: float) -> float:
    return sum(letter if one.isascii() else letter * 1.5 for one in text)


def _cut(text: str, width: float, letter: float) -> str:
    room = int((width - 20) / letter)
    return text if len(text) <= room + 1 else f"{text[: max(room - 1, 1)]}…"


def _curve(points: list[Point], x: float, y: float) -> str:
    """A line through points that leaves and enters downwards."""
    (a, b), *rest = points
    parts = [f"M{a + x:.1f},{b + y:.1f}"]
    for c, d in rest:
        if abs(a - c) < 0.5:
            parts.append(f"L{c + x:.1f},{d + y:.1f}")
        else:
            pull = max((d - b) / 2, 8)
            parts.append(f"C{a + x:.1f},{b + pull + y:.1f} {c + x:.1f},{d - pull + y:.1f} {c + x:.1f},{d + y:.1f}")
        a, b = c, d
    return "".join(parts)
