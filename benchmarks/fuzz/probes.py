"""The calls that a random program is judged by: other values, sizes, types, flags, lists, states of the world.

In come the parameters of a program; out come probes, the example first. Each later probe differs from the example in
one respect; which ones there are depends on what the program takes and names.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from benchmarks.fuzz.program import MODULE, Probe

MOST_PROBES = 7
MATRIX = "torch.randn({rows}, {columns})"


@dataclass(frozen=True)
class Parameter:
    """A parameter besides the two matrices: how it is declared, its value in the example and others."""

    name: str
    declared: str
    example: str
    others: dict[str, str] = field(default_factory=dict)
    kind: str = ""  # the hole of the grammar that it may stand in


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

SHAPES = {"other sizes": (3, 5), "batch of one": (1, 3), "more rows": (4, 3), "square": (3, 3)}
MODULE_SHAPES = {"more rows": (5, 4), "batch of one": (1, 4), "square": (4, 4)}
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
STATE = {
    "self.scale": ("subject.scale = 3.0",),
    "self.count": ("subject.count = 5",),
    "self.last": ("subject.last = None",),
    "self.cache": ("subject.cache.clear()",),
    "self.total": ("subject.total.add_(1)",),
    "self.linear": ("subject.linear.weight.data.mul_(2)",),
    "Model.calls": ("module.Model.calls = 3",),
    "self.factor": ("module.Model.factor = 3.0",),
}


def chosen_parameters(chosen: random.Random) -> list[Parameter]:
    """Up to three parameters of different names, those without a default first."""
    picked = {one.name: one for one in chosen.sample(PARAMETERS, chosen.choice((0, 1, 1, 2, 2, 3)))}
    return sorted(picked.values(), key=lambda one: "=" in one.declared)


def probes_of(chosen: random.Random, kind: str, parameters: list[Parameter], body: str) -> tuple[Probe, ...]:
    """The example, and some of the probes that fit the program, in any order."""
    shape = (2, 4) if kind == MODULE else (2, 3)
    possible = [Probe("other values", _arguments(parameters, shape))]
    shapes = MODULE_SHAPES if kind == MODULE else SHAPES
    possible += [Probe(name, _arguments(parameters, other)) for name, other in shapes.items()]
    possible += [Probe(name, _arguments(parameters, shape, form)) for name, form in FORMS.items()]
    possible += [Probe("one tensor twice", "*[" + _matrix(shape) + "] * 2" + _others(parameters, shape))]
    particular = [
        Probe(name, _arguments(parameters, shape, instead={one.name: text}))
        for one in parameters
        for name, text in one.others.items()
    ]
    particular += [
        Probe("changed world", _arguments(parameters, shape), action)
        for name, actions in (WORLD | STATE).items()
        for action in actions
        if name in body
    ]
    if kind == MODULE:
        particular += [Probe("evaluation", _arguments(parameters, shape), "subject.eval()")] * 3
    picked = chosen.sample(particular, min(len(particular), MOST_PROBES // 2))
    picked += chosen.sample(possible, MOST_PROBES - len(picked))
    chosen.shuffle(picked)
    if any(probe.action == "subject.eval()" for probe in picked):
        picked.append(Probe("training again", _arguments(parameters, shape), "subject.train()"))
    return (Probe("example", _arguments(parameters, shape)), *picked)


def _matrix(shape: tuple[int, int], form: str = "{matrix}") -> str:
    sizes = {"rows": shape[0], "columns": shape[1]}
    return form.format(matrix=MATRIX.format(**sizes), **sizes)


def _arguments(
    parameters: list[Parameter], shape: tuple[int, int], form: str = "{matrix}", instead: dict[str, str] | None = None
) -> str:
    return f"{_matrix(shape, form)}, {_matrix(shape, form)}{_others(parameters, shape, instead or {})}"


def _others(parameters: list[Parameter], shape: tuple[int, int], instead: dict[str, str] | None = None) -> str:
    given = {one.name: (instead or {}).get(one.name, one.example) for one in parameters}
    sizes = {"rows": shape[0], "columns": shape[1]}
    return "".join(f", {name}={text.format(**sizes)}" for name, text in given.items() if text)
