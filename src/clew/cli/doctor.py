"""``clew doctor``: what is installed here, and which versions Clew was tested with.

Out come rows, one for each package: its version here, the versions that were tested, and whether they fit. Nothing is
imported for it but the metadata of packages.
"""

from __future__ import annotations

import platform
import re
import sys
from dataclasses import asdict, dataclass
from importlib import metadata

OK, UNTESTED, ABSENT, TOO_OLD, MISSING = "ok", "untested", "not installed", "too old", "missing"
PYTHONS = ((3, 11), (3, 12), (3, 13))
TESTED: dict[str, tuple[str, str, bool]] = {
    "numpy": ("1.26", "2.5", True),
    "optree": ("0.13", "0.20", True),
    "rich": ("13.0", "15.0", True),
    "click": ("8.1", "8.5", True),
    "safetensors": ("0.4.3", "0.8", True),
    "torch": ("2.11", "2.15", False),
    "jax": ("0.10.2", "0.12.0", False),
    "tensorflow": ("2.21", "2.21", False),
    "transformers": ("5.17", "5.22", False),
    "einops": ("0.8", "0.8", False),
    "keras": ("3.15", "3.15", False),
}
"""The oldest and the newest version of each package that Clew's tests were run with, and whether Clew needs it."""
_ALIASES = {"tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tensorflow-macos")}


@dataclass(frozen=True)
class Finding:
    """One package."""

    package: str
    installed: str
    tested: str
    state: str

    def to_dict(self) -> dict[str, str]:
        """The same as plain data."""
        return asdict(self)


def examine() -> list[Finding]:
    """A finding for Python, for Clew, and for each package that it knows."""
    tested = ", ".join(f"{major}.{minor}" for major, minor in PYTHONS)
    known = sys.version_info[:2] in PYTHONS
    found = [Finding("python", platform.python_version(), tested, OK if known else UNTESTED)]
    return found + [_package(name) for name in TESTED]


def is_usable(findings: list[Finding]) -> bool:
    """Whether Clew can run at all: what it needs is there, and not too old."""
    return not any(one.state in (MISSING, TOO_OLD) for one in findings)


def _package(name: str) -> Finding:
    oldest, newest, is_needed = TESTED[name]
    tested = oldest if oldest == newest else f"{oldest} to {newest}"
    version = installed_version(name)
    if version is None:
        return Finding(name, "-", tested, MISSING if is_needed else ABSENT)
    if _numbers(version) < _numbers(oldest):
        return Finding(name, version, tested, TOO_OLD if is_needed else UNTESTED)
    is_newer = _numbers(version)[: len(_numbers(newest))] > _numbers(newest)
    return Finding(name, version, tested, UNTESTED if is_newer else OK)


def installed_version(name: str) -> str | None:
    """The version of a package that is installed; None if it is not."""
    for alias in _ALIASES.get(name, (name,)):
        try:
            return metadata.version(alias)
        except metadata.PackageNotFoundError:
            continue
    return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0]))[:3]
