"""Of variables around a program only what was read is guarded: an item, an attribute, whether a key is there."""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

import clew
from clew.capture.guards.variable_reads import ANY_KEY, uses_of

CONFIG: dict[str, Any] = {"used": 2.0, "unused": 1, "inner": {"a": 1.0, "b": 2.0}}
SCALES = [2.0, 3.0]
ALLOWED = {"mean", "sum"}
HANDED = {"a": 1.0}
OWN = {"total": 0.0}
SCALE = 2.0
LOCK = threading.Lock()
X = torch.tensor([1.0, -2.0])


class Settings:
    def __init__(self) -> None:
        self.scale = 2.0
        self.other = 3.0


SETTINGS = Settings()


def item(x: Any) -> Any:
    return x * CONFIG["used"]


def asked(x: Any) -> Any:
    return x * 2 if CONFIG.get("extra") is None else x * 3


def contained(x: Any) -> Any:
    return x * 2 if "mean" in ALLOWED else x * 3


def nested(x: Any) -> Any:
    return x * CONFIG["inner"]["a"]


def place(x: Any) -> Any:
    return x * SCALES[0]


def counted(x: Any) -> Any:
    return x * len(SCALES)


def walked(x: Any) -> Any:
    for scale in SCALES:
        x = x * scale
    return x


def keys(x: Any) -> Any:
    return x * len([name for name in CONFIG if name.startswith("u")])


def attribute(x: Any) -> Any:
    return x * SETTINGS.scale


def handed_on(x: Any) -> Any:
    return x * total(HANDED)


def total(values: dict[str, float]) -> float:
    return sum(values.values())


def locked(x: Any) -> Any:
    with LOCK:
        return x * SCALE


def answer(program: Any, captured: Any, x: Any) -> str:
    try:
        found = captured(x)
    except clew.GuardError as error:
        print(error)  # which guard it was
        return "guarded"
    return "equal" if numpy.array_equal(found, program(x)) else "wrong"


@pytest.mark.parametrize(
    ("program", "change", "expected"),
    [
        (item, lambda patch: patch.setitem(CONFIG, "unused", 5), "equal"),
        (item, lambda patch: patch.setitem(CONFIG, "used", 5.0), "equal"),
        (item, lambda patch: patch.delitem(CONFIG, "used"), "guarded"),
        (item, lambda patch: patch.setitem(globals(), "CONFIG", {"used": 2.0}), "equal"),
        (item, lambda patch: patch.setitem(globals(), "CONFIG", {"used": 3.0}), "equal"),
        (asked, lambda patch: patch.setitem(CONFIG, "another", 1), "equal"),
        (asked, lambda patch: patch.setitem(CONFIG, "extra", 1), "guarded"),
        (contained, lambda patch: patch.setitem(globals(), "ALLOWED", {"mean"}), "equal"),
        (contained, lambda patch: patch.setitem(globals(), "ALLOWED", {"sum"}), "guarded"),
        (nested, lambda patch: patch.setitem(CONFIG["inner"], "b", 5.0), "equal"),
        (nested, lambda patch: patch.setitem(CONFIG["inner"], "a", 5.0), "equal"),
        (nested, lambda patch: patch.setitem(CONFIG, "inner", {"a": 4.0}), "equal"),
        (place, lambda patch: patch.setitem(globals(), "SCALES", [2.0, 5.0]), "equal"),
        (place, lambda patch: patch.setitem(globals(), "SCALES", [5.0, 3.0]), "equal"),
        (counted, lambda patch: patch.setitem(globals(), "SCALES", [5.0, 3.0]), "equal"),
        (counted, lambda patch: patch.setitem(globals(), "SCALES", [1.0]), "guarded"),
        (walked, lambda patch: patch.setitem(globals(), "SCALES", [2.0, 5.0]), "guarded"),
        (keys, lambda patch: patch.setitem(CONFIG, "unused", 5), "equal"),
        (keys, lambda patch: patch.setitem(CONFIG, "upper", 5), "guarded"),
        (attribute, lambda patch: patch.setattr(SETTINGS, "other", 5.0), "equal"),
        (attribute, lambda patch: patch.setattr(SETTINGS, "scale", 5.0), "equal"),
        (handed_on, lambda patch: patch.setitem(HANDED, "b", 5.0), "guarded"),
        (locked, lambda patch: patch.setitem(globals(), "LOCK", threading.Lock()), "equal"),
        (locked, lambda patch: patch.setitem(globals(), "SCALE", 3.0), "equal"),
    ],
)
@pytest.mark.parametrize("make", [torch.tensor, numpy.array])
def test_what_was_read_counts(
    monkeypatch: pytest.MonkeyPatch, program: Any, change: Any, expected: str, make: Any
) -> None:
    x = make([1.0, -2.0])
    captured = clew.trace(program, (x,))
    assert answer(program, captured, x) == "equal"
    change(monkeypatch)
    assert answer(program, captured, x) == expected


def test_containers_are_as_they_were_after_a_capture() -> None:
    before = CONFIG, SCALES, ALLOWED
    for program in (item, place, contained, walked):
        clew.trace(program, (X,))
    assert all(now is then for now, then in zip((CONFIG, SCALES, ALLOWED), before, strict=True))
    assert type(CONFIG) is dict and type(SCALES) is list and type(ALLOWED) is set


def test_what_a_program_changes_is_state_as_before() -> None:
    def program(x: Any) -> Any:
        OWN["total"] = OWN["total"] + 1.0
        return x * OWN["total"]

    captured = clew.trace(program, (X,))
    assert OWN == {"total": 0.0}
    assert torch.equal(captured(X), X) and torch.equal(captured(X), X * 2)
    OWN["total"] = 0.0


def test_all_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    everything, nothing = (clew.trace(item, (X,), guards=wanted) for wanted in ("all", "none"))
    assert not [guard for guard in nothing.guards if "CONFIG" in str(guard)]
    assert "variables around the program are not looked at again" in str(clew.explain(nothing))
    assert "left out" not in str(clew.explain(everything))
    monkeypatch.setitem(CONFIG, "unused", 7)
    with pytest.raises(clew.GuardError, match="CONFIG"):
        everything(X)
    monkeypatch.setitem(CONFIG, "used", 7.0)
    assert torch.equal(nothing(X), X * 2.0)
    with pytest.raises(clew.CaptureError, match="guards='some' says nothing"):
        clew.trace(item, (X,), guards="some")


def test_a_graph_that_another_program_calls_reads_its_items(monkeypatch: pytest.MonkeyPatch) -> None:
    captured = clew.trace(item, (X,))
    again = clew.trace(lambda x: captured(x) + 1, (X,))
    assert torch.equal(again(X), item(X) + 1)
    monkeypatch.setitem(CONFIG, "used", 9.0)
    assert torch.equal(again(X), item(X) + 1)
    monkeypatch.setitem(CONFIG, "used", "nine")
    with pytest.raises(clew.GuardError, match="CONFIG"):
        again(X)


def test_attributes_of_tensors_matter_where_they_are_asked_for() -> None:
    marked = X.clone()
    marked.mark = 1  # type: ignore[attr-defined]
    strange = X.clone()
    strange._specialize_on = [object()]  # type: ignore[attr-defined]

    def asking(x: Any) -> Any:
        return x * 2 if hasattr(x, "mark") else x * 3

    def looking(x: Any) -> Any:
        return x * 2 if vars(x) else x * 3

    assert torch.equal(clew.trace(item, (X,))(strange), item(X))
    assert torch.equal(clew.trace(item, (strange,))(X), item(X))
    captured = clew.trace(asking, (X,))
    assert torch.equal(captured(strange), X * 3)
    with pytest.raises(clew.GuardError, match=r"not hasattr\(x, 'mark'\)"):
        captured(marked)
    with pytest.raises(clew.GuardError, match="x.mark == 1"):
        clew.trace(asking, (marked,))(X)
    with pytest.raises(clew.GuardError, match="attributes of x"):
        clew.trace(looking, (X,))(strange)


def test_how_names_are_used() -> None:
    def uses(key: Any) -> Any:
        given(HERE, key)  # type: ignore[name-defined]  # noqa: F821
        return A["x"]["y"], B[key], C.get(key), key in D, len(E), [*F], G + 1, H[key, 1]["z"]  # type: ignore[name-defined]  # noqa: F821

    found = uses_of(uses.__code__)
    assert {"HERE", "G"} <= found.handed_on and found.handed_on.isdisjoint("ABCDEFH")
    assert ("C", "get") in found.fields
    assert found.items_handed_on == {("B", ANY_KEY)}


LIBRARY = """
import logging, threading

logger = logging.getLogger("library")
TABLE = {"a": 2.0}
REGISTRY = {"scale": 2.0, "other": 1.0}
CACHE = {}
FLAG = True


class Registry:
    known = {"double": 2.0}

    def __init__(self):
        self.local = {}

    def __getitem__(self, name):
        return self.local[name] if name in self.local else self.known[name]


REGISTRIES = Registry()


def total(values):
    return sum(values.values())


def handed_on(x):
    logger.debug("called")
    return x * total(TABLE)


def registered(x):
    return x * REGISTRY["scale"] * REGISTRIES["double"] if FLAG else x
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "some_library.py").write_text(LIBRARY, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "some_library", raising=False)
    return importlib.import_module("some_library")


def test_what_libraries_keep_is_not_looked_into(library: Any) -> None:
    captured = clew.trace(library.handed_on, (X,))
    library.TABLE["a"] = 5.0
    assert torch.equal(captured(X), X * 2.0)
    watching = clew.trace(library.handed_on, (X,), guards="all")
    library.TABLE["a"] = 6.0
    with pytest.raises(clew.GuardError, match="TABLE"):
        watching(X)


@pytest.mark.parametrize(
    ("change", "noticed"),
    [
        ("REGISTRY['other'] = 5.0", False),
        ("REGISTRY['scale'] = 5.0", True),
        ("REGISTRIES.known['other'] = 5.0", False),
        ("REGISTRIES.known['double'] = 5.0", True),
        ("REGISTRIES.local['other'] = 5.0", False),
        ("REGISTRIES.local['double'] = 5.0", True),
        ("FLAG = False", True),
        ("CACHE[1] = 2; logger.setLevel('ERROR')", False),
    ],
)
def test_what_was_read_of_a_library_counts(library: Any, change: str, noticed: bool) -> None:
    captured = clew.trace(library.registered, (X,))
    assert answer(library.registered, captured, X) == "equal"
    exec(change, vars(library))
    assert answer(library.registered, captured, X) == ("guarded" if noticed else "equal")


def test_numbers_in_containers_are_put_back_and_read_again() -> None:
    class Held:
        def __init__(self) -> None:
            self.scale = 2.0

    held, table = Held(), {"gain": [3.0]}
    captured = clew.trace(lambda x: x * held.scale + table["gain"][0], (X,), dynamic=True)
    assert type(held.scale) is float and type(table["gain"][0]) is float
    held.scale, table["gain"][0] = 4.0, -1.0
    assert torch.equal(captured(X), X * 4.0 - 1.0)
    held.scale = "text"  # type: ignore[assignment]
    with pytest.raises(clew.GuardError, match="scale"):
        captured(X)


def test_a_number_that_decides_is_guarded_by_what_it_decides() -> None:
    limit = 2.0

    def program(x: Any) -> Any:
        return x * limit if limit > 1 else x

    captured = clew.trace(program, (X,))
    limit = 3.0
    assert torch.equal(captured(X), X * 3.0)
    limit = 0.5
    with pytest.raises(clew.GuardError, match="limit > 1"):
        captured(X)


@pytest.mark.parametrize("given", [X, X.numpy()], ids=["torch", "numpy"])
def test_variables_of_code_that_exec_ran_are_read_again(given: Any) -> None:
    space: dict[str, Any] = {"SCALE": 2.0, "TABLE": {"a": 1.0}}
    exec("def scaled(x):\n    return x * SCALE * TABLE['a']\n", space)
    scaled = space["scaled"]
    captured = clew.trace(lambda x: scaled(x), args=(given,))
    space["SCALE"], space["TABLE"]["a"] = 3.0, 5.0
    with contextlib.suppress(clew.GuardError):
        assert captured(given).tolist() == (given * 15.0).tolist()
