"""Spelling does not matter: calls that compute the same match each other however they are written, and no others do."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import clew
from clew.errors import PatternError
from clew.ir.spellings import SIGNATURES, SPELLINGS, forms_of
from tests.speed.counts import calls_in

SOFTMAX, RELU, FLATTEN, GELU = nn.Softmax(-1), nn.ReLU(), nn.Flatten(), nn.GELU()


class Softmax(nn.Module):
    def __init__(self):
        super().__init__()
        self.softmax = nn.Softmax(-1)

    def forward(self, x, y):
        return self.softmax(x)


class Relu(nn.Module):
    def __init__(self):
        super().__init__()
        self.activation = nn.ReLU()

    def forward(self, x, y):
        return self.activation(x)


SPELLED = {
    "add": [
        lambda x, y: x + y,
        lambda x, y: torch.add(x, y),
        lambda x, y: x.add(y),
        lambda x, y: torch.add(x, other=y),
    ],
    "sub": [
        lambda x, y: x - y,
        lambda x, y: torch.sub(x, y),
        lambda x, y: x.subtract(y),
        lambda x, y: torch.rsub(y, x),
    ],
    "mul": [lambda x, y: x * y, lambda x, y: torch.mul(x, y), lambda x, y: torch.multiply(x, other=y)],
    "div": [lambda x, y: x / y, lambda x, y: torch.div(x, y), lambda x, y: x.true_divide(y)],
    "matmul": [lambda x, y: x @ y, lambda x, y: torch.matmul(x, y), lambda x, y: x.matmul(y)],
    "pow": [lambda x, y: x**2, lambda x, y: torch.pow(x, 2), lambda x, y: x.pow(exponent=2), lambda x, y: x.square()],
    "neg": [lambda x, y: -x, lambda x, y: torch.neg(x), lambda x, y: x.negative()],
    "lt": [lambda x, y: x < y, lambda x, y: torch.lt(x, y), lambda x, y: x.less(y)],
    "softmax": [
        lambda x, y: x.softmax(-1),
        lambda x, y: torch.softmax(x, dim=-1),
        lambda x, y: F.softmax(x, dim=-1),
        lambda x, y: F.softmax(x, -1, dtype=None),
        lambda x, y: torch.special.softmax(x, -1),
        Softmax(),
    ],
    "relu": [lambda x, y: torch.relu(x), lambda x, y: x.relu(), lambda x, y: F.relu(x), Relu()],
    "mean": [
        lambda x, y: x.mean(-1, keepdim=True),
        lambda x, y: torch.mean(x, dim=(-1,), keepdim=True),
        lambda x, y: x.mean([-1], True),
        lambda x, y: x.mean(axis=-1, keepdims=True),
    ],
    "transpose": [lambda x, y: x.transpose(-1, -2), lambda x, y: torch.swapaxes(x, -2, -1), lambda x, y: x.mT],
    "reshape": [lambda x, y: x.reshape(2, 8), lambda x, y: torch.reshape(x, (2, 8)), lambda x, y: x.reshape([2, 8])],
    "permute": [
        lambda x, y: x.permute(1, 0),
        lambda x, y: torch.permute(x, (1, 0)),
        lambda x, y: x.permute(dims=(1, 0)),
    ],
    "cat": [
        lambda x, y: torch.cat([x, y], 0),
        lambda x, y: torch.concat((x, y)),
        lambda x, y: torch.concatenate([x, y]),
    ],
    "to": [lambda x, y: x.double(), lambda x, y: x.to(torch.float64), lambda x, y: x.to(dtype=torch.float64)],
    "clamp": [lambda x, y: x.clamp(min=0), lambda x, y: torch.clip(x, 0), lambda x, y: torch.clamp(x, 0, None)],
    "where": [lambda x, y: torch.where(x > 0, x, y), lambda x, y: x.where(x > 0, y)],
    "sigmoid": [lambda x, y: torch.sigmoid(x), lambda x, y: F.sigmoid(x), lambda x, y: torch.special.expit(x)],
    "masked_fill": [lambda x, y: x.masked_fill(y > 0, 1.0), lambda x, y: torch.masked_fill(x, mask=y > 0, value=1.0)],
}
PAIRS = [(name, *pair) for name, ways in SPELLED.items() for pair in itertools.permutations(range(len(ways)), 2)]


def marked(x: Any, y: Any) -> Any:
    return x


@pytest.mark.parametrize("capture", ["trace", "symbolic_trace"])
@pytest.mark.parametrize(("operation", "written", "wanted"), PAIRS)
def test_a_pattern_finds_every_spelling(operation, written, wanted, capture):
    program, pattern = SPELLED[operation][written], SPELLED[operation][wanted]
    inputs = torch.randn(4, 4), torch.randn(4, 4)
    gm = clew.trace(program, inputs) if capture == "trace" else clew.symbolic_trace(program)
    assert len(clew.replace_pattern(gm, pattern, marked)) == 1, str(clew.explain_match(gm, pattern))
    assert torch.equal(gm(*inputs), inputs[0])


def test_the_matrix_has_forty_spellings_that_compute_the_same():
    assert sum(map(len, SPELLED.values())) >= 40
    inputs = torch.randn(4, 4), torch.randn(4, 4)
    for ways in SPELLED.values():
        for way in ways[1:]:
            assert torch.equal(ways[0](*inputs), way(*inputs))


@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(SPELLED, 2)))
def test_other_operations_do_not_match(one, other):
    assert not clew.explain_match(clew.symbolic_trace(SPELLED[one][0]), SPELLED[other][-1])


DIFFERENT = [
    (lambda x, y: x.softmax(-1), lambda x, y: F.softmax(x, dim=0)),
    (lambda x, y: x.softmax(-1), lambda x, y: F.log_softmax(x, dim=-1)),
    (lambda x, y: F.relu(x), lambda x, y: F.relu(x, inplace=True)),
    (lambda x, y: torch.add(x, y, alpha=2), lambda x, y: x + y),
    (lambda x, y: torch.div(x, y, rounding_mode="floor"), lambda x, y: x / y),
    (lambda x, y: x.mean(-1), lambda x, y: x.mean(-1, keepdim=True)),
    (lambda x, y: F.gelu(x), lambda x, y: F.gelu(x, approximate="tanh")),
    (lambda x, y: x.var(-1), lambda x, y: x.var(-1, unbiased=False)),
    (lambda x, y: x.transpose(0, 1), lambda x, y: x.transpose(0, 2)),
    (lambda x, y: x * 2, lambda x, y: x * 2.0),
    (lambda x, y: x - y.relu(), lambda x, y: y.relu() - x),
    (lambda x, y: x.to(torch.float32), lambda x, y: x.to(torch.float64)),
    (lambda x, y: x.reshape(2, 8), lambda x, y: x.view(2, 8)),
    (lambda x, y: x.add_(y), lambda x, y: x + y),
]


@pytest.mark.parametrize(("program", "pattern"), DIFFERENT)
def test_what_differs_in_meaning_does_not_match(program, pattern):
    assert not clew.explain_match(clew.symbolic_trace(program), pattern)
    assert not clew.explain_match(clew.symbolic_trace(pattern), program)


def test_operators_on_numbers_are_no_operations_on_arrays():
    gm = clew.symbolic_trace(lambda x: x.reshape(x.size(0) * x.size(1)))
    assert not clew.explain_match(gm, lambda a, b: torch.mul(a, b))
    gm = clew.trace(lambda x, n: x * (n + 1), (torch.ones(2), 3), dynamic=True)
    assert not clew.explain_match(gm, lambda a, b: torch.add(a, b))


# ---- operands that change places -------------------------------------------------------------------------------------


def test_operands_may_change_places():
    def pattern(x, weight, bias):
        return torch.relu(x @ weight + bias)

    gm = clew.trace(lambda x, w, b: (b + x @ w).relu(), tuple(torch.randn(3, 3) for _ in range(3)))
    assert len(clew.replace_pattern(gm, pattern, lambda x, weight, bias: torch.addmm(bias, x, weight).relu())) == 1
    assert "addmm" in gm.code


def test_an_order_that_fails_later_is_taken_back():
    program = lambda x, y: torch.exp((torch.neg(y) * torch.neg(x)) + torch.sin(y))
    pattern = lambda a, b: torch.exp((torch.neg(a) * torch.neg(b)) + torch.sin(a))
    assert clew.explain_match(clew.symbolic_trace(program), pattern)


def test_lists_do_not_change_places():
    gm = clew.symbolic_trace(lambda xs, ys: torch.cat(xs + ys))
    pattern = lambda a, b: torch.cat(a + b)
    (match,) = clew.explain_match(gm, pattern).matches
    assert [node.name for node in match.placeholder_nodes] == ["xs", "ys"]
    gm = clew.symbolic_trace(lambda x, ys: ys + list((x, x)))
    assert not clew.explain_match(gm, lambda a, b: [a, a] + b)


# ---- parts that may be missing, and predicates -----------------------------------------------------------------------


def with_or_without_bias(x, weight, bias):
    product = x @ weight
    return torch.relu(clew.any_of(product + bias, product))


def test_an_optional_part_may_be_there_or_not():
    def program(x, w, b):
        return torch.relu(x @ w).sum() + torch.relu(b + x.matmul(w)).sum()

    inputs = torch.randn(3, 3), torch.randn(3, 3), torch.randn(3)
    gm = clew.trace(program, inputs)
    found = clew.replace_pattern(gm, with_or_without_bias, lambda x, weight, bias: F.linear(x, weight.mT, bias).relu())
    assert len(found) == 2
    torch.testing.assert_close(gm(*inputs), program(*inputs))
    assert gm.code.count("linear(") == 2 and "@" not in gm.code and "None" in str(gm.graph)


def test_alternatives_may_be_whole_programs():
    pattern = lambda x: clew.any_of(x * torch.sigmoid(x), F.silu(x))
    gm = clew.symbolic_trace(lambda x: F.silu(torch.sigmoid(x) * x))
    assert len(clew.replace_pattern(gm, pattern, lambda x: torch.tanh(x))) == 2
    assert [node.target for node in gm.graph.nodes if node.op == "call_function"] == [torch.tanh, torch.tanh]


def test_a_sequence_of_any_length_is_one_parameter():
    gm = clew.symbolic_trace(lambda x, y: torch.cat([x, y, x], 1).relu() + torch.cat([x, y], 1).relu())
    found = clew.replace_pattern(gm, lambda parts: torch.cat(parts, 1).relu(), lambda parts: torch.hstack(parts))
    assert [len(match.nodes_map[next(iter(match.anchor.graph.nodes))]) for match in found] == [3, 2]


def test_a_predicate_sees_literals_and_nodes():
    gm = clew.symbolic_trace(lambda x: (2.0 * x) * 3)
    found = clew.replace_pattern(
        gm, lambda x, n: x * n, lambda x, n: torch.div(x, 1 / 2), where=lambda n: isinstance(n, float)
    )
    assert len(found) == 1 and torch.equal(gm(torch.ones(2)), torch.full((2,), 6.0))
    with pytest.raises(PatternError, match="has a parameter 'm', and the pattern has none of that name"):
        clew.replace_pattern(gm, lambda x, n: x * n, lambda x, n: x, where=lambda m: True)


# ---- modules, other frameworks, bodies -------------------------------------------------------------------------------


def test_a_module_with_hooks_is_no_function():
    module = Relu()
    module.activation.register_forward_hook(lambda one, args, result: result + 1)
    assert not clew.explain_match(clew.symbolic_trace(module), lambda x: torch.relu(x))


def test_spelling_does_not_matter_inside_a_branch():
    def program(x):
        if x.sum() > 0:
            return x.softmax(-1) @ x
        return x

    gm = clew.trace(program, (torch.ones(2, 2),))
    assert len(clew.replace_pattern(gm, lambda x, y: torch.matmul(F.softmax(x, dim=-1), y), lambda x, y: y - x)) == 1
    for x in (torch.ones(2, 2), -torch.ones(2, 2)):
        assert torch.equal(gm(x), x - x if x.sum() > 0 else x)


def test_numpy_has_spellings_too():
    gm = clew.trace(lambda x, y: np.add(x @ y, x).sum(axis=0), (np.ones((2, 2)), np.ones((2, 2))))
    pattern = clew.trace(lambda a, b: np.sum(np.matmul(a, b) + a, 0), (np.ones((2, 2)), np.ones((2, 2))))
    assert clew.explain_match(gm, pattern)


# ---- the nearest miss ------------------------------------------------------------------------------------------------


def attention(q, k, v):
    scores = q @ k.transpose(-2, -1)
    weights = torch.softmax(scores / 8.0, dim=-1)
    return weights @ v


def told(program, pattern):
    return str(clew.explain_match(clew.trace(program, tuple(torch.randn(2, 4, 4) for _ in range(3))), pattern))


def test_a_miss_names_the_argument_that_differs():
    def program(q, k, v):
        return F.softmax((q @ k.mT) / 8.0, dim=1) @ v

    text = told(program, attention)
    assert "the nearest miss has 4 of 5 nodes: `softmax` differs in `dim`: -1 is wanted, and 1 is there" in text
    assert "test_spellings.py" in text and "weights = torch.softmax(scores / 8.0, dim=-1)" in text


def test_a_miss_names_the_operation_that_differs():
    text = told(lambda q, k, v: torch.log_softmax(q @ k.mT / 8.0, -1) @ v, attention)
    assert "the pattern goes on with `softmax`, the graph with `log_softmax`" in text
    assert "`softmax` is wanted, and `log_softmax` is there" in told(
        lambda q, k, v: q.log_softmax(-1).exp(), lambda x: x.softmax(-1).exp()
    )


def test_a_miss_names_the_outside_user():
    def program(q, k, v):
        weights = (q @ k.mT / 8.0).softmax(-1)
        return weights @ v, weights

    assert "`softmax` fits, but its value is used outside of the match too, by %output" in told(program, attention)


def test_nothing_at_all_is_said_so():
    assert "has none of the operations `sin`" in told(lambda q, k, v: q + k, lambda x: torch.sin(x))


def test_a_refusing_predicate_is_told():
    gm = clew.symbolic_trace(lambda x: x * 2)
    assert "the predicate refuses them" in str(clew.explain_match(gm, lambda x, n: x * n, where=lambda n: n == 3))


def test_matches_are_told_with_their_lines():
    text = told(attention, attention)
    assert text.startswith("1 place matches:") and "return weights @ v" in text


# ---- the rules -------------------------------------------------------------------------------------------------------


def test_every_rule_is_read_and_names_something_of_torch():
    for line in SPELLINGS.strip().splitlines():
        name = line.partition("(")[0]
        if name.startswith("torch."):
            found: Any = torch
            for atom in name.split(".")[1:]:
                found = getattr(found, atom)
        else:
            assert hasattr(torch.Tensor, name[1:]) or hasattr(nn, name[1:]), name
    assert len(SIGNATURES.strip().splitlines()) > 70


def test_a_call_with_too_many_arguments_has_no_form():
    graph = clew.Graph()
    x = graph.placeholder("x")
    assert forms_of(graph.call_function(torch.relu, (x, x))) == ()


def test_the_work_grows_with_the_size_of_the_graph():
    def calls_for(length):
        graph = clew.Graph()
        value, other = graph.placeholder("x"), graph.placeholder("y")
        for _ in range(length):
            value = graph.call_function(torch.add, (other, graph.call_method("softmax", (value, -1))))
        graph.output(value)
        matcher = clew.SubgraphMatcher(clew.symbolic_trace(lambda x, y: F.softmax(x, dim=-1) + y).graph)
        found = []
        count = calls_in(lambda: found.extend(matcher.match(graph)))
        assert len(found) == length
        return count

    calls_for(200)
    assert calls_for(2000) < 10 * calls_for(250)
