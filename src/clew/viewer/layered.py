"""Where the parts of one box stand, drawn from top to bottom: layers, orders within them, places, and bends of edges.

Sizes of parts and the edges between them come in; a place for each and a line of points for each edge come out.
Layers are by longest path, orders by the middle of the neighbours, and long edges get lanes of their own. Always
holds: parts do not overlap, and the same input gives the same places.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

GAP, LANE_GAP, LAYER_GAP, LANE = 24.0, 10.0, 34.0, 4.0
SWEEPS = 8

Key = Hashable
Size = tuple[float, float]
Point = tuple[float, float]


@dataclass
class Placed:
    """The result: the middle of each part, the bends of each edge, and the size of all."""

    middles: dict[Key, Point] = field(default_factory=dict)
    bends: dict[tuple[Key, Key], list[Point]] = field(default_factory=dict)
    left: float = 0.0
    right: float = 0.0
    height: float = 0.0


def placed(
    sizes: dict[Key, Size], edges: Iterable[tuple[Key, Key]], first: Iterable[Key] = (), last: Iterable[Key] = ()
) -> Placed:
    """Places for parts; ``first`` stand in the uppermost layer, ``last`` in the lowest."""
    links = [edge for edge in dict.fromkeys(edges) if edge[0] != edge[1] and edge[0] in sizes and edge[1] in sizes]
    layer = _layers(sizes, links, set(first), set(last))
    layers, chains = _with_lanes(sizes, links, layer)
    neighbours = _neighbours(chains.values())
    _order(layers, neighbours)
    widths = {key: sizes.get(key, (LANE, 0.0))[0] for row in layers for key in row}
    middle = _across(layers, neighbours, widths)
    return _result(layers, chains, middle, sizes)


def _layers(sizes: dict[Key, Size], edges: list[tuple[Key, Key]], first: set[Key], last: set[Key]) -> dict[Key, int]:
    """The layer of each part: behind all that lead to it; an edge that closes a ring does not count."""
    before: dict[Key, list[Key]] = defaultdict(list)
    for begin, end in edges:
        before[end].append(begin)
    found: dict[Key, int] = {}
    active: set[Key] = set()

    def depth(key: Key) -> int:
        stack = [key]
        while stack:
            one = stack[-1]
            active.add(one)
            waiting = [other for other in before[one] if other not in found and other not in active]
            if waiting:
                stack.append(waiting[0])
                continue
            stack.pop()
            active.discard(one)
            if one not in found:
                found[one] = max(
                    (found[other] + 1 for other in before[one] if other in found), default=int(bool(first))
                )
        return found[key]

    for key in first:
        found[key] = 0
    for key in sizes:
        depth(key)
    lowest = max(found.values(), default=0)
    for key in last:
        found[key] = lowest + 1 if any(found[other] == lowest and other not in last for other in sizes) else lowest
    _pull_down(found, edges, first)
    return found


def _pull_down(layer: dict[Key, int], edges: list[tuple[Key, Key]], first: set[Key]) -> None:
    """Let what nothing leads to stand right above its users."""
    users: dict[Key, list[Key]] = defaultdict(list)
    led_to = {end for _, end in edges}
    for begin, end in edges:
        users[begin].append(end)
    for key in layer:
        if key not in led_to and key not in first and users[key]:
            layer[key] = max(layer[key], min(layer[user] for user in users[key]) - 1)


def _with_lanes(
    sizes: dict[Key, Size], edges: list[tuple[Key, Key]], layer: dict[Key, int]
) -> tuple[list[list[Key]], dict[tuple[Key, Key], list[Key]]]:
    """The parts by layers, with a lane in each layer that an edge crosses, and the parts and lanes of each edge."""
    layers: list[list[Key]] = [[] for _ in range(max(layer.values(), default=0) + 1)]
    for key in sizes:
        layers[layer[key]].append(key)
    chains: dict[tuple[Key, Key], list[Key]] = {}
    for begin, end in edges:
        top, bottom = sorted((layer[begin], layer[end]))
        lanes: list[Key] = [("lane", begin, end, level) for level in range(top + 1, bottom)]
        for lane, level in zip(lanes, range(top + 1, bottom), strict=True):
            layers[level].append(lane)
        chains[begin, end] = [begin, *(lanes if layer[begin] <= layer[end] else reversed(lanes)), end]
    return layers, chains


def _neighbours(chains: Iterable[list[Key]]) -> dict[Key, list[Key]]:
    found: dict[Key, list[Key]] = defaultdict(list)
    for chain in chains:
        for one, other in itertools.pairwise(chain):
            found[one].append(other)
            found[other].append(one)
    return found


def _order(layers: list[list[Key]], neighbours: dict[Key, list[Key]]) -> None:
    """Sort each layer by the middle of the neighbours in the one before, downwards and upwards in turn."""
    for sweep in range(SWEEPS):
        rows = layers if sweep % 2 == 0 else layers[::-1]
        for fixed, row in itertools.pairwise(rows):
            place = {key: float(at) for at, key in enumerate(fixed)}
            own = {key: float(at) for at, key in enumerate(row)}

            def middle(key: Key, place: dict[Key, float] = place, own: dict[Key, float] = own) -> float:
                found = [place[other] for other in neighbours[key] if other in place]
                return sum(found) / len(found) if found else own[key]

            row.sort(key=middle)


def _across(layers: list[list[Key]], neighbours: dict[Key, list[Key]], widths: dict[Key, float]) -> dict[Key, float]:
    """The middle of each part from left to right: near those of its neighbours, and apart from each other."""
    middle: dict[Key, float] = {}
    for row in layers:
        at = 0.0
        for key in row:
            middle[key] = at + widths[key] / 2
            at += widths[key] + GAP
        for key in row:
            middle[key] -= (at - GAP) / 2
    for sweep in range(SWEEPS * 3):
        for row in layers if sweep % 2 == 0 else layers[::-1]:
            wanted = {}
            for key in row:
                lanes = [other for other in neighbours[key] if widths[other] <= LANE] if widths[key] <= LANE else []
                found = [middle[other] for other in lanes or neighbours[key]]
                wanted[key] = sum(found) / len(found) if found else middle[key]
            _apart(row, wanted, widths, middle)
    return middle


def _apart(row: list[Key], wanted: dict[Key, float], widths: dict[Key, float], middle: dict[Key, float]) -> None:
    """Give each part of a layer the place that it wants, as far as the order and the gaps allow."""
    blocks: list[tuple[list[Key], list[float], float]] = []  # parts, offsets from the first, the first's place
    for key in row:
        members, offsets, start = [key], [0.0], wanted[key]
        while blocks:
            others, theirs, begin = blocks[-1]
            needed = begin + theirs[-1] + _gap(others[-1], members[0], widths)
            if start >= needed:
                break
            blocks.pop()
            shift = needed - begin
            offsets = theirs + [shift + one for one in offsets]
            members = others + members
            pulls = [4.0 if widths[one] <= LANE else 1.0 for one in members]
            places = (wanted[one] - at for one, at in zip(members, offsets, strict=True))
            start = sum(pull * place for pull, place in zip(pulls, places, strict=True)) / sum(pulls)
        blocks.append((members, offsets, start))
    for members, offsets, start in blocks:
        for key, at in zip(members, offsets, strict=True):
            middle[key] = start + at


def _gap(one: Key, other: Key, widths: dict[Key, float]) -> float:
    is_lane = widths[one] <= LANE or widths[other] <= LANE
    return (widths[one] + widths[other]) / 2 + (LANE_GAP if is_lane else GAP)


def _result(
    layers: list[list[Key]], chains: dict[tuple[Key, Key], list[Key]], middle: dict[Key, float], sizes: dict[Key, Size]
) -> Placed:
    found = Placed()
    down, rows = 0.0, {}
    for row in layers:
        height = max((sizes[key][1] for key in row if key in sizes), default=0.0)
        for key in row:
            rows[key] = (down, down + height)
            found.middles[key] = (middle[key], down + height / 2)
        down += height + LAYER_GAP
    found.height = max(down - LAYER_GAP, 0.0)
    for edge, chain in chains.items():
        found.bends[edge] = [point for lane in chain[1:-1] for point in _lane_points(lane, middle, rows)]
    spans = [
        (middle[key] - _width(key, sizes) / 2, middle[key] + _width(key, sizes) / 2) for row in layers for key in row
    ]
    found.left = min((left for left, _ in spans), default=0.0)
    found.right = max((right for _, right in spans), default=0.0)
    found.middles = {key: at for key, at in found.middles.items() if key in sizes}
    return found


def _lane_points(lane: Key, middle: dict[Key, float], rows: dict[Key, tuple[float, float]]) -> list[Point]:
    top, bottom = rows[lane]
    return [(middle[lane], top), (middle[lane], bottom)]


def _width(key: Key, sizes: dict[Key, Size]) -> float:
    return sizes[key][0] if key in sizes else LANE
