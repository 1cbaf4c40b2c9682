"""GraphFunction: a graph, the object that holds its attributes, and the generated code, callable.

It knows no framework. After an edit of the graph the next call, or the next look at ``code``, uses new code. From the
second call on a framework may run code that is bound to the root (``_bind``), for as long as that does the same.
``entrance_test`` makes the test of a graph's guards, which runs nothing of the program; ``first_failing`` names the
guard that fails. ``PlainCapture`` is the capture of a function whose framework has no modules.
"""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import itertools
import os
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from clew.capture.captured import CONSTANT
from clew.capture.current_capture import LOCK
from clew.codegen.python import CodeGen, PythonCode
from clew.errors import ClewError
from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.guards import Guard, Guards, evaluate
from clew.ir.module_calls import node_of
from clew.ir.pickling import check_found
from clew.runtime.build import compile_function, note_origin
from clew.runtime.fast.direct import Body, direct_call
from clew.runtime.fast.module_fingerprint import Fingerprint
from clew.runtime.interventions import Intervening, active_for, run_intervened
from clew.runtime.surgery import insert_after, replace_module, wrap_module

# ---- graph functions -------------------------------------------------------------------------------------------------


Protection = Callable[[tuple[Any, ...], dict[str, Any]], AbstractContextManager[None]]
REBINDINGS = 4
"""How often code is bound anew where what it relied on has changed; then the plain code runs."""
PATIENCE = 500
"""For so many nodes a graph has to be called once more until its code is bound: that takes longer than a call."""
_STANDALONE = "clew.runtime.standalone"  # few programs are written out, so it waits until one is
OWN = "_clew_own_class"
"""Marks the class of a single object."""
ASKING = "_clew_asks_interventions"
"""Marks the class of a single object whose calls ask for interventions: has what stood for its calls before."""

Code = Callable[..., Any]

Running = tuple[Code, Code | None, Callable[[], bool | None] | None, Protection | None]
"""How calls are made while the graph stays as it is: plain code; code that is bound to the root; whether that may run,
None if not now, False if no more; what surrounds a call that may have to be undone. Each call takes it apart, so it is
a plain tuple."""


class _OriginalSignature:
    """The parameters of the original, for a captured function; its class has those of ``__init__``."""

    def __get__(self, captured: GraphFunction | None, kind: type) -> inspect.Signature:
        if captured is None:
            raise AttributeError("__signature__")
        found = inspect.signature(captured._compile()[1])
        return found.replace(parameters=list(found.parameters.values())[1:])


_Method = TypeVar("_Method", bound=Callable[..., Any])


class _GivesWay:
    """A method that gives way to a part of the module which has its name: the program means the part."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        functools.update_wrapper(self, method)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.method(*args, **kwargs)

    def __get__(self, holder: Any, kind: type | None = None) -> Any:
        held = {} if holder is None else vars(holder)
        for table in ("_modules", "_parameters", "_buffers"):
            if self.method.__name__ in held.get(table, ()):
                return held[table][self.method.__name__]
        return self.method.__get__(holder, kind)


def gives_way(method: _Method) -> _Method:
    """Mark a method as one that gives way to a part of the same name."""
    return cast(_Method, _GivesWay(method))


class HoldsGraph(Intervening):
    """What functions and modules of graphs show of their graph."""

    if TYPE_CHECKING:  # torch.jit reads the annotations of modules' classes, and knows no graph
        _graph: Graph
        recompile: Callable[[], PythonCode]

    _inlines = False
    """Whether the code that is shown writes short values where they are used: in captures, not in graphs of torch.fx's
    kind, where people look for one line a node."""

    @property
    def code(self) -> str:
        """The program as Python, for reading; what runs also checks the guards, and frees values early."""
        return str(self._graph.python_code("self", shown=True, inline=self._inlines).src)

    def _made_code(self) -> PythonCode:
        """The code, for those who need it now; ``recompile`` of a subclass may only note that it is wanted."""
        return self.recompile()

    def keep_plans(self) -> None:
        """Keep to what has to be undone after a failed guard as the graph is now; a back end changes its nodes next."""

    @property
    def guards(self) -> Guards:
        """The assumptions: those checked before the program runs, then those on values that it computes."""
        return self._graph.guards

    @gives_way
    def view(self, path: Any = None, **options: Any) -> Any:
        """The program as a picture, written to a file if a path is given: ``clew.view``."""
        if Graph.viewer is None:
            raise ClewError("no room that draws graphs is loaded", fixes=["import clew"])
        return Graph.viewer(self, path, **options)

    def _repr_html_(self) -> str:
        return str(HoldsGraph.view(self)._repr_html_())

    @gives_way
    def to_python(self, folder: str | os.PathLike[str], *, guards: bool = True) -> None:
        """Write the program to a folder as Python that runs without Clew: ``model.py`` with ``load()``, and the weights
        as safetensors. Guards become plain asserts; with ``guards=False`` they are left out."""
        importlib.import_module(_STANDALONE).to_python(self, folder, guards=guards)

    @gives_way
    def node_of(self, path: str, call: int = 1) -> Any:
        """The node of what the module at ``path`` returned in its first call, or in another one; a tuple, list or dict
        of nodes if it returned such."""
        return node_of(self._graph, path, call)

    @gives_way
    def insert_after(
        self, path: str, function: Callable[..., Any], call: int | None = None, name: str | None = None
    ) -> str | None:
        """Let what the module at ``path`` returns go through a function, or through a module: that becomes a part of
        this one, whose name comes out."""
        return insert_after(self, path, function, call, name)

    @gives_way
    def replace_module(self, path: str, new: Any) -> None:
        """Let another module stand at ``path``, called as the one before."""
        replace_module(self, path, new)

    @gives_way
    def wrap_module(self, path: str, wrapper: Callable[[Any], Any]) -> Any:
        """Replace the module at ``path`` by ``wrapper(module)``, which comes out."""
        return wrap_module(self, path, wrapper)

    def _part(self, graph: Graph, name: str) -> Any:
        """A graph that was cut out of this one's as a program of the same kind."""
        raise NotImplementedError

    def _container(self, parts: dict[str, Any], graph: Graph) -> Any:
        """A graph over programs that were cut out of this one's."""
        raise NotImplementedError

    @gives_way
    def check(self, /, *args: Any, **kwargs: Any) -> Guard | None:
        """The first guard that does not hold for a call with these arguments, of those that are checked before the
        program runs; None if all hold."""
        return first_failing(self._graph, *self._entered(), args, kwargs)

    def _entered(self) -> tuple[inspect.Signature, Any]:
        """The parameters of a call, without the object itself, and what the graph's attributes are found in."""
        raise NotImplementedError


class GraphFunction(HoldsGraph):
    """A captured function. Call it like the original; edit its ``graph``; read its ``code``."""

    def __init__(self, root: Any, graph: Graph, name: str = "graph") -> None:
        self.root = root
        self._graph = graph
        self.__name__ = name
        self._compiled: tuple[PythonCode, FunctionType] | None = None
        self._running: Running | None = None
        self._calls = 0
        self._bindings = 0
        self._entrance: tuple[Callable[..., bool] | None] | None = None
        self._read_by_compiler: FunctionType | None = None
        graph.owning_module = root

    @property
    def graph(self) -> Graph:
        """The graph, free to be edited."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        self._graph = graph
        graph.owning_module = self.root
        self._forget()

    def _entered(self) -> tuple[inspect.Signature, Any]:
        return self.__signature__, self.root

    def recompile(self) -> PythonCode:
        """The code of the graph as it is now; made anew only if the graph has changed."""
        return self._compile()[0]

    def _compile(self) -> tuple[PythonCode, FunctionType]:
        compiled = self._compiled
        if compiled is None:
            code = self._graph.python_code("self")
            compiled = (code, compile_function(code, self.__name__, self._graph._root._prev.source))
            self._compiled = compiled  # both at once: another thread may be calling
            self._graph.on_change(self._forget)
        return compiled

    __signature__ = _OriginalSignature()

    def _forget(self) -> None:
        self._compiled = self._running = self._entrance = self._read_by_compiler = None
        self._calls = self._bindings = 0
        self._call_by(None)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        function, bound, ready, protection = self._running or self._prepare()
        if ready is not None:
            is_ready = ready()
            if is_ready:
                function = bound or function
            elif is_ready is False:
                self._running = None
        try:
            if protection is None:
                return function(self.root, *args, **kwargs) if kwargs else function(self.root, *args)
            with protection(args, kwargs):
                return function(self.root, *args, **kwargs)
        except Exception as error:
            self._note(error)
            raise

    def _note(self, error: Exception) -> None:
        """Tell where in the user's program an error has come from."""
        if self._compiled is not None:
            code, function = self._compiled
            note_origin(error, self.__name__, self._graph, code, function)

    def _may_fit(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """A quick look at the guards at the entrance: false where a call would probably fail, true where it may not."""
        entrance = self._entrance
        if entrance is None:
            entrance = self._entrance = (entrance_test(self._graph),)
        test = entrance[0]
        try:
            return test is None or test(self.root, *args, **kwargs)
        except Exception:  # the call itself will say what is wrong with these arguments
            return True

    def _prepare(self) -> Running:
        """How to call; after some calls it is kept, with code that is bound to the root if there can be such."""
        code, function = self._compile()
        protection = self._protection()
        self._calls += 1
        is_late = self._calls > 1 + len(self._graph.nodes) // PATIENCE
        if is_late and self._may_bind() and LOCK.acquire(blocking=False):  # else another thread is at it
            try:
                return self._bind_to(code, function, protection)
            finally:
                LOCK.release()
        return function, None, None, protection

    def _bind_to(self, code: PythonCode, function: FunctionType, protection: Protection | None) -> Running:
        """How to call from now on."""
        bound = None
        if self._bindings < REBINDINGS:
            self._bindings += 1
            bound = self._bind(code, function)
        running = self._running = (function, bound and bound.runs, bound and bound.ready, protection)
        body = self._body(code, function, bound) if protection is None else None
        general = base_class(type(self)).__call__
        self._call_by(body and direct_call(body, function.__code__.co_filename, general, _note, "root"))
        return running

    def _may_bind(self) -> bool:
        """Whether this is a good moment."""
        return True

    def _bind(self, code: PythonCode, function: FunctionType) -> Any:
        """Code that is bound to the root and does the same, if the framework of the root has such."""
        return None

    def _body(self, code: PythonCode, function: FunctionType, bound: Any) -> Body | None:
        """What a call in one step may run, if the framework of the root knows when it may."""
        return None

    def _call_by(self, function: FunctionType | None) -> None:
        """Let this object, by a class of its own, be called in one step; or no more."""
        kind: Any = type(self)
        if ASKING in vars(kind):
            return
        if function is not None and base_class(kind).__call__ in STEPS:
            self._own_class().__call__ = function
        else:
            call_plainly(kind)

    def _own_class(self) -> Any:
        """The class of this object alone."""
        kind: Any = type(self)
        if kind is base_class(kind):
            kind = type(kind.__name__, (kind,), {"__module__": kind.__module__, OWN: True})
            weakref.finalize(self, let_go, weakref.ref(kind)).atexit = False
            self.__class__ = kind
        return kind

    def _ask_interventions(self, asks: bool) -> None:
        if asks:
            start_asking(self._own_class(), _call_intervened, self._compiled, self._running)
        else:
            self._running = stop_asking(self._own_class(), self._compiled)

    def _with_graph(self, graph: Graph) -> GraphFunction:
        return base_class(type(self))(self.root, graph, self.__name__)  # type: ignore[no-any-return]

    def _part(self, graph: Graph, name: str) -> GraphFunction:
        made = self._with_graph(graph)
        made.__name__ = name
        return made

    def _container(self, parts: dict[str, Any], graph: Graph) -> GraphFunction:
        return GraphFunction(SimpleNamespace(**parts), graph, self.__name__)

    def _put_part(self, path: str, new: Any) -> str:
        """The original keeps its modules; what stands for one of them is kept beside it."""
        return self._add_part(path, new)

    def _add_part(self, name: str, new: Any) -> str:
        """Keep a module in the root under a name like this, which comes out."""
        name = free_name(name, lambda taken: hasattr(self.root, taken))
        vars(self.root)[name] = new
        return name

    def _protection(self) -> Protection | None:
        """What has to surround each call."""
        return None

    def _rely_on(self, fingerprint: Fingerprint) -> bool:
        """Refuse calls from now on where the original is no longer as it stood; False if somebody else has to ask."""
        return False

    def get_parameter(self, path: str) -> Any:
        """The attribute of the root at a dotted path."""
        return resolve(self.root, path)

    def __repr__(self) -> str:
        return f"GraphFunction({self.__name__}, {len(self._graph.nodes)} nodes)"

    def __str__(self) -> str:
        return f"{self.__name__}: {self._graph}"

    def __getstate__(self) -> dict[str, Any]:
        return {"root": self.root, "graph": self._graph, "name": self.__name__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        check_found(state["graph"])
        GraphFunction.__init__(self, state["root"], state["graph"], state["name"])

    def __reduce__(self) -> tuple[Any, ...]:
        return _bare, (base_class(type(self)),), self.__getstate__()

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphFunction:
        twin = _bare(base_class(type(self)))
        memo[id(self)] = twin
        memo.update({id(value): value for value in constants_in(getattr(self.root, "__dict__", {}))})
        twin.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return twin


def constants_in(attributes: dict[str, Any]) -> list[Any]:
    """The constants of a capture among some attributes, which its copies share: those that the program reads around
    itself, and may write to, are no others for a copy of the program."""
    return [value for name, value in attributes.items() if name.startswith(CONSTANT)]


STEPS: set[Any] = {GraphFunction.__call__}
"""The ways to call that a call in one step may stand for."""


def base_class(kind: type) -> Any:
    """The class as the user knows it, without the one that a single object has for its calls."""
    return kind.__mro__[1] if OWN in vars(kind) else kind


def _bare(kind: type[GraphFunction]) -> GraphFunction:
    return kind.__new__(kind)


def _note(callee: GraphFunction, error: Exception) -> None:
    callee._note(error)


def free_name(wanted: str, is_taken: Callable[[str], bool]) -> str:
    """An identifier like ``wanted`` that is not taken."""
    name = "".join(letter if letter.isidentifier() or letter.isdigit() else "_" for letter in wanted).strip("_")
    name = name if name.isidentifier() else f"part_{name}"
    others = (f"{name}_{number}" for number in itertools.count(2))
    return next(one for one in itertools.chain([name], others) if not is_taken(one))


def _call_intervened(self: GraphFunction, /, *args: Any, **kwargs: Any) -> Any:
    active = active_for(self)
    if active:
        return run_intervened(self, active, args, kwargs)
    return base_class(type(self)).__call__(self, *args, **kwargs)


def start_asking(kind: Any, call: Callable[..., Any], state: object, running: Running | None) -> None:
    """Let the object of a class of its own be called by a function that asks for interventions.

    It is called as before, by what is ``running``, once that is over, unless its ``state`` is another one then.
    """
    setattr(kind, ASKING, (vars(kind).get("__call__"), state, running))
    kind.__call__ = call


def stop_asking(kind: Any, state: object) -> Running | None:
    """Let it be called as before; what was running then comes out, or None if that is over."""
    before, then, running = vars(kind)[ASKING]
    delattr(kind, ASKING)
    del kind.__call__
    if then is not state:
        return None
    if before is not None:
        kind.__call__ = before
    return running  # type: ignore[no-any-return]


def call_plainly(kind: Any) -> None:
    """Take the call in one step from the class of a single object: such a class is collected long after the object."""
    if ASKING in vars(kind):
        return
    if OWN in vars(kind) and "__call__" in vars(kind):
        del kind.__call__


def let_go(reference: weakref.ref[Any]) -> None:
    """The same for an object that is gone; what its call holds must not be held from here."""
    kind = reference()
    if kind is not None:
        call_plainly(kind)


class PlainCapture(GraphFunction):
    """A function captured from an example, of a framework that has no modules."""

    _inlines = True


# ---- guards at the entrance ------------------------------------------------------------------------------------------


def entrance_test(graph: Graph) -> Callable[..., bool] | None:
    """The test of the guards of a graph; None if it has none, or if its inputs come by a way of their own."""
    if not graph._guards or type(graph._codegen) is not CodeGen:
        return None
    code = graph._codegen.check_code(graph)
    names: dict[str, Any] = dict(code.globals)
    exec(compile(code.src, "<clew check>", "exec", dont_inherit=True), names)
    found: Callable[..., bool] = names[code.name]
    return found


def first_failing(
    graph: Graph, signature: inspect.Signature, root: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Guard | None:
    """The first guard of a graph that does not hold for these arguments."""
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    inputs = {node: bound.arguments[str(node.target).lstrip("*")] for node in graph.find_nodes(op="placeholder")}
    for one in (*graph._code_guards, *graph._guards):
        if not _holds(one, inputs, root):
            return one
    return None


def _holds(one: Guard, inputs: dict[Any, Any], root: Any) -> bool:
    try:
        return one.holds(evaluate(one.subject, inputs, root))
    except ClewError:
        raise
    except Exception:  # a value of another kind has no such fact to tell
        return False
