"""NumPy -> each target: algorithms as people write them give the same at other values and sizes, or are refused."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import jax
import numpy
import pytest
import torch

import clew
from clew import tree
from clew.errors import GuardError, TranslationError
from clew.translate.program import conversion
from tests.frameworks.numpy.algorithms import ALGORITHMS

EVERYWHERE = (
    "k_means game_of_life page_rank overlap_of_boxes one_hot summed_area haar_wavelet heat_diffusion max_pooling "
    "low_pass ridge_regression cellular_automaton attention kalman_filter mlp_forward_and_backward "
    "dynamic_time_warping gram_schmidt floyd_warshall trapezoid_and_gradient bilinear_resize newton_root"
).split()
BY_DATA = "run_lengths naive_bayes entropy scatter_mean histogram_equalisation".split()
"""Programs whose results have as many items as the data tell, which JAX cannot compile."""
CASES = [(to, name) for to in ("torch", "jax", "tensorflow") for name in EVERYWHERE[::3]]
CASES += [(("torch", "jax", "tensorflow")[place % 3], name) for place, name in enumerate(EVERYWHERE) if place % 3]
CASES += [(("torch", "tensorflow")[place % 2], name) for place, name in enumerate(BY_DATA)]


@pytest.fixture
def wide() -> Iterator[None]:
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def there(nest: Any, to: str) -> Any:
    _, convert = conversion("numpy", to)
    leaves, structure = tree.flatten(nest)
    return tree.unflatten([convert(one) if isinstance(one, numpy.ndarray) else one for one in leaves], structure)


def check(made: Any, fn: Any, call: Any, to: str) -> None:
    got = tree.flatten(made(*there(copy.deepcopy(call), to)))[0]
    wanted = tree.flatten(fn(*copy.deepcopy(call)))[0]
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted, strict=True):
        assert numpy.asarray(one).dtype == numpy.asarray(other).dtype
        numpy.testing.assert_allclose(numpy.asarray(one), other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("to", "name"), CASES)
def test_algorithms(to: str, name: str, wide: None) -> None:
    fn, calls = ALGORITHMS[name]
    made = clew.translate(clew.trace(fn, calls[0]), to)
    assert "numpy" not in made.code.replace("jax.numpy", "").replace("experimental.numpy", "").replace(".numpy()", "")
    for call in calls:
        check(made, fn, call, to)


def test_an_algorithm_becomes_torch_and_takes_gradients() -> None:
    def loss(x: Any, steps: int = 3) -> Any:
        for _ in range(steps):
            x = x - 0.1 * numpy.tanh(x)
        return (x**2).sum()

    made = clew.translate(clew.trace(loss, (numpy.ones(3),)), "torch")
    x = torch.linspace(-1, 1, 5, dtype=torch.float64, requires_grad=True)
    made(x, 4).backward()
    step = 1e-6
    for place in range(5):
        moved = numpy.linspace(-1, 1, 5)
        moved[place] += step
        slope = (loss(moved, 4) - loss(numpy.linspace(-1, 1, 5), 4)) / step
        assert abs(float(x.grad[place]) - slope) < 1e-4


def test_arrays_that_are_held_are_buffers_of_a_module() -> None:
    table = numpy.arange(12.0).reshape(4, 3)

    def fn(i: Any) -> Any:
        return table[i] * 2

    made = clew.translate(clew.trace(fn, (numpy.array([0, 2]),)), "torch")
    assert isinstance(made, torch.nn.Module)
    assert [tuple(one.shape) for one in made.buffers()] == [(4, 3)]
    assert made(torch.tensor([3, 1, 1])).tolist() == fn(numpy.array([3, 1, 1])).tolist()


def test_numbers_of_another_kind_and_arrays_of_another_dtype_are_guarded() -> None:
    made = clew.translate(clew.trace(lambda x, n: x * n, (numpy.ones(2), 3)), "torch")
    with pytest.raises(GuardError, match=r"type\(n\) is int"):
        made(torch.ones(2, dtype=torch.float64), 2.5)
    with pytest.raises(GuardError, match="x.dtype is float64"):
        made(torch.ones(2), 2)


@pytest.mark.parametrize("fn", [
    lambda x: numpy.linalg.svd(x)[0],
    lambda x: numpy.unique(x),
    lambda x: numpy.random.default_rng(0).permutation(5),
    lambda x: numpy.arange(4) // numpy.arange(4),
])  # fmt: skip
def test_what_differs_is_refused(fn: Any) -> None:
    with pytest.raises(TranslationError):
        clew.translate(clew.trace(fn, (numpy.eye(3) + 1,)), "torch")


def test_float64_into_a_jax_of_32_bits_is_refused() -> None:
    with pytest.raises(TranslationError, match="it computes in float64, and JAX has 32 bits"):
        clew.translate(clew.trace(lambda x: x * 2, (numpy.ones(2),)), "jax")


def put_back(x: Any) -> Any:
    x = x.copy()
    x[x > 0] = numpy.sqrt(x[x > 0])
    return x


EXAMPLE = (numpy.eye(3) + 1,)
SIZED = (numpy.array([[2.0, 0, 1], [0, -3, 0], [1, 5, 0]]),)


@pytest.mark.parametrize("fn", [lambda x: x[x > 0], lambda x: numpy.flatnonzero(x), lambda x: x[numpy.nonzero(x)],
                                lambda x: numpy.zeros(int(x.max())), put_back])  # fmt: skip
def test_results_of_a_size_that_the_data_tell_are_for_plain_calls_of_jax(fn: Any, wide: None) -> None:
    captured = clew.trace(fn, EXAMPLE)
    for to in ("torch", "tensorflow", "jax"):  # JAX is the last one
        made = clew.translate(captured, to)
        check(made, fn, SIZED, to)
        assert to != "jax" or "depends on data: the program runs, but cannot be compiled" in made.notes[0]
    with pytest.raises(clew.GuardError, match="the program asks for data, which are not there when JAX compiles it"):
        jax.jit(made)(jax.numpy.asarray(SIZED[0]))


def test_how_often_numbers_are_there_is_refused_by_jax_alone(wide: None) -> None:
    captured = clew.trace(fn := lambda x: numpy.bincount(x.argsort(0)[0]), EXAMPLE)
    with pytest.raises(TranslationError, match="depends on the data"):
        clew.translate(captured, "jax")
    for to in ("torch", "tensorflow"):
        check(clew.translate(captured, to), fn, SIZED, to)


def collecting(x: Any) -> Any:
    total, kept = numpy.zeros(x.shape), []
    for row in x:
        total[0] = total[0] + row
        total[1:] *= 2.0
        kept.append(total.sum() * row)
    return total, numpy.stack(kept)


def halving(x: Any) -> Any:
    x = x.copy()
    while x.sum() > 1.0:
        x[0] = x[0] / 2.0
        x[1:] = x[1:] * 0.25
    return x


@pytest.mark.parametrize("to", ["torch", "tensorflow", "jax"])
def test_loops_write_around_them_and_collect(to: str, wide: None) -> None:
    for fn in (collecting, halving):
        made = clew.translate(clew.trace(fn, EXAMPLE), to)
        check(made, fn, SIZED, to)
        check(made, fn, (numpy.full((3, 3), 2.0),), to)


def test_a_loop_on_data_that_writes_is_compiled_by_jax(wide: None) -> None:
    made = clew.translate(clew.trace(halving, EXAMPLE), "jax")
    assert "repeat_while" in made.code
    check(jax.jit(made), halving, SIZED, "jax")


def test_the_median_of_an_even_count_and_of_nan() -> None:
    made = clew.translate(clew.trace(lambda x: numpy.median(x, axis=0), (numpy.ones((3, 2)),)), "torch")
    x = numpy.array([[1.0, 5.0], [2.0, numpy.nan], [7.0, 1.0], [4.0, 2.0]])
    assert numpy.array_equal(made(torch.tensor(x)).numpy(), numpy.median(x, axis=0), equal_nan=True)


def row_sums(x: Any) -> Any:
    total = numpy.zeros(x.shape)
    row = total[1]
    row += x[1]
    for column in range(x.shape[1]):
        total[0, column] = total[1, column] * 2
        if x[0, column] > 0:
            total[:, column] += 1
    return total


@pytest.mark.parametrize("to", ["torch", "jax", "tensorflow"])
def test_writes_into_parts_in_loops_and_branches(to: str, wide: None) -> None:
    made = clew.translate(clew.trace(row_sums, (numpy.arange(6.0).reshape(2, 3),)), to)
    for x in (numpy.arange(6.0).reshape(2, 3), -numpy.arange(12.0).reshape(3, 4)):
        check(made, row_sums, (x,), to)


def test_a_loop_that_writes_into_an_array_that_is_seen_afterwards_is_refused() -> None:
    def fn(x: Any) -> Any:
        first = x * 2
        second = first
        for _ in range(len(x)):
            second *= 2
            second = second + 1
        return first, second

    captured = clew.trace(fn, (numpy.ones(3),))
    try:
        made = clew.translate(captured, "torch")
    except TranslationError:
        return
    check(made, fn, (numpy.ones(4),), "torch")


def test_random_numbers_are_of_the_same_distribution() -> None:
    def fn(n: int, seed: int) -> Any:
        generator = numpy.random.default_rng(seed)
        return generator.normal(3.0, 0.5, size=(n, 50)), generator.integers(2, 5, size=n)

    made = clew.translate(clew.trace(fn, (40, 1)), "tensorflow")
    assert "another stream" in made.notes[0]
    import tensorflow as tf

    normal, whole = made(40, 1, generator=tf.random.Generator.from_seed(0))
    assert normal.shape == (40, 50) and abs(float(tf.reduce_mean(normal)) - 3) < 0.1
    assert set(whole.numpy().tolist()) == {2, 3, 4}


def test_whole_numbers_out_of_floats_are_cut() -> None:
    def fn(x: Any) -> Any:
        return x * int(x[0]) + bool(x[1])

    captured = clew.trace(fn, (numpy.array([2.7, 1.5]),))
    for to in ("torch", "tensorflow"):
        check(clew.translate(captured, to), fn, (numpy.array([3.9, 0.0]),), to)


def through_a_part(x: Any, is_twice: bool) -> Any:
    whole = x * 2
    part = whole[0]
    for place in range(len(x)):
        whole[0] += 1
        whole[place] += part * 2
    return whole


def in_a_branch(x: Any, is_twice: bool) -> Any:
    whole = x * 2
    part = whole[0]
    if x[0, 0] > 0:
        whole[0] += 1
        whole[1] += part
    return whole


def through_a_part_afterwards(x: Any, is_twice: bool) -> Any:
    whole = x * 2
    part = whole[0]
    for _ in range(len(x)):
        whole[0] += 1
    return whole, part


def in_a_list(x: Any, is_twice: bool) -> Any:
    total, kept = numpy.zeros(2), []
    for row in x:
        total += row
        kept.append(total)
    return numpy.stack(kept)


def carried_into_a_list(x: Any, is_twice: bool) -> Any:
    total, kept = numpy.zeros(2), []
    for row in x:
        total *= 2
        total = total + row
        kept.append(total)
    return numpy.stack(kept)


def carried_twice(x: Any, is_twice: bool) -> Any:
    total, other, found = x[0] * 2, x[0] * 3, 0.0
    for row in x:
        total += row
        found = found + other.sum()
        other = total
    return found


def carried_and_written_afterwards(x: Any, is_twice: bool) -> Any:
    total, kept = numpy.zeros(2), []
    for row in x:
        total = total + row
        kept.append(total)
    total += 1
    return numpy.stack(kept)


def through_a_list(x: Any, is_twice: bool) -> Any:
    whole, kept = x * 2, []
    for place in range(len(whole)):
        kept.append(whole[place])
    whole[0] = 100.0
    return numpy.stack(kept)


@pytest.mark.parametrize("fn", [through_a_part, in_a_branch, through_a_part_afterwards, in_a_list, through_a_list,
                                carried_into_a_list, carried_twice, carried_and_written_afterwards])  # fmt: skip
def test_parts_that_are_seen_while_the_whole_is_written_are_right_or_refused(fn: Any) -> None:
    x = numpy.arange(1.0, 7.0).reshape(3, 2)
    captured = clew.trace(fn, (x, False))
    try:
        made = clew.translate(captured, "torch", check=False)
    except TranslationError:
        return
    check(made, fn, (x + 1, False), "torch")
