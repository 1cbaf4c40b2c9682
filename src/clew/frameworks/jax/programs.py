"""What a JAX callable brings along, rules of derivatives among them, and the names that it must not ask for."""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any

import jax

from clew.capture.state.reachable import attribute_names
from clew.errors import CaptureError


def rules_of(value: Any) -> list[FunctionType]:
    """The rules of derivatives of a function that has its own."""
    found = [getattr(value, name, None) for name in ("jvp", "fwd", "bwd")] if _is_custom(value) else []
    return [rule for rule in found if isinstance(rule, FunctionType)]


def _is_custom(value: Any) -> bool:
    return isinstance(value, (jax.custom_jvp, jax.custom_vjp))


def check_names(functions: Iterable[FunctionType]) -> None:
    """Raise if a program asks whether it is being traced."""
    for function in functions:
        names = attribute_names(function.__code__)
        if "Tracer" in names:
            raise _refusal(function, "asks whether its values are tracers", "during the capture they are, later not")


def _refusal(function: FunctionType, what: str, why: str) -> CaptureError:
    code = function.__code__
    return CaptureError(
        f"the program {what}",
        where=f"{code.co_filename}:{code.co_firstlineno} in {code.co_name}",
        why=why,
        fixes=("pass the value as an argument",),
    )
