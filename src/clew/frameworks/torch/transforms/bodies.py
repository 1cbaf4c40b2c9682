"""Functions of torch that take functions: checkpoint, vmap, grad and their like become one call with a captured body.

The transform is run for real, once. The function that it is handed is recorded, when the transform calls it, into a
graph of its own; values of the program around it that it uses are passed to the body explicitly. The call in the graph
hands the body to the same transform, so memory, gradients and random numbers are those of the original.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch.overrides import TorchFunctionMode

from clew.capture.bytecode.try_blocks import ENTRANCES
from clew.capture.recording.outputs import Outputs
from clew.capture.recording.recorder import Pending, Scalar
from clew.frameworks.torch.refusals import refusal
from clew.ir.arguments import all_nodes, leaves
from clew.ir.effects import pure
from clew.ir.format import calls_in
from clew.ir.graph import Graph

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

ENTRANCES.add(__name__)
Current: TypeAlias = "Callable[[], TorchRecorder | None]"


@pure
def call_with(function: Callable[..., Any], body: Any, values: tuple[Any, ...], *args: Any, **kwargs: Any) -> Any:
    """``function(body, *args, **kwargs)``, where the body also gets ``values`` of the program around it, first."""
    return function(closed(body, values), *args, **kwargs)


@pure
def transform_with(
    transform: Callable[..., Any],
    options: dict[str, Any],
    body: Any,
    values: tuple[Any, ...],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """``transform(body, **options)(*args, **kwargs)``, where the body also gets ``values``, first."""
    return transform(closed(body, values), **options)(*args, **kwargs)


def closed(body: Any, values: tuple[Any, ...]) -> Callable[..., Any]:
    return functools.partial(body, *values) if values else body  # type: ignore[no-any-return]


class PlainNumbers(TorchFunctionMode):
    """Gives torch plain numbers where a function still holds traced ones."""

    def __init__(self, recorder: TorchRecorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*self.recorder.concrete(args), **self.recorder.concrete(kwargs or {}))


class KeepingWrites(PlainNumbers):
    """Keeps what tensors hold before calls that are not recorded write to them: rounds of a loop, say, that come to
    tensors which the recorded round has not met."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.recorder.is_writing(func, args, kwargs):
            for value in leaves((args, kwargs)):
                if isinstance(value, torch.Tensor):
                    self.recorder.is_written(value)
        return super().__torch_function__(func, types, args, kwargs)


def run_plainly(
    recorder: TorchRecorder, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run a function of a program that has been recorded already, by a backward pass say; nothing is recorded."""
    with recorder.paused(), PlainNumbers(recorder):
        return recorder.concrete(function(*args, **kwargs))


class RecordedBody:
    """A function that records itself into a graph whenever it is called; each run must come out the same."""

    def __init__(self, recorder: TorchRecorder, function: Callable[..., Any]) -> None:
        self.recorder = recorder
        self.function = function
        self.graph: Graph | None = None
        self.values: list[Any] = []
        self.finished = False
        self._bound: list[tuple[int, Any]] = []
        self.__name__ = getattr(function, "__name__", "body")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = self.recorder
        if self.finished or not recorder.open:  # run again, by a backward pass say
            return run_plainly(recorder, self.function, args, kwargs)
        depth, recorder.depth, before = recorder.depth, 0, self._bound
        body, self._bound = recorder.bodies.begin(), []
        recorder.properties.read.clear()
        try:
            self._bind(body.graph, args, kwargs)
            result = self.function(*args, **kwargs)
            with recorder.paused(), torch._C.DisableTorchFunction():
                outputs = Outputs(recorder)
                outputs.look_at(result)
                body.graph.output(recorder.bodies.localized(outputs.of(result), body.graph))
        finally:
            recorder.bodies.end()
            self._release()
            recorder.depth, self._bound = depth, before
        self._keep(body.graph, list(body.free))
        return recorder.concrete(result)

    def nodes(self) -> Iterator[Any]:
        """The nodes of the body and of bodies inside it."""
        return all_nodes(self.graph)

    def _keep(self, graph: Graph, values: list[Any]) -> None:
        graph.eliminate_dead_code()
        if self.graph is not None and (calls_in(graph) != calls_in(self.graph) or values != self.values):
            raise refusal(f"{self.__name__}, which torch runs several times and which takes other paths each time,")
        self.graph, self.values = graph, values

    def _bind(self, graph: Graph, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for place, value in enumerate(args):
            self._track(value, graph.placeholder(_name_of(self.function, place)))
        for name, value in kwargs.items():
            self._track(value, graph.placeholder(name))

    def _track(self, value: Any, place: Any) -> None:
        """Inside the body an array that it gets is its parameter, whatever the array was outside."""
        if isinstance(value, torch.Tensor):
            self._bound.append((id(value), self.recorder.nodes.get(id(value))))
            self.recorder.track(value, place)
        elif isinstance(value, dict):
            for key, item in value.items():
                self._track(item, Pending(operator.getitem, (place, key)))
        elif isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
            for index, item in enumerate(value):
                self._track(item, Pending(operator.getitem, (place, index)))

    def _release(self) -> None:
        for identity, entry in reversed(self._bound):
            if entry is None:
                self.recorder.nodes.pop(identity, None)
            else:
                self.recorder.nodes[identity] = entry
        self.recorder.properties.read.clear()


def _name_of(function: Any, place: int) -> str:
    """The name of a function's parameter, for people; the namespace of the graph makes it unique."""
    code = getattr(getattr(function, "forward", function), "__code__", None)
    names = [name for name in code.co_varnames[: code.co_argcount] if name != "self"] if code is not None else []
    return names[place] if place < len(names) else f"arg{place}"


def record(
    recorder: TorchRecorder, head: tuple[Any, ...], function: Any, run: Callable[..., Any], args: Any, kwargs: Any
) -> Any:
    """Run ``run(body, args, kwargs)`` and record it as a call of ``head`` with the body, its values and operands."""
    if not callable(function):
        return run(function, args, kwargs)
    body = RecordedBody(recorder, function)
    operands, named = operands_of(recorder, args), operands_of(recorder, kwargs)
    value = recorder.perform(lambda: run(body, args, kwargs), (), {})
    if body.graph is None:
        raise refusal(f"{body.__name__}, which torch was handed and did not run,")
    body.finished = True
    target, *rest = head
    node = recorder.create(target, (*rest, body.graph, tuple(body.values), *operands), named)
    return result_of(recorder, recorder.concrete(value), node)


def operands_of(recorder: TorchRecorder, value: Any) -> Any:
    """What the call in the graph gets: arrays, numbers and nests of them; the recorded body needs nothing else."""
    if type(value) is tuple:
        return tuple(operands_of(recorder, item) for item in value)
    if type(value) is list:
        return [operands_of(recorder, item) for item in value]
    if type(value) is dict:
        return {key: operands_of(recorder, item) for key, item in value.items()}
    known = (torch.Tensor, int, float, bool, str, complex, torch.dtype, torch.device, torch.Size)
    if issubclass(type(value), Scalar) or isinstance(value, known):
        return recorder.argument(value)
    _check_holds_nothing(value)
    return None


def _check_holds_nothing(value: Any) -> None:
    """A nest of a class that torch takes apart has leaves of its own, which the call would miss."""
    if not torch.utils._pytree.tree_is_leaf(value):
        raise refusal(f"a {type(value).__name__} handed to a function that torch runs")


def result_of(recorder: TorchRecorder, value: Any, place: Any) -> Any:
    """The result as the program shall see it; a function among it, as ``vjp`` gives, records its calls too."""
    if type(value) is tuple:
        return tuple(result_of(recorder, item, Pending(operator.getitem, (place, i))) for i, item in enumerate(value))
    if type(value) is dict:
        return {key: result_of(recorder, item, Pending(operator.getitem, (place, key))) for key, item in value.items()}
    if callable(value) and not isinstance(value, torch.Tensor):
        return _recording_function(recorder, value, place)
    return recorder.result(value, place)


def _recording_function(recorder: TorchRecorder, function: Callable[..., Any], place: Any) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if recorder.depth or not recorder.open:
            return function(*args, **kwargs)
        node_args, node_kwargs = recorder.argument(args), recorder.argument(kwargs)
        value = recorder.perform(function, args, kwargs)
        node = recorder.create(operator.call, (recorder.resolve(place), *node_args), node_kwargs)
        return result_of(recorder, value, node)

    return call
