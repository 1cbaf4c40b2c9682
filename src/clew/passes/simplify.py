"""Algebraic simplification: ``x * 1`` becomes ``x``, by rules that are data, one a line.

A graph or a captured program comes in, is changed in place and returned; bodies of branches and loops are simplified
too, and how a call is spelled does not matter. ``EXACT`` rules give the same to the bit for every number, nan, inf and
-0.0 included. ``FAST`` ones do not, and are used on request only; each says for which numbers it is wrong.
A value takes the place of another only where nobody can tell: neither is written to, no result becomes an alias of an
input or of another result, the value lies in memory as the other would, and it is floating for every input that the
guards let in.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from typing import Any

import torch

from clew.ir.graph import Graph
from clew.ir.guards import Guard, is_guard
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.shared_memory import OUTSIDE, SharedMemory
from clew.passes.floating import floating_guard, floating_values
from clew.passes.match import InternalMatch
from clew.passes.program import ProgramT, add_guards, graph_in, opened
from clew.passes.replace import graph_of, keep_origins, replace_pattern_with_filters

EXACT = """
x * 1 -> x
x * 1.0 -> x
x / 1 -> x
x / 1.0 -> x
x - 0 -> x
x - 0.0 -> x
x ** 1 -> x
x ** 1.0 -> x
-(-x) -> x
x.clone() -> x
torch.relu(torch.relu(x)) -> torch.relu(x)
abs(abs(x)) -> abs(x)
abs(-x) -> abs(x)
x.contiguous().contiguous() -> x.contiguous()
x.detach().detach() -> x.detach()
"""
"""Rules that hold for every floating-point number, gradients included."""

FAST = """
x + 0 -> x                              # -0.0 + 0 is 0.0
x + 0.0 -> x                            # -0.0 + 0.0 is 0.0
x * 0 -> torch.zeros_like(x)            # nan and inf give nan, negative numbers -0.0
x * 0.0 -> torch.zeros_like(x)          # nan and inf give nan, negative numbers -0.0
x - x -> torch.zeros_like(x)            # nan and inf give nan
x / x -> torch.ones_like(x)             # zero, nan and inf give nan
torch.exp(torch.log(x)) -> x            # negative numbers give nan; rounding
torch.log(torch.exp(x)) -> x            # overflow and underflow; rounding
torch.sqrt(x) ** 2 -> x                 # negative numbers give nan; rounding
"""
"""Rules that are wrong for the numbers that stand behind them."""


@dataclass(frozen=True)
class Rule:
    """A pattern and what is put in its place, as functions of the same parameters."""

    text: str
    pattern: Any
    replacement: Any
    given: int | None
    """The place of the parameter that takes the place of the result, if it is not a new value."""


@functools.lru_cache(maxsize=16)
def _graphs_in(text: str) -> list[tuple[Rule, Graph, Graph]]:
    """The rules of a table, with the graphs of pattern and replacement."""
    return [(rule, graph_of(rule.pattern), graph_of(rule.replacement)) for rule in rules_in(text)]


def rules_in(text: str) -> list[Rule]:
    """The rules of a table: ``pattern -> replacement  # for which numbers it is wrong``, one a line."""
    return [_rule(line.partition("#")[0].strip()) for line in text.splitlines() if line.strip()]


def _rule(line: str) -> Rule:
    pattern, replacement = (part.strip() for part in line.split("->"))
    names = {node.id for node in ast.walk(ast.parse(pattern)) if isinstance(node, ast.Name)}
    parameters = sorted(names - {"torch", "abs"})
    find, put = (eval(f"lambda {', '.join(parameters)}: {part}", {"torch": torch}) for part in (pattern, replacement))
    return Rule(line, find, put, parameters.index(replacement) if replacement in parameters else None)


def simplify(program: ProgramT, *, fast: bool = False, rules: str = "") -> ProgramT:
    """The program with simpler calls in the place of others; it is changed in place and returned.

    ``fast`` allows rules that are wrong for some numbers; ``rules`` are more of the user's own, in the same notation.
    """
    graph = graph_in(program)
    with opened(program):
        for rule, pattern, replacement in _graphs_in(EXACT + (FAST if fast else "") + rules):
            places = _Places(rule, graph)
            holder = Holder.of(program, graph)
            keep_origins(replace_pattern_with_filters(holder, pattern, replacement, [places.accepts]))
            add_guards(graph, places.guards)
    return program


class Holder:
    """Stands for the owner of a graph that has none."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @staticmethod
    def of(program: Any, graph: Graph) -> Any:
        """What has the graph."""
        return program if program is not graph else Holder(graph)


class _Places:
    """The places where a rule may be used, and the guards that this asks for."""

    def __init__(self, rule: Rule, graph: Graph) -> None:
        self.rule, self.graph = rule, graph
        self.guards: list[Guard] = []
        self._known: dict[int, _Known] = {}

    def accepts(self, match: InternalMatch, graph: Graph, pattern: Graph) -> bool:
        """Whether nobody can tell that the value of a match is another one."""
        if id(graph) not in self._known:
            self._known[id(graph)] = _Known(graph)
        known, bound = self._known[id(graph)], match.placeholder_nodes
        values = [one for one in bound if isinstance(one, Node)]
        if not all(one in known.floating for one in values):
            return False
        inputs = [one for value in values for one in known.floating[value]]
        if inputs and graph is not self.graph:
            return False
        if self.rule.given is not None and not known.may_alias(match.returning_nodes[0], bound[self.rule.given]):
            return False
        self.guards += map(floating_guard, inputs)
        return True


class _Known:
    """What is known of the values of one graph."""

    def __init__(self, graph: Graph) -> None:
        self.memory = SharedMemory(graph)
        self.floating = floating_values(graph)
        effects = self.memory.effect
        writing = [one for one in effects if effects[one] in (Effect.WRITE, Effect.UNKNOWN) and not is_guard(one)]
        self.written = {memory for one in writing for memory in self.memory.touched(one)}
        outputs = graph.find_nodes(op="output")
        self.returned = {self.memory.find(value) for node in outputs for value in node._inputs}

    def may_alias(self, result: Node, value: Any) -> bool:
        """Whether ``value``, which lies in memory as ``result`` does, may stand for it; from then on they are one."""
        memory = self.memory
        ours, theirs = memory.find(result), memory.find(value)
        if value not in memory.arrays or ours in self.written or theirs in self.written:
            return False
        if ours in self.returned and (theirs in self.returned or theirs is memory.find(OUTSIDE)):
            return False
        memory.join(result, value)
        if ours in self.returned or theirs in self.returned:
            self.returned.add(memory.find(value))
        return True
