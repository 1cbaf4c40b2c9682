"""GraphModule: a graph as a ``torch.nn.Module`` with parameters, state, hooks and a generated ``forward``.

A root (a module, or a dict from paths to values) and a graph come in; what the graph refers to is taken over, shared
and not copied. The code follows the graph: an edit makes ``forward`` stale, and whoever next asks for it gets new
code. Importing this file imports torch.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import operator
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.modules.module import _global_module_registration_hooks as _registration_hooks
from torch.nn.modules.module import _has_any_global_hook

from clew.capture.current_capture import LOCK
from clew.codegen.python import PythonCode, PyTreeCodeGen
from clew.errors import GraphError, MissingAttribute
from clew.frameworks.torch.modules.state import ModulesAround
from clew.ir.arguments import all_nodes
from clew.ir.graph import Graph, Watchers
from clew.ir.guards import attribute_paths, leaves_of, referred_paths
from clew.ir.pickling import check_found
from clew.runtime.build import compile_function, note_origin
from clew.runtime.fast.bound import USUAL_LOOKUPS, bind, body_of, may_bind
from clew.runtime.fast.direct import Body, direct_call
from clew.runtime.folder import write_folder
from clew.runtime.function import (
    ASKING,
    OWN,
    PATIENCE,
    REBINDINGS,
    GraphFunction,
    HoldsGraph,
    Protection,
    Running,
    call_plainly,
    constants_in,
    free_name,
    let_go,
    start_asking,
    stop_asking,
)
from clew.runtime.interventions import active_for, run_intervened
from clew.runtime.package import reduce_for_package
from clew.runtime.parts import HOLDERS, OWNED, Part
from clew.runtime.torch_compile import ALIVE, READ_BY_COMPILER, Way, is_compiling, look, outside, prepared

GENERATED = "GraphModuleImpl"


class _StaleForward:
    """Stands for ``forward`` until somebody asks for it; then the code is made and takes its place."""

    def __init__(self, module: GraphModule) -> None:
        self.module = weakref.ref(module)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        module = instance if instance is not None else self.module()
        if module is None:
            raise AttributeError("the module of this generated class is gone")
        module.__dict__["_python_code"] = None  # while this stands for forward, any code is an old one
        module._made_code()
        return vars(_own_class(type(module)))["forward"].__get__(instance, owner)


BODY_ROOT: ContextVar[torch.nn.Module | None] = ContextVar("clew_body_root", default=None)
"""Where what only nested graphs refer to is found while a pass that knows of none builds modules of dicts."""

_DERIVED = ("_graph", "_python_code", "_early", "_example", "_running", "_calls", "_edition", READ_BY_COMPILER,
            "_variants", "_intervened")  # fmt: skip
"""Attributes that are not copied or saved: the graph is, by itself, and what follows from it is made anew."""
_FIRST: dict[str, Callable[[], Any]] = {"meta": dict, "_watchers": Watchers, "_deepcopy_hooks": list}
"""What each module has from the moment that it has a graph."""
_HOOK_LISTS = {"_create_node_hooks": "created", "_erase_node_hooks": "erased", "_replace_hooks": "replaced"}
"""torch.fx's names of the lists of hooks on single edits."""
OWN_ATTRIBUTES = frozenset({*_FIRST, *_DERIVED, OWNED, "_chosen_tracer"})
"""What each module keeps besides its parts."""


class GraphModule(HoldsGraph, torch.nn.Module):
    """A module generated from a graph."""

    if TYPE_CHECKING:  # torch.jit.script reads the annotations of a class
        meta: dict[str, Any]
        _watchers: Watchers
        _deepcopy_hooks: list[Callable[[Any], Any]]
    _all_buffers = True
    """Whether tensors that the root holds as plain attributes become buffers, as torch.fx has it."""

    __jit_unused_properties__ = ["graph", "code", "guards", "_code", "_tracer_cls", "_lineno_map", "_prologue_start",
                                 "_graph_alone"]  # fmt: skip

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        """Each instance has a class of its own, because ``forward`` is a function of the class."""
        base = base_class(cls)
        return super().__new__(type(GENERATED, (base,), {"__module__": base.__module__, GENERATED: True}))

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        _own_class(type(self)).__name__ = class_name
        if isinstance(root, torch.nn.Module):
            self.training = root.training
            kind, paths = type(self), referred_paths(graph)  # of which the class itself provides some
            paths = [path for path in paths if not isinstance(getattr(kind, path, None), property)]
            for path, value in _of_inner(graph, lambda path: has_path(root, path)).items():
                paths.remove(path)
                put_attribute(self, path, value)
            take_over(root, self, paths, self._all_buffers)
        elif isinstance(root, dict):
            self._take_from_dict({**_of_inner(graph, root.__contains__), **root}, graph)
        else:
            raise GraphError(
                f"Unsupported type {type(root).__name__} passed for root!",
                fixes=["give a torch.nn.Module, or a dict from dotted paths to values"],
            )
        self.meta = {}
        self.graph = graph

    def _take_from_dict(self, root: dict[str, Any], graph: Graph) -> None:
        for node in all_nodes(graph):
            if node.op in ("get_attr", "call_module") and node.target not in root:
                raise MissingAttribute(
                    f"Node {node} referenced target {node.target} but that target was not provided in ``root``!",
                    fixes=[f"add the key {node.target!r} to the dict"],
                )
        for path in sorted(referred_paths(graph), key=lambda path: path.count(".")):
            put_attribute(self, path, root[path])

    # ---- graph and code ------------------------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        """The graph, free to be edited: the code follows."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(graph)}")
        for name, make in _FIRST.items():  # a subclass may have skipped the constructor, as torch.fx allows
            if name not in self.__dict__:
                self.__dict__[name] = make()
        self._graph = graph
        graph.owning_module = self
        graph._watchers = self._watchers
        self._make_stale()

    @property
    def _tracer_cls(self) -> Any:
        return self.__dict__.get("_chosen_tracer", self._graph._tracer_cls)

    @_tracer_cls.setter
    def _tracer_cls(self, kind: Any) -> None:
        self.__dict__["_chosen_tracer"] = kind

    @property
    def _graph_alone(self) -> Graph | None:
        """The graph, where a call of the module does what its nodes do and nothing besides; None otherwise."""
        kind = base_class(type(self))
        is_plain = kind.__call__ is GraphModule.__call__ and "forward" not in vars(self) and not self._graph.guards
        hooks = (self._forward_hooks, self._forward_pre_hooks, self._backward_hooks, self._backward_pre_hooks)
        return self._graph if is_plain and not any(hooks) and not _has_any_global_hook() else None

    def _entered(self) -> tuple[inspect.Signature, Any]:
        return inspect.signature(self.forward), self

    @property
    def _code(self) -> str:
        return self.code

    @property
    def _lineno_map(self) -> Any:
        return self._made_code()._lineno_map

    @property
    def _prologue_start(self) -> int:
        return self._made_code()._prologue_start

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            way = prepared(id(self))
            if way == Way.LEAVE or self.__dict__["_edition"] < 0:  # a compiler notices that this has changed
                return outside(self, *args, **kwargs)
            if way == Way.LOOK:
                look(self)
            if way == Way.READ_INSIDE:
                return self._read_by_compiler(self, *args, **kwargs)
            return super().__call__(*args, **kwargs)
        _, bound, ready, protection = self.__dict__["_running"] or self._prepare()
        if ready is not None:
            is_ready = ready()
            if is_ready is False:
                self.__dict__["_running"] = None
            if not is_ready:
                bound = None
        try:
            if protection is None:
                return super().__call__(*args, **kwargs) if bound is None else bound(self, *args, **kwargs)
            with protection(args, kwargs):
                return super().__call__(*args, **kwargs) if bound is None else bound(self, *args, **kwargs)
        except Exception as error:
            self._note(error)
            raise

    def _note(self, error: Exception) -> None:
        """Tell where in the user's program an error has come from."""
        function = vars(_own_class(type(self)))["forward"]
        note_origin(error, type(self).__name__, self._graph, self.__dict__.get("_python_code"), function)

    def _prepare(self) -> Running:
        """How to call; after some calls it is kept, with code that is bound to this module if there can be such."""
        code = self._made_code()
        function = vars(_own_class(type(self)))["forward"]
        protection = self._protection()  # before the binding, which relies on what this module has then
        calls = self.__dict__["_calls"] + 1
        patience = 1 + len(self._graph.nodes) // PATIENCE
        if calls > patience and may_bind() and LOCK.acquire(blocking=False):  # else another thread is at it
            try:
                self.__dict__["_calls"] = calls
                return self._bind_to(code, function, protection, calls <= patience + REBINDINGS)
            finally:
                LOCK.release()
        self.__dict__["_calls"] = min(calls, patience)
        return function, None, None, protection

    def _bind_to(self, code: PythonCode, function: Any, protection: Protection | None, anew: bool) -> Running:
        """How to call from now on, by code that is bound ``anew`` or not at all."""
        bound = bind(self._graph, code, function, self) if anew else None
        running = (function, bound and bound.runs, bound and bound.ready, protection)
        self.__dict__["_running"] = running
        self._call_by(body_of(code, function, bound) if bound is not None and protection is None else None)
        return running

    def _call_by(self, body: Body | None) -> None:
        """Let this module be called in one step; or no more."""
        own = _own_class(type(self))
        if ASKING in vars(own):
            return
        if body is None or base_class(type(self)).__call__ is not GraphModule.__call__:
            call_plainly(own)
            return
        if OWN not in vars(own):
            setattr(own, OWN, True)
            weakref.finalize(self, let_go, weakref.ref(own)).atexit = False
        own.__call__ = direct_call(body, own.forward.__code__.co_filename, GraphModule.__call__, GraphModule._note)

    def _protection(self) -> Protection | None:
        """What has to surround each call."""
        return None

    # ---- interventions and surgery -------------------------------------------------------------------------------

    def _ask_interventions(self, asks: bool) -> None:
        own, code = _own_class(type(self)), self.__dict__.get("_python_code")
        if asks:
            start_asking(own, _call_intervened, code, self.__dict__["_running"])
            self.__dict__["forward"] = _IntervenedForward(self)  # which hooks on this module surround
        else:
            self.__dict__.pop("forward", None)
            self.__dict__["_running"] = stop_asking(own, code)

    def _with_graph(self, graph: Graph) -> Any:
        return GraphFunction(self, graph, type(self).__name__)

    def _part(self, graph: Graph, name: str) -> GraphModule:
        return base_class(type(self))(self, graph, name)  # type: ignore[no-any-return]

    def _container(self, parts: dict[str, Any], graph: Graph) -> GraphModule:
        made = GraphModule(parts, graph, type(self).__name__)
        made.training = self.training
        return made

    def _put_part(self, path: str, new: torch.nn.Module) -> str:
        """Let a module stand at a path of this one, in the order of the one before."""
        holder, _, name = path.rpartition(".")
        dict.__setitem__(self.get_submodule(holder)._modules, name, new)  # past what refuses it
        self._make_stale()
        return path

    def _add_part(self, name: str, new: torch.nn.Module) -> str:
        """Take a module as a part under a name like this, which comes out."""
        name = free_name(name, lambda taken: hasattr(self, taken))
        self.add_module(name, new)
        return name

    def _make_stale(self) -> None:
        edition = self.__dict__.get("_edition", 0) + 1
        self.__dict__.update({"_python_code": None, "_running": None, "_calls": 0, "_edition": edition})
        ALIVE[id(self)] = self
        call_plainly(_own_class(type(self)))
        _own_class(type(self)).forward = _StaleForward(self)

    def recompile(self) -> PythonCode:
        """The code of the graph; never needed, since edits are noticed, and harmless."""
        code: PythonCode | None = self.__dict__.get("_python_code")
        if code is None:
            codegen = self._graph._codegen
            if isinstance(codegen, PyTreeCodeGen):
                self._in_spec, self._out_spec = codegen.pytree_info.in_spec, codegen.pytree_info.out_spec
            code = self._graph.python_code("self")
            last = self._graph._root._prev
            function = compile_function(code, f"{type(self).__name__}.{code.name}", last.source)
            _own_class(type(self)).forward = function
            self.__dict__["_python_code"] = code
            this = weakref.ref(self)
            self._graph.on_change(lambda: _make_stale_if_alive(this))
        return code

    def __getattr__(self, name: str) -> Any:
        if name == "forward":  # a subclass of Module with a stale forward is asked through its class
            return type(self).forward.__get__(self, type(self))
        if name in _HOOK_LISTS:
            return getattr(self._watchers, _HOOK_LISTS[name])
        return super().__getattr__(name)

    # ---- hooks on single edits, in torch.fx's words -----------------------------------------------------------------

    def _register_create_node_hook(self, f: Callable[[Any], Any]) -> None:
        self._watchers.created.append(f)

    def _unregister_create_node_hook(self, f: Callable[[Any], Any]) -> None:
        self._watchers.created.remove(f)

    def _register_erase_node_hook(self, f: Callable[[Any], Any]) -> None:
        self._watchers.erased.append(f)

    def _unregister_erase_node_hook(self, f: Callable[[Any], Any]) -> None:
        self._watchers.erased.remove(f)

    def _register_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self._watchers.replaced.append(f)

    def _unregister_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self._watchers.replaced.remove(f)

    @contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    def _register_deepcopy_hook(self, f: Callable[[Any], Any]) -> None:
        self._deepcopy_hooks.append(f)

    def _unregister_deepcopy_hook(self, f: Callable[[Any], Any]) -> None:
        self._deepcopy_hooks.remove(f)

    # ---- submodules ----------------------------------------------------------------------------------------------

    def add_submodule(self, target: str, m: torch.nn.Module) -> bool:
        """Put ``m`` at the dotted path ``target``; False if something that is no module is in the way."""
        *path, name = target.split(".")
        holder: Any = self
        for atom in path:
            if not hasattr(holder, atom):
                setattr(holder, atom, torch.nn.Module())
            holder = getattr(holder, atom)
            if not isinstance(holder, torch.nn.Module):
                return False
        dict.__setitem__(holder._modules, name, m)  # past what refuses it, for the graph is about to call it
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the submodule at ``target``; False if there is none."""
        *path, name = target.split(".")
        holder: Any = self
        for atom in path:
            holder = getattr(holder, atom, None)
            if not isinstance(holder, torch.nn.Module):
                return False
        if not isinstance(getattr(holder, name, None), torch.nn.Module):
            return False
        if name in holder._modules:
            dict.__delitem__(holder._modules, name)  # past what refuses it
        else:
            delattr(holder, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove all submodules that no node calls or reads from."""
        used: set[str] = set()
        for node in all_nodes(self._graph):
            if node.op in ("call_module", "get_attr"):
                used.update(itertools.accumulate(node.target.split("."), lambda path, atom: f"{path}.{atom}"))
            if node.op == "call_module":
                called = _submodule(self, node.target)
                inner = called.named_modules() if called is not None else ()
                used.update(f"{node.target}.{path}" for path, _ in inner if path)
        for path in [path for path, _ in self.named_modules() if path and path not in used]:
            self.delete_submodule(path)

    # ---- printing and saving -------------------------------------------------------------------------------------

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        **options: Any,
    ) -> str:
        """The code as a class, with types and source lines as comments; also of nested graph modules.

        ``guards=True`` lists the assumptions first; ``types=False`` leaves types and lines out, ``modules=False`` the
        paths of modules.
        """
        shown = {"include_stride": include_stride, "include_device": include_device, "colored": colored, **options}
        text = _readable(self, type(self).__name__, shown)
        if print_output:
            print(text)
        return text

    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Write the module as a Python package: ``from folder import module_name`` gives it back."""
        write_folder(self, folder, module_name)

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.code}"

    def __copy__(self) -> GraphModule:
        twin: GraphModule = type(self).__new__(type(self))
        GraphModule.__init__(twin, self, self._graph, type(self).__name__)
        twin.meta = self.meta
        return twin

    def _replicate_for_data_parallel(self) -> GraphModule:
        twin = copy.copy(self)
        object.__setattr__(twin, "_is_replica", True)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        self._begin_copy(memo)
        graph = copy.deepcopy(self._graph, memo)
        state = {key: value for key, value in self.__dict__.items() if key not in _DERIVED}
        if isinstance(state.get("forward"), _IntervenedForward):
            del state["forward"]
        _restore(twin, copy.deepcopy(state, memo), graph, type(self).__name__)
        for hook in self._deepcopy_hooks:
            hook(twin)
        return twin

    def _begin_copy(self, memo: dict[int, Any]) -> None:
        """Note what a deep copy has in common with this module: constants, which a capture may write to, but for those
        that are the module's own. Guards follow what is copied."""
        owned = vars(self).get(OWNED, ())
        own = set(map(id, owned))
        for held in (vars(self), self._buffers, self._parameters):
            memo.update({id(value): value for value in constants_in(held) if id(value) not in own})
        copy.deepcopy(owned, memo)
        for leaf in (leaf for guard in self._graph._guards if owned for leaf in leaves_of(guard.subject)):
            if isinstance(leaf, ModulesAround):
                memo[id(leaf)] = copy.deepcopy(leaf, memo)

    def __reduce__(self) -> tuple[Any, ...]:
        # The state comes after the object, so that it may refer to the object itself.
        state = (self._state_to_save(), self._graph, type(self).__name__)
        return _bare, (base_class(type(self)),), state, None, None, _restore_from

    def __reduce_package__(self, exporter: Any) -> tuple[Any, ...]:
        return reduce_for_package(self, exporter, OWN_ATTRIBUTES)

    def _state_to_save(self) -> dict[str, Any]:
        """The attributes of the module that are saved with its graph."""
        left_out = (*_DERIVED, "_watchers", "_deepcopy_hooks")
        state = {key: value for key, value in self.__dict__.items() if key not in left_out}
        if isinstance(state.get("forward"), _IntervenedForward):
            del state["forward"]
        return {**state, "_modules": self._parts_to_save()}

    @classmethod
    def _from_saved(cls, state: dict[str, Any], graph: Graph, name: str) -> GraphModule:
        """A module from the state and the graph that were saved."""
        return _restore(_bare(cls), {"meta": {}, **state}, graph, name)

    def _restored(self) -> None:
        """Called when a copy, or what was saved, has its state."""

    def _parts_to_save(self) -> dict[str, Any]:
        """The children of the module, as they are saved."""
        return dict(self._modules)


USUAL_LOOKUPS.add(GraphModule.__getattr__)


def _call_intervened(self: GraphModule, /, *args: Any, **kwargs: Any) -> Any:
    usual: Any = torch.nn.Module if active_for(self) else base_class(type(self))
    return usual.__call__(self, *args, **kwargs)


class _IntervenedForward:
    """Stands for ``forward`` while there are interventions for a module."""

    def __init__(self, module: GraphModule) -> None:
        self._module = weakref.ref(module)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._usual)

    @property
    def _usual(self) -> Any:
        module: Any = self._module()
        return type(module).forward.__get__(module)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        module = self._module()
        active = active_for(module)
        if active and is_compiling():  # which would read how the copy of the graph is made
            return outside(run_intervened, module, active, args, kwargs)
        return run_intervened(module, active, args, kwargs) if active else self._usual(*args, **kwargs)


def _bare(kind: type[GraphModule]) -> GraphModule:
    return kind.__new__(kind)


def _restore_from(module: GraphModule, state: tuple[dict[str, Any], Graph, str]) -> None:
    check_found(state[1])
    _restore(module, *state)


def _restore(module: GraphModule, state: dict[str, Any], graph: Graph, name: str) -> GraphModule:
    """A bare instance filled with state and graph: nothing is traced or run."""
    torch.nn.Module.__init__(module)
    module.__dict__.update({"_watchers": Watchers(), "_deepcopy_hooks": [], **state})
    _own_class(type(module)).__name__ = name
    module.graph = graph
    module._restored()
    return module


def _make_stale_if_alive(reference: weakref.ref[GraphModule]) -> None:
    module = reference()
    if module is not None:
        module._make_stale()


def base_class(kind: type) -> Any:
    """The class as the user knows it, without the generated class of a single instance."""
    return _own_class(kind).__mro__[1] if hasattr(kind, GENERATED) else kind


def _own_class(kind: type) -> Any:
    """The class generated for one instance; tools such as parametrizations may have derived another from it."""
    return next(base for base in kind.__mro__ if GENERATED in vars(base))


def take_over(source: Any, target: Any, paths: Iterable[str], as_buffers: bool = True) -> None:
    """Share the attributes at these paths of ``source``, making empty modules on the way; ``as_buffers`` also those
    tensors that ``source`` holds as plain attributes."""
    reached: dict[str, tuple[Any, Any]] = {"": (source, target)}
    for path in paths:
        owner, _, name = path.rpartition(".")
        found, holder = reached[owner] if owner in reached else _reach(reached, owner)
        if found is holder:
            continue  # the whole parent is here already
        value = _attribute(found, name, path)
        if path in reached:
            reached[path] = (value, value)
        if type(holder) in HOLDERS and isinstance(value, torch.nn.Module) and not _registration_hooks:
            vars(holder)["_modules"][name] = value  # all that is left to do for a module made here
            continue
        if not as_buffers and isinstance(value, torch.Tensor) and not _is_registered(found, name):
            vars(holder)[name] = value  # ``.to()`` leaves it as it is, there and here
            continue
        persistent = name in getattr(found, "_buffers", ()) and name not in found._non_persistent_buffers_set
        put_attribute(holder, name, value, persistent)


def _is_registered(module: Any, name: str) -> bool:
    """Whether an attribute is a parameter or buffer of a module, or what a parametrization makes of one."""
    if not isinstance(module, torch.nn.Module):
        return False
    return name in module._parameters or name in module._buffers or name not in vars(module)


def _reach(reached: dict[str, tuple[Any, Any]], path: str) -> tuple[Any, Any]:
    """The module at a path of the source, and the one that stands for it, made here if need be; both are noted."""
    owner, _, name = path.rpartition(".")
    found, holder = reached[owner] if owner in reached else _reach(reached, owner)
    if found is not holder:
        outer, found = holder, _attribute(found, name, path)
        holder = vars(outer)["_modules"].get(name) if isinstance(outer, torch.nn.Module) else None
        if holder is None:
            holder = getattr(outer, name, None)
        if holder is None:
            holder = Part()
            holder.training = getattr(found, "training", True)
            setattr(outer, name, holder)
    else:
        found = holder = _attribute(found, name, path)
    reached[path] = (found, holder)
    return reached[path]


def _attribute(holder: Any, name: str, path: str) -> Any:
    found = getattr(holder, name, _MISSING)
    if found is _MISSING:
        raise MissingAttribute(
            f"the graph refers to {path!r}, which the root {type(holder).__name__} does not have",
            fixes=["give a root that has it, or correct the node's target"],
        )
    return found


_MISSING = object()


def put_attribute(module: Any, path: str, value: Any, persistent: bool = True) -> None:
    """Set the attribute at a dotted path; tensors that are no parameters become buffers.

    They are part of the state dict if they were in the original's: constants of a program are not.
    """
    *atoms, name = path.split(".")
    for atom in atoms:
        if getattr(module, atom, None) is None:
            setattr(module, atom, Part())
        module = getattr(module, atom)
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        if hasattr(module, name):
            delattr(module, name)
        module.register_buffer(name, value, persistent)
    else:
        setattr(module, name, value)


def _of_inner(graph: Graph, is_known: Callable[[str], bool]) -> dict[str, Any]:
    """What nested graphs and guards refer to by paths that are unknown, from where it is to be found now, if it is."""
    source = BODY_ROOT.get()
    if source is None:
        return {}
    inner = [node for node in all_nodes(graph) if node.graph is not graph and node.op in ("get_attr", "call_module")]
    paths = {*(str(node.target) for node in inner), *attribute_paths(graph.guards.entry)}
    wanted = [path for path in paths if not is_known(path)]
    return {path: operator.attrgetter(path)(source) for path in sorted(wanted) if has_path(source, path)}


def has_path(module: Any, path: str) -> bool:
    """Whether there is an attribute at a dotted path."""
    for atom in path.split("."):
        if not hasattr(module, atom):
            return False
        module = getattr(module, atom)
    return True


def _submodule(module: torch.nn.Module, path: str) -> torch.nn.Module | None:
    found: Any = module
    for atom in path.split("."):
        found = getattr(found, atom, None)
    return found if isinstance(found, torch.nn.Module) else None


def _readable(module: GraphModule, name: str, options: dict[str, Any]) -> str:
    options = {"verbose": options.get("types", True), "shown": True, "inline": module._inlines, **options}
    guards = [f"# {line}" for line in str(module.graph.guards).split("\n")] if options.pop("guards", False) else []
    code = module.graph.python_code("self", **options)
    source = [*guards, *code.src.rstrip("\n").split("\n")[code._prologue_start - 1 :]]
    lines = [f"class {name}(torch.nn.Module):", *(f"    {line}" if line else "" for line in source)]
    for child_name, child in module.named_children():
        if isinstance(child, GraphModule):
            nested = _readable(child, child_name, options)
            lines += ["", *(f"    {line}" if line else "" for line in nested.split("\n"))]
    return "\n".join(lines) + "\n"
