"""Every architecture of the installed transformers, as a small random model.

In comes the name of a model type; out comes a model in eval mode, built from its default configuration with the
numbers shrunk: by full rules first, by gentler ones where those do not fit. Sub-configurations are shrunk likewise.
What always holds: no weights are read from anywhere, and a model above ``PARAMETER_LIMIT`` is refused, not built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedConfig
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES

PARAMETER_LIMIT = 150_000_000
VOCABULARY = 300
WIDTH, HEADS, HEAD_DIM, LAYERS = 64, 4, 16, 2
LEVELS = ("full", "sections", "half_sections", "gentle", "none")
SECTIONS = {"full": [2, 3, 3], "sections": [2, 3, 3], "half_sections": [1, 1, 2]}
# What a configuration leaves open although its model needs it.
UNSET = {"vocab_size": VOCABULARY, "head_dim": HEAD_DIM, "prediction_length": 8, "pad_token_id": 1}
UNSET |= {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 2 * WIDTH}
UNSET |= {"num_key_value_heads": HEADS, "sliding_window": 8}

LARGEST_IMAGE = 512
SMALL_RESNET = {"embedding_size": 16, "hidden_sizes": [16, 16, 32, 32], "depths": [1, 1, 1, 1], "layer_type": "basic"}
SMALL_RESNET["out_features"] = ["stage2", "stage3", "stage4"]
SMALL_SWIN = {"model_type": "swin", "image_size": 224, "window_size": 7, "embed_dim": 16, "depths": [1, 1, 1, 1]}
SMALL_SWIN |= {"num_heads": [1, 2, 2, 4], "out_features": ["stage1", "stage2", "stage3", "stage4"]}
SMALL_LCNET = {"model_type": "pp_lcnet", "out_features": ["stage2", "stage3", "stage4", "stage5"]}
SMALL_TIPS = {"model_type": "tipsv2_vision_model", "image_size": 112, "patch_size": 14, "hidden_size": WIDTH}
SMALL_TIPS |= {"num_hidden_layers": 4, "num_attention_heads": HEADS, "out_indices": [1, 2, 3, 4]}
# What the rules cannot know: numbers that must fit each other, by the type of the configuration.
PARTICULARS: dict[str, dict[str, Any]] = {
    "chameleon": {"vocabulary_map": {"<image>": 280}},
    "emu3": {"vocabulary_map": {"<image>": 280}},
    "mamba2": {"num_heads": 8, "n_groups": 2},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "cohere_compass_text": {"layer_types": ["sliding_attention", "full_attention"]},
    "gemma3n_text": {"num_kv_shared_layers": 0},
    "glm5_next_text": {"index_kpool": 4},
    "muse_spark_audio": {"num_hidden_layers": 4},
    "nemotron_h": {"n_groups": 2, "mamba_num_heads": 4},
    "ernie4_5_vl_moe_text": {
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [3, 3, 2]}
    },
    "qwen4_exp_text": {"token_budget": 8, "compress_ratio": 2},
    "SamPromptEncoderConfig": {"image_size": 128, "image_embedding_size": 8},
    "SamHQPromptEncoderConfig": {"image_size": 128, "image_embedding_size": 8},
    "Sam2PromptEncoderConfig": {"image_size": 128},
    "Sam2VisionConfig": {"backbone_feature_sizes": [[32, 32], [16, 16], [8, 8]]},
    "slanet": {"max_text_length": 8, "backbone_config": SMALL_LCNET},
    "slanext": {"max_text_length": 8, "post_conv_in_channels": WIDTH, "post_conv_out_channels": WIDTH},
    "swin2sr": {"image_size": 32, "embed_dim": 60, "depths": [2, 2], "num_heads": [6, 6]},
    "vits": {
        "flow_size": WIDTH,
        "upsample_initial_channel": WIDTH,
        "prior_encoder_num_flows": 2,
        "posterior_encoder_num_wavenet_layers": 2,
        "duration_predictor_num_flows": 2,
        "duration_predictor_filter_channels": WIDTH,
    },
    "maskformer": {"backbone_config": SMALL_SWIN, "mask_feature_size": WIDTH, "fpn_feature_size": WIDTH},
    "mask2former": {"backbone_config": SMALL_SWIN},
    "oneformer": {"backbone_config": SMALL_SWIN},
    "tipsv2_dpt": {
        "backbone_config": {**SMALL_TIPS, "reshape_hidden_states": False},
        "neck_hidden_sizes": [16, 16, 32, 32],
        "fusion_hidden_size": 32,
        "num_depth_bins": 16,
    },
    "molmo2_adapter": {"vision_feature_layer": [1, 0]},
}

# The first rule whose pattern matches the whole name of a number gives its new value, if that is smaller.
RULES: list[tuple[str, int]] = [
    (r"num_(codebooks|quantizers)|n_codes", 2),
    (r".*(num_key_value_heads|num_kv_heads)|multi_query_group_num", 2),
    (r".*(attention_heads|num_heads|n_heads?|num_attention_heads|_heads)", HEADS),
    (r"qk_head_dim", 2 * HEAD_DIM),
    (r"(attention_)?head_dim|d_kv|dim_head|d_head|head_size|v_head_dim|kv_channels|.*_head_dim", HEAD_DIM),
    (r"qk_(rope|nope)_head_dim|q_lora_rank|kv_lora_rank|.*rotary_dim", HEAD_DIM),
    (r".*(experts_per_tok(en)?|moe_topk|moe_k|num_selected_experts|top_k)", 2),
    (r".*(num_experts|local_experts|routed_experts|moe_num_experts)", 4),
    (r"n_group|topk_group|num_expert_group|first_k_dense_replace", 1),
    (r".*(hidden_layers|encoder_layers|decoder_layers|num_layers|n_layers?|_num_layers)|layers|depth", LAYERS),
    (r".*vocab_size(_per_layer_input)?", VOCABULARY),
    (r".*(ffn_dim|intermediate_size|intermediate_dim|mlp_dim|d_ff|d_inner|feedforward.*|ffn_hidden_size)", 2 * WIDTH),
    (r".*(hidden_size|d_model|n_embd|embed_dim|hidden_dim|emb_dim|embedding_size|projection_dim|output_dim)", WIDTH),
    (r"dim|out_hidden_size|width|.*pooler_output_size|.*projection_size|hidden_size_per_layer_input", WIDTH),
    (r"num_queries|num_query_tokens|.*num_latents|.*n_latents", 10),
    (r"num_frames", 4),
    (r"upsample_groups", WIDTH),
    (r"(mamba_)?(chunk_size|d_state)|ssm_state_size|state_size", 32),
    (r"max_text_length", 8),
    (r"output_channels", WIDTH),
    (r"num_pos_feats", WIDTH // 2),
    (r"context_length", 256),
    (r"index_topk", 8),
    (r"context_size", 32),
    (r"max_position_embeddings|n_positions|max_target_positions|max_source_positions", 64),
]
GENTLE = re.compile(r".*(hidden_layers|encoder_layers|decoder_layers|num_layers|n_layers?|depth|layers|vocab_size)")
TOKEN = re.compile(r"(?!decoder_start).*token_(id|index)|(boi|eoi|boa|eoa)_token_(id|index)")


def names() -> list[str]:
    """Every model type that has a model class, in alphabetical order."""
    return sorted(name for name in CONFIG_MAPPING_NAMES if next(_auto_tables(name), None) is not None)


def build(name: str, level: str, choice: int = 0) -> nn.Module:
    """A small model of this type; ``level``, one of ``LEVELS``, says how much is shrunk, ``choice`` which class."""
    config = shrunk(CONFIG_MAPPING[name](), level)
    model_class = _model_classes(name, config)[choice]
    with torch.device("meta"):
        size = sum(parameter.numel() for parameter in model_class(config).parameters())
    if size > PARAMETER_LIMIT:
        raise ValueError(f"{size / 1e6:.0f} million parameters when shrunk by the rules {level!r}")
    torch.manual_seed(0)
    return _stirred(model_class(shrunk(CONFIG_MAPPING[name](), level)).eval())


def _stirred(model: nn.Module) -> nn.Module:
    """The model with noise on its weights: zeros and near-zero scales would hide what a part of it computes."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                parameter.add_(torch.randn_like(parameter), alpha=0.02)
    return model


def shrunk(config: PreTrainedConfig, level: str) -> PreTrainedConfig:
    """The configuration made anew with smaller numbers, so that what it derives from them is derived again."""
    if level == "none":
        return config
    if config.model_type == "timm_backbone":
        return CONFIG_MAPPING["resnet"](**SMALL_RESNET)
    particular = PARTICULARS.get(config.model_type) or PARTICULARS.get(type(config).__name__, {})
    changes = dict(_changes(config, level)) | particular
    return type(config)(**changes)


def _changes(config: PreTrainedConfig, level: str) -> Iterator[tuple[str, Any]]:
    per_stage = any(isinstance(value, (list, tuple)) for name, value in vars(config).items() if "heads" in name)
    old_layers = getattr(config, "num_hidden_layers", None)
    kinds = _layer_kinds(config)
    layers = max(LAYERS, len(kinds))
    for name, value in vars(config).items():
        if isinstance(value, PreTrainedConfig):
            yield name, shrunk(value, level)
        elif name == "layer_types" and kinds:
            yield name, (kinds * LAYERS)[:layers]
        elif name in ("num_hidden_layers", "n_layer", "num_layers") and isinstance(value, int):
            yield name, min(value, layers)
        elif value is None and name in UNSET and level in ("sections", "half_sections"):
            yield name, UNSET[name]
        elif name == "attn_layer_indices":
            yield name, [layers - 1]
        elif name == "depths" and level in SECTIONS:
            yield name, [1] * len(value)
        elif name == "rope_parameters" and level in SECTIONS:
            yield name, _rope(value, SECTIONS[level], level != "full")
        elif isinstance(value, list) and len(value) == old_layers and not name.startswith("_"):
            yield name, value[:layers]
        elif name == "image_size" and isinstance(value, int) and value > LARGEST_IMAGE and level in SECTIONS:
            yield name, 8 * (_plain_number(config, "patch_size") or 16)
        elif isinstance(value, int) and not isinstance(value, bool):
            yield from _number(config, name, value, level, per_stage)


def _plain_number(config: PreTrainedConfig, name: str) -> int | None:
    value = getattr(config, name, None)
    return value if isinstance(value, int) else None


def _layer_kinds(config: PreTrainedConfig) -> list[str]:
    """The kinds of layers in order of first appearance, so that a shrunk model keeps one of each."""
    return list(dict.fromkeys(getattr(config, "layer_types", None) or ()))


def _number(config: PreTrainedConfig, name: str, value: int, level: str, per_stage: bool) -> Iterator[tuple[str, int]]:
    if TOKEN.fullmatch(name):
        if value >= VOCABULARY and hasattr(config, "vocab_size"):
            yield name, VOCABULARY - 1 - value % 40
        elif value >= VOCABULARY:
            yield name, VOCABULARY - 50 - sum(map(ord, name)) % 40
        return
    if level == "gentle" and not GENTLE.fullmatch(name):
        return
    for pattern, small in RULES:
        if re.fullmatch(pattern, name):
            if name == "num_key_value_heads" and value == getattr(config, "num_attention_heads", None):
                small = HEADS  # where keys and values are not shared by heads, the code may count on it
            if not (per_stage and small in (WIDTH, 2 * WIDTH, HEADS)):
                yield name, min(value, small)
            return


def _rope(parameters: Any, sections: list[int], always: bool) -> Any:
    """Rotary parameters whose sections fit the small head; ``always`` where a default in the code does not."""
    if not isinstance(parameters, dict):
        return parameters
    changed = {key: _rope(value, sections, False) for key, value in parameters.items()}
    if always or "mrope_section" in changed:
        changed["mrope_section"] = sections
    return changed


def _auto_tables(name: str) -> Iterator[Any]:
    """The tables from configuration to model class that know this type, the bare model's first."""
    tables = [key for key in vars(modeling_auto) if key.startswith("MODEL_") and key.endswith("_MAPPING_NAMES")]
    for key in sorted(tables, key=lambda key: (key != "MODEL_MAPPING_NAMES", key)):
        if name in getattr(modeling_auto, key):
            yield getattr(modeling_auto, key.removesuffix("_NAMES"))


def model_classes(name: str) -> int:
    """How many model classes there are to try for this type."""
    return len(_model_classes(name, CONFIG_MAPPING[name]()))


def _model_classes(name: str, config: PreTrainedConfig) -> list[Any]:
    """The classes of this type that can be called, the bare model first."""
    found = [table[type(config)] for table in _auto_tables(name)]
    flat = [cls for entry in found for cls in (entry if isinstance(entry, (list, tuple)) else [entry])]
    return [cls for cls in dict.fromkeys(flat) if cls.forward.__name__ != "_forward_unimplemented"]
