"""Every operator of the list that torch keeps for its own tests, captured: ``python -m benchmarks.opinfo [--step N]``.

torch's list has samples of arguments for each operator. Each is captured on its first sample and compared, values,
dtypes and structure, on up to three samples: equal, guarded on another sample, refused at the capture, or wrong. With
``--step N`` every Nth operator is tried. The list is torch's own test code and asks for a package that it hardly needs.
"""

from __future__ import annotations

import argparse
import sys
import types
import unittest
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import clew

EQUAL, GUARDED, REFUSED, WRONG, LEFT_OUT = "equal", "guarded", "refused", "wrong", "left out"
SAMPLES = 3


def operators() -> list[Any]:
    """torch's list; what it imports for comparing texts is replaced by nothing, if it is not installed."""
    if "expecttest" not in sys.modules:
        try:
            import expecttest  # noqa: F401
        except ImportError:
            stub = types.ModuleType("expecttest")
            stub.TestCase = unittest.TestCase  # type: ignore[attr-defined]
            sys.modules["expecttest"] = stub
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


def dtype_of(operator: Any) -> torch.dtype | None:
    """A dtype that an operator takes on the CPU, floats first."""
    allowed = operator.supported_dtypes("cpu")
    wanted = (torch.float32, torch.float64, torch.complex64, torch.int64, torch.bool)
    return next((one for one in wanted if one in allowed), None)


def examine(operator: Any) -> tuple[str, str]:
    """How an operator fares, and why."""
    dtype = dtype_of(operator)
    if dtype is None:
        return LEFT_OUT, "no dtype of ours"
    try:
        samples = [sample for sample, _ in zip(operator.sample_inputs("cpu", dtype), range(SAMPLES), strict=False)]
    except Exception as error:
        return LEFT_OUT, f"no samples: {type(error).__name__}"
    if not samples:
        return LEFT_OUT, "no samples"
    return _judged(operator, samples)


def _judged(operator: Any, samples: list[Any]) -> tuple[str, str]:
    function = operator.op

    def program(first: Any, *rest: Any, **named: Any) -> Any:
        return function(first, *rest, **named)

    try:
        wanted = _result(program, samples[0])
        graph = clew.trace(program, (samples[0].input, *samples[0].args), dict(samples[0].kwargs))
    except clew.CaptureError as error:
        return REFUSED, error.what
    except Exception as error:
        return LEFT_OUT, f"the operator itself raises {type(error).__name__}: {str(error)[:60]}"
    found = [_compared(graph, program, sample, wanted if place == 0 else None) for place, sample in enumerate(samples)]
    if found[0] == GUARDED:
        return WRONG, "the example itself is guarded against"
    failed = next((kind for kind in found if kind.startswith(WRONG)), "")
    if failed:
        return WRONG, failed.partition(": ")[2]
    return (GUARDED if GUARDED in found else EQUAL), ""


def _result(program: Any, sample: Any) -> Any:
    torch.manual_seed(0)
    args = [_own(value) for value in (sample.input, *sample.args)]
    return program(*args, **{name: _own(value) for name, value in sample.kwargs.items()})


def _own(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return [_own(item) for item in value] if type(value) is list else value


def _compared(graph: Any, program: Any, sample: Any, wanted: Any) -> str:
    try:
        right = _result(program, sample) if wanted is None else wanted
    except Exception:
        return EQUAL
    try:
        return EQUAL if _same(right, _result(graph, sample)) else WRONG
    except clew.GuardError:
        return GUARDED
    except Exception as error:  # which the operator itself did not raise
        return f"{WRONG}: {type(error).__name__}"


def _same(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, torch.Tensor):
        alike = (left.dtype, left.shape, left.layout) == (right.dtype, right.shape, right.layout)
        if not alike or left.layout is not torch.strided:
            return alike
        if left.is_complex():
            left, right = torch.view_as_real(left.resolve_conj()), torch.view_as_real(right.resolve_conj())
        return bool(((left == right) | ((left != left) & (right != right))).all())
    return bool(left == right) or left != left


UNWRITTEN = frozenset({"empty", "empty_like", "new_empty", "new_empty_strided", "empty_permuted", "empty_strided"})
"""Operators that give memory with whatever is in it."""


def rows(only: str = "", step: int = 1) -> Iterator[tuple[str, str, str]]:
    """Name, outcome and reason of each operator."""
    for operator in operators()[::step]:
        name = ".".join(filter(None, (operator.name, operator.variant_test_name)))
        if only in name and operator.name not in UNWRITTEN:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield (name, *examine(operator))


def main() -> None:
    """Print the counts, and each operator that is not equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--step", type=int, default=1)
    options = parser.parse_args()
    found = list(rows(options.only, options.step))
    table = Table("operator", "outcome", "why")
    for row in found:
        if row[1] != EQUAL:
            table.add_row(*row)
    console = Console()
    console.print(table)
    console.print(dict(Counter(outcome for _, outcome, _ in found)), len(found))


if __name__ == "__main__":
    main()
