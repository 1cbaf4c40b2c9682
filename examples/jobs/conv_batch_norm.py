"""Batch norms folded into the convolutions of a ResNet: fewer calls, the same answers, and no silent training."""

import time

import torch

import clew
from examples.models.resnet import resnet18

model = resnet18().eval()
images = torch.randn(4, 3, 64, 64)
captured = clew.trace(model, (images,))
before = len(captured.graph.nodes)
with torch.no_grad():
    clew.Pipeline([clew.fold_batch_norm, clew.dead_code])(captured)
    torch.testing.assert_close(captured(images), model(images), rtol=1e-3, atol=1e-4)
    for name, program in {"original": model, "folded": captured}.items():
        program(images), program(images)  # the first calls prepare the later ones
        start = time.perf_counter()
        program(images)
        print(f"{name}: {(time.perf_counter() - start) * 1e3:.1f} ms")
print(f"{before} nodes became {len(captured.graph.nodes)}")
try:
    captured.train()(images)
except clew.GuardError as error:
    print(error)
