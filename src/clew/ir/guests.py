"""The door through which frameworks tell the IR what they know.

The IR imports no framework. A framework that Clew supports is registered by the name of its package with a function
that wakes it; it is woken only when a value of that package turns up, which means that the user has imported it. A
woken framework is a ``Guest``: it answers questions about its own functions and values, or None for "not mine".
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from weakref import WeakKeyDictionary, ref

FRAMEWORK_PACKAGES = frozenset({"torch", "numpy", "jax", "jaxlib", "tensorflow", "keras"})
"""The packages of frameworks, whether they are there or not."""
IMPORTED_WHOLE = FRAMEWORK_PACKAGES - {"jaxlib", "keras"}
"""Those whose functions users write behind the name of the package: ``import torch``, and then ``torch.relu``."""
CUSTOMARY_NAMES = {"tensorflow": "tf"}
"""Names under which everybody imports a package."""


class Effect(enum.Enum):
    """What a call does besides computing its result. Not knowing counts as an effect."""

    NONE = "none"
    RANDOM = "random"
    WRITE = "write"
    UNKNOWN = "unknown"


class Guest:
    """What the rooms may ask of a framework. Every answer may be None: 'I do not know this one'."""

    package = ""
    module_class: type | None = None
    parameter_class: type | None = None
    array_class: type | None = None
    proxy_class: type | None = None
    """The framework's own class of symbolic values."""
    stream_classes: tuple[type, ...] = ()
    """Classes of generators of random numbers."""
    constant_classes: tuple[type, ...] = ()
    """Classes of plain values that a graph may hold as arguments."""
    plain_modules: frozenset[str] = frozenset()
    """Modules whose classes are those of plain values: dtypes, devices, shapes."""
    attribute_classes: tuple[type, ...] = ()
    """Classes of values that a traced program may use and that become attributes of the root."""

    def prepare(self) -> None:
        """What is done once, when the framework turns up."""

    def owns(self, value: Any) -> bool:
        """Whether an argument or a callable belongs to the framework: its arrays, its modules, its own functions."""
        classes = [kind for kind in (self.array_class, self.module_class) if kind is not None]
        return isinstance(value, tuple(classes))

    def new_root(self) -> Any:
        """An empty module, for graphs of plain functions."""
        return None

    def is_leaf_module(self, module: Any) -> bool:
        """True for the framework's own layers, which stay calls."""
        return False

    def bound_script_method(self, function: Any) -> tuple[Any, str] | None:
        """The object and the name of a method that a framework has compiled; None for all else."""
        return None

    def method_name(self, function: Any) -> str | None:
        """The name of the array method or property that ``function`` is; None if it is a plain function."""
        return None

    def assertion(self) -> Callable[..., Any] | None:
        """The framework's own recordable assertion: ``f(condition, message)``."""
        return None

    def defaults(self, function: Any) -> dict[str, Any] | None:
        """What the keyword arguments of a function are where a call leaves them out, if the function cannot tell."""
        return None

    def check_mutable(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise if the call changes one of its arguments."""

    def function_effect(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Effect | None:
        """The effect of calling the function ``target``."""
        return None

    def method_effect(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Effect | None:
        """The effect of calling the method ``name`` of one of the framework's arrays."""
        return None

    def only_writes_first(self, name: str) -> bool:
        """Whether the function or method ``name`` writes into its first argument, and does nothing else."""
        return False

    def module_effect(self, root: Any) -> Effect | None:
        """The effect of calling a module."""
        return None

    def resting_flags(self, root: Any, path: str) -> list[str] | None:
        """The flags of the module at ``path`` that must be off, and are, for a call to only compute its value."""
        return None

    def shared_hooks(self) -> list[dict[int, Any]]:
        """The tables of functions that run with every module."""
        return []

    def hooks_made(self) -> int | None:
        """How many hooks were put anywhere so far: as long as it is the same, nobody has got a new one."""
        return None

    def qualified_name(self, thing: Any) -> str | None:
        """The dotted name under which users write a function or class."""
        return None

    def spell(self, value: Any, name_of: Callable[[Any], str]) -> str | None:
        """A Python expression for ``value``; ``name_of`` gives the name of a function or class in it."""
        return None

    def type_of(self, value: Any) -> Any:
        """The IR type of ``value``."""
        return None

    def capture(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: Any) -> Any:
        """Run ``fn`` on an example and record it as the options ask: module, constants, graph and result."""
        return None

    def faked(self, module: Any, mode: Any) -> Any:
        """A copy of a module whose arrays hold no data, for ``mode``."""
        return None

    def memory_format(self, value: Any) -> Any:
        """How the elements of an array lie in memory, in the framework's own words."""
        return None

    def plain_number(self, value: Any) -> Any:
        """The number that an array stands for while the framework's own tracer is at work; all else as it is."""
        return value

    def memory_of(self, value: Any) -> tuple[Any, int] | None:
        """Which memory an array lies in, and how many bytes that has; None for what is no array of the framework."""
        is_array = self.array_class is not None and isinstance(value, self.array_class)
        return (id(value), int(value.nbytes)) if is_array else None

    def bytes_of(self, value: Any) -> int:
        """How many bytes the elements of an array take; those that lie in the same place count once."""
        memory = self.memory_of(value)
        return 0 if memory is None else memory[1]

    def version_of(self, value: Any) -> int | None:
        """How often an array was written to; None where nobody counts."""
        return None

    def follows_stream(self, kind: type) -> bool:
        """Whether the framework's own recorder looks after iterators and generators of this class."""
        return False

    def is_without_memory(self, kind: type) -> bool:
        """Whether arrays of this class have no memory: the framework's own tracer passes them through code instead."""
        return False

    def has_data(self, value: Any) -> bool:
        """Whether an array holds numbers, or only says how many there would be."""
        return True

    def copy_of(self, value: Any) -> Any:
        """An array with the same numbers that later writes do not change: itself where nobody can write to it."""
        return value

    def as_numpy(self, value: Any) -> Any:
        """The numbers of an array as an array of NumPy's."""
        return value.__array__()

    def random_state(self) -> Callable[[], None]:
        """Note where the streams of random numbers are; what comes out puts them back there."""
        return lambda: None

    def wait_for(self, value: Any) -> None:
        """Return when an array has been computed."""

    def without_data(self, value: Any) -> Any:
        """An array that holds no data, or a copy of a module whose arrays hold none."""
        return value

    def zeros_for(self, value: Any) -> Any:
        """An array of zeros of the same form as one that holds no data; all else as it is."""
        return value

    def operators_inside(self, see: Callable[..., None]) -> AbstractContextManager[Any] | None:
        """A context in which each operator is told to ``see(name, args, kwargs, result)``; None if there is none."""
        return None

    def is_total(self, node: Any, root: Any) -> bool:
        """Whether a call gives a result, and waits for nothing, whatever numbers its arrays hold."""
        return False

    def must_not_wait(self, array: Any = None) -> bool:
        """Whether nothing may wait now for what a device computes; if there is an array, for what that holds."""
        return False

    def same_value(self, left: Any, right: Any) -> bool | None:
        """Whether two constants of the framework are the same; None when they are not the framework's."""
        return None

    def wrapped_elsewhere(self) -> tuple[list[tuple[dict[str, Any], str]], list[tuple[type, str]]]:
        """Functions (globals, name) and methods (class, name) that the framework's own tracer keeps whole."""
        return [], []

    def keeps_notes(self) -> bool:
        """Whether a program has asked the framework to note things with the nodes that are recorded now."""
        return False

    def note(self, node: Any) -> None:
        """Put into ``node.meta`` what is to be noted with it."""

    def noting(self, node: Any, reader: str) -> AbstractContextManager[None]:
        """A context in which what is recorded gets the notes of ``node``, which ``reader`` interprets."""
        return nullcontext()

    def settle_writes(self, graph: Any, root: Any) -> None:
        """Let writes of a traced graph that nobody sees be no writes."""

    def normalized_arguments(self, node: Any, root: Any, options: dict[str, Any]) -> Any:
        """The arguments of ``node`` matched to the signature of its target."""
        return None


PRESENTED: dict[type, type] = {}
"""Classes of ours whose instances count as instances of another library's class at present, and these classes."""


class _ClassOfOne(type):
    """The class that an instance shows which has a class of its own: its name is the name of that."""

    stands_for: ref[type]

    @property
    def __name__(cls) -> str:
        kind = cls.stands_for()
        return type.__getattribute__(cls, "__qualname__") if kind is None else kind.__name__

    @__name__.setter
    def __name__(cls, name: str) -> None:
        kind = cls.stands_for()
        if kind is not None:
            kind.__name__ = name


_shown: WeakKeyDictionary[type, type] = WeakKeyDictionary()
_set_class = vars(object)["__class__"].__set__


def _shown_for(kind: type) -> type:
    """The class that instances of ``kind`` show: of the other library's, with the name of ``kind``."""
    base = next((PRESENTED[one] for one in kind.__mro__ if one in PRESENTED), None)
    if base is None or kind in PRESENTED:
        return base or kind
    found = _shown.get(kind)
    if found is None or base not in found.__mro__:
        found = _shown[kind] = _ClassOfOne(kind.__name__, (base,), {"stands_for": ref(kind)})
    return found


class Presented:
    """A base that classes get while ``isinstance`` shall take their instances for those of another library's class.

    Only then: an instance that is asked for its class by a function of Python's makes each ``isinstance`` slower.
    """

    __slots__ = ()

    @property
    def __class__(self) -> type:
        return _shown_for(type(self))

    @__class__.setter
    def __class__(self, kind: type) -> None:
        _set_class(self, kind)


_wakers: dict[str, Callable[[], Guest]] = {}
_awake: dict[str, Guest] = {}


_symbolic: list[str] = []


def register(package: str, wake: Callable[[], Guest], is_symbolic: bool = False) -> None:
    """Announce the framework ``package``; ``wake`` is called when it is first needed. One that ``is_symbolic`` has a
    tracer of its own, whose proxies ours stand in for."""
    _wakers[package] = wake
    if is_symbolic:
        _symbolic.append(package)


def symbolic_guest() -> Guest | None:
    """The guest of the framework whose own tracer's proxies ours stand in for."""
    package = _symbolic[0] if _symbolic else ""
    return _awake.get(package) or guest(package)


def follows_stream(kind: type) -> bool:
    """Whether the recorder of a framework looks after iterators and generators of this class by its own means."""
    return any(found.follows_stream(kind) for found in _awake.values())


def guest(package: str) -> Guest | None:
    """The guest of a package, woken if need be; None for packages that are no frameworks or not imported."""
    found = _awake.get(package)
    if found is None and package in _wakers and sys.modules.get(package) is not None:
        found = _awake[package] = _wakers[package]()
    return found


def present() -> Iterator[Guest]:
    """The guests of all frameworks that the user has imported."""
    for package in _wakers:
        found = guest(package)
        if found is not None:
            yield found


def note_keeper() -> Guest | None:
    """The guest of a framework that is to note things with the nodes that are recorded now."""
    for found in _awake.values():
        if found.keeps_notes():
            return found
    return None


def module_guest(root: Any) -> Guest | None:
    """The guest whose framework ``root`` is a module of."""
    for found in present():
        if found.module_class is not None and isinstance(root, found.module_class):
            return found
    return None


def package_of(value: Any) -> str:
    """The top-level package that a function, class or value belongs to."""
    module = getattr(value, "__module__", None)
    if not isinstance(module, str):
        owner = getattr(value, "__objclass__", None) or getattr(value, "__self__", None)
        if owner is None or isinstance(owner, type(sys)):
            owner = type(value)
        elif not isinstance(owner, type):
            owner = type(owner)
        module = owner.__module__
    return module.partition(".")[0]


def is_plain_value(value: Any) -> bool:
    """Whether a value is a plain one of a framework's: a dtype, a device, a shape."""
    module = type(value).__module__
    home = module.partition(".")[0]
    found = guest(home) if home in FRAMEWORK_PACKAGES else None
    return found is not None and module in found.plain_modules


def guest_of(value: Any) -> Guest | None:
    """The guest that knows a function, class or value, judged by its package."""
    found = guest(package_of(value))
    if found is None and not isinstance(value, type):
        found = guest(type(value).__module__.partition(".")[0])
    return found
