"""Which results of a segment are views: an engine whose results lie in memory of its own builds them anew.

What a segment was given and gave once comes in; out comes, for each result, what it is a view of. Sizes and strides are
those of that run. Importing this file imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from clew.errors import BackendError


class _View(NamedTuple):
    """That a result is a view of what was given, or of another result."""

    is_given: bool
    place: int
    shift: int
    """How much later in memory it begins."""


class ResultViews:
    """Builds the results of a segment of what an engine gives."""

    def __init__(self, given: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> None:
        self.views = [_view_of(place, given, results) for place in range(len(results))]
        self.kinds = [(one.shape, one.stride()) for one in results]

    def made(self, given: Sequence[torch.Tensor], own: Callable[[int], torch.Tensor]) -> list[torch.Tensor]:
        """The results: ``own`` gives memory for those that are no views."""
        found: list[Any] = [own(place) if view is None else None for place, view in enumerate(self.views)]
        for place, view in enumerate(self.views):
            if view is None:
                continue
            size, stride = self.kinds[place]
            base = given[view.place] if view.is_given else found[view.place]
            is_same = (base.shape, base.stride(), view.shift) == (size, stride, 0) and not view.is_given
            view_of = base.detach().as_strided(size, stride, base.storage_offset() + view.shift)
            found[place] = base if is_same else view_of
        return found


def _view_of(number: int, given: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> _View | None:
    """What a result is a view of; None if it has memory of its own."""
    own = results[number]
    for place, one in enumerate(given):
        if share(one, own):
            return _View(True, place, int(own.storage_offset() - one.storage_offset()))
    sharing = [place for place, one in enumerate(results) if share(one, own)]
    whole = [place for place in sharing if results[place].nbytes == own.untyped_storage().nbytes()]
    if len(sharing) > 1 and whole:
        is_own = whole[0] == number
        return (
            None if is_own else _View(False, whole[0], int(own.storage_offset() - results[whole[0]].storage_offset()))
        )
    for place in sharing:
        if place != number and torch._C._overlaps(results[place], own):  # type: ignore[attr-defined]
            raise BackendError(f"results {place} and {number} of a segment are views of the same values")
    return None


def share(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors lie in the same memory."""
    return one.numel() > 0 and one.untyped_storage()._cdata == other.untyped_storage()._cdata
