"""On which machine and with which versions the figures were measured."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("torch", "transformers", "numpy", "jax", "tensorflow-cpu", "tensorflow", "optree")


def describe() -> dict[str, str]:
    """The processor, its cores, the system, and the versions of what takes part."""
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "C++ compiler": _compiler(),
        "Python": platform.python_version(),
        **{name: found for name in PACKAGES if (found := _version(name))},
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _compiler() -> str:
    found = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if found is None:
        return "none, so inductor is not measured"
    first = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout.splitlines()
    return first[0] if first else "unknown"
