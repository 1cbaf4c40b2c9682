"""The tracer: runs a module or function on proxies and gives its graph.

For the time of a trace, calls of modules, reads of their attributes, wrapped functions and construction of some
classes report to the tracer. The methods to override are those of ``torch.fx.Tracer``. Constants that the program uses
become attributes of the root, until whoever asked for the graph takes them over. All patches are undone at the end.
"""

from __future__ import annotations

import contextvars
import copy
import inspect
import math
import types
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from clew.capture.interrupts import DeferredSignals
from clew.capture.patches import Patches
from clew.capture.symbolic import inputs, proxy
from clew.capture.symbolic.proxy import ARGUMENTS, ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase
from clew.capture.symbolic.wrap import find_proxy, install, install_by_identity, install_those_of, original_of
from clew.codegen.python import PyTreeCodeGen
from clew.errors import TraceWarning, compose
from clew.ir.arguments import map_aggregate, map_arg, nested_graphs
from clew.ir.graph import Graph, add_notes
from clew.ir.guards import evaluate
from clew.ir.guests import Guest, guest, module_guest, present
from clew.ir.module_calls import note_call
from clew.ir.node import Node
from clew.ir.source import SourceLine, user_source

_running: contextvars.ContextVar[_Run | None] = contextvars.ContextVar("clew_symbolic_trace", default=None)


class _Run:
    """One trace in progress: its tracer, the parameters that have a proxy already, its patches."""

    def __init__(self, tracer: Tracer, patches: Patches) -> None:
        self.tracer = tracer
        self.patches = patches
        self.parameter_proxies: dict[str, Proxy] = {}
        self._searched: set[int] = set()

    def wrap_in(self, names: dict[str, Any] | None) -> None:
        """Let the functions that the tracer wraps by itself be recorded when called through the globals ``names``."""
        if names is not None and id(names) not in self._searched:
            self._searched.add(id(names))
            install_by_identity(self.patches, names, self.tracer._autowrap_function_ids)


def is_symbolic_tracing() -> bool:
    """True while a symbolic trace runs in this context."""
    return _running.get() is not None


def _has_to_be_followed(program: Graph) -> bool:
    """Whether proxies cannot run through a program, which assumes something of its inputs or has branches."""
    return bool(program.guards.entry) or next(nested_graphs(program), None) is not None


def _own_body(leaf: Any) -> Any:
    return copy.deepcopy(leaf) if isinstance(leaf, Graph) else leaf


def _node_behind(value: Any) -> Node | None:
    """The node of a proxy."""
    return value.node if issubclass(type(value), Proxy) else None


class Root:
    """What holds the constants of a traced function where no framework has modules."""


class Tracer(TracerBase):
    """Traces symbolically. Override the documented methods to change how."""

    def __init__(
        self,
        autowrap_modules: tuple[types.ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._autowrap_search = list(autowrap_modules)
        self._autowrap_functions: list[Callable[..., Any]] = [
            original_of(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if callable(value) and not name.startswith("_")
        ] + list(autowrap_functions)
        self._autowrap_function_ids = set(map(id, self._autowrap_functions))
        self.param_shapes_constant = param_shapes_constant
        self.root: Any = None
        self.root_module_name = ""
        self.submodule_paths: dict[Any, str] | None = None
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}
        self.tensor_attrs: dict[Any, str] = {}
        self.defined_at: SourceLine | None = None
        self.stowed: list[str] = []
        self.copies: dict[int, tuple[Any, Node]] = {}
        """Constants that the graph writes into, kept alive, with the node of the copy that stands for each."""
        self.frozen: dict[int, tuple[Any, Callable[[], None]]] = {}
        """Constants computed from what may change, kept alive, with the warning that is due once one is used."""

    # ---- the methods to override ---------------------------------------------------------------------------------

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Whether ``m`` stays one call. By default: the framework's own layers, but not containers."""
        guest = module_guest(m)
        return guest is not None and guest.is_leaf_module(m)

    def path_of_module(self, mod: Any) -> str:
        """The dotted path of a module from the root."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise proxy.not_in_root(f"module is not installed as a submodule: a {type(mod).__name__} was called")
            return path
        for path, module in self.root.named_modules():
            if module is mod:
                return str(path)
        raise proxy.not_in_root(f"module is not installed as a submodule: a {type(mod).__name__} was called")

    def call_module(self, m: Any, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called for each call of a module: a node for a leaf, otherwise its forward is traced through."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            calls = self.num_calls.get(path, 0)
            self.num_calls[path] = calls + 1
            key = f"{path}@{calls}" if calls else path
            self.module_stack[key] = (path, type(m))
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                result = forward(*args, **kwargs)
            finally:
                self.module_stack.pop(key, None)
            note_call(key, path, args, kwargs, result, _node_behind)
            return result

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """Called for each attribute read from a module: parameters become proxies, one for each."""
        guest = owner_of(attr_val)
        if guest is None or guest.parameter_class is None:
            return attr_val
        found = None
        if isinstance(attr_val, guest.parameter_class):
            found = self._proxy_of(attr_val, self.root.named_parameters(), parameter_proxy_cache)
        if found is None and self.proxy_buffer_attributes and isinstance(attr_val, guest.array_class or ()):
            found = self._proxy_of(attr_val, self.root.named_buffers(), parameter_proxy_cache)
        return attr_val if found is None else found

    def _proxy_of(self, value: Any, named: Any, cache: dict[str, Proxy]) -> Proxy | None:
        for name, candidate in named:
            if candidate is value:
                if name not in cache:
                    options: dict[str, Any] = {}
                    if self.param_shapes_constant:
                        options["proxy_factory_fn"] = lambda node, name=name: ParameterProxy(self, node, name, value)
                    cache[name] = self.create_proxy("get_attr", name, (), {}, **options)
                return cache[name]
        return None

    def create_arg(self, a: Any) -> Any:
        """What the graph holds for ``a``; parameters, tensors and modules become get_attr nodes."""
        plain = ARGUMENTS.get(type(a))
        if plain is not None:
            return plain(self, a)
        guest = owner_of(a)
        if guest is not None and isinstance(a, guest.attribute_classes):
            if id(a) in self.copies:
                return self.copies[id(a)][1]
            return self.create_node("get_attr", self._path_of_value(a, guest), (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(map(self.create_arg, a)), {})
        if is_proxyable(type(a)):
            return self.create_node("get_attr", self._stow(a, f"_{type(a).__name__}_constant_"), (), {})
        return super().create_arg(a)

    def _path_of_value(self, value: Any, guest: Guest) -> str:
        """Where the root has a parameter, buffer, module or constant; a new attribute if it has it nowhere."""
        if guest.module_class is not None and isinstance(value, guest.module_class):
            return self.path_of_module(value)
        if guest.parameter_class is not None and isinstance(value, guest.parameter_class):
            known = next((name for name, found in self.root.named_parameters() if found is value), None)
            if known is None:
                raise proxy.not_in_root("parameter is not a member of this module")
            return str(known)
        for name, found in getattr(self.root, "named_buffers", tuple)():
            if found is value:
                return str(name)
        return self._path_of_constant(value)

    def _path_of_constant(self, value: Any) -> str:
        path = self.tensor_attrs.get(value)
        if path is None:
            path = self.tensor_attrs[value] = self._stow(value, "_tensor_constant")
            if id(value) in self.frozen:
                self.frozen[id(value)][1]()
        return path

    def _stow(self, value: Any, prefix: str) -> str:
        """Make a constant an attribute of the root, where a GraphModule will find it."""
        path = self.get_fresh_qualname(prefix)
        setattr(self.root, path, value)
        self.stowed.append(path)
        return path

    def clear_root(self) -> None:
        """Take the constants of the trace off the root again, once they have been taken over from it."""
        while self.stowed:
            delattr(self.root, self.stowed.pop())

    def get_fresh_qualname(self, prefix: str) -> str:
        """``prefix0``, ``prefix1``, ...: the first that the root does not have."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Any, list[Any]]:
        """Make the placeholders; returns the function to call and what to call it with."""
        return inputs.RootInputs(self, root_fn, is_module, concrete_args).make()

    def _proxy_placeholder(self, name: str, concrete_args: Any, sig: inspect.Signature, fn_for_analysis: Any) -> Any:
        return inputs.placeholder_for(self, name, concrete_args, sig, fn_for_analysis)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        twin = object.__new__(type(self))
        memo[id(self)] = twin
        for key, value in vars(self).items():
            shared = key in ("_autowrap_search", "_autowrap_functions")
            setattr(twin, key, list(value) if shared else copy.deepcopy(value, memo))
        return twin

    # ---- tracing -------------------------------------------------------------------------------------------------

    def trace(self, root: Any, concrete_args: Any = None) -> Graph:
        """The graph of a module's ``traced_func_name`` or of a function; constants are put on ``self.root``."""
        function, is_module = self._function_of(root)
        code = inspect.unwrap(function).__code__  # type: ignore[attr-defined]
        self.defined_at = SourceLine(code.co_filename, code.co_firstlineno, code.co_name)
        self.graph = Graph(tracer_cls=type(self))
        self._collect_constants(self.root)
        names = function.__globals__
        with self._reporting(names):
            runnable, args = self.create_args_for_root(function, is_module, concrete_args)
            result = self.create_arg(runnable(*args))
            nested = isinstance(self.graph._chosen_codegen, PyTreeCodeGen)
            returns = None if nested else inputs.annotations_of(inspect.unwrap(runnable)).get("return")
            self.create_node("output", "output", (result,), {}, type_expr=returns)
        self._place_ends()
        self._settle_writes()
        self.submodule_paths = None
        return self.graph

    def _settle_writes(self) -> None:
        """Let writes that nobody sees be no writes."""
        for host in present():
            host.settle_writes(self.graph, self.root)

    def _function_of(self, root: Any) -> tuple[types.FunctionType, bool]:
        guest = module_guest(root)
        if guest is not None:
            self.root = root
            self.root_module_name = type(root).__name__
            self.submodule_paths = {module: path for path, module in root.named_modules()}
            function, takes_self = self._method_of(root)
            program = vars(root).get("_graph")
            if takes_self and isinstance(program, Graph) and _has_to_be_followed(program):
                function = inputs.led_by(self._follow, function)
        else:
            self.root = next((found for host in present() if (found := host.new_root()) is not None), None) or Root()
            function, takes_self = root, False
        if not isinstance(function, types.FunctionType):
            function = inputs.as_function(function)
        return function, takes_self

    def _follow(self, given: tuple[Any, ...]) -> tuple[Any]:
        """The result of a root that is a captured program: its nodes are recorded as they are, and its guards kept."""
        root, *values = given
        program: Graph = root.graph
        env: dict[Node, Any] = dict(zip(program.find_nodes(op="placeholder"), values, strict=True))
        self._assume(program, env, root)
        for node in program.nodes:
            args, kwargs = map_arg(node.args, env.__getitem__), map_arg(node.kwargs, env.__getitem__)
            if node.op == "output":
                break
            if node.op == "call_module":
                env[node] = root.get_submodule(node.target)(*args, **kwargs)
            elif node.op != "placeholder":
                args, kwargs = map_aggregate((args, dict(kwargs)), _own_body)
                env[node] = self.create_proxy(node.op, node.target, args, kwargs, node.name, node.type)
            recorded = _node_behind(env[node]) if node.op != "call_module" else None
            if recorded is not None:
                add_notes(node, recorded)
        return args

    def _assume(self, program: Graph, env: dict[Node, Any], root: Any) -> None:
        """Take over the guards on inputs of a captured program; those on values that are fixed are checked now."""
        known = {node: _node_behind(value) or value for node, value in env.items()}
        kept = []
        for one in program.guards.entry:
            if any(isinstance(known[node], Node) for node in one.inputs) or not one.inputs:
                kept.append(one.mapped(lambda leaf: known[leaf] if isinstance(leaf, Node) else leaf))
            else:
                one.require(evaluate(one.subject, env, root))
        self.graph.guards = tuple(kept)

    def _method_of(self, root: Any) -> tuple[Any, bool]:
        """The function that the root would run, and whether it takes the root: one set on the instance comes first."""
        name = self.traced_func_name
        own = vars(root).get(name)
        if own is None:
            function = getattr(type(root), name, None)
            if function is None:
                raise inputs.NotTraceable(
                    f"traced_func_name={name} doesn't exist in {type(root).__name__}",
                    fixes=["set traced_func_name of the tracer to the name of a method of the root"],
                )
            return function, not isinstance(inspect.getattr_static(type(root), name), staticmethod)
        if getattr(own, "__self__", None) is root and isinstance(own, types.MethodType):
            return own.__func__, True
        return own, False

    def _collect_constants(self, root: Any) -> None:
        """Note where modules keep tensors that are neither parameters nor buffers."""
        holds: dict[type, bool] = {}
        for module, path in (self.submodule_paths or {root: ""}).items():
            for name, value in vars(module).items():
                kind = type(value)
                if kind not in holds:
                    guest = owner_of_class(kind)
                    holds[kind] = guest is not None and issubclass(kind, guest.attribute_classes)
                if holds[kind]:
                    self.tensor_attrs[value] = f"{path}.{name}" if path else name

    @contextmanager
    def _reporting(self, names: dict[str, Any]) -> Iterator[None]:
        """For the time of the trace, modules and wrapped functions report to this tracer."""
        with DeferredSignals(), Patches() as patches:
            run = _Run(self, patches)
            for guest in present():
                if guest.module_class is not None:
                    patches.on_method(guest.module_class, "__getattr__", _reporting_getattr)
                    patches.on_class(guest.module_class, "__call__", _reporting_call)
            install(patches)
            for host in present():
                install_those_of(patches, host)
            run.wrap_in(names)
            for module in self._autowrap_search:
                run.wrap_in(vars(module))
            token = _running.set(run)
            try:
                with watching(self, patches):
                    yield
            finally:
                _running.reset(token)
                self.copies.clear()
                self.frozen.clear()

    def _place_ends(self) -> None:
        """Inputs and output come from the ``def`` line."""
        for node in self.graph.nodes:
            if node.op in ("placeholder", "output"):
                node.source = self.defined_at


def _reporting_getattr(original: Callable[..., Any]) -> Callable[..., Any]:
    def __getattr__(module: Any, attr: str) -> Any:
        value = original(module, attr)
        run = _running.get()
        return value if run is None else run.tracer.getattr(attr, value, run.parameter_proxies)

    return __getattr__


def _reporting_call(original: Callable[..., Any]) -> Callable[..., Any]:
    def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
        run = _running.get()
        if run is None:
            return original(module, *args, **kwargs)

        def forward(*args: Any, **kwargs: Any) -> Any:
            return original(module, *args, **kwargs)

        run.wrap_in(getattr(getattr(module, "forward", module), "__globals__", None))
        return run.tracer.call_module(module, forward, args, kwargs)

    return __call__


# ---- which framework a value belongs to ------------------------------------------------------------------------------

_owners: weakref.WeakKeyDictionary[type, Guest | None] = weakref.WeakKeyDictionary()
_UNKNOWN = object()


def owner_of(value: Any) -> Guest | None:
    """The framework whose class, or whose class's subclass, ``value`` is an instance of."""
    return owner_of_class(type(value))


def owner_of_class(kind: type) -> Guest | None:
    """The framework that ``kind``, or the nearest of its bases, comes from."""
    found: Any = _owners.get(kind, _UNKNOWN)
    if found is _UNKNOWN:
        packages = (base.__module__.partition(".")[0] for base in kind.__mro__ if isinstance(base.__module__, str))
        found = _owners[kind] = next((host for package in packages if (host := guest(package)) is not None), None)
    owner: Guest | None = found
    return owner


# ---- classes whose construction is one call --------------------------------------------------------------------------

_proxyable: dict[type, None] = {}


class ProxyableClassMeta(type):
    """The metaclass of classes that may be built from symbolic values inside a traced program."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        instance = cls.__new__(cls)  # type: ignore[call-overload]
        proxy = find_proxy(args, kwargs)
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        cls.__init__(instance, *args, **kwargs)  # type: ignore[misc]
        return instance


def is_proxyable(kind: type) -> bool:
    """True for classes made by ``ProxyableClassMeta``."""
    return kind in _proxyable


# ---- what a trace sees besides proxies -------------------------------------------------------------------------------
#
# Work on real arrays, switched modes, changed state. A framework registers how it is watched when it is imported;
# ``watching`` holds all watches for the time of one trace. ``warn`` tells the user, with the line, of an assumption
# that the graph will not check.


Watch = Callable[["Tracer", Patches], AbstractContextManager[Any]]
_watches: dict[str, Watch] = {}


def register_watch(package: str, watch: Watch) -> None:
    """``watch(tracer, patches)`` gives the context manager that sees what ``package`` does during a trace."""
    _watches[package] = watch


@contextmanager
def watching(tracer: Tracer, patches: Patches) -> Iterator[None]:
    """Let all frameworks that are awake be watched."""
    with ExitStack() as stack:
        for watch in list(_watches.values()):
            stack.enter_context(watch(tracer, patches))
        yield


def warn(what: str, why: str, *fixes: str, place: SourceLine | None = None) -> None:
    """Tell the user of something that the graph holds as it was while tracing."""
    source = user_source() if place is None else place
    text = compose(what, "" if source is None else source.describe(), why, fixes)
    filename, line = (source.filename, source.lineno) if source is not None else ("<unknown>", 1)
    warnings.warn_explicit(text, TraceWarning, filename, line)
