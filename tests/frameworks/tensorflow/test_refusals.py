"""What TensorFlow's tracing would do once, or wrongly, is refused, and leaves no mark."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy
import pytest
import tensorflow as tf

import clew

X = tf.constant([1.0, 2.0, 3.0])


def prints(x):
    print("here")
    return x


def prints_a_tensor(x):
    print(x)
    return x


def draws_from_python(x):
    return x * random.random()


def draws_from_numpy(x):
    return x * numpy.random.rand()


def makes_a_generator(x):
    return x * numpy.random.default_rng().normal()


def reads_a_clock(x):
    return x * time.time()


def catches(x):
    try:
        return tf.reshape(x, [2, 2])
    except (ValueError, tf.errors.InvalidArgumentError):
        return x


def asks_for_the_mode(x):
    return x if tf.executing_eagerly() else -x


def counts_rounds_in_a_list(x):
    rounds = []
    for _ in x:
        rounds.append(1)
    return x * len(rounds)


def fills_a_dict_in_a_branch(x):
    found = {}
    if tf.reduce_sum(x) > 0:
        found["a"] = 1
    return x, len(found)


def sets_the_seed(x):
    tf.random.set_seed(1)
    return x + tf.random.normal([3])


def sorts_by_python(x):
    return sorted(x)


def reads_a_dataset(x):
    total = 0.0
    for item in tf.data.Dataset.from_tensor_slices(x):
        total += item
    return total


class Counter:
    def __init__(self):
        self.count = 0

    def __call__(self, x):
        self.count += 1
        return x * self.count


LEVEL = 1.0


def sets_a_global_in_a_branch(x):
    global LEVEL
    if tf.reduce_sum(x) > 0:
        LEVEL = 5.0
    return x


def fails_on_the_other_side(x):
    if tf.reduce_sum(x) < 0:
        x = [x][1]
    return x


REFUSED = {
    sets_a_global_in_a_branch: "sets LEVEL, around it",
    fails_on_the_other_side: "IndexError",
    prints: "prints",
    prints_a_tensor: "prints",
    draws_from_python: "random.random cannot be captured",
    draws_from_numpy: "numpy.random.rand cannot be captured",
    makes_a_generator: "without a seed",
    reads_a_clock: "reading a clock",
    catches: "catches errors",
    asks_for_the_mode: "executing_eagerly",
    counts_rounds_in_a_list: "inside of a branch or loop",
    fills_a_dict_in_a_branch: "must also be initialized in the else branch",
    sets_the_seed: "set_seed",
    sorts_by_python: "sorted() of a tensor",
    reads_a_dataset: "takes a function as an attribute",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.__name__)
def test_refused(function: Any, capsys: pytest.CaptureFixture[str]) -> None:
    streams = random.getstate()
    with pytest.raises(clew.CaptureError) as refused:
        clew.trace(function, (X,))
    assert REFUSED[function] in str(refused.value)
    assert random.getstate() == streams
    assert capsys.readouterr().out == ""


def test_an_object_that_counts_is_left_as_it_was_and_counted_on_by_the_graph() -> None:
    counter = Counter()
    graph = clew.trace(counter, (X,))
    assert counter.count == 0
    assert graph(X).numpy().tolist() == [1.0, 2.0, 3.0] and graph(X).numpy().tolist() == [2.0, 4.0, 6.0]
    assert counter.count == 2


def test_arguments_that_are_changed() -> None:
    given = [X]
    graph = clew.trace(lambda items: items.append(items[0] * 2.0), (given,))
    assert len(given) == 1
    graph(given)
    assert given[1].numpy().tolist() == [2.0, 4.0, 6.0]


def test_an_error_of_the_program_is_its_own() -> None:
    def fails(x):
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        clew.trace(fails, (X,))


def test_options_without_a_meaning() -> None:
    for options in ({"leaves": "none"}, {"include_generators": False}, {"opaque": "maybe"}, {"control_flow": "guard"}):
        with pytest.raises(clew.CaptureError):
            clew.trace(tf.nn.relu, (X,), **options)


def test_control_flow_can_be_forbidden() -> None:
    def branches(x):
        return x if tf.reduce_sum(x) > 0 else -x

    assert clew.trace(branches, (X,))(-X).numpy().tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(clew.CaptureError, match="branches or loops on data"):
        clew.trace(branches, (X,), control_flow="error")


def test_functions_that_stay_calls_can_be_forbidden() -> None:
    def doubled(x):
        return tf.numpy_function(lambda a: a * 2, [x], tf.float32)

    assert clew.trace(doubled, (X,))(X + 1).numpy().tolist() == [4.0, 6.0, 8.0]
    with pytest.raises(clew.CaptureError, match="would stay a call"):
        clew.trace(doubled, (X,), opaque="error")


def test_a_variable_of_a_closure_that_a_branch_sets_is_refused() -> None:
    calls = 0

    def counts(x):
        nonlocal calls
        if tf.reduce_sum(x) > 0:
            calls += 1
        return x

    with pytest.raises(clew.CaptureError, match="sets calls, around it"):
        clew.trace(counts, (X,))
    assert calls == 0


def test_a_capture_that_changes_a_list_is_not_captured_again() -> None:
    history: list[int] = []

    def program(x):
        history.append(1)
        return x

    captured = clew.trace(program, (tf.ones(2),))
    with pytest.raises(clew.CaptureError, match="variables of Python is captured again"):
        clew.trace(captured, (tf.ones(2),))
    assert history == []


def writes_to_an_array(x, array):
    array **= 2
    return x + array


def writes_below_a_list(x, arrays):
    arrays[0][0] = 5
    return x * arrays[0]


@pytest.mark.parametrize("nested", [False, True])
def test_an_array_of_numpy_that_is_written_is_refused_and_put_back(nested: bool) -> None:
    array = numpy.full(3, 3.0, numpy.float32)
    program, given = (writes_below_a_list, [array]) if nested else (writes_to_an_array, array)
    with pytest.raises(clew.CaptureError, match="array of NumPy that it is given"):
        clew.trace(program, (X, given))
    assert array.tolist() == [3.0, 3.0, 3.0]


def sizes(x):
    return x.shape[0], x.shape, {"last": x.shape[-1]}


def test_a_program_that_calls_a_capture_sees_its_sizes() -> None:
    inner = clew.trace(sizes, (tf.ones((2, 3)),))
    outer = clew.trace(lambda x: inner(x), (tf.ones((2, 3)),))
    given = tf.ones((4, 5))
    assert outer(given) == clew.trace(inner, (given,))(given) == sizes(given)


def test_code_that_exec_ran_is_a_program() -> None:
    space: dict[str, Any] = {"tf": tf}
    exec("def sizes(x):\n    return x.shape[0], x.shape\n", space)
    exec("def number(x):\n    return float(tf.reduce_sum(x)) * x\n", space)
    assert clew.trace(space["sizes"], (tf.ones((2, 3)),))(tf.ones((4, 3))) == (4, tf.TensorShape([4, 3]))
    with pytest.raises(clew.CaptureError, match="cannot trace this program"):
        clew.trace(space["number"], (X,))


def test_a_lazy_graph_whose_example_fails_has_done_what_came_before() -> None:
    seen: list[int] = []

    def step(x, items):
        seen.append(1)
        items[0] = x
        return x

    graph = clew.trace(step)
    with pytest.raises(TypeError):
        graph(X, (X,))
    assert seen == [1]
