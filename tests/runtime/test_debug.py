"""``CLEW_DEBUG`` tells what is compiled, and with 2 its code, on the error stream; without it nothing is told."""

import operator

import pytest

import clew


def compile_something() -> None:
    graph = clew.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.add, (x, 1)))
    assert clew.GraphFunction(None, graph, "plus")(2) == 3


@pytest.mark.parametrize(
    ("level", "told"),
    [(None, []), ("0", []), ("loud", []), ("1", ["# <clew plus"]), ("2", ["# <clew plus", "def forward(self, x):"])],
)
def test_the_dial(level, told, monkeypatch, capsys):
    monkeypatch.delenv("CLEW_DEBUG", raising=False)
    if level is not None:
        monkeypatch.setenv("CLEW_DEBUG", level)
    compile_something()
    printed = capsys.readouterr()
    assert printed.out == "" and all(text in printed.err for text in told)
    assert ("def forward" in printed.err) == (level == "2") and bool(printed.err) == bool(told)
