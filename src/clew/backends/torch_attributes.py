"""What a segment reads of the modules of a torch program: parameters, buffers, settings.

A root and the paths that the nodes of a segment name come in; out come, at each call, the tensors at these paths and in
the layers that the segment calls, and the plain settings of these layers. They are read out of the dicts of the modules
by a function that is written for them. It gives None where a layer has hooks, and fails where a module, or a setting of
a layer, is not the one that was found: then it is made anew. Importing this file imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.modules import module as hooks_of_all

from clew.ir.graph import Graph
from clew.runtime.fast.module_fingerprint import HOOKS

_everywhere = tuple(getattr(hooks_of_all, f"_global{name}") for name in HOOKS)
_FILE = f"{__file__} (read)"
Reading = tuple[list[torch.Tensor], list[Any]]


class Moved(Exception):
    """A module is not the one that was found."""


def holder_of(root: Any, path: str) -> tuple[Any, str] | None:
    """The dict that has the attribute at a path, of a module reached by modules alone, and its name there."""
    *way, name = path.split(".")
    found = root
    for atom in way:
        if not isinstance(found, torch.nn.Module):
            return None
        found = found._modules.get(atom)
    if not isinstance(found, torch.nn.Module):
        return None
    for table in (vars(found), found._parameters, found._buffers):
        if name in table:
            return table, name
    return None


def is_plain_layer(module: Any) -> bool:
    """Whether a module is a layer of torch's with nothing but torch's own inside, and nobody listens to it."""
    if not isinstance(module, torch.nn.Module):
        return False
    return all(_is_plain(one) for one in module.modules())


def _is_plain(module: torch.nn.Module) -> bool:
    is_torchs = type(module).__module__.startswith("torch.nn.modules.")
    return is_torchs and "forward" not in vars(module) and not any(vars(module)[one] for one in HOOKS)


class Attributes:
    """The attributes that one segment reads, of one root."""

    def __init__(self, graph: Graph, root: Any) -> None:
        self.root = root
        self.paths = list(dict.fromkeys(str(node.target) for node in graph.find_nodes(op="get_attr")))
        self.layers = {
            str(node.target): root.get_submodule(str(node.target)) for node in graph.nodes if node.op == "call_module"
        }
        self.names: list[tuple[str, str]] = []
        """For each tensor that is read: the path of the layer, empty for an attribute, and its path in there."""
        self.plain_paths: list[str] = []
        """The attributes that are no tensors; they come first among the settings."""
        self._known: dict[str, Any] = {}
        self._dicts: dict[int, str] = {}
        self._tests: dict[str, None] = {}
        self._made = self._make()

    def read(self, root: Any) -> Reading | None:
        """The tensors and the settings; None where somebody listens to a layer."""
        if root is not self.root:
            raise Moved
        if any(_everywhere):
            return None
        try:
            found: Reading | None = self._made()
        except Exception:  # of what values of other classes say to a comparison, too
            raise Moved from None
        return found

    # ---- the function that reads ---------------------------------------------------------------------------------

    def _make(self) -> Callable[[], Reading | None]:
        tensors: list[str] = []
        plain: list[str] = []
        settings: list[Any] = []
        hooks: list[Any] = []
        for path in self.paths:
            self._way(path.rpartition(".")[0])
            table, name = holder_of(self.root, path) or ({}, path)
            text = f"{self._name(table)}[{name!r}]"
            if isinstance(table.get(name), torch.Tensor):
                tensors.append(text)
                self.names.append(("", path))
            else:
                plain.append(text)
                self.plain_paths.append(path)
        for path, layer in self.layers.items():
            self._way(path)
            for inner, module in layer.named_modules():
                self._inside(module)
                tensors += self._tensors(path, inner, module)
                settings += self._settings(module)
                hooks += [vars(module)[one] for one in HOOKS]
        lines = ["    if any(hooks): return None"] if hooks else []
        lines += [f"    if {' or '.join(self._tests)}: raise KeyError"] if self._tests else []
        text = "\n".join([*lines, f"    return [{', '.join(tensors)}], [{', '.join([*plain, 'settings'])}]"])
        names = {**self._known, "settings": settings, "hooks": hooks}
        exec(compile(f"def read():\n{text}\n", _FILE, "exec", dont_inherit=True), names)
        made: Callable[[], Reading | None] = names["read"]
        return made

    def _name(self, table: Any) -> str:
        name = self._dicts.setdefault(id(table), f"_{len(self._dicts)}")
        self._known[name] = table
        return name

    def _way(self, path: str) -> None:
        """Test that the modules on the way to a path are those that were found."""
        found = self.root
        for atom in path.split(".") if path else ():
            child = found._modules[atom]
            self._part(found, atom, child)
            found = child

    def _inside(self, module: torch.nn.Module) -> None:
        """Test that a layer has the attributes and the parts that were found."""
        table = self._name(vars(module))
        self._known[f"{table}_"] = dict(vars(module))
        self._tests[f"{table} != {table}_"] = None
        for name, child in module._modules.items():
            if child is not None:
                self._part(module, name, child)
        for kind in ("_parameters", "_buffers"):
            for name in [name for name, value in vars(module)[kind].items() if value is None]:
                self._tests[f"{table}[{kind!r}][{name!r}] is not None"] = None

    def _part(self, holder: Any, name: str, child: Any) -> None:
        test = f"{self._name(vars(holder))}['_modules'][{name!r}].__dict__ is not {self._name(vars(child))}"
        self._tests[test] = None

    def _tensors(self, path: str, inner: str, module: torch.nn.Module) -> Iterator[str]:
        for kind in ("_parameters", "_buffers"):
            for name, value in vars(module)[kind].items():
                text = f"{self._name(vars(module))}[{kind!r}][{name!r}]"
                if value is not None:
                    self.names.append((path, f"{inner}.{name}" if inner else name))
                    yield text

    def _settings(self, module: torch.nn.Module) -> Iterator[Any]:
        for name, value in vars(module).items():
            if not name.startswith("_") and not isinstance(value, torch.Tensor):
                yield value
        for kind in ("_parameters", "_buffers"):
            yield from (value is None for value in vars(module)[kind].values())
