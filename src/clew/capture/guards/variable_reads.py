"""Which items of containers around a program were read, for guards no wider than that.

For the time of a run a recording proxy takes the place of a dict, list or set in its variable; it notes each item that
is asked for and hands all else on to the original, changes too. It stands only where bytecode shows that the program
looks into the container and does not hand it on (``NameUses``), so that nobody meets it who asks for its class or keeps
it; an unknown instruction counts as handing on. An ``Item`` is a variable found in the value of another one:
``CONFIG["used"]``. Looking one up runs no code of a user's.
"""

from __future__ import annotations

import contextlib
import enum
import functools
from collections.abc import Callable, Container, Iterable, Iterator
from contextvars import ContextVar
from functools import partial
from types import CellType, CodeType, FunctionType
from typing import Any, NamedTuple, Protocol

from clew.capture.bytecode.instructions import Instruction, instructions_of
from clew.capture.guards.notes import PROXY_CLASSES, Held, Variable, is_read_by_compiler
from clew.capture.guards.saved_variables import ABSENT, SavedValue, saved
from clew.capture.location import MISSING
from clew.capture.patches import Patches
from clew.capture.state.containers import CODE, SIMPLE, follows, same_part
from clew.capture.state.surroundings import Surroundings
from clew.ir.source import is_installed

_LOADS = frozenset("LOAD_GLOBAL LOAD_NAME LOAD_ATTR LOAD_DEREF LOAD_CLASSDEREF LOAD_FROM_DICT_OR_DEREF".split())
_OTHERS = frozenset(
    "IMPORT_FROM STORE_GLOBAL STORE_NAME DELETE_GLOBAL STORE_DEREF DELETE_DEREF STORE_ATTR DELETE_ATTR".split()
)
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_ON_TOP = frozenset(
    "LOAD_METHOD CONTAINS_OP GET_ITER UNPACK_SEQUENCE POP_TOP UNARY_NOT DICT_UPDATE DICT_MERGE LIST_EXTEND "
    "POP_JUMP_IF_FALSE POP_JUMP_IF_TRUE".split()
)
"""Instructions that look into the value on top of the stack and let go of it."""
_UNDER_ONE = frozenset({"BINARY_SUBSCR", "STORE_SUBSCR", "DELETE_SUBSCR"})
"""Those that look into the value under the topmost one, which is the key."""
_TAKES = {
    "LOAD_CONST": 0, "LOAD_FAST": 0, "LOAD_GLOBAL": 0, "LOAD_DEREF": 0, "PUSH_NULL": 0, "NOP": 0, "LOAD_CLOSURE": 0,
    "LOAD_ATTR": 1, "LOAD_METHOD": 1, "FORMAT_VALUE": 1, "UNARY_NEGATIVE": 1, "UNARY_NOT": 1,
    "BINARY_SUBSCR": 2, "BINARY_OP": 2, "COMPARE_OP": 2, "IS_OP": 2, "CONTAINS_OP": 2, "FORMAT_SIMPLE": 1,
    "CONVERT_VALUE": 1,
}  # fmt: skip
"""How many values an instruction takes from the stack, of those that make a key."""
_TAKES_MORE = {"CALL": 2, "BUILD_TUPLE": 0, "BUILD_STRING": 0}
"""The same, besides the number that the instruction itself tells."""
LOOKING = frozenset({"len", "bool", "list", "tuple", "dict", "sorted", "sum", "min", "max", "any", "all", "enumerate"})
"""Builtins that look into a container and do not keep it."""


_NEAR = 40
ANY_KEY: Any = type("AnyKey", (), {"__repr__": lambda self: "<any>"})()


class NameUses(NamedTuple):
    """What some code does with what it loads by name."""

    handed_on: frozenset[str]
    fields: frozenset[tuple[str, str]]
    """A name, and that of an attribute which is read of its value."""
    items_handed_on: frozenset[tuple[str, Any]]
    """A name, and the key of an item of its value which is handed on; ``ANY_KEY`` where the code does not tell."""


@functools.lru_cache(maxsize=16384)
def uses_of(code: CodeType) -> NameUses:
    """How a function, and those inside it, use the names that they load."""
    handed_on: set[str] = set()
    fields: set[tuple[str, str]] = set()
    items: set[tuple[str, Any]] = set()
    found = instructions_of(code)
    for place, one in enumerate(found):
        if one.opname in _OTHERS and not (one.opname == "STORE_ATTR" and code.co_name == "__init__"):
            handed_on.add(str(one.argval))
        elif one.opname in _LOADS:
            field = _field(found, place)
            if field is not None:
                fields.add((str(one.argval), field))
                continue
            looking = None if "NULL" in one.argrepr else _looked_into(found, place)
            if looking is None:
                handed_on.add(str(one.argval))
            elif found[looking].opname == "BINARY_SUBSCR" and _is_handed_on(found, looking):
                items.add((str(one.argval), _key(found, place, looking)))
    for inner in [constant for constant in code.co_consts if isinstance(constant, CodeType)]:
        below = uses_of(inner)
        handed_on |= below.handed_on
        fields |= below.fields
        items |= below.items_handed_on
    return NameUses(frozenset(handed_on), frozenset(fields), frozenset(items))


def _is_handed_on(found: list[Instruction], place: int) -> bool:
    return _field(found, place) is None and _looked_into(found, place) is None


def _key(found: list[Instruction], place: int, looking: int) -> Any:
    """The key of an item, if it is a constant."""
    is_constant = looking == place + 2 and found[place + 1].opname == "LOAD_CONST"
    return found[place + 1].argval if is_constant else ANY_KEY


def _field(found: list[Instruction], place: int) -> str | None:
    """The attribute that the next instruction reads of what was loaded."""
    following = found[place + 1] if place + 1 < len(found) else None
    is_read = following is not None and following.opname in _ATTRIBUTES and "NULL" not in found[place].argrepr
    return str(following.argval) if following is not None and is_read else None


def _looked_into(found: list[Instruction], place: int) -> int | None:
    """Where the value that an instruction has put on the stack is looked into and let go of; None if it is not."""
    above = 0
    for number, one in enumerate(found[place + 1 : place + _NEAR], place + 1):
        if above == 0 and (one.opname in _ON_TOP or _is_given_to_builtin(found, place, one)):
            return number
        if above == 1 and one.opname in _UNDER_ONE:
            return number
        takes = _takes(one)
        if takes is None or takes > above:
            return None
        above += one.effect
    return None


def _is_given_to_builtin(found: list[Instruction], place: int, one: Instruction) -> bool:
    """Whether an instruction calls a builtin that looks into its only argument, which was loaded in a place."""
    if one.opname != "CALL" or one.arg != 1 or place == 0:
        return False
    return found[place - 1].opname == "LOAD_GLOBAL" and found[place - 1].argval in LOOKING


def _takes(one: Instruction) -> int | None:
    if one.opname in _TAKES_MORE:
        return _TAKES_MORE[one.opname] + int(one.arg or 0)
    return _TAKES.get(one.opname)


ATTRIBUTE, ITEM, CONTAINS, LENGTH, KEYS, WHOLE = "attribute", "item", "contains", "length", "keys", "whole"
"""The ways in which something is read of a value."""


class ReadListener(Protocol):
    """Whoever wants to know what is read."""

    def note(self, base: Variable, way: str, key: Any = None) -> None:
        """Something is read of a container."""

    def note_guard(self, variable: Variable) -> None:
        """A guard of a graph that the program calls asks for a variable."""


current: ContextVar[ReadListener | None] = ContextVar("clew_reads", default=None)
"""Who notes what is read in this context: the current capture."""


@contextlib.contextmanager
def unnoted() -> Iterator[None]:
    """Let nobody note what is read inside: the capture itself looks, and not the program."""
    token = current.set(None)
    try:
        yield
    finally:
        current.reset(token)


def is_plain_key(key: Any) -> bool:
    """Whether a key is found without running code of a user's."""
    kind = type(key)
    if kind is tuple:
        return all(map(is_plain_key, key))
    return (
        kind in SIMPLE or isinstance(key, CODE) or (isinstance(key, enum.Enum) and kind.__hash__ is enum.Enum.__hash__)
    )


class Item(Variable):
    """Something that was read of the value of another variable; ``way`` says how, ``name`` is the key."""

    __slots__ = ("_base", "is_loaded", "way")

    def __init__(self, base: Variable, way: str, key: Any, expected: Any = None, held: Held | None = None) -> None:
        super().__init__(base.holder, key, expected, held)
        self._base = base
        self.way = way
        self.is_loaded = False

    @property
    def base(self) -> Variable:
        """The variable whose value holds this one."""
        return self._base

    @property
    def root(self) -> Variable:
        """The variable outside of all containers in which this one is found."""
        return self.base.root

    @property
    def key(self) -> tuple[int, str]:
        """What tells places apart: the variable outside of all containers, and the path from there."""
        return id(self.root.holder), repr(self)

    @property
    def label(self) -> str:
        """The path to it in the user's words."""
        return repr(self)

    @property
    def is_library(self) -> bool:
        """Whether it is found in a variable of an installed package."""
        return self.base.is_library

    def get(self) -> Any:
        """What the same path leads to now; ``MISSING`` if there is nothing, ``ABSENT`` if nothing is known of it."""
        reads = current.get()
        if reads is not None and self.way != ATTRIBUTE:  # a graph that the program calls reads it
            reads.note(self.base, self.way, self.name)
        return self._look_up()

    def _look_up(self) -> Any:
        value = self.base._look_up() if isinstance(self.base, Item) else self.base.get()
        if value is MISSING or value is ABSENT:
            return value
        if self.way == ATTRIBUTE:
            return getattr(value, "__dict__", {}).get(self.name, MISSING)
        return _read(value, self.way, self.name) if type(value) in (dict, list, set) else MISSING

    def put(self, value: Any) -> None:
        """Set it past everything that a class does when an attribute is set."""
        container = self.base.get()
        (vars(container) if self.way == ATTRIBUTE else container)[self.name] = value

    def is_as_before(self) -> bool:
        """True when the same path leads to the same object, or to an equal plain value."""
        if is_read_by_compiler():  # which looks at such variables by a call of its own
            return True
        now = self.get()
        if now is ABSENT or (self.is_loaded and self.is_library and (now is MISSING or now is False)):
            return True  # what a library has not registered in this process is no other than what it was
        if type(self.expected) is SavedValue:
            return self._is_like(now)
        return same_part(now, self.expected) and (self.held is None or not self.held.has_changed())

    def __repr__(self) -> str:
        base, key = repr(self.base), getattr(self.name, "__qualname__", None) or repr(self.name)
        words = {ITEM: f"{base}[{key}]", CONTAINS: f"{key} in {base}", ATTRIBUTE: f"{base}.{self.name}"}
        return words.get(self.way, {LENGTH: f"len({base})", KEYS: f"tuple({base})"}.get(self.way, base))

    def __deepcopy__(self, memo: dict[int, Any]) -> Item:
        return Item(self.base, self.way, self.name, self.expected, self.held)

    def __reduce__(self) -> tuple[Any, ...]:
        expected = (
            self.expected if type(self.expected) in (*SIMPLE, SavedValue) else saved(self.expected, self.is_library)
        )
        return loaded_item, (self.base, self.way, self.name, expected)


def loaded_item(base: Variable, way: str, key: Any, expected: Any) -> Item:
    """An item of a graph that was saved."""
    item = Item(base, way, key, expected)
    item.is_loaded = True
    return item


def _read(value: Any, way: str, key: Any) -> Any:
    """What a container tells."""
    if way == CONTAINS:
        return key in value
    if way == LENGTH:
        return len(value)
    if way == KEYS:
        return tuple(value)
    if way == WHOLE:
        return (tuple(value), tuple(value.values())) if isinstance(value, dict) else tuple(value)
    if isinstance(value, dict):
        return value.get(key, MISSING)
    return value[key] if -len(value) <= key < len(value) else MISSING


Key = tuple[int, str]
_KINDS = (dict, list, set)
_BY_TEXT = frozenset({"globals", "__globals__", "exec", "eval", "vars", "__dict__", "getattr", "attrgetter"})
"""Ways to a variable whose name the code does not tell."""


class Reads:
    """What one run has read of the containers that proxies were put in place of."""

    def __init__(self) -> None:
        self.watched: set[Key] = set()
        """The variables whose reads are noted one by one."""
        self._found: dict[Any, Item] = {}
        self.guards: dict[int, Variable] = {}
        """The variables that graphs which the program calls rely on, by identity."""

    def note_guard(self, variable: Variable) -> None:
        """A graph that the program calls relies on a variable: so does the one that is made of it."""
        self.guards[id(variable)] = variable

    def note(self, base: Variable, way: str, key: Any = None) -> None:
        """Something is read of a container."""
        if not is_plain_key(key):
            way, key = WHOLE, None
        place = (id(base.root.holder), base.root.name, repr(base), way, type(key), key)
        if place not in self._found:
            self._found[place] = Item(base, way, key)

    def add(self, other: Reads) -> None:
        """What another run of the same program has read counts too."""
        self.watched |= other.watched
        self.guards = other.guards | self.guards
        self._found = {**other._found, **self._found}

    def items(self) -> list[Item]:
        """What was read, each once; an item says that its key is there."""
        known = {(key[:3], key[4:]) for key in self._found if key[3] == ITEM}
        return [item for key, item in self._found.items() if key[3] != CONTAINS or (key[:3], key[4:]) not in known]

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Let proxies that are used in this context note here what is read."""
        token = current.set(self)
        try:
            yield
        finally:
            current.reset(token)

    def install(self, patches: Patches, around: Surroundings, lifted: Container[Key]) -> None:
        """Put proxies in place of the containers among the variables around a program, and of those that objects of
        libraries hold; what is ``lifted`` enters the capture by other means."""
        program, found = around.derived(ProgramUses), around.found
        for holder, name, value in found:
            if (id(holder), name) in lifted:
                continue
            is_library = around.is_of_library(holder, name)
            if type(value) in _KINDS and Variable(holder, name).get() is value:
                names = [name for _, name, other in found if other is value]
                if all(program.looks_into(one, is_library) for one in names):
                    self._put(patches, Variable(holder, name), program.items_handed_on(names))
            elif is_library and follows(value) and hasattr(value, "__dict__"):
                self._inside(patches, Variable(holder, name), value, program)

    def _inside(self, patches: Patches, base: Variable, value: Any, program: ProgramUses) -> None:
        """The containers that an object holds, and its class for all such objects."""
        for name, held in vars(value).items():
            if type(held) in _KINDS and program.looks_into(name, True):
                patches.in_dict(vars(value), name, partial(_read_proxy, base=Item(base, ATTRIBUTE, name)))
        for kind in type(value).__mro__:
            for name, held in vars(kind).items():
                if type(held) in _KINDS and not name.startswith("__") and program.looks_into(name, True):
                    patches.on_class(kind, name, partial(_read_proxy, base=Variable(kind, name)))

    def _put(self, patches: Patches, variable: Variable, handed_on: frozenset[Any]) -> None:
        holder, make = variable.holder, partial(_read_proxy, base=variable, handed_on=handed_on)
        if isinstance(holder, CellType):
            patches.in_cell(holder, make)
        elif isinstance(holder, type):
            patches.on_class(holder, variable.name, make)
        else:
            patches.in_dict(holder, variable.name, make)
        self.watched.add((id(holder), variable.name))


def hear_guards(patches: Patches) -> None:
    """Let guards on variables tell who notes what is read in this context that they are asked."""
    for kind in (Variable, Item):
        patches.on_class(kind, "is_as_before", _reporting)


def _reporting(original: Callable[[Variable], bool]) -> Callable[[Variable], bool]:
    def is_as_before(self: Variable) -> bool:
        reads = current.get()
        if reads is not None:
            reads.note_guard(self)
        return original(self)

    return is_as_before


class ProgramUses:
    """What is known of the code that may run: how it uses names."""

    def __init__(self, functions: Iterable[FunctionType]) -> None:
        functions = list(functions)
        own = [one for one in functions if not is_installed(one.__code__)]
        self._handed_on = frozenset[str]().union(*(uses_of(one.__code__).handed_on for one in functions))
        self._fields = frozenset[Any]().union(*(uses_of(one.__code__).fields for one in functions))
        items = [uses_of(one.__code__).items_handed_on for one in functions]
        self._items = frozenset[Any]().union(*items)
        self._is_open = any(not _BY_TEXT.isdisjoint(one.__code__.co_names) for one in own)
        self._is_open = self._is_open or any(not LOOKING.isdisjoint(one.__globals__) for one in own)

    def looks_into(self, name: str, in_library: bool = False) -> bool:
        """Whether all code only looks into what it finds under a name."""
        return name not in self._handed_on and (in_library or not self._is_open)

    def items_handed_on(self, names: list[str]) -> frozenset[Any]:
        """The keys of items, of what is found under some names, that some code hands on."""
        return frozenset(key for owner, key in self._items if owner in names)

    def fields_of(self, name: str) -> list[str] | None:
        """The attributes that are read of what is found under a name; None if something else is done with it."""
        return [field for owner, field in self._fields if owner == name] if self.looks_into(name) else None


_ALL = frozenset({ANY_KEY})


def _read_proxy(original: Any, base: Variable, handed_on: frozenset[Any] = _ALL) -> Any:
    made = next(kind for kind in _PROXY_KINDS if issubclass(kind, type(original)))(original)
    made._original, made._base, made._handed_on = original, base, handed_on
    return made


_PROXY_KINDS: list[Any] = []
"""The classes of proxies."""
_HELD = ("_base", "_handed_on", "_original")


class _ReadProxy:
    """What proxies have in common."""

    __slots__ = ()
    _base: Variable
    _original: Any
    _handed_on: frozenset[Any]

    def _note(self, way: str, key: Any = None) -> None:
        reads = current.get()
        if reads is not None:
            reads.note(self._base, way, key)

    def _item(self, key: Any) -> Any:
        """An item; a container that the program only looks into tells what is read of it by itself."""
        held = self._original[key]
        if type(held) in _KINDS and is_plain_key(key) and self._handed_on.isdisjoint((key, ANY_KEY)):
            return _read_proxy(held, Item(self._base, ITEM, key))
        self._note(ITEM, key)
        return held


class RecordingDict(_ReadProxy, dict):  # type: ignore[type-arg]
    """A dict that notes what is read of it."""

    __slots__ = _HELD

    def __getitem__(self, key: Any) -> Any:
        if key not in self._original:
            self._note(ITEM, key)
        return self._item(key)

    def get(self, key: Any, default: Any = None) -> Any:
        """An item, or the default."""
        self._note(ITEM, key)
        return self._original.get(key, default)

    def __contains__(self, key: Any) -> bool:
        self._note(CONTAINS, key)
        return key in self._original

    def __len__(self) -> int:
        self._note(LENGTH)
        return len(self._original)

    def __iter__(self) -> Iterator[Any]:
        self._note(KEYS)
        return iter(self._original)

    def keys(self) -> Any:
        """The keys."""
        self._note(KEYS)
        return self._original.keys()


class RecordingList(_ReadProxy, list):  # type: ignore[type-arg]
    """A list that notes what is read of it."""

    __slots__ = _HELD

    def __getitem__(self, key: Any) -> Any:
        if type(key) is not int or not -len(self._original) <= key < len(self._original):
            self._note(WHOLE)
            return self._original[key]
        return self._item(key)

    def __len__(self) -> int:
        self._note(LENGTH)
        return len(self._original)


class RecordingSet(_ReadProxy, set):  # type: ignore[type-arg]
    """A set that notes what is read of it."""

    __slots__ = _HELD

    def __contains__(self, key: Any) -> bool:
        self._note(CONTAINS, key)
        return key in self._original


_LEFT = frozenset(
    "__new__ __init__ __getattribute__ __doc__ __class_getitem__ __hash__ __sizeof__ __reduce__ __reduce_ex__".split()
)


def _handing_on(kind: Any, name: str) -> Callable[..., Any]:
    """A method that reads, or changes, the whole of the original."""
    method = getattr(kind, name)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._note(WHOLE)
        result = method(self._original, *args, **kwargs)
        return self if result is self._original else result

    call.__name__ = name
    return call


for _kind, _builtin in ((RecordingDict, dict), (RecordingList, list), (RecordingSet, set)):
    PROXY_CLASSES.add(_kind)
    _PROXY_KINDS.append(_kind)
    for _name in vars(_builtin).keys() - vars(_kind).keys() - _LEFT:
        setattr(_kind, _name, _handing_on(_builtin, _name))
