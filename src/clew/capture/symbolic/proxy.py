"""Proxy: a value that stands for all inputs at once and records what is done with it; TracerBase: where it records.

Every operator, method, attribute and framework function that touches a proxy becomes a node of the tracer's graph.
In-place operators, item and attribute assignment are recorded as what they are, so that effects are kept. Questions
that only a concrete value can answer raise errors that tell the user's line and the ways out.
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
from typing import Any

from clew.capture.symbolic import refusals
from clew.capture.symbolic.bytecode import assert_site, unpack_count
from clew.capture.symbolic.scopes import Scope, stack_trace
from clew.errors import MixedTracers, SymbolicKey
from clew.ir.arguments import BASE_TYPES, immutable_dict, immutable_list, leaves
from clew.ir.graph import Graph
from clew.ir.guests import guest, guest_of
from clew.ir.node import Node, NodeFields
from clew.ir.source import user_source


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
                raise refusals.leaked(used)
        scope = self.scope
        self.node_name_to_scope[node.name] = (scope.module_path, scope.module_type)
        set_source(node, user_source())
        if self.module_stack:
            if self._stack_snapshot != self.module_stack:
                self._stack_snapshot = self.module_stack.copy()
            node.meta["nn_module_stack"] = self._stack_snapshot
        if self.record_stack_traces:
            node.meta["stack_trace"] = stack_trace()
        return node

    @staticmethod
    def _check_mutable(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        known = guest_of(target)
        if known is not None:
            known.check_mutable(target, args, kwargs)

    def proxy(self, node: Node) -> Proxy:
        """The proxy that stands for a node."""
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
        raise refusals.argument(a)

    def to_bool(self, obj: Proxy) -> bool:
        """Called when Python asks for the truth of a proxy."""
        raise refusals.control_flow(obj)

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Called when Python iterates over a proxy."""
        raise refusals.iteration(obj)

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

    __array_ufunc__ = None  # NumPy's numbers leave operators to the proxy, and its functions refuse it

    def __getattr__(self, k: str) -> Attribute:
        if k in _ARRAY_PROTOCOLS:
            raise AttributeError(k)
        return Attribute(self, k)

    def __array__(self, *options: Any, **named: Any) -> Any:
        raise refusals.number(self, "an array of NumPy")

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
        raise refusals.length(self)

    def __index__(self) -> int:
        raise refusals.number(self, "an index (range, a list's item, a size)")

    def __int__(self) -> int:
        raise refusals.number(self, "int()")

    def __float__(self) -> float:
        raise refusals.number(self, "float()")

    def __complex__(self) -> complex:
        raise refusals.number(self, "complex()")

    def __contains__(self, item: Any) -> bool:
        raise refusals.iteration(self)

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
        torch = guest("torch")
        method = None if torch is None else torch.method_name(orig_method)
        if method is not None:
            return tracer.create_proxy("call_method", method, args, kwargs)
        owner = getattr(orig_method, "owner", None)
        if owner is not None and type(orig_method).__name__ == "ScriptMethod":
            return tracer.create_proxy("call_method", orig_method.name, (owner, *args), kwargs)
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
_IN_PLACE = "iadd isub imul ifloordiv itruediv imod ipow ilshift irshift iand ior ixor imatmul"
_BUILTIN = "round divmod"


def _recorder(target: Any) -> Callable[..., Any]:
    def record(self: Proxy, *args: Any) -> Any:
        return self.tracer.create_proxy("call_function", target, (self, *args), {})

    return record


def _reflected_recorder(target: Any) -> Callable[..., Any]:
    def record(self: Proxy, left: Any) -> Any:
        return self.tracer.create_proxy("call_function", target, (left, self), {})

    return record


for _name in f"{_BINARY} {_COMPARING} {_UNARY} {_IN_PLACE}".split():
    setattr(Proxy, f"__{_name.strip('_')}__", _recorder(getattr(operator, _name)))
for _name in _BINARY.split():
    setattr(Proxy, f"__r{_name.strip('_')}__", _reflected_recorder(getattr(operator, _name)))
for _name in _BUILTIN.split():
    setattr(Proxy, f"__{_name}__", _recorder(getattr(builtins, _name)))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]
