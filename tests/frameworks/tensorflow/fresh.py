"""Runs saved captures in a process that has never seen the programs: text, attributes, arguments, wanted results."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy
import tensorflow as tf

import clew


def main() -> None:
    cases = pickle.loads(Path(sys.argv[1]).read_bytes())
    for label, saved, wanted in cases:
        text, state, args = pickle.loads(saved)
        function = clew.GraphFunction(SimpleNamespace(**state), clew.parse(text, allow=("tests",)))
        found = tf.nest.flatten(function(*args), expand_composites=True)
        assert len(found) == len(wanted), label
        for one, other in zip(wanted, found, strict=True):
            value = other.numpy() if isinstance(other, tf.Tensor) else other
            if isinstance(one, numpy.ndarray) and one.dtype != object:
                numpy.testing.assert_allclose(one, value, rtol=1e-5, atol=1e-5, err_msg=label)
            else:
                assert numpy.array_equal(one, value), label
    print("same", len(cases))


if __name__ == "__main__":
    main()
