"""A sample of the operators that torch lists for its own tests: captured and equal, or guarded, never wrong.

``python -m benchmarks.opinfo`` tries all of them.
"""

from __future__ import annotations

import pytest
import torch

import clew
from benchmarks.opinfo import EQUAL, GUARDED, LEFT_OUT, REFUSED, WRONG, operators, rows

STEP = 30


def test_a_sample_of_all_operators() -> None:
    found = list(rows(step=STEP))
    assert [row for row in found if row[1] in (WRONG, REFUSED)] == []
    assert sum(row[1] in (EQUAL, GUARDED) for row in found) >= 20
    assert sum(row[1] == LEFT_OUT for row in found) <= 2


@pytest.mark.parametrize("name", ["nn.functional.scaled_dot_product_attention", "linalg.lstsq", "index_put", "where"])
def test_operators_that_are_hard(name: str) -> None:
    assert {row[1] for row in rows(only=name)} <= {EQUAL, GUARDED}


def test_the_list_is_torchs_own() -> None:
    assert len(operators()) > 600


BY_RANK = {
    "gradient": lambda x: torch.gradient(x),
    "number of gradients": lambda x: len(torch.gradient(x)),
    "nonzero": lambda x: x.nonzero(as_tuple=True),
    "where": lambda x: torch.where(x > 0),
    "stride": lambda x: x.stride(),
    "dim_order": lambda x: x.dim_order(),
}
"""Programs that give as many results as their input has dimensions."""


@pytest.mark.parametrize("name", BY_RANK)
def test_the_number_of_results_is_guarded(name: str) -> None:
    vector, matrix = torch.arange(5.0) + 1, torch.arange(6.0).reshape(2, 3) + 1
    for example, other in ((vector, matrix), (matrix, vector)):
        graph = clew.trace(BY_RANK[name], (example,))
        assert str(graph(example)) == str(BY_RANK[name](example))
        with pytest.raises(clew.GuardError):
            graph(other)


def test_objects_are_given_on_as_they_come_in() -> None:
    assert {row[1] for row in rows(only="nn.functional.linear_cross_entropy")} == {EQUAL}
