"""Inputs of a program as they are written on the command line, and the arrays that they stand for.

In comes ``x=f32[2,3]``, ``ids=i64[2,8]<1000``, ``flag=true``, ``x=image.npy``, ``x=data.npz:image`` or a whole ``.npz``
or ``.safetensors`` file; out go positional and named arguments of one framework. Random arrays come from a seed, so
that the same command gives the same numbers.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from safetensors import SafetensorError

from clew.errors import UsageError

_ARRAY = re.compile(r"(?P<dtype>[a-z]+\d*)\[(?P<shape>[\d,\s]*)\](?:<(?P<bound>\d+))?\Z")
_NAMED = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<rest>.*)\Z", re.DOTALL)
_DTYPES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32",
    "bool": "bool",
}  # fmt: skip
_DEFAULT_BOUND = 10
_MOST_NUMBERS = 1 << 31
_LIBRARIES = {"torch": "torch", "jax": "jax.numpy", "tensorflow": "tensorflow", "safetensors": "safetensors.numpy"}
"""What makes or reads arrays; each is imported when a command needs it."""
_PICKLES = (".pt", ".pth", ".bin", ".pkl", ".pickle")
_WORDS = {"true": True, "false": False, "none": None}
FORMS = "x=f32[2,3], ids=i64[2,8]<1000, mask=bool[2,8], n=3, flag=true, x=file.npy, x=file.npz:key, file.npz"


class Inputs(NamedTuple):
    """The arguments of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def described(self) -> list[str]:
        """Each argument with its type, for reports."""
        values = [("", value) for value in self.args] + [(f"{name}=", value) for name, value in self.kwargs.items()]
        return [start + _described(value) for start, value in values]


def read(words: Iterable[str], framework: str, seed: int = 0, device: str | None = None) -> Inputs:
    """The arguments that the words of a command stand for."""
    make = _Maker(framework, numpy.random.default_rng(seed), device)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for word in words:
        named = _NAMED.match(word)
        if named is not None:
            _put(kwargs, named["name"], make.value(named["rest"], word))
        elif Path(word).suffix in (".npz", ".safetensors"):
            for name, array in _arrays(Path(word)).items():
                _put(kwargs, name, make.converted(array))
        elif kwargs:
            raise UsageError(f"{word!r} has no name, and stands behind inputs that have one", fixes=[f"NAME={word}"])
        else:
            args.append(make.value(word, word))
    return Inputs(tuple(args), kwargs)


def _put(kwargs: dict[str, Any], name: str, value: Any) -> None:
    if name in kwargs:
        raise UsageError(f"the input {name} is given twice")
    kwargs[name] = value


class _Maker:
    """Makes arrays of one framework."""

    def __init__(self, framework: str, random: numpy.random.Generator, device: str | None) -> None:
        self.framework = framework
        self.random = random
        self.device = device

    def value(self, text: str, word: str) -> Any:
        """What one word stands for."""
        array = _ARRAY.match(text)
        if array is not None:
            return self._random(array, word)
        path, _, key = text.partition(":")
        if Path(path).suffix in (".npy", ".npz", ".safetensors"):
            return self.converted(_one_array(Path(path), key))
        if Path(path).suffix in _PICKLES:
            raise UsageError(
                f"{word!r} is a file that may run code when it is read",
                fixes=["save the array as .npy or .safetensors"],
            )
        if text.lower() in _WORDS:
            return _WORDS[text.lower()]
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError) as error:
            raise UsageError(f"{word!r} is no input", why=f"inputs look like {FORMS}") from error

    def _random(self, match: re.Match[str], word: str) -> Any:
        dtype = _DTYPES.get(match["dtype"])
        if dtype is None:
            raise UsageError(f"{word!r} has no dtype that is known", why=f"dtypes are {', '.join(_DTYPES)}")
        shape = tuple(int(size) for size in match["shape"].replace(" ", "").split(",") if size)
        if numpy.prod(shape, dtype=object) > _MOST_NUMBERS:
            raise UsageError(f"{word!r} is larger than {_MOST_NUMBERS} numbers")
        if match["bound"] is not None and dtype[0] not in "iu":
            raise UsageError(f"{word!r} has a bound, which only whole numbers have", fixes=["i64[2,8]<1000"])
        if match["bound"] is not None and not 1 <= int(match["bound"]) <= numpy.iinfo(dtype).max:
            largest = numpy.iinfo(dtype).max
            raise UsageError(f"{word!r} has a bound that is none: numbers of {match['dtype']} go up to {largest}")
        return self.converted(self._numbers(dtype, shape, int(match["bound"] or _DEFAULT_BOUND)), dtype)

    def _numbers(self, dtype: str, shape: tuple[int, ...], bound: int) -> numpy.ndarray[Any, Any]:
        if dtype == "bool":
            return self.random.random(shape) < 0.5
        if dtype[0] in "iu":
            return self.random.integers(0, bound, shape).astype(dtype)
        found = self.random.standard_normal(shape)
        if dtype[0] == "c":
            return numpy.asarray(found + 1j * self.random.standard_normal(shape)).astype(dtype)
        return numpy.asarray(found).astype("float32" if dtype == "bfloat16" else dtype)

    def converted(self, array: numpy.ndarray[Any, Any], dtype: str = "") -> Any:
        """An array of NumPy as one of the framework."""
        if self.framework == "torch":
            torch = importlib.import_module(_LIBRARIES["torch"])
            tensor = torch.from_numpy(numpy.array(array))
            tensor = tensor.to(torch.bfloat16) if dtype == "bfloat16" else tensor
            return tensor if self.device is None else tensor.to(self.device)
        if self.framework == "jax":
            return importlib.import_module(_LIBRARIES["jax"]).asarray(array, dtype=dtype or None)
        if self.framework == "tensorflow":
            return importlib.import_module(_LIBRARIES["tensorflow"]).constant(array, dtype=dtype or None)
        if dtype == "bfloat16":
            raise UsageError("NumPy has no bfloat16", fixes=["f32[...]"])
        return array


def _arrays(path: Path) -> dict[str, Any]:
    """All arrays of a file, by name."""
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    try:
        if path.suffix == ".npy":
            return {"": numpy.load(path, allow_pickle=False)}
        if path.suffix == ".npz":
            with numpy.load(path, allow_pickle=False) as file:
                return dict(file)
        return dict(importlib.import_module(_LIBRARIES["safetensors"]).load_file(str(path)))
    except (ValueError, OSError, KeyError, SafetensorError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error


def _one_array(path: Path, key: str) -> Any:
    arrays = _arrays(path)
    if path.suffix == ".npy":
        return arrays[""]
    if key in arrays:
        return arrays[key]
    if not key and len(arrays) == 1:
        return next(iter(arrays.values()))
    raise UsageError(
        f"{path} has no array {key!r}" if key else f"{path} has several arrays",
        fixes=[f"{path}:{name}" for name in list(arrays)[:5]],
    )


def _described(value: Any) -> str:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        return repr(value)
    name = str(getattr(dtype, "name", dtype)).rpartition(".")[2]
    short = next((short for short, long in _DTYPES.items() if long == name), name)
    return f"{short}[{','.join(map(str, shape))}]"
