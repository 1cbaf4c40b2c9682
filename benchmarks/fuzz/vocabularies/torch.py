"""The vocabulary of torch: the grammar as it is."""

from __future__ import annotations

from benchmarks.fuzz import grammar
from benchmarks.fuzz.program import KINDS
from benchmarks.fuzz.vocabularies import Parameter, Vocabulary, head

MATRIX = "torch.randn({rows}, {columns})"
LEAVES = {"M": "{m}", "R": "{m}[0]", "C": "{m}[:, 0]", "S": "{m}.sum()", "I": "{n}", "F": "{g}", "B": "{m}.sum() > {g}"}
HEAD = head("import torch\nimport torch.nn.functional as F\nfrom torch import nn", weight="torch.tensor(1.5)")
PARAMETERS = (
    Parameter("mask", "mask=None", "None", {"a mask": "torch.rand({rows}, {columns}) > 0.5"}),
    Parameter("mask", "mask=None", "torch.rand({rows}, {columns}) > 0.5", {"no mask": "None", "left out": ""}),
    Parameter("n", "n", "2", {"another number": "3", "number zero": "0", "a number one": "1"}, "i"),
    Parameter("n", "n=2", "", {"another number": "4", "the default given": "2", "a bool": "True"}, "i"),
    Parameter("flag", "flag=True", "", {"flag down": "False"}),
    Parameter("flag", "flag", "False", {"flag up": "True"}),
    Parameter("items", "items", f"[{MATRIX}, {MATRIX}]", {"longer list": f"[{MATRIX}] * 3", "empty list": "[]"}, "l"),
    Parameter("items", "items", f"[{MATRIX}]", {"list of two": f"[{MATRIX}, {MATRIX}]", "tuple": f"({MATRIX},)"}, "l"),
    Parameter(
        "table",
        "table",
        f"{{{{'a': {MATRIX}}}}}",
        {"other keys": f"{{{{'b': {MATRIX}, 'a': {MATRIX}}}}}", "no keys": "{{}}"},
        "d",
    ),
    Parameter(
        "scale",
        "scale=1.5",
        "",
        {"another scale": "-0.5", "a whole scale": "2", "scale of a tensor": "torch.tensor(0.5)"},
    ),
    Parameter("mode", "mode='add'", "", {"another mode": "'mul'"}),
)
"""In the texts of matrices `rows` and `columns` are holes; an empty text leaves the argument out."""


FORMS = {
    "float64": "{matrix}.double()",
    "int64": "torch.randint(-3, 4, ({rows}, {columns}))",
    "float16": "{matrix}.half()",
    "gradients": "{matrix}.requires_grad_()",
    "not contiguous": "torch.randn({columns}, {rows}).t()",
    "strided": "torch.randn({rows}, 2 * {columns})[:, ::2]",
    "zeros": "torch.zeros({rows}, {columns})",
    "ones": "torch.ones({rows}, {columns})",
    "large": "{matrix} * 10",
    "negative": "-{matrix}.abs()",
    "not a number": "{matrix} * float('nan')",
}
WORLD = {
    "SCALE": ("module.SCALE = 3.0",),
    "COUNT": ("module.COUNT = 5",),
    "TABLE": ("module.TABLE['a'] = 4.0", "module.TABLE['b'] = 0.25", "module.TABLE = {}"),
    "HISTORY": ("module.HISTORY.append(2.5)", "module.HISTORY = []"),
    "KEPT": ("module.KEPT.clear()",),
    "WEIGHT": ("module.WEIGHT.mul_(2)", "module.WEIGHT = torch.tensor(3.0)"),
    "Config": ("module.Config.factor = 2.5", "module.Config.calls = 4"),
    "halves": ("module.halves = lambda value: value * 3",),
}
"""What may be done to a program that names this."""

TORCH = Vocabulary(
    name="torch",
    head=HEAD,
    matrix=MATRIX,
    forms=FORMS,
    parameters=PARAMETERS,
    world=WORLD,
    tables={
        "M": tuple(grammar.lines(grammar.MATRICES)),
        "R": tuple(grammar.lines(grammar.ROWS)),
        "C": tuple(grammar.lines(grammar.COLUMNS)),
        "S": tuple(grammar.lines(grammar.SCALARS)),
        "I": tuple(grammar.lines(grammar.INTEGERS)),
        "F": tuple(grammar.lines(grammar.FLOATS)),
        "B": tuple(grammar.lines(grammar.CONDITIONS)),
    },
    leaves=LEAVES,
    statements=tuple(grammar.lines(grammar.STATEMENTS)),
    results=tuple(grammar.lines(grammar.RESULTS)),
    helpers=grammar.HELPERS,
    risky=("{m} = {M} @ {M}", "{m} = torch.cat([{M}, {R}])", "{m} = TABLE['{k}'] * {M}", "assert {B}"),
    errors=("RuntimeError", "(RuntimeError, KeyError, IndexError)", "Exception", "AssertionError"),
    contexts=("with torch.no_grad():", "with torch.enable_grad():", "with torch.set_grad_enabled({B}):"),
    kinds=KINDS,
    imports=(("torch", "torch"),),
    gradients=True,
)
