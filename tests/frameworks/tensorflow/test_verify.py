"""``clew.verify`` on TensorFlow: variables, random numbers and gradients are compared and put back."""

from __future__ import annotations

import tensorflow as tf

import clew

X = tf.constant([1.0, 2.0, 3.0])
weight = tf.Variable([1.0, 2.0, 3.0])


def learning(x):
    weight.assign_add(x)
    return {"product": weight * x, "count": 3}, tf.random.normal([2])


def learning_faster(x):
    weight.assign_add(x)
    result = {"product": weight * x, "count": 3}, tf.random.normal([2])
    weight.assign_add(x)
    return result


def test_everything_is_compared_and_put_back() -> None:
    before = weight.numpy().tolist()
    found = clew.verify(clew.trace(learning, (X,)), learning)
    assert [case.status for case in found.cases] == ["equal"] * 4, str(found)
    assert weight.numpy().tolist() == before


def test_other_variables_are_wrong() -> None:
    found = clew.verify(clew.trace(learning, (X,)), learning_faster)
    assert "the variables" in str(found) and not found.ok


def test_other_gradients_are_wrong() -> None:
    @tf.custom_gradient
    def steep(x):
        return tf.sin(x), lambda g: g * 5

    found = clew.verify(clew.trace(lambda x: tf.sin(x), (X,)), lambda x: steep(x))
    assert "the gradients" in str(found)
    assert clew.verify(clew.trace(lambda x: steep(x), (X,)), lambda x: steep(x))


def test_specs_are_filled_and_sizes_vary() -> None:
    def program(x):
        return tf.ragged.constant([[1, 2], [3]]), tf.strings.as_string(x), tf.reduce_sum(x, 1)

    found = clew.verify(clew.trace(program, (tf.TensorSpec([None, 3]),)), program)
    assert [case.status for case in found.cases] == ["equal"] * 4, str(found)


def test_a_random_stream_that_moves_further_is_wrong() -> None:
    def twice(x):
        tf.random.normal([2])
        return tf.random.normal([2]) + x[:2]

    found = clew.verify(clew.trace(lambda x: tf.random.normal([2]) + x[:2], (X,)), twice)
    assert not found.ok
