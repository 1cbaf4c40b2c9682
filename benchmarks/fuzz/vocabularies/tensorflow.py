"""The vocabulary of TensorFlow: what all frameworks share in TensorFlow's words, its functions, variables."""

from __future__ import annotations

import re

from benchmarks.fuzz import grammar, helpers
from benchmarks.fuzz.vocabularies import CONTEXTS, ERRORS, RISKY, Vocabulary, head, shared, translated
from benchmarks.fuzz.vocabularies.torch import LEAVES, PARAMETERS, WORLD
from benchmarks.fuzz.vocabularies.torch import MATRIX as OF_TORCH

MATRIX = "tf.constant(np.random.randn({rows}, {columns}), tf.float32)"
NAMES = "sum mean item shape ndim dtype"
WRITES = re.compile(r"^\s+\{[mr]\}\[.*\] [-+*/]?= ")
"""Lines that write into a tensor."""
_METHODS = (
    (re.compile(r"(\{[MmS]\}|\bz|\bvalue|\bone|\bbest)\.sum\(\)"), r"tf.reduce_sum(\1)"),
    (re.compile(r"(\{[Mm]\}|\bz|\bvalue|\bone|\bbest)\.mean\(\)"), r"tf.reduce_mean(\1)"),
    (re.compile(r"(\{S\}|tf\.reduce_\w+\(\w+\)|tf\.reduce_\w+\(\{\w\}\))\.item\(\)"), r"\1.numpy().item()"),
)


def _own(line: str) -> str:
    """A line of the grammar with functions of TensorFlow in place of methods."""
    for pattern, written in _METHODS:
        line = pattern.sub(written, line)
    return line


def _shared(table: str) -> tuple[str, ...]:
    """What a table has for all frameworks; sums along an axis and the like are of other words."""
    lines = [_own(line) for line in shared(table, NAMES) if not WRITES.match(line)]
    return tuple(line for line in lines if not re.search(r"\.(sum|mean|item)\((?!\))|[^)]\.(sum|mean)\(", line))


MATRICES = """
tf.maximum({M}, {M})
tf.where({M} > {g}, {M}, {M})
tf.tanh({M})
tf.abs({M})
tf.exp(-tf.abs({M}))
tf.nn.relu({M})
tf.nn.softmax({M})
tf.identity({M})
tf.transpose(tf.transpose({M}))
{M}[::-1]
{M}[:, ::-1]
tf.reverse({M}, [0])
tf.roll({M}, {I}, axis=0)
tf.sort({M}, axis=-1)
tf.cumsum({M}, axis=0)
tf.reshape(tf.reshape({M}, [-1]), {m}.shape)
tf.reshape(tf.reshape({M}, [-1]), tf.shape({m}))
tf.reshape({M}, [{m}.shape[0], -1])
tf.squeeze({M}[None], 0)
tf.matmul(tf.matmul({M}, {M}, transpose_b=True), {M})
{M} @ tf.transpose({M}) @ {M}
tf.einsum('ij,ij->ij', {M}, {M})
tf.clip_by_value({M}, -2, {g} + 3)
tf.zeros_like({M})
tf.fill({m}.shape, {F}) + {M}
tf.ones({m}.shape) + {M}
tf.zeros(tf.shape({m})) + {M}
tf.range({m}.shape[1], dtype={m}.dtype) + {M}
tf.constant([[{g}]], {m}.dtype) + {M}
tf.cast({F}, {m}.dtype) * {M}
tf.cast({M}, {m}.dtype)
tf.cast(tf.cast({M}, tf.float64), tf.float32)
tf.concat([{M}, {M}], 0)[:{m}.shape[0]]
tf.reduce_sum(tf.stack([{M}, {M}]), 0)
tf.broadcast_to({M}, {m}.shape)
{M} - tf.reduce_mean({M}, -1, keepdims=True)
tf.random.stateless_normal({m}.shape, seed=[{I}, 1]) + {M}
tf.random.stateless_uniform(tf.shape({m}), seed=[{n}, 2]) * {M}
tf.map_fn(lambda z: z * {g}, {M})
tf.vectorized_map(lambda z: z * 2, {M})
tf.function(lambda z: z * {F})({M})
tf.stop_gradient({M})
tf.cond(tf.reduce_sum({m}) > 0, lambda: {m} * 2, lambda: {m} + 1)
tf.gather({M}, tf.range({m}.shape[0]))
tf.gather({M}, tf.argsort({M}, -1), batch_dims=1)
tf.cast(tf.reduce_sum(tf.where({M} > {g})), {m}.dtype) + {M}
tf.reduce_sum(tf.boolean_mask({M}, {M} > {g})) + {M}
{M} + {C}[:, None]
tf.stack([row * {g} for row in {m}])
tf.stack([{M}[j] for j in range({m}.shape[0])])
tf.stack(tf.unstack({m})[::-1])
tf.constant({m}.numpy() * 2) + {M}
tf.norm({M}) + {M}
tf.pad({M}, [[0, 0], [1, 0]])[:, 1:]
tf.tensor_scatter_nd_update({M}, [[0, 0]], tf.constant([{g}], {m}.dtype))
tf.nest.map_structure(lambda z: z * 2, {{'a': {M}}})['a']
functools.reduce(tf.add, {l}, {M})
{M} * WEIGHT
"""
ROWS = """
{M}[0]
{M}[-1]
tf.reduce_sum({M}, 0)
tf.reduce_mean({M}, axis=0)
tf.reduce_max({M}, 0)
{M}[{I} % {m}.shape[0]]
{R} + {R}
{R} * {F}
"""
COLUMNS = """
tf.reduce_sum({M}, 1)
{M}[:, 0]
tf.reduce_mean({M}, -1)
{C} * {F}
tf.sort({C})
"""
SCALARS = """
tf.reduce_sum({M})
tf.reduce_mean({M})
tf.reduce_max({M})
{M}[0, 0]
{M}[0][-1]
tf.norm({M})
tf.constant({F})
{S} + {S}
{S} * {F}
tf.reshape({M}, [-1])[{I} % tf.size({m})]
"""
INTEGERS = """
int(tf.size({m}))
{m}.shape.rank
int(tf.math.count_nonzero({M} > {g}))
int(tf.argmax(tf.reshape({M}, [-1])))
len(tf.where({M} > {g}))
"""
FLOATS = """
float(tf.reduce_sum({M}))
tf.reduce_sum({M}).numpy().item()
float(tf.sqrt({F} * {F}))
"""
CONDITIONS = """
tf.reduce_any({M} > {g})
tf.reduce_all({M} > {g})
isinstance({m}, tf.Tensor)
tf.is_tensor({S})
{m}.dtype == tf.float32
{m}.dtype.is_floating
{m}.shape.rank == 2
tf.reduce_any(tf.math.is_nan({M}))
tf.executing_eagerly()
tf.reduce_all(tf.equal({M}, {M}))
"""
STATEMENTS = """
R new = {m}[0]
R new = tf.reduce_sum({m}, {I} % 2)
  {r} *= {F}
  {r} -= {R}
I new = {m}.shape[0]
M new = {M} * WEIGHT
  WEIGHT.assign_add({F})
  WEIGHT.assign({F})
  {m} **= 2
"""
FORMS = {
    "float64": "tf.cast({matrix}, tf.float64)",
    "int32": "tf.constant(np.random.randint(-3, 4, ({rows}, {columns})), tf.int32)",
    "one axis": "tf.constant(np.random.randn({columns}), tf.float32)",
    "three axes": "tf.constant(np.random.randn(2, {rows}, {columns}), tf.float32)",
    "of numpy": "np.random.randn({rows}, {columns}).astype(np.float32)",
    "a variable": "tf.Variable({matrix})",
    "zeros": "tf.zeros(({rows}, {columns}))",
    "large": "{matrix} * 10",
    "not a number": "{matrix} * float('nan')",
}
HEAD = head("import numpy as np\nimport tensorflow as tf", weight="tf.Variable(1.5)")

TENSORFLOW = Vocabulary(
    name="tensorflow",
    head=HEAD,
    matrix=MATRIX,
    forms=FORMS,
    parameters=translated(
        PARAMETERS,
        {
            OF_TORCH: MATRIX,
            "torch.rand({rows}, {columns}) > 0.5": "tf.constant(np.random.rand({rows}, {columns}) > 0.5)",
            "torch.tensor(": "tf.constant(",
        },
    ),
    world=WORLD | {"WEIGHT": ("module.WEIGHT.assign(4.0)", "module.WEIGHT = tf.Variable(3.0)")},
    tables={
        "M": (*_shared(grammar.MATRICES), *grammar.lines(MATRICES)),
        "R": tuple(grammar.lines(ROWS)),
        "C": tuple(grammar.lines(COLUMNS)),
        "S": tuple(grammar.lines(SCALARS)),
        "I": (*_shared(grammar.INTEGERS), *grammar.lines(INTEGERS)),
        "F": (*_shared(grammar.FLOATS), *grammar.lines(FLOATS)),
        "B": (*_shared(grammar.CONDITIONS), *grammar.lines(CONDITIONS)),
    },
    leaves=LEAVES | {"S": "tf.reduce_sum({m})", "B": "tf.reduce_sum({m}) > {g}"},
    statements=(*_shared(grammar.STATEMENTS), *grammar.lines(STATEMENTS)),
    results=_shared(grammar.RESULTS),
    helpers={name: _own(text) for name, text in helpers.HELPERS.items()},
    risky=(*RISKY, "{m} = {M} @ {M}", "{m} = tf.concat([{M}, {R}], 0)"),
    errors=("tf.errors.InvalidArgumentError", *ERRORS),
    contexts=(*CONTEXTS, "with tf.name_scope('inner'):", "with tf.device('/CPU:0'):"),
    imports=(("np", "numpy"), ("tf", "tensorflow")),
    aliasing=False,
)
