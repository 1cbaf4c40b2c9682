"""Attributes that users put on nodes, which have no dictionary of their own."""

import pytest

from clew.ir.graph import Graph


def two_nodes():
    graph = Graph()
    return graph.placeholder("x"), graph.placeholder("y")


def test_set_read_and_delete():
    x, y = two_nodes()
    x.visited = 3
    assert x.visited == 3 and vars(x) == {"visited": 3} and not hasattr(y, "visited")
    del x.visited
    assert not hasattr(x, "visited") and vars(x) == {}


def test_missing_ones_are_named():
    x, _ = two_nodes()
    with pytest.raises(AttributeError, match="'Node' object has no attribute 'visited'"):
        _ = x.visited
    with pytest.raises(AttributeError, match="visited"):
        del x.visited


def test_fields_are_not_free():
    x, y = two_nodes()
    with pytest.raises(AttributeError):
        x.next = y
    x.visited = True
    with pytest.raises(AttributeError, match="nothing_here"):
        _ = x.nothing_here
    assert x.name == "x" and x.next is y
