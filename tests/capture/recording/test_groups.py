"""Lists that a program makes of its data and goes through by hand: groups, iterators, repeated lists, parts."""

import itertools

import pytest
import torch

import clew


def positions(x, types, grids):
    """What models with images among their text do: each row of tokens is taken apart into text and images."""
    rows = {1: iter(grids) if grids is not None else None, 2: None}
    found = torch.zeros(x.shape[0], x.shape[1], dtype=torch.int64)
    lengths: list = []
    for place, row in enumerate(x):
        groups = []
        for key, group in itertools.groupby(enumerate(types[place].tolist()), lambda item: item[1]):
            group = list(group)
            groups.append((key, group[0][0], group[-1][0] + 1))
        at, parts = 0, []
        for key, start, end in groups:
            if key == 0:
                parts.append(torch.arange(end - start, device=x.device) + at)
                at += end - start
            else:
                grid = next(rows[key])
                parts.append(torch.full((end - start,), 1, device=x.device) + at)
                at += max(grid[0], grid[1]) // 2
        found[place] = torch.cat(parts)
        lengths.append(found[place].max() - len(row))
    return found, torch.tensor(lengths)


def tokens(batch, before, inside, after):
    types = torch.tensor([[0] * before + [1] * inside + [0] * after] * batch)
    return torch.zeros(types.shape), types, torch.arange(2, 2 + 2 * batch).view(batch, 2)


@pytest.mark.parametrize("batch", [1, 2])
def test_groups_may_have_any_length_and_there_may_be_any_number_of_rows(batch):
    captured = clew.trace(positions, args=tokens(batch, 3, 2, 2))
    for sizes in ((batch, 3, 2, 2), (3, 1, 4, 1), (1, 2, 2, 5)):
        given = tokens(*sizes)
        assert all(map(torch.equal, captured(*given), positions(*given)))


def test_groups_of_other_kinds_are_refused():
    captured = clew.trace(positions, args=tokens(1, 3, 2, 2))
    for sizes in ((1, 3, 2, 0), (1, 4, 0, 0)):
        with pytest.raises(clew.GuardError, match="keys_of"):
            captured(*tokens(*sizes))


def test_rows_that_are_grouped_otherwise_are_captured_on_their_own():
    x, types, grids = tokens(2, 3, 2, 2)
    types[1] = torch.tensor([0, 1, 1, 1, 1, 1, 1])
    captured = clew.trace(positions, args=(x, types, grids))
    assert all(map(torch.equal, captured(x, types, grids), positions(x, types, grids)))


def test_an_iterator_that_is_advanced_by_hand_ends_as_it_does_in_python():
    def added(x, more):
        rows = iter(more)
        out = torch.zeros(x.shape[0])
        for place, row in enumerate(x):
            if row.sum() > 0:
                out[place] = row[0] + next(rows)[0]
        return out

    captured = clew.trace(added, args=(torch.ones(3, 2), torch.ones(4, 2)))
    x, more = torch.tensor([[1.0, 1], [-1, -1], [2, 2], [3, 3]]), torch.arange(8.0).view(4, 2)
    assert torch.equal(captured(x, more), added(x, more))
    for function in (added, captured):
        with pytest.raises(StopIteration):
            function(x, more[:2])


def test_a_repeated_list_may_have_any_length():
    def scaled(x):
        found = []
        for row, by in zip(x, [2] * x.shape[0], strict=True):
            found.append(row * by)
        return torch.stack(found)

    captured = clew.trace(scaled, args=(torch.ones(3, 2),))
    assert torch.equal(captured(torch.ones(5, 2)), torch.full((5, 2), 2.0))


class Holder:
    """Keeps what it is given."""


def halves(x, lengths):
    held = Holder()
    sizes = lengths.tolist()
    held.parts = torch.split(x, sizes)
    return held


def joined(x, lengths):
    return torch.cat(halves(x, lengths).parts) + 1


def summed(x, lengths):
    parts = halves(x, lengths).parts
    return sum(part.sum() for part in parts), len(parts), parts


def test_what_is_taken_apart_by_data_is_handed_on_whole():
    captured = clew.trace(joined, args=(torch.arange(6.0), torch.tensor([1, 2, 3])))
    for lengths in ([6], [2, 2, 2], [1, 1, 1, 1, 1, 1]):
        assert torch.equal(captured(torch.arange(6.0), torch.tensor(lengths)), torch.arange(6.0) + 1)


def test_whoever_looks_at_parts_relies_on_how_many_there_are():
    captured = clew.trace(summed, args=(torch.arange(6.0), torch.tensor([1, 2, 3])))
    total, count, parts = captured(torch.arange(6.0), torch.tensor([4, 1, 1]))
    assert total == 15 and count == 3 and type(parts) is tuple and [len(part) for part in parts] == [4, 1, 1]
    with pytest.raises(clew.GuardError, match="len"):
        captured(torch.arange(6.0), torch.tensor([3, 3]))


def of_exact_class(x):
    numbers, sizes = list(range(x.shape[0])), tuple(x.shape)
    found = (lambda value: type(value) is list)(numbers), type(numbers) is list, numbers.__class__ is list
    return x + sum(found) + 8 * (lambda value: type(value) is int)(sizes[0])


def test_lists_of_any_length_are_lists_to_whoever_asks() -> None:
    x, longer = torch.ones(3, 2), torch.ones(5, 2)
    captured = clew.trace(of_exact_class, args=(x,))
    assert torch.equal(captured(x), x + 11)
    assert torch.equal(captured(longer), longer + 11)
