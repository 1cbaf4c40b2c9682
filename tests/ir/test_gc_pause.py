"""The garbage collector rests while large graphs are made, and is afterwards as it was before."""

import copy
import gc
import pickle
import threading

import pytest

import clew
from clew.ir.gc_pause import CollectorPaused


@pytest.fixture(autouse=True)
def running_collector():
    gc.enable()
    yield
    gc.enable()


def test_it_starts_again_after_an_error():
    with pytest.raises(ZeroDivisionError), CollectorPaused():
        assert not gc.isenabled()
        _ = 1 / 0
    assert gc.isenabled()


def test_only_the_outermost_pause_ends_it():
    with CollectorPaused():
        with CollectorPaused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_the_user_has_stopped_stays_stopped():
    gc.disable()
    with CollectorPaused():
        pass
    assert not gc.isenabled()


def test_pauses_of_two_threads_may_overlap():
    entered, leave = threading.Event(), threading.Event()

    def other():
        with CollectorPaused():
            entered.set()
            leave.wait(5)

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(5)
    with CollectorPaused():
        leave.set()
        thread.join(5)
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_work_on_graphs_leaves_it_running():
    graph = clew.Graph()
    graph.output(graph.call_function(abs, (graph.placeholder("x"),)))
    twin = pickle.loads(pickle.dumps(copy.deepcopy(graph)))
    assert twin.python_code("self").src == graph.python_code("self").src and gc.isenabled()
