"""The other process of the day: loads a capture that was saved, without the source of the model, and calls it.

``python -P day_elsewhere.py`` imports torch and Clew and nothing else, and forks a child for each line that it reads: a
folder, and names of packages that shall not be there. For each of ``saved.pt`` and ``package`` in the folder the child
writes the result of a call on ``arguments.pt`` as ``<name>.result.pt``, or the error as ``<name>.error``. The folder is
written back when that is done.
"""

from __future__ import annotations

import importlib.abc
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import clew  # noqa: F401  a user of a saved capture has it


class Absent(importlib.abc.MetaPathFinder):
    """Says of some packages that they are not installed."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        if fullname.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def _load_saved(folder: Path) -> Any:
    return torch.load(folder / "saved.pt", weights_only=False)


def _load_package(folder: Path) -> Any:
    sys.path.insert(0, str(folder))
    made = importlib.import_module("package").Captured()
    return made.eval()


LOADERS: dict[str, Callable[[Path], Any]] = {"saved": _load_saved, "package": _load_package}
SECONDS = 240
FILES = {"saved": "saved.pt", "package": "package"}


def main() -> None:
    """Serve until nobody asks any more."""
    torch.set_num_threads(1)
    for line in sys.stdin:
        folder, *absent = line.rstrip("\n").split("\t")
        child = os.fork()
        if child == 0:
            try:
                signal.alarm(SECONDS)
                os.chdir(folder)
                load_and_call(Path(folder), absent)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        print(folder, flush=True)


def load_and_call(folder: Path, absent: list[str]) -> None:
    """Load and call whatever is in the folder."""
    sys.meta_path.insert(0, Absent(absent))
    args, kwargs = torch.load(folder / "arguments.pt")
    for name, load in LOADERS.items():
        if not (folder / FILES[name]).exists():
            continue
        try:
            program = load(folder)
            torch.manual_seed(7)
            torch.save(program(*args, **kwargs), folder / f"{name}.result.pt")
        except Exception as error:
            (folder / f"{name}.error").write_text(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
