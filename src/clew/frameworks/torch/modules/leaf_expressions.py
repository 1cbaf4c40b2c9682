"""What torch's own small modules do when they are called, as one expression over their attributes.

``Linear`` called with ``x`` is ``F.linear(x, weight, bias)``, without the Python on the way: the call, the look for
hooks, the attributes that only ``__getattr__`` finds. Where an expression does not cover a case it calls the module. It
is written after one ``forward`` of torch and holds only for that: ``spelling_of`` compares the text of the ``forward``,
and of the functions that the expression passes by, with what they were then.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

PLAIN = "type({x}) is Tensor"
"""Of a subclass, torch would ask the class what each function does; the functions passed by are then not passed by."""


@dataclass(frozen=True)
class Spelling:
    """An expression in the place of a call. ``{x}`` is the argument, ``{call}`` the call, all else an attribute."""

    text: str
    digest: str
    """Of the ``forward`` after which it was written, and of the functions in ``passes_by``."""
    passes_by: tuple[str, ...] = ()
    """Functions of ``torch.nn.functional`` that the module calls, and the expression does not."""
    methods: tuple[str, ...] = ()
    """Methods of the module that ``forward`` calls, and the expression does not."""

    @property
    def is_new(self) -> bool:
        """Whether the result is a tensor of its own, never the argument: so it is for what has weights."""
        return "{weight}" in self.text


_CONVOLUTION = (
    'F.{name}({{x}}, {{weight}}, {{bias}}, {{stride}}, {{padding}}, {{dilation}}, {{groups}}) '
    'if {{padding_mode}} == "zeros" else {{call}}'
)  # fmt: skip
_CONV1D, _CONV2D = _CONVOLUTION.format(name="conv1d"), _CONVOLUTION.format(name="conv2d")
_BATCH_NORM = (
    "torch.batch_norm({{x}}, {{weight}}, {{bias}}, {{running_mean}}, {{running_var}}, False, {{momentum}} or 0.0, "
    "{{eps}}, torch._C._get_cudnn_enabled()) "
    "if not {{training}} and type({{x}}) is Tensor and {test} and {{running_mean}} is not None and {{eps}} >= 0.0 "
    "else {{call}}"
)
_BATCH_NORM_1D = _BATCH_NORM.format(test="{x}.dim() in (2, 3)")
_BATCH_NORM_2D = _BATCH_NORM.format(test="{x}.dim() == 4")
_EMBEDDING = (
    "torch.embedding({weight}, {x}, -1 if {padding_idx} is None else {padding_idx}, {scale_grad_by_freq}, {sparse}) "
    f"if {PLAIN} and {{max_norm}} is None and ({{padding_idx}} is None or {{padding_idx}} == 0) else {{call}}"
)
_MAX_POOL = (
    "torch.max_pool2d({x}, {kernel_size}, {stride}, {padding}, {dilation}, {ceil_mode}) "
    f"if {PLAIN} and not {{return_indices}} and {{stride}} is not None else {{call}}"
)
_DROPOUT = f"{{x}} if not {{training}} and {PLAIN} and 0.0 <= {{p}} <= 1.0 else {{call}}"
_RELU = f"(torch.relu_({{x}}) if {{inplace}} else torch.relu({{x}})) if {PLAIN} else {{call}}"
_SILU = f"(torch._C._nn.silu_({{x}}) if {{inplace}} else torch._C._nn.silu({{x}})) if {PLAIN} else {{call}}"
_LAYER_NORM = (
    "torch.layer_norm({x}, {normalized_shape}, {weight}, {bias}, {eps}, torch._C._get_cudnn_enabled()) "
    f"if {PLAIN} else {{call}}"
)
_AVERAGE = "F.avg_pool2d({x}, {kernel_size}, {stride}, {padding}, {ceil_mode}, {count_include_pad}, {divisor_override})"
_NORM_METHODS = ("_check_input_dim",)

SPELLINGS: dict[type, Spelling] = {
    torch.nn.Linear: Spelling("F.linear({x}, {weight}, {bias})", "30fc7eee6d265020"),
    torch.nn.Conv1d: Spelling(_CONV1D, "08a2babdc75520e0", methods=("_conv_forward",)),
    torch.nn.Conv2d: Spelling(_CONV2D, "25e6c7b9201c66ed", methods=("_conv_forward",)),
    torch.nn.BatchNorm1d: Spelling(_BATCH_NORM_1D, "c056af16482fa5d6", ("batch_norm",), _NORM_METHODS),
    torch.nn.BatchNorm2d: Spelling(_BATCH_NORM_2D, "1de52a857929a067", ("batch_norm",), _NORM_METHODS),
    torch.nn.LayerNorm: Spelling(_LAYER_NORM, "21cb16cda6f22129", ("layer_norm",)),
    torch.nn.Embedding: Spelling(_EMBEDDING, "46b14fe31d06b1e5", ("embedding",)),
    torch.nn.Dropout: Spelling(_DROPOUT, "911e2d94d5844e16", ("dropout",)),
    torch.nn.ReLU: Spelling(_RELU, "0220ba398f1943a1", ("relu",)),
    torch.nn.SiLU: Spelling(_SILU, "1722bb71671c2932", ("silu",)),
    torch.nn.GELU: Spelling("F.gelu({x}, approximate={approximate})", "f448b6db4e5a60c0"),
    torch.nn.Tanh: Spelling("torch.tanh({x})", "abe9a97d886e8174"),
    torch.nn.Sigmoid: Spelling("torch.sigmoid({x})", "03474e2fdc84d627"),
    torch.nn.MaxPool2d: Spelling(_MAX_POOL, "4902691b8a0fddc4", ("max_pool2d", "_max_pool2d")),
    torch.nn.AvgPool2d: Spelling(_AVERAGE, "99e7b5f54a2bc535"),
    torch.nn.AdaptiveAvgPool2d: Spelling("F.adaptive_avg_pool2d({x}, {output_size})", "ccb3cf428ba91046"),
    torch.nn.Flatten: Spelling("{x}.flatten({start_dim}, {end_dim})", "6c2433c4a5caf355"),
    torch.nn.Identity: Spelling("{x}", "9513de0fd460b3a0"),
}


def spelling_of(kind: type) -> Spelling | None:
    """The expression for modules of a class; None if there is none, or if the class has another ``forward`` by now."""
    spelling = SPELLINGS.get(kind)
    return spelling if spelling is not None and digest_of(kind) == spelling.digest else None


def digest_of(kind: type) -> str:
    """What the ``forward`` of a class, and all that its expression passes by, look like now; nothing without source."""
    spelling = SPELLINGS[kind]
    functions = [getattr(kind, name) for name in ("forward", *spelling.methods)]
    functions += [getattr(F, name) for name in spelling.passes_by]
    return _digest(*functions)


@functools.lru_cache(maxsize=256)
def _digest(*functions: Callable[..., Any]) -> str:
    try:
        texts = [_body(function) for function in functions]
    except (OSError, TypeError, SyntaxError):
        return ""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _body(function: Callable[..., Any]) -> str:
    """The statements of a function without its documentation, spelled the same way whatever its layout."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    if not isinstance(definition, ast.FunctionDef):
        raise TypeError(f"{function} is no plain function")
    first = definition.body[0]
    is_told = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    names = ", ".join(argument.arg for argument in definition.args.args)
    return "\n".join([names, *map(ast.unparse, definition.body[1:] if is_told else definition.body)])
