"""The suites that verdicts are stored of, each judged by the code of its own tests.

A suite gives one `Judged` after the other: a program's name, a verdict for each of its calls (equal, guarded, refused
or wrong; `capture` is the capture itself), and why the wrong ones are. Frameworks are imported when asked for.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import clew
from tests.footguns.harness import CAPTURE, GUARDED, WRONG, Outcome, classify
from tests.footguns.ledger import all_programs

EQUAL, REFUSED, WRONG_ANSWER = "equal", "refused", "wrong"
EXAMPLE = "example"


@dataclass(frozen=True)
class Judged:
    """The verdicts on one program, call by call."""

    program: str
    calls: dict[str, str]
    reasons: dict[str, str] = field(default_factory=dict)


def _trace(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return clew.trace(fn, args=args, kwargs=kwargs)


def ledger() -> Iterator[Judged]:
    """The programs of `python -m tests.footguns`."""
    for program in all_programs():
        yield _of_outcomes(f"{program.kind}/{program.name}", classify(program, _trace))


def control_flow() -> Iterator[Judged]:
    """The programs of `python -m tests.control_flow`, with the calls that run backward as calls of their own."""
    from tests.control_flow.examination import examine
    from tests.control_flow.example_programs import all_examples
    from tests.control_flow.register import all_constructs

    for program in [*all_constructs(), *all_examples()]:
        finding = examine(program, "trace")
        half = len(finding.outcomes) if not finding.gradients else _first_of_second_half(finding.outcomes)
        plain = _of_outcomes(f"{finding.construct}/{finding.name}", list(finding.outcomes[:half]))
        backward = _of_outcomes("", list(finding.outcomes[half:]))
        calls = plain.calls | {f"backward {call}": verdict for call, verdict in backward.calls.items()}
        reasons = plain.reasons | {f"backward {call}": reason for call, reason in backward.reasons.items()}
        yield Judged(plain.program, calls, reasons)


def _first_of_second_half(outcomes: tuple[Outcome, ...]) -> int:
    return max(place for place, outcome in enumerate(outcomes) if outcome.call == CAPTURE)


def _of_outcomes(name: str, outcomes: list[Outcome]) -> Judged:
    """What the harness of the ledger found, in the words of this file."""
    words = {one.call: _word(one) for one in outcomes}
    reasons = {one.call: one.reason for one in outcomes if one.status == WRONG}
    return Judged(name, words, reasons)


def _word(outcome: Outcome) -> str:
    if outcome.status == GUARDED:
        return REFUSED if outcome.call in (CAPTURE, EXAMPLE) else GUARDED
    return WRONG_ANSWER if outcome.status == WRONG else EQUAL


# ---- frameworks ----------------------------------------------------------------------------------------------------


def frameworks() -> Iterator[Judged]:
    """The shared list for each framework, their hard programs, and their corpora."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    for part in (_shared, _hard_numpy, _hard_jax, _hard_tensorflow, _corpora, _corpus_tensorflow):
        yield from part()


def _judged(name: str, outcomes: Callable[[], list[str]]) -> Judged:
    """Verdicts of a judge that gives a word for each call, and raises where one is wrong."""
    try:
        words = outcomes()
    except Exception as error:  # the judges raise what a capture does wrong
        reason = f"{type(error).__name__}: {error}"
        return Judged(name, {EXAMPLE: WRONG_ANSWER}, {EXAMPLE: reason})
    if words == [REFUSED]:
        return Judged(name, {CAPTURE: REFUSED})
    later = {f"other {place}": _plain(word) for place, word in enumerate(words) if place}
    return Judged(name, {EXAMPLE: REFUSED if words[0] != EQUAL else EQUAL} | later)


def _plain(word: str) -> str:
    return EQUAL if word == EQUAL else GUARDED if word in (REFUSED, GUARDED) else WRONG_ANSWER


def _shared() -> Iterator[Judged]:
    from tests.frameworks.test_shared import CASES, judge_of, program_of

    for framework, name in CASES:
        outcomes = functools.partial(judge_of(framework).outcomes, program_of(framework, name), clew.trace)
        yield _judged(f"shared/{framework}/{name}", outcomes)


def _hard_numpy() -> Iterator[Judged]:
    from tests.frameworks.numpy.hard import PROGRAMS
    from tests.frameworks.numpy.test_hard_programs import judge

    for name, program in PROGRAMS.items():
        yield _judged(f"hard/numpy/{name}", functools.partial(judge, program, clew.trace))


def _hard_jax() -> Iterator[Judged]:
    from tests.frameworks.jax.test_hard_programs import JUDGE, PROGRAMS

    for name, program in PROGRAMS.items():
        yield _judged(f"hard/jax/{name}", functools.partial(JUDGE.outcomes, program, clew.trace))


def _hard_tensorflow() -> Iterator[Judged]:
    from tests.frameworks.tensorflow.test_hard_programs import JUDGE, PROGRAMS

    for name, program in PROGRAMS.items():
        yield _judged(f"hard/tensorflow/{name}", functools.partial(JUDGE.outcomes, program, clew.trace))


def _corpora() -> Iterator[Judged]:
    """Algorithms of NumPy, torch and JAX: every call of each."""
    from tests.frameworks.jax import test_corpus as jax_corpus
    from tests.frameworks.numpy import test_algorithms as numpy_corpus
    from tests.frameworks.torch import test_algorithms as torch_corpus

    for name in numpy_corpus.ALGORITHMS:
        yield _judged(f"corpus/numpy/{name}", functools.partial(_equal, numpy_corpus.test_captured_and_equal, name))
    for name in torch_corpus.ALGORITHMS:
        yield _judged(f"corpus/torch/{name}", functools.partial(_equal, torch_corpus.test_captured_and_equal, name))
    for name in jax_corpus.PROGRAMS:
        yield _judged(f"corpus/jax/{name}", functools.partial(_equal, jax_corpus.test_right_on_other_values, name))


def _corpus_tensorflow() -> Iterator[Judged]:
    from tests.frameworks.tensorflow import test_corpus

    for program in test_corpus.PROGRAMS:
        outcomes = functools.partial(_equal, test_corpus.test_other_values, program)
        yield _judged(f"corpus/tensorflow/{program.label}", outcomes)


def _equal(test: Callable[[Any], None], program: Any) -> list[str]:
    """A test of a corpus passes where the program is equal on all its calls."""
    test(program)
    return [EQUAL]


# ---- models --------------------------------------------------------------------------------------------------------


def models(limit: int | None = None, results: Path | None = None) -> Iterator[Judged]:
    """Small models of the architectures of transformers, or the rows of a run of `python -m benchmarks.coverage`."""
    if results is not None:
        rows: Any = (json.loads(line) for line in results.read_text().splitlines())
    else:
        from benchmarks import coverage, workers

        names = coverage.suite_named("transformers").names()[:limit]
        rows = workers.run(names, functools.partial(coverage.prepare, "transformers", 120), 1, 140)
    for row in rows:
        calls = of_model(row)
        if calls:
            yield Judged(f"transformers/{row['name']}", calls, {call: str(row.get("reason", "")) for call in calls})


def of_model(row: dict[str, Any]) -> dict[str, str]:
    """The verdicts in a row of the coverage benchmark; none for a model that does not run here, or not in the time."""
    if "example" not in row:
        words = {"refused": REFUSED, "failed": WRONG_ANSWER}
        return {CAPTURE: words[row["outcome"]]} if row["outcome"] in words else {}
    words = {"equal": EQUAL, "general": EQUAL, "guarded": GUARDED, "WRONG": WRONG_ANSWER, "failed": WRONG_ANSWER}
    keys = (EXAMPLE, "values", "batch", "one", "length", "size", "padded")
    found = {key: words.get(str(row.get(key))) for key in keys}
    return {key: word for key, word in found.items() if word is not None}
