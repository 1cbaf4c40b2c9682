"""All that a capture replaces for its time besides torch's classes: in torch, in Python's modules, in the program.

What is replaced in the same way for every program is worked out once; in the modules of a program it is looked for at
each capture, since they may hold other values by then.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import json
from collections.abc import Callable, Iterable
from contextlib import _GeneratorContextManager
from types import FrameType, FunctionType
from typing import Any, TypeAlias

import torch
from torch.autograd import forward_ad
from torch.nn import functional
from torch.nn.attention import sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from clew.capture.bytecode.try_blocks import NEVER
from clew.capture.patches import Patches, Stock
from clew.capture.python import imported_names, replacements
from clew.capture.python.files import refusing
from clew.capture.recording.list_proxies import ListProxy, StateListProxy, TupleProxy
from clew.capture.recording.opaque_calls import CannotFollow
from clew.capture.recording.recorder import Scalar
from clew.capture.state.reachable import global_names
from clew.capture.state.surroundings import Surroundings
from clew.errors import CaptureError
from clew.frameworks.numpy.opaque_calls import NUMPY_FOLDER
from clew.frameworks.torch import facts, number_functions, settings, tracing_tools
from clew.frameworks.torch.calls import constructors, tensor_attributes
from clew.frameworks.torch.modules import optimizers, training_mode
from clew.frameworks.torch.numpy_bridge import arrays, random_streams
from clew.frameworks.torch.recorder import TorchRecorder
from clew.frameworks.torch.refusals import refusal
from clew.frameworks.torch.scalars import TracedSize
from clew.frameworks.torch.settings import refusing_call
from clew.frameworks.torch.transforms import interception as transforms
from clew.ir.node import Node
from clew.ir.source import user_source

Current: TypeAlias = Callable[[], TorchRecorder | None]


def install(patches: Patches, current: Current) -> None:
    """Replace what is the same for every program; ``current`` names the capture that is recording, if one is."""
    _install_modes(patches, current)
    calls = (random_streams, tensor_attributes, optimizers, transforms, constructors)
    for part in (*calls, facts, settings, training_mode, tracing_tools, arrays):
        part.install(patches, current)
    _install_saving(patches)
    number_functions.install(patches)
    imported_names.replace_in_importers(patches)


@functools.cache
def _stock_for(current: Current) -> Callable[[Iterable[FunctionType]], Stock]:
    """What makes the replacements for the code of some functions, which stay the same as long as that does."""

    def stock_of(functions: Iterable[FunctionType]) -> Stock:
        asking, calling = _asking_for_types(functions), number_functions.calling_builtins(functions)

        def replace(patches: Patches) -> None:
            _install_types(patches, asking)
            number_functions.install_in(patches, current, calling)

        return Stock(replace)

    return stock_of


def install_in(
    patches: Patches,
    current: Current,
    surroundings: Surroundings,
    parts: list[Any],
    ends: Iterable[Any],
) -> None:
    """Replace what the modules and functions of a program hold; ``parts`` are the modules of torch it consists of,
    ``ends`` other objects that it reaches."""
    attributes = [object.__getattribute__(part, "__dict__") for part in parts]  # past the watch on what is read
    replacements.install_in(patches, surroundings, attributes)
    stock = surroundings.derived(_stock_for(current))
    if number_functions.are_builtins(surroundings.namespaces.values()):
        patches.from_stock(stock)
    else:
        stock.find(patches)
    optimizers.install_in(patches, current, surroundings, ends)


# ---- plain Python ----------------------------------------------------------------------------------------------------
#
# What a torch run does with what it hears of plain Python: clocks and draws are calls of the graph. Whoever acts or
# draws while the program runs is heard, libraries too; clocks are those that the program's modules read.


class TorchListener(replacements.RecordingListener):
    """The listener of one run."""

    recorder: TorchRecorder
    through = (NUMPY_FOLDER,)

    def is_own(self, frame: FrameType | None) -> bool:
        """Whether one of the program's modules has called."""
        return frame is not None and id(frame.f_globals) in self.recorder.surroundings.namespaces

    def hears(self, frame: FrameType | None) -> bool:
        """Libraries count too, torch itself among them."""
        return True


def _install_saving(patches: Patches) -> None:
    """Let what torch writes to files by its own means report too."""
    saving = functools.partial(refusing, what="a file being written")
    patches.on_class(torch.serialization._open_zipfile_writer_file, "__init__", saving)


# ---- modes that a program switches for a while -----------------------------------------------------------------------
#
# Gradients, inference mode, autocast, and flags of back ends. Making, entering and leaving such a context manager are
# nodes, so that the graph computes under the same modes as the program; code generation writes them as ``with`` blocks.
# What was on before is found out when the graph runs, so that a block ends in the mode of the caller, whichever that
# is. A decorator does nothing else than enter and leave.


_MANAGERS = (torch.no_grad, torch.enable_grad, torch.set_grad_enabled, torch.inference_mode, torch.autocast)
_FLAGS: dict[Any, Callable[..., Any]] = {
    inspect.unwrap(maker): maker
    for maker in (
        sdpa_kernel,
        *(one.flags for one in vars(torch.backends).values() if isinstance(getattr(one, "flags", None), FunctionType)),
    )
}
"""Functions of torch that make such a context manager of a generator, by the generator."""


def _install_switches(patches: Patches, current: Current) -> None:
    """Let the context managers of torch report to the capture that ``current`` names, if one is recording."""
    for kind in _MANAGERS:
        patches.on_class(kind, "__enter__", lambda original: _entering(original, current))
        patches.on_class(kind, "__exit__", lambda original: _leaving(original, current))
    patches.on_class(_GeneratorContextManager, "__enter__", lambda original: _entering_flags(original, current))
    patches.on_class(_GeneratorContextManager, "__exit__", lambda original: _leaving(original, current))
    patches.on_class(torch.autocast, "__init__", lambda original: _making(original, current))
    patches.on_class(torch.set_grad_enabled, "__init__", lambda original: _switching_for_a_while(original, current))
    patches.on_class(torch.set_grad_enabled, "__call__", lambda original: _decorating(original, current))


def _entering_flags(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """Follow a context manager that is made of a generator if it sets flags of torch's back ends to plain values."""
    followed = _entering(original, current)

    def __enter__(self: Any) -> Any:
        if self.func not in _FLAGS or any(map(_is_traced, (*self.args, *self.kwds.values()))):
            return original(self)
        return followed(self)

    return __enter__


def _is_traced(value: Any) -> bool:
    return issubclass(type(value), Scalar)


def _entering(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def __enter__(self: Any) -> Any:
        recorder = current()
        node = None if recorder is None else _manager(recorder, self)
        if recorder is None or node is None:
            return original(self)
        with recorder.paused():
            result = original(self)
        recorder.create_node("call_method", "__enter__", (node,), {}, errors=NEVER)
        return result

    return __enter__


def _leaving(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def __exit__(self: Any, *error: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(self, *error)
        try:
            entered = _entered(recorder, self)
        except CaptureError:
            with recorder.paused():  # the block ends all the same
                original(self, *error)
            raise
        if not entered:
            return original(self, *error)
        recorder.create_node("call_method", "__exit__", (entered.pop(), None, None, None), {}, errors=NEVER)
        with recorder.paused():
            return original(self, *error)

    return __exit__


def _making(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """An ``autocast`` for a device or dtype that the program has read is made for the one that the graph reads."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        recorder = current()
        if recorder is None or type(self) is not torch.autocast:
            return original(self, *args, **kwargs)
        plain_args, plain_kwargs = recorder.concrete((args, kwargs))
        with recorder.paused():
            original(self, *plain_args, **plain_kwargs)
        if any(issubclass(type(value), Scalar) for value in (*args, *kwargs.values())):
            recorder.managers.made[id(self)] = (self, (recorder.argument(args), recorder.argument(kwargs)))

    return __init__


def _switching_for_a_while(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """``set_grad_enabled`` switches when it is made, and is often used without entering it."""

    def __init__(self: Any, mode: Any) -> None:
        recorder = current()
        if recorder is None:
            return original(self, mode)
        node = recorder.create_node("call_function", type(self), (recorder.argument(mode),), {}, errors=NEVER)
        with recorder.paused():
            original(self, recorder.concrete(mode))
        recorder.managers.entered[id(self)] = (self, [node])

    return __init__


def _decorating(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """Used as a decorator, ``set_grad_enabled`` first takes back what it switched when it was made."""

    def __call__(self: Any, function: Any) -> Any:
        recorder = current()
        made = None if recorder is None else _entered(recorder, self)
        if recorder is None or not made:
            return original(self, function)
        recorder.create_node("call_method", "__exit__", (made.pop(), None, None, None), {}, errors=NEVER)
        with recorder.paused():
            return original(self, function)

    return __call__


def _entered(recorder: TorchRecorder, manager: Any) -> list[Node]:
    """The nodes under which this run has made or entered a manager, the last one last.

    A block may be entered before a branch and left inside it: what the branch leaves is a value from outside of it.
    """
    _, found = recorder.managers.entered.get(id(manager), (manager, []))
    if found and not recorder.bodies.is_open(found[-1].graph):
        raise refusal("a block that begins in one part of the program and ends in another", kind=CannotFollow)
    return found


def _manager(recorder: TorchRecorder, manager: Any) -> Node | None:
    """The node of a manager that is about to be entered; None if only its single switches can be recorded."""
    entered = _entered(recorder, manager)
    if isinstance(manager, torch.set_grad_enabled):
        # One made outside of the program leaves to the mode of that time, which no new one would.
        return entered[-1] if entered else None
    if not entered:
        _, (args, kwargs) = recorder.managers.made.get(id(manager)) or (manager, _arguments(manager))
        maker = type(manager) if isinstance(manager, _MANAGERS) else _FLAGS[manager.func]
        node = recorder.create_node("call_function", maker, args, kwargs, errors=NEVER)
    else:
        node = entered[-1]  # entered again before it was left, which is the same object
    recorder.managers.entered[id(manager)] = (manager, [*entered, node])
    return node


def _arguments(manager: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that make a context manager like this one."""
    if isinstance(manager, _GeneratorContextManager):
        return tuple(manager.args), dict(manager.kwds)
    if isinstance(manager, (torch.no_grad, torch.enable_grad)):
        return (), {}
    if isinstance(manager, torch.inference_mode):
        return (manager.mode,), {}
    options = {"dtype": manager.fast_dtype, "enabled": manager._enabled, "cache_enabled": manager._cache_enabled}
    return ((manager.device,), options) if type(manager) is torch.autocast else ((), options)


_QUESTIONS = (
    "is_grad_enabled", "is_inference_mode_enabled", "get_default_dtype",
    "is_autocast_enabled", "is_autocast_cpu_enabled", "is_autocast_cache_enabled",
)  # fmt: skip


class TypeQuestion:
    """Stands for ``type`` in the globals of a traced function."""

    def __call__(self, *args: Any) -> Any:
        if len(args) == 1 and issubclass(
            builtins.type(args[0]), (Scalar, TracedSize, StateListProxy, ListProxy, TupleProxy)
        ):
            return args[0].__class__
        return builtins.type(*args)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, builtins.type)

    def __subclasscheck__(self, kind: Any) -> bool:
        return issubclass(kind, builtins.type)

    def __getattribute__(self, name: str) -> Any:
        if name == "__mro_entries__":  # a metaclass derives from it
            return lambda bases: (builtins.type,)
        return getattr(builtins.type, name)  # type.__new__, say

    def __eq__(self, other: Any) -> bool:
        return other is self or other is builtins.type

    def __hash__(self) -> int:
        return hash(builtins.type)


_type_question = TypeQuestion()


def _install_modes(patches: Patches, current: Current) -> None:
    """Let all of it report to the capture that ``current`` names, if one is recording."""
    for name in _QUESTIONS:
        if name in vars(torch):
            patches.in_dict(vars(torch), name, lambda original: _question(original, current))
    for name in ("manual_seed", "seed"):
        patches.in_dict(vars(torch), name, lambda original: _recorded(original, current))
    for holder, name in _refused():
        patches.in_dict(vars(holder), name, lambda original: refusing_call(original, current))
    patches.on_class(torch.Tensor, "set_", lambda original: refusing_call(original, current), inherited=True)
    for holder in (torch, torch.functional):
        patches.in_dict(vars(holder), "broadcast_shapes", lambda original: _of_shapes(original, current))
    patches.on_method(TorchDispatchMode, "__enter__", lambda original: refusing_call(original, current))
    patches.on_class(json.JSONEncoder, "default", _plain_in_json)
    patches.in_dict(vars(functional), _ATTENTION, lambda original: _with_plain_flags(original, current))
    _install_switches(patches, current)
    patches.on_method(torch.nn.Module, "to", lambda original: _staying(original, current))


def _install_types(patches: Patches, namespaces: Iterable[dict[str, Any]]) -> None:
    """Let ``type`` answer for traced numbers in these modules."""
    for names in namespaces:
        if names.get("type", _type_question) is _type_question:  # another capture may be at work already
            patches.in_dict(names, "type", _question_instead, default=builtins.type)


def _asking_for_types(functions: Iterable[FunctionType]) -> list[dict[str, Any]]:
    """The globals of those functions that name ``type``, or have functions inside that do."""
    asking = [function for function in functions if "type" in global_names(function.__code__)]
    return list({id(function.__globals__): function.__globals__ for function in asking}.values())


def _question_instead(original: Any) -> TypeQuestion:
    return _type_question


_ATTENTION = "scaled_dot_product_attention"


def _refused() -> list[tuple[Any, str]]:
    """Functions that the mode does not see through, and that a graph cannot hold yet."""
    names = {
        torch: ("compile",),
        torch.func: ("functionalize",),
        torch._C._autograd: ("_push_saved_tensors_default_hooks",),
        forward_ad: ("enter_dual_level",),
    }
    return [(holder, name) for holder, listed in names.items() for name in listed if name in vars(holder)]


def _recorded(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    @functools.wraps(original)
    def record(*args: Any) -> Any:
        recorder = current()
        if recorder is not None:
            recorder.create(original, recorder.argument(args))
            args = recorder.concrete(args)
        return original(*args)

    return record


def _of_shapes(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """A function from shapes to a shape, which torch computes in Python, asking about each size."""

    @functools.wraps(original)
    def compute(*args: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(*args)
        node_args = recorder.argument(args)
        value = recorder.perform(original, args, {})
        return recorder.result(value, recorder.create(original, node_args))

    return compute


def _plain_in_json(original: Callable[..., Any]) -> Callable[..., Any]:
    """JSON asks here what to write for a value that it does not know: a traced number is its plain one, guarded."""

    def default(self: Any, value: Any) -> Any:
        if issubclass(builtins.type(value), Scalar):
            value.recorder.guard(value.place, value.plain)
            return value.plain
        return original(self, value)

    return default


def _with_plain_flags(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """torch's parser takes no symbolic bool here, so the flags are forced, which guards them."""

    @functools.wraps(original)
    def attend(*args: Any, **kwargs: Any) -> Any:
        if current() is not None:
            flags: dict[str, Any] = {name: bool(kwargs[name]) for name in ("is_causal", "enable_gqa") if name in kwargs}
            kwargs = {**kwargs, **flags}
        return original(*args, **kwargs)

    return attend


def _staying(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """``module.to(...)`` inside the program: nothing happens where all is there already; anything else is refused."""

    @functools.wraps(original)
    def to(module: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(module, *args, **kwargs)
        held = [*module.parameters(), *module.buffers()]
        with recorder.paused(), torch.no_grad():
            device, dtype = torch._C._nn._parse_to(*recorder.concrete(args), **recorder.concrete(kwargs))[:2]
            moved = [value for value in held if _would_move(value, device, dtype)]
        if moved:
            _refuse("moving a module to another dtype or device", "the graph would not move it again")
        recorder.rely("dtype")
        recorder.rely("device")
        return module

    return to


def _would_move(tensor: torch.Tensor, device: Any, dtype: Any) -> bool:
    other_dtype = dtype is not None and tensor.dtype != dtype and (tensor.is_floating_point() or tensor.is_complex())
    return other_dtype or (device is not None and tensor.device != device)


def _refuse(what: str, why: str) -> None:
    source = user_source()
    where = "" if source is None else source.describe()
    raise CaptureError(f"{what} inside the program cannot be captured", where=where, why=why)


def _question(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def ask(*args: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(*args)
        value = original(*recorder.concrete(args))
        recorder.guard(recorder.create(original, recorder.argument(args)), value)
        return value

    return ask
