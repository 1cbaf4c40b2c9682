"""Numbers beside tensors are tensors in bound code, and nobody can tell."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import clew

TEXTS = [
    "x + {0}", "x - {0}", "x * {0}", "x / {0}", "{0} + x", "{0} * x", "{0} - x", "x > {0}", "x >= {0}", "x < {0}",
    "x <= {0}", "x == {0}", "x != {0}", "{0} < x", "{0} >= x", "x.add({0})", "x.div({0})", "x ** {0}", "x // {0}",
    "torch.where(x > {0}, x * {0}, x - {0})", "x.clone().mul_({0})",
]  # fmt: skip
NUMBERS = ["2", "-1", "0.1", "1e-3", "0", "-0.0", "7", "3.0000001", "16777217", "1e-40", "1e35"]
KINDS = [torch.float32, torch.float64, torch.int64, torch.float16, torch.bfloat16, torch.bool, torch.complex64]


def program(text: str) -> Callable[[Tensor], Any]:
    """A function of one expression."""
    made: dict[str, Any] = {"torch": torch}
    exec(f"def run(x):\n    return {text}", made)
    run: Callable[[Tensor], Any] = made["run"]
    return run


def outcome(run: Callable[..., Any], *args: Any) -> Any:
    """What a call gives, or the class of its error."""
    try:
        return run(*args)
    except (RuntimeError, TypeError, AssertionError) as error:
        return type(error)


def same(mine: Any, theirs: Any) -> None:
    """The same to the last bit, or the same kind of error."""
    if not isinstance(theirs, Tensor):
        assert mine is theirs
        return
    assert (mine.dtype, mine.shape, mine.stride()) == (theirs.dtype, theirs.shape, theirs.stride())
    torch.testing.assert_close(mine, theirs, rtol=0, atol=0, equal_nan=True)
    if theirs.dtype in (torch.float32, torch.float64):
        assert torch.equal(mine.signbit(), theirs.signbit())


def warm(run: Any, *args: Any) -> Any:
    """A capture that is called in one step."""
    captured = clew.trace(run, args=args)
    for _ in range(3):
        captured(*args)
    assert "__call__" in vars(type(captured))
    return captured


@pytest.mark.parametrize("text", TEXTS)
def test_every_class_of_tensors_gives_what_the_number_gives(text: str):
    base = torch.tensor([[1.0, -2.5, 0.0], [1e-3, 7.0, -1.0]])
    for number in NUMBERS:
        run = program(text.format(number))
        captured = warm(run, base)
        for kind, shape in itertools.product(KINDS, [(2, 3), (3, 2), (6,), (1, 6)]):
            x = base.to(kind).reshape(shape)
            same(outcome(captured, x), outcome(run, x))
        same(outcome(captured, torch.tensor(3.0)), outcome(run, torch.tensor(3.0)))
        same(outcome(captured, base.t()), outcome(run, base.t()))


def test_gradients_are_those_of_the_number():
    run = program("((x * 3 + 1) / 0.7 - 2) * x")
    captured = warm(run, torch.ones(3))
    mine = torch.randn(3, requires_grad=True)
    theirs = mine.detach().clone().requires_grad_()
    result, expected = captured(mine), run(theirs)
    assert type(result.grad_fn) is type(expected.grad_fn)
    (first,) = torch.autograd.grad(result.sum(), mine, create_graph=True)
    (second,) = torch.autograd.grad(expected.sum(), theirs, create_graph=True)
    same(first.detach(), second.detach())
    same(torch.autograd.grad(first.sum(), mine)[0], torch.autograd.grad(second.sum(), theirs)[0])


def test_transforms_of_functions_take_it():
    run = program("(x * 2 + 1) / 3 - 0.5")
    captured, x = warm(run, torch.ones(3)), torch.randn(4, 3)
    same(torch.vmap(captured)(x), torch.vmap(run)(x))
    same(torch.vmap(torch.vmap(captured))(x), run(x))
    same(torch.func.grad(lambda v: captured(v).sum())(x), torch.func.grad(lambda v: run(v).sum())(x))
    same(torch.func.jacrev(captured)(x[0]), torch.func.jacrev(run)(x[0]))
    same(torch.func.jvp(captured, (x,), (x,))[1], torch.func.jvp(run, (x,), (x,))[1])
    same(torch.func.functionalize(captured)(x), run(x))
    with torch.inference_mode():
        same(captured(x), run(x))
    same(torch.utils.checkpoint.checkpoint(captured, x.requires_grad_(), use_reentrant=False), run(x))


def test_code_that_was_bound_in_inference_mode_trains_later():
    run = program("x * 3")
    captured, x = clew.trace(run, args=(torch.ones(3),)), torch.ones(3)
    with torch.inference_mode():
        for _ in range(3):
            captured(x)
    x = torch.ones(3, requires_grad=True)
    captured(x).sum().backward()
    same(x.grad, torch.full((3,), 3.0))


class Seeing(TorchFunctionMode):
    """Notes the arguments of all calls."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += [type(value) for value in args]
        return function(*args, **(kwargs or {}))


class Dispatched(TorchDispatchMode):
    """The same further down."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += [type(value) for value in args]
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [Seeing, Dispatched])
def test_modes_see_the_number(mode: type[Any]):
    run = program("x * 3")
    captured = warm(run, torch.ones(3))
    with mode() as mine:
        captured(torch.ones(3))
    with mode() as theirs:
        run(torch.ones(3))
    assert mine.seen[-2:] == theirs.seen[-2:]


def test_other_classes_of_tensors_see_the_number():
    seen: list[Any] = []

    class Watching(Tensor):
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.extend(type(value) for value in args)
            return super().__torch_function__(function, types, args, kwargs)

    module = clew.symbolic_trace(program("x * 3"))
    for _ in range(3):
        module(torch.ones(3))
    seen.clear()
    module(torch.ones(3).as_subclass(Watching))
    assert int in seen


@pytest.mark.parametrize(
    "around", [FakeTensorMode, Dispatched, lambda: torch.device("meta")], ids=["fake", "seen", "meta"]
)
def test_numbers_are_not_made_while_somebody_looks(around: Callable[[], Any]):
    run, x = program("x * 3"), torch.ones(3)
    captured = clew.trace(run, args=(x,))
    with around():
        for _ in range(3):
            outcome(captured, x)
    for _ in range(3):
        same(captured(x), run(x))


def test_numbers_are_not_made_inside_of_a_transform():
    run, x = program("x * 3"), torch.ones(3)
    captured = clew.trace(run, args=(x,))
    for transform in (torch.vmap, torch.func.functionalize, lambda f: torch.func.jacfwd(f)):
        for _ in range(3):
            same(transform(captured)(x), transform(run)(x))
    for _ in range(3):
        same(captured(x), run(x))


class Stepped(nn.Module):
    """Numbers beside parameters, sizes, and in loops."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([2.0, 3.0]))

    def forward(self, x: Tensor) -> Tensor:
        x = x * 2 + self.weight * 3
        while x.sum() < 100:
            x = x * 2 + x.shape[0]
        x += 1
        if x.mean() > 50:
            return x / 4
        return -1 * x


def test_modules_follow_their_class_of_numbers():
    torch.manual_seed(0)
    model, x = Stepped(), torch.rand(2, 2)
    captured = clew.trace(model, args=(x,))
    for _ in range(4):
        same(captured(x).detach(), model(x).detach())
    twin = copy.deepcopy(captured).double()
    for _ in range(4):
        same(twin(x.double()).detach(), copy.deepcopy(model).double()(x.double()).detach())
    same(captured(x * 100).detach(), model(x * 100).detach())


def zeros_and_ones(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x * 1.0, x * (-0.0), x * 0.0, x + 1


def test_a_negative_zero_is_no_one():
    x = torch.tensor([2.0, -3.0])
    captured = clew.trace(zeros_and_ones, args=(x,))
    for _ in range(3):
        for found, wanted in zip(captured(x), zeros_and_ones(x), strict=True):
            assert torch.equal(found, wanted) and torch.equal(torch.signbit(found), torch.signbit(wanted))
