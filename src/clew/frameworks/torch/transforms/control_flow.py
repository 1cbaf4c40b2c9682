"""``torch.cond``, ``while_loop`` and ``map``: both ways, and the loop's body, are captured as graphs inside the call.

The branch that is not taken is run too, to record it; torch demands that branches have no effects, and the random state
is put back after it. In the graph a plain ``if`` or ``while`` of Python chooses at each call: nothing is guarded.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from clew.capture.patches import Patches
from clew.capture.python.imported_names import noted
from clew.frameworks.torch.refusals import refusal
from clew.frameworks.torch.transforms.bodies import (
    Current,
    RecordedBody,
    closed,
    operands_of,
    result_of,
    run_plainly,
)
from clew.ir.effects import effect_of, pure
from clew.ir.guests import Effect

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder


@pure
def choose(condition: Any, when_true: Any, true_values: Any, when_false: Any, false_values: Any, *operands: Any) -> Any:
    """The result of one of two bodies on the operands."""
    taken = closed(when_true, true_values) if condition else closed(when_false, false_values)
    return taken(*operands)


@pure
def repeat(condition: Any, condition_values: Any, step: Any, step_values: Any, *carried: Any) -> Any:
    """What is carried after as many steps as the condition holds."""
    while closed(condition, condition_values)(*carried):
        carried = tuple(closed(step, step_values)(*carried))
    return carried


@pure
def stacked(function: Any, values: Any, rows: Any, *args: Any) -> Any:
    """What a body gives for each row, stacked: one tensor, or a tuple of some."""
    if not len(rows):
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    found = [closed(function, values)(row, *args) for row in rows]
    return tuple(map(torch.stack, zip(*found, strict=True))) if isinstance(found[0], tuple) else torch.stack(found)


def install(patches: Patches, current: Current) -> None:
    """Let all report to the capture that ``current`` names, if one is recording."""
    operators = vars(torch._higher_order_ops)
    patches.in_dict(operators, "map", noted(lambda original: _map(original, current), everywhere=True))
    for home in (torch, torch._higher_order_ops):
        patches.in_dict(vars(home), "cond", noted(lambda original: _cond(original, current), everywhere=True))
        patches.in_dict(vars(home), "while_loop", noted(lambda original: _while_loop(original, current), True))


def _body(recorder: TorchRecorder, function: Callable[..., Any], operands: tuple[Any, ...]) -> tuple[RecordedBody, Any]:
    """A function recorded on the operands, and what it gave."""
    body = RecordedBody(recorder, function)
    value = recorder.perform(lambda: body(*operands), (), {})
    body.finished = True
    if any(effect_of(node) is Effect.WRITE for node in body.nodes()):
        raise refusal(f"{body.__name__}, a branch or loop that writes to tensors,")
    return body, value


def _untaken(recorder: TorchRecorder, function: Callable[..., Any], operands: tuple[Any, ...]) -> RecordedBody:
    stream = recorder.streams.expected
    with recorder.paused():
        state = torch.get_rng_state()
    try:
        body, _ = _body(recorder, function, operands)
    finally:
        with recorder.paused():
            torch.set_rng_state(state)
    if recorder.streams.expected is not stream:
        raise refusal(f"{body.__name__}, a branch that draws random numbers from Python or NumPy,")
    return body


def _cond(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
        recorder = current()
        if recorder is None:
            return original(pred, true_fn, false_fn, operands)
        given = tuple(operands)
        with recorder.paused():
            taken = bool(recorder.concrete(pred))
        ways = {taken: _body(recorder, true_fn if taken else false_fn, given)}
        value = ways[taken][1]
        when = {taken: ways[taken][0], not taken: _untaken(recorder, false_fn if taken else true_fn, given)}
        bodies = [part for way in (True, False) for part in (when[way].graph, tuple(when[way].values))]
        node_args = (recorder.argument(pred), *bodies, *operands_of(recorder, given))
        return result_of(recorder, value, recorder.create(choose, node_args))

    return cond


def _while_loop(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def while_loop(cond_fn: Any, body_fn: Any, carried_inputs: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(cond_fn, body_fn, carried_inputs)
        carried = tuple(carried_inputs)
        bodies = [_untaken(recorder, function, carried) for function in (cond_fn, body_fn)]
        parts = [part for body in bodies for part in (body.graph, tuple(body.values))]
        node = recorder.create(repeat, (*parts, *operands_of(recorder, carried)))
        with recorder.paused():
            while run_plainly(recorder, cond_fn, carried, {}):
                carried = tuple(run_plainly(recorder, body_fn, carried, {}))
        return result_of(recorder, recorder.concrete(carried), node)

    return while_loop


def _map(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def over_rows(f: Any, xs: Any, *args: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(f, xs, *args)
        if not all(isinstance(one, torch.Tensor) for one in (xs, *args)):
            raise refusal("map over a nest of tensors")
        with recorder.paused():
            row = xs[0] if xs.dim() and len(xs) else None
            shapes = [recorder.shape(xs)[1:], *map(recorder.shape, args)]
        if row is None:
            raise refusal("map over a tensor without rows")
        for size in [size for shape in shapes for size in shape]:  # what fails in torch's own map fails otherwise
            operator.index(size)
        try:
            body, value = _body(recorder, f, (row, *args))
        except RuntimeError as error:  # torch's own map, which compiles the function, raises another one
            raise refusal(f"map of a function that fails ({error})") from error
        if not all(isinstance(one, torch.Tensor) for one in (value if type(value) is tuple else (value,))):
            raise refusal("map of a function that gives other things than tensors")
        node_args = (body.graph, tuple(body.values), *operands_of(recorder, (xs, *args)))
        with recorder.paused():
            found = stacked(lambda *given: run_plainly(recorder, f, given, {}), (), xs, *args)
        return result_of(recorder, found, recorder.create(stacked, node_args))

    return over_rows
