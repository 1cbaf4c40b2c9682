"""``python -m tests.frameworks.numpy.realistic [--dynamic] [--write] [NAME ...]``: how many programs one capture is
right for on every probe (general), which probes are refused, and by which guards."""

from __future__ import annotations

import argparse
import collections
import json
import time
from pathlib import Path

from tests.frameworks.numpy.realistic import PROGRAMS
from tests.frameworks.numpy.realistic.judge import GENERAL, Verdict, judge

STORED = Path(__file__).parent / "verdicts.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--dynamic", action="store_true")
    parser.add_argument("--write", action="store_true", help="store the verdicts of both ways to capture")
    asked = parser.parse_args()
    ways = (False, True) if asked.write else (asked.dynamic,)
    stored = {}
    for dynamic in ways:
        found = {name: _judged(name, dynamic) for name in asked.names or PROGRAMS}
        _tell(found, dynamic)
        stored["dynamic" if dynamic else "trace"] = {name: verdict.kind for name, verdict in found.items()}
    if asked.write:
        STORED.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")


def _judged(name: str, dynamic: bool) -> Verdict:
    begin = time.perf_counter()
    verdict = judge(PROGRAMS[name], dynamic)
    took = time.perf_counter() - begin
    if verdict.kind != GENERAL or took > 2:
        print(f"{name:32} {verdict.kind:8} {took:5.1f} s")
        for reason in verdict.reasons:
            print(f"    {reason}")
    return verdict


def _tell(found: dict[str, Verdict], dynamic: bool) -> None:
    counts = collections.Counter(verdict.kind for verdict in found.values())
    print(f"{'dynamic' if dynamic else 'trace'}: {dict(counts)} of {len(found)}")


if __name__ == "__main__":
    main()
