"""Calls of NumPy's functions that stand in the program itself, ``np.stack(rows)``, led to the recorder for a while.

NumPy hands a call to a proxy only if it finds one directly among the arguments. So in the codes of the program's
functions each call through a module (``np.mean(...)``, ``np.linalg.norm(...)``, ``np.float32(...)``) calls a constant
of the code instead, which stands for the function. Functions as values stay what they are. Functions of other
installed packages, SciPy say, are one call each.
"""

from __future__ import annotations

import dis
import functools
import operator
import sys
import weakref
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy

from clew.capture.bytecode.call_sites import Substitutes, led_elsewhere, redirected
from clew.capture.patches import Patches
from clew.capture.state.reachable import global_names
from clew.frameworks.numpy.array_proxy import is_traced
from clew.frameworks.numpy.number_functions import BUILTINS
from clew.frameworks.numpy.opaque_calls import is_one_call
from clew.ir.arguments import leaves

if TYPE_CHECKING:
    from clew.frameworks.numpy.recorder import NumpyRecorder

Current: TypeAlias = "Callable[[], NumpyRecorder | None]"
_LEFT_OUT = ("numpy.random", "numpy.testing", "numpy.ma", "numpy.typing", "numpy.ctypeslib", "numpy.exceptions")
_PLAIN = frozenset(
    "seterr geterr seterrcall geterrcall setbufsize getbufsize set_printoptions get_printoptions printoptions isscalar "
    "iterable typename mintypecode get_include info show_config show_runtime test "
    "frompyfunc datetime_data base_repr binary_repr".split()
)
_DISPATCHER = type(numpy.sum)
_FUNCTIONS = (_DISPATCHER, FunctionType, BuiltinFunctionType, numpy.ufunc)
_MOST_CONSTANTS = 250  # an index beyond it would need a longer instruction
_IS_OLD = sys.version_info < (3, 12)  # where calls through attributes have an instruction of their own
_OPS = {name: dis.opmap.get(name, -1) for name in
        "LOAD_GLOBAL LOAD_ATTR LOAD_METHOD LOAD_FAST STORE_FAST IMPORT_NAME EXTENDED_ARG CACHE PUSH_NULL NOP "
        "LOAD_CONST".split()}  # fmt: skip
_PAIRS = {dis.opmap[f"{first}_{second}"]: (_OPS[first], _OPS[second]) for first, second in
          (("LOAD_FAST", "LOAD_FAST"), ("STORE_FAST", "LOAD_FAST"), ("STORE_FAST", "STORE_FAST"))
          if f"{first}_{second}" in dis.opmap}  # fmt: skip
"""Instructions that do the work of two on local variables, of Python 3.13 and later."""


class _Site(NamedTuple):
    """A call through a module: where what is called is loaded, the module, the name, and what one instruction does
    besides loading the module."""

    start: int
    end: int
    module: ModuleType
    name: str
    besides: _Step | None


class _Step(NamedTuple):
    """One instruction."""

    offset: int
    operation: int
    argument: int


def install(
    patches: Patches, current: Current, functions: list[FunctionType], substitutes: Substitutes = BUILTINS
) -> None:
    """Lead the calls in these functions to the capture that ``current`` names, if one is recording; what stands for
    builtins in them are the ``substitutes``."""
    for function in functions:
        code = _rewritten(function, current, substitutes)
        if code is not None:
            patches.on_function(function, code)
        for name in global_names(function.__code__):
            value = function.__globals__.get(name)
            if isinstance(value, _FUNCTIONS) and not isinstance(value, numpy.ufunc) and _is_recorded(value):
                patches.in_dict(function.__globals__, name, functools.partial(_recording, current=current))


def _rewritten(function: FunctionType, current: Current, substitutes: Substitutes) -> CodeType | None:
    """The code that a function shall run; it may run it already, for a capture in another thread."""
    found = _known.setdefault(function, {})
    now, known = function.__code__, found.get(current)
    if known is None or (now is not known[0] and now is not known[1]):
        new = _with_sites(redirected(function, substitutes) or now, function, current)
        known = found[current] = (now, None if new is now else new)
    return known[1]


_Codes = dict[Current, tuple[CodeType, CodeType | None]]
_known: weakref.WeakKeyDictionary[FunctionType, _Codes] = weakref.WeakKeyDictionary()
"""What each function runs by itself, and what it shall run instead, by the capture that it reports to."""


def _is_recorded(value: Any) -> bool:
    module = str(getattr(value, "__module__", "") or "")
    if hasattr(value, "__clew_original__") or getattr(value, "__name__", "") in _PLAIN:
        return False
    return is_one_call(value) or (module.partition(".")[0] == "numpy" and not module.startswith(_LEFT_OUT))


def _with_sites(code: CodeType, function: FunctionType, current: Current) -> CodeType:
    """The code in which calls through modules call constants."""
    constants = [
        _with_sites(part, function, current) if isinstance(part, CodeType) else part for part in code.co_consts
    ]
    raw = bytearray(code.co_code)
    for site in _sites(code, function.__globals__):
        if len(constants) > _MOST_CONSTANTS:
            break
        _load_constant(raw, site, len(constants))
        constants.append(_recording(vars(site.module)[site.name], current))
    changed = len(constants) > len(code.co_consts) or any(map(operator.is_not, constants, code.co_consts))
    return led_elsewhere(code, constants, raw) if changed else code


def _load_constant(raw: bytearray, site: _Site, index: int) -> None:
    """Put the loading of a constant that is called where a module and its attribute are loaded."""
    loads = [(_OPS["PUSH_NULL"], 0), (_OPS["LOAD_CONST"], index)]
    if sys.version_info >= (3, 13):  # the mark of a call lies above what is called from there on
        loads.reverse()
    if site.besides is not None:
        loads.insert(0, (site.besides.operation, site.besides.argument))
    loads += [(_OPS["NOP"], 0)] * ((site.end - site.start) // 2 - len(loads))
    raw[site.start : site.end] = bytes(byte for load in loads for byte in load)


def _sites(code: CodeType, around: dict[str, Any]) -> Iterator[_Site]:
    """The calls through modules in one code, where the globals or an import tell the module."""
    local = _imported(code)
    found: Any = None
    start, is_called = 0, False  # whether the mark of a call was loaded together with the module
    before: _Step | None = None
    besides: _Step | None = None
    steps = list(_instructions(code))
    for step, following in zip(steps, [*steps[1:], _Step(len(code.co_code), -1, 0)], strict=True):
        by_method = step.operation == _OPS["LOAD_METHOD"] or (not _IS_OLD and step.argument & 1)
        if step.operation == _OPS["LOAD_GLOBAL"]:
            found, is_called = around.get(code.co_names[step.argument >> 1]), bool(step.argument & 1)
            found, start, besides = found if step.argument < 256 else None, step.offset, None
        elif step.operation == _OPS["LOAD_FAST"]:
            found, is_called, start = local.get(step.argument), False, step.offset
            besides = before if before is not None and before.offset == start else None
        elif step.operation in (_OPS["LOAD_ATTR"], _OPS["LOAD_METHOD"]) and isinstance(found, ModuleType):
            name = code.co_names[step.argument if _IS_OLD else step.argument >> 1]
            inner = vars(found).get(name)
            is_marked = following.operation == _OPS["PUSH_NULL"] and sys.version_info >= (3, 13)
            is_last = by_method or is_marked or (is_called and following.operation != _OPS["LOAD_ATTR"])
            if is_last and _is_site(found, name, inner):
                end = _end(code, following.offset if is_marked else step.offset)
                yield _Site(start, end, found, name, _outer_mark(start) if by_method and is_called else besides)
            found = None if is_last else inner
        else:
            found = None
        found, before = found if isinstance(found, ModuleType) else None, step


def _outer_mark(start: int) -> _Step | None:
    """The mark of a call around this one, which was loaded together with the module: this one has its own."""
    return _Step(start, _OPS["PUSH_NULL"], 0) if sys.version_info < (3, 13) else None


def _end(code: CodeType, offset: int) -> int:
    """Where the instruction ends that begins at ``offset``, with what it remembers."""
    raw = code.co_code
    offset += 2
    while offset < len(raw) and raw[offset] == _OPS["CACHE"]:
        offset += 2
    return offset


def _instructions(code: CodeType) -> Iterator[_Step]:
    """The instructions of a code; ``dis`` itself takes ten times as long."""
    raw, extended = code.co_code, 0  # which is made anew at each reading
    for offset in range(0, len(raw), 2):
        operation, argument = raw[offset], extended | raw[offset + 1]
        extended = argument << 8 if operation == _OPS["EXTENDED_ARG"] else 0
        if operation in _PAIRS:
            yield from map(_Step, (offset, offset), _PAIRS[operation], (argument >> 4, argument & 15))
        elif operation != _OPS["CACHE"]:
            yield _Step(offset, operation, argument)


def _is_site(module: Any, name: str, value: Any) -> bool:
    if not isinstance(module, ModuleType) or module.__name__.startswith(_LEFT_OUT) or name.startswith("_"):
        return False
    if isinstance(value, type):
        return issubclass(value, numpy.generic) or value is numpy.ndenumerate or is_one_call(value)
    return isinstance(value, _FUNCTIONS) and (isinstance(value, numpy.ufunc) or _is_recorded(value))


def _imported(code: CodeType) -> dict[int, Any]:
    """Local variables that hold a module from an import, and nothing else."""
    stores: dict[int, list[Any]] = {}
    before: Any = None
    for _, operation, argument in _instructions(code):
        if operation == _OPS["STORE_FAST"]:
            stores.setdefault(argument, []).append(before)
        named = code.co_names[argument].partition(".")[0] if operation == _OPS["IMPORT_NAME"] else ""
        before = sys.modules.get(named)
    return {place: values[0] for place, values in stores.items() if len(values) == 1 and values[0] is not None}


@functools.cache
def _recording(original: Any, current: Current) -> Callable[..., Any]:
    if original is numpy.ndenumerate:
        return _enumerating
    is_whole = not isinstance(original, numpy.ufunc) and is_one_call(original)

    @functools.wraps(original, updated=())
    def site(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(*args, **kwargs)
        return _whole(recorder, original, args, kwargs) if is_whole else recorder.site(original, args, kwargs)

    return site


def _whole(recorder: NumpyRecorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of another package: one call, if arrays go in or come out and nobody looks into that package."""
    if recorder.looks_into(function, args, kwargs):
        return function(*args, **kwargs)
    given = any(recorder.follows(leaf) for leaf in leaves((args, kwargs)))
    if not given:
        with recorder.paused(), recorder.places.suspended():
            value = function(*args, **kwargs)
        if not any(isinstance(leaf, numpy.ndarray) for leaf in leaves(value)):
            return value
    return recorder.whole(function, args, kwargs, f"it belongs to {function.__module__.partition('.')[0]}")


def _enumerating(array: Any) -> Any:
    """``numpy.ndenumerate``: an index and an element at a time."""
    if not is_traced(array):
        return numpy.ndenumerate(array)
    return ((index, array[index]) for index in numpy.ndindex(*array.shape))
