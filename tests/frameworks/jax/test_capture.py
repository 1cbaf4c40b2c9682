"""Captures of JAX programs: numbers, nests, state, guards, refusals, transformations, saving."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import logging
import pickle
import random
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy
import pytest

import clew
from clew.errors import CaptureError, GuardError

from .compare import assert_same

X = jnp.array([1.0, 2.0, 3.0])
calls = [0]
scale = 2.0


class Pair(NamedTuple):
    left: jax.Array
    right: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Box:
    value: jax.Array
    times: int = dataclasses.field(metadata={"static": True}, default=3)


def arithmetic(x, rate):
    return x - rate * rate * x, rate * 3, rate


def sized(x, n):
    return jnp.zeros(n) + x[0], x * n


def branching(x, n):
    return x * n if n > 2 else x + n


def counting(x):
    calls[0] += 1
    return x * calls[0]


def scaled(x):
    return x * scale


def appending(holder):
    holder["twice"] = holder["x"] * 2
    return holder["x"]


def showing(x):
    print("x is", x)
    jax.debug.print("again {}", x)
    return x + 1


def on_numpy(array):
    return jnp.sin(array) * 2 + array.shape[0]


def rebuilt(box, pair):
    return Box(box.value * box.times, box.times), Pair(pair.right, pair.left), [pair.left]


# ---- values --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.1, 0.25, -3.0])
def test_numbers_are_numbers(rate: float) -> None:
    assert_same(arithmetic(X, rate), clew.trace(arithmetic, (X, 0.1))(X, rate))


def test_a_number_that_becomes_a_shape_stays_a_number() -> None:
    graph = clew.trace(sized, (X, 2))
    for n in (2, 3, 0):
        assert_same(sized(X, n), graph(X, n))


def test_a_branch_on_a_number_is_one_of_the_graph() -> None:
    graph = clew.trace(branching, (X, 3))
    for number in (7, 1):
        assert_same(branching(X, number), graph(X, number))
    guarded = clew.trace(branching, (X, 3), control_flow="guard")
    with pytest.raises(GuardError, match="n > 2"):
        guarded(X, 1)


def typed(x, n):
    return x * n if type(n) is int else x - n


def test_a_program_that_asks_for_types_is_told_them() -> None:
    graph = clew.trace(typed, (X, 3))
    assert_same(typed(X, 3), graph(X, 3))
    with pytest.raises(GuardError, match="n == 3"):
        graph(X, 4.0)
    assert_same(typed(X, numpy.float32(2)), clew.trace(typed, (X, numpy.float32(2)))(X, numpy.float32(2)))


def test_static_numbers_are_constants() -> None:
    graph = clew.trace(branching, (X, 3), static=("n",))
    assert_same(branching(X, 3), graph(X, 3))
    with pytest.raises(GuardError, match="n == 3"):
        graph(X, 4)


def test_narrow_arrays_and_numbers() -> None:
    half = X.astype(jnp.float16)
    graph = clew.trace(lambda x, rate: x * rate, (half, 0.1))
    for rate in (0.1, 0.3, 1e-5):
        assert_same(half * rate, graph(half, rate))


def test_a_number_is_rounded_once() -> None:
    def program(x, rate):
        return x + jax.lax.convert_element_type(rate, jnp.float16)

    half = X.astype(jnp.float16)
    assert_same(program(half, 0.3), clew.trace(program, (half, 0.1))(half, 0.3))


def test_arrays_of_numpy_become_arrays_where_jax_takes_them() -> None:
    array = numpy.arange(3, dtype=numpy.float32)
    graph = clew.trace(lambda x, a: on_numpy(a) + x, (X, array))
    assert_same(on_numpy(array + 1) + X, graph(X, array + 1))
    wide = array.astype(numpy.float64)
    assert_same(on_numpy(wide) + X, graph(X, wide))
    rows = numpy.ones((2, 3), numpy.float32)
    assert_same(on_numpy(rows) + X, graph(X, rows))


def test_what_numpy_does_is_done_by_numpy() -> None:
    graph = clew.trace(lambda x, a: x + a * 2, (X, numpy.arange(3.0)))
    assert "numpy" not in graph.code
    assert_same(X + numpy.ones(3) * 2, graph(X, numpy.ones(3)))


def test_nests_come_in_and_go_out() -> None:
    args = (Box(X), Pair(X, X * 2))
    graph = clew.trace(rebuilt, args)
    assert_same(rebuilt(Box(X + 1), Pair(X, X)), graph(Box(X + 1), Pair(X, X)))
    with pytest.raises(GuardError, match=r"type\(pair\) is Pair"):
        graph(Box(X), (X, X))


def test_order_of_keys_is_the_programs() -> None:
    def first(d):
        return list(d.values())[0] * 2

    graph = clew.trace(first, ({"b": X, "a": X + 1},))
    assert_same(X * 2, graph({"b": X, "a": X}))
    assert_same(X * 4, graph({"a": X * 2, "b": X}))
    graph = clew.trace(first, (dict.fromkeys("dcba", X),))
    with pytest.raises(GuardError, match="'d', 'c', 'b', 'a'"):
        graph(dict.fromkeys("abcd", X))


def test_an_order_that_makes_no_difference_makes_no_branch() -> None:
    def rescaled(d):
        return sum(jnp.sum(d[key] ** 2) for key in sorted(d)), jax.tree.map(lambda leaf: leaf * 2, d)

    graph = clew.trace(rescaled, ({"b": X, "a": X + 1},))
    assert "if " not in graph.code
    assert_same(rescaled({"a": X, "b": X * 3}), graph({"a": X, "b": X * 3}))


@pytest.mark.parametrize("key", [jax.random.key(0), jax.random.PRNGKey(0)], ids=["new", "old"])
def test_keys(key: Any) -> None:
    def draw(key):
        first, second = jax.random.split(key)
        return jax.random.normal(first, (2,)), jax.random.randint(second, (2,), 0, 9), first

    graph = clew.trace(draw, (key,))
    other = jax.random.split(key)[1]
    assert_same(draw(other), graph(other))


def test_numbers_of_64_bits() -> None:
    with jax.enable_x64(True):
        x = jnp.arange(3.0)
        graph = clew.trace(arithmetic, (x, 0.1))
        assert_same(arithmetic(x, 0.3), graph(x, 0.3))
    with pytest.raises(GuardError, match="jax_enable_x64"):
        graph(X, 0.1)


# ---- guards --------------------------------------------------------------------------------------------------------


def by_dtype(x):
    return x * 2 if x.dtype == jnp.float32 else x


def by_name_of_dtype(x):
    return {x.dtype.name: x}


def test_what_is_asked_of_a_dtype_is_guarded_alone() -> None:
    with pytest.raises(GuardError, match="x.dtype.name == 'float32'"):
        clew.trace(by_name_of_dtype, (X,))(jnp.ones(3, jnp.int32))


@pytest.mark.parametrize("other", [jnp.ones((2, 2)), jnp.ones(3, jnp.int32)])
def test_dtypes_decide_when_the_graph_runs(other: Any) -> None:
    assert_same(by_dtype(other), clew.trace(by_dtype, (X,))(other))
    with pytest.raises(GuardError, match="x is an array of JAX"):
        clew.trace(by_dtype, (X,))(numpy.ones(3))


def halves(i):
    return i / 2 if i.sum() > 0 else i * 2


def test_sides_may_give_arrays_of_different_dtypes() -> None:
    graph = clew.trace(halves, (jnp.arange(3),))
    assert_same(halves(-jnp.arange(3)), graph(-jnp.arange(3)))


@pytest.mark.parametrize("other", [jnp.ones((2, 2)), jnp.ones(3, jnp.int32), jnp.asarray(2.0)])
def test_ranks_and_dtypes_are_free_where_nobody_asks(other: Any) -> None:
    assert_same(scaled(other), clew.trace(scaled, (X,))(other))
    with pytest.raises(GuardError, match="x is an array of JAX"):
        clew.trace(scaled, (X,))(numpy.ones(3))


def test_sizes_are_general() -> None:
    graph = clew.trace(lambda x: jnp.zeros(x.shape[0] + 1).sum() + x.mean() * len(x), (X,))
    for x in (X, jnp.ones(5), jnp.ones(1)):
        assert_same(jnp.zeros(x.shape[0] + 1).sum() + x.mean() * len(x), graph(x))


def test_weak_types_are_guarded() -> None:
    graph = clew.trace(lambda x: x * 2 if x.weak_type else x, (jnp.asarray(1.0),))
    with pytest.raises(GuardError, match="weak"):
        graph(jnp.float32(1.0))


def test_fractions_around_are_read_at_each_call_and_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = clew.trace(scaled, (X,))
    monkeypatch.setitem(globals(), "scale", 3.0)
    assert_same(scaled(X), graph(X))
    monkeypatch.setitem(globals(), "scale", "text")
    with pytest.raises(GuardError, match="scale"):
        graph(X)


def test_closures_over_arrays_are_constants_that_are_guarded() -> None:
    weight = X * 3

    def program(x):
        return x @ weight

    graph = clew.trace(program, (X,))
    assert_same(program(X), graph(X))
    weight = X * 4
    with pytest.raises(GuardError, match="weight"):
        graph(X)


# ---- state ---------------------------------------------------------------------------------------------------------


def test_counters_count_on() -> None:
    calls[0] = 0
    graph = clew.trace(counting, (X,))
    assert calls == [0]
    assert_same(X * 1, graph(X))
    assert_same(X * 2, graph(X))
    assert calls == [2]


def test_a_container_that_is_changed_is_changed_again() -> None:
    graph = clew.trace(appending, ({"x": X},))
    given = {"x": X + 1}
    graph(given)
    assert_same({"x": X + 1, "twice": (X + 1) * 2}, given)


def test_printing_is_printed_again(capfd: pytest.CaptureFixture[str]) -> None:
    graph = clew.trace(showing, (X,))
    assert capfd.readouterr().out == ""
    graph(X)
    jax.effects_barrier()
    assert sorted(capfd.readouterr().out.splitlines()) == ["again [1. 2. 3.]", "x is [1. 2. 3.]"]


# ---- refusals ------------------------------------------------------------------------------------------------------


def doubled_until_large(x):
    while x.sum() < 100 and x.max() > 0:
        x = x * 2
    return x


def catching(x):
    try:
        return x + float(x[0])
    except Exception:
        return x


VALUES = {
    "branch": lambda x: x if x.sum() > 0 else -x,
    "while": doubled_until_large,
    "float": lambda x: x * float(x[0]),
    "numpy": lambda x: x + numpy.sin(x),
    "caught": catching,
    "nonzero": lambda x: jnp.nonzero(x)[0],
    "mask": lambda x: x[x > 1.5] * 2,
    "clock": lambda x: x * (time.time() > 0),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_decide(name: str) -> None:
    program = VALUES[name]
    graph = clew.trace(program, (X,))
    for x in (X, -X, jnp.array([0.0, 1.0]), jnp.array([5.0, 0.0, 2.0, 7.0])):
        assert_same(program(x), graph(x))


def test_draws_are_drawn_again() -> None:
    graph = clew.trace(lambda x: x * random.random() + numpy.random.rand(), (X,))
    random.seed(1)
    numpy.random.seed(1)
    wanted = X * random.random() + numpy.random.rand()
    random.seed(1)
    numpy.random.seed(1)
    assert_same(wanted, graph(X))


REFUSED = {
    "tracer": (lambda x: x * isinstance(x, jax.core.Tracer), "tracers"),
    "text": (lambda x: print(f"{x}") or x, "turned into text"),
    "data": (lambda x: x * memoryview(x)[0], "only a plain one can go"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    program, told = REFUSED[name]
    with pytest.raises(CaptureError, match=told):
        clew.trace(program, (X,))


@pytest.mark.parametrize("option", [{"leaves": "none"}, {"include_generators": False}, {"opaque": "x"}])
def test_options_without_a_meaning_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(CaptureError):
        clew.trace(scaled, (X,), **option)


def test_callbacks_are_kept_or_refused() -> None:
    def program(x):
        return jax.pure_callback(lambda a: numpy.asarray(a) * 2, jax.ShapeDtypeStruct((3,), jnp.float32), x)

    assert_same(program(X), clew.trace(program, (X,))(X))
    with pytest.raises(CaptureError, match="pure_callback"):
        clew.trace(program, (X,), opaque="error")


# ---- transformations -----------------------------------------------------------------------------------------------


@jax.custom_jvp
def sine(x):
    return jnp.sin(x)


sine.defjvp(lambda primals, tangents: (sine(primals[0]), tangents[0] * 2 * sine(primals[0])))


@jax.custom_vjp
def product(x, y):
    return x * y


product.defvjp(lambda x, y: (x * y, (x, y)), lambda kept, g: (g * kept[1] * 10, g * kept[0]))


def with_rules(x):
    return jnp.sum(sine(x) + product(x, jnp.cos(x)))


def test_a_graph_is_transformed_like_the_original() -> None:
    graph = clew.trace(with_rules, (X,))
    rows = jnp.stack([X, X + 1])
    for transform, argument in (
        (jax.jit, X),
        (jax.grad, X),
        (lambda f: jax.grad(lambda x: jax.grad(f)(x).sum()), X),
        (jax.vmap, rows),
        (lambda f: jax.vmap(jax.grad(f)), rows),
        (lambda f: jax.jit(jax.grad(f)), X),
    ):
        assert_same(transform(with_rules)(argument), transform(graph)(argument))


@jax.custom_jvp
def spread(x):
    return x.mean() * jnp.std(x)


spread.defjvp(lambda primals, tangents: (spread(primals[0]), tangents[0].mean() * primals[0].mean()))


def test_functions_inside_custom_ones_stay_whole() -> None:
    x = jnp.array([0.3, 0.6, 0.9])
    graph = clew.trace(lambda x: spread(x) + 1, (x,))
    assert_same(spread(x) + 1, graph(x))
    assert_same(jax.grad(lambda x: spread(x) + 1)(x), jax.grad(graph)(x))
    assert "jax.numpy.std" in graph.code


def test_jit_on_top_of_a_capture() -> None:
    compiled = clew.trace_graph(with_rules, args=(X,), to="jax", return_backend_traced_fn=True)
    assert_same(jax.jit(with_rules)(X), compiled(X))
    assert_same(jax.jit(with_rules)(X[:2]), compiled(X[:2]))
    with pytest.raises(GuardError, match="x is an array of JAX"):
        compiled(1)


def test_to_jaxpr_gives_the_jaxpr_back() -> None:
    graph = clew.trace(with_rules, (X,))
    wanted, got = jax.make_jaxpr(with_rules)(X), clew.to_jaxpr(graph, X)
    assert [eqn.primitive for eqn in wanted.eqns] == [eqn.primitive for eqn in got.eqns]
    assert wanted.out_avals == got.out_avals


def test_from_jaxpr() -> None:
    function = clew.from_jaxpr(jax.make_jaxpr(with_rules)(X))
    assert_same([with_rules(X)], function(X))
    assert "custom_jvp" in function.code


def test_a_lazy_graph_captures_again_for_other_types() -> None:
    lazy = clew.trace(arithmetic)
    for x, rate in ((X, 0.1), (jnp.ones((2, 2), int), 0.2), (X, 1)):
        assert_same(arithmetic(x, rate), lazy(x, rate))
    assert len(lazy.captures) == 1

    def by_class(x, rate):
        return x * rate if isinstance(rate, float) else x - rate

    seeing = clew.trace(by_class)
    for rate in (0.1, 1, 0.2, 2):
        assert_same(by_class(X, rate), seeing(X, rate))
    assert len(seeing.captures) == 2


def test_a_lazy_graph_counts_each_call_once() -> None:
    calls[0] = 0
    lazy = clew.trace(counting)
    assert_same([X * 1, X * 2, X * 3], [lazy(X), lazy(X), lazy(X)])
    assert calls == [3]


# ---- the graph -----------------------------------------------------------------------------------------------------


def test_nodes_know_their_lines_and_types() -> None:
    graph = clew.trace(with_rules, (X,)).graph
    node = next(node for node in graph.nodes if node.name == "ruled_vjp")
    assert node.source is not None
    assert node.source.filename == __file__
    assert str(node.value_type) == "f32[3]"


def test_copies_and_pickles_run() -> None:
    graph = clew.trace(with_rules, (X,))
    for twin in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert_same(graph(X + 1), twin(X + 1))


def test_interpreter_agrees() -> None:
    graph = clew.trace(with_rules, (X,))
    assert_same(graph(X), clew.Interpreter(graph).run(X))


def test_explain_and_verify() -> None:
    assert "x is an array of JAX" in str(clew.explain(with_rules, (X,)))
    assert not clew.explain(REFUSED["tracer"][0], (X,)).captured
    found = clew.verify(clew.trace(arithmetic, (X, 0.1)), arithmetic, [((X, 0.1), {}), ((X[:2], "1"), {})])
    assert [case.status for case in found.cases[:3]] == ["equal", "guarded", "equal"]


def slow_sine(x):
    return sine(x) * 2


def test_verify_sees_state_and_derivatives() -> None:
    calls[0] = 5
    assert clew.verify(clew.trace(counting, (X,)), counting) and calls == [5]

    def counting_by_two(x):
        calls[0] += 2
        return x * (calls[0] - 1)

    assert "the state" in str(clew.verify(clew.trace(counting, (X,)), counting_by_two)) and calls == [5]
    graph = clew.trace(lambda x: jnp.sin(x) * 2, (X,))
    assert "the derivatives are others" in str(clew.verify(graph, slow_sine))
    assert clew.verify(clew.trace(slow_sine, (X,)), slow_sine)
    assert clew.verify(clew.trace(jax.random.normal, (jax.random.key(0),)), jax.random.normal)


def test_a_second_call_compiles_nothing() -> None:
    def program(x):
        return jax.lax.scan(lambda c, y: (c * y + 1, c), 1.0, x), jax.jit(lambda y: jnp.sin(y) * y + 1)(x)

    graph = clew.trace(program, (X,))
    graph(X)
    with caught_compilations() as compiled:
        graph(X + 1)
    assert compiled == []


@contextlib.contextmanager
def caught_compilations() -> Iterator[list[str]]:
    """The messages that JAX logs when it compiles."""
    found: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("jax._src.interpreters.pxla")
    logger.addHandler(handler)
    try:
        with jax.log_compiles():
            yield found
    finally:
        logger.removeHandler(handler)


def test_torch_programs_stay_torch_programs() -> None:
    torch = pytest.importorskip("torch")
    graph = clew.trace(lambda x: torch.relu(x) * 2, (torch.randn(2, 3),))
    assert torch.equal(graph(torch.ones(5, 3)), torch.ones(5, 3) * 2)


def test_a_function_that_was_compiled_with_other_variables_stays_one_call() -> None:
    space: dict[str, Any] = {"jax": jax, "jnp": jnp, "SCALE": 2.0, "WEIGHTS": jnp.arange(3.0)}
    exec("@jax.jit\ndef scaled(x):\n    return jnp.sin(x) * SCALE + WEIGHTS\n", space)
    scaled = space["scaled"]
    assert (clew.trace(scaled, (X,))(X) == scaled(X)).all()
    assert (clew.trace(scaled, (X,))(X) == scaled(X)).all()  # compiled by now, of the same variables
    for name, value in (("SCALE", 3.0), ("WEIGHTS", jnp.ones(3))):
        before, space[name] = space[name], value
        captured = clew.trace(lambda x: scaled(x) + 1, (X,))
        assert_same(scaled(X * 2) + 1, captured(X * 2))
        longer = jnp.ones((2, 3))  # of which JAX knows nothing yet
        assert_same(captured(longer), scaled(longer) + 1)
        space[name] = before
        scaled.clear_cache()
        scaled(X)
    space["SCALE"] = 3.0
    scaled.clear_cache()
    captured = clew.trace(scaled, (X,))
    assert (captured(X) == scaled(X)).all()


def test_a_lazy_graph_that_counted_as_a_call_goes_on_as_jax_would() -> None:
    space: dict[str, Any] = {"jax": jax, "SCALE": 2.0}
    exec("@jax.jit\ndef scaled(x):\n    return x * SCALE\n", space)
    scaled = space["scaled"]
    graph = clew.trace(lambda x: scaled(x) + 1)
    assert_same(X * 2.0 + 1, graph(X))
    space["SCALE"] = 3.0
    assert_same(X * 2.0 + 1, graph(X))


def test_what_was_compiled_for_other_sizes_with_other_variables_stays_one_call() -> None:
    weights = {"scale": 2.0}

    @jax.jit
    def scaled(x):
        return x * weights["scale"]

    scaled(X)
    weights["scale"] = 3.0
    longer = jnp.arange(5.0)
    graph = clew.trace(scaled, (longer,))
    assert_same(scaled(longer), graph(longer))
    assert_same(X * 2.0, graph(X))  # for which JAX goes on with what it compiled


def test_a_function_without_variables_is_good_for_other_sizes_after_it_was_compiled() -> None:
    doubled = jax.jit(lambda x: x * 2)
    doubled(X)
    graph = clew.trace(lambda x: doubled(x) + 1, (jnp.arange(5.0),))
    assert_same(X * 2 + 1, graph(X))
