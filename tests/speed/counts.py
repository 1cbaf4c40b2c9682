"""What Clew does for each operation, guard or call, in numbers that no machine changes.

Counted are calls of Python functions (by a profile function), bytecode instructions of generated code, and bytes that
stay allocated. A count per operation is the difference of two sizes of the same program, so that what happens once does
not matter.
"""

from __future__ import annotations

import dis
import gc
import operator
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from types import CodeType
from typing import Any

import torch

import clew

SMALL, LARGE = 100, 200


def calls_in(run: Callable[[], object]) -> int:
    """How many Python functions are entered."""
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    gc.disable()  # finalizers and callbacks of a collection would count
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


def bytes_of(make: Callable[[], object], tries: int = 7) -> int:
    """How much stays allocated for what is made: the least of several tries, because caches grow in some of them."""
    return min(_bytes_of(make) for _ in range(tries))


def _bytes_of(make: Callable[[], object]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = make()
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    del kept
    return after - before


def instructions_in(code: CodeType) -> int:
    """The bytecode instructions of a function and of those inside of it, caches aside."""
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return sum(1 for _ in dis.get_instructions(code)) + sum(map(instructions_in, inner))


def per_unit(measure: Callable[[int], float]) -> float:
    """The growth of a measure from the small size to the large one, over the difference of the sizes."""
    measure(SMALL)  # caches are filled by a first run
    return (measure(LARGE) - measure(SMALL)) / (LARGE - SMALL)


# ---- programs --------------------------------------------------------------------------------------------------------


def chain(length: int) -> Callable[[Any], Any]:
    """So many operations, one after the other."""

    def run(x: Any) -> Any:
        for _ in range(length // 2):
            x = torch.relu(x + 1)
        return x

    return run


def graph_of(length: int) -> clew.Graph:
    """A graph of so many additions, built by hand."""
    graph = clew.Graph()
    value = graph.placeholder("x")
    for _ in range(length):
        value = graph.call_function(operator.add, (value, 1))
    graph.output(value)
    return graph


class Layers(torch.nn.Module):
    """So many linear layers."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(2, 2) for _ in range(length))

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def one_operation(x: Any) -> Any:
    """The smallest program."""
    return x + 1


def way(x: Any, name: str) -> Any:
    """One operation, after a choice by a plain argument."""
    return x + len(name)


def taking(body: str, count: int, prefix: str) -> Callable[..., Any]:
    """A function that makes an assumption about each of its arguments."""
    names = ", ".join(f"{prefix}{place}" for place in range(count))
    lines = [f"def program(x, {names}):", *(f"    y = {body.format(place)}" for place in range(count)), "    return y"]
    made: dict[str, Any] = {"torch": torch}
    exec("\n".join(lines), made)
    program: Callable[..., Any] = made["program"]
    return program


def captured(program: Any, *args: Any) -> Any:
    """A capture with its code."""
    made = clew.trace(program, args=args)
    made.recompile()
    return made


def warm(program: Any, *args: Any) -> Any:
    """A capture after the calls that it needs to be bound to its modules."""
    made = captured(program, *args)
    for _ in range(3):
        made(*args)
    return made


X = torch.ones(2)


def code_of(made: Any) -> CodeType:
    """The compiled code of a captured function."""
    code: CodeType = made._compile()[1].__code__
    return code


def bound_code_of(made: Any) -> CodeType:
    """The code of a captured module that is bound to its parts."""
    code: CodeType = vars(made)["_running"][1].__code__
    return code


def call_of(made: Any) -> CodeType:
    """The code of a call in one step: what is looked at before the program runs, and the program."""
    code: CodeType = type(made).__call__.__code__
    return code


def _lazy_calls(count: int) -> int:
    """The calls of a lazy graph with so many captures that finds the one that it did not use last."""
    lazy = clew.trace(way)
    names = ["n" * (place + 1) for place in range(count)]
    for _ in range(3):
        for name in names:
            lazy(X, name)
    return calls_in(lambda: lazy(X, names[0]))


def _guard_instructions(body: str, prefix: str, example: Any) -> float:
    made = (captured(taking(body, size, prefix), X, *[example] * size) for size in (10, 20))
    few, many = (instructions_in(code_of(one)) for one in made)
    bare = (captured(taking("x + 1", size, prefix), X, *[None] * size) for size in (10, 20))
    few_bare, many_bare = (instructions_in(code_of(one)) for one in bare)
    return ((many - few) - (many_bare - few_bare)) / 10


def _guard_calls(body: str, prefix: str, example: Any) -> float:
    few, many = (warm(taking(body, size, prefix), X, *[example] * size) for size in (10, 20))
    return (calls_in(lambda: many(X, *[example] * 20)) - calls_in(lambda: few(X, *[example] * 10))) / 10


def _layer_calls(length: int) -> int:
    made, x = warm(Layers(length).eval(), X), X
    return calls_in(lambda: made(x))


def _modules_loaded(prefix: str) -> int:
    told = "import sys; before = set(sys.modules); import clew; "
    told += f"print(sum(name.startswith({prefix!r}) for name in set(sys.modules) - before))"
    finished = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return int(finished.stdout)


NUMBER = "x + 1 if a{0} == 3 else x - 1"
SIZE = "x{0} + 1 if x{0}.shape[0] == 2 else x{0} - 1"

COUNTS: dict[str, Callable[[], float]] = {
    "capture: calls per op": lambda: per_unit(lambda size: calls_in(lambda: captured(chain(size), X))),
    "capture: bytes per op": lambda: per_unit(lambda size: bytes_of(lambda: captured(chain(size), X))),
    "capture: calls for one op": lambda: (captured(one_operation, X), calls_in(lambda: captured(one_operation, X)))[1],
    "symbolic: calls per op": lambda: per_unit(lambda size: calls_in(lambda: clew.Tracer().trace(chain(size)))),
    "graph: calls per node built": lambda: per_unit(lambda size: calls_in(lambda: graph_of(size))),
    "graph: bytes per node": lambda: per_unit(lambda size: bytes_of(lambda: graph_of(size))),
    "graph: calls per node walked": lambda: per_unit(lambda size: _calls_on(size, lambda graph: list(graph.nodes))),
    "graph: calls per node checked": lambda: per_unit(lambda size: _calls_on(size, lambda graph: graph.lint())),
    "code: calls per node": lambda: per_unit(lambda size: _calls_on(size, lambda graph: graph.python_code("self"))),
    "code: instructions per op": lambda: per_unit(lambda size: instructions_in(code_of(captured(chain(size), X)))),
    "replay: calls of a one-op function": lambda: _calls_of(warm(one_operation, X)),
    "replay: calls of a module without layers": lambda: _calls_of(warm(torch.nn.Sequential(torch.nn.ReLU()), X)),
    "replay: calls per layer": lambda: per_unit(_layer_calls),
    "replay: instructions per layer": lambda: per_unit(
        lambda size: instructions_in(bound_code_of(warm(Layers(size).eval(), X)))
    ),
    "replay: instructions of a whole call per layer": lambda: per_unit(
        lambda size: instructions_in(call_of(warm(Layers(size).eval(), X)))
    ),
    "guards: calls per number that holds": lambda: _guard_calls(NUMBER, "a", 3),
    "guards: calls per size that holds": lambda: _guard_calls(SIZE, "x", X),
    "guards: instructions per number": lambda: _guard_instructions(NUMBER, "a", 3),
    "lazy: calls with 1 capture": lambda: _lazy_calls(1),
    "lazy: calls with 4 captures": lambda: _lazy_calls(4),
    "lazy: calls per further capture": lambda: (_lazy_calls(12) - _lazy_calls(4)) / 8,
    "import: modules of clew": lambda: _modules_loaded("clew"),
    "import: modules in all": lambda: _modules_loaded(""),
}
"""What is counted, by name; the limits stand in limits.json under the same names."""


def _calls_on(size: int, work: Callable[[clew.Graph], object]) -> int:
    graph = graph_of(size)
    return calls_in(lambda: work(graph))


def _calls_of(made: Any) -> int:
    return calls_in(lambda: made(X))
