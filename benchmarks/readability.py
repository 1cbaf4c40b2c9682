"""How much of a captured graph is the program: ``python -m benchmarks.readability [--json FILE] [--table FILE]``.

The models of the day (``day_models``) are captured, and each node is put into one class: the program's own calls, its
frame (inputs, weights, output), guards and what only they need, reads of sizes, reads of dtypes and devices,
constructors of results. Counted besides: guards by kind, and what disturbs in the generated code. Each node is in
exactly one class, whether guards are nodes of the graph or data beside it.
"""

from __future__ import annotations

import argparse
import json
import logging
import operator
import os
import re
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import torch

import clew
from benchmarks.day_models import SUBJECTS, Shape, Subject, tokens
from clew.ir.arguments import all_nodes
from clew.ir.node import Node

Row = dict[str, Any]
STORE = Path(__file__).with_name("readability_before.json")
SIZE_NAMES = frozenset({"shape", "ndim", "size", "dim", "numel", "__len__", "nelement"})
FACT_NAMES = frozenset({"dtype", "device", "layout", "is_cuda", "requires_grad", "is_nested", "training"})
FACT_NAMES |= {"is_floating_point", "get_device", "is_complex"}
CONTAINERS = (list, tuple, dict, set, slice)
PLAIN = frozenset({"getattr", "getitem", "len", "type", "tuple", "bool", "int", "range", "min", "max", "is_", "not_"})
CLASSES = ("own", "frame", "guard_entry", "guard_computed", "guard_reads", "sizes", "facts", "constructors")
KINDS = ("structure", "type", "size", "value", "mode", "variable", "computed")
_FREES = re.compile(r"(^|;)\s*\w+( = \w+)* = None$")


# ---- the class of each node ------------------------------------------------------------------------------------------


def _name(node: Node) -> str:
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")


def _is_of_clew(node: Node) -> bool:
    return (getattr(node.target, "__module__", "") or "").partition(".")[0] == "clew"


def is_guard(node: Node) -> bool:
    """Whether the node checks something: a call of ``require...`` or of ``guard``."""
    return node.op == "call_function" and _is_of_clew(node) and _name(node).startswith(("require", "guard"))


def classify(captured: Any) -> dict[Node, str]:
    """The class of each node, in the order of the graph, bodies of branches and loops included."""
    nodes = list(all_nodes(captured.graph))
    found: dict[Node, str] = {}
    for node in nodes:
        found[node] = _class_of(node, found)
    for node in reversed(nodes):
        if node.op not in ("placeholder", "output") and not is_guard(node) and _serves_guards(node, found):
            found[node] = "guard_reads"
    return found


def _class_of(node: Node, found: dict[Node, str]) -> str:
    if is_guard(node):
        return "guard_computed" if _depends_on_calls(node) else "guard_entry"
    if node.op in ("placeholder", "get_attr", "output"):
        return "frame"
    if _name(node).startswith("rebuild") or node.target in CONTAINERS:
        return "constructors"
    if _is_read_of(node, SIZE_NAMES) or _is_of_sizes(node, found):
        return "sizes"
    return "facts" if _is_read_of(node, FACT_NAMES) else "own"


def _is_read_of(node: Node, names: frozenset[str]) -> bool:
    if node.op == "call_method":
        return node.target in names
    if node.target is getattr:
        return node.args[1] in names
    return node.target is len or (node.op == "call_function" and _name(node) in names)


def _is_of_sizes(node: Node, found: dict[Node, str]) -> bool:
    """Whether the node only takes sizes apart or computes with them."""
    if node.op != "call_function" or not (_is_operator(node) or node.target in (min, max, range, int, bool)):
        return False
    inputs = node.all_input_nodes
    return bool(inputs) and all(found.get(one) == "sizes" for one in inputs)


def _is_operator(node: Node) -> bool:
    return node.target is getattr(operator, _name(node), None)


def _serves_guards(node: Node, found: dict[Node, str]) -> bool:
    users = list(node.users)
    return bool(users) and all(found.get(user, "").startswith("guard") for user in users)


def _depends_on_calls(node: Node) -> bool:
    """Whether a guard needs anything but inputs, attributes and plain reads of them."""
    waiting, seen = list(node.all_input_nodes), set[Node]()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        waiting += one.all_input_nodes
        plain = one.op in ("placeholder", "get_attr") or _is_operator(one) or _name(one) in PLAIN or _is_of_clew(one)
        if not plain and not _is_read_of(one, SIZE_NAMES | FACT_NAMES):
            return True
    return False


# ---- guards by kind --------------------------------------------------------------------------------------------------

# For guards that do not say their kind: the first pattern that is found in their text.
PATTERNS = (
    ("variable", r"is unchanged|are unchanged|is the parameter that was captured"),
    ("mode", r"\btraining\b|grad_enabled|autocast|inference_mode"),
    ("computed", r"\.\w+\((\.\.\.)?\)"),
    ("type", r"^type\(|\.(dtype|device|layout)\b"),
    ("size", r"\.(shape|ndim)\b"),
    ("structure", r"^(tuple|len|list|set)\("),
)


def kind_of(guard: Any) -> str:
    """What a guard looks at."""
    own = getattr(guard, "kind", None)
    if own is not None:
        return str(getattr(own, "value", own))
    text = str(guard)
    return next((kind for kind, pattern in PATTERNS if re.search(pattern, text)), "value")


# ---- one model -------------------------------------------------------------------------------------------------------


def machine_paths(text: str) -> int:
    """How many lines name a folder of this machine."""
    folders = {"site-packages", "dist-packages", os.getcwd(), sys.prefix, str(Path(clew.__file__).parent)}
    return sum(any(folder in line for folder in folders) for line in text.splitlines())


def measure(subject: Subject) -> Row:
    """All counts of one model."""
    program = subject.build()
    args, kwargs = subject.arguments(Shape())
    captured = clew.trace(program.call, args=args, kwargs=kwargs)
    lines = [line for line in captured.code.splitlines() if line.strip()]
    guards = list(captured.guards)
    classes = Counter(classify(captured).values())
    return {
        "nodes": sum(classes.values()),
        "classes": {name: classes[name] for name in CLASSES},
        "guards": len(guards),
        "kinds": dict(sorted(Counter(map(kind_of, guards)).items())),
        "lines": len(lines),
        "freeing": sum(bool(_FREES.search(line)) for line in lines),
        "getattr_self": captured.code.count("getattr(self"),
        "paths": machine_paths("\n".join([captured.code, *map(str, guards)])),
        "characters": len(captured.code),
    }


def _ids(shape: Shape) -> dict[str, Any]:
    return {"input_ids": tokens(shape)}


def subjects() -> dict[str, Subject]:
    """The models of the day, and two that are called with tokens alone."""
    alone = {f"{name}_ids": SUBJECTS[name]._replace(make_arguments=_ids) for name in ("bert", "llama")}
    return alone | SUBJECTS


# ---- the page --------------------------------------------------------------------------------------------------------

COLUMNS = {
    "nodes": ("nodes",),
    "own calls": ("classes", "own"),
    "inputs, weights": ("classes", "frame"),
    "guards at entry": ("classes", "guard_entry"),
    "guards inside": ("classes", "guard_computed"),
    "for guards": ("classes", "guard_reads"),
    "sizes": ("classes", "sizes"),
    "facts": ("classes", "facts"),
    "constructors": ("classes", "constructors"),
    "lines": ("lines",),
    "freeing": ("freeing",),
    "getattr(self": ("getattr_self",),
    "paths": ("paths",),
    "guards": ("guards",),
}
METHOD = """# How readable captures are

Each model is built from a tiny configuration and captured from one example. Every node of the graph, those of branches
and loops included, is counted in one class: *own calls* of the program; *inputs, weights* and the output; *guards at
entry*, which look at inputs, attributes and variables alone, and *guards inside*, which look at what was computed;
nodes that are there *for guards* only; reads of and arithmetic on *sizes*; *facts*, which are reads of dtypes, devices
and modes; *constructors* of results. *lines* are those of `captured.code` that are not empty, *freeing* those among
them that set variables to `None`; `getattr(self` is counted by occurrence, *paths* are lines of code or guards with a
folder of the machine in them. *guards* are all of them, in the graph or beside it. Where two numbers stand, the first
is from before guards became data. `bert_ids` and `llama_ids` are called with tokens alone, the others as their names in
`benchmarks/day_models.py` say. Made by `python -m benchmarks.readability --table docs/readability.md`.
"""


def _value(row: Row | None, path: tuple[str, ...]) -> int:
    value: Any = row
    for key in path:
        value = value[key]
    return int(value)


def _cell(row: Row, before: Row | None, path: tuple[str, ...]) -> str:
    now = _value(row, path)
    old = now if before is None else _value(before, path)
    return str(now) if old == now else f"{old} → {now}"


def table(rows: dict[str, Row], before: dict[str, Row]) -> list[str]:
    """One line for each model, and the sum of those that both have."""
    lines = [f"| model | {' | '.join(COLUMNS)} |", f"|---|{'---|' * len(COLUMNS)}"]
    for name, row in rows.items():
        cells = [_cell(row, before.get(name), path) for path in COLUMNS.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    sums = [_sums(rows, before, path) for path in COLUMNS.values()]
    return [*lines, f"| **all** | {' | '.join(sums)} |"]


def _sums(rows: dict[str, Row], before: dict[str, Row], path: tuple[str, ...]) -> str:
    now = sum(_value(row, path) for row in rows.values())
    old = sum(_value(before.get(name, row), path) for name, row in rows.items())
    return str(now) if old == now else f"{old} → {now}"


def kinds_table(rows: dict[str, Row], before: dict[str, Row]) -> list[str]:
    """Guards by kind, of all models together."""
    now = sum((Counter(row["kinds"]) for row in rows.values()), Counter[str]())
    old = sum((Counter(before.get(name, row)["kinds"]) for name, row in rows.items()), Counter[str]())
    kinds = [*KINDS, *sorted((set(now) | set(old)) - set(KINDS))]
    lines = ["| kind of guard | before | now |", "|---|---|---|"]
    return [*lines, *(f"| {kind} | {old[kind]} | {now[kind]} |" for kind in kinds)]


def page(rows: dict[str, Row], before: dict[str, Row]) -> str:
    """The whole page."""
    return "\n".join([METHOD, *table(rows, before), "", *kinds_table(rows, before), ""])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readability", description=__doc__)
    parser.add_argument("--model", nargs="+", choices=subjects(), metavar="NAME", help="these models only")
    parser.add_argument("--json", type=Path, help="where the counts are stored")
    parser.add_argument("--before", type=Path, default=STORE, help="the counts to compare with")
    parser.add_argument("--table", type=Path, help="where the page is written; docs/readability.md is the one in git")
    return parser.parse_args()


def main() -> None:
    """Measure, print, store."""
    chosen = _arguments()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    known = subjects()
    rows = {name: measure(known[name]) for name in chosen.model or known}
    before = json.loads(chosen.before.read_text()) if chosen.before.exists() else {}
    print("\n".join([*table(rows, before), "", *kinds_table(rows, before)]))
    if chosen.json:
        chosen.json.write_text(
            "{\n" + ",\n".join(f'"{name}": {json.dumps(row)}' for name, row in rows.items()) + "\n}\n"
        )
    if chosen.table:
        chosen.table.write_text(page(rows, before))


if __name__ == "__main__":
    main()
