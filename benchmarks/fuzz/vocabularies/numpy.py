"""The vocabulary of NumPy: what all frameworks share, and NumPy's own functions, methods, writes and numbers."""

from __future__ import annotations

from benchmarks.fuzz import grammar, helpers
from benchmarks.fuzz.vocabularies import CONTEXTS, ERRORS, RISKY, Vocabulary, head, shared, translated
from benchmarks.fuzz.vocabularies.torch import LEAVES, PARAMETERS, WORLD

MATRIX = "np.random.randn({rows}, {columns})"
NAMES = "sum mean max min all any argmax argmin item shape ndim dtype size cumsum reshape tolist astype"
MATRICES = """
np.maximum({M}, {M})
np.where({M} > {g}, {M}, {M})
np.where({B}, {M}, {M})
np.tanh({M})
np.abs({M})
np.exp(-np.abs({M}))
{M}.copy()
{M}.T.T
{M}[::-1]
{M}[:, ::-1]
np.flip({M}, 0)
np.roll({M}, {I}, axis=0)
np.sort({M}, axis=-1)
{M}.cumsum(axis=0)
{M}.reshape(-1).reshape({m}.shape)
{M}.reshape({m}.shape[0], -1)
{M}.ravel().reshape({m}.shape)
np.squeeze({M}[None], 0)
{M} @ {M}.T @ {M}
np.einsum('ij,ij->ij', {M}, {M})
np.clip({M}, -2, {g} + 3)
np.zeros_like({M})
np.full_like({M}, {g})
np.ones({m}.shape) + {M}
np.zeros({m}.shape, {m}.dtype) + {M}
np.arange({m}.shape[1]) + {M}
np.array([[{g}]]) + {M}
np.float32({F}) * {M}
np.asarray({M})
np.array({M})
{M}.astype({m}.dtype)
{M}.astype(np.float32)
np.concatenate([{M}, {M}])[:{m}.shape[0]]
np.stack([{M}, {M}]).sum(0)
np.vstack([{M}, {M}])[:{m}.shape[0]]
np.broadcast_to({M}, {m}.shape)
{M} - {M}.mean(-1, keepdims=True)
np.random.rand(*{m}.shape) + {M}
np.random.normal(size={m}.shape) * {M}
np.random.default_rng({I}).random({m}.shape) + {M}
np.nan_to_num({M})
np.piecewise({M}, [{m} > {g}], [1.0, 0.0])
np.vectorize(lambda z: z * 2.0)({M})
np.apply_along_axis(lambda z: z * 2, 0, {M})
np.add.reduce([{M}, {M}])
np.take({M}, np.arange({m}.shape[0]), axis=0)
{M}[np.arange({m}.shape[0] - 1, -1, -1)]
np.take_along_axis({M}, {M}.argsort(-1), -1)
np.nonzero({M} > {g})[0].sum() + {M}
np.outer({C}, {R}) + {M}
{M} + {C}[:, None]
np.stack([row * {g} for row in {m}])
np.stack([{M}[j] for j in range({m}.shape[0])])
np.array({m}.tolist()) + {M}
np.array([[z for z in row] for row in {m}])
np.linalg.norm({M}) + {M}
np.pad({M}, ((0, 0), (1, 0)))[:, 1:]
np.cumsum({M}, axis={I} % 2)
{M}.swapaxes(0, 1).swapaxes(0, 1)
np.unique({M}).sum() + {M}
"""
ROWS = """
{M}[0]
{M}[-1]
{M}.sum(0)
{M}.mean(axis=0)
{M}.max(0)
np.median({M}, axis=0)
{M}[{I} % {m}.shape[0]]
np.arange({m}.shape[1])
{R} + {R}
{R} * {F}
"""
COLUMNS = """
{M}.sum(1)
{M}[:, 0]
{M}.mean(-1)
{M}.argmax(-1)
{C} * {F}
np.sort({C})
"""
SCALARS = """
{M}.sum()
{M}.mean()
{M}.max()
{M}[0, 0]
{M}[0][-1]
np.linalg.norm({M})
np.float64({F})
np.array({F})
{S} + {S}
{S} * {F}
{M}.std()
{M}.ravel()[{I} % {m}.size]
{R}[0]
np.dot({R}, {R})
"""
INTEGERS = """
{m}.size
({M} > {g}).sum().item()
{M}.argmax()
{M}.argmax().item()
np.count_nonzero({M} > {g})
{m}.dtype.itemsize
len(np.flatnonzero({M} > {g}))
"""
FLOATS = """
{M}.sum().item()
np.sqrt({F} * {F})
np.mean([{F}, {F}])
"""
CONDITIONS = """
np.any({M} > {g})
np.array_equal({M}, {M})
np.allclose({M}, {M})
isinstance({m}, np.ndarray)
isinstance({S}, np.floating)
isinstance({S}, np.ndarray)
np.isscalar({S})
{m}.dtype == np.float64
{m}.dtype.kind == 'f'
np.issubdtype({m}.dtype, np.integer)
{m}.flags.c_contiguous
np.isnan({M}).any()
np.ndim({S}) == 0
"""
STATEMENTS = """
  {m}[:] = {M}
  {m}[...] = {F}
  {m}.fill({F})
  {m}.sort(axis=-1)
  np.add({m}, {M}, out={m})
  np.copyto({m}, {M})
  {m}.flat[0] = {F}
  np.add.at({m}, 0, 1)
  {m}.T[0] += {g}
  {m}.ravel()[0] = {F}
  {m} //= 2
  {m} **= 2
R new = {m}[0]
R new = {m}.reshape(-1)[:{m}.shape[1]]
R new = {m}.sum({I} % 2)
  {r} *= {F}
  {r} -= {R}
I new = {m}.shape[0]
I new = {M}.argmax()
  np.random.seed({n})
  np.random.shuffle({m})
M new = {M} * WEIGHT
  WEIGHT[...] = {F}
  WEIGHT[:] += 1
"""
FORMS = {
    "float32": "{matrix}.astype(np.float32)",
    "int64": "np.random.randint(-3, 4, ({rows}, {columns}))",
    "uint8": "np.random.randint(0, 4, ({rows}, {columns})).astype(np.uint8)",
    "truths": "{matrix} > 0",
    "complex": "{matrix} * (1 + 1j)",
    "one axis": "np.random.randn({columns})",
    "three axes": "np.random.randn(2, {rows}, {columns})",
    "no axis": "np.array(1.5)",
    "a number": "np.float64(1.5)",
    "fortran": "np.asfortranarray({matrix})",
    "strided": "np.random.randn({rows}, 2 * {columns})[:, ::2]",
    "zeros": "np.zeros(({rows}, {columns}))",
    "large": "{matrix} * 10",
    "not a number": "{matrix} * float('nan')",
}
HEAD = head("import numpy as np", weight="np.array([1.5])")


NUMPY = Vocabulary(
    name="numpy",
    head=HEAD,
    matrix=MATRIX,
    forms=FORMS,
    parameters=translated(
        PARAMETERS, {"torch.randn(": "np.random.randn(", "torch.rand(": "np.random.rand(", "torch.tensor(": "np.array("}
    ),
    world=WORLD | {"WEIGHT": ("module.WEIGHT *= 2", "module.WEIGHT = np.array([3.0])")},
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
    statements=(*shared(grammar.STATEMENTS, NAMES), *grammar.lines(STATEMENTS)),
    results=shared(grammar.RESULTS, NAMES),
    helpers=helpers.HELPERS,
    risky=(*RISKY, "{m} = {M} @ {M}", "{m} = np.linalg.inv({M} @ {M}.T)", "{m} = {m}[{I}]"),
    errors=("ValueError", "np.linalg.LinAlgError", *ERRORS),
    contexts=(*CONTEXTS, "with np.errstate(all='ignore'):", "with np.errstate(divide='ignore', invalid='ignore'):"),
    imports=(("np", "numpy"),),
)
