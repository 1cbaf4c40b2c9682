"""Sizes that a program computes with stay general: one capture is right at several shapes, and no guard freezes one.

Each program is captured once and then called at other shapes, where it must give what the original gives. Programs that
truly take another way at another shape must raise instead.
"""

import math
import threading
from collections.abc import Callable
from math import sqrt
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import clew
from clew.errors import CaptureError, GuardError

Program = Callable[..., Any]
SHAPES = ((3, 4), (5, 2), (1, 7), (2, 1), (1, 1))


def int_of_size(x: Tensor) -> Any:
    return x * int(x.shape[0])


def int_of_float(x: Tensor) -> Any:
    return x.new_zeros(int(x.shape[0] * 2.5), int(x.shape[1] / 2) + 1)


def float_of_size(x: Tensor) -> Any:
    return x / float(x.shape[1]) ** 0.5


def int_of_tensor(x: Tensor) -> Any:
    return torch.arange(int(x.abs().sum()) + 1)


def largest_and_smallest(x: Tensor) -> Any:
    return x.new_ones(max(x.shape[0], 3), min(x.shape[1], x.shape[0], 4)), max(x.shape), min(list(x.shape))


def roots_and_logarithms(x: Tensor) -> Any:
    return x * math.sqrt(x.shape[0]) + math.log(x.shape[1]) * math.log2(x.shape[0] + 1), math.gcd(*x.shape)


def root_by_its_own_name(x: Tensor) -> Any:
    return x * sqrt(x.shape[0])


def roundings(x: Tensor) -> Any:
    return x.new_zeros(math.ceil(x.shape[0] / 2) * 2, math.floor(x.shape[1] / 2) + 1), round(x.shape[0] / 3)


def products(x: Tensor) -> Any:
    return x.reshape(math.prod(x.shape)) * sum(x.shape)


def truth_of_sizes(x: Tensor) -> Any:
    return x + 1 if all(x.shape) and x.shape[0] else x


def one_chunk(x: Tensor) -> Any:
    return torch.cat([x[start : start + 100] for start in range(0, x.shape[0], 100)])


def chunks_as_wide_as_the_whole(x: Tensor) -> Any:
    return [x[start : start + x.shape[0]] + start for start in range(0, x.shape[0], x.shape[0])]


def int_in_a_comprehension(x: Tensor) -> Any:
    return x.new_zeros([int(size) + 1 for size in x.shape]), [float(size) for size in x.shape]


def length_beside_a_range(x: Tensor) -> Any:
    for _ in range(2):
        x = x * len(x)
    return x


def image_size_by_int(x: Tensor) -> Any:
    return functional.interpolate(x[None, None], size=(int(x.shape[0] * 2), int(x.shape[1] * 3)))


def class_beside_a_call(x: Tensor) -> Any:
    size = int(x.shape[0])
    assert isinstance(size, int) and type(size) is int and isinstance(size, (int, float))
    return x * size + torch.zeros(1, dtype=int)  # type: ignore[call-overload]


def inner_functions(x: Tensor) -> Any:
    def half(size: int) -> int:
        return int(max(size / 2, 1.0))

    return x.new_zeros(half(x.shape[0]), (lambda size: int(size) + 1)(x.shape[1]))


GENERAL = [
    inner_functions,
    int_of_size,
    int_of_float,
    float_of_size,
    int_of_tensor,
    largest_and_smallest,
    roots_and_logarithms,
    root_by_its_own_name,
    roundings,
    products,
    truth_of_sizes,
    one_chunk,
    chunks_as_wide_as_the_whole,
    int_in_a_comprehension,
    length_beside_a_range,
    image_size_by_int,
    class_beside_a_call,
]


def example(*shape: int) -> Tensor:
    return torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape) / 7 - 1


def assert_same(expected: Any, actual: Any) -> None:
    if isinstance(expected, Tensor):
        assert torch.equal(expected, actual)
    elif isinstance(expected, (list, tuple)):
        assert len(expected) == len(actual)
        for mine, other in zip(expected, actual, strict=True):
            assert_same(mine, other)
    else:
        assert type(expected) is type(actual)
        assert expected == actual


@pytest.mark.parametrize("program", GENERAL, ids=lambda program: program.__name__)
def test_one_capture_holds_at_every_shape(program: Program) -> None:
    captured = clew.trace(program, args=(example(3, 4),))
    for shape in SHAPES:
        assert_same(program(example(*shape)), captured(example(*shape)))


@pytest.mark.parametrize("program", GENERAL, ids=lambda program: program.__name__)
def test_no_guard_freezes_a_size(program: Program) -> None:
    captured = clew.trace(program, args=(example(3, 4),))
    frozen = [f"x.shape[{dim}] == {size}" for dim, size in enumerate((3, 4))]
    assert not {str(guard) for guard in captured.guards} & set(frozen)


@pytest.mark.parametrize("program", GENERAL, ids=lambda program: program.__name__)
def test_the_program_is_as_it_was(program: Program) -> None:
    code, names = program.__code__, set(program.__globals__)
    clew.trace(program, args=(example(3, 4),))
    assert program.__code__ is code
    assert set(program.__globals__) == names


def rows_one_by_one(x: Tensor) -> Any:
    return [x[row].sum() for row in range(x.shape[0])]


def chunk_by_chunk(x: Tensor) -> Any:
    return [x[start : start + 2].sum() for start in range(0, x.shape[0], 2)]


def empty_or_not(x: Tensor) -> Any:
    return x + 1 if all(x.shape) else x - 1


def chosen_of_two_kinds(x: Tensor) -> Any:
    return x * max(x.shape[0], 2.5)


def rank_by_size(x: Tensor) -> Any:
    y = x.flatten(x.shape[0] - 3)
    return y + 1 if y.ndim == 1 else y - 1


@pytest.mark.parametrize(
    ("program", "same", "other"),
    [
        (rows_one_by_one, (3, 9), (4, 4)),
        (chunk_by_chunk, (4, 9), (5, 4)),
        (empty_or_not, (9, 9), (0, 4)),
        (chosen_of_two_kinds, (9, 9), (2, 4)),
        (rank_by_size, (3, 9), (4, 4)),
    ],
)
def test_a_way_that_depends_on_a_size_is_guarded(
    program: Program, same: tuple[int, ...], other: tuple[int, ...]
) -> None:
    captured = clew.trace(program, args=(example(3, 4),), control_flow="guard")
    assert_same(program(example(*same)), captured(example(*same)))
    with pytest.raises(GuardError):
        captured(example(*other))


@pytest.mark.parametrize(
    ("program", "other"),
    [(rows_one_by_one, (4, 4)), (chunk_by_chunk, (5, 4)), (empty_or_not, (0, 4)), (chosen_of_two_kinds, (2, 4))],
)
def test_both_ways_that_a_size_decides_are_captured(program: Program, other: tuple[int, ...]) -> None:
    captured = clew.trace(program, args=(example(3, 4),))
    for shape in ((3, 4), other):
        assert_same(program(example(*shape)), captured(example(*shape)))


def test_a_guard_on_a_loop_names_the_size() -> None:
    captured = clew.trace(rows_one_by_one, args=(example(3, 4),), control_flow="guard")
    assert "x.shape[0] == 3" in [str(guard) for guard in captured.guards]


class Pooling(torch.nn.Module):
    """A method that is called by another one, and not named in the forward's globals."""

    def forward(self, x: Tensor) -> Tensor:
        return self.pooled(x) * self.scale

    def pooled(self, x: Tensor) -> Tensor:
        return functional.adaptive_avg_pool1d(x, int(max(x.shape[1] // 2, 1)))

    @property
    def scale(self) -> float:
        return float(2)


def test_methods_are_general_too() -> None:
    module = Pooling()
    captured = clew.trace(module, args=(example(3, 4),))
    for shape in SHAPES:
        assert_same(module(example(*shape)), captured(example(*shape)))


def test_a_function_that_uses_numpy_keeps_numbers_traced() -> None:
    np = pytest.importorskip("numpy")

    def program(x: Tensor) -> Tensor:
        return x * float(np.sqrt(len(x)))

    captured = clew.trace(program, args=(example(4, 4),))
    for shape in ((4, 2), (9, 4)):
        assert_same(program(example(*shape)), captured(example(*shape)))


def logarithm_or_nothing(x: Tensor, n: int) -> Any:
    try:
        return x * math.log(n)
    except ValueError:
        return x


def quotient_or_nothing(x: Tensor, n: int) -> Any:
    try:
        return x * (10 // n)
    except ZeroDivisionError:
        return x


@pytest.mark.parametrize("program", [logarithm_or_nothing, quotient_or_nothing])
def test_an_error_in_arithmetic_that_the_program_catches(program: Program) -> None:
    caught = clew.trace(program, args=(example(2), 0))
    assert_same(program(example(2), 0), caught(example(2), 0))
    with pytest.raises(GuardError):
        caught(example(2), 3)
    captured = clew.trace(program, args=(example(2), 3))
    for number in (3, 7, 0):
        try:
            assert_same(program(example(2), number), captured(example(2), number))
        except GuardError:
            assert number != 3


def number_or_nothing(x: Tensor) -> Any:
    try:
        return x * int(x)
    except (ValueError, RuntimeError):
        return x


def true_or_nothing(x: Tensor) -> Any:
    try:
        return x * 2 if x else x
    except RuntimeError:
        return x


@pytest.mark.parametrize("program", [number_or_nothing, true_or_nothing])
def test_a_tensor_that_is_no_number(program: Program) -> None:
    with pytest.raises(CaptureError, match="catches"):
        clew.trace(program, args=(example(2),))
    captured = clew.trace(program, args=(example(1),))
    with pytest.raises(GuardError):
        captured(example(2))


def steps_of_a_range(x: Tensor, n: int) -> Any:
    steps = range(0, n, 2)
    return x, isinstance(steps, range), len(steps), steps[1], list(reversed(steps)), steps[:1], steps == range(0, n, 2)


def text_of_a_range(x: Tensor, n: int) -> Any:
    return x, f"{range(0, n, 2)}", range(n).stop, range(0, n, 2).count(2)


@pytest.mark.parametrize("program", [steps_of_a_range, text_of_a_range])
def test_a_range_is_one(program: Program) -> None:
    captured = clew.trace(program, args=(example(2), 4))
    assert_same(program(example(2), 4), captured(example(2), 4))
    with pytest.raises(GuardError):
        captured(example(2), 6)


def test_a_global_function_of_that_name_is_no_builtin() -> None:
    space: dict[str, Any] = {"__name__": "elsewhere", "max": lambda *values: values[0]}
    exec("def program(x): return x * max(x.shape[0], x.shape[1])", space)
    captured = clew.trace(space["program"], args=(example(3, 4),))
    for shape in SHAPES:
        assert_same(space["program"](example(*shape)), captured(example(*shape)))


def test_a_function_made_inside_outlives_the_capture() -> None:
    made = []

    def program(x: Tensor) -> Tensor:
        made.append(lambda value: int(value) + max(value, 2))
        return x * made.pop()(x.shape[0])

    kept: list[Any] = []

    def keeping(x: Tensor) -> Tensor:
        def double(value: float) -> int:
            return int(value) * 2

        kept[:] = [double]
        return x * double(x.shape[0])

    assert_same(program(example(3)), clew.trace(program, args=(example(3),))(example(3)))
    assert_same(keeping(example(3)), clew.trace(keeping)(example(3)))
    assert kept[0](2.7) == 4


def test_another_thread_may_run_the_program_meanwhile() -> None:
    started, ended, results = threading.Event(), threading.Event(), []

    def program(x: Tensor, wait: Any) -> Tensor:
        wait()
        return x * int(x.shape[0])

    def during() -> None:
        started.wait(10)
        results.append(program(example(3), lambda: ended.wait(10)))

    thread = threading.Thread(target=during)
    thread.start()
    captured = clew.trace(lambda x: program(x, started.set), args=(example(2),))
    ended.set()
    thread.join()
    assert_same(program(example(3), list), results[0])
    assert_same(program(example(5), list), captured(example(5)))


class Carrying(torch.nn.Module):
    """Its state is a buffer with the marks that torch gives it."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Buffer(torch.arange(12.0).view(4, 3), persistent=False)

    def forward(self, x: Tensor) -> Any:
        self.table = self.table.to(x.dtype)
        return x + self.table[: x.shape[0]], isinstance(self.table, torch.nn.Buffer)


def test_marks_of_a_buffer_are_kept() -> None:
    module = Carrying()
    captured = clew.trace(module, (torch.ones(2, 3),))
    result, is_buffer = captured(torch.ones(3, 3))
    assert torch.equal(result, torch.ones(3, 3) + module.table[:3]) and is_buffer is True
    module.table.persistent = True  # which the program does not ask for
    assert torch.equal(captured(torch.ones(3, 3))[0], module(torch.ones(3, 3))[0])


def torch_compilable_check(condition: Any, message: str) -> None:
    assert condition, message


def test_a_number_in_the_message_of_a_check_is_not_guarded() -> None:
    def program(x: Tensor) -> Tensor:
        torch_compilable_check(x.shape[0] > 0, f"no rows in {x}: {x.shape[0]}")
        return x * 2

    captured = clew.trace(program, (torch.ones(2),))
    assert captured(torch.ones(3)).shape == (3,)


def test_a_text_that_a_check_depends_on_is_guarded() -> None:
    def program(x: Tensor) -> Tensor:
        torch_compilable_check(str(x.shape[0]) != "3", "three rows")
        return x * 2

    captured = clew.trace(program, (torch.ones(2),))
    with pytest.raises(GuardError):
        captured(torch.ones(3))


class Collecting(torch.autograd.Function):
    """A function with a backward of its own that also fills a list."""

    @staticmethod
    def forward(context: Any, x: Tensor, found: list[Tensor]) -> Tensor:
        context.save_for_backward(x)
        found.append(x.sum() * x.shape[0])
        return x * 2

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Any:
        return gradient * 2, None


def collecting(x: Tensor) -> Any:
    found: list[Tensor] = []
    return Collecting.apply(x, found), found


def test_a_function_that_fills_a_list_is_entered_without_gradients() -> None:
    with torch.no_grad():
        captured = clew.trace(collecting, (torch.ones(2),))
        torch.testing.assert_close(captured(torch.ones(5)), collecting(torch.ones(5)), rtol=0, atol=0)
    with pytest.raises(GuardError, match="grad"):
        captured(torch.ones(2))
    with pytest.raises(CaptureError, match="changes a list"):
        clew.trace(collecting, (torch.ones(2, requires_grad=True),))


class GivingBack(torch.autograd.Function):
    """A function that gives back what it got: ``apply`` makes another tensor of it."""

    @staticmethod
    def forward(context: Any, x: Tensor, found: list[Any]) -> Tensor:
        return x

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Any:
        return gradient, None


def test_a_function_that_gives_its_input_back_is_not_entered() -> None:
    with torch.no_grad(), pytest.raises(CaptureError, match="gives inputs back"):
        clew.trace(lambda x: GivingBack.apply(x, []), (torch.ones(2),))
