"""The call of a graph that acts before its last guard: if that guard fails, the call leaves no mark.

In comes a graph; out comes a plan, what the graph may write before a guard can fail. `protected` surrounds a call by
that plan: it copies what is named there, and puts it back, with the states of random streams and optimizers.
"""

from __future__ import annotations

import functools
import operator
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from clew import tree
from clew.capture.bytecode.try_blocks import attempt, attempt_method, attempted_effect, outcome_of, outcome_of_method
from clew.capture.guards.notes import CHECKS, Variable, read_variable
from clew.capture.state.memory import Memory
from clew.capture.state.writes import refused
from clew.codegen.with_blocks import blocks_of
from clew.errors import ClewError, GuardError, StateError, as_cause
from clew.frameworks.numpy.undo import Kept as KeptArrays
from clew.frameworks.torch.calls.tensor_mutation import Undo
from clew.frameworks.torch.effects import written_now
from clew.frameworks.torch.modules.optimizers import Kept, fill_gradients, take_step
from clew.frameworks.torch.undo import Rollback
from clew.ir.arguments import all_nodes, bodies_of
from clew.ir.control_flow import is_control
from clew.ir.effects import FIRST_WRITE, resolve
from clew.ir.graph import Graph
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.types import ArrayType

_SEVERAL = (torch.broadcast_tensors, torch.meshgrid, torch.atleast_1d, torch.atleast_2d, torch.atleast_3d)
"""Functions whose results may share memory with any of their arguments, not only with the first."""


_RAISING = (*CHECKS, attempt, attempt_method, outcome_of, outcome_of_method)
"""Functions of a graph by which a guard may fail."""


Way = tuple[str, tuple[tuple[Callable[[Any, Any], Any], Any], ...]]
"""The path of an attribute, and the steps from what it is to what that holds."""


class Plan(NamedTuple):
    """What may be written before the last guard: attributes by path, arguments, or anything at all."""

    attributes: tuple[str, ...]
    arguments: bool
    everything: bool
    gradients: bool
    late: bool = False
    optional: bool = False
    trainers: tuple[Any, ...] = ()
    streams: tuple[random.Random, ...] = ()
    """``late``: errors of the program's own are undone too; ``optional``: unless that would copy very much;
    ``trainers`` are optimizers and schedulers that step, ``streams`` may be drawn from."""
    variables: tuple[Variable, ...] = ()
    """Variables around the program that lead to tensors which may be written."""
    held: tuple[Way, ...] = ()
    """The ways to tensors that objects of the program hold."""
    numpy: tuple[str, ...] | None = None
    """For a graph that has to do with NumPy, the constants among which its arrays and generators are."""


def plan_of(graph: Graph) -> Plan | None:
    """The plan for a graph; None if it acts neither before its last guard nor before it writes state."""
    before_guard, before_writes = _before_guard(graph), _before_writes(graph)
    acting = list(dict.fromkeys([*before_guard, *(before_writes or ())]))
    if not acting:
        return None
    plan = _plan_for(acting, graph)
    streams = tuple(given for node in all_nodes(graph) for given in node.args if type(given) is random.Random)
    return plan._replace(
        late=before_writes is not None, optional=not before_guard, streams=streams, numpy=_of_numpy(graph)
    )


def _of_numpy(graph: Graph) -> tuple[str, ...] | None:
    """The constants of a graph that has to do with NumPy; None for all others."""
    constants = [node for node in graph.nodes if node.op == "get_attr" and str(node.target).startswith("_constant")]
    checked = [one.expected for one in graph.guards.entry if one.test == "type"]
    is_given = any(isinstance(kind, type) and kind.__module__.startswith("numpy") for kind in checked)
    return tuple(str(node.target) for node in constants) if constants or is_given else None


def _before_guard(graph: Graph) -> list[Node]:
    """The nodes that act before the last guard."""
    blocks = blocks_of(graph.nodes)
    undone = {*blocks.ends, *blocks.closing, *blocks.inline}  # a ``with`` block undoes itself when an error leaves it
    acting: list[Node] = []
    before_guard: list[Node] = []
    for node in graph.nodes:
        if node.op == "call_function" and node.target in CHECKS:
            before_guard = list(acting)
            continue
        if node.op not in ("placeholder", "output") and node not in undone and _acts(node):
            acting.append(node)
        if node.op == "call_function" and node.target in _RAISING:  # an attempt that fails may have begun to act
            before_guard = list(acting)
        if any(inner.target in _RAISING for body in bodies_of(node) for inner in all_nodes(body)):
            before_guard = list(acting)
    return before_guard


def _acts(node: Node) -> bool:
    """Whether a node does something that may have to be undone; a branch does not that only checks."""
    bodies = bodies_of(node)
    if not bodies or not is_control(node):
        return attempted_effect(node) is not Effect.NONE
    return any(_acts(inner) for body in bodies for inner in body.nodes if inner.target not in CHECKS)


def _before_writes(graph: Graph) -> list[Node] | None:
    """The nodes that act before the graph, or one of the bodies in it, begins to write state; None if none writes."""
    if not any(node.meta.get(FIRST_WRITE) for node in all_nodes(graph)):
        return None
    return _acting_before_writes(graph)


def _acting_before_writes(graph: Graph) -> list[Node]:
    """These nodes of a graph and of the bodies in it: any error that ends a run is refused, also one on a way that
    writes no state, and so all is undone there, too."""
    blocks = blocks_of(graph.nodes)
    undone = {*blocks.ends, *blocks.closing, *blocks.inline}
    acting: list[Node] = []
    for node in graph.nodes:
        if node.meta.get(FIRST_WRITE):
            break
        if node.op in ("placeholder", "output") or node.target in CHECKS:
            continue
        bodies = bodies_of(node)
        if any(inner.meta.get(FIRST_WRITE) for body in bodies for inner in all_nodes(body)):
            acting += [inner for body in bodies for inner in _acting_before_writes(body)]
        elif node not in undone and _acts(node):
            acting.append(node)
    return acting


def _plan_for(acting: list[Node], graph: Graph) -> Plan:
    """What these nodes may write; a node of a body knows its operands only by the names they have there."""
    outer = [node for node in acting if node.graph is graph]
    sources = {source for node in outer if attempted_effect(node) is not Effect.RANDOM for source in _written(node)}
    inside = [node for node in acting if node.graph is not graph]
    anything = any(map(_may_write_anything, acting))
    anything = anything or any(attempted_effect(node) is not Effect.RANDOM for node in inside)
    read = all_nodes(graph) if anything else sources
    return Plan(
        tuple(sorted(str(source.target) for source in sources if source.op in ("get_attr", "call_module"))),
        any(source.op == "placeholder" for source in sources),
        anything,
        any(map(_sets_gradients, acting)),
        trainers=tuple(node.args[0] for node in acting if node.target is take_step),
        variables=tuple(node.args[0] for node in read if node.target is read_variable),
        held=tuple(way for node in read if (way := _way_to(node)) is not None),
    )


def _may_write_anything(node: Node) -> bool:
    effect = attempted_effect(node)
    return (effect is Effect.UNKNOWN and node.op != "call_module") or (
        bool(bodies_of(node)) and effect is not Effect.RANDOM
    )


def _sets_gradients(node: Node) -> bool:
    """Whether a call may change the gradients of tensors."""
    sets = node.target is setattr and node.args[1] == "grad"
    return sets or node.target in ("backward", torch.autograd.backward, fill_gradients)


def _written(node: Node) -> Iterator[Node]:
    """The inputs and attributes that a call may write to, through views of them; a module may write to its own."""
    if node.op == "call_module":
        yield node
    waiting, seen = list(node.all_input_nodes), set()
    while waiting:
        found = waiting.pop()
        if found in seen:
            continue
        seen.add(found)
        if found.op in ("placeholder", "get_attr") or found.target is read_variable or _way_to(found) is not None:
            yield found
        elif found.target in _SEVERAL or "input" in found.kwargs:
            waiting += found.all_input_nodes
        elif found.args and isinstance(found.args[0], Node):
            waiting.append(found.args[0])


def _way_to(node: Node) -> Way | None:
    """The steps by which a graph comes to a tensor that an object of the program holds; None if it does otherwise."""
    steps: list[tuple[Callable[[Any, Any], Any], Any]] = []
    kind, found = node.value_type, node
    while (
        found.op == "call_function" and found.target in (getattr, operator.getitem) and isinstance(found.args[0], Node)
    ):
        if isinstance(found.args[0].value_type, ArrayType):
            return None  # a view of a tensor, or what it says of itself
        steps.append((found.target, found.args[1]))  # type: ignore[arg-type]
        found = found.args[0]
    is_way = steps and found.op == "get_attr" and isinstance(kind, ArrayType)
    return (str(found.target), tuple(reversed(steps))) if is_way else None


def writes_late(graph: Graph) -> bool:
    """Whether an error of the program's own would leave state as it was that the original would have changed by then:
    the graph sets it at its end, and does nothing before that would have to be undone."""
    return _before_writes(graph) == []


@contextmanager
def protected(plan: Plan, root: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
    """If a guard fails inside, or the program where it writes state late, what the plan names and the random state are
    put back."""
    rollback = Rollback()
    everything = plan.everything or plan.gradients
    given = tree.flatten((args, kwargs))[0] if plan.arguments or everything else []
    tensors = list(_tensors_below([given, *(variable.get() for variable in plan.variables)]))
    if everything:
        tensors += [*root.parameters(), *root.buffers()]
        # Those of a function are its constants.
        tensors += [value for value in vars(root).values() if isinstance(value, torch.Tensor)]
    for path in plan.attributes:
        found = resolve(root, path)
        tensors += [found] if isinstance(found, torch.Tensor) else []
        tensors += written_now(found) if isinstance(found, torch.nn.Module) else ()
    for path, steps in plan.held:
        found = functools.reduce(lambda value, step: step[0](value, step[1]), steps, resolve(root, path))
        tensors += [found] if isinstance(found, torch.Tensor) else []
    if plan.optional and sum(tensor.nbytes for tensor in tensors if not tensor.is_sparse) > _MOST_BYTES:
        with _half_done_when_raising():
            yield
        return
    rollback.watch(tensors)
    undo, kept = Undo(), list(map(Kept, plan.trainers))
    streams = [*plan.streams, *(leaf for leaf in given if type(leaf) is random.Random)]
    states = [(stream, stream.getstate()) for stream in streams]
    for tensor in tensors:
        rollback.save(tensor)
        if plan.gradients:
            undo.keep_gradient(tensor)
    arrays = (
        None if plan.numpy is None else KeptArrays([args, kwargs, *(resolve(root, path) for path in plan.numpy)], _ENDS)
    )
    undone = Exception if plan.late else GuardError
    try:
        yield
    except undone as error:
        for trainer in reversed(kept):
            trainer.put_back()
        for stream, state in states:
            stream.setstate(state)
        undo.run()
        rollback.put_back()
        if arrays is not None:
            arrays.put_back()
        if isinstance(error, ClewError):
            raise
        raise refused(error) from as_cause(error)


def _tensors_below(values: list[Any]) -> Iterator[torch.Tensor]:
    """The tensors that can be reached from some values, and those that modules among them may write to."""
    memory = Memory(lambda value: isinstance(value, _ENDS))
    memory.remember(values)
    for end in memory.ends.values():
        yield from (end,) if isinstance(end, torch.Tensor) else written_now(end)


@contextmanager
def _half_done_when_raising() -> Iterator[None]:
    """An error of the program's own, after writes that nobody has copied, leaves the state half written."""
    try:
        yield
    except ClewError:
        raise
    except Exception as error:
        raise StateError(
            f"the program raised {type(error).__name__}: {error}",
            why="a graph sets the program's attributes at its end, and so not before this error; what it had written "
            "to tensors by then stays written, since so much is not copied before each call",
            fixes=("call the original where errors are expected", "put the state back before you go on"),
        ) from as_cause(error)


_ENDS = (torch.Tensor, torch.nn.Module)
_MOST_BYTES = 1 << 24
"""More is not copied at each call only for the case that the program raises an error of its own."""
