"""Arithmetic of each block of a GPT-2, at a length for which this machine need not have the memory: nothing is run."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import clew

with torch.device("meta"), torch.no_grad():
    model = GPT2LMHeadModel(GPT2Config(attn_implementation="eager")).eval()
    tokens = {"input_ids": torch.zeros(1, 1024, dtype=torch.int64), "attention_mask": torch.ones(1, 1024)}
    captured = clew.trace(model, kwargs={**tokens, "use_cache": False})
    profile = clew.profile(captured, **tokens, use_cache=False)

for part in profile.by_module(depth=3):
    if part.kind == "GPT2Block" or part.path in ("", "lm_head"):
        name, share = part.path or "in all", part.macs / profile.macs
        print(f"{name:16} {part.macs / 1e9:8.3f} GMACs {share:7.1%} {part.parameters / 1e6:8.2f} M parameters")
print(f"peak memory: {profile.peak_bytes / 1e6:.0f} MB at {profile.peak_node}")
