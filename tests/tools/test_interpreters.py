"""Interpreters as tools: logs, recorded values, ranges, the first NaN, and two programs beside each other."""

from __future__ import annotations

import copy

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn

import clew


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        while x.sum() > 10:
            x = x / 2
        return x.log()


def captured_net() -> clew.GraphModule:
    torch.manual_seed(0)
    return clew.trace(Net(), args=(torch.full((2, 4), 900.0),))


def test_a_log_of_a_run() -> None:
    lines: list[str] = []
    logger = clew.Logger(captured_net(), lines.append)
    logger.run(torch.full((2, 4), 900.0))
    assert lines[0] == "x: f32[2, 4] = input"
    assert lines[1].startswith("layers_0: f32[2, 4] = layers.0(x,)  # test_interpreters.py:")
    inside = [line for line in lines if line.startswith("  ")]
    assert any("operator.truediv" in line for line in inside)
    assert lines[-1].startswith("output:")
    again: list[str] = []
    logger.write = again.append
    logger.run(torch.full((2, 4), 900.0))
    assert again == lines


def test_values_are_recorded_as_they_were() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        y.mul_(0)
        return y

    recorder = clew.Recorder(clew.trace(program, args=(torch.ones(2),)))
    recorder.run(x=torch.ones(2))
    assert recorder.values["x"][0].tolist() == [1, 1] and recorder.values["y"][0].tolist() == [2, 2]
    assert recorder.values["mul_"][0].tolist() == [0, 0]


def test_chosen_values_of_each_round() -> None:
    recorder = clew.Recorder(captured_net(), op=torch.div)
    result = recorder.run(torch.full((2, 4), 900.0))
    (values,) = recorder.values.values()
    assert len(values) > 1 and torch.equal(values[-1].log(), result)
    assert all(torch.equal(one / 2, other) for one, other in zip(values, values[1:], strict=False))
    modules = clew.Recorder(captured_net(), module="layers.*")
    modules.run(torch.full((2, 4), 900.0))
    assert sorted(modules.values) == ["layers_0", "layers_1"]


def test_ranges_over_several_runs() -> None:
    captured = captured_net()
    observer = clew.Observer(captured, op=nn.Linear)
    for size in (1.0, 4.0, -8.0):
        observer.run(torch.full((2, 4), size))
    seen = observer.inputs["layers.0"]
    assert (seen.minimum, seen.maximum, seen.count, seen.largest, seen.mean) == (-8.0, 4.0, 24, 8.0, -1.0)
    assert sorted(observer.inputs) == ["layers.0", "layers.1"] and sorted(observer.values) == ["layers_0", "layers_1"]
    assert seen.histogram.sum() == 24 and seen.limit == 8.0
    assert "input of layers.1" in observer.table() and "99.9%" in observer.table()


def test_histograms_grow_and_tell_quantiles() -> None:
    numbers = torch.arange(1000.0)
    captured = clew.trace(lambda x: x * 1, args=(numbers,))
    observer = clew.Observer(captured)
    observer.run(numbers / 1000)
    assert observer.values["x"].quantile(0.5) == pytest.approx(0.5, abs=0.002)
    observer.run(-numbers)
    seen = observer.values["x"]
    assert seen.limit == 1024.0 and seen.histogram.sum() == 2000
    assert seen.quantile(0.75) == pytest.approx(500, abs=2) and seen.quantile(1.0) == 999


def test_the_first_nan_and_its_line() -> None:
    captured = captured_net()
    assert clew.find_nan(captured, torch.full((2, 4), 900.0)) is None
    broken = copy.deepcopy(captured)
    with torch.no_grad():
        broken.layers[1].weight[0, 0] = float("nan")
    found = clew.find_nan(broken, torch.full((2, 4), 900.0))
    assert found is not None and found.node.name == "layers_1" and found.what == "NaN" and found.count == 2
    assert "x = torch.relu(layer(x))" in found.line and "layers.1" in str(found)
    assert "given x_1: f32[2, 4] from 0 to" in str(found)


def test_infinite_numbers_on_request_and_inside_of_loops() -> None:
    captured = captured_net()
    nothing = torch.full((2, 4), -1e30)
    assert clew.find_nan(captured, nothing) is None or clew.find_nan(captured, nothing).what == "NaN"

    def growing(x: torch.Tensor) -> torch.Tensor:
        while x.sum() < 1e39:
            x = x * x
        return x - x

    looped = clew.trace(growing, args=(torch.full((1,), 1e20),))
    found = clew.find_nan(looped, torch.full((1,), 1e10))
    assert found is not None and "return x - x" in found.line
    found = clew.find_nan(looped, torch.full((1,), 1e10), inf=True)
    assert found is not None and found.what == "inf" and found.round == 1 and "x = x * x" in found.line
    assert "in round 2" in str(found)


def test_errors_behind_a_nan_do_not_hide_it() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.cholesky(x.log())

    captured = clew.trace(program, args=(torch.full((1, 1), 9.0),))
    found = clew.find_nan(captured, torch.full((1, 1), -9.0))
    assert found is not None and found.node.target == "log"
    with pytest.raises(torch.linalg.LinAlgError):
        clew.find_nan(captured, torch.full((1, 1), 0.5))


def test_nan_in_numpy_and_jax() -> None:
    captured = clew.trace(lambda x: np.sqrt(x - 2) + 1, args=(np.full(2, 3.0),))
    with np.errstate(invalid="ignore"):
        assert clew.find_nan(captured, np.ones(2)).node.target is np.sqrt
    in_jax = clew.trace(lambda x: jnp.log(x) * 2, args=(jnp.ones(2),))
    found = clew.find_nan(in_jax, -jnp.ones(2))
    assert found is not None and "log" in found.node.format_node()


def test_two_programs_that_agree() -> None:
    captured = captured_net()
    found = clew.compare(captured, copy.deepcopy(captured), torch.full((2, 4), 900.0))
    assert found and found.first is None and not found.only_left and not found.only_right
    assert {"truediv", "log"} <= {str(getattr(pair.left.target, "__name__", pair.left.target)) for pair in found.pairs}
    assert "0 differ" in str(found)


def test_the_first_node_that_differs() -> None:
    captured = captured_net()
    other = copy.deepcopy(captured)
    with torch.no_grad():
        other.layers[1].weight += 0.01
    found = clew.compare(captured, other, torch.full((2, 4), 1.0))
    assert not found and found.first.left.name == found.first.right.name == "layers_1"
    assert "first at layers_1" in str(found) and "x = torch.relu(layer(x))" in str(found)
    assert "differs" in found.table(only_different=True)
    assert clew.compare(captured, other, torch.full((2, 4), 1.0), atol=0.1).pairs[0].differs is False


def test_random_numbers_are_the_same_and_memory_that_nobody_wrote_is_left_out() -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        places = torch.empty_like(x)
        places.copy_(x + torch.rand(3))
        return places * 2

    x = torch.rand(3)
    captured = clew.trace(noisy, args=(x,))
    state = torch.get_rng_state()
    found = clew.compare(captured, copy.deepcopy(captured), x)
    assert found and "empty_like" not in {str(getattr(pair.left.target, "__name__", "")) for pair in found.pairs}
    assert not torch.equal(state, torch.get_rng_state())  # as after one call


def test_nodes_are_matched_by_structure_and_then_by_name() -> None:
    def one(x: torch.Tensor) -> torch.Tensor:
        scaled = x * 2
        return scaled.tanh() + 1

    def two(x: torch.Tensor) -> torch.Tensor:
        other_name = x * 2
        twice = other_name + 0
        return twice.tanh() + 1

    x = torch.rand(3)
    found = clew.compare(clew.trace(one, args=(x,)), clew.trace(two, args=(x,)), x)
    names = {(pair.left.name, pair.right.name) for pair in found.pairs}
    assert ("scaled", "other_name") in names and ("tanh", "tanh") in names
    assert found and found.only_right == ["twice"] and found.only_left == []


def test_a_program_that_runs_a_loop_longer() -> None:
    def halved(limit: float) -> clew.GraphFunction:
        def program(x: torch.Tensor) -> torch.Tensor:
            while x.sum() > limit:
                x = x / 2
            return x

        return clew.trace(program, args=(torch.ones(4),))

    found = clew.compare(halved(2.0), halved(1.0), torch.ones(4))
    assert not found and "times" in found.first.why
