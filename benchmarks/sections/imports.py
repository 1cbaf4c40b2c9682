"""How long ``import clew`` takes, how much of it is Clew's own, and what it brings along.

Each import happens in a process of its own: processor time over that of an empty process, and what the interpreter
itself says about each module (``-X importtime``).
"""

from __future__ import annotations

import functools
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.task import Task

SECTION = "import"
PEERS = ("clew", "numpy", "torch", "torch.fx", "jax", "tensorflow")
LINE = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)")
FOLDER = str(Path(tempfile.gettempdir()) / "clew-benchmarks-compiled")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
ENVIRONMENT["PYTHONPYCACHEPREFIX"] = FOLDER
"""Clew is imported as users import it, from compiled files; other packages have theirs."""
FRAMEWORKS = ("torch", "jax", "jaxlib", "tensorflow", "keras", "numpy")
COUNT = "import clew, sys; print(len(sys.modules), *sorted(set({names!r}) & set(sys.modules)))"


def tasks(quick: bool) -> list[Task]:
    """One task for each package, and one for Clew's own share."""
    turns = 3 if quick else 9
    packages = PEERS[:2] if quick else PEERS
    timed = [Task(f"import: {name}", functools.partial(_time, name, turns)) for name in packages]
    return [*timed, Task("import: Clew's own", functools.partial(_own, turns)), Task("import: modules", _modules)]


def _time(package: str, turns: int) -> list[Figure]:
    environment = ENVIRONMENT if package == "clew" else None
    turns = turns if package == "clew" else min(turns, 3)
    _seconds(f"import {package}", environment)  # which leaves its compiled files
    pairs = [(_seconds("pass", environment), _seconds(f"import {package}", environment)) for _ in range(turns)]
    cost = statistics.median(after - before for before, after in pairs)
    return [Figure(SECTION, "whole import", package, cost * 1e3, "ms", turns=turns)]


def _seconds(program: str, environment: dict[str, str] | None) -> float:
    """The processor time of a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def own_shares() -> dict[str, float]:
    """The shares of Clew's own files, and of all others, in the time of one import."""
    command = [sys.executable, "-X", "importtime", "-c", "import clew"]
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=ENVIRONMENT).stderr
    found = {"Clew's own files": 0.0, "optree": 0.0, "Python's library": 0.0}
    for microseconds, name in LINE.findall(told):
        package = name.partition(".")[0]
        kind = {"clew": "Clew's own files", "optree": "optree"}.get(package, "Python's library")
        found[kind] += int(microseconds)
    return {kind: share / sum(found.values()) for kind, share in found.items()}


def _own(turns: int) -> list[Figure]:
    found = [own_shares() for _ in range(turns)]
    (whole,) = _time("clew", turns)
    shares = {kind: statistics.median(one[kind] for one in found) for kind in found[0]}
    return [
        Figure(SECTION, "share of `import clew`", kind, share * (whole.value or 0.0), "ms", turns=turns)
        for kind, share in shares.items()
    ]


def _modules() -> list[Figure]:
    program = COUNT.format(names=FRAMEWORKS)
    told = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    brought = " ".join(told[1:]) or "none"
    return [
        Figure(SECTION, "after `import clew`", "modules loaded", float(told[0]), ""),
        Figure(SECTION, "after `import clew`", "frameworks loaded", float(len(told) - 1), "", brought),
    ]
