"""The public names of torch.fx, collected from torch.fx itself.

Modules and classes come in; names go out. A name is public if it is ``__init__`` or does not begin with an underscore,
and if it is defined there: by a ``def``, ``class`` or assignment at the top of the module, in ``__all__``, in the body
of a class, or as ``self.name = ...`` in one of its methods. Imported names do not count.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import logging
import pkgutil
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path

import torch.fx

MODULES = ("torch.fx", *sorted(entry.name for entry in pkgutil.iter_modules(torch.fx.__path__, "torch.fx.")))
"""The modules right under torch.fx; ``all_modules`` has those below them too."""

CLASSES = {
    "Graph": "torch.fx.graph",
    "Node": "torch.fx.node",
    "GraphModule": "torch.fx.graph_module",
    "TracerBase": "torch.fx.proxy",
    "Tracer": "torch.fx._symbolic_trace",
    "GraphAppendingTracer": "torch.fx.proxy",
    "Proxy": "torch.fx.proxy",
    "Attribute": "torch.fx.proxy",
    "ParameterProxy": "torch.fx.proxy",
    "Scope": "torch.fx.proxy",
    "PHWithMeta": "torch.fx._symbolic_trace",
    "Interpreter": "torch.fx.interpreter",
    "Transformer": "torch.fx.interpreter",
    "CodeGen": "torch.fx.graph",
    "PythonCode": "torch.fx.graph",
    "Match": "torch.fx.subgraph_rewriter",
    "ReplacedPatterns": "torch.fx.subgraph_rewriter",
    "SubgraphMatcher": "torch.fx.passes.utils.matcher_utils",
    "InternalMatch": "torch.fx.passes.utils.matcher_utils",
    "ShapeProp": "torch.fx.passes.shape_prop",
    "TensorMetadata": "torch.fx.passes.shape_prop",
    "ArgsKwargsPair": "torch.fx.operator_schemas",
}


def all_modules() -> list[str]:
    """All modules of torch.fx, its tests left aside, in order."""
    return sorted({"torch.fx", *(name for name in _walk(torch.fx.__path__, "torch.fx") if ".tests" not in name)})


_NO_API = (logging.Logger, types.NoneType)
"""Values that are no part of an API: loggers, and names that are declared or set only at times."""


def class_of(name: str) -> type:
    """A class of torch.fx by the name it has in the tables."""
    return getattr(importlib.import_module(CLASSES[name]), name)


def module_names(module_name: str) -> set[str]:
    """The public names that a module defines."""
    module = importlib.import_module(module_name)
    found = set(getattr(module, "__all__", ()))
    for statement in ast.parse(Path(str(module.__file__)).read_text()).body:
        found.update(_bound_by(statement))
    return {name for name in found if _is_public(name) and not isinstance(getattr(module, name, None), _NO_API)}


def class_names(kind: type) -> set[str]:
    """The public names that a class itself brings; those of its bases have tables of their own."""
    return {name for name in _bound_in_body(kind) | assigned_names(kind) if _is_public(name)}


def _bound_in_body(kind: type) -> set[str]:
    made = {"__init__"} if hasattr(kind, "__dataclass_fields__") or hasattr(kind, "_fields") else set()
    return {*vars(kind), *vars(kind).get("__annotations__", ())} - made


def assigned_names(kind: type) -> set[str]:
    """The names that the methods of a class assign on ``self``, classes inside of it left aside."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    found: set[str] = set()
    pending: list[ast.AST] = list(ast.iter_child_nodes(tree))
    while pending:
        part = pending.pop()
        if not isinstance(part, ast.ClassDef):
            pending += ast.iter_child_nodes(part)
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
            if isinstance(part.value, ast.Name) and part.value.id == "self":
                found.add(part.attr)
    return found


def module_tree(package_name: str) -> set[str]:
    """The modules and packages below a package, tests and private ones left aside; none of them is imported."""
    package = importlib.import_module(package_name)
    return {name for name in _walk(package.__path__, package_name) if not any(map(_is_hidden, name.split(".")))}


def _walk(paths: object, prefix: str) -> Iterator[str]:
    for entry in pkgutil.iter_modules(list(paths), prefix + "."):
        yield entry.name
        if entry.ispkg:
            yield from _walk([f"{path}/{entry.name.rpartition('.')[2]}" for path in paths], entry.name)


def _is_hidden(atom: str) -> bool:
    return atom.startswith("_") or atom == "tests"


def _is_public(name: str) -> bool:
    return name == "__init__" or not name.startswith("_")


def _bound_by(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        yield from (target.id for target in targets if isinstance(target, ast.Name))
