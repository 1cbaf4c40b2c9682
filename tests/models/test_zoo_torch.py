"""The zoo itself, before clew comes in: it is deterministic, real, and torch.fx traces all of it.

What torch.fx cannot trace would say nothing about a drop-in for it, so that is checked here for every model, in
evaluation and in training.
"""

from collections.abc import Callable

import pytest
import torch
import torch.fx
from models import (
    convnext,
    densenet,
    efficientnet,
    gpt,
    mlp_mixer,
    mobilenet,
    regnet,
    resnet,
    shufflenet,
    squeezenet,
    swin,
    vgg,
    vit,
    zoo,
)
from torch import nn

from tests.models.zoo_checks import gradients, run, same, state

# The number of parameters of the published architecture, which a model of the same structure must have.
PUBLISHED: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "ResNet-18": (resnet.resnet18, 11_689_512),
    "ResNet-34": (resnet.resnet34, 21_797_672),
    "ResNet-50": (resnet.resnet50, 25_557_032),
    "VGG-16": (vgg.VGG, 138_357_544),
    "MobileNet V2": (mobilenet.MobileNetV2, 3_504_872),
    "MobileNet V3 small": (mobilenet.MobileNetV3, 2_542_856),
    "DenseNet-121": (densenet.DenseNet, 7_978_856),
    "ViT-B/16": (vit.ViT, 86_567_656),
    "EfficientNet-B0": (efficientnet.EfficientNet, 5_288_548),
    "ConvNeXt-T": (convnext.ConvNeXt, 28_589_128),
    "SqueezeNet 1.1": (squeezenet.SqueezeNet, 1_235_496),
    "ShuffleNet V2 x1.0": (shufflenet.ShuffleNet, 2_278_604),
    "RegNet-Y 400MF": (regnet.RegNet, 4_344_144),
    "Mixer-B/16": (lambda: mlp_mixer.MlpMixer(width=768, depth=12), 59_880_472),
    "Swin-T": (swin.Swin, 28_288_354),
    "GPT-2 small": (gpt.GPT, 124_439_808),
}

# The last layer's residual goes nowhere, in the original too: dead code that a graph shows and a pass may drop.
UNUSED = {"wavenet": {"layers.3.residual.weight", "layers.3.residual.bias"}}


@pytest.mark.parametrize("title", PUBLISHED)
def test_full_size_has_the_published_number_of_parameters(title: str) -> None:
    build, expected = PUBLISHED[title]
    with torch.device("meta"):
        model = build()
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


def test_zoo_is_large_enough() -> None:
    assert len(zoo) >= 40


@pytest.mark.parametrize("name", zoo)
def test_entry_is_deterministic_and_leaves_the_random_state(name: str) -> None:
    entry = zoo[name]
    before = torch.get_rng_state()
    first, second = entry.build(), entry.build()
    same(state(first), state(second), "state")
    same(entry.inputs(), entry.inputs(), "inputs")
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("name", zoo)
def test_torch_fx_traces_it(name: str, training: bool) -> None:
    entry = zoo[name]
    plain = entry.build().train(training)
    traced = torch.fx.symbolic_trace(entry.build().train(training))
    traced.graph.lint()
    for seed in (1, 2):
        same(run(plain, entry.inputs(seed)), run(traced, entry.inputs(seed)))


@pytest.mark.parametrize("name", zoo)
def test_every_parameter_learns(name: str) -> None:
    """A parameter without a gradient would leave part of the gradient tests empty."""
    entry = zoo[name]
    model = entry.build()
    found = gradients(model, entry.inputs())
    expected = {parameter for parameter, _ in model.named_parameters()} - UNUSED.get(name, set())
    assert set(found["parameters"]) == expected
