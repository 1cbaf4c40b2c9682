"""Names: those of nodes and of globals in generated code, and the dotted names by which text finds objects.

``Namespace``: a candidate of any shape comes in; out comes an ASCII identifier that is neither a keyword nor a builtin
and that this namespace has never given before. Cost is constant per name: numbering continues where the last number was
given. Names that are only reserved are taken apart when the first number depends on them.

``find``: a dotted name comes in, the object comes out. It is looked up in modules that are loaded already; only
packages that are known to be harmless to import, or that the caller vouches for, are loaded for it. Looking up calls
nothing: it goes from modules to classes to their members. ``name_for`` gives a name only if ``find`` gives that very
object for it.
"""

from __future__ import annotations

import builtins
import importlib
import keyword
import re
import sys
from collections.abc import Callable, Collection, Iterable
from types import BuiltinMethodType, MethodType, ModuleType
from typing import Any, TypeVar

from clew.ir.format import qualified_name

_NOT_IN_IDENTIFIER = re.compile(r"[^0-9a-zA-Z_]+")
_HUMP = re.compile(r"(?<=[a-z])([A-Z])")

_WRITTEN = ("inf", "nan", "NoneType", "torch", "device", "pytree", "tree")
RESERVED = frozenset({*keyword.kwlist, *dir(builtins), *_WRITTEN} - {"_"})
"""Names that generated code needs for themselves: keywords, builtins and the few names that literals use."""


Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Memo(dict[Question, Answer]):
    """A dict that asks ``function`` for what it does not hold yet, and is cleared once it holds ``most`` answers.

    A question that was asked before costs one look into a dict and no call.
    """

    __slots__ = ("_function", "_most")

    def __init__(self, function: Callable[[Question], Answer], most: int) -> None:
        self._function = function
        self._most = most

    def __missing__(self, question: Question) -> Answer:
        answer = self._function(question)
        if len(self) >= self._most:
            self.clear()
        self[question] = answer
        return answer


def snake_case(name: str) -> str:
    """``pascalCase`` -> ``pascal_case``."""
    return _HUMP.sub(r"_\1", name).lower()


def _take_apart(candidate: str) -> tuple[str, str, int | None]:
    """A legal spelling of the candidate, its stem, and its trailing number if it has one."""
    legal = _NOT_IN_IDENTIFIER.sub("_", candidate) or "_unnamed"
    if legal[0].isdigit():
        legal = f"_{legal}"
    stem, _, number = legal.rpartition("_")
    if not stem or not number.isdigit():
        return legal, legal, None
    return legal, stem, int(number)


_parts = Memo(_take_apart, 4096)


class Namespace:
    """Gives every object a name of its own; a name once given is never given again."""

    __slots__ = ("_counts", "_given", "_names", "_reserved", "_used")

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._given: dict[str, int] = {}
        """For a stem the number up to which all its numbers are given, whether ``_used`` has these names or not."""
        self._reserved: list[str] = []
        self._counts: dict[str, int] = {}
        self._names: dict[int, tuple[str, Any]] = {}

    def create_name(self, candidate: str, obj: object | None = None) -> str:
        """A fresh name like ``candidate``; the same object, if one is given, gets the same name again."""
        if obj is not None and id(obj) in self._names:
            return self._names[id(obj)][0]
        name, stem, number = _parts[candidate]
        if number is None and obj is None and name in self._used and not self._reserved:  # the great majority
            return self._next_of(stem)
        if self._reserved and (number is not None or name in self._used or name in RESERVED):
            self._count_reserved()
        if number is None:
            is_free = name not in self._used and (name not in RESERVED or self._is_itself(name, obj))
        else:
            is_free = name not in self._used and not self._is_given(name, stem, number)
        if is_free:
            self._used.add(name)
            if number is not None:
                self._counts[stem] = number
        else:
            name = self._next_of(stem)
        if obj is not None:
            self.associate_name_with_obj(name, obj)
        return name

    def _next_of(self, stem: str) -> str:
        """The next name with a number behind this stem."""
        given = number = self._given.get(stem, 0)
        if stem in self._counts:
            number = max(number, self._counts[stem])
        number += 1
        while (name := f"{stem}_{number}") in self._used:
            if number == given + 1:
                given = number
            number += 1
        if number == given + 1:  # one number after the other, as nearly always: the last one tells of all
            self._given[stem] = number
        else:
            self._used.add(name)
            self._counts[stem] = number
        return name

    def _is_given(self, name: str, stem: str, number: int) -> bool:
        return 0 < number <= self._given.get(stem, 0) and name == f"{stem}_{number}"

    @staticmethod
    def _is_itself(name: str, obj: object | None) -> bool:
        return obj is not None and getattr(builtins, name, None) is obj

    def associate_name_with_obj(self, name: str, obj: object) -> None:
        """Tie ``name`` to ``obj`` (kept alive, so that its id stays its own)."""
        self._names[id(obj)] = (name, obj)

    def reserve(self, name: str) -> None:
        """Mark ``name`` as given; numbering goes on behind it."""
        if name not in self:
            self._used.add(name)
            self._reserved.append(name)

    def reserve_all(self, names: Iterable[str]) -> None:
        """Mark many names as given."""
        taken = self if self._given else self._used
        fresh = [name for name in names if name not in taken]
        self._used.update(fresh)
        self._reserved += fresh

    def _count_reserved(self) -> None:
        """Let the numbering of each stem go on behind the names that were reserved since the last time."""
        counts = self._counts
        for name in self._reserved:
            _, stem, number = _parts[name]
            if number is not None and number > counts.get(stem, 0):
                counts[stem] = number
        self._reserved.clear()

    def __contains__(self, name: object) -> bool:
        if name in self._used or not self._given or not isinstance(name, str):
            return name in self._used
        _, stem, number = _parts[name]
        return number is not None and self._is_given(name, stem, number)

    def copy(self) -> Namespace:
        """A namespace that has given the same names, and goes on by itself."""
        twin = Namespace()
        twin._used = set(self._used)
        twin._given = dict(self._given)
        twin._reserved = list(self._reserved)
        twin._counts = dict(self._counts)
        twin._names = dict(self._names)
        return twin


# ---- objects by their dotted names, and the names of objects ---------------------------------------------------------

OPEN_PACKAGES = frozenset("builtins operator math typing collections torch numpy jax tensorflow clew".split())
"""Packages that may be imported, submodules included, when a text names something in them."""

MOVED = {
    "clew.capture.python.draws": "clew.capture.python.random_numbers",
    "clew.capture.python.environment": "clew.capture.python.system",
    "clew.capture.python.processes": "clew.capture.python.system",
    "clew.capture.state.stateful_arguments": "clew.capture.state.writes",
    "clew.frameworks.jax.kinds": "clew.frameworks.jax.types",
    "clew.frameworks.numpy.ranks_and_dtypes": "clew.frameworks.numpy.facts",
    "clew.frameworks.torch.new_values": "clew.frameworks.torch.functional_writes",
    "clew.frameworks.torch.calls.handlers": "clew.frameworks.torch.calls.dispatch",
    "clew.frameworks.torch.transforms.control_flow": "clew.frameworks.torch.transforms.interception",
}
"""Modules of Clew whose functions older texts and bundles name, and where these functions are now."""

DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)


class NotFound(LookupError):
    """No object has this name; the message says at which part the search ended."""


def find(name: str, modules: Collection[str] = ()) -> Any:
    """The object with the dotted name; ``modules`` are packages that may be imported besides the open ones."""
    module, _, last = name.rpartition(".")
    package, *atoms = (f"{MOVED[module]}.{last}" if module in MOVED else name).split(".")
    is_open = package in OPEN_PACKAGES or package in modules
    found = sys.modules.get(package)
    if found is None:
        if not is_open:
            raise NotFound(f"the package {package!r} is not imported")
        found = _imported(package)
    path = package
    for atom in atoms:
        found = _member(found, path, atom, is_open)
        path = f"{path}.{atom}"
    return found


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise NotFound(f"{name} cannot be imported: {error}") from error


def _member(owner: Any, path: str, atom: str, is_open: bool) -> Any:
    if isinstance(owner, ModuleType) and not is_open:
        # A module's own __getattr__ may import and run anything, so only what is there already is looked at.
        if atom in vars(owner):
            return vars(owner)[atom]
    elif _may_be_asked(owner):
        try:
            return getattr(owner, atom)
        except (AttributeError, ImportError, RuntimeError):  # torch.ops and lazy modules raise all three
            pass
    else:
        raise NotFound(f"{path} is neither a module nor a class, so it has no member {atom!r} that text may name")
    submodule = f"{path}.{atom}"
    if submodule in sys.modules:
        return sys.modules[submodule]
    if is_open and isinstance(owner, ModuleType) and hasattr(owner, "__path__") and not atom.startswith("__"):
        return _imported(submodule)
    raise NotFound(f"{path} has no member {atom!r}")


def _may_be_asked(owner: Any) -> bool:
    """Modules and classes, and the objects of frameworks that hold functions (torch.ops.aten.add, numpy.add)."""
    if isinstance(owner, (ModuleType, type)):
        return True
    return type(owner).__module__.partition(".")[0] in OPEN_PACKAGES - {"builtins"}


def is_same_object(left: Any, right: Any) -> bool:
    """Identity; methods, which Python makes anew at each look, are the same when they are of the same object."""
    if left is right:
        return True
    return type(left) is type(right) and isinstance(left, (MethodType, BuiltinMethodType)) and bool(left == right)


def name_for(value: Any) -> str | None:
    """A dotted name under which ``find`` gives ``value`` itself; None if there is none."""
    name = value.__name__ if isinstance(value, ModuleType) else qualified_name(value)
    if not DOTTED.fullmatch(name):
        return None
    try:
        found = find(name)
    except NotFound:
        return None
    return name if is_same_object(found, value) else None
