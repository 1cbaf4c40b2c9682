"""Programs that ask the world outside of Python for something, or act on it: the environment, files, entropy."""

from __future__ import annotations

import os
import pathlib
import random
import tempfile
import time
import uuid
from time import perf_counter

import numpy

from tests.frameworks.jax.hard.ledger import X, made, program

VARIABLE = "CLEW_HARD_VARIABLE"
_KEPT_FOLDER = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(_KEPT_FOLDER.name)
READ, WRITTEN = FOLDER / "read.txt", FOLDER / "written.txt"


def _is(number):
    """The world of a number."""

    def change(world):
        os.environ[VARIABLE] = str(number)
        READ.write_text(str(number))

    return change


@made((X,), _is(2), (X,), _is(1), (X,))
def variable_of_the_environment(world):
    _is(1)(world)
    return lambda x: x * float(os.environ[VARIABLE])


@made((X,), _is(2), (X,), _is(1), (X,))
def variable_of_the_environment_asked_for(world):
    _is(1)(world)
    return lambda x: x * float(os.getenv(VARIABLE, "3"))


@made((X,), _is(2), (X,), _is(1), (X,))
def file_read(world):
    _is(1)(world)

    def step(x):
        with open(READ) as file:
            return x * float(file.read())

    return step


@made((X,), _is(22), (X,), _is(1), (X,))
def size_of_a_file(world):
    _is(1)(world)
    return lambda x: x * READ.stat().st_size


@program((X,), refused="a file is written once by a capture")
def file_written(x):
    with open(WRITTEN, "w") as file:
        file.write("called")
    return x


@program((X,), refused="a file is written once by a capture")
def file_written_by_its_path(x):
    WRITTEN.write_text("called")
    return x


@program((X,))
def clock_under_its_own_name(x):
    return x * (perf_counter() > 0)


def _elapsed(read=time.monotonic):
    return read()


@program((X,))
def clock_as_a_default(x):
    return x * (_elapsed() > 0)


@program((X,), refused="entropy is read once by a capture")
def identifier_of_entropy(x):
    return x * (uuid.uuid4().int >= 0)


@made((X,), (X,))
def stream_of_its_own(world):
    stream = random.Random(3)
    return lambda x: x * stream.random()


@made((X,), (X,))
def generator_of_numpy(world):
    generator = numpy.random.default_rng(3)
    return lambda x: x * float(generator.random())


@made((X,), _is(2), (X,), _is(1), (X,))
def rounds_in_the_environment(world):
    _is(3)(world)

    def step(x):
        rounds = int(os.environ.get(VARIABLE, 1))
        for _ in range(rounds):
            x = x * 2
        return x, rounds

    return step


@made((X,), _is("2x"), (X,), _is("1_0"), (X,), _is(" 4 "), (X,))
def text_of_the_environment_that_is_no_number(world):
    _is(3)(world)

    def step(x):
        try:
            return x * int(os.environ[VARIABLE])
        except ValueError:
            return x

    return step


@made((X,), _is(2), (X,), _is(1), (X,))
def environment_as_text(world):
    _is(1)(world)
    return lambda x: (x * len(os.environ[VARIABLE]), os.environ[VARIABLE] + "!")


@made((X,), _is(2), (X,), _is(1), (X,))
def environment_into_a_float_of_its_own(world):
    _is(1)(world)

    def float(text):  # noqa: A001
        return len(text) + ord(text[0])

    return lambda x: x * float(os.environ[VARIABLE])
