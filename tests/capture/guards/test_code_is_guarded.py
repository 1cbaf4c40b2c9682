"""The user's own functions, methods and classes are guarded: one that is replaced after a capture is noticed."""

from __future__ import annotations

import copy
import functools
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import clew


def halves(value: Any) -> Any:
    return value * 0.5


class Box:
    """What a program makes for itself."""

    def doubled(self, value: Any) -> Any:
        return value * 2


class Model(torch.nn.Module):
    """Calls a method of its own."""

    def twice(self, value: Any) -> Any:
        return value + value

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.twice(x)


def by_function(x: torch.Tensor) -> Any:
    return halves(x)


def by_class(x: torch.Tensor) -> Any:
    return Box().doubled(x)


X = torch.ones(2)
HERE = sys.modules[__name__]


@pytest.mark.parametrize(
    ("program", "holder", "name"), [(by_function, HERE, "halves"), (by_class, HERE, "Box"), (by_class, Box, "doubled")]
)
def test_code_that_is_replaced_is_noticed(program: Any, holder: Any, name: str, monkeypatch: Any) -> None:
    captured = clew.trace(program, args=(X,))
    assert torch.equal(captured(X), program(X))
    other = type("Box", (), {"doubled": lambda self, value: value * 9}) if name == "Box" else lambda *args: args[-1] * 9
    monkeypatch.setattr(holder, name, other)
    with pytest.raises(clew.GuardError, match=name):
        captured(X)
    monkeypatch.undo()
    assert torch.equal(captured(X), program(X))


def test_methods_of_a_module(monkeypatch: Any) -> None:
    captured = clew.trace(Model(), args=(X,))
    monkeypatch.setattr(Model, "twice", lambda self, value: value * 9)
    with pytest.raises(clew.GuardError, match=r"Model\.twice"):
        captured(X)


def test_the_forward_of_a_module_is_looked_up_in_its_class(monkeypatch: Any) -> None:
    captured, lazy = clew.trace(Model(), args=(X,)), clew.trace(Model())
    lazy(X)
    monkeypatch.setattr(Model, "forward", lambda self, x: x * 9)
    with pytest.raises(clew.GuardError, match=r"Model\.forward"):
        captured(X)
    assert torch.equal(lazy(X), X * 9)


@pytest.mark.parametrize("of", [lambda made: made, copy.deepcopy, lambda made: clew.Interpreter(made).run])
def test_the_captured_function_may_get_another_code_or_default(of: Any, monkeypatch: Any) -> None:
    captured = of(clew.trace(shifted, args=(X,)))
    for _ in range(9):  # then it is called in one step
        assert torch.equal(captured(X), X * 2 + 1)
    monkeypatch.setattr(shifted, "__defaults__", (5.0,))
    with pytest.raises(clew.GuardError, match="shifted"):
        captured(X)
    monkeypatch.undo()
    assert torch.equal(captured(X), X * 2 + 1)
    monkeypatch.setattr(shifted, "__code__", (lambda value, by=1.0, *, times=2.0: value - by).__code__)
    with pytest.raises(clew.GuardError, match="shifted"):
        captured(X)


def shifted(value: Any, by: float = 1.0, *, times: float = 2.0) -> Any:
    return value * times + by


def by_defaults(x: torch.Tensor) -> Any:
    return shifted(x)


@pytest.mark.parametrize(
    ("name", "value"),
    [("__defaults__", (7.0,)), ("__kwdefaults__", {"times": 7.0}), ("__kwdefaults__", None),
     ("__code__", (lambda value, by=1.0, *, times=2.0: value - by).__code__)],
)  # fmt: skip
def test_code_and_defaults_of_a_function_that_are_set_anew_are_noticed(name: str, value: Any, monkeypatch: Any) -> None:
    captured = clew.trace(by_defaults, args=(X,))
    copied = copy.deepcopy(captured)
    monkeypatch.setattr(shifted, name, value)
    for one in (captured, copied):
        with pytest.raises(clew.GuardError, match="shifted"):
            one(X)
    monkeypatch.undo()
    monkeypatch.setattr(shifted, "__defaults__", (float("1.0"),))  # an equal number does the same
    assert torch.equal(captured(X), by_defaults(X)) and torch.equal(copied(X), by_defaults(X))


def test_keywords_of_a_partial_that_are_set_anew_are_noticed() -> None:
    part = functools.partial(shifted, times=3.0)
    captured = clew.trace(lambda x: part(x), args=(X,))
    assert torch.equal(captured(X), part(X))
    part.keywords["times"] = 5.0
    with pytest.raises(clew.GuardError, match="part"):
        captured(X)


def test_they_have_one_line_in_the_table() -> None:
    def program(x: torch.Tensor) -> Any:
        return by_function(x) + by_class(x)

    lines = [line for line in str(clew.trace(program, args=(X,)).guards).splitlines() if line.startswith("code")]
    assert len(lines) == 1
    assert lines[0].endswith("are unchanged")
    assert all(name in lines[0] for name in ("by_function", "by_class", "halves", "Box.doubled"))


def test_the_program_itself_and_code_of_libraries_are_not_watched() -> None:
    captured = clew.trace(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()), args=(X,))
    assert not [guard for guard in captured.guards if guard.kind == "code"]
    assert not [guard for guard in clew.trace(Box().doubled, args=(X,)).guards if guard.kind == "code"]


def test_a_saved_capture_needs_none_of_it(tmp_path: Path) -> None:
    file = tmp_path / "captured.pickle"
    file.write_bytes(pickle.dumps(clew.trace(by_class, args=(X,))))
    told = f"import pickle, torch; print(pickle.load(open({str(file)!r}, 'rb'))(torch.ones(2)).tolist())"
    finished = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert finished.stdout.strip() == "[2.0, 2.0]"


def test_a_saved_capture_does_not_know_its_function(monkeypatch: Any) -> None:
    loaded = pickle.loads(pickle.dumps(clew.trace(shifted, args=(X,))))
    monkeypatch.setattr(shifted, "__defaults__", (5.0,))
    assert torch.equal(loaded(X), X * 2 + 1)
