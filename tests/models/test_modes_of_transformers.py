"""Small models of transformers live like the original: captured in one mode, they evaluate, train and evaluate."""

from __future__ import annotations

import copy

import pytest
import torch

import clew
from tests.frameworks.torch.modules.test_training_mode import live_alike

transformers = pytest.importorskip("transformers")

IDS = torch.arange(14).reshape(2, 7)
PIXELS = torch.linspace(-1, 1, 2 * 3 * 32 * 32).reshape(2, 3, 32, 32)
SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
VISION = {"image_size": 32, "patch_size": 8, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}


def bert():
    return transformers.BertModel(transformers.BertConfig(**SMALL, vocab_size=99)), {"input_ids": IDS}


def llama():
    config = transformers.LlamaConfig(**SMALL, vocab_size=99, num_key_value_heads=2, attention_dropout=0.1)
    return transformers.LlamaModel(config), {"input_ids": IDS}


def gpt2():
    config = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=99, bos_token_id=1, eos_token_id=2)
    return transformers.GPT2Model(config), {"input_ids": IDS}


def t5():
    config = transformers.T5Config(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, vocab_size=99)
    return transformers.T5Model(config), {"input_ids": IDS, "decoder_input_ids": IDS}


def vit():
    return transformers.ViTModel(transformers.ViTConfig(**SMALL, **VISION)), {"pixel_values": PIXELS}


def resnet():
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])
    return transformers.ResNetModel(config), {"pixel_values": PIXELS}


def swin():
    """With a chance to leave each block out while training."""
    config = transformers.SwinConfig(
        image_size=32, patch_size=2, embed_dim=8, depths=[1, 1], num_heads=[2, 2], window_size=4, drop_path_rate=0.3
    )
    return transformers.SwinModel(config), {"pixel_values": PIXELS}


def opt():
    """May leave out layers while training, from a loop."""
    config = transformers.OPTConfig(
        hidden_size=32, word_embed_proj_dim=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=4, vocab_size=99
    )
    return transformers.OPTModel(config), {"input_ids": IDS}


def bart():
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "d_model": 32, "vocab_size": 99}
    layers = {"encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48}
    return transformers.BartModel(transformers.BartConfig(**heads, **layers)), {"input_ids": IDS}


def mamba():
    """Makes no cache while training."""
    config = transformers.MambaConfig(hidden_size=32, num_hidden_layers=2, vocab_size=99, state_size=4)
    return transformers.MambaModel(config), {"input_ids": IDS}


@pytest.mark.parametrize("mode", [True, False])
@pytest.mark.parametrize("make", [bert, llama, gpt2, t5, vit, resnet, swin, opt, bart, mamba])
def test_one_capture_lives_like_the_original(make, mode):
    torch.manual_seed(0)
    model, kwargs = make()
    model.train(mode)
    captured = clew.trace(copy.deepcopy(model), kwargs=kwargs)
    assert not any("training" in guard.expression for guard in captured.guards)
    live_alike(model, captured, lambda program: program(**kwargs))


def test_a_mode_is_chosen_once_for_each_layer():
    model, kwargs = bert()
    graph = clew.trace(model.eval(), kwargs=kwargs).graph
    read = [node.target for node in graph.nodes if node.op == "get_attr" and node.target.endswith("training")]
    assert read == [f"encoder.layer.{place}.attention.self.training" for place in range(2)]
    called = [node.target for node in graph.nodes if node.op == "call_module"]
    assert len(called) == len(set(called)) == 27
