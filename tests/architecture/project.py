"""Where the project's files are.

Goes out: the repository's root, the source folder, and the list of text files that belong to the project. Build
outputs and ignored files are never among them.
"""

from __future__ import annotations

import ast
import functools
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "clew"

OUTPUT_FOLDERS = {"build", "dist", "__pycache__", "node_modules"}


def project_files(root: Path = ROOT) -> list[Path]:
    """Every file of the project: git's view where there is a repository, else all that is neither hidden nor built."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    if (root / ".git").exists():
        listing = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
        files = [root / name for name in listing.split("\0") if name]
        return sorted(path for path in files if path.is_file())
    return sorted(path for path in root.rglob("*") if path.is_file() and not is_output(path.relative_to(root)))


def is_output(relative: Path) -> bool:
    """True for a path inside a hidden folder, a build folder or an installed package's metadata."""
    folders = relative.parts[:-1]
    return any(part.startswith(".") or part in OUTPUT_FOLDERS or part.endswith(".egg-info") for part in folders)


def python_files(folder: Path) -> list[Path]:
    """The project's Python files under a folder, in a stable order."""
    return [path for path in project_files() if path.suffix == ".py" and path.is_relative_to(folder)]


def read_text(path: Path) -> str | None:
    """The text of a file, or None when it is not UTF-8 text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


@functools.cache
def parsed(text: str) -> ast.Module:
    """The syntax tree of a source, made once for all who look at it."""
    return ast.parse(text)
