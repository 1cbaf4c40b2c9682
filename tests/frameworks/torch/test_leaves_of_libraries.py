"""Layers of libraries that stay one call: the registries that they share with the rest of the program are watched."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import clew

transformers = pytest.importorskip("transformers")
SMALL = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
TOKENS = torch.tensor([[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]])


def models() -> dict[str, Any]:
    torch.manual_seed(0)
    tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    gpt2 = transformers.GPT2Config(vocab_size=40, n_embd=16, n_layer=2, n_head=2, n_positions=32)
    return {
        "GPT2Block": transformers.GPT2LMHeadModel(gpt2).eval(),
        "GPT2Attention": transformers.GPT2LMHeadModel(gpt2).eval(),
        "LlamaDecoderLayer": transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL, **tokens)).eval(),
        "BertLayer": transformers.BertModel(transformers.BertConfig(**SMALL)).eval(),
    }


@pytest.mark.parametrize("kind", ["GPT2Block", "GPT2Attention", "LlamaDecoderLayer", "BertLayer"])
def test_a_layer_of_transformers_stays_one_call(kind: str) -> None:
    model = models()[kind]
    given = {"input_ids": TOKENS} | ({} if kind == "BertLayer" else {"use_cache": False})
    paths = [path for path, part in model.named_modules() if type(part).__name__ == kind]
    captured = clew.trace(model, kwargs=given, leaves=[None, lambda module, path: type(module).__name__ == kind])
    assert [node.target for node in captured.graph.find_nodes(op="call_module") if node.target in paths] == paths
    assert clew.verify(captured, model, ((), given))
    assert "that the program" not in captured.code and "remember" not in captured.code  # bookkeeping is not shown

    class Doubled(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            found = self.inner(*args, **kwargs)
            return (found[0] * 2, *found[1:]) if isinstance(found, tuple) else found * 2

    captured.wrap_module(paths[0], Doubled)
    hook = model.get_submodule(paths[0]).register_forward_hook(
        lambda module, args, found: (found[0] * 2, *found[1:]) if isinstance(found, tuple) else found * 2
    )
    wanted = model(**given)[0]
    hook.remove()
    torch.testing.assert_close(captured(**given)[0], wanted)
