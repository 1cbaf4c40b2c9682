"""The vocabulary of JAX: what all frameworks share, JAX's functions, keys and transforms; arrays never change."""

from __future__ import annotations

import re

from benchmarks.fuzz import grammar, helpers
from benchmarks.fuzz.vocabularies import CONTEXTS, ERRORS, RISKY, Vocabulary, head, shared, translated
from benchmarks.fuzz.vocabularies.torch import LEAVES, PARAMETERS, WORLD
from benchmarks.fuzz.vocabularies.torch import MATRIX as OF_TORCH

MATRIX = "jnp.array(np.random.randn({rows}, {columns}), jnp.float32)"
NAMES = "sum mean max min all any argmax argmin item shape ndim dtype size cumsum reshape tolist astype"
WRITES = re.compile(r"^\s+\{[mr]\}\[.*\] [-+*/]?= ")
"""Lines that write into an array."""
MATRICES = """
jnp.maximum({M}, {M})
jnp.where({M} > {g}, {M}, {M})
jnp.where({B}, {M}, {M})
jnp.tanh({M})
jnp.abs({M})
jnp.exp(-jnp.abs({M}))
jax.nn.relu({M})
jax.nn.gelu({M})
jax.nn.softmax({M}, axis=-1)
{M}.copy()
{M}.T.T
{M}[::-1]
{M}[:, ::-1]
jnp.flip({M}, 0)
jnp.roll({M}, {I}, axis=0)
jnp.sort({M}, axis=-1)
{M}.cumsum(axis=0)
{M}.reshape(-1).reshape({m}.shape)
{M}.reshape({m}.shape[0], -1)
jnp.squeeze({M}[None], 0)
{M} @ {M}.T @ {M}
jnp.einsum('ij,ij->ij', {M}, {M})
jnp.clip({M}, -2, {g} + 3)
jnp.zeros_like({M})
jnp.full_like({M}, {g})
jnp.ones({m}.shape) + {M}
jnp.zeros({m}.shape, {m}.dtype) + {M}
jnp.arange({m}.shape[1]) + {M}
jnp.array([[{g}]]) + {M}
jnp.float32({F}) * {M}
jnp.asarray({M})
{M}.astype({m}.dtype)
{M}.astype(jnp.float16)
jnp.concatenate([{M}, {M}])[:{m}.shape[0]]
jnp.stack([{M}, {M}]).sum(0)
jnp.broadcast_to({M}, {m}.shape)
{M} - {M}.mean(-1, keepdims=True)
{M}.at[0].set({g})
{M}.at[{I} % {m}.shape[0]].add({F})
{M}.at[:, 0].multiply({F})
jax.random.normal(jax.random.PRNGKey({I}), {m}.shape) + {M}
jax.random.uniform(jax.random.key({n}), {m}.shape) * {M}
np.random.rand(*{m}.shape) + {M}
jnp.nan_to_num({M})
jax.vmap(lambda z: z * {g})({M})
jax.vmap(jnp.cumsum)({M})
jax.jit(lambda z: z * {F})({M})
jax.jit(jnp.tanh)({M})
jax.grad(lambda z: (z * z).sum())({M}.astype(jnp.float32))
jax.lax.stop_gradient({M})
jax.lax.cond({S} > {g}, lambda z: z * 2, lambda z: z + 1, {M})
jax.lax.fori_loop(0, {n}, lambda j, z: z * 0.5 + j, {M})
jnp.take({M}, jnp.arange({m}.shape[0]), axis=0)
{M}[jnp.arange({m}.shape[0] - 1, -1, -1)]
jnp.take_along_axis({M}, {M}.argsort(-1), -1)
jnp.nonzero({M} > {g})[0].sum() + {M}
{M}[{M} > {g}].sum() + {M}
jnp.outer({C}, {R}) + {M}
{M} + {C}[:, None]
jnp.stack([row * {g} for row in {m}])
jnp.stack([{M}[j] for j in range({m}.shape[0])])
jnp.array({m}.tolist()) + {M}
jnp.asarray(np.asarray({m}) * 2) + {M}
np.asarray({m}).sum() + {M}
jnp.linalg.norm({M}) + {M}
jnp.pad({M}, ((0, 0), (1, 0)))[:, 1:]
jax.tree_util.tree_map(lambda z: z * 2, {{'a': {M}}})['a']
functools.reduce(jnp.add, {l}, {M})
jitted({M})
jitted_by_number({M}, {n})
jax.jit(lambda z: z * SCALE)({M})
jax.lax.scan(lambda c, z: (c + z.sum(), z * c), 0.5, {M})[1]
jax.lax.scan(carried, jnp.float32({F}), {M}.astype(jnp.float32))[1]
jax.lax.map(lambda z: z[::-1], {M})
jax.checkpoint(lambda z: jnp.sin(z) * {g})({M})
jax.value_and_grad(lambda z: (z * {F}).sum())({M}.astype(jnp.float32))[1]
jax.grad(lambda z: jax.checkpoint(jitted)(z).sum())({M}.astype(jnp.float32))
jax.vjp(jnp.sin, {M}.astype(jnp.float32))[1]({M}.astype(jnp.float32))[0]
jax.jvp(jnp.tanh, ({M}.astype(jnp.float32),), (jnp.ones({m}.shape, jnp.float32),))[1]
jax.lax.switch({I} % 2, [jnp.sin, lambda z: z * 2.0], {M}.astype(jnp.float32))
{M} * jnp.finfo(jnp.promote_types({m}.dtype, jnp.float16)).eps
{M}.astype(jnp.result_type({m}, {m}))
sum((jax.random.normal(key, {m}.shape) for key in jax.random.split(jax.random.key({n}), 2)), {M})
sum(jax.tree.leaves(jax.tree.map(lambda z: z * 2, {d})), {M})
"""
HELPERS = {
    "jitted": """
@jax.jit
def jitted(value):
    return value * SCALE + COUNT
""",
    "jitted_by_number": """
@functools.partial(jax.jit, static_argnums=1)
def jitted_by_number(value, times):
    for _ in range(times):
        value = value * Config.factor
    return value
""",
    "carried": """
def carried(total, row):
    return total * 0.5 + row.sum() * Config.factor, row + total
""",
}
ROWS = """
{M}[0]
{M}[-1]
{M}.sum(0)
{M}.mean(axis=0)
{M}.max(0)
jnp.median({M}, axis=0)
{M}[{I} % {m}.shape[0]]
jnp.arange({m}.shape[1])
{R} + {R}
{R} * {F}
"""
COLUMNS = """
{M}.sum(1)
{M}[:, 0]
{M}.mean(-1)
{M}.argmax(-1)
{C} * {F}
jnp.sort({C})
"""
SCALARS = """
{M}.sum()
{M}.mean()
{M}.max()
{M}[0, 0]
{M}[0][-1]
jnp.linalg.norm({M})
jnp.array({F})
{S} + {S}
{S} * {F}
{M}.std()
{M}.ravel()[{I} % {m}.size]
jnp.dot({R}, {R})
"""
INTEGERS = """
{m}.size
({M} > {g}).sum().item()
{M}.argmax().item()
int({M}.argmax())
{m}.dtype.itemsize
len(jnp.flatnonzero({M} > {g}))
"""
FLOATS = """
{M}.sum().item()
float(jnp.sqrt({F} * {F}))
"""
CONDITIONS = """
jnp.any({M} > {g})
jnp.array_equal({M}, {M})
jnp.allclose({M}, {M})
isinstance({m}, jax.Array)
isinstance({S}, jax.Array)
isinstance({m}, np.ndarray)
jnp.isscalar({S})
{m}.dtype == jnp.float32
jnp.issubdtype({m}.dtype, jnp.integer)
{m}.weak_type
jnp.isnan({M}).any()
jnp.ndim({S}) == 0
{m}.ndim == 2
jnp.finfo(jnp.float16).max > {F}
jnp.result_type({m}, {m}) == {m}.dtype
"""
STATEMENTS = """
  {m} = {m}.at[0, 0].set({F})
  {m} = {m}.at[{M} > {g}].set({g})
R new = {m}[0]
R new = {m}.reshape(-1)[:{m}.shape[1]]
R new = {m}.sum({I} % 2)
  {r} *= {F}
  {r} -= {R}
I new = {m}.shape[0]
I new = {M}.argmax().item()
M new = {M} * WEIGHT
  WEIGHT = WEIGHT * 1.5
  {m} //= 2
  {m} **= 2
"""
FORMS = {
    "int32": "jnp.array(np.random.randint(-3, 4, ({rows}, {columns})))",
    "float16": "{matrix}.astype(jnp.float16)",
    "truths": "{matrix} > 0",
    "one axis": "jnp.array(np.random.randn({columns}), jnp.float32)",
    "three axes": "jnp.array(np.random.randn(2, {rows}, {columns}), jnp.float32)",
    "no axis": "jnp.array(1.5)",
    "of numpy": "np.random.randn({rows}, {columns})",
    "zeros": "jnp.zeros(({rows}, {columns}))",
    "large": "{matrix} * 10",
    "not a number": "{matrix} * float('nan')",
    "weak": "jnp.full(({rows}, {columns}), 1.5)",
}
HEAD = head("import jax\nimport jax.numpy as jnp\nimport numpy as np", weight="jnp.array([1.5])")

JAX = Vocabulary(
    name="jax",
    head=HEAD,
    matrix=MATRIX,
    forms=FORMS,
    parameters=translated(
        PARAMETERS,
        {
            OF_TORCH: MATRIX,
            "torch.rand({rows}, {columns}) > 0.5": "jnp.array(np.random.rand({rows}, {columns}) > 0.5)",
            "torch.tensor(": "jnp.array(",
        },
    ),
    world=WORLD | {"WEIGHT": ("module.WEIGHT = jnp.array([3.0])",)},
    tables={
        "M": (*shared(grammar.MATRICES, NAMES), *grammar.lines(MATRICES)),
        "R": tuple(grammar.lines(ROWS)),
        "C": tuple(grammar.lines(COLUMNS)),
        "S": tuple(grammar.lines(SCALARS)),
        "I": (*shared(grammar.INTEGERS, NAMES), *grammar.lines(INTEGERS)),
        "F": (*shared(grammar.FLOATS, NAMES), *grammar.lines(FLOATS)),
        "B": (*shared(grammar.CONDITIONS, NAMES), *grammar.lines(CONDITIONS)),
    },
    leaves=LEAVES,
    statements=(
        *(line for line in shared(grammar.STATEMENTS, NAMES) if not WRITES.match(line)),
        *grammar.lines(STATEMENTS),
    ),
    results=shared(grammar.RESULTS, NAMES),
    helpers=helpers.HELPERS | HELPERS,
    risky=(*RISKY, "{m} = {M} @ {M}", "{m} = jnp.concatenate([{M}, {R}])"),
    errors=("TypeError", *ERRORS),
    contexts=(*CONTEXTS, "with jax.named_scope('inner'):", "with jax.default_matmul_precision('float32'):"),
    imports=(("np", "numpy"), ("jax", "jax"), ("jnp", "jax.numpy")),
    aliasing=False,
)
