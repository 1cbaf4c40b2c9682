"""Finds what the house style forbids and no linter knows: texts that name folders of one particular machine.

In comes a file's name and its text; out come sentences "file:line what", empty when all is well. How large things may
be is measured in `limits`; docstrings, work that is put off and swallowed errors are rules of ruff.
"""

from __future__ import annotations

import re

MACHINE_FOLDERS = ("home", "root", "Users", "work", "opt", "mnt", "farm")
# A folder at the very root of a disk: nothing that could be the rest of a longer path or an address stands before it.
MACHINE_PATH = re.compile(r"(?<![\w./~*}\])>$-])/(" + "|".join(MACHINE_FOLDERS) + r")/[\w.]")


def machine_paths(name: str, text: str) -> list[str]:
    """Lines of any text that name a folder of one particular machine."""
    found = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if MACHINE_PATH.search(line)]
    return [f"{name}:{number} names a path of a machine: {line.strip()}" for number, line in found]
