"""What is changed from outside between two calls: attributes, dicts, hooks, functions, classes of the program."""

import enum
import types

import torch
import torch.nn.functional as F
from torch import nn

from tests.footguns.ledger import Case, call, program

EXAMPLE = torch.tensor([1.0, 2.0, 3.0])


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.scale, self.table, self.shift = 2.0, {"a": 1.0}, torch.ones(3)
        self.activation = torch.relu
        self.rest = nn.ModuleList([nn.Identity()])

    def forward(self, x):
        x = self.activation(self.layer(x)) * self.scale + self.table["a"] + self.shift
        for part in self.rest:
            x = part(x)
        return F.dropout(x, 0.5, self.training)


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner(x)

    def encode(self, x):
        return self.inner(x) + 1


class Other(Inner):
    def forward(self, x):
        return x * 100


def _in_closure(model):
    return lambda x: model(x)


def _in_object(model):
    holder = types.SimpleNamespace(model=model)
    return lambda x: holder.model(x)


def _in_list(model):
    models = [model]
    return lambda x: models[0](x)


def _method(model):
    return model.encode


CHANGES = {
    "dict_changed_in_place": lambda inner: inner.table.update(a=5.0),
    "forward_replaced": lambda inner: setattr(inner, "forward", lambda x: x * 0),
    "class_of_a_part_changed": lambda inner: setattr(inner, "__class__", Other),
    "whole_dict_swapped": lambda inner: setattr(inner, "__dict__", {**vars(inner), "scale": 11.0}),
    "tensor_attribute_replaced": lambda inner: setattr(inner, "shift", torch.full((3,), 4.0)),
    "module_list_extended": lambda inner: inner.rest.append(nn.Tanh()),
    "function_attribute_replaced": lambda inner: setattr(inner, "activation", torch.tanh),
    "forward_hook_added": lambda inner: inner.register_forward_hook(lambda module, inputs, output: -output),
    "pre_hook_added": lambda inner: inner.register_forward_pre_hook(lambda module, inputs: (inputs[0] * 2,)),
    "number_changed": lambda inner: setattr(inner, "scale", 3.0),
    "part_set_to_eval": lambda inner: inner.eval(),
}
WAYS = {"closure": _in_closure, "object": _in_object, "list": _in_list, "method": _method}


def _changed(name, change, way):
    @program(f"{name}_{way.__name__.strip('_')}", kind="changed_around")
    def _():
        model = Outer()
        inputs = lambda: call(EXAMPLE.clone())  # noqa: E731
        act = {"other 2": lambda fn: change(model.inner)}
        return Case(way(model), example=inputs, others=[inputs, inputs, inputs], between=act)


for _name, _change in CHANGES.items():
    for _way in WAYS.values():
        _changed(_name, _change, _way)


class Settings:
    rate = 0.5

    @staticmethod
    def change(x):
        return x * 2


@program("static_method_replaced", kind="changed_around")
def _():
    first = vars(Settings)["change"]
    return Case(
        lambda x: Settings.change(x) * Settings.rate,
        example=lambda: call(EXAMPLE.clone()),
        others=[lambda: call(EXAMPLE.clone())] * 2,
        between={"other 1": lambda fn: setattr(Settings, "rate", 2.0)},
        reset=lambda: (setattr(Settings, "change", first), setattr(Settings, "rate", 0.5)),
    )


chosen = torch.sin


def _choose(function):
    globals()["chosen"] = function


@program("global_function_of_another_name_replaced", kind="changed_around")
def _():
    return Case(
        lambda x: chosen(x),
        example=lambda: call(EXAMPLE.clone()),
        others=[lambda: call(EXAMPLE.clone())] * 2,
        between={"other 1": lambda fn: _choose(torch.cos)},
        reset=lambda: _choose(torch.sin),
    )


@program("gradient_hook_on_a_module_around", kind="changed_around")
def _():
    layer, seen = nn.Linear(3, 2), []
    layer.register_full_backward_hook(lambda module, inputs, outputs: seen.append(outputs[0].sum().item()))
    return Case(
        lambda x: layer(x),
        example=lambda: call(torch.ones(2, 3)),
        others=[lambda: call(torch.ones(1, 3))],
        gradients=True,
        state=lambda: seen,
    )


@program("hook_after_a_gradient_arrived", kind="changed_around")
def _():
    layer, steps = nn.Linear(3, 2), []

    def step(parameter):
        with torch.no_grad():
            parameter -= 0.1 * parameter.grad
        steps.append(tuple(parameter.shape))

    for parameter in layer.parameters():
        parameter.register_post_accumulate_grad_hook(step)

    def train(x):
        loss = layer(x).sum()
        loss.backward()
        return loss.detach()

    return Case(
        train,
        example=lambda: call(torch.ones(2, 3)),
        others=[lambda: call(torch.ones(1, 3))],
        state=lambda: (steps, [parameter.detach() for parameter in layer.parameters()]),
    )


@program("gradients_accumulate_before_a_guard", kind="changed_around")
def _():
    layer, counted = nn.Linear(3, 2), {"steps": 0}

    def train(x):
        layer(x).sum().backward()
        counted["steps"] += 1
        if counted["steps"] % 2 == 0:
            with torch.no_grad():
                for parameter in layer.parameters():
                    parameter -= 0.1 * parameter.grad
                    parameter.grad = None
        return counted["steps"]

    return Case(
        train,
        example=lambda: call(torch.ones(2, 3)),
        others=[lambda: call(torch.ones(1, 3)), lambda: call(torch.ones(4, 3))],
        state=lambda: (dict(counted), [(one.detach(), one.grad) for one in layer.parameters()]),
    )


@program("embedding_with_a_norm_that_is_tied", kind="changed_around")
def _():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(5, 3, max_norm=0.5)
            self.out = nn.Linear(3, 5, bias=False)
            self.out.weight = self.table.weight

        def forward(self, index):
            return self.out(self.table(index))

    return Case(
        Tied(),
        example=lambda: call(torch.tensor([1, 2])),
        others=[lambda: call(torch.tensor([4, 4, 0]))],
        state=lambda model: model.get_parameter("table.weight").detach().clone(),
    )


@program("method_of_an_enumeration_is_replaced", kind="changed_around")
def _():
    class Level(enum.Enum):
        LOW = 1

        def scaled(self, x):
            return x * 2

    kept = Level.scaled

    def replace(_):
        Level.scaled = lambda self, x: x * 3

    def reset():
        Level.scaled = kept

    example = lambda: call(torch.ones(2), 1)  # noqa: E731
    between = {"other 1": replace}
    return Case(lambda x, n: Level(n).scaled(x), example=example, others=[example], between=between, reset=reset)
