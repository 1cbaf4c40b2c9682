"""What classes can do behind a program's back: descriptors, enums, class attributes, subclasses, hooks, caches."""

import abc
import dataclasses
import enum
import weakref

import torch
from torch import nn

from tests.footguns.ledger import Case, call, program


@program("descriptor_that_counts_reads", kind="class_machinery")
def _():
    class Counted:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, holder, owner):
            holder.reads += 1
            return getattr(holder, self.name)

        def __set__(self, holder, value):
            setattr(holder, self.name, value)

    class Box:
        value = Counted()

        def __init__(self, value):
            self.reads = 0
            self.value = value

    def f(x, box):
        return x * box.value + box.value, box.reads

    def later():
        box = Box(5.0)
        box.reads = 10
        return call(torch.ones(2), box)

    return Case(f, example=lambda: call(torch.ones(2), Box(2.0)), others=[later, lambda: call(torch.ones(3), Box(3.0))])


@program("cached_property_of_a_module", kind="class_machinery")
def _():
    import functools

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2, 2))

        @functools.cached_property
        def scale(self):
            return float(self.weight.sum())

        def forward(self, x):
            return x @ self.weight * self.scale

    def double(model):
        with torch.no_grad():
            model.weight.mul_(2)

    return Case(
        make=Model,
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(3, 2)), lambda: call(torch.ones(3, 2))],
        between={"other 2": double},
    )


@program("enum_chooses_the_function", kind="class_machinery")
def _():
    class Norm(enum.Enum):
        ONE = 1
        TWO = 2
        MOST = "inf"

        def __call__(self, x):
            return x.norm(p=float(self.value))

    def f(x, norm):
        return x / norm(x) if norm is not Norm.MOST else x / Norm.MOST(x)

    return Case(
        f,
        example=lambda: call(torch.tensor([3.0, 4.0]), Norm.TWO),
        others=[lambda: call(torch.tensor([3.0, 4.0]), Norm.ONE), lambda: call(torch.tensor([3.0, 4.0]), Norm.MOST)],
    )


@program("flags_of_an_enum", kind="class_machinery")
def _():
    class Steps(enum.Flag):
        SHIFT = enum.auto()
        SCALE = enum.auto()
        CLAMP = enum.auto()

    def f(x, steps):
        if Steps.SHIFT in steps:
            x = x + 1
        if steps & Steps.SCALE:
            x = x * 3
        return x.clamp(max=2) if Steps.CLAMP in steps else x

    return Case(
        f,
        example=lambda: call(torch.ones(2), Steps.SHIFT | Steps.SCALE),
        others=[
            lambda: call(torch.ones(2), Steps.SCALE),
            lambda: call(torch.ones(2), Steps.CLAMP | Steps.SCALE),
            lambda: call(torch.ones(2), Steps(0)),
        ],
    )


@program("frozen_dataclass_replaced", kind="class_machinery")
def _():
    @dataclasses.dataclass(frozen=True)
    class Config:
        rate: float
        layers: tuple
        bias: torch.Tensor | None = None

    def f(x, config):
        for width in config.layers:
            x = x * width * config.rate
        config = dataclasses.replace(config, rate=config.rate / 2)
        return (x if config.bias is None else x + config.bias), config.rate, dataclasses.astuple(config)[0]

    return Case(
        f,
        example=lambda: call(torch.ones(2), Config(0.5, (2, 3))),
        others=[
            lambda: call(torch.ones(2), Config(0.25, (2, 3))),
            lambda: call(torch.ones(2), Config(0.5, (2, 3, 4))),
            lambda: call(torch.ones(2), Config(0.5, (2, 3), torch.ones(2))),
        ],
    )


@program("dataclass_with_post_init", kind="class_machinery")
def _():
    @dataclasses.dataclass
    class Batch:
        x: torch.Tensor
        count: int = dataclasses.field(init=False)

        def __post_init__(self):
            self.count = self.x.shape[0]

        def __add__(self, other):
            return Batch(torch.cat([self.x, other.x]))

    def f(a, b):
        both = a + b
        return both.x * both.count, both

    return Case(
        f,
        example=lambda: call(Batch(torch.ones(2)), Batch(torch.zeros(1))),
        others=[lambda: call(Batch(torch.ones(4)), Batch(torch.zeros(3)))],
    )


@program("class_attribute_as_a_counter", kind="class_machinery")
def _():
    class Layer(nn.Module):
        calls = 0

        def forward(self, x):
            type(self).calls += 1
            return x * type(self).calls

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = Layer(), Layer()

        def forward(self, x):
            return self.b(self.a(x))

    def make():
        Layer.calls = 0
        return Model()

    return Case(
        make=make,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2)), lambda: call(torch.ones(3))],
        state=lambda: Layer.calls,
    )


@program("abstract_base_with_registered_class", kind="class_machinery")
def _():
    class Step(abc.ABC):
        @abc.abstractmethod
        def apply(self, x): ...

    class Double(Step):
        def apply(self, x):
            return x * 2

    class Other:
        def apply(self, x):
            return x + 10

    Step.register(Other)

    def f(x, steps):
        for step in steps:
            if isinstance(step, Step):
                x = step.apply(x)
        return x

    return Case(
        f,
        example=lambda: call(torch.ones(2), [Double(), Other()]),
        others=[
            lambda: call(torch.ones(2), [Other(), Double()]),
            lambda: call(torch.ones(2), [Double(), 5]),
            lambda: call(torch.ones(2), []),
        ],
    )


@program("module_cache_by_length", kind="class_machinery")
def _():
    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.cache = {}
            self.misses = 0

        def forward(self, x):
            length = x.shape[1]
            if length not in self.cache:
                self.misses += 1
                self.cache[length] = torch.arange(length).float() * 0.1
            return x + self.cache[length]

    return Case(
        make=Positions,
        example=lambda: call(torch.ones(1, 3)),
        others=[lambda: call(torch.ones(2, 3)), lambda: call(torch.ones(2, 5)), lambda: call(torch.ones(1, 5))],
        state=lambda model: (sorted(model.cache), model.misses),
    )


@program("module_cache_that_grows", kind="class_machinery")
def _():
    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.empty(0), persistent=False)

        def forward(self, x):
            if self.table.shape[0] < x.shape[0]:
                self.table = torch.arange(x.shape[0] * 2).float()
            return x * self.table[: x.shape[0]]

    return Case(
        make=Table,
        example=lambda: call(torch.ones(3)),
        others=[lambda: call(torch.ones(5)), lambda: call(torch.ones(9)), lambda: call(torch.ones(2))],
        state=lambda model: model.table.shape[0],
    )


@program("forward_hook_that_counts", kind="class_machinery")
def _():
    def make():
        model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        model.seen = []
        model[0].register_forward_hook(lambda layer, args, out: model.seen.append(tuple(out.shape)) or out * 2)
        return model

    return Case(
        make=make,
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(3, 2)), lambda: call(-torch.ones(2, 2))],
    )


@program("pre_hook_that_changes_arguments", kind="class_machinery")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)
            self.inner.register_forward_pre_hook(lambda layer, args: (args[0] / args[0].shape[0],))

        def forward(self, x):
            return self.inner(x)

    return Case(
        make=Model,
        example=lambda: call(torch.ones(2, 2)),
        others=[lambda: call(torch.ones(4, 2)), lambda: call(torch.ones(1, 2))],
    )


@program("tensor_hook_on_the_way", kind="class_machinery")
def _():
    def f(x, factor):
        y = x * 2
        y.register_hook(lambda grad: grad * factor)
        return y.sum()

    def inputs(factor):
        return lambda: call(torch.ones(2, requires_grad=True), factor)

    return Case(f, example=inputs(3.0), others=[inputs(5.0), inputs(3.0)], gradients=True)


@program("weak_reference_to_an_argument", kind="class_machinery")
def _():
    class Box:
        def __init__(self, value):
            self.value = value

    def f(x, box):
        seen = weakref.ref(box)
        return x * seen().value if seen() is box else x

    return Case(f, example=lambda: call(torch.ones(2), Box(2.0)), others=[lambda: call(torch.ones(2), Box(4.0))])


@program("subclass_that_counts_operations", kind="class_machinery")
def _():
    class Counted(torch.Tensor):
        operations = 0

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.operations += 1
            return super().__torch_function__(func, types, args, kwargs or {})

    def f(x):
        return (x.as_subclass(Counted) * 2 + 1).as_subclass(torch.Tensor)

    def reset():
        Counted.operations = 0

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(3))],
        state=lambda: Counted.operations,
        reset=reset,
    )


@program("operator_overloads_of_a_wrapper", kind="class_machinery")
def _():
    class Dual:
        def __init__(self, value, slope):
            self.value, self.slope = value, slope

        def __mul__(self, other):
            if isinstance(other, Dual):
                return Dual(self.value * other.value, self.value * other.slope + self.slope * other.value)
            return Dual(self.value * other, self.slope * other)

        __rmul__ = __mul__

        def __add__(self, other):
            other = other if isinstance(other, Dual) else Dual(other, 0.0)
            return Dual(self.value + other.value, self.slope + other.slope)

    def f(x, powers):
        dual, total = Dual(x, torch.ones_like(x)), Dual(torch.zeros_like(x), torch.zeros_like(x))
        for power in range(powers):
            term = Dual(torch.ones_like(x), torch.zeros_like(x))
            for _ in range(power):
                term = term * dual
            total = total + 2.0 * term
        return total.value, total.slope

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 2.0]), 3),
        others=[lambda: call(torch.tensor([1.0, 2.0]), 2), lambda: call(torch.ones(3), 4)],
    )


@program("slots_and_defaults_of_a_class", kind="class_machinery")
def _():
    class Node:
        __slots__ = ("left", "right", "value")

        def __init__(self, value, left=None, right=None):
            self.value, self.left, self.right = value, left, right

    def total(node):
        return 0 if node is None else node.value + total(node.left) + total(node.right)

    def f(tree):
        return total(tree)

    one, two = torch.ones(2), torch.ones(2) * 2
    return Case(
        f,
        example=lambda: call(Node(one, Node(two))),
        others=[
            lambda: call(Node(one, Node(two), Node(one))),
            lambda: call(Node(two)),
            lambda: call(Node(one, None, Node(two))),
        ],
    )


@program("module_that_returns_itself", kind="class_machinery")
def _():
    class Chained(nn.Module):
        def forward(self, x):
            x.mul_(2)
            return self

    return Case(
        make=Chained,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(3)), lambda: call(torch.ones(2))],
        between={"other 2": lambda model: setattr(model, "note", 5.0)},
        state=lambda model: getattr(model(torch.zeros(1)), "note", None),
    )
