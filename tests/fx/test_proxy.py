"""Proxy: operators, methods, attributes, torch functions with proxies anywhere among their arguments."""

import copy
import operator

import pytest
import torch
import torch.nn.functional as F

from .helpers import names, of, only, opcodes, targets, traced_same

A = torch.tensor([6, 3, 5])
B = torch.tensor([2, 1, 2])

BINARY = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "truediv": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "pow": lambda a, b: a**b,
    "lshift": lambda a, b: a << b, "rshift": lambda a, b: a >> b, "and_": lambda a, b: a & b,
    "or_": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "matmul": lambda a, b: a @ b,
}  # fmt: skip

REFLECTED = {
    "add": lambda b: 7 + b, "sub": lambda b: 7 - b, "mul": lambda b: 7 * b, "truediv": lambda b: 7 / b,
    "floordiv": lambda b: 7 // b, "mod": lambda b: 7 % b, "pow": lambda b: 7**b, "lshift": lambda b: 7 << b,
    "rshift": lambda b: 7 >> b, "and_": lambda b: 7 & b, "or_": lambda b: 7 | b, "xor": lambda b: 7 ^ b,
}  # fmt: skip

UNARY = {"neg": lambda a: -a, "pos": lambda a: +a, "invert": lambda a: ~a, "abs": lambda a: abs(a)}


@pytest.mark.parametrize("name", BINARY)
def test_binary_operator(fx, name):
    traced = traced_same(fx, BINARY[name], A, B)
    node = only(traced.graph, "call_function")
    assert node.target is getattr(operator, name)
    assert list(node.args) == of(traced.graph, "placeholder")


@pytest.mark.parametrize("name", BINARY)
def test_binary_operator_with_a_number(fx, name):
    if name == "matmul":
        traced = fx.symbolic_trace(lambda a: BINARY[name](a, a))
    else:
        traced = traced_same(fx, lambda a: BINARY[name](a, 2), A)
    assert only(traced.graph, "call_function").target is getattr(operator, name)


@pytest.mark.parametrize("name", REFLECTED)
def test_reflected_operator(fx, name):
    traced = traced_same(fx, REFLECTED[name], B)
    node = only(traced.graph, "call_function")
    assert node.target is getattr(operator, name)
    assert node.args == (7, of(traced.graph, "placeholder")[0])


@pytest.mark.parametrize("name", UNARY)
def test_unary_operator(fx, name):
    traced = traced_same(fx, UNARY[name], A)
    assert only(traced.graph, "call_function").target is getattr(operator, name)


def test_comparison_with_a_tensor_on_the_left(fx):
    traced = fx.symbolic_trace(lambda b: A + b)
    torch.testing.assert_close(traced(B), A + B)
    assert opcodes(traced.graph).count("get_attr") == 1


def test_is_and_is_not_do_not_record(fx):
    traced = fx.symbolic_trace(lambda x: x + 1 if x is not None else None)
    assert opcodes(traced.graph) == ["placeholder", "call_function", "output"]


def test_contains_is_refused(fx):
    with pytest.raises((fx.TraceError, TypeError)):
        fx.symbolic_trace(lambda x: 1 in x)


def test_not_is_refused(fx):
    with pytest.raises(fx.TraceError):
        fx.symbolic_trace(lambda x: not x)


def test_and_is_refused(fx):
    with pytest.raises(fx.TraceError):
        fx.symbolic_trace(lambda x, y: x and y)


def test_chained_comparison_is_refused(fx):
    with pytest.raises(fx.TraceError):
        fx.symbolic_trace(lambda x: 0 < x < 1)


def test_range_over_a_symbolic_size_is_refused(fx):
    with pytest.raises((TypeError, RuntimeError, ValueError)):
        fx.symbolic_trace(lambda x: [i for i in range(x.shape[0])])


@pytest.mark.parametrize("convert", [int, float, complex])
def test_conversion_to_a_number_is_refused(fx, convert):
    with pytest.raises((TypeError, RuntimeError, ValueError)):
        fx.symbolic_trace(lambda x: convert(x))


def test_setitem_on_a_proxy_is_refused_or_recorded(fx):
    def writes(x):
        x[0] = 1
        return x

    try:
        traced = fx.symbolic_trace(writes)
    except TypeError as error:
        assert "item assignment" in str(error)
    else:
        assert operator.setitem in targets(traced.graph)


def test_attribute_becomes_getattr_call(fx):
    traced = traced_same(fx, lambda x: x.T, torch.randn(2, 3))
    node = only(traced.graph, "call_function")
    assert node.target is getattr
    assert node.args == (of(traced.graph, "placeholder")[0], "T")


def test_attribute_then_call_is_one_method_call(fx):
    traced = traced_same(fx, lambda x: x.view(-1), torch.randn(2, 3))
    assert opcodes(traced.graph) == ["placeholder", "call_method", "output"]


def test_unused_attribute_records_nothing(fx):
    def touches(x):
        x.shape
        return x

    assert opcodes(fx.symbolic_trace(touches).graph) == ["placeholder", "output"]


def test_attribute_kept_and_used_twice_is_one_node(fx):
    def twice(x):
        shape = x.shape
        return shape[0] + shape[1]

    traced = fx.symbolic_trace(twice)
    assert targets(traced.graph).count(getattr) == 1
    assert traced(torch.zeros(2, 3)) == 5


def test_attribute_is_a_proxy_of_class_attribute(fx):
    graph = fx.Graph()
    attribute = fx.Proxy(graph.placeholder("x")).some
    assert isinstance(attribute, fx.Attribute) and isinstance(attribute, fx.Proxy)
    assert attribute.attr == "some"
    assert len(graph.nodes) == 1
    assert attribute.node.target is getattr
    assert len(graph.nodes) == 2


def test_chain_of_attributes(fx):
    traced = fx.symbolic_trace(lambda x: x.data.T)
    assert targets(traced.graph)[1:3] == [getattr, getattr]


def test_attribute_called_with_keywords(fx):
    traced = traced_same(fx, lambda x: x.sum(dim=0, keepdim=True), torch.randn(2, 3))
    assert only(traced.graph, "call_method").kwargs == {"dim": 0, "keepdim": True}


def test_shape_size_and_item_access(fx):
    traced = traced_same(fx, lambda x: x.reshape(x.shape[1], x.size(0)), torch.randn(2, 3))
    assert [node.target for node in of(traced.graph, "call_method")] == ["size", "reshape"]


def test_attribute_named_like_a_node_field(fx):
    class Holder:
        args = 3
        name = "n"

    traced = fx.symbolic_trace(lambda h: (h.args, h.name))
    assert traced(Holder()) == (3, "n")


def test_calling_a_proxy(fx):
    traced = fx.symbolic_trace(lambda f, x: f(x))
    node = only(traced.graph, "call_method")
    assert node.target == "__call__"
    assert traced(lambda x: x + 1, 2) == 3


@pytest.mark.parametrize(
    "index",
    [0, -1, slice(None), slice(1, None), slice(None, None, 2), None, ..., (0, 1), (slice(None), 0), (..., None)],
    ids=repr,
)
def test_getitem(fx, index):
    traced = traced_same(fx, lambda x: x[index], torch.randn(3, 4))
    node = only(traced.graph, "call_function")
    assert node.target is operator.getitem
    assert node.args[1] == index


def test_getitem_with_a_proxy_as_index(fx):
    traced = traced_same(fx, lambda x, i: x[i], torch.arange(4.0), torch.tensor([0, 2]))
    assert list(only(traced.graph, "call_function").args) == of(traced.graph, "placeholder")


def test_getitem_with_a_proxy_in_a_slice(fx):
    traced = fx.symbolic_trace(lambda x, n: x[1:n])
    node = only(traced.graph, "call_function")
    placeholder = of(traced.graph, "placeholder")[1]
    assert node.args[1].stop is placeholder
    assert node in placeholder.users
    assert traced(torch.arange(5.0), 3).tolist() == [1.0, 2.0]


def test_getitem_with_proxies_in_a_tuple(fx):
    traced = fx.symbolic_trace(lambda x, i, j: x[i, j])
    assert traced(torch.arange(6).reshape(2, 3), 1, 2).item() == 5


def test_getitem_with_a_string_key(fx):
    traced = fx.symbolic_trace(lambda d: d["key"] + 1)
    assert traced({"key": 1}) == 2


def test_torch_function_with_a_proxy_first(fx):
    traced = traced_same(fx, lambda x: torch.add(x, 1), A)
    assert only(traced.graph, "call_function").target is torch.add


def test_torch_function_with_a_proxy_second(fx):
    traced = traced_same(fx, lambda x: torch.mul(torch.ones(3), x), A)
    assert only(traced.graph, "call_function").target is torch.mul


def test_torch_function_with_a_proxy_as_keyword(fx):
    traced = traced_same(fx, lambda x: torch.add(input=x, other=x), A)
    assert set(only(traced.graph, "call_function").kwargs) == {"input", "other"}


def test_torch_function_with_proxies_in_a_list(fx):
    traced = traced_same(fx, lambda x, y: torch.cat([x, y], dim=0), A, B)
    node = only(traced.graph, "call_function")
    assert list(node.args[0]) == of(traced.graph, "placeholder")


def test_torch_function_with_proxies_in_a_tuple(fx):
    traced = traced_same(fx, lambda x, y: torch.stack((x, y)), A, B)
    assert isinstance(only(traced.graph, "call_function").args[0], tuple)


def test_torch_function_with_a_symbolic_size(fx):
    traced = traced_same(fx, lambda x: torch.reshape(x, (x.shape[0], 1)), A)
    assert torch.reshape in targets(traced.graph)


def test_tensor_method_given_a_proxy(fx):
    traced = traced_same(fx, lambda x: torch.ones(3).add(x), A)
    node = only(traced.graph, "call_method")
    assert node.target == "add"


def test_functional_given_keywords(fx):
    traced = traced_same(fx, lambda x: F.softmax(x, dim=-1), torch.randn(2, 3))
    assert only(traced.graph, "call_function").target is F.softmax


def test_results_of_a_multi_output_function(fx):
    def picks(x):
        values, indices = torch.topk(x, 2)
        return values + indices

    traced = traced_same(fx, picks, torch.randn(4))
    assert targets(traced.graph).count(operator.getitem) == 2


def test_named_result_fields(fx):
    traced = traced_same(fx, lambda x: torch.max(x, dim=0).values, torch.randn(3, 2))
    assert getattr in targets(traced.graph)


def test_repr(fx):
    graph = fx.Graph()
    assert repr(fx.Proxy(graph.placeholder("some_name"))) == "Proxy(some_name)"


def test_proxy_around_a_raw_node_appends(fx):
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    assert isinstance(x.tracer, fx.GraphAppendingTracer)
    y = torch.sin(x + 1).view(-1)
    graph.output(y.node)
    graph.lint()
    assert names(graph) == ["x", "add", "sin", "view", "output"]


def test_proxy_respects_the_insertion_point(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(x))
    relu = only(traced.graph, "call_function")
    with traced.graph.inserting_before(relu):
        doubled = fx.Proxy(relu.args[0]) * 2
    relu.args = (doubled.node,)
    traced.recompile()
    assert names(traced.graph) == ["x", "mul", "relu", "output"]
    assert traced(torch.tensor(3.0)) == 6.0


def test_graph_edit_with_proxy(fx):
    traced = fx.symbolic_trace(lambda a, b: a + b)
    copied = fx.Graph()
    value_map = {}
    result = copied.graph_copy(traced.graph, value_map)
    copied.output((fx.Proxy(result) + fx.Proxy(value_map[of(traced.graph, "placeholder")[0]])).node)
    copied.lint()
    assert fx.GraphModule(traced, copied)(3, 4) == 10


def test_proxy_deepcopy_without_tracer(fx):
    graph = fx.Graph()
    proxy = fx.Proxy(graph.placeholder("x"))
    copied = copy.deepcopy(proxy)
    assert isinstance(copied, fx.Proxy)
    assert copied.node is not proxy.node
    assert copied.node.name == "x"


def test_proxy_deepcopy_with_tracer(fx):
    class Named(fx.Tracer):
        def __init__(self, name):
            super().__init__()
            self.label = name

        def is_leaf_module(self, module, name):
            return True

    graph = fx.Graph()
    proxy = fx.Proxy(graph.placeholder("x"), Named("mytracer"))
    copied = copy.deepcopy(proxy)
    assert copied.node is not proxy.node
    assert copied.tracer is not proxy.tracer
    assert copied.tracer.label == "mytracer"


def test_proxy_is_hashable_by_identity(fx):
    graph = fx.Graph()
    node = graph.placeholder("x")
    proxy = fx.Proxy(node)
    assert {proxy.node: 1}[node] == 1


def test_dict_methods_of_a_proxy(fx):
    traced = fx.symbolic_trace(lambda d: d.get("a") + d.get("b"))
    assert [node.target for node in of(traced.graph, "call_method")] == ["get", "get"]
    assert traced({"a": 1, "b": 2}) == 3


def test_fused_operators_keep_order(fx):
    traced = traced_same(fx, lambda x, y: (x + y) * (x - y), A, B)
    assert names(traced.graph) == ["x", "y", "add", "sub", "mul", "output"]


def test_torch_function_on_subclass_of_proxy(fx):
    class Mine(fx.Proxy):
        pass

    graph = fx.Graph()
    proxy = Mine(graph.placeholder("x"))
    result = torch.relu(proxy)
    assert result.node.target is torch.relu


def test_unpacking_more_than_two(fx):
    def unpack(x):
        a, b, c = torch.split(x, 1)
        return a * b + c

    traced_same(fx, unpack, torch.randn(3))


def test_star_unpacking_is_refused(fx):
    def unpack(x):
        first, *rest = x
        return first

    with pytest.raises(fx.TraceError):
        fx.symbolic_trace(unpack)


def test_assert_fn(fx):
    fx.assert_fn(True)
    with pytest.raises(AssertionError):
        fx.assert_fn(False)
