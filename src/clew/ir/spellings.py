"""Spellings: the canonical forms of a call, by which calls that are written differently are compared.

In comes a node; out come its forms: a framework, the name of the operation, and the arguments by name with defaults
filled in. ``x @ y``, ``torch.matmul(x, y)`` and ``x.matmul(y)`` have one form in common, and so do ``x.softmax(-1)``,
``F.softmax(x, dim=-1)`` and a call of ``nn.Softmax(-1)``. The rules are data: ``SIGNATURES`` has one operation a line,
``SPELLINGS`` what is written unlike that. Two calls with a common form compute the same from the same arguments, to the
bit; what is only nearly equal has no rule. A call that no rule knows has the form that it is written in, and a function
of a framework is what the method of that name is.
"""

from __future__ import annotations

import ast
import builtins
import functools
import operator
from dataclasses import dataclass
from typing import Any

from clew.ir.arguments import Reference
from clew.ir.effects import pure, resolve
from clew.ir.format import qualified_name
from clew.ir.guests import Effect, guest_of, package_of, present
from clew.ir.names import NotFound, find
from clew.ir.node import Node
from clew.ir.types import ArrayType, Type

SIGNATURES = """
torch add(input, other, alpha=1)
torch add_(input, other, alpha=1)
torch sub(input, other, alpha=1)
torch sub_(input, other, alpha=1)
torch mul(input, other)
torch mul_(input, other)
torch div(input, other, rounding_mode=None)
torch div_(input, other, rounding_mode=None)
torch floor_divide(input, other)
torch remainder(input, other)
torch pow(input, exponent)
torch matmul(input, other)
torch mm(input, mat2)
torch bmm(input, mat2)
torch addmm(input, mat1, mat2, beta=1, alpha=1)
torch baddbmm(input, batch1, batch2, beta=1, alpha=1)
torch maximum(input, other)
torch minimum(input, other)
torch logical_and(input, other)
torch logical_or(input, other)
torch logical_xor(input, other)
torch bitwise_and(input, other)
torch bitwise_or(input, other)
torch bitwise_xor(input, other)
torch eq(input, other)
torch ne(input, other)
torch lt(input, other)
torch le(input, other)
torch gt(input, other)
torch ge(input, other)
torch where(condition, input, other)
torch masked_fill(input, mask, value)
torch clamp(input, min=None, max=None)
torch softmax(input, dim, dtype=None)
torch log_softmax(input, dim, dtype=None)
torch sum(input, dims=None, keepdim=False, dtype=None)
torch mean(input, dims=None, keepdim=False, dtype=None)
torch amax(input, dims=(), keepdim=False)
torch amin(input, dims=(), keepdim=False)
torch logsumexp(input, dims, keepdim=False)
torch var(input, dims=None, correction=1, keepdim=False)
torch std(input, dims=None, correction=1, keepdim=False)
torch argmax(input, dim=None, keepdim=False)
torch argmin(input, dim=None, keepdim=False)
torch cumsum(input, dim, dtype=None)
torch cumprod(input, dim, dtype=None)
torch topk(input, k, dim=-1, largest=True, sorted=True)
torch sort(input, dim=-1, descending=False)
torch transpose(input, dim0, dim1)
torch permute(input, *dims)
torch reshape(input, *shape)
torch view(input, *shape)
torch expand(input, *size)
torch repeat(input, *size)
torch flatten(input, start_dim=0, end_dim=-1)
torch unsqueeze(input, dim)
torch squeeze(input, dims=None)
torch select(input, dim, index)
torch narrow(input, dim, start, length)
torch split(tensor, split_size_or_sections, dim=0)
torch chunk(input, chunks, dim=0)
torch unbind(input, dim=0)
torch cat(tensors, dim=0)
torch stack(tensors, dim=0)
torch gather(input, dim, index)
torch index_select(input, dim, index)
torch tril(input, diagonal=0)
torch triu(input, diagonal=0)
torch roll(input, shifts, dims=None)
torch to(input, dtype)
torch relu(input)
torch relu_(input)
torch gelu(input, approximate='none')
torch silu(input)
torch leaky_relu(input, negative_slope=0.01)
torch elu(input, alpha=1.0)
torch dropout(input, p, train)
torch linear(input, weight, bias=None)
torch layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05)
torch group_norm(input, num_groups, weight=None, bias=None, eps=1e-05)
numpy sum(a, axis=None, dtype=None, keepdims=False)
numpy mean(a, axis=None, dtype=None, keepdims=False)
numpy max(a, axis=None, keepdims=False)
numpy min(a, axis=None, keepdims=False)
numpy matmul(a, b)
numpy reshape(a, *shape)
jax sum(a, axis=None, dtype=None, keepdims=False)
jax mean(a, axis=None, dtype=None, keepdims=False)
jax max(a, axis=None, keepdims=False)
jax min(a, axis=None, keepdims=False)
jax matmul(a, b)
jax reshape(a, *shape)
"""
"""One operation a line: its framework, its name, its parameters. ``*shape`` takes numbers or one sequence of them;
``dims`` takes a number for a sequence of one."""

SPELLINGS = """
torch.divide(input, other, rounding_mode=None) -> div
torch.true_divide(input, other) -> div
torch.multiply(input, other) -> mul
torch.subtract(input, other, alpha=1) -> sub
torch.rsub(other, input, alpha=1) -> sub
torch.negative(input) -> neg
torch.absolute(input) -> abs
torch.greater(input, other) -> gt
torch.greater_equal(input, other) -> ge
torch.less(input, other) -> lt
torch.less_equal(input, other) -> le
torch.not_equal(input, other) -> ne
torch.clip(input, min=None, max=None) -> clamp
torch.square(input, exponent=2) -> pow
torch.concat(tensors, dim=0) -> cat
torch.concatenate(tensors, dim=0) -> cat
torch.swapaxes(input, dim0, dim1) -> transpose
torch.swapdims(input, dim0, dim1) -> transpose
torch.moveaxis(input, source, destination) -> movedim
torch.special.expit(input) -> sigmoid
torch.special.erf(input) -> erf
torch.special.exp2(input) -> exp2
torch.special.expm1(input) -> expm1
torch.special.log1p(input) -> log1p
torch.special.softmax(input, dim, dtype=None) -> softmax
torch.special.log_softmax(input, dim, dtype=None) -> log_softmax
torch.special.logsumexp(input, dims, keepdim=False) -> logsumexp
torch.nn.functional.sigmoid(input) -> sigmoid
torch.nn.functional.tanh(input) -> tanh
torch.nn.functional.relu(input, inplace=False) -> relu
torch.nn.functional.silu(input, inplace=False) -> silu
torch.nn.functional.elu(input, alpha=1.0, inplace=False) -> elu
torch.nn.functional.leaky_relu(input, negative_slope=0.01, inplace=False) -> leaky_relu
torch.nn.functional.softmax(input, dim, _stacklevel, dtype=None) -> softmax
torch.nn.functional.log_softmax(input, dim, _stacklevel, dtype=None) -> log_softmax
torch.nn.functional.dropout(input, p=0.5, train=True, inplace=False) -> dropout
torch.layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True) -> layer_norm
torch.group_norm(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True) -> group_norm
.where(input, condition, other) -> where
.polygamma(input, n) -> polygamma
.float(input, dtype=torch.float32) -> to
.double(input, dtype=torch.float64) -> to
.half(input, dtype=torch.float16) -> to
.bfloat16(input, dtype=torch.bfloat16) -> to
.long(input, dtype=torch.int64) -> to
.int(input, dtype=torch.int32) -> to
.bool(input, dtype=torch.bool) -> to
.type(input, dtype) -> to
.mT(input, dim0=-2, dim1=-1) -> transpose
.ReLU(input, inplace=False) -> relu
.GELU(input, approximate='none') -> gelu
.SiLU(input, inplace=False) -> silu
.ELU(input, alpha=1.0, inplace=False) -> elu
.LeakyReLU(input, negative_slope=0.01, inplace=False) -> leaky_relu
.Sigmoid(input) -> sigmoid
.Tanh(input) -> tanh
.Softmax(input, dim) -> softmax
.LogSoftmax(input, dim) -> log_softmax
.Flatten(input, start_dim=1, end_dim=-1) -> flatten
"""
"""What is written unlike its operation: torch's functions by their names, then methods, properties and modules behind a
dot. Parameters that the operation has not must have their defaults, or count for nothing if they begin with ``_``."""

RENAMED = {"axis": "dim", "keepdims": "keepdim", "self": "input", "training": "train", "sizes": "size"}
"""Other names that torch's functions take for their parameters."""

OPERATORS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
    "pow": "pow", "matmul": "matmul", "neg": "neg", "abs": "abs", "invert": "bitwise_not", "and_": "bitwise_and",
    "or_": "bitwise_or", "xor": "bitwise_xor", "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
    "iadd": "add_", "isub": "sub_", "imul": "mul_", "itruediv": "div_",
}  # fmt: skip
"""Python's operators, and what arrays do for them."""

ARRAY_NAMES = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "power": "pow", "negative": "neg",
    "absolute": "abs", "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt",
    "greater_equal": "ge", "amax": "max", "amin": "min", "concat": "concatenate",
}  # fmt: skip
"""What NumPy, JAX and TensorFlow call operations."""

COMMUTATIVE = {
    **dict.fromkeys("add mul maximum minimum logical_and logical_or logical_xor eq ne".split(), ("input", "other")),
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor".split(), ("input", "other")),
    "transpose": ("dim0", "dim1"),
}
"""Operations on arrays whose result does not change when these two arguments change places."""

_ON_SEQUENCES_TOO = frozenset({"add", "bitwise_and", "bitwise_or", "bitwise_xor"})
_SEVERAL = frozenset("split chunk unbind topk sort".split())
_NO_SEQUENCES = frozenset("sub truediv floordiv mod pow matmul neg abs invert".split())
_NUMBERS = frozenset({len, int, float, bool, "size", "dim", "ndimension", "numel", "item", "__len__", "nelement"})
_ABSENT = object()


def any_of(*alternatives: Any) -> Any:
    """In a pattern: any one of these values, the first that fits; an optional part is ``any_of(with_it, without_it)``.

    Parameters of the pattern that only other alternatives use are None in the replacement.
    """
    for value in alternatives:
        tracer = getattr(value, "tracer", None)
        if tracer is not None:
            return tracer.create_proxy("call_function", any_of, alternatives, {})
    return alternatives[0]


pure(any_of)


@dataclass(frozen=True)
class Form:
    """A call in canonical form. Arguments without a known name have their position."""

    framework: str
    operation: str
    arguments: dict[Any, Any]

    def swapped(self) -> Form | None:
        """The same call with the two arguments exchanged that may be; None if there are none."""
        pair = COMMUTATIVE.get(self.operation)
        if pair is None:
            return None
        first, second = pair if pair[0] in self.arguments else (0, 1)
        if {first, second} - self.arguments.keys() or self.arguments.get("alpha", 1) != 1:
            return None
        arguments = dict(self.arguments)
        arguments[first], arguments[second] = arguments[second], arguments[first]
        return Form(self.framework, self.operation, arguments)


@dataclass(frozen=True)
class Parameter:
    """A parameter of an operation."""

    name: str
    default: Any = _ABSENT
    is_star: bool = False


Parameters = tuple[Parameter, ...]


def _parameters(text: str) -> Parameters:
    arguments = ast.parse(f"f{text}", mode="eval").body
    assert isinstance(arguments, ast.Call)
    plain = [
        Parameter(one.value.id, is_star=True) if isinstance(one, ast.Starred) else Parameter(one.id)  # type: ignore
        for one in arguments.args
    ]
    return (*plain, *(Parameter(str(one.arg), _default(one.value)) for one in arguments.keywords))


def _default(value: ast.expr) -> Any:
    """A literal, or the dotted name of something in a framework, which is looked up when it is needed."""
    return ast.unparse(value) if isinstance(value, ast.Attribute) else ast.literal_eval(value)


@functools.cache
def _operations() -> dict[tuple[str, str], Parameters]:
    lines = [line.partition("(") for line in SIGNATURES.strip().splitlines()]
    return {tuple(head.split(" ")): _parameters(f"({rest}") for head, _, rest in lines}  # type: ignore[misc]


@functools.cache
def _spellings() -> dict[str, tuple[str, Parameters]]:
    found = {}
    for line in SPELLINGS.strip().splitlines():
        written, _, operation = line.partition(" -> ")
        name, _, rest = written.partition("(")
        found[name] = (operation, _reordered(_parameters(f"({rest}"), rest))
    return found


def _reordered(parameters: Parameters, text: str) -> Parameters:
    """Parameters in the order in which they are written, since Python's grammar puts those with defaults last."""
    order = {name: place for place, name in enumerate(part.split("=")[0].strip(" )") for part in text.split(","))}
    return tuple(sorted(parameters, key=lambda one: order[one.name]))


# ---- the forms of a node ---------------------------------------------------------------------------------------------


def forms_of(node: Node) -> tuple[Form, ...]:
    """The canonical forms of a call; none for nodes that are compared as they are written only."""
    if node.op == "call_function":
        return _function_forms(node)
    if node.op == "call_method":
        return _method_forms(node)
    return _module_forms(node) if node.op == "call_module" else ()


def operations_of(function: Any) -> set[tuple[str, str]]:
    """The operations that a function does, by framework and canonical name."""
    name = getattr(function, "__name__", "")
    if getattr(function, "__module__", "") == "_operator" or function is abs:
        return {(guest.package, OPERATORS[name]) for guest in present() if name in OPERATORS}
    guest = guest_of(function)
    if guest is None:
        return set()
    if guest.package != "torch":
        return {(guest.package, ARRAY_NAMES.get(name, name))}
    full = _qualified(function)
    return {("torch", _spellings()[full][0] if full in _spellings() else name)}


def _function_forms(node: Node) -> tuple[Form, ...]:
    function = node.target
    name = getattr(function, "__name__", "")
    if function is builtins.getattr:
        return _method_forms(node) if len(node.args) == 2 and f".{node.args[1]}" in _spellings() else ()
    if getattr(function, "__module__", "") == "_operator" or function is abs:
        if name not in OPERATORS or getattr(operator, name, abs) is not function or may_be_no_array(node):
            return ()
        return tuple(filter(None, (_form(guest.package, OPERATORS[name], node) for guest in present())))
    guest = guest_of(function)
    if guest is None or not name:
        return ()
    return tuple(filter(None, [_framework_form(guest.package, function, name, node)]))


def _framework_form(package: str, function: Any, name: str, node: Node) -> Form | None:
    full = _qualified(function)
    if package != "torch":
        public = full in (f"{package}.{name}", f"jax.numpy.{name}", f"tensorflow.math.{name}", f"tensorflow.{name}")
        return _form(package, ARRAY_NAMES.get(name, name), node) if public else None
    if full in _spellings():
        operation, parameters = _spellings()[full]
        return _respelled(package, operation, parameters, node.args, node.kwargs)
    if full in (f"torch.{name}", f"torch.Tensor.{name}", f"torch.nn.functional.{name}"):
        known = full.startswith("torch.nn") and (package, name) not in _operations()
        return None if known else _form(package, name, node)
    return None


@functools.lru_cache(maxsize=4096)
def _name_of(function: Any) -> str:
    return qualified_name(function)


def _qualified(function: Any) -> str:
    try:
        return _name_of(function)
    except TypeError:  # a callable without a hash
        return ""


def _method_forms(node: Node) -> tuple[Form, ...]:
    is_property = node.op == "call_function"
    args = node.args[:1] if is_property else node.args
    name = node.args[1] if is_property else node.target
    receiver = args[0] if args else None
    if not isinstance(receiver, Reference) or not _may_be_array(receiver):
        return ()
    found = []
    for guest in present():
        if guest.package == "torch" and f".{name}" in _spellings():
            operation, parameters = _spellings()[f".{name}"]
            found.append(_respelled("torch", operation, parameters, args, node.kwargs))
        elif guest.package == "torch" and f"torch.{name}" in _spellings():
            operation, parameters = _spellings()[f"torch.{name}"]
            found.append(_respelled("torch", operation, parameters, args, node.kwargs))
        elif not is_property:
            renamed = name if guest.package == "torch" else ARRAY_NAMES.get(name, name)
            found.append(_form(guest.package, renamed, node))
    return tuple(filter(None, found))


def _module_forms(node: Node) -> tuple[Form, ...]:
    """The form of a call of a module without state that stands for a function, if no hook runs with it."""
    module = resolve(node.graph.owning_module, str(node.target))
    name = f".{type(module).__name__}"
    guest = guest_of(type(module))
    if guest is None or name not in _spellings() or not type(module).__module__.startswith("torch.nn.modules."):
        return ()
    if guest.module_effect(module) is not Effect.NONE:
        return ()
    operation, parameters = _spellings()[name]
    settings = {one.name: getattr(module, one.name) for one in parameters if hasattr(module, one.name)}
    found = _respelled("torch", operation, parameters, node.args, {**settings, **node.kwargs})
    return () if found is None else (found,)


def _form(framework: str, operation: str, node: Node) -> Form | None:
    """The form of a call that is written as its operation is."""
    parameters = _operations().get((framework, operation))
    if parameters is None:
        named = {RENAMED.get(name, name): value for name, value in node.kwargs.items()}
        return Form(framework, operation, {**dict(enumerate(node.args)), **named})
    bound = _bound(parameters, node.args, node.kwargs)
    return None if bound is None or not _fits(operation, bound) else Form(framework, operation, bound)


def _respelled(framework: str, operation: str, written: Parameters, args: Any, kwargs: Any) -> Form | None:
    """The form of a call that is written by other parameters than those of its operation."""
    bound = _bound(written, args, kwargs)
    if bound is None:
        return None
    parameters = _operations().get((framework, operation))
    if parameters is None:
        return Form(framework, operation, dict(enumerate(bound.values())))
    defaults = {one.name: one.default for one in written}
    names = [one.name for one in parameters]
    extra = [name for name in bound if name not in names and not name.startswith("_")]
    if any(bound[name] is not defaults[name] for name in extra):
        return None
    arguments = {one.name: bound.get(one.name, one.default) for one in parameters}
    return Form(framework, operation, arguments) if _fits(operation, arguments) else None


def _fits(operation: str, arguments: dict[Any, Any]) -> bool:
    """False where an argument is missing, or is of a kind that makes another operation of the call."""
    if any(value is _ABSENT for value in arguments.values()):
        return False
    if operation == "to":
        return type(arguments["dtype"]).__name__ == "dtype"
    return operation not in ("softmax", "log_softmax") or arguments["dim"] is not None


def _bound(parameters: Parameters, args: Any, kwargs: Any) -> dict[Any, Any] | None:
    """The arguments by the names of parameters, defaults filled in; None where they do not fit."""
    named = _renamed(parameters, kwargs)
    bound: dict[Any, Any] = {}
    places = list(args)
    for one in parameters:
        if one.is_star and places:
            bound[one.name], places = _gathered(places), []
        elif places and one.name not in named:
            bound[one.name] = places.pop(0)
        elif one.name in named:
            bound[one.name] = named.pop(one.name)
        elif one.name.startswith("_"):
            continue
        elif one.default is _ABSENT:
            return None
        else:
            bound[one.name] = _looked_up(one.default)
    if places or named:
        return None
    if type(bound.get("dims")) is int:
        bound["dims"] = (bound["dims"],)
    return bound


def _renamed(parameters: Parameters, kwargs: Any) -> dict[str, Any]:
    names = {one.name for one in parameters}
    found = {}
    for name, value in kwargs.items():
        other = name if name in names else RENAMED.get(name, name)
        if other == "dim" and "dim" not in names and "dims" in names:
            other = "dims"
        if other == "unbiased" and "correction" in names and type(value) is bool:
            other, value = "correction", int(value)
        if other in ("out", "size") and other not in names and (value is None or "shape" in names):
            other = "shape" if other == "size" else ""
        if other:
            found[other] = value
    return found


def _gathered(places: list[Any]) -> Any:
    """Numbers of a shape as one tuple; a lone value may be the tuple itself."""
    if len(places) > 1 or type(places[0]) is int:
        return tuple(places)
    if isinstance(places[0], Node) and places[0].value_type is not None and is_number(places[0]):
        return tuple(places)
    return tuple(places[0]) if isinstance(places[0], (list, tuple)) else places[0]


def _looked_up(default: Any) -> Any:
    if not isinstance(default, str) or not default.startswith("torch."):
        return default
    try:
        return find(default)
    except NotFound:
        return default


# ---- what is known of values -----------------------------------------------------------------------------------------


def _may_be_array(value: Any) -> bool:
    known = getattr(value, "value_type", None)
    return known is None or isinstance(known, ArrayType)


def is_number(value: Any) -> bool:
    """Whether a value is surely a number of Python, as far as that is known without running."""
    if not isinstance(value, Node):
        return isinstance(value, (int, float, complex))
    known = value.value_type
    if known is not None:
        return isinstance(known, Type) and str(known) in ("int", "float", "bool", "complex")
    try:
        return value.target in _NUMBERS and (value.target != "size" or len(value.args) + len(value.kwargs) > 1)
    except TypeError:  # a callable without a hash
        return False


def may_be_no_array(node: Node) -> bool:
    """Whether an operator works on numbers or sequences of Python, as far as that is known."""
    if isinstance(node.value_type, ArrayType):
        return False
    if node.value_type is not None or any(isinstance(one, (list, tuple, dict, str)) for one in node.args):
        return True
    return all(is_number(one) for one in node.args)


def may_swap(form: Form, node: Node) -> bool:
    """Whether two operands of a call may change places: those of lists and dicts may not, which operators take too."""
    if form.operation not in _ON_SEQUENCES_TOO or getattr(node.target, "__module__", "") != "_operator":
        return True
    return is_surely_array(node) or any(is_surely_array(value) or is_number(value) for value in node.args)


def is_surely_array(value: Any) -> bool:
    """Whether a value is an array, or a number, and no sequence of Python."""
    if not isinstance(value, Node):
        return False
    if value.value_type is not None:
        return isinstance(value.value_type, ArrayType)
    if value.op == "call_function":
        name = getattr(value.target, "__name__", "")
        if getattr(value.target, "__module__", "") == "_operator":
            return name in _NO_SEQUENCES
        known = name not in _SEVERAL and (package_of(value.target), name) in _operations()
        return known and guest_of(value.target) is not None
    guest = guest_of(value.type) if isinstance(value.type, type) else None
    return guest is not None and guest.array_class is not None and issubclass(value.type, guest.array_class)
