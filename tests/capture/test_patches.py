"""What a capture replaces: put in place as a whole, found wherever programs hold it, and gone without a trace."""

import builtins
import io
import os
import random
import subprocess
import sys
import threading
import time
import traceback
from types import ModuleType

import pytest
import torch

import clew
from clew.capture.patches import REWRITTEN, Patches, Stock, _places
from clew.errors import CaptureError


def stock_over(names):
    """A stock that replaces everything in a dict, and how often it was worked out."""
    found = []

    def find(patches):
        found.append(names)
        for name in names:
            patches.in_dict(names, name, lambda value: ("replaced", value))

    return Stock(find), found


def test_a_stock_is_worked_out_once_and_put_back():
    names = {"one": 1, "two": 2}
    stock, found = stock_over(names)
    for _ in range(3):
        with Patches() as patches:
            patches.from_stock(stock)
            assert names == {"one": ("replaced", 1), "two": ("replaced", 2)}
        assert names == {"one": 1, "two": 2}
    assert len(found) == 1
    assert not _places


def test_a_stock_is_worked_out_again_when_a_place_holds_something_else():
    names = {"one": 1}
    stock, found = stock_over(names)
    for value in (1, 5, 5):
        names["one"] = value
        with Patches() as patches:
            patches.from_stock(stock)
            assert names == {"one": ("replaced", value)}
        assert names == {"one": value}
    assert len(found) == 2


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("layers", [("__code__", REWRITTEN), (REWRITTEN, "__code__")])
def test_layers_of_code_are_put_back_in_any_order(layers, first):
    def program():
        return "original"

    original, codes = program.__code__, ((lambda: "lower").__code__, (lambda: "upper").__code__)
    traces = (Patches(), Patches())
    for trace, code, layer in zip(traces, codes, layers, strict=True):
        trace.on_function(program, code, layer)
    assert program() == "upper"
    traces[first].__exit__()
    assert program() == ("upper", "lower")[first]
    traces[1 - first].__exit__()
    assert program.__code__ is original


def test_two_traces_share_a_stock():
    names = {"one": 1}
    stock, _ = stock_over(names)
    with Patches() as patches:
        patches.from_stock(stock)
    first, second = Patches(), Patches()
    first.from_stock(stock)
    second.from_stock(stock)
    first.in_dict(names, "one", lambda value: ("again", value))
    first.__exit__()
    assert names == {"one": ("replaced", 1)}
    second.__exit__()
    assert names == {"one": 1}
    assert not _places


def test_everything_is_as_it_was_after_a_capture():
    homes = [vars(home) for home in (builtins, io, os, time, random, torch, torch.random)]
    before = [dict(home) for home in homes]
    call = torch.nn.Module.__call__
    for _ in range(2):
        clew.trace(torch.nn.ReLU(), (torch.ones(3),))
    assert all(
        home.keys() == held.keys() and all(home[name] is held[name] for name in held)
        for home, held in zip(homes, before, strict=True)
    )
    assert torch.nn.Module.__call__ is call


def test_a_capture_adds_no_audit_hook():
    program = (
        "import sys, torch, clew\n"
        "sys.addaudithook = lambda hook: sys.exit('a hook that stays')\n"
        "print(clew.trace(torch.nn.ReLU(), (torch.ones(3),))(torch.ones(3)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def writing(path):
    def program(x):
        with open(path, "w") as file:
            file.write("done")
        return x + 1

    return program


ACTS = {
    "open": writing,
    "io.open": lambda path: lambda x: (io.open(path, "a").close(), x + 1)[1],  # noqa: SIM115, UP020
    "FileIO": lambda path: lambda x: (io.FileIO(str(path), "w").close(), x + 1)[1],
    "os.open": lambda path: lambda x: (os.close(os.open(path, os.O_CREAT | os.O_WRONLY)), x + 1)[1],
    "mkdir": lambda path: lambda x: (os.makedirs(path), x + 1)[1],
    "path": lambda path: lambda x: (path.write_text("done"), x + 1)[1],
    "touch": lambda path: lambda x: (path.touch(), x + 1)[1],
}


@pytest.mark.parametrize("name", ACTS)
def test_acts_on_files_are_refused_before_they_happen(name, tmp_path):
    path = tmp_path / "out"
    with pytest.raises(CaptureError, match=r"(written|made).* cannot be captured"):
        clew.trace(ACTS[name](path), (torch.ones(3),), opaque="error")
    assert not path.exists()


def test_acts_of_a_library_that_imported_them_by_name_are_refused(tmp_path, monkeypatch):
    library = ModuleType("a_library")
    library.remove = os.remove
    monkeypatch.setitem(sys.modules, "a_library", library)
    path = tmp_path / "kept"
    path.write_text("here")

    def program(x):
        sys.modules["a_library"].remove(path)
        return x + 1

    with pytest.raises(CaptureError, match="removal"):
        clew.trace(program, (torch.ones(3),), opaque="error")
    assert path.exists()
    assert library.remove is os.remove


def test_files_may_be_read(tmp_path):
    path = tmp_path / "number"
    path.write_text("2.0")

    def program(x):
        with open(path) as file:
            return x * float(file.read())

    captured = clew.trace(program, (torch.ones(3),))
    assert captured(torch.ones(3)).equal(torch.full((3,), 2.0))


def test_another_thread_may_write_while_a_capture_runs(tmp_path):
    started = threading.Event()

    def write():
        started.wait(10)
        (tmp_path / "other").write_text("done")

    def program(x):
        started.set()
        assert sum(range(5_000_000)) > 0  # the other thread writes meanwhile; to wait for it would be refused
        return x + 1

    thread = threading.Thread(target=write)
    thread.start()
    captured = clew.trace(program, (torch.ones(3),))
    thread.join()
    assert (tmp_path / "other").read_text() == "done"
    assert captured(torch.ones(3)).equal(torch.full((3,), 2.0))


class Doubling:
    factor = 2.0

    def __call__(self, x):
        return x * self.factor


handler = None


def handled(x):
    return x + 1 if handler is None else handler(x)


def late_global(x):
    try:
        return x * LATE  # noqa: F821
    except NameError:
        return x


def test_what_a_variable_holds_by_now_is_looked_into_again(monkeypatch):
    x = torch.ones(3)
    assert clew.trace(handled, (x,))(x).equal(x + 1)
    monkeypatch.setitem(globals(), "handler", Doubling())
    captured = clew.trace(handled, (x,))
    assert captured(x).equal(x * 2)
    monkeypatch.setattr(Doubling, "factor", 3.0)
    assert captured(x).equal(x * 3)


def test_a_global_that_came_up_since_is_read(monkeypatch):
    x = torch.ones(3)
    clew.trace(late_global, (x,))
    monkeypatch.setitem(globals(), "LATE", 4.0)
    captured = clew.trace(late_global, (x,))
    assert captured(x).equal(x * 4)
    monkeypatch.setitem(globals(), "LATE", 5.0)
    assert captured(x).equal(x * 5)


def test_frames_of_replaced_bodies_can_be_looked_at() -> None:
    """A debugger reads the locals of all frames of an error, of code in a method with ``super`` too."""

    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no") as failure:
        clew.trace(lambda x: Failing.apply(x), (torch.ones(2),))
    names = set()
    for entry in traceback.walk_tb(failure.tb):
        names.add(entry[0].f_code.co_name)
        assert isinstance(dict(entry[0].f_locals), dict)
    assert "apply" in names
