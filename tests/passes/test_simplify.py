"""Simplification: exact rules for every number, the others on request, and no alias that was none before."""

import math

import pytest
import torch
from hypothesis import given, settings

import clew
from clew.passes.simplify import EXACT, FAST, rules_in
from tests.passes.programs import lines, owner_of, passed, targets
from tests.strategies import runnable_graphs

X = torch.randn(2, 3)
NUMBERS = torch.tensor([0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, math.nan, 1e38, -1e-40])


def chain(x):
    y = torch.tanh(x) * 1 - 0.0
    return torch.relu(torch.relu(y / 1.0)).sum(), (-(-(y**1))).sin()


def test_golden():
    captured = passed(clew.simplify, chain, X)
    assert lines(captured) == [
        "%tanh: f32[2, 3] = function torch.tanh(%x)",
        "%relu_2: f32[2, 3] = function torch.relu(%tanh)",
        "%sum_1: f32[] = method sum(%relu_2)",
        "%sin: f32[2, 3] = method sin(%tanh)",
        "return (%sum_1, %sin)",
    ]


@pytest.mark.parametrize("rule", rules_in(EXACT), ids=lambda rule: rule.text)
def test_exact_rules_hold_for_every_number(rule):
    def bits(value):
        return value.contiguous().view(torch.int32)

    assert torch.equal(bits(rule.pattern(NUMBERS)), bits(rule.replacement(NUMBERS)))
    captured = clew.trace(lambda x: rule.pattern(torch.sin(x)).cos(), (X,))
    before = len(captured.graph.nodes)
    clew.simplify(captured)
    assert len(captured.graph.nodes) < before


@pytest.mark.parametrize("rule", rules_in(FAST), ids=lambda rule: rule.text)
def test_fast_rules_are_wrong_for_some_and_wait_for_a_request(rule):
    def program(x):
        return rule.pattern(torch.sin(x)).cos()

    numbers = torch.cat([NUMBERS, torch.tensor([100.0, -100.0])])
    assert not torch.equal(rule.pattern(numbers).view(torch.int32), rule.replacement(numbers).view(torch.int32))
    captured = clew.trace(program, (X,))
    before = clew.to_text(captured.graph)
    assert clew.to_text(clew.simplify(captured).graph) == before
    assert len(clew.simplify(clew.trace(program, (X,)), fast=True).graph.nodes) <= len(captured.graph.nodes)
    assert clew.to_text(clew.simplify(clew.trace(program, (X,)), fast=True).graph) != before


def returned_twice(x):
    y = torch.tanh(x)
    return y * 1, y * 1


def returned_input(x):
    return x * 1


def written(x):
    y = torch.tanh(x)
    z = y * 1
    z.add_(1)
    return y + z


def expanded(x):
    return (x[:, :1].expand(2, 3) * 1).view(6)


@pytest.mark.parametrize("program", [returned_twice, returned_input, written, expanded])
def test_no_alias_is_made(program):
    captured = passed(clew.simplify, program, X)
    results = captured(X)
    pointers = [value.data_ptr() for value in (results if isinstance(results, tuple) else (results,))]
    assert len({*pointers, X.data_ptr()}) == len(pointers) + 1


def test_other_inputs_than_the_example():
    """Of whole numbers and bools another dtype comes out of a product: those inputs are refused, or right."""

    def program(x):
        return torch.where(x > 0, x, -x).relu() * 1.0 / 1

    captured = clew.simplify(clew.trace(program, (X,)))
    assert "mul" not in targets(captured)
    assert torch.equal(captured(X), program(X))
    with pytest.raises(clew.GuardError, match="is_floating_point"):
        captured(torch.ones(2, 3, dtype=torch.int64))


def branched(x):
    if x.sum() > 0:
        return torch.tanh(x) * 1 + 1
    return torch.sin(x) / 1 - 1


def test_inside_of_branches():
    captured = passed(clew.simplify, branched, X)
    bodies = captured.graph.find_nodes(op="call_function", target=clew.cond)[0].args[1:3]
    assert [[node.name for node in body.nodes if node.op == "call_function"] for body in bodies] == [
        ["tanh", "add"],
        ["sin", "sub"],
    ]


def test_rules_of_the_user():
    captured = clew.trace(lambda x: torch.exp(torch.sin(x)) * torch.exp(torch.cos(x)), (X,))
    clew.simplify(captured, rules="torch.exp(a) * torch.exp(b) -> torch.exp(a + b)  # rounding")
    assert targets(captured) == ["sin", "cos", "add", "exp"]


@given(runnable_graphs())
@settings(max_examples=60, deadline=None)
def test_random_programs(drawn):
    graph, attributes, inputs = drawn
    module = owner_of(graph, attributes)
    expected = module(*inputs)
    clew.ShapeProp(module).propagate(*inputs)
    clew.simplify(module)
    module.graph.lint()
    torch.testing.assert_close(module(*inputs), expected, rtol=0, atol=0, equal_nan=True)
