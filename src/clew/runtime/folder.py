"""The lines of Python that build a module's children, parameters and buffers again.

A module comes in, with a folder for what code cannot say; out come two lists of statements about ``self``: those to
run before the state dict is loaded, and those after, which tie together what was one object in the original.
"""

from __future__ import annotations

import ast
import itertools
import keyword
import os
import pickle
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch

from clew.capture.example.slots import ROOT
from clew.codegen.python import PythonCode, PyTreeCodeGen
from clew.errors import CodegenError
from clew.ir.arguments import all_nodes
from clew.ir.guards import attribute_paths, referred_paths
from clew.ir.lookup import name_for
from clew.ir.pickling import Kept, dumps, is_sure
from clew.runtime.parts import HOLDERS, CapturedPart

_HOOKS = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip


class Rebuilder:
    """Collects the statements that make up the ``__init__`` of a module like ``module``."""

    def __init__(self, module: Any, folder: Path, here: str) -> None:
        self.module = module
        self.folder = folder
        self.here = here  # what the written code calls its folder
        self.pickled: list[str] = []
        self._before: list[str] = []
        self._after: list[str] = []
        self._homes: dict[Any, str] = {}
        self._files: set[str] = {"state_dict.pt", "specs.pt", "values.pt"}
        self._parts = module._parts_to_save() if hasattr(module, "_parts_to_save") else module._modules

    def lines(self) -> tuple[list[str], list[str]]:
        """The statements before and after the loading of the state dict."""
        self._container(self.module, "")
        self._plain_attributes()
        for kind in ("_parameters", "_buffers"):
            self._tie(kind)
        return self._before, self._after

    def _container(self, module: Any, path: str) -> None:
        """The children and tensors of a module that has nothing else."""
        for name, child in (self._parts if module is self.module else module._modules).items():
            if child is not None:
                self._child(f"{path}.{name}" if path else name, child)
        self._tensors(module, path)
        place = f"self.get_submodule({path!r})" if path else "self"
        self._after.append(f"{place}.training = {bool(module.training)}")

    def _child(self, path: str, child: Any) -> None:
        put = f"{_holder(path)}.add_module({_last(path)!r}, "
        home = self._homes.setdefault(child, path)
        constructor = faithful_constructor(child)
        if home != path:
            self._before.append(f"{put}self.get_submodule({home!r}))")
        elif constructor is not None:
            self._before.append(f"{put}{constructor}{'' if child.training else '.eval()'})")
        elif type(child) in (*HOLDERS, CapturedPart) and not has_hooks(child):
            self._before.append(f"{put}torch.nn.Module())")
            self._container(child, path)
        else:
            self.pickled.append(path)
            self._before.append(f"{put}{self._saved(path, child)})")

    def _tensors(self, module: Any, path: str) -> None:
        place = f"self.get_submodule({path!r})" if path else "self"
        for name, value in module._parameters.items():
            made = "None"
            if value is not None:
                made = f"torch.nn.Parameter({_empty(value)}, requires_grad={value.requires_grad})"
            self._before.append(f"{place}.register_parameter({name!r}, {made})")
        for name, value in module._buffers.items():
            persistent = name not in module._non_persistent_buffers_set
            made = "None"
            if value is not None:
                made = _empty(value) if persistent else self._saved(f"{path}.{name}", value)
            self._before.append(f"{place}.register_buffer({name!r}, {made}, persistent={persistent})")

    def _plain_attributes(self) -> None:
        """Attributes that the graph reads and that are neither modules nor parameters nor buffers."""
        graph = self.module.graph
        read = [node.target for node in all_nodes(graph) if node.op == "get_attr"]
        for path in dict.fromkeys([*read, *attribute_paths(graph.guards.entry)]):
            parent, _, name = path.rpartition(".")
            holder = self.module.get_submodule(parent) if self._is_plain(parent) else None
            if holder is not None and name in vars(holder):
                made = self._saved(path, vars(holder)[name])
                self._before.append(f"setattr({_holder(path)}, {name!r}, {made})")

    def _is_plain(self, parent: str) -> bool:
        """True for the module itself and for its containers, which are built here and not constructed or pickled."""
        found = self.module
        for atom in parent.split(".") if parent else ():
            found = found._modules.get(atom)
            if type(found) not in (*HOLDERS, CapturedPart) or has_hooks(found):
                return False
        return True

    def _tie(self, kind: str) -> None:
        """Tensors that are one in the original are one again after loading."""
        homes: dict[int, tuple[str, str]] = {}
        for path, module in self.module.named_modules(remove_duplicate=False):
            for name, value in vars(module)[kind].items():
                if value is None:
                    continue
                home = homes.setdefault(id(value), (path, name))
                if home != (path, name):
                    first = f"self.get_submodule({home[0]!r}).{kind}[{home[1]!r}]"
                    self._after.append(f"self.get_submodule({path!r}).{kind}[{name!r}] = {first}")

    def _saved(self, path: str, value: Any) -> str:
        """Pickle a value beside the code; the expression that loads it."""
        stem = re.sub(r"[^0-9A-Za-z_.-]+", "_", path.strip(".")) or "_"
        file, number = f"{stem}.pt", 0
        while file.lower() in self._files:
            number += 1
            file = f"{stem}_{number}.pt"
        self._files.add(file.lower())
        try:
            torch.save(value, self.folder / file)
        except (pickle.PicklingError, AttributeError, TypeError, RuntimeError) as error:
            raise CodegenError(
                f"{path}, a {type(value).__name__}, can be written neither as code nor as a pickle: {error}",
                fixes=["define its class and its hooks at the top level of a module, or take the hooks off first"],
            ) from error
        return self.loading(file, ", weights_only=False")

    def loading(self, file: str, options: str = "") -> str:
        """The expression that loads a file of the folder."""
        return f"torch.load({self.here} / {file!r}{options})"


def _holder(path: str) -> str:
    parent = path.rpartition(".")[0]
    return f"self.get_submodule({parent!r})" if parent else "self"


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _empty(value: torch.Tensor) -> str:
    return f"torch.empty({list(value.shape)}, dtype={value.dtype}, device={str(value.device)!r})"


def has_hooks(module: Any) -> bool:
    """True for a module that calls functions of the user on its way."""
    return any(getattr(module, name, None) for name in _HOOKS)


def faithful_constructor(module: Any) -> str | None:
    """A constructor call that makes a module just like this one but for its weights; None if there is none.

    The module's own ``repr`` is the candidate. It counts only if it is one call with plain literals that builds a
    module of the same class, with the same configuration and the same parameters and buffers but for their values.
    """
    kind = type(module)
    if not kind.__module__.startswith("torch.nn.") or getattr(torch.nn, kind.__name__, None) is not kind:
        return None
    text = repr(module)
    call = None if "\n" in text or has_hooks(module) else _literal_call(text, kind.__name__)
    if call is None:
        return None
    try:
        twin = kind(*call[0], **call[1])
    except (TypeError, ValueError, RuntimeError):
        return None
    same = _configuration(twin) == _configuration(module) and _shapes(twin) == _shapes(module)
    return f"torch.nn.{text}" if same else None


def _literal_call(text: str, name: str) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments of a call ``name(...)`` of literals; None for any other text, which is never evaluated."""
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != name:
            return None
        keywords = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        return [ast.literal_eval(argument) for argument in call.args], keywords
    except (SyntaxError, ValueError):
        return None


def _configuration(module: Any) -> dict[str, str]:
    return {key: repr(value) for key, value in vars(module).items() if key != "training" and not key.startswith("_")}


def _shapes(module: Any) -> dict[str, Any]:
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    return {name: _kind(value) for name, value in tensors.items()} | {"non-persistent": _non_persistent(module)}


def _kind(value: torch.Tensor) -> tuple[Any, ...]:
    return type(value), tuple(value.shape), value.dtype, value.device, value.requires_grad


def _non_persistent(module: Any) -> list[str]:
    return sorted(module._non_persistent_buffers_set)


_HEADER = '''"""Generated by clew: the module {name}."""

import pathlib

import torch

{here} = pathlib.Path(__file__).resolve().parent
'''
_VALUES = "values.pt"
_OWN_SELF = ("", "    @property", f"    def {ROOT}(self):", "        return self")
"""What a module has whose graph looks at the module as such."""
_OWN_NAMES = frozenset({"torch", "pathlib", "_HERE"})


def write_folder(module: Any, folder: Any, module_name: str) -> None:
    """Write ``module`` to ``folder`` as a package with the class ``module_name``."""
    code = module.graph.python_code("self", portable=True)
    _check_class_name(module_name, code)
    target = Path(folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        new = Path(scratch) / "new"
        new.mkdir()
        here = next(name for name in _here_names() if name not in code.globals)
        rebuilder = Rebuilder(module, new, here)
        text = _module_text(module, module_name, code, rebuilder, new)
        (new / "module.py").write_text(text, encoding="utf-8")
        opening = f"from .module import {module_name}\n\n__all__ = [{module_name!r}]\n"
        (new / "__init__.py").write_text(opening, encoding="utf-8")
        torch.save(module.state_dict(), new / "state_dict.pt")
        _put_in_place(new, target, Path(scratch) / "old")
    _warn(module, rebuilder.pickled)


def _here_names() -> Iterator[str]:
    """What the code may call its own folder."""
    yield "_HERE"
    yield from (f"_HERE_{number}" for number in itertools.count(1))


def _check_class_name(module_name: str, code: PythonCode) -> None:
    if not module_name.isidentifier() or keyword.iskeyword(module_name):
        raise CodegenError(f"{module_name!r} is no name for a class", fixes=["use a Python identifier"])
    if module_name in code.globals or module_name in _OWN_NAMES:
        raise CodegenError(
            f"the code uses the name {module_name!r} for something else", fixes=["give the class another name"]
        )


def _put_in_place(new: Path, target: Path, old: Path) -> None:
    """Move the new files to the target; if one cannot be moved, the old ones are put back."""
    if not target.exists():
        os.rename(new, target)
        return
    old.mkdir()
    moved: list[str] = []
    try:
        for file in sorted(new.iterdir()):
            if (target / file.name).exists():
                os.replace(target / file.name, old / file.name)
            moved.append(file.name)
            os.replace(file, target / file.name)
    except OSError:
        for name in moved:
            (target / name).unlink(missing_ok=True)
        for file in old.iterdir():
            os.replace(file, target / file.name)
        raise
    # Compiled files of the old code would be taken for those of the new one if time and size happen to agree.
    shutil.rmtree(target / "__pycache__", ignore_errors=True)


def _warn(module: Any, pickled: list[str]) -> None:
    if pickled:
        warnings.warn(
            f"Was not able to save the following children modules as reprs - saved as pickled files instead: {pickled}",
            stacklevel=4,
        )
    if has_hooks(module):
        warnings.warn("the hooks of the module itself are not saved, only those of its children", stacklevel=4)


def _module_text(module: Any, module_name: str, code: PythonCode, rebuilder: Rebuilder, folder: Path) -> str:
    """The whole of ``module.py``."""
    kept = {name for name, value in code.globals.items() if isinstance(value, type) and not is_sure(value)}
    imports = [line for line in code.imports if line != "import torch" and line.split()[-1] not in kept]
    imports += [*_other_globals(module, code, rebuilder, folder, kept), *code._constants]
    before, after = rebuilder.lines()
    function = code.src.rstrip("\n").split("\n")[code._prologue_start - 1 :]
    lines = [
        *(f"        {line}" for line in ["super().__init__()", *before]),
        f"        self.load_state_dict({rebuilder.loading('state_dict.pt')})",
        *(f"        {line}" for line in after),
        *(_OWN_SELF if ROOT in referred_paths(module.graph) else ()),
        "",
        *(f"    {line}" if line else "" for line in function),
    ]
    head = _HEADER.format(name=module_name, here=rebuilder.here) + "".join(f"{line}\n" for line in imports)
    return f"{head}\n\nclass {module_name}(torch.nn.Module):\n    def __init__(self):\n" + "\n".join(lines) + "\n"


def _other_globals(module: Any, code: PythonCode, rebuilder: Rebuilder, folder: Path, kept: set[str]) -> Iterator[str]:
    """Lines that bring the globals to which no import of the code leads: values and ``kept`` classes are saved beside,
    as in a pickle of the module; an error for code that lives here only."""
    imported = {line.split()[-1] for line in code.imports} | {line.split()[0] for line in code._constants}
    imported -= kept
    codegen = module.graph._codegen
    specs = dict(codegen.additional_globals()[1:]) if isinstance(codegen, PyTreeCodeGen) else {}
    if specs:
        torch.save(tuple(specs.values()), folder / "specs.pt")
        yield f"{', '.join(specs)} = {rebuilder.loading('specs.pt', ', weights_only=False')}"
    hidden, values = [], {name: code.globals[name] for name in sorted(kept)}
    for name, value in code.globals.items():
        if name in imported or name in specs or name in kept:
            continue
        line = _import_line(name, value)
        if line is not None:
            yield line
        elif isinstance(value, (FunctionType, BuiltinFunctionType)):
            hidden.append(name)
        else:
            values[name] = value
    hidden += _save_values(values, folder)
    if hidden:
        raise CodegenError(
            f"the code refers to objects that no import reaches: {', '.join(hidden)}",
            why="they are local functions, lambdas or values that live in this process only",
            fixes=["define them at the top level of a module, or put values on the root as attributes"],
        )
    if values:
        names = ", ".join(values) + "," * (len(values) == 1)
        yield f"{names} = {rebuilder.loading(_VALUES, ', weights_only=False')}"


def _save_values(values: dict[str, Any], folder: Path) -> list[str]:
    """Save values beside the code; the names of those that cannot be."""
    refused = []
    for name, value in values.items():
        try:
            dumps(value)
        except (pickle.PicklingError, AttributeError, TypeError):
            refused.append(name)
    if values and not refused:
        torch.save(Kept(tuple(values.values())), folder / _VALUES)
    return refused


def _import_line(name: str, value: Any) -> str | None:
    if value is type(None):
        return f"{name} = type(None)"
    dotted = name_for(value) if callable(value) or isinstance(value, type(torch)) else None
    module, _, last = (dotted or "").rpartition(".")
    if dotted is None or module == "__main__" or dotted.startswith("__main__."):
        return None
    alias = "" if last == name else f" as {name}"
    return f"from {module} import {last}{alias}" if module else f"import {last}{alias}"
