"""Small functions as people write them every day: settings in a stack, padding, weighted losses, optional arguments."""

import contextlib
import dataclasses
import random
from dataclasses import dataclass, field

import torch

from tests.footguns.ledger import Case, call, program


@program("settings_in_a_stack", kind="everyday")
def _():
    stack = [1.0]

    def f(x, scale):
        stack.append(scale)
        try:
            return x * stack[-1] * len(stack)
        finally:
            stack.pop()

    return Case(
        f,
        example=lambda: call(torch.ones(2), 3.0),
        others=[lambda: call(torch.ones(3), 5.0), lambda: call(torch.ones(3), 2)],
        state=lambda: stack,
    )


@program("settings_in_a_stack_of_a_class", kind="everyday")
def _():
    class Scope:
        current = [1.0]

        def __init__(self, scale):
            self.scale = scale

        def __enter__(self):
            Scope.current.append(self.scale)
            return self

        def __exit__(self, *error):
            Scope.current.pop()
            return False

    def f(x, scale):
        with Scope(scale) as outer:
            y = x * Scope.current[-1]
            with Scope(outer.scale * 2):
                y = y + Scope.current[-1]
        return y * Scope.current[-1]

    return Case(
        f,
        example=lambda: call(torch.ones(2), 3.0),
        others=[lambda: call(torch.ones(3), 5.0), lambda: call(torch.ones(3), 2)],
        state=lambda: Scope.current,
    )


@program("tensors_in_a_stack_of_a_class", kind="everyday")
def _():
    class Given:
        stack = []

        @classmethod
        @contextlib.contextmanager
        def push(cls, tensor):
            cls.stack.append(tensor)
            try:
                yield cls.stack[0]
            finally:
                cls.stack.pop()

    def inner():
        return Given.stack[-1] + len(Given.stack)

    def f(x, y):
        with Given.push(x) as first:
            with Given.push(y):
                z = inner()
            w = inner()
        return first + z + w, len(Given.stack)

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(2) * 3),
        others=[lambda: call(torch.ones(3), torch.ones(3) * 2)],
        state=lambda: Given.stack,
    )


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(5, 3)
        self.out = torch.nn.Linear(3, 5, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, tokens):
        return self.out(self.embed(tokens)), self.out.weight is self.embed.weight


@program("tied_weights_taken_apart_later", kind="everyday")
def _():
    def take_apart(module):
        module.out.weight = torch.nn.Parameter(torch.ones(5, 3))

    return Case(
        make=Tied,
        example=lambda: call(torch.tensor([1, 2])),
        others=[lambda: call(torch.tensor([1, 2, 4])), lambda: call(torch.tensor([3]))],
        between={"other 2": take_apart},
    )


@program("weights_tied_later", kind="everyday")
def _():
    def make():
        made = Tied()
        made.out.weight = torch.nn.Parameter(torch.ones(5, 3))
        return made

    def tie(module):
        module.out.weight = module.embed.weight

    return Case(
        make=make,
        example=lambda: call(torch.tensor([1, 2])),
        others=[lambda: call(torch.tensor([1, 2, 4])), lambda: call(torch.tensor([3]))],
        between={"other 2": tie},
    )


@program("as_many_choices_as_asked_for", kind="everyday")
def _():
    def f(x, k):
        places = random.choices(range(len(x)), k=k)
        return x[places] + random.uniform(0, k), places

    return Case(
        f,
        example=lambda: call(torch.ones(3), 2),
        others=[lambda: call(torch.ones(3), 3), lambda: call(torch.ones(3), 1)],
    )


@program("padded_to_the_longest_of_any_number", kind="everyday")
def _():
    def pad(sequences, least=0):
        longest = max([len(one) for one in sequences] + [least])
        out = torch.full((len(sequences), longest), -1.0)
        for row, one in enumerate(sequences):
            out[row, : len(one)] = one
        return out, (out != -1).sum(-1)

    return Case(
        pad,
        example=lambda: call([torch.ones(2), torch.ones(3)]),
        others=[
            lambda: call([torch.ones(4)]),
            lambda: call([torch.ones(1), torch.ones(2), torch.ones(5)]),
            lambda: call([torch.ones(1), torch.ones(1)], 7),
            lambda: call([]),
        ],
    )


@program("weighted_losses", kind="everyday")
def _():
    def weigh(losses, weights):
        total = 0.0
        for loss, weight in zip(losses, weights):
            total = total + weight * loss.mean()
        return total, total / len(losses)

    return Case(
        weigh,
        example=lambda: call([torch.ones(2), torch.ones(3)], [1.0, 2.0]),
        others=[
            lambda: call([torch.ones(2)], [3.0]),
            lambda: call([torch.ones(2), torch.ones(1)], [1.0]),
            lambda: call([torch.ones(2), torch.tensor([True])], [1.0, 2.0]),
        ],
    )


@program("list_whose_items_differ_in_kind", kind="everyday")
def _():
    def mixed(tensors):
        total = 0
        for x in tensors:
            total = total + x.sum() if x.is_floating_point() else total - 1
        return total, [x.dtype for x in tensors]

    return Case(
        mixed,
        example=lambda: call([torch.ones(2), torch.ones(2)]),
        others=[
            lambda: call([torch.ones(2)]),
            lambda: call([torch.ones(2), torch.tensor([1, 2]), torch.ones(2)]),
            lambda: call([]),
        ],
    )


@program("list_whose_items_are_written_to", kind="everyday")
def _():
    def write(tensors):
        for x in tensors:
            x += 1
        return sum(x.sum() for x in tensors)

    def shared():
        x = torch.ones(2)
        return call([x, x])

    return Case(
        write,
        example=lambda: call([torch.ones(2), torch.ones(3)]),
        others=[shared, lambda: call([torch.ones(2), torch.ones(1), torch.ones(4)]), lambda: call([torch.ones(1)])],
        aliasing=True,
    )


@program("tensors_of_a_list_as_keys", kind="everyday")
def _():
    def count(tensors, x):
        places = {one: place for place, one in enumerate(tensors)}
        return len(places) * x

    def shared():
        x = torch.ones(2)
        return call([x, x], x)

    return Case(
        count,
        example=lambda: call([torch.ones(2), torch.ones(3)], torch.ones(1)),
        others=[shared, lambda: call([torch.ones(2), torch.ones(1)], torch.ones(1))],
    )


@dataclass
class Batch:
    x: torch.Tensor
    mask: torch.Tensor | None = None
    scale: float = 1.0
    names: list = field(default_factory=list)

    @property
    def size(self):
        return self.x.shape[0]


@program("dataclass_with_optional_fields", kind="everyday")
def _():
    def use(batch):
        y = batch.x * batch.scale
        if batch.mask is not None:
            y = y * batch.mask[:, None]
        return dataclasses.replace(batch, x=y, names=[*batch.names, str(batch.size)])

    return Case(
        use,
        example=lambda: call(Batch(torch.ones(3, 2))),
        others=[
            lambda: call(Batch(torch.ones(3, 2), torch.tensor([1.0, 0, 1]))),
            lambda: call(Batch(torch.ones(2, 2), scale=3.0, names=["a"])),
        ],
    )


@program("mask_and_scale_that_may_be_missing", kind="everyday")
def _():
    def use(x, mask=None, scale=None):
        if mask is not None:
            x = x.masked_fill(~mask, 0)
        scale = scale or 5.0
        return x * scale

    return Case(
        use,
        example=lambda: call(torch.ones(3)),
        others=[
            lambda: call(torch.ones(3), mask=torch.tensor([True, False, True])),
            lambda: call(torch.ones(3), scale=2.0),
            lambda: call(torch.ones(3), mask=None, scale=None),
            lambda: call(torch.ones(2), mask=torch.tensor([1, 0])),
        ],
    )


@program("labels_that_may_be_missing", kind="everyday")
def _():
    def loss(logits, labels):
        if labels is None:
            return torch.zeros(()), logits
        return torch.nn.functional.cross_entropy(logits, labels, ignore_index=-100), logits

    return Case(
        loss,
        example=lambda: call(torch.ones(3, 4), torch.tensor([0, 1, 2])),
        others=[lambda: call(torch.ones(2, 4), torch.tensor([3, -100])), lambda: call(torch.ones(5, 4), None)],
    )


@program("optional_tensor_that_may_be_the_other_one", kind="everyday")
def _():
    def use(x, other=None):
        seen = {x: 1}
        if other is None:
            return x
        return x + 1 if other in seen else x + other

    def twice():
        x = torch.ones(2)
        return call(x, x)

    return Case(
        use,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2), torch.ones(2) * 3), twice],
    )


@program("optional_tensor_of_another_rank", kind="everyday")
def _():
    def use(x, bias=None):
        if bias is None:
            return x
        return x + (bias if bias.dim() == x.dim() else bias[:, None])

    return Case(
        use,
        example=lambda: call(torch.ones(2, 2)),
        others=[
            lambda: call(torch.ones(2, 2), torch.ones(2, 2)),
            lambda: call(torch.ones(2, 2), torch.tensor([1.0, 2.0])),
            lambda: call(torch.ones(2, 2), torch.ones(2, 2, dtype=torch.float64)),
            lambda: call(torch.ones(2, 2), torch.ones(2, 2, requires_grad=True)),
        ],
        gradients=True,
    )


@program("rows_that_are_kept_if_there_are_any", kind="everyday")
def _():
    def keep(x):
        kept = [row for row in x if row.sum() > 0]
        if kept:
            return torch.stack(kept), len(kept)
        return x[:0], not kept

    return Case(
        keep,
        example=lambda: call(torch.tensor([[1.0], [-1.0]])),
        others=[
            lambda: call(torch.tensor([[1.0], [-1.0], [3.0]])),
            lambda: call(torch.tensor([[-1.0]])),
            lambda: call(torch.zeros(0, 1)),
        ],
    )


@program("list_that_may_be_empty", kind="everyday")
def _():
    def join(tensors):
        if not tensors:
            return None
        return torch.cat(tensors) if len(tensors) > 1 else tensors[0]

    return Case(
        join,
        example=lambda: call([torch.ones(2), torch.ones(3)]),
        others=[lambda: call([torch.ones(1)]), lambda: call([]), lambda: call([torch.ones(1)] * 3)],
        aliasing=True,
    )
