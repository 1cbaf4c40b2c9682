"""The lines of Python that build a module's children, parameters and buffers again.

A module comes in, with a folder for what code cannot say; out come two lists of statements about ``self``: those to
run before the state dict is loaded, and those after, which tie together what was one object in the original.
"""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path
from typing import Any

import torch

from clew.errors import CodegenError
from clew.ir.arguments import all_nodes
from clew.ir.guards import attribute_paths
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
