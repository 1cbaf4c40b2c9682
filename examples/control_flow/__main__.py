"""Captures the programs of this folder and shows their code: `python examples/control_flow [name ...]`.

Each program is captured on its first input and called on all: a line says for each whether the graph gave the same, or
which guard refused the input.
"""

import importlib
import pkgutil
import sys
from pathlib import Path
from typing import Any

import torch

import clew

FOLDER = Path(__file__).parent


def outcome(captured: Any, program: Any, args: tuple[Any, ...]) -> str:
    """What the capture makes of some arguments, in words."""
    try:
        got = captured(*args)
    except clew.GuardError as error:
        return f"guarded: {str(error).splitlines()[0]}"
    torch.testing.assert_close(got, program(*args))
    return "the same"


def show(name: str) -> None:
    """Prints the code of one program, and what it does on each of its inputs."""
    module = importlib.import_module(name)
    program, inputs = module.make(), module.inputs()
    captured = clew.trace(program, args=inputs[0])
    print(f"# {name}: {(module.__doc__ or '').splitlines()[0]}\n{captured.code}")
    for place, args in enumerate(inputs):
        print(f"input {place}: {outcome(captured, program, args)}")


if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER))
    torch.manual_seed(0)
    for name in sys.argv[1:] or sorted(found.name for found in pkgutil.iter_modules([str(FOLDER)])):
        if not name.startswith("__"):
            show(name)
