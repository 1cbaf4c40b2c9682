"""Numerical algorithms that iterate: until something converges, along an axis, or by a recursion."""

from __future__ import annotations

import math

import numpy as np

from tests.frameworks.numpy.realistic.register import floats, grid, noise, program, symmetric


@program((noise(0, 12, 2), 3), (noise(1, 9, 2), 3), (noise(2, 20, 3), 4), (noise(3, 6, 1), 2), (noise(4, 8, 2), 3, 2))
def k_means(points, k, steps=5):
    centres = points[:k].copy()
    labels = np.zeros(len(points), dtype=int)
    for _ in range(steps):
        distances = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=-1)
        labels = distances.argmin(axis=1)
        for j in range(k):
            members = points[labels == j]
            if len(members) > 0:
                centres[j] = members.mean(axis=0)
    return centres, labels


@program(
    (symmetric(0, 4),), (symmetric(1, 4),), (symmetric(2, 6),), (symmetric(3, 3), 1e-3), (symmetric(4, 3), 1e-9, 5)
)
def power_iteration(matrix, tolerance=1e-6, limit=50):
    vector = np.ones(matrix.shape[0]) / np.sqrt(matrix.shape[0])
    value = 0.0
    for _ in range(limit):
        product = matrix @ vector
        norm = np.linalg.norm(product)
        vector = product / norm
        new = vector @ matrix @ vector
        if abs(new - value) < tolerance:
            break
        value = new
    return value, vector


@program((2.0,), (9.0,), (5,), (0.25, 1e-3), (144, 1e-12), (floats(4.0)[0],))
def newton_square_root(number, tolerance=1e-10):
    guess = number / 2 + 0.5
    while abs(guess * guess - number) > tolerance:
        guess = 0.5 * (guess + number / guess)
    return guess


@program((floats(2, 9),), (floats(4, 16, 25, 3),), (np.array([4, 9]),), (grid(2, 2) + 1,), (np.float32([2, 3]), 1e-3))
def newton_square_roots(numbers, tolerance=1e-10):
    guess = numbers / 2 + 0.5
    while np.max(np.abs(guess * guess - numbers)) > tolerance:
        guess = 0.5 * (guess + numbers / guess)
    return guess


@program(
    (symmetric(0, 3), floats(1, 2, 3)),
    (symmetric(1, 3), floats(0, 1, 0)),
    (symmetric(2, 5), noise(1, 5)),
    (symmetric(3, 2), floats(1, 1), 1e-3),
    (symmetric(3, 4), np.zeros(4)),
)
def conjugate_gradient(matrix, target, tolerance=1e-8):
    x = np.zeros_like(target)
    residual = target - matrix @ x
    direction = residual.copy()
    old = residual @ residual
    for _ in range(len(target)):
        if np.sqrt(old) < tolerance:
            break
        step = matrix @ direction
        alpha = old / (direction @ step)
        x += alpha * direction
        residual -= alpha * step
        new = residual @ residual
        direction = residual + (new / old) * direction
        old = new
    return x


@program((0.0, 2.0), (0.0, 4.0), (-1.0, 3.0), (0, 2), (1.0, 2.0, 1e-3), (3.0, 4.0))
def bisect_cubic(low, high, tolerance=1e-6):
    def value(x):
        return x**3 - x - 2

    if value(low) * value(high) > 0:
        raise ValueError("no change of sign")
    while high - low > tolerance:
        middle = (low + high) / 2
        if value(low) * value(middle) <= 0:
            high = middle
        else:
            low = middle
    return (low + high) / 2


@program((0.1 + 0.2j,), (1.0 + 1.0j,), (-0.5 + 0.1j, 20), (2.0 + 0j,), (0.3, 10))
def mandelbrot_point(c, limit=30):
    z = 0
    for step in range(limit):
        z = z * z + c
        if abs(z) > 2:
            return step
    return limit


@program((-2.0, 1.0, 5), (-1.5, 0.5, 7), (-2, 1, 4), (-2.0, 1.0, 5, 3), (0.0, 0.1, 3))
def mandelbrot_grid(low, high, count, limit=8):
    axis = np.linspace(low, high, count)
    c = axis[None, :] + 1j * axis[:, None]
    z = np.zeros_like(c)
    counts = np.zeros(c.shape, dtype=int)
    for _ in range(limit):
        alive = np.abs(z) <= 2
        if not alive.any():
            break
        z[alive] = z[alive] ** 2 + c[alive]
        counts[alive] += 1
    return counts


@program((floats(1, 2, 4),), (floats(5, 3),), (noise(1, 9),), (np.array([1, 2, 3]),), (floats(2),), (grid(3, 2),))
def running_mean_and_variance(values):
    mean, squares = 0.0, 0.0
    for count, value in enumerate(values, start=1):
        delta = value - mean
        mean = mean + delta / count
        squares = squares + delta * (value - mean)
    return mean, squares / len(values)


@program((floats(3, 1, 2),), (floats(2, 1),), (noise(0, 6),), (np.array([5, 2, 9, 1]),), (floats(1),))
def bubble_sort(values):
    result = values.copy()
    n = len(result)
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if result[j] > result[j + 1]:
                result[j], result[j + 1] = result[j + 1], result[j]
                swapped = True
        if not swapped:
            break
    return result


@program((floats(3, 1, 2, 0),), (floats(1, 2, 3, 4),), (noise(0, 8),), (np.array([4, 3, 2, 1]),), (noise(2, 2),))
def odd_even_network(values):
    x = values.copy()
    n = x.shape[0]
    for round_ in range(n):
        start = round_ % 2
        left, right = x[start : n - 1 : 2].copy(), x[start + 1 : n : 2].copy()
        x[start : n - 1 : 2] = np.minimum(left, right)
        x[start + 1 : n : 2] = np.maximum(left, right)
    return x


@program(
    (grid(3, 3) + 4 * np.eye(3),), (symmetric(1, 3),), (symmetric(2, 5),), (np.array([[2, 1], [1, 3]]),), (np.eye(1),)
)
def lu_by_hand(matrix):
    n = matrix.shape[0]
    upper = matrix.astype(float)
    lower = np.eye(n)
    for k in range(n - 1):
        for i in range(k + 1, n):
            factor = upper[i, k] / upper[k, k]
            lower[i, k] = factor
            upper[i, k:] -= factor * upper[k, k:]
    return lower, upper


@program((symmetric(0, 3),), (symmetric(1, 3),), (symmetric(2, 5),), (-np.eye(2),), (np.array([[2, 1], [1, 3]]),))
def cholesky_by_hand(matrix):
    n = len(matrix)
    lower = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            total = matrix[i, j] - np.dot(lower[i, :j], lower[j, :j])
            if i == j:
                if total <= 0:
                    raise np.linalg.LinAlgError("not positive definite")
                lower[i, j] = np.sqrt(total)
            else:
                lower[i, j] = total / lower[j, j]
    return lower


@program((noise(0, 3, 3),), (noise(1, 3, 3),), (noise(2, 5, 3),), (noise(3, 2, 2),), (np.eye(3),))
def gram_schmidt(matrix):
    basis = []
    for column in matrix.T:
        for other in basis:
            column = column - (other @ column) * other
        norm = np.linalg.norm(column)
        if norm > 1e-10:
            basis.append(column / norm)
    return np.stack(basis, axis=1)


@program((symmetric(0, 2),), (symmetric(1, 2),), (symmetric(2, 4),), (np.eye(3),), (symmetric(3, 3), 3))
def qr_algorithm(matrix, rounds=12):
    current = matrix.copy()
    for _ in range(rounds):
        q, r = np.linalg.qr(current)
        current = r @ q
        if np.abs(np.tril(current, -1)).max() < 1e-9:
            break
    return np.sort(np.diag(current))


@program((floats(1, 0, 0),), (floats(0, 2),), (noise(1, 6),), (np.array([3, 0, 0, 0]),), (floats(1, 0, 0), 0.05, 10))
def heat_equation(start, rate=0.1, steps=6):
    u = start.astype(float)
    for _ in range(steps):
        inner = u[1:-1] + rate * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = np.concatenate([u[:1], inner, u[-1:]])
    return u


@program((floats(1, 0), 0.1, 5), (floats(0, 1), 0.1, 5), (floats(1, 2), 0.05, 9), (np.array([1.0, 1.0]), 0.1, 1))
@program.more((floats(1, 0), 0.2, 7))
def runge_kutta(state, step, count):
    def slope(s):
        return np.array([s[1], -s[0]])

    path = [state]
    for _ in range(count):
        k1 = slope(state)
        k2 = slope(state + step / 2 * k1)
        k3 = slope(state + step / 2 * k2)
        k4 = slope(state + step * k3)
        state = state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(state)
    return np.stack(path)


@program((noise(0, 10, 2), noise(1, 10)), (noise(2, 6, 2), noise(3, 6)), (noise(4, 12, 4), noise(5, 12)))
@program.more((noise(0, 10, 2), noise(1, 10), 0.01), (noise(0, 10, 2), noise(1, 10), 0.1, 3))
def gradient_descent(features, target, rate=0.05, steps=8):
    weights = np.zeros(features.shape[1])
    losses = []
    for _ in range(steps):
        error = features @ weights - target
        losses.append(float(np.mean(error**2)))
        weights -= rate * features.T @ error / len(target)
    return weights, losses


@program((noise(0, 12, 2), np.arange(12) % 2), (noise(3, 8, 2), np.arange(8) % 2), (noise(4, 9, 3), np.arange(9) % 2))
@program.more((noise(0, 12, 2), np.arange(12) % 2, 0.5), (noise(0, 12, 2), (np.arange(12) % 2).astype(float)))
def logistic_regression(features, labels, rate=0.1, tolerance=1e-3):
    weights, bias = np.zeros(features.shape[1]), 0.0
    previous = np.inf
    for _ in range(20):
        p = 1 / (1 + np.exp(-(features @ weights + bias)))
        loss = -np.mean(labels * np.log(p + 1e-12) + (1 - labels) * np.log(1 - p + 1e-12))
        if previous - loss < tolerance:
            break
        previous = loss
        weights = weights - rate * features.T @ (p - labels) / len(labels)
        bias = bias - rate * np.mean(p - labels)
    return weights, bias, loss


@program((10, 4), (48, 18), (7, 7), (1, 5), (0, 3))
def greatest_common_divisor(a, b):
    while b:
        a, b = b, a % b
    return a


@program((floats(1, 2, 3, 4),), (noise(0, 8),), (floats(1, 2),), (noise(3, 16),), (floats(5),))
def fft_by_recursion(x):
    n = len(x)
    if n <= 1:
        return x.astype(complex)
    even, odd = fft_by_recursion(x[::2]), fft_by_recursion(x[1::2])
    factors = np.exp(-2j * np.pi * np.arange(n // 2) / n)
    return np.concatenate([even + factors * odd, even - factors * odd])


@program((floats(3, 1, 2, 5),), (noise(0, 5),), (floats(2, 1),), (np.array([5, 3, 9, 1, 1]),), (floats(1),))
def merge_sort(x):
    if len(x) <= 1:
        return x
    middle = len(x) // 2
    left, right = merge_sort(x[:middle]), merge_sort(x[middle:])
    result = np.empty_like(x)
    i = j = 0
    for k in range(len(x)):
        if j >= len(right) or (i < len(left) and left[i] <= right[j]):
            result[k] = left[i]
            i += 1
        else:
            result[k] = right[j]
            j += 1
    return result


@program((floats(1, 3, 5, 7), 5.0), (floats(1, 3, 5, 7), 4.0), (floats(1, 2), 9), (np.arange(20), 7), (floats(2), 1.0))
def binary_search(values, wanted):
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@program((0.0, 1.0, 4), (0.0, 2.0, 8), (0, 1, 2), (1.0, 3.0, 1), (0.0, 1.0, 16))
def simpson(low, high, pieces):
    h = (high - low) / (2 * pieces)
    total = math.exp(-low * low) + math.exp(-high * high)
    for i in range(1, 2 * pieces):
        total += (4 if i % 2 else 2) * math.exp(-((low + i * h) ** 2))
    return total * h / 3


@program((0.0, 1.0), (0.0, 3.0), (-1, 1), (0.0, 1.0, 1e-4), (2.0, 2.0))
def adaptive_quadrature(low, high, tolerance=1e-2):
    middle = (low + high) / 2

    def rule(a, b):
        return (b - a) / 6 * (np.sin(a) + 4 * np.sin((a + b) / 2) + np.sin(b))

    whole, halves = rule(low, high), rule(low, middle) + rule(middle, high)
    if abs(whole - halves) < tolerance:
        return halves
    return adaptive_quadrature(low, middle, tolerance) + adaptive_quadrature(middle, high, tolerance)


@program((grid(3, 3) / 20 + np.eye(3), 3), (symmetric(1, 2), 5), (symmetric(2, 3), 0), (np.array([[1, 1], [1, 0]]), 10))
@program.more((np.eye(4), 1))
def matrix_power(matrix, exponent):
    result = np.eye(matrix.shape[0], dtype=matrix.dtype)
    while exponent > 0:
        if exponent % 2 == 1:
            result = result @ matrix
        matrix = matrix @ matrix
        exponent //= 2
    return result


@program(
    (floats(0.2, 0.3, 0.5),), (floats(1, 1),), (noise(0, 6) ** 2,), (np.array([1, 2, 3]),), (floats(1, 2, 3, 4), 0.5)
)
def page_rank_like(weights, damping=0.85):
    n = weights.size
    rank = np.full(n, 1 / n)
    for _ in range(100):
        new = (1 - damping) / n + damping * np.roll(rank, 1) * weights / weights.sum()
        if np.allclose(new, rank, atol=1e-8):
            return new
        rank = new
    return rank


@program((1.5, 1.0), (0.0, 0.0), (-1.2, 1.0), (1, 1), (0.5, 0.5, 3))
def newton_two_variables(x, y, limit=20):
    point = np.array([x, y], dtype=float)
    for _ in range(limit):
        f = np.array([point[0] ** 2 + point[1] ** 2 - 2, point[0] - point[1]])
        jacobian = np.array([[2 * point[0], 2 * point[1]], [1.0, -1.0]])
        try:
            step = np.linalg.solve(jacobian, f)
        except np.linalg.LinAlgError:
            return None
        point = point - step
        if np.linalg.norm(step) < 1e-10:
            break
    return point


@program((12,), (30,), (2,), (1,), (100,))
def sieve(limit):
    flags = np.ones(limit + 1, dtype=bool)
    flags[:2] = False
    for i in range(2, int(limit**0.5) + 1):
        if flags[i]:
            flags[i * i :: i] = False
    return np.nonzero(flags)[0]


@program((5,), (1,), (8,), (0,), (15,))
def fibonacci_table(count):
    table = np.zeros(count + 2, dtype=np.int64)
    table[1] = 1
    for i in range(2, count + 1):
        table[i] = table[i - 1] + table[i - 2]
    return table[: count + 1]


@program((6,), (27,), (1,), (7, 5), (12,))
def collatz(number, limit=200):
    path = [number]
    while number != 1 and len(path) < limit:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        path.append(number)
    return np.array(path)
