"""The harness on deliberately wrong subjects: each fault is called WRONG, each honest refusal guarded, and why."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from clew.errors import ClewError
from tests.footguns.__main__ import main
from tests.footguns.baking import bake
from tests.footguns.harness import AFTERWARDS, CAPTURE, EQUAL, GUARDED, WRONG, Capture, Outcome, classify, worst
from tests.footguns.ledger import Case, Program, call
from tests.footguns.pictures import difference, picture
from tests.footguns.world import random_state, restored


def judged(build: Callable[[], Case], capture: Capture, seconds: float = 20.0) -> dict[str, Outcome]:
    """The outcomes of a program made here, by call."""
    return {one.call: one for one in classify(Program("made_here", "test", build), capture, seconds)}


def doubling(**options: Any) -> Callable[[], Case]:
    """A program that doubles its argument, called on two values."""
    example, other = (lambda: call(torch.ones(2))), (lambda: call(torch.tensor([3.0, float("nan")])))
    return lambda: Case(lambda x: x * 2, example=example, others=[other], **options)


def always(function: Callable[..., Any]) -> Capture:
    """A capture that gives this function, whatever it was asked to capture."""
    return lambda fn, args, kwargs: function


def test_the_same_is_equal_and_nan_equals_nan() -> None:
    outcomes = judged(doubling(aliasing=True, gradients=True), always(lambda x: x + x))
    assert list(outcomes) == [CAPTURE, "example", "other 1", "example again", AFTERWARDS]
    assert {one.status for one in outcomes.values()} == {EQUAL}


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x * 3, "the result has other values: [3.0, 3.0], not [2.0, 2.0]"),
        (lambda x: (x * 2).double(), "the result (torch.Tensor) has ('torch.float64'"),
        (lambda x: (x * 2)[None], "(1, 2)"),
        (lambda x: [x * 2], "the result is list, not torch.Tensor"),
        (lambda x: (x * 2).tolist(), "the result is list, not torch.Tensor"),
        (lambda x: nn.Parameter(x * 2), "the result is torch.nn.parameter.Parameter, not torch.Tensor"),
        (lambda x: (x * 2).requires_grad_(), "'torch.strided', True), not"),
        (lambda x: x.mul_(2), "the arguments args[0] has other values"),
        (lambda x: None, "the result is NoneType"),
        (lambda x: torch.rand(1) * 0 + x * 2, "the random state of torch"),
        (lambda x: random.random() * 0 + x * 2, "the random state of random"),
    ],
)
def test_a_wrong_result_or_effect_is_wrong(function: Callable[..., Any], reason: str) -> None:
    outcome = judged(doubling(), always(function))["example"]
    assert outcome.status == WRONG and outcome.silent and reason in outcome.reason


def test_a_wrong_answer_on_the_second_input_alone_is_wrong() -> None:
    def build() -> Case:
        return Case(
            lambda x: x if x.sum() > 0 else -x,
            example=lambda: call(torch.ones(1)),
            others=[lambda: call(-torch.ones(1))],
        )

    outcomes = judged(build, bake)
    assert [one.status for one in outcomes.values()] == [EQUAL, EQUAL, WRONG, EQUAL, WRONG]
    assert outcomes["other 1"].reason == "the result has other values: [-1.0], not [1.0]"
    assert worst(list(outcomes.values())) == WRONG


class Counted(int):
    """A number that is not quite an int, as a traced scalar is."""


@pytest.mark.parametrize(
    ("wanted", "got"), [(2, True), (2, 2.0), (2, Counted(2)), ((1, 2), torch.Size([1, 2])), ("a", "b")]
)
def test_plain_results_are_compared_with_their_types(wanted: Any, got: Any) -> None:
    build = lambda: Case(lambda: wanted, example=lambda: call(), others=[lambda: call()])
    assert judged(build, always(lambda: got))["example"].status == WRONG
    assert judged(build, always(lambda: wanted))["example"].status == EQUAL


def refuse(*args: Any, **kwargs: Any) -> Any:
    raise ClewError("cannot be captured")


def test_an_error_of_clew_is_a_guard() -> None:
    at_capture = judged(doubling(), refuse)
    assert list(at_capture) == [CAPTURE] and at_capture[CAPTURE].status == GUARDED
    at_call = judged(doubling(), always(refuse))
    assert [one.status for one in at_call.values()] == [EQUAL, GUARDED, GUARDED, GUARDED, EQUAL]
    assert at_call["example"].reason == "cannot be captured"
    assert worst(list(at_call.values())) == GUARDED


def test_a_guard_that_came_too_late_is_wrong() -> None:
    def late(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return refuse()

    outcome = judged(doubling(), always(late))["example"]
    assert outcome.status == WRONG and outcome.reason.startswith("refused, but left a trace: the arguments args[0]")


def test_another_error_is_wrong_but_not_silent() -> None:
    def fail(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("of its own")

    outcome = judged(doubling(), always(fail))["example"]
    assert outcome.status == WRONG and not outcome.silent
    assert outcome.reason == "raised RuntimeError: of its own, where the original raises nothing"
    outcome = judged(doubling(), fail)[CAPTURE]  # type: ignore[arg-type]
    assert outcome.status == WRONG and outcome.reason.startswith("capture failed: raised TypeError")


def test_a_capture_that_gives_nothing_is_wrong() -> None:
    outcomes = judged(doubling(), lambda fn, args, kwargs: None)  # type: ignore[arg-type, return-value]
    assert [(one.call, one.status) for one in outcomes.values()] == [(CAPTURE, WRONG)]


def raising(**options: Any) -> Case:
    def f(x: torch.Tensor) -> torch.Tensor:
        if x.sum() < 0:
            raise ValueError("negative")
        return x

    return Case(f, example=lambda: call(torch.ones(1)), others=[lambda: call(-torch.ones(1))], **options)


def test_errors_of_the_program_are_compared_by_type_and_text() -> None:
    def other_text(x: torch.Tensor) -> torch.Tensor:
        if x.sum() < 0:
            raise ValueError("below zero")
        return x

    swallowed = judged(raising, always(lambda x: x))["other 1"]
    assert swallowed.silent and swallowed.reason == "raised nothing, where the original raises ValueError: negative"
    assert judged(raising, always(other_text))["other 1"].status == WRONG
    assert judged(lambda: raising(same_text=False), always(other_text))["other 1"].status == EQUAL
    assert judged(raising, lambda fn, args, kwargs: fn)["other 1"].status == EQUAL


def test_a_capture_may_raise_what_the_example_raises() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("always")

    outcomes = judged(lambda: Case(f, example=lambda: call(torch.ones(1)), others=[]), bake)
    assert [(one.call, one.status) for one in outcomes.values()] == [(CAPTURE, EQUAL)]


def changed_argument(fn: Any, args: Any, kwargs: Any) -> Any:
    args[0].add_(1)
    return fn


def drawn_number(fn: Any, args: Any, kwargs: Any) -> Any:
    torch.rand(1)
    return fn


def mode_left_on(fn: Any, args: Any, kwargs: Any) -> Any:
    torch.set_grad_enabled(False)
    return fn


def patched_function(fn: Any, args: Any, kwargs: Any) -> Any:
    args[0].extra = 1
    return fn


@pytest.mark.parametrize("capture", [changed_argument, drawn_number, mode_left_on, patched_function])
def test_a_trace_left_by_the_capture_is_wrong(capture: Capture) -> None:
    state, enabled = random_state(), torch.is_grad_enabled()
    outcome = judged(doubling(), capture)[CAPTURE]
    assert outcome.status == WRONG and outcome.reason.startswith("capture left a trace: the ")
    assert difference(state, random_state()) is None and torch.is_grad_enabled() == enabled


def test_a_module_changed_by_the_capture_is_wrong() -> None:
    class Mean(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.mean.add_(x.mean())
            return x - self.mean

    outcomes = judged(lambda: Case(Mean(), example=lambda: call(torch.ones(1)), others=[]), bake)
    assert outcomes[CAPTURE].reason.startswith("capture left a trace: the module mean has other values: [1.0]")


def counting() -> Case:
    log: list[int] = []

    def f(x: torch.Tensor) -> torch.Tensor:
        log.append(len(x))
        return x * len(log)

    others = [lambda: call(torch.ones(2)), lambda: call(torch.ones(3))]
    return Case(f, example=lambda: call(torch.ones(1)), others=others, state=lambda: log)


def test_state_is_compared() -> None:
    outcome = judged(counting, always(lambda x: x))["example"]
    assert outcome.status == WRONG and outcome.reason == "the state (list) has (0,), not (1,)"


def test_a_refused_call_is_skipped_by_the_original_too() -> None:
    def guarded(fn: Any, args: Any, kwargs: Any) -> Any:
        return lambda x: refuse() if len(x) == 2 else fn(x)

    statuses = [one.status for one in judged(counting, guarded).values()]
    assert statuses == [EQUAL, EQUAL, GUARDED, EQUAL, EQUAL, EQUAL]


def test_aliases_are_compared_where_asked() -> None:
    def build(aliasing: bool) -> Callable[[], Case]:
        return lambda: Case(lambda x: [x, x[:1]], example=lambda: call(torch.ones(2)), others=[], aliasing=aliasing)

    copies = always(lambda x: [x.clone(), x[:1]])
    assert judged(build(False), copies)["example"].status == EQUAL
    assert judged(build(True), copies)["example"].reason.startswith("the aliases result[0] is")
    assert judged(build(True), always(lambda x: [x, x[:1].clone()]))["example"].status == WRONG
    assert judged(build(True), always(lambda x: [x, x.narrow(0, 0, 1)]))["example"].status == EQUAL


def test_gradients_are_compared_where_asked() -> None:
    def build(gradients: bool) -> Callable[[], Case]:
        example = lambda: call(torch.ones(2, requires_grad=True))
        return lambda: Case(lambda x: x * x, example=example, others=[], gradients=gradients)

    half = always(lambda x: x * x.detach())
    assert judged(build(False), half)["example"].status == EQUAL
    assert "args[0].grad has other values" in judged(build(True), half)["example"].reason


def test_an_early_result_that_a_later_call_changes_is_wrong() -> None:
    kept = torch.zeros(2)
    outcomes = judged(doubling(), always(lambda x: torch.mul(x, 2, out=kept)))
    assert outcomes["example"].status == EQUAL
    assert outcomes[AFTERWARDS].status == WRONG


def test_what_happens_between_calls_reaches_the_capture() -> None:
    def build() -> Case:
        layer = nn.Dropout(0.5).train()
        others = [lambda: call(torch.ones(9))]
        return Case(layer, example=others[0], others=others, between={"other 1": lambda module: module.eval()})

    assert {one.status for one in judged(build, lambda fn, args, kwargs: fn).values()} == {EQUAL}
    frozen = judged(build, always(lambda x: nn.functional.dropout(x, 0.5)))
    assert frozen["example"].status == EQUAL and frozen["other 1"].status == WRONG


def test_a_call_that_takes_too_long_is_wrong() -> None:
    outcome = judged(doubling(), always(lambda x: time.sleep(5)), seconds=0.05)["example"]
    assert outcome.status == WRONG and "TooSlow" in outcome.reason


def test_generators_are_drained() -> None:
    build = lambda: Case(lambda x: (x * n for n in range(2)), example=lambda: call(torch.ones(1)), others=[])
    assert judged(build, always(lambda x: (x * n for n in range(2))))["example"].status == EQUAL
    assert judged(build, always(lambda x: (x * n for n in range(3))))["example"].status == WRONG
    assert judged(build, always(lambda x: [x * n for n in range(2)]))["example"].status == WRONG


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, {"a": 2}),
        ([1, 2], [1]),
        ({1, 2}, {1, 3}),
        (Slotted(1), Slotted(2)),
        (Slotted([1]), Slotted((1,))),
        (torch.ones(2), torch.ones(2, dtype=torch.int64)),
        (torch.eye(2), torch.eye(2).to_sparse()),
        (float("nan"), 1.0),
        (lambda x=1: x, lambda x=2: x),
        (torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)),
    ],
)
def test_pictures_show_what_differs(one: Any, other: Any) -> None:
    assert difference(picture(one), picture(other)) is not None
    assert difference(picture(one), picture(one)) is None


def test_addresses_are_no_part_of_a_picture() -> None:
    assert difference(picture({object(): 1}), picture({object(): 1})) is None
    assert difference(picture({object(): 1}), picture({object(): 2})) is not None


def test_a_picture_keeps_still_and_ends_on_cycles() -> None:
    nest: list[Any] = [torch.zeros(1)]
    nest.append(nest)
    before = picture(nest)
    nest[0].add_(1)
    assert difference(before, picture(nest)) == "result[0] has other values: [1.0], not [0.0]"


def test_the_world_is_put_back() -> None:
    with restored():
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
    assert torch.get_default_dtype() is torch.float32 and torch.is_grad_enabled()


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--subject", "baking", "--only", "branch_on_sum"]) == 1
    printed = capsys.readouterr().out
    assert "WRONG branches/branch_on_sum: other 1: the result has other values" in printed
    assert main(["--subject", "original", "--only", "branches", "--verbose"]) == 0
    assert "example again  equal" in capsys.readouterr().out
    assert main(["--only", "nothing", "--subject", "baking"]) == 2
