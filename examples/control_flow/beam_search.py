"""Beam search: the best few texts are carried on together until all of them have ended."""

from collections.abc import Callable

import torch
from torch import Tensor

END = 0


def beam_search(transitions: Tensor, start: Tensor, width: int = 2, longest: int = 6) -> tuple[Tensor, Tensor, int]:
    """The best `width` texts of a chain of tokens with the given log probabilities, their scores, and the rounds.

    A text that has ended is carried on by the end token alone, at no cost.
    """
    texts = start.reshape(1, 1)
    scores = torch.zeros(1)
    rounds = 0
    while rounds < longest:
        ended = texts[:, -1] == END
        if ended.all():
            break
        steps = transitions[texts[:, -1]]
        if ended.any():
            stay = torch.full_like(steps, float("-inf"))
            stay[:, END] = 0.0
            steps = torch.where(ended.unsqueeze(1), stay, steps)
        candidates = (scores.unsqueeze(1) + steps).flatten()
        scores, best = candidates.topk(min(width, candidates.numel()))
        parents, tokens = best // transitions.shape[1], best % transitions.shape[1]
        texts = torch.cat([texts[parents], tokens.unsqueeze(1)], dim=1)
        rounds += 1
    return texts, scores, rounds


def make() -> Callable[..., object]:
    """The function itself."""
    return beam_search


def inputs() -> list[tuple[Tensor, ...]]:
    """Chains that go on, that end at once, that begin at their end, and that end at different times."""
    generator = torch.Generator().manual_seed(3)
    chain = torch.rand(5, 5, generator=generator)
    never, soon, mixed = chain.clone(), chain.clone(), chain.clone()
    never[:, END], soon[:, END], mixed[2:, END] = -9.0, 5.0, 3.0
    tables = [never, soon, mixed, chain]
    calls = [(table.log_softmax(-1), torch.tensor(1)) for table in tables]
    return [*calls, (chain.log_softmax(-1), torch.tensor(END)), (mixed.log_softmax(-1), torch.tensor(3))]
