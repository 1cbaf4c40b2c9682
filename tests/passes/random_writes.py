"""Random programs that write, and random orders of passes over their captures: `python -m tests.passes.random_writes`.

Program i is always the same: views, writes of all kinds, draws, errors, branches and loops over two arrays, as a
function or as a module with layers and buffers. What the capture does after the passes is compared with the program
itself on inputs of other strides, dtypes, sizes, gradients and overlaps: results with their strides and aliases,
arguments, state, random numbers, errors. A refusal must leave everything as it was. `--form functional` takes
`clew.functionalize` alone, `--form passes` any order of passes. What is wrong is made small and printed; the exit
status is 1 then.
"""

from __future__ import annotations

import argparse
import copy
import linecache
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

import clew
from clew.capture.recording.unused_calls import may_raise
from clew.errors import ClewError
from clew.ir.arguments import leaves
from clew.ir.effects import is_impure

EQUAL, REFUSED, WRONG, SKIPPED, FAILED = "equal", "refused", "wrong", "skipped", "not captured"
STATEMENTS = """
{a} = {b} * 2; {a} = {b}.clone(); {a} = {b}[1:3]; {a} = {b}[..., 0]; {a} = {b}.t(); {a} = {b}.reshape(-1)
{a} = {b}.view(-1); {a} = {b}.unsqueeze(0); {a} = {b}.contiguous(); {a} = {b}.unbind(0)[1]; {a} = {b}
{a} = {b}.expand(2, *{b}.shape)[1]; {a} = {b}.split(2)[0]; {a} = torch.relu({b}); {a} = {b}.detach() * 1
{a} = {b}[::2]; {a} = {b}[:, 1]; {a} = {b}.T; {a} = {b}.permute(1, 0); {a} = {b}.transpose(0, 1); {a} = {b}.flatten()
{a} = {b}.view({b}.shape); {a} = {b}.squeeze(0); {a} = {b}.diagonal(); {a} = {b}.chunk(2)[1]; {a} = {b}.real
{a} = {b}.movedim(0, 1); {a} = {b}.narrow(0, 0, 1); {a} = {b}.reshape({b}.shape[0], -1)
{a} = {b}.as_strided((2,), (1,))
{a} = {b}.float(); {a} = {b}.to(torch.float64); {a} = {b}.type_as({a}); {a} = {b}.view_as({a}); {a} = ({b} > 0)
{a} = {b} + torch.rand_like({b}); {a} = F.dropout({b}, 0.5); {a} = torch.cat([{a}, {b}]); {a} = {a} @ {b}.t()
{a}, {b} = {b}, {a}; {a} = {b}.data; {a}.data.add_(1); {a}.t_(); {a}.unsqueeze_(0); {a}.requires_grad_()
{a}.add_({b}.sum()); {a}[0] = {b}.mean(); {a} *= 2; {a}[..., -1] -= 1; {a}.copy_({b}.flatten()[0]); {a}.zero_()
{a}[{a} > 0] = 3; torch.neg({a}.clone(), out={a}); torch.relu_({a}); {a}[:1] = {b}.max(); {a}.mul_({a}.sum())
{a}.view(-1)[0] = {b}.sum(); {a}.add_({b}); {a}.sub_({b}[0]); {a}[0] = {b}[1]; {a}[:, 1:] += {a}[:, :-1]
{a}[0, 0] = {a}[1, 1]; {a}.copy_({b}); {a}[...] = {b}; {a}.fill_({b}.sum()); {a}.fill_(2); {a}.normal_(); {a}.uniform_()
{a}.bernoulli_(0.5); F.relu({a}, inplace=True); {a}.div_(2); {a}.add_(0.5); {a}.masked_fill_({a} > 0, {b}.min())
{a}.index_fill_(0, torch.tensor([0]), 2); torch.add({a}, {b}, out={a}); torch.mul({b}, 2, out={a}); {a}.clamp_(-1, 1)
{a}.pow_(2); {a} //= 2; {a}.cumsum_(0); {a}.sqrt_(); {a}[0].add_(1); {a}[-1].mul_({b}[0]); {a}.neg_()
{a}.lerp_({b}, 0.5); {a}.addcmul_({b}, {b}); {a}.index_add_(0, torch.tensor([0]), {b}[:1])
{a}[torch.tensor([1, 0])] = {b}[:2]; {a}.logical_not_(); {a}.eq_({b})
facts.append({a}.is_contiguous()); facts.append({a}.stride()); facts.append({a}.requires_grad)
facts.append({a}.storage_offset()); facts.append(float({a}.sum())); facts.append({a}.dtype); assert {a}.sum() < 3
facts.append({a}.data_ptr() == {b}.data_ptr()); facts.append({a}._version)
"""
OF_MODULES = """
{a} = self.linear({b}); {a} = self.norm({b}); {a} = self.drop({b}); {a} = self.act({b}); {a} = self.linear.weight
self.total.add_({b}.sum()); self.total[0] = {b}.sum(); {a} = {b} + self.total; self.total *= 2; self.count += 1
{a} = {b} * self.count; self.last = {b}; {a} = F.linear({b}, self.linear.weight); {a} = F.relu(self.linear({b}))
{a} = F.dropout({b}, 0.5, self.training); {a} = self.total
"""
BLOCKS = (
    "if {a}.sum() > 0:", "for i in range(2):", "for row in {a}:", "with torch.no_grad():", "if x.shape[0] > 2:",
    "while {a}.sum() < 2 and len(facts) < 3:", "try:",
)  # fmt: skip
RETURNS = (
    "x, y, z, w, facts", "y, facts", "facts", "z, w, u, facts", "y, y[0], z.sum(), facts", "w, y, facts", "None",
    "u, facts",
)  # fmt: skip
MODULE = """class Program(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm, self.drop = nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5)
        self.act = nn.ReLU(inplace=True)
        self.register_buffer("total", torch.zeros(3))
        self.count, self.last = 1, None

"""


def _statements(text: str) -> list[str]:
    return [one.strip() for line in text.strip().splitlines() for one in line.split("; ")]


def written(seed: int) -> str:
    """The text of a program."""
    chosen = random.Random(seed)
    is_module, lines = chosen.random() < 0.3, []
    possible = _statements(STATEMENTS) + 3 * _statements(OF_MODULES) * is_module

    def add(count: int, depth: int) -> None:
        indent = "    " * (depth + 1)
        for _ in range(count):
            names = {"a": chosen.choice("xyzwuu"), "b": chosen.choice("xyzwuu")}
            if depth == 2 or chosen.random() > 0.12:
                lines.append(indent + chosen.choice(possible).format(**names))
                continue
            head = chosen.choice(BLOCKS)
            lines.append(indent + head.format(**names))
            if head.startswith("while"):
                lines.append(f"{indent}    facts.append(0)")
            add(chosen.randint(1, 3), depth + 1)
            if head == "try:":
                lines.extend([f"{indent}except RuntimeError:", f"{indent}    facts.append('caught')"])
            elif head.startswith("if") and chosen.random() < 0.5:
                lines.append(f"{indent}else:")
                add(chosen.randint(1, 2), depth + 1)

    add(chosen.randint(2, 9), 0)
    body = ["    facts = []", "    y, z, w = x * 1, x + 1, x[1:]", *lines, f"    return {chosen.choice(RETURNS)}"]
    if not is_module:
        return "\n".join(["def program(x, u):", *body]) + "\n"
    return MODULE + "\n".join(["    def forward(self, x, u):", *(f"    {line}" for line in body)]) + "\n"


def made(text: str) -> Callable[[], Any]:
    """What makes the program of a text anew."""
    file = f"<random writes {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope: dict[str, Any] = {"torch": torch, "nn": nn, "F": nn.functional, "__name__": __name__}
    exec(compile(text, file, "exec"), scope)

    def make() -> Any:
        if "program" in scope:
            return scope["program"]
        torch.manual_seed(0)
        return scope["Program"]()

    return make


# ---- inputs ----------------------------------------------------------------------------------------------------------


def _pair(*size: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(size), torch.randn(size)


def _overlapping() -> tuple[torch.Tensor, torch.Tensor]:
    whole = torch.randn(5, 3)
    return whole[1:], whole[:-1]


def _with_transpose() -> tuple[torch.Tensor, torch.Tensor]:
    square = torch.randn(3, 3)
    return square, square.t()


def _whole_numbers() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(-3, 4, (4, 3)), torch.randint(-3, 4, (4, 3))


INPUTS: dict[str, Callable[[], tuple[torch.Tensor, ...]]] = {
    "example": lambda: _pair(4, 3),
    "other sizes": lambda: _pair(5, 4),
    "strided": lambda: tuple(one[:, ::2] for one in _pair(4, 6)),
    "transposed": lambda: tuple(one.t() for one in _pair(3, 4)),
    "double": lambda: tuple(one.double() for one in _pair(4, 3)),
    "whole numbers": _whole_numbers,
    "leaves": lambda: tuple(one.requires_grad_() for one in _pair(4, 3)),
    "with history": lambda: tuple(one.requires_grad_() * 1 for one in _pair(4, 3)),
    "one twice": lambda: (torch.randn(4, 3),) * 2,
    "overlapping": _overlapping,
    "with its transpose": _with_transpose,
    "one row": lambda: _pair(1, 3),
    "square": lambda: _pair(2, 2),
    "expanded": lambda: (torch.randn(1, 3).expand(4, 3), torch.randn(4, 3)),
    "a row less": lambda: (torch.randn(4, 3), torch.randn(3)),
    "another rank": lambda: (torch.randn(2, 4, 3), torch.randn(4, 3)),
    "two dtypes": lambda: (torch.randn(4, 3), torch.randn(4, 3).double()),
    "truths": lambda: tuple(one > 0 for one in _pair(4, 3)),
}


MOST_INPUTS = 8


# ---- judging ---------------------------------------------------------------------------------------------------------


class Record(NamedTuple):
    """What one call did."""

    result: Any
    error: Exception | None
    before: Any
    after: Any
    aliases: Any


def _picture(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        facts = (value.dtype, value.shape, value.stride() if value.numel() > 1 else None, value.requires_grad)
        try:
            with torch.no_grad():
                return facts, value.is_leaf, value.detach().clone().numpy().tobytes()
        except RuntimeError:  # a view that torch does not let anybody use any more
            return value.dtype
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, *map(_picture, value)]
    return type(value).__name__, str(value)


def _around(subject: Any, given: Any) -> Any:
    state = [given, torch.get_rng_state(), torch.is_grad_enabled()]
    if isinstance(subject, nn.Module):
        state += [list(subject.state_dict(keep_vars=True).values())]
        state += [getattr(subject, "count", None), getattr(subject, "last", None)]
    return _picture(state)


def called(subject: Any, make: Callable[[], Any], seed: int) -> Record:
    """One call, and what it did."""
    torch.manual_seed(seed)
    given = make()
    torch.manual_seed(seed + 1)
    before = _around(subject, given)
    result, error = None, None
    try:
        result = subject(*given)
    except Exception as found:  # a program may fail in any way
        error = found
    tensors = [one for one in leaves([list(given), result]) if isinstance(one, torch.Tensor)]
    homes = [one.untyped_storage().data_ptr() if one.numel() else None for one in tensors]
    inside = [place.storage_offset() if home in homes[:2] else None for home, place in zip(homes, tensors, strict=True)]
    objects = [id(one) for one in tensors]
    aliases = [[homes.index(one) for one in homes], [objects.index(one) for one in objects], inside]
    return Record(_picture(result), error, before, _around(subject, given), aliases)


def difference(wanted: Record, got: Record) -> str:
    """In what a call of a capture was wrong; empty if it was not."""
    if isinstance(got.error, ClewError):
        return "" if got.before == got.after else f"refused, but left a trace: {got.error}"
    if type(wanted.error) is not type(got.error):
        return f"{got.error!r} instead of {wanted.error!r}"
    if wanted.after != got.after:
        return f"changed {got.after} instead of {wanted.after}"
    if wanted.error is None and wanted.result != got.result:
        return f"gave {got.result} instead of {wanted.result}"
    return "" if wanted.error is not None or wanted.aliases == got.aliases else "gave other aliases"


def _dead_code(program: Any) -> Any:
    program.graph.eliminate_dead_code(lambda node: is_impure(node) or may_raise(node))  # else errors go, as asked
    return program


def _saved(program: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        clew.save(program, Path(folder) / "program.clew")
        return clew.load(Path(folder) / "program.clew")


PASSES: dict[str, Callable[[Any], Any]] = {
    "functionalize": clew.functionalize,
    "reinplace": clew.reinplace,
    "common_subexpressions": clew.common_subexpressions,
    "simplify": clew.simplify,
    "constant_folding": clew.constant_folding,
    "inline_modules": clew.inline_modules,
    "recognize": clew.recognize,
    "symbolic_types": clew.symbolic_types,
    "dead_code": _dead_code,
    "remove_dropout": clew.remove_dropout,
    "fold_batch_norm": clew.fold_batch_norm,
    "remove_prints": clew.remove_prints,
    "copy": copy.deepcopy,
}


def judge(text: str, passes: list[str]) -> tuple[str, str]:
    """The verdict on a program after these passes, and why."""
    make, inputs = made(text), list(INPUTS.items())
    if called(make(), inputs[0][1], 0).error is not None:
        return SKIPPED, "the program fails on its example"
    torch.manual_seed(0)
    given = inputs[0][1]()
    try:
        plain, changed = (_captured(make(), given) for _ in range(2))
    except ClewError as error:
        return REFUSED, str(error)
    except RuntimeError as error:  # a mistake of the capture, which `benchmarks.fuzz` is for
        return FAILED, str(error)
    try:
        for name in passes:
            changed = PASSES[name](changed)
            changed.graph.lint()
    except ClewError as error:
        return REFUSED, str(error)
    others = random.Random(len(text)).sample(list(INPUTS)[1:], MOST_INPUTS)
    return _judged_calls(("example", *others), make(), plain, changed, "reinplace" in passes)


def _captured(program: Any, given: tuple[torch.Tensor, ...]) -> Any:
    torch.manual_seed(1)  # the example was called with these random numbers
    return clew.trace(program, given)


def _judged_calls(
    names: tuple[str, ...], original: Any, plain: Any, changed: Any, without_gradients: bool
) -> tuple[str, str]:
    for seed, name in enumerate(names):
        make = INPUTS[name]
        if isinstance(original, nn.Module):
            for one in (original, plain, changed):
                one.train(seed % 3 != 1)
        with torch.set_grad_enabled(not without_gradients):
            states = [copy.deepcopy(one) if isinstance(one, nn.Module) else one for one in (original, plain, changed)]
            wanted, before, got = (called(one, make, seed) for one in states)
        why = difference(wanted, got)
        if why and not difference(wanted, before):
            return WRONG, f"{name}: {why}"
    return EQUAL, ""


def shrunk(text: str, passes: list[str]) -> tuple[str, list[str]]:
    """A shorter program and fewer passes that are wrong, too."""
    lines, first = text.splitlines(), text[: text.index("facts = []")].count("\n") + 2
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for place in range(len(lines) - 1, first, -1):
            shorter = lines[:place] + lines[place + 1 :]
            if _is_wrong("\n".join(shorter) + "\n", passes):
                lines, is_shorter = shorter, True
        for place in range(len(passes) - 1, -1, -1):
            fewer = passes[:place] + passes[place + 1 :]
            if fewer and _is_wrong("\n".join(lines) + "\n", fewer):
                passes, is_shorter = fewer, True
    return "\n".join(lines) + "\n", passes


def _is_wrong(text: str, passes: list[str]) -> bool:
    try:
        return judge(text, passes)[0] == WRONG
    except Exception:  # a part of a program may be none
        return False


def passes_of(seed: int, form: str) -> list[str]:
    """The passes for a program."""
    chosen = random.Random(-seed)
    return ["functionalize"] if form == "functional" else chosen.choices(list(PASSES), k=chosen.randint(1, 5))


def _run(first: int, count: int, seconds: float, form: str) -> Iterator[str]:
    start = time.monotonic()
    for seed in range(first, first + count):
        if time.monotonic() - start > seconds:
            return
        passes, text = passes_of(seed, form), written(seed)
        verdict, why = judge(text, passes)
        if verdict == WRONG:
            small, fewer = shrunk(text, passes)
            print(f"WRONG {seed}, {', '.join(fewer)}: {judge(small, fewer)[1][:600] or why[:600]}\n{small}", flush=True)
        yield verdict


def main() -> int:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.passes.random_writes", description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--programs", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--form", choices=("functional", "passes"), default="functional")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    counts = Counter(_run(options.first, options.programs, options.seconds, options.form))
    print(f"{sum(counts.values())} programs from {options.first} on:", dict(counts))
    return int(counts[WRONG] > 0)


if __name__ == "__main__":
    sys.exit(main())
