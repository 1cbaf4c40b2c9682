"""Which line belongs to which node, and what readable code says."""

import ast
import operator
import sys
import types

import pytest
import torch

import clew
from clew.ir.source import SourceLine
from clew.ir.types import ArrayType

from .running import keep, module_of, new_graph


def owners(graph, **options):
    """For each line of the code that a node owns: the line and the node."""
    code = graph.python_code("self", **options)
    nodes = list(graph.nodes)
    lines = code.src.split("\n")
    found = []
    for place, owner in code._lineno_map.items():
        if owner is not None and place + code._prologue_start - 1 < len(lines):
            found.append((lines[place + code._prologue_start - 1].strip(), nodes[owner].name))
    return [(line, name) for line, name in found if line and not line.startswith("#")]


def small_graph():
    graph, x = new_graph("input")
    y = graph.call_function(operator.neg, (x,))
    y.source = SourceLine("model.py", 3, "forward")
    y.value_type = ArrayType("float32", (2, "n"), "cpu")
    z = graph.call_function(keep, (y,))
    z.source = SourceLine("C:\\my\\model.py", 4, "forward")
    graph.output(z)
    return graph


EXPECTED = [
    ("input_1 = input", "input_1"),
    ("neg = -input_1", "neg"),
    ("keep = keep_1(neg)", "keep"),
    ("return keep", "output"),
]


@pytest.mark.parametrize("options", [{}, {"verbose": True}, {"expanded_def": True}, {"verbose": True, "colored": True}])
def test_each_line_belongs_to_its_node(options):
    found = [(line, name) for line, name in owners(small_graph(), **options) if not line.startswith("\x1b")]
    assert [(line.partition(";")[0].replace(': "f32[2, n]"', ""), name) for line, name in found] == EXPECTED


def test_lines_of_a_transformer_belong_to_nobody():
    graph, x = new_graph("x")
    for _ in range(2):
        graph.call_function(print, ("same",))
    graph.output(x)
    with graph.on_generate_code(lambda before: lambda body: ["first = 1\n", *body[:1], "second = 2\n", *body[1:]]):
        assert owners(graph) == [("print('same')", "print_1"), ("print('same')", "print_2"), ("return x", "output")]


def test_readable_code_tells_types_and_lines():
    module = clew.GraphModule({}, small_graph())
    text = module.print_readable(print_output=False)
    assert '    neg: "f32[2, n]" = -input_1' in text
    assert "# File: model.py:3 in forward" in text
    assert "# File: C:\\my\\model.py:4 in forward" in text
    ast.parse(text)


def test_readable_code_with_device_and_meta():
    graph, x = new_graph("x")
    x.meta["val"] = torch.zeros(2, 3)
    graph.output(graph.call_function(torch.relu, (x,)))
    text = clew.GraphModule({}, graph).print_readable(print_output=False, include_device=True, include_stride=True)
    assert 'x: "f32[2, 3][3, 1] cpu"' in text


def test_readable_code_of_nested_modules(capsys):
    inner = module_of(small_graph())
    graph, x = new_graph("x")
    graph.output(graph.call_module("inner", (x,)))
    text = clew.GraphModule({"inner": inner}, graph).print_readable()
    assert text.count("def forward(self") == 2
    assert "class inner(torch.nn.Module):" in text
    assert capsys.readouterr().out.strip() == text.strip()


def test_readable_code_after_imports_with_def_in_their_names(monkeypatch):
    module = types.ModuleType("undef")
    exec("def function(x):\n    return x", module.__dict__)
    monkeypatch.setitem(sys.modules, "undef", module)
    graph, x = new_graph("x")
    graph.output(graph.call_function(module.function, (x,)))
    assert "    def forward(self, x):" in clew.GraphModule({}, graph).print_readable(print_output=False)
