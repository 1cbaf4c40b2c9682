"""The models that go through a day: architectures of transformers from tiny configurations, and plain programs.

In comes a name; out comes a ``Subject``: how to build the program (the same weights each time), and how to make the
arguments of a call at a batch size and length. No weights are read from anywhere; transformers is imported when the
first of its models is built.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from benchmarks import day_programs as programs

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Shape(NamedTuple):
    """The sizes of the inputs of a call, and whether its mask has padding."""

    batch: int = 2
    length: int = 8
    padded: bool = False
    seed: int = 1


class Program(NamedTuple):
    """What is called, and the module that has its weights: the same, unless a function closes over a module."""

    call: Callable[..., Any]
    module: nn.Module


class Subject(NamedTuple):
    """One model of the day."""

    name: str
    make_program: Callable[[], Program]
    make_arguments: Callable[[Shape], dict[str, Any]]
    library: str = ""
    positional: bool = False

    def build(self) -> Program:
        """The program in evaluation mode, with noise on its weights: zeros would hide what a part computes."""
        torch.manual_seed(0)
        program = self.make_program()
        with torch.no_grad():
            for parameter in program.module.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.02)
        program.module.eval()
        return program

    def arguments(self, shape: Shape) -> Arguments:
        """The arguments of one call."""
        torch.manual_seed(shape.seed)
        made = self.make_arguments(shape)
        return (tuple(made.values()), {}) if self.positional else ((), made)


# ---- inputs ----------------------------------------------------------------------------------------------------------

VOCABULARY = 99


def tokens(shape: Shape) -> Tensor:
    """Token numbers, none of them special."""
    return torch.randint(5, 45, (shape.batch, shape.length))


def mask(shape: Shape) -> Tensor:
    """Ones; with padding the last two of the first row are zeros."""
    ones = torch.ones(shape.batch, shape.length, dtype=torch.long)
    if shape.padded:
        ones[0, -2:] = 0
    return ones


def text(shape: Shape) -> dict[str, Any]:
    """What a tokenizer gives."""
    return {"input_ids": tokens(shape), "attention_mask": mask(shape)}


def labelled_text(shape: Shape) -> dict[str, Any]:
    """Text with a label for each row."""
    return {**text(shape), "labels": torch.randint(0, 2, (shape.batch,))}


def language(shape: Shape) -> dict[str, Any]:
    """Text that is its own label."""
    made = text(shape)
    return {**made, "labels": made["input_ids"].clone()}


def translation(shape: Shape) -> dict[str, Any]:
    """Text, and the beginning of another."""
    return {**text(shape), "decoder_input_ids": torch.randint(5, 45, (shape.batch, 5))}


def image(side: int, name: str = "pixel_values") -> Callable[[Shape], dict[str, Any]]:
    """Images; another length is another side."""
    return lambda shape: {name: torch.rand(shape.batch, 3, side + _longer(shape) * 8, side + _longer(shape) * 8)}


def _longer(shape: Shape) -> int:
    return int(shape.length != Shape().length)


def sound(shape: Shape) -> dict[str, Any]:
    """Waves."""
    return {"input_values": torch.randn(shape.batch, 400 + 160 * _longer(shape))}


def spoken(shape: Shape) -> dict[str, Any]:
    """Features of sound, and the beginning of a text."""
    return {
        "input_features": torch.randn(shape.batch, 8, 32),
        "decoder_input_ids": torch.randint(5, 45, (shape.batch, shape.length)),
    }


def captioned(shape: Shape) -> dict[str, Any]:
    """Text and images."""
    return {**text(shape), "pixel_values": torch.rand(shape.batch, 3, 16, 16)}


def rows(shape: Shape) -> dict[str, Any]:
    """Rows of numbers."""
    return {"x": torch.randn(shape.batch, programs.WIDTH)}


def sequences(shape: Shape) -> dict[str, Any]:
    """Tokens alone."""
    return {"tokens": tokens(shape)}


def masked_sequences(shape: Shape) -> dict[str, Any]:
    """Tokens with a mask."""
    return {"tokens": tokens(shape), "attention_mask": mask(shape)}


# ---- architectures of transformers -----------------------------------------------------------------------------------

HIDDEN = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
ENCODER = {**HIDDEN, "vocab_size": VOCABULARY, "max_position_embeddings": 64}
DECODER = {**ENCODER, "num_key_value_heads": 1, "head_dim": 16, "pad_token_id": 0}
PAIR = {"vocab_size": VOCABULARY, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 48}
PAIR |= {"decoder_ffn_dim": 48, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
IMAGE = {"image_size": 16, "patch_size": 8}
STAGES = {"depths": [1, 1], "num_heads": [1, 2]}
WAVES = {**HIDDEN, "vocab_size": VOCABULARY, "conv_dim": [16, 16], "conv_stride": [5, 4], "conv_kernel": [10, 4]}
WAVES |= {"num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2, "num_feat_extract_layers": 2}
WAVES |= {"apply_spec_augment": False, "layerdrop": 0.0}
SEGFORMER = {"num_encoder_blocks": 2, "sr_ratios": [2, 1], "hidden_sizes": [16, 32], "num_attention_heads": [1, 2]}
SEGFORMER |= {"patch_sizes": [3, 3], "strides": [2, 2], "depths": [1, 1], "mlp_ratios": [2, 2]}
T5 = {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 2, "num_heads": 2}
DISTILBERT = {"vocab_size": VOCABULARY, "dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48}
GPT2 = {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64}
OPT = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 48}
CLIP: dict[str, Any] = {
    "text_config": {**ENCODER, "projection_dim": 32},
    "vision_config": {**HIDDEN, **IMAGE, "projection_dim": 32},
}
CLIP |= {"projection_dim": 32}
SPECIAL = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "decoder_start_token_id": 1}
BART = {**PAIR, **SPECIAL, "max_position_embeddings": 64, "forced_eos_token_id": None}
WHISPER = {**PAIR, **SPECIAL, "num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 64}
RESNET = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"}

# name: (class of the model, class of the configuration, its numbers, how the arguments are made)
LIBRARY: dict[str, tuple[str, str, dict[str, Any], Callable[[Shape], dict[str, Any]]]] = {
    "bert": ("BertModel", "BertConfig", ENCODER, text),
    "bert_classifier": ("BertForSequenceClassification", "BertConfig", ENCODER, labelled_text),
    "distilbert": ("DistilBertModel", "DistilBertConfig", DISTILBERT, text),
    "roberta": ("RobertaModel", "RobertaConfig", ENCODER, text),
    "electra": ("ElectraModel", "ElectraConfig", {**ENCODER, "embedding_size": 32}, text),
    "albert": ("AlbertModel", "AlbertConfig", {**ENCODER, "embedding_size": 16}, text),
    "deberta_v2": ("DebertaV2Model", "DebertaV2Config", ENCODER, text),
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", GPT2, language),
    "gpt_neox": ("GPTNeoXModel", "GPTNeoXConfig", ENCODER, text),
    "opt": ("OPTModel", "OPTConfig", {**OPT, "max_position_embeddings": 64, "word_embed_proj_dim": 32}, text),
    "llama": ("LlamaForCausalLM", "LlamaConfig", DECODER, language),
    "mistral": ("MistralModel", "MistralConfig", {**DECODER, "sliding_window": 32}, text),
    "qwen2": ("Qwen2Model", "Qwen2Config", DECODER, text),
    "gemma": ("GemmaModel", "GemmaConfig", DECODER, text),
    "phi": ("PhiModel", "PhiConfig", ENCODER, text),
    "falcon": ("FalconModel", "FalconConfig", ENCODER, text),
    "mixtral": ("MixtralModel", "MixtralConfig", {**DECODER, "num_local_experts": 2}, text),
    "mamba": ("MambaModel", "MambaConfig", {**ENCODER, "state_size": 4}, text),
    "t5": ("T5Model", "T5Config", T5, translation),
    "bart": ("BartModel", "BartConfig", BART, translation),
    "whisper": ("WhisperModel", "WhisperConfig", WHISPER, spoken),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config", WAVES, sound),
    "vit": ("ViTModel", "ViTConfig", {**HIDDEN, **IMAGE}, image(16)),
    "resnet": ("ResNetModel", "ResNetConfig", RESNET, image(32)),
    "segformer": ("SegformerModel", "SegformerConfig", SEGFORMER, image(16)),
    "swin": ("SwinModel", "SwinConfig", {"image_size": 16, "patch_size": 2, "embed_dim": 16, "window_size": 4} | STAGES,
             image(16)),
    "clip": ("CLIPModel", "CLIPConfig", CLIP, captioned),
}  # fmt: skip


def _from_library(model: str, config: str, numbers: dict[str, Any]) -> Program:
    import transformers  # only where one of its models is asked for: it takes seconds

    transformers.logging.set_verbosity_error()
    made = getattr(transformers, model)(getattr(transformers, config)(**numbers))
    return Program(made, made)


# ---- programs in plain torch -----------------------------------------------------------------------------------------


def _module(build: Callable[[], nn.Module]) -> Program:
    made = build()
    return Program(made, made)


def _sequential() -> nn.Module:
    return nn.Sequential(nn.Linear(programs.WIDTH, 8), nn.ReLU())


def _closure() -> Program:
    model = programs.Perceptron()
    return Program(programs.closing_over(model), model)


def _plain(name: str, build: Callable[[], nn.Module], make: Callable[[Shape], dict[str, Any]]) -> Subject:
    return Subject(name, functools.partial(_module, build), make, positional=True)


def _subjects() -> list[Subject]:
    library = [
        Subject(name, functools.partial(_from_library, model, config, numbers), make, library="transformers")
        for name, (model, config, numbers, make) in LIBRARY.items()
    ]
    return [
        *library,
        _plain("mlp", programs.Perceptron, rows),
        _plain("sequential", _sequential, rows),
        _plain("regularised", programs.regularised, rows),
        _plain("residual_dropout", programs.ResidualDropout, rows),
        _plain("mode_branch", programs.ModeBranch, rows),
        _plain("small_resnet", programs.SmallResNet, image(16, "images")),
        _plain("unet", programs.SmallUNet, image(16, "images")),
        _plain("autoencoder", programs.Autoencoder, image(16, "images")),
        _plain("einops", programs.EinopsMixer, image(16, "images")),
        _plain("lstm_tagger", programs.Tagger, sequences),
        _plain("text_convolution", programs.TextConvolution, sequences),
        Subject("encoder", functools.partial(_module, programs.Encoder), masked_sequences),
        Subject("causal_attention", functools.partial(_module, programs.CausalAttention), masked_sequences),
        Subject("closure", _closure, rows, positional=True),
    ]


SUBJECTS = {subject.name: subject for subject in _subjects()}
