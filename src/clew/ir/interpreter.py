"""One interpreter for everything that walks a graph: evaluating, shapes, profiling, retargeting.

A module (anything with ``graph`` and the attributes that the graph names) comes in; ``run`` executes it node by node.
Override one of the six methods, named after the opcodes, to give the nodes another meaning. Values are dropped after
their last use. The loop knows no recursion, so graphs may be of any length.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from clew.errors import MissingAttribute, MissingInput
from clew.ir.arguments import FLAT, rebuilt_tuple
from clew.ir.graph import Graph
from clew.ir.guards import Guard, evaluate, guard, guard_of
from clew.ir.guests import note_keeper
from clew.ir.node import Node


class Interpreter:
    """Runs the graph of ``module``, or ``graph`` on the attributes of ``module``."""

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.graph: Graph = adopted(module.graph if graph is None else graph)
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.args_iter: Iterator[Any] = iter(())
        self.user_to_last_uses: dict[Node, list[Node]] = last_uses(self.graph.nodes) if garbage_collect_values else {}

    @property
    def submodules(self) -> dict[str, Any]:
        """The submodules of the module by path."""
        named = getattr(self.module, "named_modules", None)
        return dict(named()) if named is not None else {}

    def run(
        self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True, **kwargs: Any
    ) -> Any:
        """The result of the graph on ``args`` and named ones; nodes whose values ``initial_env`` has are not run."""
        self.env = initial_env if initial_env is not None else {}
        if kwargs:
            self.env |= self._named(len(args), kwargs)
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        with self._protection(args, kwargs) if enable_io_processing else nullcontext():
            value = self._run_all()
        return self.graph.process_outputs(value) if enable_io_processing else value

    def _protection(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AbstractContextManager[None]:
        """What a captured module puts around its calls, so that one whose guard fails leaves no mark."""
        find = getattr(type(self.module), "_protection", None)
        protection = find(self.module) if find is not None and self.graph is self.module.graph else None
        return nullcontext() if protection is None else protection(args, kwargs)

    def _run_all(self) -> Any:
        """What the output is given, after all nodes before it."""
        guards = (*self.graph._code_guards, *self.graph.guards.entry)
        for node in self.graph.nodes:
            if guards and node.op != "placeholder":
                self._check(guards)
                guards = ()
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except BaseException as error:
                self._leave_blocks(error, node)
                if isinstance(error, Exception):
                    self._add_note(error, node)
                raise
            if node in self.user_to_last_uses:
                for used in self.user_to_last_uses[node]:
                    self.env.pop(used, None)
            if node.op == "output":
                return self.env[node]
        return None

    def _leave_blocks(self, error: BaseException, failed: Node) -> None:
        """Leave the ``with`` blocks around a node that has failed, from the innermost outwards."""
        around: list[Node] = []
        for node in self.graph.nodes:
            if node is failed:
                break
            manager = node.args[0] if node.op == "call_method" and node.args else None
            if not isinstance(manager, Node):
                continue
            if node.target == "__enter__" and any(user.target == "__exit__" for user in manager.users):
                around.append(manager)
            elif node.target == "__exit__" and manager in around:
                del around[around.index(manager) :]
        for manager in reversed([node for node in around if node in self.env]):
            self.env[manager].__exit__(type(error), error, error.__traceback__)

    def _check(self, guards: tuple[Guard, ...]) -> None:
        """Raise unless the guards of the graph hold for the inputs."""
        root = self.module if isinstance(getattr(self.module, "graph", None), Graph) else None
        root = getattr(self.module, "root", self.module) if root is not None else self.module
        for one in guards:
            one.require(evaluate(one.subject, self.env, root))

    def _named(self, count: int, kwargs: dict[str, Any]) -> dict[Node, Any]:
        """The values of the inputs that are passed by name, behind ``count`` others; ``**`` gathers unknown names."""
        inputs = {str(node.target): node for node in self.graph.find_nodes(op="placeholder")}
        others = {name: value for name, value in kwargs.items() if name not in inputs}
        found: dict[Node, Any] = {inputs[name]: value for name, value in kwargs.items() if name in inputs}
        for name in [name for name in list(inputs)[:count] if name in kwargs]:
            raise MissingInput(f"the input {name!r} is passed twice", fixes=["pass it by position or by name"])
        for node in [node for name, node in inputs.items() if name.startswith("**")]:
            found[node], others = others, {}
        if others:
            known = ", ".join(inputs)
            raise MissingInput(f"the graph has no input {next(iter(others))!r}", fixes=[f"its inputs are {known}"])
        return found

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Like ``run`` on the items of ``args_list``, which is emptied so that inputs can be freed early."""
        inputs = self.graph.find_nodes(op="placeholder")
        if len(inputs) != len(args_list):
            kind = "missing" if len(args_list) < len(inputs) else "extra"
            raise MissingInput(
                f"boxed_run got {kind} arguments: the graph takes {len(inputs)}, the list has {len(args_list)}"
            )
        initial = dict(zip(inputs, args_list, strict=True))
        args_list.clear()
        return self.run(initial_env=initial)

    def _add_note(self, error: Exception, node: Node) -> None:
        """Let an error say which node it comes from."""
        if self.extra_traceback:
            place = f"\n  from {node.source.describe()}" if node.source is not None else ""
            error.add_note(f"While executing {node.format_node()}{place}")

    def run_node(self, n: Node) -> Any:
        """The value of one node: its arguments are fetched, then the method of its opcode is called."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        if n.target is guard:
            guard_of(n).require(args[0])
            return None
        keeper = note_keeper()
        if keeper is None:
            return getattr(self, n.op)(n.target, args, kwargs)
        with keeper.noting(n, f"Interpreter_{type(self).__name__}"):
            return getattr(self, n.op)(n.target, args, kwargs)

    # ---- the six methods -----------------------------------------------------------------------------------------

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next argument; all that are left for ``*args``, none for ``**kwargs``; the default if none is left."""
        if target.startswith("*"):
            return {} if target.startswith("**") else tuple(self.args_iter)
        value = next(self.args_iter, inspect.Signature.empty)
        if value is not inspect.Signature.empty:
            return value
        if args:
            return args[0]
        raise MissingInput(
            f"Expected positional argument for parameter {target}, but one was not passed in!",
            fixes=["pass one value for each placeholder, in order"],
        )

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The attribute of the module at the path ``target``."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function's result."""
        return target(*args, **kwargs) if kwargs else target(*args)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of the method of the first argument."""
        receiver, *rest = args
        return getattr(receiver, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of the submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the graph returns."""
        return args[0]

    def body(self, graph: Graph) -> Any:
        """What a node hands over for a nested graph: a function that interprets it likewise, on the same root."""

        uses = last_uses(graph.nodes) if self.garbage_collect_values else {}

        def run_body(*args: Any, **kwargs: Any) -> Any:
            inner = copy.copy(self)
            inner.graph = graph
            inner.user_to_last_uses = uses
            named = {node: kwargs[node.target] for node in graph.find_nodes(op="placeholder") if node.target in kwargs}
            return Interpreter.run(inner, *args, initial_env=named, enable_io_processing=False)

        return run_body

    # ---- helpers for those who override --------------------------------------------------------------------------

    def fetch_attr(self, target: str) -> Any:
        """The attribute of the module at a dotted path; a captured function keeps its attributes in its root."""
        atoms = target.split(".")
        found = self.module if hasattr(self.module, atoms[0]) else getattr(self.module, "root", self.module)
        for depth, atom in enumerate(atoms):
            if not hasattr(found, atom):
                raise MissingAttribute(
                    f"Node referenced nonexistent target {'.'.join(atoms[: depth + 1])}",
                    fixes=["add the attribute to the module that the graph runs on"],
                )
            found = getattr(found, atom)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a node with values in the place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n) if n.kwargs else {}

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """A nest with values in the place of nodes; its lists and dicts are plain ones, as in generated code."""
        if type(args) is tuple:  # flat in the great majority of nodes
            env = self.env
            values = []
            for item in args:
                kind = type(item)
                if kind is Node and item in env:
                    values.append(env[item])
                elif kind is not Node and kind in FLAT:
                    values.append(item)
                else:
                    break
            else:
                return tuple(values)
        if isinstance(args, Node):
            if args not in self.env:
                raise MissingAttribute(f"Node {n} referenced nonexistent value {args}!", fixes=["run graph.lint()"])
            return self.env[args]
        if isinstance(args, tuple):
            return rebuilt_tuple(args, [self.map_nodes_to_values(item, n) for item in args])
        if isinstance(args, list):
            return [self.map_nodes_to_values(item, n) for item in args]
        if isinstance(args, dict):
            return {key: self.map_nodes_to_values(value, n) for key, value in args.items()}
        if isinstance(args, slice):
            return slice(*(self.map_nodes_to_values(part, n) for part in (args.start, args.stop, args.step)))
        # The default of a parameter is a value, no body.
        return self.body(args) if isinstance(args, Graph) and n.op != "placeholder" else args


ADOPTERS: dict[type, Callable[[Any], Graph]] = {}
"""Classes of graphs of others, and what makes one of ours of such a graph, whose nodes share the notes of the other's.
"""


def adopted(graph: Any) -> Graph:
    """The graph, or one of ours for a graph of others."""
    adopt = None if isinstance(graph, Graph) else next(filter(None, map(ADOPTERS.get, type(graph).__mro__)), None)
    found: Graph = graph if adopt is None else adopt(graph)
    return found


def last_uses(nodes: Any) -> dict[Node, list[Node]]:
    """For each node the values that nobody needs after it has run."""
    seen: set[Node] = set()
    frees: dict[Node, list[Node]] = {}
    for node in reversed(nodes):
        for used in node._inputs:
            if used not in seen:
                seen.add(used)
                if node in frees:
                    frees[node].append(used)
                else:
                    frees[node] = [used]
    return frees
