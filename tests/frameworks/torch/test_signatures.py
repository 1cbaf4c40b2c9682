"""Signatures of torch's functions and the matching of arguments, beside torch.fx.operator_schemas itself."""

from __future__ import annotations

import inspect
import numbers
import typing

import pytest
import torch
import torch.nn.functional as F
from torch.fx import operator_schemas as theirs

import clew
from clew.frameworks.torch import signatures as ours
from clew.ir.guests import guest

X = torch.ones(2, 3)


@pytest.mark.parametrize("function", [torch.relu, torch.add, torch.ops.aten.add.Tensor, torch.ops.aten.add, F.relu])
def test_signatures_are_torchs(function):
    assert ours.get_signature_for_torch_op(function) == theirs.get_signature_for_torch_op(function)
    found, schemas = ours.get_signature_for_torch_op(function, return_schemas=True)
    assert (found is None) == (schemas is None)
    assert found is None or all(isinstance(signature, inspect.Signature) for signature in found)


CALLS = [
    (F.relu, (X,), {}),
    (F.conv2d, (X, X), {"padding": 1}),
    (F.max_pool2d, (X, 2), {}),
    (F.adaptive_max_pool1d, (X, 2), {}),
    (F.interpolate, (X, 2), {"mode": "nearest"}),
    (torch.relu, (X,), {}),
    (torch.flatten, (X, 1), {}),
    (torch.ops.aten.add.Tensor, (X, X), {"alpha": 2}),
    (torch.ops.aten.uniform.default, (X,), {}),
    (torch.Tensor.add, (X, 1), {}),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: getattr(call[0], "__name__", "?"))
@pytest.mark.parametrize("only_kwargs", [False, True])
def test_functions_are_matched_as_torch_does(call, only_kwargs):
    try:
        expected = theirs.normalize_function(*call, normalize_to_only_use_kwargs=only_kwargs)
    except (RuntimeError, ValueError) as error:
        expected = error
    if isinstance(expected, RuntimeError):
        with pytest.raises(RuntimeError, match="ambiguous"):
            ours.normalize_function(*call, normalize_to_only_use_kwargs=only_kwargs)
    elif isinstance(expected, ValueError):
        assert ours.normalize_function(*call, normalize_to_only_use_kwargs=only_kwargs) is None
    else:
        found = ours.normalize_function(*call, normalize_to_only_use_kwargs=only_kwargs)
        assert found == (None if expected is None else ours.ArgsKwargsPair(*expected))
        assert found is None or type(found) is ours.ArgsKwargsPair


def test_types_choose_the_overload():
    args = (X, X)
    types = (torch.Tensor, torch.Tensor)
    with pytest.raises(RuntimeError, match="ambiguous"):
        ours.normalize_function(torch.add, args)
    found = ours.normalize_function(torch.add, args, arg_types=types, normalize_to_only_use_kwargs=True)
    expected = theirs.normalize_function(torch.add, args, arg_types=types, normalize_to_only_use_kwargs=True)
    assert found is not None and expected is not None
    assert list(found.kwargs) == list(expected.kwargs)
    assert found.kwargs["input"] is X and found.kwargs["alpha"] == 1


def test_types_that_fit_nothing_match_nothing():
    assert ours.normalize_function(torch.add, (X, X), arg_types=(dict, dict)) is None


def test_nodes_pass_through():
    graph = clew.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(F.relu, (x,))
    found = node.normalized_arguments(torch.nn.Module(), normalize_to_only_use_kwargs=True)
    assert found == ours.ArgsKwargsPair((), {"input": x, "inplace": False})
    assert found.kwargs["input"] is x


def test_modules_are_matched():
    root = torch.nn.Sequential(torch.nn.Linear(2, 2))
    assert ours.normalize_module(root, "0", (X,)) == ours.ArgsKwargsPair((X,), {})
    assert ours.normalize_module(root, "0", (X,), None, True) == ours.ArgsKwargsPair((), {"input": X})
    graph = clew.Graph()
    x = graph.placeholder("x")
    node = graph.call_module("0", (x,))
    assert node.normalized_arguments(root, normalize_to_only_use_kwargs=True).kwargs == {"input": x}


class Users(torch.nn.Module):
    def forward(self, x):
        return x


def test_modules_of_users_are_not_matched():
    assert ours.normalize_module(torch.nn.Sequential(Users()), "0", (X,)) is None


def test_a_missing_module_is_named():
    with pytest.raises(RuntimeError, match="no submodule 'nowhere'"):
        ours.normalize_module(torch.nn.Sequential(), "nowhere", (X,))


@pytest.mark.parametrize(
    ("nest", "expected"),
    [
        (int, int),
        ([int, int], list[int]),
        ((int, int), tuple[int, ...]),
        ([int, str], list[typing.Any]),
        ([bool, int], list[int]),
        ([], list[typing.Any]),
        ((), tuple[typing.Any, ...]),
        ([torch.Tensor, torch.nn.Parameter], list[torch.Tensor]),
    ],
)
def test_type_hints(nest, expected):
    assert ours.create_type_hint(nest) == expected == theirs.create_type_hint(nest)


@pytest.mark.parametrize(
    ("parameter", "argument"),
    [
        (int, int),
        (int, str),
        (torch.Tensor, torch.nn.Parameter),
        (torch.nn.Parameter, torch.Tensor),
        (typing.Union[int, str], str),
        (typing.Optional[int], str),
        (typing.List[int], int),
        (typing.List[int], typing.List[int]),
        (typing.List[int], typing.Tuple[int, int]),
        (typing.List[int], typing.Tuple[int, ...]),
        (typing.List[int], typing.List[str]),
        (typing.List[float], int),
        (int, torch.dtype),
        (numbers.Number, float),
        (numbers.Number, str),
    ],
)
def test_types_match_as_torch_says(parameter, argument):
    assert ours.type_matches(parameter, argument) is theirs.type_matches(parameter, argument)


def test_mutable_operations_are_refused():
    with pytest.raises(RuntimeError, match="mutable operation"):
        ours.check_for_mutable_operation(torch.ops.aten.add_.Tensor, (X, X), {})
    ours.check_for_mutable_operation(torch.ops.aten.add.Tensor, (X, X), {})
    ours.check_for_mutable_operation(F.relu, (X,), {})


def test_the_guest_answers_only_for_calls():
    node = clew.Graph().placeholder("x")
    assert guest("torch").normalized_arguments(node, None, {}) is None
