"""Lists, dictionaries, deques, sets and generators of varying size, order and content in the arguments."""

import collections
import heapq
import itertools
from operator import itemgetter

import torch

from tests.footguns.ledger import Case, call, program


@program("list_of_varying_length", kind="containers")
def _():
    def f(tensors):
        return torch.cat(tensors).sum()

    return Case(
        f,
        example=lambda: call([torch.ones(2), torch.ones(3)]),
        others=[lambda: call([torch.ones(2)] * 4), lambda: call([torch.ones(1)])],
    )


@program("mean_over_list", kind="containers")
def _():
    def f(tensors):
        return sum(tensors) / len(tensors)

    return Case(
        f,
        example=lambda: call([torch.ones(2), torch.ones(2)]),
        others=[
            lambda: call([torch.ones(2), torch.ones(2), torch.ones(2) * 7]),
            lambda: call((torch.ones(2), torch.ones(2) * 2)),
        ],
    )


@program("dict_with_other_keys", kind="containers")
def _():
    def f(batch):
        return {key: value * 2 for key, value in batch.items()}

    return Case(
        f,
        example=lambda: call({"a": torch.ones(2), "b": torch.zeros(2)}),
        others=[
            lambda: call({"a": torch.ones(2), "c": torch.zeros(2)}),
            lambda: call({"a": torch.ones(2)}),
            lambda: call({}),
        ],
    )


@program("dict_in_other_order", kind="containers")
def _():
    def f(batch):
        first, second = batch.values()
        return first - second

    return Case(
        f,
        example=lambda: call({"a": torch.ones(2), "b": torch.zeros(2)}),
        others=[lambda: call({"b": torch.zeros(2), "a": torch.ones(2)})],
    )


@program("optional_key", kind="containers")
def _():
    def f(batch):
        x = batch["x"]
        if "mask" in batch:
            x = x * batch["mask"]
        return x * batch.get("scale", 1.0)

    return Case(
        f,
        example=lambda: call({"x": torch.ones(3)}),
        others=[
            lambda: call({"x": torch.ones(3), "mask": torch.tensor([1.0, 0, 1])}),
            lambda: call({"x": torch.ones(3), "scale": 3.0}),
        ],
    )


@program("nested_nest", kind="containers")
def _():
    def f(nest):
        if isinstance(nest, dict):
            return {key: f(value) for key, value in nest.items()}
        if isinstance(nest, (list, tuple)):
            return type(nest)(f(value) for value in nest)
        return nest + 1

    return Case(
        f,
        example=lambda: call({"a": [torch.ones(1), (torch.ones(2),)]}),
        others=[
            lambda: call({"a": [torch.ones(1)], "b": torch.ones(2)}),
            lambda: call([torch.ones(1), {"z": torch.ones(3)}]),
        ],
    )


@program("sorted_by_length", kind="containers")
def _():
    def f(sequences):
        return torch.cat(sorted(sequences, key=len, reverse=True))

    return Case(
        f,
        example=lambda: call([torch.ones(1), torch.zeros(3)]),
        others=[
            lambda: call([torch.ones(4), torch.zeros(3)]),
            lambda: call([torch.ones(1), torch.zeros(3), torch.ones(2) * 5]),
        ],
    )


@program("sorted_by_value", kind="containers")
def _():
    def f(scores):
        ranked = sorted(scores, key=lambda score: score.item())
        return torch.stack(ranked)

    return Case(
        f,
        example=lambda: call([torch.tensor(2.0), torch.tensor(1.0)]),
        others=[lambda: call([torch.tensor(1.0), torch.tensor(2.0)])],
    )


@program("sorted_keys", kind="containers")
def _():
    def f(batch):
        return torch.cat([batch[key] for key in sorted(batch)])

    return Case(
        f,
        example=lambda: call({"a": torch.ones(1), "b": torch.zeros(1)}),
        others=[
            lambda: call({"b": torch.ones(1), "a": torch.zeros(1)}),
            lambda: call({"z": torch.ones(1), "c": torch.zeros(1)}),
        ],
    )


@program("starred_unpacking", kind="containers")
def _():
    def f(tensors):
        first, *rest, last = tensors
        return first - last + (torch.stack(rest).sum(0) if rest else 0)

    return Case(
        f,
        example=lambda: call([torch.ones(2), torch.zeros(2)]),
        others=[lambda: call([torch.ones(2), torch.ones(2) * 5, torch.zeros(2)])],
    )


@program("unpacking_a_tensor", kind="containers")
def _():
    def f(x):
        a, *rest = x
        return a * len(rest)

    return Case(
        f,
        example=lambda: call(torch.randn(3, 2)),
        others=[lambda: call(torch.randn(5, 2)), lambda: call(torch.randn(1, 2))],
    )


@program("unpacking_a_shape", kind="containers")
def _():
    def f(x):
        *batch, height, width = x.shape
        return x.reshape(-1, height * width), tuple(batch)

    return Case(
        f,
        example=lambda: call(torch.randn(2, 3, 4)),
        others=[lambda: call(torch.randn(2, 5, 3, 4)), lambda: call(torch.randn(3, 4))],
    )


@program("generator_argument", kind="containers")
def _():
    def f(tensors):
        total = 0
        for tensor in tensors:
            total = total * 2 + tensor
        return total

    return Case(
        f,
        example=lambda: call(torch.ones(2) * n for n in range(3)),
        others=[lambda: call(torch.ones(2) * n for n in range(5)), lambda: call(iter([torch.ones(2)]))],
    )


@program("generator_inside", kind="containers")
def _():
    def windows(x, size):
        for start in range(0, len(x), size):
            yield x[start : start + size]

    def f(x, size):
        return [window.sum() for window in windows(x, size)]

    return Case(
        f,
        example=lambda: call(torch.arange(6.0), 2),
        others=[lambda: call(torch.arange(6.0), 4), lambda: call(torch.arange(9.0), 2)],
    )


@program("deque_of_frames", kind="containers")
def _():
    def f(frames, frame):
        frames.append(frame)
        return torch.stack(tuple(frames)).mean(0)

    return Case(
        f,
        example=lambda: call(collections.deque([torch.ones(2)], maxlen=2), torch.zeros(2)),
        others=[
            lambda: call(collections.deque([torch.ones(2), torch.ones(2) * 3], maxlen=2), torch.zeros(2)),
            lambda: call(collections.deque([], maxlen=4), torch.ones(2)),
        ],
    )


@program("list_argument_grows", kind="containers")
def _():
    def f(history, x):
        history.append(x * 2)
        return torch.stack(history).sum(0)

    return Case(
        f,
        example=lambda: call([], torch.ones(2)),
        others=[lambda: call([torch.ones(2)], torch.ones(2)), lambda: call([torch.ones(2)] * 3, torch.ones(2))],
    )


@program("dict_argument_updated", kind="containers")
def _():
    def f(batch):
        batch["y"] = batch.pop("x") * 2
        return len(batch)

    return Case(
        f, example=lambda: call({"x": torch.ones(2)}), others=[lambda: call({"x": torch.ones(3), "z": torch.zeros(1)})]
    )


@program("defaultdict_of_groups", kind="containers")
def _():
    def f(values, labels):
        groups = collections.defaultdict(list)
        for value, label in zip(values, labels):
            groups[label].append(value)
        return {label: torch.stack(group).mean() for label, group in groups.items()}

    return Case(
        f,
        example=lambda: call(torch.arange(4.0), ["a", "b", "a", "b"]),
        others=[
            lambda: call(torch.arange(4.0), ["a", "a", "a", "b"]),
            lambda: call(torch.arange(3.0), ["x", "y", "z"]),
        ],
    )


@program("group_by_tensor_label", kind="containers")
def _():
    def f(values, labels):
        groups = {}
        for value, label in zip(values, labels.tolist()):
            groups.setdefault(label, []).append(value)
        return [torch.stack(groups[label]).sum() for label in sorted(groups)]

    return Case(
        f,
        example=lambda: call(torch.arange(3.0), torch.tensor([0, 1, 0])),
        others=[
            lambda: call(torch.arange(3.0), torch.tensor([1, 1, 0])),
            lambda: call(torch.arange(3.0), torch.tensor([0, 1, 2])),
        ],
    )


@program("heap_of_scores", kind="containers")
def _():
    def f(scores, k):
        best = heapq.nlargest(k, ((score.item(), index) for index, score in enumerate(scores)))
        return torch.tensor([index for _, index in best])

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 3.0, 2.0]), 2),
        others=[lambda: call(torch.tensor([5.0, 3.0, 2.0]), 2), lambda: call(torch.tensor([1.0, 3.0, 2.0]), 1)],
    )


@program("zip_longest_and_accumulate", kind="containers")
def _():
    def f(a, b):
        pairs = itertools.zip_longest(a, b, fillvalue=torch.zeros(()))
        return list(itertools.accumulate(x - y for x, y in pairs))

    return Case(
        f,
        example=lambda: call([torch.tensor(1.0)], [torch.tensor(2.0), torch.tensor(3.0)]),
        others=[
            lambda: call([torch.tensor(1.0), torch.tensor(9.0), torch.tensor(4.0)], [torch.tensor(2.0)]),
            lambda: call([], []),
        ],
    )


@program("set_of_names", kind="containers")
def _():
    def f(x, flags):
        if "double" in flags:
            x = x * 2
        if flags & {"shift", "move"}:
            x = x + 1
        return x

    return Case(
        f,
        example=lambda: call(torch.ones(2), {"double"}),
        others=[
            lambda: call(torch.ones(2), {"shift"}),
            lambda: call(torch.ones(2), frozenset(["double", "move"])),
            lambda: call(torch.ones(2), set()),
        ],
    )


@program("itemgetter_of_keys", kind="containers")
def _():
    def f(rows, key):
        return torch.stack(list(map(itemgetter(key), rows)))

    return Case(
        f,
        example=lambda: call([{"a": torch.ones(1), "b": torch.zeros(1)}], "a"),
        others=[
            lambda: call([{"a": torch.ones(1), "b": torch.zeros(1)}], "b"),
            lambda: call([{"a": torch.ones(1)}, {"a": torch.zeros(1)}], "a"),
        ],
    )


@program("list_multiplied", kind="containers")
def _():
    def f(x, times):
        return torch.cat([x] * times, dim=0)

    return Case(
        f,
        example=lambda: call(torch.ones(2), 2),
        others=[lambda: call(torch.ones(2), 3), lambda: call(torch.ones(1), 1)],
    )


@program("same_tensor_twice_in_list", kind="containers")
def _():
    def f(tensors):
        first, second = tensors
        first.add_(1)
        return second * 2

    def shared():
        tensor = torch.ones(2)
        return [tensor, tensor]

    return Case(f, example=lambda: call([torch.ones(2), torch.ones(2)]), others=[lambda: call(shared())])


@program("dict_of_which_some_keys_are_read", kind="containers")
def _():
    def f(batch):
        x = batch["x"] * 2
        if "mask" in batch:
            x = x * batch["mask"]
        return x + batch.get("bias", 0)

    x = torch.tensor([1.0, -2.0])
    return Case(
        f,
        example=lambda: call({"x": x.clone()}),
        others=[
            lambda: call({"name": "a", "x": x + 1}),
            lambda: call({"x": x * 3, "more": {"x": [1]}}),
            lambda: call({"x": x.clone(), "mask": x > 0}),
            lambda: call({"bias": 3, "x": x.clone()}),
            lambda: call({"y": x.clone()}),
        ],
    )


@program("dict_read_by_key_and_once_as_a_whole", kind="containers")
def _():
    def f(batch):
        first = batch["x"] * 2
        return first + sum(batch.values())

    return Case(
        f,
        example=lambda: call({"x": torch.ones(2), "y": torch.ones(2)}),
        others=[
            lambda: call({"x": torch.ones(2), "y": torch.ones(2), "z": torch.ones(2)}),
            lambda: call({"x": torch.ones(2)}),
        ],
    )


@program("dict_with_more_entries_in_another_order", kind="containers")
def _():
    def f(inputs, *, scale=1.0):
        return inputs["a"] - inputs["b"] * scale

    return Case(
        f,
        example=lambda: call({"a": torch.ones(2), "b": torch.zeros(2)}),
        others=[
            lambda: call({"b": torch.ones(3) * 2, "a": torch.ones(3)}),
            lambda: call({"b": torch.ones(3) * 2, "c": object(), "a": torch.ones(3)}, scale=3.0),
        ],
    )
