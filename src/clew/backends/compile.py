"""``compile``: a program on a back end.

In come a callable or a captured program, and a back end; out comes what is called like it: a captured program whose
graph calls segments, or a lazy graph that makes such captures. Parameters, buffers and guards are those of the program.
"""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Iterator
from typing import Any

from clew.api import trace
from clew.backends.partition import ISLAND, partition
from clew.backends.registry import Backend, backend_named
from clew.capture.bytecode.try_blocks import attempted_effect
from clew.codegen.with_blocks import blocks_of
from clew.errors import BackendError
from clew.ir.arguments import bodies_of
from clew.ir.control_flow import is_control
from clew.ir.effects import effect_of, sets_state
from clew.ir.graph import Graph
from clew.ir.guards import is_guard
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.passes.program import opened
from clew.runtime.choose import make_lazy
from clew.runtime.function import GraphFunction, HoldsGraph
from clew.runtime.lazy import LazyGraph


def compile(
    fn: Any,
    backend: Any = "inductor",
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    *,
    fallback: bool = False,
    **options: Any,
) -> Any:
    """The program of a callable, of a captured program or of a lazy graph on a back end.

    A callable is captured from ``args`` and ``kwargs``, or without them whenever it is called and no capture fits;
    ``options`` are those of ``clew.trace``. What is captured already needs neither. The back end compiles a piece of
    the program when it is first called with arguments of a kind. What it cannot take stays in Python: ``clew.explain``
    lists that. An error of the back end is raised as ``BackendError``; with ``fallback`` the piece runs in Python, and
    a warning says so.
    """
    chosen = backend_named(backend)
    program = fn
    if not isinstance(fn, (HoldsGraph, LazyGraph)):
        program = trace(fn, args, kwargs, **options)
    elif options:
        raise BackendError(
            f"this program is captured already, so options of a capture come too late: {', '.join(options)}",
            fixes=("give the captured program alone: clew.compile(captured)", "give the original instead"),
        )
    if isinstance(program, LazyGraph):
        capture = functools.partial(_capture, program._capture, chosen, fallback)
        return make_lazy(program.fn, capture, program.limit)
    return compiled(program, chosen, fallback)


def _capture(capture: Any, backend: Backend, fallback: bool, *args: Any, **options: Any) -> tuple[Any, ...]:
    """A capture of a lazy graph, compiled."""
    captured, *rest = capture(*args, **options)
    return (compiled(captured, backend, fallback), *rest)


def compiled(captured: Any, backend: Backend, fallback: bool) -> Any:
    """A captured program on a back end; the captured one stays as it is."""
    prepared = backend.prepare(captured)
    if backend.keeps_all:
        return prepared
    twin = _twin(prepared)
    make = functools.partial(backend.segment, fallback=fallback)
    backend.arrange(twin.graph, twin.graph.owning_module)
    twin.keep_plans()
    with opened(twin) as graphs:
        count = 0
        for graph in graphs:
            count = partition(graph, _reasons(graph, backend), _reads(backend, graph), make, count)
    twin.graph.lint()
    return backend.finish(captured, twin)


def _twin(captured: Any) -> Any:
    """A program with a graph of its own on the same root."""
    graph = copy.deepcopy(captured.graph)
    if isinstance(captured, GraphFunction):
        return captured._with_graph(graph)
    twin = copy.copy(captured)
    twin.graph = graph
    return twin


def _reads(backend: Backend, graph: Graph) -> Any:
    return functools.partial(backend.reads_attributes, graph.owning_module)


def _reasons(graph: Graph, backend: Backend) -> dict[Node, str]:
    """Why each node stays in Python; an empty text if it need not. What is no plumbing is noted for ``explain``."""
    found = {}
    for node in graph.nodes:
        found[node] = _plumbing(node)
        if not found[node] and node.op.startswith("call"):
            found[node] = node.meta.get("opaque") or _common_reason(node, backend) or backend.reason_against(node)
    _take_blocks(graph, backend, found)
    for node, reason in found.items():
        if reason and not _plumbing(node):
            node.meta[ISLAND] = reason
    return found


def _take_blocks(graph: Graph, backend: Backend, reasons: dict[Node, str]) -> None:
    """Take away what is held against the beginning and the end of ``with`` blocks that one segment may have whole."""
    for start, end in reversed(blocks_of(graph.nodes).ends.items()):
        manager = start.args[0]
        if not isinstance(manager, Node) or not backend.takes_block(manager) or set(manager.users) != {start, end}:
            continue
        inside = list(itertools.takewhile(lambda node, end=end: node is not end, _nodes_after(manager)))  # type: ignore[misc]
        if not any(reasons[node] for node in inside if node is not start):
            reasons.update(dict.fromkeys((manager, start, end), ""))


def _nodes_after(node: Node) -> Iterator[Node]:
    while (node := node.next).op != "root":
        yield node


def _plumbing(node: Node) -> str:
    """What no back end has anything to do with, and nobody misses: guards, and what builds the result."""
    if is_guard(node):
        return "a guard"
    is_building = getattr(node.target, "__module__", "") == "clew.capture.recording.outputs"
    return "a part of the result" if is_building else ""


def _common_reason(node: Node, backend: Backend) -> str:
    if is_control(node):
        return "a branch or loop is Python's; its sides are compiled"
    if bodies_of(node):
        return "it is given a function"
    if node.op == "call_function" and sets_state(node.target):
        return "it sets state of the program"
    effect = attempted_effect(node) if backend.takes_attempts else effect_of(node)
    return "nobody vouches for what it does" if effect is Effect.UNKNOWN else ""
