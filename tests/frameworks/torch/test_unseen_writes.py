"""``x += y`` in a symbolic trace: an ``add`` where nobody sees the write, a write where somebody does."""

import operator

import pytest
import torch
from torch import nn

import clew


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 3, 1)
        self.second = nn.Conv2d(3, 3, 1)
        self.norm = nn.BatchNorm2d(3)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.relu(self.first(x))
        out = self.norm(self.second(x))
        out += x
        return self.relu(out)


def targets(graph):
    return [node.target for node in graph.nodes if node.op == "call_function"]


def test_write_to_a_fresh_value_is_an_add():
    model = Residual()
    traced = clew.symbolic_trace(model)
    assert targets(traced.graph) == [operator.add]
    assert "add" in [node.name for node in traced.graph.nodes]
    x = torch.rand(2, 3, 4, 4)
    torch.testing.assert_close(traced.eval()(x), model.eval()(x))


def test_several_writes_in_a_row():
    class Several(Residual):
        def forward(self, x):
            out = self.first(x)
            out += self.second(x)
            out *= 2
            return out

    assert targets(clew.symbolic_trace(Several()).graph) == [operator.add, operator.mul]


def test_write_of_a_number():
    def program(x):
        y = x * 2
        y -= 1
        return y

    assert targets(clew.symbolic_trace(program).graph) == [operator.mul, operator.sub]


def read_later(model, x):
    out = model.first(x)
    result = out
    result += model.second(x)
    return out, result


def view_read_later(model, x):
    out = model.first(x)
    row = out[0]
    out += 1
    return out, row


def input_written(model, x):
    x += 1
    return x


def view_of_the_input_written(model, x):
    y = x.view(-1)
    y += 1
    return y


def unknown_dtype(model, x):
    y = torch.relu(x)
    y += x.double()
    return y


def different_weights(model, x):
    y = model.first(x)
    y += model.wide(x.double())
    return y


@pytest.mark.parametrize(
    "program", [read_later, view_read_later, input_written, view_of_the_input_written, unknown_dtype, different_weights]
)
def test_write_that_can_be_seen_stays(program):
    class Model(Residual):
        def __init__(self):
            super().__init__()
            self.wide = nn.Conv2d(3, 3, 1).double()

        def forward(self, x):
            return program(self, x)

    model = Model()
    traced = clew.symbolic_trace(model)
    assert operator.iadd in targets(traced.graph)
    given = torch.rand(1, 3, 2, 2)
    torch.testing.assert_close(traced(given.clone()), model(given.clone()))


def test_module_with_a_hook_shows_its_value():
    model = Residual()
    seen = []
    model.norm.register_forward_hook(lambda module, args, result: seen.append(result))
    assert targets(clew.symbolic_trace(model).graph) == [operator.iadd]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_functional_layers_count_as_layers(dtype):
    class Functional(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Parameter(torch.rand(3, 3)), nn.Parameter(torch.rand(3, 3, dtype=dtype))

        def forward(self, x):
            out = nn.functional.linear(x, self.first)
            out += nn.functional.linear(x.to(self.second.dtype), weight=self.second)
            return out

    written = operator.add if dtype is torch.float32 else operator.iadd
    assert targets(clew.symbolic_trace(Functional()).graph).count(written) == 1
    x = torch.rand(2, 3)
    torch.testing.assert_close(clew.symbolic_trace(model := Functional())(x), model(x))


def stochastic_depth(value, p, training):
    return value * torch.bernoulli(torch.full_like(value, 1 - p)) if training else value


def drop(value, training):
    return stochastic_depth(value, 0.5, training)


class Dropping(Residual):
    """As torchvision's models write it: a leaf in the program, which may give its argument itself."""

    keeps_the_block = False

    def forward(self, x):
        x = self.relu(self.first(x))
        block = self.norm(self.second(x))
        out = drop(block, self.training)
        out += x
        return (out, block) if self.keeps_the_block else out


@pytest.mark.parametrize(("keeps_the_block", "written"), [(False, operator.add), (True, operator.iadd)])
def test_what_may_be_the_argument_itself_is_followed_to_it(monkeypatch, keeps_the_block, written):
    monkeypatch.setattr(stochastic_depth, "__module__", "torchvision.ops.stochastic_depth")
    tracer = clew.Tracer(autowrap_functions=(stochastic_depth,))
    model = Dropping().eval()
    model.keeps_the_block = keeps_the_block
    graph = tracer.trace(model)
    assert targets(graph) == [stochastic_depth, written]
    given = torch.rand(1, 3, 2, 2)
    torch.testing.assert_close(clew.GraphModule(model, graph)(given), model(given))


def test_an_unknown_function_may_keep_what_it_is_given():
    tracer = clew.Tracer(autowrap_functions=(stochastic_depth,))
    assert targets(tracer.trace(Dropping().eval())) == [stochastic_depth, operator.iadd]
