"""What is asked of a capture is looked at before anything runs, and an error says what was wrong with it."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import clew


def scaled(x: Any, times: int = 2) -> Any:
    return x * times


@pytest.mark.parametrize("program", [5, "scaled", torch.ones(2), [scaled]], ids=["number", "text", "array", "list"])
def test_what_cannot_be_called_is_told_at_once(program: Any) -> None:
    kind = "an? " + type(program).__name__
    with pytest.raises(clew.CaptureError, match=f"{kind} cannot be called, so it cannot be captured"):
        clew.trace(program, (torch.ones(2),))
    with pytest.raises(clew.CaptureError, match="cannot be called"):
        clew.trace(program)
    with pytest.raises(clew.CaptureError, match="cannot be called"):
        clew.explain(program)


def test_a_python_module_is_led_to_the_function_that_takes_one() -> None:
    with pytest.raises(clew.CaptureError, match="clew.trace_graph takes a Python module"):
        clew.trace(np)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"static": ["time"]}, "static names 'time', which is no parameter(?s:.*)the parameters are x, times"),
        ({"static": 5}, "static=5 names no parameters"),
        ({"static": [1]}, r"static=\[1\] names no parameters"),
        ({"opaque": "never"}, 'opaque=\'never\' says nothing(?s:.*)"call" or "error"'),
        ({"control_flow": "trace"}, "control_flow='trace' says nothing"),
    ],
)
def test_options_that_say_nothing_are_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(clew.CaptureError, match=message):
        clew.trace(scaled, (torch.ones(2),), **options)
    with pytest.raises(clew.CaptureError, match=message):  # a lazy graph says so when it is made
        clew.trace(scaled, **options)
    with pytest.raises(clew.CaptureError, match=message):
        clew.explain(scaled, (torch.ones(2),), **options)


def test_a_name_alone_is_one_static_argument() -> None:
    captured = clew.trace(scaled, (torch.ones(2), 3), static="times")
    assert "times == 3" in [str(guard) for guard in captured.guards]
    explained = clew.explain(scaled, (torch.ones(2), 3), static="times")
    assert [row["guard"] for row in explained.guards] == [str(guard) for guard in captured.guards]


@pytest.mark.parametrize("limit", [0, -1, "many"])
def test_a_limit_allows_at_least_one_capture(limit: Any) -> None:
    with pytest.raises(clew.CaptureError, match="allows no capture"):
        clew.trace(scaled, limit=limit)


def test_an_example_of_named_arguments_belongs_elsewhere() -> None:
    with pytest.raises(clew.CaptureError, match=r"args is a dict(?s:.*)kwargs="):
        clew.trace(scaled, {"x": torch.ones(2)})
    with pytest.raises(clew.CaptureError, match="args is a Tensor"):
        clew.explain(scaled, torch.ones(2, 2))


@pytest.mark.parametrize("option", ["arg_stateful_idxs", "kwarg_stateful_idxs"])
def test_positions_come_in_a_list(option: str) -> None:
    with pytest.raises(clew.CaptureError, match=rf"{option}=0 is no list of positions(?s:.*)\[\[0\]\]"):
        clew.trace_graph(scaled, args=(torch.ones(2),), **{option: 0})


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        (np.ones(2), {"leaves": "none"}, "leaves says nothing in a program of NumPy"),
        (jnp.ones(2), {"leaves": "none"}, "leaves says nothing in a program of JAX"),
        (jnp.ones(2), {"include_generators": False}, "include_generators says nothing in a program of JAX"),
        (tf.ones(2), {"leaves": "none"}, "leaves says nothing in a program of TensorFlow"),
        (tf.ones(2), {"include_generators": False}, "include_generators says nothing in a program of TensorFlow"),
        (tf.ones(2), {"control_flow": "guard"}, 'control_flow="guard" says nothing in a program of TensorFlow'),
    ],
    ids=[
        "numpy-leaves",
        "jax-leaves",
        "jax-generators",
        "tensorflow-leaves",
        "tensorflow-generators",
        "tensorflow-guard",
    ],
)
def test_what_means_nothing_to_a_framework_is_refused(x: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(clew.CaptureError, match=f"{message}(?s:.*)why: "):
        clew.trace(scaled, (x,), **options)


@pytest.mark.parametrize("make", [np.ones, jnp.ones, tf.ones], ids=["numpy", "jax", "tensorflow"])
def test_stateful_objects_are_named_for_torch_alone(make: Any) -> None:
    box = type("Box", (), {})()
    with pytest.raises(clew.CaptureError, match="stateful says nothing"):
        clew.trace_graph(scaled, args=(make(2),), stateful=[box])
    with pytest.raises(clew.CaptureError, match="arg_stateful_idxs says nothing"):
        clew.trace_graph(lambda box, x: x * 2, args=(box, make(2)), arg_stateful_idxs=[[0]])
