"""The types of TorchScript's values as plain nests of texts: ``"Tensor"``, ``("optional", ("list", "int"))``."""

from __future__ import annotations

from typing import Any

from clew.errors import InteropError

_SIMPLE = {
    "TensorType": "Tensor",
    "IntType": "int",
    "FloatType": "float",
    "BoolType": "bool",
    "StringType": "str",
    "NumberType": "number",
    "ComplexType": "complex",
    "DeviceObjType": "Device",
    "GeneratorType": "Generator",
    "NoneType": "NoneType",
    "AnyType": "Any",
}


def spec_of(kind: Any) -> Any:
    """The nest for a type; an error for one that Python has no plain value for."""
    name = kind.kind()
    if name in _SIMPLE:
        return _SIMPLE[name]
    if name == "OptionalType":
        return ("optional", spec_of(kind.getElementType()))
    if name == "ListType":
        return ("list", spec_of(kind.getElementType()))
    if name == "TupleType":
        return ("tuple", *(spec_of(part) for part in kind.elements()))
    if name == "DictType":
        return ("dict", spec_of(kind.getKeyType()), spec_of(kind.getValueType()))
    raise InteropError(
        f"a value of the TorchScript type {kind.annotation_str} cannot be converted",
        why="only tensors, numbers, texts and nests of these are",
    )
