"""Interpreter: the six methods, run and its options, values kept and freed, errors."""

import gc
import operator
import weakref

import pytest
import torch

from .helpers import Inner, LinearOnly, Outer, node_called, of, only

X = torch.randn(2, 4)


@pytest.mark.parametrize("make", [Inner, Outer])
def test_run_computes_the_same(fx, make):
    root = make()
    torch.testing.assert_close(fx.Interpreter(fx.symbolic_trace(root)).run(X), root(X))


def test_run_of_a_function(fx):
    assert fx.Interpreter(fx.symbolic_trace(lambda x, y: x * 2 + y)).run(3, 4) == 10


def test_run_with_structured_result(fx):
    traced = fx.symbolic_trace(lambda x: {"a": (x, [x + 1])})
    assert fx.Interpreter(traced).run(1) == {"a": (1, [2])}


def test_run_twice(fx):
    interpreter = fx.Interpreter(fx.symbolic_trace(lambda x: x + 1))
    assert (interpreter.run(1), interpreter.run(5)) == (2, 6)


def test_default_arguments(fx):
    def with_default(x, y=10):
        return x + y

    interpreter = fx.Interpreter(fx.symbolic_trace(with_default))
    assert interpreter.run(1) == 11
    assert interpreter.run(1, 2) == 3


def test_not_enough_arguments(fx):
    interpreter = fx.Interpreter(fx.symbolic_trace(lambda x, y: x + y))
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter y"):
        interpreter.run(1)


def test_star_arguments(fx):
    def starred(x, *args):
        return x + args[0] + args[1]

    assert fx.Interpreter(fx.symbolic_trace(starred)).run(1, 2, 3) == 6


def test_call_function_override(fx):
    class Swap(fx.Interpreter):
        def call_function(self, target, args, kwargs):
            if target is torch.sigmoid:
                return torch.neg(*args, **kwargs)
            return super().call_function(target, args, kwargs)

    traced = fx.symbolic_trace(lambda x: torch.sigmoid(x) + 1)
    torch.testing.assert_close(Swap(traced).run(X), -X + 1)


def test_call_method_override(fx):
    class Swap(fx.Interpreter):
        def call_method(self, target, args, kwargs):
            if target == "neg":
                first, *rest = args
                return first.sigmoid(*rest, **kwargs)
            return super().call_method(target, args, kwargs)

    traced = fx.symbolic_trace(lambda x: x.neg())
    torch.testing.assert_close(Swap(traced).run(X), X.sigmoid())


def test_call_module_override(fx):
    class Skip(fx.Interpreter):
        def call_module(self, target, args, kwargs):
            return args[0]

    torch.testing.assert_close(Skip(fx.symbolic_trace(LinearOnly())).run(X), X)


def test_get_attr_override(fx):
    class Zero(fx.Interpreter):
        def get_attr(self, target, args, kwargs):
            return torch.zeros_like(super().get_attr(target, args, kwargs))

    traced = fx.symbolic_trace(Inner())
    assert Zero(traced).run(X).abs().sum() == 0


def test_placeholder_override(fx):
    class Double(fx.Interpreter):
        def placeholder(self, target, args, kwargs):
            return super().placeholder(target, args, kwargs) * 2

    assert Double(fx.symbolic_trace(lambda x, y: x - y)).run(5, 1) == 8


def test_output_override(fx):
    class Wrap(fx.Interpreter):
        def output(self, target, args, kwargs):
            return {"wrapped": super().output(target, args, kwargs)}

    assert Wrap(fx.symbolic_trace(lambda x: x)).run(3) == {"wrapped": 3}


def test_run_node_override_sees_every_node(fx):
    seen = []

    class Watch(fx.Interpreter):
        def run_node(self, n):
            result = super().run_node(n)
            seen.append((n.op, type(result).__name__))
            n.cached = result
            return result

    traced = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    Watch(traced).run(X)
    assert [op for op, _ in seen] == ["placeholder", "call_function", "call_function", "output"]
    torch.testing.assert_close(node_called(traced.graph, "relu").cached, X.relu())


def test_run_node_gives_values_to_the_methods(fx):
    arguments = []

    class Watch(fx.Interpreter):
        def call_function(self, target, args, kwargs):
            arguments.append((target, args, kwargs))
            return super().call_function(target, args, kwargs)

    Watch(fx.symbolic_trace(lambda x: torch.add(x, 1, alpha=2))).run(torch.tensor(1.0))
    assert arguments == [(torch.add, (torch.tensor(1.0), 1), {"alpha": 2})]


def test_initial_env_short_circuits(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    relu = node_called(traced.graph, "relu")
    result = fx.Interpreter(traced).run(torch.tensor(-5.0), initial_env={relu: torch.tensor(100.0)})
    assert result == 101.0


def test_initial_env_for_placeholders(fx):
    traced = fx.symbolic_trace(lambda x, y: x - y)
    x, y = of(traced.graph, "placeholder")
    assert fx.Interpreter(traced).run(initial_env={x: 5, y: 3}) == 2


def test_env_keeps_everything_without_garbage_collection(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(torch.neg(x)))
    interpreter = fx.Interpreter(traced, garbage_collect_values=False)
    interpreter.run(X)
    assert set(interpreter.env) == set(traced.graph.nodes)


def test_env_is_freed_with_garbage_collection(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(torch.neg(x)))
    interpreter = fx.Interpreter(traced)
    interpreter.run(X)
    assert {node.name for node in interpreter.env} == {"output"}


def test_intermediate_values_are_freed_during_the_run(fx):
    alive = []

    class Watch(fx.Interpreter):
        def run_node(self, n):
            result = super().run_node(n)
            if n.target is torch.neg:
                alive.append(weakref.ref(result))
            if n.target is torch.abs:
                gc.collect()
                alive.append(alive[0]())
            return result

    Watch(fx.symbolic_trace(lambda x: torch.abs(torch.relu(torch.neg(x))))).run(X)
    assert alive[1] is None


def test_other_graph(fx):
    root = LinearOnly()
    traced = fx.symbolic_trace(root)
    other = fx.Graph()
    x = other.placeholder("x")
    other.output(other.call_function(operator.mul, (other.call_module("linear", (x,)), 0)))
    assert fx.Interpreter(traced, graph=other).run(torch.ones(1, 3)).abs().sum() == 0


def test_plain_module_with_a_graph(fx):
    root = LinearOnly()
    graph = fx.Tracer().trace(root)
    torch.testing.assert_close(fx.Interpreter(root, graph=graph).run(torch.ones(1, 3)), root(torch.ones(1, 3)))


def test_boxed_run(fx):
    traced = fx.symbolic_trace(lambda x, y: x - y)
    arguments = [5, 3]
    assert fx.Interpreter(traced).boxed_run(arguments) == 2
    assert arguments == []


@pytest.mark.parametrize(("arguments", "text"), [([1], "missing arguments"), ([1, 2, 3], "extra arguments")])
def test_boxed_run_counts_arguments(fx, arguments, text):
    traced = fx.symbolic_trace(lambda x, y: x - y)
    with pytest.raises(RuntimeError, match=text):
        fx.Interpreter(traced).boxed_run(arguments)


def test_boxed_run_frees_its_inputs(fx):
    alive = []

    class Watch(fx.Interpreter):
        def call_function(self, target, args, kwargs):
            if target is torch.abs:
                gc.collect()
                alive.append(reference())
            return super().call_function(target, args, kwargs)

    value = torch.ones(3)
    reference = weakref.ref(value)
    arguments = [value]
    del value
    Watch(fx.symbolic_trace(lambda x: torch.abs(torch.neg(x)))).boxed_run(arguments)
    assert alive == [None]


def test_fetch_attr(fx):
    root = Outer()
    interpreter = fx.Interpreter(fx.symbolic_trace(root))
    assert interpreter.fetch_attr("inner.scale") is root.inner.scale
    assert interpreter.fetch_attr("norm") is root.norm


def test_fetch_attr_of_nothing(fx):
    interpreter = fx.Interpreter(fx.symbolic_trace(Outer()))
    with pytest.raises(RuntimeError, match="nonexistent target inner.nowhere"):
        interpreter.fetch_attr("inner.nowhere.x")


def test_fetch_args_kwargs_from_env(fx):
    traced = fx.symbolic_trace(lambda x, y: torch.cat([x, y], dim=0))
    interpreter = fx.Interpreter(traced)
    x, y = of(traced.graph, "placeholder")
    interpreter.env = {x: 1, y: 2}
    assert interpreter.fetch_args_kwargs_from_env(only(traced.graph, "call_function")) == (([1, 2],), {"dim": 0})


def test_map_nodes_to_values(fx):
    traced = fx.symbolic_trace(lambda x, y: x + y)
    x, y = of(traced.graph, "placeholder")
    add = only(traced.graph, "call_function")
    interpreter = fx.Interpreter(traced)
    interpreter.env = {x: 1, y: 2}
    assert interpreter.map_nodes_to_values([x, {"k": y}, 7], add) == [1, {"k": 2}, 7]


def test_map_nodes_to_values_without_the_value(fx):
    traced = fx.symbolic_trace(lambda x, y: x + y)
    interpreter = fx.Interpreter(traced)
    with pytest.raises(RuntimeError, match="nonexistent value"):
        interpreter.map_nodes_to_values(of(traced.graph, "placeholder")[0], only(traced.graph, "call_function"))


def test_run_node_alone(fx):
    traced = fx.symbolic_trace(lambda x: torch.neg(x))
    interpreter = fx.Interpreter(traced)
    interpreter.env = {of(traced.graph, "placeholder")[0]: torch.tensor(2.0)}
    assert interpreter.run_node(only(traced.graph, "call_function")) == -2.0


def test_error_names_the_node(fx):
    traced = fx.symbolic_trace(lambda x: torch.matmul(x, x))
    with pytest.raises(RuntimeError) as caught:
        fx.Interpreter(traced).run(torch.ones(2, 3))
    text = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
    assert "While executing %matmul" in text


def test_error_can_be_left_plain(fx):
    traced = fx.symbolic_trace(lambda x: torch.matmul(x, x))
    interpreter = fx.Interpreter(traced)
    interpreter.extra_traceback = False
    with pytest.raises(RuntimeError) as caught:
        interpreter.run(torch.ones(2, 3))
    assert "While executing" not in str(caught.value)


def test_error_keeps_its_class(fx):
    def fails(x):
        raise ZeroDivisionError("deep inside")

    graph = fx.Graph()
    graph.output(graph.call_function(fails, (graph.placeholder("x"),)))
    with pytest.raises(ZeroDivisionError, match="deep inside"):
        fx.Interpreter(fx.GraphModule({}, graph)).run(1)


def test_submodules_are_listed(fx):
    interpreter = fx.Interpreter(fx.symbolic_trace(Outer()))
    assert "inner.linear" in interpreter.submodules


def test_interpreter_sees_edits_without_recompile(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(x))
    only(traced.graph, "call_function").target = torch.neg
    assert fx.Interpreter(traced).run(torch.tensor(3.0)) == -3.0


def test_on_the_fly_rewrite(fx):
    class Fuse(fx.Interpreter):
        def call_module(self, target, args, kwargs):
            module = self.fetch_attr(target)
            return torch.nn.functional.linear(args[0], module.weight * 0, module.bias * 0)

    assert Fuse(fx.symbolic_trace(LinearOnly())).run(torch.ones(1, 3)).abs().sum() == 0


def test_gradient_through_the_interpreter(fx):
    root = Inner()
    fx.Interpreter(fx.symbolic_trace(root)).run(X).sum().backward()
    assert root.scale.grad is not None


def test_shape_prop(fx):
    traced = fx.symbolic_trace(Outer())
    fx.ShapeProp(traced).propagate(X)
    metas = [node.meta["tensor_meta"] for node in traced.graph.nodes]
    assert metas[0].shape == (2, 4) and metas[-1].shape == (2, 3)
    assert all(meta.dtype is torch.float32 for meta in metas)


def test_shape_prop_fields(fx):
    traced = fx.symbolic_trace(lambda x: x.t())
    result = fx.ShapeProp(traced).propagate(torch.ones(2, 3, requires_grad=True))
    meta = only(traced.graph, "call_method").meta["tensor_meta"]
    assert result.shape == (3, 2)
    assert (meta.stride, meta.requires_grad, meta.is_quantized) == ((1, 3), True, False)


def test_shape_prop_memory_format(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(x))
    fx.ShapeProp(traced).propagate(torch.ones(1, 2, 3, 3).to(memory_format=torch.channels_last))
    assert only(traced.graph, "call_function").meta["tensor_meta"].memory_format is torch.channels_last


def test_shape_prop_of_several_results(fx):
    traced = fx.symbolic_trace(lambda x: torch.topk(x, 2))
    fx.ShapeProp(traced).propagate(torch.ones(5))
    values, indices = only(traced.graph, "call_function").meta["tensor_meta"]
    assert values.shape == (2,) and indices.dtype is torch.int64


def test_shape_prop_records_python_types(fx):
    traced = fx.symbolic_trace(lambda x: x.size(0))
    fx.ShapeProp(traced).propagate(torch.ones(5))
    node = only(traced.graph, "call_method")
    assert node.meta["type"] is int and "tensor_meta" not in node.meta


def test_documented_shape_propagation_by_hand(fx):
    class Shapes(fx.Interpreter):
        def run_node(self, n):
            result = super().run_node(n)
            if isinstance(result, torch.Tensor):
                n.shape, n.dtype = result.shape, result.dtype
            return result

    traced = fx.symbolic_trace(Outer())
    Shapes(traced).run(X)
    assert node_called(traced.graph, "tail_0").shape == (2, 3)
