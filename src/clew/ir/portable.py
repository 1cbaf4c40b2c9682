"""Saved values that load where the code is not that they were made with.

In come values; out come bytes and the arrays and modules of frameworks among them, which whoever saves the whole saves
by its own means. Functions and classes are saved by name. On loading they are looked for; for a class that is not there
one of the same name is made, a record that holds what objects of the class held, and for a function something that
says so when it is called. Nothing else is run on loading than by pickle anywhere.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import importlib
import io
import pickle
import sys
from collections import OrderedDict
from types import FunctionType
from typing import Any

from clew.errors import GraphError
from clew.ir.lookup import OPEN_PACKAGES

_SURE = OPEN_PACKAGES | frozenset(sys.stdlib_module_names)
"""Packages that are there wherever a graph is loaded, or whose absence nothing helps."""
_FRAMEWORKS = frozenset({"torch", "numpy", "jax", "jaxlib", "tensorflow", "keras"})
_namedtuple: Any = collections.namedtuple
_HOLDING = ("__array__", "state_dict")
"""What arrays, modules and optimizers have."""


class Missing:
    """Stands for a function that is not there."""

    __slots__ = ("__name__", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.__name__ = name.rpartition(".")[2]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise missing([self.name])

    def __reduce__(self) -> tuple[Any, ...]:
        return Missing, (self.name,)


def missing(names: list[str]) -> GraphError:
    """The error for functions that a graph calls and that are not there."""
    return GraphError(
        f"the graph calls what cannot be found here: {', '.join(names)}",
        why="a saved graph holds the names of functions and of classes of modules, not their code",
        fixes=("make importable what has them, under the same name",),
    )


class Record:
    """What an object held whose class is not there, by attribute, and by name or number as an item."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        fields = getattr(type(self), "_record_fields", ())
        vars(self).update({**dict(zip(fields, args, strict=False)), **kwargs})

    def __getitem__(self, key: Any) -> Any:
        return vars(self)[key] if isinstance(key, str) else tuple(vars(self).values())[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return record_of, (*_record_name(type(self)), "object", vars(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class MappingRecord(OrderedDict[Any, Any]):
    """The same for a class of dicts; a number as a key asks for one of the values in their order."""

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (int, slice)) and key not in self:
            return tuple(self.values())[key]
        return super().__getitem__(key)

    def __reduce__(self) -> tuple[Any, ...]:
        return record_of, (*_record_name(type(self)), "mapping", dict(self))

    def to_tuple(self) -> tuple[Any, ...]:
        """The values in their order."""
        return tuple(self.values())


def dumps(value: Any) -> tuple[bytes, list[Any]]:
    """A value as bytes, and the arrays and modules in it, which are saved beside."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(value)
    return file.getvalue(), pickler.beside


def loads(data: bytes, beside: list[Any]) -> Any:
    """The value that was saved."""
    return _Unpickler(io.BytesIO(data), beside).load()


class Kept:
    """A value that pickle saves in this way, and that comes back as itself."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return loads, dumps(self.value)


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=4)
        self.beside: list[Any] = []
        self._places: dict[int, int] = {}

    def reducer_override(self, value: Any) -> Any:
        """Code by its name, what frameworks hold by its number; all else as pickle does it."""
        if isinstance(value, type):
            return NotImplemented if is_sure(value) else (class_at, (*_name_of(value), _shape_of(value)))
        if isinstance(value, FunctionType):
            is_named = not is_sure(value) and _found(*_name_of(value)) is value
            return (function_at, _name_of(value)) if is_named else NotImplemented
        kind: Any = type(value)
        if not _is_of_framework(kind):
            place = None if not callable(value) or _can_be_pickled(value) else home_of(value)
            return NotImplemented if place is None else (function_at, place)
        if id(value) not in self._places:
            self._places[id(value)] = len(self.beside)
            self.beside.append(value)
        return beside, (self._places[id(value)],)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, held: list[Any]) -> None:
        super().__init__(file)
        self._held = held

    def find_class(self, module: str, name: str) -> Any:
        """What pickle looks for by name; what lies beside the bytes is found here."""
        if module == __name__ and name == "beside":
            return self._held.__getitem__
        return super().find_class(module, name)


def beside(place: int) -> Any:
    """What lies beside the bytes; only the loading itself knows it."""
    raise pickle.UnpicklingError("an array or module of a saved graph is looked for outside of it")


def function_at(module: str, name: str) -> Any:
    """A function by its name, or what says that it is missing."""
    found = _found(module, name, imports=True)
    return Missing(f"{module}.{name}") if found is None else found


def class_at(module: str, name: str, shape: tuple[str, tuple[str, ...]]) -> Any:
    """A class by its name, or one of records."""
    found = _found(module, name, imports=True)
    return found if isinstance(found, type) else record_class(module, name, *shape)


@functools.lru_cache(maxsize=1024)
def record_class(module: str, name: str, kind: str, fields: tuple[str, ...]) -> Any:
    """A class of records that bears the name of one that is not there."""
    last = name.rpartition(".")[2]
    base: Any = {"mapping": MappingRecord, "tuple": tuple}.get(kind, Record)
    made: Any = type(last, (base,), {"_record_fields": fields})
    if base is tuple and fields:
        made = _namedtuple(last, fields)
    made.__module__, made.__qualname__ = module, name
    return made


def _record_name(kind: Any) -> tuple[str, str, tuple[str, ...]]:
    return kind.__module__, kind.__qualname__, kind._record_fields


def record_of(module: str, name: str, fields: tuple[str, ...], kind: str, held: dict[str, Any]) -> Any:
    """What a record held, as an object of the class whose name it bears, if that is there."""
    return class_at(module, name, (kind, fields))(**held)


def is_record_class(value: Any) -> bool:
    """Whether a class was made because the one of its name is not there."""
    return isinstance(value, type) and "_record_fields" in vars(value) and not issubclass(value, tuple)


def is_sure(code: Any) -> bool:
    """Whether a function or class is found wherever a graph is loaded."""
    return str(code.__module__).partition(".")[0] in _SURE


def _name_of(code: Any) -> tuple[str, str]:
    return code.__module__, code.__qualname__


def _shape_of(kind: Any) -> tuple[str, tuple[str, ...]]:
    """What a record needs to know of a class."""
    if issubclass(kind, tuple):
        return "tuple", tuple(getattr(kind, "_fields", ()))
    names = tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()
    return ("mapping" if issubclass(kind, dict) else "object"), names


@functools.lru_cache(maxsize=4096)
def _is_of_framework(kind: Any) -> bool:
    is_theirs = kind.__module__.partition(".")[0] in _FRAMEWORKS
    return is_theirs and any(hasattr(kind, name) for name in _HOLDING)


def _can_be_pickled(value: Any) -> bool:
    """Whether an object knows how it is saved."""
    try:
        value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
    except (pickle.PickleError, TypeError):
        return False
    return True


def home_of(value: Any) -> tuple[str, str] | None:
    """The loaded module and the name under which it holds an object, a compiled function say; None if none does."""
    for module, loaded in list(sys.modules.items()):
        for name, held in list(getattr(loaded, "__dict__", {}).items()):
            if held is value:
                return module, name
    return None


def _found(module: str, name: str, imports: bool = False) -> Any:
    """What stands under a name in a module; None if the module or the name is not there."""
    found = sys.modules.get(module)
    if found is None and imports:
        try:
            found = importlib.import_module(module)
        except ImportError:
            return None
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
