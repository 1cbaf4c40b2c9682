"""A verdict per program and call, stored: `python -m benchmarks.verdicts [--suite NAME ...] [--write] [--compare]`.

Suites are ledger, control_flow, frameworks and models. `--write` stores what comes out; `--compare` prints what has
changed since it was stored, and the exit status is 1 when something is newly wrong. Without either, counts are printed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.verdicts import store, suites
from benchmarks.verdicts.suites import WRONG_ANSWER, Judged
from tests.footguns.world import quietly

SUITES = ("ledger", "control_flow", "frameworks", "models")
USUAL = SUITES[:3]


def main(arguments: list[str] | None = None) -> int:
    """Runs what the command line asks for."""
    options = _parser().parse_args(arguments)
    torch.set_num_threads(1)
    return max([_run(suite, options) for suite in options.suite or USUAL])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verdicts", description=__doc__)
    parser.add_argument("--suite", nargs="+", choices=SUITES, help=f"{', '.join(USUAL)} by default")
    parser.add_argument("--write", action="store_true", help="store the verdicts")
    parser.add_argument("--compare", action="store_true", help="print what changed against the store")
    parser.add_argument("--limit", type=int, help="at most this many programs of each suite")
    parser.add_argument("--results", type=Path, help="models: rows of `python -m benchmarks.coverage`, not run again")
    return parser


def _run(suite: str, options: argparse.Namespace) -> int:
    start = time.monotonic()
    judged: list[Judged] = []
    try:
        with quietly():
            for one in _programs(suite, options):
                judged.append(one)
    except KeyboardInterrupt:
        print(f"{suite}: interrupted; what was judged counts")
    counts = Counter(store.worst(one.calls) for one in judged)
    calls = Counter(word for one in judged for word in one.calls.values())
    for what, found in (("programs", counts), ("calls", calls)):
        shown = ", ".join(f"{found[word]} {word}" for word in store.ORDER if found[word])
        print(f"{suite}: {sum(found.values())} {what}: {shown}")
    print(f"{suite}: {time.monotonic() - start:.0f} s", flush=True)
    path = store.path_of(suite)
    changed = store.changes(store.read(path), judged) if options.compare else {}
    for title, lines in sorted(changed.items()):
        print(f"{suite}: {title}: {len(lines)}", *(f"    {line}" for line in lines), sep="\n")
    if options.write:
        store.write(path, store.read(path) | {one.program: one.calls for one in judged})
    return int(f"newly {WRONG_ANSWER}" in changed)


def _programs(suite: str, options: argparse.Namespace) -> Iterator[Judged]:
    if suite == "models":
        yield from suites.models(options.limit, options.results)
        return
    for number, judged in enumerate(getattr(suites, suite)()):
        if options.limit is not None and number >= options.limit:
            return
        yield judged


if __name__ == "__main__":
    sys.exit(main())
