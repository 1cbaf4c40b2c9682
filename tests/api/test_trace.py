"""What is given to ``clew.trace`` as an example is checked before anything runs."""

import inspect

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import clew


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (torch.ones(3), None, "args is a Tensor.*args=\\(x,\\)"),
        (np.ones(3), None, "args is an ndarray"),
        ({"x": torch.ones(3)}, None, "args is a dict"),
        ((), torch.ones(3), "kwargs is a Tensor"),
    ],
)
def test_arguments_that_are_no_tuple_are_told(args, kwargs, message):
    with pytest.raises(clew.CaptureError, match=f"(?s){message}"):
        clew.trace(torch.relu, args, kwargs)
    with pytest.raises(clew.CaptureError, match=f"(?s){message}"):
        clew.trace_graph(torch.relu, args=args, kwargs=kwargs)


def test_an_array_of_another_framework_is_named_as_such():
    with pytest.raises(clew.CaptureError, match="the argument 'b' holds an array of jax(?s:.*)convert it before"):
        clew.trace(lambda a, b: a, (torch.ones(2), jnp.ones(2)))


def test_the_class_of_captured_functions_has_a_signature():
    assert list(inspect.signature(clew.GraphFunction).parameters) == ["root", "graph", "name"]
    captured = clew.trace(lambda x, times=2: x * times, (torch.ones(2),))
    assert str(inspect.signature(captured)) == "(x, times=2)"


def test_an_example_that_does_not_fit_names_the_signature():
    def program(x, scale=2):
        return x * scale

    with pytest.raises(TypeError, match=r"does not fit \(x, scale=2\): too many positional arguments"):
        clew.trace(program, (torch.ones(3), 2, 3))
