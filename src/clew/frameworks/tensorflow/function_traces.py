"""What a ``tf.function`` has traced before: it goes on with that, whatever variables around it hold by now.

The functions around a program, and the places that the program changes, come in. A capture traces a function anew for
sizes that are open; so it is refused where that gives something else than the function has, or may have, by then.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import tensorflow as tf

from clew.capture.state.reachable import attribute_names, reads_variables
from clew.capture.state.slots import Slot
from clew.errors import CaptureError
from clew.frameworks.tensorflow.programs import Function, is_layer

_NO_OBJECTS = (type, ModuleType, FunctionType, Function, tf.Tensor, tf.Variable)
_DEPTH = 4
_NUMBERED = re.compile(r"_\d+")


def check_traces(values: list[Any], lifted: Iterable[Slot]) -> None:
    """Raise if functions among these values, or methods of these, read what was another value when they were traced, or
    what the program changes."""
    changed = {slot.variable.name for slot in lifted}
    functions = {id(one): one for one in values if isinstance(one, Function) and reads_variables(one.python_function)}
    for function in (*functions.values(), *_methods(values)):
        code = getattr(inspect.unwrap(function.python_function), "__code__", None)
        if code is not None and changed & (attribute_names(code) | set(code.co_freevars)):
            raise _refusal(function, "it reads a variable that the program changes")
        if any(_described(trace) != _described(_anew(function, trace)) for trace in _traces(function)):
            raise _refusal(function, "a variable that it reads has changed since")


def _methods(values: list[Any]) -> Iterator[Any]:
    """The functions that objects hold, and those made of methods for them when they were first called."""
    for one in _objects(values):
        yield from (value for value in vars(one).values() if isinstance(value, Function))
        kinds = [vars(kind).values() for kind in type(one).__mro__]
        made = [value._descriptor_cache for values in kinds for value in values if isinstance(value, Function)]
        yield from (cache[one] for cache in made if one in cache)


def _objects(values: list[Any]) -> list[Any]:
    """The objects among some values, and those that they hold, as deep as programs reach."""
    found: dict[int, Any] = {}
    for _ in range(_DEPTH):
        new = {id(one): one for one in values if id(one) not in found and _is_object(one)}
        found |= new
        values = [part for one in new.values() for part in vars(one).values()]
    return list(found.values())


def _is_object(value: Any) -> bool:
    return hasattr(value, "__dict__") and not isinstance(value, _NO_OBJECTS) and not is_layer(value)


def _traces(function: Any) -> list[Any]:
    return list(function._list_all_concrete_functions())


def _anew(function: Any, trace: Any) -> Any:
    """The same call traced again, by a function that knows of no other."""
    args, kwargs = trace.structured_input_signature
    made = tf.function(function.python_function, autograph=function._autograph)
    return made.get_concrete_function(*args, **kwargs)


def _described(trace: Any) -> Any:
    """What a trace does, without the numbers that TensorFlow gives to names."""
    definition = trace.graph.as_graph_def()
    nodes, functions = ([_NUMBERED.sub("", str(one)) for one in part] for part in _parts(definition))
    held = [id(one) if one.dtype in (tf.resource, tf.variant) else one.numpy().tobytes() for one in _held(trace)]
    return nodes, sorted(functions), held


def _parts(definition: Any) -> tuple[Any, Any]:
    return definition.node, definition.library.function


def _held(trace: Any) -> list[Any]:
    return [one for one in trace.captured_inputs if hasattr(one, "numpy") or one.dtype == tf.resource]


def _refusal(function: Any, why: str) -> CaptureError:
    name = getattr(function.python_function, "__name__", "a function")
    return CaptureError(
        f"{name} does not do what TensorFlow has traced of it at an earlier call",
        why=f"{why}, and a tf.function goes on with what it traced",
        fixes=("keep the value in a tf.Variable, or make it an argument",),
    )
