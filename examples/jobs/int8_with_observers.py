"""A model with weights of 8 bits: observers see some batches, then layers of whole numbers stand in their places."""

import torch
from transformers import ViTConfig, ViTForImageClassification

import clew

torch.manual_seed(0)
size = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 128}
model = ViTForImageClassification(ViTConfig(**size, image_size=32, patch_size=8, num_labels=10)).eval()
plain, quantized = (clew.trace(model, kwargs={"pixel_values": torch.randn(2, 3, 32, 32)}) for _ in range(2))
with torch.no_grad():
    clew.insert_observers(quantized)
    for _ in range(8):
        quantized(pixel_values=torch.randn(16, 3, 32, 32))
    clew.quantize(quantized, skip=["classifier"])
    images = torch.randn(64, 3, 32, 32)
    one, other = plain(pixel_values=images).logits, quantized(pixel_values=images).logits
print(quantized.vit.layers[0].mlp)
bytes_of = [sum(one.nbytes for one in program.state_dict().values()) for program in (plain, quantized)]
print(f"{bytes_of[0]} bytes became {bytes_of[1]}; logits are {(one - other).norm() / one.norm():.2%} apart")
print(f"{(one.argmax(-1) == other.argmax(-1)).float().mean():.0%} of the images are of the same class")
worst = max(clew.compare(plain, quantized, pixel_values=images).pairs, key=lambda pair: pair.relative)
print(f"furthest apart: {worst.left.name}, {worst.relative:.2%}, at {worst.left.source.describe()}")
assert (one - other).norm() < 0.05 * one.norm()
