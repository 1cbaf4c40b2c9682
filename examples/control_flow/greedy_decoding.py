"""Greedy decoding: a small recurrent language model writes one token after the other until it writes the last one."""

import torch
from torch import Tensor, nn

END = 0


class Decoder(nn.Module):
    """Continues a prompt; how many tokens come out depends on what it writes."""

    def __init__(self, tokens: int, width: int, longest: int) -> None:
        super().__init__()
        self.longest = longest
        self.embedding = nn.Embedding(tokens, width)
        self.cell = nn.GRUCell(width, width)
        self.head = nn.Linear(width, tokens)

    def forward(self, prompt: Tensor) -> tuple[Tensor, Tensor]:
        state = torch.zeros(1, self.cell.hidden_size)
        for token in prompt:
            state = self.cell(self.embedding(token).unsqueeze(0), state)
        written = []
        score = torch.zeros(())
        for _ in range(self.longest):
            scores = self.head(state)[0].log_softmax(-1)
            token = scores.argmax()
            score = score + scores[token]
            if token == END:
                break
            written.append(token)
            state = self.cell(self.embedding(token).unsqueeze(0), state)
        text = torch.stack(written) if written else prompt.new_zeros(0)
        return text, score


def make() -> nn.Module:
    """A decoder with weights that are known to end early for some prompts and late for others."""
    generator = torch.Generator().manual_seed(7)
    model = Decoder(tokens=6, width=8, longest=7).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 1.3)
    return model


def inputs() -> list[tuple[Tensor, ...]]:
    """Prompts after which texts of several lengths follow."""
    return [(torch.tensor(prompt),) for prompt in ([1, 2], [3, 4], [5, 5], [2, 1], [4], [1, 3, 5, 2], [5])]
