"""Clew's graphs for programs that know torch.fx only, and cannot be changed: ``install``.

While it is installed, ``isinstance`` takes Clew's graphs, nodes and graph modules for torch.fx's, walks through the
arguments of nodes (``map_arg``) meet Clew's nodes, and ``torch.fx.GraphModule(root, graph)`` of a graph of Clew's is
Clew's. torch.fx's interpreters check the guards of a captured program and run its nested graphs; its passes that build
a new graph run over Clew's classes, and a module of torch.fx that is built of a captured program checks its guards.
Modules of packages that are named are moreover imported anew, with ``clew.fx`` where they say ``torch.fx``. Limits: a
class derived from torch.fx's stays so, and what torch made in C takes no node of Clew's; ``clew.to_fx`` gives a graph
that is torch.fx's in every respect.
"""

from __future__ import annotations

import copy
import importlib
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import partial, wraps
from types import BuiltinFunctionType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import torch.fx
from torch.fx import node as torch_node

from clew.errors import InteropError, TraceWarning, compose
from clew.fx.borders import is_of_torch
from clew.fx.torch_source import clients_over_clew
from clew.io.torch_fx import META_KEY, FxModule, codegen_to_torch, to_fx
from clew.io.torch_fx_parts import GuardHook
from clew.ir.arguments import Reference, bodies_of, leaves, map_aggregate
from clew.ir.graph import Graph
from clew.ir.guards import Input, attached, attribute_paths, detached, evaluate
from clew.ir.guests import PRESENTED, Presented
from clew.ir.node import Node
from clew.runtime.module import GraphModule, has_path, take_over

_FOR = {Graph: torch.fx.Graph, GraphModule: torch.fx.GraphModule, Node: torch.fx.Node}
"""Classes of Clew, and those of torch.fx that they stand for."""

_installed: list[install] = []


class install(AbstractContextManager["install"]):
    """Let programs that know torch.fx only work on Clew's graphs, until ``uninstall()`` or the end of ``with``.

    ``install("torchvision.models")`` moreover imports these packages anew, over Clew's classes.
    """

    def __init__(self, *packages: str) -> None:
        self._undo = ExitStack()
        if not _installed:
            # A class of its own for each, derived from torch.fx's: programs set the name of ``module.__class__``.
            PRESENTED.update({ours: type(theirs.__name__, (theirs,), {}) for ours, theirs in _FOR.items()})
            self._undo.callback(PRESENTED.clear)
            for ours in PRESENTED:
                self._undo.callback(setattr, ours, "__bases__", ours.__bases__)
                ours.__bases__ = (*ours.__bases__, Presented)
            for (kind, name), method in _METHODS.items():
                self._undo.callback(setattr, kind, name, vars(kind)[name])
                setattr(kind, name, method)
            self._exchange(_EXCHANGED | dict(map(_builder, _BUILDERS)))
            self._undo.callback(_walked.clear)
        if packages:
            self._undo.enter_context(clients_over_clew(packages))
        _installed.append(self)

    def _exchange(self, functions: dict[Callable[..., Any], Callable[..., Any]]) -> None:
        """Put functions in the places of others, in all modules that hold them by now."""
        for module in list(sys.modules.values()):
            names: Any = getattr(module, "__dict__", None)
            # What torch defines in C stays: torch._dynamo looks functions up there when it is imported.
            is_open = type(names) is dict and module not in (sys.modules[__name__], torch._C)
            for name, value in list(names.items()) if is_open else ():
                ours = functions.get(value) if type(value) in (FunctionType, BuiltinFunctionType) else None
                if ours is not None and names is not None:
                    names[name] = ours
                    self._undo.callback(names.__setitem__, name, value)

    def uninstall(self) -> None:
        """Put everything back, unless another installation is left."""
        if self not in _installed:
            return
        _installed.remove(self)
        if _installed:
            _installed[0]._undo.push(self._undo)
        else:
            self._undo.close()

    def __exit__(self, *error: object) -> None:
        self.uninstall()


_their_new = torch.fx.GraphModule.__new__


def _new_module(cls: type, *args: Any, **kwargs: Any) -> Any:
    """A module of Clew's for a graph of Clew's, where torch.fx's own class is asked."""
    graph = next((value for value in (*args, *kwargs.values()) if Graph in type(value).__mro__), None)
    return _their_new(cls, *args, **kwargs) if graph is None else GraphModule(*args, **kwargs)  # type: ignore[arg-type]


# ---- graphs of Clew's in the hands of torch.fx's own classes ---------------------------------------------------------

_their_run, _their_transform = torch.fx.Interpreter.run, torch.fx.Transformer.transform
_their_fetch, _their_node_copy = torch.fx.Interpreter.fetch_args_kwargs_from_env, torch.fx.Graph.node_copy


def _run(
    interpreter: Any,
    *args: Any,
    initial_env: dict[Any, Any] | None = None,
    enable_io_processing: bool = True,
) -> Any:
    """``Interpreter.run`` of torch.fx, which first sees to the guards of a graph of Clew's."""
    graph, env = interpreter.graph, dict(initial_env or {})
    if Graph in type(graph).__mro__ and graph.guards.entry and not isinstance(interpreter, torch.fx.Transformer):
        given = iter(graph.process_inputs(*args) if enable_io_processing else args)
        inputs = [node for node in graph.find_nodes(op="placeholder") if node not in env]
        env |= {node: _input_value(node, given) for node in inputs}
        for one in graph.guards.entry:
            one.require(evaluate(one.subject, env, interpreter.module))
    return _their_run(interpreter, *args, initial_env=initial_env, enable_io_processing=enable_io_processing)


def _input_value(node: Any, given: Iterator[Any]) -> Any:
    """What an interpreter of torch.fx takes for an input, of the arguments that are left."""
    if str(node.target).startswith("*"):
        return list(given)
    return next(given, node.args[0] if node.args else None)


def _fetch(interpreter: Any, n: Any) -> tuple[Any, Any]:
    """The arguments of a node; a nested graph becomes a function that interprets it, on the same module."""
    args, kwargs = _their_fetch(interpreter, n)
    if type(n) is not Node or not bodies_of(n):
        return args, kwargs
    if isinstance(interpreter, torch.fx.Transformer):
        raise _nested(n, "derive the Transformer from clew.fx.Transformer")

    def run_body(body: Any) -> Any:
        return partial(_interpret, interpreter, body) if isinstance(body, Graph) else body

    mapped_args, mapped_kwargs = map_aggregate((args, kwargs), run_body)
    return mapped_args, dict(mapped_kwargs)


def _nested(node: Node, way_out: str) -> InteropError:
    return InteropError(
        f"node {node.name} has nested graphs, which a graph of torch.fx cannot hold",
        where="" if node.source is None else node.source.describe(),
        fixes=[f"{way_out}, or name the package that does it: clew.fx.install('package')"],
    )


def _interpret(interpreter: Any, body: Graph, *args: Any, **kwargs: Any) -> Any:
    """A nested graph, run by an interpreter of the class of the outer one."""
    inner = copy.copy(interpreter)
    inner.graph, inner.garbage_collect_values = body, False
    named = {node: kwargs[node.target] for node in body.find_nodes(op="placeholder") if node.target in kwargs}
    return inner.run(*args, initial_env=named, enable_io_processing=False)


def _transform(transformer: Any) -> Any:
    """``Transformer.transform`` of torch.fx; what it makes of a captured module checks the guards, as that does."""
    source = transformer.graph
    if Graph not in type(source).__mro__:
        return _their_transform(transformer)
    transformer.new_graph.set_codegen(codegen_to_torch(source._chosen_codegen) or torch.fx.CodeGen())
    module = _their_transform(transformer)
    _check_in(module, source, {node.target: node for node in module.graph.find_nodes(op="placeholder")})
    return module


# ---- graphs of torch.fx that are built of a captured program: the guards follow --------------------------------------

_their_trace, _their_init = torch.fx.Tracer.trace, torch.fx.GraphModule.__init__
_traced: WeakKeyDictionary[torch.fx.Graph, torch.nn.Module] = WeakKeyDictionary()
"""For a graph that a tracer of torch.fx has made of a module of Clew's the module of torch.fx that it ran instead."""
_our_nodes: Any = vars(Graph)["nodes"].fget
_origins: WeakKeyDictionary[torch.fx.Graph, tuple[Graph, dict[str, Any]]] = WeakKeyDictionary()
"""For a graph of torch.fx the captured one that it is built of, and its nodes by the names of inputs of that."""


_walked: WeakKeyDictionary[Graph, None] = WeakKeyDictionary()
"""The captured programs whose nodes were walked by others than Clew, the latest last."""


def _nodes(graph: Graph) -> Any:
    """``Graph.nodes``; a client that walks a captured program may build a graph of torch.fx of it."""
    if graph.guards.entry and not str(sys._getframe(1).f_globals.get("__name__")).startswith("clew."):
        _walked.pop(graph, None)
        _walked[graph] = None
    return _our_nodes(graph)


def _walked_source(graph: Any) -> Graph | None:
    """The captured program that a graph of torch.fx was built of by hand, as far as inputs and calls tell.

    With no such program although some were walked, nobody can tell, and a warning says so.
    """
    if graph._tracer_cls is not None or not _walked or not any(node.op == "call_function" for node in graph.nodes):
        return None  # traced, or a copy of what was traced
    inputs = {node.target for node in graph.nodes if node.op == "placeholder"}
    calls = {node.target for node in graph.nodes if node.op.startswith("call_")}
    for source in reversed(list(_walked)):
        known = {name for node in source.find_nodes(op="placeholder") for name in (node.target, node.name)}
        if inputs and inputs <= known and calls & {node.target for node in _our_nodes(source)}:
            return source
    what = "a module of torch.fx was built by hand after the nodes of a captured program had been walked"
    why = "whether it is built of that program cannot be told, so it does not check what that assumes of its inputs"
    fixes = [
        "copy nodes with graph.node_copy, or map arguments with torch.fx.map_arg",
        "name the package that builds it: clew.fx.install('package')",
    ]
    warnings.warn(compose(what, "", why, fixes), TraceWarning, stacklevel=3)
    return None


def _trace(tracer: torch.fx.Tracer, root: Any, concrete_args: Any = None) -> torch.fx.Graph:
    """``Tracer.trace`` of torch.fx; a module of Clew's is converted first, so that guards and branches are kept."""
    if GraphModule not in type(root).__mro__:
        return _their_trace(tracer, root, concrete_args)
    twin = to_fx(root)
    graph = _their_trace(tracer, twin, concrete_args)
    _traced[graph] = twin
    return graph


def _note_origin(node: Any, twin: Any) -> Any:
    """Remember of which captured program the graph of ``twin`` is built, in which it stands for ``node``."""
    if type(node) is Node and torch.fx.Node in type(twin).__mro__ and node.graph.guards.entry:
        _, inputs = _origins.setdefault(twin.graph, (node.graph, {}))
        if node.op == "placeholder":
            inputs[str(node.target)] = twin
    return twin


def _node_copy(graph: Any, node: Any, arg_transform: Callable[[Any], Any] = lambda x: x) -> Any:
    """``Graph.node_copy`` of torch.fx; a copy of a graph that was built of a captured program is built of it, too."""
    if type(node) is Node and bodies_of(node):
        raise _nested(node, "copy into clew.fx.Graph()")
    twin = _their_node_copy(graph, node, arg_transform)
    if node.graph in _origins:
        source, inputs = _origins[node.graph]
        _, copied = _origins.setdefault(graph, (source, {}))
        copied.update({name: twin for name, input in inputs.items() if input is node})
    return _note_origin(node, twin)


def _init_module(module: Any, root: Any, graph: Any, *args: Any, **kwargs: Any) -> None:
    """The constructor of torch.fx's modules; what is built of a captured program refuses what that refuses.

    It is known to be by nodes that were copied or mapped, or by its root; then its inputs are found by their names.
    """
    twin = _traced.get(graph) if GraphModule in type(root).__mro__ else None
    _their_init(module, root if twin is None else twin, graph, *args, **kwargs)
    if twin is not None:
        return  # its graph has a node that checks the guards
    source, inputs = _origins.get(graph, (None, {}))
    if source is None:
        source = root.graph if GraphModule in type(root).__mro__ else _walked_source(graph)
    if source is not None:
        named = {str(node.target): node for node in module.graph.find_nodes(op="placeholder")}
        twins = {name: twin for name, twin in inputs.items() if twin in named.values()}
        _check_in(module, source, named | twins, root)


def _check_in(module: Any, source: Graph, inputs: Mapping[Any, Any], root: Any = None) -> None:
    """Let a module of torch.fx check those guards of ``source`` that are on the inputs it has.

    ``inputs`` are its placeholders by the parameters of ``source``. Turned into Clew's, it has them again.
    """
    known = {node.name: inputs[node.target] for node in source.find_nodes(op="placeholder") if node.target in inputs}
    renamed = {name: Input(twin.name, str(twin.target)) for name, twin in known.items()}
    guards = attached(detached(source.guards.entry), renamed)
    if not guards or any(isinstance(hook, GuardHook) for hook in module._forward_pre_hooks.values()):
        return
    missing = [path for path in attribute_paths(guards) if not has_path(module, path)]
    if missing and GraphModule in type(root).__mro__:
        take_over(root, module, missing, as_buffers=False)
    names = {one.name: one.target for one in renamed.values()}
    module.register_forward_pre_hook(GuardHook(guards, names), with_kwargs=True)
    for node in module.graph.find_nodes(op="output"):
        node.meta.setdefault(META_KEY, {})["guards"] = guards
    own = type(module)  # torch.fx makes a class for each module
    if FxModule not in own.__mro__:  # whose copies keep the hook, which those of torch.fx's modules lose
        (kind,) = own.__bases__
        own.__bases__ = (FxModule if kind is torch.fx.GraphModule else type(kind.__name__, (FxModule, kind), {}),)


_METHODS: dict[tuple[type, str], Any] = {
    (Graph, "nodes"): property(_nodes),
    (torch.fx.GraphModule, "__new__"): _new_module,
    (torch.fx.GraphModule, "__init__"): _init_module,
    (torch.fx.Tracer, "trace"): _trace,
    (torch.fx.Interpreter, "run"): _run,
    (torch.fx.Interpreter, "fetch_args_kwargs_from_env"): _fetch,
    (torch.fx.Transformer, "transform"): _transform,
    (torch.fx.Graph, "node_copy"): _node_copy,
}

_BUILDERS = (("passes.split_module", "split_module"), ("passes.split_utils", "split_by_tags"))
"""Passes of torch.fx that build a new graph by hand."""


def _builder(place: tuple[str, str]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A pass of torch.fx, and what stands for it: the same over Clew's classes, for modules of Clew's."""
    module, name = place
    theirs = getattr(importlib.import_module(f"torch.fx.{module}"), name)
    ours = getattr(importlib.import_module(f"clew.fx.{module}"), name)

    @wraps(theirs)
    def build(*args: Any, **kwargs: Any) -> Any:
        build_with = theirs if is_of_torch((*args, *kwargs.values())) else ours
        return build_with(*args, **kwargs)

    return theirs, build


# ---- walks through arguments -----------------------------------------------------------------------------------------

_their_map_arg, _their_map_aggregate = torch._C._fx_map_arg, torch._C._fx_map_aggregate


def _map_arg(a: Any, fn: Callable[[Any], Any]) -> Any:
    """``map_arg`` of torch.fx, for nodes of both."""
    if not any(isinstance(leaf, Reference) for leaf in leaves(a)):
        return _their_map_arg(a, fn)
    is_node = (Reference, torch.fx.Node)
    return map_aggregate(a, lambda leaf: _note_origin(leaf, fn(leaf)) if isinstance(leaf, is_node) else leaf)


def _map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """``map_aggregate`` of torch.fx, for nodes of both."""
    if not any(isinstance(leaf, Reference) for leaf in leaves(a)):
        return _their_map_aggregate(a, fn)
    return map_aggregate(a, lambda leaf: _note_origin(leaf, fn(leaf)))


_EXCHANGED: dict[Callable[..., Any], Callable[..., Any]] = {
    torch_node.map_arg: _map_arg,
    torch_node.map_aggregate: _map_aggregate,
    torch._C._fx_map_arg: _map_arg,
    torch._C._fx_map_aggregate: _map_aggregate,
}
