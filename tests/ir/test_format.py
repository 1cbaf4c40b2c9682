"""The table of a graph, letter by letter."""

from __future__ import annotations

import operator

import pytest

from clew.ir.format import table
from clew.ir.graph import Graph
from clew.ir.types import ArrayType


def sample() -> Graph:
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.add, (x, 1), {"k": [x]}))
    return graph


EXPECTED = """\
opcode         name    target        args    kwargs
-------------  ------  ------------  ------  --------
placeholder    x       x             ()      {}
call_function  add     operator.add  (x, 1)  {k: [x]}
output         output  output        (add,)  {}"""


def test_table() -> None:
    assert table(sample()) == EXPECTED


def test_types_have_a_column_of_their_own() -> None:
    graph = sample()
    next(iter(graph.nodes)).value_type = ArrayType("float32", (2, "n"))
    lines = table(graph).splitlines()
    assert lines[0].endswith("type")
    assert lines[2].endswith("f32[2, n]")


def test_an_empty_graph_is_a_header() -> None:
    assert len(table(Graph()).splitlines()) == 2


def test_print_tabular(capsys: pytest.CaptureFixture[str]) -> None:
    sample().print_tabular()
    assert capsys.readouterr().out == table(sample()) + "\n"
