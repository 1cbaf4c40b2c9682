"""Functions with ``functools.lru_cache`` in a torch program: their bodies are recorded, not what the cache holds.

A cache that an earlier call has filled gives tensors that nobody saw being made. During a capture such a function is
run again, and recorded, if its arguments are numbers and objects; its result must be what the cache gives. Where the
body reads state or has effects, cache and body may differ later, and the program is refused. A tensor is a key by its
identity: one that the program has just made is in no cache, and with any other the call stays one node.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator
from types import CellType, CodeType, FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy
import torch

from clew import tree
from clew.capture.bytecode.instructions import variables_of
from clew.capture.guards.notes import CHECKS, Variable
from clew.capture.patches import Patches
from clew.capture.python.caches import only_calculates
from clew.capture.recording.opaque_calls import CannotFollow, state_behind
from clew.capture.recording.recorder import Scalar
from clew.capture.restart import Restart
from clew.capture.state.memory import Memory
from clew.capture.state.surroundings import Surroundings
from clew.errors import CaptureError
from clew.frameworks.numpy.caches import past
from clew.frameworks.torch.refusals import refusal
from clew.ir.arguments import leaves
from clew.ir.effects import effect_of
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.source import is_hidden
from clew.ir.types import ArrayType

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

Current: TypeAlias = "Callable[[], TorchRecorder | None]"
Place = tuple[Any, str]
"""Where a cached function is found: a dict of globals, a module or a class, and its name there."""
_MODES = (torch._C._set_grad_enabled, "__enter__", "__exit__")
_ALWAYS_NEW = frozenset(
    "__getitem__ clone unsqueeze cumsum logical_not __invert__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ "
    "__add__ __sub__ __mul__ __truediv__ add sub mul div eq ne lt le gt ge new_ones new_zeros".split()
)
"""Methods that give a new tensor for every input, never one of their own arguments."""
_CACHED = type(functools.lru_cache(lambda: None))
_NEW_OPERATORS = frozenset(
    getattr(operator, name)
    for name in "add sub mul truediv floordiv mod pow matmul lt le gt ge eq ne and_ or_ xor neg invert".split()
)
_HOLDING = frozenset({_CACHED, staticmethod, classmethod})
"""The kinds of values, besides functions, that are a cached function or may keep one in a closure."""


_ONLY_ONCE = "its body changes state, which happens only when the cache has no result yet"


def check_hash(met: list[Place], frame: FrameType) -> None:
    """A traced number is hashed in this frame: start over if a cache does it of which the capture did not know.

    Those are functions of packages that the program merely uses. ``met`` learns them.
    """
    known = {(id(holder), name) for holder, name in met}
    found = [(holder, name) for holder, name in _cached_in(frame) if (id(holder), name) not in known]
    if found:
        met += found
        raise Restart


def _cached_in(frame: FrameType) -> Iterator[Place]:
    """The cached functions that the code of a frame names: variables, and attributes of what its variables hold."""
    names = frame.f_code.co_names
    owners = [*variables_of(frame).values(), *(frame.f_globals[name] for name in names if name in frame.f_globals)]
    holders: dict[int, Any] = {id(frame.f_globals): frame.f_globals}
    for owner in owners:
        kind = owner if isinstance(owner, type) else type(owner)
        holders |= {id(holder): holder for holder in ((owner,) if isinstance(owner, ModuleType) else kind.__mro__)}
    for holder in holders.values():
        held = holder if isinstance(holder, dict) else vars(holder)
        yield from ((holder, name) for name in names if isinstance(held.get(name), _CACHED) and _is_users(held[name]))


def install_in(
    patches: Patches,
    current: Current,
    surroundings: Surroundings,
    modules: Iterable[Any] = (),
    met: Iterable[Place] = (),
) -> None:
    """Let cached functions that the program can reach, or has met, report to the capture that ``current`` names."""
    make = functools.partial(_recording, current=current)
    for holder, name in met:
        if isinstance(holder, type):
            patches.on_class(holder, name, make)
        else:
            patches.in_dict(vars(holder) if isinstance(holder, ModuleType) else holder, name, make)
    used = surroundings.derived(_all_spelled)
    kinds = {kind for own in set(map(type, modules)) for kind in own.__mro__}
    for kind in [kind for kind in kinds if not kind.__module__.startswith(("torch.", "builtins"))]:
        for name, value in [item for item in vars(kind).items() if _may_hold(item[1])]:
            if _is_cached(value):
                patches.on_class(kind, name, make)
            else:
                _in_closure(patches, value, make)
    for names in surroundings.namespaces.values():
        for name in used.intersection(names):  # which goes over the few names of the module
            value = names[name]
            if not _may_hold(value):
                continue
            if _is_cached(value):
                patches.in_dict(names, name, make)
            else:
                _in_closure(patches, value, make)
    for function in surroundings.derived(_with_closures):
        _in_closure(patches, function, make)


def _may_hold(value: Any) -> bool:
    """Whether a value is a cached function, or may keep one in a closure."""
    kind = type(value)
    return value.__closure__ is not None if kind is FunctionType else kind in _HOLDING


def _is_cached(value: Any) -> bool:
    return type(value) is _CACHED and _is_users(value)


def _all_spelled(functions: Iterable[FunctionType]) -> frozenset[str]:
    return frozenset(name for function in functions for name in _spelled(function.__code__))


def _with_closures(functions: Iterable[FunctionType]) -> list[FunctionType]:
    return [function for function in functions if function.__closure__]


@functools.lru_cache(maxsize=16384)
def _spelled(code: CodeType) -> frozenset[str]:
    """All names and texts in a function and in those inside it: what it can ask another module for."""
    inner = [_spelled(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    texts = [constant for constant in code.co_consts if isinstance(constant, str)]
    return frozenset({*code.co_names, *texts}).union(*inner)


def _is_users(cached: Any) -> bool:
    code = getattr(cached.__wrapped__, "__code__", None)
    return code is not None and not is_hidden(code)


def _in_closure(patches: Patches, value: Any, make: Callable[[Any], Any]) -> None:
    """A decorator of the user's may keep the cached function in a variable of its own."""
    inner = value if type(value) is FunctionType else getattr(value, "__func__", None)
    if type(inner) is not FunctionType or inner.__closure__ is None:
        return
    for cell in inner.__closure__:
        held = _contents(cell)
        if _is_cached(held):
            patches.in_cell(cell, make)


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


@functools.lru_cache(maxsize=1024)
def _recording(cached: Any, current: Current) -> Callable[..., Any]:
    """What stands for a cached function; made once, since every capture of a program needs the same."""

    @functools.wraps(cached)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None:
            return cached(*args, **kwargs)
        return _call(recorder, cached, args, kwargs)

    for name in ("cache_info", "cache_clear", "cache_parameters"):
        setattr(call, name, _refusing(cached, getattr(cached, name), current))
    return call


def _refusing(cached: Any, original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """A question about the cache itself, which the graph does not use."""

    def ask() -> Any:
        if current() is not None:
            raise _refusal(cached, "the program asks how its cache stands")
        return original()

    return ask


def _call(recorder: TorchRecorder, cached: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    for holder, name in recorder.surroundings.add(cached.__wrapped__):
        recorder.state.watch_variable(Variable(holder, name))
    info = cached.cache_info()
    if not (info.hits or info.misses or info.currsize):  # single results cannot be taken out of a cache
        recorder.caches.filled.append(cached)
    if recorder.arrays is not None and _gives_arrays(recorder, cached, args, kwargs):
        return past(recorder.arrays, cached, args, kwargs)
    given = list(_leaves((args, kwargs)))
    tensors = [leaf for leaf in given if isinstance(leaf, torch.Tensor)]
    if tensors:
        return _of_tensors(recorder, cached, args, kwargs, tensors)
    if not any(issubclass(type(leaf), Scalar) for leaf in given):
        hits = cached.cache_info().hits
        last = recorder.graph._root._prev
        known = _asked(cached, args, kwargs)
        if not any(isinstance(leaf, torch.Tensor) for leaf in _leaves(known)):
            return known
        if cached.cache_info().hits == hits:
            _check_constant(recorder, cached, last)
            _freeze(recorder, known)
            return known
    else:
        with recorder.paused():
            known = _asked(cached, recorder.concrete(args), recorder.concrete(kwargs))
        if not any(isinstance(leaf, torch.Tensor) for leaf in _leaves(known)):
            return _of_numbers(recorder, cached, args, kwargs, known)
    return _again(recorder, cached, args, kwargs, known)


def _asked(cached: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a cached function gives; refused if its body runs for that, and changes anything."""
    around = state_behind(cached, (args, kwargs), (torch.Tensor, torch.nn.Module))
    result = cached(*args, **kwargs)
    if around.changed():
        raise _refusal(cached, _ONLY_ONCE)
    return result


def _gives_arrays(recorder: TorchRecorder, cached: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a cached function gives arrays for these arguments."""
    if any(isinstance(leaf, torch.Tensor) for leaf in _leaves((args, kwargs))):
        return False
    with recorder.paused(), recorder.border().places.suspended():
        known = cached(*recorder.concrete(args), **recorder.concrete(kwargs))
    return any(isinstance(leaf, (numpy.ndarray, numpy.generic)) for leaf in _leaves(known))


def _of_numbers(recorder: TorchRecorder, cached: Any, args: tuple[Any, ...], kwargs: dict[str, Any], known: Any) -> Any:
    """A call that calculates with traced numbers: recorded again, or guarded on the numbers that the cache asks for.

    The cache itself never sees a traced number, which would outlive the capture there. The numbers are read before the
    body runs: whatever else it reads, a size of a parameter for one, is none of its arguments.
    """
    if not only_calculates(cached.__wrapped__):
        for leaf in _leaves((args, kwargs)):
            if issubclass(type(leaf), Scalar):
                hash(leaf)  # which guards it
        return known
    held = Memory(recorder.is_end)
    held.remember((args, kwargs))
    recorder.argument([leaf for leaf in _leaves((args, kwargs)) if issubclass(type(leaf), Scalar)])
    result = _again(recorder, cached, args, kwargs, known)
    if held.has_changed():
        raise _refusal(cached, "it changes its arguments")
    recorder.state.watch_variable(Variable({cached.__name__: result}, cached.__name__))
    return result


def _of_tensors(
    recorder: TorchRecorder, cached: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Any]
) -> Any:
    """A call with tensors among its arguments, which the cache knows by identity, whatever they hold by now."""
    last = recorder.graph._root._prev
    if all(_is_made_here(recorder.known(tensor)) for tensor in tensors):
        result = cached.__wrapped__(*args, **kwargs)
        _check_constant(recorder, cached, last)
        recorder.caches.frozen += tensors  # asked again after a write, the cache would give what it gave before
    else:
        with recorder.streams.followed():
            why = "its cache remembers tensors by identity"
            result = recorder.whole("call_function", cached, cached, args, kwargs, tensors, why, cached)
    _freeze(recorder, result)
    return result


def _is_made_here(node: Node | None) -> bool:
    """Whether each call of the graph has a new tensor here: no input, no attribute, and nothing that may be one."""
    if node is None or node.op not in ("call_method", "call_function"):
        return False
    if node.target is operator.getitem:  # of a tensor, not of what holds some
        return isinstance(node.args[0], Node) and isinstance(node.args[0].value_type, ArrayType)
    return node.target in (_ALWAYS_NEW if node.op == "call_method" else _NEW_OPERATORS)


def _again(recorder: TorchRecorder, cached: Any, args: tuple[Any, ...], kwargs: dict[str, Any], known: Any) -> Any:
    """Run the body of a function whose result the cache has."""
    last = recorder.graph._root._prev
    around = state_behind(cached, (args, kwargs), (torch.Tensor, torch.nn.Module))
    result = cached.__wrapped__(*args, **kwargs)
    _check_constant(recorder, cached, last)
    if around.changed():
        raise _refusal(cached, _ONLY_ONCE)
    with recorder.paused():
        before, after = list(_leaves(known)), list(_leaves(recorder.concrete(result)))
        same = len(before) == len(after) and all(map(_same, before, after))
    if not same:
        raise _refusal(cached, "what its cache holds is not what it computes now")
    _freeze(recorder, result)
    return result


def _freeze(recorder: TorchRecorder, result: Any) -> None:
    """A write to what a cache gives would be seen by the next one who asks the cache."""
    recorder.caches.frozen += [leaf for leaf in _leaves(result) if isinstance(leaf, torch.Tensor)]


def _check_constant(recorder: TorchRecorder, cached: Any, last: Any) -> None:
    """What was recorded since the node ``last`` must give the same for the same arguments, always."""
    made: set[Any] = set()
    for node in recorder.bodies.since(last):
        made.add(node)
        if not _stays_inside(node, made):
            raise _refusal(cached, f"{node.name} in its body acts only when the cache has no result yet")
        if any(source.op == "get_attr" for source in node.all_input_nodes):
            raise _refusal(cached, "it reads tensors that may change while its cache stays as it is")


def _stays_inside(node: Any, made: set[Any]) -> bool:
    """Whether a node of a cached body does nothing that could be seen outside: it may write to what the body made."""
    effect = effect_of(node)
    if effect is Effect.NONE or node.target in CHECKS or node.target in _MODES:
        return True
    return effect is Effect.WRITE and not node.kwargs and bool(node.args) and node.args[0] in made


def _refusal(cached: Any, why: str) -> CaptureError:
    return refusal(f"{cached.__wrapped__.__name__}, a function with a cache,", why, CannotFollow)


def _leaves(value: Any) -> Iterator[Any]:
    """All leaves, also those in kinds of tuples and lists that no registry knows, such as a traced size."""
    for leaf in tree.flatten(value)[0]:
        yield from leaves(leaf)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        alike = (left.dtype, left.device, left.shape) == (right.dtype, right.device, right.shape)
        return alike and torch.equal(left.nan_to_num(), right.nan_to_num())
    return type(left) is type(right) and bool(left is right or left == right)
