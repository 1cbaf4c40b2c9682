"""The canonical text, letter by letter, and that it says all there is to say."""

from __future__ import annotations

import dataclasses
import enum
import operator
import re
import textwrap
import typing
from pathlib import Path
from typing import Any

import pytest
import torch

from clew.errors import TextError
from clew.ir.effects import FIRST_WRITE
from clew.ir.equality import difference
from clew.ir.graph import Graph
from clew.ir.source import SourceLine
from clew.ir.text import parse, text_and_objects, to_text
from clew.ir.types import ArrayType, ScalarType, TupleType
from tests.strategies import ANNOTATIONS, OTHER_LITERALS, TORCH_LITERALS, Access, Colour, Label, Point, Span


def body() -> Graph:
    graph = Graph()
    a = graph.placeholder("a")
    graph.output(graph.call_function(operator.neg, (a,)))
    return graph


def check(graph: Graph, expected: str, *, sources: bool = False) -> None:
    """The graph prints as expected, and that reads back as the graph and prints the same again."""
    text, objects = text_and_objects(graph, sources=sources)
    assert text == expected.strip("\n")
    read = parse(text, objects=objects, allow=("tests",))
    assert difference(graph, read) is None
    assert to_text(read, sources=sources) == text


def test_a_typical_graph() -> None:
    graph = Graph()
    x = graph.placeholder("x", torch.Tensor)
    x.value_type = ArrayType("float32", (2, "n", 512))
    graph.placeholder("flag", default_value=True)
    linear = graph.call_module("layer1.0.linear", (x,))
    linear.value_type = ArrayType("float32", (2, "n", 4), "cuda:0")
    weight = graph.get_attr("layer.weight")
    relu = graph.call_function(torch.nn.functional.relu, (linear,), {"inplace": False})
    view = graph.call_method("view", (relu, -1, 4))
    graph.output((view, {"a": weight}))
    check(
        graph,
        """
graph(%x: f32[2, n, 512] as torch.Tensor, %flag = True) {
  %layer1_0_linear: f32[2, n, 4]@cuda:0 = module layer1.0.linear(%x)
  %layer_weight = attr layer.weight
  %relu = function torch.nn.functional.relu(%layer1_0_linear, inplace=False)
  %view = method view(%relu, -1, 4)
  return (%view, {'a': %layer_weight})
}
""",
    )


def test_the_example_of_the_manual() -> None:
    page = (Path(__file__).parents[2] / "docs" / "dev" / "ir.md").read_text(encoding="utf-8")
    example = re.search(r"\n\n((?:    .*\n)+)", page)
    assert example is not None
    text = textwrap.dedent(example[1]).rstrip()
    assert to_text(parse(text), sources=True) == text


def test_an_empty_graph() -> None:
    check(Graph(), "graph() {\n}")


def test_inputs_of_every_kind() -> None:
    graph = Graph()
    graph.placeholder("input", int, default_value=(1, [2.5, None]))
    graph.placeholder("*args")
    graph.placeholder("**kwargs", typing.Optional[torch.Tensor])
    graph.placeholder("a b\n")
    check(
        graph,
        r"""
graph(
  %input_1 from input as int = (1, [2.5, None]),
  %_args from *args,
  %_kwargs from **kwargs as typing.Optional[torch.Tensor],
  %a_b_ from 'a b\n',
) {
}
""",
    )


def test_inputs_behind_other_nodes_and_outputs_of_other_names() -> None:
    graph = Graph()
    first = graph.get_attr("w")
    graph.placeholder("late", default_value=3)
    graph.create_node("placeholder", "odd", (1, 2), {"k": 3})
    graph.create_node("get_attr", "v", (1,))
    output = graph.output(first)
    output.name = "result"
    output.value_type = ScalarType("int")
    check(
        graph,
        """
graph() {
  %w = attr w
  %late = placeholder late(3)
  %odd = placeholder odd(1, 2, k=3)
  %v = attr v(1)
  %result: int = output output(%w)
}
""",
    )


def test_types_of_the_output() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    output = graph.output([x], type_expr=list[torch.Tensor])
    output.value_type = TupleType((ArrayType("bool", ()),))
    check(graph, "graph(%x) {\n  return [%x]: (bool[],) as list[torch.Tensor]\n}")


def test_nested_graphs() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    middle = Graph()
    y = middle.placeholder("y")
    middle.output(middle.call_function(operator.pos, (body(), y)))
    graph.output(graph.call_function(operator.add, ([body()], {"k": middle}), {"z": x}))
    check(
        graph,
        """
graph(%x) {
  %add = function operator.add([graph(%a) {
    %neg = function operator.neg(%a)
    return %neg
  }], {'k': graph(%y) {
    %pos = function operator.pos(graph(%a) {
      %neg = function operator.neg(%a)
      return %neg
    }, %y)
    return %pos
  }}, z=%x)
  return %add
}
""",
    )


def test_sources() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    x.source = SourceLine("model.py", 3, "forward")
    graph.placeholder("y")
    neg = graph.call_function(operator.neg, (x,))
    neg.source = SourceLine("my model.py", 4)
    graph.output(neg).source = SourceLine("a#b.py", 5, "<lambda>")
    check(
        graph,
        """
graph(
  %x,  # model.py:3 in forward
  %y,
) {
  %neg = function operator.neg(%x)  # 'my model.py':4
  return %neg  # a#b.py:5 in <lambda>
}
""",
        sources=True,
    )
    read = parse(to_text(graph, sources=True))
    assert [node.source for node in read.nodes] == [node.source for node in graph.nodes]
    assert "#" not in to_text(graph)


def test_keyword_arguments_of_any_name() -> None:
    graph = Graph()
    graph.call_function(len, (), {"dim": 1, "in": 2, "a b": 3, "x\n=": 4, "": 5, "é": 6})
    check(graph, "graph() {\n  %len_1 = function builtins.len(dim=1, in=2, 'a b'=3, 'x\\n='=4, ''=5, 'é'=6)\n}")


def test_targets_cannot_break_out_of_their_line() -> None:
    graph = Graph()
    evil = "a(%x)\n}\n# @0 'x\" \u2028\x1b[2J"
    graph.call_module(evil, (evil,))
    graph.get_attr(evil)
    graph.call_method(evil)
    text = to_text(graph)
    assert len(text.splitlines()) == 5
    assert difference(parse(text), graph) is None


class Local:
    """A class whose objects no name reaches."""


def test_objects_that_no_name_reaches() -> None:
    graph = Graph()
    thing, function = Local(), lambda x: x
    x = graph.call_function(function, (thing, [thing]))
    graph.output((x, torch.zeros(2, 3), function))
    text, objects = text_and_objects(graph)
    assert text == (
        "# @0: function tests.ir.test_text.test_objects_that_no_name_reaches.<locals>.<lambda>\n"
        "# @1: tests.ir.test_text.Local\n"
        "# @2: torch.Tensor f32[2, 3]\n"
        "graph() {\n"
        "  %_lambda_ = function @0(@1, [@1])\n"
        "  return (%_lambda_, @2, @0)\n"
        "}"
    )
    assert list(objects) == ["@0", "@1", "@2"]
    read = parse(text, objects=objects, allow=("tests",))
    assert difference(graph, read) is None
    assert read.output_node().args[0][1] is objects["@2"]


def test_classes_that_no_name_reaches() -> None:
    Mood = enum.Enum("Mood", "GOOD BAD")
    Pair = dataclasses.make_dataclass("Pair", ["left", "right"])
    graph = Graph()
    graph.output((Mood.BAD, Pair(1, Mood.GOOD)))
    text, objects = text_and_objects(graph)
    assert "return (@0.BAD, @1(left=1, right=@0.GOOD))" in text
    assert difference(graph, parse(text, objects=objects, allow=("tests",))) is None


@pytest.mark.parametrize("value", TORCH_LITERALS + OTHER_LITERALS, ids=lambda value: type(value).__name__)
def test_literals_read_back(value: Any) -> None:
    graph = Graph()
    graph.output([value, (value,), {"k": value}])
    text, objects = text_and_objects(graph)
    assert not objects
    assert difference(graph, parse(text, allow=("tests",))) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Colour.RED, "tests.strategies.Colour.RED"),
        (Access.READ | Access.RUN, "tests.strategies.Access(5)"),
        (Point(1, (2,)), "tests.strategies.Point(x=1, y=(2,))"),
        (Label("a\n"), "tests.strategies.Label(text='a\\n', colour=tests.strategies.Colour.RED)"),
        (Span(1, None), "tests.strategies.Span(1, None)"),
        (torch.float16, "torch.float16"),
        (torch.device("cuda", 1), "torch.device('cuda:1')"),
        (torch.Size([1, 2]), "torch.Size([1, 2])"),
        (torch.finfo(torch.float16), "torch.finfo(torch.float16)"),
        (torch.relu, "torch.relu"),
        (slice(None, 3), "slice(None, 3, None)"),
        (float("-inf"), "float('-inf')"),
        ({}, "{}"),
        (frozenset({2, 1}), "frozenset([1, 2])"),
        ({3}, "{3}"),
        (set(), "set()"),
        (range(0, 9, 2), "range(0, 9, 2)"),
        (..., "..."),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_spelling_of_literals(value: Any, expected: str) -> None:
    graph = Graph()
    graph.output(value)
    text = to_text(graph)
    assert text == f"graph() {{\n  return {expected}\n}}"
    assert difference(graph, parse(text, allow=("tests",))) is None


@pytest.mark.parametrize("annotation", [*ANNOTATIONS, typing.Dict[str, "Graph"], typing.Any], ids=str)
def test_annotations_read_back(annotation: Any) -> None:
    graph = Graph()
    graph.placeholder("x", annotation)
    text, objects = text_and_objects(graph)
    assert not objects
    assert next(iter(parse(text, allow=("tests",)).nodes)).type == annotation


def test_annotations_that_have_no_name() -> None:
    graph = Graph()
    variable = typing.TypeVar("variable")
    graph.placeholder("x", list[variable])  # type: ignore[valid-type]
    text, objects = text_and_objects(graph)
    assert text.endswith("graph(%x as @0) {\n}")
    assert difference(graph, parse(text, objects=objects, allow=("tests",))) is None


def test_what_cannot_be_written_is_an_error() -> None:
    graph = Graph()
    graph.call_function(len, (), {1: 2})  # type: ignore[dict-item]
    with pytest.raises(TextError, match="len_1 has the keyword argument 1, which is not a string"):
        to_text(graph)
    graph = Graph()
    graph.placeholder("x").value_type = ScalarType("f32[2]")
    with pytest.raises(TextError, match=r"node x has the type .* cannot be read back"):
        to_text(graph)


def test_the_first_write_of_state_has_a_line_of_its_own() -> None:
    text = """graph(%x) {
  %neg = function operator.neg(%x)
  state:
  %append = method append(%x, %neg)
  return %neg
}"""
    graph = parse(text)
    assert [node.name for node in graph.nodes if node.meta.get(FIRST_WRITE)] == ["append"]
    assert to_text(graph) == text
    with pytest.raises(TextError, match="the end of the line behind 'state:'"):
        parse(text.replace("state:", "state: %append"))
