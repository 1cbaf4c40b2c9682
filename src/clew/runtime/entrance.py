"""The guards of a graph asked before a call: which one fails, if any, without running anything of the program.

``entrance_test`` gives a function of the graph's own arguments that is false where a guard does not hold. It is made of
the guards, which are data, and raises nothing of its own. ``first_failing`` names the guard.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from clew.codegen.python import CodeGen
from clew.errors import ClewError
from clew.ir.graph import Graph
from clew.ir.guards import Guard, evaluate


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
    for one in graph._guards:
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
