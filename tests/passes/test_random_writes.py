"""Functionalised programs do what writes do in every respect: errors, overlaps, strides, gradients, draws, aliases."""

import pytest
import torch
from torch import nn

import clew
from tests.passes.random_writes import INPUTS, WRONG, called, difference, judge, made, passes_of, written

WARNINGS = "ignore::UserWarning"
BODIES = {
    "an error behind a write": ("y[0] = 1; u[1] = 0; x.add_(0.5)", "whole numbers"),
    "a write that raises before a draw": ("x.fill_(1.0); x = torch.rand_like(x)", "leaves"),
    "the first of two writes": ("u.zero_(); x.mul_(2)", "leaves"),
    "zeros need gradients": ("y.zero_(); facts.append(y.requires_grad)", "with history"),
    "comparisons need gradients": ("y.eq_(u); u = y * 1", "with history"),
    "draws need gradients": ("y.normal_(); y = y + 1", "with history"),
    "strides are kept": ("u[0] = 0; facts.append(u.is_contiguous()); facts.append(u.stride())", "strided"),
    "strides of unary calls": ("u.neg_(); facts.append(u.stride()); y = u.view(-1)", "strided"),
    "draws by strides": ("u.bernoulli_(0.5); w = u * 1", "transposed"),
    "an item behind a draw": ("w = z.t(); z.normal_(); w.neg_()", "another rank"),
    "an item set to itself": ("x[0] = x[0]", "leaves"),
    "rows that overlap": ("u.sub_(x)", "overlapping"),
    "one array twice": ("u.mul_(x); facts.append(float(x.sum()))", "one twice"),
    "one array twice in a branch": ("if x.shape[0] > 2:\n        u.mul_(x)\n    F.relu(x, inplace=True)", "one twice"),
    "a part of itself": ("y[:, 1:] += y[:, :-1]", "example"),
    "rows of itself": ("y[:1] -= y[1:2]", "one row"),
    "too many dimensions": ("u.copy_(x.sum(0, keepdim=True))", "another rank"),
    "fill with more than a number": ("y.fill_(u[0, 0])", "another rank"),
    "out of another size": ("torch.mul(u[1:], 2, out=z)", "other sizes"),
    "out with gradients": ("torch.mul(u, 2, out=z)", "leaves"),
    "parts with gradients": ("y.unbind(0)[1].mul_(2)", "leaves"),
    "chunks with gradients": ("w = y.chunk(2)[1]; w.copy_(z.flatten()[0])", "leaves"),
    "parts in a branch": ("w = y.unbind(0)[1]; \n    if x.sum() > 0:\n        y.sqrt_()", "with history"),
    "a part that a branch is given": ("w = y.split(2)[0]; \n    if y.sum() > 0:\n        w.add_(0.5)", "leaves"),
    "a shape that changes": ("u.t_(); torch.add(z, z, out=z)", "leaves"),
    "converted to what it is": ("x *= u; u = x.float()", "example"),
    "a view returned twice": ("u = w; x[x > 0] = 3", "other sizes"),
    "running sums": ("y.cumsum_(0)", "truths"),
}  # fmt: skip


@pytest.mark.filterwarnings(WARNINGS)
@pytest.mark.parametrize("body", BODIES)
def test_a_functional_program_does_what_writes_do_or_refuses(body):
    rows, name = BODIES[body]
    text = "\n".join(["def program(x, u):", "    facts = []", "    y, z, w = x * 1, x + 1, x[1:]", *_lines(rows)])
    make = made(f"{text}\n    return x, y, z, w, u, facts\n")
    given = INPUTS["example"]
    torch.manual_seed(0)
    try:
        captured = clew.functionalize(clew.trace(make(), given()))
    except RuntimeError:  # torch refuses it for the example already
        given = INPUTS[name]
        captured = clew.functionalize(clew.trace(make(), given()))
    captured.graph.lint()
    for seed, each in enumerate((given, INPUTS[name], given)):
        assert not difference(called(make(), each, seed), called(captured, each, seed))


def _lines(rows):
    return [f"    {one}" for one in rows.split("; ")]


@pytest.mark.filterwarnings(WARNINGS)
@pytest.mark.parametrize("form", ["functional", "passes"])
def test_random_programs(form):
    found = [judge(written(seed), passes_of(seed, form)) for seed in range(25)]
    assert not [why for verdict, why in found if verdict == WRONG]


def test_an_error_of_the_program_undoes_what_was_written():
    def program(x, y, z):
        x.add_(1)
        y.mul_(torch.rand(()))
        return x @ z

    x, y, z = torch.ones(2, 3), torch.ones(2), torch.ones(3)
    captured = clew.functionalize(clew.trace(program, (x, y, z)))
    before = torch.get_rng_state()
    with pytest.raises(clew.GuardError, match="the program raised RuntimeError: size mismatch"):
        captured(x, y, torch.ones(2))
    assert torch.equal(x, torch.ones(2, 3)) and torch.equal(y, torch.ones(2))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_failing_write_undoes_those_before_it():
    def program(x, y):
        x.add_(1)
        y.mul_(2)

    captured = clew.functionalize(clew.trace(program, (torch.ones(2), torch.ones(2))))
    assert not clew.remaining_writes(captured)
    x, leaf = torch.ones(2), torch.ones(2, requires_grad=True)
    for given in ((x, leaf), (leaf, x)):
        with pytest.raises(clew.GuardError, match="a leaf Variable"):
            captured(*given)
        assert torch.equal(x, torch.ones(2)) and torch.equal(leaf, torch.ones(2))


def test_a_saved_program_refuses_to_go_on_from_an_error_too(tmp_path):
    captured = clew.functionalize(clew.trace(lambda x, y: (x.add_(1), x @ y)[1], (torch.ones(2, 3), torch.ones(3))))
    clew.save(captured, tmp_path / "program.clew")
    loaded, x = clew.load(tmp_path / "program.clew"), torch.ones(2, 3)
    with pytest.raises(clew.GuardError, match="the program raised RuntimeError"):
        loaded(x, torch.ones(2))
    assert torch.equal(x, torch.ones(2, 3))
    assert torch.equal(loaded(x, torch.ones(3)), torch.full((2,), 6.0)) and torch.equal(x, torch.full((2, 3), 2.0))


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(3), nn.Dropout(0.5)
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.total += x.sum(0)
        y = self.drop(self.norm(x))
        y[0] = self.total
        return y


def test_modules_in_training_and_evaluation():
    x = torch.randn(4, 3)
    model, captured = Counts(), clew.functionalize(clew.trace(Counts(), (x,)))
    for seed, training in enumerate((True, False, True)):
        model.train(training), captured.train(training)
        assert not difference(called(model, lambda: (x * 1,), seed), called(captured, lambda: (x * 1,), seed))
        assert all(torch.equal(one, captured.state_dict()[name]) for name, one in model.state_dict().items())


def test_a_capture_of_a_program_that_gives_an_input_another_size_is_refused():
    x, u = torch.ones(4, 3), torch.ones(4, 3)
    with pytest.warns(UserWarning, match="resized"), pytest.raises(clew.CaptureError, match="another size"):
        clew.trace(lambda x, u: torch.mul(x[1:], 2, out=u), (x, u))
    assert u.shape == (4, 3) and torch.equal(u, torch.ones(4, 3))


def test_which_writes_are_left_for_what_they_are_written_with():
    def program(x):
        y, z = x * 1, x * 2
        y[:2] = y[2:4]  # rows that are apart for all sizes
        y[:, 0] = y[:, 1]
        z[:, 1:] += z[:, :-1]
        return y, z

    captured = clew.functionalize(clew.trace(program, (torch.randn(4, 3),)))
    assert {one.reason for one in clew.remaining_writes(captured)} == {"it is written with a part of itself"}
    assert {one.node.name[:7] for one in clew.remaining_writes(captured)} <= {"add_", "setitem"}
    for seed in range(3):
        make = INPUTS["example"]
        assert not difference(
            called(lambda x, u: program(x), make, seed), called(lambda x, u, captured=captured: captured(x), make, seed)
        )
