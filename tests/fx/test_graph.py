"""Graph: building, insertion points, erasing, copying, finding, lint."""

import copy
import operator

import pytest
import torch

from .helpers import LinearOnly, Outer, names, of, only, opcodes, targets


def chain(fx, length=3):
    """x -> relu -> relu -> ... -> output, the graph and its nodes."""
    graph = fx.Graph()
    nodes = [graph.placeholder("x")]
    for _ in range(length):
        nodes.append(graph.call_function(torch.relu, (nodes[-1],)))
    nodes.append(graph.output(nodes[-1]))
    return graph, nodes


def test_empty_graph(fx):
    graph = fx.Graph()
    assert len(graph.nodes) == 0
    assert list(graph.nodes) == []


def test_placeholder(fx):
    graph = fx.Graph()
    node = graph.placeholder("x")
    assert (node.op, node.name, node.target, node.args, node.kwargs) == ("placeholder", "x", "x", (), {})


def test_placeholder_with_default(fx):
    graph = fx.Graph()
    assert graph.placeholder("x", default_value=3).args == (3,)
    assert graph.placeholder("y", default_value=None).args == (None,)


def test_get_attr(fx):
    node = fx.Graph().get_attr("a.b")
    assert (node.op, node.name, node.target, node.args) == ("get_attr", "a_b", "a.b", ())


def test_call_function(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(torch.add, (x, 1), {"alpha": 2})
    assert (node.op, node.target, node.args, node.kwargs) == ("call_function", torch.add, (x, 1), {"alpha": 2})


def test_call_method(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_method("view", (x, -1))
    assert (node.op, node.target, node.args) == ("call_method", "view", (x, -1))


def test_call_module(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_module("a.b", (x,), {"k": x})
    assert (node.op, node.target, node.args, node.kwargs) == ("call_module", "a.b", (x,), {"k": x})


def test_output(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.output({"a": [x, x]})
    assert (node.op, node.target, node.name) == ("output", "output", "output")
    assert node.args == ({"a": [x, x]},)


def test_create_node(fx):
    graph = fx.Graph()
    x = graph.create_node("placeholder", "x")
    node = graph.create_node("call_function", torch.neg, (x,), {}, name="chosen", type_expr=int)
    assert (node.name, node.type, node.graph) == ("chosen", int, graph)


def test_create_node_without_arguments(fx):
    node = fx.Graph().create_node("call_function", torch.rand)
    assert node.args == () and node.kwargs == {}


def test_create_node_refuses_an_unknown_opcode(fx):
    with pytest.raises((AssertionError, ValueError)):
        fx.Graph().create_node("no_such_op", "x")


def test_node_itself_checks_its_target(fx):
    with pytest.raises(ValueError):
        fx.Node(fx.Graph(), "foo", "call_function", "foo", (), {})
    with pytest.raises(ValueError):
        fx.Node(fx.Graph(), "foo", "call_method", torch.relu, (), {})


def test_args_are_always_a_tuple(fx):
    try:
        node = fx.Graph().create_node("call_function", torch.relu, [1])
    except (AssertionError, TypeError) as error:
        assert "tuple" in str(error)
    else:
        assert node.args == (1,)


def test_create_node_refuses_a_non_dict_of_kwargs(fx):
    with pytest.raises((AssertionError, TypeError)):
        fx.Graph().create_node("call_function", torch.relu, (), [("a", 1)])


def test_call_function_needs_a_callable(fx):
    with pytest.raises(ValueError, match="Callable is expected"):
        fx.Graph().create_node("call_function", "relu")


@pytest.mark.parametrize("op", ["call_method", "call_module", "get_attr", "placeholder"])
def test_other_opcodes_need_a_string(fx, op):
    with pytest.raises((ValueError, AssertionError), match="str"):
        fx.Graph().create_node(op, torch.relu)


def test_length_and_order(fx):
    graph, nodes = chain(fx)
    assert len(graph.nodes) == 5
    assert list(graph.nodes) == nodes
    assert list(reversed(graph.nodes)) == nodes[::-1]


def test_reversed_of_reversed_list_view(fx):
    graph, nodes = chain(fx)
    assert next(iter(reversed(graph.nodes))) is nodes[-1]
    assert next(iter(graph.nodes)) is nodes[0]


def test_prev_and_next(fx):
    graph, nodes = chain(fx)
    assert nodes[1].prev is nodes[0]
    assert nodes[1].next is nodes[2]


def test_output_node(fx):
    graph, nodes = chain(fx)
    assert graph.output_node() is nodes[-1]


def test_output_node_when_missing(fx):
    graph = fx.Graph()
    graph.placeholder("x")
    with pytest.raises((AssertionError, RuntimeError, ValueError)):
        graph.output_node()


def test_find_nodes(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(torch.neg(torch.relu(x.view(-1)))).view(2))
    graph = traced.graph
    relus = [node for node in graph.nodes if node.target is torch.relu]
    assert graph.find_nodes(op="call_function", target=torch.relu) == relus
    assert [node.name for node in graph.find_nodes(op="call_method")] == ["view", "view_1"]
    assert graph.find_nodes(op="call_method", target="relu") == []
    assert len(graph.find_nodes(op="placeholder")) == 1
    assert len(graph.find_nodes(op="placeholder", target="x")) == 1


def test_find_nodes_follows_edits(fx):
    graph, nodes = chain(fx)
    nodes[2].target = torch.neg
    assert graph.find_nodes(op="call_function", target=torch.neg) == [nodes[2]]
    assert graph.find_nodes(op="call_function", target=torch.relu) == [nodes[1], nodes[3]]
    nodes[2].replace_all_uses_with(nodes[1])
    graph.erase_node(nodes[2])
    assert graph.find_nodes(op="call_function", target=torch.neg) == []


def test_find_nodes_is_in_graph_order(fx):
    graph, nodes = chain(fx)
    with graph.inserting_before(nodes[1]):
        early = graph.call_function(torch.relu, (nodes[0],))
    assert graph.find_nodes(op="call_function", target=torch.relu) == [early, *nodes[1:4]]
    assert set(graph.find_nodes(op="call_function", target=torch.relu, sort=False)) == {early, *nodes[1:4]}


def test_inserting_before(fx):
    graph, nodes = chain(fx)
    with graph.inserting_before(nodes[2]):
        first = graph.call_function(torch.neg, (nodes[1],))
        second = graph.call_function(torch.neg, (first,))
    assert list(graph.nodes)[2:5] == [first, second, nodes[2]]


def test_inserting_after(fx):
    graph, nodes = chain(fx)
    with graph.inserting_after(nodes[1]):
        first = graph.call_function(torch.neg, (nodes[1],))
    assert list(graph.nodes)[1:3] == [nodes[1], first]


def test_insertion_point_is_restored(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.relu, (x,))
    with graph.inserting_before(y):
        graph.call_function(torch.neg, (x,))
    last = graph.output(y)
    assert list(graph.nodes)[-1] is last


def test_insertion_points_nest(fx):
    graph, nodes = chain(fx)
    with graph.inserting_before(nodes[3]):
        with graph.inserting_before(nodes[1]):
            inner = graph.call_function(torch.neg, (nodes[0],))
        outer = graph.call_function(torch.neg, (nodes[2],))
    assert inner.next is nodes[1]
    assert outer.next is nodes[3]


def test_insertion_point_set_for_good(fx):
    graph, nodes = chain(fx)
    graph.inserting_before(nodes[-1])
    added = graph.call_function(torch.neg, (nodes[3],))
    assert added.next is nodes[-1]


def test_inserting_before_nothing_is_the_beginning(fx):
    graph, nodes = chain(fx)
    with graph.inserting_before():
        added = graph.placeholder("w")
    assert next(iter(graph.nodes)) is added


def test_inserting_after_nothing_is_the_end(fx):
    graph = fx.Graph()
    graph.placeholder("x")
    with graph.inserting_after():
        added = graph.placeholder("w")
    assert list(graph.nodes)[-1] is added


def test_several_nodes_inserted_after_come_reversed(fx):
    graph, nodes = chain(fx)
    with graph.inserting_after(nodes[1]):
        first = graph.call_function(torch.neg, (nodes[1],))
        second = graph.call_function(torch.abs, (nodes[1],))
    assert list(graph.nodes)[2:4] == [second, first]


def test_insertion_at_a_node_of_another_graph_is_refused(fx):
    graph, _ = chain(fx)
    _, others = chain(fx)
    with pytest.raises((AssertionError, RuntimeError, ValueError)):
        graph.inserting_before(others[1])
    with pytest.raises((AssertionError, RuntimeError, ValueError)):
        graph.inserting_after(others[1])


def test_erase_node(fx):
    graph, nodes = chain(fx)
    nodes[2].replace_all_uses_with(nodes[1])
    graph.erase_node(nodes[2])
    assert list(graph.nodes) == [nodes[0], nodes[1], nodes[3], nodes[4]]
    assert len(graph.nodes) == 4
    assert nodes[2] not in nodes[1].users


def test_erase_node_with_users_is_refused(fx):
    graph, nodes = chain(fx)
    with pytest.raises(RuntimeError, match="but it still had 1 users in the graph"):
        graph.erase_node(nodes[1])
    assert len(graph.nodes) == 5


def test_erase_node_of_another_graph_is_refused(fx):
    graph, _ = chain(fx)
    _, others = chain(fx)
    with pytest.raises(RuntimeError):
        graph.erase_node(others[-1])


def test_erase_twice_only_warns(fx):
    graph, nodes = chain(fx)
    graph.erase_node(nodes[-1])
    with pytest.warns(UserWarning, match="erased"):
        graph.erase_node(nodes[-1])
    assert len(graph.nodes) == 4


def test_erase_while_iterating(fx):
    graph, nodes = chain(fx, 4)
    for node in graph.nodes:
        if node.op == "call_function":
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    assert list(graph.nodes) == [nodes[0], nodes[-1]]


def test_erase_while_iterating_backwards(fx):
    graph, nodes = chain(fx, 4)
    graph.erase_node(nodes[-1])
    for node in reversed(graph.nodes):
        graph.erase_node(node)
    assert len(graph.nodes) == 0


def test_insert_while_iterating(fx):
    graph, nodes = chain(fx, 3)
    for node in graph.nodes:
        if node.target is torch.relu:
            with graph.inserting_after(node):
                added = graph.call_function(torch.neg, (node,))
            node.replace_all_uses_with(added, delete_user_cb=lambda user, keep=added: user is not keep)
    graph.lint()
    assert targets(graph)[1:-1] == [torch.relu, torch.neg] * 3


def test_move_with_prepend(fx):
    graph, nodes = chain(fx)
    side = graph.create_node("call_function", torch.neg, (nodes[0],))
    nodes[1].prepend(side)
    assert list(graph.nodes)[:3] == [nodes[0], side, nodes[1]]
    assert len(graph.nodes) == 6


def test_move_with_append(fx):
    graph, nodes = chain(fx)
    side = graph.create_node("call_function", torch.neg, (nodes[0],))
    nodes[1].append(side)
    assert list(graph.nodes)[1:3] == [nodes[1], side]


def test_prepend_to_itself_changes_nothing(fx):
    graph, nodes = chain(fx)
    nodes[1].prepend(nodes[1])
    nodes[1].append(nodes[1])
    assert list(graph.nodes) == nodes


def test_prepend_a_node_of_another_graph_is_refused(fx):
    _, nodes = chain(fx)
    _, others = chain(fx)
    with pytest.raises((AssertionError, RuntimeError, ValueError)):
        nodes[1].prepend(others[1])


def test_graph_copy(fx):
    graph, nodes = chain(fx)
    copied = fx.Graph()
    value_map = {}
    result = copied.graph_copy(graph, value_map)
    assert result is value_map[nodes[3]]
    assert names(copied) == ["x", "relu", "relu_1", "relu_2"]
    copied.output(result)
    copied.lint()


def test_graph_copy_with_given_values(fx):
    graph, nodes = chain(fx, 1)
    target = fx.Graph()
    x = target.placeholder("other")
    result = target.graph_copy(graph, {nodes[0]: x})
    assert result.args == (x,)
    assert names(target) == ["other", "relu"]


def test_graph_copy_without_output_gives_none(fx):
    graph = fx.Graph()
    graph.placeholder("x")
    assert fx.Graph().graph_copy(graph, {}) is None


def test_graph_copy_twice_renames(fx):
    graph, _ = chain(fx, 1)
    target = fx.Graph()
    target.graph_copy(graph, {})
    target.graph_copy(graph, {})
    assert names(target) == ["x", "relu", "x_1", "relu_1"]


def test_graph_copy_of_nested_outputs(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output({"a": (x, [x])})
    target = fx.Graph()
    value_map = {}
    result = target.graph_copy(graph, value_map)
    assert result == {"a": (value_map[x], [value_map[x]])}


def test_inlining_a_graph(fx):
    inner = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    outer = fx.Graph()
    x = outer.placeholder("x")
    doubled = outer.call_function(operator.mul, (x, 2))
    inner_input = of(inner.graph, "placeholder")[0]
    outer.output(outer.graph_copy(inner.graph, {inner_input: doubled}))
    outer.lint()
    assert fx.GraphModule({}, outer)(torch.tensor(3.0)) == 7.0


def test_node_copy(fx):
    graph, nodes = chain(fx, 1)
    nodes[0].meta["key"] = "value"
    target = fx.Graph()
    copied = target.node_copy(nodes[0])
    assert copied is not nodes[0] and copied.graph is target
    assert copied.meta == {"key": "value"} and copied.meta is not nodes[0].meta


def test_node_copy_with_arg_transform(fx):
    graph, nodes = chain(fx, 1)
    target = fx.Graph()
    remap = {}
    for node in graph.nodes:
        remap[node] = target.node_copy(node, lambda n: remap[n])
    target.lint()
    assert names(target) == names(graph)
    assert remap[nodes[1]].args == (remap[nodes[0]],)


def test_node_copy_without_remapping_fails_lint(fx):
    graph, nodes = chain(fx, 1)
    target = fx.Graph()
    target.node_copy(nodes[0])
    target.node_copy(nodes[1])
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        target.lint()


def test_lint_accepts_traces(fx):
    fx.symbolic_trace(Outer()).graph.lint()


def test_lint_finds_use_before_definition(fx):
    graph, nodes = chain(fx)
    nodes[1].append(nodes[0])
    with pytest.raises(RuntimeError, match="was used before it has been defined"):
        graph.lint()


def test_lint_finds_a_missing_attribute(fx):
    traced = fx.symbolic_trace(LinearOnly())
    only(traced.graph, "call_module").target = "nowhere"
    with pytest.raises(RuntimeError, match="references nonexistent attribute nowhere"):
        traced.graph.lint()


def test_lint_finds_a_call_of_a_non_module(fx):
    traced = fx.symbolic_trace(LinearOnly())
    only(traced.graph, "call_module").target = "linear.weight"
    with pytest.raises(RuntimeError, match="does not reference an nn.Module|not.*[Mm]odule"):
        traced.graph.lint()


def test_a_repeated_name_is_never_silent(fx):
    graph, nodes = chain(fx)
    nodes[2].name = nodes[1].name
    if nodes[2].name == nodes[1].name:
        with pytest.raises(RuntimeError, match="(?i)name"):
            graph.lint()
    else:
        graph.lint()


def test_deepcopy_of_a_graph(fx):
    graph, nodes = chain(fx)
    nodes[1].meta["k"] = [1]
    copied = copy.deepcopy(graph)
    copied.lint()
    assert names(copied) == names(graph)
    assert all(ours is not theirs for ours, theirs in zip(copied.nodes, graph.nodes, strict=True))
    assert list(copied.nodes)[1].meta == {"k": [1]}


def test_deepcopy_keeps_the_output_type_and_meta(fx):
    graph = fx.Graph()
    x = graph.placeholder("x", type_expr=int)
    out = graph.output(x, type_expr=str)
    out.meta["k"] = 1
    copied = copy.deepcopy(graph)
    assert only(copied, "placeholder").type is int
    assert only(copied, "output").type is str
    assert only(copied, "output").meta == {"k": 1}


def test_deepcopy_of_a_deep_graph_does_not_recurse(fx):
    graph, _ = chain(fx, 3000)
    copied = copy.deepcopy(graph)
    assert len(copied.nodes) == 3002


def test_graph_keeps_its_owner(fx):
    traced = fx.symbolic_trace(LinearOnly())
    assert traced.graph.owning_module is traced
    assert fx.Graph().owning_module is None


def test_get_attr_without_a_reference_warns(fx):
    traced = fx.symbolic_trace(LinearOnly())
    with traced.graph.inserting_before(only(traced.graph, "call_module")):
        with pytest.warns(UserWarning, match="Attempted to insert a get_attr Node with no underlying reference"):
            traced.graph.get_attr("missing")


def test_graph_of_functions_written_by_hand(fx):
    graph = fx.Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    added = graph.call_function(operator.add, (a, b))
    picked = graph.call_method("view", (added, -1))
    graph.output((picked, added))
    module = fx.GraphModule(torch.nn.Module(), graph)
    flat, whole = module(torch.ones(2, 2), torch.ones(2, 2))
    assert flat.shape == (4,) and whole.shape == (2, 2)


def test_multiple_placeholders_after_calls(fx):
    graph = fx.Graph()
    a = graph.placeholder("a")
    first = graph.call_function(torch.neg, (a,))
    b = graph.placeholder("b")
    graph.output(graph.call_function(operator.add, (first, b)))
    assert fx.GraphModule({}, graph)(torch.tensor(1), torch.tensor(5)) == 4


def test_process_inputs_default_is_identity(fx):
    graph, _ = chain(fx)
    assert tuple(graph.process_inputs(1, 2)) == (1, 2)
    assert graph.process_outputs(3) == 3


def test_opcodes_of_a_module(fx):
    assert set(opcodes(fx.symbolic_trace(Outer()).graph)) == {
        "placeholder", "get_attr", "call_module", "call_function", "call_method", "output",
    }  # fmt: skip
