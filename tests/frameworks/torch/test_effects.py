"""Effects of torch's functions, methods and operators: what may be dropped when nobody uses it, and what may not."""

from __future__ import annotations

import operator

import pytest
import torch
import torch.nn.functional as F
from torch.overrides import get_overridable_functions

import clew
from clew.ir.guests import Effect, guest, guest_of

NONE, RANDOM, WRITE, UNKNOWN = Effect.NONE, Effect.RANDOM, Effect.WRITE, Effect.UNKNOWN
X = torch.zeros(2, 3, 4)
aten = torch.ops.aten


def node(name="x", annotation=None):
    """A node, whose value nobody knows."""
    return clew.Graph().placeholder(name, annotation)


def effect(function, *args, **kwargs):
    return guest("torch").function_effect(function, args, kwargs)


PURE = [
    (torch.relu, (X,), {}),
    (torch.add, (X, X), {}),
    (torch.cat, ([X, X],), {"dim": 1}),
    (torch.sort, (X,), {}),
    (torch.einsum, ("abc,abc->a", X, X), {}),
    (torch.norm, (X,), {}),
    (torch.zeros, (2, 3), {}),
    (torch.arange, (4,), {"device": "cpu"}),
    (torch.tensor, ([1, 2],), {}),
    (torch.empty_like, (X,), {}),
    (torch.nn.Parameter, (X,), {}),
    (torch.fft.fft, (X,), {}),
    (torch.fft.fftfreq, (4,), {}),
    (torch.linalg.norm, (X,), {}),
    (torch.special.expit, (X,), {}),
    (torch.Tensor.add, (X, 1), {}),
    (torch.Tensor.sort, (X,), {}),
    (torch.Tensor.__pow__, (X, 2), {}),
    (torch.Tensor.__getitem__, (X, 0), {}),
    (torch.Tensor.item, (X,), {}),
    (torch.Tensor.shape.__get__, (X,), {}),
    (F.relu, (X,), {}),
    (F.relu, (X, False), {}),
    (F.gelu, (X,), {}),
    (F.linear, (X, X), {}),
    (F.conv2d, (X, X), {}),
    (F.max_pool2d, (X, 2), {}),
    (F.interpolate, (X,), {"scale_factor": 2}),
    (F.cross_entropy, (X, X), {}),
    (F.dropout, (X, 0.5, False), {}),
    (F.dropout, (X,), {"p": 0.0}),
    (torch.dropout, (X, 0.5, False), {}),
    (torch.dropout, (X, 0.0, True), {}),
    (F.alpha_dropout, (X,), {"training": False}),
    (F.rrelu, (X,), {}),
    (F.batch_norm, (X, X, X), {}),
    (F.batch_norm, (X, None, None), {"training": True}),
    (F.instance_norm, (X,), {}),
    (F.embedding, (X, X), {}),
    (F.scaled_dot_product_attention, (X, X, X), {}),
    (F.fractional_max_pool2d, (X, 2), {"output_size": 1, "_random_samples": X}),
    (torch.lstm, (X, [X, X], [X], True, 1, 0.0, True, False, False), {}),
    (torch.signal.windows.hann, (4,), {}),
    (aten.add.Tensor, (X, X), {}),
    (aten.add, (X, X), {}),
    (aten.relu.default, (X,), {}),
    (aten.dropout.default, (X, 0.5, False), {}),
    (aten.batch_norm.default, (X, None, None, X, X, False, 0.1, 1e-5, False), {}),
    (aten._native_batch_norm_legit_no_training.default, (X, X, X, X, X, 0.1, 1e-5), {}),
    (aten.convolution.default, (), {}),
]
DRAWING = [
    (torch.rand, (2,), {}),
    (torch.randn_like, (X,), {}),
    (torch.randint, (3, (2,)), {}),
    (torch.randperm, (3,), {}),
    (torch.normal, (X, X), {}),
    (torch.bernoulli, (X,), {}),
    (torch.multinomial, (X, 1), {}),
    (torch.poisson, (X,), {}),
    (torch.Tensor.bernoulli, (X,), {}),
    (torch.svd_lowrank, (X,), {}),
    (F.dropout, (X,), {}),
    (F.dropout, (X, 0.5, True), {}),
    (F.dropout, (X, 0.5, node("training")), {}),
    (F.dropout, (X, node("p"), True), {}),
    (F.dropout2d, (X,), {}),
    (F.feature_alpha_dropout, (X, 0.5, True), {}),
    (F.rrelu, (X,), {"training": True}),
    (F.gumbel_softmax, (X,), {}),
    (F.fractional_max_pool2d, (X, 2), {"output_size": 1}),
    (F.scaled_dot_product_attention, (X, X, X), {"dropout_p": 0.1}),
    (F.scaled_dot_product_attention, (X, X, X, None, 0.1), {}),
    (torch.dropout, (X, 0.5, True), {}),
    (torch.lstm, (X, [X, X], [X], True, 2, 0.5, True, False, False), {}),
    (aten.rand.default, ([2],), {}),
    (aten.native_dropout.default, (X, 0.5, True), {}),
    (aten.dropout.default, (X, 0.5, True), {}),
    (aten.bernoulli.p, (X, 0.0), {}),
]
WRITING = [
    (torch.relu_, (X,), {}),
    (torch.add, (X, X), {"out": X}),
    (torch.norm, (X, 2, None, False, X), {}),
    (torch.Tensor.add_, (X, 1), {}),
    (torch.Tensor.__setitem__, (X, 0, 1), {}),
    (torch.Tensor.__iadd__, (X, 0), {}),
    (torch.Tensor.backward, (X,), {}),
    (torch.Tensor.register_hook, (X, print), {}),
    (torch.Tensor.retain_grad, (X,), {}),
    (torch.Tensor.data.__set__, (X, X), {}),
    (F.relu, (X,), {"inplace": True}),
    (F.relu, (X, True), {}),
    (F.relu, (X, node("inplace")), {}),
    (F.dropout, (X, 0.5, False, True), {}),
    (F.hardtanh, (X, -1.0, 1.0, True), {}),
    (F.batch_norm, (X, X, X), {"training": True}),
    (F.batch_norm, (X, X, X, None, None, True), {}),
    (F.batch_norm, (X, X, X), {"training": node("training")}),
    (F.instance_norm, (X, X, X), {}),
    (F.embedding, (X, X), {"max_norm": 1.0}),
    (torch.batch_norm, (X, None, None, X, X, True, 0.1, 1e-5, False), {}),
    (torch.manual_seed, (0,), {}),
    (torch.set_grad_enabled, (False,), {}),
    (torch.set_default_dtype, (torch.float32,), {}),
    (torch._assert, (X, "message"), {}),
    (torch._check, (True,), {}),
    (torch.save, (X, "file"), {}),
    (torch._foreach_add_, ([X], 1), {}),
    (torch.cuda.synchronize, (), {}),
    (torch.nn.init.ones_, (X,), {}),
    (aten.add_.Tensor, (X, X), {}),
    (aten.add.out, (X, X), {"out": X}),
    (aten.add, (X, X), {"out": X}),
    (aten.append, ([1], 2), {}),
    (aten.copy_.default, (X, X), {}),
    (aten._assert_async.default, (X,), {}),
    (aten.sym_constrain_range.default, (3,), {}),
    (aten.batch_norm.default, (X, None, None, X, X, True, 0.1, 1e-5, False), {}),
    (torch.ops.profiler._record_function_enter_new.default, ("name",), {}),
]
UNVOUCHED = [
    torch.vmap,
    torch.cond,
    torch.compile,
    torch.utils.checkpoint.checkpoint,
    torch.autograd.grad,
    torch.ops.higher_order.cond,
    torch.autocast,
    torch.get_rng_state,
]


def told(case):
    return f"{getattr(case[0], '__name__', case[0])}-{len(case[1])}-{','.join(case[2])}"


@pytest.mark.parametrize("case", PURE, ids=told)
def test_pure(case):
    assert effect(case[0], *case[1], **case[2]) is NONE


@pytest.mark.parametrize("case", DRAWING, ids=told)
def test_draws_random_numbers(case):
    assert effect(case[0], *case[1], **case[2]) is RANDOM


@pytest.mark.parametrize("case", WRITING, ids=told)
def test_writes(case):
    assert effect(case[0], *case[1], **case[2]) is WRITE


@pytest.mark.parametrize("function", UNVOUCHED, ids=lambda function: getattr(function, "__name__", "higher_order"))
def test_nobody_vouches(function):
    assert effect(function, X) is None


def test_what_calls_back_is_unknown():
    assert effect(F.triplet_margin_with_distance_loss, X, X, X) is NONE
    assert effect(F.triplet_margin_with_distance_loss, X, X, X, distance_function=print) is UNKNOWN


def test_every_function_that_ends_in_an_underscore_writes():
    listed = {function for functions in get_overridable_functions().values() for function in functions}
    in_place = [f for f in listed if getattr(f, "__name__", "").endswith("_") and not f.__name__.endswith("__")]
    assert len(in_place) > 100
    assert [f.__name__ for f in in_place if effect(f, X) is not WRITE] == []


def test_nearly_all_of_torchs_functions_are_vouched_for():
    functions_of = dict(get_overridable_functions())
    functions_of.pop(getattr(torch, "foreach", None), None)  # of torch 2.15: unknown calls, which count as effects
    listed = {function for functions in functions_of.values() for function in functions}
    unknown = sorted(str(getattr(f, "__name__", f)) for f in listed if effect(f) is None)
    assert unknown == ["_clear_non_serializable_cached_data", "_is_view", "autocast"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("relu", NONE),
        ("item", NONE),
        ("tolist", NONE),
        ("numpy", NONE),
        ("detach", NONE),
        ("add", NONE),
        ("view", NONE),
        ("__getitem__", NONE),
        ("new_zeros", NONE),
        ("bernoulli", RANDOM),
        ("multinomial", RANDOM),
        ("add_", WRITE),
        ("requires_grad_", WRITE),
        ("set_", WRITE),
        ("share_memory_", WRITE),
        ("backward", WRITE),
        ("register_hook", WRITE),
        ("__setitem__", WRITE),
        ("sort", UNKNOWN),
        ("put", UNKNOWN),
        ("write_to_disk", None),
        ("append", None),
        ("update", None),
    ],
)
def test_methods(name, expected):
    assert guest("torch").method_effect(name, (node(),), {}) is expected


def test_a_method_with_out_writes():
    assert guest("torch").method_effect("matmul", (node(), node("y")), {"out": node("z")}) is WRITE


def test_sort_is_pure_where_the_receiver_is_surely_a_tensor():
    assert guest("torch").method_effect("sort", (node("x", torch.Tensor),), {}) is NONE


def test_add_of_a_set_is_not_that_of_a_tensor():
    graph = clew.Graph()
    gathered = graph.call_function(set, (graph.placeholder("x"),))
    assert guest("torch").method_effect("add", (gathered, 1), {}) is UNKNOWN


def test_custom_operators_are_believed_by_their_schema():
    library = torch.library.Library("clew_tests", "DEF")
    library.define("reads(Tensor x) -> Tensor")
    library.define("writes(Tensor(a!) x) -> Tensor")
    library.define("draws(Tensor x) -> Tensor", tags=(torch.Tag.nondeterministic_seeded,))
    library.define("tells(Tensor x) -> ()")
    ops = torch.ops.clew_tests
    found = [effect(getattr(ops, name).default, X) for name in ("reads", "writes", "draws", "tells")]
    assert found == [NONE, WRITE, RANDOM, WRITE]


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2


def test_autograd_functions_of_users_are_unknown():
    assert clew.Graph().call_function(Doubled.apply, (X,)).is_impure()


def is_property(function):
    """Graphs reach properties with getattr, so the getters themselves are never targets."""
    return isinstance(getattr(function, "__self__", None), type(torch.Tensor.shape))


def test_the_guest_of_each_function_is_found():
    functions = [case[0] for case in (*PURE, *DRAWING, *WRITING) if not is_property(case[0])]
    assert [function for function in functions if guest_of(function) is not guest("torch")] == []


def test_dead_code_keeps_what_acts_and_drops_what_does_not():
    graph = clew.Graph()
    x = graph.placeholder("x")
    y = graph.call_method("clone", (x,))
    graph.call_method("add_", (y, 1))
    graph.call_function(operator.setitem, (y, 0, 0.0))
    graph.call_function(torch.rand, (3,))
    graph.call_function(F.relu, (y,), {"inplace": True})
    graph.call_function(torch.relu, (x,))
    graph.call_function(torch.Tensor.add, (x, 1))
    graph.output(y)
    assert graph.eliminate_dead_code()
    assert [n.name for n in graph.nodes] == ["x", "clone", "add_", "setitem", "rand", "relu", "output"]
