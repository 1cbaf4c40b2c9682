"""Functionalisation and back: programs that write do the same without writes, and what is left is told."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import clew
from clew.ir.arguments import leaves
from tests.passes.programs import lines, passed, same_as, targets
from tests.passes.writing_programs import EXPRESSED, LEFT, Stateful, branch, into_input, items, loop

X = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))


def judged(captured, program, inputs):
    """The same results, inputs afterwards, aliases of results, random numbers and gradients as the original."""
    found = []
    for each in (program, captured):
        given = [one.clone() for one in inputs]
        torch.manual_seed(0)
        result = each(*given)
        places = [one.untyped_storage().data_ptr() for one in leaves([given, result]) if isinstance(one, torch.Tensor)]
        found.append((result, given, [places.index(one) for one in places], torch.get_rng_state()))
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("program", EXPRESSED, ids=lambda program: program.__name__)
def test_writes_become_new_arrays(program):
    captured = clew.functionalize(clew.trace(program, (X.clone(),)))
    captured.graph.lint()
    assert not clew.remaining_writes(captured)
    for seed in range(4):
        judged(captured, program, (torch.randn(4, 3, generator=torch.Generator().manual_seed(seed)),))
    judged(clew.parse(clew.to_text(captured.graph)) and copy.deepcopy(captured), program, (X,))
    judged(clew.Interpreter(captured).run, program, (X,))


@pytest.mark.parametrize("program", LEFT, ids=lambda program: program.__name__)
def test_what_is_left_is_told_and_right(program):
    captured = clew.functionalize(clew.trace(program, (X.clone(),)))
    captured.graph.lint()
    left = clew.remaining_writes(captured)
    assert left and all(one.reason and str(one).startswith(one.node.name) for one in left)
    for seed in range(4):
        judged(captured, program, (torch.randn(4, 3, generator=torch.Generator().manual_seed(seed)),))


WITHOUT_GRADIENTS = ("parts", "methods", "out")
"""Programs that torch itself refuses to differentiate."""


@pytest.mark.parametrize("program", EXPRESSED, ids=lambda program: program.__name__)
def test_gradients(program):
    if program.__name__ in WITHOUT_GRADIENTS:
        return
    captured = clew.functionalize(clew.trace(program, (X.clone(),)))
    found = []
    for each in (program, captured):
        leaf = X.clone().requires_grad_()
        torch.manual_seed(0)
        result = each(leaf * 1)
        total = sum(one.sum() for one in (result if isinstance(result, tuple) else (result,)) if torch.is_tensor(one))
        found.append(torch.autograd.grad(total, leaf, allow_unused=True)[0] if total.requires_grad else None)
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("mode", [True, False])
def test_state(mode):
    model = Stateful().train(mode)
    captured = clew.functionalize(clew.trace(copy.deepcopy(model), (X,)))
    assert not clew.remaining_writes(captured)
    for _ in range(3):
        torch.testing.assert_close(captured(X), model(X), rtol=0, atol=0)
    torch.testing.assert_close(dict(captured.state_dict()), dict(model.state_dict()), rtol=0, atol=0)


def written(x):
    y = x - 1.0
    y.mul_(2)
    nn.functional.relu(y, inplace=True)
    y[0] = 3
    return y + x


def test_golden_functionalize():
    captured = passed(clew.functionalize, written, X)
    assert lines(captured) == [
        "%y: f32[4, 3] = function operator.sub(%x, 1.0)",
        "%mul_: f32[4, 3] = method mul(%y, 2)",
        "%y_1: f32[4, 3] = function clew.fitted(%mul_, %y)",
        "%relu: f32[4, 3] = function torch.nn.functional.relu(%y_1, inplace=False)",
        "%relu_1: f32[4, 3] = function clew.with_item(%relu, 0, 3)",
        "%add: f32[4, 3] = function operator.add(%relu_1, %x)",
        "return %add",
    ]


def test_golden_code_of_a_branch():
    captured = clew.functionalize(clew.trace(branch, (X.clone(),)))
    assert "[0] = 5" not in captured.code and "with_item(clone, 0, 5)" in captured.code


def test_inputs_are_written_at_the_end_and_returned_themselves():
    captured = clew.functionalize(clew.trace(into_input, (X.clone(),)))
    given = X.clone()
    assert captured(given)[0] is given
    assert targets(captured).count("copy_") == 1


def two(x, z):
    x.add_(1)
    return z * 2


def test_inputs_that_share_memory_are_refused():
    captured = clew.functionalize(clew.trace(two, (X.clone(), X.clone())))
    same_as(captured, two, (X, X + 1))
    given = torch.randn(8, 3)
    assert torch.equal(captured(given[:4], given[4:]), given[4:] * 2)
    with pytest.raises(clew.GuardError, match="apart"):
        captured(given, given)


def picked(x, i):
    y = x * 1
    row = y[i]
    row += 1
    return y


def test_an_index_of_another_rank_is_refused():
    captured = clew.functionalize(clew.trace(picked, (X, torch.tensor([1, 2]))))
    same_as(captured, picked, (X, torch.tensor([0, 3])))
    with pytest.raises(clew.GuardError, match="ndim"):
        captured(X, torch.tensor(1))


def test_writes_that_raise_raise():
    captured = clew.functionalize(clew.trace(lambda x, z: (x * 1).add_(z), (X, X.clone())))
    for other in (torch.randn(2, 4, 3), torch.ones(4, 3, dtype=torch.complex64)):
        with pytest.raises(RuntimeError, match="cannot be written|can't be cast"):
            captured(X, other)


def numpy_program(x):
    y = x * 2
    y += 1.5
    y[0] = 3
    return y


def test_programs_of_other_frameworks_stay():
    x = np.ones((2, 3))
    captured = clew.functionalize(clew.trace(numpy_program, (x,)))
    assert [one.reason for one in clew.remaining_writes(captured)] == ["the program works on arrays of numpy"] * 2
    np.testing.assert_array_equal(captured(x), numpy_program(x))


def test_symbolic_traces():
    captured = clew.functionalize(clew.symbolic_trace(lambda x: (x * 2.0).add_(1).mul_(x)))
    assert not clew.remaining_writes(captured)
    assert torch.equal(captured(X), (X * 2 + 1) * X)


def test_saved_and_functionalised_again(tmp_path):
    captured = clew.functionalize(clew.trace(loop, (X.clone(),)))
    before = clew.to_text(captured.graph)
    assert clew.to_text(clew.functionalize(captured).graph) == before
    model = clew.functionalize(clew.trace(Stateful().eval(), (X,)))
    clew.save(model, tmp_path / "model.clew")
    loaded = clew.load(tmp_path / "model.clew")
    torch.testing.assert_close(loaded(X), model(X), rtol=0, atol=0)


@pytest.mark.parametrize("program", [items, branch, loop], ids=lambda program: program.__name__)
def test_and_back(program):
    captured = clew.reinplace(clew.functionalize(clew.trace(program, (X.clone(),))))
    if program is items:
        assert targets(captured).count("with_item") == 1 and targets(captured).count("setitem") == 4
    with torch.no_grad():
        judged(captured, program, (X,))


def test_inputs_are_written_before_other_state():
    def program(x, items):
        items.pop()
        x.zero_()

    captured = clew.functionalize(clew.trace(program, (X.clone(), [X.clone(), X.clone()])))
    leaf, items = X.clone().requires_grad_(), [X, X]
    with pytest.raises(clew.GuardError, match="the program raised RuntimeError: a leaf Variable"):
        captured(leaf, items)
    assert len(items) == 2 and torch.equal(leaf, X)
    captured(fresh := X.clone(), items)
    assert len(items) == 1 and not fresh.any()


STATEMENTS = [
    "{a} = {b} * 2", "{a} = {b}.clone()", "{a} = {b}[1:3]", "{a} = {b}[..., 0]", "{a} = {b}.t()",
    "{a} = {b}.reshape(-1)",
    "{a} = {b}.view(-1)", "{a} = {b}.unsqueeze(0)", "{a} = {b}.contiguous()", "{a} = {b}.unbind(0)[1]", "{a} = {b}",
    "{a} = {b}.expand(2, *{b}.shape)[1]", "{a} = {b}.split(2)[0]", "{a} = torch.relu({b})", "{a} = {b}.detach() * 1",
    "{a}.add_({b}.sum())", "{a}[0] = {b}.mean()", "{a} *= 2", "{a}[..., -1] -= 1", "{a}.copy_({b}.flatten()[0])",
    "{a}.zero_()", "{a}[{a} > 0] = 3", "torch.neg({a}.clone(), out={a})", "torch.relu_({a})", "{a}[:1] = {b}.max()",
    "{a}.mul_({a}.sum())", "{a}.view(-1)[0] = {b}.sum()", "{a}.t_()",
]  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(STATEMENTS), *[st.sampled_from("xyzw")] * 2), min_size=2, max_size=10))
@settings(max_examples=60, deadline=None)
def test_random_writes(drawn):
    rows = [text.format(a=a, b=b) for text, a, b in drawn]
    scope = {"torch": torch}
    body = "\n    ".join(["y, z, w = x * 1, x + 1, x[1:]", *rows, "return x, y, z, w"])
    exec(f"def program(x):\n    {body}", scope)
    try:
        scope["program"](X.clone())
        captured = clew.trace(scope["program"], (X.clone(),))
    except (RuntimeError, IndexError, AttributeError, clew.CaptureError):
        return
    judged(clew.functionalize(captured), scope["program"], (X,))
