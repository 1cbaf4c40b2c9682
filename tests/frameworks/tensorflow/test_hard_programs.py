"""No hard program of TensorFlow is silently wrong: each call gives what the original gives, or is refused."""

from __future__ import annotations

import random
from typing import Any

import numpy
import pytest
import tensorflow as tf

import clew
from tests.frameworks.hard_programs import Judge, checked, lazily
from tests.frameworks.tensorflow import compare
from tests.frameworks.tensorflow.hard import PROGRAMS


def difference(wanted: Any, got: Any) -> str:
    """What differs between two values, in words; nan equals nan, and objects are compared by what they hold."""
    if isinstance(wanted, numpy.ndarray) and type(got) is numpy.ndarray:
        same = wanted.dtype == got.dtype and numpy.array_equal(wanted, got)
        return "" if same else f"{got} instead of {wanted}"
    if type(wanted) is float and type(got) is float and wanted != wanted and got != got:
        return ""
    if type(wanted) is type(got) and isinstance(wanted, (list, tuple, dict)):
        left, right = (list(one.items()) if isinstance(one, dict) else list(one) for one in (wanted, got))
        if len(left) != len(right):
            return f"{len(right)} items instead of {len(left)}"
        return next((told for pair in zip(left, right, strict=True) if (told := difference(*pair))), "")
    if type(wanted) is type(got) and isinstance(wanted, tf.Module):
        return difference(*({k: v for k, v in vars(one).items() if not k.startswith("_")} for one in (wanted, got)))
    return compare.difference(wanted, got)


def copied(value: Any) -> Any:
    """The same leaves in containers of their own; variables as they are now."""
    if isinstance(value, tuple):
        items = [copied(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if type(value) is list:
        return [copied(item) for item in value]
    if type(value) is dict:
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, tf.Variable):
        return tf.convert_to_tensor(value)
    if isinstance(value, tf.random.Generator):
        return tf.convert_to_tensor(value.state)
    return value.copy() if isinstance(value, numpy.ndarray) else value


def reset() -> None:
    """Random numbers start anew."""
    random.seed(3)
    numpy.random.seed(3)
    tf.random.set_seed(3)


JUDGE = Judge(difference, copied, reset)


def test_there_are_enough() -> None:
    assert len(PROGRAMS) >= 60


@pytest.mark.parametrize("name", PROGRAMS)
def test_traced(name: str) -> None:
    checked(JUDGE.outcomes(PROGRAMS[name], clew.trace), PROGRAMS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_lazy(name: str) -> None:
    JUDGE.outcomes(PROGRAMS[name], lazily(clew.trace))
