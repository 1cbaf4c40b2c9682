"""Graphs of torch.fx and of Clew, converted into each other without loss.

``from_fx`` takes a torch.fx Graph or GraphModule and gives ours, ``to_fx`` the reverse. Order, names, targets,
arguments, annotations, notes and calling convention are kept; parameters, submodules, hooks and plain attributes are
shared. What only Clew knows of a node travels in its ``meta`` under one key, and only where torch's own notes do not
say it already. A nested calling convention is carried over by building a nest of marks with the one library's pytrees
and taking it apart with the other's.

torch.fx's code cannot write every argument. A nested graph, the body of a branch or loop, becomes a GraphModule of its
own, and like a class or function without a name it is an attribute of the module that a ``get_attr`` node reads.
"""

from __future__ import annotations

import builtins
import copy
import enum
import keyword
import operator
import re
import warnings
from collections.abc import Callable
from functools import partial
from types import EllipsisType, NoneType
from typing import Any

import torch
import torch.fx
import torch.utils._pytree as pytree
from torch.fx.graph import _PyTreeCodeGen, _PyTreeInfo

from clew import tree
from clew.capture.state.slots import ROOT
from clew.capture.symbolic.inputs import led_by
from clew.capture.symbolic.tracer import Tracer
from clew.codegen.python import CodeGen, PyTreeCodeGen, PyTreeInfo
from clew.errors import InteropError
from clew.io.torch_fx_parts import GUARDS, GuardHook, GuardModule, State, read_state, recorded
from clew.ir.arguments import all_nodes, leaves, map_aggregate
from clew.ir.graph import Graph
from clew.ir.guards import Guard, attached, detached, referred_paths
from clew.ir.interpreter import ADOPTERS
from clew.ir.node import Node, check_opcode
from clew.ir.source import SourceLine
from clew.ir.types import Type, type_of
from clew.runtime.function import GraphFunction
from clew.runtime.module import GraphModule
from clew.runtime.parts import HOLDERS
from clew.runtime.torch_captured import CapturedModule, Live

# ---- both ways -------------------------------------------------------------------------------------------------------


META_KEY = "clew"

# Names that generated code itself writes: a local of such a name would hide what the code means.
_WRITTEN = frozenset(
    "self torch tree inf nan device pytree NoneType float complex getattr slice range set frozenset list tuple dict "
    "int bool str bytes".split()
)
_FRAME = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<function>[^\n]+)')


def from_fx(source: Any) -> Any:
    """Clew's GraphModule for one of torch.fx, or Clew's Graph for one of torch.fx."""
    if isinstance(source, torch.fx.GraphModule):
        _refuse_export_hooks(source)
        graph = graph_from_fx(source.graph)
        kind = CapturedModule if graph.guards.entry or ROOT in referred_paths(graph) else GraphModule
        module = kind(_RootFor(source), graph, type(source).__name__)
        share_rest(source, module)
        _drop_held(source, module)
        _drop_checking_hooks(module)
        return module
    if isinstance(source, torch.fx.Graph):
        return graph_from_fx(source)
    raise _not_convertible(source, "torch.fx")


def to_fx(source: Any) -> Any:
    """The GraphModule of torch.fx for a GraphModule or GraphFunction of Clew, or the Graph of torch.fx for a Graph."""
    if isinstance(source, GraphModule):
        return _module_to_fx(source, source.graph, type(source).__name__)
    if isinstance(source, GraphFunction) and isinstance(source.root, (torch.nn.Module, Live)):
        return _module_to_fx(_module_of(source.root), source.graph, source.__name__)
    if isinstance(source, Graph):
        return graph_to_fx(source)
    raise _not_convertible(source, "clew")


def _not_convertible(source: Any, package: str) -> InteropError:
    return InteropError(
        f"a {type(source).__module__}.{type(source).__qualname__} is neither a Graph nor a GraphModule of {package}",
        fixes=["trace it first, with symbolic_trace; an exported program goes through from_exported"],
    )


# ---- from torch.fx -----------------------------------------------------------------------------------------------


def graph_from_fx(source: torch.fx.Graph) -> Graph:
    """A graph with the same nodes."""
    graph = Graph(tracer_cls=_tracer_from_fx(source), tracer_extras=_copied(source._tracer_extras))
    graph._chosen_codegen = codegen_from_torch(source._codegen)
    reserved = _WRITTEN | _builtins_in(source)
    twins: dict[Any, Node] = {}
    held = {node: _held_value(node) for node in source.nodes if is_held(node)}
    checked: list[Guard] = []

    def translate(leaf: Any) -> Any:
        if isinstance(leaf, torch.fx.Node):
            return held[leaf] if leaf in held else twins[leaf]
        return leaf

    for node in source.nodes:
        if (checks := _checks_of(node)) is not None:
            on = {name: twins[one] for name, one in zip(checks.names, node.args, strict=True)}
            checked += attached(checks.guards, on)
        if _is_beside(node):
            continue
        state = _state_read(node)
        check_opcode(node.op, node.target, node.name)
        name = _name_in_clew(graph, node.name, reserved)
        op, target, given = (node.op, node.target, node.args) if state is None else ("get_attr", state, ())
        args, kwargs = map_aggregate(given, translate), map_aggregate(node.kwargs, translate)
        if target is operator.call and node.args[0] in held:
            target, *args = args
        twin = twins[node] = graph._append_exact(op, name, target, tuple(args), kwargs, node.type)
        _notes_from_fx(node, twin)
        if node.op == "output" and not checked and "guards" in node.meta.get(META_KEY, ()):
            inputs = {one.name: twins[one] for one in source.nodes if one.op == "placeholder"}
            checked += attached(node.meta[META_KEY]["guards"], inputs)
    if checked:
        graph.guards = tuple(checked)
    return graph


def _adopted(source: torch.fx.Graph) -> Graph:
    """The same graph for an interpreter of Clew's: what it notes of a node is noted of torch's node too."""
    graph = graph_from_fx(source)
    for node, twin in zip((node for node in source.nodes if not _is_beside(node)), graph.nodes, strict=True):
        object.__setattr__(twin, "_meta", node.meta)
    return graph


ADOPTERS[torch.fx.Graph] = _adopted


def _is_beside(node: torch.fx.Node) -> bool:
    """True for a node that only torch.fx needs."""
    return is_held(node) or _state_read(node) == ROOT or _checks_of(node) is not None


def _state_read(node: torch.fx.Node) -> Any:
    """The path of the attribute that a node stands for a read of; None for others."""
    return node.meta.get(META_KEY, {}).get("state")


def _checks_of(node: torch.fx.Node) -> GuardModule | None:
    """The part that a node calls, if it only checks guards on inputs of its graph."""
    part: Any = node.graph.owning_module if node.op == "call_module" else None
    for name in str(node.target).split("."):
        part = getattr(part, name, None)
    on_inputs = all(getattr(one, "op", None) == "placeholder" for one in node.args)
    return part if isinstance(part, GuardModule) and on_inputs else None


def is_held(node: torch.fx.Node) -> bool:
    """True for a node that reads an attribute which stands for an argument that torch.fx's code cannot write."""
    return node.op == "get_attr" and "held" in node.meta.get(META_KEY, ())


def _held_value(node: torch.fx.Node) -> Any:
    """That argument; a nested graph as it is now."""
    value, owner = node.meta[META_KEY]["held"], node.graph.owning_module
    body = getattr(owner, str(node.target), None) if isinstance(value, Graph) else None
    if isinstance(body, torch.fx.GraphModule):
        return graph_from_fx(body.graph)
    return copy.deepcopy(value) if isinstance(value, Graph) else value


class _RootFor(torch.nn.Module):
    """A module of torch.fx as the root of one of Clew, which finds in it what its nested graphs refer to, too."""

    def __init__(self, source: torch.fx.GraphModule) -> None:
        super().__init__()
        vars(self).update(vars(source))
        bodies = [getattr(source, str(node.target)) for node in source.graph.nodes if is_held(node)]
        vars(self)["_bodies"] = [body for body in bodies if isinstance(body, torch.fx.GraphModule)]

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            written = vars(self).get(ROOT)  # which is where state is kept
            for other in (*vars(self)["_bodies"], *([] if written is None else [written])):
                if hasattr(other, name):
                    return getattr(other, name)
            raise


def _drop_held(source: torch.fx.GraphModule, module: torch.nn.Module) -> None:
    """Take from the converted module the attributes that stood for arguments of nodes."""
    for node in source.graph.nodes:
        if is_held(node):
            vars(module).pop(str(node.target), None)
            module._modules.pop(str(node.target), None)
        elif _checks_of(node) is not None:
            module._modules.pop(str(node.target), None)


def _name_in_clew(graph: Graph, name: str, reserved: frozenset[str]) -> str:
    """The very same name, unless generated code could not bear it: then one like it."""
    usable = name.isidentifier() and name.isascii() and not keyword.iskeyword(name)
    if usable and name not in reserved and name not in graph._names:
        graph._names.reserve(name)
        return name
    graph._names.reserve(name)
    return graph._names.create_name(name)


def _builtins_in(source: torch.fx.Graph) -> frozenset[str]:
    """The names of Python's builtins that the code of a graph will write."""
    values = (value for node in source.nodes for value in (node.target, *leaves((node.args, node.kwargs))))
    names = (getattr(value, "__name__", None) for value in values if callable(value))
    return frozenset(name for name in names if isinstance(name, str) and hasattr(builtins, name))


def _notes_from_fx(node: torch.fx.Node, twin: Node) -> None:
    """Copy the notes of a node and take out of them what Clew keeps in fields of its own."""
    meta = dict(node.meta)
    record = dict(meta.pop(META_KEY, {}))
    source, value_type = record.get("source", _ABSENT), record.get("value_type", _ABSENT)
    if record.get("stack_trace_is_source"):
        meta.pop("stack_trace", None)
    put = object.__setattr__
    put(twin, "source", _source_in(meta) if source is _ABSENT else source)
    put(twin, "value_type", _type_in(meta) if value_type is _ABSENT else value_type)
    if twin.name != node.name and "name" not in record:
        meta[META_KEY] = {"name": node.name}
    if meta:
        put(twin, "_meta", meta)


_ABSENT = object()


def _source_in(meta: dict[str, Any]) -> SourceLine | None:
    """The innermost frame of a recorded stack."""
    frames = list(_FRAME.finditer(str(meta.get("stack_trace") or "")))
    if not frames:
        return None
    last = frames[-1]
    return SourceLine(last["file"], int(last["line"]), last["function"].strip())


def _type_in(meta: dict[str, Any]) -> Type | None:
    """The type of the example value that torch's own tools note."""
    return type_of(meta["val"]) if meta.get("val") is not None else None


def _tracer_from_fx(source: torch.fx.Graph) -> type | None:
    """The same class; torch's plain tracer becomes ours, and a class that nobody can import is left out."""
    kind = getattr(source, "_clew_tracer_cls", source._tracer_cls)
    if kind is torch.fx.Tracer:
        return Tracer
    return kind if kind is None or "<locals>" not in kind.__qualname__ else None


def _copied(extras: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if extras is None else dict(extras)


_EXPORT_HOOKS = "torch.export."


def _is_export_hook(hook: Any) -> bool:
    return (getattr(hook, "__module__", None) or "").startswith(_EXPORT_HOOKS)


def _refuse_export_hooks(source: torch.fx.GraphModule) -> None:
    """The module of an exported program checks its inputs in hooks, unless a node of the graph does it."""
    checked = any(node.op == "call_module" and node.target == "_guards_fn" for node in source.graph.nodes)
    if not checked and any(map(_is_export_hook, source._forward_pre_hooks.values())):
        raise InteropError(
            "this module is of an exported program, and checks its inputs in hooks that only torch.export can run",
            why="without the checks it would accept inputs that the program was not exported for",
            fixes=["clew.from_exported(program) instead of clew.from_fx(program.module())"],
        )


def _drop_checking_hooks(module: torch.nn.Module) -> None:
    for register in (module._forward_pre_hooks, module._forward_hooks):
        for key in [key for key, hook in register.items() if _is_export_hook(hook) or isinstance(hook, GuardHook)]:
            del register[key]
    with_names = module._forward_pre_hooks_with_kwargs
    for key in [key for key in with_names if key not in module._forward_pre_hooks]:
        del with_names[key]


# ---- to torch.fx -------------------------------------------------------------------------------------------------


def _module_of(root: Any) -> torch.nn.Module:
    """A module that has what the root of a captured function has: its constants, and the parts of the original."""
    if isinstance(root, torch.nn.Module):
        return root
    module = torch.nn.Module()
    share_rest(root._self, module)
    vars(module).update({name: value for name, value in vars(root).items() if name not in ("_self", "_state")})
    return module


def _module_to_fx(root: torch.nn.Module, source: Graph, name: str) -> torch.fx.GraphModule:
    """A module of torch.fx that shares all that the root has, and holds what code of torch.fx cannot write."""
    held: dict[str, Any] = {}
    graph = graph_to_fx(source, held)
    holder = torch.nn.Module()
    vars(holder).update({**vars(root), **held, ROOT: State(holder)})
    _read_where_written(graph, source)
    if source.guards.entry:
        checks = GuardModule(detached(source.guards.entry), source.find_nodes(op="placeholder"))
        vars(holder)["_modules"] = {**root._modules, GUARDS: checks}
        _call_first(graph, GUARDS)
    module = FxModule(holder, graph, name)
    share_rest(root, module)
    module._add_bodies(held, module)
    if source.guards.entry:
        checks.owner = (module,)
    return module


def _read_where_written(graph: torch.fx.Graph, source: Graph) -> None:
    """Let what the program writes to be read from the same object: another module of these nodes would read a copy."""
    writes = [node.args for node in all_nodes(source) if node.op == "call_function" and len(node.args) > 1]
    written = {args[1] for args in writes if getattr(args[0], "target", None) == ROOT and isinstance(args[1], str)}
    for node in [node for node in graph.nodes if node.op == "get_attr" and node.target in written]:
        with graph.inserting_before(node), warnings.catch_warnings(action="ignore"):  # it is there with the module
            state = graph.get_attr(ROOT)
            twin = graph.call_function(read_state, (state, node.target))
        state.meta[META_KEY] = {"state": ROOT}
        twin.meta.update({**node.meta, META_KEY: {**node.meta.get(META_KEY, {}), "state": node.target}})
        name, twin.type = node.name, node.type
        node.replace_all_uses_with(twin)
        graph.erase_node(node)
        _rename(graph, twin, name)


def _call_first(graph: torch.fx.Graph, target: str) -> None:
    """Begin a graph with a call that is given all inputs."""
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    first = next(node for node in graph.nodes if node.op != "placeholder")
    with graph.inserting_before(first), warnings.catch_warnings(action="ignore"):  # the part is there with the module
        graph.call_module(target, tuple(inputs))


class FxModule(torch.fx.GraphModule):
    """A module of torch.fx whose graph may have nested graphs, and nodes that write the module's own attributes.

    It is saved as Clew's, because torch.fx would trace the code again, and so run the functions of such nodes. The body
    of a branch or loop shares the children of its ``_owner`` and has no attributes of its own.
    """

    @property
    def _self(self) -> State:
        state: State = vars(self).setdefault("_state", State(vars(self).get("_owner") or self))
        return state

    @_self.setter
    def _self(self, value: Any) -> None:
        """A pass that makes such a module from another gives it the other's; its own is the right one."""

    def __getattr__(self, name: str) -> Any:
        owner = vars(self).get("_owner")
        if owner is None or name in self._modules:
            return super().__getattr__(name)
        return getattr(owner, name)

    def recompile(self) -> Any:
        """The code anew. What torch.fx's tracers cannot run on proxies is copied into their graphs, node by node."""
        code = super().recompile()
        if any(is_held(node) or node.target == GUARDS for node in self.graph.nodes):
            kind: Any = type(self)  # torch.fx makes a class for each module
            kind.forward = led_by(recorded, kind.forward)
        return code

    def _add_bodies(self, held: dict[str, Any], owner: torch.nn.Module) -> None:
        for name, body in held.items():
            if isinstance(body, Graph):
                vars(self).pop(name, None)
                self._modules[name] = _body_to_fx(owner, body, name)

    def __reduce__(self) -> tuple[Any, ...]:
        owner = vars(self).get("_owner")
        if owner is not None:
            return _body_to_fx, (owner, graph_from_fx(self.graph), type(self).__name__)
        return to_fx, (from_fx(self),)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        owner = vars(self).get("_owner")
        if owner is not None:
            twin: Any = _body_to_fx(copy.deepcopy(owner, memo), graph_from_fx(self.graph), type(self).__name__)
        elif any(is_held(node) or node.target == ROOT for node in self.graph.nodes):
            twin = to_fx(copy.deepcopy(from_fx(self), memo))
        else:
            twin = super().__deepcopy__(memo)
            for name in _CALL_HOOKS:
                vars(twin)[name] = copy.deepcopy(vars(self)[name], memo)
        memo[id(self)] = twin
        return twin


def _body_to_fx(owner: torch.nn.Module, source: Graph, name: str) -> FxModule:
    """A module for the body of a branch or loop of ``owner``."""
    held: dict[str, Any] = {}
    graph = graph_to_fx(source, held)
    holder = torch.nn.Module()
    vars(holder).update({**vars(owner), **held, ROOT: State(holder)})
    module = FxModule(holder, graph, name)
    children = {child: owner._modules[child] for child in module._modules if child in owner._modules}
    for register in (module._parameters, module._buffers, module._modules):
        register.clear()
    for path in {str(node.target) for node in graph.nodes if node.op == "get_attr" and not is_held(node)}:
        if path != "training":
            vars(module).pop(path, None)
    vars(module)["_owner"] = owner
    module._modules.update(children)
    module._add_bodies(held, owner)
    return module


_CALL_HOOKS = ("_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_forward_hooks", "_forward_hooks_with_kwargs",
               "_forward_hooks_always_called")  # fmt: skip


def graph_to_fx(source: Graph, held: dict[str, Any] | None = None) -> torch.fx.Graph:
    """A torch.fx graph with the same nodes. Arguments that its code could not write, classes among them, go to ``held``
    by the name of the attribute that stands for each; without it they stay arguments, of a graph that has no code."""
    graph = torch.fx.Graph(tracer_cls=_tracer_to_fx(source), tracer_extras=_copied(source._tracer_extras))
    if source._tracer_cls is not None:
        graph._clew_tracer_cls = source._tracer_cls  # type: ignore[attr-defined]
    codegen = codegen_to_torch(source._chosen_codegen)
    if codegen is not None:
        graph.set_codegen(codegen)
    twins: dict[Any, torch.fx.Node] = {}
    for node in source.nodes:
        hold = None if held is None else partial(_hold, graph, held)
        args, kwargs = _arguments_to_fx(node, twins, hold)
        _keep_effects(node)
        target = node.target
        if hold is not None and node.op == "call_function" and not _can_be_called_by_name(target):
            target, args = operator.call, (hold(target), *args)
        twin = twins[node] = graph.create_node(node.op, target, args, kwargs, node.name, node.type)
        _rename(graph, twin, (node._meta or {}).get(META_KEY, {}).get("name", node.name))
        _notes_to_fx(node, twin)
        if node.op == "output" and source.guards.entry:  # torch.fx has no place for them
            twin.meta.setdefault(META_KEY, {})["guards"] = detached(source.guards.entry)
    return graph


def _hold(graph: torch.fx.Graph, held: dict[str, Any], value: Any) -> torch.fx.Node:
    """A node for an object that becomes an attribute of the module, the same one at each use."""
    name = next((name for name, known in held.items() if known is value), f"_held_{len(held)}")
    held[name] = value
    with warnings.catch_warnings(action="ignore"):  # the attribute is there when the module is
        node = graph.get_attr(name)
    node.meta[META_KEY] = {"held": value}
    return node


def _can_be_called_by_name(target: Any) -> bool:
    """False for those functions that torch.fx's code would call by a name which is not theirs."""
    return not isinstance(target, (torch.jit.ScriptFunction, partial))


def _keep_effects(node: Node) -> None:
    """Let torch.fx's dead-code elimination keep Clew's own functions that are called for what they do, guards say."""
    if (
        node.op == "call_function"
        and str(getattr(node.target, "__module__", "")).partition(".")[0] == "clew"
        and node.is_impure()
    ):
        torch.fx.node.has_side_effect(node.target)


def _arguments_to_fx(
    node: Node, twins: dict[Any, torch.fx.Node], hold: Callable[[Any], torch.fx.Node] | None
) -> tuple[Any, Any]:
    def translate(leaf: Any) -> Any:
        if isinstance(leaf, Graph) and hold is None:
            raise InteropError(
                f"node {node.name} takes a nested graph as an argument, which torch.fx cannot hold",
                where="" if node.source is None else node.source.describe(),
                fixes=["convert the module or function that the graph is of, which can hold it"],
            )
        if hold is not None and not isinstance(leaf, (Node, *_WRITABLE)):
            return hold(leaf)
        return twins[leaf] if isinstance(leaf, Node) else leaf

    # torch.fx makes containers immutable by itself, but knows only Python's own.
    args = tuple(_plain(map_aggregate(argument, translate)) for argument in node.args)
    kwargs = {key: _plain(map_aggregate(value, translate)) for key, value in node.kwargs.items()}
    return args, kwargs


_WRITABLE = (str, bytes, int, float, complex, NoneType, EllipsisType, slice, range, enum.Enum, torch.dtype,
             torch.device, torch.layout, torch.memory_format, torch._ops.OpOverload,
             torch._ops.HigherOrderOperator)  # fmt: skip
"""What the code of torch.fx can write as an argument."""


def _plain(value: Any) -> Any:
    """The nest with Python's own lists and dicts in the place of immutable ones."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if type(value) is tuple:
        return tuple(_plain(item) for item in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_plain(item) for item in value))
    return value


def _rename(graph: torch.fx.Graph, node: torch.fx.Node, name: str) -> None:
    """Give a node its name even where torch.fx would choose another; its codegen is as it was before."""
    if node.name != name:
        graph._graph_namespace._rename_object(node, name)
        node.name = name


def _notes_to_fx(node: Node, twin: torch.fx.Node) -> None:
    """Copy the notes, and add those of Clew's own fields that torch's notes do not imply."""
    meta = {key: value for key, value in (node._meta or {}).items() if key != META_KEY}
    record: dict[str, Any] = {}
    if node.value_type != _type_in(meta):
        record["value_type"] = node.value_type
    if node.source != _source_in(meta):
        record["source"] = node.source
        if node.source is not None and "stack_trace" not in meta:
            meta["stack_trace"] = node.source.as_stack_trace()
            record["stack_trace_is_source"] = True
    twin.meta.clear()
    twin.meta.update(meta)
    if record:
        twin.meta[META_KEY] = record


def _tracer_to_fx(source: Graph) -> type | None:
    """A tracer that torch.fx can use; where it needs none, it uses its own."""
    kind = source._tracer_cls
    if kind is None or (isinstance(kind, type) and issubclass(kind, torch.fx.Tracer)):
        return kind
    return torch.fx.Tracer


# ---- nested calling conventions --------------------------------------------------------------------------------------


def codegen_from_torch(codegen: Any) -> CodeGen | None:
    """Our code generator for torch's; None for the plain one."""
    _refuse_transformer(codegen)
    if type(codegen) is torch.fx.CodeGen:
        return None
    if type(codegen) is not _PyTreeCodeGen:
        raise _foreign(codegen)
    if codegen.pytree_info is None:
        return None
    names, in_spec = _joined(codegen.pytree_info)
    ours = PyTreeCodeGen(PyTreeInfo(names, in_spec, spec_from_torch(codegen.pytree_info.out_spec)))
    ours.torch_info = codegen.pytree_info  # type: ignore[attr-defined]
    return ours


def codegen_to_torch(codegen: Any) -> Any:
    """torch's code generator for ours; None for the plain one."""
    _refuse_transformer(codegen)
    if codegen is None or type(codegen) is CodeGen:
        return None
    if type(codegen) is not PyTreeCodeGen:
        raise _foreign(codegen)
    info = codegen.pytree_info
    origin = getattr(codegen, "torch_info", None)
    if origin is not None and (list(info.orig_args), info.in_spec) == _joined(origin):
        return _PyTreeCodeGen(_PyTreeInfo(origin.orig_args, origin.in_spec, spec_to_torch(info.out_spec)))
    return _PyTreeCodeGen(_PyTreeInfo(list(info.orig_args), spec_to_torch(info.in_spec), spec_to_torch(info.out_spec)))


def _joined(info: Any) -> tuple[list[str], Any]:
    """The parameters and their structure as one tuple; torch may keep keywords apart: ``((x, y), {"z": z})``."""
    names, spec = list(info.orig_args), info.in_spec
    if not _has_keywords(spec):
        return names, spec_from_torch(spec)
    positional, keywords = spec.children()
    self_name = names[:1] if names[:1] == ["self"] else []
    count = len(self_name) + positional.num_children
    nest = (*_marks(positional), *_marks(keywords).values())
    return [*names[:count], *keywords.context], tree.flatten(nest)[1]


def _has_keywords(spec: Any) -> bool:
    if spec.type is not tuple or spec.num_children != 2:
        return False
    positional, keywords = spec.children()
    return positional.type is tuple and keywords.type is dict


def _marks(spec: Any) -> Any:
    """A nest of the structure; its leaves mean nothing."""
    return pytree.tree_unflatten([0] * spec.num_leaves, spec)


def spec_from_torch(spec: Any) -> Any:
    """Our structure for torch's; None stays None."""
    return None if spec is None else tree.flatten(_marks(spec))[1]


def spec_to_torch(spec: Any) -> Any:
    """torch's structure for ours; None stays None."""
    if spec is None:
        return None
    return pytree.tree_flatten(tree.unflatten([0] * spec.num_leaves, spec))[1]


def _refuse_transformer(codegen: Any) -> None:
    if getattr(codegen, "_body_transformer", None) is not None:
        raise InteropError(
            "a function that rewrites generated code is installed on this graph",
            why="it works on the text of one code generator, and the other writes other text",
            fixes=["leave the context of on_generate_code before converting"],
        )


def _foreign(codegen: Any) -> InteropError:
    return InteropError(
        f"the code generator {type(codegen).__name__} of this graph cannot be converted",
        why="it decides how the graph is called, so leaving it out would change the program",
        fixes=["set the plain code generator with set_codegen(CodeGen()), if the graph can be called without this one"],
    )


# ---- state shared with the module that was converted -----------------------------------------------------------------

_FRESH = frozenset(vars(torch.nn.Module()))
_HOOKS = tuple(name for name in _FRESH if "hooks" in name)
# What a graph module keeps for itself, ours or torch's.
_OWN = frozenset({"_graph", "_code", "_python_code", "_in_spec", "_out_spec", "_tracer_cls", "_tracer_extras", "meta"})


def share_rest(source: torch.nn.Module, target: torch.nn.Module) -> None:
    """Give ``target``, made from ``source``, everything that it did not take over."""
    share_registers(source, target)
    target.training = source.training
    for name in _HOOKS:
        getattr(target, name).update(getattr(source, name))
    target.meta = dict(getattr(source, "meta", {}))  # type: ignore[assignment]
    for name, value in vars(source).items():
        if name not in _FRESH and name not in _OWN and not name.startswith("_"):
            target.__dict__[name] = value


def share_registers(source: torch.nn.Module, target: torch.nn.Module) -> None:
    """Register parameters, buffers and submodules in ``target`` as they are in ``source``, in the same order."""
    for register in ("_parameters", "_buffers"):
        theirs = getattr(source, register)
        mine = {name: value for name, value in getattr(target, register).items() if name not in theirs}
        _replace(getattr(target, register), {**theirs, **mine})
    _unregister_plain_tensors(source, target)
    target._non_persistent_buffers_set = set(source._non_persistent_buffers_set)
    children = {name: _shared_child(child, target._modules.get(name)) for name, child in source._modules.items()}
    extra = {name: child for name, child in target._modules.items() if name not in children}
    _replace(target._modules, {**children, **extra})


def _replace(register: dict[str, Any], content: dict[str, Any]) -> None:
    register.clear()
    register.update(content)


def _unregister_plain_tensors(source: torch.nn.Module, target: torch.nn.Module) -> None:
    """A tensor that is a plain attribute of the source stays one."""
    for name in [name for name in target._buffers if name in vars(source)]:
        target.__dict__[name] = target._buffers.pop(name)


def _shared_child(child: Any, mine: Any) -> Any:
    """The child itself; where it only holds a path, a module of its own that holds the same."""
    if child is None or type(child) not in HOLDERS:
        return child
    if mine is None or mine is child:
        mine = torch.nn.Module()
    share_registers(child, mine)
    mine.__dict__.update({name: value for name, value in vars(child).items() if name not in _FRESH})
    return mine
