"""What modules return is changed and kept while a captured program runs, as forward hooks do it to the original."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest
import torch
from torch import nn

import clew
from clew.errors import CaptureError, GraphError
from tests.tools.surgery_models import MODELS, hooked, tensors_of


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.rest = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 4))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return self.first(self.rest(self.first(x)))


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.randn(2, 4)


def plain(module, value, change):
    """What the original gives with the value of a module changed by a hook."""
    hook = module.register_forward_hook(lambda module, args, output: change(output))
    try:
        return value()
    finally:
        hook.remove()


@pytest.mark.parametrize("name", MODELS)
def test_recorded_values_are_those_that_hooks_see(name):
    model, kwargs = MODELS[name]()
    captured = clew.trace(model, kwargs=kwargs)
    wanted = hooked(model, kwargs)
    with torch.no_grad(), captured.record(*{key if isinstance(key, str) else key[0] for key in wanted}) as values:
        captured(**kwargs)
    assert values.keys() == wanted.keys()
    for key, value in wanted.items():
        torch.testing.assert_close(tensors_of(values[key]), tensors_of(value))


@pytest.mark.parametrize("name", MODELS)
def test_patches_do_what_hooks_do(name):
    model, kwargs = MODELS[name]()
    captured = clew.trace(model, kwargs=kwargs)

    def change(value):
        if isinstance(value, torch.Tensor):
            return value * 1.5 + 0.1 if value.is_floating_point() else value
        if isinstance(value, dict):
            return type(value)(**{key: change(part) for key, part in value.items()})
        return tuple(map(change, value)) if isinstance(value, tuple) else value

    paths = [path for path in dict(model.named_modules()) if path and path.count(".") < 4]
    with torch.no_grad():
        for path in [key for key in hooked(model, kwargs) if key in paths][::3]:
            wanted = plain(model.get_submodule(path), lambda: model(**kwargs), change)
            with captured.patch(path, change):
                torch.testing.assert_close(tensors_of(captured(**kwargs)), tensors_of(wanted))


@pytest.mark.parametrize("kind", ["trace", "lazy"])
def test_values_and_functions_for_single_calls(x, kind):
    model = Net()
    captured = clew.trace(model, (x,)) if kind == "trace" else clew.trace(model)
    with captured.patch("first", torch.zeros(2, 4), call=2):
        assert torch.equal(captured(x), torch.zeros(2, 4))
    with captured.patch("first", torch.zeros(2, 4), call=1), captured.record("rest") as values:
        captured(x)
        torch.testing.assert_close(values["rest"], model.rest[1](torch.zeros(2, 4)))
    torch.testing.assert_close(captured(x), model(x))


def test_several_at_once_in_the_order_in_which_they_were_entered(x):
    captured = clew.trace(Net(), (x,))
    with captured.patch("rest", lambda value: value + 1), captured.record("rest") as between:
        with captured.patch("rest.1", lambda value: value * 0), captured.patch("rest", lambda value: value * 3):
            with captured.record("rest", "first") as last:
                captured(x)
    assert torch.equal(between["rest"], torch.ones(2, 4)) and torch.equal(last["rest"], torch.full((2, 4), 3.0))
    assert set(last) == {"rest", "first", ("first", 2)}


def test_a_value_that_is_overwritten_later_is_kept_as_it_was(x):
    model = Net()
    captured = clew.trace(model, (x,))
    with captured.record("first", call=1) as values:
        captured(x)
    torch.testing.assert_close(values["first"], model.first(x))
    assert (values["first"] < 0).any()  # the layer behind it works in place


def test_nothing_is_left_behind(x):
    captured = clew.trace(Net(), (x,))
    for _ in range(4):
        captured(x)
    attributes, methods = dict(vars(captured)), dict(vars(type(captured)))
    with pytest.raises(ZeroDivisionError), captured.patch("rest", lambda value: 1 / 0):
        captured(x)
    with captured.record("first"):
        captured(x)
    assert vars(captured).keys() - {"_variants"} == attributes.keys() and dict(vars(type(captured))) == methods
    assert all(vars(captured)[name] is value for name, value in attributes.items() if name.startswith("_running"))


def test_only_the_thread_that_entered_is_concerned(x):
    model = Net()
    captured = clew.trace(model, (x,))
    results = []
    with captured.patch("first", torch.zeros(2, 4)):
        thread = threading.Thread(target=lambda: results.append(captured(x)))
        thread.start()
        thread.join()
        assert torch.equal(captured(x), torch.zeros(2, 4))
    torch.testing.assert_close(results[0], model(x))


def test_many_threads_patch_at_once(x):
    captured = clew.trace(Net(), (x,))
    wrong = []

    def work(number):
        for _ in range(20):
            with captured.patch("first", torch.full((2, 4), float(number)), call=2):
                if not torch.equal(captured(x), torch.full((2, 4), float(number))):
                    wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and "forward" not in vars(captured)


def test_copies_made_inside_are_plain(x):
    model = Net()
    captured = clew.trace(model, (x,))
    with captured.patch("first", torch.zeros(2, 4)):
        for twin in (copy.deepcopy(captured), pickle.loads(pickle.dumps(captured))):
            torch.testing.assert_close(twin(x), model(x))


def test_gradients_flow_through_recorded_values(x):
    model = Net()
    captured = clew.trace(model, (x,))
    with captured.record("rest") as values:
        result = captured(x)
        values["rest"].retain_grad()
        result.sum().backward()
    torch.testing.assert_close(values["rest"].grad, model.first.weight.sum(0).expand(2, 4))


def test_gradients_flow_through_a_recorded_value_that_is_overwritten_later(x):
    """As through what a hook gave, where only the layer behind writes; a value that others hold is a copy."""

    class Overwriting(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.views = nn.Linear(4, 4), nn.Flatten(0)

        def forward(self, x):
            y = self.layer(x)
            y *= 2
            flat = self.views(y)
            y += x
            return flat.sum() * y

    model = Overwriting()
    captured = clew.trace(model, (x,))
    with captured.record("layer", "views") as values:
        result = captured(x)
        values["layer"].retain_grad()
        result.sum().backward()
    torch.testing.assert_close(result, model(x))
    twin = model.layer(x).detach().requires_grad_()
    y = twin * 2 + x
    (y.sum() * y).sum().backward()
    torch.testing.assert_close(values["layer"].grad, twin.grad)
    torch.testing.assert_close(values["views"], (model.layer(x) * 2).flatten())


def test_edits_and_hooks_inside_count(x):
    captured = clew.trace(Net(), (x,))
    seen = []
    captured.register_forward_hook(lambda module, args, output: seen.append(module is captured))
    with captured.patch("rest", lambda value: value * 0):
        captured(x)
        captured.insert_after("first", torch.abs, call=2)
        assert (captured(x) >= 0).all()
        assert torch.equal(captured(x), captured.first.bias.abs().expand(2, 4))
    assert seen == [True] * 3


def test_effects_and_guards_stay(x):
    model = Net()
    captured = clew.trace(model, (x,))
    with captured.record("rest"):
        captured(x)
        captured(x)
        with pytest.raises(clew.GuardError):
            captured(x.numpy())
    assert captured.calls == 2


def test_the_first_call_of_a_lazy_graph_is_patched_and_acts_once(x):
    model = Net()
    lazy = clew.trace(model)
    with lazy.patch("first", torch.zeros(2, 4)):
        assert torch.equal(lazy(x), torch.zeros(2, 4)) and model.calls == 1
        assert torch.equal(lazy(x.double().float()), torch.zeros(2, 4)) and len(lazy.captures) == 1
    torch.testing.assert_close(lazy(x), model.first(model.rest(model.first(x))))
    with pytest.raises(GraphError, match="no node of the module 'nothing'"):
        lazy.record("nothing").__enter__()
    new = clew.trace(Net())
    with new.record("nothing"), pytest.raises(GraphError, match="no node of the module 'nothing'"):
        new(x)


class Choosing(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, kind):
        return getattr(self.linear(x), kind)()


def test_a_lazy_graph_that_runs_its_original_says_so(x):
    lazy = clew.trace(Choosing(), limit=1)
    lazy(x, "relu")
    with lazy.record("linear") as values, pytest.warns(RuntimeWarning, match="the original runs"):
        lazy(x, "relu")
        assert "linear" in values
        with pytest.raises(CaptureError, match="runs its original here"):
            lazy(x, "tanh")


class Passing(nn.Module):
    def forward(self, x):
        return x


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.passing = Passing()

    def forward(self, x):
        y = x.exp()
        return y + self.passing(y)


def test_a_value_that_cannot_be_told_from_another_is_not_patched(x):
    captured = clew.trace(Twice(), (x,))
    with pytest.raises(GraphError, match=r"others use that too[\s\S]*leaves=\[None, 'passing'\]"):
        captured.patch("passing", 0).__enter__()
    with captured.record("passing") as values:
        captured(x)
    assert torch.equal(values["passing"], x.exp())
    whole = clew.trace(Twice(), (x,), leaves=Passing)
    with whole.patch("passing", lambda value: value * 0):
        torch.testing.assert_close(whole(x), x.exp())


class Splitting(nn.Module):
    def __init__(self):
        super().__init__()
        self.pair = Pairing()

    def forward(self, x):
        left, right, nothing = self.pair(x)
        return left - right


class Pairing(nn.Module):
    def forward(self, x):
        return x + 1, x * 2, None


def test_a_patch_of_a_tuple_gives_a_tuple(x):
    captured = clew.trace(Splitting(), (x,))
    with captured.patch("pair", lambda value: (value[0] * 0, value[1], None)):
        torch.testing.assert_close(captured(x), -2 * x)
    told = r"returns \(a value, a value, None\)"
    with captured.patch("pair", torch.zeros(2, 4)), pytest.raises(GraphError, match=told):
        captured(x)
    with captured.patch("pair", lambda value: (*value[:2], 3)), pytest.raises(GraphError, match="in the place of None"):
        captured(x)


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        if x.sum() > 0:
            x = self.linear(x)
        return x


def test_values_inside_of_branches(x):
    captured = clew.trace(Branching(), (x.abs(),))
    with captured.patch("linear", lambda value: value * 0), captured.record("linear") as values:
        assert torch.equal(captured(x.abs()), torch.zeros(2, 4)) and "linear" in values
        assert torch.equal(captured(-x.abs()), -x.abs()) and "linear" not in values


@pytest.mark.parametrize("path", ["firs", "rest.2", "rest.*.weight"])
def test_unknown_paths_are_told_at_once(x, path):
    captured = clew.trace(Net(), (x,))
    with pytest.raises(GraphError, match="nearest of the graph's modules"):
        captured.patch(path, 0).__enter__()
    assert "_intervened" not in vars(captured)


def test_functions_and_symbolic_traces(x):
    model = Net()
    function = clew.trace(lambda x: model.rest(model.first(x)) + 1, (x,))
    symbolic = clew.symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    with function.patch("model.rest", torch.zeros(2, 4)), symbolic.patch("0", lambda value: value * 0 - 1):
        assert torch.equal(function(x), torch.ones(2, 4)) and torch.equal(symbolic(x), torch.zeros(2, 4))
    torch.testing.assert_close(function(x), model.rest(model.first(x)) + 1)


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def test_under_the_compiler():
    """A program that was compiled before or inside of a context is patched as long as the context is open."""
    torch._dynamo.reset()
    model, x = Small().eval(), torch.randn(3, 4)
    captured = clew.trace(model, (x,))
    compiled = torch.compile(captured, backend="eager")
    plain = model(x)
    torch.testing.assert_close(compiled(x), plain)
    with captured.patch("first", lambda value: value * 0), captured.record("second") as seen:
        expected = captured(x)
        torch.testing.assert_close(compiled(x), expected)
        torch.testing.assert_close(torch.compile(captured, backend="eager")(x), expected)
    assert not torch.equal(expected, plain) and torch.equal(seen["second"], expected)
    torch.testing.assert_close(compiled(x), plain)


class Attention(nn.Module):
    """Its heads are a value that no module returns."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        heads = self.inner(x).view(2, 2, 2)
        if heads.abs().sum() > 100:
            scores = heads * 2
            heads = scores / 2
        heads = torch.tanh(heads)
        return self.outer(heads.flatten(1)) + heads.sum()


def without_second(heads):
    heads = heads.clone()
    heads[:, 1] = 0
    return heads


@pytest.mark.parametrize("address", ["node", "name"])
def test_a_single_value_is_addressed_by_its_node_or_name(x, address):
    model = Attention()
    captured = clew.trace(model, (x,))
    (node,) = captured.graph.find(op=torch.tanh)
    meant = node if address == "node" else node.name
    heads = without_second(torch.tanh(model.inner(x).view(2, 2, 2)))
    wanted = model.outer(heads.flatten(1)) + heads.sum()
    with captured.patch(meant, without_second), captured.record(meant, "outer") as seen:
        torch.testing.assert_close(captured(x), wanted)
        torch.testing.assert_close(seen[meant], heads)
    torch.testing.assert_close(captured(x), model(x))


def test_a_value_inside_of_a_branch_is_addressed_by_its_node(x):
    captured = clew.trace(Attention(), (x,))
    (node,) = [one for one in captured.graph.find(op="mul") if one.graph is not captured.graph]
    with captured.record(node) as seen:
        captured(x)
        assert not seen
        captured(x * 1e6)
    assert list(seen) == [node] and seen[node].shape == (2, 2, 2)


def test_the_second_call_is_addressed_in_one_word(x):
    captured = clew.trace(Net(), (x,))
    with captured.patch(("first", 2), torch.zeros_like), captured.record(("first", 2)) as seen:
        assert not captured(x).any() and list(seen) == [("first", 2)]


def test_addresses_that_mean_no_value_are_told(x):
    captured, other = clew.trace(Attention(), (x,)), clew.trace(Attention(), (x,))
    given = next(iter(captured.graph.nodes))
    for address, message in [
        (given, "is an input of the graph"),
        (next(iter(other.graph.find(op=torch.tanh))), "of another graph"),
        (3, "addressed by its path"),
    ]:
        with pytest.raises(GraphError, match=message):
            captured.record(address).__enter__()


def test_the_copy_of_the_graph_is_kept_for_the_next_context(x):
    captured = clew.trace(Attention(), (x,))
    for _ in range(3):
        with captured.patch("inner", torch.zeros_like):
            captured(x)
    (kept,) = vars(captured)["_variants"][1].values()
    captured.outer.weight.data.zero_()
    with captured.patch("inner", torch.ones_like):
        wanted = captured.outer.bias + torch.tanh(torch.ones(8)).sum()
        torch.testing.assert_close(captured(x), wanted.expand(2, 4))
    assert list(vars(captured)["_variants"][1].values()) == [kept]
    captured.graph.find(op=torch.tanh)[0].target = torch.sin
    with captured.patch("inner", torch.ones_like):
        wanted = captured.outer.bias + torch.sin(torch.ones(8)).sum()
        torch.testing.assert_close(captured(x), wanted.expand(2, 4))
