"""Takes over into a module what a replacement refers to there: submodules, parameters, buffers and constants.

In comes a node of the replacement, out comes the path under which the large module has what the node means. The
order of precedence: what the pattern bound under the same path; what the large module has at that path, if it is alike;
a copy of the replacement's own, under the same path if it is free, else under a new name.
"""

from __future__ import annotations

import copy
from typing import Any

from clew.errors import MissingAttribute
from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.passes.likeness import is_state, same_module, same_value
from clew.passes.match import InternalMatch


class Adopter:
    """Finds or makes in ``gm`` what replacements of ``pattern`` refer to; each thing is copied only once."""

    def __init__(self, gm: Any, pattern: Graph) -> None:
        self.gm = gm
        self.named = {(node.op, node.target): node for node in pattern.nodes if node.op in ("get_attr", "call_module")}
        self.copied: dict[tuple[int, str, str], tuple[Any, str]] = {}

    def path_for(self, node: Node, match: InternalMatch) -> str:
        """The path in ``gm`` of what ``node``, a get_attr or call_module node of a replacement, refers to."""
        bound = self._bound(node, match)
        if bound is not None:
            return bound
        root = node.graph.owning_module
        key = (id(root), node.op, node.target)
        if key not in self.copied:
            self.copied[key] = (root, self._adopt(node, root))
        return self.copied[key][1]

    def _bound(self, node: Node, match: InternalMatch) -> str | None:
        """The path that the match found for the node's path, or for that of the module which holds it."""
        path = str(node.target)
        named = self.named.get((node.op, path))
        if named is not None:
            return str(match.nodes_map[named].target)
        for end in reversed(_ends(path)):
            named = self.named.get(("call_module", path[:end]))
            if named is not None:
                return f"{match.nodes_map[named].target}{path[end:]}"
        return None

    def _adopt(self, node: Node, root: Any) -> str:
        path = str(node.target)
        own, present = resolve(root, path), resolve(self.gm, path)
        if present is not None and (own is None or own is present or self._alike(node, root, own, present)):
            return path
        if own is None:
            raise MissingAttribute(
                f"the replacement refers to {path}, which neither it nor the module has",
                where="" if node.source is None else node.source.describe(),
                fixes=["give the replacement as a module that has it", "add it to the module first"],
            )
        if node.op == "call_module":
            return self._add_module(path, copy.deepcopy(own))
        return self._add_attribute(path, root, copy.deepcopy(own))

    def _alike(self, node: Node, root: Any, own: Any, present: Any) -> bool:
        """Whether what the module has already can be what the replacement means by the same path."""
        if node.op == "call_module":
            return same_module(own, present)
        if is_state(root, node.target) and is_state(self.gm, node.target):
            return type(own) is type(present) and getattr(own, "shape", None) == getattr(present, "shape", None)
        return same_value(own, present)

    def _add_module(self, path: str, module: Any) -> str:
        path = self._free(path)
        if not hasattr(self.gm, "add_submodule"):
            path = self._free(path.replace(".", "_"))
            setattr(self.gm, path, module)
        elif not self.gm.add_submodule(path, module):
            path = self._free(path.replace(".", "_"))
            self.gm.add_submodule(path, module)
        return path

    def _add_attribute(self, path: str, root: Any, value: Any) -> str:
        """Put a parameter, buffer or constant at its path in the replacement, or at the top if nothing holds it."""
        source_path, _, name = path.rpartition(".")
        source = resolve(root, source_path) if source_path else root
        holder = resolve(self.gm, source_path) if source_path else self.gm
        if holder is None:
            holder, path = self.gm, path.replace(".", "_")
        path = self._free(path)
        new_name = path.rpartition(".")[2]
        if name in getattr(source, "_buffers", ()) and hasattr(holder, "register_buffer"):
            lasting = name not in getattr(source, "_non_persistent_buffers_set", ())
            holder.register_buffer(new_name, value, persistent=lasting)
        else:
            setattr(holder, new_name, value)
        return path

    def _free(self, path: str) -> str:
        """The path itself if nothing is there, else one with a number."""
        number, free = 0, path
        while resolve(self.gm, free) is not None:
            number += 1
            free = f"{path}_{number}"
        return free


def forget_modules(gm: Any, paths: set[str]) -> None:
    """Delete submodules that were called by replaced nodes, unless something in the graph still refers to them."""
    if not paths or not hasattr(gm, "delete_submodule"):
        return
    still_used = {str(node.target) for node in gm.graph.nodes if node.op in ("get_attr", "call_module")}
    prefixes = {used[:end] for used in still_used for end in _ends(used)}
    for path in paths:
        if path not in prefixes and not any(path[:end] in still_used for end in _ends(path)):
            gm.delete_submodule(path)


def _ends(path: str) -> list[int]:
    """Where the path and each of the paths above it end."""
    return [index for index, character in enumerate(path) if character == "."] + [len(path)]
