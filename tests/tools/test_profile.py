"""profile: time, bytes and memory by node and module, as they were run, and the same without running."""

from __future__ import annotations

import json
from pathlib import Path

import jax.numpy as jnp
import pytest
import torch
from torch import nn

import clew
from clew.errors import ClewError, GuardError
from clew.tools.profile import NodeProfile, Profile

KILO = 1024 * 4  # bytes of 1024 floats


def floats(*sizes: int) -> torch.Tensor:
    return torch.ones(sizes)


def rows(found: Profile) -> dict[str, NodeProfile]:
    return {row.node.name: row for row in found.nodes}


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.second(torch.relu(self.first(x)))


class Tower(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def profiled_tower() -> Profile:
    model = Tower()
    return clew.profile(clew.trace(model, args=(floats(3, 4),)), floats(3, 4))


def test_modules_count_for_those_around_them() -> None:
    found = profiled_tower()
    modules = {one.path: one for one in found.by_module()}
    assert list(modules) == ["", "blocks.0", "blocks.0.first", "blocks.0.second"] + [
        "blocks.1",
        "blocks.1.first",
        "blocks.1.second",
    ]
    assert (modules["blocks.0"].kind, modules["blocks.0.first"].kind) == ("Block", "Linear")
    assert modules["blocks.0"].macs == 2 * 3 * 4 * 8 and modules[""].macs == found.macs == 4 * 3 * 4 * 8
    assert modules["blocks.0"].parameters == 4 * 8 + 8 + 8 * 4 + 4 and modules[""].parameters == found.parameters == 152
    assert modules[""].flops == found.flops and modules[""].bytes == found.bytes
    assert modules[""].seconds == pytest.approx(found.seconds) and found.seconds > 0
    assert [one.path for one in found.by_module(depth=2)] == ["", "blocks.0", "blocks.1"]


def test_bytes_are_those_of_weights_arguments_and_results() -> None:
    found = rows(profiled_tower())
    assert found["blocks_0_first"].bytes == 4 * (3 * 4 + 4 * 8 + 8 + 3 * 8)
    assert found["relu"].bytes == 4 * (3 * 8 + 3 * 8)


def test_text_data_and_trace(tmp_path: Path) -> None:
    found = profiled_tower()
    text = str(found)
    assert text.startswith("Tower: ") and "MACs" in text and "blocks.1.second" in text and "peak memory" in text
    assert "operator.add" in found.table() and "test_profile.py:" in found.table()
    largest, second = found.table(by="flops", limit=2).splitlines()[2:]
    assert {largest.split()[0], second.split()[0]} <= {"blocks_0_first", "blocks_1_first"}
    data = json.loads(json.dumps(found.to_dict()))
    assert data["flops"] == found.flops and len(data["nodes"]) == len(found.nodes) and data["unknown"] == []
    trace = found.chrome_trace(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text()) == trace
    spans = {event["name"]: event for event in trace["traceEvents"] if event["ph"] == "X"}
    around, inside = spans["blocks.0"], spans["blocks_0_second"]
    assert around["ts"] <= inside["ts"] and inside["ts"] + inside["dur"] <= around["ts"] + around["dur"] + 1e-3
    memory = [event["args"]["bytes"] for event in trace["traceEvents"] if event["ph"] == "C"]
    assert len(memory) == len(found.nodes) and min(memory) >= found.weight_bytes and max(memory) <= found.peak_bytes


def test_views_cost_nothing_and_writes_cost_what_they_touch() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        view = x.view(8, 128).t()[:64]
        spread = y[:1].expand(1024)
        copied = x.clone()
        copied.add_(spread)
        copied[:128] = 0
        copied.zero_()
        copied.copy_(y)
        return view.sum() + copied

    x, y = floats(1024), floats(1024)
    captured = clew.trace(program, args=(x, y))
    found = rows(clew.profile(captured, x, y))
    by_target = {str(row.node.target): row for row in found.values()}
    for name in ("view", "t", "expand"):
        assert by_target[name].bytes == by_target[name].allocated == 0
    assert by_target["clone"].bytes == 2 * KILO and by_target["clone"].allocated == KILO
    assert by_target["add_"].bytes == 2 * KILO + 4 and by_target["add_"].allocated == 0  # the spread one is one number
    (written,) = [row for row in found.values() if row.operation == "operator.setitem"]
    assert written.bytes == 2 * 128 * 4
    assert by_target["zero_"].bytes == KILO and by_target["copy_"].bytes == 2 * KILO
    assert by_target["sum"].bytes == 64 * 8 * 4 + 4


def test_rows_of_a_table_are_read_and_not_the_table() -> None:
    model = nn.Embedding(1000, 16)
    tokens = torch.tensor([1, 2, 3])
    found = clew.profile(clew.trace(model, args=(tokens,)), tokens)
    assert found.bytes == 2 * 3 * 16 * 4 + 3 * 8 and found.weight_bytes == 64000


def test_the_peak_and_what_is_alive_at_it() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        wide = x.repeat(4)
        wider = wide.repeat(2)
        small = wider[:10] * 2
        return small + wide.sum()

    x = floats(1024)
    captured = clew.trace(program, args=(x,))
    found = clew.profile(captured, x)
    assert found.peak_node == "small" and found.peak_bytes == (1 + 4 + 8) * KILO + 40
    assert [(value.node, value.bytes) for value in found.peak_values] == [
        ("wider", 8 * KILO),
        ("wide", 4 * KILO),
        ("x", KILO),
        ("small", 40),
    ]
    assert all(value.line.startswith("test_profile.py:") for value in found.peak_values if value.node != "x")


def halved(x: torch.Tensor) -> torch.Tensor:
    while x.sum() > 1:
        x = x / 2
    if x.sum() > 0.9:
        return x @ x
    return x * 3


@pytest.mark.parametrize("start", [2.0, 2.5, 16.0])
def test_loops_and_branches_count_as_they_were_run(start: float) -> None:
    captured = clew.trace(halved, args=(torch.full((2, 2), 4.0),))
    found = clew.profile(captured, torch.full((2, 2), start / 4))
    rounds = {2.0: 1, 2.5: 2, 16.0: 4}[start]
    is_large = start / 2**rounds > 0.9
    (division,) = [row for row in found.nodes if row.operation == "operator.truediv"]
    assert division.calls == rounds and division.flops == 4 * rounds
    assert found.macs == (8 if is_large else 0)
    sums = (rounds + 1) * (3 + 1) + 3 + 1
    assert found.flops == 4 * rounds + sums + (16 if is_large else 4)


def test_without_data_nothing_is_computed() -> None:
    captured = clew.trace(Tower(), args=(floats(3, 4),))
    found = clew.profile(captured, torch.empty(100_000, 4, device="meta"))
    assert found.macs == 4 * 100_000 * 4 * 8 and found.seconds is None and found.weight_bytes == 152 * 4
    assert found.peak_bytes > 100_000 * 8 * 4
    assert captured.blocks[0].first.weight.device.type == "cpu"
    with pytest.raises(ClewError, match="no trace of a profile without times"):
        found.chrome_trace()


def test_a_profile_is_one_call() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count.add_(1)
            return x * self.count

    model = Counting()
    captured = clew.trace(model, args=(floats(2),))
    clew.profile(captured, floats(2))
    assert float(captured.count) == 1.0


def test_guards_hold_as_ever() -> None:
    captured = clew.trace(lambda parts: parts[0] * 2 if len(parts) > 1 else parts[0], args=([floats(2)],))
    with pytest.raises(GuardError):
        clew.profile(captured, [floats(2), floats(2)])


def test_lazy_graphs_say_which_capture_to_give() -> None:
    with pytest.raises(ClewError, match="captures"):
        clew.profile(clew.trace(lambda x: x * 2), floats(2))


def test_arguments_by_name_and_programs_of_jax() -> None:
    captured = clew.trace(lambda x, w: jnp.tanh(x @ w), args=(jnp.ones((2, 3)), jnp.ones((3, 5))))
    found = clew.profile(captured, jnp.ones((2, 3)), w=jnp.ones((3, 5)))
    assert (found.macs, found.flops, found.unknown) == (30, 70, [])
    assert found.peak_bytes == 4 * (6 + 15 + 10 + 10)


def test_a_product_that_refuses_empty_tensors_is_profiled_without_running_all_the_same() -> None:
    """torch's own stand-in for grouped products takes bfloat16 alone, its CPU other dtypes too."""

    def experts(x: torch.Tensor, weights: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.grouped_mm(x, weights, offs=ends)

    given = (torch.randn(8, 16), torch.randn(2, 16, 4), torch.tensor([3, 8], dtype=torch.int32))
    captured = clew.trace(experts, given)
    empty = clew.profile(captured, *(one.to("meta") for one in given))
    assert empty.macs == clew.profile(captured, *given).macs == 8 * 16 * 4 and empty.seconds is None
