"""Sizes as expressions: what a size inside a program is in terms of the sizes that came in.

A size is a plain int, which follows from the program's own literals, or an ``Expression``: a polynomial with integer
coefficients over atoms. An atom is a ``Symbol`` (a size or another whole number that is known only when the graph runs)
or an ``Opaque`` quotient, remainder, least or greatest of sizes. Expressions are normalised, so that those that are
written differently and are equal by arithmetic mostly compare equal; what ``compare`` decides holds for all values of
the symbols.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

_numbers = itertools.count()
_MOST_TERMS = 64
_MOST_STEPS = 3
"""How many atoms are replaced by their bounds, one after the other, to find the bound of an expression."""


class Symbol:
    """A whole number that is known only at run time; ``place`` is where it comes from, ``least`` its lower bound."""

    __slots__ = ("example", "least", "number", "place")

    def __init__(self, place: Any, example: int | None, least: int | None = 0) -> None:
        self.place = place
        self.example = example
        self.least = least
        self.number = next(_numbers)

    def __repr__(self) -> str:
        return f"s{self.number}"


class Opaque:
    """A quotient or remainder by a positive number, or the least or greatest of some sizes."""

    __slots__ = ("_hash", "_key", "args", "bounds", "kind", "number")

    def __init__(self, kind: str, args: tuple[Size, ...]) -> None:
        self.kind = kind
        self.args = args
        self.number = next(_numbers)
        self.bounds: Bounds | None = None
        """Once they are known: an atom stands in many expressions, and others in it."""
        self._key = (kind, frozenset(args) if kind in ("min", "max") else args)
        self._hash = hash(self._key)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Opaque) and self._hash == other._hash and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        if self.kind in ("min", "max"):
            return f"{self.kind}({', '.join(map(repr, self.args))})"
        return f"({self.args[0]!r} {self.kind} {self.args[1]!r})"


Bounds = tuple[Any, Any]
"""The least and the greatest value; None where there is none, or none is known."""
Atom = Symbol | Opaque
Monomial = frozenset[tuple[Atom, int]]
Terms = Mapping[Monomial, Any]
_ONE: Monomial = frozenset()


class Expression:
    """A sum of products of atoms, at least one of them no constant."""

    __slots__ = ("_hash", "bounds", "example", "terms")

    def __init__(self, terms: dict[Monomial, int]) -> None:
        self.terms = terms
        self.example: int | None = None
        """The value in the example, once somebody has asked for it."""
        self.bounds: Bounds | None = None
        """Likewise."""
        self._hash = hash(frozenset(terms.items()))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Expression) and self._hash == other._hash and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return " + ".join(f"{factor}*{'*'.join(map(repr, atoms_of(one)))}" for one, factor in self.terms.items())


Size = int | Expression
"""A literal of the program, or an expression over what is known at run time only."""


def atoms_of(monomial: Monomial) -> list[Atom]:
    """The factors of a product, in the order in which they were met."""
    if len(monomial) == 1:
        ((only, count),) = monomial
        return [only] * count
    return [atom for atom, power in sorted(monomial, key=lambda one: one[0].number) for _ in range(power)]


def of_atom(atom: Atom) -> Expression:
    """The expression that is one atom."""
    return Expression({frozenset({(atom, 1)}): 1})


def as_symbol(size: Size) -> Symbol | None:
    """The symbol, if a size is nothing but one."""
    if isinstance(size, int) or len(size.terms) != 1:
        return None
    ((monomial, factor),) = size.terms.items()
    if factor != 1 or len(monomial) != 1:
        return None
    ((only, power),) = monomial
    return only if power == 1 and isinstance(only, Symbol) else None


def symbols_of(size: Size) -> Iterator[Symbol]:
    """The symbols that a size depends on."""
    for monomial in () if isinstance(size, int) else size.terms:
        for atom, _ in monomial:
            if isinstance(atom, Symbol):
                yield atom
            else:
                for one in atom.args:
                    yield from symbols_of(one)


# ---- arithmetic ------------------------------------------------------------------------------------------------------


def _terms(size: Size) -> Terms:
    return {_ONE: size} if isinstance(size, int) else size.terms


def _normal(terms: Terms) -> Size:
    kept = {monomial: factor for monomial, factor in terms.items() if factor}
    if not kept:
        return 0
    if len(kept) == 1 and _ONE in kept:
        return int(kept[_ONE])
    return Expression(kept)


def _sum(left: Terms, right: Terms, factor: Any = 1) -> dict[Monomial, Any]:
    found = dict(left)
    for monomial, one in right.items():
        found[monomial] = found.get(monomial, 0) + factor * one
    return found


def _product(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return frozenset(powers.items())


def add(left: Size, right: Size) -> Size:
    """``left + right``."""
    return _normal(_sum(_terms(left), _terms(right)))


def subtract(left: Size, right: Size) -> Size:
    """``left - right``."""
    return _normal(_sum(_terms(left), _terms(right), -1))


def multiply(left: Size, right: Size) -> Size:
    """``left * right``."""
    found: dict[Monomial, int] = {}
    for (one, factor), (other, second) in itertools.product(_terms(left).items(), _terms(right).items()):
        monomial = _product(one, other)
        found[monomial] = found.get(monomial, 0) + factor * second
    return _normal(found)


def product(sizes: Iterable[Size]) -> Size:
    """The product of some sizes."""
    found: Size = 1
    for size in sizes:
        found = multiply(found, size)
    return found


def _split(size: Size, divisor: int) -> tuple[Size, Size]:
    """``size`` as ``divisor * whole + rest`` with as little as possible in the rest."""
    terms = _terms(size)
    whole = _normal({monomial: factor // divisor for monomial, factor in terms.items()})
    return whole, _normal({monomial: factor % divisor for monomial, factor in terms.items()})


def _is_within(size: Size, divisor: int) -> bool:
    low, high = bounds(size)
    return low is not None and high is not None and low >= 0 and high < divisor


def quotient(left: Size, right: Size) -> Size | None:
    """``left // right``; None unless the divisor is a positive literal: anything else may fail at run time."""
    if not isinstance(right, int) or right <= 0:
        return None
    whole, rest = _split(left, right)
    if _is_within(rest, right):
        return whole
    return add(whole, of_atom(Opaque("//", (rest, right))))


def remainder(left: Size, right: Size) -> Size | None:
    """``left % right``; None unless the divisor is a positive literal."""
    if not isinstance(right, int) or right <= 0:
        return None
    rest = _split(left, right)[1]
    return rest if _is_within(rest, right) else of_atom(Opaque("%", (rest, right)))


def least(left: Size, right: Size) -> Size:
    """The smaller of two sizes."""
    return _chosen("min", left, right)


def greatest(left: Size, right: Size) -> Size:
    """The larger of two sizes."""
    return _chosen("max", left, right)


def _chosen(kind: str, left: Size, right: Size) -> Size:
    is_less = compare(operator.le, left, right)
    if is_less is not None:
        return left if is_less == (kind == "min") else right
    if compare(operator.ge, left, right):
        return right if kind == "min" else left
    return of_atom(Opaque(kind, (left, right)))


def other_of_least(size: Size, one: Size) -> Size | None:
    """What a size is besides ``one``, if it is the smaller of the two."""
    if isinstance(size, int) or len(size.terms) != 1:
        return None
    ((monomial, factor),) = size.terms.items()
    atoms = atoms_of(monomial)
    only = atoms[0] if factor == 1 and len(atoms) == 1 else None
    if not isinstance(only, Opaque) or only.kind != "min" or one not in only.args:
        return None
    return next(other for other in only.args if other != one)


def divided(left: Size, right: Size) -> Size | None:
    """The size that times ``right`` is ``left``, if there is one for all values of the symbols."""
    if right == 0:
        return None
    atoms = {atom for terms in (_terms(left), _terms(right)) for one in terms for atom, _ in one}
    order = sorted(atoms, key=lambda atom: atom.number)

    def place(monomial: Monomial) -> tuple[int, ...]:
        powers = dict(monomial)
        return tuple(powers.get(atom, 0) for atom in order)

    rest, found = dict(_terms(left)), dict[Monomial, int]()
    leading = max(_terms(right), key=place)
    while rest and len(found) < _MOST_TERMS:
        highest = max(rest, key=place)
        powers = [(atom, dict(highest).get(atom, 0) - dict(leading).get(atom, 0)) for atom in order]
        factor, left_over = divmod(rest[highest], _terms(right)[leading])
        if left_over or any(power < 0 for _, power in powers):
            return None
        step: Monomial = frozenset((atom, power) for atom, power in powers if power)
        found[step] = found.get(step, 0) + factor
        taken = {_product(step, one): factor * second for one, second in _terms(right).items()}
        rest = {monomial: one for monomial, one in _sum(rest, taken, -1).items() if one}
    return None if rest else _normal(found)


# ---- what is known of sizes ------------------------------------------------------------------------------------------


def bounds(size: Size) -> Bounds:
    """Bounds of a size, whatever the symbols are."""
    if isinstance(size, int):
        return size, size
    if size.bounds is None:
        negative = {monomial: -factor for monomial, factor in size.terms.items()}
        low, high = _lowest(size.terms), _lowest(negative)
        size.bounds = (None if low is None else math.ceil(low)), (None if high is None else math.floor(-high))
    return size.bounds


def _lowest(terms: Terms, steps: int = 0) -> Any:
    """A lower bound of a sum: by the bounds of each term, or with an atom replaced by what it is never beyond."""
    found = _by_terms(terms)
    if steps == _MOST_STEPS:
        return found
    for monomial, factor in terms.items():
        atoms = atoms_of(monomial)
        if len(atoms) != 1 or not isinstance(atoms[0], Opaque):
            continue
        for limit in _limits(atoms[0], factor < 0):
            others = {one: other for one, other in terms.items() if one != monomial}
            lower = _lowest({one: other for one, other in _sum(others, limit, factor).items() if other}, steps + 1)
            if lower is not None and (found is None or lower > found):
                found = lower
    return found


def _by_terms(terms: Terms) -> Any:
    total: Any = 0
    for monomial, factor in terms.items():
        low, high = _of_monomial(monomial)
        bound = low if factor > 0 else high
        if bound is None:
            return None
        total += factor * bound
    return total


def _of_monomial(monomial: Monomial) -> Bounds:
    atoms = atoms_of(monomial)
    if len(atoms) == 1:
        return _of_atom(atoms[0])
    low: Any = 1
    high: Any = 1
    for one_low, one_high in map(_of_atom, atoms):
        if one_low is None or one_low < 0:
            return None, None
        low, high = low * one_low, None if high is None or one_high is None else high * one_high
    return low, high


def _of_atom(atom: Atom) -> Bounds:
    if isinstance(atom, Symbol):
        return atom.least, None
    if atom.bounds is None:
        atom.bounds = _of_opaque(atom)
    return atom.bounds


def _of_opaque(atom: Opaque) -> Bounds:
    found = [bounds(one) for one in atom.args]
    if atom.kind == "%":
        return 0, found[1][0] - 1
    if atom.kind == "//":
        return tuple(None if one is None else one // found[1][0] for one in found[0])  # type: ignore[return-value]
    lows, highs = [low for low, _ in found], [high for _, high in found]
    choose: Any = min if atom.kind == "min" else max
    known_lows, known_highs = [one for one in lows if one is not None], [one for one in highs if one is not None]
    if atom.kind == "min":
        return (choose(lows) if len(known_lows) == len(lows) else None), (min(known_highs) if known_highs else None)
    return (max(known_lows) if known_lows else None), (choose(highs) if len(known_highs) == len(highs) else None)


def _limits(atom: Opaque, is_upper: bool) -> list[Terms]:
    """Sums that an atom never exceeds, or never falls below."""
    if atom.kind == "//":
        divisor: Any = atom.args[1]
        dividend = _terms(atom.args[0]) if is_upper else _sum(_terms(atom.args[0]), {_ONE: 1 - divisor})
        return [{monomial: Fraction(factor, divisor) for monomial, factor in dividend.items()}]
    if atom.kind == ("min" if is_upper else "max"):
        return [_terms(one) for one in atom.args]
    return []


Comparison = Callable[[Any, Any], Any]
COMPARISONS: frozenset[Any] = frozenset({operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne})


def compare(comparison: Comparison, left: Size, right: Size) -> bool | None:
    """The answer to a comparison if it is the same whatever the symbols are; None otherwise."""
    low, high = bounds(subtract(left, right))
    if comparison is operator.ne:
        is_equal = compare(operator.eq, left, right)
        return None if is_equal is None else not is_equal
    if comparison is operator.eq:
        if low is not None and low == high:
            return bool(low == 0)
        return False if (low is not None and low > 0) or (high is not None and high < 0) else None
    answers = {comparison(one, 0) for one in (_before(low), _after(high))}
    return bool(answers.pop()) if len(answers) == 1 else None


def _before(low: Any) -> float:
    return -math.inf if low is None else low


def _after(high: Any) -> float:
    return math.inf if high is None else high


def is_size(size: Size) -> bool:
    """Whether a number is never negative, so that no function takes it for a sign of something else."""
    low = bounds(size)[0]
    return low is not None and low >= 0


# ---- values ----------------------------------------------------------------------------------------------------------


def evaluate(size: Size, value_of: Callable[[Symbol], int]) -> int:
    """The value of a size for given values of its symbols."""
    if isinstance(size, int):
        return size
    total = 0
    for monomial, factor in size.terms.items():
        total += factor * math.prod(_value(atom, value_of) for atom in atoms_of(monomial))
    return total


def _value(atom: Atom, value_of: Callable[[Symbol], int]) -> int:
    if isinstance(atom, Symbol):
        return value_of(atom)
    values = [evaluate(one, value_of) for one in atom.args]
    calculate: Any = {"//": operator.floordiv, "%": operator.mod, "min": min, "max": max}[atom.kind]
    return int(calculate(*values))


def in_example(size: Size) -> int:
    """What a size was in the example."""
    if isinstance(size, int):
        return size
    if size.example is None:
        size.example = evaluate(size, _noted)
    return size.example


def _noted(symbol: Symbol) -> int:
    if symbol.example is None:
        raise LookupError(f"the value of {symbol} in the example is not known")
    return symbol.example


ARITHMETIC: dict[Any, Callable[[Size, Size], Size | None]] = {
    operator.add: add,
    operator.sub: subtract,
    operator.mul: multiply,
    operator.floordiv: quotient,
    operator.mod: remainder,
    min: least,
    max: greatest,
}
"""Python's functions of two whole numbers, and what they are of sizes."""
