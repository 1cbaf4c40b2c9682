"""NumPy: a program on arrays is captured as NumPy's own calls, and holds for arrays of other sizes."""

import numpy as np

import clew


def whiten(samples, keep=2):
    centred = samples - samples.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / (len(samples) - 1))
    order = np.argsort(values)[::-1][:keep]
    return centred @ vectors[:, order] / np.sqrt(values[order])


generator = np.random.default_rng(0)
captured = clew.trace(whiten, (generator.normal(size=(50, 4)),))
print(captured.code)
for shape in ((50, 4), (200, 4), (30, 7)):
    samples = generator.normal(size=shape)
    np.testing.assert_allclose(captured(samples), whiten(samples))
