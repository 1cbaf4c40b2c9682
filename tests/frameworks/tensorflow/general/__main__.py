"""``python -m tests.frameworks.tensorflow.general [names]``: what becomes of each program, and how many are general."""

from __future__ import annotations

import sys
from collections import Counter

from tests.frameworks.tensorflow.general import PROGRAMS
from tests.frameworks.tensorflow.test_hard_programs import JUDGE
from tests.frameworks.verdicts import verdict


def main(names: list[str]) -> None:
    """Print a line for each program."""
    found: Counter[str] = Counter()
    for name in names or PROGRAMS:
        told, why = verdict(PROGRAMS[name], JUDGE)
        found[told] += 1
        print(f"{told:8} {name:30} {why}", flush=True)
    print(", ".join(f"{count} {told}" for told, count in found.items()))


main(sys.argv[1:])
