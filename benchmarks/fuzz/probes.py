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
    "self.cell": ("subject.cell.count = 4", "subject.cell.memory.fill_(1.0)", "subject.cell.kept = None"),
    "self.options": ("subject.options.clear()", "subject.options['a'] = 2.5"),
    "self.norm": ("subject.norm.momentum = 0.5",),
}


def chosen_parameters(chosen: random.Random, vocabulary: Vocabulary) -> list[Parameter]:
    """Up to three parameters of different names, in an order that Python takes."""
    picked = {one.name: one for one in chosen.sample(vocabulary.parameters, chosen.choice((0, 1, 1, 2, 2, 3)))}
    return sorted(picked.values(), key=_rank)


def _rank(parameter: Parameter) -> int:
    """Any number of arguments, those without a default, those with one, any keywords."""
    stars = parameter.declared.count("*")
    return {0: 1 + ("=" in parameter.declared), 1: 0, 2: 3}[stars]


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
    possible += [
        Probe(name, text.format(_matrix(plain, shape)) + _others(parameters, shape))
        for name, text in (("one tensor twice", "*[{}] * 2"), ("the whole of it", "*[[z, z[:]] for z in [{}]][0]"))
    ]
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
    sizes = {"rows": shape[0], "columns": shape[1]}
    texts = []
    for one in parameters:
        text, stars = (instead or {}).get(one.name, one.example).format(**sizes), "*" * one.declared.count("*")
        if text:
            texts.append(f", {stars}{text}" if stars else f", {one.name}={text}")
    return "".join(texts)
