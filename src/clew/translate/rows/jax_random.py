"""JAX's random numbers: the same distributions, drawn from what the translated program is given.

A key of the source is not read. One that is used for a second draw gives the same numbers again, as in JAX, where the
two draws are the same; where they are not, JAX's numbers would depend on each other, and that is refused.
"""

from __future__ import annotations

from typing import Any

from clew.translate.refusals import Untranslatable
from clew.translate.rows.jax import JAX
from clew.translate.values import Array, Opaque, Value
from clew.translate.writer import Writer, leaves_of, mapped

_STREAM = "random numbers are of the same distribution, and of another stream: the key of the source is not used"


class Key(Opaque):
    """A key of the source."""

    __slots__ = ()

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer, None)  # type: ignore[arg-type]


def _drawn(xp: Any, key: Any, kind: str, shape: Any, dtype: str, **given: Any) -> Any:
    if not isinstance(key, Key) and not (isinstance(key, Array) and key.dtype == "uint32" and key.ndim == 1):
        raise Untranslatable("random numbers from several keys")
    known = xp.writer.drawn.setdefault(id(key), [key, None, None])
    what = (kind, _told(shape), dtype, _told(given))
    if known[1] is not None and known[1] != what:
        raise Untranslatable("two different draws from one key, whose numbers depend on each other")
    if known[1] is None:
        xp.writer.note(_STREAM)
        known[1:] = [what, xp.draw(kind, tuple(shape), dtype, **given)]
    return known[2]


def _told(nest: Any) -> Any:
    """What two equal draws have in common."""
    told = mapped(nest, lambda leaf: ("node", id(leaf.node)) if isinstance(leaf, Value) else (type(leaf), leaf))
    return str(told) if isinstance(nest, dict) else tuple(leaves_of(told))


@JAX.row("random.split")
def split(xp: Any, key: Any, num: Any = 2) -> Any:
    """Keys that do not depend on each other."""
    if not isinstance(num, int):
        raise Untranslatable("as many keys as the program finds out")
    return [Key(xp.writer) for _ in range(num)]


@JAX.row("random.fold_in", "random.key", "random.PRNGKey", "random.wrap_key_data")
def fold_in(xp: Any, key: Any, data: Any = None, **given: Any) -> Any:
    """A key made of a number."""
    return Key(xp.writer)


@JAX.row("random.uniform")
def uniform(
    xp: Any, key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0, **given: Any
) -> Any:
    """Between two numbers."""
    found = _drawn(xp, key, "uniform", shape, xp.wanted.dtype)
    if isinstance(minval, Value) or isinstance(maxval, Value) or (minval, maxval) != (0.0, 1.0):
        found = found * (maxval - minval) + minval
    return found


@JAX.row("random.normal")
def normal(xp: Any, key: Any, shape: Any = (), dtype: Any = None, **given: Any) -> Any:
    """A normal distribution around zero."""
    return _drawn(xp, key, "normal", shape, xp.wanted.dtype)


@JAX.row("random.bernoulli")
def bernoulli(xp: Any, key: Any, p: Any = 0.5, shape: Any = None, **given: Any) -> Any:
    """True with a probability."""
    shape = shape if shape is not None else p.shape if isinstance(p, Array) else ()
    return _drawn(xp, key, "bernoulli", shape, "bool", p=p)


@JAX.row("random.randint")
def randint(xp: Any, key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None, **given: Any) -> Any:
    """Whole numbers between two."""
    if isinstance(minval, Array) or isinstance(maxval, Array):
        raise Untranslatable("random integers between numbers of an array")
    return _drawn(xp, key, "randint", shape, xp.wanted.dtype, low=minval, high=maxval)


@JAX.row("random.categorical")
def categorical(xp: Any, key: Any, logits: Any, axis: int = -1, shape: Any = None, **given: Any) -> Any:
    """Places with these chances: the largest sum with a Gumbel number."""
    if shape is not None:
        raise Untranslatable("several places for each row")
    noise = -xp.log(-xp.log(_drawn(xp, key, "uniform", logits.shape, logits.dtype)))
    return xp.to_wanted(xp.argmax(logits + noise, axis=axis))


@JAX.row("random.permutation", "random.choice", "random.bits", "random.truncated_normal", "random.gamma", "random.beta",
         "random.exponential", "random.gumbel", "random.laplace", "random.poisson", "random.shuffle")  # fmt: skip
def other(xp: Any, *args: Any, **given: Any) -> Any:
    """Draws of other kinds."""
    raise Untranslatable("random numbers of a kind that other frameworks have no row for")
