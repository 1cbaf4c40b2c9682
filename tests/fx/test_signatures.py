"""Signatures of torch operators and normalised arguments."""

import inspect
import operator

import pytest
import torch
import torch.nn.functional as F

from .helpers import only

X = torch.randn(2, 3)


@pytest.mark.parametrize("op", [torch.relu, torch.add, torch.matmul, torch.cat, torch.sum, torch.nn.functional.linear])
def test_signatures_are_found(fx, op):
    signatures = fx.get_signature_for_torch_op(op)
    assert signatures and all(isinstance(signature, inspect.Signature) for signature in signatures)


def test_first_parameter_is_called_input(fx):
    for signature in fx.get_signature_for_torch_op(torch.add):
        assert next(iter(signature.parameters)) in ("input", "a")


def test_signature_of_an_unknown_function(fx):
    assert fx.get_signature_for_torch_op(len) is None or isinstance(fx.get_signature_for_torch_op(len), list)
    assert fx.get_signature_for_torch_op(lambda x: x) is None


def test_schemas_come_along(fx):
    signatures, schemas = fx.get_signature_for_torch_op(torch.relu, return_schemas=True)
    assert len(signatures) == len(schemas)
    assert schemas[0].name == "aten::relu"


def test_signature_of_an_overload(fx):
    (signature,) = fx.get_signature_for_torch_op(torch.ops.aten.add.Tensor)
    assert list(signature.parameters) == ["input", "other", "alpha"]
    assert signature.parameters["alpha"].kind is inspect.Parameter.KEYWORD_ONLY
    assert signature.parameters["alpha"].default == 1


def test_signature_of_a_packet(fx):
    assert len(fx.get_signature_for_torch_op(torch.ops.aten.add)) > 1


def test_normalize_function_to_keywords(fx):
    pair = fx.normalize_function(F.relu, (X,), {}, normalize_to_only_use_kwargs=True)
    assert isinstance(pair, fx.ArgsKwargsPair)
    assert pair.args == () and set(pair.kwargs) == {"input", "inplace"}
    assert pair.kwargs["inplace"] is False


def test_normalize_function_keeps_positionals(fx):
    pair = fx.normalize_function(F.relu, (X,), {})
    assert pair.args == (X,) and pair.kwargs == {"inplace": False}


def test_normalize_function_fills_defaults(fx):
    pair = fx.normalize_function(F.dropout, (X,), {"p": 0.1}, normalize_to_only_use_kwargs=True)
    assert pair.kwargs == {"input": X, "p": 0.1, "training": True, "inplace": False}


def test_normalize_function_of_a_builtin_operator(fx):
    pair = fx.normalize_function(torch.relu, (X,), {}, normalize_to_only_use_kwargs=True)
    assert list(pair.kwargs) == ["input"]


def test_normalize_function_of_an_overload(fx):
    pair = fx.normalize_function(torch.ops.aten.add.Tensor, (X, X), {}, normalize_to_only_use_kwargs=True)
    assert list(pair.kwargs) == ["input", "other", "alpha"] and pair.kwargs["alpha"] == 1


def test_normalize_function_that_is_ambiguous(fx):
    with pytest.raises(RuntimeError, match="ambiguous"):
        fx.normalize_function(torch.add, (X, X), {})


def test_normalize_function_with_argument_types(fx):
    pair = fx.normalize_function(
        torch.add, (X, X), {}, arg_types=(torch.Tensor, torch.Tensor), normalize_to_only_use_kwargs=True
    )
    assert list(pair.kwargs)[:2] == ["input", "other"]


def test_normalize_function_without_a_match(fx):
    assert fx.normalize_function(torch.relu, (X, X, X, X), {}) is None


def test_normalize_python_function(fx):
    def mine(a, b=2, *, c=3):
        return a

    pair = fx.normalize_function(mine, (1,), {}, normalize_to_only_use_kwargs=True)
    assert pair.kwargs == {"a": 1, "b": 2, "c": 3}


def test_normalize_function_with_varargs(fx):
    def mine(*args):
        return args

    assert fx.normalize_function(mine, (1, 2), {}) is None


def test_normalize_boolean_dispatch(fx):
    pair = fx.normalize_function(F.max_pool2d, (X, 2), {}, normalize_to_only_use_kwargs=True)
    assert pair.kwargs["kernel_size"] == 2 and pair.kwargs["stride"] is None


def test_normalize_module(fx):
    root = torch.nn.Sequential(torch.nn.Linear(3, 2))
    pair = fx.normalize_module(root, "0", (X,), {}, normalize_to_only_use_kwargs=True)
    assert pair == fx.ArgsKwargsPair((), {"input": X})


def test_normalize_module_with_positionals(fx):
    root = torch.nn.Sequential(torch.nn.Linear(3, 2))
    assert fx.normalize_module(root, "0", (X,)).args == (X,)


def test_normalize_module_of_the_users_own(fx):
    class Mine(torch.nn.Module):
        def forward(self, a):
            return a

    assert fx.normalize_module(torch.nn.Sequential(Mine()), "0", (X,), {}) is None


def test_normalize_module_that_is_missing(fx):
    with pytest.raises(RuntimeError, match="nowhere"):
        fx.normalize_module(torch.nn.Sequential(), "nowhere", (X,), {})


def test_normalized_arguments_of_a_function_node(fx):
    traced = fx.symbolic_trace(lambda x: F.relu(x))
    node = only(traced.graph, "call_function")
    pair = node.normalized_arguments(traced, normalize_to_only_use_kwargs=True)
    assert pair.args == () and pair.kwargs == {"input": node.args[0], "inplace": False}


def test_normalized_arguments_of_a_module_node(fx):
    traced = fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(3, 2)))
    node = only(traced.graph, "call_module")
    assert node.normalized_arguments(traced, normalize_to_only_use_kwargs=True).kwargs == {"input": node.args[0]}


def test_normalized_arguments_with_types(fx):
    traced = fx.symbolic_trace(lambda x: torch.add(x, 3))
    node = only(traced.graph, "call_function")
    pair = node.normalized_arguments(traced, (torch.Tensor, int), normalize_to_only_use_kwargs=True)
    assert pair.kwargs["other"] == 3


def test_normalized_arguments_of_other_nodes(fx):
    traced = fx.symbolic_trace(lambda x: x.relu())
    assert only(traced.graph, "call_method").normalized_arguments(traced) is None
    assert only(traced.graph, "placeholder").normalized_arguments(traced) is None


def test_normalized_nodes_can_be_written_back(fx):
    traced = fx.symbolic_trace(lambda x: F.softmax(F.relu(x), -1))
    for node in traced.graph.find_nodes(op="call_function", target=F.relu):
        node.args, node.kwargs = node.normalized_arguments(traced, normalize_to_only_use_kwargs=True)
    traced.recompile()
    torch.testing.assert_close(traced(X), F.softmax(X.relu(), -1))


def test_args_kwargs_pair_unpacks(fx):
    args, kwargs = fx.ArgsKwargsPair((1,), {"a": 2})
    assert args == (1,) and kwargs == {"a": 2}


def test_check_for_mutable_operation(fx):
    with pytest.raises(RuntimeError, match="mutable operation"):
        fx.check_for_mutable_operation(torch.sigmoid, (X,), {"out": X})
    assert fx.check_for_mutable_operation(torch.sigmoid, (X,), {}) is None
    assert fx.check_for_mutable_operation(operator.add, (X, X), {}) is None


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (F.conv2d, (X, X)), (F.linear, (X, X)), (F.layer_norm, (X, (3,))), (F.softmax, (X, -1)), (F.gelu, (X,)),
        (F.embedding, (X, X)), (F.cross_entropy, (X, X)), (F.pad, (X, (1, 1))), (F.interpolate, (X,)),
        (F.batch_norm, (X, None, None)), (F.silu, (X,)), (F.leaky_relu, (X,)), (F.hardtanh, (X,)),
        (torch.clamp, (X, 0, 1)), (torch.nn.functional.normalize, (X,)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)  # fmt: skip
def test_normalizing_keeps_the_call(fx, function, args):
    try:
        pair = fx.normalize_function(function, args, {}, normalize_to_only_use_kwargs=True)
    except RuntimeError as error:
        assert "ambiguous" in str(error)
        return
    assert pair is None or list(pair.kwargs.values())[0] is X
