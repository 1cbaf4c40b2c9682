"""The algebra of sizes: what is equal is found equal, what is decided holds for all values of the symbols."""

import itertools
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.capture.guards import sizes as algebra
from clew.capture.guards.sizes import (
    ARITHMETIC,
    COMPARISONS,
    Symbol,
    add,
    compare,
    divided,
    evaluate,
    greatest,
    is_size,
    least,
    multiply,
    of_atom,
    other_of_least,
    product,
    quotient,
    remainder,
    subtract,
)

N, M = Symbol("n", 3), Symbol("m", 5)
n, m = of_atom(N), of_atom(M)
LEAVES = st.one_of(st.sampled_from([n, m]), st.integers(-3, 4))
SMALL = list(itertools.product(range(4), range(4)))


def value(size, at):
    return evaluate(size, lambda symbol: dict(zip((N, M), at, strict=True))[symbol])


@st.composite
def sizes(draw, depth=3):
    """A size, and the plain function that it stands for."""
    if depth == 0 or draw(st.booleans()):
        leaf = draw(LEAVES)
        return leaf, lambda at: value(leaf, at)
    function = draw(st.sampled_from(list(ARITHMETIC)))
    left, plain_left = draw(sizes(depth - 1))
    right, plain_right = draw(sizes(depth - 1))
    if function in (operator.floordiv, operator.mod):
        right = draw(st.integers(1, 4))
        plain_right = lambda at, right=right: right  # noqa: E731
    found = ARITHMETIC[function](left, right)
    return found, lambda at: function(plain_left(at), plain_right(at))


@given(sizes())
def test_expressions_are_worth_what_python_says(drawn):
    size, plain = drawn
    assert [value(size, at) for at in SMALL] == [plain(at) for at in SMALL]


@given(sizes(), sizes(), st.sampled_from(sorted(COMPARISONS, key=lambda one: one.__name__)))
def test_what_is_decided_holds_everywhere(left, right, comparison):
    answer = compare(comparison, left[0], right[0])
    if answer is not None:
        assert {comparison(left[1](at), right[1](at)) for at in SMALL} == {answer}


@given(sizes(), sizes())
def test_exact_division(left, right):
    whole = divided(multiply(left[0], right[0]), right[0])
    if right[0] != 0:
        assert whole is None or all(value(whole, at) == left[1](at) for at in SMALL if right[1](at))


def test_equal_expressions_compare_equal():
    assert add(n, 0) == n and quotient(n, 1) == n and multiply(n, 1) == n
    assert quotient(multiply(n, 16), 16) == n
    assert add(multiply(n, 2), multiply(2, m)) == multiply(add(m, n), 2)
    assert subtract(add(n, 3), n) == 3
    assert remainder(add(multiply(n, 4), 3), 4) == 3
    assert least(n, m) == least(m, n) and least(n, add(n, 1)) == n
    assert greatest(subtract(n, 0), 0) == n
    assert divided(product([n, m, 64]), multiply(m, 16)) == multiply(n, 4)
    assert divided(multiply(add(n, 1), m), add(n, 1)) == m
    assert divided(add(n, 1), m) is None and divided(n, 2) is None


def test_what_always_holds_is_decided():
    half = quotient(n, 2)
    assert compare(operator.ge, n, 0) is True and compare(operator.lt, add(n, 1), 1) is False
    assert compare(operator.le, half, n) is True and compare(operator.le, least(n, 4), n) is True
    assert compare(operator.eq, multiply(n, 16), multiply(16, n)) is True
    assert compare(operator.ne, add(n, 1), n) is True
    assert compare(operator.gt, n, 1) is None and compare(operator.eq, n, m) is None
    assert is_size(half) and not is_size(subtract(n, 1))


@pytest.mark.parametrize("divisor", [0, -2, m])
def test_a_division_that_may_fail_is_no_expression(divisor):
    assert quotient(n, divisor) is None and remainder(n, divisor) is None


def test_the_other_of_two():
    assert other_of_least(least(n, m), n) == m
    assert other_of_least(n, n) is None and other_of_least(greatest(n, m), n) is None


def test_numbers_that_may_be_negative():
    k = of_atom(Symbol("k", 2, least=None))
    assert compare(operator.ge, k, 0) is None and compare(operator.eq, k, k) is True
    assert compare(operator.ge, multiply(k, k), 0) is None


def test_sizes_within_sizes_take_no_longer_than_their_depth(monkeypatch):
    looks = []
    lowest = algebra._lowest
    monkeypatch.setattr(algebra, "_lowest", lambda *args: (looks.append(args), lowest(*args))[1])
    size = n
    for _ in range(24):  # as in a backbone: each stage halves, and pads again
        size = add(quotient(add(size, 1), 2), least(size, m))
    assert is_size(size)
    assert compare(operator.lt, size, subtract(0, size)) is False
    assert len(looks) < 24 * 300
