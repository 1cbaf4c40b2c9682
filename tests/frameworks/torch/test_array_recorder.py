"""The recorder of arrays inside a torch capture: it writes into its owner's graph, and names what it takes from it."""

from __future__ import annotations

import pytest

from clew.capture.recording.example_recorder import ExampleRecorder
from clew.frameworks.torch.numpy_bridge.arrays import ArrayRecorder
from clew.frameworks.torch.recorder import TorchRecorder

OWN = {"identity", "raised"}


@pytest.mark.parametrize("name", sorted(vars(ExampleRecorder())))
def test_what_every_recorder_has_is_the_owners_or_its_own(name: str) -> None:
    owner = TorchRecorder()
    arrays = ArrayRecorder(owner)
    if name in OWN:
        assert name in vars(arrays)
    else:
        assert getattr(arrays, name) is getattr(owner, name)


def test_what_the_owner_replaces_is_replaced() -> None:
    owner = TorchRecorder()
    arrays = ArrayRecorder(owner)
    owner.guarded, owner.open = set(), False
    assert arrays.guarded is owner.guarded
    assert not arrays.open
    with arrays.paused():
        assert arrays.depth == owner.depth == 1


def test_a_recorder_of_arrays_has_nothing_of_torch() -> None:
    arrays = ArrayRecorder(TorchRecorder())
    with pytest.raises(AttributeError, match="sizes"):
        arrays.sizes  # type: ignore[attr-defined]  # noqa: B018


def test_arrays_that_compare_objects_do_so_where_the_owner_asks_for_any_identity() -> None:
    owner = TorchRecorder()
    owner.identity = owner.identity._replace(is_asked=True, of_truths=True)
    assert ArrayRecorder(owner).identity.of_objects
