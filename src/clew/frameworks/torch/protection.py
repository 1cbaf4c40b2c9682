"""A guard that fails leaves no mark: what the graph had done by then is undone.

Most graphs check all their guards before they act, and need nothing. For the others it is worked out, once for each
state of the code, what may have been written by the time of the last guard; only that is copied before a call.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from clew import tree
from clew.capture.example.guards import CHECKS
from clew.capture.example.writes import FIRST_WRITE
from clew.codegen.blocks import blocks_of
from clew.errors import GuardError
from clew.frameworks.torch.rollback import Rollback
from clew.frameworks.torch.touches import Undo
from clew.ir.effects import effect_of, resolve
from clew.ir.graph import Graph
from clew.ir.guests import Effect
from clew.ir.nested import all_nodes, bodies_of
from clew.ir.node import Node

_SEVERAL = (torch.broadcast_tensors, torch.meshgrid, torch.atleast_1d, torch.atleast_2d, torch.atleast_3d)
"""Functions whose results may share memory with any of their arguments, not only with the first."""


class Plan(NamedTuple):
    """What may be written before the last guard: attributes by path, arguments, or anything at all."""

    attributes: tuple[str, ...]
    arguments: bool
    everything: bool
    gradients: bool


def plan_of(graph: Graph) -> Plan | None:
    """The plan for a graph; None if it does not act before its last guard."""
    blocks = blocks_of(graph.nodes)
    undone = {*blocks.ends, *blocks.closing, *blocks.inline}  # a ``with`` block undoes itself when an error leaves it
    acting: list[Node] = []
    before_guard: list[Node] = []
    for node in graph.nodes:
        if node.op == "call_function" and node.target in CHECKS:
            before_guard = list(acting)
            continue
        if node.op not in ("placeholder", "output") and node not in undone and effect_of(node) is not Effect.NONE:
            acting.append(node)
        if any(inner.target in CHECKS for body in bodies_of(node) for inner in all_nodes(body)):
            before_guard = list(acting)
    if not before_guard:
        return None
    effects = [effect_of(node) for node in before_guard]
    sources = {source for node in before_guard if effect_of(node) is not Effect.RANDOM for source in _written(node)}
    return Plan(
        tuple(sorted(str(source.target) for source in sources if source.op != "placeholder")),
        any(source.op == "placeholder" for source in sources),
        any(
            (effect is Effect.UNKNOWN and node.op != "call_module") or (bodies_of(node) and effect is not Effect.RANDOM)
            for node, effect in zip(before_guard, effects, strict=True)
        ),
        any(map(_sets_gradients, before_guard)),
    )


def _sets_gradients(node: Node) -> bool:
    """Whether a call may change the gradients of tensors."""
    return node.target in ("backward", torch.autograd.backward) or (node.target is setattr and node.args[1] == "grad")


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
        if found.op in ("placeholder", "get_attr"):
            yield found
        elif found.target in _SEVERAL or "input" in found.kwargs:
            waiting += found.all_input_nodes
        elif found.args and isinstance(found.args[0], Node):
            waiting.append(found.args[0])


def writes_late(graph: Graph) -> bool:
    """Whether an error of the program's own would leave state as it was that the original would have changed by then:
    the graph sets it at its end, and does nothing before that would have to be undone."""
    before: list[Node] = []
    for node in graph.nodes:
        if node.meta.get(FIRST_WRITE):
            return all(one.target in CHECKS or effect_of(one) is Effect.NONE for one in before)
        if node.op != "placeholder":
            before.append(node)
    return False


@contextmanager
def protected(plan: Plan, root: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
    """If a guard fails inside, what the plan names and the random state are put back."""
    rollback = Rollback()
    everything = plan.everything or plan.gradients
    given = tree.flatten((args, kwargs))[0] if plan.arguments or everything else []
    tensors = [leaf for leaf in given if isinstance(leaf, torch.Tensor)]
    if everything:
        tensors += [*root.parameters(), *root.buffers()]
    for path in plan.attributes:
        found = resolve(root, path)
        tensors += [found] if isinstance(found, torch.Tensor) else list(getattr(found, "buffers", list)())
    rollback.watch(tensors)
    undo = Undo()
    for tensor in tensors:
        rollback.save(tensor)
        if plan.gradients:
            undo.keep_gradient(tensor)
    try:
        yield
    except GuardError:
        undo.run()
        rollback.put_back()
        raise
