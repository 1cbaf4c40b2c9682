"""Whether a change altered any graph: ``python -m benchmarks.texts [--suite NAME ...] [--write] [--dump|--diff FILE]``.

Every program of the ledger, of control flow, of the frameworks' lists and the models of the day is captured, and its
text kept: the graph, its guards, its code, or the refusal. Hashes of the texts are stored beside this file; without
options the command names what differs from them, and its exit status is 1 when something does. ``--write`` stores what
comes out. ``--dump`` writes all texts to a file, and ``--diff`` compares with such a file line by line.

Where Clew's own functions live is left out of a text: moving a function is no change of a graph.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

import clew
from benchmarks.verdicts import suites
from tests.footguns.world import quietly

STORE = Path(__file__).with_name("texts.json")
SUITES = ("ledger", "control_flow", "frameworks", "models")
UNSTABLE = frozenset({
    "ledger/kept_elsewhere/filter_counts_what_is_logged",
    "ledger/kept_elsewhere/handler_keeps_what_is_logged",
    "ledger/kept_elsewhere/handler_of_a_logger_in_an_object",
    "ledger/outside_world/all_variables_of_the_environment",
    "ledger/outside_world/arguments_of_the_process",
    "ledger/surroundings/clock_under_another_name",
})  # fmt: skip
"""Programs whose text holds a time, or something of the process that captures them."""
_HOME = re.compile(r"\bclew(\.[a-z]\w*)+(?=\.\w| import )")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}")
_FILE = re.compile(r"(?<![\w.])(/[\w.+-]+){2,}")
_OWN_LINE = re.compile(r"(?<=\btexts\.py:)\d+|(?<=a file:)\d+(?=, in trace:)")

Texts = dict[str, str]


def text_of(captured: Any) -> str:
    """All that a user can read of a capture."""
    guards = "\n".join(sorted(str(captured.guards).splitlines()))  # variables come in no order
    return _stable("\n\n".join([str(captured.graph), guards, captured.code]))


def _stable(text: str) -> str:
    """The text without what differs from one process, or one layout of Clew's source, to the next."""
    return _OWN_LINE.sub("0", _FILE.sub("a file", _ADDRESS.sub("0x", _HOME.sub("clew", text))))


@contextmanager
def _kept_captures(keep: Callable[[str], None]) -> Iterator[None]:
    """Hands the text of all that ``clew.trace`` gives to a function, its refusals included."""
    original = clew.trace

    def trace(*args: Any, **options: Any) -> Any:
        try:
            captured = original(*args, **options)
        except Exception as error:
            keep(f"{type(error).__name__}: {_stable(str(error))}")
            raise
        if hasattr(captured, "graph"):
            keep(text_of(captured))
        return captured

    clew.trace = trace
    try:
        yield
    finally:
        clew.trace = original


def texts(suite: str) -> Iterator[tuple[str, str]]:
    """The programs of a suite, each with the texts of all captures that its judges make."""
    if suite == "models":
        yield from _models()
        return
    kept: list[str] = []
    with _kept_captures(kept.append):
        for judged in getattr(suites, suite)():
            yield f"{suite}/{judged.program}", "\n\n".join(kept)
            kept.clear()


def _models() -> Iterator[tuple[str, str]]:
    from benchmarks.day_models import SUBJECTS, Shape

    for name, subject in SUBJECTS.items():
        args, kwargs = subject.arguments(Shape())
        yield f"models/{name}", text_of(clew.trace(subject.build().call, args=args, kwargs=kwargs))


def collected(chosen: tuple[str, ...]) -> Texts:
    """The texts of some suites by name; how far it is goes to the terminal."""
    found: Texts = {}
    for suite in chosen:
        with quietly():
            for name, text in texts(suite):
                if name not in UNSTABLE:
                    found[name] = text
        print(f"{suite}: {sum(name.startswith(f'{suite}/') for name in found)} programs", file=sys.stderr, flush=True)
    return found


def hash_of(text: str) -> str:
    """Short, and different for different texts."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def differences(before: Texts, now: Texts) -> Iterator[str]:
    """A unified diff of each program whose text differs."""
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            old, new = before.get(name, "").splitlines(), now.get(name, "").splitlines()
            yield "\n".join(difflib.unified_diff(old, new, f"{name} before", f"{name} now", lineterm="", n=1))


def _changed(stored: dict[str, str], now: Texts, chosen: tuple[str, ...]) -> list[str]:
    expected = {name: value for name, value in stored.items() if name.partition("/")[0] in chosen}
    hashes = {name: hash_of(text) for name, text in now.items()}
    return sorted(name for name in expected.keys() | hashes.keys() if expected.get(name) != hashes.get(name))


def main(arguments: list[str] | None = None) -> int:
    """Runs what the command line asks for."""
    options = _parser().parse_args(arguments)
    torch.set_num_threads(1)
    chosen = tuple(options.suite or SUITES)
    now = collected(chosen)
    stored: dict[str, str] = json.loads(STORE.read_text()) if STORE.exists() else {}
    if options.dump:
        options.dump.write_text(json.dumps(now, indent=0))
    if options.write:
        kept = {name: value for name, value in stored.items() if name.partition("/")[0] not in chosen}
        kept |= {name: hash_of(text) for name, text in now.items()}
        STORE.write_text(json.dumps(dict(sorted(kept.items())), indent=0) + "\n")
        return 0
    if options.diff:
        stored = json.loads(options.diff.read_text())
        before = {name: _stable(text) for name, text in stored.items() if _is_of(name, chosen)}
        found = list(differences(before, now))
    else:
        found = _changed(stored, now, chosen)
    print(*found, f"{len(found)} of {len(now)} texts differ", sep="\n")
    return int(bool(found))


def _is_of(name: str, chosen: tuple[str, ...]) -> bool:
    return name.partition("/")[0] in chosen and name not in UNSTABLE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.texts", description=__doc__)
    parser.add_argument("--suite", nargs="+", choices=SUITES, help="all by default")
    parser.add_argument("--write", action="store_true", help="store the hashes of what comes out")
    parser.add_argument("--dump", type=Path, help="write all texts to this file")
    parser.add_argument("--diff", type=Path, help="compare with a file that --dump has written")
    return parser


if __name__ == "__main__":
    sys.exit(main())
