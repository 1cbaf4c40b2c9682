"""The other process for standalone code: torch, and neither Clew nor transformers nor safetensors.

It reads folders from the standard input, one a line. For each a child imports ``model.py`` from the folder, calls the
program for each pair of ``arguments.pt`` and writes the tensors of the results as ``result.pt``, or the error as
``error.txt``.
"""

from __future__ import annotations

import importlib
import importlib.abc
import sys
from pathlib import Path
from typing import Any

import torch

from benchmarks import forks
from benchmarks.equality import results_of_calls

ABSENT = ("clew", "transformers", "safetensors")


class _Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        if fullname.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def _run(folder: Path) -> None:
    sys.path.insert(0, str(folder))
    try:
        program = importlib.import_module("model").load()
        torch.save(results_of_calls(program, torch.load(folder / "arguments.pt")), folder / "result.pt")
    except Exception as error:
        (folder / "error.txt").write_text(f"{type(error).__name__}: {error}")


def main() -> None:
    """Run what is asked for, each in a copy of this process."""
    torch.set_num_threads(1)
    sys.meta_path.insert(0, _Absent())
    forks.serve(_run)


if __name__ == "__main__":
    main()
