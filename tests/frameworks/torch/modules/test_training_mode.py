"""A captured module trains, evaluates and trains again, and does what the original does, whichever mode it was captured
in: its modes are read by nodes, and what is asked of them is a branch."""

from __future__ import annotations

import copy
import linecache
import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import clew
from clew.frameworks.torch.protection import plan_of
from clew.passes.common_subexpressions import common_subexpressions


class Residual(nn.Module):
    """In evaluation the dropout gives back its argument itself."""

    def __init__(self):
        super().__init__()
        self.linear, self.drop = nn.Linear(3, 3), nn.Dropout(0.5)

    def forward(self, x):
        before = x
        x = self.drop(x)
        return before + self.linear(x)


class HandsOn(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)

    def forward(self, x):
        x = F.batch_norm(self.linear(x), self.norm.running_mean, self.norm.running_var, training=self.training)
        return torch.dropout(F.dropout(x, 0.3, self.training), 0.2, self.training)


class Chooses(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.rate = nn.Linear(3, 3), 0.3

    def forward(self, x):
        x = F.dropout(self.linear(x), 0.0 if not self.training else self.rate)
        if self.training:
            x = x * 2
        return x


class Returns(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        x = self.norm(x)
        if not self.training:
            return x.sigmoid()
        y = x + 1
        return y * y


class ReturnsMore(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        x = self.linear(x)
        if self.training:
            return x, x.sum()
        return x


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))
        self.count = 0

    def forward(self, x):
        if self.training:
            self.count += 1
            self.seen += x.sum()
            if self.training:
                x = x + 1
        return x * self.count


class OfParts(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.drop = nn.Linear(3, 3), nn.Dropout(0.5)

    def forward(self, x):
        x = self.linear(x)
        if self.drop.training:
            x = x * 3
        if self.training and self.drop.p > 0.1:
            x = self.drop(x)
        return x


class Switches(nn.Module):
    """Sets what it may find set."""

    def __init__(self):
        super().__init__()
        self.linear, self.drop = nn.Linear(3, 3), nn.Dropout(0.5)

    def forward(self, x):
        self.drop.train(True)
        x = self.drop(self.linear(x))
        self.drop.eval()
        return x


def drop_path(x, rate, training):
    if rate == 0.0 or not training:
        return x
    keep = 1 - rate
    return x.div(keep) * x.new_empty((x.shape[0], 1)).bernoulli_(keep)


class DropPath(nn.Module):
    def forward(self, x):
        return drop_path(x, 0.5, self.training)


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(3, 3), DropPath()) for _ in range(12))

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x


class LeavesOut(nn.Module):
    """Leaves out layers while training, with a chance."""

    chance = 0.4

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            if self.training:
                drawn = torch.rand([])
                if drawn < self.chance:
                    continue
            x = layer(x)
        return x


class LeavesNoneOut(LeavesOut):
    def __init__(self):
        super().__init__()
        self.chance = 0  # a fraction would be read at each call, and another one would leave layers out


class LeavesOutByAFlag(LeavesOut):
    def forward(self, x):
        for layer in self.layers:
            to_drop = False
            if self.training:
                if torch.rand([]) < self.chance:
                    to_drop = True
            if not to_drop:
                x = layer(x)
        return x


class LeavesSeveralOut(LeavesOut):
    def forward(self, x):
        for place, layer in enumerate(self.layers):
            if self.training:
                if place == 1:
                    continue
                if torch.rand([]) < self.chance:
                    x = x + 1
                    continue
                x = x * 2
            x = layer(x)
        return x


class ReturnsInside(nn.Module):
    """Returns from a branch inside of a branch, if another object says so."""

    def __init__(self, shortcut=None):
        super().__init__()
        self.first, self.second, self.shortcut = nn.Linear(3, 3), nn.Linear(3, 3), shortcut

    def forward(self, x):
        x = self.first(x)
        if self.training:
            found = None if self.shortcut is None else self.shortcut(x)
            if found is not None:
                return found
            x = F.dropout(x, 0.5)
        return self.second(x)


class AndNumbers(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.other, self.rate = nn.Linear(3, 3), None, 0.5

    def forward(self, x):
        x = self.linear(x)
        if self.training and self.other is None:
            x = F.dropout(x, self.rate)
        if self.training and self.other is not None:
            x = x * 2
        keeps = self.rate > 0.1 if not self.training else False
        return x + 1 if keeps and self.other is None else x


def hooked():
    module = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
    for part in module:
        part.register_forward_hook(lambda part, args, result: result * 2)
    return module


PROGRAMS = [
    lambda: nn.Sequential(nn.Linear(3, 3), nn.ReLU()),
    lambda: nn.Sequential(nn.Linear(3, 3), nn.Dropout(), nn.BatchNorm1d(3)),
    hooked, Residual, HandsOn, Chooses, Returns, ReturnsMore, Counts, OfParts, Switches, Deep,
    LeavesOut, LeavesNoneOut, LeavesOutByAFlag, LeavesSeveralOut, ReturnsInside,
    lambda: ReturnsInside(torch.nn.functional.relu), AndNumbers,
]  # fmt: skip


def clew_function(source):
    """A function that is written in a file, as captured ones are."""
    name = f"<program {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    found = {"torch": torch}
    exec(compile(source, name, "exec"), found)
    return found["program"]


def tensors(result):
    values = result.values() if isinstance(result, dict) else result if isinstance(result, tuple) else (result,)
    return [value for value in values if isinstance(value, torch.Tensor)]


def both(model, captured, call, seed=1):
    """What the two give from the same random state, after a look that it is the same."""
    results = []
    for program in (model, captured):
        torch.manual_seed(seed)
        results.append(tensors(call(program)))
    assert len(results[0]) == len(results[1])
    assert all(map(torch.equal, *results))
    return results


def live_alike(model, captured, call):
    """Evaluate, train for three steps, evaluate, train once more: always the same, and the same state at the end."""
    for mode in (False, True):
        both(model.train(mode), captured.train(mode), call)
    programs = [one for one in (model, captured) if list(one.parameters())]
    steps = [torch.optim.SGD(program.parameters(), 0.01) for program in programs]
    for seed in range(3):
        for step, result in zip(steps, both(model, captured, call, seed), strict=False):
            step.zero_grad()
            result[0].square().mean().backward()
            step.step()
    for mode in (False, True, False):
        both(model.train(mode), captured.train(mode), call)
    assert all(map(torch.equal, model.state_dict().values(), captured.state_dict().values()))
    assert getattr(model, "count", 0) == getattr(captured, "count", 0)


@pytest.mark.parametrize("mode", [True, False])
@pytest.mark.parametrize("make", PROGRAMS)
def test_one_capture_lives_like_the_original(make, mode):
    torch.manual_seed(0)
    model = make().train(mode)
    twin, x = copy.deepcopy(model), torch.randn(4, 3)
    captured = clew.trace(twin, (x,))
    live_alike(model, captured, lambda program: program(x))


@pytest.mark.parametrize("mode", [True, False])
def test_parts_may_be_in_different_modes(mode):
    torch.manual_seed(0)
    model = nn.Sequential(Chooses(), HandsOn(), Residual()).train(mode)
    captured, x = clew.trace(copy.deepcopy(model), (torch.randn(4, 3),)), torch.randn(4, 3)
    for place in range(8):
        for program in (model, captured):
            for bit in range(3):
                program.get_submodule(str(bit)).train(bool(place >> bit & 1))
        both(model, captured, lambda program: program(x), place)


def test_a_part_in_many_places_stays_one_branch_each():
    graph = clew.trace(Deep(), (torch.randn(4, 3),)).graph
    assert sum(node.op == "call_module" for node in graph.nodes) == 12


def test_a_choice_between_numbers_is_no_copy_of_what_follows():
    captured = clew.trace(Chooses().eval(), (torch.randn(4, 3),))
    assert captured.code.count("functional.dropout") == 1
    assert not any("training" in guard.expression for guard in captured.guards)


def test_what_is_never_left_out_is_no_branch():
    captured = clew.trace(LeavesNoneOut().eval(), (torch.randn(4, 3),))
    assert captured.code.count("torch.rand([])") == 3
    assert captured.code.count("if ") == 3
    assert "<" not in captured.code


@pytest.mark.parametrize("draw", ["torch.rand([]) - 1", "torch.rand([]).sub_(1)", "torch.randn([])"])
def test_other_draws_may_be_below_zero(draw):
    program = clew_function(f"def program(x):\n    return x + 1 if {draw} < 0.0 else x - 1\n")
    captured = clew.trace(program, (torch.ones(3),))
    for seed in range(8):
        results = []
        for one in (program, captured):
            torch.manual_seed(seed)
            results.append(one(torch.zeros(3)))
        assert torch.equal(*results)


def test_a_mode_and_a_plain_truth_are_no_branch():
    graph = clew.trace(AndNumbers().eval(), (torch.randn(4, 3),)).graph
    assert [node.op for node in graph.nodes].count("get_attr") == 1
    assert "cond" in str(graph)
    read = next(node for node in graph.nodes if node.op == "get_attr")
    assert {node.target.__name__ for node in read.users} <= {"cond", "not_"}


class OnlyTrains(nn.Module):
    def forward(self, x):
        if not self.training:
            raise ValueError("only for training")
        return x + 1


def test_a_mode_in_which_the_program_raises_raises():
    captured, x = clew.trace(OnlyTrains(), (torch.ones(3),)), torch.ones(3)
    assert torch.equal(captured(x), x + 1)
    with pytest.raises(ValueError, match="only for training"):
        captured.eval()(x)


class CannotEvaluate(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Module()

    def forward(self, x):
        return x + 1 if self.encoder.training else x @ x


def test_a_mode_that_cannot_be_run_is_guarded():
    captured = clew.trace(CannotEvaluate(), (torch.ones(2, 3),))
    captured.eval()
    with pytest.raises(clew.GuardError, match=r"encoder\.training"):
        captured(torch.ones(2, 3))


def test_data_may_not_be_asked_but_modes_may():
    captured = clew.trace(Chooses().eval(), (torch.randn(4, 3),), control_flow="error")
    with pytest.raises(clew.GuardError, match=r"not self\.training"):
        captured.train()(torch.randn(4, 3))


def test_other_threads_find_plain_modes():
    model, x, found = Chooses(), torch.randn(4, 3), []
    done = threading.Event()

    def run():
        while not done.is_set():
            found.append(type(model.training))
            model(x)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        for _ in range(5):
            clew.trace(model, (x,))
    finally:
        done.set()
        thread.join()
    assert set(found) == {bool}
    assert "training" not in vars(nn.Module)


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear, self.drop = nn.BatchNorm1d(3), nn.Linear(3, 3), nn.Dropout(0.5)

    def forward(self, x):
        self.norm(x)
        return self.linear(self.drop(x)) + self.drop(x)


@pytest.mark.parametrize("mode", [True, False])
@pytest.mark.parametrize("trace", [clew.symbolic_trace, lambda module: clew.trace(module, (torch.randn(4, 3),))])
def test_calls_have_the_effects_of_any_mode(trace, mode):
    model = Unused().train(mode)
    captured, x = trace(copy.deepcopy(model)), torch.randn(5, 3)
    captured.graph.eliminate_dead_code()
    common_subexpressions(captured.graph)
    captured.recompile()
    called = [node.target for node in captured.graph.nodes if node.op == "call_module"]
    assert sorted(called) == ["drop", "drop", "linear", "norm"]
    for now in (not mode, mode):
        both(model.train(now), captured.train(now), lambda program: program(x))
    assert torch.equal(model.norm.running_mean, captured.norm.running_mean)


class GuardsLate(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        x = self.norm(x)
        return x * 2 if x.abs().sum() > 1e6 else x


def test_what_a_norm_writes_is_undone_if_a_guard_fails_after_it():
    captured = clew.trace(GuardsLate().eval(), (torch.randn(4, 3),), control_flow="guard")
    assert plan_of(captured.graph) is not None
    captured.train()
    captured.norm.weight.data.fill_(1e8)
    before = copy.deepcopy(captured.state_dict())
    with pytest.raises(clew.GuardError):
        captured(torch.randn(4, 3) + 5)
    assert all(map(torch.equal, before.values(), captured.state_dict().values()))


class MaybeItself(nn.Module):
    """A layer of the user's that gives its argument back in evaluation."""

    def forward(self, x):
        return x * 2 if self.training else x


class AroundALeaf(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf, self.linear = MaybeItself(), nn.Linear(3, 3)

    def forward(self, x):
        y = self.leaf(x)
        return self.linear(x) + y


def test_a_leaf_of_the_users_that_gives_its_argument_back():
    model = AroundALeaf().eval()
    captured = clew.trace(copy.deepcopy(model), (torch.randn(4, 3),), leaves=lambda part, path: path == "leaf")
    assert [node.target for node in captured.graph.nodes if node.op == "call_module"] == ["leaf"]
    x = torch.randn(4, 3)
    for mode in (False, True):
        both(model.train(mode), captured.train(mode), lambda program: program(x))


@clew.wrap
def larger(x):
    return x if x.sum() > 0 else x + 1


def test_a_function_that_stays_one_call_and_gives_its_argument_back():
    captured = clew.trace(lambda x: larger(x) + x * 2, (torch.ones(3),))
    for x in (torch.ones(3), -torch.ones(3)):
        assert torch.equal(captured(x), larger(x) + x * 2)


class Frozen(nn.Module):
    """Its norm never trains."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)

    def train(self, mode=True):
        super().train(mode)
        self.norm.eval()
        return self

    def forward(self, x):
        return F.dropout(self.norm(self.linear(x)), 0.5, self.training)


@pytest.mark.parametrize("mode", [True, False])
@pytest.mark.parametrize("make", [Frozen, lambda: nn.Sequential(nn.Linear(3, 3), Frozen())])
def test_a_class_that_switches_its_parts_by_itself(make, mode):
    model, x = make().train(mode), torch.randn(4, 3)
    before = [part.training for part in model.modules()]
    captured = clew.trace(copy.deepcopy(model), (x,))
    assert [part.training for part in captured.modules()] == before
    for program in (captured, copy.deepcopy(captured)):
        for now in (False, True, False):
            both(model.train(now), program.train(now), lambda program: program(x))
    assert all(map(torch.equal, model.state_dict().values(), captured.state_dict().values()))


class AsksForTracers(nn.Module):
    def forward(self, x):
        if torch.compiler.is_compiling():
            x = x * 2
        return x if torch.jit.is_tracing() else x + 1


def test_being_traced_is_a_mode():
    captured, model, x = clew.trace(AsksForTracers(), (torch.ones(3),)), AsksForTracers(), torch.randn(3)
    assert torch.equal(captured(x), model(x))
    compiled = [torch.compile(program, backend="eager", fullgraph=True)(x) for program in (model, captured)]
    assert torch.equal(*compiled) and not torch.equal(compiled[0], model(x))
    traced = [torch.jit.trace(program, (x,), check_trace=False)(x) for program in (model, captured)]
    assert torch.equal(*traced) and not torch.equal(traced[0], model(x))


class Encodes(Chooses):
    def encode(self, x):
        return self.forward(x)


def test_a_method_is_captured_for_both_modes():
    model, x = Encodes().eval(), torch.randn(4, 3)
    captured = clew.trace(model.encode, (x,))
    for mode in (True, False):
        model.train(mode)
        both(model.encode, captured, lambda program: program(x))
