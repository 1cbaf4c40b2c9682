"""Patterns: what matches, what must not, and that a replaced graph is valid and computes what it should."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import clew
from clew import fx
from clew.errors import MissingAttribute, PatternError
from clew.passes.replace import replace_pattern_with_filters
from tests.speed.counts import calls_in


def targets(gm: Any) -> list[Any]:
    """What the graph calls, in order."""
    return [node.target for node in gm.graph.nodes if node.op.startswith("call")]


def matches_of(program: Any, pattern: Any, **options: Any) -> list[Any]:
    """The matches of a pattern that is given as a function or module."""
    graph, wanted = fx.symbolic_trace(program).graph, fx.symbolic_trace(pattern).graph
    return fx.SubgraphMatcher(wanted, **options).match(graph)


def replaced(program: Any, pattern: Any, replacement: Any, expected_matches: int) -> Any:
    """The program after the replacement, which is checked to be valid."""
    gm = fx.symbolic_trace(program)
    assert len(fx.replace_pattern(gm, pattern, replacement)) == expected_matches
    gm.graph.lint()
    return gm


def assert_same(gm: Any, reference: Callable[..., Any], *inputs: Any) -> None:
    """Both compute the same from copies of the inputs, and leave the inputs in the same state."""
    mine, theirs = [value.clone() for value in inputs], [value.clone() for value in inputs]
    torch.testing.assert_close(gm(*mine), reference(*theirs), rtol=0, atol=0)
    torch.testing.assert_close(mine, theirs, rtol=0, atol=0)


# ---- literals --------------------------------------------------------------------------------------------------------


LITERALS = [1, 1.0, True, float("nan"), 0.0, -0.0, "a", None, 2 + 0j, (1, 2), [1, 2], slice(1)]


@pytest.mark.parametrize("written", LITERALS)
@pytest.mark.parametrize("wanted", LITERALS)
def test_a_literal_matches_only_an_equal_one_of_the_same_class(written, wanted):
    graphs = []
    for literal in (written, wanted):
        graph = fx.Graph()
        graph.output(graph.call_function(operator.getitem, (graph.placeholder("x"), literal)))
        graphs.append(graph)
    found = fx.SubgraphMatcher(graphs[1]).match(graphs[0])
    assert len(found) == (repr(written) == repr(wanted))


def test_nested_literals_are_compared_member_by_member():
    program = lambda x: x.sum(dim=[0, 1])
    assert matches_of(program, lambda x: x.sum(dim=[0, 1]))
    assert not matches_of(program, lambda x: x.sum(dim=[0, 2]))
    assert not matches_of(program, lambda x: x.sum(dim=[0]))


def test_dtypes_are_literals():
    program = lambda x: x.to(torch.float16)
    assert matches_of(program, lambda x: x.to(torch.float16))
    assert not matches_of(program, lambda x: x.to(torch.float32))


def test_a_dictionary_matches_whatever_the_order_of_its_keys():
    def graph_with(options):
        graph = fx.Graph()
        graph.output(graph.call_function(dict, (options, graph.placeholder("x"))))
        return graph

    matcher = fx.SubgraphMatcher(graph_with({"a": 1, "b": 2}))
    assert matcher.match(graph_with({"b": 2, "a": 1}))
    assert not matcher.match(graph_with({"b": 2, "a": True}))


def test_a_literal_never_matches_a_node_and_the_reverse():
    assert not matches_of(lambda x, y: x + y, lambda x: x + 1)
    assert not matches_of(lambda x: x + 1, lambda x: x + x.relu())


def test_ignore_literals_lets_a_literal_stand_for_any_literal_but_no_node():
    pattern = lambda x: x + 1
    assert matches_of(lambda x: x + 7.5, pattern, ignore_literals=True)
    assert not matches_of(lambda x, y: x + y, pattern, ignore_literals=True)
    assert not matches_of(lambda x: x - 1, pattern, ignore_literals=True)


def test_a_list_is_as_good_as_a_tuple_for_a_framework_but_not_in_an_index():
    assert matches_of(lambda x, y: torch.cat((x, y)), lambda x, y: torch.cat([x, y]))
    assert not matches_of(lambda x: x[(0, 1)], lambda x: x[[0, 1]])


# ---- placeholders ----------------------------------------------------------------------------------------------------


def test_a_placeholder_binds_a_literal():
    gm = replaced(lambda x: x * 3, lambda a, b: a * b, lambda a, b: torch.mul(a, b), 1)
    assert_same(gm, lambda x: x * 3, torch.randn(3))


def test_a_placeholder_binds_a_nest():
    gm = replaced(
        lambda x, y: torch.cat([x, y], dim=0),
        lambda parts, d: torch.cat(parts, dim=d),
        lambda parts, d: torch.cat(parts, dim=d).neg(),
        1,
    )
    assert_same(gm, lambda x, y: -torch.cat([x, y]), torch.randn(3), torch.randn(2))


def test_a_placeholder_used_twice_binds_one_thing():
    pattern = lambda a: a * a
    assert matches_of(lambda x: x * x, pattern)
    assert not matches_of(lambda x, y: x * y, pattern)


def test_a_placeholder_used_twice_binds_one_literal():
    pattern = lambda x, a: (x + a) * a
    assert matches_of(lambda x: (x + 2) * 2, pattern)
    assert not matches_of(lambda x: (x + 2) * 2.0, pattern)
    assert not matches_of(lambda x: (x + 2) * 3, pattern)


def test_two_placeholders_may_bind_the_same_node():
    gm = replaced(lambda x: x + x, lambda a, b: a + b, lambda a, b: a - b, 1)
    assert_same(gm, lambda x: x - x, torch.randn(3))


def test_a_placeholder_never_binds_an_operation_of_its_own_match():
    def pattern(x, z):
        y = torch.relu(x)
        return y, y + z

    gm = fx.symbolic_trace(lambda x: (r := torch.relu(x)) + r)
    assert fx.replace_pattern(gm, pattern, pattern) == []


def test_match_placeholder_binds_only_placeholders():
    program = lambda x: torch.relu(torch.relu(x))
    assert len(matches_of(program, lambda x: torch.relu(x), match_placeholder=True)) == 1
    assert len(matches_of(program, lambda x: torch.relu(x))) == 2


def test_match_output_binds_only_the_end():
    found = matches_of(lambda x: torch.relu(torch.relu(x)), lambda x: torch.relu(x), match_output=True)
    assert [match.returning_nodes[0].name for match in found] == ["relu_1"]


def test_an_unused_placeholder_of_the_pattern_may_not_be_used_by_the_replacement():
    gm = fx.symbolic_trace(lambda x: torch.relu(x))
    with pytest.raises(PatternError, match=r"uses its input other, but the pattern does not use its input y"):
        fx.replace_pattern(gm, lambda x, y: torch.relu(x), lambda x, other: x + other)
    assert len(fx.replace_pattern(gm, lambda x, y: torch.relu(x), lambda x, y: torch.neg(x))) == 1


def test_a_default_value_of_the_pattern_is_no_condition():
    def pattern(x, scale=2):
        return x * scale

    assert replaced(lambda x: x * 5, pattern, lambda x, scale: x / scale, 1)(torch.tensor(10.0)) == 2


# ---- calls -----------------------------------------------------------------------------------------------------------


def test_keyword_arguments_match_in_any_order():
    program = lambda x: x.clamp(min=0, max=1)
    assert matches_of(program, lambda x: x.clamp(max=1, min=0))
    assert not matches_of(program, lambda x: x.clamp(min=0))
    assert not matches_of(program, lambda x: x.clamp(min=0, max=2))


def test_positional_and_keyword_spelling_match_for_a_python_function():
    program = lambda x: nn.functional.gelu(x) + nn.functional.leaky_relu(x, 0.2)
    assert matches_of(program, lambda x: nn.functional.leaky_relu(x, negative_slope=0.2))
    assert not matches_of(program, lambda x: nn.functional.leaky_relu(x, negative_slope=0.1))
    assert not matches_of(program, lambda x: nn.functional.leaky_relu(x))


def test_positional_and_keyword_spelling_match_for_an_operator_with_a_schema():
    pool = torch.ops.aten.max_pool2d_with_indices.default
    program = lambda x: pool(x, [2, 2], stride=[2, 2])
    assert matches_of(program, lambda x, size, stride: pool(x, size, stride, padding=[0, 0]))
    assert not matches_of(program, lambda x, size, stride: pool(x, size, stride, padding=[1, 1]))


def test_positional_and_keyword_spelling_match_for_a_module():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.flat = nn.Softmax(dim=1)

        def forward(self, x):
            return self.flat(input=x)

    class Pattern(Scaled):
        def forward(self, x):
            return self.flat(x)

    assert matches_of(Scaled(), Pattern())


def test_operands_that_may_not_change_places_keep_their_order():
    assert not matches_of(lambda x, y: torch.relu(x) - torch.neg(y), lambda x, y: torch.neg(x) - torch.relu(y))
    assert not matches_of(lambda x, y: torch.relu(x) @ torch.neg(y), lambda x, y: torch.neg(x) @ torch.relu(y))


def test_methods_match_by_name():
    assert matches_of(lambda x: x.relu(), lambda x: x.relu())
    assert not matches_of(lambda x: x.relu(), lambda x: x.relu_())


def test_a_callable_without_a_hash_matches_itself():
    class Odd:
        __hash__ = None
        __name__ = "odd"

        def __call__(self, x):
            return x

    odd, other = Odd(), Odd()

    def graph_with(function):
        graph = fx.Graph()
        graph.output(graph.call_function(function, (graph.placeholder("x"),)))
        return graph

    assert fx.SubgraphMatcher(graph_with(odd)).match(graph_with(odd))
    assert not fx.SubgraphMatcher(graph_with(odd)).match(graph_with(other))


# ---- modules and attributes ------------------------------------------------------------------------------------------


def holding(module: Any, name: str = "inner") -> nn.Module:
    """A module that calls the one given, which it has under the name."""

    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            setattr(self, name, module)

        def forward(self, x):
            return getattr(self, name)(x)

    return Holder()


def test_a_module_with_parameters_matches_by_class_under_any_path():
    assert matches_of(holding(nn.Linear(3, 3), "late"), holding(nn.Linear(1, 1), "proto"))
    assert not matches_of(holding(nn.Bilinear(3, 3, 3)), holding(nn.Linear(3, 3)))


def test_a_module_without_parameters_matches_by_class_and_configuration():
    assert matches_of(holding(nn.Softmax(dim=1), "a"), holding(nn.Softmax(dim=1), "b"))
    assert not matches_of(holding(nn.Softmax(dim=1)), holding(nn.Softmax(dim=0)))
    assert not matches_of(holding(nn.ReLU()), holding(nn.GELU()))
    assert matches_of(holding(nn.Softmax(dim=1)), holding(nn.Softmax(dim=0)), ignore_literals=True)


def test_the_replacement_means_the_module_that_was_matched():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            return self.two(self.one(x))

    class Pattern(nn.Module):
        def __init__(self):
            super().__init__()
            self.any = nn.Linear(1, 1)

        def forward(self, x):
            return self.any(x)

    class Replacement(Pattern):
        def forward(self, x):
            return nn.functional.linear(x, self.any.weight, self.any.bias) + self.any(x)

    root = Two()
    gm = replaced(root, Pattern(), Replacement(), 2)
    assert_same(gm, lambda x: (y := root.one(x) + root.one(x)) * 0 + 2 * root.two(y), torch.randn(2, 3))


def test_submodules_are_taken_over_and_unused_ones_deleted():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.sigmoid, self.end = nn.Sigmoid(), nn.ReLU()

        def forward(self, x):
            return self.end(self.sigmoid(x + 1))

    class Replacement(nn.Module):
        def __init__(self):
            super().__init__()
            self.tanh, self.end = nn.Tanh(), nn.ReLU()

        def forward(self, x):
            return self.end(self.tanh(x))

    class Pattern(Net):
        def forward(self, x):
            return self.end(self.sigmoid(x))

    gm = replaced(Net(), Pattern(), Replacement(), 1)
    assert_same(gm, lambda x: torch.relu(torch.tanh(x + 1)), torch.randn(4))
    assert isinstance(gm.tanh, nn.Tanh) and isinstance(gm.end, nn.ReLU)
    with pytest.raises(AttributeError):
        gm.get_submodule("sigmoid")


def test_a_taken_name_does_not_hide_the_module_of_the_replacement():
    class Replacement(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Softmax(dim=0)

        def forward(self, x):
            return self.inner(x)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Softmax(dim=1)

        def forward(self, x):
            return torch.neg(self.inner(x))

    gm = replaced(Net(), lambda x: torch.neg(x), Replacement(), 1)
    assert_same(gm, lambda x: x.softmax(1).softmax(0), torch.randn(2, 3))


class Adds(nn.Module):
    """Adds an attribute, which is put there as a constant, a buffer or a parameter."""

    def __init__(self, kind: str, value: Any, name: str = "shift"):
        super().__init__()
        self.name = name
        if kind == "buffer":
            self.register_buffer(name, value)
        else:
            setattr(self, name, nn.Parameter(value) if kind == "parameter" else value)

    def forward(self, x):
        return x + getattr(self, self.name)


@pytest.mark.parametrize("kind", ["buffer", "parameter"])
def test_state_matches_whatever_its_value(kind):
    assert matches_of(Adds(kind, torch.ones(2), "late"), Adds(kind, torch.zeros(3), "proto"))


@pytest.mark.parametrize(
    ("wanted", "found"), [([1.0, float("nan")], 1), ([2.0, float("nan")], 0), ([1.0, 1.0], 0), ([1, 1], 0), ([1.0], 0)]
)
def test_a_constant_tensor_matches_an_equal_one(wanted, found):
    program = Adds("constant", torch.tensor([1.0, float("nan")]))
    replaced(program, Adds("constant", torch.tensor(wanted), "other"), lambda x: x, found)


@pytest.mark.parametrize("kind", ["constant", "buffer", "parameter"])
def test_attributes_are_taken_over_as_what_they_are(kind):
    gm = replaced(lambda x: torch.relu(x), lambda x: torch.relu(x), Adds(kind, torch.tensor([3.0])), 1)
    assert_same(gm, lambda x: x + 3, torch.randn(2))
    assert ("shift" in dict(gm.named_buffers())) == (kind == "buffer")
    assert ("shift" in dict(gm.named_parameters())) == (kind == "parameter")


def test_constants_of_a_replacement_function_do_not_collide_with_those_of_the_program():
    one, two = torch.tensor([1.0]), torch.tensor([2.0])
    gm = replaced(lambda x: torch.relu(x) + one, lambda x: torch.relu(x), lambda x: x * two, 1)
    assert_same(gm, lambda x: x * two + one, torch.randn(3))


def test_a_read_of_an_attribute_may_have_other_users():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(3))

        def forward(self, x):
            return torch.neg(x * self.w) - self.w

    class Pattern(Net):
        def forward(self, x):
            return x * self.w

    class Replacement(Net):
        def forward(self, x):
            return x + self.w

    root = Net()
    assert_same(replaced(root, Pattern(), Replacement(), 1), lambda x: -(x + root.w) - root.w, torch.randn(3))


def test_a_path_that_nobody_has_is_an_error_and_the_graph_stays():
    gm = fx.symbolic_trace(lambda x: torch.relu(x))
    replacement = fx.Graph()
    replacement.output(replacement.create_node("call_module", "gone", (replacement.placeholder("x"),)))
    with pytest.raises(MissingAttribute, match="refers to gone"):
        fx.replace_pattern(gm, lambda x: torch.relu(x), replacement)
    assert targets(gm) == [torch.relu]


# ---- where matches lie to each other ---------------------------------------------------------------------------------


def test_of_overlapping_matches_the_earliest_wins():
    program = lambda x: torch.sigmoid(torch.sigmoid(torch.sigmoid(x)))
    gm = replaced(program, lambda x: torch.sigmoid(torch.sigmoid(x)), lambda x: torch.neg(x), 1)
    assert targets(gm) == [torch.neg, torch.sigmoid]


def test_overlapping_matches_are_all_found_on_demand():
    program = lambda x: torch.sigmoid(torch.sigmoid(torch.sigmoid(x)))
    pattern = lambda x: torch.sigmoid(torch.sigmoid(x))
    assert len(matches_of(program, pattern, remove_overlapping_matches=False)) == 2


def test_back_to_back_matches_are_all_replaced():
    def program(x, y):
        for _ in range(4):
            x = torch.relu(x) + y
        return x

    def reference(x, y):
        for _ in range(4):
            x = torch.neg(x) * y
        return x

    gm = fx.symbolic_trace(program)
    found = fx.replace_pattern(gm, lambda a, b: torch.relu(a) + b, lambda a, b: torch.neg(a) * b)
    assert_same(gm, reference, torch.randn(3), torch.randn(3))
    alive = set(gm.graph.nodes)
    inputs = [value for match in found for key, value in match.nodes_map.items() if key.op == "placeholder"]
    assert len(inputs) == 8 and alive.issuperset(inputs)


def test_a_chain_of_identities_disappears():
    def program(x):
        for _ in range(2000):
            x = torch.relu(x)
        return x - 1

    gm = replaced(program, lambda x: torch.relu(x), lambda x: x, 2000)
    assert targets(gm) == [operator.sub]


def test_a_replacement_may_return_a_literal_or_a_nest():
    gm = replaced(lambda x: x + torch.numel(x), lambda x: torch.numel(x), lambda x: 7, 1)
    assert_same(gm, lambda x: x + 7, torch.randn(3))
    gm = replaced(lambda x: torch.relu(x) * 2, lambda x, a: torch.relu(x) * a, lambda x, a: a, 1)
    assert gm(torch.ones(1)) == 2


def test_an_internal_node_with_other_users_prevents_the_match():
    program = lambda x: (y := torch.relu(x)) + torch.neg(y)
    assert not matches_of(program, lambda x: torch.neg(torch.relu(x)))
    assert matches_of(program, lambda x: ((y := torch.relu(x)), torch.neg(y)))


def test_a_pattern_that_is_the_whole_program():
    program = lambda x: torch.neg(torch.relu(x))
    assert_same(replaced(program, program, lambda x: x + 1, 1), lambda x: x + 1, torch.randn(2))


# ---- several results -------------------------------------------------------------------------------------------------


def test_several_results_are_replaced_by_position():
    gm = replaced(
        lambda x: torch.relu(x) - torch.neg(x) * 3,
        lambda x: (torch.relu(x), torch.neg(x)),
        lambda x: (torch.neg(x), torch.relu(x)),
        1,
    )
    assert_same(gm, lambda x: -x - torch.relu(x) * 3, torch.randn(5))


def test_last_operations_are_found_through_what_they_share():
    program = lambda x, y: (torch.relu(x), torch.relu(y), torch.neg(y), torch.neg(x))
    found = matches_of(program, lambda a: (torch.relu(a), torch.neg(a)))
    pairs = [[node.name for node in match.returning_nodes] for match in found]
    assert pairs == [["relu", "neg_1"], ["relu_1", "neg"]]


def test_parts_without_connection_are_paired_in_order():
    program = lambda x, y: torch.relu(x) + torch.neg(y) + torch.relu(y) + torch.neg(x)
    found = matches_of(program, lambda a, b: (torch.relu(a), torch.neg(b)))
    pairs = [[node.name for node in match.returning_nodes] for match in found]
    assert pairs == [["relu", "neg"], ["relu_1", "neg_1"]]


def test_results_that_are_used_between_the_matched_nodes_are_computed_in_time():
    def program(x):
        first = torch.relu(x)
        used = torch.sigmoid(first)
        late = torch.exp(x)
        return used + torch.neg(late)

    gm = replaced(program, lambda a, b: (torch.relu(a), torch.neg(b)), lambda a, b: (a.relu(), b.neg()), 1)
    assert_same(gm, program, torch.randn(4))


def test_a_match_through_which_a_value_would_run_in_a_circle_is_left_alone():
    program = lambda x: torch.neg(torch.exp(torch.relu(x)))
    pattern = lambda a, b: (torch.relu(a), torch.neg(b))
    assert not matches_of(program, pattern)
    gm = replaced(program, pattern, lambda a, b: (b, a), 0)
    assert_same(gm, program, torch.randn(3))


def test_a_result_returned_twice():
    pattern = lambda x: ((y := torch.relu(x)), torch.neg(y), y)
    program = lambda x: (y := torch.relu(x)) + torch.neg(y)
    gm = replaced(program, pattern, lambda x: ((y := torch.tanh(x)), torch.exp(y), y), 1)
    assert_same(gm, lambda x: torch.tanh(x) + torch.exp(torch.tanh(x)), torch.randn(3))
    with pytest.raises(PatternError, match="returns relu twice"):
        fx.replace_pattern(fx.symbolic_trace(program), pattern, lambda x: (x.sin(), x.cos(), x.tan()))


def test_an_input_that_the_pattern_returns_stays_what_it_is():
    program = lambda x: torch.relu(x) * x
    gm = replaced(program, lambda x: (x, torch.relu(x)), lambda x: (x, torch.neg(x)), 1)
    assert_same(gm, lambda x: -x * x, torch.randn(3))
    with pytest.raises(PatternError, match="returns its own input x"):
        fx.replace_pattern(fx.symbolic_trace(program), lambda x: (x, x.relu()), lambda x: (x.neg(), x))


# ---- effects ---------------------------------------------------------------------------------------------------------


def test_a_read_is_not_moved_across_a_write():
    def program(x):
        before = torch.relu(x)
        x.add_(1)
        return before + x

    gm = replaced(program, lambda a, b: torch.relu(a) + b, lambda a, b: torch.add(a.relu(), b), 0)
    assert_same(gm, program, torch.randn(4))


def test_a_write_to_memory_of_its_own_does_not_stand_in_the_way():
    def program(x, y):
        before = torch.relu(x)
        other = torch.exp(y)
        other.add_(1)
        return before + other

    gm = replaced(program, lambda a, b: torch.relu(a) + b, lambda a, b: torch.add(a.relu(), b), 1)
    assert_same(gm, program, torch.randn(4), torch.randn(4))


def test_a_write_through_a_view_is_seen():
    def program(x):
        base = torch.exp(x)
        view = base[0]
        before = torch.relu(base)
        view.zero_()
        return before + base

    gm = replaced(program, lambda a, b: torch.relu(a) + b, lambda a, b: torch.add(a.relu(), b), 0)
    assert_same(gm, program, torch.randn(2, 2))


def test_two_inputs_may_be_the_same_memory():
    def program(x, y):
        before = torch.relu(x)
        y.add_(1)
        return before + 2, y * 2

    gm = replaced(program, lambda a: torch.relu(a) + 2, lambda a: 2 + a.relu(), 1)
    assert targets(gm) == ["relu", operator.add, "add_", operator.mul]
    value = torch.zeros(1)
    assert gm(value, value) == (2, 2)
    replaced(program, lambda a, b: (torch.relu(a), b * 2), lambda a, b: (a.relu(), 2 * b), 0)


def test_a_write_of_a_returned_value_between_the_matched_nodes_prevents_the_match():
    def program(x):
        first = torch.exp(x)
        first.add_(1)
        return torch.neg(first)

    pattern = lambda x: ((y := torch.exp(x)), torch.neg(y))
    assert_same(replaced(program, pattern, pattern, 0), program, torch.randn(3))


def test_a_match_that_writes_stays_where_it_is():
    def program(x):
        y = x.clone()
        y.add_(1)
        z = y * 2
        y.add_(1)
        return z + y

    gm = replaced(program, lambda a: a.add_(1), lambda a: a.sub_(-1), 2)
    assert targets(gm) == ["clone", "sub_", operator.mul, "sub_", operator.add]
    assert_same(gm, program, torch.randn(3))


def test_an_unused_write_is_a_part_of_the_pattern():
    def pattern(x):
        x.add_(1)
        return torch.relu(x)

    def replacement(x):
        x.sub_(-1)
        return x.relu()

    def swapped(x):
        y = torch.relu(x)
        x.add_(1)
        return y

    gm = replaced(pattern, pattern, replacement, 1)
    assert targets(gm) == ["sub_", "relu"]
    assert_same(gm, pattern, torch.randn(3))
    assert_same(replaced(swapped, pattern, replacement, 0), swapped, torch.randn(3))
    assert not matches_of(lambda x: torch.relu(x), pattern)


def test_random_draws_keep_their_order():
    def program(x):
        first = torch.rand_like(x)
        second = torch.randn_like(x)
        return second, torch.neg(first), torch.rand_like(first)

    gm = replaced(program, lambda x: torch.neg(torch.rand_like(x)), lambda x: torch.rand_like(x).neg(), 0)
    pattern = lambda x: ((y := torch.rand_like(x)), torch.neg(y))
    gm = replaced(program, pattern, lambda x: ((y := torch.rand_like(x)), y.neg()), 1)
    assert targets(gm) == [torch.rand_like, "neg", torch.randn_like, torch.rand_like]
    pattern = lambda x: ((y := torch.rand_like(x)), torch.rand_like(y))
    replaced(program, pattern, pattern, 0)


def test_an_unknown_function_is_not_crossed():
    def unknown(x):
        return x.add_(1)

    graph = fx.Graph()
    x = graph.placeholder("x")
    first = graph.call_function(torch.relu, (x,))
    graph.call_function(unknown, (x,))
    graph.output(graph.call_function(torch.neg, (first,)))
    gm = fx.GraphModule(nn.Module(), graph)
    assert fx.replace_pattern(gm, lambda x: torch.neg(torch.relu(x)), lambda x: x.relu().neg()) == []
    assert gm(torch.zeros(1)) == 0


def test_a_module_that_updates_its_own_buffers_does_not_stand_in_the_way_of_another():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)

        def forward(self, x):
            y = torch.exp(x)
            left = self.lin(y)
            right = self.norm(torch.tanh(y))
            return torch.relu(left) + right

    class Pattern(Net):
        def forward(self, x):
            return torch.relu(self.lin(x))

    class Replacement(Net):
        def forward(self, x):
            return self.lin(x).relu()

    root = Net()
    gm = replaced(root, Pattern(), Replacement(), 1)
    assert_same(gm, root, torch.randn(4, 3))


def test_interleaved_matches_are_gathered_one_after_the_other():
    def program(x, y):
        a = torch.relu(x)
        b = torch.relu(y)
        c = torch.sigmoid(b)
        d = torch.sigmoid(a)
        return torch.neg(d) + torch.neg(c)

    gm = replaced(program, lambda x: torch.neg(torch.sigmoid(torch.relu(x))), lambda x: x.relu().sigmoid().neg(), 2)
    assert_same(gm, program, torch.randn(3), torch.randn(3))


# ---- filters, callbacks, forms of patterns, errors -------------------------------------------------------------------


def test_a_filter_sees_the_match_and_may_refuse_it():
    seen = []

    def only_big(match, graph, pattern):
        seen.append((graph, pattern))
        return match.placeholder_nodes[1] > 10

    gm = fx.symbolic_trace(lambda x: x + 5 + 50)
    found = fx.replace_pattern_with_filters(gm, lambda x, n: x + n, lambda x, n: x - n, match_filters=[only_big])
    assert [graph is gm.graph for graph, _ in seen] == [True, True] and len(found) == 1
    assert_same(gm, lambda x: x + 5 - 50, torch.randn(2))


def test_a_refused_match_does_not_hide_an_overlapping_one():
    gm = fx.symbolic_trace(lambda x: torch.relu(torch.relu(torch.relu(x))))
    last = lambda match, graph, pattern: match.returning_nodes[0].name == "relu_2"
    pattern = lambda x: torch.relu(torch.relu(x))
    assert len(fx.replace_pattern_with_filters(gm, pattern, lambda x: torch.neg(x), match_filters=[last])) == 1
    assert targets(gm) == [torch.relu, torch.neg]


def test_a_callback_makes_a_replacement_for_each_match():
    def make(match, graph, pattern):
        amount = match.placeholder_nodes[1]
        return fx.symbolic_trace(lambda x, n: x * (amount + 1)).graph

    gm = fx.symbolic_trace(lambda x: x + 1 + 2)
    found = fx.replace_pattern_with_filters(gm, lambda x, n: x + n, replacement_callback=make)
    assert [[node.target for node in place.replacements] for place in found] == [[operator.mul], [operator.mul]]
    assert_same(gm, lambda x: x * 2 * 3, torch.randn(2))


def test_nodes_may_be_found_by_name():
    gm = fx.symbolic_trace(lambda x: torch.neg(torch.relu(x)))
    gm.graph.find_nodes(op="call_function", target=torch.relu)[0].name = "special"
    found = replace_pattern_with_filters(gm, lambda x: torch.exp(x), lambda x: torch.tanh(x), node_name_match="special")
    assert len(found) == 1 and targets(gm) == [torch.tanh, torch.neg]


@pytest.mark.parametrize("form", ["function", "graph", "graph module"])
def test_a_pattern_may_be_a_function_a_graph_or_a_graph_module(form):
    def shaped(function):
        traced = fx.symbolic_trace(function)
        return {"function": function, "graph": traced.graph, "graph module": traced}[form]

    gm = replaced(lambda x: torch.relu(x), shaped(lambda x: torch.relu(x)), shaped(lambda x: torch.neg(x)), 1)
    assert_same(gm, torch.neg, torch.randn(3))


def test_anything_with_a_graph_can_be_rewritten():
    class Plain:
        graph = fx.symbolic_trace(lambda x: torch.relu(x)).graph

    assert fx.replace_pattern(Plain(), lambda x: torch.relu(x), lambda x: torch.neg(x))
    assert targets(Plain) == [torch.neg]


def test_the_report_names_pattern_nodes_and_what_stood_for_them():
    gm = fx.symbolic_trace(lambda x: torch.neg(torch.relu(x)))
    pattern = fx.symbolic_trace(lambda x: torch.relu(x)).graph
    (match,) = fx.replace_pattern(gm, pattern, lambda x: torch.tanh(x))
    assert isinstance(match, fx.Match) and match.anchor.graph is pattern
    assert {key.name: value.name for key, value in match.nodes_map.items()} == {"relu": "relu", "x": "x"}


def test_no_match_leaves_graph_and_code_as_they_are():
    gm = fx.symbolic_trace(lambda x: torch.neg(x))
    code = gm.code
    assert fx.replace_pattern(gm, lambda x: torch.relu(x), lambda x: x) == []
    assert gm.code == code


@pytest.mark.parametrize(
    ("pattern", "replacement", "message"),
    [
        (lambda x: torch.relu(x), lambda x, y: x, "the pattern has 1 inputs .x., the replacement 2 .x, y."),
        (lambda x: torch.relu(x), lambda x: (x, x.neg()), "the pattern returns 1 values, the replacement 2"),
        (lambda x: x, lambda x: x, "the pattern has no operation"),
        (lambda x: (torch.neg(x), torch.relu(x))[1], lambda x: x, "node neg of the pattern is dead code"),
        (3, lambda x: x, "must be a function, a module or a graph, not int"),
        (lambda x: torch.relu(x), None, "nothing to put in the place"),
    ],
)
def test_a_mistake_is_told_and_the_graph_stays(pattern, replacement, message):
    gm = fx.symbolic_trace(lambda x: torch.relu(x))
    with pytest.raises(PatternError, match=message):
        replace_pattern_with_filters(gm, pattern, replacement)
    assert targets(gm) == [torch.relu]


def test_an_empty_pattern_is_refused():
    with pytest.raises(ValueError, match="empty graph"):
        fx.SubgraphMatcher(fx.Graph())


# ---- size ------------------------------------------------------------------------------------------------------------


def _tanh(x: Any) -> Any:
    return torch.tanh(x)


def calls_for(pairs: int) -> int:
    """The Python calls of replacing so many matches, all of which end far from where they begin."""
    graph = fx.Graph()
    x = graph.placeholder("x")
    firsts = [graph.call_function(torch.relu, (x,)) for _ in range(pairs)]
    graph.output(tuple(graph.call_function(torch.neg, (first,)) for first in firsts))
    gm = fx.GraphModule(nn.Module(), graph)
    found: list[Any] = []
    count = calls_in(lambda: found.extend(fx.replace_pattern(gm, lambda x: torch.neg(torch.relu(x)), _tanh)))
    assert len(found) == pairs
    return count


def test_work_grows_with_the_graph_and_not_with_its_square():
    calls_for(10)
    assert calls_for(1200) < 10 * calls_for(150)


# ---- random programs -------------------------------------------------------------------------------------------------


def written_between(a, b):
    first = torch.relu(a)
    b.add_(1.0)
    return first, torch.neg(first)


PAIRS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (lambda a, b: a + b, lambda a, b: torch.add(a, b)),
    (lambda a, b: torch.relu(a) * b, lambda a, b: torch.mul(a.relu(), b)),
    (lambda a: torch.neg(torch.relu(a)), lambda a: a.relu().neg()),
    (lambda a, b: torch.neg(a) + b, lambda a, b: torch.add(a.neg(), b)),
    (lambda a, b: torch.relu(a) + torch.neg(b), lambda a, b: torch.add(a.relu(), b.neg())),
    (lambda a: (torch.relu(a), torch.neg(a)), lambda a: (a.relu(), a.neg())),
    (lambda a, b: (a * b, torch.neg(b)), lambda a, b: (torch.mul(a, b), b.neg())),
    (lambda a, b: ((y := torch.relu(a)), y + b), lambda a, b: ((y := a.relu()), torch.add(y, b))),
    (lambda a: a.add_(1.0), lambda a: a.sub_(-1.0)),
    (written_between, lambda a, b: ((y := a.relu()), b.sub_(-1.0), y.neg())[::2]),
]


@st.composite
def programs(draw: Any) -> fx.GraphModule:
    """A program of elementwise operations, views and writes in place, that returns what nothing else uses."""
    graph = fx.Graph()
    values = [graph.placeholder("x"), graph.placeholder("y")]
    for _ in range(draw(st.integers(4, 16))):
        kind = draw(st.sampled_from(["add", "mul", "relu", "neg", "relu", "neg", "view", "write"]))
        left, right = (values[draw(st.integers(max(0, len(values) - 4), len(values) - 1))] for _ in range(2))
        if kind in ("add", "mul"):
            values.append(graph.call_function(getattr(operator, kind), (left, right)))
        elif kind in ("relu", "neg"):
            values.append(graph.call_function(getattr(torch, kind), (left,)))
        elif kind == "view":
            values.append(graph.call_method("view", (left, -1)))
        else:
            graph.call_method("add_", (left, 1.0))
    graph.output(tuple(value for value in values if not value.users))
    return fx.GraphModule(nn.Module(), graph)


@settings(max_examples=300)
@given(programs(), st.sampled_from(PAIRS))
def test_an_equivalent_replacement_keeps_all_results(gm, pair):
    reference = fx.GraphModule(nn.Module(), copy.deepcopy(gm.graph))
    places = fx.replace_pattern(gm, *pair)
    gm.graph.lint()
    inputs = torch.tensor([-1.5, 0.25, 2.0]), torch.tensor([0.5, -3.0, 1.0])
    assert_same(gm, reference, *inputs)
    alive = set(gm.graph.nodes)
    for place in places:
        gone = [value for key, value in place.nodes_map.items() if key.op not in ("placeholder", "output", "get_attr")]
        assert alive.isdisjoint(gone)


def test_a_replacement_has_modules_of_its_own_under_names_of_the_pattern():
    class Before(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.act = nn.Linear(4, 4), nn.GELU()

        def forward(self, x):
            return self.act(self.layer(x))

    class After(Before):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU()

    model, x = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 4), nn.GELU()), torch.randn(3, 4)
    captured = clew.trace(model, (x,))
    assert len(clew.replace_pattern(captured, Before(), After())) == 2
    torch.testing.assert_close(captured(x), model[2](model[0](x).relu()).relu())
