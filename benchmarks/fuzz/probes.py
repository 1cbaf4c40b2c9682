"""The calls that a random program is judged by: other values, sizes, types, flags, lists, states of the world.

In come the parameters of a program; out come probes, the example first. Each later probe differs from the example in
one respect; which ones there are depends on what the program takes and names.
"""

from __future__ import annotations

import random

from benchmarks.fuzz.program import MODULE, Probe
from benchmarks.fuzz.vocabularies import Parameter, Vocabulary

MOST_PROBES = 7


SHAPES = {"other sizes": (3, 5), "batch of one": (1, 3), "more rows": (4, 3), "square": (3, 3)}
MODULE_SHAPES = {"more rows": (5, 4), "batch of one": (1, 4), "square": (4, 4)}
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


def chosen_parameters(chosen: random.Random, vocabulary: Vocabulary) -> list[Parameter]:
    """Up to three parameters of different names, those without a default first."""
    picked = {one.name: one for one in chosen.sample(vocabulary.parameters, chosen.choice((0, 1, 1, 2, 2, 3)))}
    return sorted(picked.values(), key=lambda one: "=" in one.declared)


def probes_of(
    chosen: random.Random, kind: str, parameters: list[Parameter], body: str, vocabulary: Vocabulary
) -> tuple[Probe, ...]:
    """The example, and some of the probes that fit the program, in any order."""
    plain = vocabulary.matrix
    shape = (2, 4) if kind == MODULE else (2, 3)
    possible = [Probe("other values", _arguments(plain, parameters, shape))]
    shapes = MODULE_SHAPES if kind == MODULE else SHAPES
    possible += [Probe(name, _arguments(plain, parameters, other)) for name, other in shapes.items()]
    possible += [Probe(name, _arguments(plain, parameters, shape, form)) for name, form in vocabulary.forms.items()]
    possible += [Probe("one tensor twice", "*[" + _matrix(plain, shape) + "] * 2" + _others(parameters, shape))]
    particular = [
        Probe(name, _arguments(plain, parameters, shape, instead={one.name: text}))
        for one in parameters
        for name, text in one.others.items()
    ]
    particular += [
        Probe("changed world", _arguments(plain, parameters, shape), action)
        for name, actions in (vocabulary.world | STATE).items()
        for action in actions
        if name in body
    ]
    if kind == MODULE:
        particular += [Probe("evaluation", _arguments(plain, parameters, shape), "subject.eval()")] * 3
    picked = chosen.sample(particular, min(len(particular), MOST_PROBES // 2))
    picked += chosen.sample(possible, MOST_PROBES - len(picked))
    chosen.shuffle(picked)
    if any(probe.action == "subject.eval()" for probe in picked):
        picked.append(Probe("training again", _arguments(plain, parameters, shape), "subject.train()"))
    return (Probe("example", _arguments(plain, parameters, shape)), *picked)


def _matrix(plain: str, shape: tuple[int, int], form: str = "{matrix}") -> str:
    sizes = {"rows": shape[0], "columns": shape[1]}
    return form.format(matrix=plain.format(**sizes), **sizes)


def _arguments(
    plain: str,
    parameters: list[Parameter],
    shape: tuple[int, int],
    form: str = "{matrix}",
    instead: dict[str, str] | None = None,
) -> str:
    return f"{_matrix(plain, shape, form)}, {_matrix(plain, shape, form)}{_others(parameters, shape, instead or {})}"


def _others(parameters: list[Parameter], shape: tuple[int, int], instead: dict[str, str] | None = None) -> str:
    given = {one.name: (instead or {}).get(one.name, one.example) for one in parameters}
    sizes = {"rows": shape[0], "columns": shape[1]}
    return "".join(f", {name}={text.format(**sizes)}" for name, text in given.items() if text)
