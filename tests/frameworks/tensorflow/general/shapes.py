"""Programs that work on any size: what they read of shapes, they use."""

from __future__ import annotations

import tensorflow as tf

from tests.frameworks.tensorflow.general.ledger import MATRICES, VECTORS, floats, ints, program

M, N = floats(2, 6), floats(3, 8)
IMAGES = (
    (floats(2, 8, 8, 3),),
    (floats(1, 8, 8, 3),),
    (floats(3, 5, 5, 3),),
    (floats(2, 12, 6, 3),),
    (floats(4, 1, 1, 3),),
)


@program(*MATRICES)
def standardised(x):
    mean, variance = tf.nn.moments(x, axes=[0])
    return (x - mean) / tf.sqrt(variance + 1e-5)


@program((M,), (N,), (floats(1, 6),), (floats(5, 2),), (floats(2, 10),))
def split_heads(x):
    batch, width = x.shape[0], x.shape[1]
    return tf.transpose(tf.reshape(x, [batch, 2, width // 2]), [1, 0, 2])


@program(*IMAGES)
def flattened(x):
    return tf.reshape(x, [x.shape[0], -1])


@program(*IMAGES)
def flattened_by_tf_shape(x):
    sizes = tf.shape(x)
    return tf.reshape(x, [sizes[0], sizes[1] * sizes[2], 3])


@program((floats(2, 5, 4),), (floats(1, 5, 4),), (floats(3, 7, 4),), (floats(2, 1, 4),), (floats(2, 3, 6),))
def attention(x):
    scores = tf.matmul(x, x, transpose_b=True) / tf.sqrt(tf.cast(tf.shape(x)[-1], x.dtype))
    return tf.matmul(tf.nn.softmax(scores, axis=-1), x)


@program((floats(2, 5, 4),), (floats(1, 5, 4),), (floats(3, 7, 4),), (floats(2, 1, 4),), (floats(2, 3, 6),))
def causal_attention(x):
    length = x.shape[1]
    scores = tf.matmul(x, x, transpose_b=True) / x.shape[-1] ** 0.5
    mask = tf.linalg.band_part(tf.ones([length, length]), -1, 0)
    scores = scores + (1.0 - mask) * -1e9
    return tf.matmul(tf.nn.softmax(scores, axis=-1), x)


@program(*MATRICES)
def mean_by_len(x):
    return tf.reduce_sum(x, axis=0) / len(x)


@program(*MATRICES)
def positions(x):
    rows = tf.range(x.shape[0], dtype=tf.float32)[:, None]
    return x + rows / x.shape[1]


@program(*MATRICES)
def rows_in_python(x):
    total = tf.zeros([x.shape[1]])
    for i in range(x.shape[0]):
        total = total + x[i] * (i + 1)
    return total


@program(*MATRICES)
def rows_iterated(x):
    total = tf.zeros_like(x[0])
    for row in x:
        total = total + row * tf.reduce_max(row)
    return total


@program(*MATRICES)
def rows_gathered(x):
    found = []
    for row in x:
        found.append(tf.reduce_sum(row) * row)
    return tf.stack(found)


@program(*VECTORS)
def padded_to_even(x):
    n = x.shape[0]
    if n % 2:
        x = tf.pad(x, [[0, 1]])
    return tf.reshape(x, [-1, 2])


@program(*MATRICES)
def halves(x):
    middle = x.shape[0] // 2
    return x[:middle], x[middle:]


@program(*VECTORS)
def windows(x):
    return tf.signal.frame(x, 2, 1), tf.roll(x, 1, axis=0)


@program((ints(3, 4),), (ints(3, 4, seed=5),), (ints(1, 4),), (ints(5, 2),), (ints(2, 9),))
def embedding(i):
    table = tf.reshape(tf.range(20.0), [10, 2])
    return tf.reduce_mean(tf.gather(table, i), axis=1)


@program(
    (floats(3), floats(3)),
    (floats(5), floats(5)),
    (floats(1), floats(4)),
    (floats(4), floats(1)),
    (floats(2, 3), floats(3)),
)
def outer_and_broadcast(x, y):
    return x + y, x * 2 - y


@program(
    (floats(3), floats(5)),
    (floats(1), floats(1)),
    (floats(2), floats(7)),
    (floats(6), floats(2)),
    (floats(4), floats(4)),
)
def distances(x, y):
    return tf.abs(x[:, None] - y[None, :])


@program((floats(4, 4),), (floats(2, 2),), (floats(1, 1),), (floats(6, 6),), (floats(3, 3),))
def covariance_and_cholesky(x):
    n = x.shape[0]
    matrix = tf.matmul(x, x, transpose_a=True) + tf.eye(n) * n
    return tf.linalg.cholesky(matrix), tf.linalg.trace(matrix)


@program(*VECTORS)
def shape_as_a_result(x):
    return x * 2, x.shape[0], tf.shape(x), x.ndim


@program(
    (floats(2, 3), floats(2, 3)),
    (floats(4, 3), floats(4, 3)),
    (floats(1, 3), floats(1, 3)),
    (floats(2, 5), floats(2, 5)),
    (floats(2, 3), floats(2, 5)),
)
def concatenated_along_the_last(x, y):
    return tf.concat([x, y], axis=-1), tf.stack([x[0], x[-1]])


@program((floats(4),), (floats(4, dtype="float64"),), (floats(6),), (floats(6, dtype="float64"),), (floats(1),))
def any_dtype(x):
    return tf.nn.relu(x) * 2 + tf.reduce_mean(x)


@program((floats(4),), (floats(3, 4),), (floats(2, 3, 4),), (floats(1),), (floats(1, 1),))
def any_rank(x):
    return tf.nn.softmax(x, axis=-1) * 2


@program((M, 2), (N, 2), (N, 4), (floats(1, 6), 3), (floats(4, 5), 1))
def heads_by_number(x, heads):
    parts = tf.split(x, heads, axis=-1) if heads > 1 else [x]
    return tf.concat(parts[::-1], axis=-1)


@program((M, 3), (N, 2), (N, 4), (floats(1, 6), 3), (floats(4, 5), 5))
def reshaped_by_number(x, heads):
    return tf.reduce_sum(tf.reshape(x, [x.shape[0], heads, x.shape[1] // heads]), axis=-1)
