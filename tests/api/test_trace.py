"""What is given to ``clew.trace`` as an example is checked before anything runs."""

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


def test_an_example_that_does_not_fit_names_the_signature():
    def program(x, scale=2):
        return x * scale

    with pytest.raises(TypeError, match=r"does not fit \(x, scale=2\): too many positional arguments"):
        clew.trace(program, (torch.ones(3), 2, 3))
