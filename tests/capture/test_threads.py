"""Traces in several threads at once, beside threads that run the same modules: nobody sees the other's patches."""

import math
import subprocess
import sys
import threading

import pytest
import torch
from torch import nn

import clew
from clew.capture import patches
from clew.capture.symbolic.wrap import install_for

X = torch.rand(3, 3)


def root_of(x):
    return math.sqrt(x)


def run_all(jobs):
    """Run all jobs at once and give their errors."""
    errors = []

    def guarded(job):
        try:
            job()
        except BaseException as error:  # an error in a thread would be lost
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_traces_and_runs_at_once():
    module = nn.Sequential(*(nn.Linear(3, 3) for _ in range(10)))
    original = (nn.Module.__call__, nn.Module.__getattr__, math.sqrt, torch.autocast.__enter__)
    wanted = module(X)

    def trace():
        for _ in range(8):
            assert len(clew.symbolic_trace(module).graph.nodes) == 12
            assert len(clew.symbolic_trace(root_of).graph.nodes) == 3

    def run():
        for _ in range(60):
            with torch.autocast("cpu", enabled=False):
                torch.testing.assert_close(module(X), wanted)
            assert root_of(4.0) == 2.0 and torch.is_grad_enabled()

    assert run_all([trace] * 4 + [run] * 4) == []
    assert original == (nn.Module.__call__, nn.Module.__getattr__, math.sqrt, torch.autocast.__enter__)
    assert patches._places == {}


def test_a_failing_trace_leaves_nothing():
    original = (nn.Module.__call__, nn.Module.__getattr__, math.sqrt)

    class Fails(nn.Module):
        def forward(self, x):
            raise KeyError("stop")

    module = nn.Sequential(nn.Linear(3, 3), Fails())
    with pytest.raises(KeyError):
        clew.symbolic_trace(module)
    assert original == (nn.Module.__call__, nn.Module.__getattr__, math.sqrt)
    assert patches._places == {}
    assert not [name for name in vars(module) if "constant" in name]


def test_a_trace_inside_a_trace():
    inner = []

    def doubles(y):
        return y * 2

    def outer(x):
        inner.append(clew.symbolic_trace(doubles))
        return x + 1

    traced = clew.symbolic_trace(outer)
    assert [node.name for node in inner[0].graph.nodes] == ["y", "mul", "output"]
    assert [node.name for node in traced.graph.nodes] == ["x", "add", "output"]


def test_what_is_there_is_read_when_no_other_trace_is_about_to_restore_it():
    """Two traces overlap so that the second asks for a place while the first still has it, and gets it afterwards."""
    place = {"name": 1}
    first, second = patches.Patches(), patches.Patches()
    first.in_dict(place, "name", lambda value: ("patched", value))
    reached = threading.Event()

    def late():
        reached.set()
        second.in_dict(place, "name", lambda value: ("patched", value))

    with patches._lock:
        thread = threading.Thread(target=late)
        thread.start()
        reached.wait()
        thread.join(0.05)
        first.__exit__()
    thread.join()
    assert place == {"name": ("patched", 1)}
    second.__exit__()
    assert place == {"name": 1}


def test_functions_wrapped_by_another_trace_are_wrapped_for_this_one_too():
    names = {"root_of": root_of}
    first, second = patches.Patches(), patches.Patches()
    install_for(first, names, [root_of])
    install_for(second, names, [root_of])
    first.__exit__()
    assert names["root_of"] is not root_of
    second.__exit__()
    assert names["root_of"] is root_of


FIRST_TRACES = """
import threading, torch, clew
barrier, errors = threading.Barrier(8), []
def trace():
    barrier.wait()
    try:
        assert len(clew.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU())).graph.nodes) == 3
    except BaseException as error:
        errors.append(repr(error))
threads = [threading.Thread(target=trace) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(errors)
"""


def test_the_first_traces_of_a_process_may_come_all_at_once():
    done = subprocess.run([sys.executable, "-c", FIRST_TRACES], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[]\n", done.stdout + done.stderr


def test_a_tracer_made_while_math_is_patched_knows_the_real_functions():
    made = []

    def makes(x):
        made.append(clew.Tracer())
        return math.sqrt(x)

    real = math.sqrt
    clew.symbolic_trace(makes)
    assert real in made[0]._autowrap_functions
