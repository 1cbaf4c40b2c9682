"""What a graph of a program that uses a wrapper library must be: calls of the backend alone, and right.

Runs as a script too, for keras, whose backend is chosen when it is imported: ``KERAS_BACKEND=torch python -m
tests.wrappers.checks``; it prints the names of the programs that passed.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MethodDescriptorType
from typing import Any

import torch

import clew
from benchmarks.wrapped_programs import Program
from clew.capture.bytecode.try_blocks import attempt, attempt_method
from clew.ir.arguments import all_nodes

BACKEND = ("torch", "_operator", "operator", "builtins", "math")


def packages_in(captured: Any) -> Iterator[str]:
    """The packages of the functions that a graph calls, apart from guards; an attempt is no plain call."""
    for node in all_nodes(captured.graph):
        if node.op == "call_function":
            package = (getattr(node.target, "__module__", None) or "torch").partition(".")[0]
            if isinstance(node.target, MethodDescriptorType):
                package = "torch"
            if node.target in (attempt, attempt_method):
                yield f"an attempt of {node.args[0]}"
            elif package != "clew":
                yield package


def check(program: Program) -> Any:
    """Capture at one batch size, and compare at two others."""
    captured = clew.trace(program.function, args=program.inputs(2), leaves="none")
    assert set(packages_in(captured)) <= set(BACKEND)
    assert not [node for node in all_nodes(captured.graph) if "opaque" in node.meta]
    for size in (2, 5):
        given = program.inputs(size)
        torch.testing.assert_close(captured(*given), program.function(*given), rtol=0, atol=0)
    return captured


def main() -> None:
    """Check the programs of keras."""
    from benchmarks import keras_programs  # noqa: PLC0415  keras chooses its backend when it is imported

    for name, program in keras_programs.programs().items():
        with torch.no_grad():
            check(program)
        print(name)


if __name__ == "__main__":
    main()
