"""Algorithms: loops and branches over tensors, linear algebra, signals, dynamic programming, texts."""

from __future__ import annotations

import tensorflow as tf

from tests.frameworks.tensorflow.program import Program, floats, integers, normal, positive

COUNTER = tf.Variable(0, name="counter")
TRANSITIONS = tf.constant([[0.1, -0.4, 0.3], [0.0, 0.2, -0.1], [0.5, 0.1, 0.0]])


def means(points, start):
    """Clusters by Lloyd's algorithm, until the centres rest."""
    centres, before, rounds = start, start + 1.0, 0
    while tf.reduce_max(tf.abs(centres - before)) > 1e-6:
        distance = tf.reduce_sum(tf.square(points[:, None] - centres[None]), -1)
        nearest = tf.argmin(distance, axis=1)
        before = centres
        count = tf.math.unsorted_segment_sum(tf.ones_like(nearest, tf.float32), nearest, 2)
        centres = tf.math.unsorted_segment_sum(points, nearest, 2) / tf.maximum(count, 1.0)[:, None]
        rounds += 1
    return centres, rounds


def principal_components(x):
    centred = x - tf.reduce_mean(x, axis=0)
    scale, _, directions = tf.linalg.svd(centred)
    return scale, tf.abs(centred @ directions[:, :2])


def square_root(x):
    """Newton's method."""
    guess = x
    while tf.reduce_any(tf.abs(guess * guess - x) > 1e-4 * x):
        guess = 0.5 * (guess + x / guess)
    return guess


def power_iteration(matrix):
    symmetric = matrix @ tf.transpose(matrix)
    vector = tf.ones([tf.shape(matrix)[0]])
    for _ in tf.range(30):
        vector = tf.linalg.matvec(symmetric, vector)
        vector = vector / tf.norm(vector)
    return tf.tensordot(vector, tf.linalg.matvec(symmetric, vector), 1)


def by_sign(x):
    total = tf.reduce_sum(x)
    if total > 1.0:
        y = x * 2.0
    elif total > 0.0:
        y = x + 1.0
    else:
        y = -x
    return y


def with_early_returns(x):
    if tf.reduce_max(x) > 1.0:
        return tf.sort(x)
    if tf.reduce_min(x) < -1.0:
        x = x * 2.0
        return x - tf.reduce_min(x)
    return x


def chosen_branch(index, x):
    return tf.switch_case(index, [lambda: x + 1.0, lambda: x * x, lambda: tf.sin(x)])


def nested_loops(n):
    total = tf.constant(0)
    for i in tf.range(n):
        for j in tf.range(i):
            if (i + j) % 3 == 0:
                continue
            if j > 4:
                break
            total += i * j
    return total


def fibonacci(n):
    numbers = tf.TensorArray(tf.int32, size=0, dynamic_size=True, clear_after_read=False)
    numbers = numbers.write(0, 1).write(1, 1)
    for place in tf.range(2, n):
        numbers = numbers.write(place, numbers.read(place - 1) + numbers.read(place - 2))
    return numbers.stack()


def low_pass(signal):
    spectrum = tf.signal.rfft(signal)
    kept = tf.cast(tf.range(tf.shape(spectrum)[0]) < 3, tf.complex64)
    return tf.signal.irfft(spectrum * kept)


def spectrogram(signal):
    return tf.abs(tf.signal.stft(signal, frame_length=8, frame_step=4))


def edit_distance(left, right):
    """The dynamic programme of Levenshtein, a row at a time."""
    width = tf.shape(right)[0]
    row = tf.range(width + 1)
    for place in tf.range(tf.shape(left)[0]):
        following = tf.TensorArray(tf.int32, size=width + 1, clear_after_read=False).write(0, place + 1)
        for column in tf.range(width):
            cost = tf.where(left[place] == right[column], 0, 1)
            best = tf.minimum(row[column + 1] + 1, row[column] + cost)
            following = following.write(column + 1, tf.minimum(best, following.read(column) + 1))
        row = tf.ensure_shape(following.stack(), row.shape)
    return row[-1]


def best_path(scores):
    """Viterbi's algorithm with tf.scan."""

    def step(total, score):
        return tf.reduce_max(total[:, None] + TRANSITIONS, axis=0) + score

    totals = tf.scan(step, scores[1:], initializer=scores[0])
    return tf.reduce_max(totals[-1]), tf.argmax(totals, axis=1)


def kalman(measured):
    estimate, spread = tf.constant(0.0), tf.constant(1.0)
    history = tf.TensorArray(tf.float32, size=tf.shape(measured)[0])
    for step in tf.range(tf.shape(measured)[0]):
        spread = spread + 0.01
        gain = spread / (spread + 0.1)
        estimate = estimate + gain * (measured[step] - estimate)
        spread = (1.0 - gain) * spread
        history = history.write(step, estimate)
    return history.stack(), spread


def game_of_life(board):
    neighbours = sum(tf.roll(board, [i, j], [0, 1]) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    born = tf.logical_and(tf.equal(board, 0), tf.equal(neighbours, 3))
    stays = tf.logical_and(tf.equal(board, 1), tf.logical_or(tf.equal(neighbours, 2), tf.equal(neighbours, 3)))
    return tf.cast(tf.logical_or(born, stays), tf.int32)


def mandelbrot(real, imaginary):
    c = tf.complex(real, imaginary)
    z, counts = tf.zeros_like(c), tf.zeros(tf.shape(real), tf.int32)
    for _ in tf.range(12):
        inside = tf.abs(z) < 2.0
        z = tf.where(inside, z * z + c, z)
        counts += tf.cast(inside, tf.int32)
    return counts


def regression(x, y):
    gram = tf.matmul(x, x, transpose_a=True) + 0.1 * tf.eye(3)
    factor = tf.linalg.cholesky(gram)
    return tf.linalg.cholesky_solve(factor, tf.matmul(x, y[:, None], transpose_a=True))


def bilinear(x, y):
    return tf.einsum("ij,ik->ijk", x, y), tf.einsum("...i,...i->...", x, x)


def ranking(x):
    values, places = tf.math.top_k(x, k=2)
    return values, places, tf.argsort(x, direction="DESCENDING"), tf.sort(x, axis=0)


def statistics_by_group(x, groups):
    return {
        "mean": tf.math.segment_mean(x, tf.sort(groups)),
        "most": tf.math.unsorted_segment_max(x, groups, 3),
        "count": tf.math.bincount(groups, minlength=3),
    }


def distinct(x):
    values, places, counts = tf.unique_with_counts(x)
    return tf.sort(values), tf.size(values), tf.reduce_max(counts), tf.gather(values, places)


def confusion(labels, predictions):
    return tf.math.confusion_matrix(labels, predictions, num_classes=4)


def augmentation(image, seed):
    image = tf.image.stateless_random_flip_left_right(image, seed)
    image = tf.image.stateless_random_brightness(image, 0.2, seed)
    return tf.clip_by_value(tf.image.resize(image, [6, 6]), 0.0, 1.0)


def over_rows(x):
    return tf.map_fn(lambda row: tf.reduce_sum(row) * tf.sort(row), x)


def folded(x):
    return tf.foldl(lambda total, item: total * 0.5 + item, x)


def vectorized(x):
    return tf.vectorized_map(lambda row: tf.linalg.matvec(tf.linalg.diag(row), row), x)


def sparse_product(x):
    matrix = tf.sparse.SparseTensor([[0, 1], [2, 0]], [2.0, 3.0], [3, 3])
    return tf.sparse.sparse_dense_matmul(matrix, x)


def ragged_sums(values, lengths):
    ragged = tf.RaggedTensor.from_row_lengths(values, lengths)
    return tf.reduce_sum(ragged, axis=1), ragged * 2.0


def words(texts):
    lowered = tf.strings.lower(texts)
    lengths = tf.strings.length(lowered)
    return tf.strings.regex_replace(lowered, "[aeiou]", "_"), lengths, tf.strings.join([lowered, "!"])


def counted(x):
    COUNTER.assign_add(1)
    if COUNTER > 2:
        x = x * 0.0
    return x, COUNTER.read_value()


def custom_gradient_clip(x):
    @tf.custom_gradient
    def clipped(y):
        return tf.square(y), lambda upstream: tf.clip_by_value(upstream * 2.0 * y, -1.0, 1.0)

    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(clipped(x))
    return total, tape.gradient(total, x)


def nest_of_everything(batch, scale=2.0, *, bias=None):
    x, (y, rest) = batch["x"], batch["pair"]
    bias = tf.zeros_like(x) if bias is None else bias
    return {"sum": x + y, "list": [x * scale, (rest, None, "name", 3)], "bias": bias}


ALL = [
    Program(means, lambda g, n: (normal(g, n * 3, 2), normal(g, 2, 2)), (floats(None, 2), floats(2, 2))),
    Program(principal_components, lambda g, n: (normal(g, n + 2, 3),), (floats(None, 3),)),
    Program(square_root, lambda g, n: (positive(g, n),), (floats(None),)),
    Program(power_iteration, lambda g, n: (normal(g, n, 3),), (floats(None, 3),)),
    Program(by_sign, lambda g, n: (normal(g, n),), (floats(None),)),
    Program(with_early_returns, lambda g, n: (normal(g, n),), (floats(None),)),
    Program(chosen_branch, lambda g, n: (integers(g, 5), normal(g, n)), (tf.TensorSpec([], tf.int32), floats(None))),
    Program(nested_loops, lambda g, n: (tf.constant(n + int(g.integers(0, 6))),)),
    Program(fibonacci, lambda g, n: (tf.constant(n + int(g.integers(2, 6))),)),
    Program(low_pass, lambda g, n: (normal(g, 4 * n),), (floats(None),)),
    Program(spectrogram, lambda g, n: (normal(g, 8 * n),), (floats(None),)),
    Program(
        edit_distance,
        lambda g, n: (integers(g, 3, n), integers(g, 3, n + 1)),
        (tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.int32)),
    ),
    Program(best_path, lambda g, n: (normal(g, n, 3),), (floats(None, 3),)),
    Program(kalman, lambda g, n: (normal(g, n),), (floats(None),)),
    Program(game_of_life, lambda g, n: (integers(g, 2, n, n),), (tf.TensorSpec([None, None], tf.int32),)),
    Program(mandelbrot, lambda g, n: (normal(g, n, n), normal(g, n, n)), (floats(None, None), floats(None, None))),
    Program(regression, lambda g, n: (normal(g, n + 3, 3), normal(g, n + 3)), (floats(None, 3), floats(None))),
    Program(bilinear, lambda g, n: (normal(g, n, 2), normal(g, n, 3)), (floats(None, 2), floats(None, 3))),
    Program(ranking, lambda g, n: (normal(g, n, 5),), (floats(None, 5),)),
    Program(
        statistics_by_group,
        lambda g, n: (normal(g, n), integers(g, 3, n)),
        (floats(None), tf.TensorSpec([None], tf.int32)),
    ),
    Program(distinct, lambda g, n: (integers(g, 4, 3 * n),), (tf.TensorSpec([None], tf.int32),)),
    Program(confusion, lambda g, n: (integers(g, 4, n), integers(g, 4, n))),
    Program(augmentation, lambda g, n: (positive(g, 4, 4, 3), integers(g, 99, 2))),
    Program(over_rows, lambda g, n: (normal(g, n, 3),), (floats(None, 3),)),
    Program(folded, lambda g, n: (normal(g, n),), (floats(None),)),
    Program(vectorized, lambda g, n: (normal(g, n, 3),)),
    Program(sparse_product, lambda g, n: (normal(g, 3, n),), (floats(3, None),)),
    Program(
        ragged_sums, lambda g, n: (normal(g, 6), tf.constant([1, 3, 2])), (floats(None), tf.TensorSpec([3], tf.int32))
    ),
    Program(words, lambda g, n: (tf.constant([f"Some Word {i}" for i in g.integers(0, 9, n)]),)),
    Program(counted, lambda g, n: (normal(g, n),), None, (COUNTER,)),
    Program(custom_gradient_clip, lambda g, n: (normal(g, n),), None, alone=False),
    Program(nest_of_everything, lambda g, n: ({"x": normal(g, n), "pair": (normal(g, n), [normal(g, 1)])},)),
]
