"""Node: arguments, users, replacement, metadata, order."""

import operator

import pytest
import torch

from .helpers import names, of, only


@pytest.fixture
def three(fx):
    """A graph with inputs a, b, c and no calls."""
    graph = fx.Graph()
    return graph, graph.placeholder("a"), graph.placeholder("b"), graph.placeholder("c")


NESTS = {
    "plain": lambda a, b: (a, b),
    "list": lambda a, b: ([a, b],),
    "tuple": lambda a, b: ((a, (b,)),),
    "dict": lambda a, b: ({"k": a, "l": [b]},),
    "slice": lambda a, b: (slice(a, b),),
    "slice-step": lambda a, b: (slice(None, a, b),),
    "nest": lambda a, b: ([{"k": (a, slice(None, b, None))}],),
    "repeated": lambda a, b: (a, b, a, b),
}


@pytest.mark.parametrize("nest", NESTS.values(), ids=NESTS.keys())
def test_users_and_inputs_for_nested_args(fx, three, nest):
    graph, a, b, c = three
    node = graph.call_function(print, nest(a, b))
    assert node.all_input_nodes == [a, b]
    assert list(a.users) == [node] and list(b.users) == [node] and list(c.users) == []


@pytest.mark.parametrize("nest", NESTS.values(), ids=NESTS.keys())
def test_users_and_inputs_for_nested_kwargs(fx, three, nest):
    graph, a, b, c = three
    node = graph.call_function(print, (), {"key": nest(a, b)})
    assert node.all_input_nodes == [a, b]
    assert list(a.users) == [node] and list(b.users) == [node]


@pytest.mark.parametrize("nest", NESTS.values(), ids=NESTS.keys())
def test_replace_all_uses_in_nested_args(fx, three, nest):
    graph, a, b, c = three
    node = graph.call_function(print, nest(a, b))
    assert a.replace_all_uses_with(c) == [node]
    assert set(node.all_input_nodes) == {b, c}
    assert list(a.users) == [] and list(c.users) == [node]
    assert node.args == graph.call_function(print, nest(c, b)).args


def test_inputs_come_args_first(fx, three):
    graph, a, b, c = three
    node = graph.call_function(print, (b,), {"x": a, "y": c})
    assert node.all_input_nodes == [b, a, c]


def test_users_are_in_order_of_creation(fx, three):
    graph, a, b, _ = three
    first = graph.call_function(torch.neg, (a,))
    second = graph.call_function(torch.add, (a, a))
    third = graph.call_function(torch.abs, (a,))
    assert list(a.users) == [first, second, third]


def test_one_user_with_two_uses_counts_once(fx, three):
    graph, a, _, _ = three
    graph.call_function(torch.add, (a, a))
    assert len(a.users) == 1


def test_assigning_args_updates_users(fx, three):
    graph, a, b, _ = three
    node = graph.call_function(torch.neg, (a,))
    node.args = (b,)
    assert not a.users and list(b.users) == [node]


def test_assigning_kwargs_updates_users(fx, three):
    graph, a, b, _ = three
    node = graph.call_function(torch.neg, (), {"input": a})
    node.kwargs = {"input": b}
    assert not a.users and list(b.users) == [node]


def test_assigning_args_keeps_a_use_through_kwargs(fx, three):
    graph, a, b, _ = three
    node = graph.call_function(torch.add, (a,), {"other": a})
    node.args = (b,)
    assert list(a.users) == [node]
    node.kwargs = {}
    assert not a.users


def test_args_are_immutable(fx, three):
    graph, a, b, _ = three
    node = graph.call_function(torch.cat, ([a, b],), {"extra": [a]})
    with pytest.raises((TypeError, NotImplementedError), match="mutation"):
        node.args[0][0] = b
    with pytest.raises((TypeError, NotImplementedError), match="mutation"):
        node.kwargs["extra"] = b
    with pytest.raises((TypeError, NotImplementedError), match="mutation"):
        node.kwargs["extra"].append(b)
    with pytest.raises(TypeError):
        node.args[0] = b


def test_lists_in_args_become_immutable_lists(fx, three):
    graph, a, _, _ = three
    node = graph.call_function(torch.cat, ([a],), {"d": {"k": a}})
    assert isinstance(node.args[0], fx.immutable_list)
    assert isinstance(node.kwargs["d"], fx.immutable_dict)
    assert isinstance(node.kwargs, fx.immutable_dict)


def test_update_arg(fx, three):
    graph, a, b, c = three
    node = graph.call_function(torch.add, (a, b))
    node.update_arg(1, c)
    assert node.args == (a, c)
    assert not b.users and list(c.users) == [node]


def test_update_arg_out_of_range(fx, three):
    graph, a, b, _ = three
    node = graph.call_function(torch.add, (a, b))
    with pytest.raises(IndexError):
        node.update_arg(2, b)


def test_update_kwarg(fx, three):
    graph, a, b, c = three
    node = graph.call_function(torch.add, (a,), {"other": b})
    node.update_kwarg("other", c)
    assert node.kwargs == {"other": c}
    assert not b.users


def test_update_kwarg_adds_a_new_one(fx, three):
    graph, a, b, _ = three
    node = graph.call_function(torch.add, (a, b))
    node.update_kwarg("alpha", 2)
    assert node.kwargs == {"alpha": 2}


@pytest.mark.parametrize("index", [0, 1, 2])
def test_insert_arg(fx, three, index):
    graph, a, b, c = three
    node = graph.call_function(torch.add, (a, b))
    node.insert_arg(index, c)
    expected = [a, b]
    expected.insert(index, c)
    assert node.args == tuple(expected)
    assert list(c.users) == [node]
    assert set(node.all_input_nodes) == {a, b, c}


@pytest.mark.parametrize("index", [-1, 3])
def test_insert_arg_out_of_range(fx, three, index):
    graph, a, b, c = three
    node = graph.call_function(torch.add, (a, b))
    with pytest.raises((AssertionError, IndexError)):
        node.insert_arg(index, c)


def test_insert_arg_that_is_already_used(fx, three):
    graph, a, b, _ = three
    node = graph.call_function(torch.add, (a, b))
    node.insert_arg(0, a)
    assert node.args == (a, a, b)
    assert list(a.users) == [node]


def test_replace_input_with(fx, three):
    graph, a, b, c = three
    node = graph.call_function(torch.add, (a, a), {"out": [a, b]})
    node.replace_input_with(a, c)
    assert node.args == (c, c) and node.kwargs == {"out": [c, b]}
    assert not a.users


def test_replace_input_with_leaves_other_users(fx, three):
    graph, a, _, c = three
    one = graph.call_function(torch.neg, (a,))
    two = graph.call_function(torch.abs, (a,))
    one.replace_input_with(a, c)
    assert list(a.users) == [two]


def test_replace_all_uses_returns_the_users(fx, three):
    graph, a, b, c = three
    one = graph.call_function(torch.neg, (a,))
    two = graph.call_function(torch.add, (a, b))
    assert a.replace_all_uses_with(c) == [one, two]
    assert one.args == (c,) and two.args == (c, b)


def test_replace_all_uses_of_an_unused_node(fx, three):
    _, a, b, _ = three
    assert a.replace_all_uses_with(b) == []


def test_replace_all_uses_in_the_output(fx, three):
    graph, a, b, _ = three
    out = graph.output([a, {"k": a}])
    a.replace_all_uses_with(b)
    assert out.args == ([b, {"k": b}],)


def test_replace_all_uses_with_a_filter(fx, three):
    graph, a, b, _ = three
    one = graph.call_function(torch.neg, (a,))
    two = graph.call_function(torch.abs, (a,))
    assert a.replace_all_uses_with(b, delete_user_cb=lambda user: user is two) == [two]
    assert one.args == (a,) and two.args == (b,)


def test_replace_all_uses_with_its_own_user(fx, three):
    graph, a, _, _ = three
    one = graph.call_function(torch.neg, (a,))
    two = graph.call_function(torch.abs, (a,))
    a.replace_all_uses_with(one, delete_user_cb=lambda user: user is not one)
    assert one.args == (a,) and two.args == (one,)


def test_propagate_meta(fx, three):
    graph, a, b, _ = three
    a.meta["key"] = "value"
    b.meta.clear()
    a.replace_all_uses_with(b, propagate_meta=True)
    assert b.meta["key"] == "value"


def test_propagate_meta_refuses_to_overwrite(fx, three):
    _, a, b, _ = three
    a.meta["key"] = 1
    b.meta["own"] = 2
    with pytest.raises((AssertionError, ValueError), match="meta"):
        a.replace_all_uses_with(b, propagate_meta=True)


def test_no_meta_by_default_on_replacement(fx, three):
    _, a, b, _ = three
    a.meta["key"] = 1
    a.replace_all_uses_with(b)
    assert "key" not in b.meta


def test_meta_is_a_dict_of_its_own(fx, three):
    _, a, b, _ = three
    a.meta["key"] = 1
    assert "key" not in b.meta


def test_stack_trace_lives_in_meta(fx, three):
    _, a, _, _ = three
    a.stack_trace = "somewhere"
    assert a.stack_trace == "somewhere"
    assert a.meta["stack_trace"] == "somewhere"


def test_repr_and_str_are_the_name(fx, three):
    graph, a, _, _ = three
    assert repr(a) == "a" and str(a) == "a"


def test_target_can_be_changed(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(x))
    only(traced.graph, "call_function").target = torch.neg
    traced.recompile()
    assert traced(torch.tensor(2.0)) == -2.0


def test_opcode_can_be_changed(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(x))
    node = only(traced.graph, "call_function")
    node.op, node.target = "call_method", "neg"
    traced.recompile()
    assert traced(torch.tensor(2.0)) == -2.0


def test_name_can_be_changed(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(x))
    node = only(traced.graph, "call_function")
    node.name = "activated"
    traced.recompile()
    assert "activated" in traced.code
    assert names(traced.graph) == ["x", "activated", "output"]


def test_nodes_compare_by_identity(fx, three):
    _, a, b, _ = three
    assert a != b
    assert len({a, b}) == 2


def test_nodes_sort_by_position(fx, three):
    graph, a, b, c = three
    assert a < b < c
    with graph.inserting_before(b):
        middle = graph.call_function(torch.neg, (a,))
    assert a < middle < b
    assert sorted([c, middle, b, a]) == [a, middle, b, c]
    assert c > a and c >= c and a <= a


def test_extra_attributes_are_allowed(fx, three):
    _, a, _, _ = three
    a.my_own_attribute = 3
    assert a.my_own_attribute == 3


def test_is_impure_of_placeholder_and_output(fx, three):
    graph, a, _, _ = three
    out = graph.output(a)
    assert a.is_impure() and out.is_impure()


def test_is_impure_of_pure_calls(fx, three):
    graph, a, _, _ = three
    assert not graph.call_function(torch.relu, (a,)).is_impure()
    assert not graph.call_function(operator.add, (a, a)).is_impure()


@pytest.mark.parametrize("function", [torch._assert, operator.setitem])
def test_is_impure_of_effects(fx, three, function):
    graph, a, _, _ = three
    assert graph.call_function(function, (a,)).is_impure()


def test_is_impure_of_random_calls(fx, three):
    graph, a, _, _ = three
    assert graph.call_function(torch.rand, (2,)).is_impure()


def test_map_arg(fx, three):
    graph, a, b, c = three
    swap = {a: b, b: c}
    assert fx.map_arg((a, [b, 1], {"k": a}), lambda n: swap[n]) == (b, [c, 1], {"k": b})
    assert fx.map_arg(slice(a, None, b), lambda n: swap[n]) == slice(b, None, c)
    assert fx.map_arg(3, lambda n: None) == 3


def test_map_arg_visits_every_node(fx, three):
    _, a, b, c = three
    seen = []
    fx.map_arg([a, (b, {"k": slice(c, None, None)})], lambda n: seen.append(n))
    assert seen == [a, b, c]


def test_map_arg_needs_a_callable(fx, three):
    with pytest.raises((AssertionError, TypeError)):
        fx.map_arg(three[1], 3)


def test_map_aggregate_visits_leaves(fx):
    assert fx.map_aggregate([1, (2, {"k": 3})], lambda v: v * 10) == [10, (20, {"k": 30})]
    assert fx.map_aggregate(slice(1, 2, 3), lambda v: v + 1) == slice(2, 3, 4)


def test_map_aggregate_keeps_named_tuples(fx):
    result = fx.map_aggregate(torch.return_types.max((torch.ones(1), torch.zeros(1))), lambda v: v)
    assert len(result) == 2


def test_map_aggregate_gives_immutable_containers(fx):
    result = fx.map_aggregate([1, {"k": 2}], lambda v: v)
    assert isinstance(result, fx.immutable_list)
    assert isinstance(result[1], fx.immutable_dict)


def test_users_after_erasing(fx):
    traced = fx.symbolic_trace(lambda x: (torch.relu(x), torch.neg(x))[0])
    dead = [node for node in traced.graph.nodes if node.target is torch.neg][0]
    traced.graph.erase_node(dead)
    assert list(of(traced.graph, "placeholder")[0].users) == [only(traced.graph, "call_function")]


def test_args_hold_literals_of_every_kind(fx, three):
    graph, a, _, _ = three
    values = (1, 2.5, True, None, "s", 1j, torch.float32, torch.device("cpu"), torch.strided, ..., slice(1, 2))
    assert graph.call_function(print, values).args == values
