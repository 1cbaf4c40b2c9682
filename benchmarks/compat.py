"""Which versions Clew works with: ``python -m benchmarks.compat [--only NAME ...] [--write]``, also ``make compat``.

A wheel is built and installed into an empty environment for each row of the table, with the versions that it names, and
``compat_check.py`` is run there. ``--write`` writes the outcome to ``docs/dev/compat.md``. Environments stay in
``.compat``, so that a second run only installs what has changed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from rich.progress import track

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".compat"
PAGE = ROOT / "docs" / "dev" / "compat.md"
CHECK = Path(__file__).with_name("compat_check.py")
_SHOWN = ("numpy", "optree", "rich", "safetensors", "click", "jax", "torch")


class Row(NamedTuple):
    """One environment."""

    name: str
    python: str
    packages: tuple[str, ...]


ROWS = (
    Row("oldest", "3.11", ("numpy==1.26.*", "optree==0.13.*", "rich==13.0.*", "safetensors==0.4.3", "click==8.1.*")),
    Row("newest-3.11", "3.11", ()),
    Row("newest-3.12", "3.12", ()),
    Row("newest-3.13", "3.13", ()),
    Row("jax-oldest", "3.11", ("jax==0.10.2",)),
    Row("jax-newest", "3.13", ("jax",)),
    Row("torch-2.13", "3.11", ("torch==2.13.0",)),
)


def interpreter(version: str) -> str | None:
    """A Python of this version, if one is installed."""
    for command in ([f"python{version}"], ["pyenv", "prefix", version], *_pyenv(version)):
        try:
            found = subprocess.run([*command, "--version"] if len(command) == 1 else command, capture_output=True,
                                   text=True, check=True)  # fmt: skip
        except (OSError, subprocess.CalledProcessError):
            continue
        return command[0] if len(command) == 1 else str(Path(found.stdout.strip()) / "bin" / "python")
    return None


def _pyenv(version: str) -> list[list[str]]:
    folder = Path.home() / ".pyenv" / "versions"
    return [[str(one / "bin" / "python")] for one in sorted(folder.glob(f"{version}.*"), reverse=True)]


def build() -> Path:
    """The wheel of this checkout."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(FOLDER), str(ROOT)]
    subprocess.run(command, check=True)
    return next(FOLDER.glob("clew-*.whl"))


def examine(row: Row, wheel: Path) -> dict[str, str]:
    """The versions that were installed, and the outcome of each check."""
    python = interpreter(row.python)
    if python is None:
        return {"python": row.python, "outcome": "no interpreter"}
    home = FOLDER / row.name
    if not (home / "bin" / "python").exists():
        subprocess.run([python, "-m", "venv", str(home)], check=True)
    run = str(home / "bin" / "python")
    installed = subprocess.run([run, "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", str(wheel)],
                               capture_output=True, text=True, check=False)  # fmt: skip
    installed = subprocess.run([run, "-m", "pip", "install", "--quiet", *row.packages, str(wheel)], capture_output=True,
                               text=True, check=False)  # fmt: skip
    if installed.returncode:
        return {"python": row.python, "outcome": f"not installed: {installed.stderr.strip().splitlines()[-1]}"}
    listed = json.loads(subprocess.run([run, "-m", "pip", "list", "--format=json"], capture_output=True, text=True,
                                       check=True).stdout)  # fmt: skip
    versions = {one["name"].lower(): one["version"] for one in listed}
    found = subprocess.run([run, "-P", str(CHECK)], capture_output=True, text=True, check=False)
    outcome = json.loads(found.stdout.splitlines()[-1]) if not found.returncode else {"import": found.stderr[-200:]}
    exact = subprocess.run([run, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    shown = {name: versions[name] for name in _SHOWN if name in versions}
    return {"python": exact, **shown, "outcome": ", ".join(f"{name}: {told}" for name, told in outcome.items())}


def page(rows: dict[str, dict[str, str]]) -> str:
    """The page of developers about versions."""
    columns = ["python", *_SHOWN, "outcome"]
    lines = ["# Versions", "",
             "Written by `make compat`: a wheel in an empty environment for each row, and what works there.", "",
             f"| environment | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]  # fmt: skip
    lines += [f"| {name} | {' | '.join(row.get(column, '') for column in columns)} |" for name, row in rows.items()]
    lines += ["", "The whole suite runs on the versions of `constraints.txt`; other Pythons and torch 2.15:",
              "[other Pythons](pythons.md).", ""]  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """Examine the rows that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compat", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[row.name for row in ROWS])
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    wheel = build()
    rows = [row for row in ROWS if chosen.only is None or row.name in chosen.only]
    found = {row.name: examine(row, wheel) for row in track(rows, description="environments")}
    print(page(found))
    if chosen.write:
        PAGE.write_text(page(found))


if __name__ == "__main__":
    main()
