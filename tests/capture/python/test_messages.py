"""What a program logs and warns of, its graph logs and warns of: the same records, at the levels of the call."""

import copy
import logging
import warnings

import numpy
import pytest
import torch

import clew
from clew.errors import TraceWarning

LOGGER = logging.getLogger("clew.test.messages")



@pytest.fixture
def records(caplog):
    LOGGER.setLevel(logging.INFO)
    yield caplog
    LOGGER.setLevel(logging.NOTSET)


def told(caplog, function, *args):
    """What a call logs: text, level, and where."""
    caplog.clear()
    function(*args)
    return [(one.getMessage(), one.levelno, one.lineno, one.funcName, one.pathname, one.name) for one in caplog.records]


def inner(rows):
    LOGGER.warning("inside of %d", rows, stacklevel=2)


def program(x):
    LOGGER.info("%d rows, mean %s", x.shape[0], x.mean())
    LOGGER.debug(f"{x.shape[0]} rows")
    inner(x.shape[0])
    if x.sum() > 3:
        LOGGER.error("large")
    for row in x:
        LOGGER.info("row %s", row)
    return x + 1


MAKERS = {"torch": torch.ones, "numpy": numpy.ones}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_same_records_at_the_levels_of_the_call(make, records):
    found = []
    assert told(records, lambda: found.append(clew.trace(program, args=(make(2),)))) == []
    captured = found[0]
    for level in (logging.INFO, logging.DEBUG, logging.ERROR):
        LOGGER.setLevel(level)
        for count in (2, 5):
            expected = told(records, program, make(count))
            assert expected or level == logging.ERROR
            assert told(records, captured, make(count)) == expected


def test_a_first_call_logs_once(records):
    lazy = clew.trace(program)
    assert told(records, lazy, torch.ones(4)) == told(records, program, torch.ones(4))


def test_what_is_logged_is_as_it_was(records):
    def changing(x):
        LOGGER.info("before %s", x)
        x += 1
        return x

    assert told(records, clew.trace(changing), torch.ones(2))[0][0] == "before tensor([1., 1.])"


@pytest.mark.parametrize("form", ["text", "copy", "again", "interpreter"])
def test_other_forms_log_too(form, records):
    captured = clew.trace(program, args=(torch.ones(2),))
    if form == "text":
        text, objects = clew.text_and_objects(captured.graph)
        made = clew.GraphFunction(captured.root, clew.parse(text, objects=objects))
    elif form == "again":
        made = clew.trace(captured, args=(torch.ones(2),))
    else:
        made = copy.deepcopy(captured) if form == "copy" else clew.Interpreter(captured).run
    assert told(records, made, torch.ones(4)) == told(records, program, torch.ones(4))


def test_the_code_reads_like_the_program():
    code = clew.trace(program, args=(torch.ones(2),)).code
    assert "logging.getLogger('clew.test.messages').info('%d rows, mean %s', x.shape[0], x.mean())" in code
    assert "logging.getLogger('clew.test.messages').debug(f'{x.shape[0]} rows')" in code


def test_messages_are_removed(records):
    captured = clew.trace(warning, args=(torch.ones(2),))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clew.remove_prints(captured)(torch.ones(2))
    assert "warn" not in captured.code


TEXTS: list[str] = []


class Keeping(logging.Handler):
    def emit(self, record):
        TEXTS.append(record.getMessage())


def test_what_a_handler_of_the_users_keeps_is_state():
    logger, handler = logging.getLogger("clew.test.kept"), Keeping()
    logger.addHandler(handler)

    def counted(x):
        logger.warning("a text")
        return x + len(TEXTS)

    try:
        captured = clew.trace(counted, args=(torch.ones(2),))
        assert TEXTS == []
        assert captured(torch.ones(2)).tolist() == [2.0, 2.0]
        assert TEXTS == ["a text"]
        logger.setLevel(logging.ERROR)
        with pytest.raises(clew.GuardError, match="the level of clew.test.kept"):
            captured(torch.ones(2))
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


class Loud(UserWarning):
    pass


def warning(x):
    warnings.warn(f"{x.shape[0]} rows", Loud, stacklevel=1)
    warned_inside()
    return x + 1


def warned_inside():
    warnings.warn("a text", stacklevel=2)


def warned(function, *args):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function(*args)
    return [(str(one.message), one.category, one.filename, one.lineno) for one in found]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_same_warnings(make):
    found = []
    assert warned(lambda: found.append(clew.trace(warning, args=(make(2),)))) == []
    assert warned(found[0], make(3)) == warned(warning, make(3))
    assert "warnings.warn(f'{x.shape[0]} rows', Loud)" in found[0].code


def test_warnings_are_shown_once_by_default():
    captured = clew.trace(warning, args=(torch.ones(2),))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            captured(torch.ones(2))
    assert len(found) == 2


def test_a_warning_that_is_an_error_now():
    captured = clew.trace(warning, args=(torch.ones(2),))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Loud, match="2 rows"):
            captured(torch.ones(2))


def test_a_warning_that_a_program_would_catch_is_guarded():
    def caught(x):
        try:
            warnings.warn("a text", Loud, stacklevel=1)
        except Loud:
            return x - 1
        return x + 1

    captured = clew.trace(caught, args=(torch.ones(2),))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(clew.GuardError, match="the same warnings are errors"):
            captured(torch.ones(2))


def test_what_no_node_can_log_is_told():
    def of_an_error(x):
        try:
            raise KeyError("a key")
        except KeyError:
            LOGGER.exception("failed")
        return x + 1

    def of_an_object(x):
        LOGGER.warning("%s", Keeping())
        return x + 1

    for function in (of_an_error, of_an_object):
        with pytest.warns(TraceWarning, match="the graph will not log what the program logs"):
            clew.trace(function, args=(torch.ones(2),))


def test_what_libraries_tell_is_not_in_the_graph(records):
    def asking(x):
        return torch.meshgrid(x, x)[0]  # torch warns of a missing argument

    captured = clew.trace(asking, args=(torch.ones(2),))
    assert "warn" not in captured.code
