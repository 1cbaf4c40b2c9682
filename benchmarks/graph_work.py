"""Work on graphs: building, checking, editing, matching, writing code and text, copying, running.

Times are microseconds per node, room is bytes per node; what torch.fx cannot do, or not in a bearable time, is not a
number. ``slopes`` says how the whole time grows with the size: 1.0 is linear. By itself
(``python -m benchmarks.graph_work [--million] [what ...]``) this file prints its rows and slopes.
"""

from __future__ import annotations

import argparse
import copy
import gc
import math
import operator
import pickle
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import torch.fx
from torch._functorch.compile_utils import fx_graph_cse

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


def pairs(kind: Any, size: int) -> Any:
    """A graph of ``size`` calls in which every third one repeats the one before it."""
    graph = kind()
    value = graph.placeholder("x")
    for _ in range(size // 3):
        one, other = (graph.call_function(torch.sub, (value, 1.0)) for _ in range(2))
        value = graph.call_function(torch.mul, (one, other))
    graph.output(value)
    return graph


SHARING: dict[str, Callable[[Any], Any]] = {"clew": clew.common_subexpressions, "torch.fx": fx_graph_cse}
REPLACING: dict[str, Callable[..., Any]] = {"clew": clew.replace_pattern, "torch.fx": torch.fx.replace_pattern}
MOST_TO_MATCH = 10_000
"""Larger graphs than that are not given to torch.fx's matcher, whose time grows with the square of the size."""


def replaced(name: str, size: int) -> Any:
    """Put a subtraction in the place of every addition, by a pattern."""
    module = MODULES[name]({}, chain(GRAPHS[name], size))
    return REPLACING[name](module, lambda x: x + 1, lambda x: x - 1)


def bytes_per_node(kind: Any, size: int) -> float:
    """The room that a graph takes."""
    chain(kind, 10)  # what is made once is there already
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        graph = chain(kind, size)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
        return taken / len(graph.nodes)
    finally:
        tracemalloc.stop()


def compiled(kind: Any, graph: Any) -> Any:
    """A module with fresh code."""
    module = kind({}, graph)
    module.recompile()
    return module.forward


SIZES = (1_000, 10_000, 100_000)
MILLION = 1_000_000
MOST_FOR_PEERS = 100_000
"""At this size torch.fx takes some 45 seconds for one turn of all works; larger graphs are Clew's alone."""


def rows(sizes: tuple[int, ...] = SIZES, only: Iterable[str] = ()) -> Iterator[Row]:
    """All measurements of this section, or those that are named."""
    chosen = set(only)
    for size in sizes:
        names = tuple(GRAPHS) if size <= MOST_FOR_PEERS else ("clew",)
        works = _works(size, names)
        for what, contestants in _contests(works, size, names).items():
            if not chosen or what in chosen:
                yield _with_all(compare("graph work", what, size, contestants, turns=3 if len(names) > 1 else 1))
        del works  # a million nodes of each kind are enough at a time
        if not chosen or "bytes" in chosen:
            room = {name: bytes_per_node(GRAPHS[name], size) for name in names}
            yield _with_all(Row("graph work", "bytes", size, room))


def slopes(found: Iterable[Row]) -> dict[str, dict[str, float]]:
    """For each work and contestant the exponent with which its whole time grows, from the least size to the largest."""
    by_work: dict[str, dict[str, dict[int, float]]] = {}
    for row in found:
        for name, time in row.times.items():
            if not math.isnan(time) and row.what != "bytes":
                by_work.setdefault(row.what, {}).setdefault(name, {})[row.size] = time * row.size
    return {
        what: {name: _slope(whole) for name, whole in works.items() if len(whole) > 1}
        for what, works in by_work.items()
    }


def _slope(whole: dict[int, float]) -> float:
    least, largest = min(whole), max(whole)
    return math.log(whole[largest] / whole[least]) / math.log(largest / least)


def _contests(
    works: dict[str, Callable[[str], Any]], size: int, names: tuple[str, ...]
) -> dict[str, dict[str, Callable[[], Any]]]:
    """Who takes part in what: torch.fx has no parser, and its matcher is not given large graphs."""
    left_out = {"parse"} | ({"replace pattern"} if size > MOST_TO_MATCH else set())
    return {
        what: {name: partial(work, name) for name in names if name == "clew" or what not in left_out}
        for what, work in works.items()
    }


def _with_all(row: Row) -> Row:
    """The row with every contestant; one that did not take part has no time."""
    return Row(row.section, row.what, row.size, {name: row.times.get(name, math.nan) for name in GRAPHS})


def _works(size: int, names: tuple[str, ...]) -> dict[str, Callable[[str], Any]]:
    """What is measured at one size: functions of the contestant's name."""
    graphs = {name: chain(GRAPHS[name], size) for name in names}
    modules = {name: MODULES[name]({}, graph) for name, graph in graphs.items()}
    pickles = {name: pickle.dumps(module) for name, module in modules.items()}
    runners = {name: INTERPRETERS[name](module) for name, module in modules.items()}
    text = clew.to_text(graphs["clew"])
    return {
        "build": lambda name: chain(GRAPHS[name], size),
        "walk": lambda name: [node.op for node in graphs[name].nodes],
        "lint": lambda name: graphs[name].lint(),
        "dead code": lambda name: graphs[name].eliminate_dead_code(),
        "build and exchange all": lambda name: exchange_all(chain(GRAPHS[name], size)),
        "replace pattern": lambda name: replaced(name, size),
        "common subexpressions": lambda name: SHARING[name](pairs(GRAPHS[name], size)),
        "code text": lambda name: graphs[name].python_code("self"),
        "compile": lambda name: compiled(MODULES[name], graphs[name]),
        "text": lambda name: clew.to_text(graphs[name]) if name == "clew" else str(graphs[name]),
        "parse": lambda name: clew.parse(text),
        "deepcopy": lambda name: copy.deepcopy(graphs[name]),
        "pickle": lambda name: pickle.dumps(modules[name]),
        "unpickle": lambda name: pickle.loads(pickles[name]),
        "interpret": lambda name: runners[name].run(1),
    }


def main() -> None:
    """Print the rows, and how the times grow."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.graph_work", description=__doc__)
    parser.add_argument("only", nargs="*", help="what to measure; all by default")
    parser.add_argument("--million", action="store_true", help="also graphs of a million nodes: Clew alone, one turn")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of nodes")
    chosen = parser.parse_args()
    found = []
    for row in rows((*chosen.sizes, *([MILLION] if chosen.million else [])), chosen.only):
        found.append(row)
        times = "  ".join(f"{name} {time:9.3f}" for name, time in row.times.items())
        print(f"{row.what:24} {row.size:9,}  {times}  {row.ratio():6.2f}x", flush=True)
    for what, exponents in slopes(found).items():
        print(f"slope of {what:24}", "  ".join(f"{name} {slope:.2f}" for name, slope in exponents.items()))


if __name__ == "__main__":
    main()
