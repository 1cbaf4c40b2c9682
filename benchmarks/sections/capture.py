"""Capture from an example: one call of each tool that captures, beside the eager call.

Clew's time holds all that belongs to a capture: guards, types, source lines, names, generated and compiled code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import tensorflow as tf
import torch

from benchmarks import programs, tools
from benchmarks.figures import Contestant, Effort, Figure, contest
from benchmarks.programs import Program
from benchmarks.task import Task

SECTION = "capture"
EFFORT = Effort(turns=15, seconds=6.0)
LIGHT: dict[str, tools.Tool] = {
    "eager call": tools.with_eager,
    "floor: record while executing": tools.with_recorder,
    "Clew": tools.with_clew,
    "torch.jit.trace": tools.with_jit_trace,
    "torch.fx (symbolic, no execution)": tools.with_fx,
}
HEAVY: dict[str, tools.Tool] = {
    "make_fx": tools.with_make_fx,
    "torch.export": tools.with_export,
    "torch.compile, back end eager": tools.with_dynamo,
}
HEAVY_TURNS = 3
LONG = "not measured: minutes"
PROGRAMS: dict[str, Callable[[], Program]] = {
    "chain of 1,000": functools.partial(programs.chain, 1_000),
    "tiny BERT": programs.tiny_bert,
    "chain of 100,000": functools.partial(programs.chain, 100_000),
    "ResNet-50, 224 px": programs.resnet50,
    "BERT-base": programs.bert_base,
}


def tasks(quick: bool) -> list[Task]:
    """All programs of this section."""
    made = dict(list(PROGRAMS.items())[: 2 if quick else None])
    return [Task(f"capture: {title}", functools.partial(_measure, make, quick)) for title, make in made.items()]


def _measure(make: Callable[[], Program], quick: bool) -> list[Figure]:
    program = make()
    effort = EFFORT.quick() if quick else EFFORT
    is_chain = program.size > 1
    is_long = program.size > 10_000
    contestants = [_contestant(name, tool, program, None) for name, tool in LIGHT.items()]
    if not (is_long or quick):
        contestants += [_contestant(name, tool, program, HEAVY_TURNS) for name, tool in HEAVY.items()]
    if is_chain:
        contestants += [_jax(program), _tensorflow(program)] if not is_long else [_jax(program)]
    with torch.no_grad():
        unit = "us per op" if is_chain else "s"
        found = contest(SECTION, program.title, contestants, effort, unit, program.size)
    if is_long:
        found += [Figure(SECTION, program.title, name, None, "us per op", LONG) for name in (*HEAVY, "tf.function")]
    return found


def _contestant(name: str, tool: tools.Tool, program: Program, turns: int | None) -> Contestant:
    run = functools.partial(_captured, tool, program.callable, program.args)
    return Contestant(name, run, tools.RESETS.get(tool), turns)


def _captured(tool: tools.Tool, program: Any, args: tuple[Any, ...]) -> None:
    """A capture whose result is not kept from one turn to the next."""
    tool(program, args)


def _jax(program: Program) -> Contestant:
    def run(x: Any) -> Any:
        for _ in range(program.size // 2):
            x = jax.lax.max(x + 1, zero)
        return x

    example, zero = jnp.ones(4), jnp.zeros(4)
    return Contestant("jax.make_jaxpr", lambda: jax.make_jaxpr(_fresh(run))(example))


def _tensorflow(program: Program) -> Contestant:
    def run(x: Any) -> Any:
        for _ in range(program.size // 2):
            x = tf.nn.relu(x + 1)
        return x

    example = tf.ones(4)
    return Contestant("tf.function", lambda: tf.function(_fresh(run)).get_concrete_function(example), turns=HEAVY_TURNS)


def _fresh(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function that no cache knows yet."""
    return lambda x: function(x)
