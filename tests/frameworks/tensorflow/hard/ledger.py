"""The register of hard programs of TensorFlow, and tensors for their calls."""

from __future__ import annotations

import tensorflow as tf

from tests.frameworks.hard_programs import Register

PROGRAMS = Register()
program, made = PROGRAMS.program, PROGRAMS.made
X = tf.constant([0.5, -1.0, 2.0])
Y = tf.constant([4.0, 1.0, -2.0])
LONG = tf.range(5.0)
M = tf.reshape(tf.range(6.0), [2, 3])
I = tf.constant([3, 1, 2])  # noqa: E741
