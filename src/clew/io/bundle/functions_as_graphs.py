"""Functions of packages that are single calls of a graph, written into a file as graphs of their own.

In comes a graph that is saved, out comes one in which such calls name no code of a package. An own
``torch.autograd.Function``, and an operator that a package has registered, become graphs of both passes; a cached
function, whose result nobody can tell from a new one, becomes the graph of what it computes. Each is captured from what
the node says of the arguments. Where that cannot be had the call stays as it is, and ``clew.save`` tells its name.
Importing this file imports torch.
"""

from __future__ import annotations

import copy
import functools
import inspect
import warnings
from collections.abc import Callable
from types import MethodType
from typing import Any, NamedTuple

import torch
from torch.autograd.function import FunctionCtx, _SingleLevelFunction

from clew import tree
from clew.capture.options import Options
from clew.errors import TraceWarning
from clew.frameworks.torch.custom_gradient import CustomGradient
from clew.ir.arguments import all_nodes
from clew.ir.graph import Graph
from clew.ir.guests import guest, package_of
from clew.ir.node import Node
from clew.ir.shared_memory import SharedMemory
from clew.ir.types import ArrayType, ScalarType
from clew.passes.program import opened
from clew.runtime.choose import capture_with

_APPLY = vars(torch.autograd.Function)["apply"].__func__
_CACHED = type(functools.lru_cache(len))
_OWN = frozenset({"torch", "clew"})
_NUMBERS = {"int": 3, "float": 1.5}
"""Examples of numbers that a graph computes."""
_OF_CONTEXT = frozenset({"to_save", "saved_tensors", "needs_input_grad"})


def with_functions_as_graphs(graph: Graph) -> Graph:
    """The graph itself if no call in it needs that, or a copy."""
    if not any(map(_is_wanted, all_nodes(graph))):
        return graph
    made: dict[Any, Any] = {}
    changed = copy.deepcopy(graph)
    changed.owning_module = graph.owning_module
    with opened(changed) as graphs:
        for one in graphs:
            memory = SharedMemory(one, changed.owning_module)
            for node in [node for node in one.nodes if _is_wanted(node)]:
                is_apart = all(user in memory.arrays for user in node.users)  # each user makes an array of its own
                if is_apart or not _is_cached(node):
                    _write_out(node, made)
    return changed


def _write_out(node: Node, made: dict[Any, Any]) -> None:
    found = _graphs_of(node, made)
    if found is not None:
        node.args, node.kwargs = _in_order(node), {}
        node.target = found


def _is_wanted(node: Node) -> bool:
    return node.op == "call_function" and (_is_cached(node) or passes_of(node.target) is not None)


def _is_cached(node: Node) -> bool:
    return type(node.target) is _CACHED and package_of(node.target.__wrapped__) not in _OWN


def _in_order(node: Node) -> tuple[Any, ...]:
    """What a call is given, all by place."""
    if not node.kwargs:
        return node.args
    passes = passes_of(node.target)
    function = node.target if passes is None else passes.forward
    bound = inspect.signature(function).bind(*node.args, **node.kwargs)
    bound.apply_defaults()
    return bound.args


def _graphs_of(node: Node, made: dict[Any, Any]) -> Any:
    """The graphs for the kinds of arguments that a node has; the same for all nodes that have them."""
    args = _in_order(node)
    kinds = [one.value_type if isinstance(one, Node) else repr(one) for one in tree.flatten(args)[0]]
    key = (node.target, str(kinds))
    if key not in made:
        example = tree.tree_map(_example_of, args)
        is_known = not any(one is None and isinstance(given, Node) for one, given in
                           zip(tree.flatten(example)[0], tree.flatten(args)[0], strict=True))  # fmt: skip
        made[key] = as_graphs(node.target, example) if is_known else None
    return made[key]


def _example_of(value: Any) -> Any:
    """Something of the kind that a node gives; None if it is not known."""
    if not isinstance(value, Node):
        return value
    kind = value.value_type
    if isinstance(kind, ScalarType):
        return _NUMBERS.get(kind.name)
    if not isinstance(kind, ArrayType) or not all(isinstance(size, int) for size in kind.shape):
        return None
    return torch.ones([int(size) for size in kind.shape], dtype=getattr(torch, kind.dtype.rpartition(".")[2]))


# ---- the two passes --------------------------------------------------------------------------------------------------


class _Context(FunctionCtx):
    """What the forward pass of the original is given, and what the backward pass is given of it."""

    to_save: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        self.to_save = tensors


class _Passes(NamedTuple):
    """The code of a function: what it computes, what it then notes in the context, and its backward pass."""

    name: str
    forward: Callable[..., Any]
    note: Callable[..., Any] | None
    backward: Callable[..., Any]


def passes_of(function: Any) -> _Passes | None:
    """The code of both passes of a function that is not torch's own; None if there is none that can be read."""
    if type(function) is MethodType and function.__func__ is _APPLY:
        return _of_class(function.__self__)
    name = getattr(function, "_qualified_op_name", "") or str(getattr(function, "_name", "")).partition(".")[0]
    found = torch._library.custom_ops.OPDEFS.get(name) if name else None
    if found is None or found._backward_fn is None or package_of(found._init_fn) in _OWN:
        return None
    note = found._setup_context_fn

    def noted(ctx: Any, inputs: Any, output: Any) -> None:
        if note is not None:
            note(ctx=ctx, inputs=inputs, output=output)

    return _Passes(found._name, found._init_fn, noted, found._backward_fn)


def _of_class(kind: Any) -> _Passes | None:
    if package_of(kind) in _OWN or hasattr(kind.backward, "__wrapped__"):  # which is differentiable once, say
        return None
    if kind.setup_context is _SingleLevelFunction.setup_context:
        return _Passes(kind.__name__, kind.forward, None, kind.backward)
    return _Passes(kind.__name__, kind.forward, kind.setup_context, kind.backward)


def as_graphs(function: Any, args: tuple[Any, ...]) -> Any:
    """The same function as graphs, captured from this example; None if that cannot be had."""
    passes = passes_of(function)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error", TraceWarning)
            return _program(function.__wrapped__, args) if passes is None else _captured(passes, args)
    except Exception:  # the original's own errors too, on values that it does not take
        return None


def _captured(passes: _Passes, args: tuple[Any, ...]) -> CustomGradient | None:
    needs = tuple(isinstance(one, torch.Tensor) and one.is_floating_point() for one in args)
    used: list[_Context] = []

    def forward(*given: Any) -> Any:
        ctx: Any = _Context()
        used.append(ctx)
        if passes.note is None:
            result = passes.forward(ctx, *given)
        else:
            result = passes.forward(*given)
            passes.note(ctx, given, result)
        rest = {name: value for name, value in vars(ctx).items() if name not in _OF_CONTEXT}
        return result, tuple(ctx.to_save), rest

    def backward(saved: Any, rest: Any, needed: Any, *gradients: Any) -> Any:
        ctx: Any = _Context()
        ctx.saved_tensors, ctx.needs_input_grad = saved, needed
        for name in names:
            setattr(ctx, name, rest[name])
        return passes.backward(ctx, *gradients)

    result, saved, rest = forward(*args)
    if not vars(used[0]).keys().isdisjoint(("dirty_tensors", "non_differentiable", "materialize_grads")):
        return None
    names = tuple(rest)
    results = result if isinstance(result, tuple) else (result,)
    gradients = tuple(torch.ones_like(one) for one in results)
    made = _program(forward, args), _program(backward, (saved, rest, needs, *gradients))
    return CustomGradient(passes.name, *made)


def _program(pass_: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """One pass as a captured program."""
    torchs = guest("torch")
    assert torchs is not None
    return capture_with(torchs, pass_, args, {}, Options.of(), pass_.__name__)[0]
