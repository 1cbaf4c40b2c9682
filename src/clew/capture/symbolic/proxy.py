"""Proxies: symbolic values that record what a program does with them.

In come the operations that Python and a framework apply to a ``Proxy``; out go nodes, made by its ``TracerBase``, each
with the user's line and the modules being called. An attribute becomes a node only when it is used as a value.
Whatever needs a concrete value (``if``, ``len``, ``int``, iteration) is refused with the ways out; unpacking and, if
the tracer wants it, ``assert`` are recognised in the caller's bytecode and recorded.
"""

from __future__ import annotations

import builtins
import copy
import dataclasses
import enum
import operator
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple

from clew import tree
from clew.capture.bytecode.instructions import Instruction, instructions_at
from clew.errors import (
    AlreadyAnnotated,
    MixedTracers,
    ModuleNotFound,
    SymbolicKey,
    SymbolicLengthError,
    SymbolicValueError,
    TraceError,
    UnsupportedArgument,
)
from clew.ir.arguments import BASE_TYPES, immutable_dict, immutable_list, leaves
from clew.ir.graph import Graph
from clew.ir.guests import guest_of, note_keeper, symbolic_guest
from clew.ir.node import Node, NodeFields
from clew.ir.source import is_hidden, source_of_frame, user_source


def assert_fn(x: Any, message: str = "Assertion failed") -> None:
    """The run-time check that an ``assert`` on a symbolic value becomes."""
    if not x:
        raise AssertionError(message)


set_source: Callable[[Node, Any], None] = vars(NodeFields)["source"].__set__


class TracerBase:
    """Turns what proxies report into nodes of ``graph``. Every method may be overridden."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"
    scope: Scope
    module_stack: OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, Any]]
    _stack_snapshot: dict[str, tuple[str, Any]] | None = None

    def create_node(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node; it remembers the user's line and the modules that were being called."""
        if self.check_mutable_operations and kind == "call_function":
            self._check_mutable(target, args, kwargs)
        graph = self.graph
        node = graph.create_node(kind, target, args, kwargs, name, type_expr)
        for used in node._inputs:
            if used.graph is not graph:
                graph.erase_node(node)
                raise foreign_node(used)
        scope = self.scope
        self.node_name_to_scope[node.name] = (scope.module_path, scope.module_type)
        set_source(node, user_source())
        if self.module_stack:
            if self._stack_snapshot != self.module_stack:
                self._stack_snapshot = self.module_stack.copy()
            node.meta["nn_module_stack"] = self._stack_snapshot
        keeper = note_keeper()
        if keeper is not None:
            keeper.note(node)
        if self.record_stack_traces and "stack_trace" not in node.meta:
            node.meta["stack_trace"] = stack_trace()
        return node

    @staticmethod
    def _check_mutable(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        known = guest_of(target)
        if known is not None:
            known.check_mutable(target, args, kwargs)

    def proxy(self, node: Node) -> Proxy:
        """The proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Add a node whose arguments may hold proxies, and give back a proxy for its value."""
        named = self.create_arg(kwargs) if kwargs else {}
        node = self.create_node(kind, target, self.create_arg(args), named, name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a: Any) -> Any:
        """What the graph shall hold for ``a``: nodes for proxies, plain values and nests as they are."""
        plain = ARGUMENTS.get(type(a))
        if plain is not None:
            return plain(self, a)
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        for base, convert in _DERIVED_ARGUMENTS:
            if isinstance(a, base):
                return convert(self, a)
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {field.name: self.create_arg(getattr(a, field.name)) for field in dataclasses.fields(a)}
            return self.create_node("call_function", a.__class__, (), fields)
        if isinstance(a, (*BASE_TYPES, enum.Enum, Graph)) or _is_named(a):
            return a
        known = guest_of(a)
        if known is not None and isinstance(a, known.constant_classes):
            return a
        raise refused_argument(a)

    def to_bool(self, obj: Proxy) -> bool:
        """Called when Python asks for the truth of a proxy."""
        raise refused_control_flow(obj)

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Called when Python iterates over a proxy."""
        raise refused_iteration(obj)

    def keys(self, obj: Proxy) -> Any:
        """Called for ``proxy.keys()``, which is what ``**proxy`` does first."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Records at the insertion point of an existing graph: for proxies around the nodes of a finished graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.node_name_to_scope = {}


class Proxy:
    """Stands for the value of ``node``; what is done with it is recorded by ``tracer``."""

    node: Node
    tracer: TracerBase

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    @property
    def __class__(self) -> type:
        """Libraries ask whether a value is symbolic by torch.fx's class."""
        other = symbolic_guest()
        return type(self) if other is None or other.proxy_class is None else other.proxy_class

    @__class__.setter
    def __class__(self, kind: type) -> None:
        object.__setattr__(self, "__class__", kind)

    __array_ufunc__ = None  # NumPy's numbers leave operators to the proxy, and its functions refuse it

    def __getattr__(self, k: str) -> Attribute:
        if k in _ARRAY_PROTOCOLS:
            raise AttributeError(k)
        return Attribute(self, k)

    def __array__(self, *options: Any, **named: Any) -> Any:
        raise refused_number(self, "an array of NumPy")

    def __setattr__(self, k: str, value: Any) -> None:
        if k in _OWN_FIELDS or k.startswith("_") or type(self) not in (Proxy, Attribute):
            object.__setattr__(self, k, value)
        else:
            self.tracer.create_proxy("call_function", setattr, (self, k, value), {})

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        twin = object.__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__.update({key: copy.deepcopy(value, memo) for key, value in self.__dict__.items()})
        return twin

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        count = unpack_count(sys._getframe(1))
        if count is not None:
            return (self[place] for place in range(count))  # type: ignore[index]
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts:
            site = assert_site(sys._getframe(1))
            if site is not None:
                record = self.tracer.create_proxy
                checked = self if site.passes_when else record("call_function", operator.not_, (self,), {})
                message = () if site.message is None else (site.message,)
                record("call_function", assert_fn, (checked, *message), {})
                return site.passes_when
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """What ``**proxy`` asks first; the tracer decides."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise refused_length(self)

    def __index__(self) -> int:
        raise refused_number(self, "an index (range, a list's item, a size)")

    def __int__(self) -> int:
        raise refused_number(self, "int()")

    def __float__(self) -> float:
        raise refused_number(self, "float()")

    def __complex__(self) -> complex:
        raise refused_number(self, "complex()")

    def __contains__(self, item: Any) -> bool:
        raise refused_iteration(self)

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """A torch function was called with a proxy somewhere in its arguments."""
        kwargs = kwargs or {}
        tracers = {leaf.tracer: None for leaf in leaves((args, kwargs)) if isinstance(leaf, Proxy)}
        if len(tracers) != 1:
            raise MixedTracers(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}",
                why="values of two traces met in one call",
                fixes=["do not let a proxy outlive the trace that made it"],
            )
        tracer = next(iter(tracers))
        framework = symbolic_guest()
        bound = None if framework is None else framework.bound_script_method(orig_method)
        if bound is not None:
            return tracer.create_proxy("call_method", bound[1], (bound[0], *args), kwargs)
        method = None if framework is None else framework.method_name(orig_method)
        if method is not None:
            return tracer.create_proxy("call_method", method, args, kwargs)
        name = tracer.graph._target_to_str(orig_method.__name__)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


_ARRAY_PROTOCOLS = frozenset({"__array_struct__", "__array_interface__", "__cuda_array_interface__"})
_OWN_FIELDS = frozenset({"node", "tracer", "root", "attr", "param", "name"})


class Attribute(Proxy):
    """An attribute of a proxy: a node only when it is used as a value, since most are called as methods."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node of the attribute's value, made when it is first needed."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """The proxy of a parameter whose shape is a constant of the trace, so that programs may branch on it."""

    param: Any
    name: str

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        known = guest_of(param)
        if known is None or known.parameter_class is None or not isinstance(param, known.parameter_class):
            raise AssertionError(f"ParameterProxy needs a parameter, not {type(param).__name__}")
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    shape = property(lambda self: self.param.shape)
    ndim = property(lambda self: self.param.ndim)

    def size(self) -> Any:
        """The parameter's own size."""
        return self.param.size()

    def dim(self) -> int:
        """The parameter's own rank."""
        return int(self.param.dim())

    def numel(self) -> int:
        """The parameter's own number of elements."""
        return int(self.param.numel())

    nelement = numel


def _is_named(value: Any) -> bool:
    """Functions and classes, which a graph can hold by name."""
    return isinstance(value, (type, type(_is_named), type(len)))


def _dict_argument(tracer: TracerBase, a: dict[Any, Any]) -> dict[Any, Any]:
    for key in a:
        if any(isinstance(leaf, (Proxy, Node)) for leaf in leaves(key)):
            raise SymbolicKey(
                f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}",
                why="a key must be known when the graph is made",
                fixes=["use a plain key, or keep the lookup in a function and clew.wrap it"],
            )
    return {key: tracer.create_arg(value) for key, value in a.items()}


def _tuple_argument(tracer: TracerBase, a: Any) -> Any:
    items = [tracer.create_arg(item) for item in a]
    return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)


def _list_argument(tracer: TracerBase, a: Any) -> list[Any]:
    return [tracer.create_arg(item) for item in a]


def _slice_argument(tracer: TracerBase, a: slice) -> slice:
    return slice(tracer.create_arg(a.start), tracer.create_arg(a.stop), tracer.create_arg(a.step))


ARGUMENTS: dict[type, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(BASE_TYPES, lambda tracer, a: a),
    Proxy: lambda tracer, a: a.node,
    tuple: lambda tracer, a: tuple([tracer.create_arg(item) for item in a]),
    list: _list_argument,
    dict: _dict_argument,
    slice: _slice_argument,
    range: lambda tracer, a: a,
    Node: lambda tracer, a: a,
    immutable_list: _list_argument,
    immutable_dict: _dict_argument,
}
_DERIVED_ARGUMENTS: tuple[tuple[type, Callable[[Any, Any], Any]], ...] = (
    (tuple, _tuple_argument),
    (list, _list_argument),
    (dict, _dict_argument),
)

_BINARY = "add sub mul floordiv truediv mod pow lshift rshift and_ or_ xor matmul"
_COMPARING = "eq ne lt gt le ge getitem setitem"
_UNARY = "pos neg invert abs"
_BUILTIN = "round divmod"


def _recorder(target: Any) -> Callable[..., Any]:
    def record(self: Proxy, *args: Any) -> Any:
        return self.tracer.create_proxy("call_function", target, (self, *args), {})

    return record


def _writing_recorder(target: Any, name: str) -> Callable[..., Any]:
    """``x += y`` is named as torch.fx names it, after the operator that does not write: tools look nodes up by name."""

    def record(self: Proxy, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", target, (self, other), {}, name)

    return record


def _reflected_recorder(target: Any) -> Callable[..., Any]:
    def record(self: Proxy, left: Any) -> Any:
        return self.tracer.create_proxy("call_function", target, (left, self), {})

    return record


for _spelling in f"{_BINARY} {_COMPARING} {_UNARY}".split():
    setattr(Proxy, f"__{_spelling.strip('_')}__", _recorder(getattr(operator, _spelling)))
for _spelling in _BINARY.split():
    _writing = f"i{_spelling.strip('_')}"
    setattr(Proxy, f"__{_writing}__", _writing_recorder(getattr(operator, _writing), _spelling))
    setattr(Proxy, f"__r{_spelling.strip('_')}__", _reflected_recorder(getattr(operator, _spelling)))
for _spelling in _BUILTIN.split():
    setattr(Proxy, f"__{_spelling}__", _recorder(getattr(builtins, _spelling)))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]
tree.SYMBOLIC.append(Proxy)


def annotate(val: Any, type: Any) -> Any:
    """Annotate ``val``; a value that is no proxy is returned as it is."""
    if not isinstance(val, Proxy):
        return val
    if val.node.type is not None:
        raise AlreadyAnnotated(
            f"{val.node.name} is annotated as {val.node.type} already, so it cannot become {type}",
            fixes=["annotate a value once; for a parameter use the function's signature"],
        )
    val.node.type = type
    return val


# ---- where in the program a node is made -----------------------------------------------------------------------------


class Scope:
    """The path from the root, and the class, of the module whose forward is running."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path = module_path
        self.module_type = module_type


class ScopeContextManager:
    """Makes ``current_scope`` the scope; leaving it puts the former one back."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope = scope
        self._before = (scope.module_path, scope.module_type)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *args: object) -> None:
        self._scope.module_path, self._scope.module_type = self._before


def stack_trace() -> str:
    """The user's frames from the traced function inwards, innermost last."""
    frame = sys._getframe(1)
    entries: list[str] = []
    pending: list[str] = []
    while frame is not None:
        if not is_hidden(frame.f_code):
            pending.append(source_of_frame(frame).as_stack_trace())
        elif frame.f_code.co_name == "trace" and frame.f_globals.get("__name__", "").startswith("clew.capture"):
            entries = list(pending)
        frame = frame.f_back  # type: ignore[assignment]
    return "\n".join(reversed(entries or pending[:1]))


# ---- what a proxy refuses --------------------------------------------------------------------------------------------

WAYS_OUT = (
    'fix the value while tracing: symbolic_trace(fn, concrete_args={"name": value})',
    'keep the function that needs it as one call: clew.wrap("function_name") at module level',
    "capture from an example instead, which knows the values: clew.trace(fn, args=(...))",
)


def _where() -> str:
    source = user_source()
    return "" if source is None else source.describe()


def _why(proxy: Any) -> str:
    return f"{_name(proxy)} is a symbolic value: it stands for all inputs at once and has no concrete value"


def _name(proxy: Any) -> str:
    fields = vars(proxy)
    node = fields.get("node") or fields.get("_node")
    return f"'{node.name}'" if node is not None else f"the attribute '{fields.get('attr')}'"


def refused_control_flow(proxy: Any) -> TraceError:
    """For ``if``, ``while``, ``and``, ``or``, ``not``, ``assert``."""
    what = "symbolically traced variables cannot be used as inputs to control flow"
    return TraceError(what, where=_where(), why=_why(proxy), fixes=WAYS_OUT)


def refused_iteration(proxy: Any) -> TraceError:
    """For loops, ``*`` and ``**``."""
    what = "Proxy object cannot be iterated: a symbolic value was used in a loop, or as *args or **kwargs of a call"
    indexed = "if the number of items is known, index it: for i in range(n): x[i]; unpacking a, b = x works as it is"
    return TraceError(what, where=_where(), why=_why(proxy), fixes=(*WAYS_OUT, indexed))


def refused_length(proxy: Any) -> SymbolicLengthError:
    """For ``len``."""
    what = "'len' is not supported in symbolic tracing by default"
    wrapped = "record the call itself: clew.wrap('len') at module level, or use x.shape[0], which is recorded"
    return SymbolicLengthError(what, where=_where(), why=_why(proxy), fixes=(WAYS_OUT[0], wrapped, WAYS_OUT[2]))


def refused_number(proxy: Any, asked: str) -> SymbolicValueError:
    """For ``int``, ``float``, ``complex``, ``range`` and whatever else needs a plain number."""
    what = f"a symbolic value cannot become a concrete number: {asked} was asked for"
    return SymbolicValueError(what, where=_where(), why=_why(proxy), fixes=WAYS_OUT)


def refused_argument(value: Any) -> UnsupportedArgument:
    """For a value that a graph cannot hold."""
    kind = type(value)
    return UnsupportedArgument(
        f"argument of type: {kind}",
        where=_where(),
        why="a graph holds plain values, arrays, functions and nests of these, so that it can be printed and saved",
        fixes=(
            f"give {kind.__name__} a method __fx_create_arg__(self, tracer) that returns what the graph shall hold",
            "override Tracer.create_arg for it",
            *WAYS_OUT[1:],
        ),
    )


def not_in_root(what: str) -> ModuleNotFound:
    """For modules and parameters outside the root."""
    return ModuleNotFound(
        what,
        where=_where(),
        why="a graph refers to modules and parameters by their path from the traced root",
        fixes=("assign it to an attribute of the root module before tracing", *WAYS_OUT[1:]),
    )


def foreign_node(node: Any) -> MixedTracers:
    """For a value of another trace that turned up in this one."""
    return MixedTracers(
        f"the symbolic value '{node.name}' belongs to another graph than the one being traced",
        where=_where(),
        why="it was made by another trace, or copied with copy.deepcopy, and its graph is not a part of this one",
        fixes=["do not let a proxy outlive the trace that made it", "copy a value with x.clone(), which is recorded"],
    )


# ---- the instruction that asks a proxy -------------------------------------------------------------------------------


class AssertSite(NamedTuple):
    """A truth asked by an ``assert``: which truth lets it pass, and its message if that is a constant."""

    passes_when: bool
    message: str | None


def unpack_count(frame: FrameType) -> int | None:
    """How many variables ``a, b = value`` wants, if that is what the frame is doing."""
    instructions, place = instructions_at(frame.f_code, frame.f_lasti)
    instruction = instructions[place]
    return instruction.argval if instruction.opname == "UNPACK_SEQUENCE" else None


def assert_site(frame: FrameType) -> AssertSite | None:
    """The assertion that asks for a truth at this moment, if it is one."""
    code, jump = instructions_at(frame.f_code, frame.f_lasti)
    if code[jump].opname == "COMPARE_OP" and code[jump].argrepr.startswith("bool("):  # which asks for the truth too
        jump += 1
    if "JUMP" not in code[jump].opname:
        return None
    name, target = code[jump].opname, instructions_at(frame.f_code, code[jump].argval)[1]
    if code[jump + 1].opname == "LOAD_ASSERTION_ERROR":
        return AssertSite(name.endswith("IF_TRUE"), _message(code, jump + 1))
    if code[target].opname == "LOAD_ASSERTION_ERROR" and name.endswith("IF_FALSE"):
        return AssertSite(True, _message(code, target))
    return None


def _message(code: list[Instruction], place: int) -> str | None:
    """The message of an assertion if it is a constant: loaded, and then at once used to make the error."""
    loaded, called = code[place + 1 : place + 3]
    is_constant = loaded.opname == "LOAD_CONST" and isinstance(loaded.argval, str) and called.opname == "CALL"
    return loaded.argval if is_constant else None
