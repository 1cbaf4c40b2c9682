"""Types with symbols: what they say holds for other sizes, and names are the user's."""

import pytest
import torch
from torch import nn

import clew
from tests.passes.programs import lines


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.up, self.norm = nn.Embedding(20, 8), nn.Linear(8, 12), nn.LayerNorm(12)

    def forward(self, tokens, mask):
        hidden = self.norm(self.up(self.embed(tokens)))
        heads = hidden.view(*tokens.shape, 3, -1).transpose(1, 2)
        scores = (heads @ heads.mT).masked_fill(mask[:, None, None] == 0, -9.0).softmax(-1)
        if scores.sum() > 0:
            scores = scores * 2
        return torch.cat([scores, scores[:, :, :1]], 2), tokens[:, 1:], hidden.mean(1)


TOKENS, MASK = torch.randint(0, 20, (2, 5)), torch.ones(2, 5)
NAMES = {"tokens": ("batch", "length"), "mask": ("batch", "length")}


def captured():
    return clew.trace(Block().eval(), (TOKENS, MASK))


def test_golden():
    program = clew.symbolic_types(captured(), NAMES)
    shown = {line.split(":")[0]: line.partition(": ")[2].partition(" =")[0] for line in lines(program)}
    assert shown["%hidden"] == "f32[batch, length, 12]" and shown["%heads"] == "f32[batch, 3, length, 4]"
    assert shown["%matmul"] == "f32[batch, 3, length, length]"
    types = [str(node.value_type) for node in program.graph.nodes if node.op != "output"]
    assert "f32[batch, 12]" in types and "i64[batch, 'max(length - 1, 0)']" in types
    text, objects = clew.text_and_objects(program.graph)
    assert clew.same_graph(clew.parse(text, objects=objects), program.graph)


@pytest.mark.parametrize("batch, length", [(1, 1), (4, 9)])
def test_what_the_types_say_holds_for_other_sizes(batch, length):
    program = clew.symbolic_types(captured(), NAMES)
    seen = clew.Recorder(program)
    seen.run(torch.randint(0, 20, (batch, length)), torch.ones(batch, length))
    known = {"batch": batch, "length": length, "min": min, "max": max}
    checked = 0
    for node in program.graph.nodes:
        if isinstance(node.value_type, clew.ArrayType) and node.op not in ("placeholder", "get_attr"):
            sizes = [size if isinstance(size, int) else eval(size, known) for size in node.value_type.shape]
            assert list(seen.values[node.name][-1].shape) == sizes, node
            checked += 1
    assert checked > 12


def test_parts_and_passes_keep_them():
    program = clew.symbolic_types(captured(), NAMES)
    clew.Pipeline([clew.dead_code, clew.common_subexpressions, clew.functionalize])(program)
    part = clew.extract(program, "norm")
    assert [str(node.value_type) for node in part.graph.nodes][-2] == "f32[batch, length, 12]"
    stages = clew.split(program, stages=2, balance="parameters").stages
    given = [str(node.value_type) for node in stages[1].graph.nodes if node.op == "placeholder"]
    assert any("batch, length" in one for one in given)
    before = clew.to_text(program.graph)
    assert clew.to_text(clew.symbolic_types(program).graph) == before


def test_sizes_that_nobody_knows_are_called_after_their_nodes():
    program = clew.symbolic_types(clew.trace(lambda x: (x[x > 0] * 2, x.sum(0)), (torch.randn(3, 4),)))
    types = [str(node.value_type) for node in program.graph.nodes]
    assert types[0] == "f32[x_0, x_1]" and "f32[getitem_0]" in types and "f32[x_1]" in types


@pytest.mark.parametrize(
    "names, said",
    [
        ({"tokens": ("batch",)}, "has 2 sizes, and 1 names"),
        ({"words": ("batch", "length")}, "no input that is an array is called 'words'"),
        ({"tokens": ("n", "n")}, "two sizes are called 'n'"),
        ({"tokens": (3, "length")}, "is 2 in the example, and is said to be 3"),
    ],
)
def test_names_that_do_not_fit(names, said):
    with pytest.raises(clew.GraphError, match=said):
        clew.symbolic_types(captured(), names)
