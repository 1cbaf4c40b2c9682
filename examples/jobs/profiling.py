"""Where the time and the memory of a ResNet go: by module, by node, as a picture and as a trace for Perfetto."""

import sys
import tempfile
from pathlib import Path

import torch

import clew
from examples.models.resnet import resnet50

model = resnet50(64, 1000).eval()
image = torch.randn(1, 3, 64, 64)
with torch.no_grad():
    captured = clew.trace(model, args=(image,))
    clew.profile(captured, image)  # the first call is slower: it asks for memory
    profile = clew.profile(captured, image)

print(str(profile).splitlines()[0])
for part in profile.by_module(depth=1)[1:]:
    print(f"{part.path:8} {'#' * round(60 * part.seconds / profile.seconds)} {1000 * part.seconds:.1f} ms")
print(profile.table(by="seconds", limit=5))
print(f"at the peak, {profile.peak_node}:", [value.node for value in profile.peak_values[:3]])
folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
profile.chrome_trace(folder / "trace.json")
clew.view(captured, folder / "profile.html", profile=profile)
print("written:", folder / "trace.json", folder / "profile.html")
