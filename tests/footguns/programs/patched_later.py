"""What somebody puts in the place of methods, classes and arguments of partials after the capture.

The methods here compute with plain numbers: no call of torch tells that they ran.
"""

import functools

import torch
from torch import nn

from tests.footguns.ledger import Case, call, program

EXAMPLE = torch.tensor([1.0, 2.0, 3.0])


class Holder:
    def __init__(self):
        self.scale = 3

    def factor(self):
        return self.scale * 2

    @property
    def doubled(self):
        return self.scale * 2

    @classmethod
    def of_class(cls):
        return 5

    @staticmethod
    def fixed():
        return 6

    def __len__(self):
        return 4

    def __getitem__(self, place):
        return place + 1

    def __add__(self, other):
        return other + 2

    def times(self, x, by):
        return x * by

    twice = functools.partialmethod(times, by=2)


class Heir(Holder):
    pass


class Other(Holder):
    def factor(self):
        return 11


def _inputs():
    return call(EXAMPLE.clone())


def _put(kind, name, value):
    """What puts something into a class, and what takes it out again."""
    before = vars(kind).get(name)

    def undo():
        if before is not None:
            setattr(kind, name, before)
        elif name in vars(kind):
            delattr(kind, name)

    return lambda held: setattr(kind, name, value), undo


METHODS = {
    "method": (lambda x, held: x * held.factor(), "factor", lambda self: 9),
    "property": (lambda x, held: x * held.doubled, "doubled", property(lambda self: 9)),
    "class_method": (lambda x, held: x * held.of_class(), "of_class", classmethod(lambda cls: 9)),
    "static_method_of_numbers": (lambda x, held: x * held.fixed(), "fixed", staticmethod(lambda: 9)),
    "length": (lambda x, held: x * len(held), "__len__", lambda self: 9),
    "item": (lambda x, held: x * held[1], "__getitem__", lambda self, place: 9),
    "addition": (lambda x, held: x * (held + 1), "__add__", lambda self, other: 9),
    "partial_method": (lambda x, held: held.twice(x), "twice", functools.partialmethod(Holder.times, by=9)),
    "every_attribute": (lambda x, held: x * getattr(held, "gone", 2), "__getattr__", lambda self, name: 9),
    "attribute_that_was_the_instances": (lambda x, held: x * held.scale, "scale", property(lambda self: 9)),
}


def _changed(name, body, change, undo=lambda: None, make=Holder):
    @program(f"{name}_put_later", kind="patched_later")
    def _():
        held = make()
        return Case(
            lambda x: body(x, held),
            example=_inputs,
            others=[_inputs] * 2,
            between={"other 1": lambda fn: change(held)},
            reset=undo,
        )


for _name, (_body, _key, _value) in METHODS.items():
    _changed(_name, _body, *_put(Holder, _key, _value))

_factor = METHODS["method"][0]
_changed("method_of_a_base", _factor, *_put(Holder, "factor", lambda self: 9), make=Heir)
_changed("method_before_that_of_a_base", _factor, *_put(Heir, "factor", lambda self: 9), make=Heir)
_changed("class_of_an_object", _factor, lambda held: setattr(held, "__class__", Other))


@program("method_of_an_argument_put_later", kind="patched_later")
def _():
    change, undo = _put(Holder, "factor", lambda self: 9)
    inputs = lambda: call(EXAMPLE.clone(), Holder())  # noqa: E731
    return Case(_factor, example=inputs, others=[inputs] * 2, between={"other 1": change}, reset=undo)


class Inner(nn.Module):
    rate = 2

    def __init__(self):
        super().__init__()
        self.layer, self.held = nn.Linear(3, 3), Holder()

    def count(self):
        return 2

    def forward(self, x):
        return self.layer(x) * self.count() * self.rate * self.held.factor()

    def encode(self, x):
        return self(x)


PARTS = {
    "method_of_a_part": lambda part: setattr(part, "count", lambda: 9),
    "number_before_that_of_the_class": lambda part: setattr(part, "rate", 9),
    "class_of_an_object_in_a_part": lambda part: setattr(part.held, "__class__", Other),
    "method_past_the_attributes": lambda part: vars(part).update(count=lambda: 9),
}


def _of_part(name, change, way):
    @program(f"{name}_put_later_{way}", kind="patched_later")
    def _():
        part = Inner()
        return Case(
            part.encode if way == "method" else lambda x: part(x),
            example=_inputs,
            others=[_inputs] * 2,
            between={"other 1": lambda fn: change(part)},
        )


for _name, _change in PARTS.items():
    for _way in ("method", "closure"):
        _of_part(_name, _change, _way)


@program("layer_that_is_walked_taken_away_later", kind="patched_later")
def _():
    layers = nn.ModuleList([Inner(), Inner()])
    return Case(
        lambda x: functools.reduce(lambda value, layer: layer(value), layers, x),
        example=_inputs,
        others=[_inputs] * 2,
        between={"other 1": lambda fn: layers._modules.pop("1")},
    )


def _scaled(x, by):
    return x * by


@program("keyword_of_the_partial_itself_put_later", kind="patched_later")
def _():
    partial = functools.partial(_scaled, by=2)
    change = {"other 1": lambda fn: partial.keywords.update(by=9)}
    return Case(partial, example=_inputs, others=[_inputs] * 2, between=change)


@program("all_of_a_partial_put_later", kind="patched_later")
def _():
    partial = functools.partial(_scaled, by=2)
    state = (torch.sub, (), {"other": 1}, {})
    change = {"other 1": lambda fn: partial.__setstate__(state)}
    return Case(lambda x: partial(x), example=_inputs, others=[_inputs] * 2, between=change)


@program("forward_of_a_container_put_later", kind="patched_later")
def _():
    forward = nn.Sequential.forward
    return Case(
        nn.Sequential(nn.Linear(3, 3), nn.ReLU()),
        example=_inputs,
        others=[_inputs] * 2,
        between={"other 1": lambda fn: setattr(nn.Sequential, "forward", lambda self, x: forward(self, x) * 2)},
        reset=lambda: setattr(nn.Sequential, "forward", forward),
    )
