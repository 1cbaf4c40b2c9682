"""Activation patching: which layer of a GPT-2 brings the clean answer back, with its value of the clean run?"""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import clew

torch.manual_seed(0)
config = GPT2Config(n_layer=4, n_head=2, n_embd=32, vocab_size=50, n_positions=32, bos_token_id=0, eos_token_id=0)
model = GPT2LMHeadModel(config).eval()
clean, corrupted = torch.tensor([[3, 14, 15, 9, 26, 5]]), torch.tensor([[3, 14, 35, 9, 26, 5]])
captured = clew.trace(model, kwargs={"input_ids": clean, "use_cache": False})

with torch.no_grad(), captured.record("transformer.h.*.mlp") as values:
    right = captured(input_ids=clean, use_cache=False).logits[0, -1]
    kept = dict(values)
    wrong = captured(input_ids=corrupted, use_cache=False).logits[0, -1]
    for path, value in kept.items():
        with captured.patch(path, value):
            patched = captured(input_ids=corrupted, use_cache=False).logits[0, -1]
        print(f"{path}: {1 - (patched - right).norm() / (wrong - right).norm():+.2f} of the answer is back")
    assert torch.equal(captured(input_ids=corrupted, use_cache=False).logits[0, -1], wrong)
