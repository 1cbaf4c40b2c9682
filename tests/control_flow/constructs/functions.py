"""Where the branch stands: closures, methods, `super()`, decorators, lambdas, nested functions, other packages."""

import functools

import torch
import torch.nn.functional as F
from torch import nn

from tests.control_flow import elsewhere
from tests.control_flow.register import built, program, v

SIGNS = lambda: [v(1, 2), v(-1, -2), v(0, 0), v(3, -4), v(-3, 9)]
LIMIT = 2.0
SEEN = 0


@built("closure", SIGNS, shows="if")
def closes_over_a_number():
    limit, shift = 2.0, torch.ones(2)

    def f(x):
        if x.max() > limit:
            return x - shift
        return x + shift

    return f


@built("closure", SIGNS, shows="if")
def closes_over_a_function():
    def clip(x):
        return x / x.norm() if x.norm() > 1 else x

    def f(x):
        return clip(x) + clip(x * 2)

    return f


@built("closure", SIGNS, shows="if")
def made_by_a_factory():
    def above(limit):
        def f(x):
            if x.sum() > limit:
                x = x * limit
            return x

        return f

    first, second = above(1.0), above(2.5)
    return lambda x: first(x) - second(x)


@program("closure", SIGNS, shows="if")
def inner_function_reads_outer_variable(x):
    total = x.sum()

    def chosen():
        if total > 0:
            return x * 2
        return x

    return chosen() + total


@program("nonlocal", SIGNS, shows="if")
def nonlocal_in_branch(x):
    count = 0

    def step(value):
        nonlocal count
        if value.sum() > 0:
            count += 1
        return value * 2

    y = step(step(x) - 3)
    return y, count


@built("nonlocal", SIGNS, shows="if")
def nonlocal_state_of_a_factory():
    total = torch.zeros(())

    def f(x):
        nonlocal total
        if x.max() > 2:
            total = total + x.max()
        return x + total

    return f


@program("nonlocal", SIGNS, shows="if", state=lambda: SEEN, reset=lambda: globals().update(SEEN=0))
def global_in_branch(x):
    global SEEN
    if x.sum() > 0:
        SEEN += 1
        return x * LIMIT
    return x


@program("nonlocal", SIGNS, shows="if")
def global_constant(x):
    if x.max() > LIMIT:
        return x / LIMIT
    return x


@built("method", SIGNS, shows="if")
def method_of_a_plain_object():
    class Clip:
        def __init__(self, limit):
            self.limit = limit

        def __call__(self, x):
            return self.clip(x) + 1

        def clip(self, x):
            if x.max() > self.limit:
                x = x * (self.limit / x.max())
            return x

    return Clip(2.0).__call__


@built("method", SIGNS, shows="if")
def helper_method_of_a_module():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def gate(self, x):
            if x.sum() > 0:
                return torch.sigmoid(x)
            return torch.tanh(x)

        def forward(self, x):
            return self.gate(self.linear(x)) + self.gate(x)

    return Model()


@built("method", SIGNS, shows="if")
def super_in_branch():
    class Base(nn.Module):
        def forward(self, x):
            if x.min() < 0:
                return x.abs()
            return x

    class Derived(Base):
        def forward(self, x):
            if x.sum() > 0:
                return super().forward(x) * 2
            return super().forward(x - 1)

    return Derived()


@built("method", SIGNS, shows="if")
def submodules_with_branches():
    class Block(nn.Module):
        def __init__(self, limit):
            super().__init__()
            self.limit = limit

        def forward(self, x):
            if x.abs().max() > self.limit:
                x = x / 2
            return x + 0.5

    return nn.Sequential(Block(1.0), Block(2.0), nn.Tanh(), Block(0.5))


@built("static_method", SIGNS, shows="if")
def static_and_class_methods():
    class Model(nn.Module):
        slope = 0.1

        @staticmethod
        def positive(x):
            if x.sum() > 0:
                return x
            return -x

        @classmethod
        def leaky(cls, x):
            return x * cls.slope if x.min() < 0 else x

        def forward(self, x):
            return self.positive(x) + Model.leaky(x) + type(self).leaky(-x)

    return Model()


@built("static_method", SIGNS, shows="if")
def property_with_branch():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("level", torch.tensor(1.0))

        @property
        def scale(self):
            if self.level > 2:
                return 10.0
            return 0.1

        def forward(self, x):
            self.level += x.max()
            return x * self.scale

    return Model()


@built("static_method", SIGNS, shows="if")
def operators_of_a_class():
    class Interval:
        def __init__(self, low, high):
            self.low, self.high = low, high

        def __add__(self, other):
            low, high = self.low + other.low, self.high + other.high
            if low > high:
                low, high = high, low
            return Interval(low, high)

    def f(x):
        both = Interval(x[0], x[1]) + Interval(x[1] * 0.5, x[0])
        return both.high - both.low

    return f


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) + 1

    return wrapper


def clipped(limit):
    def decorate(function):
        def wrapper(x):
            y = function(x)
            if y.abs().max() > limit:
                return y / y.abs().max()
            return y

        return wrapper

    return decorate


@built("decorated", SIGNS, shows="if")
def decorated_with_wraps():
    @logged
    def f(x):
        if x.sum() > 0:
            return x * 2
        return x

    return f


@built("decorated", SIGNS, shows="if")
def branch_in_the_decorator():
    @clipped(6.0)
    @logged
    def f(x):
        return x * 2

    return f


@built("decorated", SIGNS, shows="if")
def decorated_with_no_grad():
    @torch.no_grad()
    def f(x):
        if x.max() > 2:
            return x * 2
        return x

    return f


@built("decorated", SIGNS, shows="if")
def partial_of_a_function():
    def f(limit, x, scale=1.0):
        if x.max() > limit:
            x = x * scale
        return x

    return functools.partial(f, 2.0, scale=0.5)


@built("lambda", SIGNS, shows="if")
def lambda_with_ternary():
    return lambda x: x * 2 if x.sum() > 0 else x - 1


@program("lambda", SIGNS, shows="if")
def lambda_inside(x):
    clip = lambda y: y / 2 if y.max() > 2 else y
    return clip(x) + clip(x + 1)


@program("lambda", SIGNS, shows="if")
def table_of_lambdas(x):
    ways = [lambda y: y + 1, lambda y: y.abs() if y.sum() < 0 else y]
    for way in ways:
        x = way(x)
    return x


@program("nested_function", SIGNS, shows="if")
def nested_function_called_twice(x):
    def clip(y, limit=2.0):
        if y.norm() > limit:
            return y / y.norm()
        return y

    return clip(x) + clip(x * 3, limit=5.0)


@program("nested_function", SIGNS, shows="if")
def branch_chooses_a_function(x):
    def up(y):
        return y + 1

    def down(y):
        return y - 1

    step = up if x.sum() > 0 else down
    return step(x) * 2


@program("nested_function", SIGNS, shows="if")
def function_defined_in_branch(x):
    if x.sum() > 0:

        def act(y):
            return y.relu()
    else:

        def act(y):
            return y.tanh()

    return act(x - 1)


@program("other_package", SIGNS, shows="if")
def helper_of_another_module(x):
    return elsewhere.soften(x) * elsewhere.soften(1 - x)


@program("other_package", lambda: [v(3, 4), v(30, 40), v(0.1, 0), v(0, 0), v(-300, 400)], shows="while")
def loop_of_another_module(x):
    return elsewhere.shrink(x, 2.0) + 1


@program(
    "other_package",
    lambda: [(v(1, 2), v(1, 2)), (v(1, 2), v(2, 2)), (v(0, 0), v(0, 1e-9)), (v(3, 3), v(3, 3.1)), (v(5, 5), v(5, 5))],
    shows="if",
)
def branch_on_torch_testing(x, y):
    if torch.allclose(x, y):
        return F.mse_loss(x, y)
    return F.l1_loss(x, y)
