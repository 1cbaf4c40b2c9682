"""Which programs may see the order of the keys of a dict: none that may is taken for one that does not."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest

from clew.capture.control_flow.argument_uses import sees_order
from clew.frameworks.jax.effects import takes_nests


class Pair(NamedTuple):
    left: Any
    right: Any


def by_keys(d, x):
    value, slopes = jax.value_and_grad(lambda w: (w["a"] * x + w["b"]).sum())(d)
    moved = jax.tree.map(lambda w, g: w - 0.1 * g, d, slopes)
    return Pair(value, moved), len(d), "a" in d


def in_rounds(d, x):
    for _ in range(3):
        x = x * d["a"]
    if x.sum() > 0 and isinstance(x, float):
        raise ValueError("too large")
    return float(x[0]) + abs(d["b"])


def through_layers(layers, d, x):
    for layer in layers:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    for layer in layers[1:]:
        x = layer(x)
    return x * d["scale"]


def helped(d):
    return by_keys(d, 2.0)


def walks(d):
    return [d[key] for key in d]


def walks_and_uses(d, tables, x):
    for key in d:
        if x.sum() > 0:
            x = tables[key]["w"] * key["w"]
    return x


def unpacks(d):
    first, second = d
    return first, second


def unpacks_what_another_gives(d):
    first, _ = helped(d)
    return first


def spreads(d):
    return dict(**d)


def spreads_into_another(d):
    return {**d, "c": 1}


def spreads_positions(d):
    return jnp.stack([*d])


def takes_views(d):
    return sum(d.values())


def lists(d):
    return list(d)


def shows(d):
    return f"{d}"


def shows_by_percent(d):
    return "%s" % (d,)  # noqa: UP031


def copies(d):
    return d.copy()


def joins(d):
    return d | {"c": 1}


def writes(d):
    d["c"] = 1
    return d


def prints(d):
    jax.debug.print("{}", d)


def takes_the_first(d):
    return next(iter(d))


def hands_on(d):
    return helper(d)


def helper(d):
    return list(d)


def asks_another_module(d):
    return math.fsum(d)


@pytest.mark.parametrize("functions", [(by_keys,), (in_rounds,), (helped, by_keys), (through_layers,)])
def test_not_seen(functions: Any) -> None:
    assert not sees_order(functions, takes_nests)


SEEING = (
    walks, walks_and_uses, unpacks, spreads, spreads_into_another, spreads_positions, takes_views, lists, shows,
    shows_by_percent, copies, joins, writes, prints, takes_the_first, hands_on, asks_another_module,
)  # fmt: skip


@pytest.mark.parametrize("function", SEEING, ids=lambda one: one.__name__)
def test_seen(function: Any) -> None:
    assert sees_order((function,), takes_nests)


def test_seen_in_another_function() -> None:
    assert sees_order((hands_on, helper), takes_nests)
    assert sees_order((unpacks_what_another_gives, helped, by_keys), takes_nests)


def test_code_without_a_source_may_see_it() -> None:
    space: dict[str, Any] = {}
    exec("def made(d):\n    return d['a']\n", space)
    assert sees_order((space["made"],), takes_nests)
