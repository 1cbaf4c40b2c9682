"""Benchmarks that go on where they were stopped: what has a row is known, and the last row of a key counts."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import resumable, workers


def chosen(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    resumable.add_arguments(parser, "programs", "rows.jsonl", "page.md")
    return parser.parse_args(arguments)


def test_rows_are_kept_as_they_come_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = chosen(["--results", str(tmp_path / "rows.jsonl"), "--workers", "3"])
    outcomes = iter(("equal", "timeout", "equal"))

    def run(names: list[str], prepare: Any, count: int, limit: float) -> Iterator[dict[str, Any]]:
        assert (count, limit) == (3, 7.0)
        for name in names:
            yield {"name": name, "outcome": next(outcomes)}
            assert name in asked.results.read_text()  # before the next one is measured

    monkeypatch.setattr(workers, "run", run)
    assert resumable.read(asked.results, "name") == {}
    resumable.measure(["a", "b"], lambda: lambda name: {}, asked, 7.0, {"to": "jax"})
    resumable.measure(["b"], lambda: lambda name: {}, asked, 7.0, {"to": "jax"})
    rows = resumable.read(asked.results, "to", "name")
    assert {key: row["outcome"] for key, row in rows.items()} == {("jax", "a"): "equal", ("jax", "b"): "equal"}


def test_a_field_that_older_rows_have_not_has_a_default(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"name": "a"}\n\n{"suite": "timm", "name": "a"}\n')
    assert list(resumable.read(file, "suite", "name", suite="transformers")) == [("transformers", "a"), ("timm", "a")]
