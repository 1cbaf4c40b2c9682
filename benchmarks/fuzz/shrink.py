"""Makes a wrong program small: drops statements and probes, unfolds blocks, simplifies, while it stays wrong.

In come a program and what tells whether a smaller one shows the same mistake; out comes the smallest that was found in
the time. Every step works on the syntax tree of the program's text, so that it holds for any program.
"""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from benchmarks.fuzz.judge import WRONG_ANSWER, Verdict, judge, worst
from benchmarks.fuzz.program import Probe, RandomProgram
from tests.footguns.harness import Capture

StillWrong = Callable[[RandomProgram], bool]
SECONDS = 30.0
PLAIN = ("x", "y", "1", "1.0", "True", "False", "None", "[]")


def shrink(program: RandomProgram, still_wrong: StillWrong, seconds: float = SECONDS) -> RandomProgram:
    """The smallest program found; the given one where none is smaller."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        smaller = _one_round(program, still_wrong, end)
        if smaller == program:
            break
        program = smaller
    return program


def same_mistake(verdict: Verdict, capture: Capture) -> StillWrong:
    """Whether a program is wrong in the same respect: capture or call, and what differs."""
    wanted = family(verdict)

    def still_wrong(program: RandomProgram) -> bool:
        found = worst(judge(program, capture, seconds=3.0))
        return found.status == WRONG_ANSWER and family(found) == wanted

    return still_wrong


def family(verdict: Verdict) -> str:
    """In which respect a verdict is wrong, in a few words."""
    respects = ("left a trace", "capture failed", "raised nothing", "raised", "the result", "the arguments")
    respects += ("the aliases", "the random state", "the modes", "the module", "the state", "later")
    return next((one for one in respects if one in verdict.reason), "something else")


def _one_round(program: RandomProgram, still_wrong: StillWrong, end: float) -> RandomProgram:
    for steps in (_fewer_probes, _simpler_texts, _simpler_probes):
        program = _greedily(program, steps, still_wrong, end)
    return program


def _greedily(
    program: RandomProgram,
    steps: Callable[[RandomProgram], Iterator[RandomProgram]],
    still_wrong: StillWrong,
    end: float,
) -> RandomProgram:
    """Takes each step that keeps the mistake, and begins the list of steps anew where it was, not at its start."""
    place = 0
    while time.monotonic() < end:
        candidate = next((one for number, one in enumerate(steps(program)) if number == place), None)
        if candidate is None:
            return program
        if len(candidate.text()) < len(program.text()) and still_wrong(candidate):
            program = candidate
        else:
            place += 1
    return program


def _fewer_probes(program: RandomProgram) -> Iterator[RandomProgram]:
    example, *others = program.probes
    for probe in others:
        yield replace(program, probes=(example, probe))
    yield replace(program, probes=(example,))
    for place in range(len(others)):
        yield replace(program, probes=(example, *others[:place], *others[place + 1 :]))


def _simpler_probes(program: RandomProgram) -> Iterator[RandomProgram]:
    """Without actions, and without an argument that no call needs."""
    for place, probe in enumerate(program.probes):
        if probe.action:
            yield replace(program, probes=_with(program.probes, place, replace(probe, action="")))
    calls = [ast.parse(f"call({probe.arguments})", mode="eval").body for probe in program.probes]
    names = {keyword.arg for call in calls if isinstance(call, ast.Call) for keyword in call.keywords}
    for name in sorted(one for one in names if one):
        probes = [replace(probe, arguments=_without(probe.arguments, name)) for probe in program.probes]
        source = _without_parameter(program.source, name)
        if source is not None:
            yield replace(program, probes=tuple(probes), source=source)
    example = program.probes[0].arguments
    for place, probe in enumerate(program.probes[1:], start=1):
        if probe.arguments != example:
            yield replace(program, probes=_with(program.probes, place, replace(probe, arguments=example)))


def _with(probes: tuple[Probe, ...], place: int, probe: Probe) -> tuple[Probe, ...]:
    return (*probes[:place], probe, *probes[place + 1 :])


def _without(arguments: str, name: str) -> str:
    call = ast.parse(f"call({arguments})", mode="eval").body
    assert isinstance(call, ast.Call)
    call.keywords = [keyword for keyword in call.keywords if keyword.arg != name]
    return ast.unparse(call).removeprefix("call(").removesuffix(")")


def _without_parameter(source: str, name: str) -> str | None:
    """The text without a parameter of the function under test."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(argument.arg == name for argument in node.args.args):
            place = next(number for number, argument in enumerate(node.args.args) if argument.arg == name)
            from_end = len(node.args.args) - place
            if from_end <= len(node.args.defaults):
                del node.args.defaults[-from_end]
            del node.args.args[place]
            return ast.unparse(tree)
    return None


# ---- steps on the syntax tree --------------------------------------------------------------------------------------


def _simpler_texts(program: RandomProgram) -> Iterator[RandomProgram]:
    """Each with one change: statements first, those of the whole module last among them, then expressions."""
    tree = ast.parse(program.source)
    for number in reversed(range(len(list(_blocks(tree))))):
        for change in _block_changes(tree, number):
            yield replace(program, source=ast.unparse(change))
    for number in range(len(list(_expressions(tree)))):
        for change in _expression_changes(tree, number):
            yield replace(program, source=ast.unparse(change))


def _blocks(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Every list of statements, by its owner and field."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody", "handlers"):
            held = getattr(node, field, None)
            if isinstance(held, list) and held:
                yield node, field


def _block_changes(tree: ast.AST, number: int) -> Iterator[ast.AST]:
    owner, field = list(_blocks(tree))[number]
    for place in range(len(getattr(owner, field))):
        for inner in ([], *_contents(getattr(owner, field)[place])):
            twin = copy.deepcopy(tree)
            twin_owner, _ = list(_blocks(twin))[number]
            statements = getattr(twin_owner, field)
            statements[place : place + 1] = copy.deepcopy(inner)
            if not statements and field == "body" and not isinstance(twin_owner, ast.Module):
                statements.append(ast.Pass())
            yield ast.fix_missing_locations(twin)


def _contents(statement: ast.stmt) -> list[list[ast.stmt]]:
    """What may stand for a compound statement: what it holds."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return []
    return [held for field in ("body", "orelse") if isinstance(held := getattr(statement, field, None), list) and held]


def _expressions(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.expr]]:
    """Every expression that is computed: its owner, the field, the place in it, itself."""
    for node in ast.walk(tree):
        for field, held in ast.iter_fields(node):
            places = enumerate(held) if isinstance(held, list) else [(None, held)]
            for place, one in places:
                if isinstance(one, ast.expr) and not isinstance(getattr(one, "ctx", None), (ast.Store, ast.Del)):
                    yield node, field, place, one


def _expression_changes(tree: ast.AST, number: int) -> Iterator[ast.AST]:
    *_, found = list(_expressions(tree))[number]
    parts = [one for one in ast.iter_child_nodes(found) if isinstance(one, ast.expr)]
    plain = [] if isinstance(found, (ast.Name, ast.Constant)) else [ast.parse(text, mode="eval").body for text in PLAIN]
    for new in (*parts, *plain):
        twin = copy.deepcopy(tree)
        owner, field, place, _ = list(_expressions(twin))[number]
        if place is None:
            setattr(owner, field, copy.deepcopy(new))
        else:
            getattr(owner, field)[place] = copy.deepcopy(new)
        yield ast.fix_missing_locations(twin)
