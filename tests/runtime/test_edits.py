"""Code follows every edit of the graph by itself, and only what was edited."""

import operator

import pytest
import torch

import clew
from clew.codegen.python import CodeGen

from .models import small_graph


def nodes_of(graph):
    return {node.name: node for node in graph.nodes}


def edit_args(graph):
    nodes_of(graph)["add"].args = (nodes_of(graph)["x"], 10)


def edit_kwargs(graph):
    nodes_of(graph)["add"].kwargs = {"alpha": 10}


def edit_target(graph):
    nodes_of(graph)["add"].target = torch.sub


def edit_op(graph):
    nodes_of(graph)["add"].op = "call_method"
    nodes_of(graph)["add"].target = "sub"


def update_arg(graph):
    nodes_of(graph)["mul"].update_arg(1, 5)


def update_kwarg(graph):
    nodes_of(graph)["add"].update_kwarg("alpha", 4)


def replace_uses(graph):
    nodes_of(graph)["add"].replace_all_uses_with(nodes_of(graph)["x"])


def replace_and_erase(graph):
    replace_uses(graph)
    graph.erase_node(nodes_of(graph)["add"])
    nodes_of(graph)["mul"].update_arg(1, 7)


def insert(graph):
    with graph.inserting_before(graph.output_node()):
        graph.output_node().args = (graph.call_function(torch.neg, (nodes_of(graph)["mul"],)),)


def insert_effect(graph):
    with graph.inserting_after(nodes_of(graph)["x"]):
        graph.call_method("add_", (nodes_of(graph)["x"], 5))


def move(graph):
    with graph.inserting_after(nodes_of(graph)["mul"]):
        effect = graph.call_method("add_", (nodes_of(graph)["x"], 5))
    nodes_of(graph)["x"].append(effect)


class Minus(CodeGen):
    def generate_output(self, output_args):
        return f"return -{output_args!r}"


def set_codegen(graph):
    graph.set_codegen(Minus())


def transform(graph):
    graph.on_generate_code(lambda before: lambda body: ["x = x + 1\n", *body])


EDITS = [
    edit_args, edit_kwargs, edit_target, edit_op, update_arg, update_kwarg, replace_uses, replace_and_erase, insert,
    insert_effect, move, set_codegen, transform,
]  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("kind", ["GraphModule", "GraphFunction"])
def test_the_next_call_runs_the_edited_graph(edit, kind):
    graph = small_graph()
    edited = clew.GraphModule({}, graph) if kind == "GraphModule" else clew.GraphFunction(None, graph)
    before, code = edited(torch.tensor(3.0)), edited.code
    edit(graph)
    assert edited.code != code
    after = edited(torch.tensor(3.0))
    assert after != before
    if edit not in (set_codegen, transform):
        assert after == clew.Interpreter(edited, graph=graph).run(torch.tensor(3.0))


@pytest.mark.parametrize("field", ["name", "type"])
def test_names_and_types_are_followed_too(field):
    graph = small_graph()
    module = clew.GraphModule({}, graph)
    module(torch.tensor(1.0))
    setattr(nodes_of(graph)["add"], field, {"name": "fresh", "type": int}[field])
    assert ("fresh = torch.add" if field == "name" else "add : int = ") in module.code


def test_leaving_a_transformer_is_an_edit():
    graph = small_graph()
    module = clew.GraphModule({}, graph)
    with graph.on_generate_code(lambda before: lambda body: ["x = x * 0\n", *body]):
        assert module(torch.tensor(3.0)) == 2
    assert module(torch.tensor(3.0)) == 8


def test_another_graph():
    module = clew.GraphModule({}, small_graph())
    old = module.graph
    module(torch.tensor(1.0))
    module.graph = clew.Graph()
    module.graph.output(5)
    assert module() == 5
    insert(old)
    assert module() == 5


def test_one_graph_in_two_modules():
    graph = small_graph()
    first, second = clew.GraphModule({}, graph), clew.GraphModule({}, graph)
    assert first(torch.tensor(3.0)) == second(torch.tensor(3.0)) == 8
    update_arg(graph)
    assert first(torch.tensor(3.0)) == second(torch.tensor(3.0)) == 20
    update_kwarg(graph)
    assert second(torch.tensor(3.0)) == first(torch.tensor(3.0)) == 35


def test_an_inner_graph_module():
    inner = clew.GraphModule({}, small_graph())
    graph = clew.Graph()
    graph.output(graph.call_module("inner", (graph.placeholder("x"),)))
    outer = clew.GraphModule({"inner": inner}, graph)
    assert outer(torch.tensor(3.0)) == 8
    edit_target(inner.graph)
    assert outer(torch.tensor(3.0)) == 4


def test_forward_taken_before_the_edit_is_the_old_one_and_taken_after_the_new():
    graph = small_graph()
    module = clew.GraphModule({}, graph)
    old = module.forward
    edit_target(graph)
    assert old(torch.tensor(3.0)) == 8
    assert module.forward(torch.tensor(3.0)) == 4
    assert type(module).forward(module, torch.tensor(3.0)) == 4


def test_an_edit_that_breaks_the_graph_and_one_that_mends_it():
    graph = small_graph()
    module = clew.GraphModule({}, graph)
    add, mul = nodes_of(graph)["add"], nodes_of(graph)["mul"]
    mul.append(add)
    with pytest.raises(UnboundLocalError):
        module(torch.tensor(3.0))
    mul.prepend(add)
    assert module(torch.tensor(3.0)) == 8


def test_code_is_made_once():
    module = clew.GraphModule({}, small_graph())
    first = module.forward.__func__
    module(torch.tensor(1.0))
    assert module.recompile() is module.recompile()
    assert module.forward.__func__ is first


def test_a_parametrized_module_follows_edits_with_and_without_the_parametrization():
    graph = clew.Graph()
    graph.output(graph.call_function(operator.mul, (graph.placeholder("x"), graph.get_attr("weight"))))
    module = clew.GraphModule({"weight": torch.nn.Parameter(torch.tensor([-2.0]))}, graph)
    assert module(3.0) == -6
    torch.nn.utils.parametrize.register_parametrization(module, "weight", torch.nn.ReLU())
    assert module(3.0) == 0
    graph.find_nodes(op="call_function")[0].target = operator.add
    assert module(3.0) == 3
    torch.nn.utils.parametrize.remove_parametrizations(module, "weight", leave_parametrized=False)
    assert module(3.0) == 1
