"""deepcopy, pickle, to_folder, torch.save: the copy computes the same and stands alone."""

import copy
import importlib
import io
import pickle
import sys

import pytest
import torch
from torch import nn
from torch.package import PackageExporter, PackageImporter

import clew
from clew import fx
from clew.errors import CodegenError

from . import wrapped
from .helpers import Inner, LinearOnly, Outer, names, of, only, targets

X = torch.randn(2, 4)


def returns_nest(x):
    return {"value": x + 1, "number": 3, "list": [x, (x * 2,)]}


def with_literals(x):
    return torch.clamp(x, min=float("-inf"), max=3.0)[..., :1].to(torch.float64)


def with_constant(x):
    return x + torch.ones(4) * 2


MODELS = {
    "inner": Inner, "outer": Outer, "dict": lambda: returns_nest, "literals": lambda: with_literals,
    "constant": lambda: with_constant, "wrapped": wrapped.CallsByName,
}  # fmt: skip
COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda module: pickle.loads(pickle.dumps(module))}


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES.keys())
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
def test_copy_computes_the_same(fx, make, duplicate):
    root = make()
    traced = fx.symbolic_trace(root)
    copied = duplicate(traced)
    copied.graph.lint()
    assert names(copied.graph) == names(traced.graph)
    assert targets(copied.graph) == targets(traced.graph)
    torch.testing.assert_close(copied(X), root(X))


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES.keys())
def test_copy_does_not_share_parameters(fx, duplicate):
    traced = fx.symbolic_trace(Inner())
    copied = duplicate(traced)
    assert copied.scale is not traced.scale
    with torch.no_grad():
        copied.scale.zero_()
    assert traced.scale.abs().sum() > 0


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES.keys())
def test_copy_is_a_graph_module(fx, duplicate):
    copied = duplicate(fx.symbolic_trace(Inner()))
    assert isinstance(copied, fx.GraphModule)
    assert copied.graph.owning_module is copied


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES.keys())
def test_copy_can_be_edited_alone(fx, duplicate):
    traced = fx.symbolic_trace(lambda_relu)
    copied = duplicate(traced)
    only(copied.graph, "call_function").target = torch.neg
    copied.recompile()
    assert copied(torch.tensor(2.0)) == -2.0
    assert traced(torch.tensor(2.0)) == 2.0


def lambda_relu(x):
    return torch.relu(x)


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES.keys())
def test_copy_keeps_training_mode(fx, duplicate):
    assert duplicate(fx.symbolic_trace(Inner()).eval()).training is False


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES.keys())
def test_copy_after_an_edit(fx, duplicate):
    traced = fx.symbolic_trace(lambda_relu)
    only(traced.graph, "call_function").target = torch.neg
    traced.recompile()
    assert duplicate(traced)(torch.tensor(2.0)) == -2.0


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES.keys())
def test_copy_of_a_copy(fx, duplicate):
    traced = fx.symbolic_trace(Outer())
    torch.testing.assert_close(duplicate(duplicate(traced))(X), traced(X))


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES.keys())
def test_copy_keeps_default_arguments(fx, duplicate):
    copied = duplicate(fx.symbolic_trace(with_default))
    assert copied(1) == 4 and copied(1, 1) == 2


def with_default(x, n=3):
    return x + n


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES.keys())
def test_copy_of_a_pytree_module(fx, duplicate):
    traced = fx.symbolic_trace(pair_sum, concrete_args={"pair": (fx.PH, fx.PH)})
    assert duplicate(traced)((1, 2)) == 3


def pair_sum(pair):
    return pair[0] + pair[1]


def test_deepcopy_keeps_node_meta(fx):
    traced = fx.symbolic_trace(lambda_relu)
    only(traced.graph, "call_function").meta["key"] = "value"
    assert only(copy.deepcopy(traced).graph, "call_function").meta["key"] == "value"


def test_deepcopy_keeps_unreferenced_children(fx):
    traced = fx.symbolic_trace(LinearOnly())
    traced.add_submodule("extra", torch.nn.ReLU())
    assert hasattr(copy.deepcopy(traced), "extra")


def test_deepcopy_keeps_the_tracer_class(fx):
    class Mine(fx.Tracer):
        pass

    traced = fx.GraphModule(torch.nn.Module(), Mine().trace(lambda_relu))
    assert copy.deepcopy(traced).graph._tracer_cls is Mine


def test_deepcopy_inside_a_larger_module(fx):
    holder = torch.nn.Sequential(fx.symbolic_trace(Inner()), torch.nn.ReLU())
    copied = copy.deepcopy(holder)
    torch.testing.assert_close(copied(X), holder(X))


def test_deepcopy_of_nested_graph_modules(fx):
    holder = torch.nn.Module()
    holder.child = fx.symbolic_trace(Inner())
    graph = fx.Graph()
    graph.output(graph.call_module("child", (graph.placeholder("x"),)))
    traced = fx.GraphModule(holder, graph)
    torch.testing.assert_close(copy.deepcopy(traced)(X), traced(X))


def test_deepcopy_edit_nodes_uses_the_copies(fx):
    traced = fx.symbolic_trace(Outer())
    copied = copy.deepcopy(traced)
    for node in copied.graph.nodes:
        assert node.graph is copied.graph
        assert all(parent.graph is copied.graph for parent in node.all_input_nodes)


def test_torch_save_and_load(fx):
    traced = fx.symbolic_trace(Inner())
    buffer = io.BytesIO()
    torch.save(traced, buffer)
    buffer.seek(0)
    torch.testing.assert_close(torch.load(buffer, weights_only=False)(X), traced(X))


def test_state_dict_round_trip(fx):
    traced, other = fx.symbolic_trace(Inner()), fx.symbolic_trace(Inner())
    other.load_state_dict(copy.deepcopy(traced.state_dict()))
    torch.testing.assert_close(other(X), traced(X))


def test_pickle_keeps_annotations(fx):
    def check(traced):
        return [node.type for node in of(traced.graph, "placeholder")]

    traced = fx.symbolic_trace(annotated)
    assert check(pickle.loads(pickle.dumps(traced))) == check(traced) == [torch.Tensor, type(None)]


def annotated(x: torch.Tensor, n: type(None) = None) -> torch.Tensor:
    return x


def test_pickle_of_custom_functions(fx):
    graph = fx.Graph()
    graph.output(graph.call_function(wrapped.by_name, (graph.placeholder("x"), 2)))
    module = fx.GraphModule(torch.nn.Module(), graph)
    assert pickle.loads(pickle.dumps(module))(3) == 6


def load_folder(folder, name):
    sys.path.insert(0, str(folder.parent))
    try:
        sys.modules.pop(folder.name, None)
        return getattr(importlib.import_module(folder.name), name)
    finally:
        sys.path.remove(str(folder.parent))
        for module in [module for module in sys.modules if module.split(".")[0] == folder.name]:
            del sys.modules[module]


@pytest.mark.parametrize("make", [LinearOnly, Inner, Outer])
@pytest.mark.filterwarnings("ignore:Was not able to save")
def test_to_folder(fx, tmp_path, make):
    root = make()
    traced = fx.symbolic_trace(root)
    folder = tmp_path / f"saved_{make.__name__.lower()}"
    traced.to_folder(folder, "Saved")
    loaded = load_folder(folder, "Saved")()
    x = torch.randn(2, 3 if make is LinearOnly else 4)
    torch.testing.assert_close(loaded(x), root(x))


def test_to_folder_takes_a_string(fx, tmp_path):
    fx.symbolic_trace(LinearOnly()).to_folder(str(tmp_path / "as_string"))
    assert hasattr(load_folder(tmp_path / "as_string", "FxModule")(), "linear")


def test_to_folder_writes_the_state(fx, tmp_path):
    traced = fx.symbolic_trace(LinearOnly())
    traced.to_folder(tmp_path / "state")
    assert (tmp_path / "state" / "module.py").exists()
    assert (tmp_path / "state" / "__init__.py").exists()
    assert (tmp_path / "state" / "state_dict.pt").exists()


def test_to_folder_of_buffers(fx, tmp_path):
    traced = fx.symbolic_trace(with_constant)
    traced.to_folder(tmp_path / "buffers", "Saved")
    torch.testing.assert_close(load_folder(tmp_path / "buffers", "Saved")()(X), with_constant(X))


def packaged(module):
    file = io.BytesIO()
    with PackageExporter(file) as exporter:
        exporter.save_pickle("model", "model.pkl", module)
    file.seek(0)
    return PackageImporter(file).load_pickle("model", "model.pkl")


def test_torch_package_gives_a_module_of_torch_fx():
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(3, 4), nn.ReLU()))
    loaded = packaged(traced)
    assert isinstance(loaded, torch.fx.GraphModule)
    torch.testing.assert_close(loaded(torch.ones(2, 3)), traced(torch.ones(2, 3)))
    assert [node.name for node in loaded.graph.nodes] == [node.name for node in traced.graph.nodes]


def test_torch_package_refuses_what_torch_fx_would_lose():
    def writing(x):
        x += 1
        return x

    with pytest.raises(CodegenError, match="the node add writes in place"):
        packaged(fx.symbolic_trace(writing))
    with pytest.raises(CodegenError, match=r"it has guards(.|\n)*clew.save"):
        packaged(clew.trace(nn.Linear(3, 4), (torch.ones(2, 3),)))
