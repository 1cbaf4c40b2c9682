"""Programs that switch something for all that follows: settings of Python and of libraries.

Each takes an array of any framework, or of one alone (``only``). ``left`` tells how all settings stand, ``as_found``
puts them back.
"""

from __future__ import annotations

import builtins
import contextlib
import copyreg
import csv
import decimal
import gc
import importlib
import json
import logging
import mimetypes
import os
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from warnings import filterwarnings as filtered

import numpy
import numpy as np

from tests.capture.python.outside_programs import DONE, DRAWN, LOGGER, SEEN, SHOWN, VARIABLE, program

ENCODER, MARK = json.JSONEncoder, "clew_mark"


class Thing:
    """A class that nobody else pickles."""


def _attribute(holder: Any, name: str = MARK) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    def put(value: Any) -> None:
        if value is None:
            delattr(holder, name)
        else:
            setattr(holder, name, value)

    return lambda: vars(holder).get(name), put


def _contents(held: Any) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    def put(value: Any) -> None:
        held.clear()
        (held.extend if type(held) is list else held.update)(value)

    return lambda: held.copy(), put


def _decimal() -> Any:
    held = decimal.getcontext()
    return held.prec, held.rounding


def _set_decimal(kept: Any) -> None:
    held = decimal.getcontext()
    held.prec, held.rounding = kept


def _loggers() -> Any:
    found = LOGGER, logging.root
    return [(one.level, list(one.handlers), list(one.filters), one.propagate, one.disabled) for one in found]


def _set_loggers(kept: Any) -> None:
    for one, (level, handlers, filters, propagate, disabled) in zip((LOGGER, logging.root), kept, strict=True):
        one.setLevel(level)
        one.handlers[:], one.filters[:] = handlers, filters
        one.propagate, one.disabled = propagate, disabled


READERS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "path": (lambda: list(sys.path), lambda kept: setattr(sys, "path", kept)),
    "filters": (lambda: list(warnings.filters), lambda kept: warnings.filters.__setitem__(slice(None), kept)),
    "loggers": (_loggers, _set_loggers),
    "levels": (lambda: logging.getLevelName(33), lambda kept: logging._levelToName.pop(33)),
    "disabled": (lambda: logging.root.manager.disable, logging.disable),
    "records": (logging.getLogRecordFactory, logging.setLogRecordFactory),
    "decimal": (_decimal, _set_decimal),
    "collector": (gc.isenabled, lambda kept: gc.enable() if kept else gc.disable()),
    "threshold": (gc.get_threshold, lambda kept: gc.set_threshold(*kept)),
    "random": (random.getstate, random.setstate),
    "switching": (sys.getswitchinterval, sys.setswitchinterval),
    "digits": (sys.get_int_max_str_digits, sys.set_int_max_str_digits),
    "folder": (os.getcwd, os.chdir),
    "errors": (np.geterr, lambda kept: np.seterr(**kept)),
    "printed": (np.get_printoptions, lambda kept: np.set_printoptions(**kept)),
    "buffers": (np.getbufsize, np.setbufsize),
    "encoder": _attribute(json.JSONEncoder),
    "separator": _attribute(json.JSONEncoder, "item_separator"),
    "json": _attribute(json),
    "numpy": _attribute(numpy),
    "builtins": _attribute(builtins),
    "hook": _attribute(sys, "excepthook"),
    "shown": _attribute(warnings, "showwarning"),
    "modules": (lambda: sys.modules.get(MARK), lambda kept: sys.modules.pop(MARK)),
    "pickled": (lambda: copyreg.dispatch_table.get(Thing), lambda kept: copyreg.dispatch_table.pop(Thing)),
    "fields": (csv.field_size_limit, csv.field_size_limit),
    "kinds": _contents(mimetypes.types_map),
    "stacks": (threading.stack_size, threading.stack_size),
}
_MORE: dict[str, Callable[[Any], dict[str, Any]]] = {
    "torch": lambda torch: {
        "anomalies": (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
        "linear": _attribute(torch.nn.Linear),
        "torch": _attribute(torch),
        "dtype": (torch.get_default_dtype, torch.set_default_dtype),
        "checks": (
            lambda: torch.distributions.Distribution._validate_args,
            torch.distributions.Distribution.set_default_validate_args,
        ),
    },
    "jax": lambda jax: {
        "nans": (lambda: jax.config.jax_debug_nans, lambda kept: jax.config.update("jax_debug_nans", kept)),
    },
    "tensorflow": lambda tf: {
        "soft": (tf.config.get_soft_device_placement, tf.config.set_soft_device_placement),
        "floats": (tf.keras.backend.floatx, tf.keras.backend.set_floatx),
    },
}


def look_at(framework: str) -> None:
    """Look at the settings of a framework, too."""
    if framework in _MORE:
        READERS.update(_MORE.pop(framework)(importlib.import_module(framework)))


def left() -> dict[str, Any]:
    """How all settings stand."""
    return {name: repr(read()) if name == "loggers" else read() for name, (read, _) in READERS.items()}


@contextlib.contextmanager
def as_found() -> Iterator[None]:
    """Put all settings back at the end."""
    before = {name: read() for name, (read, _) in READERS.items()}
    try:
        yield
    finally:
        for name, (read, put) in READERS.items():
            if name in before and read() != before[name]:
                put(before[name])


# ---- Python's --------------------------------------------------------------------------------------------------------


@program(DONE)
def path_longer(x):
    sys.path.append("/nowhere")
    return x + 1


@program(DONE)
def path_assigned(x):
    sys.path = [*sys.path, "/nowhere"]
    return x + 1


@program(DONE)
def path_longer_for_a_while(x):
    sys.path.insert(0, "/nowhere")
    try:
        return x + 1
    finally:
        sys.path.remove("/nowhere")


@program(DONE)
def path_changed_in_helper(x):
    importlib.import_module("tests.capture.python.outside_helpers").lengthen_path()
    return x + 1


@program(DONE)
def warnings_filtered(x):
    warnings.simplefilter("ignore", SyntaxWarning)
    return x + 1


@program(DONE)
def warnings_filtered_by_imported(x):
    filtered("ignore", "clew")
    return x + 1


@program(DONE)
def warnings_reset(x):
    warnings.resetwarnings()
    return x + 1


@program(DONE)
def warnings_filtered_for_a_while(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return x + 1


@program(DONE)
def warnings_shown_elsewhere(x):
    warnings.showwarning = print
    return x + 1


@program(DONE)
def level_set(x):
    LOGGER.setLevel(logging.ERROR)
    return x + 1


@program(DONE)
def level_set_by_name(x):
    logging.getLogger("clew.outside").setLevel(logging.ERROR)
    return x + 1


@program(SHOWN)
def level_set_for_a_while(x):
    LOGGER.setLevel(logging.CRITICAL)
    LOGGER.warning("a text")
    LOGGER.setLevel(logging.NOTSET)
    return x + 1


@program(DONE)
def level_assigned(x):
    LOGGER.level = logging.ERROR
    return x + 1


@program(DONE)
def logger_not_propagating(x):
    LOGGER.propagate = False
    return x + 1


@program(DONE)
def logger_switched_off(x):
    logging.getLogger("clew.outside").disabled = True
    return x + 1


@program(DONE)
def handler_added(x):
    LOGGER.addHandler(logging.NullHandler())
    return x + 1


@program(DONE)
def logging_configured(x):
    logging.basicConfig(level=10, force=True)
    return x + 1


@program(DONE)
def logging_switched_off(x):
    logging.disable(logging.ERROR)
    return x + 1


@program(DONE)
def level_named(x):
    logging.addLevelName(33, "CLEW")
    return x + 1


@program(DONE)
def records_made_otherwise(x):
    logging.setLogRecordFactory(logging.makeLogRecord)
    return x + 1


@program(DONE)
def decimals_shorter(x):
    decimal.getcontext().prec = 5
    return x + 1


@program(DONE)
def decimals_of_another_context(x):
    decimal.setcontext(decimal.Context(prec=5))
    return x + 1


@program(SEEN)
def decimals_shorter_for_a_while(x):
    with decimal.localcontext() as context:
        context.prec = 5
        return x + float(decimal.Decimal(1) / 3)


@program(DONE)
def collector_off(x):
    gc.disable()
    return x + 1


@program(DONE)
def collector_off_for_a_while(x):
    gc.disable()
    try:
        return x + 1
    finally:
        gc.enable()


@program(DONE)
def collector_adjusted(x):
    gc.set_threshold(5)
    return x + 1


@program(DRAWN)
def random_seeded(x):
    random.seed(3)
    return x + random.random()


@program(DONE)
def threads_switched_later(x):
    sys.setswitchinterval(0.01)
    return x + 1


@program(DONE)
def numbers_longer(x):
    sys.set_int_max_str_digits(9999)
    return x + 1


@program(DONE)
def folder_changed(x):
    os.chdir("/")
    return x + 1


@program(DONE)
def environment_updated(x):
    os.environ.update({VARIABLE + "_SET": "1"})
    return x + 1


@program(DONE)
def rights_of_files(x):
    os.umask(0o77)
    return x + 1


@program(DONE)
def builtin_added(x):
    builtins.clew_mark = 1
    return x + 1


@program(DONE)
def module_put_in_place(x):
    sys.modules[MARK] = sys
    return x + 1


@program(DONE)
def module_imported(x):
    import colorsys

    return x + len(colorsys.__all__) * 0 + 1


@program(DONE)
def hook_of_errors(x):
    sys.excepthook = print
    return x + 1


@program(DONE)
def kinds_of_files(x):
    mimetypes.add_type("a/b", ".clewx")
    return x + 1


@program(DONE)
def pickled_otherwise(x):
    copyreg.pickle(Thing, repr)
    return x + 1


@program(DONE)
def stacks_of_threads(x):
    threading.stack_size(1 << 20)
    return x + 1


@program(DONE)
def fields_longer(x):
    csv.field_size_limit(9999)
    return x + 1


@program(DONE)
def field_limit_asked(x):
    return x + csv.field_size_limit() * 0 + 1


@program(DONE)
def fewer_rights(x):
    os.nice(0)
    return x + 1


# ---- of libraries ----------------------------------------------------------------------------------------------------


@program(DONE)
def attribute_of_a_class(x):
    json.JSONEncoder.clew_mark = 1
    return x + 1


@program(DONE)
def attribute_of_a_class_in_a_variable(x):
    ENCODER.clew_mark = 1
    return x + 1


@program(DONE)
def attribute_of_a_class_by_setattr(x):
    setattr(ENCODER, MARK, 1)
    return x + 1


@program(DONE)
def attribute_of_a_class_by_text(x):
    setattr(json.JSONEncoder, "clew_mark", 1)  # noqa: B010
    return x + 1


@program(DONE)
def attribute_of_a_class_anew(x):
    json.JSONEncoder.item_separator = ";"
    return x + 1


@program(SEEN)
def attribute_of_a_class_for_a_while(x):
    before, json.JSONEncoder.item_separator = json.JSONEncoder.item_separator, ";;"
    length = len(json.dumps([1, 2]))
    json.JSONEncoder.item_separator = before
    return x + length


@program(DONE)
def attribute_of_a_module(x):
    json.clew_mark = 1
    return x + 1


@program(DONE)
def attribute_of_numpy(x):
    np.clew_mark = 1
    return x + 1


@program(DONE)
def errors_of_numpy(x):
    np.seterr(divide="ignore")
    return x + 1


@program(DONE)
def errors_of_numpy_for_a_while(x):
    with np.errstate(divide="ignore"):
        return x + 1


@program(DONE)
def text_of_numpy(x):
    np.set_printoptions(precision=3)
    return x + 1


@program(SHOWN)
def text_of_numpy_for_a_while(x):
    with np.printoptions(precision=2):
        print(np.ones(2) / 3)
    return x + 1


@program(DONE)
def buffers_of_numpy(x):
    np.setbufsize(4096)
    return x + 1


@program(DONE, only="torch")
def anomalies_looked_for(x):
    import torch

    torch.autograd.set_detect_anomaly(True)
    return x + 1


@program(DONE, only="torch")
def attribute_of_a_layer(x):
    import torch

    torch.nn.Linear.clew_mark = 1
    return x + 1


@program(DONE, only="torch")
def attribute_of_torch(x):
    import torch

    torch.clew_mark = 1
    return x + 1


@program(DONE, only="torch")
def threads_of_torch(x):
    import torch

    torch.set_num_threads(torch.get_num_threads())
    return x + 1


@program(DONE, only="torch")
def text_of_torch(x):
    import torch

    torch.set_printoptions(precision=3)
    return x + 1


@program(DONE, only="torch")
def dtype_of_torch(x):
    import torch

    torch.set_default_dtype(torch.float64)
    return x + 1


@program(DONE, only="torch")
def checks_of_distributions(x):
    from torch.distributions import Distribution

    Distribution.set_default_validate_args(False)
    return x + 1


@program(DONE, only="jax")
def configuration_of_jax(x):
    import jax

    jax.config.update("jax_debug_nans", True)
    return x + 1


@program(DONE, only="tensorflow")
def places_of_tensorflow(x):
    import tensorflow as tf

    tf.config.set_soft_device_placement(not tf.config.get_soft_device_placement())
    return x + 1


@program(DONE, only="tensorflow")
def floats_of_keras(x):
    import tensorflow as tf

    tf.keras.backend.set_floatx("float64")
    return x + 1


@program(DONE, only="tensorflow")
def eagerness_of_tensorflow(x):
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    return x + 1


@program(DONE, only="tensorflow")
def level_of_tensorflow(x):
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    return x + 1
