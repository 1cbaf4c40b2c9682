"""A model of transformers that generates, captured as a whole: one graph for prompts of several lengths."""

import pytest
import torch
from torch import Tensor

import clew
from clew.ir.arguments import all_nodes

transformers = pytest.importorskip("transformers")
SIZES = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 16, "max_position_embeddings": 32, "eos_token_id": None}


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).eval()


def test_greedy_generation() -> None:
    llama = model()

    def generate(ids: Tensor, mask: Tensor) -> Tensor:
        return llama.generate(ids, attention_mask=mask, max_new_tokens=2, do_sample=False, pad_token_id=0)

    captured = clew.trace(generate, args=(torch.ones(2, 4, dtype=torch.long), torch.ones(2, 4, dtype=torch.long)))
    assert len(list(all_nodes(captured.graph))) < 1100  # one way of the program, not one for each check in the library
    for rows, length in ((2, 4), (3, 4), (2, 7)):
        ids, mask = torch.randint(3, 40, (rows, length)), torch.ones(rows, length, dtype=torch.long)
        assert torch.equal(captured(ids, mask), generate(ids, mask))


def test_a_function_around_a_model_takes_padded_masks() -> None:
    llama = model()

    def logits(ids: Tensor, mask: Tensor) -> Tensor:
        return llama(ids, attention_mask=mask).logits

    mask = torch.ones(2, 4, dtype=torch.long)
    captured = clew.trace(logits, args=(torch.ones(2, 4, dtype=torch.long), mask))
    padded = torch.cat([torch.zeros(2, 1, dtype=torch.long), mask], 1)
    for given in (mask, padded):
        ids = torch.randint(3, 40, given.shape)
        assert torch.equal(captured(ids, given), logits(ids, given))
