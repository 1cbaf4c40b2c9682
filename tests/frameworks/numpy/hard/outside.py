"""Programs that ask the world outside of Python for something, or act on it: the environment, files, entropy."""

from __future__ import annotations

import os
import pathlib
import random
import tempfile
import time
import uuid

import numpy as np

from tests.frameworks.numpy.hard.ledger import A, B, made, program

KIND = "outside"
VARIABLE = "CLEW_HARD_VARIABLE"
_KEPT_FOLDER = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(_KEPT_FOLDER.name)
READ, WRITTEN = FOLDER / "read.txt", FOLDER / "written.txt"
READ.write_text("2.5")


@program(KIND, (A,), (B,))
def variable_of_the_environment(x):
    return x * len(os.environ.get(VARIABLE, "none"))


@program(KIND, (A,), (B,))
def file_read(x):
    with open(READ) as file:
        return x * float(file.read())


@program(KIND, (A,), (B,))
def file_read_by_its_path(x):
    return x * float(READ.read_text()) * READ.exists()


@program(KIND, (A,), (B,))
def file_written(x):
    with open(WRITTEN, "w") as file:
        file.write("called")
    return x


@program(KIND, (A,), (B,))
def folder_made(x):
    os.makedirs(FOLDER / "made", exist_ok=True)
    return x


@program(KIND, (A,), (B,))
def clock(x):
    return x * (time.time() > 0)


def _elapsed(read=time.monotonic):
    return read()


@program(KIND, (A,), (B,))
def clock_as_a_default(x):
    return np.where(x > _elapsed(), 1.0, x)


@program(KIND, (A,), (B,))
def identifier_of_entropy(x):
    return x * (uuid.uuid4().int >= 0)


@program(KIND, (A,), (B,), (A,))
def chosen_at_random(x):
    return x * random.choice([1.0, 2.0, 3.0]) + random.sample(range(9), 2)[0]


@program(KIND, (A,), (B,), (A,))
def function_chosen_at_random(x):
    return random.choice([np.sin, np.cos, np.tanh])(x)


@program(KIND, (A,), (B,), (A,))
def shuffled(x):
    order = [0, 1, 2, 3]
    random.shuffle(order)
    return x[order]


@made(KIND, (A,), (B,), (A,))
def stream_of_its_own():
    stream = random.Random(5)
    return lambda x: x * stream.random() + stream.randint(0, 9)


class Tagged(np.ndarray):
    """An array of a class of the user's."""


def _own_classes():
    mapped = np.memmap(FOLDER / "numbers", dtype=float, mode="w+", shape=(4,))
    mapped[:] = 2.0
    return mapped, np.ma.array(np.ones(4), mask=[False, True, False, False]), np.ones(4).view(Tagged)


MAPPED, MASKED, TAGGED = _own_classes()


@program(KIND, (A,), (B,))
def read_from_arrays_of_other_classes(x):
    return x * float(MAPPED[0]) + float(MASKED[0]) + TAGGED.tolist()[0]


@program(KIND, (A,))
def writes_to_a_mapped_file(x):
    MAPPED[1] = 7.0
    return x * 2


@program(KIND, (A,))
def writes_to_a_masked_array(x):
    MASKED[1] = 7.0
    return x * 2


@program(KIND, (A,))
def writes_through_a_view_of_its_own_class(x):
    view = TAGGED[1:]
    view += 1
    return x * 2


@program(KIND, (A, TAGGED), (A, TAGGED + 1))
def array_of_another_class_given(x, tagged):
    tagged[0] = 5.0
    return x * float(tagged[1])
