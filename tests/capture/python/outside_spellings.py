"""The world outside in other spellings: aliases, methods, helper modules, classes, caches, defaults, wrappers."""

from __future__ import annotations

import bz2
import contextlib
import datetime as dt
import fileinput
import functools
import glob
import hashlib
import io
import linecache
import logging
import operator
import os
import os.path as osp
import pathlib
import pickle
import platform
import queue
import random as rnd
import shutil
import sqlite3
import tempfile
import threading
import time as clock
import uuid as ids
from asyncio import run as run_task
from asyncio import to_thread
from concurrent import futures
from datetime import date
from pathlib import Path
from random import choices, gauss, getrandbits, uniform
from random import randint as roll
from secrets import token_bytes
from time import monotonic_ns as nanoseconds
from time import strftime

import numpy
import numpy as np
from numpy import save
from numpy.random import rand as numpy_rand

from tests.capture.python import outside_helpers as helpers
from tests.capture.python.outside_helpers import Dice, Timer, read, setting
from tests.capture.python.outside_programs import (
    DONE,
    DRAWN,
    FOLDER,
    FRESH,
    NOW,
    READ,
    SEEN,
    VARIABLE,
    WRITTEN,
    program,
)

BEGIN_NS, BEGIN_MONOTONIC, BEGIN_WALL = nanoseconds(), clock.monotonic(), clock.time()
ENVIRONMENT = os.environ
PLACE = Path(READ)
READERS = {"text": read, "lines": helpers.read_by_lines}
DICE = Dice()


# ---- clocks ----------------------------------------------------------------------------------------------------------


@program(NOW)
def nanoseconds_by_name(x):
    return x + (nanoseconds() - BEGIN_NS) / 1e9


@program(NOW)
def clock_in_a_table(x):
    clocks = {"wall": clock.time, "steady": clock.monotonic}
    return x + (clocks["steady"]() - BEGIN_MONOTONIC)


@program(NOW)
def clock_by_getattr(x):
    return x + (operator.methodcaller("monotonic")(clock) - BEGIN_MONOTONIC)


@program(SEEN)
def timer_of_a_helper(x):
    with Timer() as timer:
        y = x + 1
    return y if timer.took < 1000 else x


@program(FRESH)
def year_of_today(x):
    return x + (date.today().toordinal() > 0) + dt.datetime.now(dt.UTC).microsecond / 1e6


@program(FRESH)
def formatted_time(x):
    return x + len(strftime("%Y")) * clock.time_ns() % 1000


@program(FRESH)
def local_time(x):
    return x + clock.localtime().tm_sec + clock.time() % 1


# ---- random numbers --------------------------------------------------------------------------------------------------


@program(DRAWN)
def drawn_by_a_helper(x):
    return x + DICE.roll()


@program(DRAWN)
def drawn_by_a_static_method(x):
    return x + Dice.coin() + sum(Dice.many(3))


@program(DRAWN)
def drawn_under_other_names(x):
    return x + roll(1, 100) + uniform(0, 1) + gauss(0, 1) + getrandbits(8) + choices([1, 2, 3], k=2)[0]


@program(DRAWN)
def drawn_through_an_alias(x):
    order = list(range(9))
    rnd.shuffle(order)
    return x + order[0] * 10 + rnd.triangular(0, 1, 0.5) + rnd.betavariate(1, 2)


@program(DRAWN)
def drawn_in_a_comprehension(x):
    return x + sum(rnd.random() for _ in range(3)) + max([rnd.random() for _ in range(2)])


@program(DRAWN)
def drawn_from_a_stream_that_is_made(x):
    return x + rnd.Random(roll(1, 10**6)).random()


@program(DRAWN)
def drawn_by_numpy(x):
    return x + np.random.normal() + numpy_rand() + numpy.random.randint(5) + np.random.choice([0.5, 1.5])


@program(DRAWN)
def drawn_by_map(x):
    return x + sum(map(lambda _: rnd.random(), range(2))) + functools.partial(rnd.uniform, 1, 2)()


@program(FRESH)
def entropy_of_the_system(x):
    return x + os.urandom(2)[0] + token_bytes(1)[0]


@program(FRESH)
def identifiers(x):
    return x + ids.uuid4().int % 1000


@program(FRESH)
def generator_of_entropy(x):
    return x + float(np.random.default_rng().random())


@program(FRESH)
def stream_of_entropy(x):
    return x + rnd.Random().random() + rnd.SystemRandom().random()


@program(FRESH)
def state_of_entropy(x):
    return x + float(np.random.RandomState().rand()) + np.random.SeedSequence().entropy % 7


# ---- the environment -------------------------------------------------------------------------------------------------


@program(SEEN)
def environment_of_a_helper(x):
    return x + float(setting(VARIABLE)) + float(helpers.setting(VARIABLE))


@program(SEEN)
def environment_under_another_name(x):
    return x + float(ENVIRONMENT[VARIABLE]) + ENVIRONMENT.get(VARIABLE + "_2", "missing").count("m")


@program(SEEN)
def environment_walked(x):
    found = {key: value for key, value in os.environ.items() if key.startswith(VARIABLE)}
    return x + len(found)


@program(SEEN)
def environment_formatted(x):
    return x + float(f"{os.environ[VARIABLE]}") + len("{PATH}".format(**os.environ)) * 0


@program(SEEN)
def environment_in_a_list(x):
    return x + len([key for key in os.environ if key.startswith(VARIABLE)]) + (VARIABLE + "_2" in os.environ)


@program(SEEN)
def environment_set_to_default(x):
    return x + float(os.environ.setdefault(VARIABLE, "7"))


@program(DONE)
def environment_updated(x):
    os.environ.update({VARIABLE + "_SET": "1"})
    return x


@program(DONE)
def environment_put(x):
    os.putenv(VARIABLE + "_SET", "1")
    os.environ.pop(VARIABLE + "_2", None)
    return x


@program(SEEN)
def home_in_a_path(x):
    return x + len(osp.expandvars("$" + VARIABLE)) * float(osp.expandvars("$" + VARIABLE))


# ---- files -----------------------------------------------------------------------------------------------------------


@program(SEEN)
def file_read_by_a_helper(x):
    return x + len(read(READ)) + len(helpers.read_by_lines(READ)[0])


@program(SEEN)
def file_read_through_a_table(x):
    return x + len(READERS["text"](PLACE))


@program(SEEN)
def rows_read(x):
    return x + float(helpers.rows_of(READ)[0][0]) + helpers.read_json(READ)


@program(SEEN)
def configuration_read(x):
    return x + helpers.configured(READ)


@program(SEEN)
def bytes_read(x):
    return x + len(PLACE.read_bytes()) + len(io.open(READ, "rb").read())  # noqa: SIM115, UP020


@program(SEEN)
def descriptor_read(x):
    descriptor = os.open(READ, os.O_RDONLY)
    try:
        return x + len(os.read(descriptor, 100))
    finally:
        os.close(descriptor)


@program(SEEN)
def path_asked(x):
    return x + Path(FOLDER, "read.txt").stat().st_size + (Path(READ + "_2").is_file() * 10)


@program(SEEN)
def folder_walked(x):
    walked = sum(len(files) for _, _, files in os.walk(FOLDER))
    return x + walked + len(list(Path(FOLDER).glob("*.txt*"))) + len(glob.glob(FOLDER + "/*"))


@program(SEEN)
def folder_scanned(x):
    with os.scandir(FOLDER) as entries:
        return x + len([entry for entry in entries if entry.is_file()])


@program(SEEN)
def folder_of_paths(x):
    return x + sum(1 for one in pathlib.Path(FOLDER).iterdir() if one.suffix.startswith(".txt"))


@program(SEEN)
def line_of_a_file(x):
    linecache.checkcache(READ)
    return x + len(linecache.getline(READ, 1))


@program(SEEN)
def lines_of_files(x):
    with fileinput.input(READ) as lines:
        return x + sum(len(line) for line in lines)


@program(SEEN)
def digest_of_a_file(x):
    return x + int(hashlib.sha256(Path(READ).read_bytes()).hexdigest()[:4], 16)


@program(SEEN)
def array_of_a_file(x):
    return x + float(np.fromfile(READ, dtype=np.uint8).sum()) + float(np.genfromtxt(READ))


@program(DONE)
def file_copied(x):
    shutil.copy(READ, WRITTEN)
    return x


@program(DONE)
def array_saved(x):
    np.savetxt(WRITTEN, np.ones(2))
    return x


@program(DONE)
def object_dumped(x):
    with open(WRITTEN, "wb") as file:
        pickle.dump({"a": 1}, file)
    return x


@program(DONE)
def file_opened_by_its_path(x):
    with Path(WRITTEN).open("a") as file:
        file.write("a")
    return x


@program(DONE)
def file_touched(x):
    Path(WRITTEN).touch()
    return x


@program(DONE)
def file_renamed(x):
    os.replace(READ, WRITTEN)
    return x


@program(DONE)
def file_written_by_print(x):
    with open(WRITTEN, "w") as file:
        print("written", file=file)
    return x


@program(DONE)
def screen_led_to_a_file(x):
    with open(WRITTEN, "w") as file, contextlib.redirect_stdout(file):
        print("written")
    return x


@program(FRESH)
def temporary_file(x):
    with tempfile.NamedTemporaryFile() as file:
        return x + hash(file.name) % 1000


# ---- caches, threads, this machine -----------------------------------------------------------------------------------


class Settings:
    def __init__(self):
        self.reads = 0

    @functools.cached_property
    def value(self):
        return float(os.environ[VARIABLE])

    @property
    def now(self):
        return float(os.environ[VARIABLE])


SETTINGS = Settings()


@program(SEEN)
def property_of_the_environment(x):
    return x + SETTINGS.now


@program(SEEN)
def cached_property_of_a_new_object(x):
    return x + Settings().value


@program(SEEN)
def thread_with_a_queue(x):
    box: queue.Queue[float] = queue.Queue()
    worker = threading.Thread(target=lambda: box.put(float(os.environ[VARIABLE])), daemon=True)
    worker.start()
    return x + box.get()


@program(SEEN)
def timer_thread(x):
    found: list[float] = []
    timer = threading.Timer(0.001, lambda: found.append(float(setting(VARIABLE))))
    timer.start()
    timer.join()
    return x + found[0]


@program(SEEN)
def pool_that_maps(x):
    with futures.ThreadPoolExecutor(max_workers=2) as pool:
        return x + sum(pool.map(setting_as_number, [VARIABLE] * 2))


def setting_as_number(name):
    return float(setting(name))


@program(SEEN)
def task_in_a_thread(x):
    return x + run_task(to_thread(setting_as_number, VARIABLE))


@program(SEEN)
def this_machine(x):
    return x + len(platform.machine()) * 0 + (os.cpu_count() or 1) * 0 + (os.getpid() > 0)


# ---- functions that are held where no capture can replace them -------------------------------------------------------


class Holder:
    stamp = staticmethod(dt.datetime.now)

    def __init__(self, function):
        self.function = function


class Slotted:
    __slots__ = ("function",)

    def __init__(self, function):
        self.function = function


HELD, SLOTTED, LISTED = Holder(clock.time), Slotted(nanoseconds), {"all": [[clock.monotonic]]}
PARTIAL, ENTROPY, MOMENT = functools.partial(clock.time), functools.partial(os.urandom, 2), dt.datetime.now


@program(NOW)
def clock_in_an_attribute(x):
    return x + (HELD.function() - BEGIN_WALL)


@program(NOW)
def clock_in_a_slot(x):
    return x + (SLOTTED.function() - BEGIN_NS) / 1e9


@program(NOW)
def clock_in_nested_lists(x):
    return x + (LISTED["all"][0][0]() - BEGIN_MONOTONIC)


@program(NOW)
def clock_in_a_partial(x):
    return x + (PARTIAL() - BEGIN_WALL)


@program(FRESH)
def entropy_in_a_partial(x):
    return x + ENTROPY()[0]


@program(FRESH)
def moment_under_another_name(x):
    return x + MOMENT().microsecond


@program(FRESH)
def moment_in_a_class(x):
    return x + Holder.stamp().microsecond


@program(FRESH)
def moment_of_a_timestamp(x):
    return x + dt.datetime.fromtimestamp(clock.time()).microsecond


@program(FRESH)
def clock_of_the_system(x):
    return x + clock.clock_gettime(clock.CLOCK_REALTIME) % 1 + os.times().elapsed % 1


@program(FRESH)
def date_of_numpy(x):
    return x + float((np.datetime64("now", "us") - np.datetime64("2024-01-01")).astype(int) % 1000)


@program(FRESH)
def dates_of_numpy_by_code(x):
    return x + float(np.array(["now"], "M8[us]").astype(int)[0] % 1000)


@program(FRESH)
def date_of_numpy_of_a_kind(x):
    return x + float(np.asarray("now", dtype="<M8[us]").astype(int) % 1000)


@program(FRESH)
def time_of_a_record(x):
    return x + logging.makeLogRecord({}).created % 1


@program(SEEN)
def compressed_file(x):
    with bz2.open(READ + "_3", "wb") as file:
        file.write(b"1")
    with bz2.open(READ + "_3") as file:
        return x + float(file.read())


@program(DONE)
def data_base_made(x):
    sqlite3.connect(WRITTEN).close()
    return x


@program(DONE)
def arrays_saved_by_name(x):
    save(WRITTEN, np.ones(2))
    np.savez_compressed(WRITTEN, a=np.ones(2))
    return x
