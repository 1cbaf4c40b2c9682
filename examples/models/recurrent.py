"""Recurrent models: an LSTM classifier, a tagger that unrolls LSTM cells, and a GRU encoder and decoder.

Token numbers (n, length) come in, scores go out. `nn.LSTM` and `nn.GRU` stay whole as single nodes; the tagger's
loop runs over a length fixed when it is built, so it unrolls into the graph.
"""

import torch
from torch import Tensor, nn


class LSTMClassifier(nn.Module):
    """Reads the text in both directions and classifies from the two final states."""

    def __init__(
        self, vocabulary: int = 10000, width: int = 128, hidden: int = 256, depth: int = 2, classes: int = 2
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width, padding_idx=0)
        self.lstm = nn.LSTM(width, hidden, depth, batch_first=True, dropout=0.1, bidirectional=True)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        states, (hidden, _) = self.lstm(self.embed(tokens))
        final = torch.cat([hidden[-2], hidden[-1]], dim=1)
        return self.head(final), states.amax(dim=1)


class LSTMTagger(nn.Module):
    """One cell, called once for each of `length` steps: the same module at many nodes."""

    def __init__(self, vocabulary: int = 10000, width: int = 128, length: int = 32, tags: int = 16) -> None:
        super().__init__()
        self.length = length
        self.embed = nn.Embedding(vocabulary, width)
        self.cell = nn.LSTMCell(width, width)
        self.start = nn.Parameter(torch.zeros(1, width))
        self.head = nn.Linear(width, tags)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        hidden = memory = self.start.repeat(tokens.size(0), 1)
        outputs = []
        for step in range(self.length):
            hidden, memory = self.cell(x[:, step], (hidden, memory))
            outputs.append(hidden)
        return self.head(torch.stack(outputs, dim=1)).log_softmax(-1)


class GRUTranslator(nn.Module):
    """A GRU reads the source; another, started from its last state, attends to what was read."""

    def __init__(self, source: int = 10000, target: int = 10000, width: int = 256) -> None:
        super().__init__()
        self.source = nn.Embedding(source, width)
        self.target = nn.Embedding(target, width)
        self.encoder = nn.GRU(width, width, batch_first=True)
        self.decoder = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(2 * width, target)

    def forward(self, source: Tensor, target: Tensor, temperature: float = 1.0) -> Tensor:
        memory, state = self.encoder(self.source(source))
        queries, _ = self.decoder(self.target(target), state)
        scores = torch.bmm(queries, memory.transpose(1, 2)) / temperature
        context = torch.bmm(torch.softmax(scores, dim=2), memory)
        return self.head(torch.cat((queries, context), dim=-1))
