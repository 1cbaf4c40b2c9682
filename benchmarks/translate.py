"""Which architectures are translated, and rightly: ``python -m benchmarks.translate [--to jax] [--step N]``.

Each architecture of transformers that is captured is translated, compared on the example, with other values, at another
batch size and another length, and under the target's compiler; so are the gradients of its weights. One that computes
in 64 bits is translated with ``jax_enable_x64``. Each outcome is appended to a results file at once, and a second run
goes on where the first one stopped. The table of everything in it goes to docs/translated.md.
"""

from __future__ import annotations

import argparse
import copy
import functools
import gc
import logging
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy
import torch
from rich.console import Console

import clew
from benchmarks import resumable
from benchmarks.examination import EXAMPLE, PADDED, VARIATIONS, TimeLimit, first_line, run_once, runnable, time_limit
from benchmarks.transformers_suite import TransformersSuite
from clew import tree
from clew.errors import CaptureError, EqualItemsWarning, GuardError, TranslationError
from clew.translate.check import difference
from clew.translate.program import conversion

VARIED = ("values", "batch", "length")
JUDGED = ("translated", "can be", "refused", "WRONG", "failed", "timeout")
GRACE = 20


def examine(name: str, to: str, seconds: int, dry_run: bool = False) -> dict[str, Any]:
    """Everything that is found out about one architecture; with ``dry_run`` only what would be refused."""
    row: dict[str, Any] = {"name": name, "to": to, "outcome": "skipped"}
    start = time.monotonic()
    try:
        with time_limit(seconds), torch.no_grad():
            _examine(name, to, row, dry_run)
    except TimeLimit as error:
        row |= {"outcome": "timeout" if "class" in row else "skipped", "reason": str(error)}
    except Exception as error:
        row |= {"outcome": "failed" if "class" in row else "skipped", "reason": first_line(error)}
    gc.collect()
    row["seconds"] = round(time.monotonic() - start, 1)
    return row


def _examine(name: str, to: str, row: dict[str, Any], dry_run: bool) -> None:
    found = runnable(TransformersSuite(), name, row)
    if found is None:
        return
    args, kwargs = found.make(EXAMPLE)
    start = time.monotonic()
    try:
        captured = clew.trace(found.model, args, kwargs)
    except CaptureError as error:
        row["reason"] = f"not captured: {first_line(error)}"
        return
    row["class"], row["capture_s"] = type(found.model).__name__, _since(start)
    start = time.monotonic()
    refusals = clew.translate(captured, to, dry_run=True)
    is_wide = to == "jax" and any("jax_enable_x64" in one.reason for one in refusals)
    row |= {"bits": 64} if is_wide else {}
    with _wide() if is_wide else nullcontext():
        refusals = clew.translate(captured, to, dry_run=True) if is_wide else refusals
        row["translate_s"] = _since(start)
        if refusals:
            row |= {"outcome": "refused", "refusals": [str(one) for one in refusals]}
        elif dry_run:
            row["outcome"] = "can be"
        else:
            _translate(found, captured, to, row)


def _since(start: float) -> float:
    return round(time.monotonic() - start, 1)


@contextmanager
def _wide() -> Iterator[None]:
    """JAX with 64 bits."""
    import jax

    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", False)


def _translate(found: Any, captured: Any, to: str, row: dict[str, Any]) -> None:
    try:
        made = clew.translate(captured, to)
    except TranslationError as error:
        row |= {"outcome": "refused", "refusals": [f"the check: {error.what}"]}
        return
    _compare(found, made, conversion("torch", to), row)


def _compare(found: Any, made: Any, ways: Any, row: dict[str, Any]) -> None:
    inputs = {"example": EXAMPLE, **{key: VARIATIONS[key] for key in VARIED}, "padded": PADDED}
    for key, variation in inputs.items():
        row[key] = _same(found.model, made, made, found.make(variation), ways)
    compiled = _compiled(made)
    if compiled is not None:
        row["compiled"] = _same(found.model, made, compiled, found.make(EXAMPLE), ways)
    row["gradients"] = _slopes(found.model, made, found.make(EXAMPLE), ways)
    outcomes = [row[key] for key in inputs] + [row.get("compiled", "equal"), row["gradients"]]
    wrong = next((one for one in outcomes if one.startswith("WRONG")), "")
    row["outcome"] = "WRONG" if wrong else "translated" if row["example"].startswith(("equal", "warned")) else "failed"
    row["reason"] = wrong or row["example"]


def _same(model: Any, made: Any, run: Any, inputs: Any, ways: Any) -> str:
    """``equal``, ``guarded``, ``warned`` (of equal items, of which torch may take others), ``WRONG`` or what was
    raised; ``n/a`` where the model does not take such inputs."""
    source, convert = ways
    try:
        wanted = tree.flatten(run_once(model, inputs))[0]
    except Exception:
        return "n/a"
    leaves, structure = tree.flatten(inputs)
    there = {id(leaf): convert(source.to_numpy(leaf)) if source.is_array(leaf) else leaf for leaf in leaves}
    args, kwargs = tree.unflatten([there[id(leaf)] for leaf in leaves], structure)
    try:
        made_check = made.check(*args, **kwargs)
        if made_check is not None:
            return f"guarded: {made_check}"[:200]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", EqualItemsWarning)
            got = tree.flatten(run(*args, **kwargs))[0]
    except GuardError as error:
        return f"guarded: {first_line(error)}"
    except Exception as error:
        return f"failed: {first_line(error)}"
    if len(got) != len(wanted):
        return "WRONG: another number of results"
    for one, other in zip(got, wanted, strict=True):
        problem = difference(numpy.asarray(one), source.to_numpy(other)) if source.is_array(other) else ""
        if problem and any(issubclass(one.category, EqualItemsWarning) for one in told):
            return f"warned: others of equal items in topk ({problem})"
        if problem:
            return f"WRONG: {problem}"
    return "equal"


def _slopes(model: Any, made: Any, inputs: Any, ways: Any) -> str:
    """The gradients of the sum of all results for all weights, beside those of torch; relative to the largest one."""
    if not hasattr(made, "slopes") or made.draws or made.needs_key:
        return "n/a"
    source, convert = ways
    try:
        wanted = source.slopes(model, copy.deepcopy(inputs))
    except Exception:
        return "n/a"
    if not wanted:
        return "n/a"
    leaves, structure = tree.flatten(inputs)
    args, kwargs = tree.unflatten([convert(source.to_numpy(x)) if source.is_array(x) else x for x in leaves], structure)
    try:
        got = made.slopes(args, kwargs)
    except Exception as error:
        return f"failed: {first_line(error)}"
    for name in wanted.keys() & got.keys():
        want = source.to_numpy(wanted[name])
        size = max(1.0, float(abs(want).max(initial=0.0)))
        problem = difference(numpy.asarray(got[name]) / size, want / size)
        if problem:
            return f"WRONG: the gradient of {name}: {problem}"
    return "equal"


def _compiled(made: Any) -> Callable[..., Any] | None:
    """The program under the compiler of its framework; None if it has none, or needs a key."""
    if made.framework != "jax" or made.needs_key:
        return None
    import jax

    def run(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten((args, kwargs))
        arrays = {place: leaf for place, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)}

        def pure(params: Any, state: Any, arrays: Any) -> Any:
            filled = [arrays.get(place, leaf) for place, leaf in enumerate(leaves)]
            args, kwargs = tree.unflatten(filled, structure)
            return tree.flatten(made.pure(params, state, *args, **kwargs)[0])[0]

        return jax.jit(pure)(made.params, made.state, arrays)

    return run


def _prepare(to: str, seconds: int, dry_run: bool, cache: str) -> Callable[[str], dict[str, Any]]:
    torch.set_num_threads(1)
    if to == "jax" and not dry_run:
        _keep_compiled(cache)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    return functools.partial(examine, to=to, seconds=seconds, dry_run=dry_run)


def _keep_compiled(folder: str) -> None:
    """Let JAX keep what it compiles, for this run and later ones: most of the time goes into single operations."""
    import jax

    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def summary(rows: list[dict[str, Any]]) -> str:
    """The counts of one target in one line."""
    outcomes = Counter(row["outcome"] for row in rows)
    ran = sum(outcomes[one] for one in JUDGED)
    parts = [f"{one} {outcomes[one]} ({outcomes[one] / ran:.1%})" for one in JUDGED if outcomes[one]]
    skipped = f"; {outcomes['skipped']} do not run, or are not captured" if outcomes["skipped"] else ""
    return f"{ran} architectures: " + ", ".join(parts) + skipped


def reasons(rows: list[dict[str, Any]]) -> list[tuple[str, int, list[str]]]:
    """What stands in the way, how many architectures it stands in the way of, and which."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for text in sorted({_short(one) for one in row.get("refusals", ())}):
            found.setdefault(text, []).append(row["name"])
    return sorted(((text, len(names), names) for text, names in found.items()), key=lambda one: -one[1])


def _short(refusal: str) -> str:
    """A refusal without its place."""
    operation, _, rest = refusal.partition(" (")
    return f"{operation}: {rest.partition('): ')[2]}"[:160] if rest else refusal[:160]


def markdown(rows: list[dict[str, Any]]) -> str:
    """The whole page."""
    lines = ["# Translated architectures", ""]
    lines += [
        "Small random models of transformers, captured and translated; written by `python -m benchmarks.translate`.",
        "*Can be*: nothing is refused, and it was not run (`--dry-run`). *Guarded*: a guard refused such inputs.",
        "*Warned*: another result, and a warning that `topk` took some of several equal items. *Timeout*: not done",
        "within the time limit, on a machine that others used as well; what is in the row was done before.",
        "",
    ]
    for to in sorted({row["to"] for row in rows}):
        part = sorted((row for row in rows if row["to"] == to), key=lambda row: row["name"])
        lines += [f"## torch to {to}", "", summary(part), "", "| what is refused | architectures |", "|---|---|"]
        lines += [f"| {_cell(text)} | {count} |" for text, count, _ in reasons(part)[:40]]
        lines += ["", f"| architecture | outcome | {' | '.join(VARIED)} | compiled | gradients |",
                  "|" + "---|" * (len(VARIED) + 4)]  # fmt: skip
        for row in part:
            cells = [str(row.get(key, "")).partition(":")[0] for key in (*VARIED, "compiled", "gradients")]
            lines.append(f"| {row['name']} | {row['outcome']} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.translate", description=__doc__)
    resumable.add_arguments(parser, "architectures", "translate.jsonl", "docs/translated.md")
    parser.add_argument("--to", default="jax", help="the target framework")
    parser.add_argument("--step", type=int, default=1, help="every Nth architecture")
    parser.add_argument("--again", nargs="+", metavar="OUTCOME", default=[], help="measure these outcomes again")
    parser.add_argument("--first", type=int, default=0, help="the first architecture, from which --step counts")
    parser.add_argument(
        "--dry-run", action="store_true", help="only what is refused; run nothing (use other --results)"
    )
    parser.add_argument("--seconds", type=int, default=120, help="the time limit of each architecture")
    return parser.parse_args()


def main() -> None:
    """Measure what is not measured yet, then write the table of everything in the results file."""
    chosen = _arguments()
    console = Console()
    done = {
        name
        for (to, name), row in resumable.read(chosen.results, "to", "name").items()
        if to == chosen.to and row["outcome"] not in chosen.again
    }
    names = chosen.only or [
        name for name in TransformersSuite().names()[chosen.first :: chosen.step] if name not in done
    ]
    cache = str(chosen.results.with_suffix(".compiled").absolute())
    work = functools.partial(_prepare, chosen.to, chosen.seconds, chosen.dry_run, cache)
    resumable.measure(names, work, chosen, chosen.seconds + GRACE, {"to": chosen.to})
    rows = list(resumable.read(chosen.results, "to", "name").values())
    chosen.table.write_text(markdown(rows))
    part = [row for row in rows if row["to"] == chosen.to]
    console.print(summary(part))
    for text, count, which in reasons(part)[:25]:
        console.print(f"{count:4} {text}  [{', '.join(which[:4])}]", markup=False)


if __name__ == "__main__":
    main()
