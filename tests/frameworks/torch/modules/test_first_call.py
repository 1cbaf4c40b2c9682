"""Modules that put hooks on their parts when they are called first, as transformers does to collect hidden states."""

from typing import Any

import pytest
import torch
from torch import nn

import clew
from clew.errors import CaptureError


class Collecting(nn.Module):
    """Hands out what its layers gave; the hooks that collect it are put on by the first call."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.collected: list[Any] = []

    def install(self) -> None:
        for scale, layer in enumerate(self.layers, start=1):
            layer.register_forward_hook(lambda module, args, result, scale=scale: self.keep(result * scale))
        self.is_hooked = True

    def keep(self, result: torch.Tensor) -> None:
        self.collected.append(result)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        if not getattr(self, "is_hooked", False):
            self.install()
        self.collected = []
        for layer in self.layers:
            x = layer(x)
        found = [x, *self.collected]
        self.collected = []
        return found


class Late(Collecting):
    """Puts its hooks on when the layers are done, so that the second call is another one."""

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        self.collected = []
        for layer in self.layers:
            x = layer(x)
        found = [x, *self.collected]
        self.collected = []
        if not getattr(self, "is_hooked", False):
            self.install()
        return found


def hooks_on(module: nn.Module) -> int:
    return sum(len(part._forward_hooks) for part in module.modules())


def made(kind: type[Collecting] = Collecting) -> Collecting:
    torch.manual_seed(0)
    return kind()


def check(captured: Any, original: Any, batch: int) -> None:
    x = torch.randn(batch, 4)
    expected, found = original(x), captured(x)
    assert len(found) == len(expected) == 3
    assert all(map(torch.equal, found, expected))


def test_a_module_that_sets_itself_up() -> None:
    module = made()
    captured = clew.trace(module, args=(torch.ones(2, 4),))
    assert hooks_on(module) == 0 and not hasattr(module, "is_hooked")
    for batch in (3, 1, 2):
        check(captured, module, batch)


@pytest.mark.parametrize("original_first", [True, False])
def test_a_function_around_such_a_module(original_first: bool) -> None:
    module = made()

    def program(x: torch.Tensor) -> list[torch.Tensor]:
        return [part * 2 for part in module(x)]

    captured = clew.trace(program, args=(torch.ones(2, 4),))
    assert hooks_on(module) == 0 and not hasattr(module, "is_hooked")
    if not original_first:
        assert len(captured(torch.ones(3, 4))) == 3
        assert hooks_on(module) == 2 and module.is_hooked
    for batch in (3, 1):
        check(captured, program, batch)
    assert hooks_on(module) == 2


def test_a_lazy_graph_of_such_a_module() -> None:
    module = made()
    lazy = clew.trace(module)
    assert len(lazy(torch.ones(2, 4))) == 3
    assert hooks_on(module) == 2
    check(lazy, module, 5)
    check(lazy, module, 1)
    assert len(lazy.captures) <= 2


@pytest.mark.parametrize("live", [True, False])
def test_hooks_for_the_next_call_are_refused(live: bool) -> None:
    module = made(Late)
    with pytest.raises(CaptureError, match="adds hooks to a module"):
        clew.trace((lambda x: module(x)) if live else module, args=(torch.ones(2, 4),))
    assert hooks_on(module) == 0 and not hasattr(module, "is_hooked")


class Noting(torch.nn.Module):
    """Puts a hook on its layer at the first call, and keeps a note of that."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.is_hooked = False
        self.notes: list[str] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run the layer with its hook."""
        if not self.is_hooked:
            self.layer.register_forward_hook(lambda module, args, output: output * 2)
            self.is_hooked = True
            self.notes.append("hooked")
        return self.layer(x)


def test_what_a_first_call_does_besides_setting_up_is_not_lost() -> None:
    module = Noting()
    with pytest.raises(CaptureError, match="adds hooks to a module"):
        clew.trace(module, args=(torch.ones(2, 4),))
    assert hooks_on(module) == 0 and module.notes == [] and not module.is_hooked


def test_hidden_states_of_a_transformer() -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = transformers.LlamaModel(transformers.LlamaConfig(**sizes, intermediate_size=16)).eval()

    def embed(ids: torch.Tensor) -> Any:
        return model(ids, output_hidden_states=True).hidden_states

    captured = clew.trace(embed, args=(torch.arange(6).view(2, 3),))
    whole = clew.trace(model, kwargs={"input_ids": torch.arange(6).view(2, 3), "output_hidden_states": True})
    for shape in ((3, 4), (1, 5)):
        ids = torch.randint(0, 30, shape)
        expected = embed(ids)
        assert len(expected) == 3
        for found in (captured(ids), whole(input_ids=ids, output_hidden_states=True).hidden_states):
            assert len(found) == 3 and all(map(torch.equal, found, expected))
