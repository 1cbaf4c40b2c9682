"""Reads the imports of a module and says which of them break the one-way street.

In comes a module's dotted name and its source; out come sentences, one per broken rule, empty when all is well.
Nothing is imported and nothing is run: only the syntax tree is looked at, so a broken module is still checked.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.project import parsed

# A room imports only itself and rooms before it. The package's own surface stands last.
ROOMS = (
    "errors",
    "config",
    "tree",
    "ir",
    "codegen",
    "capture",
    "frameworks",
    "runtime",
    "passes",
    "tools",
    "io",
    "translate",
    "viewer",
    "api",
    "backends",
    "fx",
    "__init__",
    "cli",
    "__main__",
)
FRAMEWORKS = {
    "torch": ("torch", "torchvision", "functorch"),
    "jax": ("jax", "jaxlib", "flax"),
    "tensorflow": ("tensorflow", "keras"),
}
# These rooms know no framework, not even for their annotations.
FRAMEWORK_FREE_ROOMS = ("errors", "config", "tree", "ir", "codegen", "capture")
NAMING = {
    "clew.tree": "adopts the containers that torch's own registry knows, before a guest is asked for anything",
    "clew.ir.guests": "the list of frameworks",
    "clew.ir.literals": "which classes of frameworks text may construct: one policy for all of them",
    "clew.ir.names": "packages that text may have imported, and modules of Clew's that have moved",
    "clew.ir.permissions": "what the text of a graph may name: one policy for all frameworks",
    "clew.ir.spellings": "a table of signatures and spellings by framework",
    "clew.ir.text": "words of the notation, and an error that gives an example",
}
"""Files of these rooms that name a framework in their code nevertheless, each with the reason."""
PROTOCOLS = frozenset({"__torch_function__"})
"""Names of methods by which a framework asks foreign classes."""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Import:
    """One imported module: its dotted name, the line, and whether the import runs only when a function is called."""

    module: str
    line: int
    inside_function: bool = False
    for_types_only: bool = False


def module_name(path: Path, source_folder: Path) -> str:
    """The dotted name of a file; a package's own file keeps its `__init__`, so it is told from its content."""
    return ".".join(path.relative_to(source_folder).with_suffix("").parts)


def room_of(module: str) -> str:
    """The room a module of Clew lives in: the first name under `clew`, or the surface itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def framework_of(module: str) -> str | None:
    """The framework a module outside Clew belongs to, if it is one of the guests."""
    top = module.split(".")[0]
    return next((name for name, tops in FRAMEWORKS.items() if top in tops), None)


def imports_of(module: str, source: str, known: Iterable[str] = ()) -> list[Import]:
    """All imports of a module, in order; `known` tells submodules from plain names in `from package import name`."""
    return list(_walk(parsed(source), module, frozenset(known), False, False))


def _walk(node: ast.AST, module: str, known: frozenset[str], inside: bool, types_only: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        for target in _targets(child, module, known):
            yield Import(target, child.lineno, inside, types_only)
        within = inside or isinstance(child, FUNCTIONS)
        if isinstance(child, ast.If) and _asks_type_checking(child.test):
            guarded = ast.Module(body=child.body, type_ignores=[])
            yield from _walk(guarded, module, known, within, True)
            yield from _walk(ast.Module(body=child.orelse, type_ignores=[]), module, known, within, types_only)
        else:
            yield from _walk(child, module, known, within, types_only)


def _asks_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", None)
    return name == "TYPE_CHECKING"


def _targets(node: ast.AST, module: str, known: frozenset[str]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = _absolute(node, module)
        return [_member(base, alias.name, known) for alias in node.names]
    if isinstance(node, ast.Call):
        return _dynamic_target(node)
    return []


def _absolute(node: ast.ImportFrom, module: str) -> str:
    if not node.level:
        return node.module or ""
    base = module.split(".")[: -node.level]
    return ".".join([*base, node.module] if node.module else base)


def _member(base: str, name: str, known: frozenset[str]) -> str:
    """`from clew import ir` names a submodule, `from clew import Graph` the package itself."""
    full = f"{base}.{name}"
    is_module = full in known or f"{full}.__init__" in known
    is_room = base == "clew" and name in ROOMS
    return full if is_module or is_room else base


def _dynamic_target(call: ast.Call) -> list[str]:
    """`importlib.import_module("name")` and `__import__("name")` are imports too, when the name is written out."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name not in ("import_module", "__import__") or not call.args:
        return []
    argument = call.args[0]
    return [argument.value] if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else []


def frameworks_named(source: str) -> list[str]:
    """Where code names a framework, in an identifier or a text that is no docstring: sentences with the line."""
    tree = parsed(source)
    found = [(line, word) for line, word in _words(tree) if word not in PROTOCOLS and _FRAMEWORK.search(word)]
    return [f"line {line} names {word!r}" for line, word in sorted(found)]


_FRAMEWORK = re.compile("|".join(FRAMEWORKS))


def _words(tree: ast.AST) -> Iterator[tuple[int, str]]:
    bare = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.lineno, node.value
        for field in ("id", "attr", "name", "arg", "module"):
            word = getattr(node, field, None)
            if isinstance(word, str):
                yield getattr(node, "lineno", 0), word


def broken_rules(module: str, imports: Iterable[Import]) -> list[str]:
    """One sentence for each import of a module that a rule forbids."""
    if room_of(module) not in ROOMS:
        return [f"{module}: '{room_of(module)}' is no room; give it a place in ROOMS"]
    broken = []
    for entry in imports:
        for reason in _reasons_against(module, entry):
            broken.append(f"{module}:{entry.line} imports {entry.module}: {reason}")
    return broken


def _reasons_against(module: str, entry: Import) -> Iterator[str]:
    room = room_of(module)
    if entry.module.split(".")[0] == "clew":
        target = room_of(entry.module)
        if target not in ROOMS:
            yield f"'{target}' is no room; give it a place in ROOMS"
        elif ROOMS.index(target) > ROOMS.index(room):
            yield f"'{target}' comes after '{room}', and a room imports only those before it"
    guest = framework_of(entry.module)
    if guest and room in FRAMEWORK_FREE_ROOMS:
        yield f"'{room}' knows no framework"
    if guest and room == "frameworks" and _home(module) not in (guest, None):
        yield f"the adapter of {_home(module)} knows only its own framework"
    if entry.inside_function and not _may_wake(module, entry.module):
        yield "an import inside a function is only for an adapter waking its own framework"


def _home(module: str) -> str | None:
    """The framework a module under `frameworks` adapts; None for the files that all of them share."""
    parts = module.split(".")
    return parts[2] if len(parts) > 3 else None


def _may_wake(module: str, target: str) -> bool:
    return room_of(module) == "frameworks" and (
        framework_of(target) is not None or target.startswith("clew.frameworks.") or target.split(".")[0] == "numpy"
    )


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a ring, as a path that ends where it starts; empty when there is none."""
    finished: set[str] = set()
    for start in sorted(graph):
        path: list[str] = []
        pending = [(start, iter(sorted(graph[start])))] if start not in finished else []
        while pending:
            current, rest = pending[-1]
            if not path or path[-1] != current:
                path.append(current)
            following = next((name for name in rest if name in graph and name not in finished), None)
            if following is None:
                finished.add(path.pop())
                pending.pop()
            elif following in path:
                return [*path[path.index(following) :], following]
            else:
                pending.append((following, iter(sorted(graph[following]))))
    return []


def runtime_edges(module: str, imports: Iterable[Import], known: Iterable[str]) -> set[str]:
    """The modules of Clew that must be loaded before this one can be; imports for types alone do not count."""
    names = frozenset(known)
    targets = {entry.module for entry in imports if not entry.for_types_only and not entry.inside_function}
    resolved = {name if name in names else f"{name}.__init__" for name in targets}
    return {name for name in resolved if name in names and name != module}
