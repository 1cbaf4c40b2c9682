"""Modules, their code and its traces are collected when nobody needs them; threads may call first at once."""

import gc
import importlib
import linecache
import threading
import weakref

import pytest
import torch

import clew

from .models import Block, small_graph

wrapping = importlib.import_module("clew.capture.symbolic.wrap")


def test_a_module_is_collected_with_its_code():
    module = clew.symbolic_trace(Block())
    module(torch.randn(4, 3))
    filename = module.forward.__func__.__code__.co_filename
    assert filename in linecache.cache
    linecache.checkcache()
    assert filename in linecache.cache
    gone = [weakref.ref(module), weakref.ref(type(module)), weakref.ref(module.graph)]
    del module
    gc.collect()
    assert [reference() for reference in gone] == [None] * 3
    assert filename not in linecache.cache


def test_old_code_is_released_after_an_edit():
    module = clew.GraphModule({}, small_graph())
    module(torch.tensor(1.0))
    filename = module.forward.__func__.__code__.co_filename
    module.graph.output_node().args = (5,)
    assert module(torch.tensor(1.0)) == 5
    gc.collect()
    assert filename not in linecache.cache


def test_a_thousand_edits_leave_nothing_behind():
    module = clew.GraphModule({}, small_graph())
    gc.collect()
    before = len(linecache.cache), len(wrapping.wrapped_functions)
    for number in range(1000):
        module.graph.output_node().args = (number,)
        assert module(torch.tensor(1.0)) == number
    gc.collect()
    after = len(linecache.cache), len(wrapping.wrapped_functions)
    assert after[0] - before[0] <= 1 and after[1] == before[1]
    assert len(module.graph._listeners) == 1


def test_wrapped_functions_are_forgotten_with_the_code():
    graph = clew.Graph()
    graph.output(graph.call_function(wrapped_for_test, (graph.placeholder("x"),)))
    before = len(wrapping.wrapped_functions)
    module = clew.GraphModule({}, graph)
    assert module(1) == 1
    assert len(wrapping.wrapped_functions) == before + 1
    del module, graph
    gc.collect()
    assert len(wrapping.wrapped_functions) == before


@clew.wrap
def wrapped_for_test(x):
    return x


@pytest.mark.parametrize("kind", ["module", "function"])
def test_first_calls_from_many_threads(kind):
    for _ in range(30):
        graph = small_graph()
        called = clew.GraphModule({}, graph) if kind == "module" else clew.GraphFunction(None, graph)
        start = threading.Barrier(8)
        results: list[object] = []

        def call(called=called, start=start, results=results):
            start.wait()
            try:
                results.append(float(called(torch.tensor(3.0))))
            except Exception as error:
                results.append(error)

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [8.0] * 8
