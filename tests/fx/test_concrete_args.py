"""concrete_args: values baked in, nests with PH, and the pytree code that nests give."""

import pytest
import torch
import torch.utils._pytree as pytree

from .helpers import node_called, of, only, opcodes, targets


def choose(x, flag):
    if flag:
        return x
    return x * 2


@pytest.mark.parametrize("flag", [True, False])
def test_branch_is_specialised(fx, flag):
    traced = fx.symbolic_trace(choose, concrete_args={"flag": flag})
    assert traced(3, flag) == choose(3, flag)


def test_placeholder_stays_for_a_concrete_argument(fx):
    traced = fx.symbolic_trace(choose, concrete_args={"flag": True})
    assert [node.target for node in of(traced.graph, "placeholder")] == ["x", "flag_1"]


def test_other_value_of_a_specialised_argument_is_refused(fx):
    traced = fx.symbolic_trace(choose, concrete_args={"flag": True})
    with pytest.raises(AssertionError, match="flag has been specialized to have value True"):
        traced(3, False)


def test_specialised_number(fx):
    def repeated(x, times):
        for _ in range(times):
            x = x + 1
        return x

    traced = fx.symbolic_trace(repeated, concrete_args={"times": 3})
    assert traced(0, 3) == 3
    with pytest.raises(AssertionError, match="specialized"):
        traced(0, 4)


def test_specialised_none(fx):
    def optional(x, other=None):
        return x * 2 if other is None else x + other

    traced = fx.symbolic_trace(optional, concrete_args={"other": None})
    assert traced(3, None) == 6
    assert traced(3) == 6
    with pytest.raises(AssertionError, match="specialized to have value None"):
        traced(3, 4)


def test_specialised_string(fx):
    def mode(x, how):
        return x + 1 if how == "up" else x - 1

    traced = fx.symbolic_trace(mode, concrete_args={"how": "up"})
    assert traced(1, "up") == 2


def test_assertion_is_a_node(fx):
    traced = fx.symbolic_trace(choose, concrete_args={"flag": True})
    assert torch._assert in targets(traced.graph)


def test_module_with_concrete_args(fx):
    class Module(torch.nn.Module):
        def forward(self, x, flag):
            return choose(x, flag)

    traced = fx.symbolic_trace(Module(), concrete_args={"flag": False})
    assert traced(3, False) == 6


def test_tracer_takes_concrete_args(fx):
    graph = fx.Tracer().trace(choose, concrete_args={"flag": False})
    assert fx.GraphModule({}, graph)(3, False) == 6


def test_dict_of_placeholders(fx):
    def total(x):
        out = 0
        for value in x.values():
            out = out + value
        return out

    traced = fx.symbolic_trace(total, concrete_args={"x": {"a": fx.PH, "b": fx.PH, "c": fx.PH}})
    assert traced({"a": 1, "b": 2, "c": 4}) == 7


def test_list_of_placeholders(fx):
    def pair_sum(x):
        a, b = x
        return a + b

    traced = fx.symbolic_trace(pair_sum, concrete_args={"x": [fx.PH, fx.PH]})
    assert traced([1, 2]) == 3


@pytest.mark.parametrize(
    "shape",
    [
        lambda ph: (ph, ph),
        lambda ph: [ph, (ph, [ph])],
        lambda ph: {"a": ph, "b": (ph, ph)},
        lambda ph: [{"a": ph}, {"b": [ph]}],
        lambda ph: (ph,),
    ],
    ids=["tuple", "list-nest", "dict-nest", "list-of-dicts", "single"],
)
def test_nest_in_and_out(fx, shape):
    def double_all(x):
        return pytree.tree_map(lambda leaf: leaf * 2, x)

    traced = fx.symbolic_trace(double_all, concrete_args={"x": shape(fx.PH)})
    value = shape(torch.ones(2))
    torch.testing.assert_close(traced(value), double_all(value))


def test_nest_next_to_a_plain_argument(fx):
    def mixed(a, nest, b):
        return a + nest["k"] * b

    traced = fx.symbolic_trace(mixed, concrete_args={"nest": {"k": fx.PH}})
    assert traced(1, {"k": 2}, 3) == 7


def test_nest_in_a_module(fx):
    class Module(torch.nn.Module):
        def forward(self, nest):
            return nest[0] + nest[1]

    traced = fx.symbolic_trace(Module(), concrete_args={"nest": (fx.PH, fx.PH)})
    assert traced((1, 2)) == 3


def test_nested_result_is_rebuilt(fx):
    def split(x):
        return {"first": x[0], "rest": [x[1], (x[0],)]}

    traced = fx.symbolic_trace(split, concrete_args={"x": (fx.PH, fx.PH)})
    assert traced((1, 2)) == {"first": 1, "rest": [2, (1,)]}


def test_concrete_leaf_inside_a_nest(fx):
    def uses(x):
        return x["a"] * 2 if x["flag"] else x["a"]

    traced = fx.symbolic_trace(uses, concrete_args={"x": {"a": fx.PH, "flag": True}})
    assert traced({"a": 2, "flag": True}) == 4


def test_placeholders_of_a_nest_are_numbered(fx):
    traced = fx.symbolic_trace(lambda x: x[0] + x[1], concrete_args={"x": (fx.PH, fx.PH)})
    assert [node.target for node in of(traced.graph, "placeholder")] == ["x_1", "x_2"]


def test_codegen_of_a_nest_is_the_pytree_one(fx):
    traced = fx.symbolic_trace(lambda x: x[0], concrete_args={"x": (fx.PH, fx.PH)})
    assert isinstance(traced.graph._codegen, fx._PyTreeCodeGen)
    assert isinstance(traced.graph._codegen.pytree_info, fx._PyTreeInfo)
    assert traced.graph._codegen.pytree_info.orig_args == ["x"]


def test_process_inputs_and_outputs(fx):
    traced = fx.symbolic_trace(lambda x: {"out": x[0] - x[1]}, concrete_args={"x": (fx.PH, fx.PH)})
    flat = traced.graph.process_inputs((5, 3))
    assert list(flat) == [5, 3]
    assert traced.graph.process_outputs([2]) == {"out": 2}


def test_interpreter_on_a_nest(fx):
    traced = fx.symbolic_trace(lambda x: {"out": x[0] - x[1]}, concrete_args={"x": (fx.PH, fx.PH)})
    assert fx.Interpreter(traced).run((5, 3)) == {"out": 2}


def test_interpreter_without_io_processing(fx):
    traced = fx.symbolic_trace(lambda x: {"out": x[0] - x[1]}, concrete_args={"x": (fx.PH, fx.PH)})
    assert list(fx.Interpreter(traced).run(5, 3, enable_io_processing=False)) == [2]


def test_transformer_on_a_nest(fx):
    traced = fx.symbolic_trace(lambda x: [x["a"] + x["b"]], concrete_args={"x": {"a": fx.PH, "b": fx.PH}})
    transformed = fx.Transformer(traced).transform()
    assert transformed({"a": 1, "b": 2}) == [3]


def test_nest_after_an_edit(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(x[0]), concrete_args={"x": (fx.PH,)})
    node = [node for node in traced.graph.nodes if node.target is torch.relu][0]
    node.target = torch.neg
    traced.recompile()
    assert traced((torch.tensor(2.0),)) == -2.0


def test_user_defined_pytree_class(fx):
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda leaves, _: Pair(*leaves))
    try:
        traced = fx.symbolic_trace(lambda p: p.a * p.b, concrete_args={"p": Pair(fx.PH, fx.PH)})
        assert traced(Pair(3, 4)) == 12
    finally:
        pytree._deregister_pytree_node(Pair)


def test_flattened_as_one_leaf_without_a_nest(fx):
    traced = fx.symbolic_trace(lambda x: x + 1, concrete_args={"x": fx.PH})
    assert opcodes(traced.graph) == ["placeholder", "call_function", "output"]
    assert traced(1) == 2


def test_ph_repr(fx):
    assert repr(fx.PH) == "PH"


def test_metadata_travels_on_a_placeholder(fx):
    marked = fx.PHWithMeta(ph_key="my_key")
    traced = fx.symbolic_trace(lambda x, y: x[0] + y, concrete_args={"x": (marked,)})
    node = of(traced.graph, "placeholder")[0]
    assert node.ph_key == "my_key"


def test_concrete_args_as_a_tuple(fx):
    graph = fx.Tracer().trace(choose, concrete_args=(fx.PH, False))
    assert fx.GraphModule({}, graph)(3, False) == 6


def test_concrete_args_tuple_of_wrong_length(fx):
    with pytest.raises(RuntimeError, match="Tracing expected 2 arguments but got 1"):
        fx.Tracer().trace(choose, concrete_args=(fx.PH,))


def test_warning_for_values_that_cannot_be_checked(fx):
    class Settings:
        scale = 3

    with pytest.warns(UserWarning, match="(?i)specialized|fixed"):
        traced = fx.symbolic_trace(lambda x, s: x * s.scale, concrete_args={"s": Settings()})
    assert traced(2, Settings()) == 6


def test_default_of_a_concrete_argument(fx):
    def with_default(x, flag=True):
        return x if flag else -x

    traced = fx.symbolic_trace(with_default, concrete_args={"flag": True})
    assert traced(4) == 4
    assert node_called(traced.graph, "flag_1").args == (True,)


def test_output_of_pytree_graph_is_flat(fx):
    traced = fx.symbolic_trace(lambda x: {"a": x[0], "b": (x[1],)}, concrete_args={"x": (fx.PH, fx.PH)})
    assert len(only(traced.graph, "output").args[0]) == 2
