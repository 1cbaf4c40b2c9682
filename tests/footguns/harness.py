"""Judges a capture on a program of the ledger: equal, guarded or WRONG, call by call.

`classify(program, capture)` takes any `capture(fn, args, kwargs) -> callable`. It captures a fresh subject on the
example and checks that this left no trace; then calls the capture on the example, on the other inputs and on the
example once more, in that order, so that state carried from call to call shows. A fresh original goes through the
same calls, without those that the capture refused, and the two records are compared: result, arguments afterwards,
state, random numbers, modes of torch, and in the end all earlier results again.
"""

from __future__ import annotations

import inspect
import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from clew.errors import ClewError
from tests.footguns.ledger import Case, MakeInputs, Program
from tests.footguns.pictures import Picture, class_name, difference, picture, things_in
from tests.footguns.world import TooSlow, modes, quietly, random_state, restored, seed_everything, time_limit

Capture = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Callable[..., Any]]

EQUAL, GUARDED, WRONG = "equal", "guarded", "WRONG"
CAPTURE, AFTERWARDS = "capture", "afterwards"
MODULE = "the module"
BUILD_SEED, CAPTURE_SEED, INPUT_SEED, CALL_SEED = 10, 20, 30, 70
SECONDS = 20.0


@dataclass(frozen=True)
class Outcome:
    """The verdict on one call (or on the capture itself). `silent` is true for a wrong one that raised no error."""

    program: str
    kind: str
    call: str
    status: str
    reason: str = ""
    silent: bool = False


@dataclass
class Record:
    """What one call did: the result or the error, and everything around it, as pictures."""

    call: str
    error: BaseException | None = None
    seen: dict[str, Picture] = field(default_factory=dict)
    trace: str | None = None  # what a call that raised an error of Clew changed all the same
    same_text: bool = True
    live: Any = None  # the result and the arguments themselves, looked at again when all calls are done


def classify(program: Program, capture: Capture, seconds: float = SECONDS) -> list[Outcome]:
    """One outcome for the capture, one for each call, one for the earlier results looked at again in the end."""
    with restored(), quietly():
        records = list(_run_subject(program, capture, seconds))
        refused = {record.call for record in records if isinstance(record.error, ClewError)}
        wanted = {record.call: record for record in _run_original(program, refused, seconds)}
        if isinstance(records[0].error, Exception) and not isinstance(records[0].error, ClewError):
            wanted[CAPTURE] = _run_as_captured(program, seconds)
    return [_judge(program, record, wanted) for record in records]


def worst(outcomes: list[Outcome]) -> str:
    """The verdict on a program: WRONG if any call is, else guarded if any call is, else equal."""
    found = {one.status for one in outcomes}
    return next(status for status in (WRONG, GUARDED, EQUAL) if status in found)


def calls_of(case: Case) -> list[tuple[str, MakeInputs, int]]:
    """The calls by name, with the seed of their inputs: the example last again, for what the calls between changed."""
    others = [(f"other {index}", make, INPUT_SEED + index) for index, make in enumerate(case.others, start=1)]
    return [("example", case.example, INPUT_SEED), *others, ("example again", case.example, INPUT_SEED)]


def _build(program: Program) -> tuple[Case, Callable[..., Any]]:
    seed_everything(BUILD_SEED)
    case = program.build()
    if case.reset is not None:
        case.reset()
    return case, case.callable()


def _run_original(program: Program, refused: set[str], seconds: float) -> Iterator[Record]:
    case, original = _build(program)
    records = []
    for index, (name, make, seed) in enumerate(calls_of(case)):
        _act(case, name, original, original)
        if name not in refused:
            records.append(_perform(case, original, original, name, make, seed, CALL_SEED + index, seconds))
    yield from records
    yield _look_again(records)
    _finish(case)


def _run_as_captured(program: Program, seconds: float) -> Record:
    """The original on the example with the random numbers of the capture, which may raise what it raises with them."""
    case, original = _build(program)
    record = _perform(case, original, original, CAPTURE, case.example, INPUT_SEED, CAPTURE_SEED, seconds)
    _finish(case)
    return record


def _run_subject(program: Program, capture: Capture, seconds: float) -> Iterator[Record]:
    case, source = _build(program)
    record, captured = _capture(case, source, capture, seconds)
    yield record
    records = []
    for index, (name, make, seed) in enumerate(calls_of(case) if captured is not None else []):
        _act(case, name, captured, source)
        records.append(_perform(case, captured, source, name, make, seed, CALL_SEED + index, seconds))
    yield from records
    if captured is not None:
        yield _look_again(records)
    _finish(case)


def _act(case: Case, name: str, function: Callable[..., Any], source: Callable[..., Any]) -> None:
    """What the case does to the module before this call; done to the source where the capture is no such module."""
    if name in case.between:
        try:
            case.between[name](function)
        except AttributeError:
            case.between[name](source)


def _finish(case: Case) -> None:
    if case.reset is not None:
        case.reset()


def _capture(
    case: Case, source: Callable[..., Any], capture: Capture, seconds: float
) -> tuple[Record, Callable[..., Any] | None]:
    """Captures on the example; the record's `trace` says what that changed."""
    seed_everything(INPUT_SEED)
    args, kwargs = case.example()
    record, captured = Record(CAPTURE), None
    seed_everything(CAPTURE_SEED)
    before = _around(case, source, source, args, kwargs) | {"the callable": picture(source)}
    try:
        with time_limit(seconds):
            captured = capture(source, args, kwargs)
        if not callable(captured):
            raise TypeError(f"the capture gave {class_name(captured)}, which cannot be called")
    except (Exception, TooSlow) as error:
        record.error, captured = error, None
    after = _around(case, source, source, args, kwargs) | {"the callable": picture(source)}
    record.trace = _first_difference(before, after)
    return record, captured


def _perform(
    case: Case,
    function: Callable[..., Any],
    source: Callable[..., Any],
    name: str,
    make: MakeInputs,
    input_seed: int,
    call_seed: int,
    seconds: float,
) -> Record:
    """Calls the function on inputs of its own and records all that can be seen."""
    seed_everything(input_seed)
    args, kwargs = make()
    given = things_in((args, kwargs))
    record, result = Record(name, same_text=case.same_text), None
    seed_everything(call_seed)
    before = _around(case, function, source, args, kwargs)
    printed = len(_printed())
    try:
        with time_limit(seconds):
            result = _drained(function(*args, **kwargs))
            if case.gradients:
                _backward(result)
    except (Exception, TooSlow) as error:
        record.error = error
    record.seen = {"the result": picture(result)} | _around(case, function, source, args, kwargs)
    record.trace = _first_difference(before, record.seen)
    if case.printing:
        record.seen["the text printed"] = picture(_printed()[printed:])
    if case.aliasing:
        record.seen["the aliases"] = picture(_aliases(given, result))
    record.live = (result, args, kwargs)
    return record


def _printed() -> str:
    """All that was printed since nothing of it reaches the terminal (`quietly`)."""
    return sys.stdout.getvalue() if isinstance(sys.stdout, io.StringIO) else ""


def _drained(result: Any) -> Any:
    """The values of an iterator, under the name of its class; other results as they are."""
    if isinstance(result, Iterator):
        return {" an iterator": class_name(result), " its values": list(result)}
    return result


def _backward(result: Any) -> None:
    tensors = [value for value in things_in(result).values() if isinstance(value, torch.Tensor)]
    wanted = [value for value in tensors if value.requires_grad and value.is_floating_point()]
    if wanted:
        torch.stack([value.sum() for value in wanted]).sum().backward()


def _around(
    case: Case, function: Callable[..., Any], source: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Picture]:
    """All that a call can change: arguments, state that the case or a module shows, random numbers, modes."""
    around = {"the arguments": picture({" args": args, " kwargs": kwargs}), "the random state": random_state()}
    around |= {"the modes": modes(), MODULE: _module_state(function, source)}
    if case.state is not None:
        around["the state"] = picture(_read_state(case.state, function, source))
    return around


def _read_state(state: Callable[..., Any], function: Callable[..., Any], source: Callable[..., Any]) -> Any:
    """The observable state; an attribute that the capture does not carry is read where it was captured from."""
    if not inspect.signature(state).parameters:
        return state()
    try:
        return state(function)
    except AttributeError:
        return state(source)


def _module_state(function: Callable[..., Any], source: Callable[..., Any]) -> Picture:
    """Parameters and buffers by name, and the training flag; those that the capture left out, from its source."""
    named: dict[str, Any] = {}
    for module in (source, function):
        if isinstance(source, torch.nn.Module) and isinstance(module, torch.nn.Module):
            named |= {" training": module.training, **_tensors_of(module)}
    return Picture("", parts={name: picture(value) for name, value in named.items()})


def _tensors_of(module: torch.nn.Module) -> dict[str, Any]:
    parameters = dict(module.named_parameters(remove_duplicate=False))
    buffers = dict(module.named_buffers(remove_duplicate=False))
    return {f" {name}": value for name, value in {**parameters, **buffers}.items()}


def _aliases(given: dict[str, Any], result: Any) -> dict[str, Any]:
    """For each object of the result: which arguments, and which earlier objects of the result, it is or shares."""
    others = {f"arguments{path}": value for path, value in given.items()}
    found: dict[str, Any] = {}
    for path, value in things_in(result).items():
        same = [name for name, other in others.items() if other is value]
        shared = [name for name, other in others.items() if other is not value and _share_memory(other, value)]
        found[f" result{path}"] = {" is": same, " shares memory with": shared}
        others[f"result{path}"] = value
    return found


def _share_memory(one: Any, other: Any) -> bool:
    addresses = [_address(value) for value in (one, other)]
    return addresses[0] == addresses[1] != 0


def _address(value: Any) -> int:
    if isinstance(value, torch.Tensor) and value.layout is torch.strided:
        return value.untyped_storage().data_ptr()
    interface = getattr(value, "__array_interface__", None)
    return interface["data"][0] if interface and not isinstance(value, torch.Tensor) else 0


def _look_again(records: list[Record]) -> Record:
    """Results and arguments of all calls once more: a later call may have changed what an earlier one gave."""
    whole = [record for record in records if record.error is None]
    return Record(AFTERWARDS, seen={f"{record.call}, later,": picture(record.live) for record in whole})


def _first_difference(wanted: dict[str, Picture], got: dict[str, Picture]) -> str | None:
    for name, part in wanted.items():
        other = got.get(name, part)
        if name == MODULE:  # a capture may hold more than its source: the constants it met
            other = Picture("", parts={key: other.parts[key] for key in part.parts if key in other.parts})
        found = difference(part, other, name)
        if found is not None:
            return found
    return None


def _judge(program: Program, got: Record, originals: dict[str, Record]) -> Outcome:
    def verdict(status: str, reason: str = "", silent: bool = False) -> Outcome:
        return Outcome(program.name, program.kind, got.call, status, reason, silent)

    if isinstance(got.error, ClewError):
        if got.trace is not None:
            return verdict(WRONG, f"refused, but left a trace: {got.trace}")
        return verdict(GUARDED, str(got.error).splitlines()[0])
    if got.call == CAPTURE:
        return _judge_capture(verdict, got, originals.get(CAPTURE))
    wanted = originals[got.call]
    if got.error is not None or wanted.error is not None:
        reason = _compare_errors(wanted.error, got.error, wanted.same_text)
        if reason is not None:
            return verdict(WRONG, reason, silent=got.error is None)
    reason = _first_difference(wanted.seen, got.seen)
    return verdict(EQUAL) if reason is None else verdict(WRONG, reason, silent=got.error is None)


def _judge_capture(verdict: Callable[..., Outcome], got: Record, original: Record | None) -> Outcome:
    """A capture may raise what the program itself raises on the example; either way all must be as it was."""
    if got.error is not None:
        reason = _compare_errors(original and original.error, got.error, same_text=False)
        if reason is not None:
            return verdict(WRONG, f"capture failed: {reason}")
    if got.trace is not None:
        return verdict(WRONG, f"capture left a trace: {got.trace}", silent=True)
    return verdict(EQUAL)


def _compare_errors(wanted: BaseException | None, got: BaseException | None, same_text: bool) -> str | None:
    if wanted is None:
        return f"raised {_shown(got)}, where the original raises nothing"
    if got is None:
        return f"raised nothing, where the original raises {_shown(wanted)}"
    alike = type(wanted).__qualname__ == type(got).__qualname__ and (not same_text or str(wanted) == str(got))
    return None if alike else f"raised {_shown(got)}, not {_shown(wanted)}"


def _shown(error: BaseException | None) -> str:
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:120]}"
