"""Steps of training inside a program: what optimizers and schedulers of learning rates do.

A step of one that was there before the program ran is one call of the graph, on that very object, which keeps its own
state: moments, counts, learning rates. An optimizer that the program makes itself is followed like any other code.
``zero_grad`` takes gradients away without asking whether there are any, so that one capture is good for all steps.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from clew.capture.patches import Patches
from clew.capture.state.containers import SIMPLE
from clew.capture.state.memory import Memory
from clew.capture.state.reachable import attribute_names
from clew.capture.state.surroundings import Surroundings
from clew.errors import CaptureError
from clew.frameworks.torch.refusals import refusal
from clew.ir.effects import pure

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

Current: TypeAlias = "Callable[[], TorchRecorder | None]"

TRAINERS = (Optimizer, LRScheduler)
"""What steps and keeps its own state."""
_ASKING = frozenset(
    "param_groups defaults state state_dict get_last_lr _last_lr last_epoch base_lrs get_lr __dict__".split()
)
"""Attributes through which a program can read what an optimizer or a scheduler holds."""


def take_step(trainer: Any, *args: Any) -> Any:
    """A step of an optimizer or of a scheduler."""
    return trainer.step(*args)


def fill_gradients(*parameters: torch.Tensor) -> None:
    """Let the gradients that there are be zero, and belong to no history."""
    for gradient in [parameter.grad for parameter in parameters if parameter.grad is not None]:
        if gradient.grad_fn is not None:
            gradient.detach_()
        else:
            gradient.requires_grad_(False)
        gradient.zero_()


@pure
def settings_of(trainer: Any) -> tuple[Any, ...]:
    """The plain values that an optimizer or a scheduler holds, such as learning rates; other objects by identity."""
    optimizer = trainer if isinstance(trainer, Optimizer) else trainer.optimizer
    groups = [(*group.items(), len(group["params"])) for group in optimizer.param_groups]
    states = [held.items() for held in optimizer.state.values() if isinstance(held, dict)]
    own = () if trainer is optimizer else vars(trainer).items()
    return tuple(tuple(map(_frozen, part)) for part in (*groups, *states, own))


def _frozen(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(map(_frozen, value))
    if type(value) in SIMPLE:
        return type(value).__name__, value
    return id(value)


class Kept:
    """All that an optimizer or a scheduler, and its optimizer, held before a step."""

    def __init__(self, trainer: Any) -> None:
        owners = [trainer] if isinstance(trainer, Optimizer) else [trainer, trainer.optimizer]
        self.memory = Memory(lambda value: isinstance(value, (torch.Tensor, torch.nn.Module)), most=1 << 24)
        self.attributes = [(vars(owner), _without_step(vars(owner))) for owner in owners]
        for _, held in self.attributes:
            self.memory.remember(held)
        with torch._C.DisableTorchFunction():
            found = [value for value in self.memory.ends.values() if isinstance(value, torch.Tensor)]
            self.copies = [(tensor, tensor.detach().clone()) for tensor in found]

    def put_back(self) -> None:
        """Let it hold what it held."""
        for now, held in self.attributes:
            for name in [name for name in _without_step(now) if name not in held]:
                del now[name]
            now.update(held)
        self.memory.put_back()
        with torch._C.DisableTorchFunction():
            for tensor, copy in self.copies:
                tensor.detach().copy_(copy)


def _without_step(attributes: dict[str, Any]) -> dict[str, Any]:
    """All attributes but the function that a scheduler puts there, which a capture replaces for its time."""
    return {name: value for name, value in attributes.items() if name != "step"}


class Trainers:
    """The optimizers and schedulers around one run, with their settings after the last step that was recorded."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Any]] = {}
        self._first: list[tuple[Any, Any]] = []
        self.made: dict[int, Any] = {}

    def watch(self, trainer: Any) -> None:
        """Note the settings of one that the program may use."""
        if id(trainer) not in self._known:
            self._known[id(trainer)] = (trainer, settings_of(trainer))
            self._first.append((trainer, settings_of(trainer)))

    def check(self) -> None:
        """Raise if the program changed the settings of one itself."""
        for trainer, settings in self._known.values():
            if settings_of(trainer) != settings:
                raise CaptureError(
                    f"the program changes the settings of a {type(trainer).__name__}",
                    why="its steps are calls of the graph, which would take the settings that there are",
                    fixes=("change them before the call",),
                )

    def stepped(self) -> None:
        """A step was recorded: a scheduler has changed the settings of its optimizer too."""
        self._known = {key: (trainer, settings_of(trainer)) for key, (trainer, _) in self._known.items()}

    def asked(self, names: Iterable[str]) -> Iterator[tuple[Any, Any]]:
        """Those whose settings a program that names these attributes may have read, as they were before it ran."""
        if not _ASKING.isdisjoint(names):
            yield from self._first


def install(patches: Patches, current: Current) -> None:
    """Let gradients be taken away without a question while the capture that ``current`` names is recording."""
    for kind, parameters in ((Optimizer, _parameters_of), (torch.nn.Module, torch.nn.Module.parameters)):
        patches.on_method(kind, "zero_grad", functools.partial(_clearing, parameters=parameters, current=current))
    for trainer in TRAINERS:
        patches.on_method(trainer, "__init__", functools.partial(_making, current=current))


def install_in(patches: Patches, current: Current, surroundings: Surroundings, ends: Iterable[Any]) -> None:
    """Let steps report to the capture that ``current`` names, if the program names any; ``ends`` may be optimizers."""
    if surroundings.derived(_names_steps):
        for kind in [kind for trainer in TRAINERS for kind in _below(trainer) if "step" in vars(kind)]:
            patches.on_class(kind, "step", functools.partial(_stepping, current=current))
    for optimizer in [end for end in ends if isinstance(end, Optimizer) and "step" in vars(end)]:
        # A scheduler has put a function of its own there, which holds the step of the class.
        patches.in_dict(vars(optimizer), "step", functools.partial(_stepping_alone, optimizer, current=current))


def _names_steps(functions: Iterable[FunctionType]) -> bool:
    return any("step" in attribute_names(function.__code__) for function in functions)


def _below(kind: Any) -> Iterator[Any]:
    yield kind
    for inner in kind.__subclasses__():
        yield from _below(inner)


def _parameters_of(optimizer: Any) -> list[Any]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _clearing(original: Callable[..., Any], parameters: Callable[[Any], Any], current: Current) -> Callable[..., Any]:
    @functools.wraps(original)
    def zero_grad(self: Any, set_to_none: Any = True) -> None:
        recorder = current()
        if recorder is None or type(set_to_none) is not bool:
            original(self, set_to_none)
        elif set_to_none:
            for parameter in parameters(self):
                parameter.grad = None
        else:
            given = tuple(parameters(self))
            with torch._C.DisableTorchFunction():
                for parameter in given:
                    recorder.rollback.undo.keep_gradient(parameter)
            recorder.whole("call_function", fill_gradients, fill_gradients, given, {}, ())

    return zero_grad


def _making(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        recorder = current()
        if recorder is not None:
            recorder.trainers.made[id(self)] = self
        original(self, *args, **kwargs)

    return __init__


def _stepping(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None or id(self) in recorder.trainers.made:
            return original(self, *args, **kwargs)
        return _record(recorder, self, functools.partial(original, self), (*args, *kwargs.values()))

    return step


def _stepping_alone(optimizer: Any, original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """The same for a step that one optimizer has for itself."""
    step = _stepping(lambda self, *args, **kwargs: original(*args, **kwargs), current)
    return functools.update_wrapper(functools.partial(step, optimizer), original)


def check_profile(recorder: TorchRecorder, name: Any) -> None:
    """A stretch of the program gets a name for the profiler: the step of an optimizer that nobody has recorded would
    leave the optimizer as it is."""
    if not str(name).startswith("Optimizer.step#"):
        return
    frame: Any = sys._getframe(1)
    while frame is not None and not isinstance(frame.f_locals.get("self"), Optimizer):
        frame = frame.f_back
    if frame is None or id(frame.f_locals["self"]) not in recorder.trainers.made:
        raise refusal("a step of an optimizer that is out of sight")


def _record(recorder: TorchRecorder, trainer: Any, call: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """A step as one call of the graph."""
    name = type(trainer).__name__
    optimizer = trainer if isinstance(trainer, Optimizer) else trainer.optimizer
    hooks = (optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks)
    if any(map(callable, given)) or any(hooks):
        raise refusal(f"a step of {name} that calls functions of the program's")
    if id(optimizer) in recorder.trainers.made:
        raise refusal(f"a {name} of an optimizer that the program makes")
    recorder.trainers.watch(trainer)
    recorder.trainers.check()
    kept = Kept(trainer)
    recorder.rollback.undo.add(kept.put_back)
    written = [tensor for tensor, _ in kept.copies]
    result = recorder.whole(
        "call_function",
        take_step,
        lambda _, *args: call(*args),
        (trainer, *given),
        {},
        written,
        "it keeps its own state",
    )
    recorder.trainers.stepped()
    return result
