"""The size and shape of the code, measured: `python -m tests.architecture.measure [--against GIT_REVISION]`.

A checkout of the project comes in; out go its lines, files, files with a single importer, the classes with the most
attributes, and how many files one opens to follow four questions. The last are the files of Clew on the call stack, up
to the user's line if the program is running, at each moment when a function gives what the question asks for (the node,
the guard, the branch, the line) for the first time. Nothing is written down: with `--against` another revision is
checked out into a temporary folder and measured the same way.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.architecture.imports import imports_of, module_name
from tests.architecture.project import ROOT, parsed

LARGEST = 5
QUESTIONS = {
    "a torch call becomes a node": "opened(lambda: clew.trace(call, args=(x,)), lambda value: target(value) == 'relu')",
    "a guard comes about": "opened(lambda: clew.trace(guarded, args=(x,)), is_guard)",
    "a data-dependent if becomes a branch": (
        "opened(lambda: clew.trace(branching, args=(x,)), lambda value: target(value) == 'cond')"
    ),
    "a line of code is written": (
        "made = clew.trace(call, args=(x,))\n"
        "opened(lambda: made.graph.python_code('self'), lambda value: type(value) is str and 'torch.relu(' in value)"
    ),
}
"""What is run for each question, and how a value is told that is what the question asks for."""
PROGRAMS = """
import torch

def call(x):
    return torch.relu(x)

def guarded(x):
    return x + 1 if x.shape[0] > 2 else x

def branching(x):
    if x.sum() > 0:
        return x + 1
    return x - 1
"""
WATCH = '''
import sys, pathlib, torch, clew, programs
from clew.ir.guards import Guard
from clew.ir.node import Node
from programs import branching, call, guarded

package = str(pathlib.Path(clew.__file__).parent)
x = torch.ones(3)

def target(value):
    return getattr(value.target, "__name__", "") if isinstance(value, Node) else ""

def is_guard(value):
    return isinstance(value, Guard) or target(value).startswith("require")

def opened(action, is_wanted):
    """Prints the files of Clew on the call stack whenever a function gives a value that is wanted, and new."""
    found, known = set(), []
    def note(frame, event, value):
        if event != "return" or not is_wanted(value) or any(value is one for one in known):
            return
        known.append(value)
        while frame is not None and frame.f_code.co_filename != programs.__file__:
            found.add(frame.f_code.co_filename)
            frame = frame.f_back
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    own = sorted(str(pathlib.Path(name).relative_to(package)) for name in found if name.startswith(package))
    print("\\n".join(own))
'''


def measured(root: Path) -> dict[str, str]:
    """Every figure of a checkout, by its name."""
    sources = sources_of(root)
    figures = {
        "lines": str(sum(len(text.splitlines()) for text in sources.values())),
        "files": str(len(sources)),
        "files with a single importer": str(len(single_importers(sources))),
    }
    largest = Counter(attributes_of_classes(sources)).most_common(LARGEST)
    figures |= {f"class {place}": f"{name} ({count})" for place, (name, count) in enumerate(largest, start=1)}
    return figures | {f"files: {question}": str(len(files_opened(root, question))) for question in QUESTIONS}


def sources_of(root: Path) -> dict[str, str]:
    """The modules of a checkout by their dotted names, and their texts."""
    folder = root / "src"
    return {module_name(path, folder): path.read_text(encoding="utf-8") for path in sorted(folder.glob("clew/**/*.py"))}


def single_importers(sources: dict[str, str]) -> list[str]:
    """The modules that exactly one other module imports, packages aside."""
    importers: dict[str, set[str]] = {}
    for name, text in sources.items():
        for entry in imports_of(name, text, sources):
            importers.setdefault(entry.module, set()).add(name)
    return [name for name in sources if not name.endswith("__init__") and len(importers.get(name, ())) == 1]


def attributes_of_classes(sources: dict[str, str]) -> dict[str, int]:
    """How many attributes each class has: fields in its body, and what its methods assign on `self`."""
    found: dict[str, int] = {}
    for name, text in sources.items():
        for node in ast.walk(parsed(text)):
            if isinstance(node, ast.ClassDef):
                found[f"{name.removeprefix('clew.')}.{node.name}"] = len(set(_attributes(node)))
    return found


def _attributes(definition: ast.ClassDef) -> Iterator[str]:
    for statement in definition.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id
    for node in ast.walk(definition):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            if node.value.id == "self":
                yield node.attr


def files_opened(root: Path, question: str) -> list[str]:
    """The files of Clew on the call stack when what a question asks for is made."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "programs.py").write_text(PROGRAMS, encoding="utf-8")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root / "src"), folder])}
        command = [sys.executable, "-c", f"{WATCH}\n{QUESTIONS[question]}"]
        run = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"the program of {question!r} failed:\n{run.stderr}")
    return run.stdout.split()


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """A revision of the project in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "checkout")
        _git("worktree", "add", "--quiet", "--detach", str(target), revision)
        try:
            yield target
        finally:
            _git("worktree", "remove", "--force", str(target))


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=ROOT, check=True)


def table(columns: dict[str, dict[str, str]]) -> str:
    """The figures of several checkouts side by side, under their names."""
    names = list(dict.fromkeys(name for figures in columns.values() for name in figures))
    rows = [["", *columns], *([name, *(figures.get(name, "") for figures in columns.values())] for name in names)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_aligned(row, widths) for row in rows)


def _aligned(cells: Iterable[str], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def main(arguments: list[str] | None = None) -> int:
    """Measures what the command line asks for and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.architecture.measure", description=__doc__)
    parser.add_argument("--against", metavar="GIT_REVISION", help="a revision to measure beside the files as they are")
    parser.add_argument("--list", action="store_true", help="the files of each question as well")
    options = parser.parse_args(arguments)
    columns = {}
    if options.against is not None:
        with checkout(options.against) as root:
            columns[options.against] = measured(root)
    columns["now"] = measured(ROOT)
    print(table(columns))
    if options.list:
        for question in QUESTIONS:
            print(f"\n{question}:", *files_opened(ROOT, question), sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
