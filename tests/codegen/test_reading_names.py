"""Code for reading uses a variable again once nobody reads its old value; it still computes the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import clew
from clew.codegen.lines import import_lines


class Layer(nn.Module):
    """A layer with a branch between calls of modules."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(4, 4)
        self.output = nn.Linear(4, 4)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        hidden = self.query(x).relu()
        hidden = hidden + x
        if mask.all():
            scale = hidden.abs().amax()
        else:
            scale = hidden.sum()
        hidden = self.output(hidden)
        hidden = hidden / scale
        return hidden


def sizes_after_values(x: Tensor, mask: Tensor) -> Tensor:
    y = x * 2
    z = y * 3
    if mask.all():
        z = z + 1
    rows = x.shape[0] * x.shape[1]
    return z.reshape(-1) * rows + (y * y.shape[1]).reshape(-1)


def loops_between(x: Tensor, mask: Tensor) -> Tensor:
    x = x + 1
    x = x * 2
    total = x.sum()
    while total > 1:
        total = total / 2
        x = x - total
    x = x.relu()
    x = x + total
    return x


PROGRAMS = [Layer().eval(), sizes_after_values, loops_between]


@pytest.mark.parametrize("program", PROGRAMS, ids=["layer", "sizes_after_values", "loops_between"])
def test_what_is_shown_computes_the_same(program: Callable[..., Any]) -> None:
    x = torch.rand(3, 4)
    captured = clew.trace(program, (x, torch.ones(3) > 0))
    names: dict[str, Any] = {}
    exec(captured.code, names)
    for sizes in ((3, 4), (2, 4)):
        for mask in (torch.ones(2) > 0, torch.zeros(2) > 0):
            x = torch.rand(sizes)
            assert torch.equal(names["forward"](captured, x, mask), program(x, mask))


def test_variables_and_modules_have_short_names_around_a_branch() -> None:
    code = clew.trace(PROGRAMS[0], (torch.rand(3, 4), torch.ones(3) > 0)).code
    assert code.splitlines()[2:] == [
        "def forward(self, x, mask):",
        "    hidden = self.query(x).relu()",
        "    hidden_1 = hidden + x",
        "    if mask.all():",
        "        scale = hidden_1.abs().amax()",
        "    else:",
        "        scale = hidden_1.sum()",
        "    hidden = self.output(hidden_1)",
        "    hidden = hidden / scale",
        "    return hidden",
    ]


class Block(nn.Module):
    """A residual block, and a call with all of its defaults spelled out by torch."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)

    def forward(self, hidden: Tensor) -> Tensor:
        inner = self.first(hidden)
        inner = nn.functional.softmax(inner, dim=-1)
        inner = self.second(inner)
        return hidden + inner


class Blocks(nn.Module):
    """Equal blocks, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, hidden: Tensor) -> Tensor:
        for block in self.blocks:
            hidden = block(hidden)
        return hidden


def test_equal_blocks_read_the_same_and_defaults_are_left_out() -> None:
    captured = clew.trace(Blocks().eval(), (torch.rand(2, 4),))
    lines = captured.code.splitlines()[3:]
    first, second, third = ([line for line in lines if f"blocks[{place}]" in line] for place in range(3))
    assert [line.replace("blocks[0]", "blocks[1]") for line in first] == second
    assert [line.replace("blocks[1]", "blocks[2]") for line in second] == third
    assert "    inner = torch.nn.functional.softmax(inner, dim=-1)" in lines
    assert "_stacklevel" in captured.graph.python_code("self").src


def pooled(x: Tensor) -> Tensor:
    return nn.functional.max_pool2d(x, 2), nn.functional.max_pool2d(x, 2, stride=1)


def test_pooling_names_only_what_the_user_did() -> None:
    code = clew.trace(pooled, (torch.rand(1, 1, 4, 4),)).code
    assert "max_pool2d(x, 2)" in code
    assert "max_pool2d(x, 2, stride=1)" in code


FACTOR = 2.5


def scaled_by_a_variable(x: Tensor) -> Tensor:
    y = x * FACTOR
    return y.cos() - FACTOR


def test_a_number_around_the_program_is_called_by_its_name() -> None:
    code = clew.trace(scaled_by_a_variable, (torch.rand(3),)).code
    assert code.splitlines()[-2:] == ["    y = x * FACTOR", "    return y.cos() - FACTOR"]


class Setting(nn.Module):
    """Sets one attribute and reads another with a long path."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.seen: Any = None

    def forward(self, x: Tensor) -> Tensor:
        y = x @ self.inner.weight
        self.seen = y
        return y * self.inner.weight.sum()


def test_attributes_stand_where_they_are_used_though_others_are_set() -> None:
    code = clew.trace(Setting().eval(), (torch.rand(2, 3),)).code
    assert "y = x @ self.inner.weight" in code
    assert "inner_weight" not in code


def test_imports_of_a_module_share_a_line() -> None:
    lines = ["from b import z", "import torch", "from a import y", "from b import x as w", "import math"]
    assert import_lines(lines) == ["import math", "import torch", "from a import y", "from b import x as w, z"]
