"""The vocabulary of torch: the grammar as it is."""

from __future__ import annotations

from benchmarks.fuzz import grammar, helpers
from benchmarks.fuzz.program import KINDS
from benchmarks.fuzz.vocabularies import CONTEXTS, ERRORS, RISKY, Parameter, Vocabulary, head

MATRIX = "torch.randn({rows}, {columns})"
LEAVES = {"M": "{m}", "R": "{m}[0]", "C": "{m}[:, 0]", "S": "{m}.sum()", "I": "{n}", "F": "{g}", "B": "{m}.sum() > {g}"}
IMPORTS = """\
import numpy as np
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn"""
HEAD = head(IMPORTS, weight="torch.tensor(1.5)")
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
    Parameter("more", "*more", f"[{MATRIX}]", {"no more": "", "two more": f"[{MATRIX}, {MATRIX}]"}, "l"),
    Parameter("kept", "kept=[]", "", {"a list of its own": "[]"}, "l"),
    Parameter("pair", "pair=(1.5, 2)", "", {"another pair": "(0.5, 3)", "two": "[1.5, 2]", "three": "(1.5, 2, 3)"}),
    Parameter(
        "extra",
        "**extra",
        f"{{{{'a': {MATRIX}}}}}",
        {"no keywords": "", "other keywords": f"{{{{'b': {MATRIX}, 'a': {MATRIX}}}}}"},
        "d",
    ),
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
    "LATEST": ("module.LATEST = None",),
    "SEEN": ("module.SEEN.add(7)", "module.SEEN = {0, 1}"),
    "QUEUE": ("module.QUEUE.append(0.5)", "module.QUEUE.clear()"),
    "METER": ("module.METER.factor = 0.5", "module.METER.latest = None", "module.METER = module.Meter(3.0)"),
    "STACK": ("module.STACK.items.clear()", "module.STACK.items.append(1.5)"),
    "Settings": ("module.Settings.shared.append(1.0)",),
    "Level": ("module.Level.scaled = lambda self, value: value * 3",),
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
    helpers=helpers.HELPERS,
    risky=(*RISKY, "{m} = {M} @ {M}", "{m} = torch.cat([{M}, {R}])", "{m} = {m}[{I}]"),
    errors=("RuntimeError", "(RuntimeError, KeyError, IndexError, Stop)", *ERRORS),
    contexts=(
        *CONTEXTS,
        "with torch.no_grad():",
        "with torch.enable_grad():",
        "with torch.set_grad_enabled({B}):",
        "with torch.autocast('cpu', dtype=torch.bfloat16):",
    ),
    kinds=KINDS,
    imports=(("torch", "torch"),),
    gradients=True,
)
