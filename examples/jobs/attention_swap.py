"""Attention swapped: a layer of a captured BERT gets another attention, called as the one before."""

import torch
from torch import nn
from transformers import BertConfig, BertModel

import clew


class MeanAttention(nn.Module):
    def __init__(self, original):
        super().__init__()
        self.value = original.value

    def forward(self, hidden, *others, **named):
        return self.value(hidden).mean(1, keepdim=True).expand_as(hidden), None


size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 50}
model, tokens = BertModel(BertConfig(**size)).eval(), torch.randint(0, 50, (2, 6))
captured = clew.trace(model, kwargs={"input_ids": tokens})
path = "encoder.layer.1.attention.self"
before = len(captured.graph.nodes)
captured.replace_module(path, MeanAttention(model.get_submodule(path)))
print(f"{before} nodes, then {len(captured.graph.nodes)}; {path} is one call")
model.get_submodule(path).forward = MeanAttention(model.get_submodule(path)).forward
torch.testing.assert_close(captured(input_ids=tokens).last_hidden_state, model(input_ids=tokens).last_hidden_state)
