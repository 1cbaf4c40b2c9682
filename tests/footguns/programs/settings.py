"""What lies around a program in other places than its closure: settings in modules, objects, classes, contexts."""

import functools
import os

import torch
from torch import nn

from tests.footguns import settings
from tests.footguns.ledger import Case, call, program
from tests.footguns.settings import Options, options


def case(fn, change=None, **more):
    """A program on two vectors, with a setting changed before the second."""
    between = {} if change is None else {"other 1": lambda _: change()}
    others = [lambda: call(torch.ones(2)), lambda: call(torch.ones(3))]
    return Case(fn, example=lambda: call(torch.ones(2)), others=others, between=between, reset=settings.reset, **more)


class Slotted:
    """An object without a dict."""

    __slots__ = ("scale",)

    def __init__(self, scale):
        self.scale = scale


@program("variable_of_a_module_read", kind="settings")
def _():
    return case(lambda x: x * settings.scale, lambda: settings.change(scale=5.0))


@program("variable_of_a_module_changed", kind="settings")
def _():
    def f(x):
        settings.calls += 1
        return x * settings.calls

    return case(f, state=lambda: settings.calls)


@program("attribute_of_an_object_read", kind="settings")
def _():
    return case(lambda x: x * options.scale, lambda: setattr(options, "scale", 5.0))


@program("attribute_of_an_object_changed", kind="settings")
def _():
    def f(x):
        options.scale += x.shape[0]
        return x * options.scale

    return case(f, state=lambda: options.scale)


@program("item_deep_in_a_table", kind="settings")
def _():
    return case(lambda x: x * settings.table["gains"][0], lambda: settings.table["gains"].insert(0, 9.0))


@program("attribute_of_a_class", kind="settings")
def _():
    return case(lambda x: x * Options.shared, lambda: setattr(Options, "shared", 7.0))


@program("attribute_of_the_modules_class", kind="settings")
def _():
    class Scaled(nn.Module):
        scale = 2.0

        def forward(self, x):
            return x * self.scale

    return case(Scaled(), lambda: setattr(Scaled, "scale", 5.0))


@program("environment_variable", kind="settings")
def _():
    return case(lambda x: x * int(os.environ[settings.VARIABLE]), lambda: os.environ.update({settings.VARIABLE: "4"}))


@program("environment_variable_that_is_missing", kind="settings")
def _():
    name = settings.MISSING_VARIABLE
    return case(lambda x: x * (2 if os.environ.get(name) is None else 3), lambda: os.environ.update({name: "1"}))


@program("context_variable", kind="settings")
def _():
    return case(lambda x: x * settings.chosen.get(), lambda: settings.chosen.set(6.0))


@program("thread_local", kind="settings")
def _():
    return case(lambda x: x * settings.local.scale, lambda: setattr(settings.local, "scale", 6.0))


@program("partial_of_a_method", kind="settings")
def _():
    class Steps:
        def __init__(self):
            self.count = 0

        def step(self, gain, x):
            self.count += 1
            return x * self.count * gain

    steps = Steps()
    return case(functools.partial(steps.step, 2.0), state=lambda: steps.count)


@program("method_that_uses_a_global", kind="settings")
def _():
    class Model(nn.Module):
        def forward(self, x):
            return self.helped(x)

        def helped(self, x):
            settings.calls += 1
            return x * settings.calls

    return case(Model(), state=lambda: settings.calls)


@program("flag_asked_by_identity", kind="settings")
def _():
    def f(x, flag):
        return x * 2 if flag is True else x * 3

    return Case(f, example=lambda: call(torch.ones(2), True), others=[lambda: call(torch.ones(2), False)])


@program("two_arguments_asked_by_identity", kind="settings")
def _():
    def f(a, b):
        return a * (1.0 if a is b else 2.0)

    def same():
        x = torch.ones(2)
        return call(x, x)

    return Case(f, example=lambda: call(torch.ones(2), torch.ones(2)), others=[same])


@program("module_in_a_closure_counts", kind="settings")
def _():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.count = 0
            self.register_buffer("total", torch.zeros(1))

        def forward(self, x):
            self.count += 1
            self.total = self.total + x.sum()
            return x * self.count + self.total

    model = Counting()
    return case(lambda x: model(x), state=lambda: (model.count, model.total))


@program("setting_of_a_module_in_a_closure", kind="settings")
def _():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = 2.0

        def forward(self, x):
            return x * self.scale

    model = Scaled()
    return case(lambda x: model(x), lambda: setattr(model, "scale", 9.0))


@program("layers_in_a_plain_list", kind="settings")
def _():
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    model = Stack()
    return Case(
        model,
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(3, 2))],
        between={"other 1": lambda _: model.layers[0].weight.data.fill_(1.0)},
    )


@program("object_shared_by_two_parts", kind="settings")
def _():
    class Tally:
        def __init__(self):
            self.total = 0.0
            self.seen = []

    class Part(nn.Module):
        def __init__(self, tally):
            super().__init__()
            self.tally = tally

        def forward(self, x):
            self.tally.total = self.tally.total + x.sum()
            self.tally.seen.append(len(self.tally.seen))
            return x * self.tally.total

    tally = Tally()
    return case(nn.Sequential(Part(tally), Part(tally)))


@program("attribute_through_getattr", kind="settings")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.held = {"gain": 3.0}

        def __getattr__(self, name):
            return self.held["gain"] if name == "gain" else super().__getattr__(name)

        def forward(self, x):
            self.held["gain"] = self.held["gain"] * 2
            return x * self.gain

    return case(Model())


@program("attribute_in_a_slot", kind="settings")
def _():
    held = Slotted(2.0)
    return case(lambda x: x * held.scale, lambda: setattr(held, "scale", 5.0))


@program("attribute_in_a_slot_changed", kind="settings")
def _():
    def f(x, slotted):
        slotted.scale = slotted.scale + x.shape[0]
        return x * slotted.scale, slotted

    return Case(
        f,
        example=lambda: call(torch.ones(2), Slotted(1.0)),
        others=[lambda: call(torch.ones(3), Slotted(2.0)), lambda: call(torch.ones(3), Slotted(None))],
        same_text=False,
    )


@program("attribute_named_by_text", kind="settings")
def _():
    name = "sc" + "ale"
    return case(lambda x: x * getattr(settings, name), lambda: settings.change(scale=5.0))
