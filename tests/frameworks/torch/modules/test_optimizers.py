"""Steps of training inside captured programs: optimizers and schedulers keep their own state."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

import clew
from clew.errors import CaptureError, GuardError

_OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.1),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.1),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.1),
}


class Slow(torch.optim.Optimizer):
    """An optimizer of the user's own, which takes smaller steps from time to time."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                held = self.state[parameter]
                held["count"] = held.get("count", 0) + 1
                parameter -= group["lr"] / held["count"] * parameter.grad


def _model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))


def _batches(count=4):
    torch.manual_seed(1)
    return [(torch.randn(3 + place, 2), torch.randn(3 + place, 1)) for place in range(count)]


def _step_of(make, uses=lambda optimizer, loss: None):
    """A model, its optimizer and one step of training."""
    model = _model()
    optimizer = make(model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach(), uses(optimizer, loss)

    return model, optimizer, step


def _same(left, right):
    return all(torch.equal(one, other) for one, other in zip(left.parameters(), right.parameters(), strict=True))


@pytest.mark.parametrize("name", [*_OPTIMIZERS, "own"])
def test_steps_of_one_capture_train_like_the_original(name):
    make = _OPTIMIZERS.get(name, lambda parameters: Slow(parameters, 0.1))
    model, _, step = _step_of(make)
    twin, optimizer, twin_step = _step_of(make)
    before = copy.deepcopy(twin.state_dict())
    graph = clew.trace(twin_step, _batches()[0])
    assert all(torch.equal(value, before[key]) for key, value in twin.state_dict().items())
    assert not optimizer.state and all(parameter.grad is None for parameter in twin.parameters())
    for batch in _batches():
        assert torch.equal(graph(*batch)[0], step(*batch)[0])
    assert _same(model, twin)


def test_a_step_is_one_call_of_the_graph():
    graph = clew.trace(_step_of(_OPTIMIZERS["adam"])[2], _batches()[0]).graph
    assert [node.name for node in graph.nodes if "step" in node.name] == ["take_step"]


def test_a_learning_rate_set_between_calls_is_followed():
    model, optimizer, step = _step_of(_OPTIMIZERS["sgd"])
    twin, twin_optimizer, twin_step = _step_of(_OPTIMIZERS["sgd"])
    graph = clew.trace(twin_step, _batches()[0])
    for batch, rate in zip(_batches(), (0.1, 0.5, 0.01, 0.2), strict=True):
        optimizer.param_groups[0]["lr"] = twin_optimizer.param_groups[0]["lr"] = rate
        graph(*batch)
        step(*batch)
    assert _same(model, twin)


def test_a_learning_rate_that_is_read_is_guarded():
    _, optimizer, step = _step_of(_OPTIMIZERS["sgd"], lambda optimizer, loss: optimizer.param_groups[0]["lr"])
    graph = clew.trace(step, _batches()[0])
    assert graph(*_batches()[0])[1] == 0.1
    optimizer.param_groups[0]["lr"] = 0.2
    with pytest.raises(GuardError, match="settings of the SGD"):
        graph(*_batches()[0])


def test_a_learning_rate_set_by_the_program_is_refused():
    def lower(optimizer, loss):
        optimizer.param_groups[0]["lr"] *= 0.5

    with pytest.raises(CaptureError, match="changes the settings of a SGD"):
        clew.trace(_step_of(_OPTIMIZERS["sgd"], lower)[2], _batches()[0])


def test_a_scheduler_steps_too():
    def build():
        model = _model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.1)

        def step(x, y):
            loss = functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            scheduler.step()
            model.zero_grad()
            return loss.detach()

        return model, optimizer, step

    model, optimizer, step = build()
    twin, twin_optimizer, twin_step = build()
    held = dict(vars(twin_optimizer))
    graph = clew.trace(twin_step, _batches()[0])
    assert dict(vars(twin_optimizer)) == held
    for batch in _batches(6):
        assert torch.equal(graph(*batch), step(*batch))
        assert optimizer.param_groups[0]["lr"] == twin_optimizer.param_groups[0]["lr"]
    assert _same(model, twin)


def test_a_guard_that_fails_after_a_step_takes_the_step_back():
    def decide(optimizer, loss):
        return loss.item() > 100 and int(loss.item())

    model, optimizer, step = _step_of(_OPTIMIZERS["adam"], decide)
    graph = clew.trace(step, _batches()[0], control_flow="guard")
    graph(*_batches()[0])
    before, state = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
    with pytest.raises(GuardError):
        graph(_batches()[0][0] * 1000, _batches()[0][1])
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert str(optimizer.state_dict()) == str(state)


def test_an_optimizer_among_the_arguments_must_be_the_same():
    model = _model()
    optimizers = [torch.optim.SGD(model.parameters(), lr=rate) for rate in (0.1, 0.2)]

    def step(optimizer, x, y):
        optimizer.zero_grad()
        functional.mse_loss(model(x), y).backward()
        optimizer.step()

    graph = clew.trace(step, (optimizers[0], *_batches()[0]))
    graph(optimizers[0], *_batches()[1])
    with pytest.raises(GuardError, match="optimizer is"):
        graph(optimizers[1], *_batches()[1])


def test_an_optimizer_that_the_program_makes_is_new_at_each_call():
    def build():
        model = _model()

        def step(x, y):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
            for _ in range(2):
                optimizer.zero_grad()
                functional.mse_loss(model(x), y).backward()
                optimizer.step()

        return model, step

    (model, step), (twin, twin_step) = build(), build()
    graph = clew.trace(twin_step, _batches()[0])
    for batch in _batches(2):
        step(*batch)
        graph(*batch)
    assert _same(model, twin)


def test_a_trainer_with_an_optimizer_of_its_own():
    class Trainer:
        def __init__(self):
            self.model = _model()
            self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.05)
            self.steps = 0

        def step(self, x, y):
            self.optimizer.zero_grad(set_to_none=True)
            loss = functional.mse_loss(self.model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
            self.optimizer.step()
            self.steps += 1
            return loss.item()

    one, other = Trainer(), Trainer()
    graph = clew.trace(other.step, _batches()[0])
    for batch in _batches():
        assert graph(*batch) == one.step(*batch)
    assert _same(one.model, other.model) and one.steps == other.steps == 4


def test_gradients_that_are_filled_with_zeros():
    def build():
        model = _model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x, y):
            optimizer.zero_grad(set_to_none=False)
            functional.mse_loss(model(x), y).backward()
            optimizer.step()

        return model, step

    (model, step), (twin, twin_step) = build(), build()
    graph = clew.trace(twin_step, _batches()[0])
    assert all(parameter.grad is None for parameter in twin.parameters())
    for batch in _batches():
        graph(*batch)
        step(*batch)
    assert _same(model, twin)
    assert all(
        torch.equal(one.grad, other.grad) for one, other in zip(model.parameters(), twin.parameters(), strict=True)
    )
