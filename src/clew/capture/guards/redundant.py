"""Guards that say nothing new are dropped: ``n <= 512`` after ``n == 5``, and whatever was checked before.

A finished graph comes in and is changed in place. A guard goes only if the guards before it, that stay, imply it.
Expressions are told apart by what they compute and when: a read before a write is another value than a read after it.
Bounds are for ints alone: they have no nan.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType
from typing import Any

from clew.capture.guards import notes
from clew.ir.effects import effect_of
from clew.ir.graph import Graph
from clew.ir.guests import Effect
from clew.ir.node import Node

Key = Any
"""What stands for the value of a node: equal keys, equal values."""

_ARITHMETIC: dict[Any, Callable[[int, int], int]] = {
    operator.add: operator.add,
    operator.sub: operator.sub,
    operator.mul: operator.mul,
    operator.floordiv: operator.floordiv,
    operator.mod: operator.mod,
}
_COMPARISONS = frozenset({operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge})
_TOLD = frozenset({getattr, operator.getitem, len, *_ARITHMETIC, *_COMPARISONS})
"""Functions of whose results something may be known."""
_CALLS = frozenset({"call_function", "call_method", "call_module"})
_BLOCKS = frozenset({"__enter__", "__exit__"})
_FACTS = frozenset({"shape", "ndim", "dtype", "device", "layout", "requires_grad", "is_leaf", "is_cuda"})
_SIZES = frozenset({"dim", "numel", "nelement", "ndimension", "size"})
_CONSTANTS = (int, float, bool, str, type(None))


@dataclass
class _Range:
    """What is known of an int: its bounds, and values that it does not have."""

    low: float = -math.inf
    high: float = math.inf
    excluded: set[int] = field(default_factory=set)

    def holds(self, number: int) -> bool:
        return self.low <= number <= self.high and number not in self.excluded


def drop_implied(graph: Graph, root: Any = None) -> None:
    """Take the guards out of ``graph`` that earlier guards imply; ``root`` has the modules that it calls."""
    known = _Known(root)
    found = [node for node in graph.nodes if type(node.target) is FunctionType and _is_guard(node)]
    last = found[-1] if found else None  # what comes after it matters to no guard
    for node in graph.nodes if last is not None else ():
        known.see(node)
        if _is_guard(node):
            if known.implies(node):
                graph.erase_node(node)
            else:
                known.learn(node)
        if node is last:
            break


def _is_guard(node: Node) -> bool:
    return type(node.target) is FunctionType and node.target in notes.CHECKS and len(node.args) > 2


class _Known:
    """What the guards seen so far say."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._keys: dict[Node, Key] = {}
        self._integers: dict[Key, _Range] = {}
        self._numbers: set[Key] = set()
        self._checked: set[Any] = set()
        self._calls: list[Node] = []
        self._writes: dict[Node, bool] = {}
        self._moments: dict[Key, tuple[int, int]] = {}

    # ---- expressions ---------------------------------------------------------------------------------------------

    def see(self, node: Node) -> None:
        """Give the value of a node its key, and remember what may change values that are read later."""
        op, target = node.op, node.target
        kind = type(target)
        is_told = target in _SIZES if op == "call_method" else (kind is BuiltinFunctionType and target in _TOLD)
        self._keys[node] = self._key(node) if is_told or target is bool else node
        is_guard = kind is FunctionType and target in notes.CHECKS
        is_block = op == "call_method" and target in _BLOCKS
        if op in _CALLS and not is_guard and not is_block:
            self._calls.append(node)

    def _now(self, question: Key) -> int:
        """A number for the moment of a reading: the same as at the last one, if nothing was written in between."""
        count, moment = self._moments.get(question, (-1, 0))
        if count < 0 or any(map(self._writes_something, self._calls[count:])):
            moment += 1
        self._moments[question] = (len(self._calls), moment)
        return moment

    def _writes_something(self, node: Node) -> bool:
        known = self._writes.get(node)
        if known is None:
            known = self._writes[node] = effect_of(node, self._root) not in (Effect.NONE, Effect.RANDOM)
        return known

    def _key(self, node: Node) -> Key:
        """The same key for nodes that compute the same; the node itself if nothing is known of it."""
        if node.op not in _CALLS:
            return node
        parts = [self._part(argument) for argument in node.args]
        if node.kwargs or any(part is None for part in parts):
            return node
        if node.op == "call_method":
            whole = node.target == "size" and len(parts) != 2
            return node if whole else self._size(self._read(node.target, parts))
        target, args = node.target, node.args
        if target is getattr and len(args) == 2 and args[1] in _FACTS:
            key = self._read(target, parts)
            return self._size(key) if args[1] == "ndim" else key
        if target is operator.getitem and _is_shape(args[0]) and type(args[1]) is int:
            return self._size((target, *parts))
        if target in (len, bool):
            key = self._read(target, parts)
            return self._size(key) if target is len else key
        return (self._computed(target, parts) or node) if node.op == "call_function" else node

    def _part(self, argument: Any) -> Key | None:
        """The key of an argument; constants are told apart by type; None for anything else."""
        if isinstance(argument, Node):
            return self._keys.get(argument)
        return (type(argument), argument) if type(argument) in _CONSTANTS else None

    def _read(self, target: Any, parts: list[Key]) -> Key:
        """The key of something that is read of an array or a container now."""
        question = (target, *parts)
        return (*question, self._now(question))

    def _size(self, key: Key) -> Key:
        self._integers.setdefault(key, _Range(low=0))
        return key

    def _computed(self, target: Any, parts: list[Key]) -> Key | None:
        """The key of arithmetic on numbers, or of a comparison of them; None for all else."""
        if len(parts) != 2 or not isinstance(target, BuiltinFunctionType) or not all(map(self._is_number, parts)):
            return None
        key = (target, *parts)
        if target in _COMPARISONS:
            return key
        if target not in _ARITHMETIC:
            return None
        one, other = map(self._range, parts)
        if one is None or other is None:
            self._numbers.add(key)
        elif _is_neutral(target, one, other):
            return parts[0]
        elif _is_neutral(target, other, one) and target in (operator.add, operator.mul):
            return parts[1]
        elif target not in (operator.floordiv, operator.mod) or not other.holds(0):
            left, right = _single(one), _single(other)
            value = None if left is None or right is None else _ARITHMETIC[target](left, right)
            self._integers.setdefault(key, _Range() if value is None else _Range(value, value))
        return key

    def _is_number(self, part: Key) -> bool:
        """Whether a key stands for a plain number, which nothing can change."""
        is_constant = isinstance(part, tuple) and part[0] in (int, float, bool)
        return is_constant or part in self._numbers or part in self._integers

    def _range(self, key: Key) -> _Range | None:
        """What is known of an int; None for what may be none."""
        found = self._integers.get(key)
        if found is None and isinstance(key, tuple) and key[0] is int:
            return _Range(key[1], key[1])
        return found

    # ---- guards --------------------------------------------------------------------------------------------------

    def implies(self, guard: Node) -> bool:
        """Whether this guard cannot fail where all before it held."""
        key, expected = self._subject(guard), guard.args[1]
        if key is None:
            return False
        if self._question(guard, key) in self._checked:
            return True
        if guard.target is not notes.require:
            return False
        if type(expected) is bool and isinstance(key, tuple) and key[0] in _COMPARISONS:
            return self._answer(*key) is expected
        found = self._range(key)
        return type(expected) is int and found is not None and _single(found) == expected

    def learn(self, guard: Node) -> None:
        """From now on this guard holds."""
        key, expected = self._subject(guard), guard.args[1]
        if key is None:
            return
        self._checked.add(self._question(guard, key))
        if guard.target is notes.require_type and expected is int:
            self._integers.setdefault(key, _Range())
        if guard.target is notes.require_type and expected in (float, bool):
            self._numbers.add(key)
        if guard.target is not notes.require:
            return
        if type(expected) is int:
            self._integers[key] = _Range(expected, expected)
        if type(expected) is bool and isinstance(key, tuple) and key[0] in _COMPARISONS:
            self._learn_comparison(key if expected else (OPPOSITE[key[0]], *key[1:]))

    def _subject(self, guard: Node) -> Key | None:
        return self._keys.get(guard.args[0]) if isinstance(guard.args[0], Node) else None

    def _question(self, guard: Node, key: Key) -> Any:
        """What the guard asks, so that the same question is known again; of a container or array, at this time."""
        expected = guard.args[1]
        answer = (type(expected), expected) if type(expected) in _CONSTANTS else id(expected)
        of_constant = guard.target is notes.require and type(expected) in _CONSTANTS
        is_fixed = of_constant or guard.target in (notes.require_type, notes.require_same)
        return guard.target, key, answer, None if is_fixed else self._now((guard.target, key))

    def _answer(self, target: Any, left: Key, right: Key) -> bool | None:
        """The answer of a comparison of two ints as far as their bounds tell."""
        one, other = self._range(left), self._range(right)
        if one is None or other is None:
            return None
        if target in (operator.gt, operator.ge, operator.ne):
            opposite = self._answer(OPPOSITE[target], left, right)
            return None if opposite is None else not opposite
        if target is operator.eq:
            return self._are_equal(one, other, left == right)
        if one.high < other.low or (target is operator.le and (one.high == other.low or left == right)):
            return True
        if one.low > other.high or (target is operator.lt and (one.low == other.high or left == right)):
            return False
        return None

    @staticmethod
    def _are_equal(one: _Range, other: _Range, are_same: bool) -> bool | None:
        values = _single(one), _single(other)
        if are_same or (None not in values and values[0] == values[1]):
            return True
        if one.high < other.low or one.low > other.high:
            return False
        is_excluded = any(
            value is not None and not known.holds(value) for value, known in zip(values, (other, one), strict=True)
        )
        return False if is_excluded else None

    def _learn_comparison(self, comparison: tuple[Any, Key, Key]) -> None:
        """Narrow the bounds of either side by those of the other."""
        target, left, right = comparison
        for sign, key, other in ((target, left, right), (_MIRRORED[target], right, left)):
            found, bound = self._integers.get(key), self._range(other)
            if found is None or bound is None:
                continue
            low, high, excluded = found.low, found.high, set(found.excluded)
            if sign in (operator.eq, operator.le, operator.lt):
                high = min(high, bound.high - (sign is operator.lt))
            if sign in (operator.eq, operator.ge, operator.gt):
                low = max(low, bound.low + (sign is operator.gt))
            value = _single(bound)
            if sign is operator.ne and value is not None:
                excluded.add(value)
            self._integers[key] = _tightened(low, high, excluded)


def _tightened(low: float, high: float, excluded: set[int]) -> _Range:
    """Bounds that are excluded values move inwards."""
    while low in excluded:
        low += 1
    while high in excluded:
        high -= 1
    return _Range(low, high, excluded)


def _single(found: _Range | None) -> int | None:
    """The value of an int of which only one is left."""
    return int(found.low) if found is not None and found.low == found.high else None


def _is_neutral(target: Any, one: _Range, other: _Range) -> bool:
    """Whether the other int leaves the one as it is: ``n + 0``, ``n // 1``."""
    if one.low < one.high or other.low < other.high:  # two known ints are computed
        return _single(other) == _NEUTRAL.get(target, math.nan)
    return False


_NEUTRAL = {operator.add: 0, operator.sub: 0, operator.mul: 1, operator.floordiv: 1}


def _is_shape(value: Any) -> bool:
    return isinstance(value, Node) and value.target is getattr and value.args[1:] == ("shape",)


OPPOSITE = {operator.eq: operator.ne, operator.ne: operator.eq, operator.lt: operator.ge, operator.ge: operator.lt,
             operator.le: operator.gt, operator.gt: operator.le}  # fmt: skip
_MIRRORED = {operator.eq: operator.eq, operator.ne: operator.ne, operator.lt: operator.gt, operator.gt: operator.lt,
             operator.le: operator.ge, operator.ge: operator.le}  # fmt: skip
