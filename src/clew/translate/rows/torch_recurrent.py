"""torch's recurrent layers and cells: LSTM, GRU and plain ones.

A layer goes along the time axis step by step (``Namespace.scan``), so that lengths stay free; what the inputs
contribute is computed for all steps at once before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.translate.refusals import Untranslatable
from clew.translate.rows.table import taking
from clew.translate.rows.torch_creation import dropout
from clew.translate.rows.torch_elementwise import TORCH
from clew.translate.values import Array

_Step = Callable[..., tuple[Any, ...]]


def _parts(x: Array, count: int) -> list[Any]:
    """Equal parts of the last axis."""
    width = x.size(-1) // count
    return [x[..., place * width : (place + 1) * width] for place in range(count)]


def _lstm_step(xp: Any, state: tuple[Any, ...], given: Array, weight: Array, bias: Any) -> tuple[Any, ...]:
    hidden, cell = state
    into, forget, new, out = _parts(given + xp.linear(hidden, weight, bias), 4)
    cell = xp.sigmoid(forget) * cell + xp.sigmoid(into) * xp.tanh(new)
    return (xp.sigmoid(out) * xp.tanh(cell), cell)


def _gru_step(xp: Any, state: tuple[Any, ...], given: Array, weight: Array, bias: Any) -> tuple[Any, ...]:
    (hidden,) = state
    reset, keep, new = _parts(given, 3)
    reset_too, keep_too, new_too = _parts(xp.linear(hidden, weight, bias), 3)
    keep = xp.sigmoid(keep + keep_too)
    new = xp.tanh(new + xp.sigmoid(reset + reset_too) * new_too)
    return (new + keep * (hidden - new),)


def _tanh_step(xp: Any, state: tuple[Any, ...], given: Array, weight: Array, bias: Any) -> tuple[Any, ...]:
    return (xp.tanh(given + xp.linear(state[0], weight, bias)),)


def _relu_step(xp: Any, state: tuple[Any, ...], given: Array, weight: Array, bias: Any) -> tuple[Any, ...]:
    return (xp.relu(given + xp.linear(state[0], weight, bias)),)


def _along(xp: Any, step: _Step, x: Array, state: tuple[Any, ...], weights: list[Any], backwards: bool) -> Any:
    """One direction of one layer: what it gives at each step, and its last state."""
    weight_in, weight, *biases = weights
    bias_in, bias = biases or (None, None)
    given = xp.linear(x, weight_in, bias_in)
    given = xp.flip(given, axis=0) if backwards else given
    operands = (weight,) if bias is None else (weight, bias)

    def run(inner: Any, state: tuple[Any, ...], item: Array, *operands: Any) -> tuple[Any, Any]:
        found = step(inner, state, item, operands[0], operands[1] if len(operands) > 1 else None)
        return found, found[0]

    state, found = xp.scan(run, state, given, operands)
    return (xp.flip(found, axis=0) if backwards else found), state


def _layers(xp: Any, step: _Step, given: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
    """All layers and directions: the results of the last one, and the last states of all."""
    directions = 2 if given.bidirectional else 1
    each = 4 if given.has_biases else 2
    if len(given.params) != each * directions * given.num_layers:
        raise Untranslatable("a recurrent layer with projections")
    if not isinstance(given.train, bool):
        raise Untranslatable("a dropout whose mode is not fixed")
    x = xp.swapaxes(given.input, 0, 1) if given.batch_first else given.input
    lasts: list[tuple[Any, ...]] = []
    for layer in range(given.num_layers):
        if layer and given.dropout and given.train:
            x = dropout(xp, x, given.dropout, True)
        found = []
        for direction in range(directions):
            place = layer * directions + direction
            weights = list(given.params[each * place : each * (place + 1)])
            result, last = _along(xp, step, x, tuple(one[place] for one in state), weights, direction == 1)
            found.append(result)
            lasts.append(last)
        x = found[0] if directions == 1 else xp.concatenate(found, axis=-1)
    x = xp.swapaxes(x, 0, 1) if given.batch_first else x
    return (x, *(xp.stack(list(parts), axis=0) for parts in zip(*lasts, strict=True)))


def _layer_row(name: str, step: _Step) -> None:
    @TORCH.row(name, f"_VF.{name}")
    @taking("input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")
    def row(xp: Any, given: Any) -> Any:
        if not isinstance(given.params, (tuple, list)):
            raise Untranslatable("a recurrent layer over packed sequences")
        state = tuple(given.hx) if isinstance(given.hx, (tuple, list)) else (given.hx,)
        return _layers(xp, step, given, state)


def _cell_row(name: str, step: _Step) -> None:
    @TORCH.row(name, f"_VF.{name}")
    def row(xp: Any, input: Array, hx: Any, w_ih: Array, w_hh: Array, b_ih: Any = None, b_hh: Any = None) -> Any:
        state = tuple(hx) if isinstance(hx, (tuple, list)) else (hx,)
        found = step(xp, state, xp.linear(input, w_ih, b_ih), w_hh, b_hh)
        return found if len(found) > 1 else found[0]


for _name, _step in {"lstm": _lstm_step, "gru": _gru_step, "rnn_tanh": _tanh_step, "rnn_relu": _relu_step}.items():
    _layer_row(_name, _step)
    _cell_row(f"{_name}_cell", _step)
