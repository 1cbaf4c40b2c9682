"""to_folder: the written package is the module again, wherever it lies, or nothing is written."""

import math
import operator
import os
import shutil
import subprocess
import sys
import typing

import pytest
import torch
from torch import nn

import clew
from clew.codegen.python import CodeGen
from clew.errors import CodegenError
from tests.codegen import odd_names, shapes

from .folders import fresh_name, load, through_a_folder, write
from .models import Block, Custom, Tied, double_output, small_graph

X = torch.randn(4, 3)


def over(function, *path_and_module):
    """A graph module that calls ``function`` on its one input, or the modules at the paths given."""
    graph = clew.Graph()
    x = graph.placeholder("x")
    for path, _ in path_and_module:
        x = graph.call_module(path, (x,))
    graph.output(x if function is None else graph.call_function(function, (x,)))
    return clew.GraphModule(dict(path_and_module), graph)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", [Block, Tied])
def test_a_module_comes_back(tmp_path, kind, training):
    traced = clew.symbolic_trace(kind()).train(training)
    twin = through_a_folder(traced, tmp_path)
    assert not isinstance(twin, clew.GraphModule)
    assert [module.training for module in twin.modules()] == [module.training for module in traced.modules()]
    assert twin.state_dict().keys() == traced.state_dict().keys()
    assert torch.equal(twin(X), traced(X))


def test_it_runs_without_clew_in_a_new_process_after_a_move(tmp_path):
    traced = clew.symbolic_trace(Block()).eval()
    folder = write(traced, tmp_path)
    (tmp_path / "elsewhere").mkdir()
    moved = tmp_path / "elsewhere" / "moved_package"
    shutil.move(folder, moved)
    torch.save((X, traced(X)), tmp_path / "case.pt")
    program = (
        "import sys, torch; sys.modules['clew'] = None; from moved_package import Saved; "
        f"x, y = torch.load({str(tmp_path / 'case.pt')!r}); assert torch.equal(Saved()(x), y); print('same')"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=moved.parent, capture_output=True, text=True)
    assert run.stdout == "same\n", run.stderr


def test_ties_and_shared_modules(tmp_path):
    shared = nn.BatchNorm1d(3)
    module = over(None, ("a.norm", shared), ("b.norm", shared), ("tied", nn.Linear(3, 3)), ("twin", nn.Linear(3, 3)))
    module.twin.weight = module.tied.weight
    module.b.get_submodule("norm").train()
    twin = through_a_folder(module, tmp_path)
    assert twin.a.norm is twin.b.norm
    assert twin.twin.weight is twin.tied.weight
    assert torch.equal(twin(X), module(X))
    assert torch.equal(twin.a.norm.running_mean, module.a.norm.running_mean)


def test_shared_buffers_of_pickled_modules(tmp_path):
    norm = nn.BatchNorm1d(3)
    module = over(None, ("chain", nn.Sequential(norm, Custom(2.0))), ("norm", norm))
    twin = through_a_folder(module, tmp_path)
    assert twin.norm.running_mean is twin.chain[0].running_mean
    assert torch.equal(twin(X), module(X))


def test_buffers_of_both_kinds(tmp_path):
    twin = through_a_folder(clew.symbolic_trace(Block()), tmp_path)
    assert "hidden" not in twin.state_dict()
    assert dict(twin.named_buffers()).keys() >= {"shift", "hidden"}


def test_attributes_that_are_no_tensors(tmp_path):
    graph = clew.Graph()
    x = graph.placeholder("x")
    scaled = graph.call_function(operator.mul, (x, graph.get_attr("deep.scale")))
    graph.output((scaled, graph.get_attr("label"), graph.get_attr("nothing"), graph.get_attr("sizes")))
    module = clew.GraphModule({"deep.scale": 2.5, "label": "it's", "nothing": None, "sizes": [1, (2,)]}, graph)
    twin = through_a_folder(module, tmp_path)
    assert twin(2) == module(2) == (5.0, "it's", None, [1, (2,)])


def test_a_parameter_that_is_none(tmp_path):
    class WithoutBias(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_parameter("bias", None)
            self.register_buffer("shift", None)

        def forward(self, x):
            return x

    graph = clew.Graph()
    x = graph.placeholder("x")
    graph.output((x, graph.get_attr("bias"), graph.get_attr("shift")))
    twin = through_a_folder(clew.GraphModule(WithoutBias(), graph), tmp_path)
    assert twin(3) == (3, None, None)


PATHS = ["a b", "class", "0.1", "x/y", "/absolute", "ünï", "State_Dict", "specs", "it's", "torch"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("leaf", [nn.Hardtanh(-1.5, 2.5), Custom(3.0)], ids=["constructed", "pickled"])
def test_paths_of_any_spelling(tmp_path, path, leaf):
    module = over(None, (path, leaf))
    folder = write(module, tmp_path)
    assert torch.equal(load(folder)(X), module(X))
    assert sorted(os.listdir(tmp_path)) == [folder.name]
    files = {file for file in os.listdir(folder) if file.endswith(".pt")}
    assert len(files) == (2 if isinstance(leaf, Custom) else 1)  # the state dict, and the pickled layer beside it


def test_hooks_of_children_are_kept_and_those_of_the_module_are_told(tmp_path):
    module = over(None, ("linear", nn.Linear(3, 3)), ("plain", nn.ReLU()))
    module.linear.register_forward_hook(double_output)
    assert torch.equal(through_a_folder(module, tmp_path)(X), module(X))
    module.register_forward_hook(double_output)
    with pytest.warns(UserWarning, match="hooks of the module itself"):
        module.to_folder(tmp_path / fresh_name(), "Saved")


LEAVES = [
    nn.Conv1d(4, 4, 1, padding_mode="circular"), nn.GELU(approximate="tanh"), nn.Linear(3, 3, dtype=torch.float64),
    nn.Softmax(dim=-1), nn.LayerNorm(3, elementwise_affine=False), nn.Dropout(0.25), nn.Identity(5),
    nn.Threshold(0.5, 7), nn.utils.spectral_norm(nn.Linear(3, 3)), nn.LSTM(3, 2),
    nn.PReLU(), nn.Linear(3, 3).requires_grad_(False), nn.BatchNorm1d(3, momentum=None, track_running_stats=False),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: type(leaf).__name__)
def test_layers_of_every_configuration(tmp_path, leaf):
    module = over(None, ("leaf", leaf)).eval()
    inputs = X.double() if any(value.dtype == torch.float64 for value in leaf.parameters()) else X
    twin = through_a_folder(module, tmp_path)
    torch.testing.assert_close(twin(inputs), module(inputs), rtol=0, atol=0)
    grads = [parameter.requires_grad for parameter in twin.parameters()]
    assert grads == [parameter.requires_grad for parameter in module.parameters()]


def test_a_layer_changed_after_its_construction(tmp_path):
    layer = nn.Hardtanh()
    layer.max_val = 0.25
    layer.extra = "kept"
    twin = through_a_folder(over(None, ("leaf", layer)), tmp_path)
    assert twin.leaf.max_val == 0.25 and twin.leaf.extra == "kept"


def test_a_repr_is_never_evaluated(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr("torch.nn.functional.evil", lambda: ran.append(1) or "zeros", raising=False)
    layer = nn.Conv1d(4, 4, 1)
    layer.padding_mode = "functional.evil()"
    write(over(None, ("leaf", layer)), tmp_path)
    assert ran == []


FUNCTIONS = [
    odd_names.Path, odd_names.nn, odd_names._HERE, odd_names.private, odd_names.Holder.Inner.double, torch.relu,
    operator.neg, math.sqrt, torch.Tensor.neg, torch.ops.aten.neg.default,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=range(len(FUNCTIONS)))
def test_functions_called_like_what_the_file_needs(tmp_path, function):
    graph = clew.Graph()
    x = graph.placeholder("x")
    hidden = graph.call_module("linear", (graph.get_attr("weight"),))
    graph.output((graph.create_node("call_function", function, (x,), {}, "y"), hidden))
    root = {"linear": nn.Linear(3, 3), "weight": nn.Parameter(torch.randn(3))}
    module = clew.GraphModule(root, graph)
    twin = through_a_folder(module, tmp_path)
    found, expected = twin(torch.tensor(2.0)), module(torch.tensor(2.0))
    assert found[0] == expected[0] and torch.equal(found[1], expected[1])


def test_private_names_are_not_mangled(tmp_path):
    graph = clew.Graph()
    x = graph.placeholder("x")
    attribute = graph.call_function(getattr, (x, "__private"))
    called = graph.call_method("__call", (x,), {"__key": attribute})
    graph.output((attribute, called, graph.get_attr("__weight")))
    module = clew.GraphModule({"__weight": nn.Parameter(torch.ones(1))}, graph)

    class Thing:
        pass

    thing = Thing()
    setattr(thing, "__private", 3)
    setattr(thing, "__call", lambda **kwargs: kwargs)
    assert through_a_folder(module, tmp_path)(thing)[:2] == (3, {"__key": 3})


def test_literals_and_annotations(tmp_path):
    graph = clew.Graph()
    x = graph.create_node("placeholder", "x", (math.inf,), type_expr=typing.Optional[torch.Tensor])
    values = (shapes.Point(1, "ü\ud800"), shapes.Outer.Inner.ONE, torch.float16, type(None), math.nan, slice(1), 1j)
    graph.output((x, values)).type = typing.Tuple[torch.Tensor, typing.Any]
    twin = through_a_folder(clew.GraphModule({}, graph), tmp_path)
    assert str(twin()) == str((math.inf, values))


def test_nests(tmp_path):
    traced = clew.symbolic_trace(lambda x, y=2: {"out": [x["a"] * y]}, concrete_args={"x": {"a": clew.PH}})
    twin = through_a_folder(traced, tmp_path)
    assert twin({"a": 3}) == {"out": [6]} and twin({"a": 3}, 5) == {"out": [15]}


class OneList(CodeGen):
    def gen_fn_def(self, free_vars, maybe_return_annotation):
        return f"def forward(self, inputs: List){maybe_return_annotation}:\n    {', '.join(free_vars)} = inputs"

    def additional_globals(self):
        return [("List", typing.List)]


def test_a_signature_of_the_users_own(tmp_path):
    graph = clew.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    graph.output(graph.call_function(operator.add, (x, y)))
    graph.set_codegen(OneList())
    assert through_a_folder(clew.GraphModule({}, graph), tmp_path)([1, 2]) == 3


def content(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def unsaveable():
    local = over(lambda x: x)
    hooked = over(None, ("linear", nn.Linear(3, 3)))
    hooked.linear.register_forward_hook(lambda module, inputs, output: output)
    local_class = type("LocalClass", (nn.Module,), {"forward": lambda self, x: x})
    return {"lambda": local, "hook": hooked, "class": over(None, ("leaf", local_class()))}


@pytest.mark.parametrize("reason", ["lambda", "hook", "class"])
def test_what_cannot_be_saved_leaves_the_old_folder_as_it_was(tmp_path, reason):
    folder = write(clew.symbolic_trace(Block()), tmp_path)
    before = content(folder)
    with pytest.raises(CodegenError):
        unsaveable()[reason].to_folder(folder, "Saved")
    assert content(folder) == before
    assert os.listdir(tmp_path) == [folder.name]
    fresh = tmp_path / "never"
    with pytest.raises(CodegenError):
        unsaveable()[reason].to_folder(fresh, "Saved")
    assert not fresh.exists()


def test_a_folder_that_cannot_take_a_file_is_put_back(tmp_path):
    folder = write(clew.GraphModule({}, small_graph()), tmp_path)
    (folder / "state_dict.pt").unlink()
    (folder / "state_dict.pt").mkdir()
    (folder / "state_dict.pt" / "in_the_way").touch()
    before = content(folder)
    with pytest.raises(OSError):
        blocked = clew.symbolic_trace(Block())
        blocked.to_folder(folder / "module.py" / "deeper", "Saved")
    assert content(folder) == before


def test_overwriting_with_code_of_the_same_size_at_once(tmp_path):
    module = clew.GraphModule({}, small_graph())
    folder = write(module, tmp_path)
    (folder / "notes.txt").write_text("mine")
    assert load(folder)(torch.tensor(3.0)) == 8
    for number in (3, 4, 5):
        module.graph.find_nodes(op="call_function")[1].update_arg(1, number)
        module.to_folder(folder, "Saved")
        assert load(folder)(torch.tensor(3.0)) == 4 * number
    assert (folder / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["class", "a b", "", "torch", "add_1", "pathlib"])
def test_names_that_no_class_can_have(tmp_path, name):
    graph = clew.Graph()
    graph.output(graph.create_node("call_function", shapes.Point, (graph.placeholder("x"),), {}, "y"))
    module = clew.GraphModule({}, graph)
    with pytest.raises(CodegenError):
        module.to_folder(tmp_path / "never", "Point" if name == "add_1" else name)
    assert os.listdir(tmp_path) == []
