"""Features of a ResNet: what its layers return, in one run, and nothing else of the model is run."""

import torch

import clew
from examples.models.resnet import resnet18

model, images = resnet18(16, 10).eval(), torch.randn(2, 3, 64, 64)
extractor = clew.feature_extractor(model, ["layer*", "avgpool"], args=(images,))
features = extractor(images)
for name, value in features.items():
    print(f"{name:8} {tuple(value.shape)}")
assert not hasattr(extractor, "fc")

captured = clew.trace(model, (images,))
head = clew.extract(captured, "fc", inputs=["layer3"])  # the rest of the model, from the third layer on
torch.testing.assert_close(head(features["layer3"]), model(images))
