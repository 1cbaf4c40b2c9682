"""Decomposition: a captured torch module as one of core ATen operators, for back ends that know only these.

A captured module and an example call come in; out comes a new module, of the same parameters, buffers and call, whose
graph torch's exporter has made of the captured code; the capture itself stays as it is. ``operators`` is a table of
decompositions of torch's. The guards of the capture that are about its inputs are guards of the result; the sizes of
the example are its sizes, unless ``dynamic_shapes``, as for ``torch.export``, says otherwise, and torch checks them.
Where torch's exporter meets a branch or loop on what arrays hold, the way of the example is taken, and guarded.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo.exc import UserError
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from clew.errors import GraphError, InteropError, a_or_an
from clew.frameworks.torch.tracing_tools import is_tracer
from clew.io.exported import from_exported
from clew.ir.arguments import rebuilt_tuple
from clew.ir.control_flow import cond, for_loop, is_control, while_loop
from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.guards import Attribute, Guard, guard, guard_of, is_guard
from clew.ir.interpreter import Interpreter
from clew.ir.node import Node
from clew.ir.source import SourceLine
from clew.passes.program import graph_in
from clew.passes.remove_prints import remove_prints
from clew.tools.compare_torch import calls_of
from clew.tools.interpreters import copied
from clew.tools.snapshots import ProgramState

_ASKING = (GuardOnDataDependentSymNode, UserError, DataDependentOutputException)
"""What torch's exporter raises where a program asks what a tensor holds."""


def decompose(
    program: Any,
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    operators: Any = None,
) -> Any:
    """A module that does what the captured module does, in core ATen operators.

    Without ``args`` and ``kwargs`` the example of the capture is used, as long as its arrays are still there.
    """
    if not isinstance(program, torch.nn.Module):
        raise GraphError(
            f"{a_or_an(program)} cannot be decomposed",
            why="torch exports modules",
            fixes=["capture a module: clew.trace(module, args)"],
        )
    graph = graph_in(program)
    if args is None and kwargs is None:
        args, kwargs = calls_of(None, program)[0]
    args = args or ()
    checks: dict[str, Node] = {}
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):  # torch prints what it has so far when it comes to a question
            exported = _exported(program, graph, args, kwargs, dynamic_shapes, operators)
    except _ASKING:
        line, asked = _straight_line(program, args, kwargs or {})
        checks = {f"guard {number} of Clew": one for number, one in enumerate(asked)}
        for message, check in checks.items():
            with line.inserting_before(check):
                line.call_function(torch._assert_async, (check.args[0], message))
            line.erase_node(check)
        exported = _exported(program, line, args, kwargs, dynamic_shapes, operators)
    result = from_exported(exported)
    for node in result.graph.find_nodes(op="call_function", target=torch.ops.aten._assert_async.msg):
        if node.args[1] in checks:
            _put_guard(node, checks[str(node.args[1])].source)
    result.graph.guards.add(*_carried(graph, result))
    return result


def _exported(program: Any, graph: Graph, args: Any, kwargs: Any, shapes: Any, operators: Any) -> Any:
    """What torch's exporter makes of a graph of a program; the assumptions about its inputs are left out."""
    plain = remove_prints(copy.deepcopy(graph))
    plain.set_guards(())
    module = program._part(plain, type(program).__name__)
    try:
        exported = torch.export.export(module, args, kwargs, dynamic_shapes=shapes, strict=False)
        return exported.run_decompositions(operators)
    except _ASKING:
        raise
    except Exception as error:
        line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InteropError(
            f"torch's exporter does not take the program: {line}",
            fixes=["decompose the parts that it takes: clew.extract(captured, outputs=[...])"],
        ) from error


def _put_guard(node: Node, source: SourceLine | None) -> None:
    """A guard in the place of an assert that stands for it."""
    with node.graph.inserting_before(node):
        holds = node.graph.call_function(bool, (node.args[0],))
        node.graph.call_function(guard, (holds,)).source = holds.source = source
    node.graph.erase_node(node)


def _carried(old: Graph, result: Any) -> list[Guard]:
    """The guards over inputs, for the inputs of the same names; settings that the result has not are as they are."""
    new: Graph = result.graph
    inputs = {str(node.target): node for node in new.find_nodes(op="placeholder")}
    root, found = old.owning_module, []

    def moved(leaf: Any) -> Any:
        if isinstance(leaf, Attribute):
            return leaf if resolve(result, leaf.path) is not None else resolve(root, leaf.path)
        return inputs.get(str(getattr(leaf, "target", "")), leaf)

    for one in old.guards.entry:
        if one.inputs and all(str(node.target) in inputs for node in one.inputs):
            found.append(one.mapped(moved))
    return found


# ---- the way of an example ------------------------------------------------------------------------------------------


_QUESTIONS = (bool, int, float, operator.truth, operator.not_, operator.index)
_METHODS = ("item", "tolist", "__bool__", "__int__", "__float__", "__index__")


def _straight_line(program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Graph, list[Node]]:
    """A graph over the same root without branches and loops on what arrays hold, and its guards ``guard(holds)``.

    Branches are the side that this call takes, loops the rounds that it makes, questions to arrays its answers; each is
    guarded where it is asked; the guards of the old graph go along. The call is run once, and leaves nothing behind.
    """
    state = ProgramState(program, program, [])
    given, named = copied((args, kwargs))
    bound = program._entered()[0].bind(*given, **named)
    bound.apply_defaults()
    run = _Following(program)
    try:
        with torch.no_grad():
            run.follow({node: bound.arguments[str(node.target).lstrip("*")] for node in run.inputs})
    finally:
        state.put_back()
    return run.made, run.checks


@dataclass(frozen=True)
class _Both:
    """What a node of the old graph is for the example, and the node of the new graph for it, or a plain value."""

    value: Any
    twin: Any


class _Following(Interpreter):
    """Runs a program on an example and writes down what it does."""

    def __init__(self, program: Any) -> None:
        super().__init__(program, garbage_collect_values=False)
        self.extra_traceback = False
        self.made = Graph(owning_module=program)
        self.inputs = self.graph.find_nodes(op="placeholder")
        self.checks: list[Node] = []
        """The guards on what arrays hold."""
        self.line: SourceLine | None = None
        """Of the node that runs now."""

    def follow(self, values: dict[Node, Any]) -> None:
        """Run the program on these values of its inputs."""
        twins = {node: self.made.node_copy(node) for node in self.inputs}
        self.run(initial_env={node: _Both(value, twins[node]) for node, value in values.items()})
        moved = (one.mapped(lambda leaf: twins.get(leaf, leaf)) for one in self.graph.guards.entry)
        self.made.set_guards(tuple(moved))

    def _check(self, guards: tuple[Guard, ...]) -> None:
        """They go along."""

    def run_node(self, n: Node) -> Any:
        """What a node is, on both sides."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        self.line = n.source
        if n.op == "output":
            if n.graph is self.module.graph:
                self.made.output(_side(args[0], "twin"))
            return args[0]
        if n.op == "placeholder":
            return next(self.args_iter)
        if is_control(n):
            return self._control(n, args, kwargs)
        if n.target is operator.getitem and not isinstance(args[0], _Both):
            return args[0][_side(args[1], "value")]
        if is_tracer(n):
            return _Both(False, False)  # as in a plain call
        values = _side(args, "value"), _side(kwargs, "value")
        if is_guard(n):
            return self._guarded(n, args, kwargs, values[0][0])
        value = getattr(self, n.op)(n.target, *values)
        if _is_question(n) and isinstance(args[0], _Both) and isinstance(args[0].value, torch.Tensor):
            self._assume(args[0], not value if n.target is operator.not_ else value)
            return _Both(value, value)
        return self._copied(n, value, args, kwargs)

    def _copied(self, n: Node, value: Any, args: Any, kwargs: Any) -> _Both:
        twin = self.made.create_node(n.op, n.target, _side(args, "twin"), _side(kwargs, "twin"), n.name, n.type)
        twin.source, twin.value_type = n.source, n.value_type
        twin.meta.update(n.meta)
        return _Both(value, twin)

    def _guarded(self, n: Node, args: Any, kwargs: Any, value: Any) -> Any:
        """A guard that the program has already."""
        one = guard_of(n)
        one.require(value)
        if isinstance(value, torch.Tensor) and one.test == "equals" and type(one.expected) in (bool, int, float):
            return self._assume(args[0], one.expected)
        return self._copied(n, None, args, kwargs)

    def _assume(self, asked: _Both, answer: Any) -> None:
        """Let the graph rely on what an array holds."""
        make = self.made.call_function
        if isinstance(answer, list):
            expected = self.made.call_method("new_tensor", (asked.twin, answer))
            holds = self.made.call_method("all", (make(torch.eq, (asked.twin, expected)),))
        elif type(answer) is bool:
            holds = make(torch.ne if answer else torch.eq, (asked.twin, 0))
        else:
            holds = make(torch.eq, (asked.twin, answer))
        check = self.made.call_function(guard, (holds,))
        holds.source = check.source = self.line
        self.checks.append(check)

    def _decided(self, asked: Any) -> bool:
        """What the example answers to the question of a branch or loop."""
        if not isinstance(asked, _Both):
            return bool(asked)
        answer = bool(asked.value)
        if isinstance(asked.value, torch.Tensor):
            self._assume(asked, answer)
        elif isinstance(asked.twin, Node):
            truth = self.made.call_function(bool, (asked.twin,))
            self.made.call_function(guard, (truth, answer)).source = self.line
        return answer

    def _control(self, n: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if n.target is cond:
            return cond(self._decided(args[0]), *args[1:], **kwargs)
        if n.target is while_loop:
            return while_loop(functools.partial(self._goes_on, args[0]), *args[1:], **kwargs)
        return for_loop(self._items(args[0]), *args[1:], **kwargs)

    def _goes_on(self, test: Any, *values: Any) -> bool:
        return self._decided(test(*values))

    def _items(self, iterable: Any) -> Iterator[Any]:
        """The items of what a loop walks over."""
        if not isinstance(iterable, _Both):
            yield from iterable
            return
        if not isinstance(iterable.value, (torch.Tensor, tuple, list, range)):
            raise GraphError(
                f"a loop walks over {type(iterable.value).__name__}, of which no single item can be taken",
                where="" if self.line is None else self.line.describe(),
            )
        for place, value in enumerate(iterable.value):
            is_node = isinstance(iterable.twin, Node)
            twin = self.made.call_function(operator.getitem, (iterable.twin, place)) if is_node else value
            yield _Both(value, twin)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The attribute, which the new graph reads too."""
        return self.fetch_attr(target)


def _is_question(node: Node) -> bool:
    asks = node.target in _QUESTIONS if node.op == "call_function" else node.target in _METHODS
    return asks and node.op.startswith("call_") and not node.kwargs and len(node.args) == 1


def _side(nest: Any, side: str) -> Any:
    """A nest of one side of what it holds."""
    if isinstance(nest, _Both):
        return getattr(nest, side)
    if isinstance(nest, slice):
        return slice(*(_side(part, side) for part in (nest.start, nest.stop, nest.step)))
    if isinstance(nest, tuple):
        return rebuilt_tuple(nest, [_side(item, side) for item in nest])
    if isinstance(nest, list):
        return [_side(item, side) for item in nest]
    return {key: _side(item, side) for key, item in nest.items()} if type(nest) is dict else nest
