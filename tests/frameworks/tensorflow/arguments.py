"""Small arguments, by name, for the walk over TensorFlow's public functions."""

from __future__ import annotations

from typing import Any

import numpy
import tensorflow as tf

_generator = numpy.random.default_rng(0)


def _uniform(*shape: int) -> Any:
    return tf.constant(_generator.uniform(0.1, 0.9, shape), tf.float32)


X, Y, V = _uniform(3, 3), _uniform(3, 3), tf.constant([0.1, 0.5, 0.9])
DEFINITE = X @ tf.transpose(X) + tf.eye(3)
INDEX, B, BB = tf.constant([0, 1, 2]), tf.constant([True, False, True]), X > 0.5
C, CV = tf.complex(X, Y), tf.complex(V, V)
SEQUENCE, IMAGE, VOLUME = _uniform(1, 6, 2), _uniform(1, 4, 4, 2), _uniform(1, 4, 4, 4, 2)
FILTER1, FILTER2, FILTER3 = _uniform(2, 2, 2), _uniform(2, 2, 2, 2), _uniform(2, 2, 2, 2, 2)
LABELS, LONG = tf.constant([[0], [1], [2]]), tf.constant([[0], [1]], tf.int64)
IDS = tf.sparse.from_dense(tf.constant([[1, 0], [2, 1]], tf.int64))

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "x": (X,), "x y": (X, Y), "v": (V,), "v v": (V, V), "c": (C,), "cv": (CV,), "i": (INDEX,), "i i": (INDEX, INDEX),
    "b": (B,), "b b": (B, B), "bb": (BB,), "bb bb": (BB, BB), "definite": (DEFINITE,),
    "definite x": (DEFINITE, X), "x 2": (X, 2),
    "x 1": (X, 1), "x half": (X, 0.5), "v 2": (V, 2), "[x y]": ([X, Y],),
    "v i": (V, INDEX), "x i": (X, INDEX),
    "v i 3": (V, INDEX, 3), "x i 3": (X, INDEX, 3), "i v": (INDEX, V), "i x": (INDEX, X),
    "x v": (X, V), "x v v": (X, V, V),
    "x [0]": (X, [0]), "x [0 1]": (X, [0, 1]), "image": (IMAGE,), "image pool": (IMAGE, 2, 2, "SAME"),
    "image filter": (IMAGE, FILTER2, 1, "SAME"), "image filter strides": (IMAGE, FILTER2, [1, 1, 1, 1], "SAME"),
    "sequence": (SEQUENCE,), "sequence pool": (SEQUENCE, 2, 2, "SAME"),
    "sequence filter": (SEQUENCE, FILTER1, 1, "SAME"),
    "volume pool": (VOLUME, 2, 2, "SAME"), "volume filter": (VOLUME, FILTER3, [1, 1, 1, 1, 1], "SAME"),
    "v 4 2": (V, 4, 2), "v 2 1": (V, 2, 1), "3": (3,), "4": (4,), "2 3": (2, 3), "x 1 1": (X, 1, 1), "x x x": (X, X, X),
    "image v": (IMAGE, V), "i 3": (INDEX, 3), "ii": (tf.constant([[1, 2], [3, 4]]),), "[2 3]": ([2, 3],),
    "einsum": ("ij,jk->ik", X, Y), "x y 1": (X, Y, 1), "[v v v]": ([V, V, V],), "[x x] v": ([X, X], V),
    "half x": (0.5, X), "i x 2": (INDEX, X, 2), "batch norm": (X, V, V, V, V, 1e-3),
    "transpose1": (SEQUENCE, FILTER1, [1, 12, 2], 2, "SAME"), "transpose2": (IMAGE, FILTER2, [1, 8, 8, 2], 2, "SAME"),
    "transpose3": (VOLUME, FILTER3, [1, 8, 8, 8, 2], 2, "SAME"),
    "atrous transpose": (IMAGE, FILTER2, [1, 5, 5, 2], 1, "VALID"),
    "morphology": (IMAGE, FILTER2[0], [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1]),
    "image 2": (IMAGE, 2), "blocks": (_uniform(1, 2, 2, 4), 2),
    "fractional": (IMAGE, (1.0, 1.5, 1.5, 1.0), False, False, 3),
    "pool": (IMAGE, [2, 2], "MAX"), "moments": (tf.constant(3.0), V, V, None),
    "separable": (IMAGE, FILTER2, _uniform(1, 1, 4, 3), [1, 1, 1, 1], "SAME"),
    "space to batch": (IMAGE, [2, 2], [[0, 0], [0, 0]]), "embedding": (X, IDS, None),
    "lu": (tf.linalg.lu(DEFINITE)[0], tf.linalg.lu(DEFINITE)[1], X), "c axes": (C, [3, 3], [0, 1]),
    "x axes": (X, [3, 3], [0, 1]), "stft": (tf.signal.stft(_uniform(16), 8, 4), 8, 4), "mdct": (_uniform(16), 8),
    "logits": (_uniform(4, 1, 3), tf.constant([4])),
    "depthwise filter": (IMAGE, [2, 2, 2, 2], _uniform(1, 4, 4, 4), [1, 1, 1, 1], "SAME"),
    "depthwise input": ([1, 4, 4, 2], FILTER2, _uniform(1, 4, 4, 4), [1, 1, 1, 1], "SAME"),
    "global norm": (_uniform(1, 2, 2, 3), V, V, V, V, 0.1, True),
    "sampler all": (LONG, 1, 3, True), "sampler": (LONG, 1, 3, True, 5),
    "sampler unigram": (LONG, 1, 3, True, 3, "", 1.0, 0, 1, 0, (1.0, 2.0, 3.0)),
    "hits": (LONG, tf.constant([0, 1, 2], tf.int64), 1), "sampled loss": (X, V, LONG, X[:2], 2, 3),
    "ctc": (tf.constant([[1, 2]]), _uniform(4, 1, 4), tf.constant([2]), tf.constant([4])),
}  # fmt: skip
