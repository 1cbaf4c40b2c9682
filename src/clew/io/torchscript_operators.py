"""Which Python call an operator of TorchScript is, and the functions that such calls need besides torch's.

A schema comes in, with arguments that are nodes or constants; out comes how the graph spells the call. In general that
is ``torch.ops.<namespace>.<name>.<overload>``, the very operator. Where ``torch.<name>``, a method, an operator or a
builtin of Python does exactly the same, that is written instead. Lists and dicts are Python's own, because operators
reached through ``torch.ops`` would work on copies of them. TorchScript's rules for arguments (it converts what it is
given), for dtypes (by number), texts and errors are functions here, on plain Python values.
"""

from __future__ import annotations

import functools
import operator
import re
import warnings
from typing import Any, NamedTuple, NoReturn

import torch

from clew.errors import GuardError, InteropError
from clew.ir.effects import harmless, pure
from clew.ir.node import Node

# ---- operators -------------------------------------------------------------------------------------------------------

_ANY_KIND = re.compile(r"\b(t|tVal|key|value)\b")
NUMBERS = frozenset({"int", "float", "bool", "number", "Scalar"})


class Call(NamedTuple):
    """One call of a graph."""

    op: str
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = {}


# On numbers, texts and None: what does not depend on how wide a number is.
_SCALAR = {
    "add": operator.add, "sub": operator.sub, "neg": operator.neg,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "__and__": operator.and_, "__or__": operator.or_, "__xor__": operator.xor,
    "__not__": operator.not_, "__is__": operator.is_, "__isnot__": operator.is_not,
    "Int": int, "Float": float, "Bool": bool,
}  # fmt: skip
# On tensors: Python's operators, where nothing else is asked for.
_TENSOR = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "matmul": operator.matmul,
    "neg": operator.neg, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne, "Bool": bool, "Int": int, "Float": float,
}  # fmt: skip
_CONTAINER = {
    "len": len, "__getitem__": operator.getitem, "_set_item": operator.setitem, "Delete": operator.delitem,
    "__delitem__": operator.delitem, "list": list, "add": operator.add, "add_": operator.iadd, "mul": operator.mul,
    "eq": operator.eq, "ne": operator.ne, "__contains__": operator.contains, "__is__": operator.is_,
    "__isnot__": operator.is_not,
}  # fmt: skip
_CONTAINER_METHODS = frozenset(
    "append insert pop extend clear remove reverse copy get setdefault update popitem index count "
    "keys values items".split()
)
_PROPERTIES = {
    "prim::device": "device", "prim::data": "data", "prim::is_cuda": "is_cuda", "prim::requires_grad": "requires_grad",
    "prim::is_sparse": "is_sparse", "prim::is_quantized": "is_quantized", "prim::is_meta": "is_meta",
    "prim::is_cpu": "is_cpu", "prim::is_nested": "is_nested", "prim::itemsize": "itemsize", "prim::name": "name",
    "prim::is_mkldnn": "is_mkldnn", "prim::is_xpu": "is_xpu", "prim::is_mps": "is_mps", "prim::is_mtia": "is_mtia",
}  # fmt: skip
_NUMBERED: dict[str, dict[int, Any]] = {
    "ScalarType": {},
    "Layout": {0: torch.strided, 1: torch.sparse_coo},
    "MemoryFormat": {0: torch.contiguous_format, 1: torch.preserve_format, 2: torch.channels_last},
}


def call_of(schema: Any, args: list[Any], kinds: list[str]) -> Call:
    """The call of an operator; ``kinds`` are the types of its arguments in TorchScript's words."""
    full = schema.name
    namespace, _, name = full.partition("::")
    if full in _PROPERTIES:
        return Call("call_function", getattr, (args[0], _PROPERTIES[full]))
    if full == "prim::dtype":
        return Call("call_function", dtype_number, (args[0],))
    if namespace == "aten":
        found = _python_call(name, schema, args, kinds)
        if found is not None:
            return found
    _refuse_copies(schema)
    return _friendly(name, schema, args) if namespace == "aten" else _general(schema, args)


def _python_call(name: str, schema: Any, args: list[Any], kinds: list[str]) -> Call | None:
    first = kinds[0] if kinds else ""
    if name == "format":
        return Call("call_function", formatted, tuple(args))
    if name == "warn":
        return Call("call_function", warnings.warn, (args[0],))
    if name == "device":
        return Call("call_function", torch.device, tuple(args))
    if name == "_unwrap_optional":
        return Call("call_function", unwrapped, (args[0],))
    if _is_container(first) or (name in ("__contains__", "add", "eq", "ne") and first == "str"):
        return _container_call(name, schema, args, kinds)
    if name in ("__is__", "__isnot__"):
        return Call("call_function", _SCALAR[name], tuple(args))
    if kinds and all(kind in NUMBERS or kind == "Device" for kind in kinds) and name in _SCALAR:
        return Call("call_function", _SCALAR[name], tuple(args))
    return _tensor_call(name, schema, args, kinds)


def _container_call(name: str, schema: Any, args: list[Any], kinds: list[str]) -> Call | None:
    compared = kinds[1:] if name == "__contains__" and kinds[0].startswith("Dict[") else kinds
    if name in ("eq", "ne", "__contains__") and any("Tensor" in kind for kind in compared):
        return None
    if name in _CONTAINER:
        return Call("call_function", _CONTAINER[name], tuple(args))
    if name in _CONTAINER_METHODS:
        return Call("call_method", name, tuple(args))
    if name == "slice" and len(args) == 4:
        return Call("call_function", operator.getitem, (args[0], slice(*args[1:])))
    if name == "sort" and "Tensor" not in kinds[0] and len(args) == 2:
        return Call("call_method", "sort", (args[0],), {"reverse": args[1]})
    return None


def _tensor_call(name: str, schema: Any, args: list[Any], kinds: list[str]) -> Call | None:
    """Operators of Python for tensors, and methods for what changes one in place."""
    if not kinds or "Tensor" not in kinds or any(kind != "Tensor" and kind not in NUMBERS for kind in kinds):
        return None
    scaled = schema.arguments[-1].name == "alpha"
    plain = args[:-1] if scaled and type(args[-1]) is int and args[-1] == 1 else args
    if name in _TENSOR and kinds[0] == "Tensor" and len(plain) <= 2 and not schema.arguments[len(plain) - 1].kwarg_only:
        return Call("call_function", _TENSOR[name], tuple(plain))
    if name in ("dim", "numel") and len(args) == 1:
        return Call("call_method", name, tuple(args))
    if name == "size" and len(args) == 2:
        return Call("call_method", name, tuple(args))
    return None


def _friendly(name: str, schema: Any, args: list[Any]) -> Call:
    """``torch.relu(x)`` or ``x.add_(y)`` where these are the operator's own bindings."""
    function = getattr(torch, name, None)
    bound = getattr(torch._C._VariableFunctions, name, None)
    if bound is None or function is not bound:
        function = getattr(torch.nn.functional, name, None)
        bound = getattr(torch._C._nn, name, None)
    numbered = any(_is_number(value, argument) for argument, value in zip(schema.arguments, args, strict=False))
    if numbered or not any("Tensor" in str(part.type) for part in (*schema.arguments, *schema.returns)):
        return _general(schema, args)
    given = _given(schema, args)
    first = schema.arguments[0] if schema.arguments else None
    if bound is not None and function is bound and not name.endswith("_"):
        return Call("call_function", function, *given)
    is_method = first is not None and first.name == "self" and str(first.type) == "Tensor"
    if is_method and name.endswith("_") and type(getattr(torch.Tensor, name, None)) is type(torch.Tensor.add_):
        return Call("call_method", name, *given)
    return _general(schema, args)


def _is_number(value: Any, argument: Any) -> bool:
    """A dtype or the like that is known by its number only, which no function but the operator itself takes."""
    if _kind(argument) not in _NUMBERED:
        return False
    return isinstance(value, Node) or type(_as_torch_says(value, argument)) is int


def _given(schema: Any, args: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that differ from their defaults: positional ones up to the last of these, named ones by name."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    last = 0
    for argument, value in zip(schema.arguments, args, strict=False):
        is_default = argument.has_default_value() and _same(value, argument.default_value)
        is_default = is_default and argument.name != "reduction"  # whose default is another one in Python
        value = _as_torch_says(value, argument)
        if argument.kwarg_only:
            if not is_default:
                named[argument.name] = value
            continue
        positional.append(value)
        if not is_default:
            last = len(positional)
    return tuple(positional[:last]), named


def _same(value: Any, default: Any) -> bool:
    return not isinstance(value, Node) and type(value) is type(default) and value == default


def _as_torch_says(value: Any, argument: Any) -> Any:
    """A dtype, layout or memory format instead of its number."""
    kind = _kind(argument)
    if type(value) is int and kind == "ScalarType":
        return _dtypes().get(value, value)
    return _NUMBERED.get(kind, {}).get(value, value) if type(value) is int else value


def _kind(argument: Any) -> str:
    return str(argument.real_type).removeprefix("Optional[").removesuffix("]")


@functools.cache
def _dtypes() -> dict[int, torch.dtype]:
    """The common dtypes by the numbers that TorchScript knows them by."""
    found = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bfloat16, torch.float16]
    found += [torch.float32, torch.float64, torch.complex64, torch.complex128]
    return {dtype_number(torch.empty(0, dtype=dtype, device="meta")): dtype for dtype in found}


def _general(schema: Any, args: list[Any]) -> Call:
    """The operator itself."""
    namespace, _, name = schema.name.partition("::")
    try:
        overload = getattr(getattr(getattr(torch.ops, namespace), name), schema.overload_name or "default")
    except (AttributeError, RuntimeError) as error:
        raise unknown(schema.name) from error
    return Call("call_function", overload, *_given(schema, args))


def _refuse_copies(schema: Any) -> None:
    """An operator that changes a list would change a copy of it; one for lists of any kind cannot be called at all."""
    for argument in schema.arguments:
        if _ANY_KIND.search(str(argument.type)) and schema.name not in ("aten::tensor", "aten::as_tensor"):
            raise unknown(schema.name, "it works on lists or dicts of any kind, and has no counterpart here")
        changes = argument.alias_info is not None and argument.alias_info.is_write
        if changes and _is_container(str(argument.type)):
            raise unknown(schema.name, "it changes a list or dict in a way that has no counterpart here")


def _is_container(kind: str) -> bool:
    return kind.startswith(("List[", "Dict[", "Tuple["))


def unknown(name: str, why: str = "") -> InteropError:
    """The error for an operator that has no call."""
    return InteropError(
        f"the TorchScript operator {name} cannot be converted",
        why=why or "neither Clew nor torch.ops has a function for it",
        fixes=["capture the original Python program with clew.trace", "leave the operator out of the program"],
    )


# ---- rules of TorchScript for values ---------------------------------------------------------------------------------


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


@harmless
def read_attribute(root: Any, path: str) -> Any:
    """An attribute that the program sets, as it is at this very moment."""
    return operator.attrgetter(path)(root)


@harmless
def require_tensor(value: Any, argument: str) -> None:
    """Raise unless an argument is a tensor."""
    if not isinstance(value, torch.Tensor):
        raise _mismatch(value, "Tensor", argument)


@harmless
def as_declared(value: Any, kind: Any, argument: str) -> Any:
    """An argument as a program sees it that declares its type: ``"float"``, ``("list", "int")``."""
    if isinstance(kind, tuple):
        return _nest(value, kind, argument)
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
    raise _mismatch(value, kind, argument)


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
