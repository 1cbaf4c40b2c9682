"""Every row of torch's table, judged by torch's own samples: ``python -m benchmarks.translate_rows [--to jax]``.

Each operator of the list that torch keeps for its own tests is captured on its samples, translated and compared, for
each dtype that both frameworks have: equal, refused with the reason, or WRONG. Each outcome is appended to a results
file at once and a second run goes on where the first one stopped. The page of holes goes to docs/translate_rows.md.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import logging
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy
import torch
from rich.console import Console

import clew
from benchmarks import resumable
from benchmarks.examination import TimeLimit, first_line, time_limit
from benchmarks.opinfo import UNWRITTEN, operators
from clew import tree
from clew.errors import CaptureError, GuardError, TranslationError
from clew.translate.check import difference
from clew.translate.program import SOURCES, conversion

DTYPES = ("float32", "int64", "bool", "complex64", "float16", "bfloat16")
TARGETS = ("jax", "numpy", "tensorflow")
SECONDS = 60
Row = dict[str, Any]


def examine(name: str, to: str, dtypes: tuple[str, ...], samples: int) -> Row:
    """How an operator fares for each dtype: counts of outcomes, and the first reason of each."""
    row: Row = {"name": name, "dtypes": {}}
    for operator in (one for one in _by_name()[name]):
        for dtype in dtypes:
            if getattr(torch, dtype) in operator.supported_dtypes("cpu"):
                row["dtypes"][dtype] = _of_dtype(operator, to, dtype, samples)
    return row


@functools.cache
def _by_name() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for operator in operators():
        if operator.name not in UNWRITTEN:
            found.setdefault(".".join(filter(None, (operator.name, operator.variant_test_name))), []).append(operator)
    return found


def _of_dtype(operator: Any, to: str, dtype: str, samples: int) -> dict[str, Any]:
    outcomes: Counter[str] = Counter()
    reasons: dict[str, str] = {}
    try:
        with time_limit(SECONDS):
            for sample in _samples(operator, getattr(torch, dtype), samples):
                outcome, _, reason = _judged(operator.op, sample, to).partition(": ")
                outcomes[outcome] += 1
                reasons.setdefault(outcome, reason)
    except TimeLimit as error:
        outcomes["timeout"] += 1
        reasons["timeout"] = str(error)
    except Exception as error:
        outcomes["left out"] += 1
        reasons["left out"] = first_line(error)
    return {"outcomes": dict(outcomes), "reasons": reasons}


def _samples(operator: Any, dtype: torch.dtype, count: int) -> list[Any]:
    """As many samples, spread over all that torch has."""
    found = list(operator.sample_inputs("cpu", dtype))
    step = max(len(found) // count, 1)
    return found[::step][:count]


def _judged(function: Callable[..., Any], sample: Any, to: str) -> str:
    """``equal``, ``refused: why``, ``left out: why`` or ``WRONG: how``."""

    program, args = _program(function, (sample.input, *sample.args), dict(sample.kwargs))
    try:
        torch.manual_seed(0)
        wanted = tree.flatten(program(*_own(args)))[0]
        again = tree.flatten(program(*_own(args)))[0]
        captured = clew.trace(program, _own(args))
    except CaptureError as error:
        return f"left out: not captured: {error.what[:80]}"
    except Exception as error:
        return f"left out: torch raises: {first_line(error)[:80]}"
    try:
        made = clew.translate(captured, to, check=False)
    except TranslationError as error:
        return f"refused: {_first_refusal(error)}"
    if made.draws or any(not _alike(one, other) for one, other in zip(wanted, again, strict=True)):
        return "random"
    source, convert = conversion("torch", to)
    try:
        found = tree.flatten(made(*(convert(source.to_numpy(one)) for one in args)))[0]
    except GuardError as error:
        return f"WRONG: the example is guarded against: {first_line(error)}"
    except Exception as error:
        return f"WRONG: it raises: {first_line(error)}"
    outcome = _compared(found, wanted, source)
    return "noted" if outcome.startswith("WRONG") and any("equal items" in one for one in made.notes) else outcome


def _program(function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The call as a program of its arrays alone, in which everything else is written out; and the arrays."""
    leaves, structure = tree.flatten((args, kwargs))
    names = [f"x{place}" if isinstance(one, torch.Tensor) else f"c{place}" for place, one in enumerate(leaves)]
    given, named = tree.unflatten(names, structure)
    known = {name: one for name, one in zip(names, leaves, strict=True) if name.startswith("c")}
    arrays = [name for name in names if name.startswith("x")]
    call = [_written(one) for one in given] + [f"{name}={_written(one)}" for name, one in named.items()]
    space: dict[str, Any] = {"function": function, **known}
    exec(f"def program({', '.join(arrays)}):\n    return function({', '.join(call)})", space)
    return space["program"], tuple(one for one in leaves if isinstance(one, torch.Tensor))


def _written(nest: Any) -> str:
    if isinstance(nest, (list, tuple)):
        inner = "".join(f"{_written(one)}, " for one in nest)
        return f"[{inner}]" if isinstance(nest, list) else f"({inner})"
    if isinstance(nest, dict):
        return "{" + ", ".join(f"{key!r}: {_written(one)}" for key, one in nest.items()) + "}"
    return f"slice({nest.start}, {nest.stop}, {nest.step})" if isinstance(nest, slice) else str(nest)


def _first_refusal(error: TranslationError) -> str:
    lines = str(error.what).splitlines()
    return lines[1].strip()[:200] if len(lines) > 1 else lines[0][:200]


def _own(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if type(value) in (list, tuple):
        return type(value)(_own(item) for item in value)
    return {key: _own(item) for key, item in value.items()} if type(value) is dict else value


def _alike(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor) or one.layout is not torch.strided:
        return True
    return torch.equal(torch.nan_to_num(one), torch.nan_to_num(other))


def _compared(found: list[Any], wanted: list[Any], source: Any) -> str:
    if len(found) != len(wanted):
        return f"WRONG: {len(found)} results, not {len(wanted)}"
    for one, other in zip(found, wanted, strict=True):
        if source.is_array(other):
            problem = difference(numpy.asarray(one), source.to_numpy(other))
            if problem:
                return f"WRONG: {problem}"
        elif isinstance(other, (bool, int, float)) and one != other and other == other:
            return f"WRONG: {one!r}, not {other!r}"
    return "equal"


def _prepare(to: str, dtypes: tuple[str, ...], samples: int) -> Callable[[str], Row]:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    return functools.partial(examine, to=to, dtypes=dtypes, samples=samples)


# ---- the page --------------------------------------------------------------------------------------------------------


def counted(rows: Iterable[Row]) -> Counter[str]:
    """How many pairs of an operator and a dtype are equal throughout, in part, refused, WRONG."""
    found: Counter[str] = Counter()
    for row in rows:
        for one in row.get("dtypes", {}).values():
            found[_verdict(one["outcomes"])] += 1
    return found


def _verdict(outcomes: dict[str, int]) -> str:
    if "WRONG" in outcomes:
        return "WRONG"
    good = _good(outcomes)
    if "refused" in outcomes or "timeout" in outcomes:
        return "in part" if good else "refused"
    return "equal" if good else "left out"


def _good(outcomes: dict[str, int]) -> int:
    """Random numbers are not compared, nor places of equal items, which torch may have in any order."""
    return sum(outcomes.get(one, 0) for one in ("equal", "random", "noted"))


def markdown(rows: list[Row]) -> str:
    """The whole page."""
    lines = ["# Rows of torch, and their holes", ""]
    lines += [
        "torch's functions, each on samples that torch keeps for its own tests, translated and compared; written by",
        "`python -m benchmarks.translate_rows`. A pair is an operator and a dtype. In part: some samples are refused.",
        "Left out: what Clew does not capture, and samples that torch itself refuses.",
        "",
    ]
    for to in sorted({row["to"] for row in rows}):
        part = sorted((row for row in rows if row["to"] == to), key=lambda row: row["name"])
        counts = counted(part)
        told = ", ".join(f"{name} {counts[name]}" for name in ("equal", "in part", "refused", "WRONG", "left out"))
        lines += [f"## To {to}", "", f"{len(part)} operators: {told}.", ""]
        lines += ["| operator | dtype | equal | refused | why |", "|---|---|---|---|---|"]
        lines += [_line(row["name"], dtypes) for row in part for dtypes in _holes(row)]
        lines.append("")
    return "\n".join(lines)


def _holes(row: Row) -> list[tuple[str, dict[str, Any]]]:
    """What is not equal throughout; dtypes that fare alike are one line."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for dtype, one in row.get("dtypes", {}).items():
        if _verdict(one["outcomes"]) in ("equal", "left out"):
            continue
        key = json.dumps([one["outcomes"], _why(one)])
        before = found.get(key)
        found[key] = (dtype if before is None else f"{before[0]}, {dtype}", one)
    return list(found.values())


def _why(one: dict[str, Any]) -> str:
    reasons = one["reasons"]
    text = str(reasons.get("WRONG") or reasons.get("refused") or reasons.get("timeout") or "")
    operation, _, rest = text.partition(" (")
    return f"{operation}: {rest.partition('): ')[2]}" if "): " in rest else text


def _line(name: str, hole: tuple[str, dict[str, Any]]) -> str:
    dtypes, one = hole
    outcomes = one["outcomes"]
    good = _good(outcomes)
    refused = outcomes.get("refused", 0) + outcomes.get("timeout", 0)
    wrong = f" (WRONG {outcomes['WRONG']})" if "WRONG" in outcomes else ""
    why = _why(one)[:120].replace("|", "\\|").replace("<", "&lt;")
    return f"| {name} | {dtypes} | {good} | {refused}{wrong} | {why} |"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.translate_rows", description=__doc__)
    resumable.add_arguments(parser, "operators", "translate_rows.jsonl", "docs/translate_rows.md")
    parser.add_argument("--to", default="jax", choices=TARGETS, help="the target framework")
    parser.add_argument("--step", type=int, default=1, help="every Nth operator")
    parser.add_argument("--rows", action="store_true", help="only operators that have a row of their own")
    parser.add_argument("--again", action="store_true", help="measure again what is not equal throughout")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES)
    parser.add_argument("--samples", type=int, default=12, help="at most so many of each operator and dtype")
    return parser.parse_args()


def main() -> None:
    """Measure what is not measured yet, then write the page of everything in the results file."""
    chosen = _arguments()
    console = Console()
    done = {name for (to, name), row in resumable.read(chosen.results, "to", "name").items()
            if to == chosen.to and not (chosen.again and _holes(row))}  # fmt: skip
    table = importlib.import_module(SOURCES["torch"]).SOURCE.table
    wanted = [name for name, found in _by_name().items() if not chosen.rows or table.find([found[0].name])]
    names = chosen.only or [name for name in wanted[:: chosen.step] if name not in done]
    work = functools.partial(_prepare, chosen.to, tuple(chosen.dtypes), chosen.samples)
    limit = SECONDS * len(chosen.dtypes)
    resumable.measure(names, work, chosen, limit, {"to": chosen.to}, lambda row: str(row["name"])[:40])
    rows = list(resumable.read(chosen.results, "to", "name").values())
    chosen.table.write_text(markdown(rows))
    part = [row for row in rows if row["to"] == chosen.to]
    console.print(dict(counted(part)))
    for row in part:
        for dtypes, one in _holes(row):
            if "WRONG" in one["outcomes"]:
                console.print(f"{row['name']} {dtypes}: {one['reasons']['WRONG']}", markup=False)


if __name__ == "__main__":
    main()
