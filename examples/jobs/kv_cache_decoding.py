"""Decoding with a cache: one captured step serves every length, and gives the words that the model itself gives."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import clew

torch.manual_seed(0)
config = GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=50, n_positions=64, bos_token_id=0, eos_token_id=0)
model, prompt = GPT2LMHeadModel(config).eval(), torch.tensor([[3, 14, 15, 9, 26]])
step = clew.trace(model)  # captures when it is called: once for the prompt, once for a single word


def decode(call, count=12):
    words, cache, given = [], None, prompt
    for _ in range(count):
        result = call(input_ids=given, past_key_values=cache, use_cache=True)
        given, cache = result.logits[:, -1:].argmax(-1), result.past_key_values
        words.append(given.item())
    return words


with torch.no_grad():
    words = decode(step)
    assert words == decode(model)
print(f"{words}, with {len(step.captures)} captures")
