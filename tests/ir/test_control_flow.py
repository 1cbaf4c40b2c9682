"""Branches and loops as functions and as nodes: what they mean, and which of them the verifier refuses."""

import pytest

import clew
from clew.errors import BodyMismatch, GraphError
from clew.ir.arguments import nested_graphs
from clew.ir.control_flow import Branch, Loop, closing_branch, control_of
from clew.ir.source import SourceLine

# ---- called with plain functions -------------------------------------------------------------------------------------


def test_cond_runs_one_side():
    assert clew.cond(3, lambda x: x + 1, lambda x: 1 / 0, (4,)) == 5
    assert clew.cond([], lambda: 1 / 0, lambda: "empty") == "empty"


def test_while_loop_carries_values():
    assert clew.while_loop(lambda n, top: n < top, lambda n, top: (n * 2,), (1,), (100,)) == (128,)
    assert clew.while_loop(lambda n: False, lambda n: 1 / 0, (1,), outputs=2) == (1, [], [])


def test_for_loop_collects_and_stops():
    result = clew.for_loop(range(9), lambda s, i: (s + i, i * i, s > 4), (0,), outputs=1, breaks=True)
    assert result == (10, [0, 1, 4, 9, 16])
    assert clew.for_loop("abc", seen.append) == ()
    assert seen == ["a", "b", "c"]


seen: list[str] = []


def test_graph_functions_can_be_bodies():
    double = clew.symbolic_trace(lambda x: x * 2)
    assert clew.cond(True, double, double, (4,)) == 8
    assert clew.for_loop(range(3), lambda x, i: (double(x),), (1,)) == (8,)


@pytest.mark.parametrize(
    ("body", "told"),
    [(lambda s, i: s, "returned an int instead of a tuple of 1"), (lambda s, i: (s, i), "returned a tuple of 2")],
    ids=["no-tuple", "too-many"],
)
def test_a_body_that_returns_something_else(body, told):
    with pytest.raises(GraphError, match=told):
        clew.for_loop(range(3), body, (0,))


# ---- read from nodes -------------------------------------------------------------------------------------------------

BRANCH = """
graph(%c, %x) {
  %cond = function clew.cond(%c, graph(%a) {
    return SIDE
  }, graph(%a) {
    %b = function operator.neg(%a)
    return OTHER
  }, (%x,))
  %used = function builtins.list(%cond)
  return %used
}
"""

LOOP = """
graph(%xs, %x) {
  %loop = function clew.for_loop(%xs, graph(%s, %item, %o) {
    %b = function operator.add(%s, %item)
    return RESULT
  }, (0,), (%x,)OPTIONS)
  return %loop
}
"""


def branch(side="(%a,)", other="(%b,)"):
    return clew.parse(BRANCH.replace("SIDE", side).replace("OTHER", other))


def loop(result="(%b,)", options=""):
    return clew.parse(LOOP.replace("RESULT", result).replace("OPTIONS", options))


def control_in(graph):
    return next(node for node in graph.nodes if control_of(node) is not None)


def test_nodes_are_read():
    found = control_of(control_in(branch()))
    assert isinstance(found, Branch) and len(found.operands) == 1
    found = control_of(control_in(loop("(%b, %b, True)", ", outputs=1, breaks=True")))
    assert isinstance(found, Loop) and found.is_for and (found.returns, found.results) == (3, 2)
    graph = branch()
    assert closing_branch(graph) is None
    graph.output_node().args = (control_in(graph),)
    graph.eliminate_dead_code()
    assert closing_branch(graph) is control_in(graph)


@pytest.mark.parametrize(
    ("graph", "told"),
    [
        (branch("(%a, %a)"), "the result has 2 values in one and 1 in the other"),
        (branch("[%a]"), "is [%a] in one and (%b,) in the other"),
        (branch("{'k': %a}", "{'j': %b}"), "has the keys ['k'] in one and ['j'] in the other"),
        (branch("(%a, (%a, 1))", "(%b, (%b, 1, 2))"), "the result[1] has 2 values in one and 3 in the other"),
        (branch("3", "(%b,)"), "the result is 3 in one and (%b,) in the other"),
        (loop("(%b, %b)"), "returns (%b, %b) instead of a tuple of 1"),
        (loop("[%b]"), "returns [%b] instead of a tuple of 1"),
        (loop("(%b,)", ", breaks=True"), "returns (%b,) instead of a tuple of 2"),
        (loop("()", ""), "returns () instead of a tuple of 1"),
    ],
    ids=["count", "kind", "keys", "inner", "leaf", "too-many", "list", "no-flag", "none"],
)
def test_refused_results(graph, told):
    node = control_in(graph)
    node.source = SourceLine("model.py", 12, "forward")
    with pytest.raises(BodyMismatch) as caught:
        graph.lint()
    assert (
        told in str(caught.value) and f"Node {node.name} " in str(caught.value) and "model.py:12" in str(caught.value)
    )


def test_sides_that_are_returned_may_differ():
    graph = branch("(%a, %a)")
    graph.output_node().args = (control_in(graph),)
    graph.erase_node(graph.find_nodes(op="call_function", target=list)[0])
    graph.lint()
    assert clew.GraphFunction(None, graph)(True, 2) == (2, 2)
    assert clew.GraphFunction(None, graph)(False, 2) == (-2,)


def test_a_value_of_unknown_kind_fits_anything():
    branch("(%a, 1)", "%b").lint()
    loop("%b").lint()


def test_types_that_do_not_fit():
    graph = branch()
    side, other = nested_graphs(graph)
    side.find_nodes(op="placeholder")[0].value_type = clew.parse_type("f32[2, n]")
    value = other.find_nodes(op="call_function")[0]
    value.value_type = clew.parse_type("f32[3, 4]")
    graph.lint()
    for text, told in (("f64[2, n]", "f32[2, n] and f64[2, n]"), ("f32[2]", "f32[2, n] and f32[2]")):
        value.value_type = clew.parse_type(text)
        with pytest.raises(BodyMismatch, match="the result") as caught:
            graph.lint()
        assert told in str(caught.value)
    graph = loop()
    node = control_in(graph)
    node.args = (node.args[0], node.args[1], (node.args[3][0],), node.args[3])
    node.args[2][0].value_type = clew.parse_type("f32[2]")
    (body,) = nested_graphs(graph)
    body.find_nodes(op="call_function")[0].value_type = clew.parse_type("i64[2]")
    with pytest.raises(BodyMismatch, match="carried value 0 is f32.2. and i64.2."):
        graph.lint()


def test_refused_inputs():
    graph = branch()
    node = control_in(graph)
    node.args = (*node.args[:3], ())
    with pytest.raises(BodyMismatch, match="gives the true side 0 values, but it takes 1: a"):
        graph.lint()
    graph = loop()
    node = control_in(graph)
    node.args = node.args[:3]
    with pytest.raises(BodyMismatch, match="gives the body 2 values, but it takes 3: s, item, o"):
        graph.lint()
    graph = branch()
    node = control_in(graph)
    node.args = (*node.args[:3], node.args[0])
    with pytest.raises(BodyMismatch, match="does not say all that it does"):
        graph.lint()
    graph = branch()
    for body in nested_graphs(graph):
        body.find_nodes(op="placeholder")[0].target = "*a"
    with pytest.raises(BodyMismatch, match=r"a parameter \*a"):
        graph.lint()
