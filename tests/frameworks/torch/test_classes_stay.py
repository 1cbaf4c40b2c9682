"""A capture leaves torch's classes as they were, in what C code sees of them too."""

import numpy as np
import torch

import clew


def test_tensors_are_no_sequences_after_a_capture_with_arrays() -> None:
    def program(x, index):
        return x[np.sort(index)]

    x, index = torch.arange(12.0).reshape(4, 3), np.array([2, 0])
    captured = clew.trace(program, args=(x, index))
    assert torch.equal(torch.tensor([x.sum(), x[0, 0]]), torch.stack([x.sum(), x[0, 0]]))
    other = np.array([3, 1, 2])
    assert torch.equal(captured(x, other), program(x, other))
    assert [node.op for node in captured.graph.nodes].count("call_function") == 2
