"""Many damaged bundles and texts: ``python -m tests.io.mutations [COUNT]``; all must load or raise an error of Clew's.

Watches what the process does meanwhile (an audit hook), and how much memory it takes.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from pathlib import Path

from rich.progress import track

from .test_bundle import CASES, check_mutations, saved

_STEP = 50


def main() -> None:
    """Load mutations of a bundle of each kind in turn."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    refused = 0
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for name in CASES:
            (Path(folder) / name).mkdir()
            paths[name] = saved(name, Path(folder) / name)[1]
        before = _peak()
        for start in track(range(0, count, _STEP), description="mutations"):
            path = list(paths.values())[start // _STEP % len(paths)]
            refused += check_mutations(path, range(start, start + _STEP))
    memory = f"at most {_peak()} MB of memory, {before} MB of it before the first"
    print(f"{count} mutations: {refused} refused, {count - refused} loaded, nothing else; {memory}")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


if __name__ == "__main__":
    main()
