"""What AutoGraph makes of Python's variables in branches and loops over tensors: their names, and which are numbers.

In ``i += 1`` under ``while tf.reduce_sum(x) < 1`` the variable is a number of Python for a program that runs eagerly,
and a tensor in a graph. Where such a value is a result, the captured function gives back the number. A value counts as
a number if it starts as one and is computed from nothing but numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.autograph.operators import control_flow
from tensorflow.python.ops import cond_v2

from clew.capture.patches import Patches
from clew.frameworks.tensorflow.importer import Notes
from clew.ir.effects import pure

_NUMBERS = (int, float, bool)


@pure
def number(tensor: Any) -> Any:
    """The number of Python that a tensor holds; inside of a ``tf.function`` the tensor itself."""
    return tensor.numpy().item() if hasattr(tensor, "numpy") else tensor


def key_of(tensor: Any) -> tuple[int, str]:
    """What tells symbolic tensors apart."""
    return id(tensor.graph), tensor.name


def install(patches: Patches, current: Callable[[], Notes | None]) -> None:
    """Let AutoGraph's branches and loops tell the notes that ``current`` gives."""
    patches.in_dict(vars(control_flow), "_tf_while_stmt", lambda original: _loops(original, current))
    patches.in_dict(vars(control_flow), "_tf_if_stmt", lambda original: _branches(original, current))
    patches.in_dict(vars(cond_v2), "cond_v2", lambda original: _conds(original, current))
    patches.in_dict(vars(cond_v2), "indexed_case", lambda original: _cases(original, current))


def _is_symbolic(value: Any) -> bool:
    return isinstance(value, tf.Tensor) and hasattr(value, "graph")


def _loops(original: Any, current: Callable[[], Notes | None]) -> Any:
    def _tf_while_stmt(test: Any, body: Any, get_state: Any, set_state: Any, symbol_names: Any, opts: Any) -> None:
        notes = current()
        if notes is None:
            return original(test, body, get_state, set_state, symbol_names, opts)
        before = get_state()
        numeric = [place for place, value in enumerate(before) if _is_number(notes, value)]
        rounds: list[tuple[Any, Any]] = []

        def watched() -> None:
            starts = get_state()
            _mark(notes, [starts[place] for place in numeric])
            body()
            rounds.append((starts, get_state()))

        original(test, watched, get_state, set_state, symbol_names, opts)
        after = get_state()
        stays = _lasting(notes, numeric, *rounds[-1]) if rounds else []
        _mark(notes, [after[place] for place in stays])
        _name(notes, symbol_names, after)

    return _tf_while_stmt


def _lasting(notes: Notes, numeric: list[int], starts: Any, ends: Any) -> list[int]:
    """Those variables that are numbers after each round if they are numbers before it."""
    while True:
        kept = [place for place in numeric if _is_number(notes, ends[place])]
        if len(kept) == len(numeric):
            return kept
        for place in set(numeric) - set(kept):
            if _is_symbolic(starts[place]):
                notes.numbers.discard(key_of(starts[place]))
        numeric = kept


def _branches(original: Any, current: Callable[[], Notes | None]) -> Any:
    def _tf_if_stmt(
        cond: Any, body: Any, orelse: Any, get_state: Any, set_state: Any, symbol_names: Any, nouts: Any
    ) -> None:
        notes = current()
        if notes is None:
            return original(cond, body, orelse, get_state, set_state, symbol_names, nouts)
        original(cond, body, orelse, get_state, set_state, symbol_names, nouts)
        _name(notes, symbol_names[:nouts], get_state())

    return _tf_if_stmt


def _conds(original: Any, current: Callable[[], Notes | None]) -> Any:
    def cond_v2(pred: Any, true_fn: Any, false_fn: Any, *rest: Any, **options: Any) -> Any:
        notes = current()
        if notes is None:
            return original(pred, true_fn, false_fn, *rest, **options)
        ends: list[list[bool]] = []
        sides = [_noting_end(notes, side, ends) for side in (true_fn, false_fn)]
        return _joined(notes, ends, original(pred, *sides, *rest, **options))

    return cond_v2


def _cases(original: Any, current: Callable[[], Notes | None]) -> Any:
    def indexed_case(branch_index: Any, branch_fns: Any, *rest: Any, **options: Any) -> Any:
        notes = current()
        if notes is None:
            return original(branch_index, branch_fns, *rest, **options)
        ends: list[list[bool]] = []
        sides = [_noting_end(notes, side, ends) for side in branch_fns]
        return _joined(notes, ends, original(branch_index, sides, *rest, **options))

    return indexed_case


def _noting_end(notes: Notes, side: Any, ends: list[list[bool]]) -> Any:
    """A side of a branch, which tells which of its results are numbers."""

    def run(*args: Any, **kwargs: Any) -> Any:
        result = side(*args, **kwargs)
        ends.append([_is_number(notes, value) for value in _leaves([result])])
        return result

    return run


def _joined(notes: Notes, ends: list[list[bool]], after: Any) -> Any:
    """Results that are numbers on all sides are numbers; those that are on some sides cannot be given back."""
    if len(ends) > 1 and len({len(end) for end in ends}) == 1:
        for leaf, kinds in zip(_leaves([after]), zip(*ends, strict=True), strict=False):
            if all(kinds):
                _mark(notes, [leaf])
            elif any(kinds) and _is_symbolic(leaf):
                notes.mixed.add(key_of(leaf))
    return after


def _leaves(values: Any) -> list[Any]:
    """What is in nests of values, in order; what a program returns early is such a nest."""
    found: list[Any] = tf.nest.flatten(list(values))
    return found


def _mark(notes: Notes, values: list[Any]) -> None:
    notes.numbers.update(key_of(value) for value in values if _is_symbolic(value))


def _name(notes: Notes, names: Any, values: Any) -> None:
    for name, value in zip(names, values, strict=False):
        if _is_symbolic(value) and str(name).isidentifier():
            notes.names[key_of(value)] = str(name)


def _is_number(notes: Notes, value: Any) -> bool:
    """Whether a value is a number of Python, or a tensor that stands for one."""
    return type(value) in _NUMBERS or (_is_symbolic(value) and stands_for_number(notes, value))


def stands_for_number(notes: Notes, tensor: Any) -> bool:
    """Whether a tensor is computed from nothing but variables that are numbers, and literals beside operators."""
    waiting, seen, found = [tensor], set(), False
    while waiting:
        one = waiting.pop()
        if key_of(one) in notes.numbers:
            found = True
        elif key_of(one) not in seen:
            seen.add(key_of(one))
            outer = [outside for outside, inside in getattr(one.graph, "captures", ()) if inside is one]
            if outer:  # a branch sees what is around it by inputs of its own
                if not _is_symbolic(outer[0]):
                    return False
                waiting += outer
                continue
            is_literal = one.op.type == "Const" and one.op.name.rpartition("/")[2] in ("x", "y")
            if not is_literal and (not one.op.inputs or one.shape.rank != 0):
                return False
            waiting += list(one.op.inputs)
    return found
