"""The peak of memory of one capture: ``python -m benchmarks.peak MODEL TOOL`` prints it in megabytes.

The tool ``loaded`` only makes the model and the example; each runs in a process of its own.
"""

from __future__ import annotations

import resource
import sys
import warnings
from pathlib import Path

import torch

from benchmarks import programs, tools

TOOLS: dict[str, tools.Tool] = {
    "loaded": lambda program, args: None,
    "eager": tools.with_eager,
    "clew": tools.with_clew,
    "jit": tools.with_jit_trace,
    "fx": tools.with_fx,
    "export": tools.with_export,
}


def main() -> None:
    """Capture once, and print the peak."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    name, tool = sys.argv[1:]
    program = getattr(programs, name)()
    with torch.no_grad():
        kept = TOOLS[tool](program.callable, program.args)
    print(f"{_peak():.1f}", flush=kept is None)


def _peak() -> float:
    """What this program has come to use; the system's own record would start with what the parent process used."""
    status = Path("/proc/self/status")
    if status.exists():
        found = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(found.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
