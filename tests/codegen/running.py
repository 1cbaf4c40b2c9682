"""Runs one graph in two ways, generated code and interpreter, and tells whether they agree."""

from __future__ import annotations

import math
from typing import Any

import torch

import clew
from clew.ir.graph import Graph
from clew.ir.node import Node


def keep(*args: Any, **kwargs: Any) -> Any:
    """Returns what it was called with."""
    return args, kwargs


def new_graph(*inputs: str) -> tuple[Any, ...]:
    """An empty graph and one placeholder for each name."""
    graph = Graph()
    return (graph, *(graph.placeholder(name) for name in inputs))


def module_of(graph: Graph, root: Any = None) -> Any:
    """The graph as a module."""
    graph.lint()
    return clew.GraphModule({} if root is None else root, graph)


def code_of(graph: Graph) -> str:
    """The generated source without the blank lines around it."""
    return str(graph.python_code("self").src).strip("\n") + "\n"


def body_of(graph: Graph) -> list[str]:
    """The statements of the generated function."""
    lines = code_of(graph).split("\n")
    start = next(place for place, line in enumerate(lines) if line.startswith("def "))
    return [line.strip() for line in lines[start + 1 :] if line]


def exactly_same(left: Any, right: Any) -> bool:
    """Equality that tells -0.0 from 0.0, True from 1, and holds for nan."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        same_sign = math.copysign(1, left) == math.copysign(1, right)
        return same_sign and (left == right or (left != left and right != right))
    if isinstance(left, complex):
        return exactly_same(left.real, right.real) and exactly_same(left.imag, right.imag)
    if isinstance(left, (tuple, list)):
        return len(left) == len(right) and all(map(exactly_same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(exactly_same(left[key], right[key]) for key in left)
    if isinstance(left, torch.Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    return bool(left == right)


def run_both(graph: Graph, *inputs: Any, root: Any = None) -> Any:
    """The result of the generated code, checked against the interpreter's."""
    module = module_of(graph, root)
    result = module(*inputs)
    assert exactly_same(result, clew.Interpreter(module).run(*inputs))
    return result


def exact_node(graph: Graph, op: str, name: str, target: Any, args: tuple[Any, ...] = (), **kwargs: Any) -> Node:
    """A node under a name that no namespace would give: what reading a text or a pickle can bring."""
    return graph._append_exact(op, name, target, args, kwargs)
