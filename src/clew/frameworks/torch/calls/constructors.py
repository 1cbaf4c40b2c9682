"""Objects that a program makes past torch's function mode: parameters, generators, legacy tensors, random states.

Each making is a node, and what was made is known from then on. A generator that the program makes is a new one at each
call of the graph too. Outside of a capture everything is the original.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from clew.capture.bytecode.instructions import instructions_of
from clew.capture.patches import Patches
from clew.frameworks.torch.refusals import refusal

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

Current: TypeAlias = "Callable[[], TorchRecorder | None]"

_LEGACY = "Float Double Half BFloat16 Byte Char Short Int Long Bool"


def install(patches: Patches, current: Current) -> None:
    """Let makers report to the capture that ``current`` names, if one is recording."""
    patches.on_class(torch.nn.Parameter, "__new__", lambda original: _parameter(original, current))
    patches.on_class(torch.Tensor, "as_subclass", lambda original: _as_subclass(original, current), inherited=True)
    patches.in_dict(vars(torch), "Generator", lambda original: _generator_class(original, current))
    for kind in _LEGACY.split():
        patches.in_dict(vars(torch), f"{kind}Tensor", lambda original: _LegacyType(original, current))
    for home in (torch, torch.random):
        for name in ("get_rng_state", "set_rng_state"):
            patches.in_dict(vars(home), name, lambda original: _recorded(original, current))
    for name in ("manual_seed", "seed", "initial_seed"):
        patches.in_dict(vars(torch.random), name, lambda original: _recorded(original, current))
    patches.in_dict(vars(torch.random), "fork_rng", lambda original: _forking(original, current))


def install_unseen(patches: Patches, current: Current) -> None:
    """Let ``torch.Tensor(...)`` itself report too; only for programs that have made tensors by unseen means, because
    all that torch knows of its class is found anew when this is put there, and when it is taken away."""
    patches.on_class(torch.Tensor, "__new__", lambda original: _tensor(original, current), inherited=True)


def call_tensor(functions: Iterable[FunctionType]) -> bool:
    """Whether some functions call ``torch.Tensor`` by that name."""
    return any(_calls_tensor(function.__code__) for function in functions)


@functools.lru_cache(maxsize=4096)
def _calls_tensor(code: CodeType) -> bool:
    if "Tensor" not in code.co_names:
        return any(_calls_tensor(inner) for inner in code.co_consts if isinstance(inner, CodeType))
    steps = instructions_of(code)
    named = [step for step in steps if step.argval == "Tensor"]
    return any(step.opname == "LOAD_METHOD" or "NULL" in step.argrepr for step in named)


def _tensor(original: Any, current: Current) -> Any:
    """``torch.Tensor(data)`` and ``torch.Tensor(*sizes)`` inside the program."""
    make = original.__func__ if isinstance(original, staticmethod) else original

    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = current()
        is_plain = cls is torch.Tensor and not kwargs and not any(isinstance(one, torch.Tensor) for one in args)
        if recorder is None or not is_plain:
            return make(cls, *args, **kwargs)
        node_args = recorder.argument(args)
        value = recorder.perform(functools.partial(make, cls), args, {})
        return recorder.result(value, recorder.create(torch.Tensor, node_args))

    return staticmethod(__new__)


def _recorded(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """A function that is a call of the graph, its result known."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(*args, **kwargs)
        node_args, node_kwargs = recorder.argument(args), recorder.argument(kwargs)
        value = recorder.perform(original, args, kwargs)
        node = recorder.create(original, node_args, node_kwargs)
        return value if isinstance(value, torch._C.Generator) else recorder.result(value, node)

    return call


def _forking(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """Saving and restoring the state of the CPU is recorded by itself; the states of other devices are not."""

    @functools.wraps(original)
    def fork_rng(*args: Any, **kwargs: Any) -> Any:
        if current() is not None and torch.accelerator.device_count():
            raise refusal("fork_rng on a machine with other devices")
        return original(*args, **kwargs)

    return fork_rng


def _parameter(original: Any, current: Current) -> Any:
    """``nn.Parameter(data)`` inside the program."""
    make = original.__func__ if isinstance(original, staticmethod) else original

    def __new__(cls: Any, data: Any = None, requires_grad: Any = True, **rest: Any) -> Any:
        recorder = current()
        if recorder is None or rest or cls is not torch.nn.Parameter or data is None:
            return make(cls, data, requires_grad, **rest)
        node_args = (recorder.argument(data), recorder.argument(requires_grad))
        value = recorder.perform(functools.partial(make, cls), (data, requires_grad), {})
        return recorder.result(value, recorder.create(torch.nn.Parameter, node_args))

    return staticmethod(__new__)


def _as_subclass(original: Any, current: Current) -> Any:
    """``x.as_subclass(kind)``: another object, of another class, over the same memory."""

    @functools.wraps(original)
    def as_subclass(tensor: Any, cls: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(tensor, cls)
        node = recorder.node_of(tensor)
        value = recorder.perform(original, (tensor, cls), {})
        return recorder.result(
            value, recorder.create_node("call_method", "as_subclass", (node, cls), {}, is_result=True)
        )

    return as_subclass


class _LegacyType:
    """The replacement of ``torch.FloatTensor`` and its like: makes tensors by recorded calls."""

    def __init__(self, original: Any, current: Current) -> None:
        self.original, self.current = original, current

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _recorded(self.original, self.current)(*args, **kwargs)

    def __instancecheck__(self, value: Any) -> bool:
        recorder = self.current()
        if recorder is not None:
            for fact in ("dtype", "device", "layout"):
                recorder.rely(fact)
        return isinstance(value, self.original)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


class MadeGenerator(torch._C.Generator):
    """A generator that the program has made; what the program does with it is recorded."""

    recorder: TorchRecorder

    def _call(self, name: str, *args: Any) -> Any:
        recorder, function = self.recorder, getattr(torch._C.Generator, name)
        if recorder.depth or not recorder.open:
            return function(self, *recorder.concrete(args))
        node_args = recorder.argument((self, *args))
        value = recorder.perform(function, (self, *args), {})
        node = recorder.create_node("call_method", name, node_args, {})
        return self if value is self else recorder.result(value, node)

    def manual_seed(self, seed: Any) -> Any:  # type: ignore[override]
        """Recorded."""
        return self._call("manual_seed", seed)

    def seed(self) -> Any:
        """Recorded."""
        return self._call("seed")

    def initial_seed(self) -> Any:
        """Recorded."""
        return self._call("initial_seed")

    def get_state(self) -> Any:
        """Recorded."""
        return self._call("get_state")

    def set_state(self, new_state: Any) -> Any:
        """Recorded."""
        return self._call("set_state", new_state)

    def clone_state(self) -> Any:
        """Not followed."""
        raise refusal("clone_state of a generator")


def twin_of(generator: Any, recorder: TorchRecorder) -> MadeGenerator:
    """A generator that stands where another one stands, and reports."""
    made = MadeGenerator(generator.device)
    made.recorder = recorder
    torch._C.Generator.set_state(made, generator.get_state())
    return made


@functools.lru_cache(maxsize=4)
def _generator_class(original: Any, current: Current) -> Any:
    """The replacement of ``torch.Generator``: makes generators that report, and is the class otherwise."""

    class Standing(type(original)):  # type: ignore[misc]
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, original)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            recorder = current()
            if recorder is None:
                return original(*args, **kwargs)
            plain = recorder.concrete((args, kwargs))
            made = MadeGenerator(*plain[0], **plain[1])
            made.recorder = recorder
            recorder.track(made, recorder.create(original, recorder.argument(args), recorder.argument(kwargs)))
            return made

    return Standing("Generator", (original,), {})
