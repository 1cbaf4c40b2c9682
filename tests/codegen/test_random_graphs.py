"""Random graphs of every shape, odd names and unnamed objects included, become Python that compiles and is stable."""

import copy

from hypothesis import assume, given, settings

from clew.errors import CodegenError
from clew.ir.arguments import bodies_of
from tests.strategies import random_graphs

from .running import code_of


def is_writable(graph):
    """No Python function has two ``*args`` or two ``**kwargs``, and no method is called on nothing; bodies included."""
    bodies = [body for node in graph.nodes if node.op != "placeholder" for body in bodies_of(node)]
    targets = [node.target for node in graph.find_nodes(op="placeholder")]
    stars = [target[: len(target) - len(target.lstrip("*"))] for target in targets]
    methods = graph.find_nodes(op="call_method")
    is_plain = stars.count("*") < 2 and stars.count("**") < 2 and all(node.args for node in methods)
    return is_plain and all(map(is_writable, bodies))


@settings(max_examples=300)
@given(random_graphs(nameless=True))
def test_every_graph_becomes_python(graph):
    assume(is_writable(graph))
    code = graph.python_code("self")
    space = dict(code.globals)
    exec(compile(code.src, "generated", "exec"), space)
    assert callable(space["forward"])
    assert len(code._lineno_map) >= len([node for node in graph.nodes if node.op != "placeholder"])
    assert code_of(copy.deepcopy(graph)).count("\n") == code.src.strip("\n").count("\n") + 1


@settings(max_examples=100)
@given(random_graphs(nameless=True))
def test_readable_code_is_python_too(graph):
    assume(is_writable(graph))
    source = graph.python_code("self", verbose=True, include_device=True, include_stride=True).src
    compile(source, "generated", "exec")


@settings(max_examples=100)
@given(random_graphs())
def test_a_graph_that_is_no_python_is_refused_clearly(graph):
    try:
        graph.python_code("self")
    except CodegenError as error:
        assert not is_writable(graph) and "node" in str(error)
    else:
        assert is_writable(graph)
