"""One cell of the table of control flow: what a tool makes of a program, judged on inputs that go other ways.

The name of a cell is "tool:program". Out comes a row with the outcome: `captured` (one capture is right on all inputs),
`guarded` (some input is refused, loudly, or needed a capture of its own), `refused` (the example is), `wrong` (another
result, effect or random number without any error), for Clew also `opaque` (right, but a part stays a call of Python).
"""

from __future__ import annotations

import functools
import logging
import re
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tests.control_flow.examination import Finding, examine
from tests.control_flow.export_corpus import verdict_of_a_stranger as verdict
from tests.control_flow.numpy_twins import examine_twin
from tests.control_flow.register import Construct, all_constructs
from tests.footguns.harness import WRONG, classify
from tests.footguns.world import TooSlow, quietly, restored, time_limit

CAPTURED, GUARDED, REFUSED, SILENT = "captured", "guarded", "refused", "wrong"
FOLDERS = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)+")  # those of one machine have no place in a results file
CLEW = {"clew": "trace", "clew dynamic": "dynamic", "clew lazy": "lazy"}


class Plain(torch.nn.Module):
    """A function as a module, for tools that take nothing else."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def with_fx(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """torch.fx, without an example, as it works."""
    return torch.fx.symbolic_trace(fn)


def with_jit_trace(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """torch.jit.trace, without the runs that only check it."""
    if kwargs:
        return torch.jit.trace(fn, example_kwarg_inputs=kwargs, check_trace=False)
    return torch.jit.trace(fn, args, check_trace=False)


def with_jit_script(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """torch.jit.script, which compiles the source."""
    return torch.jit.script(fn)


def with_export(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """torch.export: with sizes as general as it finds them to be, or else with the example's."""
    module = fn if isinstance(fn, torch.nn.Module) else Plain(fn)
    return export_module(module, args, kwargs)


def export_module(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The exported program of a module as a callable."""

    def dims(leaf: Any) -> Any:
        return dict.fromkeys(range(leaf.dim()), torch.export.Dim.AUTO) if isinstance(leaf, torch.Tensor) else None

    shapes = pytree.tree_map(dims, args)
    general = (shapes if not isinstance(module, Plain) else (shapes,)) if not kwargs else None
    try:
        return torch.export.export(module, args, kwargs, dynamic_shapes=general).module()
    except Exception as error:
        if general is None:
            raise
        try:
            return torch.export.export(module, args, kwargs).module()
        except Exception:
            raise error from None


class Counting:
    """A backend of torch.compile that runs the graph as it is, and counts the graphs."""

    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, module: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        self.graphs += 1
        return module.forward


def with_dynamo(counting: Counting, whole: bool, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """torch.compile, with one graph for the whole program or with breaks."""
    torch._dynamo.reset()
    return torch.compile(fn, backend=counting, fullgraph=whole)


PEERS = {"fx": with_fx, "jit.trace": with_jit_trace, "jit.script": with_jit_script, "export": with_export}
NUMPY = "clew numpy"
TOOLS = (*CLEW, NUMPY, *PEERS, "dynamo")
NO_TWIN = "no twin"


def prepare(seconds: float) -> Callable[[str], dict[str, Any]]:
    """What a worker does before its first task; gives the function that does one."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    return functools.partial(measure, seconds=seconds)


def measure(name: str, seconds: float) -> dict[str, Any]:
    """The row of one cell."""
    tool, _, program_name = name.partition(":")
    (program,) = all_constructs(program_name)
    start = time.perf_counter()
    try:
        with restored(), quietly(), time_limit(3 * seconds):
            row = _measure(tool, program, seconds)
    except TooSlow as error:
        row = {"outcome": REFUSED, "reason": str(error)}
    except RecursionError:  # a proxy that a failed trace has left in the module looks into itself for ever
        row = {"outcome": REFUSED, "reason": "the trace fails, and leaves its own values in the module"}
    row["reason"] = FOLDERS.sub("", str(row["reason"]))[:240]
    return {"name": name, "construct": program.kind, **row, "seconds": round(time.perf_counter() - start, 3)}


def _measure(tool: str, program: Construct, seconds: float) -> dict[str, Any]:
    if tool == NUMPY:
        found = examine_twin(program.name, seconds)
        return {"outcome": NO_TWIN, "reason": "it cannot be said with NumPy"} if found is None else _clew_row(found)
    if tool in CLEW:
        return _clew_row(examine(program, CLEW[tool], seconds))
    if tool != "dynamo":
        outcome, reason = verdict(classify(program, PEERS[tool], seconds))
        return {"outcome": outcome, "reason": reason}
    counting = Counting()
    outcome, reason = verdict(classify(program, functools.partial(with_dynamo, counting, True), seconds))
    if outcome == CAPTURED and counting.graphs > 1:
        outcome, reason = GUARDED, f"{counting.graphs} graphs, one for each way"
    row = {"outcome": outcome, "reason": reason}
    return row | (_breaks(program, seconds) if outcome == REFUSED else {})


def _breaks(program: Construct, seconds: float) -> dict[str, Any]:
    """The breaks that Dynamo makes where it may, and whether what it puts together then is right."""
    outcome, _ = verdict(classify(program, functools.partial(with_dynamo, Counting(), False), seconds))
    case = program.build()
    args, kwargs = case.example()
    torch._dynamo.reset()
    explained = torch._dynamo.explain(case.callable())(*args, **kwargs)
    return {"breaks": explained.graph_break_count, "with breaks": outcome}


def _clew_row(finding: Finding) -> dict[str, Any]:
    outcome = SILENT if finding.status == WRONG else finding.status
    return {"outcome": outcome, "reason": finding.reason, "captures": finding.captures}
