"""The fuzzer: programs are always the same, each kind of difference is seen, wrong programs become small."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.fuzz import __main__ as command
from benchmarks.fuzz import found as mistakes
from benchmarks.fuzz.forms import FORMS, form_of
from benchmarks.fuzz.frameworks import VOCABULARIES
from benchmarks.fuzz.judge import BROKEN, EQUAL, GUARDED, REFUSED, SLOW, WRONG_ANSWER, judge, runs, worst
from benchmarks.fuzz.program import FUNCTION, MODULE, Probe, RandomProgram, from_json
from benchmarks.fuzz.shrink import family, same_mistake, shrink
from benchmarks.fuzz.writer import write
from clew.errors import CaptureError, GuardError
from tests.footguns.baking import bake

SEED, COUNT = 0, 60
EXAMPLE = Probe("example", "torch.ones(2, 3), torch.ones(2, 3)")
OTHER = Probe("other values", "torch.ones(2, 3) * 2, torch.ones(2, 3)")


def small(body: str, *probes: Probe) -> RandomProgram:
    """A program of a few lines."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    source = f"import torch\nCOUNT = 0\ndef program(x, y):\n{lines}\ndef make():\n    return program\n"
    return RandomProgram(9, 9, FUNCTION, source, (EXAMPLE, *(probes or (OTHER,))))


def original(fn: Any, args: Any, kwargs: Any) -> Any:
    return fn


def spoiling(spoil: Any) -> Any:
    """A capture that does what the program does, and one thing more or otherwise."""

    def capture(fn: Any, args: Any, kwargs: Any) -> Any:
        return lambda *a, **k: spoil(fn, *a, **k)

    return capture


# ---- the generator -------------------------------------------------------------------------------------------------


def test_programs_are_always_the_same() -> None:
    for index in range(40):
        assert write(5, index) == write(5, index)
    assert len({write(5, index).source for index in range(40)}) == 40
    assert write(5, 0).source != write(6, 0).source


def test_programs_of_one_kind() -> None:
    assert {write(1, index, MODULE).kind for index in range(10)} == {MODULE}
    assert {write(1, index).kind for index in range(30)} == {FUNCTION, MODULE}


def test_most_programs_run_and_are_equal_to_themselves() -> None:
    programs = [write(7, index, None, runs) for index in range(40)]
    assert sum(map(runs, programs)) >= 38
    for program in programs:
        found = worst(judge(program, original))
        assert found.status == EQUAL, f"{found}\n{program.text()}"


def test_programs_are_kept_as_text() -> None:
    program = write(3, 1)
    assert from_json(copy.deepcopy(program.as_json())) == program
    assert program.source.strip() in program.text()
    assert program.probes[-1].arguments in program.text()


# ---- the judge -----------------------------------------------------------------------------------------------------

SPOILT: dict[str, tuple[str, Any]] = {
    "values": ("the result", lambda fn, x, y: fn(x, y) + 1),
    "dtype": ("the result", lambda fn, x, y: fn(x, y).double()),
    "structure": ("the result", lambda fn, x, y: (fn(x, y),)),
    "arguments": ("the arguments", lambda fn, x, y: (fn(x, y), x.add_(1))[0]),
    "random numbers": ("the random state", lambda fn, x, y: (fn(x, y), torch.rand(1))[0]),
    "globals": ("the state", lambda fn, x, y: (fn(x, y), fn.__globals__.update(COUNT=3))[0]),
    "an error": ("raised", lambda fn, x, y: fn(x, y) / [][0]),
    "text": ("the text printed", lambda fn, x, y: (fn(x, y), print("more"))[0]),
    "an alias": ("the aliases", lambda fn, x, y: fn(x, y).clone()),
}


@pytest.mark.parametrize("name", SPOILT)
def test_each_kind_of_difference_is_seen(name: str) -> None:
    respect, spoil = SPOILT[name]
    body = "return x" if name == "an alias" else "return x * y"
    found = worst(judge(small(body), spoiling(spoil)))
    assert found.status == WRONG_ANSWER
    assert family(found) == respect, found


def test_an_error_that_is_not_raised_is_seen() -> None:
    program = small("if x.sum() > 6:\n    raise ValueError('large')\nreturn x")
    found = worst(judge(program, spoiling(lambda fn, x, y: x)))
    assert (found.status, family(found), found.name) == (WRONG_ANSWER, "raised nothing", "other values")


def test_errors_are_compared_by_class() -> None:
    def capture(fn: Any, args: Any, kwargs: Any) -> Any:
        def call(x: Any, y: Any) -> Any:
            raise ValueError("other words")

        return call

    assert worst(judge(small("raise ValueError('words')"), capture)).status == EQUAL
    assert worst(judge(small("raise TypeError('words')"), capture)).status == WRONG_ANSWER


def test_attributes_of_modules_and_closures_are_seen() -> None:
    source = "from torch import nn\nclass Model(nn.Module):\n    count = 0\n    def forward(self, x, y):\n"
    source += "        self.count += 1\n        return x * y\ndef make():\n    return Model()\n"
    module = RandomProgram(9, 9, MODULE, source, (EXAMPLE, OTHER))
    assert worst(judge(module, original)).status == EQUAL
    assert family(worst(judge(module, spoiling(lambda fn, x, y: x * y)))) == "the state"
    source = "def make():\n    calls = 0\n    def program(x, y):\n        nonlocal calls\n        calls += 1\n"
    closure = RandomProgram(9, 9, FUNCTION, source + "        return x * y\n    return program\n", (EXAMPLE, OTHER))
    assert worst(judge(closure, original)).status == EQUAL
    assert family(worst(judge(closure, spoiling(lambda fn, x, y: x * y)))) == "the state"


def test_refusals_are_told_apart() -> None:
    def never(fn: Any, args: Any, kwargs: Any) -> Any:
        raise CaptureError("no")

    def only_ones(fn: Any, x: Any, y: Any) -> Any:
        if x.sum() > 6:
            raise GuardError("x")
        return fn(x, y)

    def slow(fn: Any, x: Any, y: Any) -> Any:
        while True:
            x = x + 0

    assert worst(judge(small("return x"), never)).status == REFUSED
    assert worst(judge(small("return x"), spoiling(only_ones))).status == GUARDED
    assert worst(judge(small("return x"), spoiling(slow), seconds=0.2)).status == SLOW
    assert worst(judge(small("return x", Probe("odd", "no_such_name")))).status == BROKEN


def test_what_comes_before_a_call_is_done_to_both() -> None:
    program = small(
        "return x * COUNT", Probe("changed world", "torch.ones(2, 3), torch.ones(2, 3)", "module.COUNT = 5")
    )
    assert worst(judge(program, original)).status == EQUAL
    assert worst(judge(program, bake)).status == WRONG_ANSWER


# ---- the shrinker --------------------------------------------------------------------------------------------------


def test_wrong_programs_become_small() -> None:
    body = "a = x + 1\nb = []\nfor i in range(3):\n    b.append(a * i)\nif x.sum() > 6:\n    a = a * y.exp()\n"
    program = small(body + "c = {'k': a}\nreturn c['k'] + b[0]", OTHER, EXAMPLE, OTHER)
    verdict = worst(judge(program, bake))
    assert verdict.status == WRONG_ANSWER
    still_wrong = same_mistake(verdict, bake)
    found = shrink(program, still_wrong, seconds=20)
    assert still_wrong(found)
    assert len(found.probes) == 2
    assert "for" not in found.source and "append" not in found.source and "exp" not in found.source
    assert len(found.source) < 0.6 * len(program.source)


def test_a_program_that_cannot_be_smaller_stays() -> None:
    program = small("return x")
    assert shrink(program, lambda one: False, seconds=5) == program


# ---- what was found, and the command -------------------------------------------------------------------------------


def test_mistakes_are_kept_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    mistake = mistakes.Mistake(small("return x"), "the result", "other values")
    mistakes.add(mistake, path)
    mistakes.add(mistake, path)
    assert mistakes.read(path) == {("torch", 9, 9): mistake}


def test_what_was_found_once_is_not_wrong_again(capsys: pytest.CaptureFixture[str]) -> None:
    status = command.main(["--found"])
    shown = capsys.readouterr().out
    assert status == 0, shown
    assert len(shown.splitlines()) == len(mistakes.read()) > 10


def test_a_few_programs_are_not_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    """Of these none is wrong; the command runs more."""
    status = command.main(["--seed", str(SEED), "--programs", str(COUNT), "--shrink-seconds", "0"])
    shown = capsys.readouterr().out
    assert status == 0, shown
    assert f"{COUNT} programs" in shown and "wrong per 1,000" in shown and "BROKEN" not in shown


FEW = {"numpy": 12, "jax": 6, "tensorflow": 6}


@pytest.mark.parametrize("framework", FEW)
def test_programs_of_other_frameworks_are_never_wrong(framework: str) -> None:
    found = set()
    for index in range(FEW[framework]):
        program = write(11, index, None, runs, VOCABULARIES[framework])
        assert "torch" not in program.source and program.framework == framework
        assert from_json(program.as_json()) == program
        verdict = worst(judge(program))
        found.add(verdict.status)
        assert verdict.status not in (WRONG_ANSWER, BROKEN), program.text()
    assert found & {EQUAL, GUARDED}, "none was captured"


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_a_capture_is_judged(form: str) -> None:
    program = small("if x.sum() > 7:\n    x = x * 2\nreturn x + y", OTHER, EXAMPLE)
    found = judge(program, FORMS[form])
    assert {one.status for one in found} == {EQUAL}, found


def test_forms_take_turns() -> None:
    assert {form_of(index) for index in range(32)} == set(FORMS)
    assert [form_of(index) for index in range(0, 10, 2)] == ["trace"] * 5


@pytest.mark.parametrize("framework", ["jax", "tensorflow"])
def test_arrays_of_other_frameworks_are_compared(framework: str) -> None:
    source = "def program(x, y):\n    return x * y\ndef make():\n    return program\n"
    arrays = {"jax": "jnp.ones((2, 3)), jnp.ones(3)", "tensorflow": "tf.ones((2, 3)), tf.ones(3)"}[framework]
    probes = (Probe("example", arrays), Probe("other values", arrays))
    program = RandomProgram(9, 9, FUNCTION, source, probes, framework)
    assert worst(judge(program, original)).status == EQUAL
    assert family(worst(judge(program, spoiling(lambda fn, x, y: fn(x, y) + 1)))) == "the result"
    assert family(worst(judge(program, spoiling(lambda fn, x, y: (fn(x, y),))))) == "the result"


def test_a_run_goes_on_where_it_stood(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.jsonl"
    arguments = ["--seed", str(SEED), "--shrink-seconds", "0", "--form", "all", "--log", str(log), "--programs"]
    assert command.main([*arguments, "4"]) == 0
    lines = log.read_text().splitlines()
    assert [json.loads(line)["form"] for line in lines] == [form_of(index) for index in range(4)]
    assert command.main([*arguments, "6"]) == 0
    assert log.read_text().splitlines()[:4] == lines and len(log.read_text().splitlines()) == 6
    assert "6 programs" in capsys.readouterr().out.splitlines()[-4]
