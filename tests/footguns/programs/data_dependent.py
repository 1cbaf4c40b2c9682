"""Sizes and orders that hang on data: sorting, unique, nonzero, boolean masks, bincounts, packing."""

import torch
from torch import nn

from tests.footguns.ledger import Case, call, program


@program("boolean_mask", kind="data_dependent")
def _():
    def f(x):
        kept = x[x > 0]
        return kept * kept.shape[0]

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, -1.0, 2.0])),
        others=[lambda: call(torch.tensor([1.0, 1.0, 2.0])), lambda: call(torch.tensor([-1.0, -1.0]))],
    )


@program("nonzero_count", kind="data_dependent")
def _():
    def f(x):
        where = x.nonzero()
        if where.numel() == 0:
            return x.sum()
        return x[where[:, 0]].sum() / len(where)

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 0.0, 2.0])),
        others=[lambda: call(torch.tensor([1.0, 5.0, 2.0])), lambda: call(torch.zeros(3))],
    )


@program("nonzero_as_tuple", kind="data_dependent")
def _():
    def f(x):
        rows, columns = torch.where(x > 0)
        return torch.stack([rows, columns]), rows.shape[0]

    return Case(
        f, example=lambda: call(torch.eye(2)), others=[lambda: call(torch.ones(2, 2)), lambda: call(torch.zeros(3, 2))]
    )


@program("unique_size", kind="data_dependent")
def _():
    def f(labels):
        values, counts = labels.unique(return_counts=True)
        return counts.float() / labels.numel(), len(values)

    return Case(
        f,
        example=lambda: call(torch.tensor([1, 1, 2])),
        others=[lambda: call(torch.tensor([1, 2, 3])), lambda: call(torch.tensor([1, 1]))],
    )


@program("loop_over_unique", kind="data_dependent")
def _():
    def f(x, labels):
        out = torch.zeros_like(x)
        for label in labels.unique():
            chosen = labels == label
            out[chosen] = x[chosen] - x[chosen].mean()
        return out

    return Case(
        f,
        example=lambda: call(torch.arange(4.0), torch.tensor([0, 0, 1, 1])),
        others=[
            lambda: call(torch.arange(4.0), torch.tensor([0, 1, 2, 2])),
            lambda: call(torch.arange(4.0), torch.tensor([7, 7, 7, 7])),
        ],
    )


@program("sort_and_take", kind="data_dependent")
def _():
    def f(x, k):
        order = x.argsort(descending=True)
        return x[order[:k]], order

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 3.0, 2.0]), 2),
        others=[lambda: call(torch.tensor([5.0, 3.0, 2.0]), 2), lambda: call(torch.tensor([1.0, 3.0, 2.0]), 1)],
    )


@program("topk_argument", kind="data_dependent")
def _():
    def f(x, k=2, largest=True):
        return x.topk(k, largest=largest).values

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 3.0, 2.0])),
        others=[
            lambda: call(torch.tensor([1.0, 3.0, 2.0]), 3),
            lambda: call(torch.tensor([1.0, 3.0, 2.0]), largest=False),
        ],
    )


@program("already_sorted", kind="data_dependent")
def _():
    def f(x):
        if (x[1:] >= x[:-1]).all():
            return x, None
        values, order = x.sort()
        return values, order

    return Case(f, example=lambda: call(torch.tensor([1.0, 2.0])), others=[lambda: call(torch.tensor([2.0, 1.0]))])


@program("bincount_size", kind="data_dependent")
def _():
    def f(labels):
        counts = labels.bincount()
        return counts / counts.sum(), counts.shape[0]

    return Case(
        f,
        example=lambda: call(torch.tensor([0, 1, 1])),
        others=[lambda: call(torch.tensor([0, 4, 1])), lambda: call(torch.tensor([0, 0]))],
    )


@program("masked_select_reshape", kind="data_dependent")
def _():
    def f(x):
        n = x.shape[0]
        return x.masked_select(~torch.eye(n, dtype=torch.bool)).view(n, n - 1)

    return Case(
        f, example=lambda: call(torch.arange(9.0).view(3, 3)), others=[lambda: call(torch.arange(16.0).view(4, 4))]
    )


@program("repeat_interleave_by_counts", kind="data_dependent")
def _():
    def f(x, counts):
        return x.repeat_interleave(counts, 0) * counts.sum()

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 2.0]), torch.tensor([1, 2])),
        others=[lambda: call(torch.tensor([1.0, 2.0]), torch.tensor([3, 0]))],
    )


@program("mixture_of_experts", kind="data_dependent")
def _():
    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(2, 3, bias=False)
            self.experts = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))

        def forward(self, x):
            choice = self.gate(x).argmax(-1)
            out = torch.zeros_like(x)
            for index, expert in enumerate(self.experts):
                chosen = (choice == index).nonzero().squeeze(-1)
                if chosen.numel() > 0:
                    out[chosen] = expert(x[chosen])
            return out

    return Case(
        Experts(),
        example=lambda: call(torch.ones(2, 2)),
        others=[lambda: call(torch.randn(6, 2)), lambda: call(-torch.ones(3, 2))],
    )


@program("experts_hit_only", kind="data_dependent")
def _():
    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 2, 2))

        def forward(self, x, choice):
            out = torch.zeros_like(x)
            for index in choice.unique().tolist():
                (rows,) = torch.where(choice == index)
                out.index_add_(0, rows, x[rows] @ self.weight[index])
            return out

    return Case(
        Experts(),
        example=lambda: call(torch.ones(2, 2), torch.tensor([0, 1])),
        others=[
            lambda: call(torch.ones(2, 2), torch.tensor([3, 3])),
            lambda: call(torch.ones(3, 2), torch.tensor([2, 0, 1])),
        ],
    )


@program("non_maximum_suppression", kind="data_dependent")
def _():
    def f(positions, scores, distance=1.0):
        order = scores.argsort(descending=True).tolist()
        kept = []
        while order:
            best = order.pop(0)
            kept.append(best)
            order = [other for other in order if (positions[other] - positions[best]).abs() > distance]
        return torch.tensor(kept)

    return Case(
        f,
        example=lambda: call(torch.tensor([0.0, 0.5, 3.0]), torch.tensor([0.9, 0.8, 0.7])),
        others=[
            lambda: call(torch.tensor([0.0, 2.5, 3.0]), torch.tensor([0.9, 0.8, 0.7])),
            lambda: call(torch.tensor([0.0, 0.5, 3.0]), torch.tensor([0.1, 0.8, 0.7])),
        ],
    )


@program("special_token_replacement", kind="data_dependent")
def _():
    def f(tokens, embeddings, images):
        mask = tokens == 9
        if mask.sum() != images.shape[0]:
            raise ValueError(f"{int(mask.sum())} places for {images.shape[0]} images")
        embeddings = embeddings.clone()
        embeddings[mask] = images
        return embeddings

    return Case(
        f,
        example=lambda: call(torch.tensor([1, 9, 2]), torch.zeros(3, 2), torch.ones(1, 2)),
        others=[
            lambda: call(torch.tensor([9, 9, 2]), torch.zeros(3, 2), torch.ones(2, 2)),
            lambda: call(torch.tensor([1, 1, 2]), torch.zeros(3, 2), torch.ones(1, 2)),
        ],
    )


@program("first_stop_token", kind="data_dependent")
def _():
    def f(tokens, stop=0):
        hits = (tokens == stop).nonzero()
        end = hits[0].item() if len(hits) else len(tokens)
        return tokens[:end]

    return Case(
        f,
        example=lambda: call(torch.tensor([5, 0, 3])),
        others=[
            lambda: call(torch.tensor([5, 4, 0])),
            lambda: call(torch.tensor([5, 4, 3])),
            lambda: call(torch.tensor([5, 4, 3]), stop=4),
        ],
    )


@program("trim_padding_columns", kind="data_dependent")
def _():
    def f(tokens, pad=0):
        longest = (tokens != pad).sum(1).max()
        return tokens[:, :longest]

    return Case(
        f,
        example=lambda: call(torch.tensor([[1, 2, 0], [1, 0, 0]])),
        others=[lambda: call(torch.tensor([[1, 0, 0], [1, 0, 0]])), lambda: call(torch.tensor([[1, 2, 3, 4]]))],
    )


@program("sort_by_length_and_back", kind="data_dependent")
def _():
    def f(x, lengths):
        ordered, order = lengths.sort(descending=True)
        y = x[order] * ordered[:, None]
        return y[order.argsort()]

    return Case(
        f,
        example=lambda: call(torch.ones(2, 2), torch.tensor([1, 2])),
        others=[
            lambda: call(torch.ones(2, 2), torch.tensor([5, 2])),
            lambda: call(torch.ones(3, 2), torch.tensor([1, 2, 3])),
        ],
    )


@program("count_nonzero_denominator", kind="data_dependent")
def _():
    def f(x, mask):
        count = mask.sum().item()
        return (x * mask).sum() / count if count else x.new_zeros(())

    return Case(
        f,
        example=lambda: call(torch.ones(3), torch.tensor([1.0, 0, 1])),
        others=[
            lambda: call(torch.ones(3), torch.zeros(3)),
            lambda: call(torch.ones(3) * 2, torch.tensor([1.0, 0, 0])),
        ],
    )


@program("histogram_branch", kind="data_dependent")
def _():
    def f(x):
        counts = torch.histc(x, bins=4, min=0, max=4)
        peak = int(counts.argmax())
        return x - peak, {0: "low", 3: "high"}.get(peak, "middle")

    return Case(
        f,
        example=lambda: call(torch.tensor([0.5, 0.5, 3.5])),
        others=[lambda: call(torch.tensor([0.5, 3.5, 3.5])), lambda: call(torch.tensor([1.5, 1.5]))],
    )


@program("isin_and_set", kind="data_dependent")
def _():
    def f(tokens, banned):
        if set(tokens.tolist()) & set(banned):
            return tokens[~torch.isin(tokens, torch.tensor(banned))]
        return tokens

    return Case(
        f,
        example=lambda: call(torch.tensor([1, 2]), [7]),
        others=[lambda: call(torch.tensor([1, 7]), [7]), lambda: call(torch.tensor([1, 2]), [2, 1])],
    )
