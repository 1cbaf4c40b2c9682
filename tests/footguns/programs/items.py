"""Numbers and lists taken out of tensors: `.item()`, `.tolist()`, `int()`, and masks made of lengths."""

import math

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from tests.footguns.ledger import Case, call, program


@program("item_as_factor", kind="items")
def _():
    def f(x):
        return x * x.max().item()

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 2.0])),
        others=[lambda: call(torch.tensor([1.0, 5.0])), lambda: call(torch.tensor([1, 5]))],
    )


@program("int_of_tensor_as_size", kind="items")
def _():
    def f(x, n):
        return torch.zeros(int(n)) + x

    return Case(
        f,
        example=lambda: call(torch.ones(1), torch.tensor(3)),
        others=[lambda: call(torch.ones(1), torch.tensor(5)), lambda: call(torch.ones(1), torch.tensor(2.7))],
    )


@program("tensor_as_index", kind="items")
def _():
    def f(x, position):
        return x[position] + x[:position].sum()

    return Case(
        f,
        example=lambda: call(torch.arange(5.0), torch.tensor(1)),
        others=[lambda: call(torch.arange(5.0), torch.tensor(3))],
    )


@program("tensor_as_range", kind="items")
def _():
    def f(x, steps):
        for step in range(steps):
            x = x + step
        return x

    return Case(
        f,
        example=lambda: call(torch.zeros(1), torch.tensor(2)),
        others=[lambda: call(torch.zeros(1), torch.tensor(5)), lambda: call(torch.zeros(1), 3)],
    )


@program("tolist_as_sizes", kind="items")
def _():
    def f(x, lengths):
        return [part.sum() for part in x.split(lengths.tolist())]

    return Case(
        f,
        example=lambda: call(torch.arange(5.0), torch.tensor([2, 3])),
        others=[
            lambda: call(torch.arange(5.0), torch.tensor([4, 1])),
            lambda: call(torch.arange(5.0), torch.tensor([1, 1, 3])),
        ],
    )


@program("tolist_result", kind="items")
def _():
    def f(x):
        return (x * 2).tolist(), [float(value) for value in x]

    return Case(
        f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2) * 4), lambda: call(torch.ones(3))]
    )


@program("tolist_then_tensor", kind="items")
def _():
    def f(x):
        values = x.tolist()
        values[0] += 10
        return torch.tensor(values)

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 2.0])),
        others=[lambda: call(torch.tensor([3.0, 4.0])), lambda: call(torch.tensor([3.0]))],
    )


@program("python_sum_of_tolist", kind="items")
def _():
    def f(x):
        values = x.tolist()
        return sum(values) / len(values), min(values), sorted(values)[len(values) // 2]

    return Case(
        f, example=lambda: call(torch.tensor([1.0, 2.0, 6.0])), others=[lambda: call(torch.tensor([7.0, 2.0, 6.0]))]
    )


@program("math_of_item", kind="items")
def _():
    def f(x):
        return math.sqrt(x.sum()) + math.floor(x.max().item()), x * math.exp(-x[0])

    return Case(f, example=lambda: call(torch.tensor([1.0, 3.0])), others=[lambda: call(torch.tensor([4.0, 5.0]))])


@program("mask_from_lengths", kind="items")
def _():
    def f(x, lengths):
        longest = int(lengths.max())
        mask = torch.arange(longest)[None] < lengths[:, None]
        return x[:, :longest] * mask

    return Case(
        f,
        example=lambda: call(torch.ones(2, 5), torch.tensor([1, 3])),
        others=[
            lambda: call(torch.ones(2, 5), torch.tensor([4, 2])),
            lambda: call(torch.ones(3, 6), torch.tensor([6, 1, 2])),
        ],
    )


@program("mask_from_list_of_lengths", kind="items")
def _():
    def f(x, lengths):
        mask = torch.zeros(len(lengths), max(lengths))
        for row, length in enumerate(lengths):
            mask[row, :length] = 1
        return x[:, : max(lengths)] * mask

    return Case(
        f,
        example=lambda: call(torch.ones(2, 4), [1, 3]),
        others=[lambda: call(torch.ones(2, 4), [4, 2]), lambda: call(torch.ones(3, 4), [1, 1, 2])],
    )


@program("loop_over_lengths", kind="items")
def _():
    def f(x, lengths):
        return torch.stack([row[:length].mean() for row, length in zip(x, lengths)])

    return Case(
        f,
        example=lambda: call(torch.arange(8.0).view(2, 4), torch.tensor([1, 3])),
        others=[lambda: call(torch.arange(8.0).view(2, 4), torch.tensor([4, 2]))],
    )


@program("pad_the_longest", kind="items")
def _():
    def f(sequences):
        lengths = torch.tensor([len(sequence) for sequence in sequences])
        return pad_sequence(sequences, batch_first=True), lengths

    return Case(
        f,
        example=lambda: call([torch.ones(2), torch.ones(3)]),
        others=[
            lambda: call([torch.ones(5), torch.ones(1)]),
            lambda: call([torch.ones(1), torch.ones(1), torch.ones(4)]),
        ],
    )


@program("packed_sequence", kind="items")
def _():
    rnn = torch.nn.GRU(2, 3, batch_first=True)

    def f(x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y, _ = rnn(packed)
        return pad_packed_sequence(y, batch_first=True)[0]

    return Case(
        f,
        example=lambda: call(torch.randn(2, 4, 2), torch.tensor([2, 4])),
        others=[
            lambda: call(torch.randn(2, 4, 2), torch.tensor([3, 1])),
            lambda: call(torch.randn(3, 4, 2), torch.tensor([4, 4, 1])),
        ],
    )


@program("threshold_by_quantile_item", kind="items")
def _():
    def f(x, keep=0.5):
        k = max(1, round(keep * x.numel()))
        threshold = x.topk(k).values.min().item()
        return torch.where(x >= threshold, x, 0.0)

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 2.0, 3.0, 4.0])),
        others=[
            lambda: call(torch.tensor([9.0, 2.0, 3.0, 8.0])),
            lambda: call(torch.tensor([1.0, 2.0, 3.0, 4.0]), keep=0.25),
        ],
    )


@program("counter_from_item", kind="items")
def _():
    def f(x):
        hits = 0
        for value in x:
            hits += int(value > 0)
        return x * hits

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, -1.0])),
        others=[lambda: call(torch.tensor([1.0, 2.0])), lambda: call(torch.tensor([-1.0, -2.0, 3.0]))],
    )


@program("item_is_dictionary_key", kind="items")
def _():
    names = {0: 1.0, 1: 20.0, 2: 300.0}

    def f(logits):
        return logits * names[logits.argmax().item()]

    return Case(f, example=lambda: call(torch.tensor([1.0, 0, 0])), others=[lambda: call(torch.tensor([0, 0, 1.0]))])


@program("item_is_string", kind="items")
def _():
    labels = ["cat", "dog", "bird"]

    def f(logits):
        best = logits.argmax(-1)
        return [labels[index] for index in best]

    return Case(
        f,
        example=lambda: call(torch.eye(3)),
        others=[lambda: call(torch.eye(3).flip(0)), lambda: call(torch.eye(3)[1:])],
    )


@program("complex_and_bool_item", kind="items")
def _():
    def f(x, flag):
        return x * (2.0 if flag.item() else 3.0), complex(x[0]), bool(flag), flag.item()

    return Case(
        f,
        example=lambda: call(torch.ones(1), torch.tensor(True)),
        others=[lambda: call(torch.ones(1) * 4, torch.tensor(False))],
    )


@program("nested_tolist", kind="items")
def _():
    def f(edges, x):
        out = torch.zeros_like(x)
        for source, target in edges.tolist():
            out[target] = out[target] + x[source]
        return out

    return Case(
        f,
        example=lambda: call(torch.tensor([[0, 1], [1, 2]]), torch.ones(3)),
        others=[
            lambda: call(torch.tensor([[2, 0], [1, 0]]), torch.ones(3)),
            lambda: call(torch.tensor([[0, 1]]), torch.ones(3)),
        ],
    )


@program("bounding_box", kind="items")
def _():
    def f(image, box):
        left, top, right, bottom = [int(value) for value in box]
        return image[top:bottom, left:right].mean()

    return Case(
        f,
        example=lambda: call(torch.arange(16.0).view(4, 4), torch.tensor([0, 0, 2, 2])),
        others=[lambda: call(torch.arange(16.0).view(4, 4), torch.tensor([1, 2, 4, 4]))],
    )


@program("cu_seqlens", kind="items")
def _():
    def f(x, bounds):
        return torch.cat([x[start:end] - x[start:end].mean() for start, end in zip(bounds[:-1], bounds[1:])])

    return Case(
        f,
        example=lambda: call(torch.arange(6.0), torch.tensor([0, 2, 6])),
        others=[
            lambda: call(torch.arange(6.0), torch.tensor([0, 5, 6])),
            lambda: call(torch.arange(6.0), torch.tensor([0, 1, 3, 6])),
        ],
    )
