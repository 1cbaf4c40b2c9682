"""``clew.trace_graph``: every parameter does what ivy says of it, or raises an error that says why."""

from __future__ import annotations

import copy
import functools
import importlib.util
import inspect
import sys
from typing import Any

import jax.numpy as jnp
import numpy
import pytest
import torch
from torch import nn

import clew
from clew.runtime.framework_compilers import NativeFunction
from clew.runtime.lazy import LazyGraph

from . import samples


class Box:
    def __init__(self, x: torch.Tensor) -> None:
        self.x = x


def affine(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x * weight + 1


def repeated(x: torch.Tensor, count: int, scale: float = 1.0) -> torch.Tensor:
    return torch.cat([x * scale] * count)


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """``torch.compile`` without a compiler of machine code; the list tells what it was called with."""
    seen: list[Any] = []
    original = torch.compile

    def compile_eagerly(function: Any) -> Any:
        seen.append(function)
        return original(function, backend="eager")

    monkeypatch.setattr(torch, "compile", compile_eagerly)
    yield seen
    torch._dynamo.reset()


# ---- objs, args, kwargs ------------------------------------------------------------------------------------------


def test_the_signature_begins_with_that_of_ivy() -> None:
    *names, own = inspect.signature(clew.trace_graph).parameters
    assert own == "guards"
    assert names == [
        "objs", "stateful", "arg_stateful_idxs", "kwarg_stateful_idxs", "to", "include_generators", "array_caching",
        "return_backend_traced_fn", "static_argnums", "static_argnames", "args", "kwargs",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "example", [{"args": (torch.ones(2), torch.ones(2))}, {"kwargs": {"x": torch.ones(2), "weight": torch.ones(2)}}]
)
def test_an_example_captures_at_once(example: dict[str, Any]) -> None:
    traced = clew.trace_graph(affine, **example)
    assert not isinstance(traced, LazyGraph)
    x, weight = torch.rand(3), torch.rand(3)
    assert torch.equal(traced(x, weight), affine(x, weight))
    assert torch.equal(traced(x=x, weight=weight), affine(x, weight))


def test_without_an_example_it_waits_for_the_first_call() -> None:
    traced = clew.trace_graph(affine)
    assert isinstance(traced, LazyGraph) and traced.captures == []
    x = torch.rand(3)
    for weight in (x + 1, x * 2):
        assert torch.equal(traced(x, weight), affine(x, weight))
    assert len(traced.captures) == 1


def test_an_empty_example_counts_as_one() -> None:
    traced = clew.trace_graph(lambda: torch.zeros(2) + 1, args=())
    assert not isinstance(traced, LazyGraph)
    assert torch.equal(traced(), torch.ones(2))


def test_several_objects_give_a_tuple() -> None:
    x = torch.rand(2, 3)
    layer = nn.Linear(3, 3)
    first, second = clew.trace_graph(torch.nn.functional.relu, layer, args=(x,))
    assert torch.equal(first(x), torch.relu(x)) and torch.equal(second(x), layer(x))
    lazy = clew.trace_graph(affine, layer)
    assert all(isinstance(one, LazyGraph) for one in lazy)
    assert not isinstance(lazy[0], nn.Module) and isinstance(lazy[1], nn.Module)


def test_no_object_gives_a_decorator() -> None:
    @clew.trace_graph(static_argnames="count")
    def stacked(x: torch.Tensor, count: int) -> torch.Tensor:
        return torch.stack([x] * count)

    assert isinstance(stacked, LazyGraph)
    assert stacked(torch.ones(2), 3).shape == (3, 2)


def test_a_module_becomes_a_module_with_the_same_parameters() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    traced = clew.trace_graph(model, args=(torch.rand(2, 3),))
    assert isinstance(traced, nn.Module)
    assert [id(one) for one in traced.parameters()] == [id(one) for one in model.parameters()]


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(clew.CaptureError, match="a list cannot be called"):
        clew.trace_graph([1])


# ---- a Python module ---------------------------------------------------------------------------------------------


def test_a_python_module_becomes_a_copy_of_lazy_functions() -> None:
    before = dict(vars(samples))
    traced = clew.trace_graph(samples)
    x = torch.arange(6.0)
    assert isinstance(traced.shifted, LazyGraph) and isinstance(traced.scaled, LazyGraph)
    assert torch.equal(traced.scaled(x, samples.Scale(2.0)), samples.scaled(x, samples.Scale(2.0)))
    assert len(traced.scaled.captures) == 1 and traced.shifted.captures == []
    assert traced.Scale is samples.Scale and traced.LIMIT == 3.0
    assert traced.relu is torch.relu and traced.rows is samples.rows and traced.torch is torch
    assert vars(samples) == before and sys.modules[samples.__name__] is samples
    assert traced.__name__ == samples.__name__ and traced is not samples


def test_functions_of_a_traced_module_see_the_globals_of_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = clew.trace_graph(samples)
    x = torch.arange(6.0)
    traced.shifted(x)
    monkeypatch.setattr(samples, "LIMIT", 1.0)
    assert torch.equal(traced.shifted(x), samples.shifted(x))


def test_a_package_is_copied_with_the_modules_below_it() -> None:
    import tests.api as package  # noqa: PLC0415  the package of this very test

    traced = clew.trace_graph(package)
    assert traced.samples is not samples and isinstance(traced.samples.shifted, LazyGraph)


def test_a_python_module_takes_no_example() -> None:
    with pytest.raises(clew.CaptureError, match="cannot be traced with an example"):
        clew.trace_graph(samples, args=(torch.ones(2),))


# ---- stateful ----------------------------------------------------------------------------------------------------

HIDDEN = Box(torch.zeros(1))


def hidden() -> Any:
    return sys.modules[__name__].HIDDEN


def accumulate(x: torch.Tensor) -> torch.Tensor:
    box = hidden()
    box.x = box.x + x
    box.last = x
    return box.x * 2


def test_attributes_of_stateful_objects_are_read_and_written_by_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    box = Box(torch.zeros(1))
    monkeypatch.setattr(sys.modules[__name__], "HIDDEN", box)
    traced = clew.trace_graph(accumulate, args=(torch.ones(1),), stateful=[box])
    assert list(vars(box)) == ["x"] and box.x.item() == 0
    assert [traced(torch.full((1,), float(n))).item() for n in (1, 2, 3)] == [2, 6, 12]
    assert box.last.item() == 3
    box.x = torch.full((1,), 10.0)
    assert traced(torch.ones(1)).item() == 22


def remember(cont: Any, x: torch.Tensor) -> torch.Tensor:
    cont.seen = x
    cont.count = cont.count + 1 if hasattr(cont, "count") else 1
    return x + 1


def mark(cont: Any, x: torch.Tensor) -> torch.Tensor:
    cont.new_attribute = x
    return x + cont.x


def test_a_stateful_argument_may_come_again() -> None:
    box = Box(torch.zeros(2))
    traced = clew.trace_graph(mark, args=(copy.deepcopy(box), torch.ones(2)), arg_stateful_idxs=[[0]])
    for value in (1.0, 2.0):
        x = torch.full((3,), value)
        box.x = torch.ones(3)
        assert torch.equal(traced(box, x), x + 1)
        assert box.new_attribute is x
    strict = clew.trace_graph(mark, args=(Box(torch.zeros(2)), torch.ones(2)))
    with pytest.raises(clew.GuardError, match="new_attribute"):
        strict(box, torch.ones(3))


def test_what_the_program_asks_for_stays_guarded() -> None:
    traced = clew.trace_graph(remember, args=(Box(torch.zeros(2)), torch.ones(2)), arg_stateful_idxs=[0])
    box = Box(torch.zeros(2))
    traced(box, torch.ones(2))
    assert box.count == 1
    with pytest.raises(clew.GuardError, match="count"):
        traced(box, torch.ones(2))
    lazy, box = clew.trace_graph(remember, arg_stateful_idxs=[0]), Box(torch.zeros(2))
    for _ in range(4):
        lazy(box, torch.ones(2))
    assert box.count == 4


def overwrite(cont: Any, x: torch.Tensor) -> torch.Tensor:
    cont.mode = "used"
    cont.x = x
    return x * 2


def test_what_is_overwritten_may_hold_anything_only_if_the_graph_writes_it() -> None:
    box = Box(torch.zeros(1))
    box.mode = "used"  # type: ignore[attr-defined]
    traced = clew.trace_graph(overwrite, args=(box, torch.ones(2)), arg_stateful_idxs=[[0]])
    other = copy.copy(box)
    other.mode = "new"
    with pytest.raises(clew.GuardError, match="mode"):
        traced(other, torch.ones(2))
    box.mode = "new"
    traced = clew.trace_graph(overwrite, args=(box, torch.ones(2)), arg_stateful_idxs=[[0]])
    other.mode = "odd"
    traced(other, torch.ones(2))
    assert (other.mode, box.mode) == ("used", "new")


def nested(parts: Any, x: torch.Tensor, *, caches: Any = None) -> torch.Tensor:
    parts["boxes"][0].new = x
    if caches is not None:
        caches[0].new = x * 2
    return x


def test_nested_positions_and_keywords() -> None:
    def call() -> tuple[Any, ...]:
        return ({"boxes": [Box(torch.zeros(1))]}, torch.ones(1))

    caches = [Box(torch.zeros(1))]
    traced = clew.trace_graph(
        nested, args=call(), kwargs={"caches": [Box(torch.zeros(1))]},
        arg_stateful_idxs=[[0, "boxes", 0]], kwarg_stateful_idxs=[["caches", 0]],
    )  # fmt: skip
    args = call()
    for _ in range(2):
        traced(*args, caches=caches)
    assert args[0]["boxes"][0].new is args[1] and torch.equal(caches[0].new, args[1] * 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arg_stateful_idxs": [[2]]}, "arg_stateful_idxs names .2., but a tuple has nothing at 2"),
        ({"kwarg_stateful_idxs": [["cache"]]}, "kwarg_stateful_idxs names .'cache'., but a dict has nothing"),
        ({"stateful": [3]}, "what stateful= lists is an int, which has no attributes"),
    ],
)
def test_positions_that_lead_nowhere_are_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(clew.CaptureError, match=message):
        clew.trace_graph(affine, args=(torch.ones(1), torch.ones(1)), **options)


# ---- to ----------------------------------------------------------------------------------------------------------


def test_to_names_a_framework() -> None:
    x = torch.ones(2)
    assert torch.equal(clew.trace_graph(affine, to="torch", args=(x, x))(x, x), affine(x, x))
    with pytest.raises(clew.CaptureError, match="to='paddle' names no framework that Clew knows"):
        clew.trace_graph(affine, to="paddle", args=(x, x))


def test_to_another_framework_translates() -> None:
    x = torch.arange(3.0)
    for traced in (clew.trace_graph(affine, to="jax", args=(x, x + 1)), clew.trace_graph(affine, to="jax")):
        assert numpy.array_equal(traced(jnp.arange(3.0), jnp.ones(3)), [1.0, 2.0, 3.0])
    made = clew.trace_graph(lambda x: jnp.tanh(x), to="torch", args=(jnp.ones(3),))
    assert torch.equal(made(x), torch.tanh(x))


def test_one_array_given_twice_is_one_in_the_translation() -> None:
    x = torch.arange(3.0)
    traced = clew.trace_graph(affine, to="jax", args=(x, x))
    y = jnp.arange(3.0)
    assert numpy.array_equal(traced(y, y), [1.0, 2.0, 5.0])
    with pytest.raises(clew.GuardError, match="x is weight"):
        traced(y, jnp.ones(3))


# ---- generators and constants ------------------------------------------------------------------------------------


def noisy(x: torch.Tensor) -> torch.Tensor:
    return x + torch.rand(3)


def constant(x: torch.Tensor) -> torch.Tensor:
    return x ** (torch.asarray([2]) + torch.asarray([2]))


def test_generators_are_nodes_or_constants() -> None:
    x = torch.zeros(3)
    drawn = clew.trace_graph(noisy, args=(x,))
    baked = clew.trace_graph(noisy, args=(x,), include_generators=False)
    torch.manual_seed(5)
    expected = noisy(x)
    torch.manual_seed(5)
    assert torch.equal(drawn(x), expected) and not torch.equal(drawn(x), expected)
    assert torch.equal(baked(x), baked(x))
    assert "torch.rand" in drawn.code and "torch.rand" not in baked.code


def test_constants_are_computed_once_or_at_each_call() -> None:
    x = torch.tensor([1, 2, 3])
    cached, plain = (clew.trace_graph(constant, args=(x,), array_caching=caching) for caching in (True, False))
    assert "asarray" not in cached.code and plain.code.count("torch.asarray([2])") == 2
    assert torch.equal(cached(x), constant(x)) and torch.equal(plain(x), constant(x))


# ---- static arguments --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "static",
    [
        {"static_argnums": 1},
        {"static_argnums": (-2,)},
        {"static_argnames": "count"},
        {"static_argnames": ["count", "scale"]},
    ],
)
def test_static_arguments_are_constants_of_the_capture(static: dict[str, Any]) -> None:
    traced = clew.trace_graph(repeated, args=(torch.ones(2), 3, 2.0), **static)
    assert traced(torch.ones(4), 3, 2.0).shape == (12,)
    with pytest.raises(clew.GuardError, match="count == 3"):
        traced(torch.ones(4), 2, 2.0)


def test_other_numbers_stay_inputs() -> None:
    traced = clew.trace_graph(repeated, args=(torch.ones(2), 3, 2.0), static_argnums=1)
    assert torch.equal(traced(torch.ones(1), 3, 0.5), torch.full((3,), 0.5))


@pytest.mark.parametrize(
    ("static", "message"),
    [({"static_argnums": 7}, "names the argument 7"), ({"static_argnames": "other"}, "'other', which is no parameter")],
)
def test_static_arguments_that_are_not_there_are_errors(static: dict[str, Any], message: str) -> None:
    with pytest.raises(clew.CaptureError, match=message):
        clew.trace_graph(repeated, **static)


# ---- the framework's compiler ------------------------------------------------------------------------------------


def decided(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x * weight if x.ndim > 1 else x - weight


def test_the_compiler_of_the_framework_runs_the_computation(compiles: list[Any]) -> None:
    x = torch.rand(4, 2)
    traced = clew.trace_graph(decided, args=(x, x * 2), return_backend_traced_fn=True)
    assert isinstance(traced, NativeFunction) and len(compiles) == 1
    assert torch.equal(traced(x, x + 1), decided(x, x + 1))
    with pytest.raises(clew.GuardError, match=r"x.ndim == 2"):
        traced(torch.rand(1), torch.rand(1))
    assert traced.code and traced.guards


def test_a_compiled_module_keeps_its_state(compiles: list[Any]) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    twin = copy.deepcopy(model)
    traced = clew.trace_graph(model, args=(torch.rand(3, 2),), return_backend_traced_fn=True)
    for _ in range(2):
        x = torch.rand(5, 2)
        torch.testing.assert_close(traced(x), twin(x))
    assert torch.allclose(model[1].running_mean, twin[1].running_mean)
    assert [name for name, _ in traced.named_parameters()] == [name for name, _ in model.named_parameters()]


def by_value(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)
    return y * 2 if y.sum() > 0 else y - 1


def test_a_lazy_compiled_graph_captures_again(compiles: list[Any]) -> None:
    traced = clew.trace_graph(decided, return_backend_traced_fn=True)
    for size in ((4, 2), (1,), (4, 3), (2,)):
        x = torch.rand(size)
        assert torch.equal(traced(x, x * 2), decided(x, x * 2))
    assert len(traced.captures) == len(compiles) == 2


def test_decisions_on_values_hold_under_the_compiler(compiles: list[Any]) -> None:
    traced = clew.trace_graph(by_value, return_backend_traced_fn=True)
    for x in (torch.ones(3), -torch.ones(3), torch.ones(5)):
        assert torch.equal(traced(x), by_value(x))


def test_partial_functions_can_be_traced() -> None:
    traced = clew.trace_graph(functools.partial(affine, weight=torch.full((1,), 2.0)), args=(torch.ones(2),))
    assert torch.equal(traced(torch.ones(3)), torch.full((3,), 3.0))


# ---- other frameworks --------------------------------------------------------------------------------------------


def test_a_framework_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "jax" else found(name, *rest))
    with pytest.raises(clew.errors.MissingFramework, match=r"jax is not installed(.|\n)*pip install clew\[jax\]"):
        clew.trace_graph(affine, to="jax", args=(torch.ones(1), torch.ones(1)))
    with pytest.raises(clew.errors.MissingFramework, match="jax is not installed"):
        clew.trace_graph(affine, to="jax")


def test_the_compiler_of_tensorflow_runs_the_computation() -> None:
    tf = pytest.importorskip("tensorflow")
    total = tf.Variable([0.0, 0.0, 0.0])

    def branching(x: Any) -> Any:
        total.assign_add(x)
        if tf.reduce_sum(x) > 0:
            return total * 2
        return -x

    x = tf.constant([1.0, 2.0, 3.0])
    traced = clew.trace_graph(branching, args=(x,), to="tensorflow", return_backend_traced_fn=True)
    assert type(traced.compiled).__name__ == "Function"
    assert traced(x).numpy().tolist() == [2, 4, 6] and traced(-x).numpy().tolist() == [1, 2, 3]
    assert total.numpy().tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="Dimension 0 in both shapes must be equal"):
        traced(tf.ones([4]))


def test_the_compiler_of_jax_runs_the_computation() -> None:
    jnp = pytest.importorskip("jax.numpy")

    def powers(x: Any, n: int) -> Any:
        return jnp.stack([x**i for i in range(n)])

    traced = clew.trace_graph(powers, args=(jnp.arange(3.0), 2), static_argnums=1, return_backend_traced_fn=True)
    assert type(traced.compiled).__name__ == "PjitFunction"
    assert traced(jnp.arange(3.0) + 1, 2).tolist() == [[1, 1, 1], [1, 2, 3]]
    with pytest.raises(clew.GuardError, match="n == 2"):
        traced(jnp.arange(3.0), 3)


def test_numpy_has_no_compiler() -> None:
    with pytest.raises(clew.CaptureError, match="numpy has no compiler of its own"):
        clew.trace_graph(lambda x: x + 1, args=(numpy.ones(2),), return_backend_traced_fn=True)
