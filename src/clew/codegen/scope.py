"""Names in one piece of generated code: its local variables, and the objects it refers to.

``Locals``: the nodes of a function come in, in order; out comes for each placeholder the parameter it is, and for the
few nodes whose own name cannot stand in this function another one. ``Scope``: an object that a dotted name reaches is
imported the way a colleague would import it; any other is bound by a fresh name in the globals of the code.

Always holds: no two nodes of a function share a local name, and no local has the name of the root or of a global that
the code needs. No text of a graph gets into the code except through ``repr`` of a plain string or as a checked
identifier, so no name, string or annotation can inject code.
"""

from __future__ import annotations

import builtins
import functools
import keyword
import sys
import types
from collections.abc import Iterable, Sequence
from typing import Any

from clew.ir.guests import CUSTOMARY_NAMES, IMPORTED_WHOLE
from clew.ir.literals import Speller
from clew.ir.names import Namespace, name_for
from clew.ir.node import Node


def plain(text: str) -> str:
    """The text as a plain string: a class that derives from str may answer for itself anything it likes."""
    return text if type(text) is str else str.__str__(text)


_NO_NAMES = frozenset({*keyword.kwlist, "__debug__"})


@functools.lru_cache(maxsize=8192)
def is_plain_identifier(name: str) -> bool:
    """True for a name that can stand in code as it is."""
    return name.isidentifier() and name.isascii() and name not in _NO_NAMES


def needs_name(node: Node) -> bool:
    """False for a call whose value nobody uses: no local is made of it, so its name is free for others."""
    if node.users or node.op in ("placeholder", "get_attr"):
        return True
    return node.op == "call_function" and getattr(node.target, "__module__", "") == "_operator"


class Locals:
    """The parameters and local names of functions; ``fixed`` are names that no local may have."""

    def __init__(self, fixed: set[str], names: Namespace) -> None:
        self.parameters: dict[Node, tuple[str, str]] = {}
        self.literals: dict[Node, Any] = {}
        self.special: set[Node] = set()
        """All nodes whose value is perhaps not written as their name."""
        self._renamed: dict[Node, str] = {}
        self._fixed = fixed
        self._names = names
        for name in fixed:
            names.reserve(name)

    def add_function(self, nodes: Sequence[Node]) -> None:
        """Choose the names of a function over ``nodes``."""
        owners, parameters = self._choose_parameters([node for node in nodes if node.op == "placeholder"])
        self._choose_locals(nodes, owners)
        for node, (stars, name) in parameters.items():
            self.parameters[node] = (stars, name or self.name(node))

    def name(self, node: Node) -> str:
        """The local name of a node's value."""
        return self._renamed.get(node) or node.name

    def rename(self, node: Node, name: str) -> None:
        """Let the value of a node have the variable ``name``, which the caller knows to be free for it."""
        self._renamed[node] = name
        self.special.add(node)

    def stand_for(self, node: Node, value: Any) -> None:
        """Let ``value``, a literal, be written wherever the value of ``node`` is used."""
        self.literals[node] = value
        self.special.add(node)

    def claim(self, node: Node, taken: set[str]) -> None:
        """Give a node of a block a name that is not among those ``taken`` in its function, and take it."""
        name = node.name
        if type(name) is not str or not is_plain_identifier(name) or name in taken:
            self.rename(node, self._names.create_name(plain(name)))
        self._names.reserve(self.name(node))
        taken.add(self.name(node))

    def fresh(self, candidate: str) -> str:
        """A name that nothing in the code has."""
        return self._names.create_name(candidate)

    def taken_by(self, nodes: Iterable[Node]) -> set[str]:
        """All names of a function that ``add_function`` has chosen, and those that no local may have."""
        named = {self.name(node) for node in nodes if needs_name(node)}
        return named | self._fixed | {self.parameters[node][1] for node in nodes if node in self.parameters}

    def _choose_parameters(self, inputs: list[Node]) -> tuple[dict[str, Node], dict[Node, tuple[str, str]]]:
        """Each placeholder's parameter is called like its target, unless that name is taken or no identifier."""
        owners: dict[str, Node] = {}
        parameters: dict[Node, tuple[str, str]] = {}
        unnamed = []
        for node in inputs:
            target = plain(node.target)
            name = target.lstrip("*")
            stars = target[: len(target) - len(name)]
            parameters[node] = (stars if len(stars) < 3 else "", name)
            if not is_plain_identifier(name) or name in self._fixed or owners.setdefault(name, node) is not node:
                unnamed.append(node)
        for node in unnamed:
            parameters[node] = (parameters[node][0], "")
        return owners, parameters

    def _choose_locals(self, nodes: Sequence[Node], owners: dict[str, Node]) -> None:
        """Let nodes be called by their own names; those for which that is not possible get others in the end."""
        named = [node for node in nodes if node.users or needs_name(node)]
        odd: list[Node] = []
        if not self._take_all([node.name for node in named], owners):
            odd = self._take_usable(named, owners)
        for name in owners:
            self._names.reserve(name)
        for node in odd:
            self.rename(node, self._names.create_name(plain(node.name)))

    def _take_all(self, names: list[str], owners: dict[str, Node]) -> bool:
        """Take all names of a function if every single one can be used, which is nearly always so; else take none."""
        if not set(map(type, names)) <= {str}:
            return False
        different = set(names)
        if len(different) < len(names) or not different.isdisjoint(self._fixed | _NO_NAMES):
            return False
        if not all(map(str.isidentifier, names)) or not "".join(names).isascii():
            return False
        if any(name in different and owner.name != name for name, owner in owners.items()):
            return False
        self._names.reserve_all(names)
        return True

    def _take_usable(self, named: list[Node], owners: dict[str, Node]) -> list[Node]:
        """Take the names that can be used; returns the nodes that need other ones."""
        odd = []
        seen = set(self._fixed)
        for node in named:
            name = node.name
            usable = type(name) is str and name not in seen and is_plain_identifier(name)
            if not usable or owners.get(name, node) is not node:
                odd.append(node)
            else:
                seen.add(name)
                self._names.reserve(name)
        return odd


# ---- objects ---------------------------------------------------------------------------------------------------------

_WHOLE_PACKAGES = IMPORTED_WHOLE | {"operator", "math", "typing", "collections"}

VARIABLES = "variables_of_function"
"""The attribute by which the root of a function tells which of its attributes are variables of the original."""


def quoted(text: str) -> str:
    """A string literal in double quotes where that needs no escapes."""
    written = repr(plain(text))
    return f'"{written[1:-1]}"' if '"' not in written and "\\" not in written else written


def is_private(name: str) -> bool:
    """True for a name that Python changes inside of a class, where the code may be written to."""
    return name.startswith("__") and not name.endswith("__")


@functools.lru_cache(maxsize=8192)
def can_stand_bare(name: str) -> bool:
    """True for the name of an attribute or a keyword that can stand in code as it is and mean the same everywhere."""
    return is_plain_identifier(name) and not is_private(name)


def _is_numbered(atom: str, holder: Any) -> bool:
    """Whether a part of a holder can be had by its number."""
    return atom.isdecimal() and str(int(atom)) == atom and hasattr(type(holder), "__getitem__")


class Scope:
    """The globals and imports of one piece of generated code, over the locals that it has."""

    def __init__(self, names: Namespace, local_names: Locals) -> None:
        self.names = names
        self.locals = local_names
        self.globals: dict[str, Any] = {}
        self.imports: dict[str, None] = {}
        self.constants: dict[str, str] = {}
        shadowed = any(name in names for name in _SPELLED_WITH.values())
        self.speller = (_CarefulSpeller if shadowed else Speller)(self.name_of, self._value)
        self.is_portable = False
        """Whether the code is saved, so that it must need no object of this process."""
        self.waiting: frozenset[Node] = frozenset()
        """Guards on computed values that wait where nothing may wait for the device."""
        self.is_shown = False
        """Whether the code is for people."""
        self.equals = " = "
        """What stands between a keyword and its value."""
        self.owner: Any = None
        """What attributes are read from, in code for people: numbered parts of it are written with their numbers."""
        self.variables: frozenset[str] = frozenset()
        """Attributes of the owner that are variables of the original, and written as such."""
        self.special = local_names.special
        """All nodes whose value is perhaps not written as their name; every other one simply is."""
        self.forms: dict[int, Any] = {}
        """How calls of functions are written, by the identity of the function."""
        self._inline: dict[Node, str] = {}
        self._enclosed: set[Node] = set()
        self._known: dict[int, tuple[str, Any]] = {}
        self._packages: dict[str, str] = {}

    def spell(self, value: Any) -> str:
        """Any argument as an expression."""
        if type(value) is not Node:
            return self.speller.spell(value)
        return self._value(value) if value in self.special else value.name

    def resolve(self, value: Any) -> Any:
        """The plain value that a node stands for everywhere, if it is an operand of that kind; else the same again."""
        return self.locals.literals.get(value, value) if type(value) is Node else value

    def _value(self, node: Node) -> str:
        if node in self.locals.literals:
            return self.speller.spell(self.locals.literals[node])
        return self._inline.get(node) or self.locals.name(node)

    def write_inline(self, node: Node, text: str, in_parentheses: bool) -> None:
        """From now on the value of ``node`` is written as this expression, where it is used."""
        self._inline[node] = f"({text})" if in_parentheses else text
        self.special.add(node)
        if in_parentheses:
            self._enclosed.add(node)

    def forget_inline(self, node: Node) -> None:
        """Let the value of a node be written as its name again."""
        self._inline.pop(node, None)
        self._enclosed.discard(node)

    def spell_bare(self, node: Node) -> str:
        """The value of a node where no parentheses are needed around it."""
        text = self._value(node)
        return text[1:-1] if node in self._enclosed else text

    def spell_argument(self, value: Any) -> str:
        """An argument of a call, which needs no parentheses around it."""
        return self.spell_bare(value) if type(value) is Node and value in self._enclosed else self.spell(value)

    def attribute(self, base: str, name: str) -> str:
        """``base.name``, or a ``getattr`` call for a name that cannot stand there."""
        name = plain(name)
        if can_stand_bare(name):
            return f"{base}.{name}"
        return f"{self.name_of(getattr)}({base}, {quoted(name)})"

    def attribute_path(self, base: str, path: str) -> str:
        """The expression that walks a dotted path from ``base``."""
        holder, atoms = self.owner, plain(path).split(".")
        if atoms[0] in self.variables:
            base, holder = atoms[0], getattr(holder, atoms.pop(0), None)
        for atom in atoms:
            base = f"{base}[{atom}]" if _is_numbered(atom, holder) else self.attribute(base, atom)
            holder = getattr(holder, atom, None)
        return base

    def name_of(self, thing: Any) -> str:
        """The expression that reaches an object: a dotted name, an imported name, or a global."""
        known = self._known.get(id(thing))
        if known is None:
            known = self._known[id(thing)] = (self._reach(thing), thing)
        return known[0]

    def name_value(self, thing: Any, name: str, value: Any) -> str:
        """The global by which ``value`` is reached, for which ``thing`` stands in the graph: under this name if it can
        be."""
        known = self._known.get(id(thing))
        if known is None:
            known = self._known[id(thing)] = (self.bind(name, value), thing)
        return known[0]

    def name_body(self, body: Any, name: str) -> None:
        """From now on ``body``, a nested graph, is reached as the local function of this name."""
        self._known[id(body)] = (name, body)

    def bind(self, candidate: str, thing: Any) -> str:
        """Make ``thing`` a global under a fresh name."""
        name = self.names.create_name(candidate, thing)
        self.globals[name] = thing
        return name

    def bind_exactly(self, name: str, thing: Any) -> None:
        """Make ``thing`` a global under this very name, which no local has."""
        self.names.reserve(name)
        self.globals[name] = thing

    def constant(self, value: Any) -> str:
        """The name of a global that holds ``value``, which is made once by an expression above the function."""
        text = self.spell(value)
        name = next((name for name, known in self.constants.items() if known == text), None)
        if name is None:
            name = self.bind(str(value), value)
            self.constants[name] = text
        return name

    def imported(self, module: str, name: str, thing: Any) -> str:
        """Import ``name`` from ``module``; under another name if this one is taken."""
        alias = self.bind(name.lstrip("_") if is_private(name) else name, thing)
        if module != "__main__":
            self.imports[f"from {module} import {name}" + (f" as {alias}" if alias != name else "")] = None
        return alias

    def _reach(self, thing: Any) -> str:
        if thing is type(None):
            return self.bind("NoneType", thing)
        if isinstance(thing, types.ModuleType):
            return self._module(thing)
        if not callable(thing):
            return self.bind(f"_{type(thing).__name__.lower()}", thing)
        dotted = name_for(thing)
        if dotted is not None and not any(map(keyword.iskeyword, dotted.split("."))):
            reached = self._dotted(dotted, thing)
            if reached is not None:
                return reached
        name = getattr(thing, "__name__", None)
        return self.bind(plain(name) if isinstance(name, str) else type(thing).__name__, thing)

    def _dotted(self, dotted: str, thing: Any) -> str | None:
        """The expression for a dotted name that leads to ``thing``; None for a module that is not loaded."""
        package, _, rest = dotted.partition(".")
        if package == "builtins" and rest.partition(".")[0] not in self.names:
            return rest
        if package in _WHOLE_PACKAGES and not any(map(is_private, rest.split("."))):
            return f"{self._package(package)}.{rest}"
        module, _, name = dotted.rpartition(".")
        inner: list[str] = []
        while module and module not in sys.modules:  # a member of a class: the class is imported
            module, _, owner = module.rpartition(".")
            inner.insert(0, name)
            name = owner
        if not module:
            return None
        base = self.imported(module, name, getattr(sys.modules[module], name) if inner else thing)
        for atom in inner:
            base = self.attribute(base, atom)
        return base

    def _module(self, module: types.ModuleType) -> str:
        name = name_for(module)
        if name is None or sys.modules.get(name) is not module:
            return self.bind("module", module)
        if name.partition(".")[0] in _WHOLE_PACKAGES:
            return self._package(name.partition(".")[0]) + name[len(name.partition(".")[0]) :]
        parent, _, last = name.rpartition(".")
        return self.imported(parent, last, module) if parent else self._package(name)

    def _package(self, name: str) -> str:
        """Import a package as a whole; under another name if a local or a parameter has this one."""
        alias = self._packages.get(name)
        if alias is None:
            package = sys.modules[name]
            alias = CUSTOMARY_NAMES.get(name, name)
            alias = alias if alias not in self.names else self.names.create_name(alias, package)
            self._packages[name] = alias
            self.imports[f"import {name}" + (f" as {alias}" if alias != name else "")] = None
            self.bind_exactly(alias, package)
        return alias


_SPELLED_WITH = {float: "float", complex: "complex", frozenset: "frozenset", set: "set", slice: "slice", range: "range"}


class _CarefulSpeller(Speller):
    """Spells where a local has the name of a builtin that literals are written with: all of these are asked for."""

    __slots__ = ()

    def spell(self, value: Any) -> str:
        """The expression of one value."""
        kind = type(value)
        if kind is complex:
            return f"{self.name_of(complex)}({self.spell(value.real)}, {self.spell(value.imag)})"
        text = super().spell(value)
        name = _SPELLED_WITH.get(kind)
        if name is None or not text.startswith(f"{name}("):
            return text
        return self.name_of(getattr(builtins, name)) + text[len(name) :]
