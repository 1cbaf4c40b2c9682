"""Modules of torch.fx run over Clew's classes: the passes, and what else Clew has no version of its own of.

In comes the source of a module as the user's torch has it; out goes a module in which every mention of ``torch.fx``
means ``clew.fx``, so that its functions and classes work on Clew's graphs directly: nodes keep their identity,
callbacks get Clew's nodes, subclasses are of Clew's classes, and nothing is converted. Nothing of it is stored. Modules
that hold a state of torch itself (``SHARED``) are not run a second time: they are torch's own.

``TorchSource`` is the import hook behind ``import clew.fx.passes.split_module``; ``definitions_beside`` completes a
file of Clew's with those definitions of torch's file of the same name that it lacks.
"""

from __future__ import annotations

import ast
import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from types import ModuleType
from typing import Any

from clew.fx.borders import put_borders

HERE, THERE = "clew.fx", "torch.fx"

SHARED = frozenset(
    "_compatibility _dynamism _pytree config tensor_type traceback "
    "experimental._backward_state experimental._config experimental._constant_symnode experimental._dynamism "
    "experimental._size_hinting experimental.dynamic_spec experimental.recording experimental.sym_node "
    "experimental.symbolic_shapes experimental.validator experimental.unification experimental.refinement_types".split()
)
"""Modules without graphs, most with a state that torch itself reads: there must be one of each."""


def is_shared(name: str) -> bool:
    """Whether ``clew.fx.name`` is torch's own module, as are all inside it."""
    return any(name == shared or name.startswith(f"{shared}.") for shared in SHARED)


# ---- swapping the mentions of one package for another ----------------------------------------------------------------


class Swap(ast.NodeTransformer):
    """Lets a program mean ``clew.fx`` where it says ``torch.fx``, in imports and in dotted names."""

    def __init__(self, package: str) -> None:
        self.package = package
        """What relative imports are relative to."""
        self.mentioned = False

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        """``import torch.fx.node`` binds ``torch``, and so do we; ``clew`` is bound beside it."""
        imported: list[ast.stmt] = []
        for alias in node.names:
            swapped = ast.alias(_swapped(alias.name), alias.asname)
            imported.append(_at(node, ast.Import([swapped])))
            if swapped.name != alias.name and alias.asname is None:
                imported.append(_at(node, ast.Import([ast.alias(alias.name.partition(".")[0])])))
        return imported

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        """``from torch import fx, nn`` becomes two statements; a relative import may leave torch.fx."""
        module = importlib.util.resolve_name("." * node.level + (node.module or ""), self.package)
        if module != "torch":
            return [_at(node, ast.ImportFrom(_swapped(module), node.names, 0))]
        ours = [alias for alias in node.names if alias.name == "fx"]
        rest = [alias for alias in node.names if alias.name != "fx"]
        pairs = [("clew", ours), ("torch", rest)]
        return [_at(node, ast.ImportFrom(module, names, 0)) for module, names in pairs if names]

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """``torch.fx`` as the beginning of a dotted name."""
        self.generic_visit(node)
        if node.attr == "fx" and isinstance(node.value, ast.Name) and node.value.id == "torch":
            self.mentioned = True
            node.value = ast.copy_location(ast.Name("clew", ast.Load()), node.value)
        return node


def _swapped(module: str) -> str:
    return HERE + module.removeprefix(THERE) if module == THERE or module.startswith(f"{THERE}.") else module


def _at(place: ast.stmt, statement: Any) -> Any:
    return ast.copy_location(statement, place)


def swapped_program(source: str, file: str, package: str) -> ast.Module:
    """The syntax tree of a module of ``package``, its mentions of ``torch.fx`` swapped; lines stay where they are."""
    swap = Swap(package)
    program: ast.Module = swap.visit(ast.parse(source, file))
    if swap.mentioned:
        first = next((place for place, one in enumerate(program.body) if not _must_lead(one)), len(program.body))
        imported = ast.Import([ast.alias(HERE)])
        program.body.insert(first, ast.copy_location(imported, program.body[min(first, len(program.body) - 1)]))
    return ast.fix_missing_locations(program)


def _must_lead(statement: ast.stmt) -> bool:
    """The docstring, and imports from ``__future__``."""
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_text or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__")


def _source_of(name: str) -> tuple[str, str, str]:
    """The text of a module that is installed, its file, and the package that it is, or is in."""
    spec = importlib.util.find_spec(name)
    text = None if spec is None else spec.loader.get_source(name)  # type: ignore[union-attr]
    if spec is None or text is None:
        raise ModuleNotFoundError(f"No module named {name!r} with a source", name=name)
    return text, str(spec.origin), spec.parent or ""


# ---- modules of torch.fx under clew.fx -------------------------------------------------------------------------------


class _Shared(Loader):
    """Gives torch's own module."""

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(THERE + module.__name__.removeprefix(HERE))


class _Swapped(Loader):
    """Runs the source of a module, swapped, as another module."""

    def __init__(self, origin: str) -> None:
        self.origin = origin

    def exec_module(self, module: ModuleType) -> None:
        text, file, package = _source_of(self.origin)
        exec(compile(swapped_program(text, file, package), file, "exec", dont_inherit=True), vars(module))
        if package == self.origin:  # torch's own modules in it are imported by now
            vars(module).setdefault("__getattr__", _modules_of(module.__name__))
        put_borders(module, self.origin)

    def get_source(self, name: str) -> str:
        """The text as it stands in the file, which is what tracebacks show."""
        return _source_of(self.origin)[0]


def _modules_of(package: str) -> Callable[[str], Any]:
    """A ``__getattr__`` for a package: its modules, imported when they are first asked for."""

    def __getattr__(name: str) -> Any:
        if name.startswith("__") or not _exists(f"{THERE}{package.removeprefix(HERE)}.{name}"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return importlib.import_module(f"{package}.{name}")

    return __getattr__


class TorchSource(MetaPathFinder):
    """Finds modules under ``clew.fx`` that have no file here: asked last."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """A module of the same name under ``torch.fx``, or None."""
        if not fullname.startswith(f"{HERE}."):
            return None
        name = fullname.removeprefix(f"{HERE}.")
        theirs = f"{THERE}.{name}"
        if not _exists(theirs):
            return None
        loader: Loader = _Shared() if is_shared(name) else _Swapped(theirs)
        spec = importlib.machinery.ModuleSpec(fullname, loader, origin=theirs)
        spec.submodule_search_locations = [] if _source_of(theirs)[2] == theirs else None
        return spec


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def announce() -> None:
    """Let ``import clew.fx.passes.split_module`` and the like find their modules."""
    if not any(isinstance(finder, TorchSource) for finder in sys.meta_path):
        sys.meta_path.append(TorchSource())


def submodules_beside(own: dict[str, Any]) -> Callable[[str], Any]:
    """A ``__getattr__`` for a package of Clew's: its modules, imported when they are first asked for, and whatever else
    torch's package of the same name has."""
    package, defined = own["__name__"], definitions_beside(own)

    def __getattr__(name: str) -> Any:
        full = f"{package}.{name}"
        is_module = not name.startswith("__") and _exists(THERE + full.removeprefix(HERE))
        return importlib.import_module(full) if is_module else defined(name)

    return __getattr__


# ---- definitions that a file of Clew's lacks -------------------------------------------------------------------------


def definitions_beside(own: dict[str, Any]) -> Callable[[str], Any]:
    """A ``__getattr__`` for a module of Clew's: what it lacks is defined as torch's file of the same name does.

    The definitions are run once, when the first is asked for, with the names of Clew's own file in the place of those
    that torch's file has for them.
    """
    twin: dict[str, Any] = {}

    def __getattr__(name: str) -> Any:
        if not name.startswith("__") and not twin:
            twin.update(_definitions(own))
        if name.startswith("__") or name not in twin:
            raise AttributeError(f"module {own['__name__']!r} has no attribute {name!r}")
        return twin[name]

    return __getattr__


def define_beside(own: dict[str, Any]) -> None:
    """Define in a module of Clew's, at once, what torch's file of the same name has and it lacks."""
    own.update(_definitions(own))


def _definitions(own: dict[str, Any]) -> dict[str, Any]:
    name = own["__name__"]
    text, file, package = _source_of(THERE + name.removeprefix(HERE))
    program = swapped_program(text, file, package)
    program.body = [kept for one in program.body if (kept := _beside(one, own)) is not None]
    hidden = {key: value for key, value in own.items() if key != "__getattr__"}
    exec(compile(program, file, "exec", dont_inherit=True), hidden)
    return hidden


def _beside(statement: ast.stmt, own: Iterable[str]) -> ast.stmt | None:
    """A statement as far as it only defines what ``own`` lacks: nothing is done to what is here already."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return None if statement.name in own else statement
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        is_new = all(isinstance(target, ast.Name) and target.id not in own for target in targets)
        return statement if is_new else None
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        statement.names = [alias for alias in statement.names if (alias.asname or alias.name) not in own]
        return statement if statement.names else None
    return statement if isinstance(statement, ast.If) or _fills_a_table(statement, own) else None


def _fills_a_table(statement: ast.stmt, own: Iterable[str]) -> bool:
    """``for key in keys: table[key] = value``, for a table that ``own`` lacks."""
    inner = statement.body if isinstance(statement, ast.For) else []
    targets = [target for one in inner if isinstance(one, ast.Assign) for target in one.targets]
    tables = [target.value for target in targets if isinstance(target, ast.Subscript)]
    is_filling = len(inner) == len(targets) == len(tables) > 0
    return is_filling and all(isinstance(table, ast.Name) and table.id not in own for table in tables)


# ---- clients ---------------------------------------------------------------------------------------------------------


class ClientSource(MetaPathFinder):
    """Finds modules of some packages as they are installed, and lets them be run over Clew's classes: asked first."""

    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = packages
        self.busy = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of an installed module, its loader exchanged."""
        if self.busy or not self.covers(fullname):
            return None
        self.busy = True
        try:
            spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        finally:
            self.busy = False
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _SwappedFile(fullname, str(spec.origin))
        return spec

    def covers(self, module: str) -> bool:
        """Whether a module is one of the packages, or inside one."""
        return any(module == package or module.startswith(f"{package}.") for package in self.packages)


class _SwappedFile(importlib.machinery.SourceFileLoader):
    """A file run over Clew's classes; its compiled form is not kept beside it."""

    def get_code(self, fullname: str) -> Any:
        file = self.get_filename(fullname)
        package = fullname if self.is_package(fullname) else fullname.rpartition(".")[0]
        program = swapped_program(self.get_source(fullname) or "", file, package)
        return compile(program, file, "exec", dont_inherit=True)


@contextmanager
def clients_over_clew(packages: Sequence[str]) -> Iterator[None]:
    """Inside, and for what is imported inside also later, modules of these packages are run over Clew's classes.

    Those that are imported already are set aside, and are there again at the end.
    """
    finder = ClientSource(packages)
    aside = {name: module for name, module in sys.modules.items() if finder.covers(name)}
    for name in aside:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if finder.covers(name)]:
            del sys.modules[name]
        sys.modules.update(aside)
