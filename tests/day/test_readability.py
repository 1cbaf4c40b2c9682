"""The classes of nodes that the readability benchmark counts."""

from collections import Counter
from types import SimpleNamespace

import torch

import clew
from benchmarks import readability
from benchmarks.day_models import SUBJECTS


def _classes(function, *args):
    captured = clew.trace(function, args=args)
    found = readability.classify(captured)
    return captured, Counter(found.values())


def test_each_node_has_one_class():
    captured, classes = _classes(SUBJECTS["sequential"].build().call, torch.randn(2, 16))
    assert classes["own"] == 2
    assert classes["frame"] == 2
    assert sum(classes.values()) == len(captured.graph.nodes)


def test_sizes_and_arithmetic_on_them_are_no_calls_of_the_program():
    def function(x):
        rows, columns = x.shape
        return x.reshape(rows * columns, 1)

    _, classes = _classes(function, torch.ones(2, 3))
    assert classes["own"] == 1
    assert classes["sizes"] >= 2


def test_a_guard_on_what_was_computed_is_told_from_one_at_the_entrance():
    def function(x):
        return x + 1 if bool((x * 2).sum() > 0) else x

    captured = clew.trace(function, args=(torch.ones(3),), control_flow="guard")
    found = readability.classify(captured)
    inside = [node for node, name in found.items() if name == "guard_computed"]
    assert len(inside) == 1
    assert readability.is_guard(inside[0])
    assert sum(name == "guard_reads" for name in found.values()) >= 1


def test_kinds_are_the_guards_own_where_they_say_so():
    assert readability.kind_of(SimpleNamespace(kind="mode")) == "mode"
    assert readability.kind_of("input_ids.ndim == 2") == "size"
    assert readability.kind_of("logger is unchanged") == "variable"
    assert readability.kind_of("mask.to(...).all()") == "computed"
    assert readability.kind_of("type(x) is Tensor") == "type"
    assert readability.kind_of("labels == None") == "value"


def test_lines_with_folders_of_the_machine_are_counted():
    assert readability.machine_paths("x = 1\nrequire(x, '/usr/lib/site-packages/a.py:3')\n") == 1
    assert readability.machine_paths("modeling_bert.py:680") == 0


def test_the_page_shows_before_and_now():
    row = readability.measure(SUBJECTS["mlp"])
    less = {**row, "nodes": row["nodes"] - 1}
    assert f"| mlp | {row['nodes']} → {row['nodes'] - 1} |" in readability.page({"mlp": less}, {"mlp": row})
    assert f"| mlp | {row['nodes']} |" in readability.page({"mlp": row}, {})
