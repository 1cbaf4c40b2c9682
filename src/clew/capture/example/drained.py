"""Programs that give an iterator: a generator, a ``map``, a ``filter``.

The capture walks it to its end; the graph computes all values at the call, and gives an iterator of the same class that
hands them out. The original computes each value when it is asked for, so nothing may have changed by then: that is
looked at with each value, and a guard fails otherwise. A program that does more than compute is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import islice
from types import GeneratorType
from typing import Any

from clew.capture.example.contents import contents, same_contents
from clew.errors import CaptureError, GuardError

_MOST = 10_000
KINDS: dict[str, type] = {"generator": GeneratorType, "map": map, "filter": filter}


class Drained:
    """What an iterator gave to the capture; ``watched`` are the arrays and containers that it may read again."""

    def __init__(self, kind: str, items: list[Any], value: Any, watched: list[Any]) -> None:
        self.kind, self.items, self.value, self.watched = kind, items, value, watched


def drain(result: Any) -> Drained | None:
    """Walk an iterator that a program gave to its end; None for any other result."""
    kind = next((name for name, kind in KINDS.items() if type(result) is kind), None)
    if kind is None:
        return None
    returned: list[Any] = []
    items = list(islice(_walk(result, returned), _MOST))
    if len(items) == _MOST:
        raise CaptureError(
            f"the program gives a {kind} of very many values",
            why="the graph would compute all of them at once",
            fixes=("give a part of them",),
        )
    return Drained(kind, items, returned[0], [])


def _walk(iterator: Any, returned: list[Any]) -> Iterator[Any]:
    while True:
        try:
            item = next(iterator)
        except StopIteration as end:
            returned.append(end.value)
            return
        yield item


def hand_out(kind: str, items: list[Any], value: Any, watched: list[Any], world: Callable[[], Any]) -> Any:
    """An iterator of this kind over the items."""
    walking = _checked(kind, items, value, _standing(watched, world), watched, world)
    if kind == "map":
        return map(_itself, walking)
    return filter(_always, walking) if kind == "filter" else walking


def _checked(
    kind: str, items: list[Any], value: Any, before: Any, watched: list[Any], world: Callable[[], Any]
) -> Generator[Any, Any, Any]:
    for item in items:
        _check(kind, before, watched, world)
        if (yield item) is not None:
            raise GuardError("the graph assumed that nothing is sent into its generator", fixes=("call the original",))
    _check(kind, before, watched, world)
    return value


def _check(kind: str, before: Any, watched: list[Any], world: Callable[[], Any]) -> None:
    versions, held, around = _standing(watched, world)
    same = versions == before[0] and around == before[2]
    if not same or not all(map(same_contents, held, before[1])):
        raise GuardError(
            f"the graph assumed that nothing changes while its {kind} is walked",
            why="the original would see the change: it computes each value when it is asked for",
            fixes=("walk it at once: list(...)", "call the original"),
        )


def _standing(watched: list[Any], world: Callable[[], Any]) -> tuple[list[Any], list[Any], Any]:
    arrays = [value for value in watched if hasattr(type(value), "_version")]
    others = [value for value in watched if not hasattr(type(value), "_version")]
    return [None if array.is_inference() else array._version for array in arrays], list(map(contents, others)), world()


def _itself(value: Any) -> Any:
    return value


def _always(value: Any) -> bool:
    return True
