"""Large graphs: no recursion over nodes, and edits whose cost does not grow with the graph."""

import copy

import torch

from tests.speed.counts import calls_in

from .helpers import of

DEPTH = 4000


def deep(fx, depth=DEPTH):
    graph = fx.Graph()
    node = graph.placeholder("x")
    for _ in range(depth):
        node = graph.call_function(torch.neg, (node,))
    graph.output(node)
    return graph


def test_deep_graph_runs(fx):
    module = fx.GraphModule({}, deep(fx))
    assert module(torch.tensor(1.0)) == 1.0


def test_deep_graph_interprets(fx):
    module = fx.GraphModule({}, deep(fx))
    assert fx.Interpreter(module).run(torch.tensor(1.0)) == 1.0


def test_deep_graph_transforms(fx):
    module = fx.GraphModule({}, deep(fx, 1500))
    assert len(fx.Transformer(module).transform().graph.nodes) == 1502


def test_deep_module_is_copied(fx):
    module = fx.GraphModule({}, deep(fx))
    assert len(copy.deepcopy(module).graph.nodes) == DEPTH + 2


def test_deep_graph_is_linted_and_printed(fx):
    graph = deep(fx)
    graph.lint()
    assert len(str(graph).splitlines()) >= DEPTH


def test_deep_dead_code_goes(fx):
    graph = deep(fx)
    out = graph.output_node()
    out.args = (next(iter(graph.nodes)),)
    assert graph.eliminate_dead_code() is True
    assert len(graph.nodes) == 2


def test_deep_trace(fx):
    def many(x):
        for _ in range(1500):
            x = torch.neg(x)
        return x

    assert len(of(fx.symbolic_trace(many).graph, "call_function")) == 1500


def test_wide_node(fx):
    graph = fx.Graph()
    inputs = [graph.placeholder(f"x{i}") for i in range(500)]
    stacked = graph.call_function(torch.stack, (inputs,))
    graph.output(stacked)
    assert stacked.all_input_nodes == inputs
    inputs[0].replace_all_uses_with(inputs[1])
    assert len(stacked.all_input_nodes) == 499


def test_many_users(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    other = graph.placeholder("y")
    users = [graph.call_function(torch.neg, (x,)) for _ in range(3000)]
    assert x.replace_all_uses_with(other) == users
    assert list(other.users) == users


def test_many_equal_names_stay_cheap(fx):
    assert len({node.name for node in deep(fx, 20000).nodes}) == 20002
    assert calls_in(lambda: deep(fx, 8000)) < 10 * calls_in(lambda: deep(fx, 1000))


def test_insertion_in_the_middle_is_cheap(fx):
    def calls_for(depth):
        graph = deep(fx, depth)
        middle = list(graph.nodes)[depth // 2]

        def insert():
            for _ in range(300):
                graph.call_function(torch.neg, (middle.args[0],))

        with graph.inserting_before(middle):
            count = calls_in(insert)
        assert len(graph.nodes) == depth + 302
        return count

    assert calls_for(DEPTH) < 1.1 * calls_for(DEPTH // 8)
