"""Snapshots of state: what an earlier one has read is taken over as long as nothing of it has changed."""

import functools

import torch

from clew.capture.bytecode.instructions import only_returns
from clew.capture.state.snapshot import ReachableState, Snapshot


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


class Array:
    """Stands for an array of a framework."""


def with_arrays(values, earlier=None):
    around = None if earlier is None else earlier.around
    return Snapshot(lambda value: isinstance(value, Array), [(values, name) for name in values], around)


def test_another_array_in_an_object_is_read_without_reading_all_again():
    holder, first, second = Holder(), Array(), Array()
    holder.array, holder.count = first, 1
    values = {"holder": holder, "rows": [first]}
    before = with_arrays(values)
    holder.array, holder.count = second, 2
    values["rows"][0] = second
    after = with_arrays(values, before)
    assert after.around is before.around
    assert list(after.changed()) == []
    assert {(now, was) for _, was, now in before.changed()} == {(second, first), (2, 1)}
    holder.array = first
    after.restore()
    assert holder.array is second
    before.restore()
    assert holder.array is first and holder.count == 1 and values["rows"] == [first]


def test_an_attribute_of_an_array_that_has_come_in_is_taken_away_again():
    holder, new = Holder(), Array()
    holder.array = Array()
    values = {"holder": holder}
    before = with_arrays(values)
    holder.array = new
    after = with_arrays(values, before)
    new.note = "x"
    assert after.changes_class()
    after.restore()
    assert not vars(new)


def test_a_list_that_is_held_more_often_now_is_counted_again():
    values = {"rows": [*[[1]] * 2, [2]]}
    first = taken(values)
    assert first.is_shared(values["rows"][0]) and first.is_held_once(values["rows"][2])
    values["rows"][1] = values["rows"][2]
    second = taken(values, first)
    assert second.is_held_once(values["rows"][0]) and second.is_shared(values["rows"][2])


def test_what_else_stands_in_the_place_of_the_attributes_of_an_object_is_seen():
    holder = Holder()
    values = {"holder": holder}
    before = taken(values)
    items = holder.items
    holder.__dict__ = {"items": items, "more": 1}
    assert [(place.name, was, now) for place, was, now in before.changed()][0][0] == "more"
    before.restore()
    assert vars(holder) == {"items": items}


def test_a_variable_that_was_empty_is_emptied_again():
    def program():
        def reads():
            return early, late

        early, late = 1, 2
        del early
        before = taken({"reads": reads})
        early, late = 3, 4
        changes = [(was, now) for _, was, now in before.changed()]
        before.restore()
        return changes, reads

    changes, reads = program()
    assert sorted(now for _, now in changes) == [3, 4]
    assert reads.__closure__[1].cell_contents == 2
    try:
        held = reads.__closure__[0].cell_contents
    except ValueError:
        held = None
    assert held is None


def test_classes_that_pass_for_arrays_are_compared_as_classes():
    """What tells arrays by their attributes may take a class for one: its dict is no plain one."""

    class Kind:
        level = 1

    tensor = torch.ones(2)
    tensor.note = "kept"
    reached = ReachableState(lambda value: isinstance(value, (torch.Tensor, type)))
    reached.walk([Kind, tensor, torch.zeros(2)])
    assert not reached.changes_class()
    tensor.note = "another"
    assert reached.changes_class()
    reached.arrays.put_back()
    assert tensor.note == "kept" and not reached.changes_class()
    Kind.level = 2
    assert reached.changes_class()
    reached.arrays.put_back()
    assert Kind.level == 1 and not reached.changes_class()
