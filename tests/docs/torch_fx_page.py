"""Writes the tables of modules in docs/from_torch_fx.md: ``python -m tests.docs.torch_fx_page``.

In come the modules of torch.fx and clew.fx as they are installed; out goes the part of the page behind its mark, one
table a module. A name that Clew defines itself keeps what the page says of it; of all others the state is found out:
torch's own module, torch.fx's source over Clew's classes, or left out.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path

import clew.fx
from clew.fx.torch_source import is_shared

from .tables import rows_in
from .torch_fx_names import all_modules, module_names

PAGE = Path(__file__).resolve().parents[2] / "docs" / "from_torch_fx.md"
BEGIN, END = "<!-- every module -->", "<!-- end of every module -->"
OWN_STATE = "torch's own module: it holds a state that torch itself reads, or no graphs at all"
OVER_CLEW = "torch.fx's own source, run over Clew's classes"


def state_of(module: str, name: str) -> tuple[str, str]:
    """What becomes of a name of a module of torch.fx under clew.fx, and how."""
    short = module.removeprefix("torch.fx").lstrip(".")
    ours = importlib.import_module(f"clew.fx.{short}".rstrip("."))
    if is_shared(short):
        return "same", OWN_STATE
    if not hasattr(ours, name):
        return "left out", "a variable of a loop or the like, no interface"
    file = getattr(ours, "__file__", None) or ""
    is_own = name in vars(ours) and "clew" in file and not file.startswith(str(Path(inspect.__file__).parent))
    return ("same", "Clew's own") if is_own else ("through torch.fx", OVER_CLEW)


def tables(notes: dict[tuple[str, str], tuple[str, str]]) -> str:
    """One table for each module; ``notes`` has what is known of names that are Clew's own."""
    parts = []
    for module in all_modules():
        grouped: dict[tuple[str, str], list[str]] = {}
        for name in sorted(module_names(module)):
            state = state_of(module, name)
            if state[1] == "Clew's own":
                state = notes.get((module, name), notes.get(("torch.fx", name), state))
            grouped.setdefault(state, []).append(name)
        lines = [f"| {', '.join(f'`{name}`' for name in names)} | {state} | {note} |"
                 for (state, note), names in grouped.items()]  # fmt: skip
        parts.append("\n".join([f"### `{module}`", "", "| name | state | note |", "|---|---|---|", *lines]))
    return "\n\n".join(parts)


def notes_in(text: str) -> dict[tuple[str, str], tuple[str, str]]:
    """What the page says of names that are better here, and of others with a note."""
    rows = [row for row in rows_in(text) if row.heading.startswith("torch.fx") and row.state in ("same", "better")]
    return {(row.heading, row.name): (row.state, row.note) for row in rows}


def page(text: str) -> str:
    """The page with its tables made anew."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{tables(notes_in(text))}\n\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
    sys.exit(0 if clew.fx else 1)
