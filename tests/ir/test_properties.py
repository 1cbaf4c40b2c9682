"""What holds for every graph: text, pickle and copy give the same graph back, and the rules are kept.

Each property is tried on a thousand random graphs.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.errors import TextError
from clew.ir.equality import difference
from clew.ir.graph import Graph
from clew.ir.interpreter import Interpreter
from clew.ir.text import parse, text_and_objects, to_text
from clew.ir.types import Type, parse_type
from clew.ir.verify import verify
from tests.strategies import random_graphs, runnable_graphs, value_types

thousand = settings(
    max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

ALLOWED = ("tests", "builtins.getattr")
"""Random graphs call functions of the tests, and getattr with whatever arguments."""
_PIECES = [
    "",
    "",
    *"()[]{},=:%@#'\"\\.-0x\n",
    "graph(",
    "return ",
    " as ",
    " from ",
    "%x",
    "None",
    "\x00",
    "é",
    "torch.",
    "...",
]


@pytest.mark.slow
@thousand
@given(random_graphs(nameless=True), st.booleans())
def test_text_reads_back_as_the_same_graph(graph: Graph, sources: bool) -> None:
    text, objects = text_and_objects(graph, sources=sources)
    read = parse(text, objects=objects, allow=ALLOWED)
    assert difference(graph, read) is None
    again, same_objects = text_and_objects(read, sources=sources)
    assert again == text
    assert [id(value) for value in same_objects.values()] == [id(value) for value in objects.values()]
    expected = [node.source for node in graph.nodes] if sources else [None] * len(graph.nodes)
    assert [node.source for node in read.nodes] == expected
    verify(read)


@pytest.mark.slow
@thousand
@given(random_graphs())
def test_pickle_gives_the_same_graph(graph: Graph) -> None:
    loaded = pickle.loads(pickle.dumps(graph))
    assert difference(graph, loaded) is None
    assert [node.source for node in loaded.nodes] == [node.source for node in graph.nodes]
    verify(loaded)


@pytest.mark.slow
@thousand
@given(random_graphs(nameless=True))
def test_every_graph_keeps_the_rules_and_so_does_its_copy(graph: Graph) -> None:
    verify(graph)
    assert len(graph.nodes) == len(list(graph.nodes)) == len(list(reversed(graph.nodes)))
    twin = copy.deepcopy(graph)
    assert difference(graph, twin) is None
    assert not {id(node) for node in graph.nodes} & {id(node) for node in twin.nodes}
    verify(twin)


@settings(thousand, max_examples=500)
@given(random_graphs(), st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(_PIECES)), min_size=1, max_size=3))
def test_damaged_text_is_refused_or_read_but_never_breaks(graph: Graph, damages: list[tuple[int, str]]) -> None:
    text = to_text(graph, sources=True)
    for place, piece in damages:
        place %= len(text)
        text = text[:place] + piece + text[place + (place % 3) :]
    try:
        read = parse(text, allow=ALLOWED)
    except TextError as error:
        assert "line " in str(error)
        return
    verify(read)
    again, objects = text_and_objects(read, sources=True)
    assert difference(parse(again, objects=objects, allow=ALLOWED), read) is None


@settings(thousand, max_examples=250)
@given(runnable_graphs())
def test_programs_compute_the_same_after_text_and_copy(
    program: tuple[Graph, dict[str, Any], list[torch.Tensor]],
) -> None:
    graph, attributes, inputs = program
    root = torch.nn.Module()
    for name, value in attributes.items():
        setattr(root, name, value)
    with torch.no_grad():
        expected = Interpreter(root, graph=graph).run(*inputs)
        for twin in (parse(to_text(graph), allow=ALLOWED), copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
            result = Interpreter(root, graph=twin).run(*inputs)
            torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)


@thousand
@given(value_types)
def test_types_read_back(value_type: Type) -> None:
    text = str(value_type)
    assert "\n" not in text
    assert parse_type(text) == value_type
