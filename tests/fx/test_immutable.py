"""immutable_list and immutable_dict: equal to the plain ones, never changed."""

import copy
import pickle

import pytest
import torch.utils._pytree as pytree


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("append", (1,)), ("extend", ([1],)), ("insert", (0, 1)), ("pop", ()), ("remove", (1,)), ("clear", ()),
        ("reverse", ()), ("sort", ()), ("__setitem__", (0, 1)), ("__delitem__", (0,)), ("__iadd__", ([1],)),
        ("__imul__", (2,)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_list_refuses_mutation(fx, method, args):
    values = fx.immutable_list([1, 2])
    with pytest.raises((TypeError, NotImplementedError), match="does not support mutation"):
        getattr(values, method)(*args)
    assert values == [1, 2]


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("__setitem__", ("a", 2)), ("__delitem__", ("a",)), ("clear", ()), ("pop", ("a",)), ("popitem", ()),
        ("update", ({"b": 1},)), ("setdefault", ("b", 1)), ("__ior__", ({"b": 1},)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_dict_refuses_mutation(fx, method, args):
    values = fx.immutable_dict({"a": 1})
    with pytest.raises((TypeError, NotImplementedError), match="does not support mutation"):
        getattr(values, method)(*args)
    assert values == {"a": 1}


def test_mutation_error_gives_advice(fx):
    with pytest.raises((TypeError, NotImplementedError), match="new_args"):
        fx.immutable_list([1]).append(2)


def test_they_are_lists_and_dicts(fx):
    assert isinstance(fx.immutable_list([1]), list) and isinstance(fx.immutable_dict(a=1), dict)
    assert fx.immutable_list([1, 2]) == [1, 2] and fx.immutable_dict(a=1) == {"a": 1}


def test_they_are_hashable(fx):
    assert hash(fx.immutable_list([1, 2])) == hash(fx.immutable_list([1, 2]))
    assert hash(fx.immutable_dict(a=1, b=2)) == hash(fx.immutable_dict(b=2, a=1))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))])
def test_copies_keep_the_class(fx, duplicate):
    values = fx.immutable_list([1, fx.immutable_dict(a=fx.immutable_list([2]))])
    copied = duplicate(values)
    assert copied == values
    assert isinstance(copied, fx.immutable_list) and isinstance(copied[1], fx.immutable_dict)


def test_reading_works(fx):
    values = fx.immutable_list([3, 1, 2])
    assert values[0] == 3 and list(values[1:]) == [1, 2] and len(values) == 3 and 2 in values
    assert sorted(values) == [1, 2, 3] and list(values + [4]) == [3, 1, 2, 4]


def test_pytree_flattens_lists(fx):
    values = fx.immutable_list([1, fx.immutable_list([2, 3])])
    leaves, spec = pytree.tree_flatten(values)
    assert leaves == [1, 2, 3]
    rebuilt = pytree.tree_unflatten(leaves, spec)
    assert rebuilt == values and isinstance(rebuilt, fx.immutable_list) and isinstance(rebuilt[1], fx.immutable_list)


def test_pytree_flattens_dicts(fx):
    values = fx.immutable_dict(a=1, b=fx.immutable_dict(c=2))
    leaves, spec = pytree.tree_flatten(values)
    assert leaves == [1, 2]
    rebuilt = pytree.tree_unflatten(leaves, spec)
    assert rebuilt == values and isinstance(rebuilt, fx.immutable_dict)


def test_pytree_map_keeps_the_class(fx):
    doubled = pytree.tree_map(lambda v: v * 2, fx.immutable_list([1, {"a": 2}]))
    assert doubled == [2, {"a": 4}] and isinstance(doubled, fx.immutable_list)


def test_args_given_as_plain_lists_are_frozen_copies(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    mutable = [x, 1]
    node = graph.call_function(print, (mutable,))
    mutable.append(2)
    assert node.args == ([x, 1],)


def test_a_copy_can_be_changed_and_given_back(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(print, ([x, 1],), {"k": 1})
    changed = list(node.args[0])
    changed[1] = 5
    node.args = (changed,)
    node.kwargs = {**node.kwargs, "l": 2}
    assert node.args == ([x, 5],) and node.kwargs == {"k": 1, "l": 2}
