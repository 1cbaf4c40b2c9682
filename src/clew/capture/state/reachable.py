"""Which functions a program can reach, and the variables around them.

In come functions and classes; out come all functions of the program's own that they may call: those that code names, in
globals, closures, containers and defaults, and methods by name. Packages that are merely used and frameworks are left
out. All is read from code, nothing runs. Here too: what bytecode tells of a function (globals, stores, imports,
identity tests), and the objects behind a callable.
"""

from __future__ import annotations

import dis
import functools
import inspect
import operator
import sys
import weakref
from collections import deque
from collections.abc import Container, Iterable, Iterator
from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from clew.capture.bytecode.instructions import Operations
from clew.capture.guards.notes import Variable
from clew.capture.guards.saved_variables import HolderPath
from clew.capture.state.containers import CODE, SIMPLE, look_up, slots_of
from clew.errors import CaptureError
from clew.ir.graph import Graph
from clew.ir.guests import FRAMEWORK_PACKAGES
from clew.ir.source import is_hidden, is_installed, is_installed_file

_FOREIGN = frozenset(sys.stdlib_module_names) | FRAMEWORK_PACKAGES | {"clew"}
_MOST_FUNCTIONS = 1000


class ReachableFunctions:
    """The functions that can be reached from some start; more starts may be added at any time."""

    def __init__(self, without: Iterable[FunctionType] = ()) -> None:
        self.functions: dict[FunctionType, None] = {}
        self._without = frozenset(without)
        self._packages: set[str] = set()
        self._classes: dict[type, None] = {}
        self._own: dict[type, None] = {}
        self._names: set[str] = {"forward"}
        self._methods: dict[str, list[FunctionType]] = {}
        self._waiting: list[FunctionType] = []
        self._around: dict[FunctionType, list[tuple[Any, str, Any]]] = {}
        self.derived: dict[Any, Any] = {}  # what was found out about the functions, until there are others

    def copy(self) -> ReachableFunctions:
        """Another one that has reached the same."""
        twin = ReachableFunctions()
        twin.functions, twin._packages = dict(self.functions), set(self._packages)
        twin._classes, twin._own, twin._names = dict(self._classes), dict(self._own), set(self._names)
        twin._methods = {name: list(functions) for name, functions in self._methods.items()}
        return twin

    def add(self, function: FunctionType) -> list[FunctionType]:
        """All functions that are reached now and were not before."""
        known = len(self.functions)
        self.derived.clear()
        self._packages.add(_package(function))
        self._waiting.append(function)
        self._follow()
        return list(self.functions)[known:]

    def near(self, starts: Iterable[FunctionType], levels: int = 3) -> dict[FunctionType, None]:
        """The reached functions that some of them may call within a few steps, methods of other classes left out."""
        methods: dict[str, list[FunctionType]] = {}
        for kind in self._own:
            for name, functions in methods_of(kind):
                methods.setdefault(name, []).extend(functions)
        found = dict.fromkeys(starts)
        latest = list(found)
        for _ in range(levels):
            latest = [one for function in latest for one in self._named_in(function, methods)]
            latest = [one for one in dict.fromkeys(latest) if one in self.functions and one not in found]
            found.update(dict.fromkeys(latest))
        return found

    def _named_in(self, function: FunctionType, methods: dict[str, list[FunctionType]]) -> Iterator[FunctionType]:
        """The functions that the code of one names, by themselves or as methods."""
        names = attribute_names(function.__code__)
        for name in sorted(names & methods.keys()):
            yield from methods[name]
        for _, _, value in self.around(function):
            if isinstance(value, ModuleType):
                inside = [vars(value)[name] for name in sorted(names & vars(value).keys())]
            else:
                inside = [value, look_up(value, "__wrapped__")]
            yield from (one for one in inside if isinstance(one, FunctionType))

    def is_installed(self, kind: type) -> bool:
        """Whether a class is one that the program merely names, of a package that was installed."""
        if kind not in self.derived:
            is_own = any(kind in own.__mro__ for own in self._own)
            self.derived[kind] = not is_own and is_installed_file(_file(kind))
        return bool(self.derived[kind])

    def classes(self) -> list[type]:
        """The program's own classes, those that its code names, and their bases, frameworks' left out."""
        if "classes" not in self.derived:
            bases = dict.fromkeys(base for kind in (*self._own, *self._classes) for base in kind.__mro__)
            self.derived["classes"] = [base for base in bases if _package(base) not in _FOREIGN]
        found: list[type] = self.derived["classes"]
        return found

    def classes_of(self, ran: Container[FunctionType]) -> list[type]:
        """The classes whose attributes a run may have read. A program that reaches very many, through a registry say,
        is taken to have used its own and those with functions that ran."""
        found = self.classes()
        if len(found) <= _MOST_CLASSES:
            return found
        own = {base for kind in self._own for base in kind.__mro__}
        return [kind for kind in found if kind in own or any(function in ran for function in _own_functions(kind))]

    def add_own_class(self, kind: type) -> None:
        """Let the methods of one of the program's own classes be reached by name."""
        self._own[kind] = None
        self.derived.clear()
        self.add_class(kind)

    def add_class(self, kind: type) -> None:
        """Let the methods of a class be reached by name."""
        if kind in self._classes or _package(kind) in _FOREIGN:
            return
        self._classes[kind] = None
        installed = is_installed_file(_file(kind))
        for name, functions in methods_of(kind):
            self._methods.setdefault(name, []).extend(functions)
            if name in self._names or name in _ALWAYS or (_is_special(name) and not installed):
                self._waiting += functions
        for value in [] if installed else [value for base in kind.__mro__ for value in vars(base).values()]:
            if hasattr(type(value), "__get__") and type(value).__dictoffset__ and _package(type(value)) not in _FOREIGN:
                self._add_value(value, _NOTHING, 2)  # a descriptor of the user's

    def _follow(self) -> None:
        while self._waiting and len(self.functions) < _MOST_FUNCTIONS:
            function = self._waiting.pop()
            if function in self.functions or function in self._without or not self._is_own(function):
                continue
            self.functions[function] = None
            names = attribute_names(function.__code__)
            for name in sorted(names - self._names):
                self._waiting += self._methods.get(name, ())
            self._names |= names
            depth = 1 if is_installed(function.__code__) else _DEPTH
            for _, _, value in self.around(function):
                self._add_value(value, names, depth)

    def around(self, function: FunctionType) -> list[tuple[Any, str, Any]]:
        """The variables around a function; they are read once, until ``forget``."""
        known = self._around.get(function)
        if known is None:
            known = self._around[function] = list(variables(function))
        return known

    def forget(self) -> None:
        """Let go of the values of all variables: they are read again when they are needed again."""
        self._around.clear()

    def _is_own(self, function: FunctionType) -> bool:
        """Whether a function is the program's: of one of its packages, or no installed one."""
        package = _package(function)
        if is_hidden(function.__code__) or (package in _FOREIGN and not is_generated(function.__code__)):
            return False
        return package in self._packages or not is_installed(function.__code__)

    def _add_value(self, value: Any, names: frozenset[str], depth: int = 1) -> None:
        """Follow what a variable holds: a function, or what functions can be reached through."""
        if depth == 0 or isinstance(value, SIMPLE):
            return
        if isinstance(value, FunctionType):
            self._waiting.append(value)
        elif isinstance(value, MethodType):
            self._waiting += [value.__func__] if isinstance(value.__func__, FunctionType) else []
            self._add_value(value.__self__, _NOTHING, depth - 1)
        elif is_of_class(value):
            self._add_value(value.__self__, _NOTHING, depth - 1)
        elif isinstance(value, _CONTAINERS):
            for part in _items(value):
                self._add_value(part, _NOTHING, depth - 1)
        elif isinstance(value, ModuleType):
            if _package(value) not in _FOREIGN:
                for name in sorted(names & vars(value).keys()):
                    self._add_value(vars(value)[name], _NOTHING, depth)
        elif isinstance(value, functools.partial):
            self._add_value(value.func, _NOTHING, depth)
            for part in (*value.args, *value.keywords.values()):
                self._add_value(part, _NOTHING, depth - 1)
        elif isinstance(look_up(value, "__wrapped__"), FunctionType):
            self._waiting.append(look_up(value, "__wrapped__"))
        elif holds_graph(value):
            self._waiting += _code_of(value)
        elif _package(type(value)) in _FOREIGN and not isinstance(value, type):
            return
        else:
            kind = value if isinstance(value, type) else type(value)
            if self._is_own_class(kind):
                self.add_class(kind)
                if kind is not value and hasattr(value, "__dict__"):
                    for part in list(vars(value).values()):
                        self._add_value(part, _NOTHING, depth - 1)

    def _is_own_class(self, kind: type) -> bool:
        """Whether a class is the program's, by its own functions, among which Python may have put others (those of an
        enumeration, say), by the first that it inherits or, if it has none, by the file it is in."""
        inherited = [function for _, functions in methods_of(kind)[:1] for function in functions]
        functions = _own_functions(kind) or inherited
        if functions:
            return any(map(self._is_own, functions))
        return not is_installed_file(_file(kind))


_NOTHING: frozenset[str] = frozenset()
_DEPTH = 4
_ALWAYS = frozenset(
    "__call__ __init__ __post_init__ __getattr__ __enter__ __exit__ __getitem__ __setitem__ __len__ __iter__".split(" ")
)
"""Methods that Python calls without naming them, as they are common in packages; in users' own code it calls others."""


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _own_functions(kind: type) -> tuple[FunctionType, ...]:
    """The functions that a class itself defines."""
    return tuple(function for value in vars(kind).values() for function in _functions_in(value))


_MOST_CLASSES = 150


def _items(container: Any) -> list[Any]:
    """The items of a container, none of a large one; its own class, a user's, may not tell of them."""
    builtin: Any = next(kind for kind in _CONTAINERS if isinstance(container, kind))
    if builtin.__len__(container) > _MOST_ITEMS:
        return []
    return list(builtin.values(container) if builtin is dict else builtin.__iter__(container))


_MOST_ITEMS = 256
_CONTAINERS = (dict, list, tuple, set, deque)


def _file(kind: type) -> str:
    return str(getattr(sys.modules.get(kind.__module__), "__file__", ""))


def package_of(thing: Any) -> str:
    """The name of the package that a function, a class or a Python module is in."""
    return _package(thing)


def _package(thing: Any) -> str:
    name = thing.__name__ if isinstance(thing, ModuleType) else thing.__module__
    return str(name).partition(".")[0]


Methods = tuple[tuple[str, tuple[FunctionType, ...]], ...]
_methods: dict[type, tuple[list[Any], Methods]] = {}
_MOST_KNOWN = 4096


def methods_of(kind: type) -> Methods:
    """The functions of a class by the name under which an instance finds them; remembered while the class is as it is:
    anybody may put another function into it."""
    bases = [base for base in kind.__mro__ if _package(base) not in _FOREIGN]
    held = [value for base in bases for value in vars(base).values()]
    known = _methods.get(kind)
    if known is not None and len(known[0]) == len(held) and all(map(operator.is_, known[0], held)):
        return known[1]
    found: dict[str, tuple[FunctionType, ...]] = {}
    for base in bases:
        for name, value in vars(base).items():
            if name not in found:
                found[name] = tuple(_functions_in(value))
    methods = tuple((name, functions) for name, functions in found.items() if functions)
    if len(_methods) >= _MOST_KNOWN:
        _methods.clear()
    _methods[kind] = (held, methods)
    return methods


def _functions_in(value: Any) -> Iterator[FunctionType]:
    """The functions behind a method, a property, or what a decorator has made of one."""
    parts: Iterable[Any] = (value,)
    if isinstance(value, property):
        parts = (value.fget, value.fset)
    elif isinstance(value, (classmethod, staticmethod)):
        parts = (value.__func__,)
    for part in parts:
        while part is not None:
            if isinstance(part, FunctionType):
                yield part
            part = look_up(part, "__wrapped__")


# ---- the variables around a function ---------------------------------------------------------------------------------


@functools.lru_cache(maxsize=16384)
def attribute_names(code: CodeType) -> frozenset[str]:
    """The names of attributes and global variables that a function, and the functions inside it, use."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return frozenset(code.co_names).union(*map(attribute_names, inner))


def reads_variables(function: Any) -> bool:
    """Whether a function, or one that it calls by a name, reads variables that may be set anew."""
    waiting, seen = [function], set()
    while waiting:
        found = inspect.unwrap(waiting.pop())
        code = getattr(found, "__code__", None)
        if code is None or code in seen or is_installed(code):
            continue
        seen.add(code)
        held = [found.__globals__.get(name) for name in global_names(code)]
        held += [cell.cell_contents for cell in found.__closure__ or () if cell != CellType()]
        waiting += [one for one in held if callable(one)]
        if not all(one is None or callable(one) or isinstance(one, ModuleType) for one in held):
            return True
    return False


_REMEMBERED = frozenset({"dispatch_cache", "cache_token"})
"""What ``functools.singledispatch`` remembers of earlier calls, on which nothing depends."""


def variables(function: FunctionType) -> Iterator[tuple[Any, str, Any]]:
    """The variables around a function: the dict or cell that holds each, its name, its value now."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name in _REMEMBERED and function.__code__.co_filename == functools.__file__:
            continue
        try:
            yield cell, name, cell.cell_contents
        except ValueError:  # a cell that is not filled yet
            continue
        yield from _inside(cell.cell_contents, function.__code__)
    for name in imported_names(function.__code__):
        full = name if name in sys.modules else f"{function.__globals__.get('__package__')}.{name}"
        if isinstance(sys.modules.get(full), ModuleType):
            yield sys.modules, full, sys.modules[full]
            yield from _inside(sys.modules[full], function.__code__)
    around = function.__globals__
    named: Iterable[str] = global_names(function.__code__)
    if names_all_globals(function.__code__):  # it may look for any of them
        named = [name for name, value in around.items() if not isinstance(value, CODE) and not name.startswith("__")]
    for name in named:
        if name in around and isinstance(around[name], Variable):  # which generated code holds
            root = around[name].root
            if type(root.holder) is not HolderPath:
                yield root.holder, root.name, root.get()
        elif name in around:
            yield around, name, around[name]
            yield from _inside(around[name], function.__code__)
    for name, value in (function.__kwdefaults__ or {}).items():
        yield function.__kwdefaults__, name, value
    if function.__defaults__:
        held = _defaults.setdefault(function, {})
        names = function.__code__.co_varnames[: function.__code__.co_argcount][-len(function.__defaults__) :]
        held.update(zip(names, function.__defaults__, strict=True))
        for name, value in held.items():
            yield held, name, value


_defaults: weakref.WeakKeyDictionary[FunctionType, dict[str, Any]] = weakref.WeakKeyDictionary()
"""A dict for the default values of each function, the same at each reading."""


def _inside(value: Any, code: CodeType) -> Iterator[tuple[Any, str, Any]]:
    """Variables of a module, or attributes of a class, that a function reaches through one it names."""
    if not isinstance(value, (ModuleType, type)) or _package(value) in _FOREIGN:
        return
    holder = vars(value) if isinstance(value, ModuleType) else value
    names = attribute_names(code)
    file = _file(value) if isinstance(value, type) else str(getattr(value, "__file__", ""))
    is_users = not is_installed_file(file)
    by_text = names & _BY_TEXT and (is_users or isinstance(value, ModuleType))
    wanted = list(vars(value)) if by_text else sorted(names & vars(value).keys())
    for name in [name for name in wanted if not name.startswith("__")]:
        part = vars(value)[name]
        is_plain = not isinstance(part, CODE) and not hasattr(type(part), "__get__")
        if is_plain or (is_users and is_chosen(holder, name, part)):
            yield holder, name, part


def is_chosen(holder: Any, name: str, value: Any) -> bool:
    """Whether a variable holds a function or class under another name than its own, one of several that it may hold, or
    a Python module that nobody imported; in a closure any class or module."""
    if isinstance(value, ModuleType):
        return isinstance(holder, CellType) or sys.modules.get(value.__name__) is not value
    if isinstance(value, type) and isinstance(holder, CellType):
        return name != "__class__"
    return isinstance(value, CODE) and getattr(value, "__name__", name) != name


# ---- what the bytecode of a function tells ---------------------------------------------------------------------------

_BY_TEXT = frozenset({"getattr", "vars", "__dict__", "attrgetter"})
"""Ways to an attribute whose name the code does not tell."""


class _Scan(NamedTuple):
    """What the instructions of a function tell."""

    globals: tuple[str, ...]
    stored: tuple[str, ...]
    imported: tuple[str, ...]
    asks_for_identity: bool
    compares_objects: bool


@functools.lru_cache(maxsize=16384)
def _scan(code: CodeType) -> _Scan:
    """Read the instructions of a function, and of those inside it, once."""
    operations, names = Operations(code), code.co_names
    loaded = {names[operations.argument(place) >> 1] for place in operations.uses(_LOAD_GLOBAL)}
    loaded |= {names[operations.argument(place)] for place in operations.uses(_STORE_GLOBAL)}
    stored = {names[operations.argument(place)] for one in _STORES for place in operations.uses(one)}
    identity = objects = False
    for place in operations.uses(_IS):
        if place and operations.all[place - 1] == _LOAD_CONST:
            identity = identity or isinstance(code.co_consts[operations.argument(place - 1)], bool)
        else:
            objects = True
    imported = [names[operations.argument(place)] for place in operations.uses(_IMPORT)]
    if not _IMPORTING.isdisjoint(names):
        imported += [text for text in code.co_consts if isinstance(text, str)]
    inner = [_scan(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    stored.update(name for one in inner for name in one.stored)
    loaded.update(name for one in inner for name in one.globals)
    return _Scan(
        tuple(sorted(loaded)),
        tuple(sorted(stored)),
        tuple(dict.fromkeys([*imported, *(name for one in inner for name in one.imported)])),
        identity or any(one.asks_for_identity for one in inner),
        objects or "id" in code.co_names or any(one.compares_objects for one in inner),
    )


_LOAD_GLOBAL, _LOAD_CONST, _IS = (dis.opmap[name] for name in ("LOAD_GLOBAL", "LOAD_CONST", "IS_OP"))
_STORE_GLOBAL = dis.opmap["STORE_GLOBAL"]
_STORES = (_STORE_GLOBAL, dis.opmap["STORE_ATTR"])
_IMPORT = dis.opmap["IMPORT_NAME"]
_IMPORTING = frozenset({"import_module", "__import__", "modules"})


def global_names(code: CodeType) -> tuple[str, ...]:
    """The global variables that a function and the functions inside it use."""
    return _scan(code).globals


def imported_names(code: CodeType) -> tuple[str, ...]:
    """The Python modules that a function, or one inside it, imports as it runs, or names in a text to do so."""
    return _scan(code).imported


@functools.lru_cache(maxsize=16384)
def names_all_globals(code: CodeType) -> bool:
    """Whether a function can reach global variables by names that are values: it asks for all, or runs text."""
    return not _BY_VALUE.isdisjoint(attribute_names(code))


_BY_VALUE = frozenset({"globals", "__globals__", "exec", "eval"})


def stored_names(code: CodeType) -> tuple[str, ...]:
    """The global variables and attributes that a function, or one inside it, sets."""
    return _scan(code).stored


def is_generated(code: CodeType) -> bool:
    """Whether a graph's code was generated: it is a program like any other, whose guards look at objects as such."""
    return code.co_filename.startswith("<clew ")


def asks_for_identity(code: CodeType) -> bool:
    """Whether a function asks ``is True`` or ``is False``, which only the plain values answer rightly."""
    return _scan(code).asks_for_identity and not is_generated(code)


def compares_objects(code: CodeType) -> bool:
    """Whether a function asks if two values are the same object, which may be two of its arguments."""
    return _scan(code).compares_objects and not is_generated(code)


# ---- callables and the objects behind them ---------------------------------------------------------------------------


def signature_of(target: Any) -> inspect.Signature:
    """The original's signature; that of a decorator's wrapper if the wrapper has parameters of its own."""
    try:
        own = inspect.signature(target, follow_wrapped=False)
    except ValueError:  # a function that is written in C and does not tell
        return inspect.signature(lambda *args, **kwargs: None)
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    if any(parameter.kind not in variadic and name != "self" for name, parameter in own.parameters.items()):
        return own
    return inspect.signature(target)


def is_of_class(value: Any) -> bool:
    """Whether a value is a method of a class that is written in C and may call the functions of the class."""
    return isinstance(value, BuiltinFunctionType) and isinstance(value.__self__, type)


def behind(fn: Any) -> list[Any]:
    """A callable and the objects that it consists of: of a method its object, of a partial what it holds."""
    found: list[Any] = []
    waiting = [fn]
    while waiting:
        one = waiting.pop()
        if one is not None and not any(one is known for known in found):
            found.append(one)
            waiting += [getattr(one, "__self__", None), getattr(one, "__wrapped__", None)]
            if holds_graph(one):
                waiting += _code_of(one)
            if isinstance(one, partial):
                waiting += [one.func, *one.args, *one.keywords.values()]
    return found


def holds_graph(value: Any) -> bool:
    """Whether a value is a program that was made of a graph."""
    return isinstance(getattr(value, "__dict__", {}).get("_graph"), Graph)


def _code_of(captured: Any) -> list[Any]:
    """The function that was made of a graph, which runs in its place; what the first call remembers is known then."""
    if hasattr(captured, "_plans"):
        captured._plans()
    return [captured._compile()[1]] if hasattr(captured, "_compile") else []


def check_slots(programs: Iterable[Any]) -> None:
    """An object that is called must keep its state where it can be watched by name."""
    for part in programs:
        kind: Any = type(part)
        if slots_of(kind) and not hasattr(part, "__dict__"):
            raise CaptureError(
                f"the program is, or belongs to, a {kind.__name__}, which keeps its attributes in slots",
                why="the capture cannot follow them there",
                fixes=("let the class have a dict: take __slots__ away",),
            )
