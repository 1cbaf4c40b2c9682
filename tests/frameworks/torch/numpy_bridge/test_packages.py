"""NumPy inside packages that a torch program uses: recorded like the program's own; nothing drawn there is frozen."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import clew

SOURCE = """
import random

import numpy as np
import torch
from numpy import prod

TABLE = np.linspace(0.5, 1.5, 4)
STREAM = np.random.default_rng(3)
PYTHON_STREAM = random.Random(3)


class Schedule:
    def __init__(self, steps=8):
        self.betas = np.linspace(0.1, 0.2, steps, dtype=np.float32)
        self.kept = np.cumprod(1.0 - self.betas)
        self.times = torch.from_numpy(np.arange(0, steps, 3)[::-1].copy())

    def step(self, x, time):
        if time > 2:
            x = x * float(self.kept[time])
        return x + torch.from_numpy(self.betas)[time]


class Noise:
    def __init__(self):
        self.stream = np.random.RandomState(5)

    def __call__(self, x):
        return x * float(self.stream.rand())


NOISE = Noise()


def denoise(x):
    schedule = Schedule()
    for time in schedule.times:
        x = schedule.step(x, time)
    return x


def positions(x):
    table = np.arange(x.shape[0])[:, None] / np.power(10.0, np.arange(x.shape[1])[None])
    table[:, 0::2] = np.sin(table[:, 0::2])
    return x + torch.from_numpy(table).float()


def sizes(x):
    half = int(np.ceil(x.shape[0] / 2))
    return x[:half] / np.sqrt(x.shape[0]) + prod(x.shape)


def scalar(x, t):
    return x * np.exp(-t) * np.clip(t, 0.0, 1.0)


def measured(x):
    level = float(x.abs().mean())
    return x * np.exp(-level) if not np.isnan(level) else x


def held(x):
    return x * torch.from_numpy(TABLE).float() * np.float32(TABLE[1])


def masked(x):
    mask = np.zeros((x.shape[0], x.shape[1]), dtype=bool)
    mask[0] = True
    return x.masked_fill(torch.from_numpy(mask), 0.0)


def round_trip(x):
    rows = x.numpy()
    out = np.zeros((rows.shape[0], 2), dtype=np.float32)
    out[:, 0], out[:, 1] = rows.max(axis=1), rows.argmin(axis=1)
    return torch.from_numpy(out)


def seeded(x):
    return x + torch.from_numpy(np.random.RandomState(1).rand(4)).float()


def drawn(x):
    return x + torch.from_numpy(np.random.randn(*x.shape)).float() * np.random.beta(1.0, 1.0)


def permuted(x):
    return x[torch.from_numpy(np.random.permutation(x.shape[0]))]


def from_stream(x):
    return x * STREAM.random()


def from_python(x):
    return x * PYTHON_STREAM.random()


def from_object(x):
    return NOISE(x)
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module that looks installed."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "noisy_library.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(folder))
    import noisy_library  # noqa: PLC0415  made just now

    yield noisy_library
    del sys.modules["noisy_library"]


@pytest.mark.parametrize("used", [True, False], ids=["used", "itself"])
@pytest.mark.parametrize(
    "name", ["denoise", "positions", "sizes", "measured", "held", "masked", "round_trip", "seeded"]
)
def test_a_function_of_a_package_is_one_graph_for_all_sizes(library: Any, name: str, used: bool) -> None:
    function = getattr(library, name)

    def program(x: torch.Tensor) -> Any:
        return function(x) + 1

    program = program if used else function
    captured = clew.trace(program, args=(torch.rand(2, 4),))
    for size in (2, 3, 1, 5):
        x = torch.rand(size, 4)
        assert torch.equal(captured(x), program(x))


def test_no_call_of_the_package_is_left_in_the_graph(library: Any) -> None:
    def program(x: torch.Tensor) -> Any:
        return library.positions(library.denoise(x))

    captured = clew.trace(program, args=(torch.rand(2, 4),))
    assert not [node for node in captured.graph.nodes if "opaque" in node.meta]


def test_numbers_among_the_arguments_stay_general(library: Any) -> None:
    def program(x: torch.Tensor, t: float) -> Any:
        return library.scalar(x, t)

    captured = clew.trace(program, args=(torch.rand(2, 4), 0.25))
    for t in (0.25, 0.75, 2.5):
        x = torch.rand(3, 4)
        assert torch.equal(captured(x, t), program(x, t))


@pytest.mark.parametrize("name", ["drawn", "permuted", "from_stream", "from_python", "from_object"])
def test_random_numbers_of_a_package_are_drawn_at_each_call(library: Any, name: str) -> None:
    function = getattr(library, name)

    def program(x: torch.Tensor) -> Any:
        return function(x) * 2

    def start(seed: int) -> None:
        np.random.seed(seed)
        library.STREAM.bit_generator.state = np.random.default_rng(seed).bit_generator.state
        library.NOISE.stream.seed(seed)
        library.PYTHON_STREAM.seed(seed)

    before = library.STREAM.bit_generator.state, library.PYTHON_STREAM.getstate()
    captured = clew.trace(program, args=(torch.rand(5, 4),))
    assert before == (library.STREAM.bit_generator.state, library.PYTHON_STREAM.getstate())
    for seed in (1, 2):
        x = torch.rand(5, 4)
        start(seed)
        wanted = [program(x), program(x)]
        start(seed)
        assert all(map(torch.equal, [captured(x), captured(x)], wanted))


def test_capturing_leaves_the_package_as_it_was(library: Any) -> None:
    def program(x: torch.Tensor) -> Any:
        return library.denoise(library.held(x))

    codes = [library.denoise.__code__, library.Schedule.step.__code__]
    table = library.TABLE
    clew.trace(program, args=(torch.rand(2, 4),))
    assert [library.denoise.__code__, library.Schedule.step.__code__] == codes
    assert library.TABLE is table
    assert library.np is np and library.prod is np.prod


def test_a_table_of_the_package_that_changes_is_seen(library: Any) -> None:
    def program(x: torch.Tensor) -> Any:
        return library.held(x)

    x = torch.rand(2, 4)
    captured = clew.trace(program, args=(x,))
    assert torch.equal(captured(x), program(x))
    library.TABLE[1] = 7.0
    try:
        assert torch.equal(captured(x), program(x))
    except clew.GuardError as error:
        assert "holds what it held" in str(error)
