"""1,000 random programs written to folders: each, imported anew, computes what the module and the interpreter do.

Twenty programs share one hypothesis example, because drawing and importing them one by one would take most of the time.
"""

import tempfile
from pathlib import Path

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import clew
from tests.strategies import runnable_graphs

from .folders import load, write

EXAMPLES, BATCH = 50, 20
counted: list[int] = []


def same(left, right):
    """Equal nests of equal tensors, bit for bit."""
    if isinstance(left, torch.Tensor):
        return torch.equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)):
        return type(left) is type(right) and len(left) == len(right) and all(map(same, left, right))
    return left == right


@settings(max_examples=EXAMPLES)
@given(st.lists(runnable_graphs(most_nodes=6), min_size=BATCH, max_size=BATCH))
def programs_come_back(programs):
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for graph, attributes, inputs in programs:
            root = torch.nn.Module()
            for name, value in attributes.items():
                if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
                    root.register_buffer(name, value)
                else:
                    setattr(root, name, value)
            module = clew.GraphModule(root, graph)
            expected = module(*inputs)
            assert same(clew.Interpreter(module).run(*inputs), expected)
            assert same(load(write(module, Path(folder)))(*inputs), expected)
            counted.append(1)


def test_a_thousand_programs_come_back():
    counted.clear()
    programs_come_back()
    assert sum(counted) >= EXAMPLES * BATCH
