"""Makes a wrong program small: drops statements and probes, unfolds blocks, simplifies, while it stays wrong.

In come a program and what tells whether a smaller one shows the same mistake; out comes the smallest that was found in
the time. Every step works on the syntax tree of the program's text, so that it holds for any program.
"""

from __future__ import annotations

import ast
import copy
import functools
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from benchmarks.fuzz.judge import WRONG_ANSWER, Verdict, judge, worst
from benchmarks.fuzz.program import Probe, RandomProgram
from tests.footguns.harness import Capture

StillWrong = Callable[[RandomProgram], bool]
Step = Callable[[], RandomProgram]  # made only when it is tried, and before the next one is asked for
SECONDS = 30.0  # of this process: a busy machine shall not make programs larger
PLAIN = ("x", "y", "1", "1.0", "True", "False", "None", "[]")


def shrink(program: RandomProgram, still_wrong: StillWrong, seconds: float = SECONDS) -> RandomProgram:
    """The smallest program found; the given one where none is smaller."""
    end = time.process_time() + seconds
    while time.process_time() < end:
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
    respects += ("the aliases", "the random state", "the modes", "the module", "the state", "the text printed", "later")
    return next((one for one in respects if one in verdict.reason), "something else")


def _one_round(program: RandomProgram, still_wrong: StillWrong, end: float) -> RandomProgram:
    for steps in (_fewer_probes, _simpler_texts, _simpler_probes):
        program = _greedily(program, steps, still_wrong, end)
    return program


def _greedily(
    program: RandomProgram,
    steps: Callable[[RandomProgram], Iterator[Step]],
    still_wrong: StillWrong,
    end: float,
) -> RandomProgram:
    """Takes each step that keeps the mistake, and begins the list of steps anew where it was, not at its start."""
    place = 0
    while time.process_time() < end:
        step = next(itertools.islice(steps(program), place, None), None)
        if step is None:
            return program
        candidate = step()
        if len(candidate.text()) < len(program.text()) and still_wrong(candidate):
            program = candidate
        else:
            place += 1
    return program


def _fewer_probes(program: RandomProgram) -> Iterator[Step]:
    example, *others = program.probes
    for probe in others:
        yield functools.partial(replace, program, probes=(example, probe))
    yield functools.partial(replace, program, probes=(example,))
    for place in range(len(others)):
        yield functools.partial(replace, program, probes=(example, *others[:place], *others[place + 1 :]))


def _simpler_probes(program: RandomProgram) -> Iterator[Step]:
    """Without actions, and without an argument that no call needs."""
    for place, probe in enumerate(program.probes):
        if probe.action:
            probes = _with(program.probes, place, replace(probe, action=""))
            yield functools.partial(replace, program, probes=probes)
    calls = [ast.parse(f"call({probe.arguments})", mode="eval").body for probe in program.probes]
    names = {keyword.arg for call in calls if isinstance(call, ast.Call) for keyword in call.keywords}
    for name in sorted(one for one in names if one):
        probes = tuple(replace(probe, arguments=_without(probe.arguments, name)) for probe in program.probes)
        source = _without_parameter(program.source, name)
        if source is not None:
            yield functools.partial(replace, program, probes=probes, source=source)
    example = program.probes[0].arguments
    for place, probe in enumerate(program.probes[1:], start=1):
        if probe.arguments != example:
            probes = _with(program.probes, place, replace(probe, arguments=example))
            yield functools.partial(replace, program, probes=probes)


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


def _simpler_texts(program: RandomProgram) -> Iterator[Step]:
    """Each with one change: statements first, those of the whole module last among them, then expressions."""
    tree = ast.parse(program.source)
    blocks, expressions = list(_blocks(tree)), list(_expressions(tree))
    for number, (owner, field) in reversed(list(enumerate(blocks))):
        for place, statement in enumerate(getattr(owner, field)):
            for inner in ([], *_contents(statement)):
                yield functools.partial(_with_statements, program, tree, number, place, inner)
    for number, (*_, found) in enumerate(expressions):
        for new in _simpler(found):
            yield functools.partial(_with_expression, program, tree, number, new)


def _blocks(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Every list of statements, by its owner and field."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody", "handlers"):
            held = getattr(node, field, None)
            if isinstance(held, list) and held:
                yield node, field


def _with_statements(
    program: RandomProgram, tree: ast.AST, number: int, place: int, inner: list[ast.stmt]
) -> RandomProgram:
    """The program with other statements, or none, in the place of one."""
    twin = copy.deepcopy(tree)
    owner, field = list(_blocks(twin))[number]
    statements = getattr(owner, field)
    statements[place : place + 1] = copy.deepcopy(inner)
    if not statements and field == "body" and not isinstance(owner, ast.Module):
        statements.append(ast.Pass())
    return replace(program, source=ast.unparse(ast.fix_missing_locations(twin)))


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


def _simpler(found: ast.expr) -> list[ast.expr]:
    """What may stand for an expression: its parts, and what is plain."""
    if isinstance(found, (ast.Name, ast.Constant)):
        return []
    parts = [one for one in ast.iter_child_nodes(found) if isinstance(one, ast.expr)]
    return [*parts, *(ast.parse(text, mode="eval").body for text in PLAIN)]


def _with_expression(program: RandomProgram, tree: ast.AST, number: int, new: ast.expr) -> RandomProgram:
    twin = copy.deepcopy(tree)
    owner, field, place, _ = list(_expressions(twin))[number]
    if place is None:
        setattr(owner, field, copy.deepcopy(new))
    else:
        getattr(owner, field)[place] = copy.deepcopy(new)
    try:
        return replace(program, source=ast.unparse(ast.fix_missing_locations(twin)))
    except ValueError:  # a part of a text with values in it cannot be any expression
        return program
