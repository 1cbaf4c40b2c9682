"""The table and the listing of a graph, letter by letter."""

from __future__ import annotations

import io
import operator
import re
import sys

import pytest

from clew.ir.control_flow import cond
from clew.ir.format import listing, table
from clew.ir.graph import Graph
from clew.ir.guards import Guard
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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_colours_and_a_file_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    sample().print_tabular()
    coloured = sys.stdout.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[36mcall_function  add   \x1b[0m  operator.add" in coloured
    assert re.sub(r"\x1b\[\d+m", "", coloured) == table(sample()) + "\n"
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys, "stdout", Terminal())
    sample().print_tabular()
    assert sys.stdout.getvalue() == table(sample()) + "\n"  # type: ignore[attr-defined]


def test_a_name_cannot_give_orders_to_the_terminal() -> None:
    graph = sample()
    graph.call_method("\x1b[2Jgone", (next(iter(graph.nodes)),))
    assert "\x1b[2J" not in table(graph, colour=True)


LISTED = """\
graph(%x):
    %x : f32[2] [num_users=1] = placeholder[target=x]
    # encoder.layer.0: Layer
    %neg : [num_users=1] = call_function[target=operator.neg](args = (%x,), kwargs = {})
    %inner : [num_users=1] = call_module[target=encoder.layer.0.inner](args = (%neg,), kwargs = {})
    # encoder: Encoder
    %cond : [num_users=1] = call_function[target=clew.cond](args = (True, <graph of 2 nodes>, (%inner,)), kwargs = {})
        graph(%a):
            %a : [num_users=1] = placeholder[target=a]
            return a
    return cond"""


def modular() -> Graph:
    graph = Graph()
    x = graph.placeholder("x")
    x.value_type = ArrayType("float32", (2,))
    negative = graph.call_function(operator.neg, (x,))
    inner = graph.call_module("encoder.layer.0.inner", (negative,))
    inner.name = "inner"
    body = Graph()
    body.output(body.placeholder("a"))
    branch = graph.call_function(cond, (True, body, (inner,)))
    graph.output(branch)
    outer, layer = ("encoder", "models.Encoder"), ("encoder.layer.0", "models.Layer")
    negative.meta["nn_module_stack"] = {"e": outer, "l": layer}
    inner.meta["nn_module_stack"] = {"e": outer, "l": layer, "i": ("encoder.layer.0.inner", "torch.nn.Linear")}
    branch.meta["nn_module_stack"] = {"e": outer}
    return graph


def test_the_listing_has_types_modules_and_bodies() -> None:
    assert str(modular()) == repr(modular()) == LISTED
    assert listing(modular(), 2).splitlines()[-1] == "    # and 3 more nodes: print(graph) shows all"


def test_a_guard_tells_sets_in_one_order() -> None:
    words = {f"word{number}" for number in range(8)}
    told = ", ".join(repr(word) for word in sorted(words))
    assert Guard("keys", "equals", words, "value").expression == f"'keys' == {{{told}}}"
    assert Guard("keys", "equals", frozenset(words), "value").expression == f"'keys' == frozenset({{{told}}})"
    assert Guard("keys", "equals", set(), "value").expression == "'keys' == set()"


def test_a_method_that_python_makes_anew_is_the_same() -> None:
    words: list[str] = []
    held = Guard("append", "is", words.append, "value")
    assert held.holds(words.append) and not held.holds([].append) and not held.holds(words.extend)
