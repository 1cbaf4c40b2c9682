"""Modules in traces: leaves, paths, parameters, buffers, tensor constants."""

import pytest
import torch

from .helpers import Inner, Outer, names, of, only, opcodes, targets, traced_same

X = torch.randn(2, 4)


class ParameterUser(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4))

    def forward(self, x):
        return x * self.weight + self.weight


def test_parameter_is_a_get_attr(fx):
    traced = traced_same(fx, ParameterUser(), X)
    assert only(traced.graph, "get_attr").target == "weight"


def test_parameter_read_twice_is_one_node(fx):
    traced = fx.symbolic_trace(ParameterUser())
    assert opcodes(traced.graph).count("get_attr") == 1


def test_parameter_is_shared_with_the_root(fx):
    module = ParameterUser()
    traced = fx.symbolic_trace(module)
    assert traced.weight is module.weight
    assert list(dict(traced.named_parameters())) == ["weight"]


def test_nested_parameter_has_its_path(fx):
    traced = traced_same(fx, Outer(), X)
    assert "inner.scale" in targets(traced.graph)
    assert "inner_scale" in names(traced.graph)


def test_buffer_is_a_get_attr(fx):
    traced = fx.symbolic_trace(Outer())
    assert "inner.shift" in targets(traced.graph)
    assert "inner.shift" in dict(traced.named_buffers())


def test_parameter_of_a_leaf_read_directly(fx):
    class Reads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.linear(x + self.linear.weight)

    traced = traced_same(fx, Reads(), torch.randn(4, 4))
    assert names(traced.graph) == ["x", "linear_weight", "add", "linear", "output"]


def test_parameter_method(fx):
    class Reads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(3, 4))

        def forward(self, x):
            return x @ self.weight.t()

    traced = traced_same(fx, Reads(), X)
    assert only(traced.graph, "call_method").target == "t"


def test_unregistered_parameter_is_refused(fx):
    loose = torch.nn.Parameter(torch.ones(4))

    class Reads(torch.nn.Module):
        def forward(self, x):
            return x + loose

    with pytest.raises(NameError, match="parameter is not a member of this module"):
        fx.symbolic_trace(Reads())


def test_tensor_attribute_is_a_get_attr(fx):
    class Reads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.plain = torch.ones(4)

        def forward(self, x):
            return torch.add(x, self.plain)

    traced = traced_same(fx, Reads(), X)
    assert only(traced.graph, "get_attr").target == "plain"


def test_nested_tensor_attribute(fx):
    class Child(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.plain = torch.ones(4)

        def forward(self, x):
            return x + self.plain

    class Parent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.child = Child()

        def forward(self, x):
            return self.child(x)

    traced = traced_same(fx, Parent(), X)
    assert only(traced.graph, "get_attr").target == "child.plain"


def test_tensor_constant(fx):
    traced = traced_same(fx, lambda x: x + torch.ones(4), X)
    node = only(traced.graph, "get_attr")
    assert node.target == "_tensor_constant0"
    assert torch.equal(traced._tensor_constant0, torch.ones(4))


def test_two_tensor_constants(fx):
    traced = traced_same(fx, lambda x: x + torch.ones(4) * 2 - torch.zeros(4), X)
    assert [node.target for node in of(traced.graph, "get_attr")] == ["_tensor_constant0", "_tensor_constant1"]


def test_same_constant_object_is_stored_once(fx):
    constant = torch.ones(4)
    traced = traced_same(fx, lambda x: (x + constant) * constant, X)
    assert {node.target for node in of(traced.graph, "get_attr")} == {"_tensor_constant0"}


def test_constant_is_a_buffer_of_the_result(fx):
    traced = fx.symbolic_trace(lambda x: x + torch.ones(4))
    assert "_tensor_constant0" in dict(traced.named_buffers())


def test_constant_in_a_module_does_not_clash(fx):
    class Taken(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self._tensor_constant0 = torch.zeros(4)

        def forward(self, x):
            return x + torch.ones(4) + self._tensor_constant0

    traced_same(fx, Taken(), X)


def test_constant_follows_dtype(fx):
    traced = fx.symbolic_trace(lambda x: x + torch.ones(4)).to(torch.float64)
    assert traced(X.double()).dtype is torch.float64


def test_module_list_path(fx):
    class Listed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(2)])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    traced = traced_same(fx, Listed(), X)
    assert [node.target for node in of(traced.graph, "call_module")] == ["layers.0", "layers.1"]
    assert [node.name for node in of(traced.graph, "call_module")] == ["layers_0", "layers_1"]


def test_module_dict_path(fx):
    class Keyed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleDict({"first": torch.nn.Linear(4, 4), "second": torch.nn.ReLU()})

        def forward(self, x):
            return self.layers["second"](self.layers["first"](x))

    traced = traced_same(fx, Keyed(), X)
    assert [node.target for node in of(traced.graph, "call_module")] == ["layers.first", "layers.second"]


def test_sequential_is_traced_through(fx):
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(4, 2)))
    traced = traced_same(fx, module, X)
    assert [node.target for node in of(traced.graph, "call_module")] == ["0", "1.0", "1.1"]
    assert [node.name for node in of(traced.graph, "call_module")] == ["_0", "_1_0", "_1_1"]


def test_parameter_list_path(fx):
    class Listed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = torch.nn.ParameterList([torch.nn.Parameter(torch.randn(4)) for _ in range(2)])

        def forward(self, x):
            for weight in self.weights:
                x = x * weight
            return x

    traced = traced_same(fx, Listed(), X)
    assert [node.target for node in of(traced.graph, "get_attr")] == ["weights.0", "weights.1"]


def test_parameter_dict_path(fx):
    class Keyed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = torch.nn.ParameterDict({"a": torch.nn.Parameter(torch.randn(4))})

        def forward(self, x):
            return x * self.weights["a"]

    traced = traced_same(fx, Keyed(), X)
    assert only(traced.graph, "get_attr").target == "weights.a"


@pytest.mark.parametrize("name", ["with-dash", "with space", "0", "é", "a[0]"])
def test_non_identifier_names(fx, name):
    class Odd(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.add_module(name, torch.nn.Linear(4, 4))

        def forward(self, x):
            return getattr(self, name)(x)

    traced = traced_same(fx, Odd(), X)
    node = only(traced.graph, "call_module")
    assert node.target == name
    assert node.name.isidentifier()


def test_shared_module_called_twice(fx):
    class Shared(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(4, 4)
            self.second = self.first

        def forward(self, x):
            return self.second(self.first(x))

    traced = traced_same(fx, Shared(), X)
    calls = of(traced.graph, "call_module")
    assert [node.target for node in calls] == ["first", "first"]
    assert [node.name for node in calls] == ["first", "first_1"]


def test_tied_parameter(fx):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Parameter(torch.randn(4))
            self.b = self.a

        def forward(self, x):
            return x * self.a + self.b

    traced = traced_same(fx, Tied(), X)
    assert {node.target for node in of(traced.graph, "get_attr")} == {"a"}


def test_root_module_itself_is_not_a_leaf(fx):
    traced = fx.symbolic_trace(torch.nn.Linear(4, 4))
    assert opcodes(traced.graph) == ["placeholder", "get_attr", "get_attr", "call_function", "output"]
    assert [node.target for node in of(traced.graph, "get_attr")] == ["weight", "bias"]


def test_module_without_bias(fx):
    traced = traced_same(fx, torch.nn.Linear(4, 4, bias=False), X)
    assert only(traced.graph, "call_function").args[2] is None


def test_module_as_argument_is_a_get_attr(fx):
    class Passes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.child = torch.nn.ReLU()

        def forward(self, x):
            return x, self.child

    traced = fx.symbolic_trace(Passes())
    assert only(traced.graph, "get_attr").target == "child"
    assert isinstance(traced(X)[1], torch.nn.ReLU)


def test_graph_module_as_submodule_is_traced_through(fx):
    class Holder(torch.nn.Module):
        def __init__(self, child):
            super().__init__()
            self.child = child

        def forward(self, x):
            return self.child(x) + 1

    child = fx.symbolic_trace(Inner())
    traced = traced_same(fx, Holder(child), X)
    assert "child.linear" in targets(traced.graph)


def test_graph_module_as_leaf(fx):
    class Leaves(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return True

    class Holder(torch.nn.Module):
        def __init__(self, child):
            super().__init__()
            self.child = child

        def forward(self, x):
            return self.child(x) + 1

    module = Holder(fx.symbolic_trace(Inner()))
    traced = fx.GraphModule(module, Leaves().trace(module))
    assert only(traced.graph, "call_module").target == "child"
    torch.testing.assert_close(traced(X), module(X))


def test_hooks_of_traced_through_modules_run_in_the_trace(fx):
    module = Outer()
    module.inner.register_forward_hook(lambda m, args, out: out * 2)
    traced_same(fx, module, X)


def test_dropout_and_batch_norm_stay_modules(fx):
    module = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5))
    traced = fx.symbolic_trace(module)
    assert len(of(traced.graph, "call_module")) == 2
    torch.testing.assert_close(traced.eval()(X), module.eval()(X))


def test_module_in_a_plain_list_is_refused(fx):
    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [torch.nn.Linear(4, 4)]

        def forward(self, x):
            return self.layers[0](x)

    with pytest.raises(NameError, match="not installed as a submodule"):
        fx.symbolic_trace(Hidden())


def test_embedding_and_functional_mix(fx):
    class Mix(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(5, 4)

        def forward(self, tokens):
            return torch.nn.functional.layer_norm(self.table(tokens), (4,))

    traced_same(fx, Mix(), torch.tensor([0, 3]))


def test_lstm_is_a_leaf_with_a_tuple_result(fx):
    class Recurrent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(4, 3)

        def forward(self, x):
            out, (hidden, cell) = self.lstm(x)
            return out + hidden + cell

    traced_same(fx, Recurrent(), torch.randn(1, 1, 4))
