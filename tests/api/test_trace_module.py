"""``clew.trace_module``: one module with several captured methods that share parameters and state."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from torch import nn

import clew


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 4), nn.Tanh())
        self.decoder = nn.Linear(4, 6)
        self.dropout = nn.Dropout(0.5)
        self.scale = torch.tensor(2.0)

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return self.encoder(x) * self.scale + torch.tensor([1.0])

    def decode(self, code: torch.Tensor, gain: float = 1.0) -> torch.Tensor:
        return self.decoder(code) * gain - torch.tensor([3.0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decode(self.dropout(self.encode(x)))


class Tracker(nn.Module):
    """One method changes a buffer, a number and a list; the others read them."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("total", torch.zeros(2))
        self.calls = 0
        self.gain = 1.0
        self.log: list[torch.Tensor] = []

    def update(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.mean = self.mean + (x.mean(0) - self.mean) / self.calls
        self.total += x.sum(0)
        self.log.append(x.sum())
        return self.mean

    def set_gain(self, gain: float) -> None:
        self.gain = gain

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x - self.mean) * self.gain + self.calls + self.total


def autoencoder() -> tuple[Autoencoder, Any]:
    torch.manual_seed(0)
    model = Autoencoder().eval()
    inputs = {"forward": (torch.rand(2, 6),), "encode": torch.rand(2, 6), "decode": (torch.rand(2, 4), 2.0)}
    return model, clew.trace_module(model, inputs)


def test_every_method_computes_what_the_original_does() -> None:
    model, traced = autoencoder()
    x, code = torch.rand(5, 6), torch.rand(3, 4)
    assert torch.equal(traced(x), model(x))
    assert torch.equal(traced.encode(x), model.encode(x))
    assert torch.equal(traced.decode(code, gain=0.5), model.decode(code, 0.5))
    assert list(traced.methods) == ["forward", "encode", "decode"]
    assert "self.encoder" in traced.encode.code and traced.decode.guards is not None


def test_parameters_are_the_originals_and_each_is_there_once() -> None:
    model, traced = autoencoder()
    assert {id(one) for one in traced.parameters()} == {id(one) for one in model.parameters()}
    assert set(traced.state_dict()) == set(model.state_dict())
    assert list(dict(traced.named_parameters())) == list(dict(model.named_parameters()))


def test_a_method_alone_needs_no_forward() -> None:
    model = Autoencoder().eval()
    traced = clew.trace_module(model, {"encode": torch.rand(1, 6)})
    x = torch.rand(4, 6)
    assert torch.equal(traced.encode(x), model.encode(x))
    assert not any(name.startswith("decoder") for name in traced.state_dict())
    with pytest.raises(clew.CaptureError, match="no captured forward"):
        traced(x)


def test_named_arguments_of_a_method() -> None:
    model = Autoencoder().eval()
    traced = clew.trace_module(model, {"decode": torch.rand(1, 4)}, {"decode": {"gain": 3.0}})
    code = torch.rand(2, 4)
    assert torch.equal(traced.decode(code, gain=2.0), model.decode(code, gain=2.0))


def test_what_one_method_changes_the_others_see() -> None:
    model = Tracker()
    twin, before = copy.deepcopy(model), copy.deepcopy(model.state_dict())
    # The reader is captured before the writers, which must not let it take their state for constants.
    inputs = {"forward": (torch.rand(3, 2),), "update": (torch.rand(3, 2),), "set_gain": (3.0,)}
    traced = clew.trace_module(model, inputs)
    assert model.calls == 0 and model.log == []
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    for size in (3, 1, 4):
        x = torch.rand(size, 2)
        for one in (traced, twin):
            one.update(x)
            one.set_gain(size * 0.5)
        torch.testing.assert_close(traced(x), twin(x))
    assert traced.calls == 3 and len(traced.log) == 3 and traced.gain == 2.0
    assert model.calls == 0 and model.log == [] and model.gain == 1.0


def test_saving_copying_and_moving() -> None:
    model, traced = autoencoder()
    x = torch.rand(3, 6)
    twin = copy.deepcopy(traced)
    again = pickle.loads(pickle.dumps(traced))
    for other in (twin, again, copy.copy(traced)):
        assert torch.equal(other.encode(x), model.encode(x)) and torch.equal(other(x), model(x))
    twin.to(torch.float64)
    model_64 = copy.deepcopy(model).to(torch.float64)
    model_64.scale = model_64.scale.double()
    torch.testing.assert_close(twin.encode(x.double()), model_64.encode(x.double()))
    assert traced.encoder.get_parameter("0.weight").dtype == torch.float32 if hasattr(traced, "encoder") else True
    state = io.BytesIO()
    torch.save(traced.state_dict(), state)
    state.seek(0)
    with torch.no_grad():
        twin.float().decoder.weight.zero_()
    twin.load_state_dict(torch.load(state))
    assert torch.equal(twin(x), model(x))


def test_copies_have_state_of_their_own() -> None:
    traced = clew.trace_module(Tracker(), {"update": (torch.ones(1, 2),), "forward": (torch.ones(1, 2),)})
    twin = copy.deepcopy(traced)
    twin.update(torch.ones(1, 2))
    assert (twin.calls, traced.calls) == (1, 0)
    assert twin.mean.sum() == 2 and traced.mean.sum() == 0
    again = pickle.loads(pickle.dumps(twin))
    again.update(torch.ones(1, 2))
    assert (again.calls, twin.calls) == (2, 1)


def test_the_mode_is_followed_or_guarded() -> None:
    model, traced = autoencoder()
    x = torch.rand(3, 6)
    traced.train()
    model.train()
    try:
        torch.manual_seed(1)
        found = traced(x)
    except clew.GuardError:
        return
    torch.manual_seed(1)
    assert torch.equal(found, model(x))


def test_gradients_reach_the_shared_parameters() -> None:
    model, traced = autoencoder()
    traced.encode(torch.rand(3, 6)).sum().backward()
    assert model.encoder[0].weight.grad is not None and model.decoder.weight.grad is None


@pytest.mark.parametrize(
    ("inputs", "kwargs", "message"),
    [
        ({"embed": torch.rand(1)}, None, "'embed' is no method"),
        ({}, None, "no example of any method"),
        ({"encode": torch.rand(1, 6)}, {"decode": {}}, "'decode' is no method with an example"),
    ],
)
def test_examples_that_fit_no_method_are_errors(inputs: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(clew.CaptureError, match=message):
        clew.trace_module(Autoencoder(), inputs, kwargs)


def test_only_modules_have_captured_methods() -> None:
    with pytest.raises(clew.CaptureError, match=r"takes a torch\.nn\.Module, and this is a dict"):
        clew.trace_module({}, {"get": ("a",)})


@pytest.mark.parametrize("examples", [(torch.ones(2, 3),), ({"forward": torch.ones(2, 3)}, [1])])
def test_examples_come_in_a_dict_of_methods(examples: tuple[Any, ...]) -> None:
    with pytest.raises(clew.CaptureError, match="not a dict from methods to arguments"):
        clew.trace_module(nn.Linear(3, 3), *examples)
