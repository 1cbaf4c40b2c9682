"""``python -m tests.frameworks.jax.general [--dynamic] [names]``: what becomes of each hard program of JAX."""

from __future__ import annotations

import sys
from collections import Counter

from tests.frameworks.jax.hard import PROGRAMS
from tests.frameworks.jax.test_hard_programs import JUDGE
from tests.frameworks.verdicts import verdict


def main(names: list[str], dynamic: bool) -> None:
    """Print a line for each program, and how many are general."""
    found: Counter[str] = Counter()
    for name in names or PROGRAMS:
        told, why = verdict(PROGRAMS[name], JUDGE, dynamic)
        found[told] += 1
        print(f"{told:8} {name:30} {why}", flush=True)
    print(", ".join(f"{count} {told}" for told, count in found.items()))


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if not name.startswith("--")], "--dynamic" in sys.argv)
