"""The surroundings of a program: variables in closures, globals and defaults that its own code names.

In come its functions and classes; out come the variables that it may read, those that it can change, the classes and
methods that ran, and streams (iterators, random generators), which are refused if something was taken from them.
"""

from __future__ import annotations

import builtins
import functools
import operator
import random
import weakref
from collections.abc import Callable, Container, Iterable, Iterator, Set
from contextvars import ContextVar
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, TypeVar

from clew.capture.guards.notes import Variable
from clew.capture.state.containers import (
    CODE,
    SIMPLE,
    attributes_of,
    follows,
    is_flat,
    is_followed,
    is_namespace,
    is_of_library,
    look_up,
    value_of,
)
from clew.capture.state.reachable import (
    ReachableFunctions,
    attribute_names,
    global_names,
    is_chosen,
    is_generated,
    names_all_globals,
    stored_names,
)
from clew.errors import CaptureError
from clew.ir.guests import follows_stream
from clew.ir.source import SourceLine, is_hidden, is_installed

AnswerT = TypeVar("AnswerT")


def _globals_of(functions: Iterable[FunctionType]) -> dict[int, dict[str, Any]]:
    return {id(function.__globals__): function.__globals__ for function in functions}


_RunOf = tuple[dict[FunctionType, None], frozenset[tuple[int, str]], frozenset[str]]


class Surroundings:
    """The variables around some functions, as they were before the program ran."""

    def __init__(
        self, functions: list[Any], kinds: Iterable[type] = (), partials: Iterable[functools.partial[Any]] = ()
    ) -> None:
        self._streams: list[tuple[str, Any, Any]] = []
        self.program: tuple[list[Any], tuple[type, ...]] = (list(functions), tuple(dict.fromkeys(kinds)))
        known, values = cached_reach(tuple(functions), self.program[1])
        self._known, self._values = known, values
        self._reach, self._near, self._stored, self._seen = known.reach, known.near, known.stored, known.keys
        self.found = [(holder, name, value) for (holder, name, _), value in zip(known.around, values, strict=True)]
        for place in known.places(_is_stream, values):
            _, name, function = known.around[place]
            self._note_stream(name, values[place], function)
        self.partials = list(partials)
        held = [one for partial in self.partials for one in held_by(partial)]
        self._held = {(id(holder), name) for holder, name in held}
        self.found += [(holder, name, holder[name]) for holder, name in held]

    def add(self, function: FunctionType) -> list[tuple[Any, str]]:
        """Look at the variables around one more function, and around those that it may call; the new ones."""
        self.program[0].append(function)
        self._reach, known = self._reach.copy(), len(self.found)
        reached = self._reach.add(function)
        self._stored = self._stored | names_stored(reached)
        self._add([(holder, name, one) for one in reached for holder, name, _ in self._reach.around(one)])
        self._reach.forget()
        return [one[:2] for one in self.found[known:] if may_change(*one, self._stored)]

    def _add(self, around: Iterable[tuple[Any, str, FunctionType]]) -> None:
        found = {(id(holder), name): (holder, name, function) for holder, name, function in around}
        for key in [key for key in found if key not in self._seen]:
            holder, name, function = found[key]
            value = Variable(holder, name).get()
            self._note_stream(name, value, function)
            self.found.append((holder, name, value))
        self._seen = self._seen | found.keys()

    def _note_stream(self, name: str, value: Any, function: FunctionType) -> None:
        if _is_stream(value):
            self._add_stream(name, value, function in self._near)

    @property
    def functions(self) -> list[FunctionType]:
        """All functions whose variables are looked at."""
        return list(self._reach.functions)

    def derived(self, ask: Callable[[Iterable[FunctionType]], AnswerT]) -> AnswerT:
        """What ``ask`` finds out about the code of all functions, remembered as long as there are no others."""
        known = self._reach.derived
        if ask not in known:
            known[ask] = ask(self._reach.functions)
        answer: AnswerT = known[ask]
        return answer

    @property
    def namespaces(self) -> dict[int, dict[str, Any]]:
        """The globals of all functions, by identity."""
        return self.derived(_globals_of)

    def classes(self) -> list[type]:
        """The classes of the program, those that its code names, and those that they derive from."""
        return self._reach.classes()

    def builtins_in_classes(self) -> list[tuple[type, str]]:
        """Where the classes of the program hold functions that are not written in Python: the class and the name."""
        known = self._reach.derived
        if _BUILTINS not in known:
            held = [(kind, name, value) for kind in self.classes() for name, value in vars(kind).items()]
            known[_BUILTINS] = [
                (kind, name) for kind, name, value in held if type(look_up(value, "__func__", value)) in _COMPILED
            ]
        found: list[tuple[type, str]] = known[_BUILTINS]
        return found

    def classes_of(self, ran: Container[FunctionType]) -> list[type]:
        """The classes whose attributes a run of these functions may have read."""
        return self._reach.classes_of(ran)

    def may_vary(self, kind: type) -> bool:
        """Whether attributes of a class may be others at the next call: nobody sets those of what is installed."""
        return not self._reach.is_installed(kind)

    @property
    def stored(self) -> Set[str]:
        """The names of all attributes and global variables that the program sets."""
        return self._stored

    def stores(self, name: str) -> bool:
        """Whether the program sets an attribute or a global variable of this name, of whatever it is."""
        return name in self._stored

    def held(self, ask: Callable[[Any], bool]) -> list[tuple[str, Any]]:
        """The variables, by name, whose values are such; ``ask`` looks at the class of a value, or for a piece of code,
        so that it need not be asked again at each capture."""
        places, found = self._known.places(ask, self._values), self.found
        later = [(name, value) for _, name, value in found[len(self._values) :] if ask(value)]
        return [found[place][1:] for place in places] + later

    def used(self, ask: Callable[[Any], bool], executed: Iterable[CodeType]) -> list[tuple[str, Any]]:
        """The same, of those that functions name which were seen running, or which these may have called."""
        if not self.held(ask):
            return []
        return [(name, value) for _, name, value in self._named_in(self._run_of(executed)[1]) if ask(value)]

    def values(self) -> Iterator[tuple[str, Any]]:
        """The variables by name."""
        for _, name, value in self.found:
            yield name, value

    def ran(self, executed: Iterable[CodeType]) -> dict[FunctionType, None]:
        """The functions that were seen running, and those that they may have called."""
        return self._run_of(executed)[0]

    def names(self, executed: Iterable[CodeType]) -> frozenset[str]:
        """The attributes that these functions name."""
        return self._run_of(executed)[2]

    def _run_of(self, executed: Iterable[CodeType]) -> _RunOf:
        """The functions of a run, the variables that they name, and the attributes; remembered for the next run of the
        same."""
        # Another code may have stood for a function's own during the run, so codes are told apart by their place.
        executed = list(executed)
        places = frozenset((code.co_filename, code.co_firstlineno) for code in executed)
        known = self._reach.derived
        if places not in known:
            own = [(function, function.__code__) for function in self._reach.functions]
            seen = [function for function, code in own if (code.co_filename, code.co_firstlineno) in places]
            ran = {**self._near, **self._reach.near(seen)}
            named = frozenset((id(one[0]), one[1]) for function in ran for one in self._reach.around(function))
            self._reach.forget()
            codes = [*executed, *(function.__code__ for function in ran)]
            known[places] = (ran, named, frozenset[str]().union(*map(attribute_names, codes)))
        found: _RunOf = known[places]
        return found

    def holds(self, wanted: Any) -> bool:
        """Whether some variable, or a container or object that one holds, is or has this very object."""
        return any(_contains(value, wanted, 4) for _, _, value in self.found)

    def _add_stream(self, name: str, stream: Any, is_near: bool) -> None:
        """What hands out another value at each use: one that cannot be set back is refused before it is used."""
        if is_near and hasattr(type(stream), "__next__"):
            raise _stream_refused(name, stream, self.line_naming(name))
        self._streams.append((name, stream, _position(stream)))

    def watch_streams(self, found: Iterable[tuple[str, Any]]) -> None:
        """Note where generators of random numbers inside of objects stand. An iterator cannot be set back, once it is
        used: raise if the program itself names what leads to one."""
        known = {id(stream) for _, stream, _ in self._streams} | {id(_PYTHON_STREAM)}
        for name, stream in found:
            if hasattr(type(stream), "__next__"):
                if any(name in function.__code__.co_freevars or name in _names(function) for function in self._near):
                    raise _stream_refused(name, stream, self.line_naming(name))
            elif id(stream) not in known and not follows_stream(type(stream)):
                self._streams.append((name, stream, _position(stream)))

    def python_streams(self) -> list[random.Random]:
        """The streams of Python's random numbers among those outside of the program."""
        return [
            stream for _, stream, _ in self._streams if type(stream) is random.Random and stream is not _PYTHON_STREAM
        ]

    def check_streams(self, followed: Iterable[Any] = ()) -> None:
        """Raise if the program took something from what hands out another value at each use, and nobody followed it."""
        known = {id(stream) for stream in followed}
        for name, stream, before in self._streams:
            if id(stream) not in known and not _is_at(stream, before):
                raise _stream_refused(name, stream, self.line_naming(name))

    def line_naming(self, name: str) -> str:
        """Where the first function of the program is that names a variable or attribute, for errors; without a name the
        first one."""
        words = set(name.split(".")) if name else set()
        codes = [function.__code__ for function in self.functions if not is_hidden(function.__code__)]
        naming = [code for code in codes if not words or not words.isdisjoint((*code.co_names, *code.co_freevars))]
        naming += [code for code in codes if not words.isdisjoint(code.co_varnames)]  # defaults of parameters
        lines = [SourceLine(code.co_filename, code.co_firstlineno, code.co_name).describe() for code in naming[:1]]
        return lines[0] if lines else ""

    def put_back_streams(self) -> None:
        """Let generators of random numbers stand where they stood."""
        for _, stream, before in self._streams:
            if not _is_at(stream, before):
                _set_position(stream, before)

    def everything(self) -> Iterator[tuple[Any, str]]:
        """All variables around the program, by their holder and their name."""
        for holder, name, _ in self.found:
            yield holder, name

    def closures(self) -> list[CellType]:
        """The cells among the holders of variables around the program."""
        later = [one[0] for one in self.found[len(self._values) :] if type(one[0]) is CellType]
        return [self.found[place][0] for place in self._known.in_cells()] + later

    def cells(self) -> list[tuple[Any, str]]:
        """The variables that the program can change, by their holder, a dict or a cell, and their name."""
        return [(holder, name) for holder, name, _ in self.changeable()]

    def changeable(self) -> list[tuple[Any, str, Any]]:
        """The same, with the values that they had: those that the program sets, or whose values can be changed."""
        if self._stored is not self._known.stored:  # functions were added, which may set others
            return [one for one in self.found if may_change(*one, self._stored)]
        later = [one for one in self.found[len(self._values) :] if may_change(*one, self._stored)]
        return [self.found[place] for place in self._known.changeable(self._values)] + later

    def variables(self, executed: Iterable[CodeType]) -> Iterator[tuple[Any, str, Any]]:
        """The variables that may be set to something else between calls, and whose value the program may have used:
        those that functions name which were seen running, or which these may have called."""
        used = self._run_of(executed)[1]
        for holder, name, value in self._named_in(used):
            is_held = (id(holder), name) in self._held
            varies = not isinstance(value, CODE) or is_chosen(holder, name, value)
            if is_held or (varies and (not isinstance(holder, dict) or is_namespace(holder))):
                yield holder, name, value

    def is_of_library(self, holder: Any, name: str) -> bool:
        """Whether a variable is one of an installed package, or of the closure of a function there."""
        if not isinstance(holder, CellType):
            return is_of_library(holder)
        known = self._reach.derived
        if CellType not in known:
            cells = [one for one in self._known.around if isinstance(one[0], CellType)]
            known[CellType] = {(id(cell), name) for cell, name, function in cells if is_installed(function.__code__)}
        return (id(holder), name) in known[CellType]

    def code(self, executed: Iterable[CodeType]) -> Iterator[Variable]:
        """The variables that hold the program's own functions, as they are now, of those that were seen running."""
        for holder, name, value in self._named_in(self._run_of(executed)[1]):
            if isinstance(value, FunctionType) and value in self._reach.functions:
                yield Variable(holder, name, value)

    def methods(self, executed: Iterable[CodeType]) -> Iterator[Variable]:
        """The methods that were seen running, where their classes hold them; nobody sets those of what is installed."""
        ran = self.ran(executed)
        for kind in self._varying(ran):
            yield from (Variable(kind, name, value) for name, value in vars(kind).items() if _is_among(value, ran))

    def named_methods(self, executed: Iterable[CodeType], of: Iterable[type] = ()) -> Iterator[Variable]:
        """These, the methods that code which ran names, those ``of`` objects that were given among them, and those that
        Python calls without a name. One that calls no framework is not seen running."""
        executed = list(executed)
        ran, names = self.ran(executed), self.names(executed)
        for kind in self._varying(ran, of):
            makes = kind.__name__ in names
            for name, value in vars(kind).items():
                if _is_among(value, ran) or (_is_code(value) and _may_run(name, names, makes)):
                    yield Variable(kind, name, value)

    def missing(self, executed: Iterable[CodeType], of: Iterable[type] = ()) -> Iterator[tuple[type, frozenset[str]]]:
        """Which attributes that code which ran names are not in these classes."""
        executed = list(executed)
        names = self.names(executed) | _IN_FRONT
        for kind in self._varying(self.ran(executed), of):
            yield kind, names.difference(vars(kind))

    def shadowed(self, owner: Any, names: Set[str]) -> list[str]:
        """Which of these names an object finds in its class alone, so that an attribute of its own would be found
        first; none in a class of an installed package."""
        kind: Any = type(owner)
        return sorted(names & names_of_class(kind) - vars(owner).keys()) if self.may_vary(kind) else []

    def _varying(self, ran: Container[FunctionType], of: Iterable[type] = ()) -> list[type]:
        """The classes that a run of these functions may have used and that somebody may change."""
        bases = [base for kind in of for base in kind.__mro__ if is_followed(base)]
        return [kind for kind in dict.fromkeys((*self.classes_of(ran), *bases)) if self.may_vary(kind)]

    def own_classes(self, executed: Iterable[CodeType]) -> Iterator[Variable]:
        """The variables that hold classes of the program's own which code that ran names."""
        for holder, name, value in self._named_in(self._run_of(executed)[1]):
            if isinstance(value, type) and isinstance(holder, dict) and self.may_vary(value):
                yield Variable(holder, name, value)

    def _named_in(self, used: frozenset[tuple[int, str]]) -> list[tuple[Any, str, Any]]:
        """The variables among these, and those that are held; where they stand is the same for each run of a kind."""
        wanted = used | self._held if self._held else used
        known, question = self._reach.derived, (wanted, len(self.found))
        if question not in known:
            known[question] = [place for place, one in enumerate(self.found) if (id(one[0]), one[1]) in wanted]
        return [self.found[place] for place in known[question]]


_IN_FRONT = frozenset({"__getattr__", "__getattribute__"})
"""Methods that decide about all attributes."""
_MAKING = frozenset({"__init__", "__new__", "__post_init__"})
"""Those that run where the program makes an object of the class."""
_STORAGE = (GetSetDescriptorType, MemberDescriptorType)


@functools.lru_cache(maxsize=1024)
def names_of_class(kind: type) -> frozenset[str]:
    """The attributes that a class of a user's has when this is first asked, those of a framework's bases left out."""
    return frozenset(name for base in kind.__mro__ if is_followed(base) for name in vars(base))


def _is_code(value: Any) -> bool:
    """Whether what a class holds is a method, a property, or another descriptor that runs code."""
    return hasattr(type(value), "__get__") and not isinstance(value, _STORAGE)


def _may_run(name: str, names: frozenset[str], makes: bool) -> bool:
    """Whether code with these names may run a method; ``makes`` tells whether it names the class."""
    if name in _MAKING:
        return makes
    return name in names or (name.startswith("__") and name.endswith("__"))


def _is_among(value: Any, functions: Container[FunctionType]) -> bool:
    function = getattr(value, "__func__", getattr(value, "fget", value))  # of a static or class method, of a property
    return type(function) is FunctionType and function in functions


_PYTHON_STREAM = random._inst  # type: ignore[attr-defined]
"""The generator behind the functions of ``random``: their draws are recorded."""

_parts: weakref.WeakKeyDictionary[functools.partial[Any], dict[str, Any]] = weakref.WeakKeyDictionary()
"""A dict for the values that each partial holds, the same at each reading."""


def held_by(function: functools.partial[Any]) -> list[tuple[dict[str, Any], str]]:
    """The variables that stand for the values of a partial that can be changed in place, arrays among them."""
    parts = {str(place): value for place, value in enumerate(function.args)} | dict(function.keywords)
    held = _parts.setdefault(function, {})
    held.update({name: value for name, value in parts.items() if _is_mutable(value)})
    return [(held, name) for name in held]


def _is_mutable(value: Any) -> bool:
    return follows(value) or is_flat(value) or hasattr(type(value), "__array__")


_BUILTINS = "functions in classes"
_COMPILED = frozenset({BuiltinFunctionType, type})
_NO_STREAMS = frozenset({FunctionType, type, ModuleType, *SIMPLE})


def _is_stream(value: Any) -> bool:
    kind: Any = type(value)
    return kind not in _NO_STREAMS and _is_stream_class(kind) and not follows_stream(kind)


@functools.lru_cache(maxsize=4096)
def _is_stream_class(kind: Any) -> bool:
    """True for what hands out another value at each use: iterators, generators of random numbers."""
    named = kind.__name__ in ("Random", "SystemRandom", "RandomState", "Generator")
    named = named or issubclass(kind, random.Random)
    return named or hasattr(kind, "__next__")


def _names(function: FunctionType) -> frozenset[str]:
    return attribute_names(function.__code__)


def _position(stream: Any) -> Any:
    """Where a stream stands, as far as it tells."""
    if isinstance(stream, random.SystemRandom):  # it stands nowhere, and each draw asks the system
        return None
    if hasattr(stream, "bit_generator"):
        return stream.bit_generator.state
    if hasattr(stream, "getstate"):
        return stream.getstate()
    if hasattr(stream, "get_state"):
        return stream.get_state()
    if hasattr(stream, "gi_frame"):
        return None if stream.gi_frame is None else stream.gi_frame.f_lasti
    return repr(stream)


def _is_at(stream: Any, before: Any) -> bool:
    """Whether a stream stands where it stood; arrays in its position can be compared by their text only."""
    now = _position(stream)
    return bool(now == before) if isinstance(stream, random.Random) else repr(now) == repr(before)


def _set_position(stream: Any, position: Any) -> None:
    if position is None:
        return
    if hasattr(stream, "bit_generator"):
        stream.bit_generator.state = position
    elif hasattr(stream, "setstate"):
        stream.setstate(position)
    elif hasattr(stream, "set_state"):
        stream.set_state(position)


def _stream_refused(name: str, stream: Any, where: str) -> CaptureError:
    return CaptureError(
        f"the program uses {name!r}, a {type(stream).__name__} outside of it",
        where=where,
        why="it gives another value at each use, which the graph would not",
        fixes=("pass its values as arguments", "draw them by the framework's own functions"),
    )


def functions_of(target: Any) -> list[Any]:
    """The Python functions of a callable: itself, with those that it wraps, or the methods of a module's parts."""
    found = look_up(target, "__func__", target)
    functions = [one for one in _chain(found) if isinstance(one, FunctionType)]
    if functions:
        return functions
    call = getattr(type(target), "forward", None) or vars(type(target)).get("__call__")
    return [one for one in _chain(call) if isinstance(one, FunctionType)]


def _chain(wrapper: Any) -> Iterator[Any]:
    """What a decorator has made, and what it has made it of; installed decorators keep no state of the program."""
    while wrapper is not None and not isinstance(wrapper, type):
        inner, code = look_up(wrapper, "__wrapped__"), look_up(wrapper, "__code__")
        if inner is None or code is None or not is_installed(code):
            yield look_up(wrapper, "__func__", wrapper)
        wrapper = inner


def _contains(value: Any, wanted: Any, depth: int) -> bool:
    if value is wanted:
        return True
    if depth == 0 or isinstance(value, (*SIMPLE, type)):
        return False
    if isinstance(value, dict):
        return any(_contains(item, wanted, depth - 1) for item in value.values())
    if isinstance(value, (list, tuple, set)):
        return any(_contains(item, wanted, depth - 1) for item in value)
    if isinstance(value, ModuleType):
        return False
    if isinstance(value, ContextVar):
        return _contains(value_of(value), wanted, depth - 1)
    return any(_contains(part, wanted, depth - 1) for part in attributes_of(value).values())


# ---- what functions reach, remembered --------------------------------------------------------------------------------
#
# What a program reaches, cached for its next capture.
#
# In come the functions and classes of a program; out come all functions that it reaches, the variables around them and
# their values now. A cached answer counts as long as all code that it names is the same and all other values are of the
# same classes: to see that is far cheaper than to search again.


ANY = "*"
"""Stands for all names, where code can set a variable by a name that is a value."""
_PLAIN = frozenset(SIMPLE)
_UNCHANGING = (*SIMPLE, *CODE)

Around = tuple[Any, str, FunctionType]
"""A variable: the dict, cell, class or module that holds it, its name, and a function that names it."""


class CachedReach:
    """What a program reaches, the variables around that, and what their values say; the values themselves are not
    kept, but for code."""

    def __init__(
        self, reach: ReachableFunctions, near: dict[FunctionType, None], around: list[Around], values: list[Any]
    ) -> None:
        self.reach = reach
        self.near = near
        self.stored = names_stored(reach.functions)
        self.around = around
        self.keys = frozenset((id(holder), name) for holder, name, _ in around)
        self._kinds = [*map(type, values)]
        self._fixed = [(place, value) for place, value in enumerate(values) if _must_stay(value)]
        self._codes = [(function, function.__code__) for function in reach.functions]
        self._missing = _missing(reach.functions)
        self._places: dict[Any, list[int]] = {}
        self._readers, self._order = _readers(self.around)

    def values(self) -> list[Any] | None:
        """The values of the variables now; None if another program may be reached through them."""
        read: list[Any] = []
        try:
            for holder, reader in self._readers:
                read += reader(holder)
        except KeyError:  # one of them is gone
            return None
        values = [read[place] for place in self._order]
        if not all(map(operator.is_, map(type, values), self._kinds)) and not self._are_of_same_kinds(values):
            return None
        for place, value in self._fixed:
            if values[place] is not value:
                return None
        for function, code in self._codes:
            if function.__code__ is not code:
                return None
        for holder, name in self._missing:
            if name in holder:
                return None
        return values

    def _are_of_same_kinds(self, values: list[Any]) -> bool:
        """Whether all values have the classes that they had, where all plain ones count as one."""
        pairs = zip(map(type, values), self._kinds, strict=True)
        return all(now is kind or (now in _PLAIN and kind in _PLAIN) for now, kind in pairs)

    def places(self, ask: Callable[[Any], bool], values: list[Any]) -> list[int]:
        """Which variables have values for which ``ask`` says yes: found out once, for it may ask for the class of a
        value, or whether it is some piece of code, and for no more; what it says of one plain value holds for all."""
        if ask not in self._places:
            self._places[ask] = [place for place, value in enumerate(values) if ask(value)]
        return self._places[ask]

    def changeable(self, values: list[Any]) -> list[int]:
        """Which variables the program can change: those that it sets, or whose values can be changed in place."""
        if may_change not in self._places:
            self._places[may_change] = [
                place
                for place, (holder, name, _) in enumerate(self.around)
                if may_change(holder, name, values[place], self.stored)
            ]
        return self._places[may_change]

    def in_cells(self) -> list[int]:
        """Which variables are those of closures."""
        if CellType not in self._places:
            self._places[CellType] = [place for place, one in enumerate(self.around) if type(one[0]) is CellType]
        return self._places[CellType]


def may_change(holder: Any, name: str, value: Any, stored: set[str]) -> bool:
    """Whether a program that sets these names can change a variable: it sets it, or changes its value in place."""
    if name in stored or ANY in stored or not isinstance(holder, dict):
        return True
    return not isinstance(value, _UNCHANGING)


_known: dict[Any, CachedReach] = {}
_MOST_KNOWN = 64


def cached_reach(functions: tuple[Any, ...], kinds: tuple[type, ...]) -> tuple[CachedReach, list[Any]]:
    """What is known of a program, and the values of the variables around it; remembered for programs of importable
    parts."""
    known = _known.get((functions, kinds))
    values = None if known is None else known.values()
    if known is not None and values is not None:
        return known, values
    reach = ReachableFunctions()
    for kind in kinds:
        reach.add_own_class(kind)
    for function in functions:
        reach.add(function)
    found = {(id(one[0]), one[1]): (*one, function) for function in reach.functions for one in reach.around(function)}
    around = [(holder, name, function) for holder, name, _, function in found.values()]
    values = [value for _, _, value, _ in found.values()]
    known = CachedReach(reach, reach.near(functions), around, values)
    reach.forget()
    if not any("<locals>" in part.__qualname__ for part in (*functions, *kinds)):
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[functions, kinds] = known
    return known, values


def _must_stay(value: Any) -> bool:
    """Whether a program reaches something else once a variable holds another value of the same class."""
    return isinstance(value, (*CODE, MethodType)) or look_up(value, "__wrapped__") is not None


def _readers(around: list[Around]) -> tuple[list[tuple[Any, Callable[[Any], Iterable[Any]]]], list[int]]:
    """How the values of all variables are read, holder by holder, and where each variable's value is among those."""
    held: dict[int, list[int]] = {}
    for place, (holder, _, _) in enumerate(around):
        held.setdefault(id(holder), []).append(place)
    readers = [(around[places[0]][0], _reader([around[place] for place in places])) for places in held.values()]
    read = [place for places in held.values() for place in places]
    order = [0] * len(around)
    for index, place in enumerate(read):
        order[place] = index
    return readers, order


def _reader(variables: list[Around]) -> Callable[[Any], Iterable[Any]]:
    """What reads some variables of one holder; of a dict all at once."""
    holder, names = variables[0][0], [name for _, name, _ in variables]
    if type(holder) is not dict:
        return lambda holder: [Variable(holder, name).get() for name in names]
    read = operator.itemgetter(*names)
    return read if len(names) > 1 else lambda holder: (read(holder),)


def _missing(functions: Iterable[FunctionType]) -> list[tuple[dict[str, Any], str]]:
    """The global variables that code names and that do not exist, nor as builtins."""
    named = [(function.__globals__, name) for function in functions for name in global_names(function.__code__)]
    missing = [one for one in named if one[1] not in one[0] and not hasattr(builtins, one[1])]
    return list({(id(holder), name): (holder, name) for holder, name in missing}.values())


def names_stored(functions: Iterable[FunctionType]) -> set[str]:
    """The names that some functions set, as global variables or as attributes, of a Python module say."""
    found = {name for function in functions for name in stored_names(function.__code__)}
    for function in functions:
        if is_generated(function.__code__):
            found |= {one.root.name for one in function.__globals__.values() if isinstance(one, Variable)}
    return found | {ANY} if any(names_all_globals(function.__code__) for function in functions) else found
