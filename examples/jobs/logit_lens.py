"""The logit lens: what a language model would say after each of its layers, read through its own head."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import clew

torch.manual_seed(0)
config = GPT2Config(n_embd=32, n_layer=3, n_head=2, vocab_size=50, bos_token_id=0, eos_token_id=0)
model = GPT2LMHeadModel(config).eval()
ids = torch.randint(0, 50, (1, 6))
layers = [f"transformer.h.{number}" for number in range(3)]
lens = clew.feature_extractor(model, layers, kwargs={"input_ids": ids})
with torch.no_grad():
    for name, hidden in lens(input_ids=ids).items():
        hidden = hidden[0] if isinstance(hidden, tuple) else hidden
        logits = model.lm_head(model.transformer.ln_f(hidden))
        print(f"{name}: next token {int(logits[0, -1].argmax())}, p = {float(logits[0, -1].softmax(-1).max()):.3f}")
    torch.testing.assert_close(logits, model(input_ids=ids).logits)  # after the last layer it is the model's own answer
