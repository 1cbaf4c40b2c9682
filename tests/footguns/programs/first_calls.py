"""State that is None until the first call, and what lists of any length hold under several names."""

import math

import torch

from tests.footguns.ledger import Case, call, program


class Hidden(torch.nn.Module):
    """Keeps a hidden state from call to call."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.cell = torch.nn.GRUCell(2, 3)
        self.hidden = None

    def forward(self, x):
        if self.hidden is None:
            self.hidden = x.new_zeros(x.shape[0], 3)
        self.hidden = self.cell(x, self.hidden).detach()
        return self.hidden * 2


@program("hidden_state_of_a_cell", kind="first_calls")
def _():
    return Case(
        make=Hidden,
        example=lambda: call(torch.ones(2, 2)),
        others=[lambda: call(torch.zeros(2, 2)), lambda: call(torch.full((2, 2), 3.0))],
        state=lambda module: module.hidden,
    )


class Cache(torch.nn.Module):
    """Keeps keys and values, of which it asks for the keys alone."""

    def __init__(self):
        super().__init__()
        self.keys = None
        self.values = None

    def forward(self, x):
        if self.keys is None:
            self.keys, self.values = x, x * 2
        else:
            self.keys = torch.cat([self.keys, x], 1)
            self.values = torch.cat([self.values, x * 2], 1)
        return (x @ self.keys.mT).softmax(-1) @ self.values


@program("keys_and_values_of_a_cache", kind="first_calls")
def _():
    return Case(
        make=Cache,
        example=lambda: call(torch.ones(1, 2, 3)),
        others=[lambda: call(torch.ones(1, 1, 3)), lambda: call(torch.full((1, 3, 3), 2.0))],
        state=lambda module: (module.keys, module.values),
    )


@program("cache_that_is_emptied", kind="first_calls")
def _():
    class Emptied(Cache):
        def forward(self, x, reset=False):
            if reset:
                self.keys = self.values = None
            return super().forward(x)

    return Case(
        make=Emptied,
        example=lambda: call(torch.ones(1, 2, 3)),
        others=[lambda: call(torch.ones(1, 1, 3)), lambda: call(torch.ones(2, 3, 3), True)],
        state=lambda module: (module.keys, module.values),
    )


class Last(torch.nn.Module):
    """Gives what has changed since the last call."""

    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        out = x if self.last is None else x - self.last
        self.last = x
        return out


@program("keeps_its_argument", kind="first_calls")
def _():
    return Case(
        make=Last,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2) * 2), lambda: call(torch.ones(2, dtype=torch.float64))],
        state=lambda module: module.last,
        aliasing=True,
    )


@program("each_layer_keeps_its_argument", kind="first_calls")
def _():
    class Layers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([Last(), Last(), Last()])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x) + 1
            return x

    return Case(
        make=Layers,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2) * 2), lambda: call(torch.ones(2) * 4)],
        state=lambda module: [layer.last for layer in module.layers],
    )


@program("filled_one_after_another", kind="first_calls")
def _():
    class Filled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.total = None
            self.mean = None

        def forward(self, x):
            if self.total is None:
                self.total = x.sum()
            elif self.mean is None:
                self.mean = x.mean()
            return x + self.total + (0 if self.mean is None else self.mean)

    return Case(
        make=Filled,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(3)), lambda: call(torch.ones(2)), lambda: call(torch.ones(2) * 5)],
        state=lambda module: (module.total, module.mean),
    )


@program("written_to_in_place_from_the_second_call_on", kind="first_calls")
def _():
    class Sum(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.sum = None

        def forward(self, x):
            if self.sum is not None:
                self.sum.add_(x)
            else:
                self.sum = torch.zeros_like(x)
            return self.sum

    return Case(
        make=Sum,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2) * 2), lambda: call(torch.ones(2))],
        state=lambda module: module.sum,
    )


@program("two_names_of_one_tensor_from_the_first_call_on", kind="first_calls")
def _():
    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one = None
            self.part = None

        def forward(self, x):
            if self.one is None:
                self.one = x * 2
                self.part = self.one.view(-1)[:1]
            self.one += 1
            return self.one + self.part

    return Case(
        make=Both,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2) * 2), lambda: call(torch.ones(2))],
        state=lambda module: (module.one, module.part),
    )


@program("average_that_is_a_number", kind="first_calls")
def _():
    class Average(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.average = None

        def forward(self, x):
            mean = x.mean().item()
            self.average = mean if self.average is None else 0.9 * self.average + 0.1 * mean
            return x / self.average

    return Case(
        make=Average,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2) * 2), lambda: call(torch.ones(3) * 7)],
        state=lambda module: module.average,
    )


@program("number_of_the_last_call_in_a_closure", kind="first_calls")
def _():
    last = None

    def change(x):
        nonlocal last
        total = x.sum().item()
        difference = 0.0 if last is None else total - last
        last = total
        return x * difference, difference

    return Case(
        change,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(3)), lambda: call(torch.ones(1)), lambda: call(torch.tensor([1, 2]))],
        state=lambda: last,
    )


@program("buffer_that_is_none_at_first", kind="first_calls")
def _():
    class Table(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", None)

        def forward(self, x):
            if self.table is None or self.table.shape[0] < len(x):
                self.table = torch.arange(float(len(x)))
            return x + self.table[: len(x)]

    return Case(
        make=Table,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2) * 2), lambda: call(torch.ones(4)), lambda: call(torch.ones(3))],
        state=lambda module: module.table,
    )


@program("optional_tensor_asked_for_its_dtype", kind="first_calls")
def _():
    def masked(x, mask=None):
        if mask is None:
            return x
        if mask.dtype == torch.bool:
            return x.masked_fill(mask, 0)
        return x + mask

    return Case(
        masked,
        example=lambda: call(torch.ones(2, 2)),
        others=[
            lambda: call(torch.ones(2, 2), torch.ones(2, 2).bool()),
            lambda: call(torch.ones(2, 2), torch.ones(2, 2)),
            lambda: call(torch.ones(2, 2), torch.tensor([True, False])),
        ],
    )


PAIR = (lambda: call([torch.tensor([2.0]), torch.tensor([3.0])]), lambda: call([torch.tensor([5.0]), torch.ones(1)]))


@program("first_of_a_list_beside_each", kind="first_calls")
def _():
    def scale(tensors):
        first = tensors[0]
        return [x * first for x in tensors]

    return Case(scale, example=PAIR[0], others=[PAIR[1], lambda: call([torch.ones(2)])])


@program("first_of_a_list_that_a_loop_has_made", kind="first_calls")
def _():
    def scale(x):
        rows = [row * 1 for row in x]
        first = rows[0]
        return [row * first for row in rows]

    return Case(
        scale,
        example=lambda: call(torch.tensor([[2.0], [3.0]])),
        others=[lambda: call(torch.tensor([[5.0], [7.0]])), lambda: call(torch.tensor([[5.0], [7.0], [math.e]]))],
    )


@program("first_and_last_of_one", kind="first_calls")
def _():
    def ends(x):
        rows = [row * 1 for row in x]
        return rows[0], rows[-1]

    return Case(
        ends,
        example=lambda: call(torch.tensor([[2.0]])),
        others=[lambda: call(torch.tensor([[5.0], [7.0]])), lambda: call(torch.tensor([[1.0], [2.0], [4.0]]))],
    )


@program("one_item_of_a_list_by_two_numbers", kind="first_calls")
def _():
    def choose(tensors, i, j):
        return tensors[i] * 10 + tensors[j], tensors[-1]

    def make(i, j):
        return lambda: call([torch.tensor([2.0]), torch.tensor([3.0]), torch.tensor([4.0])], i, j)

    return Case(choose, example=make(1, 1), others=[make(0, 1), make(2, 0)])


@program("tensor_beside_a_list_that_holds_it", kind="first_calls")
def _():
    def multiply(tensors, x):
        return [one * x for one in tensors]

    def shared():
        x = torch.tensor([2.0])
        return call([x, torch.tensor([3.0])], x)

    return Case(
        multiply, example=shared, others=[lambda: call([torch.tensor([5.0]), torch.tensor([7.0])], torch.ones(1))]
    )


@program("iterator_beside_the_list_that_it_walks", kind="first_calls")
def _():
    def shift(tensors):
        ahead = iter(tensors)
        first = next(ahead)
        return [next(ahead) * one + first for one in tensors[:1]]

    return Case(shift, example=PAIR[0], others=[PAIR[1]])
