"""``clew.from_torchscript``: what comes out computes what the scripted or traced program does."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import clew
from clew.errors import InteropError

from . import scripted

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")

Case = tuple[Callable[[], Any], list[tuple[Any, ...]]]

SCRIPTED: dict[str, Case] = {
    "MLP": (scripted.MLP, [(torch.rand(2, 4),), (torch.rand(5, 4),)]),
    "ConvNet": (scripted.ConvNet, [(torch.rand(2, 3, 8, 8),), (torch.rand(1, 3, 12, 10),)]),
    "Recurrent": (
        scripted.Recurrent,
        [(torch.rand(3, 2, 3),), (torch.rand(5, 1, 3),), (torch.rand(2, 2, 3), (torch.ones(2, 4), torch.ones(2, 4)))],
    ),
    "Layered": (scripted.Layered, [(torch.rand(2, 5, 3),), (torch.rand(1, 2, 3),)]),
    "Branches": (
        scripted.Branches,
        [
            (torch.ones(2),),
            (-torch.ones(2), True),
            (torch.ones(2, 2), False, 3),
            (torch.ones(1), True, 0.5, ["a", "b"]),
        ],
    ),
    "EarlyExit": (
        scripted.EarlyExit,
        [(torch.ones(3), 7), (-torch.ones(3), 7), (torch.zeros(3), 4), (torch.ones(3), 0), (torch.ones(2), 2)],
    ),
    "Halving": (scripted.Halving, [(torch.full((2,), 9.0),), (torch.zeros(2),), (torch.full((1,), 1e30),)]),
    "Counting": (scripted.Counting, [(torch.ones(2),), (torch.zeros(2),), (torch.rand(2),)]),
    "Containers": (
        scripted.Containers,
        [
            ({"a": torch.ones(2), "b": torch.ones(3)}, ["b", "x", "a"], (2, torch.ones(2))),
            ({}, [], (1, torch.zeros(1))),
        ],
    ),
    "dtypes": (lambda: scripted.dtypes, [(torch.ones(1), torch.ones(1)), (torch.ones(1).double(), torch.ones(1))]),
    "numbers": (lambda: scripted.numbers, [(torch.ones(2), 5, 2.0), (torch.ones(2), 10**12, 3)]),
    "guarded": (lambda: scripted.guarded, [(torch.randn(3, 4), 2)]),
    "indexed": (lambda: scripted.indexed, [(torch.rand(3, 2), torch.tensor([0, 1, 1]))]),
    "texts": (lambda: scripted.texts, [(torch.ones(2), "abc"), (torch.ones(3), "xyz")]),
    "noisy": (lambda: scripted.noisy, [(torch.ones(2, 3),)]),
    "nested_lists": (lambda: scripted.nested_lists, [(torch.ones(1), 6), (torch.ones(1), 1)]),
    "shared_lists": (lambda: scripted.shared_lists, [(torch.ones(1), [1, 2], True), (torch.ones(1), [1, 2], False)]),
    "dicts": (lambda: scripted.dicts, [(torch.ones(1), {"x": 1}), (torch.ones(1), {"a": 9, "b": 4})]),
    "leaving": (lambda: scripted.leaving, [(torch.ones(3), 9), (torch.ones(3), 1), (torch.ones(3), 0)]),
    "continuing": (lambda: scripted.continuing, [(torch.ones(3), 9), (torch.ones(3), 1), (torch.ones(3), 0)]),
    "written": (lambda: scripted.written, [(torch.ones(2, 2), torch.ones(2, 2))]),
    "pairs": (lambda: scripted.pairs, [([torch.ones(1), torch.ones(2)], [torch.ones(1), torch.ones(2)]), ([], [])]),
    "optional": (lambda: scripted.optional, [(None, None), (torch.ones(1), 5), (torch.ones(1), None)]),
    "made": (lambda: scripted.made, [(3, torch.ones(1)), (5, torch.ones(1).double())]),
    "assorted": (lambda: scripted.assorted, [(torch.randn(3, 3),)]),
    "wrapping": (lambda: scripted.wrapping, [(torch.ones(1), 12345)]),
    "divided": (lambda: scripted.divided, [(torch.ones(1), 1.5, 0.0), (torch.ones(1), 3.0, 2.0)]),
    "losses": (lambda: scripted.losses, [(torch.randn(4, 3), torch.tensor([0, 2, 1, 1]))]),
    "einsum": (lambda: scripted.einsum, [(torch.rand(3, 2), torch.rand(4, 2))]),
}


def compiled(make: Callable[[], Any]) -> Any:
    torch.manual_seed(0)
    return torch.jit.script(make())


def same(left: Any, right: Any) -> None:
    """Equal values in equal nests of equal types."""
    assert type(left) is type(right)
    if isinstance(left, torch.Tensor):
        torch.testing.assert_close(left, right, rtol=0, atol=0, equal_nan=True)
    elif isinstance(left, (list, tuple)):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            same(one, other)
    elif isinstance(left, dict):
        same(list(left.items()), list(right.items()))
    else:
        assert left == right


def check(source: Any, converted: Any, calls: list[tuple[Any, ...]]) -> None:
    """Call after call: equal results, and arguments that were changed alike."""
    for call in calls:
        mine, theirs = copy.deepcopy(call), copy.deepcopy(call)
        torch.manual_seed(1)
        expected = source(*theirs)
        torch.manual_seed(1)
        same(converted(*mine), expected)
        same(mine, theirs)


@pytest.mark.parametrize("name", SCRIPTED)
def test_scripted_programs(name: str) -> None:
    make, calls = SCRIPTED[name]
    source = compiled(make)
    converted = clew.from_torchscript(source)
    twin = copy.deepcopy(source) if isinstance(source, nn.Module) else source
    if isinstance(source, nn.Module):
        converted = clew.from_torchscript(copy.deepcopy(source))
    converted.graph.lint()
    check(twin, converted, calls)


@pytest.mark.parametrize("name", ["MLP", "ConvNet", "Layered"])
def test_modes_are_followed(name: str) -> None:
    make, calls = SCRIPTED[name]
    source = compiled(make)
    converted = clew.from_torchscript(copy.deepcopy(source))
    for training in (False, True, False):
        source.train(training)
        converted.train(training)
        check(source, converted, calls)
    same(dict(converted.state_dict()), {key: source.state_dict()[key] for key in converted.state_dict()})


@pytest.mark.parametrize("name", ["MLP", "ConvNet", "Recurrent", "Layered"])
def test_traced_modules(name: str) -> None:
    make, calls = SCRIPTED[name]
    torch.manual_seed(0)
    model = make().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(model, calls[0], check_trace=False)
    converted = clew.from_torchscript(traced)
    check(traced, converted, calls[:1])
    assert set(converted.state_dict()) == set(model.state_dict())


def test_traced_functions() -> None:
    traced = torch.jit.trace(lambda x: torch.cat([x, x.new_zeros(x.shape[0], 2)], 1).view(-1, 1), torch.rand(2, 3))
    check(traced, clew.from_torchscript(traced), [(torch.rand(2, 3),), (torch.rand(5, 3),)])


def test_a_module_from_a_file() -> None:
    source = compiled(scripted.ConvNet)
    stream = io.BytesIO()
    torch.jit.save(source, stream)
    stream.seek(0)
    loaded = torch.jit.load(stream)
    converted = clew.from_torchscript(loaded)
    assert sorted(name for name, _ in converted.named_parameters()) == sorted(
        name for name, _ in source.named_parameters()
    )
    check(source.eval(), converted.eval(), SCRIPTED["ConvNet"][1])


def test_frozen_modules_have_constants() -> None:
    frozen = torch.jit.freeze(compiled(scripted.MLP).eval())
    converted = clew.from_torchscript(frozen)
    check(frozen, converted, SCRIPTED["MLP"][1])
    assert not list(converted.parameters()) and not converted.state_dict()


def test_branches_and_loops_are_python_again() -> None:
    code = clew.from_torchscript(compiled(scripted.Recurrent)).code
    assert "for step in range(" in code and "torch.lstm_cell(" in code
    assert "while " in clew.from_torchscript(compiled(scripted.Halving)).code
    assert "if " in clew.from_torchscript(compiled(scripted.Branches)).code


def test_nodes_know_their_lines() -> None:
    converted = clew.from_torchscript(compiled(scripted.MLP))
    lines = [node.source for node in converted.graph.nodes if node.target is torch.log_softmax]
    assert lines and all(line is not None for line in lines)


def test_parameters_are_shared_and_gradients_reach_them() -> None:
    source = compiled(scripted.MLP)
    converted = clew.from_torchscript(source)
    assert {id(one) for one in converted.parameters()} == {id(one) for one in source.parameters()}
    converted(torch.rand(2, 4)).sum().backward()
    assert all(one.grad is not None for one in source.parameters())


def test_state_is_the_converted_modules_own() -> None:
    source = compiled(scripted.Counting)
    converted = clew.from_torchscript(source)
    converted(torch.ones(2))
    assert (converted.calls, source.calls) == (1, 0)
    twin = copy.deepcopy(converted)
    twin(torch.ones(2))
    assert (twin.calls, converted.calls) == (2, 1)


def test_other_methods() -> None:
    source = compiled(scripted.Counting)
    reset = clew.from_torchscript(source, "reset")
    assert reset(7) == 7 and reset.calls == 7
    with pytest.raises(InteropError, match="has no method 'missing'"):
        clew.from_torchscript(source, "missing")


def test_errors_of_the_program_are_raised() -> None:
    converted = clew.from_torchscript(torch.jit.script(scripted.guarded))
    with pytest.raises(torch.jit.Error, match="n must be positive"):
        converted(torch.rand(2, 2), 0)
    with pytest.raises(torch.jit.Error, match="too many dimensions: 3"):
        converted(torch.rand(2, 2, 2), 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ((1.0, 2, 1.0), "takes a Tensor for x, and is given a float"),
        ((torch.ones(1), 2.5, 1.0), "takes a int for n, and is given a float"),
        ((torch.ones(1), 2, "a"), "takes a float for scale, and is given a str"),
    ],
)
def test_arguments_of_other_types_are_refused(call: tuple[Any, ...], message: str) -> None:
    converted = clew.from_torchscript(torch.jit.script(scripted.numbers))
    with pytest.raises(clew.GuardError, match=message):
        converted(*call)


def test_the_graph_is_one_like_any_other() -> None:
    converted = clew.from_torchscript(compiled(scripted.Halving))
    text, objects = clew.text_and_objects(converted.graph)
    again = clew.GraphFunction(converted, clew.parse(text, objects=objects))
    check(converted, again, SCRIPTED["Halving"][1])
    same(clew.Interpreter(converted).run(torch.full((2,), 9.0)), converted(torch.full((2,), 9.0)))


def with_fork(x: torch.Tensor) -> torch.Tensor:
    return torch.jit.wait(torch.jit.fork(scripted.einsum, x, x))[0]


def with_text(x: torch.Tensor) -> str:
    return f"{[x]}"


@pytest.mark.parametrize(
    ("program", "message"),
    [(with_fork, "prim::fork cannot be converted"), (with_text, "aten::format cannot be converted")],
)
def test_what_has_no_counterpart_is_named(program: Any, message: str) -> None:
    with pytest.raises(InteropError, match=message):
        clew.from_torchscript(torch.jit.script(program))


def test_only_programs_of_torchscript() -> None:
    with pytest.raises(InteropError, match="Linear is no program of TorchScript"):
        clew.from_torchscript(nn.Linear(1, 1))
