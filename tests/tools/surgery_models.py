"""Real models of a few thousand parameters for the tests of surgery, and what hooks on their modules see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers

from examples.models.resnet import resnet18

Made = tuple[torch.nn.Module, dict[str, Any]]
_SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


def _tokens() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randint(0, 50, (2, 6))


def resnet() -> Made:
    """A ResNet, whose activations work in place."""
    torch.manual_seed(0)
    return resnet18(4, 10).eval(), {"x": torch.randn(2, 3, 32, 32)}


def bert() -> Made:
    """BERT."""
    tokens = _tokens()
    return transformers.BertModel(transformers.BertConfig(**_SMALL, vocab_size=50)).eval(), {"input_ids": tokens}


def gpt2() -> Made:
    """GPT-2, whose word embeddings are its last layer too."""
    tokens = _tokens()
    config = transformers.GPT2Config(
        n_layer=3, n_head=2, n_embd=16, vocab_size=50, n_positions=32, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2LMHeadModel(config).eval(), {"input_ids": tokens, "use_cache": False}


def vit() -> Made:
    """A vision transformer."""
    torch.manual_seed(0)
    config = transformers.ViTConfig(**_SMALL, image_size=16, patch_size=8)
    return transformers.ViTModel(config).eval(), {"pixel_values": torch.randn(2, 3, 16, 16)}


def llama() -> Made:
    """Llama."""
    tokens = _tokens()
    config = transformers.LlamaConfig(**_SMALL, num_key_value_heads=1, vocab_size=50)
    return transformers.LlamaForCausalLM(config).eval(), {"input_ids": tokens, "use_cache": False}


def t5() -> Made:
    """T5: encoder, decoder, and modules that return tuples."""
    tokens = _tokens()
    config = transformers.T5Config(
        d_model=16, num_layers=2, num_heads=2, d_kv=8, d_ff=32, vocab_size=50, decoder_start_token_id=0
    )
    inputs = {"input_ids": tokens, "decoder_input_ids": tokens, "use_cache": False}
    return transformers.T5ForConditionalGeneration(config).eval(), inputs


MODELS: dict[str, Callable[[], Made]] = {one.__name__: one for one in (resnet, bert, gpt2, vit, llama, t5)}


def hooked(model: torch.nn.Module, kwargs: dict[str, Any]) -> dict[Any, Any]:
    """What hooks on all modules see, by path; for further calls of a module the key is (path, number)."""
    seen: dict[Any, Any] = {}

    def watch(path: str) -> Any:
        def hook(module: Any, args: Any, output: Any) -> None:
            calls = sum(key == path or key[0] == path for key in seen if isinstance(key, (str, tuple)))
            seen[path if not calls else (path, calls + 1)] = _copied(output)

        return hook

    hooks = [module.register_forward_hook(watch(path)) for path, module in model.named_modules() if path]
    with torch.no_grad():
        model(**kwargs)
    for hook in hooks:
        hook.remove()
    return seen


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    return tuple(map(_copied, value)) if isinstance(value, tuple) else value


def tensors_of(value: Any) -> list[torch.Tensor]:
    """The arrays in what a module returned."""
    if isinstance(value, torch.Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [tensor for part in parts for tensor in tensors_of(part)]
