"""A captured module has all tensors of the original, under the same names and in the same order."""

import torch
from torch import Tensor, nn

import clew


class Tied(nn.Module):
    """A head whose bias has a second name, a part that does not run, and a buffer that nobody reads."""

    def __init__(self) -> None:
        super().__init__()
        self.spare = nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros(1))
        self.head = nn.Module()
        self.head.bias = nn.Parameter(torch.zeros(5))
        self.head.register_buffer("ids", torch.arange(4), persistent=False)
        self.head.decoder = nn.Linear(3, 5)
        self.head.decoder.bias = self.head.bias
        self.embed = nn.Embedding(5, 3)
        self.head.decoder.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head.decoder(self.embed(tokens))


def names(module: nn.Module) -> list[list[str]]:
    parameters = [name for name, _ in module.named_parameters()]
    return [parameters, [name for name, _ in module.named_buffers()], list(module.state_dict())]


def test_names_and_order_of_the_original() -> None:
    model = Tied()
    tokens = torch.tensor([[1, 2]])
    for captured in (clew.trace(model, args=(tokens,)), clew.trace(model, args=(tokens,), leaves="none")):
        assert names(captured) == names(model)
        assert captured.load_state_dict(model.state_dict(), strict=True).missing_keys == []
    assert names(clew.trace_module(model, {"forward": tokens})) == names(model)


def test_gradients_by_name_and_steps_of_training() -> None:
    torch.manual_seed(0)
    model = Tied()
    twin = Tied()
    twin.load_state_dict(model.state_dict())
    captured = clew.trace(twin, args=(torch.tensor([[1, 2]]),))
    steps = [torch.optim.AdamW(one.parameters(), lr=0.1) for one in (model, captured)]
    for seed in range(3):
        tokens = torch.randint(0, 5, (2 + seed, 3), generator=torch.Generator().manual_seed(seed))
        losses = []
        for one, step in zip((model, captured), steps, strict=True):
            step.zero_grad()
            losses.append(one(tokens).square().mean())
            losses[-1].backward()
            step.step()
        assert torch.equal(*losses)
        found, expected = dict(captured.named_parameters()), dict(model.named_parameters())
        assert all((found[name].grad is None) == (one.grad is None) for name, one in expected.items())
        assert all(torch.equal(found[name], one) for name, one in expected.items())
    assert steps[1].state_dict()["param_groups"] == steps[0].state_dict()["param_groups"]
