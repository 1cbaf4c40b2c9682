"""Faults of torch.fx that Clew does not have. Each test shows theirs first, then ours."""

import copy
import operator
import pickle
import traceback

import pytest
import torch
import torch.nn.functional as F

from . import asserting, wrapped
from .facades import TORCH, clew_facade
from .helpers import LinearOnly, names, node_called, of, only, opcodes, targets
from .literal_classes import Colour

X = torch.rand(3, 3)


# ---- dead code ------------------------------------------------------------------------------------------------------


def adds_in_place(x):
    y = x.clone()
    y.add_(1)
    return y


def writes_to_out(x):
    y = torch.empty_like(x)
    torch.add(x, 1, out=y)
    return y


def calls_relu_in_place(x):
    y = x - 0.5
    torch.relu_(y)
    return y


def asks_for_inplace(x):
    y = x - 0.5
    F.relu(y, inplace=True)
    return y


def runs_a_packet_in_place(x):
    y = x.clone()
    torch.ops.aten.mul_(y, 3)
    return y


WRITERS = [adds_in_place, writes_to_out, calls_relu_in_place, asks_for_inplace, runs_a_packet_in_place]


def without_dead_code(fx, root):
    traced = fx.symbolic_trace(root)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    return traced


@pytest.mark.parametrize("writer", WRITERS)
def test_dead_code_elimination_keeps_writes(writer):
    theirs = without_dead_code(TORCH, writer)
    assert len(theirs.graph.nodes) == 3

    ours = without_dead_code(clew_facade(), writer)
    assert len(ours.graph.nodes) == 4
    torch.testing.assert_close(ours(X), writer(X))


def test_dead_code_elimination_keeps_setitem_from_a_trace():
    def writes(x):
        y = x.clone()
        y[0] = 9.0
        return y

    with pytest.raises(TypeError, match="item assignment"):
        TORCH.symbolic_trace(writes)

    clew_fx = clew_facade()
    graph = clew_fx.Graph()
    y = graph.call_method("clone", (graph.placeholder("x"),))
    graph.call_function(operator.setitem, (y, 0, 9.0))
    graph.output(y)
    ours = clew_fx.GraphModule(torch.nn.Module(), graph)
    assert ours.graph.eliminate_dead_code() is False
    torch.testing.assert_close(ours(X), writes(X))


def drops_out(x):
    F.dropout(x)
    return x


def fills_at_random(x):
    y = x.clone()
    y.normal_()
    return y


@pytest.mark.parametrize("random_call", [drops_out, fills_at_random])
def test_dead_code_elimination_keeps_the_use_of_random_numbers(random_call):
    def state_after(function):
        torch.manual_seed(3)
        function(X)
        return torch.get_rng_state()

    theirs = without_dead_code(TORCH, random_call)
    assert not torch.equal(state_after(theirs), state_after(random_call))

    ours = without_dead_code(clew_facade(), random_call)
    assert torch.equal(state_after(ours), state_after(random_call))


class HasEffects(torch.nn.Module):
    """Calls modules for what they do, not for what they give."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.in_place = torch.nn.ReLU(inplace=True)

    def forward(self, x):
        y = x - 0.5
        self.norm(y)
        self.in_place(y)
        return y


def test_dead_code_elimination_keeps_modules_with_effects():
    theirs = without_dead_code(TORCH, HasEffects())
    assert "call_module" not in opcodes(theirs.graph)

    ours = without_dead_code(clew_facade(), HasEffects())
    assert [node.target for node in of(ours.graph, "call_module")] == ["norm", "in_place"]
    expected = HasEffects()
    torch.testing.assert_close(ours(X), expected(X))
    torch.testing.assert_close(ours.norm.running_mean, expected.norm.running_mean)


# ---- source lines and headers ---------------------------------------------------------------------------------------


def two_lines(x):
    y = torch.relu(x)
    return y + 1


def test_every_node_knows_its_source_line():
    theirs = TORCH.symbolic_trace(two_lines)
    assert all(node.stack_trace is None for node in theirs.graph.nodes)

    ours = clew_facade().symbolic_trace(two_lines)
    source = node_called(ours.graph, "relu").source
    assert source.filename == __file__
    assert source.lineno == two_lines.__code__.co_firstlineno + 1
    assert source.function == "two_lines"
    assert source.text == "y = torch.relu(x)"
    assert node_called(ours.graph, "add").source.text == "return y + 1"


def test_source_line_inside_modules():
    ours = clew_facade().symbolic_trace(LinearOnly())
    source = only(ours.graph, "call_module").source
    assert source.filename.endswith("helpers.py") and source.function == "forward"
    assert source.text == "return self.linear(x)"
    assert all(node.stack_trace is None for node in TORCH.symbolic_trace(LinearOnly()).graph.nodes)


def test_source_line_survives_copies():
    assert "source" not in vars(next(iter(TORCH.symbolic_trace(two_lines).graph.nodes)))

    ours = clew_facade().symbolic_trace(two_lines)
    for copied in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert node_called(copied.graph, "relu").source.text == "y = torch.relu(x)"


def test_header_names_the_inputs():
    theirs = str(TORCH.symbolic_trace(lambda first, second: first + second).graph)
    assert theirs.splitlines()[0] == "graph():"

    ours = str(clew_facade().symbolic_trace(lambda first, second: first + second).graph)
    assert "first" in ours.splitlines()[0] and "second" in ours.splitlines()[0]


def test_code_follows_the_graph_without_recompile():
    def edited(fx):
        traced = fx.symbolic_trace(lambda x: torch.relu(x))
        only(traced.graph, "call_function").target = torch.neg
        return traced

    theirs = edited(TORCH)
    assert "torch.relu" in theirs.code and theirs(torch.tensor(2.0)) == 2.0

    ours = edited(clew_facade())
    assert ours(torch.tensor(2.0)) == -2.0
    assert "torch.neg" in ours.code


def test_code_follows_insertion_erasure_and_renaming():
    def edited(fx):
        traced = fx.symbolic_trace(lambda x: torch.relu(x))
        relu = only(traced.graph, "call_function")
        with traced.graph.inserting_after(relu):
            negated = traced.graph.call_function(torch.neg, (relu,))
        relu.replace_all_uses_with(negated, delete_user_cb=lambda user: user is not negated)
        negated.args = (relu.args[0],)
        traced.graph.erase_node(relu)
        negated.name = "flipped"
        return traced

    assert edited(TORCH)(torch.tensor(2.0)) == 2.0

    ours = edited(clew_facade())
    assert ours(torch.tensor(2.0)) == -2.0
    assert "flipped" in ours.code


# ---- patterns -------------------------------------------------------------------------------------------------------


def count_matches(fx, root, pattern, replacement):
    traced = fx.symbolic_trace(root)
    found = len(fx.replace_pattern(traced, pattern, replacement))
    traced.graph.lint()
    return found, traced


def test_patterns_bind_keywords_in_any_order():
    case = (
        lambda x: torch.sum(x, keepdim=True, dim=1),
        lambda v: torch.sum(v, dim=1, keepdim=True),
        lambda v: torch.mean(v, dim=1, keepdim=True),
    )
    assert count_matches(TORCH, *case)[0] == 0

    found, ours = count_matches(clew_facade(), *case)
    assert found == 1
    torch.testing.assert_close(ours(X), X.mean(1, keepdim=True))


def test_patterns_bind_keywords_to_positions():
    case = (lambda x: torch.sum(x, dim=1), lambda v: torch.sum(v, 1), lambda v: torch.mean(v, 1))
    assert count_matches(TORCH, *case)[0] == 0

    found, ours = count_matches(clew_facade(), *case)
    assert found == 1
    torch.testing.assert_close(ours(X), X.mean(1))


def test_patterns_look_into_slices():
    case = (lambda x, n: x[1:n], lambda v, n: v[1:n], lambda v, n: v[2:n])
    assert count_matches(TORCH, *case)[0] == 0

    found, ours = count_matches(clew_facade(), *case)
    assert found == 1
    torch.testing.assert_close(ours(X, 3), X[2:3])


def test_two_inputs_of_a_pattern_may_be_one_value():
    case = (lambda x: torch.add(x, x), lambda a, b: torch.add(a, b), lambda a, b: torch.mul(a, b))
    assert count_matches(TORCH, *case)[0] == 0

    found, ours = count_matches(clew_facade(), *case)
    assert found == 1
    torch.testing.assert_close(ours(X), X * X)


def test_constants_of_other_values_do_not_match():
    case = (lambda x: x + torch.ones(3), lambda v: v + torch.zeros(3), lambda v: v)
    found, theirs = count_matches(TORCH, *case)
    assert found == 1 and not torch.equal(theirs(X), X + 1)

    found, ours = count_matches(clew_facade(), *case)
    assert found == 0
    torch.testing.assert_close(ours(X), X + 1)


class Activated(torch.nn.Module):
    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x):
        return self.second(self.first(x))


class OnlySecond(torch.nn.Module):
    def __init__(self, second):
        super().__init__()
        self.second = second

    def forward(self, x):
        return self.second(x)


class OtherNames(torch.nn.Module):
    def __init__(self, linear, activation):
        super().__init__()
        self.linear, self.activation = linear, activation

    def forward(self, x):
        return self.activation(self.linear(x))


def test_modules_of_another_class_do_not_match():
    def case():
        root = Activated(torch.nn.Linear(3, 3), torch.nn.ReLU())
        return root, OnlySecond(torch.nn.Sigmoid()), lambda v: v * 0

    assert count_matches(TORCH, *case())[0] == 1

    assert count_matches(clew_facade(), *case())[0] == 0


def test_modules_match_by_what_they_are_and_not_by_their_name():
    def case():
        root = Activated(torch.nn.Linear(3, 3), torch.nn.ReLU())
        return root, OtherNames(torch.nn.Linear(3, 3), torch.nn.ReLU()), lambda v: v * 2

    assert count_matches(TORCH, *case())[0] == 0

    found, ours = count_matches(clew_facade(), *case())
    assert found == 1
    torch.testing.assert_close(ours(X), X * 2)


def test_patterns_bind_literals_to_inputs():
    case = (lambda x: torch.add(x, 3), lambda a, b: torch.add(a, b), lambda a, b: torch.sub(a, b))
    assert count_matches(TORCH, *case)[0] == 1

    found, ours = count_matches(clew_facade(), *case)
    assert found == 1
    torch.testing.assert_close(ours(X), X - 3)


def test_back_to_back_matches_through_a_literal():
    case = (lambda x: ((x + 1) + 2) + 3, lambda a, n: a + n, lambda a, n: a * n)
    clew_fx = clew_facade()
    found, ours = count_matches(clew_fx, *case)
    assert found == 3
    torch.testing.assert_close(ours(X), X * 1 * 2 * 3)


def test_overlapping_places_are_each_replaced_once():
    def pattern(v):
        return torch.relu(torch.neg(torch.relu(v)))

    def original(x):
        return torch.relu(torch.neg(torch.relu(torch.neg(torch.relu(x)))))

    found, ours = count_matches(clew_facade(), original, pattern, lambda v: torch.abs(v))
    assert found == 1
    torch.testing.assert_close(ours(X), torch.relu(torch.neg(torch.abs(X))))


# ---- copies ---------------------------------------------------------------------------------------------------------


def graph_with_writes(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(operator.iadd, (x, 1))
    graph.output(y)
    return fx.GraphModule(torch.nn.Module(), graph)


def test_pickle_keeps_in_place_operators():
    theirs = pickle.loads(pickle.dumps(graph_with_writes(TORCH)))
    assert operator.iadd not in targets(theirs.graph)
    value = torch.zeros(2)
    theirs(value)
    assert value.tolist() == [0.0, 0.0]

    ours = pickle.loads(pickle.dumps(graph_with_writes(clew_facade())))
    assert operator.iadd in targets(ours.graph)
    ours(value)
    assert value.tolist() == [1.0, 1.0]


def graph_with_setitem(fx):
    graph = fx.Graph()
    y = graph.call_method("clone", (graph.placeholder("x"),))
    graph.call_function(operator.setitem, (y, 0, 9.0))
    graph.output(y)
    return fx.GraphModule(torch.nn.Module(), graph)


def test_pickle_keeps_setitem():
    with pytest.raises(TypeError, match="item assignment"):
        pickle.loads(pickle.dumps(graph_with_setitem(TORCH)))

    ours = pickle.loads(pickle.dumps(graph_with_setitem(clew_facade())))
    assert ours(torch.zeros(2)).tolist() == [9.0, 0.0]
    assert copy.deepcopy(ours)(torch.zeros(2)).tolist() == [9.0, 0.0]


def test_pickle_keeps_names_and_metadata():
    def edited(fx):
        traced = fx.symbolic_trace(two_lines)
        node = node_called(traced.graph, "relu")
        node.name = "chosen"
        node.meta["key"] = {"nested": [1]}
        traced.recompile()
        return pickle.loads(pickle.dumps(traced))

    theirs = edited(TORCH)
    assert "chosen" not in names(theirs.graph)

    ours = edited(clew_facade())
    assert names(ours.graph) == ["x", "chosen", "add", "output"]
    assert node_called(ours.graph, "chosen").meta["key"] == {"nested": [1]}


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_class_name_of_the_root_is_kept(duplicate):
    assert type(duplicate(TORCH.symbolic_trace(LinearOnly()))).__name__ == "GraphModule"

    assert type(duplicate(clew_facade().symbolic_trace(LinearOnly()))).__name__ == "LinearOnly"


def test_transformer_keeps_the_class_name():
    assert type(TORCH.Transformer(TORCH.symbolic_trace(LinearOnly())).transform()).__name__ == "GraphModule"

    clew_fx = clew_facade()
    assert type(clew_fx.Transformer(clew_fx.symbolic_trace(LinearOnly())).transform()).__name__ == "LinearOnly"


# ---- tracing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "root", [asserting.asserts_positive, asserting.asserts_with_message, asserting.asserts_a_truth]
)
def test_trace_asserts_works_on_this_python(root):
    def traced(fx):
        tracer = fx.Tracer()
        tracer.trace_asserts = True
        return fx.GraphModule(torch.nn.Module(), tracer.trace(root))

    with pytest.raises(TORCH.TraceError):
        traced(TORCH)

    clew_fx = clew_facade()
    ours = traced(clew_fx)
    assert clew_fx.assert_fn in targets(ours.graph)
    torch.testing.assert_close(ours(X), root(X))
    with pytest.raises(AssertionError):
        ours(-X)
    ours.graph.eliminate_dead_code()
    assert clew_fx.assert_fn in targets(ours.graph)


def test_trace_asserts_leaves_other_branches_refused():
    def branches(x):
        if x.sum() > 0:
            return x
        return -x

    clew_fx = clew_facade()
    tracer = clew_fx.Tracer()
    tracer.trace_asserts = True
    with pytest.raises(clew_fx.TraceError):
        tracer.trace(branches)


def uses_if(x):
    if x.sum() > 0:
        return x
    return -x


def uses_len(x):
    return len(x)


def uses_for(x):
    for row in x:
        return row


def uses_double_star(x):
    return dict(**x)


def uses_range(x):
    return range(x.shape[0])


def uses_int(x):
    return int(x)


def uses_float(x):
    return float(x.sum())


def uses_while(x):
    while x.sum() > 0:
        x = x - 1
    return x


MISUSES = {
    uses_if: "if x.sum() > 0:", uses_len: "return len(x)", uses_for: "for row in x:",
    uses_double_star: "return dict(**x)", uses_range: "return range(x.shape[0])", uses_int: "return int(x)",
    uses_float: "return float(x.sum())", uses_while: "while x.sum() > 0:",
}  # fmt: skip


@pytest.mark.parametrize("misuse", MISUSES)
def test_error_says_where_why_and_three_ways_out(misuse):
    with pytest.raises((ValueError, TypeError, RuntimeError)) as caught:
        TORCH.symbolic_trace(misuse)
    assert __file__ not in str(caught.value) and MISUSES[misuse] not in str(caught.value)

    clew_fx = clew_facade()
    with pytest.raises(clew_fx.TraceError) as caught:
        clew_fx.symbolic_trace(misuse)
    text = str(caught.value)
    assert f"{__file__}:{misuse.__code__.co_firstlineno + 1}" in text
    assert MISUSES[misuse] in text
    for way_out in ("concrete_args", "wrap", "clew.trace"):
        assert way_out in text


@pytest.mark.parametrize(
    ("misuse", "kind"),
    [
        (uses_if, ValueError), (uses_len, RuntimeError), (uses_for, ValueError), (uses_int, TypeError),
        (uses_range, TypeError),
    ],
)  # fmt: skip
def test_errors_can_still_be_caught_as_theirs(misuse, kind):
    with pytest.raises(kind):
        TORCH.symbolic_trace(misuse)

    with pytest.raises(kind):
        clew_facade().symbolic_trace(misuse)


AUGMENTED = {
    "iadd": "+", "isub": "-", "imul": "*", "itruediv": "/", "ifloordiv": "//", "imod": "%", "ipow": "**",
    "iand": "&", "ior": "|", "ixor": "^", "ilshift": "<<", "irshift": ">>",
}  # fmt: skip


@pytest.mark.parametrize("name", AUGMENTED)
def test_augmented_assignment_writes_in_place(name):
    namespace = {}
    exec(f"def augmented(a, b):\n    a {AUGMENTED[name]}= b\n    return a", namespace)
    augmented = namespace["augmented"]
    kind = torch.float32 if name == "itruediv" else torch.int64
    first, second = torch.tensor([6, 3, 5], dtype=kind), torch.tensor([2, 1, 2], dtype=kind)

    def after(function):
        value = first.clone()
        torch.testing.assert_close(function(value, second), augmented(first.clone(), second))
        return value

    torch.testing.assert_close(after(TORCH.symbolic_trace(augmented)), first)

    ours = clew_facade().symbolic_trace(augmented)
    assert only(ours.graph, "call_function").target is getattr(operator, name)
    torch.testing.assert_close(after(ours), after(augmented))


# ---- code generation ------------------------------------------------------------------------------------------------


class KeywordNamed(torch.nn.Module):
    """Has a submodule whose name is a keyword of Python."""

    def __init__(self):
        super().__init__()
        self.add_module("class", torch.nn.ReLU())

    def forward(self, x):
        return getattr(self, "class")(x)


def test_submodule_named_like_a_keyword():
    with pytest.raises(SyntaxError):
        TORCH.symbolic_trace(KeywordNamed())

    torch.testing.assert_close(clew_facade().symbolic_trace(KeywordNamed())(X), X.relu())


def test_enum_inside_a_dict():
    def traced(fx):
        return fx.symbolic_trace(lambda x: wrapped.by_name(x, {"c": Colour.RED}))

    with pytest.raises(SyntaxError):
        traced(TORCH)

    assert only(traced(clew_facade()).graph, "call_function").args[1] == {"c": Colour.RED}


@pytest.mark.filterwarnings("ignore")
def test_traceback_of_a_lambda_shows_the_generated_line():
    def failure(fx):
        traced = fx.symbolic_trace(lambda value: torch.matmul(value, value))
        with pytest.raises(RuntimeError) as caught:
            traced(torch.ones(2, 3))
        return "".join(traceback.format_exception(caught.value))

    assert "torch.matmul(value, value)" not in failure(TORCH)

    assert "torch.matmul(value, value)" in failure(clew_facade())


def test_printing_a_table_needs_no_other_package(capsys):
    clew_facade().symbolic_trace(two_lines).graph.print_tabular()
    assert "opcode" in capsys.readouterr().out
