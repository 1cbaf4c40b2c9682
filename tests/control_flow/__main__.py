"""Runs the register and prints a table: `python -m tests.control_flow [--subject ...] [--only ...] [--verbose]`.

`--only` takes a construct ("example" for the programs of examples/) or a program's name, `--policy` what `clew.trace`
takes as `control_flow`, `--write` keeps the statuses as what the tests expect. The exit status is 1 when any program
came out wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

import torch

from tests.control_flow import expected
from tests.control_flow.examination import HAS_POLICY, STATUSES, SUBJECTS, Finding, examine
from tests.control_flow.example_programs import all_examples
from tests.control_flow.register import CONSTRUCTS, all_constructs
from tests.footguns.harness import WRONG

COLUMNS = ("programs", *STATUSES)


def main(arguments: list[str] | None = None) -> int:
    """Runs what the command line asks for."""
    options = _parser().parse_args(arguments)
    torch.set_num_threads(1)
    programs = all_constructs(options.only) + all_examples(options.only)
    if not programs:
        print(f"no program and no construct is called {options.only}", file=sys.stderr)
        return 2
    policy = {"control_flow": options.policy} if options.policy else {}
    if policy and not HAS_POLICY:
        sys.exit("clew.trace takes no control_flow here")
    start, findings = time.perf_counter(), []
    for program in programs:
        findings.append(examine(program, options.subject, options.seconds, **policy))
        if options.verbose:
            _print_finding(findings[-1])
    _print_table(findings)
    _print_trouble(findings)
    print(f"{len(programs)} programs against {options.subject} in {time.perf_counter() - start:.1f} s")
    if options.write:
        expected.write(options.subject, findings)
    return int(any(one.status == WRONG for one in findings))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.control_flow", description=__doc__)
    parser.add_argument("--subject", choices=SUBJECTS, default="trace")
    parser.add_argument("--only", help="one construct, or one program's name")
    parser.add_argument("--policy", choices=("capture", "guard", "error"), help="what clew.trace takes as control_flow")
    parser.add_argument("--verbose", action="store_true", help="print every call of every program")
    parser.add_argument("--write", action="store_true", help="keep the statuses as what the tests expect")
    parser.add_argument("--seconds", type=float, default=20.0, help="the most that one call or capture may take")
    return parser


def _print_table(findings: list[Finding]) -> None:
    rows = {name: [one for one in findings if one.construct == name] for name in (*CONSTRUCTS, "example")}
    print(f"{'construct':<20}" + "".join(f"{name:>10}" for name in COLUMNS))
    for name, group in [*rows.items(), ("all", findings)]:
        if group:
            counts = Counter(one.status for one in group)
            numbers = [len(group), *(counts[status] for status in STATUSES)]
            print(f"{name:<20}" + "".join(f"{number or '.':>10}" for number in numbers))


def _print_trouble(findings: list[Finding]) -> None:
    """What is wrong, what the generated code does not show, and graphs that the generated code does not give again."""
    for one in findings:
        if one.status == WRONG:
            print(f"WRONG {one.construct}/{one.name}: {one.reason}")
        if one.missing:
            print(f"code of {one.construct}/{one.name} shows no {', '.join(one.missing)}")
        if one.again:
            print(f"captured again {one.construct}/{one.name}: {one.again}")


def _print_finding(finding: Finding) -> None:
    print(f"{finding.construct}/{finding.name}: {finding.status} {finding.reason}")
    for one in finding.outcomes:
        print(f"    {one.call:<14} {one.status:<8} {one.reason}")


if __name__ == "__main__":
    sys.exit(main())
