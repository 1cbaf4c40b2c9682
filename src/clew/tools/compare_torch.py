"""A captured torch program and its original, call by call: both run on copies of the same input in the same state.

The two programs and example calls come in; out comes one case for each call. ``observe`` takes snapshots of all that a
run shows: the result or the error, the arguments afterwards, state, random numbers, which results are which arguments,
and gradients. Where two runs differ, ``locate`` names the node: the captured graph and a fresh capture of the original
are interpreted side by side, and the first call that gives another value, or that the original does not make, is the
culprit. Arguments, state and random numbers are put back after every run. Example inputs are copies in which tensors
share what they shared, noise of the same form, and other batch sizes; functions and modules are not copied.
"""

from __future__ import annotations

import copy
import difflib
import inspect
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from clew.capture.guards.notes import CHECKS
from clew.capture.options import Options
from clew.errors import ClewError, GuardError
from clew.ir.effects import effect_of
from clew.ir.format import format_target
from clew.ir.graph import Graph
from clew.ir.guests import Effect, present
from clew.ir.interpreter import Interpreter
from clew.ir.node import Node
from clew.ir.types import ArrayType
from clew.runtime.choose import capture_with
from clew.runtime.function import GraphFunction
from clew.tools.cases import EQUAL, GUARDED, SEED, WRONG, Call, Case, calls_from, gone, named, no_example
from clew.tools.matched_nodes import is_unfilled
from clew.tools.snapshots import ProgramState, Snapshot, Tolerance, difference, is_record, snapshot, tensors_in, walk

# ---- the comparison --------------------------------------------------------------------------------------------------


def compare(captured: Any, fn: Any, inputs: Any, atol: float, rtol: float, gradients: bool) -> list[Case]:
    """The calls that were given, then noise of the same form and other batch sizes made from the first of them."""
    calls = calls_of(inputs, captured)
    wanted = [*named(calls), *made_from(calls[0])]
    state = ProgramState(fn, captured, [value for _, value in walk(calls) if isinstance(value, torch.Generator)])
    return [_case(name, captured, fn, call, state, Tolerance(atol, rtol), gradients) for name, call in wanted]


def _case(
    name: str, captured: Any, fn: Any, call: Call, state: ProgramState, tolerance: Tolerance, gradients: bool
) -> Case:
    got = _observed(captured, call, state, True, gradients)
    if isinstance(got.error, GuardError):
        return _guarded(name, _observed(_nothing, call, state, True, False), got, got.error)
    wanted = _observed(fn, call, state, False, gradients)
    detail = first_difference(wanted, got, tolerance)
    if detail is None:
        return Case(name, EQUAL, "" if wanted.error is None else f"both raise {type(wanted.error).__name__}")
    node, reason = locate(captured, fn, call, state, tolerance) if wanted.error is None else NOWHERE
    line = "" if node is None or node.source is None else node.source.describe()
    return Case(name, WRONG, f"{detail}; {reason}" if reason else detail, None if node is None else node.name, line)


def _nothing(*args: Any, **kwargs: Any) -> None:
    """A program that leaves everything as it is."""


def _observed(program: Any, call: Call, state: ProgramState, of_capture: bool, gradients: bool) -> Observation:
    try:
        return observe(program, copied(call), state, of_capture, gradients)
    finally:
        state.put_back()


def _guarded(name: str, untouched: Observation, got: Observation, error: GuardError) -> Case:
    """A refused call must have changed nothing."""
    marks = (difference(untouched.aspects[aspect], seen, aspect, Tolerance()) for aspect, seen in got.aspects.items())
    mark = next((text for text in marks if text is not None), None)
    if mark is not None:
        return Case(name, WRONG, f"a guard failed after something was changed: {mark}", None, error.where)
    return Case(name, GUARDED, error.what, None, error.where)


# ---- example inputs --------------------------------------------------------------------------------------------------


def calls_of(inputs: Any, captured: Any) -> list[Call]:
    """The calls that a user gave, or the example of the capture, or one made from the types in the graph."""
    if inputs is None and getattr(captured, "_example", None) is None:
        return [_from_types(captured.graph)]
    return calls_from(inputs, captured, _noise_maker())


def _noise_maker() -> Callable[[Any], Any]:
    """A function that makes noise of a type; equal names of sizes get equal sizes."""
    generator = torch.Generator().manual_seed(SEED)
    sizes: dict[str, int] = {}

    def make(kind: Any) -> Any:
        if not isinstance(kind, ArrayType):
            raise gone(kind)
        shape = [size if isinstance(size, int) else sizes.setdefault(size, 2 + len(sizes)) for size in kind.shape]
        return noise_like(torch.ones(shape, dtype=getattr(torch, kind.dtype), device=kind.device), generator)

    return make


def _from_types(graph: Graph) -> Call:
    """A call made of noise, where the graph knows the types of its inputs."""
    make = _noise_maker()
    args: dict[str, Any] = {}
    for node in graph.find_nodes(op="placeholder"):
        if isinstance(node.value_type, ArrayType):
            args[node.target] = make(node.value_type)
        elif not node.args and not str(node.target).startswith("*"):
            raise no_example(f"there is no example to replay: the graph does not know the type of {node.target!r}")
    return (), args


def copied(call: Call) -> Call:
    """A call that shares no tensor with the original one."""
    fresh: Call = _copy(call, _tensor_copies(call))
    return fresh


def changed(call: Call, change: Callable[[torch.Tensor], torch.Tensor]) -> Call:
    """The call with every tensor changed, each once however often it occurs."""
    memo: dict[int, Any] = {}
    for tensor in tensors_in(call).values():
        if id(tensor) not in memo:
            with torch.no_grad():
                made = change(tensor.detach())
            memo[id(tensor)] = made.requires_grad_(tensor.requires_grad)
    result: Call = _copy(call, memo)
    return result


def _tensor_copies(call: Call) -> dict[int, Any]:
    storages: dict[int, Any] = {}
    memo: dict[int, Any] = {}
    for tensor in tensors_in(call).values():
        if id(tensor) in memo:
            continue
        plain = type(tensor) in (torch.Tensor, torch.nn.Parameter)
        made = copy.deepcopy(tensor.detach() if plain else tensor, storages)
        if type(tensor) is torch.nn.Parameter:
            made = torch.nn.Parameter(made, tensor.requires_grad)
        memo[id(tensor)] = made.requires_grad_(tensor.requires_grad) if plain else made
    return memo


def _copy(value: Any, memo: dict[int, Any]) -> Any:
    """A nest built again around the tensors that ``memo`` has for its own."""
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, tuple):
        items = [_copy(item, memo) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if not isinstance(value, (list, dict, set, deque)) and not is_record(value):
        return value
    try:
        made = memo[id(value)] = copy.copy(value)
    except TypeError:  # an object of which there can be only one
        return value
    if isinstance(value, dict):
        for key, item in value.items():
            dict.__setitem__(made, key, _copy(item, memo))
    elif isinstance(value, list):
        made[:] = [_copy(item, memo) for item in value]
    if is_record(value):
        for name, item in vars(value).items():
            made.__dict__[name] = _copy(item, memo)
    return made


# ---- calls that nobody gave --------------------------------------------------------------------------------------


def made_from(call: Call) -> Iterator[tuple[str, Call]]:
    """Other calls of the same form, with what was changed in words: noise, then noise of other batch sizes."""
    tensors = list(tensors_in(call).values())
    if not tensors:
        return
    generator = torch.Generator().manual_seed(SEED)
    yield "noise", changed(call, lambda tensor: noise_like(tensor, generator))
    batch = _batch_size(tensors)
    for size in dict.fromkeys((1, batch + 1, 2 * batch)) if batch else ():
        if size != batch:
            yield f"batch of {size}", changed(call, _resizing(batch, size, generator))


def _resizing(batch: int, size: int, generator: torch.Generator) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda tensor: noise_like(_resized(tensor, batch, size), generator)


def _batch_size(tensors: list[torch.Tensor]) -> int:
    """The first dimension that most tensors share, the first of them if several are as frequent; 0 if there is none."""
    first = Counter(tensor.shape[0] for tensor in tensors if _is_dense(tensor) and tensor.ndim)
    return first.most_common(1)[0][0] if first else 0


def _is_dense(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_nested


def _resized(tensor: torch.Tensor, batch: int, size: int) -> torch.Tensor:
    """The tensor with its rows repeated, or some of them left out, if its first dimension is the batch."""
    if not _is_dense(tensor) or not tensor.ndim or tensor.shape[0] != batch:
        return tensor
    return tensor[torch.arange(size, device=tensor.device) % batch]


def noise_like(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Other values of the same form: integers in the range of the given ones, masks for masks, else normal noise."""
    if not _is_dense(tensor) or tensor.is_meta or not tensor.numel() or tensor.is_quantized:
        return tensor.clone()
    if tensor.dtype is torch.bool or _is_mask(tensor):
        made = torch.randint(0, 2, tensor.shape, generator=generator)
    elif tensor.is_floating_point() or tensor.is_complex():
        wide = torch.complex64 if tensor.is_complex() else torch.float32
        made = torch.randn(tensor.shape, dtype=wide, generator=generator)
    else:
        made = torch.randint(int(tensor.min()), int(tensor.max()) + 1, tensor.shape, generator=generator)
    return made.to(tensor.device, tensor.dtype)


def _is_mask(tensor: torch.Tensor) -> bool:
    """Zeros and ones, some of each."""
    is_one = tensor == 1
    return bool(((tensor == 0) | is_one).all()) and bool(is_one.any()) and not bool(is_one.all())


# ---- one observed run ------------------------------------------------------------------------------------------------

_GRADIENT_SEED = 20


@dataclass(frozen=True)
class Observation:
    """What one run showed, aspect by aspect: the words for an aspect, and its snapshot."""

    error: Exception | None = None
    aspects: dict[str, Snapshot] = field(default_factory=dict)


def observe(program: Any, call: Call, state: ProgramState, of_capture: bool, gradients: bool) -> Observation:
    """Run a program once; the state is left as the run made it."""
    error, result = None, None
    before = state.tensors(of_capture)
    try:
        result = program(*call[0], **call[1])
    except Exception as raised:
        error = raised
    aspects = {"result": snapshot(result)} if error is None else {}
    for place, value in _named_arguments(call):
        aspects[f"{place} afterwards"] = snapshot(value)
    for name, tensor in state.tensors(of_capture).items():
        if name in state.edited:  # by value it cannot be compared
            aspects[f"whether {name} is written"] = snapshot(state.is_written(tensor))
        else:
            aspects[f"{name} afterwards"] = snapshot(tensor)
    changes = {f" {name}": seen for name, seen in state.plain_changes(of_capture).items()}
    aspects["the changed attributes"] = Snapshot(dict, parts=changes)
    aspects["the random state"] = state.random_snapshot()
    if error is None:
        aspects["memory"] = Snapshot(set, tuple(_shared_memory(result, call)))
        if gradients:
            kept = {name: tensor for name, tensor in before.items() if name not in state.edited}
            aspects.update(_gradients(result, {**tensors_in_call(call), **kept}))
    return Observation(error, aspects)


def _named_arguments(call: Call) -> Iterator[tuple[str, Any]]:
    for place, value in enumerate(call[0]):
        yield f"argument {place}", value
    for name, value in call[1].items():
        yield f"argument {name}", value


def tensors_in_call(call: Call) -> dict[str, torch.Tensor]:
    """The tensors among the arguments by path."""
    named = (tensors_in(value, place) for place, value in _named_arguments(call))
    return {place: tensor for found in named for place, tensor in found.items()}


def _shared_memory(result: Any, call: Call) -> Iterator[str]:
    """Which tensors of the result are, or share memory with, which arguments."""
    arguments = tensors_in_call(call)
    for place, tensor in tensors_in(result, "result").items():
        for name, argument in arguments.items():
            if tensor is argument:
                yield f"{place} is {name}"
            elif _memory(tensor) is not None and _memory(tensor) == _memory(argument):
                yield f"{place} shares memory with {name}"


def _memory(tensor: torch.Tensor) -> int | None:
    if tensor.layout is not torch.strided or tensor.is_meta or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return None
    return tensor.untyped_storage().data_ptr() or None


def _gradients(result: Any, sources: dict[str, torch.Tensor]) -> dict[str, Snapshot]:
    """The gradients of a weighted sum of all results, with respect to the leaves that ask for one."""
    outputs = [tensor for tensor in tensors_in(result).values() if tensor.requires_grad and not tensor.is_meta]
    wanted = {name: tensor for name, tensor in sources.items() if tensor.requires_grad and tensor.is_leaf}
    if not outputs or not wanted:
        return {}
    generator = torch.Generator().manual_seed(_GRADIENT_SEED)
    weights = [torch.randn(output.shape, generator=generator).to(output) for output in outputs]
    try:
        found = torch.autograd.grad(outputs, list(wanted.values()), weights, allow_unused=True)
    except RuntimeError as error:  # the program wrote over what backward needs; its capture must do so too
        return {"the gradient": Snapshot(str, (str(error).partition("\n")[0],))}
    return {f"the gradient of {name}": snapshot(value) for name, value in zip(wanted, found, strict=True)}


def first_difference(wanted: Observation, got: Observation, tolerance: Tolerance) -> str | None:
    """The first aspect in which two runs differ, in words."""
    if wanted.error is not None or got.error is not None:
        found = _error_difference(wanted.error, got.error)
        if found is not None:
            return found
    for name, seen in wanted.aspects.items():
        if name == "memory":
            found = _memory_difference(seen, got.aspects[name])
        elif name not in got.aspects:
            found = f"{name} is missing"
        else:
            found = difference(seen, got.aspects[name], name, tolerance)
        if found is not None:
            return found
    extra = [name for name in got.aspects if name not in wanted.aspects]
    return f"{extra[0]} exists only for the captured program" if extra else None


def _error_difference(wanted: Exception | None, got: Exception | None) -> str | None:
    if wanted is not None and got is not None and type(wanted) is type(got):
        return None
    return f"the captured program {_deed(got)}, the original {_deed(wanted)}"


def _deed(error: Exception | None) -> str:
    return "returns" if error is None else f"raises {type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _memory_difference(wanted: Snapshot, got: Snapshot) -> str | None:
    missing = [text for text in wanted.facts if text not in got.facts]
    added = [text for text in got.facts if text not in wanted.facts]
    if missing:
        return f"in the captured program it does not hold that {missing[0]}"
    return f"only in the captured program {added[0]}" if added else None


# ---- which node is wrong ---------------------------------------------------------------------------------------------


Place = tuple[Node | None, str]
NOWHERE: Place = (None, "")


class Recording(Interpreter):
    """Runs a graph and keeps a snapshot of each value, as it was when its node had run."""

    def __init__(self, root: Any, graph: Graph) -> None:
        super().__init__(root, graph=graph)
        self.extra_traceback = False
        self.seen: dict[Node, Snapshot] = {}
        self.failed: tuple[Node, Exception] | None = None

    def run_node(self, n: Node) -> Any:
        """The value of one node, remembered."""
        try:
            value = super().run_node(n)
        except Exception as error:
            self.failed = (n, error)
            raise
        self.seen[n] = snapshot(value)
        return value


def locate(captured: Any, fn: Any, call: Call, state: ProgramState, tolerance: Tolerance) -> Place:
    """The first node of ``captured`` that does not do what the original does, and why it is thought so."""
    try:
        reference = _captured_again(fn, copied(call))
    except Exception as error:  # the original cannot be captured on this input, so there is nothing to compare with
        return _failing_node(captured, call, state) or (None, f"no second capture: {str(error).partition(chr(10))[0]}")
    finally:
        state.put_back()
    wanted = record(reference, call, state)
    got = record(captured, call, state)
    if got.failed is not None and wanted.failed is None:
        return got.failed[0], f"it raises {type(got.failed[1]).__name__}"
    return _first_difference(wanted, got, tolerance)


def _captured_again(fn: Any, call: Call) -> Any:
    framework = next(present())
    return capture_with(framework, fn, call[0], call[1], Options(), "again")[0]


def _failing_node(captured: Any, call: Call, state: ProgramState) -> Place | None:
    failed = record(captured, call, state).failed
    return None if failed is None else (failed[0], f"it raises {type(failed[1]).__name__}")


def record(program: Any, call: Call, state: ProgramState) -> Recording:
    """Run a program's graph on a copy of the call, and put everything back."""
    recording = Recording(program.root if isinstance(program, GraphFunction) else program, program.graph)
    try:
        recording.run(initial_env=_bound(program, copied(call)))
    except Exception as error:
        if recording.failed is None:
            raise ClewError(f"the graph cannot be run on this input: {error}") from error
    finally:
        state.put_back()
    return recording


def _bound(program: Any, call: Call) -> dict[Node, Any]:
    """The value of each placeholder."""
    bound = inspect.signature(getattr(program, "forward", program)).bind(*call[0], **call[1])
    bound.apply_defaults()
    inputs = program.graph.find_nodes(op="placeholder")
    return {node: bound.arguments[str(node.target).lstrip("*")] for node in inputs}


def _steps(recording: Recording) -> list[Node]:
    """The nodes that can be told from others: all calls but guards, attributes, and the output."""
    return [node for node in recording.graph.nodes if node.op != "placeholder" and not _is_guard(node)]


def _is_guard(node: Node) -> bool:
    return node.op == "call_function" and node.target in CHECKS


def _key(node: Node) -> tuple[str, str]:
    return node.op, format_target(node.target)


def _first_difference(wanted: Recording, got: Recording, tolerance: Tolerance) -> Place:
    """The first guilty node; where all common values agree, the first call that only one of the programs makes."""
    theirs, ours = _steps(wanted), _steps(got)
    matcher = difflib.SequenceMatcher(None, [*map(_key, theirs)], [*map(_key, ours)], autojunk=False)
    partings: list[Place] = []
    trusted: set[Node] = set()
    for tag, start, end, our_start, our_end in matcher.get_opcodes():
        if tag != "equal":
            partings += _partings(theirs[start:end], ours[our_start:our_end], ours[min(our_start, len(ours) - 1)])
            continue
        for left, right in zip(theirs[start:end], ours[our_start:our_end], strict=True):
            found = _value_difference(wanted, got, left, right, tolerance)
            if found is not None:
                return _guilty(right, partings, trusted) or (right, found)
            if right in got.seen and got.seen[right].data is not None:
                _add_with_inputs(right, trusted)
    suspects = [parting for parting in partings if parting[0] not in trusted] or partings
    return suspects[0] if suspects else NOWHERE


def _value_difference(wanted: Recording, got: Recording, left: Node, right: Node, limit: Tolerance) -> str | None:
    if left not in wanted.seen or right not in got.seen or is_unfilled(right):
        return None
    if issubclass(wanted.seen[left].kind, torch.nn.Module):  # of a class of its own in each capture
        return None
    return difference(wanted.seen[left], got.seen[right], right.name, limit)


def _partings(theirs: list[Node], ours: list[Node], following: Node) -> list[Place]:
    """The places where the two programs make other calls: each such call of ours, or the one that comes too early."""
    original = ", ".join(format_target(node.target) for node in theirs[:3]) or "nothing"
    captured = ", ".join(format_target(node.target) for node in ours[:3]) or "nothing"
    reason = f"here the captured graph calls {captured}, the original {original}"
    return [(node, reason) for node in ours or [following]]


def _guilty(node: Node, partings: list[Place], trusted: set[Node]) -> Place | None:
    """The first call of ours alone that a wrong value may come from: as an input, or through a write."""
    sources: set[Node] = set()
    _add_with_inputs(node, sources)
    for earlier in node.graph.nodes:
        if earlier is node:
            break
        if earlier.op != "placeholder" and not _is_guard(earlier) and effect_of(earlier) is not Effect.NONE:
            _add_with_inputs(earlier, sources)
    return next((place for place in partings if place[0] not in trusted and place[0] in sources), None)


def _add_with_inputs(node: Node, found: set[Node]) -> None:
    """Add a node and all that its value comes from."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.all_input_nodes
