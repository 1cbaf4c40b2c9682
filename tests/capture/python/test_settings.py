"""What a program leaves changed of settings and libraries is refused with its line, and put back."""

import decimal
import fractions
import json
import logging
import sys
import warnings

import einops
import pytest
import torch

import clew
from clew.errors import CaptureError


def lengthened(x):
    sys.path.append("/nowhere")
    return x + 1


def of_third_party(x):
    einops.clew_mark = 1
    return x + 1


def of_a_layer(x):
    torch.nn.Linear.clew_mark = 1
    return x + 1


def of_decimals(x):
    decimal.getcontext().prec = 5
    return x + 1


def of_warnings(x):
    warnings.simplefilter("ignore")
    return x + 1


def of_a_logger(x):
    logging.getLogger("clew.test.settings").setLevel(10)
    return x + 1


def held() -> list[object]:
    marks = [vars(einops).get("clew_mark"), vars(torch.nn.Linear).get("clew_mark")]
    level = logging.getLogger("clew.test.settings").level
    return [list(sys.path), list(warnings.filters), decimal.getcontext().prec, level, *marks]


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lengthened, r"a change of sys.path"),
        (of_third_party, r"a change of einops.clew_mark"),
        (of_a_layer, r"a change of torch.nn.modules.linear.Linear.clew_mark"),
        (of_decimals, "a change of the context of decimal numbers"),
        (of_warnings, "a change of the filters of warnings"),
        (of_a_logger, "a change of how messages are logged"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_change_is_refused_and_undone(function, what):
    before, line = held(), function.__code__.co_firstlineno + 1
    for asked in (lambda: clew.trace(function, (torch.ones(2),)), lambda: clew.trace(function)(torch.ones(2))):
        with pytest.raises(CaptureError, match=rf"{what} cannot be captured\n  where: .*test_settings.py:{line}"):
            asked()
        assert held() == before


def test_a_change_before_an_error_of_the_program_is_undone():
    def failing(x):
        sys.path.append("/nowhere")
        raise ValueError(f"no {x.shape[0]} rows")

    before = held()
    with pytest.raises(ValueError, match="no 2 rows"):
        clew.trace(failing, (torch.ones(2),))
    assert held() == before


def test_what_is_put_back_is_no_change():
    def careful(x):
        sys.path.insert(0, "/nowhere")
        with warnings.catch_warnings(), decimal.localcontext() as context:
            warnings.simplefilter("ignore")
            context.prec = 3
            before, json.JSONEncoder.item_separator = json.JSONEncoder.item_separator, ";"
            x = x * len(json.dumps([1, 2]))
        json.JSONEncoder.item_separator = before
        sys.path.remove("/nowhere")
        return x

    captured = clew.trace(careful, (torch.ones(2),))
    assert torch.equal(captured(torch.ones(3)), careful(torch.ones(3)))


def test_imports_and_caches_are_no_changes():
    def importing(x):
        import colorsys

        return x + len(sys.modules) * 0 + len(colorsys.__all__) * 0

    sys.modules.pop("colorsys", None)
    assert torch.equal(clew.trace(importing, (torch.ones(2),))(torch.ones(2)), torch.ones(2))


def test_a_library_that_switches_itself_is_not_seen():
    def switching(x):
        fractions.switch(3)
        return x + 1

    fractions.switch = _switch
    try:
        captured = clew.trace(switching, (torch.ones(2),))
        assert "switch" not in captured.code
    finally:
        del fractions.switch, fractions.switched


_switch = type(test_imports_and_caches_are_no_changes)(
    compile(
        "def switch(value):\n    global switched\n    switched = value\n", fractions.__file__, "exec"
    ).co_consts[0],
    vars(fractions),
)
