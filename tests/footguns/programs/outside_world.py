"""What a program asks of the world outside of Python, and does to it: the environment, files, processes, people."""

import os
import pathlib
import random
import sys
import tempfile
import time
import uuid

import torch

from tests.footguns.ledger import Case, call, program

ONE = torch.tensor([1.0, 2.0, 3.0])
VARIABLE = "CLEW_LEDGER_VARIABLE"
_KEPT_FOLDER = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(_KEPT_FOLDER.name)
READ, WRITTEN = FOLDER / "read.txt", FOLDER / "written.txt"
CLOCKS = {"wall": time.time}


def _in_world(number):
    """The arguments of a call in a world of this number."""

    def make():
        os.environ[VARIABLE] = str(number)
        READ.write_text(str(number))
        return call(ONE * number)

    return make


def _reset():
    os.environ.pop(VARIABLE, None)
    for place in (READ, WRITTEN):
        place.unlink(missing_ok=True)


def _case(function, **more):
    return Case(function, example=_in_world(1), others=[_in_world(2), _in_world(1)], reset=_reset, **more)


def _left():
    return sorted(place.name for place in FOLDER.iterdir() if place != READ), os.environ.get(VARIABLE + "_SET")


@program("variable_of_the_environment", kind="outside_world")
def _():
    return _case(lambda x: x * float(os.environ[VARIABLE]))


@program("variable_of_the_environment_as_bytes", kind="outside_world")
def _():
    return _case(lambda x: x * float(os.environb[VARIABLE.encode()]))


@program("all_variables_of_the_environment", kind="outside_world")
def _():
    return _case(lambda x: x * float({**os.environ}[VARIABLE]))


@program("file_read_that_changes", kind="outside_world")
def _():
    def f(x):
        with open(READ) as file:
            return x * float(file.read())

    return _case(f)


@program("file_read_by_its_path", kind="outside_world")
def _():
    return _case(lambda x: x * float(READ.read_text()))


@program("file_that_may_be_there", kind="outside_world")
def _():
    return _case(lambda x: x * 2 if WRITTEN.exists() else x * float(READ.stat().st_size))


@program("file_written_at_each_call", kind="outside_world")
def _():
    def f(x):
        with open(WRITTEN, "a") as file:
            file.write("called\n")
        return x + 1

    return _case(f, state=_left)


@program("file_written_by_its_path", kind="outside_world")
def _():
    def f(x):
        WRITTEN.write_text("called\n")
        return x + 1

    return _case(f, state=_left)


@program("variable_of_the_environment_set", kind="outside_world")
def _():
    def f(x):
        os.environ[VARIABLE + "_SET"] = "1"
        return x + 1

    return _case(f, state=_left)


@program("identifier_of_entropy", kind="outside_world")
def _():
    return _case(lambda x: x * (uuid.uuid4().int >= 0))


@program("clock_in_a_dict", kind="outside_world")
def _():
    return _case(lambda x: x * (CLOCKS["wall"]() > 0))


@program("draw_as_a_default", kind="outside_world")
def _():
    def f(x, draw=random.random):
        return x * draw()

    return _case(f)


@program("arguments_of_the_process", kind="outside_world")
def _():
    return _case(lambda x: x * len(sys.argv))


@program("what_people_type_in", kind="outside_world")
def _():
    return _case(lambda x: x * float(sys.stdin.readline() or 1))
