"""A zoo of models in plain `torch.nn` style.

The models of `zoo` can all be traced symbolically; `captured_zoo` has more, which need an example. Both map a name
to an `Entry`: `build()` gives a tiny model with the structure of the real one, in training mode as torch.nn leaves it,
and `inputs()` gives the positional arguments of one call. They give equal things every time and leave the global random
state as it was.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from . import (
    assorted,
    audio,
    autoencoder,
    convnext,
    densenet,
    detection,
    efficientnet,
    gpt,
    inception,
    mlp_mixer,
    mobilenet,
    recommender,
    recurrent,
    regnet,
    resnet,
    shufflenet,
    squeezenet,
    swin,
    transformer,
    unet,
    vgg,
    vit,
    wavenet,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """How to make one model of the zoo, and how to call it; `make` and `feed` draw from the global generator."""

    make: Callable[[], nn.Module]
    feed: Callable[[], tuple[Any, ...]]

    def build(self) -> nn.Module:
        return seeded(self.make, 0)

    def inputs(self, seed: int = 1) -> tuple[Any, ...]:
        return seeded(self.feed, seed)


def seeded(function: Callable[[], T], seed: int) -> T:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return function()


def images(size: int) -> Callable[[], tuple[Tensor]]:
    return lambda: (torch.randn(2, 3, size, size),)


def tokens(length: int, *, streams: int = 1, limit: int = 20) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: tuple(torch.randint(0, limit, (2, length)) for _ in range(streams))


def waves(samples: int) -> Callable[[], tuple[Tensor]]:
    return lambda: (torch.randn(2, samples),)


def rows(width: int, streams: int = 1) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: tuple(torch.randn(4, width) for _ in range(streams))


def clicks() -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Two samples, three tables: the bags of a table are cut out of one list by the offsets of their starts."""
    sparse = [torch.randint(0, 10, (5,)) for _ in range(3)]
    offsets = [torch.tensor([0, cut]) for cut in (1, 2, 4)]
    return torch.randn(2, 4), sparse, offsets


def pairs() -> tuple[dict[str, dict[str, Tensor]]]:
    def side() -> dict[str, Tensor]:
        return {"id": torch.randint(0, 10, (3,)), "dense": torch.randn(3, 4)}

    return ({"user": side(), "item": side()},)


def neighbours() -> tuple[Tensor, Tensor]:
    adjacency = torch.rand(5, 5).round()
    return torch.randn(5, 6), torch.maximum(adjacency, adjacency.t())


V3_TINY = mobilenet.V3_BLOCKS[:6]
V2_TINY = (mobilenet.Block(1, 16), mobilenet.Block(6, 24, 2), mobilenet.Block(6, 24))
EFFICIENT_TINY = (
    efficientnet.Stage(1, 16, 1, 1, 3),
    efficientnet.Stage(6, 24, 3, 2, 3),
    efficientnet.Stage(6, 40, 2, 2, 5),
)

VISION: dict[str, Entry] = {
    "resnet18": Entry(lambda: resnet.resnet18(4, 5), images(32)),
    "resnet34": Entry(lambda: resnet.resnet34(4, 5), images(32)),
    "resnet50": Entry(lambda: resnet.resnet50(2, 5), images(32)),
    "vgg11": Entry(lambda: vgg.VGG(vgg.VGG11, 2, 8, 5, pool=2), images(32)),
    "vgg16_bn": Entry(lambda: vgg.VGG(vgg.VGG16, 2, 8, 5, batch_norm=True, pool=2), images(32)),
    "mobilenet_v2": Entry(lambda: mobilenet.MobileNetV2(V2_TINY, 0.25, 5), images(16)),
    "mobilenet_v3": Entry(lambda: mobilenet.MobileNetV3(V3_TINY, 0.25, 5), images(32)),
    "densenet": Entry(lambda: densenet.DenseNet((2, 3), 4, 2, dropout=0.2, classes=5), images(16)),
    "unet": Entry(lambda: unet.UNet(4, 2), images(16)),
    "unet_bilinear": Entry(lambda: unet.UNet(4, 2, upsample="bilinear"), images(16)),
    "vit": Entry(lambda: vit.ViT(16, 8, 16, 2, 2, 5), images(16)),
    "efficientnet": Entry(lambda: efficientnet.EfficientNet(EFFICIENT_TINY, 0.25, classes=5), images(16)),
    "convnext": Entry(lambda: convnext.ConvNeXt((1, 2), (4, 8), scale=0.5, classes=5), images(16)),
    "inception": Entry(lambda: inception.Inception(8, 2, 5), images(32)),
    "squeezenet": Entry(lambda: squeezenet.SqueezeNet(2, 5), images(32)),
    "shufflenet": Entry(lambda: shufflenet.ShuffleNet((2, 2), (4, 8, 16, 24), 5), images(16)),
    "regnet_x": Entry(lambda: regnet.RegNet((1, 2), (8, 16), 4, 0.0, 8, 5), images(16)),
    "regnet_y": Entry(lambda: regnet.RegNet((1, 2), (8, 16), 4, 0.25, 8, 5), images(16)),
    "mlp_mixer": Entry(lambda: mlp_mixer.MlpMixer(16, 4, 8, 2, 5), images(16)),
    "swin": Entry(lambda: swin.Swin(16, 2, 4, (2, 2), 1, 4, 5), images(16)),
    "conv_autoencoder": Entry(lambda: autoencoder.ConvAutoencoder(3, 4), images(8)),
    "super_resolution": Entry(lambda: assorted.SuperResolution(2, 4), images(8)),
    "feature_pyramid": Entry(lambda: assorted.FeaturePyramid(4, 3, 2, 3), images(16)),
}

LANGUAGE: dict[str, Entry] = {
    "gpt": Entry(lambda: gpt.GPT(20, 6, 8, 2, 2), tokens(6)),
    "rotary_decoder": Entry(lambda: gpt.RotaryDecoder(20, 6, 8, 2, 2), tokens(6)),
    "text_encoder": Entry(lambda: transformer.TextEncoder(20, 6, 8, 2, 2), tokens(6, streams=2, limit=2)),
    "translator": Entry(lambda: transformer.Translator(20, 8, 2, 2, 6), tokens(6, streams=2)),
    "lstm_classifier": Entry(lambda: recurrent.LSTMClassifier(20, 8, 6), tokens(5)),
    "lstm_tagger": Entry(lambda: recurrent.LSTMTagger(20, 8, 4, 3), tokens(4)),
    "gru_translator": Entry(lambda: recurrent.GRUTranslator(20, 20, 8), tokens(5, streams=2)),
    "text_cnn": Entry(lambda: assorted.TextCNN(20, 8), tokens(6)),
}

OTHERS: dict[str, Entry] = {
    "dlrm": Entry(lambda: recommender.DLRM(4, (10, 10, 10), 4, 8), clicks),
    "wide_and_deep": Entry(
        lambda: recommender.WideAndDeep(4, 20, 3, 4), lambda: (torch.randn(2, 4), torch.randint(0, 20, (2, 3)))
    ),
    "two_tower": Entry(lambda: recommender.TwoTower(10, 10, 4, 8), pairs),
    "wavenet": Entry(lambda: wavenet.WaveNet(4, 2, 2, 8), lambda: (torch.randn(2, 1, 12),)),
    "variational_autoencoder": Entry(
        lambda: autoencoder.VariationalAutoencoder(6, 8, 3), lambda: (torch.rand(2, 1, 6, 6),)
    ),
    "pointnet": Entry(lambda: assorted.PointNet(8, 5), lambda: (torch.randn(2, 3, 10),)),
    "graph_convolution": Entry(lambda: assorted.GraphConvolution(6, 8, 3), neighbours),
    "mixture_of_experts": Entry(lambda: assorted.MixtureOfExperts(8), rows(8)),
    "real_nvp": Entry(lambda: assorted.RealNVP(6, 3), rows(6)),
    "siamese": Entry(lambda: assorted.Siamese(6, 8), rows(6, streams=2)),
    "masked_denoiser": Entry(lambda: assorted.MaskedDenoiser(10), rows(10)),
}

zoo: dict[str, Entry] = {**VISION, **LANGUAGE, **OTHERS}

# These compute with the sizes of their input, or branch on its rank inside torch: only an example can tell.
BY_EXAMPLE: dict[str, Entry] = {
    "detr": Entry(lambda: detection.Detr(16, 5, 3, 2, 1), images(32)),
    "yolo": Entry(lambda: detection.Yolo(4, 3), images(32)),
    "conv_tasnet": Entry(lambda: audio.ConvTasNet(8, 8, 3), waves(90)),
    "wave_features": Entry(lambda: audio.WaveFeatures(16, 2), waves(200)),
    "conformer": Entry(lambda: audio.Conformer(12, 16, 2), lambda: (torch.randn(2, 21, 12),)),
    "spectrogram_cnn": Entry(lambda: audio.SpectrogramCNN(), waves(400)),
    "crnn": Entry(
        lambda: audio.CRNN(8),
        lambda: (torch.randn(2, 1, 16, 40), torch.randint(1, 12, (2, 4))),
    ),
}
captured_zoo: dict[str, Entry] = {**zoo, **BY_EXAMPLE}
