"""Networks, layers and optimisers, written with variables as TensorFlow's users write them."""

from __future__ import annotations

import math

import numpy
import tensorflow as tf

from tests.frameworks.tensorflow.program import Program, floats, integers, normal, positive

_generator = numpy.random.default_rng(7)


def _weights(*shape: int, name: str) -> tf.Variable:
    return tf.Variable(normal(_generator, *shape) * 0.5, name=name)


W1, B1 = _weights(3, 8, name="w1"), _weights(8, name="b1")
W2, B2 = _weights(8, 2, name="w2"), _weights(2, name="b2")
KERNEL, KERNEL2 = _weights(3, 3, 1, 4, name="kernel"), _weights(3, 3, 4, 4, name="kernel2")
DEPTHWISE, POINTWISE = _weights(3, 3, 1, 2, name="depthwise"), _weights(1, 1, 2, 3, name="pointwise")
TABLE = _weights(10, 4, name="table")
GATES, RECURRENT = _weights(3, 16, name="gates"), _weights(4, 16, name="recurrent")
QUERY, KEY, VALUE = (_weights(6, 6, name=name) for name in ("query", "key", "value"))
SLOT, SECOND, STEP = (
    tf.Variable(tf.zeros([3])),
    tf.Variable(tf.zeros([3])),
    tf.Variable(0, dtype=tf.int64, name="step"),
)
PARAMETERS = tf.Variable([1.0, -2.0, 0.5], name="parameters")
AVERAGE = tf.Variable(tf.zeros([4]), name="average")
MEAN, SPREAD = tf.Variable(tf.zeros([3]), name="mean"), tf.Variable(tf.ones([3]), name="spread")


def dense_network(x):
    hidden = tf.nn.relu(tf.matmul(x, W1) + B1)
    return tf.nn.softmax(hidden @ W2 + B2)


def dense_gradients(x, labels):
    with tf.GradientTape() as tape:
        logits = tf.nn.tanh(x @ W1 + B1) @ W2 + B2
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    return loss, tape.gradient(loss, [W1, B1, W2, B2])


def descent_step(x, target):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.linalg.matvec(x, PARAMETERS) - target))
    PARAMETERS.assign_sub(0.1 * tape.gradient(loss, PARAMETERS))
    return loss


def momentum_step(gradient):
    SLOT.assign(0.9 * SLOT + gradient)
    PARAMETERS.assign_sub(0.01 * SLOT)
    return PARAMETERS.read_value()


def adam_step(gradient):
    STEP.assign_add(1)
    time = tf.cast(STEP, tf.float32)
    SLOT.assign(0.9 * SLOT + 0.1 * gradient)
    SECOND.assign(0.999 * SECOND + 0.001 * tf.square(gradient))
    rate = 0.01 * tf.sqrt(1.0 - tf.pow(0.999, time)) / (1.0 - tf.pow(0.9, time))
    PARAMETERS.assign_sub(rate * SLOT / (tf.sqrt(SECOND) + 1e-7))
    return tf.identity(PARAMETERS), STEP.value()


def moving_average(x):
    AVERAGE.assign(AVERAGE * 0.99 + 0.01 * x)
    return AVERAGE / (1.0 - 0.99)


def batch_normalization(x, training):
    if training:
        mean, variance = tf.nn.moments(x, axes=[0])
        MEAN.assign_add(0.1 * (mean - MEAN))
        SPREAD.assign_add(0.1 * (variance - SPREAD))
    else:
        mean, variance = MEAN, SPREAD
    return tf.nn.batch_normalization(x, mean, variance, offset=None, scale=None, variance_epsilon=1e-3)


def layer_normalization(x):
    mean = tf.reduce_mean(x, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.math.squared_difference(x, mean), axis=-1, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5)


def attention(x):
    query, key, value = x @ QUERY, x @ KEY, x @ VALUE
    scores = tf.matmul(query, key, transpose_b=True) / math.sqrt(6.0)
    return tf.nn.softmax(scores) @ value


def heads_of_attention(x):
    def split(y):
        return tf.transpose(tf.reshape(y, [tf.shape(y)[0], -1, 2, 3]), [0, 2, 1, 3])

    query, key, value = split(x @ QUERY), split(x @ KEY), split(x @ VALUE)
    scores = tf.einsum("bhid,bhjd->bhij", query, key)
    length = tf.shape(scores)[-1]
    mask = tf.linalg.band_part(tf.ones([length, length]), -1, 0)
    weights = tf.nn.softmax(tf.where(mask > 0, scores, -1e9))
    return tf.reshape(tf.transpose(weights @ value, [0, 2, 1, 3]), tf.shape(x))


def positions(x):
    length = tf.shape(x)[1]
    place = tf.cast(tf.range(length), tf.float32)[:, tf.newaxis]
    rate = tf.exp(-tf.range(0.0, 6.0, 2.0) * (math.log(10000.0) / 6.0))
    table = tf.concat([tf.sin(place * rate), tf.cos(place * rate)], axis=-1)
    return x + table[tf.newaxis]


def convolution_network(images):
    x = tf.nn.conv2d(images, KERNEL, strides=1, padding="SAME")
    x = tf.nn.max_pool2d(tf.nn.relu(x), 2, 2, "VALID")
    x = tf.nn.leaky_relu(tf.nn.conv2d(x, KERNEL2, strides=[1, 2, 2, 1], padding="SAME"), alpha=0.1)
    return tf.reduce_mean(x, axis=[1, 2])


def separable_convolution(images):
    return tf.nn.separable_conv2d(images, DEPTHWISE, POINTWISE, strides=[1, 1, 1, 1], padding="SAME")


def upsampling(images):
    x = tf.nn.conv2d(images, KERNEL, 1, "SAME")
    shape = tf.shape(images)
    return tf.nn.conv2d_transpose(x, KERNEL, tf.stack([shape[0], shape[1] * 2, shape[2] * 2, 1]), 2, "SAME")


def residual_block(images):
    x = tf.nn.conv2d(images, KERNEL, 1, "SAME")
    return tf.nn.elu(x + tf.nn.conv2d(tf.nn.silu(x), KERNEL2, 1, "SAME"))


def long_memory(sequence):
    """A cell that an unrolled loop of Python applies to each of five steps."""
    state = tf.zeros([tf.shape(sequence)[0], 4])
    memory = state
    outputs = []
    for step in range(5):
        gates = sequence[:, step] @ GATES + state @ RECURRENT
        keep, forget, new, out = tf.split(gates, 4, axis=1)
        memory = tf.sigmoid(forget) * memory + tf.sigmoid(keep) * tf.tanh(new)
        state = tf.sigmoid(out) * tf.tanh(memory)
        outputs.append(state)
    return tf.stack(outputs, axis=1), (state, memory)


def long_memory_of_any_length(sequence):
    """The same as a loop over tensors that writes to an array."""
    steps = tf.shape(sequence)[1]
    outputs = tf.TensorArray(tf.float32, size=steps)
    state = tf.zeros([tf.shape(sequence)[0], 4])
    memory = state
    for step in tf.range(steps):
        gates = sequence[:, step] @ GATES + state @ RECURRENT
        keep, forget, new, out = tf.split(gates, 4, axis=1)
        memory = tf.sigmoid(forget) * memory + tf.sigmoid(keep) * tf.tanh(new)
        state = tf.sigmoid(out) * tf.tanh(memory)
        outputs = outputs.write(step, state)
    return tf.transpose(outputs.stack(), [1, 0, 2])


def embedding(words):
    vectors = tf.nn.embedding_lookup(TABLE, words)
    return tf.reduce_max(vectors, axis=1), tf.gather(TABLE, words[:, 0])


def embedding_gradient(words):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(TABLE, words)))
    return tf.convert_to_tensor(tape.gradient(loss, TABLE))


def gradient_penalty(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        score = tf.reduce_sum(tf.nn.softplus(x @ W1))
    slope = tape.gradient(score, x)
    return tf.reduce_mean(tf.square(tf.norm(slope, axis=1) - 1.0))


def dropout_of_a_seed(x, seed):
    return tf.nn.experimental.stateless_dropout(x, rate=0.4, seed=seed)


ALL = [
    Program(dense_network, lambda g, n: (normal(g, n, 3),), (floats(None, 3),), (W1, B1, W2, B2)),
    Program(
        dense_gradients,
        lambda g, n: (normal(g, n, 3), integers(g, 2, n)),
        (floats(None, 3), tf.TensorSpec([None], tf.int32)),
        (W1, B1, W2, B2),
    ),
    Program(descent_step, lambda g, n: (normal(g, n, 3), normal(g, n)), (floats(None, 3), floats(None)), (PARAMETERS,)),
    Program(momentum_step, lambda g, n: (normal(g, 3),), None, (SLOT, PARAMETERS)),
    Program(adam_step, lambda g, n: (normal(g, 3),), None, (SLOT, SECOND, STEP, PARAMETERS)),
    Program(moving_average, lambda g, n: (normal(g, 4),), None, (AVERAGE,)),
    Program(
        batch_normalization,
        lambda g, n: (normal(g, n, 3), True),
        (floats(None, 3), True),
        (MEAN, SPREAD),
        "batch_normalization_training",
    ),
    Program(
        batch_normalization,
        lambda g, n: (normal(g, n, 3), False),
        (floats(None, 3), False),
        (MEAN, SPREAD),
        "batch_normalization_inference",
    ),
    Program(layer_normalization, lambda g, n: (normal(g, n, 5),), (floats(None, 5),)),
    Program(attention, lambda g, n: (normal(g, 2, n, 6),), (floats(2, None, 6),), (QUERY, KEY, VALUE)),
    Program(heads_of_attention, lambda g, n: (normal(g, 2, n, 6),), (floats(None, None, 6),), (QUERY, KEY, VALUE)),
    Program(positions, lambda g, n: (normal(g, 2, n, 6),), (floats(2, None, 6),)),
    Program(convolution_network, lambda g, n: (normal(g, n, 8, 8, 1),), (floats(None, 8, 8, 1),), (KERNEL, KERNEL2)),
    Program(
        separable_convolution, lambda g, n: (normal(g, n, 5, 5, 1),), (floats(None, 5, 5, 1),), (DEPTHWISE, POINTWISE)
    ),
    Program(upsampling, lambda g, n: (normal(g, n, 4, 4, 1),), (floats(None, 4, 4, 1),), (KERNEL,)),
    Program(residual_block, lambda g, n: (normal(g, n, 4, 4, 1),), (floats(None, 4, 4, 1),), (KERNEL, KERNEL2)),
    Program(long_memory, lambda g, n: (normal(g, n, 5, 3),), (floats(None, 5, 3),), (GATES, RECURRENT)),
    Program(
        long_memory_of_any_length, lambda g, n: (normal(g, 2, n, 3),), (floats(None, None, 3),), (GATES, RECURRENT)
    ),
    Program(embedding, lambda g, n: (integers(g, 10, n, 3),), (tf.TensorSpec([None, 3], tf.int32),), (TABLE,)),
    Program(embedding_gradient, lambda g, n: (integers(g, 10, n, 3),), None, (TABLE,)),
    Program(gradient_penalty, lambda g, n: (positive(g, n, 3),), (floats(None, 3),), (W1,)),
    Program(dropout_of_a_seed, lambda g, n: (normal(g, n, 6), integers(g, 99, 2)), None),
]
