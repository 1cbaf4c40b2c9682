"""What a command is about: a callable by name, or a program from a bundle.

In comes ``package.module:name``, ``file.py:name`` or the path of a bundle, with the number of a capture if a lazy graph
was saved; out goes a ``Target``: the callable, or the
loaded capture, and the framework that its inputs belong to. Classes are instantiated without arguments, and functions
that take none are factories: what they return is the target. Modules of PyTorch are set to evaluation mode unless the
user wants training.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from clew.errors import TargetError, UsageError, a_or_an
from clew.frameworks import PACKAGES
from clew.io.bundle.files import load
from clew.ir.graph import Graph
from clew.ir.text import parse

_CLEW = str(Path(__file__).parents[1]) + os.sep
_PACKAGES = frozenset({"site-packages", "dist-packages"})
FORMS = ("package.module:name", "file.py:name", "model.clew", "model.clew:1")


@dataclass(frozen=True)
class Target:
    """One program."""

    name: str
    program: Any
    framework: str
    is_captured: bool
    """Whether it is a capture already, from a bundle."""


def find(text: str, *, framework: str | None = None, allow: Collection[str] = (), train: bool = False) -> Target:
    """The program of a target."""
    if text.endswith(".py"):
        raise UsageError(f"{text!r} names no program of that file", fixes=_programs_in(Path(text)))
    path, capture = _bundle(text)
    if path is not None:
        captured = _one_of(load(path, allow=allow or None), path, capture)
        return Target(text, captured, framework or getattr(type(captured), "framework", "") or "torch", True)
    place, colon, name = text.rpartition(":")
    if not colon or not name:
        raise UsageError(f"{text!r} is no target", why="it names no callable", fixes=FORMS)
    called = name.endswith("()")
    module = _module(place)
    program = _made(_member(module, name.removesuffix("()"), text), text, called)
    found = framework or _framework_of(program, module)
    if found == "torch" and isinstance(getattr(program, "training", None), bool):
        program.train(train)
    return Target(text, program, found, False)


def graph_of(text: str, allow: Collection[str] = ()) -> Any:
    """A bundle, or the graph of a text file, for comparisons."""
    found, capture = _bundle(text)
    path = Path(found or text)
    if not path.is_file():
        raise UsageError(f"there is no file {path}", fixes=["the path of a bundle, or of the text of a graph"])
    with path.open("rb") as file:
        is_zip = file.read(2) == b"PK"
    return _one_of(load(path, allow=allow or None), str(path), capture) if is_zip else _parsed(path, allow)


def _bundle(text: str) -> tuple[str | None, int | None]:
    """The path of a bundle and the number of the capture in it that a target asks for, if it is one."""
    path, colon, number = text.rpartition(":")
    if colon and number.isdecimal() and path.endswith(".clew"):
        return path, int(number)
    return (text if text.endswith(".clew") or (":" not in text and Path(text).is_file()) else None), None


def _one_of(loaded: Any, path: str, number: int | None) -> Any:
    """One capture of a bundle of several, which a lazy graph had."""
    captures = None if hasattr(loaded, "graph") else getattr(loaded, "captures", None)
    if captures is None and number is None:
        return loaded
    captures = [loaded] if captures is None else captures
    if number is None and len(captures) > 1:
        named = [f"{path}:{place}  {', '.join(map(str, one.guards)) or 'any'}" for place, one in enumerate(captures)]
        raise UsageError(f"{path} holds {len(captures)} captures of a lazy graph", fixes=[line[:110] for line in named])
    if (number or 0) >= len(captures):
        raise UsageError(f"{path} holds {len(captures)} captures", fixes=[f"{path}:{len(captures) - 1} is the last"])
    return captures[number or 0]


def _parsed(path: Path, allow: Collection[str]) -> Graph:
    try:
        return parse(path.read_text(encoding="utf-8"), allow=allow)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is neither a bundle nor a text") from error


def _module(place: str) -> ModuleType:
    if place.endswith(".py"):
        return _file(Path(place))
    sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(place)
    except Exception as error:
        raise failed(f"importing {place} failed", error) from error
    finally:
        sys.path.pop(0)


def _programs_in(path: Path) -> list[str]:
    """How the programs of a file are named; the file is not run for that."""
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    kinds = (ast.FunctionDef, ast.ClassDef)
    try:
        body = ast.parse(path.read_bytes()).body
    except (SyntaxError, ValueError):
        return [FORMS[1]]
    names = [one.name for one in body if isinstance(one, kinds) and not one.name.startswith("_")]
    return [f"{path}:{name}" for name in names[:12]] or [FORMS[1]]


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # classes in it are found by name, as in a module that is imported
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise failed(f"running {path} failed", error) from error
    finally:
        sys.path.pop(0)
    return module


def _member(module: ModuleType, name: str, text: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            near = [one for one in vars(module) if not one.startswith("_") and callable(vars(module)[one])]
            raise UsageError(f"{text!r}: there is no {part}", fixes=[f"one of {', '.join(near[:12])}"] if near else ())
        found = getattr(found, part)
    return found


def _made(found: Any, text: str, called: bool) -> Any:
    """The program itself: an instance of a class, or what a factory returns."""
    is_factory = called or inspect.isclass(found) or (inspect.isfunction(found) and not _parameters(found))
    if is_factory:
        try:
            found = found()
        except Exception as error:
            name = text.rpartition(":")[2].removesuffix("()")
            advice = f"write a function that makes one, and name that: def make(): return {name}(...)"
            fixes = [advice] if isinstance(error, TypeError) and _parameters(found) else []
            raise failed(f"calling {text.removesuffix('()')} without arguments failed", error, fixes) from error
    if not callable(found):
        raise UsageError(f"{text!r} is {a_or_an(found)}, which cannot be called")
    return found


def _parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ["unknown"]


def failed(what: str, error: Exception, fixes: Sequence[str] = ()) -> TargetError:
    """An error of the user's code, with the last line of it outside of Clew, and of packages if there is one."""
    frames = traceback.extract_tb(error.__traceback__)
    outside = [one for one in frames if _CLEW not in one.filename and "importlib" not in one.filename]
    own = [one for one in outside if not _PACKAGES.intersection(Path(one.filename).parts)] or outside
    where = f"{own[-1].filename}:{own[-1].lineno}: {own[-1].line}" if own else ""
    return TargetError(f"{what}: {type(error).__name__}: {error}", where=where, fixes=fixes)


def _framework_of(program: Any, module: ModuleType) -> str:
    """The framework of a program: that of its class, else that which its module imports."""
    for kind in type(program).__mro__:
        package = kind.__module__.partition(".")[0]
        if package in PACKAGES and package != "numpy":
            return package
    home = vars(sys.modules.get(getattr(program, "__module__", ""), module))
    roots = {getattr(value, "__name__", "").partition(".")[0] for value in home.values() if inspect.ismodule(value)}
    roots |= {str(getattr(value, "__module__", "")).partition(".")[0] for value in home.values() if callable(value)}
    return next((one for one in ("torch", "jax", "tensorflow") if one in roots), "numpy")
