"""The public surface is what the golden file says; a change of it is made on purpose and seen in review."""

from __future__ import annotations

import difflib
from types import ModuleType

from tests.architecture.surface import GOLDEN, REGENERATE, describe_module, surface


def difference(expected: str, actual: str) -> str:
    """The lines that differ, or nothing."""
    before, after = expected.splitlines(), actual.splitlines()
    return "\n".join(difflib.unified_diff(before, after, "golden", "now", lineterm="", n=0))


def sample_module() -> ModuleType:
    """A small module with one thing of each kind."""

    def run(value, /, *, scale: float = 1.0, names=frozenset({"b", "a"}), by=len):
        return value

    class Base:
        def inherited(self, x: int = 0) -> None: ...

    class Thing(Base):
        limit = 3

        def __init__(self, size): ...
        def _hidden(self): ...
        @property
        def size(self): ...
        @staticmethod
        def make(a, *rest, **options): ...

    module = ModuleType("sample")
    vars(module).update(run=run, Thing=Thing, again=run, NUMBER=3, _private=1, nested=ModuleType("nested"))
    return module


def test_surface_is_the_golden_one() -> None:
    assert GOLDEN.exists(), f"no golden file; write it with: {REGENERATE}"
    changed = difference(GOLDEN.read_text(encoding="utf-8"), surface())
    assert not changed, f"the public surface changed; if that is meant, run: {REGENERATE}\n{changed}"


def test_both_modules_are_listed() -> None:
    lines = surface().splitlines()
    assert any(line.startswith("clew.Graph") for line in lines)
    assert any(line.startswith("clew.fx.Graph") for line in lines)


def test_what_is_written_down() -> None:
    assert describe_module(sample_module()) == [
        "sample.NUMBER: int",
        "sample.Thing: class",
        "sample.Thing.__init__(self, size)",
        "sample.Thing.inherited(self, x=0)",
        "sample.Thing.limit: attribute",
        "sample.Thing.make(a, *rest, **options) [staticmethod]",
        "sample.Thing.size: property",
        "sample.again(value, /, *, scale=1.0, names={'a', 'b'}, by=len)",
        "sample.run = sample.again",
    ]


def test_declared_names_win() -> None:
    module = sample_module()
    module.__all__ = ["NUMBER"]
    assert describe_module(module) == ["sample.NUMBER: int"]


def test_a_changed_default_is_a_difference() -> None:
    before, after = "clew.f(x, scale=1)\n", "clew.f(x, scale=2)\n"
    assert difference(before, before) == ""
    assert "-clew.f(x, scale=1)\n+clew.f(x, scale=2)" in difference(before, after)
