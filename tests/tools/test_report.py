"""report: what is said of aliases, writes and lifetimes holds when the program runs."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional as F

import clew
from clew.ir.node import Node
from clew.tools.report import Report, Sharing, report
from clew.tools.watching import Watching, memory_in


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(3))
        self.layer = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        self.count.add_(1)
        view = x.t()[1:]
        wide = self.norm(self.layer(x)) * 2
        view.mul_(2)
        flat = wide.view(-1)
        flat[0] = 1
        chosen = wide if x.sum() > 0 else y + 1
        return chosen, flat.sum()


def reported() -> Report:
    return clew.report(clew.trace(Net(), args=(torch.rand(4, 3), torch.rand(4, 3))))


def test_aliases() -> None:
    found = {row.node: row.shares_with for row in reported().aliases}
    assert found["t"] == found["view"] == ("x",) and found["flat"] == ("wide",)
    assert found["cond"] == found["getitem"] == ("chosen", "wide") and "layer" not in found and "norm" not in found


def test_writes() -> None:
    rows = {row.node: row for row in reported().writes}
    assert rows["add_"].state == ("self.count",) and rows["add_"].arguments == ()
    assert rows["mul_"].arguments == ("x",) and rows["setitem"].values == ("wide",)
    assert rows["norm"].state == ("self.norm.num_batches_tracked", "self.norm.running_mean", "self.norm.running_var")
    assert all(row.effect == "write" and row.line.startswith("test_report.py:") for row in rows.values())


def test_lifetimes() -> None:
    rows = {row.node: row for row in reported().lifetimes}
    assert (rows["layer"].last_use, rows["layer"].freed_after) == ("norm", "norm")
    assert rows["norm"].freed_after == "wide" and rows["view"].freed_after == ""  # the memory is the caller's
    assert rows["wide"].freed_after == ""  # the result may be it


def test_text_and_data() -> None:
    found = reported()
    text = str(found)
    assert "values that may share memory:" in text and "writes:" in text and "lifetimes:" in text
    assert "self.count" in text and "test_report.py:" in text
    assert [row["node"] for row in found.to_dict()["writes"]] == [row.node for row in found.writes]


def test_what_nobody_knows_may_write_and_give_back_anything() -> None:
    def mystery(x: torch.Tensor) -> torch.Tensor:
        return x.mul_(2)

    graph = clew.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(mystery, (x.graph.call_method("clone", (x,)),)))
    found = clew.report(graph)
    assert [(row.effect, row.values) for row in found.writes] == [("unknown", ("clone",))]
    assert {row.node: row.shares_with for row in found.aliases} == {"mystery": ("clone",)}


# ---- against real runs -----------------------------------------------------------------------------------------------

METHODS: list[tuple[str, tuple[Any, ...]]] = [
    ("t", ()),
    ("transpose", (0, 1)),
    ("clone", ()),
    ("contiguous", ()),
    ("reshape", (4, 4)),
    ("expand", (4, 4)),
    ("to", (torch.float32,)),
    ("detach", ()),
    ("relu", ()),
    ("flatten", (0, 0)),
    ("mul_", (0.5,)),
    ("zero_", ()),
    ("type_as_itself", ()),
    ("cumsum", (0,)),
    ("softmax", (-1,)),
    ("flip", (0,)),
    ("float", ()),
]
FUNCTIONS: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
    (F.dropout, (), {"p": 0.5, "training": False}),
    (F.relu, (), {"inplace": True}),
    (F.relu, (), {}),
    (torch.relu_, (), {}),
    (torch.positive, (), {}),
    (torch.einsum, ("ij->ji",), {}),
    (torch.triu, (), {}),
]


def some_graph(seed: int) -> clew.GraphModule:
    """A program of views, copies, writes and arithmetic on matrices of four by four."""
    chance = random.Random(seed)
    graph = clew.Graph()
    root = nn.Module()
    root.register_buffer("state", torch.rand(4, 4))
    pool = [graph.placeholder("x"), graph.placeholder("y"), graph.get_attr("state")]
    for _ in range(chance.randint(4, 14)):
        pool.append(some_node(graph, chance, chance.choice(pool), chance.choice(pool)))
    graph.output(tuple(chance.sample(pool, 2)))
    return clew.GraphModule(root, graph)


def some_node(graph: clew.Graph, chance: random.Random, value: Node, other: Node) -> Node:
    kind = chance.random()
    if kind < 0.5:
        name, args = chance.choice(METHODS)
        return (
            graph.call_method("type_as", (value, value))
            if name == "type_as_itself"
            else graph.call_method(name, (value, *args))
        )
    if kind < 0.65:
        function, args, kwargs = chance.choice(FUNCTIONS)
        return graph.call_function(function, (*args, value), kwargs)
    if kind < 0.75:
        return graph.call_method("copy_", (value, graph.call_method("clone", (other,))))
    if kind < 0.85:
        branch = [body(chance.choice(("t", "clone", "relu", "mul_"))) for _ in range(2)]
        test = graph.call_function(torch.gt, (graph.call_method("sum", (value,)), 3))
        return graph.call_function(clew.cond, (test, *branch, (other,)))
    return graph.call_function(torch.add, (value, other))


def body(method: str) -> clew.Graph:
    graph = clew.Graph()
    graph.output(graph.call_method(method, (graph.placeholder("inside"), *((2,) if method == "mul_" else ()))))
    return graph


class Checking(Watching):
    """Compares each step of a run with what was said of it."""

    def __init__(self, captured: Any) -> None:
        super().__init__(captured)
        self.sharing = Sharing(self.graph, self.module)
        self.seen_memory: dict[Node, tuple[Any, Any]] = {}
        self.versions: dict[Node, int] = {}
        self.dying = {row.node: row.freed_after for row in report(captured).lifetimes if row.last_use}
        self.storages: dict[str, StorageWeakRef] = {}
        self.done: set[str] = set()

    def run_node(self, n: Node) -> Any:
        for unused in [node for node in self.env if not node.users and node.op != "placeholder"]:
            del self.env[unused]
        if self.graph is self.sharing.graph:
            for name, end in self.dying.items():
                if end in self.done and name in self.storages:
                    assert self.storages.pop(name).expired(), f"{name} lives on behind {end}"
            self.done.add(n.name)
        return super().run_node(n)

    def called(self, node: Node, args: Any, kwargs: Any) -> Any:
        before = {id(array): array._version for array in self._arrays()}
        value = super().called(node, args, kwargs)
        changed = [other for other, array in self._alive() if before.get(id(array), array._version) != array._version]
        if not clew.ir.control_flow.is_control(node):
            written = self.sharing.of(self.sharing.written_arguments(node))
            for other in changed:
                assert self.sharing.memories[other] & written, f"{node} writes to {other}"
        return value

    def _alive(self) -> list[tuple[Node, torch.Tensor]]:
        return [(node, value) for node, value in self.env.items() if isinstance(value, torch.Tensor)]

    def _arrays(self) -> list[torch.Tensor]:
        return [value for _, value in self._alive()]

    def seen(self, node: Node, args: Any, kwargs: Any, value: Any) -> None:
        if not isinstance(value, torch.Tensor) or node.op == "output":
            return
        for other, alive in self._alive():
            if memory_in(alive).keys() & memory_in(value).keys():
                assert self.sharing.memories[node] & self.sharing.memories[other], f"{node} shares with {other}"
        if self.graph is self.sharing.graph and node.op not in ("placeholder", "get_attr"):
            self.storages[node.name] = StorageWeakRef(value.untyped_storage())


@pytest.mark.parametrize("seed", range(120))
def test_random_programs(seed: int) -> None:
    module = some_graph(seed)
    with torch.no_grad():
        Checking(module).run(torch.rand(4, 4), torch.rand(4, 4))


def test_captured_models() -> None:
    with torch.no_grad():
        Checking(clew.trace(Net(), args=(torch.rand(4, 3), torch.rand(4, 3)))).run(torch.rand(4, 3), torch.rand(4, 3))
