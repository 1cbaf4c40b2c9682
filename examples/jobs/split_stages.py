"""Split: a GPT-2 in three stages with about as many parameters each, run one after the other."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import clew

config = GPT2Config(n_layer=6, n_head=2, n_embd=32, vocab_size=50, n_positions=32, bos_token_id=0, eos_token_id=0)
model, tokens = GPT2LMHeadModel(config).eval(), torch.randint(0, 50, (2, 8))
captured = clew.trace(model, kwargs={"input_ids": tokens, "use_cache": False})
whole = clew.split(captured, stages=3, balance="parameters")
for number, stage in enumerate(whole.stages):
    count = sum(one.numel() for one in stage.parameters())
    print(f"stage {number}: {count} parameters, given {', '.join(whole.inputs[number][:4])}")
print("held by several stages:", whole.shared)
with torch.no_grad():
    torch.testing.assert_close(whole(input_ids=tokens, use_cache=False).logits, model(input_ids=tokens).logits)
