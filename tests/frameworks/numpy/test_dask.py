"""NumPy programs over Dask arrays: each chunk goes through the captured program, and the whole is what comes out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clew

dask = pytest.importorskip("dask", reason="Dask is not installed; pip install dask[array]")
da = pytest.importorskip("dask.array", reason="Dask is not installed; pip install dask[array]")

DATA = np.random.default_rng(0)
WEIGHTS, TABLE = DATA.normal(size=(8, 4)), DATA.normal(size=(1000, 8))


def normalised(rows: Any, floor: float = 1e-3) -> Any:
    """Each row by itself: a layer, lengths, a choice by value."""
    hidden = np.maximum(rows @ WEIGHTS, 0)
    hidden = hidden / np.maximum(np.linalg.norm(hidden, axis=1, keepdims=True), floor)
    chosen = np.where(hidden > 0.5, np.sqrt(hidden), hidden**2)
    return chosen - chosen.mean(axis=1, keepdims=True)


def doubled_if_positive(rows: Any) -> Any:
    return rows * 2 if rows.sum() > 0 else rows - 1


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_a_hundred_chunks_are_the_whole(scheduler: str) -> None:
    captured = clew.trace(normalised, (TABLE[:10],))
    chunks = da.from_array(TABLE, chunks=(10, 8))
    assert chunks.numblocks == (100, 1)
    mapped = chunks.map_blocks(captured, dtype=float, chunks=(chunks.chunks[0], (4,)))
    assert np.array_equal(mapped.compute(scheduler=scheduler), normalised(TABLE))


def test_chunks_of_several_sizes_and_a_branch_for_each() -> None:
    captured = clew.trace(doubled_if_positive, (TABLE[:10],))
    chunks = da.from_array(TABLE, chunks=((1, 99, 400, 500), (8,)))
    wanted = np.concatenate([doubled_if_positive(rows) for rows in np.split(TABLE, [1, 100, 500])])
    assert np.array_equal(chunks.map_blocks(captured, dtype=float).compute(), wanted)


def test_a_bundle_runs_where_the_program_is_not(tmp_path: Any) -> None:
    clew.save(clew.trace(normalised, (TABLE[:10],)), tmp_path / "normalised.clew")
    loaded = clew.load(tmp_path / "normalised.clew")
    chunks = da.from_array(TABLE, chunks=(10, 8))
    mapped = chunks.map_blocks(loaded, dtype=float, chunks=(chunks.chunks[0], (4,)))
    assert np.array_equal(mapped.compute(scheduler="synchronous"), normalised(TABLE))


def test_a_dask_array_itself_is_no_argument() -> None:
    """It is no array of NumPy: the program would be run without one chunk of it being read."""
    captured = clew.trace(normalised, (TABLE[:10],))
    with pytest.raises(clew.GuardError, match="is of type Array"):
        captured(da.from_array(TABLE, chunks=(10, 8)))
