"""Functions of NumPy's that no proxy is asked for: those that make arrays, and settings that change how it computes.

For the time of a capture they report to it. Arrays that the program makes are proxies from the start, so that what is
written to them later is seen. ``numpy.errstate`` and ``numpy.printoptions`` become ``with`` blocks of the graph;
``np.r_`` is a call.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy

from clew.capture.bytecode.try_blocks import NEVER
from clew.capture.patches import Patches
from clew.capture.recording.numbers import TracedRange
from clew.frameworks.numpy.array_proxy import TracedArray, is_traced
from clew.frameworks.numpy.opaque_calls import cannot_follow
from clew.ir.arguments import leaves
from clew.ir.effects import pure
from clew.ir.node import Node

if TYPE_CHECKING:
    from clew.frameworks.numpy.recorder import NumpyRecorder

Current: TypeAlias = "Callable[[], NumpyRecorder | None]"
_NAMES = {
    numpy: "arange array asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray bartlett blackman "
    "broadcast_shapes diag_indices empty eye frombuffer fromfile fromfunction fromiter fromregex fromstring full "
    "genfromtxt hamming hanning identity indices isfortran kaiser load loadtxt mask_indices ones require tri "
    "tril_indices triu_indices zeros from_dlpack linspace logspace geomspace",
    numpy.fft: "fftfreq rfftfreq",
    numpy.lib.stride_tricks: "as_strided",
}
_SETTINGS = "seterr setbufsize set_printoptions"
_JOINING = ("r_", "c_", "mgrid", "ogrid")
_REFUSED = "asmatrix bmat matrix nested_iters seterrcall"


@pure
def joined(name: str, key: Any) -> Any:
    """``numpy.r_[key]``, or the same of another object of NumPy's that makes arrays of an index."""
    return getattr(numpy, name)[key]


def install(patches: Patches, current: Current, functions: Iterable[Any]) -> None:
    """Let these functions report to the capture that ``current`` names, if one is recording."""
    making = functools.partial(_Making, current=current)
    for home, name in _HOMES.values():
        patches.in_dict(vars(home), name, making)
    for name in _SETTINGS.split():
        patches.in_dict(vars(numpy), name, functools.partial(_setting, current=current))
    for name in _REFUSED.split():
        patches.in_dict(vars(numpy), name, functools.partial(_refusing, name=name, current=current))
    for name in _JOINING:
        patches.in_dict(vars(numpy), name, functools.partial(_Joining, name=name, current=current))
    patches.on_class(numpy.vectorize, "__call__", functools.partial(_vectorized, current=current))
    for name, make in (("__enter__", _entering), ("__exit__", _leaving)):
        patches.on_class(numpy.errstate, name, functools.partial(make, current=current))
    patches.in_dict(vars(numpy), "printoptions", functools.partial(_printing, current=current))
    patches.in_dict(vars(builtins), "__import__", functools.partial(_importing, current=current))
    for names in {id(function.__globals__): function.__globals__ for function in functions}.values():
        for own in [own for own, value in names.items() if id(value) in _HOMES]:
            patches.in_dict(names, own, making)


class _Making:
    """The replacement of a function that makes arrays, to which it is equal."""

    def __init__(self, original: Callable[..., Any], current: Current) -> None:
        self.__clew_original__ = original
        self.__doc__ = original.__doc__
        self._current = current

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder, original = self._current(), self.__clew_original__
        if recorder is None:
            return original(*args, **kwargs)
        if original in _SAME and len(args) == 1 and not kwargs and isinstance(args[0], TracedArray):
            return args[0]
        if args and (type(args[0]) is TracedRange or (original is _FROM_ITERATOR and hasattr(args[0], "__next__"))):
            args = (list(args[0]), *args[1:])
        return recorder.site(original, args, kwargs)

    def __eq__(self, other: Any) -> bool:
        return getattr(other, "__clew_original__", other) is self.__clew_original__

    def __hash__(self) -> int:
        return hash(self.__clew_original__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__clew_original__, name)


_HOMES = {id(getattr(home, name)): (home, name) for home, names in _NAMES.items() for name in names.split()}


def replacement_of(value: Any) -> Any:
    """The replacement of a function of NumPy's during a capture, for a program that compares functions."""
    home, name = _HOMES.get(id(value), (None, ""))
    return value if home is None or not callable(value) else getattr(home, name)


_SAME = (numpy.asarray, numpy.asanyarray)
_FROM_ITERATOR = numpy.fromiter


def _importing(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """What a module does as it is imported is not the program's doing."""

    def __import__(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(*args, **kwargs)
        with recorder.paused():
            return original(*args, **kwargs)

    return __import__


def _setting(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    @functools.wraps(original)
    def change(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(*args, **kwargs)
        before = recorder.call(original, args, kwargs)
        recorder.errors = numpy.geterr()
        return before

    return change


def _refusing(original: Any, name: str, current: Current) -> Any:
    if isinstance(original, type):
        return original

    @functools.wraps(original)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        if current() is not None and any(is_traced(leaf) for leaf in leaves((args, kwargs))):
            raise cannot_follow(f"numpy.{name}")
        return original(*args, **kwargs)

    return refuse


class _Joining:
    """The replacement of ``np.r_`` and its like."""

    def __init__(self, original: Any, name: str, current: Current) -> None:
        self._original, self._name, self._current = original, name, current

    def __getitem__(self, key: Any) -> Any:
        recorder = self._current()
        return self._original[key] if recorder is None else recorder.site(joined, (self._name, key), {})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


def _vectorized(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """A function of the user's that NumPy calls for each element stays one call."""

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None or not any(is_traced(leaf) for leaf in leaves((args, kwargs))):
            return original(self, *args, **kwargs)
        return recorder.whole(self, args, kwargs, "NumPy calls a Python function for each element")

    return __call__


def _entering(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def __enter__(self: Any) -> Any:
        recorder = current()
        if recorder is not None:
            options = recorder.argument(_options(self))
            node = recorder.create_node("call_function", numpy.errstate, (), options, errors=NEVER)
            recorder.errstates.append((self, node))
            recorder.create_node("call_method", "__enter__", (node,), {}, errors=NEVER)
        result = original(self)
        if recorder is not None:
            recorder.errors = numpy.geterr()
        return result

    return __enter__


def _leaving(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def __exit__(self: Any, *error: Any) -> Any:
        recorder = current()
        entered: list[tuple[Any, Node]] = [] if recorder is None else recorder.errstates
        if recorder is not None and entered and entered[-1][0] is self:
            node = entered.pop()[1]
            recorder.create_node("call_method", "__exit__", (node, None, None, None), {}, errors=NEVER)
        result = original(self, *error)
        if recorder is not None:
            recorder.errors = numpy.geterr()
        return result

    return __exit__


def _printing(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    @functools.wraps(original)
    def printoptions(*args: Any, **kwargs: Any) -> Any:
        manager = original(*args, **kwargs)
        return manager if current() is None else _PrintOptions(original, manager, (args, kwargs), current)

    return printoptions


class _PrintOptions:
    """``with numpy.printoptions(...)``, a block of the graph in which arrays are printed so."""

    def __init__(self, original: Any, manager: Any, given: tuple[Any, Any], current: Current) -> None:
        self._original, self._manager, self._given, self._current = original, manager, given, current
        self._node: Node | None = None

    def __enter__(self) -> Any:
        recorder = self._current()
        if recorder is not None:
            args, kwargs = map(recorder.argument, self._given)
            self._node = recorder.create_node("call_function", self._original, args, kwargs, errors=NEVER)
            recorder.create_node("call_method", "__enter__", (self._node,), {}, errors=NEVER)
        return self._manager.__enter__()

    def __exit__(self, *error: Any) -> Any:
        recorder = self._current()
        if recorder is not None and self._node is not None:
            recorder.create_node("call_method", "__exit__", (self._node, None, None, None), {}, errors=NEVER)
        return self._manager.__exit__(*error)


def _options(manager: Any) -> dict[str, Any]:
    """The arguments that make a context manager like this one."""
    names = ("all", "divide", "over", "under", "invalid", "call")
    found = {name: getattr(manager, f"_{name}", None) for name in names}
    return {name: value for name, value in found.items() if isinstance(value, str)}
