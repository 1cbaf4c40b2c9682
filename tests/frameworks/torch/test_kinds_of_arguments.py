"""Arguments that may be of another kind: lists of any length, None or a tensor, state that the first call sets."""

from __future__ import annotations

import pytest
import torch

import clew


def pad(sequences, least=0):
    longest = max([len(one) for one in sequences] + [least])
    out = torch.full((len(sequences), longest), -1.0)
    for row, one in enumerate(sequences):
        out[row, : len(one)] = one
    return out


def masked(x, mask=None):
    if mask is None:
        return x
    return x.masked_fill(mask, 0) if mask.dtype == torch.bool else x + mask


class Last(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        out = x if self.last is None else x - self.last
        self.last = x
        return out


def body(captured):
    """The code of a capture, without the lines before its function."""
    return captured.code[captured.code.index("def forward") :].splitlines()[1:]


def test_a_list_is_walked_whatever_its_length():
    captured = clew.trace(pad, ([torch.ones(2), torch.ones(3)],), dynamic=True)
    assert body(captured) == [
        "    getitem = []",
        "    for one in sequences:",
        "        getitem_1 = one.shape[0]",
        "        getitem.append(getitem_1)",
        "    max_1 = max(getitem + [least])",
        "    out = torch.full((len(sequences), max_1), -1.0)",
        "    for getitem_2, getitem_3 in enumerate(sequences):",
        "        out[getitem_2, :getitem_3.shape[0]] = getitem_3",
        "    return out",
    ]
    for given in ([], [torch.ones(4)], [torch.ones(1), torch.ones(5), torch.ones(2)]):
        assert torch.equal(captured(given, 1), pad(given, 1))


def test_what_is_relied_on_of_items_is_guarded():
    captured = clew.trace(pad, ([torch.ones(2), torch.ones(3)],), dynamic=True)
    told = r"each item of sequences is Tensor \(rank 1, mask False\)"
    with pytest.raises(clew.GuardError, match=told):
        captured([torch.ones(2), torch.ones(3, 2)])
    with pytest.raises(clew.GuardError, match=told):
        captured([torch.ones(2), 3.0])


def test_a_list_has_the_length_of_the_example_without_dynamic():
    captured = clew.trace(pad, ([torch.ones(2), torch.ones(3)],))
    with pytest.raises(clew.GuardError, match=r"len\(sequences\) == 2"):
        captured([torch.ones(2)])


@pytest.mark.parametrize("example", [(torch.ones(2),), (torch.ones(2), torch.ones(2) > 0)])
def test_a_tensor_may_be_missing(example):
    captured = clew.trace(masked, example, dynamic=True)
    x = torch.tensor([1.0, 2.0])
    for given in ((x,), (x, x), (x, x > 1)):
        assert torch.equal(captured(*given), masked(*given))


def test_facts_of_a_tensor_that_may_be_missing_are_read_where_it_is_there():
    lines = body(clew.trace(masked, (torch.ones(2),), dynamic=True))
    assert lines[0] == "    if mask is None:"
    assert any("mask.dtype" in line for line in lines[1:])


@pytest.mark.parametrize("dynamic", [False, True])
def test_what_the_first_call_leaves_is_a_branch(dynamic):
    module = Last()
    captured = clew.trace(module, (torch.ones(2),), dynamic=dynamic)
    assert body(captured)[:5] == [
        "    last = self.last",
        "    if last is None:",
        "        self.last = x",
        "        return x",
        "    is_tensor = items_are((last,), ('Tensor',), ())",
    ]
    for value in (1.0, 3.0, 7.0):
        given = torch.full((2,), value)
        assert torch.equal(captured(given), module(given))
        assert torch.equal(captured.last, module.last)


def test_something_else_than_what_the_first_call_leaves_is_refused():
    captured = clew.trace(Last(), (torch.ones(2),))
    captured.last = "a text"
    with pytest.raises(clew.GuardError, match="last is Tensor"):
        captured(torch.ones(2))


def test_a_saved_capture_has_the_branches(tmp_path):
    captured = clew.trace(Last(), (torch.ones(2),))
    clew.save(captured, tmp_path / "last.clew")
    loaded = clew.load(tmp_path / "last.clew")
    loaded(torch.ones(2))
    assert torch.equal(loaded(torch.full((2,), 3.0)), torch.full((2,), 2.0))


@pytest.mark.parametrize("fails", [False, True])
def test_an_array_that_may_be_missing_is_asked_for_its_size(fails: bool) -> None:
    def f(x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        if mask is None:
            if fails:
                raise ValueError("no mask")
            return x
        return x * mask.shape[0] + mask.shape[1]

    captured = clew.trace(f, args=(torch.ones(3), torch.ones(2, 3)), dynamic=True)
    for mask in (torch.ones(2, 3), torch.ones(5, 4)):
        assert torch.equal(captured(torch.ones(3), mask), f(torch.ones(3), mask))
    if fails:
        with pytest.raises(ValueError, match="no mask"):
            captured(torch.ones(3), None)
    else:
        assert torch.equal(captured(torch.ones(3), None), torch.ones(3))
