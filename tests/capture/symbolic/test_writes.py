"""Writing to real tensors in a traced program: constants start afresh in each run, state is written by the graph."""

import copy

import pytest
import torch
from torch import nn

import clew
from clew.errors import TraceWarning

X = torch.rand(3, 3)


def adds_to_a_constant(x):
    total = torch.zeros(3)
    total += x[0]
    return total


def sets_items_and_reads_them(x):
    made = torch.zeros(3)
    made[0] = x.sum()
    return made * 2


def fills_in_a_loop(x):
    made = torch.empty(3, 3)
    for row in range(3):
        made[row] = x[row] * row
    return torch.relu(made)


def writes_through_views(x):
    made = torch.zeros(3, 3)
    made[0] += x[0]
    made[1].add_(x[1])
    return made


def writes_to_out(x):
    made = torch.empty(3, 3)
    torch.add(x, 1, out=made)
    return made, made.sum()


def changes_a_constant_after_its_use(x):
    constant = torch.zeros(3)
    first = x + constant
    constant.add_(1)
    return first + x * constant


def fills_before_any_use(x):
    mask = torch.ones(3, 3)
    mask[0] = 0
    mask.tril_()
    return x * mask


WRITERS = [
    adds_to_a_constant, sets_items_and_reads_them, fills_in_a_loop, writes_through_views, writes_to_out,
    changes_a_constant_after_its_use, fills_before_any_use,
]  # fmt: skip


@pytest.mark.parametrize("writer", WRITERS)
def test_every_run_starts_afresh(writer):
    traced = clew.symbolic_trace(writer)
    kept = []
    for example in (X, X + 1, X):
        result = traced(example.clone())
        torch.testing.assert_close(result, writer(example.clone()))
        kept.append((result, copy.deepcopy(result)))
    for result, as_it_was in kept:
        torch.testing.assert_close(result, as_it_was)


def test_a_constant_that_is_finished_before_its_use_is_one_node():
    traced = clew.symbolic_trace(fills_before_any_use)
    assert [node.op for node in traced.graph.nodes] == ["placeholder", "get_attr", "call_function", "output"]


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(3))

    def forward(self, x):
        self.steps += 1
        return x + self.steps * 2


class WritesViews(Counting):
    def forward(self, x):
        self.steps[0] += 1
        self.steps[1:].sub_(2)
        return x + self.steps


class WritesSymbols(Counting):
    def forward(self, x):
        self.steps.copy_(x[0])
        self.steps[0] = x.sum()
        return self.steps.sum() + x


@pytest.mark.filterwarnings("ignore::clew.errors.TraceWarning")
@pytest.mark.parametrize("kind", [Counting, WritesViews, WritesSymbols])
def test_buffers_are_written_by_the_graph_and_not_by_the_trace(kind):
    original, module = kind(), kind()
    before = module.steps.clone()
    traced = clew.symbolic_trace(module)
    assert torch.equal(module.steps, before)
    for _ in range(3):
        torch.testing.assert_close(traced(X), original(X))
    assert torch.equal(traced.steps, original.steps)


def test_a_buffer_written_in_place_is_followed():
    class Adds(Counting):
        def forward(self, x):
            return x + self.steps

    module = Adds()
    traced = clew.symbolic_trace(module)
    module.steps.add_(5)
    torch.testing.assert_close(traced(X), X + 5)
    traced.load_state_dict({"steps": torch.ones(3)})
    torch.testing.assert_close(traced(X), X + 1)


CACHE = torch.zeros(3)


def writes_a_global(x):
    CACHE.add_(1)
    return x + CACHE


@pytest.mark.filterwarnings("ignore::clew.errors.TraceWarning")
def test_a_global_tensor_is_written_by_the_graph_and_not_by_the_trace():
    before = CACHE.clone()
    traced = clew.symbolic_trace(writes_a_global)
    assert torch.equal(CACHE, before)
    torch.testing.assert_close(traced(X), X + before + 1)
    assert torch.equal(CACHE, before + 1)


class WritesAliases(Counting):
    def forward(self, x):
        self.steps.data.add_(1)
        self.steps.detach().mul_(2)
        self.steps.data = self.steps * 2
        return x + self.steps


@pytest.mark.filterwarnings("ignore::clew.errors.TraceWarning")
def test_aliases_of_buffers_are_written_by_the_graph():
    original, module = WritesAliases(), WritesAliases()
    traced = clew.symbolic_trace(module)
    assert module.steps.tolist() == [0.0, 0.0, 0.0]
    for _ in range(3):
        torch.testing.assert_close(traced(X), original(X))


def transforms_a_constant(x):
    rows = torch.vmap(lambda row: row * 2)(torch.ones(3, 3))
    slope = torch.func.grad(lambda value: (value * value).sum())(torch.ones(3))
    return x + rows * slope


def test_function_transforms_of_constants():
    torch.testing.assert_close(clew.symbolic_trace(transforms_a_constant)(X), X + 4)


def test_the_state_of_generators_is_put_back():
    generator = torch.Generator()
    before = generator.get_state()
    with pytest.warns(TraceWarning, match="random"):
        clew.symbolic_trace(lambda x: x + torch.rand(3, generator=generator) + torch.rand(3))
    assert torch.equal(generator.get_state(), before)


def test_a_tensor_without_a_history_has_none_after_the_capture():
    class Latch(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("held", torch.zeros(4))

        def forward(self, x):
            self.held[:2].copy_(x)
            return self.held * 2

    model = Latch()
    captured = clew.trace(model, args=(torch.ones(2, requires_grad=True),))
    assert not model.held.requires_grad and not captured.held.requires_grad
    base = torch.zeros(3)
    clew.trace(lambda x, part: part.add_(x), args=(torch.ones(2, requires_grad=True), base[:2]))
    assert not base.requires_grad and torch.equal(base, torch.zeros(3))
