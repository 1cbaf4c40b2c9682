"""View: a model as one HTML file to open in a browser, as an SVG drawing, and before beside after a pass."""

import copy
import tempfile
from pathlib import Path

import torch

import clew
from examples.models.resnet import resnet18

folder, images = Path(tempfile.mkdtemp()), torch.randn(1, 3, 32, 32)
captured = clew.trace(resnet18().eval(), (images,))
before = copy.deepcopy(captured)
clew.view(captured, folder / "model.html")
clew.to_svg(captured, folder / "model.svg", depth=1)
clew.fold_batch_norm(captured)
clew.view(captured, folder / "folded.html", before=before)
for path in sorted(folder.iterdir()):
    print(path.name, path.stat().st_size, "bytes")
print(captured.graph.find(module="layer1.*", op=torch.nn.Conv2d))
