"""What graphs that come from TorchScript call besides functions of torch: its rules for arguments, texts and errors.

TorchScript knows the types of its inputs and converts what it is given; it speaks of dtypes by number; its lists are
copies of the caller's; its errors are of one class. These functions do the same, on plain Python values.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, NoReturn

import torch

from clew.errors import GuardError
from clew.ir.effects import pure


@pure
def dtype_number(array: torch.Tensor) -> int:
    """The number by which TorchScript knows the dtype of a tensor."""
    return int(torch.ops.prim.dtype.default(array))


@pure
def unpacked(values: Any, count: int) -> list[Any]:
    """The items of a list that must be this long."""
    if len(values) != count:
        raise torch.jit.Error(f"Expected {count} elements in a list but found {len(values)}")
    return list(values)


@pure
def uninitialized() -> None:
    """Stands where TorchScript leaves a value open that nobody will look at."""


@pure
def unwrapped(value: Any) -> Any:
    """A value that must not be None."""
    if value is None:
        raise torch.jit.Error("Unwrapping null optional")
    return value


@pure
def formatted(text: str, *values: Any) -> str:
    """A text with values in the place of each ``{}``."""
    parts = text.split("{}")
    if len(values) < len(parts) - 1:
        raise torch.jit.Error(f"Too few arguments for format string: {text}")
    texts = [*map(_text_of, values[: len(parts) - 1]), ""]
    return "".join(part + filling for part, filling in zip(parts, texts, strict=True))


@functools.cache
def _writers() -> Any:
    """TorchScript's own way to write numbers and tensors in a text, which is not Python's."""
    return torch._C.CompilationUnit("""
def float_text(value: float) -> str:
    return "{}".format(value)

def tensor_text(value: Tensor) -> str:
    return "{}".format(value)
""")


def _text_of(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return str(_writers().tensor_text(value))
    if type(value) is float:
        return str(_writers().float_text(value))
    if isinstance(value, list):
        return f"[{', '.join(map(_text_of, value))}]"
    return str(value)


def raise_error(message: Any, kind: Any = None) -> NoReturn:
    """Raise the error of a TorchScript program."""
    name = "" if kind is None else f"{str(kind).rpartition('.')[2]}: "
    raise torch.jit.Error(f"{name}{message}")


def read_attribute(root: Any, path: str) -> Any:
    """An attribute that the program sets, as it is at this very moment."""
    return operator.attrgetter(path)(root)


def require_tensor(value: Any, name: str) -> None:
    """Raise unless an argument is a tensor."""
    if not isinstance(value, torch.Tensor):
        raise _mismatch(value, "Tensor", name)


def as_declared(value: Any, kind: Any, name: str) -> Any:
    """An argument as a program sees it that declares its type: ``"float"``, ``("list", "int")``."""
    if isinstance(kind, tuple):
        return _nest(value, kind, name)
    if kind == "Any":
        return value
    if kind == "float" and type(value) in (int, float):
        return float(value)
    if kind == "int" and type(value) in (int, bool):
        return int(value)
    if kind == "Device" and isinstance(value, (str, torch.device)):
        return torch.device(value)
    if isinstance(value, _CLASSES.get(kind, ())):
        return value
    raise _mismatch(value, kind, name)


_CLASSES: dict[str, Any] = {
    "Tensor": torch.Tensor,
    "bool": bool,
    "str": str,
    "number": (int, float, complex),
    "complex": complex,
    "NoneType": type(None),
    "Generator": torch.Generator,
}


def _nest(value: Any, kind: tuple[Any, ...], name: str) -> Any:
    way, *inner = kind
    if way == "optional":
        return None if value is None else as_declared(value, inner[0], name)
    if way == "list" and isinstance(value, (list, tuple)):
        return [as_declared(item, inner[0], f"{name}[{place}]") for place, item in enumerate(value)]
    if way == "tuple" and isinstance(value, tuple) and len(value) == len(inner):
        parts = zip(value, inner, strict=True)
        return tuple(as_declared(item, part, f"{name}[{place}]") for place, (item, part) in enumerate(parts))
    if way == "dict" and isinstance(value, dict):
        keys, values = inner
        return {
            as_declared(key, keys, f"a key of {name}"): as_declared(item, values, f"{name}[{key!r}]")
            for key, item in value.items()
        }
    raise _mismatch(value, kind, name)


def _mismatch(value: Any, kind: Any, name: str) -> GuardError:
    return GuardError(
        f"the program takes {_words(kind)} for {name}, and is given a {type(value).__name__}",
        why="a program of TorchScript is compiled for the types that it declares",
        fixes=("pass a value of that type",),
    )


def _words(kind: Any) -> str:
    if not isinstance(kind, tuple):
        return f"a {kind}"
    way, *inner = kind
    return f"{_words(inner[0])} or None" if way == "optional" else f"a {way}"
