"""Clients of torch.fx, unchanged, over Clew's classes: ``python -m benchmarks.clients``.

Each client runs twice, each time in a process of its own: as it is installed, and with ``clew.fx`` wherever its source
says ``torch.fx``, swapped while it is imported (``clew.fx.install``); nothing of it is stored. A case counts if the
results are the same, and the graphs have the same targets. ``--captures`` feeds captures of Hugging Face's models,
which torch.fx cannot trace, to tools instead. ``--write`` puts the tables into ``docs/from_torch_fx.md``.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib
import io
import json
import operator
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "from_torch_fx.md"
Case = tuple[str, Callable[[], Any]]

# ---- models ----------------------------------------------------------------------------------------------------------


class Unit(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        return self.relu(self.norm(self.conv(x)))


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.first, self.second = Unit(inputs, outputs, stride), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm, self.relu = nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
        self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x: Any) -> Any:
        out = self.norm(self.second(self.first(x)))
        out += self.short(x)
        return self.relu(out)


class Squeeze(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.down, self.up, self.gate = nn.Conv2d(width, 2, 1), nn.Conv2d(2, width, 1), nn.Hardsigmoid()

    def forward(self, x: Any) -> Any:
        return x * self.gate(self.up(torch.relu(self.down(x.mean([2, 3], keepdim=True)))))


class Joined(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = Unit(3, 4), Unit(3, 4)

    def forward(self, x: Any) -> Any:
        return torch.cat([self.left(x), self.right(x)], 1)


class Functional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.rand(5, 4)), nn.Parameter(torch.rand(5))

    def forward(self, x: Any) -> Any:
        return nn.functional.relu(nn.functional.linear(x, self.weight, self.bias)) * 2 + 1


class Parallel(nn.Module):
    """Two linear layers that take the same value."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(4, 5), nn.Linear(4, 5)

    def forward(self, x: Any) -> Any:
        return self.left(x) + self.right(x)


def head(width: int) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 4)]


def models() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    """Fourteen small models with an example each."""
    torch.manual_seed(0)
    image, row = torch.rand(2, 3, 8, 8), torch.rand(3, 4)
    sequence = {
        "perceptron": (nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), row),
        "deep perceptron": (nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(4))), row),
        "functional": (Functional(), row),
        "normalised": (nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 4)), row),
        "dropout": (nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.ReLU()), row),
        "unit": (nn.Sequential(Unit(3, 8), *head(8)), image),
        "residual": (nn.Sequential(Residual(3, 8), *head(8)), image),
        "two residuals": (nn.Sequential(Residual(3, 8), Residual(8, 8, 2), *head(8)), image),
        "squeeze": (nn.Sequential(Unit(3, 8), Squeeze(8), *head(8)), image),
        "joined": (nn.Sequential(Joined(), *head(8)), image),
        "transposed": (nn.Sequential(nn.ConvTranspose2d(3, 4, 2), nn.ReLU(), *head(4)), image),
        "pooled": (nn.Sequential(Unit(3, 8), nn.MaxPool2d(2), nn.AvgPool2d(2), *head(8)), image),
        "hard swish": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.Hardswish(), *head(8)), image),
        "grouped": (nn.Sequential(nn.Conv2d(3, 6, 3, groups=3), nn.ReLU6(), *head(6)), image),
    }
    return {name: (model.eval(), example) for name, (model, example) in sequence.items()}


def targets(module: Any) -> list[str]:
    return [node.target if isinstance(node.target, str) else node.target.__name__ for node in module.graph.nodes]


# ---- clients ---------------------------------------------------------------------------------------------------------


def quantization(fx: Any) -> Iterator[Case]:
    quantize_fx = importlib.import_module("torch.ao.quantization.quantize_fx")
    mapping = importlib.import_module("torch.ao.quantization.qconfig_mapping")
    torch.backends.quantized.engine = next(one for one in torch.backends.quantized.supported_engines if one != "none")

    def run(model: nn.Module, x: Any, kind: str) -> Any:
        engine, model = torch.backends.quantized.engine, copy.deepcopy(model)
        if kind == "fuse":
            result = quantize_fx.fuse_fx(model)
        elif kind == "training":
            prepared = quantize_fx.prepare_qat_fx(model.train(), mapping.get_default_qat_qconfig_mapping(engine), (x,))
            prepared(x)
            result = quantize_fx.convert_fx(prepared.eval())
        else:
            prepared = quantize_fx.prepare_fx(model, mapping.get_default_qconfig_mapping(engine), (x,))
            prepared(x)
            convert = quantize_fx.convert_fx if kind == "after" else quantize_fx.convert_to_reference_fx
            result = convert(prepared)
        return result(x), targets(result)

    for name, (model, x) in list(models().items())[:10]:
        for kind in ("after", "reference", "training", "fuse"):
            yield f"{kind}: {name}", lambda model=model, x=x, kind=kind: run(model, x, kind)


def feature_extraction(fx: Any) -> Iterator[Case]:
    extraction = importlib.import_module("torchvision.models.feature_extraction")
    for name, (model, x) in models().items():

        def run(model: nn.Module = model, x: Any = x) -> Any:
            train, evaluated = extraction.get_graph_node_names(model)
            wanted = evaluated[len(evaluated) // 2]
            extractor = extraction.create_feature_extractor(model, {wanted: "middle", evaluated[-1]: "last"})
            again = copy.deepcopy(extractor).eval()
            return train, evaluated, again(x)["middle"], again(x)["last"]

        yield name, run


def timm_features(fx: Any) -> Iterator[Case]:
    """What timm itself extracts, and a value in the middle, to which the next layer may write in place."""
    timm = importlib.import_module("timm")
    extraction = importlib.import_module("timm.models._features_fx")
    torch.manual_seed(0)
    x = torch.rand(1, 3, 64, 64)
    for name in ("resnet18", "vgg11", "repvgg_a0", "mobilenetv3_small_050", "efficientnet_lite0", "densenet121"):

        def features(name: str = name) -> Any:
            return timm.create_model(name, features_only=True, feature_cls="fx").eval()(x)

        def middle(name: str = name, last: bool = True) -> Any:
            model = timm.create_model(name).eval()
            names = extraction.get_graph_node_names(model)[1]
            wanted = [names[len(names) // 3], *names[-1:] * last]
            return names, list(extraction.create_feature_extractor(model, wanted).eval()(x).values())

        yield f"features: {name}", features
        yield f"middle and last: {name}", middle
        yield f"middle alone: {name}", lambda name=name, middle=middle: middle(name, last=False)


def aimet(fx: Any) -> Iterator[Case]:
    client = importlib.import_module("aimet_torch.model_preparer")
    for name, (model, x) in models().items():

        def run(model: nn.Module = model, x: Any = x) -> Any:
            prepared = client.prepare_model(copy.deepcopy(model))
            return prepared(x), targets(prepared)

        yield name, run


def llm_compressor(fx: Any) -> Iterator[Case]:
    client = importlib.import_module("llmcompressor.pipelines.sequential.helpers")
    for name in ("llama", "mistral", "qwen2", "gpt2", "bert"):
        model, example = captures()[name]

        def run(model: nn.Module = model, example: Any = example) -> Any:
            layers = sorted({type(part).__name__ for part in model.modules() if "Layer" in type(part).__name__[-5:]})
            kind = next((one for one in layers if one.endswith(("DecoderLayer", "Layer", "Block"))), "GPT2Block")
            found = client.trace_subgraphs(model, example, [kind], [])
            given = dict(example)
            with torch.no_grad():
                for part in found:
                    given |= part.forward(model, **{name: given[name] for name in part.input_names})
            return len(found), sorted(name for part in found for name in part.input_names)

        yield name, run


def equivariant(fx: Any) -> Iterator[Case]:
    o3 = importlib.import_module("e3nn.o3")
    torch.manual_seed(0)
    x, y = torch.rand(5, 16), torch.rand(5, 16)
    irreps = "4x0e + 4x1o"
    for name in ("FullyConnectedTensorProduct", "FullTensorProduct", "ElementwiseTensorProduct", "Linear"):

        def run(name: str = name) -> Any:
            given = (irreps, irreps, irreps) if name == "FullyConnectedTensorProduct" else (irreps, irreps)
            made = getattr(o3, name)(*given)
            return made(x) if name == "Linear" else made(x, y)

        yield name, run


def einsum(fx: Any) -> Iterator[Case]:
    client = importlib.import_module("opt_einsum_fx")
    torch.manual_seed(0)
    x, y, z = torch.rand(3, 4), torch.rand(4, 5), torch.rand(5, 6)

    def program(x: Any, y: Any, z: Any) -> Any:
        return torch.einsum("ij,jk,kl->il", x, y, z) * 2

    for name in ("optimize_einsums_full", "fuse_scalars", "fuse_einsums"):

        def run(name: str = name) -> Any:
            if name == "optimize_einsums_full":
                return client.optimize_einsums_full(program, (x, y, z))(x, y, z)
            graph = getattr(client, name)(fx.symbolic_trace(program).graph)
            return fx.GraphModule(nn.Module(), graph)(x, y, z)

        yield name, run


def composer(fx: Any) -> Iterator[Case]:
    utils = importlib.import_module("composer.utils.fx_utils")
    resnet = importlib.import_module("torchvision.models").resnet18
    operations = {"layers": nn.Conv2d, "calls": [operator.add, torch.add, torch.relu, "mean"]}
    for name, (model, x) in models().items():

        def replaced(model: nn.Module = model) -> Any:
            return targets(utils.replace_op(fx.symbolic_trace(model), [torch.relu, operator.add], torch.mul))

        def fused(model: nn.Module = model, x: Any = x) -> Any:
            found = utils.fuse_parallel_linears(fx.symbolic_trace(model))
            return targets(found), found(x).shape

        for kind, wanted in operations.items():
            yield (
                f"count {kind}: {name}",
                lambda model=model, wanted=wanted: utils.count_op_instances(fx.symbolic_trace(model), wanted),
            )
        yield f"replace: {name}", replaced
        yield f"fuse linears: {name}", fused

    def parallel() -> Any:
        found = utils.fuse_parallel_linears(fx.symbolic_trace(Parallel()))
        return targets(found), found(torch.rand(3, 4)).shape

    def stochastic(rate: float) -> Any:
        torch.manual_seed(0)
        found, count = utils.apply_stochastic_residual(fx.symbolic_trace(resnet().eval()), rate)
        return count, targets(found), found.eval()(torch.rand(1, 3, 32, 32))

    yield "fuse linears: parallel", parallel
    for rate in (0.0, 0.2):
        yield f"stochastic residual, {rate}: resnet18", lambda rate=rate: stochastic(rate)


def geometric(fx: Any) -> Iterator[Case]:
    client = importlib.import_module("torch_geometric.nn.fx")

    class Doubled(client.Transformer):
        def call_function(self, node: Any, target: Any, name: str) -> None:
            node.kwargs = dict(node.kwargs)

    for name, (model, x) in list(models().items())[:4]:
        yield name, lambda model=model, x=x: Doubled(copy.deepcopy(model)).transform()(x)


def heterogeneous(fx: Any) -> Iterator[Case]:
    """Programs of torch_geometric for several kinds of nodes and edges."""
    client = importlib.import_module("torch_geometric.nn")
    kinds = ("paper", "author")
    edges = [("paper", "cites", "paper"), ("paper", "by", "author"), ("author", "writes", "paper")]
    torch.manual_seed(0)
    x = {kind: torch.rand(6, 16) for kind in kinds}
    index = {kind: torch.arange(12).reshape(2, 6) % 6 for kind in edges}

    class Layers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = client.SAGEConv((16, 16), 16), client.SAGEConv((16, 16), 4)

        def forward(self, x: Any, edge_index: Any) -> Any:
            y = self.first(x, edge_index).relu()
            y += x
            return self.second(y, edge_index)

    for aggregation in ("sum", "mean", "max", "min", "mul"):

        def run(aggregation: str = aggregation) -> Any:
            made = client.to_hetero(Layers(), (list(kinds), edges), aggr=aggregation)
            return list(made(x, index).values()), [node.name for node in made.graph.nodes]

        yield f"to_hetero: {aggregation}", run


def onnx_to_torch(fx: Any) -> Iterator[Case]:
    client, helper = importlib.import_module("onnx2torch"), importlib.import_module("onnx.helper")
    numpy_helper = importlib.import_module("onnx.numpy_helper")
    torch.manual_seed(0)
    weight = torch.rand(4, 3, 3, 3).numpy()
    programs = {
        "convolution": [("Conv", ["x", "w"], {"kernel_shape": [3, 3]}), ("Relu", ["0"], {}), ("Flatten", ["1"], {})],
        "residual": [("Tanh", ["x"], {}), ("Add", ["0", "x"], {}), ("GlobalAveragePool", ["1"], {})],
        "attention": [("Transpose", ["x"], {"perm": [0, 1, 3, 2]}), ("MatMul", ["x", "0"], {}), ("Softmax", ["1"], {})],
    }
    for name, calls in programs.items():

        def run(calls: Any = calls) -> Any:
            nodes = [helper.make_node(kind, given, [str(at)], **rest) for at, (kind, given, rest) in enumerate(calls)]
            given = helper.make_tensor_value_info("x", 1, [1, 3, 6, 6])
            result = helper.make_tensor_value_info(str(len(calls) - 1), 1, None)
            graph = helper.make_graph(nodes, "g", [given], [result], [numpy_helper.from_array(weight, "w")])
            made = client.convert(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8))
            return made(torch.ones(1, 3, 6, 6)), targets(made), sorted(made.state_dict())

        yield name, run


def back_pack(fx: Any) -> Iterator[Case]:
    client, extensions = importlib.import_module("backpack"), importlib.import_module("backpack.extensions")
    torch.manual_seed(0)
    layers = {"perceptron": "perceptron", "parallel": Parallel(), "dropout": "dropout"}
    for name, model in layers.items():
        for kind in ("BatchGrad", "Variance", "DiagGGNExact"):

            def run(model: Any = model, kind: str = kind) -> Any:
                model = copy.deepcopy(models()[model][0] if isinstance(model, str) else model)
                made = client.extend(model, use_converter=True)
                loss = client.extend(nn.CrossEntropyLoss())(made(torch.ones(3, 4)), torch.zeros(3, dtype=torch.long))
                with client.backpack(getattr(extensions, kind)()):
                    loss.backward()
                return loss, targets(made), [parameter.grad for parameter in made.parameters()]

            yield f"{kind}: {name}", run


def torch_rec(fx: Any) -> Iterator[Case]:
    client = importlib.import_module("torchrec.fx")
    crossnet, mlp = (importlib.import_module(f"torchrec.modules.{name}") for name in ("crossnet", "mlp"))
    dlrm = importlib.import_module("torchrec.models.dlrm")
    torch.manual_seed(0)
    rows = torch.rand(3, 4)
    made = {
        "MLP": lambda: (mlp.MLP(4, [8, 2]), (rows,)),
        "CrossNet": lambda: (crossnet.CrossNet(4, 2), (rows,)),
        "LowRankCrossNet": lambda: (crossnet.LowRankCrossNet(4, 2, 3), (rows,)),
        "DenseArch": lambda: (dlrm.DenseArch(4, [8, 2]), (rows,)),
        "InteractionArch": lambda: (dlrm.InteractionArch(2), (rows, torch.ones(3, 2, 4))),
    }
    for name, make in made.items():

        def run(make: Any = make) -> Any:
            model, given = make()
            traced = client.symbolic_trace(model)
            return traced(*given), targets(traced)

        yield name, run


def nir(fx: Any) -> Iterator[Case]:
    client = importlib.import_module("nirtorch.torch_tracer")
    for name, (model, x) in list(models().items())[:8]:

        def run(model: nn.Module = model, x: Any = x) -> Any:
            tracer = client.NIRTorchTracer([nn.BatchNorm2d])
            traced = fx.GraphModule(model, tracer.trace(model))
            return traced(x), targets(traced)

        yield name, run


def optimum(fx: Any) -> Iterator[Case]:
    client = importlib.import_module("optimum.fx.optimization")
    for name, (model, x) in list(models().items())[:6]:
        for kind in ("FuseBatchNorm2dInConv2d", "ChangeTrueDivToMulByInverse", "FuseBiasInLinear"):

            def run(model: nn.Module = model, x: Any = x, kind: str = kind) -> Any:
                traced = fx.symbolic_trace(copy.deepcopy(model))
                return getattr(client, kind)()(traced)(x)

            yield f"{kind}: {name}", run


def own_passes(fx: Any) -> Iterator[Case]:
    def load(name: str) -> Any:
        return importlib.import_module(f"{fx.__name__}.{name}")

    for name, (model, x) in models().items():

        def traced(model: nn.Module = model) -> Any:
            return fx.symbolic_trace(copy.deepcopy(model))

        def split(traced: Any = traced, x: Any = x) -> Any:
            module, half = traced(), len(traced().graph.nodes) // 2
            places = {node.name: int(place > half) for place, node in enumerate(module.graph.nodes)}
            return load("passes.split_module").split_module(module, module, lambda node: places[node.name])(x)

        def shapes(traced: Any = traced, x: Any = x) -> Any:
            module = traced()
            load("passes.shape_prop").ShapeProp(module).propagate(x)
            return [tuple(node.meta["tensor_meta"].shape) for node in module.graph.nodes]

        yield f"split_module: {name}", split
        yield f"ShapeProp: {name}", shapes
        yield f"fuse: {name}", lambda model=model, x=x: load("experimental.optimization").fuse(model)(x)
        normalize = load("experimental.normalize").NormalizeArgs
        yield f"NormalizeArgs: {name}", lambda t=traced, x=x, normalize=normalize: normalize(t()).transform()(x)
        yield f"const_fold: {name}", lambda t=traced, x=x: load("experimental.const_fold").split_const_subgraphs(t())(x)


CLIENTS: dict[str, tuple[Callable[[Any], Iterator[Case]], tuple[str, ...]]] = {
    "torch.ao.quantization.quantize_fx": (quantization, ("torch.ao.quantization", "torch.ao.ns")),
    "torchvision.models.feature_extraction": (feature_extraction, ("torchvision.models.feature_extraction",)),
    "timm's features": (timm_features, ("torchvision.models.feature_extraction", "timm")),
    "opt_einsum_fx": (einsum, ("opt_einsum_fx",)),
    "aimet_torch.model_preparer": (aimet, ("aimet_torch.model_preparer",)),
    "llmcompressor": (llm_compressor, ("llmcompressor.pipelines.sequential", "transformers.utils.fx")),
    "e3nn": (equivariant, ("e3nn", "opt_einsum_fx")),
    "composer": (composer, ("composer.utils.fx_utils", "composer.algorithms.stochastic_depth")),
    "torch_geometric.nn.fx": (geometric, ("torch_geometric.nn.fx",)),
    "torch_geometric.nn.to_hetero": (heterogeneous, ("torch_geometric",)),
    "optimum.fx": (optimum, ("optimum.fx",)),
    "onnx2torch": (onnx_to_torch, ("onnx2torch",)),
    "backpack": (back_pack, ("backpack",)),
    "torchrec.fx": (torch_rec, ("torchrec",)),
    "nirtorch": (nir, ("nirtorch",)),
    "torch.fx's own passes": (own_passes, ()),
}

# ---- running ---------------------------------------------------------------------------------------------------------


def results(client: str, side: str) -> dict[str, Any]:
    """What each case of a client gives on one side: a value, or the text of an error."""
    cases, packages = CLIENTS[client]
    fx = importlib.import_module(f"{side}.fx")
    found: dict[str, Any] = {}
    with fx.install(*packages) if side == "clew" and packages else contextlib.nullcontext():
        for name, run in cases(fx):
            torch.manual_seed(0)
            try:
                found[name] = ("value", run())
            except Exception as error:
                found[name] = ("error", f"{type(error).__name__}: {error}"[:300])
    return found


def run_apart(client: str, side: str, file: Path) -> dict[str, Any] | str:
    """The same, in a process of its own; the error that kept the client from starting, if one did."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.clients", "--worker", client, side, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1][:200] if done.stderr.strip() else "it ended without a word"
    loaded: dict[str, Any] = torch.load(file, weights_only=False)
    return loaded


def same(left: Any, right: Any) -> bool:
    if isinstance(left, torch.Tensor):
        return isinstance(right, torch.Tensor) and left.shape == right.shape and torch.allclose(left, right, atol=1e-5)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def compare(client: str, folder: Path) -> dict[str, Any]:
    """How many cases torch.fx passes, how many of these Clew passes alike, and what is wrong with the others."""
    sides = {side: run_apart(client, side, folder / f"{side}.pt") for side in ("torch", "clew")}
    broken = next((text for text in sides.values() if isinstance(text, str)), None)
    if broken is not None:
        return {"client": client, "torch": 0, "clew": 0, "wrong": {"start": broken}}
    theirs, ours = sides["torch"], sides["clew"]
    passed = {name: value for name, (kind, value) in theirs.items() if kind == "value"}
    wrong = {
        name: ours[name][1] if ours[name][0] == "error" else "another result"
        for name, value in passed.items()
        if ours[name][0] == "error" or not same(value, ours[name][1])
    }
    return {"client": client, "torch": len(passed), "clew": len(passed) - len(wrong), "wrong": wrong}


# ---- captures that torch.fx cannot make ------------------------------------------------------------------------------


def captures() -> dict[str, tuple[nn.Module, dict[str, torch.Tensor]]]:
    """Twelve models of Hugging Face, small, with an example each."""
    transformers = importlib.import_module("transformers")
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    seq2seq = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
               "decoder_attention_heads": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}  # fmt: skip
    words = {"input_ids": torch.arange(1, 9).reshape(1, 8)}
    both = {**words, "decoder_input_ids": torch.arange(1, 5).reshape(1, 4)}
    image = {"pixel_values": torch.rand(1, 3, 32, 32)}
    grouped = {**small, "num_key_value_heads": 2, "vocab_size": 100}
    distilled = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "vocab_size": 100}
    t5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 1, "num_heads": 4, "vocab_size": 100}
    given: dict[str, tuple[str, dict[str, Any], dict[str, torch.Tensor]]] = {
        "bert": ("Bert", {**small, "vocab_size": 100}, words),
        "roberta": ("Roberta", {**small, "vocab_size": 100}, words),
        "distilbert": ("DistilBert", distilled, words),
        "gpt2": ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 100}, words),
        "llama": ("Llama", grouped, words),
        "mistral": ("Mistral", grouped, words),
        "qwen2": ("Qwen2", grouped, words),
        "t5": ("T5", t5, both),
        "bart": ("Bart", {**seq2seq, "vocab_size": 100}, both),
        "vit": ("ViT", {**small, "image_size": 32, "patch_size": 8}, image),
        "clip": ("CLIPVision", {**small, "image_size": 32, "patch_size": 8}, image),
        "whisper": ("Whisper", {**seq2seq, "vocab_size": 100, "num_mel_bins": 8, "max_source_positions": 16,
                                "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1},
                    {"input_features": torch.rand(1, 8, 32), "decoder_input_ids": both["decoder_input_ids"]}),
    }  # fmt: skip
    torch.manual_seed(0)
    made = {}
    for name, (kind, options, example) in given.items():
        config = getattr(transformers, f"{kind}Config")(**options)
        made[name] = (getattr(transformers, f"{kind}Model")(config).eval(), example)
    return made


def first(value: Any) -> torch.Tensor:
    """The first tensor of a result."""
    while not isinstance(value, torch.Tensor):
        value = next(iter(value.values() if isinstance(value, dict) else value))
    return value


def tools() -> dict[str, Callable[[Any, dict[str, torch.Tensor]], Any]]:
    """Clients that take a captured module and an example, and give a result to compare."""
    clew = importlib.import_module("clew")
    fx = importlib.import_module("clew.fx")

    def shapes(module: Any, example: dict[str, torch.Tensor]) -> Any:
        return fx.ShapeProp(module).propagate(**example)

    def split(module: Any, example: dict[str, torch.Tensor]) -> Any:
        half = len(module.graph.nodes) // 2
        places = {node: int(place > half) for place, node in enumerate(module.graph.nodes)}
        return fx.passes.split_module.split_module(module, module, places.__getitem__)(**example)

    def normalized(module: Any, example: dict[str, torch.Tensor]) -> Any:
        return fx.experimental.normalize.NormalizeArgs(module).transform()(**example)

    def folded(module: Any, example: dict[str, torch.Tensor]) -> Any:
        """With constants that are tensors: of others the pass makes parameters, too."""
        module = copy.deepcopy(module)
        fx.ShapeProp(module).propagate(**example)
        made = fx.experimental.const_fold.split_const_subgraphs(
            module, skip_folding_node_fn=lambda node: "tensor_meta" not in node.meta
        )
        return made(*in_order(module, example))

    def transformed(module: Any, example: dict[str, torch.Tensor]) -> Any:
        return fx.Transformer(module).transform()(**example)

    def traced_again(module: Any, example: dict[str, torch.Tensor]) -> Any:
        return fx.symbolic_trace(module)(**example)

    def rewritten(module: Any, example: dict[str, torch.Tensor]) -> Any:
        changed = copy.deepcopy(module)
        if not fx.replace_pattern(changed, lambda x, y: x + y, lambda x, y: torch.add(x, y)):
            raise LookupError("the pattern was found nowhere")
        return changed(**example)

    def partitioned(module: Any, example: dict[str, torch.Tensor]) -> Any:
        support = fx.passes.operator_support

        class Layers(support.OperatorSupport):  # type: ignore[misc, name-defined]
            def is_node_supported(self, submodules: Any, node: Any) -> bool:
                return node.op == "call_module" or node.target in (operator.add, operator.mul)

        partitioner = fx.passes.infra.partitioner.CapabilityBasedPartitioner
        made = partitioner(copy.deepcopy(module), Layers(), allows_single_node_partition=True)
        return made.fuse_partitions(made.propose_partitions())(**example)

    def lowered(module: Any, example: dict[str, torch.Tensor]) -> Any:
        """What splitters of back ends do: the layers apart from the rest."""
        base, support = fx.passes.splitter_base, fx.passes.operator_support

        class Layers(support.OperatorSupport):  # type: ignore[misc, name-defined]
            def is_node_supported(self, submodules: Any, node: Any) -> bool:
                return node.op == "call_module"

        class Splitter(base._SplitterBase):  # type: ignore[misc, name-defined]
            def _lower_model_to_backend(self, mod: Any, inputs: Any) -> Any:
                return mod

        settings = base._SplitterSettingBase(min_acc_module_size=1)
        given = tuple(in_order(module, example))
        with contextlib.redirect_stdout(io.StringIO()):
            made = Splitter(copy.deepcopy(module), given, Layers(), settings)()
        return made(*(given if len(given) == len(made.graph.find_nodes(op="placeholder")) else (*given, {})))

    def features(module: Any, example: dict[str, torch.Tensor]) -> Any:
        with fx.install("torchvision.models.feature_extraction"):
            extraction = importlib.import_module("torchvision.models.feature_extraction")
            names = extraction.get_graph_node_names(module)[1]
            calls = [name for name in names if "layernorm" in name.lower() or "layer_norm" in name or "ln_" in name]
            wanted = [*(calls or names)[-1:], names[-1]]
            extractor = extraction.create_feature_extractor(module, wanted, suppress_diff_warning=True)
            extractor(**example)
        return module(**example)

    def einsums(module: Any, example: dict[str, torch.Tensor]) -> Any:
        with fx.install("opt_einsum_fx"):
            client = importlib.import_module("opt_einsum_fx")
            graph = client.fuse_einsums(client.fuse_scalars(copy.deepcopy(module.graph)))
            return fx.GraphModule(module, graph)(**example)

    def converted(module: Any, example: dict[str, torch.Tensor]) -> Any:
        return clew.to_fx(module)(**example)

    def there_and_back(module: Any, example: dict[str, torch.Tensor]) -> Any:
        return clew.from_fx(clew.to_fx(module))(**example)

    def in_order(module: Any, example: dict[str, torch.Tensor]) -> list[Any]:
        inputs = [node for node in module.graph.nodes if node.op == "placeholder" and node.target[0] != "*"]
        return [example.get(node.target, *node.args[:1]) for node in inputs]

    def interpreted_by_torch(module: Any, example: dict[str, torch.Tensor]) -> Any:
        with fx.install():
            return torch.fx.Interpreter(module).run(*in_order(module, example))

    def traced_by_torch(module: Any, example: dict[str, torch.Tensor]) -> Any:
        return torch.fx.symbolic_trace(clew.to_fx(module))(**example)

    def prepared(module: Any, example: dict[str, torch.Tensor], settings: Any = None) -> Any:
        quantize_fx = importlib.import_module("torch.ao.quantization.quantize_fx")
        mapping = importlib.import_module("torch.ao.quantization.qconfig_mapping")
        with warnings.catch_warnings(action="ignore"):
            return quantize_fx.prepare_fx(module, settings or mapping.QConfigMapping(), tuple(example.values()))

    def quantized(module: Any, example: dict[str, torch.Tensor]) -> Any:
        return prepared(clew.to_fx(module), example)(**example)

    def quantized_while_installed(module: Any, example: dict[str, torch.Tensor]) -> Any:
        with fx.install():
            return prepared(module, example)(**example)

    def in_eight_bits(module: Any, example: dict[str, torch.Tensor]) -> Any:
        """Linear layers with weights of eight bits: about the same, so what it gives is only looked at."""
        quantization = importlib.import_module("torch.ao.quantization")
        engines = torch.backends.quantized.supported_engines
        torch.backends.quantized.engine = next(one for one in engines if one != "none")
        settings = quantization.QConfigMapping()
        for kind in (nn.Linear, nn.ReLU):
            settings.set_object_type(kind, quantization.default_dynamic_qconfig)
        expected = first(module(**example))
        with warnings.catch_warnings(action="ignore"):
            made = importlib.import_module("torch.ao.quantization.quantize_fx").convert_fx(
                prepared(clew.to_fx(module), example, settings)
            )
        result = first(made(**example))
        layers = [part for part in made.modules() if "quantized" in type(part).__module__]
        if not layers or (result - expected).abs().max() > 0.1 * expected.abs().max():
            raise ValueError(f"{len(layers)} layers, off by {float((result - expected).abs().max()):.3f}")
        return expected

    return {"ShapeProp": shapes, "split_module": split, "NormalizeArgs": normalized, "split_const_subgraphs": folded,
            "Transformer": transformed, "symbolic_trace": traced_again, "replace_pattern": rewritten,
            "CapabilityBasedPartitioner": partitioned, "a splitter of _SplitterBase": lowered,
            "torchvision's feature extraction": features, "opt_einsum_fx": einsums, "to_fx": converted,
            "to_fx and from_fx": there_and_back, "torch.fx.Interpreter, installed": interpreted_by_torch,
            "torch.fx.symbolic_trace of to_fx": traced_by_torch, "prepare_fx of to_fx": quantized,
            "prepare_fx, installed": quantized_while_installed,
            "prepare_fx and convert_fx of to_fx": in_eight_bits}  # fmt: skip


def feed_captures(only: str = "") -> list[dict[str, Any]]:
    """For each tool with ``only`` in its name, with how many of the captured models it works."""
    clew = importlib.import_module("clew")
    captured = {}
    for name, (model, example) in captures().items():
        with torch.no_grad():
            captured[name] = (clew.trace(model, kwargs=example), example, first(model(**example)))
    rows = []
    for tool, run in [(name, run) for name, run in tools().items() if only in name]:
        wrong = {}
        for name, (module, example, expected) in captured.items():
            try:
                with torch.no_grad():
                    result = first(run(module, example))
                if not torch.allclose(result, expected, atol=1e-4):
                    wrong[name] = "another result"
            except Exception as error:
                wrong[name] = f"{type(error).__name__}: {error}"[:200]
        rows.append({"client": tool, "torch": len(captured), "clew": len(captured) - len(wrong), "wrong": wrong})
        print(tool, rows[-1]["clew"], flush=True)
    return rows


# ---- the tables ------------------------------------------------------------------------------------------------------


def table(rows: list[dict[str, Any]], head: tuple[str, str, str]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---|---:|---:|"]
    return "\n".join([*lines, *(f"| {row['client']} | {row['torch']} | {row['clew']} |" for row in rows)])


def write(name: str, text: str) -> None:
    """Put a table between its marks in the document."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    document = DOCUMENT.read_text()
    if begin not in document:
        raise SystemExit(f"{DOCUMENT} has no place for {name}: {begin}")
    DOCUMENT.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n{end}", document))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="a part of the name of the clients or tools to run")
    parser.add_argument("--captures", action="store_true", help="feed captures to tools instead")
    parser.add_argument("--write", action="store_true", help="put the table into the document")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        client, side, file = options.worker
        torch.save(results(client, side), file)
        return
    if options.captures:
        rows = feed_captures(options.only or "")
        text = table(rows, ("tool", "captured models", "it works with"))
    else:
        with tempfile.TemporaryDirectory() as folder:
            wanted = [name for name in CLIENTS if (options.only or "") in name]
            rows = []
            for name in wanted:
                rows.append(compare(name, Path(folder)))
                print(name, rows[-1]["torch"], rows[-1]["clew"], flush=True)
        text = table(rows, ("client", "cases that pass on torch.fx", "the same over Clew"))
    print(text)
    for row in rows:
        for name, reason in row["wrong"].items():
            print(json.dumps([row["client"], name, reason]))
    if options.write:
        write("captures" if options.captures else "clients", text)


if __name__ == "__main__":
    main()
