"""State kept between calls: buffers, counters, histories, running statistics, caches of keys and of shapes."""

import collections

import torch
from torch import nn

from tests.footguns.ledger import Case, call, program


@program("call_counter", kind="state")
def _():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    return Case(
        Counter(), example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3))], state=lambda m: m.calls
    )


@program("counter_with_period", kind="state")
def _():
    class Periodic(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = 0

        def forward(self, x):
            self.step += 1
            if self.step % 3 == 0:
                return x * 10
            return x

    return Case(
        Periodic(),
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2)), lambda: call(torch.ones(2))],
        state=lambda m: m.step,
    )


@program("buffer_updated_in_place", kind="state")
def _():
    class Mean(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(2))

        def forward(self, x):
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            return x - self.mean

    return Case(Mean(), example=lambda: call(torch.ones(3, 2)), others=[lambda: call(torch.ones(5, 2) * 4)])


@program("buffer_rebound", kind="state")
def _():
    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("steps", torch.zeros((), dtype=torch.long))

        def forward(self, x):
            self.steps = self.steps + 1
            return x / self.steps

    return Case(Steps(), example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2) * 6)])


@program("buffer_aliased_result", kind="state")
def _():
    class Window(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("window", torch.zeros(3))

        def forward(self, x):
            self.window = torch.roll(self.window, -1)
            self.window[-1] = x.sum()
            return self.window

    return Case(Window(), example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2) * 6)])


@program("batch_norm_in_training", kind="state")
def _():
    return Case(
        nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).train(),
        example=lambda: call(torch.randn(4, 3)),
        others=[lambda: call(torch.randn(8, 3)), lambda: call(torch.randn(2, 3))],
        gradients=True,
    )


@program("train_eval_switched_later", kind="state")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))

        def forward(self, x, training=None):
            if training is not None:
                self.train(training)
            return x * self.scale * (2 if self.training else 3)

    return Case(
        Model(),
        example=lambda: call(torch.ones(2)),
        others=[
            lambda: call(torch.ones(2), training=False),
            lambda: call(torch.ones(2)),
            lambda: call(torch.ones(2), training=True),
        ],
    )


@program("history_list", kind="state")
def _():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.history = []

        def forward(self, x):
            self.history.append(x.mean())
            return x + torch.stack(self.history).sum()

    return Case(
        Recurrent(),
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2) * 4)],
        state=lambda m: m.history,
    )


@program("history_deque", kind="state")
def _():
    class Smooth(nn.Module):
        def __init__(self):
            super().__init__()
            self.recent = collections.deque(maxlen=2)

        def forward(self, x):
            self.recent.append(x)
            return sum(self.recent) / len(self.recent)

    return Case(
        Smooth(),
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2) * 4), lambda: call(torch.ones(2) * 16)],
        state=lambda m: m.recent,
    )


@program("first_call_initialises", kind="state")
def _():
    class ActNorm(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.ones(1))
            self.ready = False

        def forward(self, x):
            if not self.ready:
                self.scale = 1 / x.std().reshape(1)
                self.ready = True
            return x * self.scale

    return Case(
        ActNorm(),
        example=lambda: call(torch.tensor([1.0, 3.0])),
        others=[lambda: call(torch.tensor([10.0, 50.0]))],
        state=lambda m: m.ready,
    )


@program("initialised_buffer_flag", kind="state")
def _():
    class ActNorm(nn.Module):
        def __init__(self):
            super().__init__()
            self.shift = nn.Parameter(torch.zeros(2))
            self.register_buffer("ready", torch.tensor(0))

        def forward(self, x):
            if self.ready.item() == 0:
                self.shift.data.copy_(-x.mean(0))
                self.ready.fill_(1)
            return x + self.shift

    return Case(ActNorm(), example=lambda: call(torch.ones(3, 2)), others=[lambda: call(torch.ones(4, 2) * 5)])


@program("lazily_made_parameter", kind="state")
def _():
    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = None

        def forward(self, x):
            if self.weight is None:
                self.weight = nn.Parameter(x.mean(0) * 2)
            return x * self.weight

    return Case(
        Lazy(),
        example=lambda: call(torch.ones(1, 3)),
        others=[lambda: call(torch.ones(2, 3) * 4), lambda: call(torch.ones(1, 4))],
    )


@program("lazy_linear", kind="state")
def _():
    return Case(
        nn.LazyLinear(2),
        example=lambda: call(torch.ones(1, 3)),
        others=[lambda: call(torch.ones(4, 3)), lambda: call(torch.ones(1, 5))],
    )


@program("kv_cache_in_module", kind="state")
def _():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.project = nn.Linear(2, 2)
            self.keys = None

        def forward(self, x):
            keys = self.project(x)
            self.keys = keys if self.keys is None else torch.cat([self.keys, keys], 1)
            return (x @ self.keys.transpose(1, 2)).softmax(-1)

    return Case(
        Attention(),
        example=lambda: call(torch.randn(1, 3, 2)),
        others=[lambda: call(torch.randn(1, 1, 2)), lambda: call(torch.randn(1, 2, 2))],
        state=lambda m: m.keys,
    )


@program("kv_cache_preallocated", kind="state")
def _():
    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("keys", torch.zeros(8, 2), persistent=False)
            self.position = 0

        def forward(self, x):
            end = self.position + x.shape[0]
            self.keys[self.position : end] = x
            self.position = end
            return self.keys[:end].sum(0)

    return Case(
        Cache(),
        example=lambda: call(torch.ones(2, 2)),
        others=[lambda: call(torch.ones(1, 2) * 3), lambda: call(torch.ones(1, 2))],
        state=lambda m: m.position,
    )


@program("kv_cache_as_tuple_argument", kind="state")
def _():
    def f(x, past=None):
        keys = x if past is None else torch.cat([past[0], x], 1)
        return keys.sum(1), (keys,)

    return Case(
        f,
        example=lambda: call(torch.ones(1, 2, 2)),
        others=[
            lambda: call(torch.ones(1, 1, 2), (torch.ones(1, 3, 2),)),
            lambda: call(torch.ones(1, 1, 2), past=(torch.ones(1, 6, 2),)),
        ],
    )


@program("shape_cache", kind="state")
def _():
    class Rotary(nn.Module):
        def __init__(self):
            super().__init__()
            self.cached_length = 0
            self.table = None

        def forward(self, x):
            length = x.shape[1]
            if length > self.cached_length:
                self.cached_length = length
                self.table = torch.arange(length).float().cos()
            return x * self.table[:length]

    return Case(
        Rotary(),
        example=lambda: call(torch.ones(1, 4)),
        others=[lambda: call(torch.ones(1, 6)), lambda: call(torch.ones(1, 3)), lambda: call(torch.ones(2, 4))],
        state=lambda m: (m.cached_length, m.table),
    )


@program("mask_cache_by_shape", kind="state")
def _():
    class Causal(nn.Module):
        def __init__(self):
            super().__init__()
            self.masks = {}

        def forward(self, scores):
            n = scores.shape[-1]
            if n not in self.masks:
                self.masks[n] = torch.full((n, n), float("-inf")).triu(1)
            return (scores + self.masks[n]).softmax(-1)

    return Case(
        Causal(),
        example=lambda: call(torch.randn(3, 3)),
        others=[lambda: call(torch.randn(4, 4)), lambda: call(torch.randn(2, 3, 3))],
        state=lambda m: m.masks,
    )


@program("stateful_rnn", kind="state")
def _():
    class Stateful(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(2, 3, batch_first=True)
            self.hidden = None

        def forward(self, x):
            y, hidden = self.rnn(x, self.hidden)
            self.hidden = hidden.detach()
            return y

    return Case(
        Stateful(),
        example=lambda: call(torch.randn(1, 3, 2)),
        others=[lambda: call(torch.randn(1, 5, 2))],
        state=lambda m: m.hidden,
    )


@program("attribute_set_in_forward", kind="state")
def _():
    class Probe(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            self.last_input = x
            self.last_shape = tuple(x.shape)
            return self.layer(x)

    return Case(
        Probe(),
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(3, 2) * 2)],
        state=lambda m: (m.last_input, m.last_shape) if hasattr(m, "last_input") else None,
    )


@program("submodule_state", kind="state")
def _():
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = 0

        def forward(self, x):
            self.seen += x.shape[0]
            return x + self.seen

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(self.inner(x))

    return Case(
        Outer(),
        example=lambda: call(torch.zeros(2)),
        others=[lambda: call(torch.zeros(3))],
        state=lambda m: m.inner.seen,
    )


@program("warm_up_factor", kind="state")
def _():
    class WarmUp(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 0.5

        def forward(self, x):
            y = x * self.factor
            self.factor = min(1.0, self.factor * 1.5)
            return y

    return Case(
        WarmUp(),
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2)), lambda: call(torch.ones(2))],
        state=lambda m: m.factor,
    )


@program("weight_changed_between_calls", kind="state")
def _():
    model = nn.Linear(2, 1, bias=False)

    def f(x):
        return model(x)

    def change():
        with torch.no_grad():
            model.weight.fill_(3.0)
        return call(torch.ones(1, 2))

    def replace():
        model.weight = nn.Parameter(torch.full((1, 2), 7.0))
        return call(torch.ones(1, 2))

    return Case(f, example=lambda: call(torch.ones(1, 2)), others=[change, replace], state=lambda: model.weight)


@program("weight_update_inside", kind="state")
def _():
    class Online(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self, x, target):
            y = (x * self.weight).sum()
            with torch.no_grad():
                self.weight -= 0.1 * (y - target) * x
            return y

    return Case(Online(), example=lambda: call(torch.ones(2), 1.0), others=[lambda: call(torch.ones(2), 5.0)])


@program("class_attribute_counter", kind="state")
def _():
    class Layer(nn.Module):
        total = 0

        def forward(self, x):
            Layer.total += 1
            return x * Layer.total

    return Case(
        Layer(), example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3))], state=lambda: Layer.total
    )


@program("memory_bank", kind="state")
def _():
    class Bank(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("bank", torch.zeros(4, 2))
            self.register_buffer("pointer", torch.zeros(1, dtype=torch.long))

        def forward(self, keys):
            pointer = int(self.pointer)
            self.bank[pointer : pointer + keys.shape[0]] = keys
            self.pointer[0] = (pointer + keys.shape[0]) % 4
            return self.bank.sum()

    return Case(
        Bank(),
        example=lambda: call(torch.ones(2, 2)),
        others=[lambda: call(torch.ones(2, 2) * 5), lambda: call(torch.ones(1, 2) * 9)],
    )


@program("attribute_set_to_what_it_is", kind="state")
def _():
    class Forgetting(nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.mode = None, "plain"

        def forward(self, x):
            self.mode = "plain"
            if x.sum() > 0:
                self.last = None
            else:
                self.last = x
            return x + 1

    def other_mode(model):
        model.mode = "other"

    return Case(
        make=Forgetting,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(-torch.ones(2)), lambda: call(torch.ones(2)), lambda: call(torch.ones(3))],
        between={"other 3": other_mode},
        state=lambda model: (model.last, model.mode),
    )


@program("variable_of_a_closure_set_behind_a_way_out", kind="state")
def _():
    offset = 2.0

    def f(x):
        nonlocal offset
        if x.dtype.is_floating_point:
            return x
        offset = x.sum().item()
        return x * 2

    def reset():
        nonlocal offset
        offset = 2.0

    others = [lambda: call(torch.ones(3)), lambda: call(torch.ones(2).long()), lambda: call(-torch.ones(2).half())]
    return Case(f, example=lambda: call(torch.ones(2)), others=others, state=lambda: offset, reset=reset)
