"""State that a call shares with the rest: functions that stay whole, hooks, modules around, settings of layers."""

import torch
from torch import nn

from tests.footguns.ledger import Case, call, program

HALVES = [lambda: call(torch.tensor([1.0, 2.0])), lambda: call(torch.tensor([-1.0, -2.0]))]
AGAIN = [HALVES[1], HALVES[1], HALVES[0]]


class Log:
    """What functions of autograd write to; ``reset`` empties it."""

    seen: list[float] = []
    count = 0


def reset() -> None:
    Log.seen.clear()
    Log.count = 0


class Appends(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if x.sum() < 0:
            Log.seen.append(float(x.sum()))
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


class Counts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        Log.count += 1
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


class Box:
    def __init__(self):
        self.count = 0


class CountsInBox(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, box):
        if x.sum() < 0:
            box.count += 1
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2, None


@program("function_of_autograd_appends_sometimes", kind="shared_state")
def _():
    def f(x):
        return Appends.apply(x) * (1 + len(Log.seen))

    return Case(f, example=HALVES[0], others=AGAIN, state=lambda: list(Log.seen), reset=reset)


@program("function_of_autograd_counts", kind="shared_state")
def _():
    def f(x):
        return Counts.apply(x) * Log.count

    return Case(f, example=HALVES[0], others=AGAIN, state=lambda: Log.count, reset=reset)


@program("function_of_autograd_changes_an_object", kind="shared_state")
def _():
    box = Box()

    def f(x):
        return CountsInBox.apply(x, box) * (1 + box.count)

    return Case(f, example=HALVES[0], others=AGAIN, state=lambda: box.count)


@program("function_of_autograd_changes_an_argument", kind="shared_state")
def _():
    def f(x, box):
        return CountsInBox.apply(x, box) * (1 + box.count)

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 2.0]), Box()),
        others=[lambda: call(torch.tensor([-1.0, 2.0]), Box()), lambda: call(torch.tensor([-1.0, -2.0]), Box())],
    )


@program("mode_of_a_module_around_switched", kind="shared_state")
def _():
    layers = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))

    def f(x):
        if x.sum() > 0:
            layers.eval()
        else:
            layers.train()
        return layers(x)

    return Case(f, example=HALVES[0], others=AGAIN, state=lambda: [part.training for part in layers.modules()])


@program("mode_of_a_module_around_restored", kind="shared_state")
def _():
    layers = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))

    def f(x):
        was = layers.training
        layers.eval()
        quiet = layers(x)
        layers.train(was)
        return quiet + layers(x)

    return Case(f, example=HALVES[0], others=AGAIN, state=lambda: layers.training)


HELD: list[nn.Module] = []


@program("part_of_a_module_around_swapped_between_calls", kind="shared_state")
def _():
    layers = nn.Sequential(nn.Identity(), nn.Tanh())
    HELD[:] = [layers]
    return Case(
        lambda x: layers(x),
        example=HALVES[0],
        others=AGAIN,
        between={"other 1": lambda f: HELD[0].__setitem__(1, nn.ReLU())},
    )


@program("setting_of_a_layer_around_changed_between_calls", kind="shared_state")
def _():
    layers = nn.Sequential(nn.Identity(), nn.LeakyReLU(0.1))
    HELD[:] = [layers]
    return Case(
        lambda x: layers(x),
        example=HALVES[0],
        others=AGAIN,
        between={"other 1": lambda f: setattr(HELD[0][1], "negative_slope", 0.5)},
    )


@program("setting_of_a_layer_changed_by_the_program", kind="shared_state")
def _():
    class Slower(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(3)

        def forward(self, x):
            self.norm.momentum *= 0.5
            return self.norm(x)

    return Case(
        Slower().train(),
        example=lambda: call(torch.arange(6.0).reshape(2, 3)),
        others=[lambda: call(torch.arange(12.0).reshape(4, 3))],
        state=lambda m: m.norm.momentum,
    )


@program("hook_on_a_layer_sometimes_logs", kind="shared_state")
def _():
    log = []
    layer = nn.Linear(2, 2)
    nn.init.ones_(layer.weight)
    layer.register_forward_hook(lambda module, args, result: log.append(1) if result.sum() < 0 else None)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return self.layer(x) * (1 + len(log))

    return Case(Model(), example=HALVES[0], others=AGAIN, state=lambda: list(log))


@program("hook_on_a_layer_writes_a_buffer", kind="shared_state")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.register_buffer("calls", torch.zeros(()))
            self.layer.register_forward_hook(self.count)

        def count(self, module, args, result):
            self.calls += 1
            return result * self.calls

        def forward(self, x):
            return self.layer(x) + self.calls

    return Case(Model(), example=HALVES[0], others=AGAIN)


@program("hook_that_removes_itself", kind="shared_state")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.calls = 0
            self.handle = self.layer.register_forward_hook(self.once)

        def once(self, module, args, result):
            self.calls += 1
            if self.calls == 2:
                self.handle.remove()
            return result + 1

        def forward(self, x):
            return self.layer(x)

    return Case(Model(), example=HALVES[0], others=AGAIN)


@program("hook_on_all_modules_for_one_call", kind="shared_state")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            handle = nn.modules.module.register_module_forward_hook(lambda module, args, result: result * 2)
            try:
                return self.layer(x)
            finally:
                handle.remove()

    return Case(Model(), example=HALVES[0], others=AGAIN)


@program("parameter_frozen_and_thawed", kind="shared_state")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            self.layer.weight.requires_grad_(not self.layer.weight.requires_grad)
            return self.layer(x)

    return Case(Model(), example=HALVES[0], others=AGAIN)
