"""Graphs among the arguments of a node are printed as inner functions, and run as functions."""

import copy
import operator
import pickle
import textwrap

import pytest
import torch

import clew
from clew.ir.graph import Graph
from clew.ir.source import SourceLine
from clew.ir.text import parse, to_text

from .running import code_of, module_of, new_graph, run_both


def apply_it(body, *operands):
    """Calls a body."""
    return body(*operands)


def apply_by_name(body, value):
    """Calls a body by the name of its parameter."""
    return body(x=value)


def choose(flag, bodies, value):
    """Calls one of two bodies."""
    return bodies[0 if flag else 1](value)


def double():
    graph, x = new_graph("x")
    graph.output(graph.call_function(operator.mul, (x, 2)))
    return graph


def scaled():
    """A body that reads an attribute of the root."""
    graph, x = new_graph("x")
    graph.output(graph.call_function(operator.mul, (x, graph.get_attr("scale"))))
    return graph


def outer(body, function=apply_it):
    graph, x = new_graph("x")
    graph.output(graph.call_function(function, (body, x)))
    return graph


def test_a_body_is_an_inner_function():
    expected = """
        from tests.codegen.test_nested import apply_it as apply_it_1


        def forward(self, x):
            def apply_it_body(x):
                scale = self.scale
                mul = x * scale;  x = scale = None
                return mul
            apply_it = apply_it_1(apply_it_body, x);  x = None
            return apply_it
    """
    assert code_of(outer(scaled())) == textwrap.dedent(expected).lstrip("\n")
    assert run_both(outer(scaled()), 3, root={"scale": 5}) == 15


def test_bodies_in_containers():
    graph, flag, x = new_graph("flag", "x")
    graph.output(graph.call_function(choose, (flag, [double(), scaled()], x)))
    assert run_both(graph, True, 3, root={"scale": 5}) == 6
    assert run_both(graph, False, 3, root={"scale": 5}) == 15


def test_bodies_in_bodies():
    shared = double()
    inner = outer(outer(shared))
    graph, x = new_graph("x")
    graph.output(graph.call_function(choose, (True, (shared, inner), x)))
    assert run_both(graph, 3) == 6
    graph.output_node().args[0].args = (False, (shared, inner), x)
    assert run_both(graph, 3) == 6


def test_a_body_without_nodes_and_one_that_is_returned():
    graph, x = new_graph("x")
    graph.call_function(apply_it, (Graph(),))
    graph.output((x, double()))
    assert module_of(graph)(1)[1](4) == 8
    assert clew.Interpreter(module_of(graph)).run(1)[1](4) == 8


def test_a_body_called_by_name():
    assert run_both(outer(double(), apply_by_name), 4) == 8


def test_names_of_a_body_shadow_nothing():
    """Locals of the body that are called like the root, a builtin, the function called, or a local outside."""
    body = Graph()
    values = [body.placeholder(name) for name in ("self", "apply_it", "x")]
    body.output(body.call_function(sum, (body.call_function(list, (tuple(values),)),)))
    graph, x = new_graph("x")
    graph.output(graph.call_function(apply_it, (body, x, 20, 300)))
    assert run_both(graph, 1) == 321


def test_a_change_of_a_body_reaches_the_code():
    graph = outer(outer(double()))
    module = module_of(graph)
    assert module(3) == 6
    inner = graph.find_nodes(op="call_function")[0].args[0].find_nodes(op="call_function")[0].args[0]
    for factor in (3, 4):
        inner.find_nodes(op="call_function")[0].args = (inner.find_nodes(op="placeholder")[0], factor)
        assert module(3) == 3 * factor
    function = clew.GraphFunction(None, copy.deepcopy(graph))
    assert function(3) == 12


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_copies_and_texts(twin):
    graph = outer(outer(scaled()))
    assert code_of(twin(graph)) == code_of(graph)
    assert code_of(parse(to_text(graph), allow="tests")) == code_of(graph)
    twin(graph).lint()


def test_a_module_takes_over_what_a_body_refers_to():
    root = torch.nn.Module()
    root.scale = torch.nn.Parameter(torch.ones(2))
    root.unused = torch.nn.Linear(1, 1)
    module = clew.GraphModule(root, outer(scaled()))
    assert list(dict(module.named_parameters())) == ["scale"]
    module.graph.lint()
    del module.scale
    with pytest.raises(clew.errors.MissingAttribute):
        module.graph.lint()


def test_an_effect_in_a_body_is_an_effect():
    writing, x = new_graph("x")
    writing.output(writing.call_method("add_", (x, 1)))
    clew.ir.effects.pure(apply_it)
    try:
        for body, stays in ((double(), False), (writing, True)):
            graph, x = new_graph("x")
            call = graph.call_function(apply_it, (outer(body), x))
            graph.output(x)
            assert clew.ir.effects.is_impure(call) is stays
            graph.eliminate_dead_code()
            assert (call in list(graph.nodes)) is stays
    finally:
        clew.ir.effects._pure.discard(apply_it)


def test_dead_code_of_a_body_goes_too():
    body = double()
    with body.inserting_before(body.output_node()):
        body.call_function(operator.neg, (body.find_nodes(op="placeholder")[0],))
    graph = outer(body)
    assert graph.eliminate_dead_code() and not graph.eliminate_dead_code()
    assert len(body.nodes) == 3


def test_an_error_in_a_body_leads_to_its_line():
    body = double()
    body.find_nodes(op="call_function")[0].source = SourceLine("model.py", 7, "forward")
    graph = outer(body)
    graph.find_nodes(op="call_function")[0].source = SourceLine("model.py", 3, "forward")
    with pytest.raises(TypeError) as caught:
        module_of(graph)(object())
    (note,) = caught.value.__notes__
    assert "mul = x * 2" in note and "model.py:7" in note


def test_lines_of_a_body_belong_to_the_node_that_hands_it_over():
    graph = outer(double())
    code = graph.python_code("self")
    nodes = list(graph.nodes)
    assert [nodes[place].name for place in code._lineno_map.values()] == ["apply_it"] * 4 + ["output"]
    text = clew.GraphModule({}, graph).print_readable(print_output=False)
    assert "            mul = x * 2" in text


def test_a_transformer_copies_bodies():
    module = module_of(outer(double()))
    twin = clew.Transformer(module).transform()
    assert twin(3) == 6
    inner = twin.graph.find_nodes(op="call_function")[0].args[0]
    assert isinstance(inner, Graph) and inner is not module.graph.find_nodes(op="call_function")[0].args[0]
