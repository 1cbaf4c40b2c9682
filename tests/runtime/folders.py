"""Writes a module to a folder and imports the folder as a package of its own."""

import importlib
import itertools
import sys
import warnings
from pathlib import Path
from typing import Any

_numbers = itertools.count()


def fresh_name() -> str:
    """A name under which no package has been imported."""
    return f"saved_package_{next(_numbers)}"


def write(module: Any, parent: Path, class_name: str = "Saved") -> Path:
    """The folder of a package that holds ``module``."""
    folder = parent / fresh_name()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module.to_folder(folder, class_name)
    return folder


def load(folder: Path, class_name: str = "Saved") -> Any:
    """An instance of the class in the package ``folder``, imported anew."""
    for name in [name for name in sys.modules if name.partition(".")[0] == folder.name]:
        del sys.modules[name]
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder.parent))
    try:
        return getattr(importlib.import_module(folder.name), class_name)()
    finally:
        sys.path.remove(str(folder.parent))


def through_a_folder(module: Any, parent: Path, class_name: str = "Saved") -> Any:
    """The module written and read again."""
    return load(write(module, parent, class_name), class_name)
