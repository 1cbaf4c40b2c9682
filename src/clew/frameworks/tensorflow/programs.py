"""What a callable of TensorFlow consists of: the function to run, its signature, the objects and layers behind it.

Questions that a graph could not answer, such as whether the program runs eagerly, are found by name in the program's
own code and refused.
"""

from __future__ import annotations

import dis
import functools
import inspect
import itertools
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from clew.capture.state.reachable import attribute_names
from clew.capture.state.surroundings import functions_of
from clew.errors import CaptureError
from clew.ir.source import SourceLine

Function = polymorphic_function.Function
_EAGERNESS = frozenset(
    "executing_eagerly inside_function is_symbolic_tensor executing_eagerly_outside_functions set_seed set_random_seed "
    "run_functions_eagerly functions_run_eagerly".split()
)


def layer_class() -> type | None:
    """The class of Keras' layers, if Keras is there and works on TensorFlow."""
    keras = sys.modules.get("keras")
    if keras is None or not hasattr(keras, "Layer") or keras.config.backend() != "tensorflow":
        return None
    found: type = keras.Layer
    return found


def is_layer(value: Any) -> bool:
    """True for a layer or model of Keras."""
    kind = layer_class()
    return kind is not None and isinstance(value, kind)


def is_part(value: Any) -> bool:
    """True for modules of TensorFlow and layers of Keras."""
    return isinstance(value, tf.Module) or is_layer(value)


def behind(program: Any) -> list[Any]:
    """A callable and what it consists of: the object of a method, what a partial holds, what a decorator wraps."""
    found: list[Any] = []
    waiting = [program]
    while waiting:
        one = waiting.pop()
        if one is None or any(one is known for known in found):
            continue
        if type(one).__name__ == "TfMethodTarget":  # stands for the object of a method that is a tf.function
            waiting.append(one.target)
            continue
        found.append(one)
        waiting += [getattr(one, "__self__", None), getattr(one, "__wrapped__", None)]
        if isinstance(one, Function):
            waiting.append(one.python_function)
        if isinstance(one, functools.partial):
            waiting += [one.func, *one.args, *one.keywords.values()]
    return found


def parts_of(values: Iterable[Any]) -> list[Any]:
    """All modules and layers among some values and inside of them."""
    found: dict[int, Any] = {}
    for value in values:
        if is_layer(value):
            found.update({id(part): part for part in value._flatten_layers()})
        if isinstance(value, tf.Module):
            found.update({id(part): part for part in (value, *value.submodules)})
    return list(found.values())


def functions_behind(programs: Iterable[Any]) -> list[Any]:
    """The Python functions of callables, modules and layers."""
    found: dict[Any, None] = {}
    for one in programs:
        own = [getattr(type(one), name, None) for name in ("call", "__call__")] if is_part(one) else [one]
        for function in [inner for part in own if part is not None for inner in functions_of(part)]:
            home = str(function.__module__) if isinstance(function, FunctionType) else "keras."
            if not home.startswith(("tensorflow.", "keras.")):
                found[function] = None
    return list(found)


def signature_of(program: Any) -> inspect.Signature:
    """The parameters of a program; of a layer those of its ``call``."""
    if is_layer(program):
        return inspect.signature(program.call)
    if isinstance(program, Function):
        return inspect.signature(program.python_function)
    return inspect.signature(program)


def check_names(functions: Iterable[FunctionType]) -> None:
    """Raise if the program asks what a graph cannot answer, or catches errors."""
    for function in functions:
        names = attribute_names(function.__code__)
        asked = sorted(names & _EAGERNESS)
        if asked:
            raise _refused(function, f"the program uses {asked[0]}", "the graph would not do or answer that again")
        if any(map(_catches, _codes(function.__code__))):
            raise _refused(
                function,
                "the program catches errors",
                "whether one is raised may depend on the input, and a graph has no handler",
                "test the condition instead of catching the error",
            )


def _refused(function: FunctionType, what: str, why: str, *fixes: str) -> CaptureError:
    code = function.__code__
    place = SourceLine(code.co_filename, code.co_firstlineno, code.co_name)
    return CaptureError(what, where=place.describe(), why=why, fixes=fixes)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


@functools.lru_cache(maxsize=4096)
def _catches(code: CodeType) -> bool:
    """Whether the code of a function has an ``except``; ``with`` and ``finally`` have none."""
    if not code.co_exceptiontable:
        return False
    names = [instruction.opname for instruction in dis.get_instructions(code)]
    if "CHECK_EXC_MATCH" in names or "CHECK_EG_MATCH" in names:
        return True
    return any(pair == ("PUSH_EXC_INFO", "POP_TOP") for pair in itertools.pairwise(names))
