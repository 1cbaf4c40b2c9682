"""What programs tell people: loggers, warnings, the screens, in the spellings that they have."""

from __future__ import annotations

import logging
import pprint
import sys
import traceback
import warnings
from logging import warning as caution
from sys import stdout as out
from warnings import warn

from tests.capture.python.outside_helpers import told_by_helper
from tests.capture.python.outside_programs import LOGGER, SEEN, SHOWN, program

CHILD, UNKNOWN = LOGGER.getChild("inner"), logging.Logger("clew.unknown")
ADAPTER, TELL = logging.LoggerAdapter(LOGGER, {"user": 1}), LOGGER.warning
UNKNOWN.parent = LOGGER


class Marked(logging.LoggerAdapter):
    """An adapter that changes what is logged."""

    def process(self, msg, kwargs):
        return f"<{msg}>", kwargs


class Thing:
    """An object that no node can hold."""


MARKED, THING = Marked(LOGGER, {}), Thing()


@program(SHOWN)
def logged_with_arguments(x):
    LOGGER.warning("%d rows, %s at first", x.shape[0], x[0])
    return x + 1


@program(SHOWN)
def logged_f_string(x):
    LOGGER.warning(f"{x.shape[0]} rows")
    return x + 1


@program(SHOWN)
def logged_below_the_level(x):
    LOGGER.debug("a detail")
    return x + 1


@program(SHOWN)
def logged_at_a_level(x):
    LOGGER.log(25, "a text")
    return x + 1


@program(SHOWN)
def logged_by_child(x):
    CHILD.error("a text")
    return x + 1


@program(SHOWN)
def logged_by_adapter(x):
    ADAPTER.warning("a text")
    return x + 1


@program(SHOWN)
def logged_by_own_adapter(x):
    MARKED.warning("a text")
    return x + 1


@program(SHOWN)
def logged_by_bound_method(x):
    TELL("a text")
    return x + 1


@program(SHOWN)
def logged_by_name(x):
    logging.getLogger("clew.outside").warning("a text")
    return x + 1


@program(SHOWN)
def logged_by_module(x):
    logging.warning("a text")
    return x + 1


@program(SHOWN)
def logged_by_imported_function(x):
    caution("%s", "a text")
    return x + 1


@program(SHOWN)
def logged_with_extra(x):
    LOGGER.warning("a text", extra={"user": 1})
    return x + 1


@program(SHOWN)
def logged_an_object(x):
    LOGGER.warning("%s", THING)
    return x + 1


@program(SHOWN)
def logged_by_unknown_logger(x):
    UNKNOWN.warning("a text")
    return x + 1


@program(SHOWN)
def logged_error(x):
    try:
        raise KeyError("a key")
    except KeyError:
        LOGGER.exception("failed")
    return x + 1


@program(SHOWN)
def logged_in_helper(x):
    told_by_helper(LOGGER, "a text")
    return x + 1


@program(SHOWN)
def logged_if_enabled(x):
    if LOGGER.isEnabledFor(logging.INFO):
        LOGGER.info("a text")
        return x + 1
    return x


@program(SEEN)
def level_asked_for(x):
    return x + LOGGER.getEffectiveLevel()


@program(SEEN)
def level_attribute(x):
    return x + LOGGER.level


@program(SEEN)
def handlers_counted(x):
    return x + LOGGER.hasHandlers() + len(LOGGER.handlers)


@program(SHOWN)
def warned(x):
    warnings.warn("a text")
    return x + 1


@program(SHOWN)
def warned_of_kind(x):
    warnings.warn(f"{x.shape[0]} rows", RuntimeWarning, stacklevel=1)
    return x + 1


@program(SHOWN)
def warned_of_caller(x):
    warnings.warn("a text", FutureWarning, stacklevel=2)
    return x + 1


def _warns():
    warnings.warn("a text", stacklevel=2)


@program(SHOWN)
def warned_in_function(x):
    _warns()
    return x + 1


@program(SHOWN)
def warned_of_instance(x):
    warn(UserWarning("a text"))
    return x + 1


@program(SHOWN)
def warned_and_ignored(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("a text")
    return x + 1


@program(SEEN)
def warned_and_counted(x):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warnings.warn("a text")
    return x + len(found)


@program(SEEN)
def warned_and_caught(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            warnings.warn("a text")
        except UserWarning:
            return x + 1
    return x


@program(SEEN)
def warned_and_caught_if_error(x):
    try:
        warnings.warn("a text", BytesWarning)
    except BytesWarning:
        return x + 1
    return x


@program(SHOWN)
def written_to_stderr(x):
    sys.stderr.write(f"{x.shape[0]} rows\n")
    return x + 1


@program(SHOWN)
def printed_to_stderr(x):
    print("a text", x.shape[0], file=sys.stderr, sep="-", flush=True)
    return x + 1


@program(SHOWN)
def lines_written(x):
    sys.stdout.writelines(["a text\n", "another\n"])
    sys.stdout.flush()
    return x + 1


@program(SEEN)
def written_and_counted(x):
    return x + sys.stdout.write("a text\n")


@program(SHOWN)
def written_to_imported(x):
    out.write("a text\n")
    return x + 1


def _shows(text, stream=sys.stdout):
    stream.write(text)


@program(SHOWN)
def written_to_default(x):
    _shows("a text\n")
    return x + 1


@program(SHOWN)
def written_to_variable(x):
    stream = sys.stdout
    stream.write("a text\n")
    print("a text", file=stream)
    return x + 1


@program(SHOWN)
def written_through_attribute(x):
    getattr(sys, "stdout").write("a text\n")  # noqa: B009
    return x + 1


@program(SHOWN)
def printed_with_layout(x):
    pprint.pprint({"a": 1})
    return x + 1


@program(SHOWN)
def traceback_printed(x):
    try:
        raise KeyError("a key")
    except KeyError:
        traceback.print_exc()
    return x + 1
