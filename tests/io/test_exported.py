"""Programs of torch.export as graph modules: the same results, the same state, and no silently accepted input."""

from __future__ import annotations

import copy
import operator

import pytest
import torch
import torch.fx
from torch import nn
from torch.export import Dim, export

import clew
import clew.tree
from clew.errors import InputMismatch, InteropError
from clew.io.exported import check_constants, check_tensors

from .models import IMAGE, MLP, SEQUENCE, ConvNet, Tied

X = SEQUENCE[0]


def tensors_in(nest):
    return [leaf for leaf in clew.tree.flatten(nest)[0] if isinstance(leaf, torch.Tensor)]


def check(model, args, kwargs=None, others=(), **options):
    """Export a copy, take it in, and compare results, inputs and state on the example and on other arguments."""
    kwargs = kwargs or {}
    module = clew.from_exported(export(copy.deepcopy(model), copy.deepcopy(args), copy.deepcopy(kwargs), **options))
    module.graph.lint()
    assert list(module.state_dict()) == list(model.state_dict())
    for call, named in [(args, kwargs), *others]:
        theirs, ours = copy.deepcopy((call, named)), copy.deepcopy((call, named))
        torch.testing.assert_close(module(*ours[0], **ours[1]), model(*theirs[0], **theirs[1]))
        torch.testing.assert_close(tensors_in(ours), tensors_in(theirs))
    torch.testing.assert_close(dict(module.state_dict()), dict(model.state_dict()))
    return module


def test_mlp():
    module = check(MLP(), (X,))
    assert type(module).__name__ == "MLP"
    assert {node.target for node in module.graph.find_nodes(op="get_attr")} >= {"layers.0.weight", "scale", "shift"}
    assert "fleeting" in dict(module.named_buffers()) and "fleeting" not in module.state_dict()
    assert len(dict(module.named_parameters())) == 5


def test_parameters_are_those_of_the_model():
    model = MLP()
    module = clew.from_exported(export(model, (X,)))
    assert module.scale is model.scale
    module(X).sum().backward()
    assert model.scale.grad is not None


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(training):
    model = ConvNet().train(training)
    before = model.norm.running_mean.clone()
    module = check(model, (IMAGE,), others=[((IMAGE * 2,), {})])
    assert torch.equal(before, module.norm.running_mean) is not training


def test_batch_norm_after_decomposition():
    model = ConvNet().train()
    program = export(copy.deepcopy(model), (IMAGE,)).run_decompositions()
    module = clew.from_exported(program)
    for _ in range(2):
        torch.testing.assert_close(module(IMAGE), model(IMAGE))
    torch.testing.assert_close(dict(module.state_dict()), dict(model.state_dict()))


def test_dead_code_keeps_state_and_checks():
    model = ConvNet().train()
    module = clew.from_exported(export(copy.deepcopy(model), (IMAGE,)))
    module.graph.eliminate_dead_code()
    torch.testing.assert_close(module(IMAGE), model(IMAGE))
    torch.testing.assert_close(dict(module.state_dict()), dict(model.state_dict()))
    with pytest.raises(InputMismatch):
        module(IMAGE[:1])


def test_the_mode_is_fixed():
    module = clew.from_exported(export(MLP(), (X,)))
    for switch in (module.train, module.eval):
        with pytest.raises(InteropError, match="MLP cannot be switched"):
            switch()


class Nested(nn.Module):
    def forward(self, x, options, *, scale=None, flag=True):
        y = x + options["shift"]["by"] * options["weights"][0]
        y = y if scale is None else y * scale
        return {"out": y if flag else -y, "parts": [y.sum(), (x, options["weights"][1])]}


def nested_inputs(size=3):
    return X[:, :size], {"shift": {"by": X[:, :size]}, "weights": [X[:, :size] * 2, X]}


def test_dict_inputs():
    check(Nested(), nested_inputs())


def test_keyword_inputs():
    module = check(Nested(), nested_inputs(), {"scale": X[:, :3], "flag": False})
    with pytest.raises(InputMismatch, match="the input flag is True, and False is expected"):
        module(*nested_inputs(), scale=X[:, :3], flag=True)
    with pytest.raises(TypeError, match="scale"):
        module(*nested_inputs(), flag=False)


def test_other_structures_are_refused():
    module = clew.from_exported(export(Nested(), nested_inputs()))
    x, options = nested_inputs()
    for wrong in ({"shift": options["shift"]}, {**options, "more": x}, {**options, "weights": [x, x, x]}, x):
        with pytest.raises((ValueError, TypeError)):
            module(x, wrong)


class Optional(nn.Module):
    def forward(self, x, y, name, count):
        return x * count if y is None else x + y


def test_constants_are_checked():
    module = check(Optional(), (X, None, "name", 2))
    for wrong in [(X, X, "name", 2), (X, None, "other", 2), (X, None, "name", 3), (X, None, "name", 2.0)]:
        with pytest.raises(InputMismatch):
            module(*wrong)


def test_dynamic_batch():
    sizes = [((SEQUENCE[0, :n].repeat(3, 1)[:n],), {}) for n in (2, 3)]
    module = check(MLP(), (X,), others=sizes, dynamic_shapes={"x": {0: Dim("batch")}})
    with pytest.raises(InputMismatch, match="the input x is f32"):
        module(torch.ones(3, 5))


@pytest.mark.parametrize(
    "wrong",
    [torch.ones(3, 5), torch.ones(4, 4), torch.ones(1, 3, 4), X.double(), X.to("meta"), None, 1.0, [X]],
    ids=["size", "batch", "rank", "dtype", "device", "none", "number", "list"],
)
def test_inputs_that_were_not_exported_are_refused(wrong):
    module = clew.from_exported(export(MLP(), (X,)))
    with pytest.raises(InputMismatch, match=r"f32\[3, 4\] is expected"):
        module(wrong)


def test_ranges_are_checked():
    batch = Dim("batch", min=2, max=5)
    module = clew.from_exported(export(MLP(), (X,), dynamic_shapes={"x": {0: batch}}))
    assert module(torch.ones(5, 4)).shape == (5, 4)
    for size in (1, 6):
        with pytest.raises(InputMismatch, match=f"is {size}, and at"):
            module(torch.ones(size, 4))


class Add(nn.Module):
    def forward(self, x, y):
        return x + y


def test_equal_sizes_are_checked():
    batch = Dim("batch", max=9)
    program = export(Add(), (X, X), dynamic_shapes={"x": {0: batch}, "y": {0: batch}})
    module = clew.from_exported(program)
    assert module(torch.ones(5, 4), torch.ones(5, 4)).shape == (5, 4)
    with pytest.raises(InputMismatch, match="expected, where"):
        module(torch.ones(5, 4), torch.ones(1, 4))


class Even(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] % 2 == 0 else x


def test_guards_of_the_program_are_nodes():
    half = Dim("half", min=1, max=32)
    module = clew.from_exported(export(Even(), (torch.ones(6, 4),), dynamic_shapes={"x": {0: 2 * half}}))
    assert torch.equal(module(torch.ones(8, 4)), torch.full((8, 4), 2.0))
    assert [node for node in module.graph.nodes if node.target is operator.mod]
    with pytest.raises(AssertionError, match="Guard failed"):
        module(torch.ones(7, 4))


def test_tied_weights():
    module = check(Tied(), (X,))
    assert module.first.weight is module.second.weight


class InputWriter(nn.Module):
    def forward(self, x):
        x.mul_(2)
        return x + 1


@pytest.mark.parametrize("decompose", [False, True])
def test_writes_to_inputs(decompose):
    program = export(InputWriter(), (X.clone(),))
    module = clew.from_exported(program.run_decompositions() if decompose else program)
    given, expected = X.clone(), X.clone()
    torch.testing.assert_close(module(given), InputWriter()(expected))
    assert torch.equal(given, expected) and not torch.equal(given, X)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.table = torch.arange(4.0)

    def forward(self, x):
        self.count += 1
        return x * self.table + self.count + torch.tensor([1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("decompose", [False, True])
def test_state_and_constants(decompose):
    model = Counter()
    program = export(copy.deepcopy(model), (X,))
    module = clew.from_exported(program.run_decompositions() if decompose else program)
    for _ in range(3):
        torch.testing.assert_close(module(X), model(X))
    assert module.count == 3 and list(module.state_dict()) == ["count"]


class Branch(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))


def test_control_flow():
    module = check(Branch(), (X.abs(),), others=[((-X.abs(),), {})])
    assert [node for node in module.graph.nodes if node.target is torch.ops.higher_order.cond]


def test_the_program_is_left_alone():
    program = export(MLP(), (X,), dynamic_shapes={"x": {0: Dim("batch")}})
    before = str(program)
    clew.from_exported(program)
    assert str(program) == before
    torch.testing.assert_close(program.module()(X), clew.from_exported(program)(X))


def test_interpreter_and_torch_agree_with_the_code():
    module = clew.from_exported(export(Nested(), nested_inputs()))
    expected = module(*nested_inputs())
    torch.testing.assert_close(clew.Interpreter(module).run(*nested_inputs()), expected)
    torch.testing.assert_close(clew.to_fx(module)(*nested_inputs()), expected)


def test_the_module_of_a_program_through_from_fx():
    program = export(MLP(), (X,))
    module = clew.from_fx(program.module())
    torch.testing.assert_close(module(X), program.module()(X))
    with pytest.raises(AssertionError, match="Guard failed"):
        module(torch.ones(4, 4))
    with pytest.raises(InteropError, match="from_exported"):
        clew.from_fx(program.module(check_guards=False))


def test_a_program_without_example_inputs_is_checked_too():
    program = export(MLP(), (X,))
    program.example_inputs = None
    with pytest.raises(InputMismatch):
        clew.from_exported(program)(torch.ones(4, 4))


def test_only_programs_are_taken():
    with pytest.raises(InteropError, match="no exported program"):
        clew.from_exported(MLP())


def test_checks_by_themselves():
    check_tensors({"x": torch.ones(2, 3)}, {"x": "f32[n, 3]"}, {"n": (1, 2)}, {"n": 2})
    with pytest.raises(InputMismatch, match="where n is 3"):
        check_tensors({"x": torch.ones(2, 3)}, {"x": "f32[n, 3]"}, {}, {"n": 3})
    with pytest.raises(InputMismatch, match="at most 1"):
        check_tensors({}, {}, {"n": (None, 1)}, {"n": 2})
    check_constants({"a": float("nan"), "b": None}, {"a": float("nan"), "b": None})
    for value, constant in [(1.0, float("nan")), (float("nan"), 1.0), (True, 1), (0, None)]:
        with pytest.raises(InputMismatch):
            check_constants({"a": value}, {"a": constant})


def test_a_capture_can_be_exported():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).eval()
    captured = clew.trace(model, (torch.ones(2, 4),))
    program = torch.export.export(captured, (torch.ones(2, 4),))
    assert torch.equal(program.module()(torch.full((2, 4), 3.0)), model(torch.full((2, 4), 3.0)))


def test_the_text_of_a_program_reads_back():
    module = clew.from_exported(export(MLP(), (X,)))
    text, objects = clew.text_and_objects(module.graph)
    assert "check_tensors" in text
    again = clew.GraphModule(module, clew.parse(text, objects=objects))
    torch.testing.assert_close(again(X)[0], module(X))
