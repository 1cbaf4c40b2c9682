"""What a program prints, its graph prints: the same text for each input, and nothing while it is captured."""

import contextlib
import copy
import io
import sys
from collections.abc import Callable
from typing import Any

import jax.numpy
import numpy
import pytest
import torch

import clew
from clew.errors import TraceWarning

PROGRAMS: list[Callable[[Any], Any]] = []


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS.append(function)
    return function


@program
def values(x):
    print("rows", x.shape[0], x.sum(), sep=", ")
    return x + 1


@program
def shape(x):
    print(x.shape, end="|\n")
    return x + 1


@program
def f_string(x):
    print(f"{x.shape[0]:>4} rows {{of}} mean {float(x.mean()):.3f}", f"{x.shape[0]!r}")
    return x + 1


@program
def old_templates(x):
    print("%s rows" % x.shape[0], "{} and {:.2f}".format(x.shape[0], x.shape[0] / 3), "rows: " + str(x.shape[0]))  # noqa: UP030,UP031,UP032
    return x + 1


@program
def joined(x):
    print(
        ", ".join(map(str, x.shape)), ", ".join(f"<{size}>" for size in x.shape), *x.shape, *[f"{n}" for n in x.shape]
    )
    return x + 1


@program
def kept_text(x):
    message = f"{x.shape[0]} rows"
    print(message)
    print("again", message)
    return x + 1


@program
def containers(x):
    print({"x": x, "sizes": [x.shape[0], (x.shape[0], 1)]}, None, True)
    return x + 1


@program
def in_branches(x):
    if x.sum() > 1:
        print("large", x.sum())
        x = x * 2
    else:
        print("small")
    return x


@program
def in_loops(x):
    total = x.sum()
    for row in x:
        print("row", row)
        total = total + row
    while total < 20:
        print(f"at {total}")
        total = total * 2 + 5
    return total


@program
def widened(x):
    print((f"{x.shape[0]}" + "!").rjust(8), f"{str(x.shape[0]):>5}", "%5s" % x.shape[0], f"{x.shape[0]!r:>3}")  # noqa: UP031
    return x + 1


def printed(function: Callable[..., Any], *args: Any) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as screen:
        function(*args)
    return screen.getvalue()


MAKERS = {
    "torch": lambda items: torch.tensor(items, dtype=torch.float32),
    "numpy": lambda items: numpy.array(items, dtype=numpy.float64),
    "jax": lambda items: jax.numpy.asarray(items, dtype=jax.numpy.float32),
}


def check(captured: Any, function: Callable[[Any], Any], make: Callable[[Any], Any]) -> list[str]:
    verdicts = []
    for items in ([1.0, 2.0, 3.0], [0.5, 0.25], [4.0]):
        expected = printed(function, make(items))
        try:
            found = printed(captured, make(items))
        except clew.GuardError:
            verdicts.append("guarded")
            continue
        assert found == expected
        verdicts.append("equal")
    return verdicts


@pytest.mark.parametrize("framework", MAKERS)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda one: one.__name__)
def test_the_graph_prints_what_the_program_prints(function, framework):
    make, found = MAKERS[framework], []
    assert printed(lambda: found.append(clew.trace(function, args=(make([1.0, 2.0, 3.0]),)))) == ""
    verdicts = check(found[0], function, make)
    is_fixed = function is widened or (function is in_loops and framework == "jax")  # its loops over rows are unrolled
    assert verdicts == (["equal", "guarded", "guarded"] if is_fixed else ["equal"] * 3)


@pytest.mark.parametrize("framework", MAKERS)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda one: one.__name__)
def test_a_lazy_graph_prints_once(function, framework):
    assert check(clew.trace(function), function, MAKERS[framework]) == ["equal"] * 3


class Counted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.calls = torch.nn.Linear(3, 3), 0

    def forward(self, x):
        self.calls += 1
        x = self.linear(x)
        print(f"call {self.calls}: {tuple(x.shape)} {x.dtype} training={self.training}", torch.Size(x.shape))
        return x


def test_a_module():
    model = Counted()
    captured = clew.trace(copy.deepcopy(model), args=(torch.ones(2, 3),))
    for number in (4, 5):
        captured.train(number == 4), model.train(number == 4)
        assert printed(captured, torch.ones(number, 3)) == printed(model, torch.ones(number, 3))


def test_the_code_reads_like_the_program():
    captured = clew.trace(f_string, args=(torch.ones(2),))
    assert "print(f'{x.shape[0]:>4} rows {{of}} mean {float(x.mean()):.3f}', f'{x.shape[0]!r}')" in captured.code


@pytest.mark.parametrize("form", ["text", "copy", "again", "interpreter"])
def test_forms_of_the_graph_print_too(form):
    captured = clew.trace(f_string, args=(torch.ones(2),))
    if form == "text":
        made = clew.GraphFunction(captured.root, clew.parse(clew.to_text(captured.graph)))
    elif form == "again":
        made = clew.trace(captured, args=(torch.ones(2),))
    else:
        made = copy.deepcopy(captured) if form == "copy" else clew.Interpreter(captured).run
    assert check(made, f_string, MAKERS["torch"]) == ["equal"] * 3


def test_a_text_that_the_program_reads_again_is_no_print():
    def program(x):
        with contextlib.redirect_stdout(io.StringIO()) as screen:
            print(f"{x.shape[0]}", end="")
        return x * len(screen.getvalue())

    captured = clew.trace(program, args=(torch.ones(2),))
    assert torch.equal(captured(torch.ones(2)), program(torch.ones(2)))
    with pytest.raises(clew.GuardError):
        captured(torch.ones(12))


class Thing:
    pass


def test_what_is_not_printed_is_told():
    def of_an_object(x):
        print(Thing())
        return x + 1

    with pytest.warns(TraceWarning, match="the graph will not print what the program prints"):
        captured = clew.trace(of_an_object, args=(torch.ones(2),))
    assert printed(captured, torch.ones(2)) == ""


def test_the_screens_are_written_to():
    def program(x):
        sys.stdout.write(f"{x.shape[0]} rows\n")
        print("mean", x.mean(), file=sys.stderr)
        return x + 1

    captured = clew.trace(program, args=(torch.ones(2),))
    assert "print(f'{x.shape[0]} rows\\n', end='')" in captured.code
    assert "print('mean', x.mean(), file=sys.stderr)" in captured.code
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        assert printed(captured, torch.ones(3)) == "3 rows\n"
    assert errors.getvalue() == "mean tensor(1.)\n"


def test_bytes_to_a_screen_are_refused():
    def program(x):
        sys.stdout.buffer.write(b"rows")
        return x + 1

    with pytest.raises(clew.errors.CaptureError, match=r"sys.stdout.buffer cannot be captured"):
        clew.trace(program, args=(torch.ones(2),))
