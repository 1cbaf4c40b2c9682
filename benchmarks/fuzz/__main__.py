"""Random plain programs against captures of them: `python -m benchmarks.fuzz [--seed N] [--programs N] [--seconds S]`.

Program i of a seed is always the same. Each is captured on one example and called on several probes in sequence, beside
fresh copies; a wrong one is made small and printed. `--found` runs the programs of the file of
mistakes found before, `--keep` adds what is wrong to it, `--show I` prints one program. The exit status is 1 when a
program came out wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

import torch

from benchmarks.fuzz import found
from benchmarks.fuzz.judge import BROKEN, VERDICTS, WRONG_ANSWER, Verdict, judge, runs, trace, worst
from benchmarks.fuzz.program import KINDS, RandomProgram
from benchmarks.fuzz.shrink import family, same_mistake, shrink
from benchmarks.fuzz.vocabularies import Vocabulary
from benchmarks.fuzz.vocabularies.numpy import NUMPY
from benchmarks.fuzz.vocabularies.torch import TORCH
from benchmarks.fuzz.writer import write

VOCABULARIES: dict[str, Vocabulary] = {one.name: one for one in (TORCH, NUMPY)}


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
    parser.add_argument("--kind", choices=KINDS, help="functions or modules alone")
    parser.add_argument("--seconds", type=float, help="stop after this time")
    parser.add_argument("--shrink-seconds", type=float, default=20.0, help="for each wrong program; 0: not at all")
    parser.add_argument("--found", action="store_true", help="run the mistakes that were found before again")
    parser.add_argument("--keep", action="store_true", help="add what is wrong to the file of mistakes")
    parser.add_argument("--show", type=int, metavar="I", help="print program I of the seed and leave")
    return parser


def _run_random(options: argparse.Namespace) -> int:
    start, programs, calls, families = time.monotonic(), Counter[str](), Counter[str](), Counter[str]()
    for index in range(options.first, options.first + options.programs):
        if options.seconds is not None and time.monotonic() - start > options.seconds:
            break
        program = write(options.seed, index, options.kind, runs, VOCABULARIES[options.framework])
        verdicts = judge(program)
        verdict = worst(verdicts)
        programs[verdict.status] += 1
        calls.update(one.status for one in verdicts)
        if verdict.status == WRONG_ANSWER:
            families[family(verdict)] += 1
            _tell_wrong(program, verdict, options)
        elif verdict.status == BROKEN:
            print(f"BROKEN seed {program.seed} program {index}: {verdict.reason}", flush=True)
    _print_summary(options.seed, programs, calls, time.monotonic() - start)
    print("wrong by what differs:", ", ".join(f"{count} {name}" for name, count in families.most_common()) or "none")
    return int(programs[WRONG_ANSWER] > 0)


def _tell_wrong(program: RandomProgram, verdict: Verdict, options: argparse.Namespace) -> None:
    print(f"WRONG seed {program.seed} program {program.index}, {verdict.name}: {verdict.reason}", flush=True)
    small = shrink(program, same_mistake(verdict, trace), options.shrink_seconds) if options.shrink_seconds else program
    reason = worst(judge(small)).reason or verdict.reason
    print(f"    made small: {reason}\n" + "".join(f"    {line}\n" for line in small.text().splitlines()), flush=True)
    if options.keep:
        found.add(found.Mistake(small, family(verdict), reason))


def _run_found() -> int:
    """Each mistake that was found before, once more."""
    wrong = 0
    for (framework, seed, index), mistake in found.read().items():
        now = worst(judge(mistake.program))
        wrong += now.status == WRONG_ANSWER
        told = f"{mistake.family}: {now.reason or mistake.reason}"
        print(f"{framework} seed {seed} program {index}: {now.status}; {told}")
    return int(wrong > 0)


def _print_summary(seed: int, programs: Counter[str], calls: Counter[str], seconds: float) -> None:
    total = max(sum(programs.values()), 1)
    for word, counts in (("programs", programs), ("calls", calls)):
        shown = ", ".join(f"{counts[status]} {status}" for status in VERDICTS if counts[status])
        print(f"seed {seed}: {sum(counts.values())} {word}: {shown}")
    rate = 1000 * programs[WRONG_ANSWER] / total
    print(f"wrong per 1,000: {rate:.1f}; {seconds:.0f} s, {total / max(seconds, 1e-9):.1f} programs a second")


if __name__ == "__main__":
    sys.exit(main())
