"""Runs the ledger against a subject and prints a table: `python -m tests.footguns [--only kind|name] [--verbose]`.

The subject is `clew.trace` on the example; with `--subject dynamic` the same with `dynamic=True`; with `--subject lazy`
`clew.trace` without an example; with `--subject baking`, the naive tracer that the ledger is measured with; with
`--subject original`, the program itself. The exit status is 1 when any program came out wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

import clew
from tests.footguns.baking import bake
from tests.footguns.harness import CAPTURE, EQUAL, GUARDED, WRONG, Capture, Outcome, classify, worst
from tests.footguns.ledger import all_programs

COLUMNS = ("programs", "equal", "guarded", "refused", "WRONG", "silent")


def main(arguments: list[str] | None = None) -> int:
    """Runs what the command line asks for."""
    options = _parser().parse_args(arguments)
    torch.set_num_threads(1)
    capture, programs = _subject(options.subject), all_programs(options.only)
    if not programs:
        print(f"no program and no kind is called {options.only}", file=sys.stderr)
        return 2
    start, results = time.perf_counter(), {}
    for program in programs:
        results[program.name] = classify(program, capture, options.seconds)
        if options.verbose:
            _print_program(program.name, results[program.name])
    _print_table(results)
    _print_wrong(results)
    print(f"{len(programs)} programs against {options.subject} in {time.perf_counter() - start:.1f} s")
    return int(any(worst(outcomes) == WRONG for outcomes in results.values()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.footguns", description=__doc__)
    parser.add_argument("--only", help="one kind, or one program's name")
    parser.add_argument("--subject", choices=("trace", "dynamic", "lazy", "baking", "original"), default="trace")
    parser.add_argument("--verbose", action="store_true", help="print every call of every program")
    parser.add_argument("--seconds", type=float, default=20.0, help="the most that one call or capture may take")
    return parser


def _subject(name: str) -> Capture:
    if name == "baking":
        return bake
    if name == "original":
        return lambda fn, args, kwargs: fn
    trace: Callable[..., Any] | None = getattr(clew, "trace", None)
    if trace is None:
        sys.exit("clew.trace is not there; name another subject with --subject")
    if name == "lazy":
        return lambda fn, args, kwargs: trace(fn)
    if name == "dynamic":
        return lambda fn, args, kwargs: trace(fn, args=args, kwargs=kwargs, dynamic=True)
    return lambda fn, args, kwargs: trace(fn, args=args, kwargs=kwargs)


def _counts(groups: list[list[Outcome]]) -> list[int]:
    """The numbers of one row: programs by their worst verdict, and the wrong ones that raised no error."""
    verdicts = [worst(outcomes) for outcomes in groups]
    refused = [worst(outcomes) == GUARDED and any(map(_is_refusal, outcomes)) for outcomes in groups]
    silent = [any(one.silent and one.status == WRONG for one in outcomes) for outcomes in groups]
    guarded = verdicts.count(GUARDED) - sum(refused)
    return [len(groups), verdicts.count(EQUAL), guarded, sum(refused), verdicts.count(WRONG), sum(silent)]


def _is_refusal(outcome: Outcome) -> bool:
    return outcome.status == GUARDED and outcome.call in (CAPTURE, "example")


def _print_table(results: dict[str, list[Outcome]]) -> None:
    kinds = sorted({outcomes[0].kind for outcomes in results.values()})
    rows = {kind: _counts([outcomes for outcomes in results.values() if outcomes[0].kind == kind]) for kind in kinds}
    rows["all"] = _counts(list(results.values()))
    print(f"{'kind':<18}" + "".join(f"{name:>10}" for name in COLUMNS))
    for name, numbers in rows.items():
        print(f"{name:<18}" + "".join(f"{number:>10}" for number in numbers))
    print("guarded: other inputs refused; refused: the example itself, or its capture; silent: wrong without an error")


def _print_wrong(results: dict[str, list[Outcome]]) -> None:
    for name, outcomes in results.items():
        wrong = [one for one in outcomes if one.status == WRONG]
        if wrong:
            print(f"WRONG {outcomes[0].kind}/{name}: {wrong[0].call}: {wrong[0].reason}")


def _print_program(name: str, outcomes: list[Outcome]) -> None:
    print(f"{outcomes[0].kind}/{name}")
    for one in outcomes:
        print(f"    {one.call:<14} {one.status:<8} {one.reason}")


if __name__ == "__main__":
    sys.exit(main())
