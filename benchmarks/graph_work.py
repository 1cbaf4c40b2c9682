"""Work on graphs: building, checking, editing, writing code, copying, running; microseconds per node."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch.fx

import clew
from benchmarks.measure import Row, compare

GRAPHS = {"clew": clew.Graph, "torch.fx": torch.fx.Graph}
MODULES = {"clew": clew.GraphModule, "torch.fx": torch.fx.GraphModule}
INTERPRETERS = {"clew": clew.Interpreter, "torch.fx": torch.fx.Interpreter}


def chain(kind: Any, size: int) -> Any:
    """A graph of ``size`` additions, one after the other."""
    graph = kind()
    value = graph.placeholder("x")
    for _ in range(size):
        value = graph.call_function(operator.add, (value, 1))
    graph.output(value)
    return graph


def exchange_all(graph: Any) -> None:
    """Put a subtraction in the place of every addition."""
    for node in list(graph.nodes):
        if node.op == "call_function":
            with graph.inserting_after(node):
                new = graph.call_function(operator.sub, node.args)
            node.replace_all_uses_with(new)
            graph.erase_node(node)


def compiled(kind: Any, graph: Any) -> Any:
    """A module with fresh code."""
    module = kind({}, graph)
    module.recompile()
    return module.forward


def rows(sizes: tuple[int, ...] = (1_000, 10_000, 100_000)) -> Iterator[Row]:
    """All measurements of this section."""
    for size in sizes:
        for what, work in _works(size).items():
            yield compare("graph work", what, size, {name: partial(work, name) for name in GRAPHS}, turns=3)


def _works(size: int) -> dict[str, Callable[[str], Any]]:
    """What is measured at one size: functions of the contestant's name."""
    graphs = {name: chain(kind, size) for name, kind in GRAPHS.items()}
    modules = {name: MODULES[name]({}, graph) for name, graph in graphs.items()}
    pickles = {name: pickle.dumps(module) for name, module in modules.items()}
    runners = {name: INTERPRETERS[name](module) for name, module in modules.items()}
    return {
        "build": lambda name: chain(GRAPHS[name], size),
        "walk": lambda name: [node.op for node in graphs[name].nodes],
        "lint": lambda name: graphs[name].lint(),
        "dead code": lambda name: graphs[name].eliminate_dead_code(),
        "build and exchange all": lambda name: exchange_all(chain(GRAPHS[name], size)),
        "code text": lambda name: graphs[name].python_code("self"),
        "compile": lambda name: compiled(MODULES[name], graphs[name]),
        "deepcopy": lambda name: copy.deepcopy(graphs[name]),
        "pickle": lambda name: pickle.dumps(modules[name]),
        "unpickle": lambda name: pickle.loads(pickles[name]),
        "interpret": lambda name: runners[name].run(1),
    }
