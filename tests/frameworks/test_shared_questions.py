"""What a capture can be asked, the same for all four frameworks: text, pickle, guards, edits, tools, signatures."""

from __future__ import annotations

import copy
import inspect
import operator
import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import clew
from clew.errors import ClewError
from tests.frameworks.shared import gaps
from tests.frameworks.shared.spaces import SPACES, Space

QUESTIONS: dict[str, Callable[[Space, Path], None]] = {}


def question(ask: Callable[[Space, Path], None]) -> Callable[[Space, Path], None]:
    QUESTIONS[ask.__name__] = ask
    return ask


def program(held: Any, scale: float = 2.0, *, mode: str = "plain") -> Any:
    """The program that all questions are about: it works on arrays of any framework."""
    total = held["x"] * scale + held["y"]
    return {"total": total, "parts": (total * total, [held["x"] - 1])} if mode == "plain" else total


def example(s: Space, start: float = 1.0, **others: Any) -> tuple[Any, ...]:
    return ({"x": s.array([start, 2.0, 3.0]), "y": s.array([4.0, 5.0, start])} | others, 2.0)


def captured(s: Space, **options: Any) -> Any:
    return clew.trace(program, example(s), **options)


def check(s: Space, graph: Any, function: Any = program, *args: Any) -> None:
    given = args or example(s, 7.0)
    assert s.difference(function(*s.copied(given)), graph(*s.copied(given))) == ""


@question
def text(s: Space, folder: Path) -> None:
    graph = captured(s)
    written, objects = clew.text_and_objects(graph.graph)
    again = clew.parse(written, objects=objects, allow=("tests",))
    assert clew.difference(again, graph.graph) is None and clew.text_and_objects(again)[0] == written
    check(s, clew.GraphFunction(getattr(graph, "root", graph), again))


@question
def pickles(s: Space, folder: Path) -> None:
    check(s, pickle.loads(pickle.dumps(captured(s))))
    check(s, copy.deepcopy(captured(s)))


@question
def code(s: Space, folder: Path) -> None:
    graph = captured(s)
    compile(graph.code, "generated", "exec")
    assert "def forward(self, held, scale" in graph.code


@question
def interpreter(s: Space, folder: Path) -> None:
    graph = captured(s)
    run = clew.Interpreter(graph).run(*example(s, 7.0), "plain")
    assert s.difference(program(*example(s, 7.0)), run) == ""


@question
def signature(s: Space, folder: Path) -> None:
    graph = captured(s)
    assert list(inspect.signature(graph).parameters) == list(inspect.signature(program).parameters)
    held, scale = example(s, 7.0)
    for given in (
        {"args": (held,), "kwargs": {"scale": scale}},
        {"args": (), "kwargs": {"held": held, "scale": scale}},
    ):
        found = graph(*given["args"], **given["kwargs"])
        assert s.difference(program(held, scale), found) == ""
    with pytest.raises(TypeError):
        graph()


@question
def edits(s: Space, folder: Path) -> None:
    graph = captured(s, static=("mode",))  # else it may be a branch of the graph
    node = next(node for node in graph.graph.nodes if node.target in (operator.sub,) or node.target == "__sub__")
    node.target = operator.add if node.op == "call_function" else "__add__"
    if hasattr(graph, "recompile"):
        graph.recompile()
    held, scale = example(s, 7.0)
    found = graph(held, scale)
    assert s.difference(held["x"] + 1, found["parts"][1][0]) == ""
    assert s.difference(program(held, scale)["total"], found["total"]) == ""


@question
def dead_code(s: Space, folder: Path) -> None:
    graph = captured(s)
    count = len(list(graph.graph.nodes))
    with graph.graph.inserting_before(next(node for node in graph.graph.nodes if node.op == "output")):
        graph.graph.call_function(operator.add, (1, 2))
    assert graph.graph.eliminate_dead_code() and len(list(graph.graph.nodes)) == count
    check(s, graph)


@question
def verified(s: Space, folder: Path) -> None:
    found = clew.verify(captured(s), program, (example(s), {}))
    assert found and {case.status for case in found.cases} <= {"equal", "guarded"}
    other = clew.verify(captured(s), lambda held, scale=2.0, mode="plain": program(held, scale + 1), (example(s), {}))
    assert not other.ok


@question
def explained(s: Space, folder: Path) -> None:
    told = clew.explain(program, example(s))
    assert told.captured and "guards" in str(told)
    assert clew.explain(captured(s)).captured


@question
def guards_by_dtype(s: Space, folder: Path) -> None:
    other = s.array([1.0, 2.0, 3.0], "float16")
    refused(s, captured(s), ({"x": other, "y": other}, 2.0))


@question
def guards_by_rank(s: Space, folder: Path) -> None:
    other = s.array([[1.0, 2.0, 3.0]])
    refused(s, captured(s), ({"x": other, "y": other}, 2.0))


@question
def guards_by_structure(s: Space, folder: Path) -> None:
    x = s.array([1.0, 2.0, 3.0])
    for held in ({"x": x, "y": x, "z": x}, {"x": x}, {"y": x, "x": x}, [x, x]):
        refused(s, captured(s), (held, 2.0))
    refused(s, captured(s), (*example(s), "other")[:2], mode="total")


@question
def guards_name_the_assumption(s: Space, folder: Path) -> None:
    with pytest.raises(clew.GuardError, match="mode"):
        captured(s, static=("mode",))(*example(s), mode="total")
    refused(s, captured(s), example(s), mode="total")
    assert captured(s).guards


def refused(s: Space, graph: Any, args: tuple[Any, ...], **kwargs: Any) -> None:
    """The call is refused, or it is right: some frameworks' captures hold for other dtypes and ranks."""
    try:
        found = graph(*s.copied(args), **kwargs)
    except clew.GuardError:
        return
    assert s.difference(program(*args, **kwargs), found) == ""


@question
def other_sizes(s: Space, folder: Path) -> None:
    x = s.array([1.0, 2.0, 3.0, 4.0, 5.0])
    check(s, captured(s), program, {"x": x, "y": x * 2}, 2.0)


@question
def lazy(s: Space, folder: Path) -> None:
    graph = clew.trace(program)
    x = s.array([1.0, 2.0])
    for held in (example(s)[0], {"x": x, "y": x}, example(s, 3.0)[0]):
        check(s, graph, program, held, 2.0)
        assert s.difference(program(held, mode="other"), graph(held, mode="other")) == ""
    assert 1 <= len(graph.captures) <= 4  # a text may be a branch of one capture


@question
def static(s: Space, folder: Path) -> None:
    graph = captured(s, static=("scale",))
    check(s, graph)
    with pytest.raises(clew.GuardError, match="scale == 2.0"):
        graph(example(s)[0], 3.0)


@question
def named_framework(s: Space, folder: Path) -> None:
    check(s, clew.trace_graph(program, args=example(s), to=s.name))
    with pytest.raises(ClewError, match="to='caffe' names no framework that Clew knows"):
        clew.trace_graph(program, args=example(s), to="caffe")


@question
def compiled(s: Space, folder: Path) -> None:
    if s.name == "torch":
        pytest.skip("torch.compile needs a compiler of machine code: tests/api has it with another backend")
    graph = clew.trace_graph(double, args=(s.array([1.0, 2.0]),), return_backend_traced_fn=True)
    check(s, graph, double, s.array([3.0, 4.0]))


def double(x: Any) -> Any:
    return x * 2 + 1


@question
def folder(s: Space, folder: Path) -> None:
    if s.name != "torch":
        raise clew.CaptureError(gaps.QUESTIONS[s.name, "folder"])
    model = s.package.nn.Linear(3, 2)
    clew.trace(model, (s.array([[1.0, 2.0, 3.0]]),)).to_folder(folder / "saved", "Saved")
    assert (folder / "saved" / "module.py").exists()


@question
def errors_are_the_programs(s: Space, folder: Path) -> None:
    def fails(x: Any) -> Any:
        raise KeyError("own")

    with pytest.raises(KeyError, match="own"):
        clew.trace(fails, (s.array([1.0]),))


@question
def nothing_is_left_behind(s: Space, folder: Path) -> None:
    held = example(s)[0]
    before = dict(held)
    clew.trace(program, (held, 2.0))
    assert list(held) == list(before) and all(held[key] is before[key] for key in held)


@question
def root_holds_constants(s: Space, folder: Path) -> None:
    table = SimpleNamespace(weight=s.array([float(i) for i in range(200)]))
    graph = clew.trace(lambda x: x * table.weight, (s.array([1.0] * 200),))
    check(s, graph, lambda x: x * table.weight, s.array([2.0] * 200))
    table.weight = s.array([0.0] * 200)
    with pytest.raises(clew.GuardError):
        graph(s.array([1.0] * 200))


CASES = [(framework, name) for framework in SPACES for name in QUESTIONS]


@pytest.mark.parametrize(("framework", "name"), CASES, ids=["-".join(case) for case in CASES])
def test_question(framework: str, name: str, tmp_path: Path) -> None:
    pytest.importorskip(framework)
    space = SPACES[framework]
    assert space.package
    if (framework, name) in gaps.QUESTIONS:
        with pytest.raises(ClewError):
            QUESTIONS[name](space, tmp_path)
    else:
        QUESTIONS[name](space, tmp_path)
