"""Programs that look at the world outside of their arguments, or act on it, in words that no framework owns.

Each takes an array of any framework. How a program is judged depends on what it looks at: ``NOW`` (a clock), ``DRAWN``
(a stream that a seed sets), ``FRESH`` (entropy, which no seed sets), ``SEEN`` (the environment, files, variables, what
is typed in: changed between the capture and the calls), ``DONE`` (what the program leaves behind) and ``SHOWN`` (text
for people: the graph shows it again, or the capture tells that it does not).
"""

from __future__ import annotations

import datetime
import functools
import locale
import logging
import os
import pathlib
import random
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import timeit
import uuid
from atexit import register as at_exit
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime as moment
from os import environ, getenv
from random import random as any_number
from time import perf_counter as tick
from time import time as now
from typing import Any, NamedTuple

import numpy

NOW, DRAWN, FRESH, SEEN, DONE, SHOWN = "now", "drawn", "fresh", "seen", "done", "shown"
_KEPT_FOLDER = tempfile.TemporaryDirectory()
FOLDER = _KEPT_FOLDER.name
READ, WRITTEN = os.path.join(FOLDER, "read.txt"), os.path.join(FOLDER, "written.txt")
VARIABLE = "CLEW_TEST_OUTSIDE"
BEGIN, BEGIN_TICK, BEGIN_CPU = time.time(), time.perf_counter(), time.process_time()
BEGIN_DATE = datetime.datetime.now()
STREAM, GENERATOR, STATE = random.Random(3), numpy.random.default_rng(3), numpy.random.RandomState(3)
LOGGER = logging.getLogger("clew.outside")


class Program(NamedTuple):
    """A program and how it is judged."""

    run: Callable[[Any], Any]
    judged: str
    only: str = ""
    """The framework that it is written for, if it is not for all."""


PROGRAMS: dict[str, Program] = {}


def program(judged: str, only: str = "") -> Callable[[Any], Any]:
    """Register a program."""

    def register(run: Any) -> Any:
        PROGRAMS[run.__name__] = Program(run, judged, only)
        return run

    return register


# ---- clocks ----------------------------------------------------------------------------------------------------------


@program(NOW)
def time_time(x):
    return x + (time.time() - BEGIN)


@program(NOW)
def time_perf_counter(x):
    return x + (time.perf_counter() - BEGIN_TICK)


@program(NOW)
def time_perf_counter_ns(x):
    return x + (time.perf_counter_ns() * 1e-9 - BEGIN_TICK)


@program(NOW)
def datetime_now(x):
    return x + (datetime.datetime.now() - BEGIN_DATE).total_seconds()


@program(NOW)
def imported_time(x):
    return x + (now() - BEGIN)


@program(NOW)
def imported_perf_counter(x):
    return x + (tick() - BEGIN_TICK)


@program(NOW)
def imported_datetime(x):
    return x + (moment.now() - BEGIN_DATE).total_seconds()


@program(NOW)
def default_timer(x):
    return x + (timeit.default_timer() - BEGIN_TICK)


@program(NOW)
def local_import_of_time(x):
    from time import time as read

    return x + (read() - BEGIN)


def _elapsed(read=time.time):
    return read() - BEGIN


@program(NOW)
def clock_as_default(x):
    return x + _elapsed()


class Stopwatch:
    """A clock that classes hold."""

    read = time.perf_counter
    kept = staticmethod(time.perf_counter)


@program(NOW)
def clock_in_class(x):
    return x + (Stopwatch.read() - BEGIN_TICK)


@program(NOW)
def static_clock_in_class(x):
    return x + (Stopwatch().kept() - BEGIN_TICK)


CLOCKS = {"wall": time.time}


@program(NOW)
def clock_in_dict(x):
    return x + (CLOCKS["wall"]() - BEGIN)


@functools.cache
def _cached_now() -> float:
    return time.time() - BEGIN


@program(SEEN)
def cached_clock(x):
    return x + _cached_now()


# ---- random numbers --------------------------------------------------------------------------------------------------


@program(DRAWN)
def random_random(x):
    return x + random.random()


@program(DRAWN)
def random_randint(x):
    return x + random.randint(0, 10**6)


@program(DRAWN)
def imported_random(x):
    return x + any_number()


@program(DRAWN)
def random_instance(x):
    return x + STREAM.random()


@program(DRAWN)
def random_instance_of_seed(x):
    return x + random.Random(7).random()


@program(FRESH)
def random_instance_without_seed(x):
    return x + random.Random().random()


@program(DRAWN)
def numpy_rand(x):
    return x + float(numpy.random.rand())


@program(DRAWN)
def numpy_generator(x):
    return x + float(GENERATOR.random())


@program(DRAWN)
def numpy_random_state(x):
    return x + float(STATE.rand())


@program(FRESH)
def numpy_generator_without_seed(x):
    return x + float(numpy.random.default_rng().random())


@program(FRESH)
def os_urandom(x):
    return x + int.from_bytes(os.urandom(2), "little")


@program(FRESH)
def uuid4(x):
    return x + uuid.uuid4().int % 65521


@program(FRESH)
def uuid1(x):
    return x + uuid.uuid1().int % 65521


@program(FRESH)
def secrets_randbelow(x):
    return x + secrets.randbelow(65521)


@program(FRESH)
def secrets_token(x):
    return x + int(secrets.token_hex(2), 16)


@program(FRESH)
def system_random(x):
    return x + random.SystemRandom().random()


# ---- the environment -------------------------------------------------------------------------------------------------


@program(SEEN)
def environ_item(x):
    return x + float(os.environ[VARIABLE])


@program(SEEN)
def environ_get(x):
    return x + float(os.environ.get(VARIABLE, "0"))


@program(SEEN)
def environ_contains(x):
    return x + 1 if VARIABLE + "_2" in os.environ else x


@program(SEEN)
def environ_copied(x):
    return x + float(dict(os.environ)[VARIABLE])


@program(SEEN)
def environ_of_bytes(x):
    return x + float(os.environb[VARIABLE.encode()])


@program(SEEN)
def os_getenv(x):
    return x + float(os.getenv(VARIABLE, "0"))


@program(SEEN)
def imported_environ(x):
    return x + float(environ[VARIABLE])


@program(SEEN)
def imported_getenv(x):
    return x + float(getenv(VARIABLE, "0"))


@program(SEEN)
def expanded_variable(x):
    return x + float(os.path.expandvars("$" + VARIABLE))


@program(DONE)
def environ_set(x):
    os.environ[VARIABLE + "_SET"] = "1"
    return x + 1


@program(SEEN)
def working_folder(x):
    return x + len(os.getcwd())


@program(SEEN)
def command_line(x):
    return x + len(sys.argv)


# ---- files -----------------------------------------------------------------------------------------------------------


@program(SEEN)
def open_for_reading(x):
    with open(READ) as file:
        return x + float(file.read())


@program(SEEN)
def path_read_text(x):
    return x + float(pathlib.Path(READ).read_text())


@program(SEEN)
def path_exists(x):
    return x + 1 if os.path.exists(READ + "_2") else x


@program(SEEN)
def pathlib_exists(x):
    return x + 1 if pathlib.Path(READ + "_2").exists() else x


@program(SEEN)
def folder_listed(x):
    return x + len(os.listdir(FOLDER))


@program(SEEN)
def file_size(x):
    return x + os.path.getsize(READ)


@program(SEEN)
def numpy_loadtxt(x):
    return x + float(numpy.loadtxt(READ))


@program(DONE)
def open_for_writing(x):
    with open(WRITTEN, "w") as file:
        file.write("done")
    return x + 1


@program(DONE)
def open_for_appending(x):
    with open(WRITTEN, "a") as file:
        file.write("done")
    return x + 1


@program(DONE)
def path_write_text(x):
    pathlib.Path(WRITTEN).write_text("done")
    return x + 1


@program(DONE)
def file_removed(x):
    os.remove(READ)
    return x + 1


@program(DONE)
def folder_made(x):
    os.makedirs(WRITTEN, exist_ok=True)
    return x + 1


# ---- text and people -------------------------------------------------------------------------------------------------


@program(SHOWN)
def print_text(x):
    print("a text")
    return x + 1


@program(SHOWN)
def print_shape(x):
    print(x.shape)
    return x + 1


@program(SHOWN)
def write_to_stdout(x):
    sys.stdout.write("a text\n")
    return x + 1


@program(SEEN)
def read_from_input(x):
    return x + float(input())


@program(SEEN)
def read_from_stdin(x):
    return x + float(sys.stdin.readline())


@program(SHOWN)
def logging_info(x):
    LOGGER.warning("a text")
    return x + 1


KEPT = open(os.path.join(FOLDER, "kept.txt"), "w+")  # noqa: SIM115


@program(DONE)
def held_file_written(x):
    KEPT.write("done")
    KEPT.flush()
    return x + 1


# ---- other processes -------------------------------------------------------------------------------------------------


@program(SEEN)
def process_output(x):
    return x + float(subprocess.run(["cat", READ], capture_output=True, check=True).stdout)


@program(DONE)
def os_system(x):
    os.system(f"touch {WRITTEN}")
    return x + 1


@program(SEEN)
def socket_connected(x):
    with socket.socket() as one:
        return x + one.connect_ex(("127.0.0.1", 9)) * 1.0


@program(SEEN)
def host_name(x):
    return x + len(socket.gethostname())


@program(FRESH)
def process_id_of_child(x):
    return x + subprocess.Popen(["true"]).pid


# ---- variables -------------------------------------------------------------------------------------------------------

SCALE = 2.0
SETTINGS = {"scale": 2.0}


class Options:
    """Attributes of a class that others set."""

    scale = 2.0


@program(SEEN)
def global_variable(x):
    return x + SCALE


@program(SEEN)
def global_dict(x):
    return x + SETTINGS["scale"]


@program(SEEN)
def class_attribute(x):
    return x + Options.scale


READ_VARIABLE = os.getenv


def _read(name=os.environ):
    return name[VARIABLE]


class Reader:
    """A function of the environment that a class holds."""

    read = staticmethod(os.getenv)


@program(SEEN)
def environ_as_default(x):
    return x + float(_read())


@program(SEEN)
def getenv_in_class(x):
    return x + float(Reader.read(VARIABLE))


class Random:
    """A function of ``random`` that a class holds."""

    draw = staticmethod(random.random)


@program(DRAWN)
def random_in_class(x):
    return x + Random.draw()


def _drawn(draw=random.random):
    return draw()


@program(DRAWN)
def random_as_default(x):
    return x + _drawn()


def _written(write=open):
    with write(WRITTEN, "w") as file:
        file.write("done")


@program(DONE)
def open_as_default(x):
    _written()
    return x + 1


@functools.cache
def _cached_environment() -> float:
    return float(os.environ[VARIABLE])


@program(SEEN)
def cached_environment(x):
    return x + _cached_environment()


@functools.lru_cache
def _cached_list() -> list[float]:
    return []


@program(SEEN)
def cached_list_grows(x):
    held = _cached_list()
    held.append(1.0)
    return x + len(held)


@program(SEEN)
def cache_asked(x):
    _cached_list()
    return x + _cached_list.cache_info().hits


# ---- threads ---------------------------------------------------------------------------------------------------------


@program(SEEN)
def thread_started(x):
    found: list[float] = []
    thread = threading.Thread(target=lambda: found.append(float(os.environ[VARIABLE])))
    thread.start()
    thread.join()
    return x + found[0]


@program(SEEN)
def thread_pool(x):
    with ThreadPoolExecutor(1) as pool:
        return x + pool.submit(float, os.environ[VARIABLE]).result()


# ---- settings of this process ----------------------------------------------------------------------------------------

SIGNAL = signal.SIGWINCH


@program(DONE)
def signal_sent(x):
    signal.raise_signal(SIGNAL)
    return x + 1


@program(DONE)
def signal_ignored(x):
    signal.signal(SIGNAL, signal.SIG_IGN)
    return x + 1


@program(DONE)
def called_at_exit(x):
    at_exit(sys.getrecursionlimit)
    return x + 1


@program(DONE)
def recursion_limit_set(x):
    sys.setrecursionlimit(sys.getrecursionlimit() + 1)
    return x + 1


@program(DONE)
def language_set(x):
    locale.setlocale(locale.LC_NUMERIC, "C")
    return x + 1
