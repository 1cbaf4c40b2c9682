"""replace_pattern and its relatives: what matches, what is put in its place, what comes back."""

import operator

import pytest
import torch

from .helpers import names, node_called, of, only, opcodes, targets

X, Y = torch.randn(3, 3), torch.randn(3, 3)


def rewritten(fx, root, pattern, replacement, **options):
    traced = fx.symbolic_trace(root)
    replace = fx.replace_pattern_with_filters if options else fx.replace_pattern
    matches = replace(traced, pattern, replacement, **options)
    traced.graph.lint()
    traced.recompile()
    return traced, matches


def test_single_match(fx):
    traced, matches = rewritten(
        fx, lambda x: torch.relu(torch.neg(x)) + 1, lambda x: torch.neg(x), lambda x: torch.abs(x)
    )
    assert len(matches) == 1
    torch.testing.assert_close(traced(X), X.abs().relu() + 1)


def test_no_match(fx):
    traced, matches = rewritten(fx, lambda x: torch.relu(x), lambda x: torch.neg(x), lambda x: torch.abs(x))
    assert matches == []
    torch.testing.assert_close(traced(X), X.relu())


def test_several_matches(fx):
    def original(x, a, b):
        first = torch.cat([a, b]).sum()
        second = torch.cat([b, a]).sum()
        return x + torch.max(first) + torch.max(second)

    def pattern(a, b):
        return torch.cat([a, b]).sum()

    def replacement(a, b):
        return torch.stack([a, b]).mean()

    traced, matches = rewritten(fx, original, pattern, replacement)
    assert len(matches) == 2
    assert torch.cat not in targets(traced.graph) and targets(traced.graph).count(torch.stack) == 2


def test_same_logic_preserved(fx):
    def original(x):
        return torch.neg(x) + torch.relu(x)

    def pattern(x):
        return torch.neg(x) + torch.relu(x)

    traced, matches = rewritten(fx, original, pattern, pattern)
    assert len(matches) == 1
    torch.testing.assert_close(traced(X), original(X))


def test_pattern_is_the_whole_graph(fx):
    traced, matches = rewritten(
        fx, lambda x: torch.relu(torch.neg(x)), lambda x: torch.relu(torch.neg(x)), lambda x: torch.sigmoid(x)
    )
    assert names(traced.graph) == ["x", "sigmoid", "output"]
    assert len(matches) == 1


def test_pattern_is_a_method_call(fx):
    traced, matches = rewritten(fx, lambda x: x.sigmoid() + 1, lambda x: x.sigmoid(), lambda x: x.tanh())
    assert len(matches) == 1
    torch.testing.assert_close(traced(X), X.tanh() + 1)


def test_pattern_with_operators(fx):
    traced, matches = rewritten(
        fx, lambda x, y, z: x * y + z, lambda a, b, c: a * b + c, lambda a, b, c: torch.addcmul(c, a, b)
    )
    assert only(traced.graph, "call_function").target is torch.addcmul
    torch.testing.assert_close(traced(X, Y, X), X * Y + X)


def test_order_of_arguments_is_respected(fx):
    traced, matches = rewritten(
        fx, lambda x, y: torch.sub(y, x), lambda a, b: torch.sub(a, b), lambda a, b: torch.div(a, b)
    )
    torch.testing.assert_close(traced(X, Y), Y / X)


def test_output_in_the_middle_of_the_graph(fx):
    def original(x):
        y = torch.relu(x)
        return torch.add(y, 1) * torch.neg(y)

    traced, matches = rewritten(fx, original, lambda x: torch.relu(x), lambda x: torch.abs(x))
    torch.testing.assert_close(traced(X), (X.abs() + 1) * -X.abs())


def test_matched_output_may_have_other_users(fx):
    def original(x):
        y = torch.relu(torch.neg(x))
        return y + 1, y + 2

    traced, matches = rewritten(fx, original, lambda x: torch.relu(torch.neg(x)), lambda x: torch.abs(x))
    assert len(matches) == 1
    torch.testing.assert_close(traced(X), (X.abs() + 1, X.abs() + 2))


def test_inner_value_used_elsewhere_prevents_the_match(fx):
    def original(x):
        inner = torch.neg(x)
        return torch.relu(inner) + inner

    traced, matches = rewritten(fx, original, lambda x: torch.relu(torch.neg(x)), lambda x: torch.abs(x))
    assert matches == []
    torch.testing.assert_close(traced(X), original(X))


def test_inner_value_returned_by_the_pattern_may_be_used(fx):
    def original(x):
        inner = torch.neg(x)
        return torch.relu(inner) + inner

    def pattern(x):
        inner = torch.neg(x)
        return torch.relu(inner), inner

    def replacement(x):
        inner = torch.abs(x)
        return torch.sigmoid(inner), inner

    traced, matches = rewritten(fx, original, pattern, replacement)
    assert len(matches) == 1
    torch.testing.assert_close(traced(X), X.abs().sigmoid() + X.abs())


def test_placeholder_matches_any_node(fx):
    traced, matches = rewritten(
        fx, lambda x, y: torch.relu(x.view(-1) + y), lambda v: torch.relu(v), lambda v: torch.neg(v)
    )
    assert len(matches) == 1


def test_same_placeholder_must_be_the_same_value(fx):
    traced, matches = rewritten(fx, lambda x, y: (x + y) * (x + x), lambda v: v + v, lambda v: v * 2)
    assert len(matches) == 1
    torch.testing.assert_close(traced(X, Y), (X + Y) * (X * 2))


def test_literals_must_agree(fx):
    traced, matches = rewritten(fx, lambda x: (x + 1) * (x + 2), lambda v: v + 1, lambda v: v - 1)
    assert len(matches) == 1
    torch.testing.assert_close(traced(X), (X - 1) * (X + 2))


def test_literals_of_other_types_do_not_agree(fx):
    _, matches = rewritten(fx, lambda x: x + 1.0, lambda v: v + 1, lambda v: v - 1)
    assert matches == []


def test_ignore_literals(fx):
    traced, matches = rewritten(
        fx, lambda x: (x + 1) * (x + 2), lambda v: v + 7, lambda v: v - 7, match_filters=[], ignore_literals=True
    )
    assert len(matches) == 2


def test_keywords_must_agree(fx):
    def original(x):
        return torch.sum(x, dim=0) + torch.sum(x, dim=1)

    traced, matches = rewritten(fx, original, lambda v: torch.sum(v, dim=1), lambda v: torch.mean(v, dim=1))
    assert len(matches) == 1
    torch.testing.assert_close(traced(X), X.sum(0) + X.mean(1))


def test_keyword_values_are_bound(fx):
    traced, matches = rewritten(
        fx, lambda x, y: torch.add(input=x, other=y), lambda a, b: torch.add(input=a, other=b), lambda a, b: a * b
    )
    assert len(matches) == 1
    torch.testing.assert_close(traced(X, Y), X * Y)


def test_number_of_arguments_must_agree(fx):
    _, matches = rewritten(fx, lambda x: torch.sum(x, 1), lambda v: torch.sum(v), lambda v: torch.mean(v))
    assert matches == []


def test_list_arguments(fx):
    traced, matches = rewritten(
        fx, lambda x, y: torch.cat([x, y], 1), lambda a, b: torch.cat([a, b], 1), lambda a, b: torch.cat([b, a], 1)
    )
    torch.testing.assert_close(traced(X, Y), torch.cat([Y, X], 1))


def test_list_of_another_length_does_not_match(fx):
    _, matches = rewritten(
        fx, lambda x, y: torch.cat([x, y, x]), lambda a, b: torch.cat([a, b]), lambda a, b: torch.stack([a, b])
    )
    assert matches == []


def test_overlapping_matches_take_the_first(fx):
    def original(x):
        return torch.neg(torch.neg(torch.neg(x)))

    traced, matches = rewritten(fx, original, lambda x: torch.neg(torch.neg(x)), lambda x: torch.relu(x))
    assert len(matches) == 1
    assert sorted(node.name for node in of(traced.graph, "call_function"))[0].startswith(("neg", "relu"))
    assert targets(traced.graph).count(torch.neg) == 1


def test_consecutive_matches(fx):
    class Original(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.sigmoid = torch.nn.Sigmoid()

        def forward(self, x):
            return self.sigmoid(self.sigmoid(x))

    class Pattern(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.sigmoid = torch.nn.Sigmoid()

        def forward(self, x):
            return self.sigmoid(x)

    traced, matches = rewritten(fx, Original(), fx.symbolic_trace(Pattern()), lambda x: torch.exp(x))
    assert len(matches) == 2
    torch.testing.assert_close(traced(X), X.exp().exp())


def test_back_to_back_function_matches(fx):
    traced, matches = rewritten(
        fx, lambda x: torch.relu(torch.relu(torch.relu(x))), lambda x: torch.relu(x), lambda x: torch.neg(x)
    )
    assert len(matches) == 3
    torch.testing.assert_close(traced(X), -X)


def test_several_outputs(fx):
    def original(x):
        return torch.relu(x), torch.neg(x), x + 1

    def pattern(x):
        return torch.relu(x), torch.neg(x)

    def replacement(x):
        y = torch.abs(x)
        return y + 10, y + 20

    traced, matches = rewritten(fx, original, pattern, replacement)
    assert len(matches) == 1
    torch.testing.assert_close(traced(X), (X.abs() + 10, X.abs() + 20, X + 1))


def test_duplicated_outputs(fx):
    def pattern(a, b):
        s = a + b
        return torch.relu(s), torch.neg(s)

    def replacement(a, b):
        s = a - b
        return s, s

    traced, matches = rewritten(fx, lambda x, y: (torch.relu(s := x + y), torch.neg(s)), pattern, replacement)
    assert len(matches) == 1
    torch.testing.assert_close(traced(X, Y), (X - Y, X - Y))


def test_unused_result(fx):
    def pattern(x):
        return torch.relu(x) + 1

    traced, matches = rewritten(fx, lambda x: (torch.relu(x) + 1).sum(), pattern, lambda x: torch.neg(x))
    assert traced(X) == (-X).sum()


def test_unused_arguments_of_the_replacement(fx):
    traced, matches = rewritten(fx, lambda x, y: x + y, lambda a, b: a + b, lambda a, b: torch.relu(a))
    torch.testing.assert_close(traced(X, Y), X.relu())


def test_replacement_is_the_input_itself(fx):
    traced, matches = rewritten(fx, lambda x: torch.neg(torch.relu(x) + 0), lambda v: v + 0, lambda v: v)
    assert len(matches) == 1
    torch.testing.assert_close(traced(X), -X.relu())


def test_replacement_arguments_must_be_as_many(fx):
    with pytest.raises((AssertionError, ValueError, RuntimeError)):
        rewritten(fx, lambda x, y: x + y, lambda a, b: a + b, lambda a: torch.relu(a))


def test_pattern_and_replacement_as_graph_modules(fx):
    pattern = fx.symbolic_trace(lambda x: torch.neg(x))
    replacement = fx.symbolic_trace(lambda x: torch.abs(x))
    traced, matches = rewritten(fx, lambda x: torch.neg(x) + 1, pattern, replacement)
    assert len(matches) == 1
    torch.testing.assert_close(traced(X), X.abs() + 1)


def test_pattern_and_replacement_as_graphs(fx):
    pattern = fx.symbolic_trace(lambda x: torch.neg(x)).graph
    replacement = fx.symbolic_trace(lambda x: torch.abs(x)).graph
    traced, matches = rewritten(fx, lambda x: torch.neg(x) + 1, pattern, replacement, match_filters=[])
    assert len(matches) == 1


def test_nothing_left_of_the_pattern_and_replacement(fx):
    pattern = fx.symbolic_trace(lambda x: torch.neg(x))
    before = names(pattern.graph)
    rewritten(fx, lambda x: torch.neg(x), pattern, lambda x: torch.abs(x))
    assert names(pattern.graph) == before


class HasRelu(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = torch.nn.ReLU()

    def forward(self, x):
        return self.relu(x)


class HasLinear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.linear(x)


def test_modules_match_by_target(fx):
    traced, matches = rewritten(fx, HasRelu(), HasRelu(), lambda x: torch.neg(x))
    assert len(matches) == 1
    torch.testing.assert_close(traced(X), -X)


def test_replacement_module_brings_its_submodules(fx):
    replacement = HasLinear()
    traced, matches = rewritten(fx, HasRelu(), HasRelu(), replacement)
    assert only(traced.graph, "call_module").target == "linear"
    assert not hasattr(traced, "relu")
    torch.testing.assert_close(traced(X), replacement(X))
    assert traced.linear is not replacement.linear


def test_replacement_module_brings_its_parameters(fx):
    class Shift(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.offset = torch.nn.Parameter(torch.full((3,), 5.0))

        def forward(self, x):
            return x + self.offset

    traced, matches = rewritten(fx, lambda x: torch.relu(x), lambda x: torch.relu(x), Shift())
    torch.testing.assert_close(traced(X), X + 5.0)


def test_existing_submodule_wins_over_the_replacement(fx):
    original, replacement = HasLinear(), HasLinear()

    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = original.linear

        def forward(self, x):
            return torch.relu(self.linear(x))

    traced, _ = rewritten(fx, Twice(), lambda x: torch.relu(x), replacement)
    assert traced.linear is original.linear


def test_match_fields(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(torch.neg(x)))
    neg, relu = of(traced.graph, "call_function")
    pattern = fx.symbolic_trace(lambda v: torch.relu(torch.neg(v)))
    (match,) = fx.replace_pattern(traced, pattern, lambda v: torch.abs(v))
    assert isinstance(match, fx.Match)
    assert match.anchor is node_called(pattern.graph, "relu")
    assert match.nodes_map[node_called(pattern.graph, "neg")] is neg
    assert match.nodes_map[node_called(pattern.graph, "relu")] is relu
    assert match.nodes_map[node_called(pattern.graph, "v")] is of(traced.graph, "placeholder")[0]


def test_match_is_a_named_tuple(fx):
    assert fx.Match._fields == ("anchor", "nodes_map")


def test_replaced_patterns_fields(fx):
    traced = fx.symbolic_trace(lambda x: torch.neg(x) + 1)
    (result,) = fx.replace_pattern_with_filters(traced, lambda v: torch.neg(v), lambda v: torch.abs(v) * 2)
    assert isinstance(result, fx.ReplacedPatterns)
    assert {node.target for node in result.replacements} == {torch.abs, operator.mul}
    assert all(node in list(traced.graph.nodes) for node in result.replacements)
    assert len(result.nodes_map) == 2


def test_filter_refuses(fx):
    traced, matches = rewritten(
        fx, lambda x: torch.neg(x), lambda v: torch.neg(v), lambda v: torch.abs(v),
        match_filters=[lambda match, original, pattern: False],
    )  # fmt: skip
    assert matches == []
    torch.testing.assert_close(traced(X), -X)


def test_filter_sees_the_match_and_both_graphs(fx):
    seen = []

    def keep(match, original, pattern):
        seen.append((match, original, pattern))
        return True

    traced, _ = rewritten(
        fx, lambda x: torch.neg(x), lambda v: torch.neg(v), lambda v: torch.abs(v), match_filters=[keep]
    )
    ((match, original, pattern),) = seen
    assert isinstance(match, fx.InternalMatch)
    assert original is traced.graph and isinstance(pattern, fx.Graph)
    assert len(match.placeholder_nodes) == 1 and len(match.returning_nodes) == 1


def test_filter_on_a_literal(fx):
    def second_is_two(match, original, pattern):
        placeholder = [node for node in pattern.nodes if node.op == "placeholder"][1]
        return match.nodes_map[placeholder] == 2

    traced, matches = rewritten(
        fx, lambda x: (x + 1) * (x + 2), lambda v, n: v + n, lambda v, n: v - n, match_filters=[second_is_two]
    )
    assert len(matches) == 1
    torch.testing.assert_close(traced(X), (X + 1) * (X - 2))


def test_placeholders_bind_literals(fx):
    traced, matches = rewritten(
        fx, lambda x: torch.sum(x, 1), lambda v, d: torch.sum(v, d), lambda v, d: torch.mean(v, d)
    )
    assert len(matches) == 1
    torch.testing.assert_close(traced(X), X.mean(1))


def test_every_filter_must_agree(fx):
    _, matches = rewritten(
        fx, lambda x: torch.neg(x), lambda v: torch.neg(v), lambda v: torch.abs(v),
        match_filters=[lambda *_: True, lambda *_: False],
    )  # fmt: skip
    assert matches == []


def test_replacement_callback(fx):
    def build(match, original, pattern):
        return fx.symbolic_trace(lambda v: torch.abs(v)).graph

    traced = fx.symbolic_trace(lambda x: torch.neg(x) + 1)
    results = fx.replace_pattern_with_filters(traced, lambda v: torch.neg(v), replacement_callback=build)
    assert len(results) == 1
    torch.testing.assert_close(traced(X), X.abs() + 1)


def test_replacement_callback_per_match(fx):
    made = []

    def build(match, original, pattern):
        made.append(match.returning_nodes[0].name)
        function = torch.abs if len(made) == 1 else torch.sin
        return fx.symbolic_trace(lambda v: function(v)).graph

    traced = fx.symbolic_trace(lambda x, y: torch.neg(x) + torch.neg(y))
    fx.replace_pattern_with_filters(traced, lambda v: torch.neg(v), replacement_callback=build)
    assert made == ["neg", "neg_1"]
    torch.testing.assert_close(traced(X, Y), X.abs() + Y.sin())


def test_neither_replacement_nor_callback(fx):
    traced = fx.symbolic_trace(lambda x: torch.neg(x))
    with pytest.raises((AssertionError, ValueError, TypeError)):
        fx.replace_pattern_with_filters(traced, lambda v: torch.neg(v))


def test_replaced_nodes_are_erased(fx):
    traced, _ = rewritten(fx, lambda x: torch.relu(torch.neg(x)), lambda v: torch.relu(torch.neg(v)), lambda v: v * 3)
    assert opcodes(traced.graph) == ["placeholder", "call_function", "output"]


def test_result_is_recompiled(fx):
    traced = fx.symbolic_trace(lambda x: torch.neg(x))
    fx.replace_pattern(traced, lambda v: torch.neg(v), lambda v: torch.abs(v))
    assert "torch.abs" in traced.code


def test_code_of_annotated_root(fx):
    def original(x: torch.Tensor, n: int):
        return torch.neg(x) + n

    traced, _ = rewritten(fx, original, lambda v: torch.neg(v), lambda v: torch.abs(v))
    assert [node.type for node in of(traced.graph, "placeholder")] == [torch.Tensor, int]


def test_matcher_alone(fx):
    traced = fx.symbolic_trace(lambda x, y: torch.relu(x + y) * torch.relu(x + x))
    pattern = fx.symbolic_trace(lambda a, b: torch.relu(a + b)).graph
    matches = fx.SubgraphMatcher(pattern).match(traced.graph)
    assert all(isinstance(match, fx.InternalMatch) for match in matches)
    found = [match for match in matches if match.returning_nodes[0].name == "relu"]
    assert [node.name for node in found[0].placeholder_nodes] == ["x", "y"]


def test_matcher_leaves_the_graph_alone(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(x))
    before = names(traced.graph)
    fx.SubgraphMatcher(fx.symbolic_trace(lambda a: torch.relu(a)).graph).match(traced.graph)
    assert names(traced.graph) == before


def test_matcher_refuses_an_empty_pattern(fx):
    with pytest.raises(ValueError, match="empty"):
        fx.SubgraphMatcher(fx.Graph())


def test_matcher_refuses_dead_code_in_the_pattern(fx):
    def dead(a):
        torch.neg(a)
        return torch.relu(a)

    with pytest.raises((AssertionError, ValueError), match="dead code"):
        fx.SubgraphMatcher(fx.symbolic_trace(dead).graph)


def test_matcher_with_output(fx):
    pattern = fx.symbolic_trace(lambda a: torch.relu(a)).graph
    inside = fx.symbolic_trace(lambda x: torch.neg(torch.relu(x))).graph
    at_end = fx.symbolic_trace(lambda x: torch.relu(torch.neg(x))).graph
    matcher = fx.SubgraphMatcher(pattern, match_output=True)
    assert len(matcher.match(inside)) == 0
    assert len(matcher.match(at_end)) == 1


def test_matcher_keeping_overlaps(fx):
    pattern = fx.symbolic_trace(lambda a: torch.neg(torch.neg(a))).graph
    graph = fx.symbolic_trace(lambda x: torch.neg(torch.neg(torch.neg(x)))).graph
    assert len(fx.SubgraphMatcher(pattern, remove_overlapping_matches=False).match(graph)) == 2


def test_rewriting_in_a_loop_reaches_a_fixpoint(fx):
    def original(x):
        for _ in range(5):
            x = torch.neg(torch.neg(x))
        return x

    traced = fx.symbolic_trace(original)
    while fx.replace_pattern(traced, lambda v: torch.neg(torch.neg(v)), lambda v: v):
        traced.graph.lint()
    assert opcodes(traced.graph) == ["placeholder", "output"]


def test_replace_part_of_a_module(fx):
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x):
            return torch.relu(self.linear(x)) + x

    root = Block()
    traced, matches = rewritten(fx, root, lambda v: torch.relu(v), lambda v: torch.nn.functional.gelu(v))
    assert len(matches) == 1
    torch.testing.assert_close(traced(X), torch.nn.functional.gelu(root.linear(X)) + X)
