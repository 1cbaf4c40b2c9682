"""Arrays in a bundle: a safetensors file inside of the zip, read in place.

The file lies uncompressed and aligned in the zip, so that loading maps it into memory: nothing is copied, and what is
written to an array later stays in memory. The header is checked before any array is made: each must lie inside of the
file and have the size that its shape and dtype say.
"""

from __future__ import annotations

import json
import math
import mmap
import struct
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from clew.errors import BundleError

_SIZES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4,
    "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8, "C64": 8,
}  # fmt: skip
NAMES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "I16": "int16",
    "U16": "uint16", "F16": "float16", "BF16": "bfloat16", "I32": "int32", "U32": "uint32", "F32": "float32",
    "I64": "int64", "U64": "uint64", "F64": "float64", "C64": "complex64",
}  # fmt: skip
_CODES = {name: code for code, name in NAMES.items()}
ALIGNMENT = 64
"""Of the address of an array: at others some kernels round differently."""
_LONGEST_HEADER = 100 << 20
_MOST_AXES = 64


class Entry(NamedTuple):
    """Where one array lies in the mapped file, and what it is."""

    dtype: str
    shape: tuple[int, ...]
    start: int


def write(arrays: dict[str, Any], path: Path) -> None:
    """Write arrays, of torch or of NumPy, as a safetensors file. Those whose size is a multiple of the alignment come
    first, so that each of them is aligned where it is mapped."""
    contents = {name: _content(name, array) for name, array in arrays.items()}
    ordered = sorted(contents, key=lambda name: contents[name].nbytes % ALIGNMENT != 0)
    header, place = {}, 0
    for name in ordered:
        stop = place + contents[name].nbytes
        offsets = [place, stop]
        header[name] = {"dtype": _code(arrays[name]), "shape": list(arrays[name].shape), "data_offsets": offsets}
        place = stop
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in ordered:
            file.write(contents[name].data)


def is_known(array: Any) -> bool:
    """Whether safetensors has numbers of this kind."""
    return bool(_code(array))


def _code(array: Any) -> str:
    return _CODES.get(str(array.dtype).removeprefix("torch."), "")


def _content(name: str, array: Any) -> numpy.ndarray[Any, Any]:
    """The bytes of an array."""
    if not _code(array):
        raise BundleError(f"{name} holds numbers of the kind {array.dtype}, which safetensors does not have")
    if isinstance(array, numpy.ndarray):
        return numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8)
    flat = array.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    found: numpy.ndarray[Any, Any] = flat.view(sys.modules["torch"].uint8).numpy()
    return found


class Weights:
    """The arrays of an open bundle."""

    def __init__(self, path: Path, start: int, length: int) -> None:
        with path.open("rb") as file:
            self.memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        if start + length > len(self.memory) or length < 8:
            raise BundleError("the file is cut off: its weights are not complete")
        (size,) = struct.unpack_from("<Q", self.memory, start)
        if size > min(length - 8, _LONGEST_HEADER):
            raise BundleError("the header of the weights is longer than the file")
        first = start + 8 + size
        self._entries = _entries(self.memory[start + 8 : first], first, start + length)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def array(self, name: str) -> Any:
        """An array of NumPy."""
        entry = self.entry(name)
        try:
            dtype = numpy.dtype(NAMES[entry.dtype])
        except TypeError as error:
            raise BundleError(f"NumPy has no numbers of the kind {entry.dtype}") from error
        count = math.prod(entry.shape)
        if count == 0:
            return numpy.empty(entry.shape, dtype)
        return numpy.frombuffer(self.memory, dtype, count, entry.start).reshape(entry.shape)

    def entry(self, name: str) -> Entry:
        """Where an array lies in the mapped file."""
        if name not in self._entries:
            raise BundleError(f"the weights of the file have no array {name!r}")
        return self._entries[name]


def _entries(header: bytes, first: int, end: int) -> dict[str, Entry]:
    """What the header of a safetensors file lists, if each array lies where it can."""
    listed = json.loads(header)
    if not isinstance(listed, dict):
        raise BundleError("the header of the weights is no table")
    listed.pop("__metadata__", None)
    return {name: _entry(name, one, first, end) for name, one in listed.items()}


def _entry(name: str, one: Any, first: int, end: int) -> Entry:
    dtype, shape, (start, stop) = one["dtype"], one["shape"], one["data_offsets"]
    numbers = [start, stop, *shape]
    if any(type(number) is not int or not 0 <= number < 1 << 60 for number in numbers) or len(shape) > _MOST_AXES:
        raise BundleError(f"the array {name!r} of the file has an impossible shape or place")
    if dtype not in _SIZES or stop - start != math.prod(shape) * _SIZES[dtype] or first + stop > end:
        raise BundleError(f"the array {name!r} of the file does not have the size that its shape says")
    return Entry(dtype, tuple(shape), first + start)
