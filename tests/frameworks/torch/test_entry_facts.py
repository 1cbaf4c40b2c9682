"""What the rules say of dtypes and devices is what torch does: on samples of its operators, in other dtypes, under
autocast and without data; and guards that follow from them stand at the entrance."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import clew
from benchmarks.opinfo import operators
from clew.errors import GuardError
from clew.frameworks.torch.entry_facts import Facts, has_guarded_ranks
from clew.frameworks.torch.sizes.table import FUNCTIONS
from clew.ir.graph import Graph
from clew.ir.guards import Attribute
from clew.ir.node import Node, set_type
from clew.ir.types import type_of
from tests.frameworks.torch.sizes.shape_samples import Sample, _filled

STEP, SAMPLES = 7, 4
KINDS = (torch.float64, torch.bfloat16, torch.float16, torch.int64)


def _ruled() -> list[Any]:
    found = [one for one in operators() if one.op in FUNCTIONS and one.name.isidentifier()]
    return sorted(found, key=lambda one: str(one.name))


def _samples(operator: Any) -> Iterator[Sample]:
    dtype = torch.float32 if torch.float32 in operator.supported_dtypes("cpu") else torch.int64
    for number, sample in enumerate(operator.sample_inputs("cpu", dtype)):
        if number >= SAMPLES:
            return
        yield Sample(operator, sample)


def _call(sample: Sample, tensors: list[Tensor]) -> Any:
    return sample.function(*_filled(sample._args, tensors), **_filled(sample._kwargs, tensors))


def _facts(sample: Sample) -> tuple[Graph, list[Node], Node] | None:
    """A graph that makes the call; None if it does not give one tensor."""
    value = _call(sample, sample.tensors)
    if not isinstance(value, Tensor):
        return None
    graph = Graph()
    inputs = [graph.placeholder(f"x{number}") for number in range(len(sample.tensors))]
    for node, tensor in zip(inputs, sample.tensors, strict=True):
        set_type(node, type_of(tensor))
    args, kwargs = _filled(sample._args, inputs), _filled(sample._kwargs, inputs)
    node = graph.call_function(sample.function, args, kwargs)
    set_type(node, type_of(value))
    graph.output(node)
    return graph, inputs, node


def _judge(sample: Sample, fact: str) -> Iterator[bool]:
    """For each dtype, with autocast and without, whether a rule that says something is right."""
    made = _facts(sample)
    if made is None:
        return
    graph, inputs, node = made
    source = Facts(graph, None, has_guarded_ranks(graph)).source(node, fact)
    if source is None:
        return
    places = [None, "meta"] if fact == "device" else [None]
    for kind in (torch.float32, *KINDS):
        for autocast in (False, True):
            for place in places:
                given = [
                    one.to(place or "cpu", kind if one.is_floating_point() else one.dtype) for one in sample.tensors
                ]
                try:
                    with torch.autocast("cpu", dtype=torch.bfloat16) if autocast else nullcontext():
                        result = _call(sample, given)
                except Exception:
                    continue
                wanted = getattr(given[inputs.index(source)], fact) if isinstance(source, Node) else source
                yield getattr(result, fact) == wanted


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fact", ["dtype", "device"])
def test_rules_are_right_for_torchs_operators(fact: str) -> None:
    right = 0
    for operator in _ruled()[::STEP]:
        for sample in _samples(operator):
            answers = list(_judge(sample, fact))
            assert all(answers), (operator.name, sample._args, sample._kwargs)
            right += len(answers)
    assert right > 100


def _traced(program: Any, *args: Any) -> Any:
    captured = clew.trace(program, args)
    return captured, [one for one in captured.guards if one.kind == "computed"]


class Questions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.lin = nn.Linear(4, 4)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        for _ in range(3):
            x = self.lin(x) + x
            if x.device.type == "tpu" or x.device.type != "cpu":
                return x
        return x * 2


def test_questions_about_the_device_of_inner_values_are_one_guard_on_a_weight() -> None:
    model, ids = Questions(), torch.tensor([[1, 2]])
    captured, computed = _traced(model, ids)
    assert not computed
    assert [str(one) for one in captured.guards if "device" in str(one)] == ["self.embed.weight.device.type == 'cpu'"]
    with pytest.raises(GuardError, match="device"):
        captured.to("meta")(ids.to("meta"))


def test_a_number_elsewhere_does_not_decide_the_device_of_a_sum() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        z = x + y
        return z * 2 if z.device.type == "cpu" else z * 3

    captured = clew.trace(program, (torch.ones(2), torch.ones(2)))
    number, rows = torch.tensor(1.0), torch.ones(2, device="meta")
    for given in ((number, rows), (rows, number)):
        with pytest.raises(GuardError):
            captured(*given)
    assert torch.equal(captured(number, torch.ones(2)), program(number, torch.ones(2)))


def test_what_is_always_so_is_not_guarded() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        mask = (x > 0) & (y > 0)[None].expand(2, -1).to(torch.bool)
        return x.masked_fill(mask, 2) if str(mask.dtype) == "torch.bool" else x

    captured = clew.trace(program, (torch.ones(2, 3), torch.ones(3)))
    assert not [one for one in captured.guards if "dtype" in str(one)]
    assert torch.equal(captured(torch.ones(2, 3).half(), torch.ones(3)), torch.ones(2, 3).half() * 2)


def test_a_call_that_only_a_guard_reads_is_not_dropped() -> None:
    class Program(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return x * 2 if self.lin(x).device.type == "cpu" else x

    captured = clew.trace(Program(), (torch.ones(2, 4),))
    assert torch.equal(captured(torch.ones(3, 4)), torch.ones(3, 4) * 2)
    with pytest.raises(RuntimeError, match="shapes"):
        captured(torch.ones(2, 5))


def test_a_cast_to_an_unknown_cuda_device_is_not_known() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    set_type(x, type_of(torch.ones(2)))
    for target, wanted in (("cuda", None), ("cuda:1", torch.device("cuda:1")), ("cpu", torch.device("cpu"))):
        node = graph.call_method("to", (x, target))
        assert Facts(graph, None, has_guarded_ranks(graph)).source(node, "device") == wanted
        assert Facts(graph, None, has_guarded_ranks(graph)).source(node, "dtype") is x


def test_an_embedding_has_what_its_table_has() -> None:
    model = Questions()
    graph = Graph()
    ids = graph.placeholder("ids")
    set_type(ids, type_of(torch.tensor([[1]])))
    node = graph.call_module("embed", (ids,))
    for fact in ("dtype", "device"):
        assert Facts(graph, model, has_guarded_ranks(graph)).source(node, fact) == Attribute("embed.weight")
    product = graph.call_module("lin", (node,))
    assert Facts(graph, model, has_guarded_ranks(graph)).source(product, "dtype") is None, "autocast changes it"
    assert Facts(graph, model, has_guarded_ranks(graph)).source(product, "device") == Attribute("embed.weight")


def test_devices_are_told_by_operands_after_ranks_were_lifted() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))
            self.table = nn.Parameter(torch.randn(9, 4))

        def forward(self, ids: Tensor, x: Tensor) -> Tensor:
            assert ids.ndim == 2 and x.ndim == 2
            y = self.weight * nn.functional.embedding(ids, self.table) + x[:, None]
            return y * 2 if y.device.type == "cpu" else y

    captured = clew.trace(Model(), (torch.zeros(2, 3, dtype=torch.long), torch.randn(2, 4)))
    assert not [one for one in captured.guards if one.kind == "computed"]


SCALE = 2.0


@pytest.mark.filterwarnings("ignore::clew.errors.TraceWarning")
def test_a_branch_on_a_variable_that_the_program_sets_is_no_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer is guarded, where too many ways follow from it: not that of the capture, but of each call."""

    def program(x: torch.Tensor, y: torch.Tensor) -> None:
        global SCALE
        parts, rounds = list(x), 0
        while rounds < min(int(y.size(0) > 1), 4) and SCALE == 2.0:
            rounds += 1
            x.relu_()
            parts += [y]
        SCALE *= 1.5

    monkeypatch.setitem(globals(), "SCALE", 2.0)
    captured = clew.trace(program, args=(-torch.ones(2, 2), torch.ones(2, 3)), max_paths=2)
    x = -torch.ones(2, 2)
    captured(x, torch.ones(2, 3))
    assert torch.equal(x, torch.zeros(2, 2)) and SCALE == 3.0
    with pytest.raises(clew.GuardError):
        captured(x, torch.ones(2, 3))
