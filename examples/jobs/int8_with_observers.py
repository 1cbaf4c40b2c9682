"""Linear layers of 8 bits: observers tell the range of what each is given, and another layer is put in its place."""

import torch
from torch import nn

import clew


class Int8Linear(nn.Module):
    def __init__(self, linear, largest):
        super().__init__()
        scales = linear.weight.detach().abs().amax(1, keepdim=True) / 127
        self.register_buffer("weight", torch.round(linear.weight.detach() / scales).to(torch.int8))
        self.register_buffer("scales", scales[:, 0] * largest / 127)
        self.step, self.bias = largest / 127, linear.bias

    def forward(self, x):
        steps = torch.clamp(torch.round(x / self.step), -127, 127)
        return nn.functional.linear(steps, self.weight.to(x.dtype)) * self.scales + self.bias


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 4)).eval()
plain, quantized = (clew.trace(model, args=(torch.randn(2, 16),)) for _ in range(2))
observer = clew.Observer(plain, op=nn.Linear)
for _ in range(8):
    observer.run(torch.randn(32, 16))
for path, seen in observer.inputs.items():
    quantized.set_submodule(path, Int8Linear(model.get_submodule(path), seen.quantile(0.9999)))
print(observer.table())
print(clew.compare(plain, quantized, torch.randn(32, 16), atol=0.02).table())
