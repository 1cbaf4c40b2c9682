"""Show the counts beside their limits: ``python -m tests.speed [--write] [--json]``.

``--write`` sets each limit to what was counted, and a little more; it is how limits are tightened after something has
become faster, and how a limit is raised by somebody who has a reason to.
"""

from __future__ import annotations

import argparse
import json
import math

from tests.speed import limits
from tests.speed.counts import COUNTS


def main() -> None:
    """Count everything, print it, and write limits if asked to."""
    parser = argparse.ArgumentParser(prog="python -m tests.speed", description=__doc__)
    parser.add_argument("--write", action="store_true", help="set the limits to what is counted now")
    parser.add_argument("--json", action="store_true", help="print the counts alone, as JSON")
    chosen = parser.parse_args()
    found = {name: count() for name, count in COUNTS.items()}
    if chosen.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:<44} {value:>10.2f}   limit {limits.LIMITS.get(name, math.inf):>10.2f}")
    if chosen.write:
        limits.write(found)


if __name__ == "__main__":
    main()
