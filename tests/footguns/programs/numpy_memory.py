"""Tensors and arrays that are one memory, and arrays that are state: a write through one is seen through all."""

import collections

import numpy as np
import torch

from tests.footguns.ledger import Case, call, program


def _ones(*shape):
    return lambda: call(torch.ones(*shape))


@program("written_item_of_array", kind="numpy_memory")
def _():
    def f(x):
        x.numpy()[0] = 7
        return x * 2

    return Case(f, example=_ones(2), others=[lambda: call(torch.zeros(3)), lambda: call(torch.zeros(0))])


@program("write_seen_from_both_sides", kind="numpy_memory")
def _():
    def f(x):
        y = x.clone()
        array = y.numpy()
        y.add_(1)
        first = array.sum()
        array *= 3
        return y, torch.tensor(first), array[::2]

    return Case(f, example=_ones(3), others=[lambda: call(torch.arange(4.0))])


@program("detached_data_is_shared", kind="numpy_memory")
def _():
    def f(x):
        y = x * 2
        y.detach().cpu().numpy()[:] = 0
        return y + 1

    return Case(
        f,
        example=lambda: call(torch.ones(3, requires_grad=True)),
        others=[lambda: call(torch.zeros(2, requires_grad=True))],
        gradients=True,
    )


@program("written_through_a_view_of_a_view", kind="numpy_memory")
def _():
    def f(x):
        view = x[1:].numpy().reshape(-1)[::2]
        view += 10
        torch.from_numpy(view).neg_()
        return x.clone()

    return Case(f, example=_ones(4), others=[lambda: call(torch.arange(6.0))])


@program("array_argument_is_written", kind="numpy_memory")
def _():
    def f(x, array):
        array[0] = x.sum()
        np.add(array, 1, out=array)
        return torch.from_numpy(array) * x.mean()

    return Case(
        f,
        example=lambda: call(torch.ones(2), np.zeros(3)),
        others=[lambda: call(torch.arange(3.0), np.arange(4.0)), lambda: call(torch.ones(2), np.zeros(3, np.float32))],
        aliasing=True,
    )


@program("arguments_share_memory", kind="numpy_memory")
def _():
    def f(x, array):
        array += 1
        return x * 2, array.sum()

    def shared():
        x = torch.ones(3)
        return call(x, x.numpy())

    return Case(
        f,
        example=lambda: call(torch.ones(3), np.ones(3, np.float32)),
        others=[shared, lambda: call(torch.ones(2), np.ones(4, np.float32))],
    )


@program("example_shares_memory", kind="numpy_memory")
def _():
    def f(x, array):
        x.mul_(2)
        return array + 1

    def shared():
        array = np.ones(3)
        return call(torch.from_numpy(array), array)

    return Case(f, example=shared, others=[lambda: call(torch.ones(3, dtype=torch.float64), np.ones(3))])


@program("table_around_is_written", kind="numpy_memory")
def _():
    def make():
        table = np.zeros(3)
        tensor = torch.from_numpy(table)

        def f(x):
            table[0] += x.sum().item()
            return tensor * 2

        return f

    return Case(make=make, example=_ones(2), others=[lambda: call(torch.arange(3.0))])


@program("constant_written_after_use", kind="numpy_memory")
def _():
    def f(x):
        steps = np.arange(3.0)
        tensor = torch.from_numpy(steps)
        before = steps * 2
        tensor += x
        return before, steps * 2, tensor

    return Case(f, example=_ones(3), others=[lambda: call(torch.arange(3.0)), lambda: call(torch.ones(1) * 5)])


@program("guard_after_array_write", kind="numpy_memory")
def _():
    def f(x, array):
        array[0] = 9
        if len(x) > 2:
            return x + 1
        return x - 1

    return Case(
        f,
        example=lambda: call(torch.ones(3), np.zeros(2)),
        others=[lambda: call(torch.ones(2), np.zeros(2)), lambda: call(torch.ones(5), np.zeros(3))],
    )


@program("guard_after_tensor_write_by_array", kind="numpy_memory")
def _():
    def f(x):
        x.numpy()[0] += 1
        return {f"{float(x[0]):.0f}": x * 1}

    return Case(f, example=_ones(3), others=[lambda: call(torch.zeros(3)), lambda: call(torch.ones(4))])


@program("array_in_a_module", kind="numpy_memory")
def _():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = np.arange(4.0, dtype=np.float32)
            self.linear = torch.nn.Linear(4, 2)

        def forward(self, x):
            return self.linear(x + torch.from_numpy(self.table))

    def other_values(model):
        model.table[0] = 5

    def make():
        torch.manual_seed(0)
        return Model()

    return Case(
        make=make,
        example=_ones(2, 4),
        others=[_ones(3, 4), _ones(1, 4)],
        between={"other 2": other_values},
    )


@program("array_of_a_module_replaced", kind="numpy_memory")
def _():
    class Scaled:
        def __init__(self):
            self.scale = np.array([1.0, 2.0], dtype=np.float32)

        def __call__(self, x):
            return x * torch.as_tensor(self.scale)

    made = []

    def make():
        made.append(Scaled())
        return made[-1]

    def replace(captured):
        made[-1].scale = np.array([5.0, 6.0], dtype=np.float32)

    return Case(make=make, example=_ones(3, 2), others=[_ones(1, 2), _ones(2, 2)], between={"other 2": replace})


@program("running_array_in_a_module", kind="numpy_memory")
def _():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.total = np.zeros(2)
            self.history = []

        def forward(self, x):
            self.total = self.total * 0.5 + x.numpy()
            self.history.append(self.total.copy())
            return torch.from_numpy(self.total) + len(self.history)

    return Case(
        make=Model,
        example=lambda: call(torch.ones(2, dtype=torch.float64)),
        others=[lambda: call(torch.zeros(2, dtype=torch.float64)), lambda: call(torch.ones(2, dtype=torch.float64))],
    )


@program("array_of_a_module_in_place", kind="numpy_memory")
def _():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.counts = np.zeros(3, dtype=np.int64)

        def forward(self, labels):
            np.add.at(self.counts, labels.numpy(), 1)
            return torch.from_numpy(self.counts.copy())

    return Case(
        make=Counter,
        example=lambda: call(torch.tensor([0, 1, 1])),
        others=[lambda: call(torch.tensor([2, 2])), lambda: call(torch.tensor([0]))],
    )


@program("result_is_memory_of_the_argument", kind="numpy_memory")
def _():
    def f(x):
        return x.numpy(), np.asarray(x), torch.from_numpy(x.numpy())[1:], np.array(x)

    return Case(f, example=_ones(3), others=[lambda: call(torch.arange(4.0))], aliasing=True)


@program("in_place_sort_and_shuffle", kind="numpy_memory")
def _():
    def f(x):
        array = x.numpy().copy()
        array.sort()
        array[::-1].sort()
        ranks = np.argsort(array, kind="stable")
        np.random.shuffle(ranks)
        array.fill(1) if len(x) > 100 else None
        return torch.from_numpy(array), torch.from_numpy(ranks)

    return Case(
        f,
        example=lambda: call(torch.tensor([3.0, 1.0, 2.0])),
        others=[lambda: call(torch.tensor([5.0, 7.0, 6.0, 1.0]))],
    )


@program("written_in_a_loop", kind="numpy_memory")
def _():
    def f(x):
        out = np.zeros(len(x), dtype=np.float32)
        total = 0.0
        for i in range(len(x)):
            total = 0.5 * total + float(x[i])
            out[i] = total
        return torch.from_numpy(out)

    return Case(f, example=_ones(3), others=[lambda: call(torch.arange(3.0)), lambda: call(torch.arange(5.0))])


@program("written_on_one_side", kind="numpy_memory")
def _():
    def f(x):
        array = x.numpy()
        if array.sum() > 2:
            array[0] = -1
        else:
            x.add_(1)
        return x * 2, array + 1

    return Case(f, example=_ones(3), others=[lambda: call(torch.zeros(3)), lambda: call(torch.ones(4))])


@program("opaque_call_writes_array", kind="numpy_memory")
def _():
    def f(x):
        array = x.numpy()
        np.nan_to_num(array, copy=False)
        np.put(array, [0], [4])
        np.clip(array, 0, 2, out=array)
        return x

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, float("nan")])),
        others=[lambda: call(torch.tensor([float("inf"), 2.0, 3.0]))],
        aliasing=True,
    )


@program("kept_in_a_list_outside", kind="numpy_memory")
def _():
    def make():
        seen = []

        def f(x):
            seen.append(x.numpy().copy())
            return torch.from_numpy(np.stack(seen)).sum()

        return f

    return Case(make=make, example=_ones(2), others=[_ones(2), _ones(2)])


@program("requires_grad_tensor", kind="numpy_memory")
def _():
    def f(x):
        return x * float(np.abs(x.detach().numpy()).max())

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, -3.0], requires_grad=True)),
        others=[lambda: call(torch.tensor([2.0, 5.0, 1.0], requires_grad=True))],
        gradients=True,
    )


@program("numpy_of_a_tensor_that_needs_gradients", kind="numpy_memory")
def _():
    def f(x):
        return torch.from_numpy(x.numpy() * 2)

    return Case(f, example=_ones(2), others=[lambda: call(torch.ones(2, requires_grad=True)), _ones(3)])


def _doubled_into(array, out):
    out[:] = np.frombuffer(memoryview(array), array.dtype) * 2
    return out.sum()


@program("island_writes_array", kind="numpy_memory")
def _():
    def f(x):
        out = np.zeros(len(x), dtype=np.float32)
        total = _doubled_into(x.numpy(), out)
        return torch.from_numpy(out) + total, x

    return Case(f, example=_ones(2), others=[lambda: call(torch.arange(3.0))])


@program("copy_for_some_strides", kind="numpy_memory")
def _():
    def f(x):
        array = np.ascontiguousarray(x.numpy())
        array[0, 0] = 77
        flat = x.numpy().reshape(-1)
        flat[-1] = 55
        return x.clone(), array, flat

    return Case(f, example=_ones(2, 3), others=[lambda: call(torch.zeros(3, 2).T), _ones(4, 4)])


@program("overlapping_write", kind="numpy_memory")
def _():
    def f(x):
        array = x.numpy()
        array[1:] += array[:-1]
        x[:-1] *= 2
        return array.copy()

    return Case(f, example=_ones(3), others=[lambda: call(torch.arange(5.0))])


@program("arrays_in_a_deque", kind="numpy_memory")
def _():
    recent = collections.deque([np.zeros(2), np.ones(2)], maxlen=2)

    def f(x):
        recent.append(x.numpy() * 2.0)
        return torch.from_numpy(recent[0] + recent[1])

    return Case(f, example=_ones(2), others=[lambda: call(torch.zeros(2)), _ones(2)])


@program("tables_kept_by_size", kind="numpy_memory")
def _():
    tables = {}

    def f(x):
        if len(x) not in tables:
            tables[len(x)] = np.hanning(len(x)).astype(np.float32)
        return x * torch.from_numpy(tables[len(x)])

    return Case(f, example=_ones(3), others=[_ones(3), _ones(5)], state=lambda: dict(tables))
