"""Random plain programs against captures of them: `python -m benchmarks.fuzz [--framework F] [--minutes N] [--seed S]`.

Program i of a seed is always the same. Each is captured on one example and called on several probes in sequence, beside
fresh copies; a wrong one is made small and printed. `--form` judges another form of the capture, `--lazy` lazy graphs,
`--form all` each program in one of them. With `--log FILE` each verdict is a line of that file, and a run that was
broken off goes on where it stood. `--found` runs the mistakes found before, `--keep` adds what is wrong to their file,
`--show I` prints one program. The exit status is 1 when a program came out wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.fuzz import found
from benchmarks.fuzz.forms import FORMS, form_of
from benchmarks.fuzz.frameworks import VOCABULARIES
from benchmarks.fuzz.judge import BROKEN, VERDICTS, WRONG_ANSWER, Verdict, judge, runs, worst
from benchmarks.fuzz.log import Log
from benchmarks.fuzz.program import KINDS, RandomProgram
from benchmarks.fuzz.shrink import family, same_mistake, shrink
from benchmarks.fuzz.writer import write


def main(arguments: list[str] | None = None) -> int:
    """Runs what the command line asks for."""
    options = _parser().parse_args(arguments)
    torch.set_num_threads(1)
    if options.show is not None:
        print(write(options.seed, options.show, options.kind, runs, VOCABULARIES[options.framework]).text())
        return 0
    if options.found:
        return _run_found()
    return _run_random(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the index of the first program")
    parser.add_argument("--programs", type=int, default=1000, help="how many programs")
    parser.add_argument("--framework", choices=tuple(VOCABULARIES), default="torch")
    parser.add_argument("--form", choices=(*FORMS, "all"), default="trace", help="what is judged of a capture")
    parser.add_argument("--lazy", dest="form", action="store_const", const="lazy", help="lazy graphs: --form lazy")
    parser.add_argument("--kind", choices=KINDS, help="functions or modules alone")
    parser.add_argument("--seconds", type=float, help="stop after this time")
    parser.add_argument("--minutes", type=float, help="stop after this time; the number of programs is open then")
    parser.add_argument("--log", type=Path, help="a file of verdicts; programs that are in it are not run again")
    parser.add_argument("--shrink-seconds", type=float, default=20.0, help="for each wrong program; 0: not at all")
    parser.add_argument("--found", action="store_true", help="run the mistakes that were found before again")
    parser.add_argument("--keep", action="store_true", help="add what is wrong to the file of mistakes")
    parser.add_argument("--show", type=int, metavar="I", help="print program I of the seed and leave")
    return parser


_ENDLESS = 10**9


def _run_random(options: argparse.Namespace) -> int:
    seconds = options.seconds if options.minutes is None else 60 * options.minutes
    count = options.programs if options.minutes is None else _ENDLESS
    log = Log(options.log, options.framework, options.seed)
    start = time.monotonic()
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=None if count == _ENDLESS else count)
        for index in range(options.first, options.first + count):
            if seconds is not None and time.monotonic() - start > seconds:
                break
            if index not in log.known:
                _run_one(options, index, log)
            shown = ", ".join(f"{log.programs[one]} {one}" for one in VERDICTS if log.programs[one])
            progress.update(bar, advance=1, description=shown)
    _print_summary(options.seed, log, time.monotonic() - start)
    return int(log.programs[WRONG_ANSWER] > 0)


def _run_one(options: argparse.Namespace, index: int, log: Log) -> None:
    """Judge one program, and tell what is wrong with it."""
    program = write(options.seed, index, options.kind, runs, VOCABULARIES[options.framework])
    form = form_of(index) if options.form == "all" else options.form
    verdicts = judge(program, FORMS[form])
    verdict = worst(verdicts)
    what = family(verdict) if verdict.status == WRONG_ANSWER else ""
    log.add(index, form, verdict.status, [one.status for one in verdicts], what)
    if verdict.status == WRONG_ANSWER:
        _tell_wrong(program, verdict, form, options)
    elif verdict.status == BROKEN:
        print(f"BROKEN seed {program.seed} program {index}: {verdict.reason}", flush=True)


def _tell_wrong(program: RandomProgram, verdict: Verdict, form: str, options: argparse.Namespace) -> None:
    told = f"WRONG seed {program.seed} program {program.index}" + (f" as {form}" if form != "trace" else "")
    print(f"{told}, {verdict.name}: {verdict.reason}", flush=True)
    capture, seconds = FORMS[form], options.shrink_seconds
    small = shrink(program, same_mistake(verdict, capture), seconds) if seconds else program
    reason = worst(judge(small, capture)).reason or verdict.reason
    print(f"    made small: {reason}\n" + "".join(f"    {line}\n" for line in small.text().splitlines()), flush=True)
    if options.keep:
        found.add(found.Mistake(small, family(verdict), reason, form))


def _run_found() -> int:
    """Each mistake that was found before, once more."""
    wrong = 0
    for (framework, seed, index), mistake in found.read().items():
        now = worst(judge(mistake.program, FORMS[mistake.form]))
        wrong += now.status == WRONG_ANSWER
        told = f"{mistake.family}: {now.reason or mistake.reason}"
        print(f"{framework} seed {seed} program {index}: {now.status}; {told}")
    return int(wrong > 0)


def _print_summary(seed: int, log: Log, seconds: float) -> None:
    for word, counts in (("programs", log.programs), ("calls", log.calls)):
        shown = ", ".join(f"{counts[status]} {status}" for status in VERDICTS if counts[status])
        print(f"seed {seed}: {sum(counts.values())} {word}: {shown}")
    rate = 1000 * log.programs[WRONG_ANSWER] / max(sum(log.programs.values()), 1)
    print(f"wrong per 1,000: {rate:.1f}; {seconds:.0f} s, {log.judged / max(seconds, 1e-9):.1f} programs a second")
    found = ", ".join(f"{count} {name}" for name, count in log.families.most_common())
    print("wrong by what differs:", found or "none")


if __name__ == "__main__":
    sys.exit(main())
