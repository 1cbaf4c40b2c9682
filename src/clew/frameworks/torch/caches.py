"""Functions with ``functools.lru_cache`` in a torch program: their bodies are recorded, not what the cache holds.

A cache that an earlier call has filled gives tensors that nobody saw being made. During a capture such a function is
run again, and recorded, if its arguments are numbers and objects; its result must be what the cache gives. Where the
body reads state or has effects, cache and body may differ later, and the program is refused. A tensor is a key by its
identity: one that the program has just made is in no cache, and with any other the call stays one node.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy
import torch

from clew import tree
from clew.capture.guards.notes import Variable
from clew.capture.python.caches import CachedCalls, only_calculates
from clew.capture.recording.opaque_calls import CannotFollow
from clew.capture.recording.recorder import Scalar
from clew.capture.state.memory import Memory
from clew.ir.arguments import leaves
from clew.ir.node import Node
from clew.ir.types import ArrayType

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

_ALWAYS_NEW = frozenset(
    "__getitem__ clone unsqueeze cumsum logical_not __invert__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ "
    "__add__ __sub__ __mul__ __truediv__ add sub mul div eq ne lt le gt ge new_ones new_zeros".split()
)
"""Methods that give a new tensor for every input, never one of their own arguments."""
_NEW_OPERATORS = frozenset(
    getattr(operator, name)
    for name in "add sub mul truediv floordiv mod pow matmul lt le gt ge eq ne and_ or_ xor neg invert".split()
)


def _nothing(frame: FrameType) -> None:
    """Before a traced number is hashed in a run that knows no program."""


class TorchCachedCalls(CachedCalls):
    """Calls of cached functions by a torch program."""

    kind = CannotFollow
    ends = (torch.Tensor, torch.nn.Module)
    switches = (torch._C._set_grad_enabled, "__enter__", "__exit__")

    def __init__(self, recorder: TorchRecorder) -> None:
        super().__init__(recorder.is_end)
        self._recorder = recorder
        self.filled: list[Any] = []
        """Caches that were empty before the program called them."""
        self.before_hash: Callable[[FrameType], None] = _nothing

    def call(self, cached: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the cache holds, if no tensor is in it; else what the body gives, recorded."""
        result = self._result(cached, args, kwargs)
        self.hand_out(cached, result)
        return result

    def _result(self, cached: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        recorder = self._recorder
        for holder, name in recorder.surroundings.add(cached.__wrapped__):
            recorder.state.watch_variable(Variable(holder, name))
        info = cached.cache_info()
        if not (info.hits or info.misses or info.currsize):  # single results cannot be taken out of a cache
            self.filled.append(cached)
        if recorder.arrays is not None and self._gives_arrays(cached, args, kwargs):
            return recorder.arrays.cached.call(cached, args, kwargs)
        given = list(_leaves((args, kwargs)))
        tensors = [leaf for leaf in given if isinstance(leaf, torch.Tensor)]
        if tensors:
            return self._of_tensors(cached, args, kwargs, tensors)
        if not any(issubclass(type(leaf), Scalar) for leaf in given):
            hits = cached.cache_info().hits
            last = recorder.graph._root._prev
            known = self._asked(cached, args, kwargs)
            if not any(isinstance(leaf, torch.Tensor) for leaf in _leaves(known)):
                return known
            if cached.cache_info().hits == hits:
                self.check_recorded(cached, recorder.bodies.since(last))
                self._freeze(cached, known)
                return known
        else:
            with recorder.paused():
                known = self._asked(cached, recorder.concrete(args), recorder.concrete(kwargs))
            if not any(isinstance(leaf, torch.Tensor) for leaf in _leaves(known)):
                return self._of_numbers(cached, args, kwargs, known)
        return self._again(cached, args, kwargs, known)

    def _asked(self, cached: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a cached function gives; refused if its body runs for that, and changes anything."""
        with self.without_effects(cached, (args, kwargs)):
            return cached(*args, **kwargs)

    def _gives_arrays(self, cached: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a cached function gives arrays for these arguments."""
        recorder = self._recorder
        if any(isinstance(leaf, torch.Tensor) for leaf in _leaves((args, kwargs))):
            return False
        with recorder.paused(), recorder.border().places.suspended():
            known = cached(*recorder.concrete(args), **recorder.concrete(kwargs))
        return any(isinstance(leaf, (numpy.ndarray, numpy.generic)) for leaf in _leaves(known))

    def _of_numbers(self, cached: Any, args: tuple[Any, ...], kwargs: dict[str, Any], known: Any) -> Any:
        """A call that calculates with traced numbers: recorded again, or guarded on the numbers that are its keys.

        The cache itself never sees a traced number, which would outlive the capture there. The numbers are read before
        the body runs: whatever else it reads, a size of a parameter for one, is none of its arguments.
        """
        recorder = self._recorder
        numbers = [leaf for leaf in _leaves((args, kwargs)) if issubclass(type(leaf), Scalar)]
        if not only_calculates(cached.__wrapped__):
            for number in numbers:
                hash(number)  # which guards it
            return known
        held = Memory(recorder.is_end)
        held.remember((args, kwargs))
        recorder.argument(numbers)
        result = self._again(cached, args, kwargs, known)
        if held.has_changed():
            raise self.refusal(cached, "it changes its arguments")
        recorder.state.watch_variable(Variable({cached.__name__: result}, cached.__name__))
        return result

    def _of_tensors(self, cached: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Any]) -> Any:
        """A call with tensors among its arguments, which the cache knows by identity, whatever they hold by now."""
        recorder = self._recorder
        last = recorder.graph._root._prev
        if all(_is_made_here(recorder.known(tensor)) for tensor in tensors):
            result = cached.__wrapped__(*args, **kwargs)
            self.check_recorded(cached, recorder.bodies.since(last))
            self._freeze(cached, tensors)  # asked again after a write, the cache would give what it gave before
        else:
            with recorder.streams.followed():
                why = "its cache remembers tensors by identity"
                result = recorder.whole("call_function", cached, cached, args, kwargs, tensors, why, cached)
        self._freeze(cached, result)
        return result

    def _again(self, cached: Any, args: tuple[Any, ...], kwargs: dict[str, Any], known: Any) -> Any:
        """Run the body of a function whose result the cache has."""
        recorder = self._recorder
        last = recorder.graph._root._prev
        with self.without_effects(cached, (args, kwargs)):
            result = cached.__wrapped__(*args, **kwargs)
            self.check_recorded(cached, recorder.bodies.since(last))
        with recorder.paused():
            before, after = list(_leaves(known)), list(_leaves(recorder.concrete(result)))
            same = len(before) == len(after) and all(map(_same, before, after))
        if not same:
            raise self.refusal(cached, "what its cache holds is not what it computes now")
        self._freeze(cached, result)
        return result

    def _freeze(self, cached: Any, result: Any) -> None:
        """A write to what a cache gives would be seen by the next one who asks the cache."""
        self.arrays += [(leaf, cached) for leaf in _leaves(result) if isinstance(leaf, torch.Tensor)]


def _is_made_here(node: Node | None) -> bool:
    """Whether each call of the graph has a new tensor here: no input, no attribute, and nothing that may be one."""
    if node is None or node.op not in ("call_method", "call_function"):
        return False
    if node.target is operator.getitem:  # of a tensor, not of what holds some
        return isinstance(node.args[0], Node) and isinstance(node.args[0].value_type, ArrayType)
    return node.target in (_ALWAYS_NEW if node.op == "call_method" else _NEW_OPERATORS)


def _leaves(value: Any) -> Iterator[Any]:
    """All leaves, also those in kinds of tuples and lists that no registry knows, such as a traced size."""
    for leaf in tree.flatten(value)[0]:
        yield from leaves(leaf)


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        alike = (left.dtype, left.device, left.shape) == (right.dtype, right.device, right.shape)
        return alike and torch.equal(left.nan_to_num(), right.nan_to_num())
    return type(left) is type(right) and bool(left is right or left == right)
