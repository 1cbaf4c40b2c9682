"""Snapshots of state: what an earlier one has read is taken over as long as nothing of it has changed."""

import functools

from clew.capture.bytecode.instructions import only_returns
from clew.capture.state.snapshot import Snapshot


def no_array(value):
    return False


class Holder:
    def __init__(self):
        self.items = [1, [2]]


def with_default(value=(1,)):
    return value


@functools.cache
def remembered(number):
    return [number]


def taken(values, earlier=None):
    return Snapshot(no_array, [(values, name) for name in values], None if earlier is None else earlier.around)


def test_what_has_not_changed_is_not_read_again():
    values = {"held": Holder(), "function": with_default, "text": "x"}
    first = taken(values)
    assert taken(values, first).around is first.around


def test_a_change_between_two_snapshots_is_read():
    values = {"held": Holder(), "rows": []}
    first = taken(values)
    new: list[int] = []
    values["held"].items[1].append(new)
    second = taken(values, first)
    assert second.around is not first.around
    assert second.knows(new) and not first.knows(new)
    new.append(7)
    values["rows"].append(8)
    assert {(place.place[1], now) for place, _, now in second.changed()} == {(0, 7), (0, 8)}
    second.restore(was_looked_at=True)
    assert new == [] and values == {"held": values["held"], "rows": []}


def test_another_default_and_another_remembered_value_are_read():
    values = {"function": with_default, "cached": remembered}
    first = taken(values)
    found: list[int] = []
    before = with_default.__defaults__
    with_default.__defaults__ = (found,)
    try:
        second = taken(values, first)
        assert second.knows(found) and not first.knows(found)
    finally:
        with_default.__defaults__ = before
    third = taken(values, first)
    assert third.knows(remembered(3)) is False
    assert taken(values, third).knows(remembered(3))
    remembered.cache_clear()


def test_what_was_not_looked_at_is_restored_too():
    values = {"held": Holder()}
    snapshot = taken(values)
    list(snapshot.changed())
    values["held"].items.append(3)
    values["held"].more = 4
    snapshot.restore()
    assert values["held"].items == [1, [2]] and not hasattr(values["held"], "more")


def test_a_side_without_code_only_returns():
    seen: list[int] = []
    assert only_returns(lambda: None)
    assert not only_returns(lambda: seen)
    assert not only_returns(lambda: seen.append(1))
    assert not only_returns(print)
