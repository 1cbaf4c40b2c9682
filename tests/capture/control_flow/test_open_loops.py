"""Loops over sizes, rows and lists out of tensors hold for any number of rounds, without an option.

Each program is captured once and called on inputs with other numbers of rounds, where it must give what the original
gives; lists that leave the function's sight must be guarded instead.
"""

import ast
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import clew
from clew.capture.control_flow.list_escape import FileFunctions, ListEscape
from clew.errors import GuardError

Calls = list[tuple[Tensor, ...]]

GRIDS: Calls = [
    (torch.tensor([[1, 2, 4], [2, 2, 2]]),),
    (torch.tensor([[3, 1, 2]]),),
    (torch.tensor([[1, 2, 4], [2, 2, 2], [1, 4, 2]]),),
]
PARTS: Calls = [
    (torch.arange(12.0).reshape(6, 2), torch.tensor([2, 4])),
    (torch.arange(12.0).reshape(6, 2), torch.tensor([1, 2, 3])),
    (torch.arange(12.0).reshape(6, 2), torch.tensor([6])),
]
ROWS: Calls = [(torch.arange(12.0).reshape(3, 4) - 5,), (torch.arange(8.0).reshape(2, 4),), (torch.ones(5, 1),)]


def places(grid: Tensor) -> Tensor:
    found = []
    for (t, h, w), factor in zip(grid.tolist(), torch.tensor([2]).expand(len(grid)).tolist(), strict=False):
        rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        found.append(torch.stack([rows.flatten(), columns.flatten() * factor], -1).repeat(t, 1))
    return torch.cat(found)


def windows(grid: Tensor) -> tuple[Tensor, Tensor]:
    found, ends, start = [], [0], 0
    for t, h, w in grid.tolist():
        lengths = torch.arange(h * t) + w
        ends.extend((lengths.cumsum(0) + ends[-1]).tolist())
        found.append(lengths + start)
        start += t * h
    return torch.cat(found), torch.tensor(ends, dtype=torch.int32)


def blocks_of(lengths: list[int], x: Tensor) -> Tensor:
    ends = torch.tensor(lengths).cumsum(-1)
    starts = torch.tensor([0] + lengths[:-1]).cumsum(-1)
    mask = x.new_zeros(int(ends[-1]), int(ends[-1]))
    for start, end in zip(starts, ends, strict=True):
        mask[start:end, start:end] = 1
    return mask


def blocks(x: Tensor, sizes: Tensor) -> Tensor:
    parts = x.split(sizes.tolist())
    return blocks_of([part.shape[0] * part.shape[1] for part in parts], x)


def rows_by_their_parts(grid: Tensor) -> Tensor:
    found = []
    for row in grid.tolist():
        t, h, _ = row
        found.append(torch.arange(h) * row[-1] + t)
    return torch.cat(found)


def pairs_of_parts(x: Tensor, sizes: Tensor) -> Tensor:
    splits = [torch.split(one, sizes.tolist()) for one in (x, x * 2, x + 1)]
    return torch.cat([(a * b).cumsum(0) + c.sum() for a, b, c in zip(*splits)])  # noqa: B905


def parts_in_a_loop(x: Tensor, sizes: Tensor) -> Tensor:
    total = x.sum() * 0
    for number, part in enumerate(x.split(sizes.tolist())):
        total = total * 0.5 + part.sum() * number
    return total


def padded_rows(x: Tensor) -> Tensor:
    kept = [row[row >= 0] for row in x]
    padded = x.new_zeros(x.shape[0], max(one.shape[0] for one in kept))
    for i, one in enumerate(kept):
        padded[i, : one.shape[0]] = one
    return padded


def tuples_of_rows(x: Tensor) -> Tensor:
    pairs = [(row.sum(), row * 2) for row in x]
    totals = [pair[0] for pair in pairs]
    return torch.stack([row * total for (_, row), total in zip(pairs, totals, strict=False)])


def steps(x: Tensor) -> Tensor:
    state, found = x[0] * 0, []
    for i in range(x.shape[0]):
        state = torch.tanh(state + x[i])
        found.append(state)
    return torch.stack(found) * len(found)


def repeated(x: Tensor) -> Tensor:
    sizes = [(x.shape[1] + 1, 3)] * x.shape[0]
    kinds = [0, 7] * len(x)
    rows = [row[: size[0] // 2] * size[1] for row, size in zip(x, sizes)]  # noqa: B905
    return torch.stack(rows) + torch.tensor(kinds[: len(rows)])[:, None]


def handed_to_functions(x: Tensor) -> Tensor:
    rows = [row * 2 for row in x]
    return _joined(rows, factor=[row.sum() for row in rows])


def _joined(rows: list[Tensor], factor: list[Tensor]) -> Tensor:
    found = []
    for row, one in zip(rows, factor, strict=False):
        scaled: Tensor = row * one
        found.append(scaled)
    rows = torch.stack(found) * len(rows)
    return rows + rows.sum()


OPEN = [
    *((program, GRIDS) for program in (places, windows, rows_by_their_parts)),
    *((program, PARTS) for program in (pairs_of_parts, parts_in_a_loop, blocks)),
    *((program, ROWS) for program in (padded_rows, tuples_of_rows, steps, repeated, handed_to_functions)),
]


@pytest.mark.parametrize(("program", "calls"), OPEN, ids=lambda one: getattr(one, "__name__", ""))
def test_any_number_of_rounds(program: Callable[..., Any], calls: Calls) -> None:
    captured = clew.trace(program, args=calls[0])
    for args in calls:
        found, wanted = captured(*args), program(*args)
        for one, other in zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]:
            assert one.dtype == other.dtype
            assert torch.equal(one, other)
    assert "for " in captured.code


def asked_for_its_type(x: Tensor) -> Tensor:
    found = [row * 2 for row in x]
    return torch.stack(found) * (2 if type(found) is list else 3)


def handed_on(x: Tensor) -> Tensor:
    found = []
    for row in x:
        found.append(row * 2)
    return stacked(found)


def stacked(rows: list[Tensor]) -> Tensor:
    return torch.stack(list(map(torch.neg, rows)))


def repeated_and_asked(x: Tensor) -> Tensor:
    places = [2, 3] * x.shape[0]
    return x[:2] * (2 if type(places) is list else 3) + len(places)


@pytest.mark.parametrize(
    "program", [asked_for_its_type, handed_on, repeated_and_asked], ids=lambda one: one.__name__
)
def test_a_list_out_of_sight_keeps_its_length(program: Callable[..., Any]) -> None:
    captured = clew.trace(program, args=ROWS[0])
    other = ROWS[0][0] * 3
    assert all(map(torch.equal, captured(other), program(other)))
    with pytest.raises(GuardError, match=r"x\.shape\[0\] == 3"):
        captured(*ROWS[1])


def test_guards_alone_unroll() -> None:
    captured = clew.trace(steps, args=ROWS[0], control_flow="guard")
    assert "for " not in captured.code.replace("for_", "").split("def forward")[1].split(":", 1)[0]
    with pytest.raises(GuardError):
        captured(*ROWS[1])


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("out = []\nfor x in xs: out.append(x)\ny = torch.cat(out)", {"out"}),
        ("out = []\nfor x in xs: out.append(x)\nreturn out", set()),
        ("out = []\nfor x in xs: out.append(x)\ny = torch.tensor([0] + out[:-1])", {"out"}),
        ("out = []\nfor x in xs: out.append(x)\nreturn out + [0]", set()),
        ("out = []\nfor x in xs: out.append(x)\ny = torch.tensor(out + ys)", set()),
        ("if (out := get()): return out\nout = []\nfor x in xs: out.append(x)\ny = torch.cat(out)", {"out"}),
        ("out = []\nfor x in xs: out.append(x)\nout = torch.cat(out)\nreturn out", {"out"}),
        ("out = []\nfor x in xs: out.append(x)\nif y:\n  out = torch.cat(out)\nreturn out", set()),
        ("out = []\nwhile y:\n  print(out)\n  for x in xs: out.append(x)", set()),
        ("out = []\nfor x in xs: out.append(x)\nf = lambda: out", set()),
        ("out = []\nfor x in xs: out.append(x)\nout += [1]", set()),
        ("out = []\nfor x in xs: out.append(x)\ny = out[0], out[-1]", {"out"}),
        ("out = []\nfor x in xs: out.append(x)\nout[0] = 1", set()),
        ("out = []\nfor x in xs: out.append(x)\ny = out[1]", set()),
        ("add = out.append\nfor x in xs: add(x)\ny = len(out)", {"out"}),
        ("for x in xs: out.append(x)\nother = out\nprint(other)", set()),
        ("for x in xs: out.append(x)\nreturn counting(1, out)", {"out"}),
        ("for x in xs: out.append(x)\nreturn counting(out, 1)", set()),
        ("for x in xs: out.append(x)\nreturn counting(*ys, out)", set()),
        ("for x in xs: out.append(x)\nreturn counting(0, rows=out)", {"out"}),
        ("for x in xs: out.append(x)\nreturn other.counting(1, out)", set()),
    ],
)
def test_lists_that_do_not_escape(source: str, names: set[str]) -> None:
    tree = ast.parse(f"def f():\n{''.join(f'  {line}{chr(10)}' for line in source.splitlines())}")
    around = ast.parse("def counting(first, rows):\n  print(first)\n  return counting(len(rows), rows)")
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    (loop,) = [node for node in ast.walk(definition) if isinstance(node, ast.For)]
    assert ListEscape(definition.body, FileFunctions(around)).names[loop] & {"out"} == names
