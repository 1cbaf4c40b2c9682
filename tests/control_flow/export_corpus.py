"""torch's own corpus of hard cases, `torch._export.db.examples`, judged like every other program.

`python -m tests.control_flow.export_corpus [--subject ...] [--only NAME] [--write]` runs every case
through Clew and through torch.export, on the case's example, on its further inputs where it has some, and on inputs
made from the example: other values, more rows, one row. `--write` keeps the outcomes as what the tests expect.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import functools
import json
import logging
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch._export.db.case import ExportCase
from torch._export.db.examples import all_examples
from torch.utils import _pytree as pytree

from tests.control_flow.examination import examine
from tests.control_flow.register import Construct
from tests.footguns.harness import CAPTURE, WRONG, Outcome, classify
from tests.footguns.ledger import Case, Inputs

FILE = Path(__file__).with_name("export_corpus.json")
SUBJECTS = ("trace", "dynamic", "lazy", "export")
WORDS = ("captured", "opaque", "guarded", "refused", "wrong")


def corpus(only: str | None = None) -> list[Construct]:
    """Every case as a program."""
    cases = sorted(all_examples().items())
    return [_program(name, case) for name, case in cases if only in (None, name)]


def _program(name: str, case: ExportCase) -> Construct:
    def build() -> Case:
        calls = [functools.partial(make, case) for make in (other_values, more_rows, one_row)]
        if case.extra_args is not None:
            calls.append(lambda: (copy.deepcopy(case.extra_args), {}))
        return Case(make=lambda: copy.deepcopy(case.model), example=lambda: _given(case), others=calls)

    return Construct(name, "corpus", build)


def _given(case: ExportCase) -> Inputs:
    args, kwargs = copy.deepcopy((case.example_args, case.example_kwargs))
    return args, kwargs


def _changed(case: ExportCase, change: Callable[[torch.Tensor], torch.Tensor]) -> Inputs:
    args, kwargs = pytree.tree_map_only(torch.Tensor, change, _given(case))
    return args, kwargs


def other_values(case: ExportCase) -> Inputs:
    """Flags the other way round, integers halved, other numbers negated."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dtype is torch.bool:
            return ~tensor
        return -tensor if tensor.is_floating_point() else tensor // 2

    return _changed(case, change)


def more_rows(case: ExportCase) -> Inputs:
    """Tensors of several dimensions, or the only ones there are, with all rows four times."""
    return _changed(case, lambda tensor: tensor if tensor.dim() == 0 else torch.cat([tensor] * 4))


def one_row(case: ExportCase) -> Inputs:
    """Tensors with their first row alone."""
    return _changed(case, lambda tensor: tensor if tensor.dim() == 0 else tensor[:1])


def judge(program: Construct, subject: str) -> tuple[str, str]:
    """The word for what a subject makes of a case, and the reason where it is not captured."""
    if subject != "export":
        finding = examine(dataclasses.replace(program), subject)
        return ("wrong" if finding.status == WRONG else finding.status), finding.reason
    case = all_examples()[program.name]
    torch._dynamo.reset()
    return verdict_of_a_stranger(classify(program, functools.partial(_export, case)))


def _export(case: ExportCase, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    shapes = case.dynamic_shapes
    if shapes is None and not kwargs:
        shapes = pytree.tree_map(_general, args)
    try:
        return torch.export.export(fn, args, kwargs, dynamic_shapes=shapes).module()
    except Exception:
        if shapes is None or case.dynamic_shapes is not None:
            raise
        return torch.export.export(fn, args, kwargs).module()


def _general(leaf: Any) -> Any:
    return dict.fromkeys(range(leaf.dim()), torch.export.Dim.AUTO) if isinstance(leaf, torch.Tensor) else None


def verdict_of_a_stranger(outcomes: list[Outcome]) -> tuple[str, str]:
    """The word for the outcomes of a tool that knows nothing of Clew's errors, and the reason.

    Any error that the original does not raise is a refusal, and traces that the capture itself leaves do not count; but
    what they do to later calls does.
    """
    loud = [one for one in outcomes if one.status == WRONG and not one.silent]
    first = [one for one in loud if one.call in (CAPTURE, "example")]
    if first:
        return "refused", first[0].reason
    silent = [one for one in outcomes if one.status == WRONG and one.silent and one.call != CAPTURE]
    if silent:
        return "wrong", f"{silent[0].call}: {silent[0].reason}"
    return ("guarded", f"{loud[0].call}: {loud[0].reason}") if loud else ("captured", "")


def read() -> dict[str, dict[str, str]]:
    """The outcomes of the last measurement, by subject and case."""
    found: dict[str, dict[str, str]] = json.loads(FILE.read_text())
    return found


def counts(outcomes: dict[str, str]) -> str:
    """How many cases came to each outcome, in one line."""
    found = Counter(outcomes.values())
    return ", ".join(f"{word} {found[word]}" for word in WORDS if found[word])


def main(arguments: list[str] | None = None) -> int:
    """Runs what the command line asks for; the exit status is 1 when Clew came out wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.control_flow.export_corpus", description=__doc__)
    parser.add_argument("--subject", nargs="+", choices=SUBJECTS, default=SUBJECTS)
    parser.add_argument("--only", help="one case")
    parser.add_argument("--write", action="store_true", help="keep the outcomes as what the tests expect")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    logging.disable(logging.CRITICAL)
    known = read() if FILE.exists() else {}
    for subject in options.subject:
        fresh = {}
        for program in corpus(options.only):
            fresh[program.name], reason = judge(program, subject)
            if fresh[program.name] != "captured":
                print(f"{subject:<7} {program.name:<32} {fresh[program.name]:<9} {reason[:120]}")
        print(f"{subject}: {len(fresh)} cases: {counts(fresh)}")
        known[subject] = known.get(subject, {}) | fresh
    if options.write:
        FILE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    return int(any("wrong" in known[subject].values() for subject in known if subject != "export"))


if __name__ == "__main__":
    sys.exit(main())
