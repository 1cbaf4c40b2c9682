"""``python -m benchmarks.screenshots``: the pictures of ``docs/images``, made by a headless Chromium.

Models with random weights are captured and viewed; each picture is a state of the page that is reached as a user would
reach it. ``--only NAME`` makes some of them. Needs Chromium, torch and transformers.
"""

from __future__ import annotations

import argparse
import struct
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertModel, ResNetConfig, ResNetModel

import clew
from benchmarks.chromium import Browser

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"
SIZE = (1360, 820)
MOST_BYTES = 300_000


class Decoder(torch.nn.Module):
    """A loop and branches on data, for the picture of control flow."""

    def __init__(self) -> None:
        super().__init__()
        self.step = torch.nn.Linear(16, 16)
        self.norm = torch.nn.LayerNorm(16)

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        """Steps until the state is quiet."""
        if state.mean() > 0:
            state = self.norm(state)
        else:
            state = torch.tanh(state)
        while state.abs().max() > 0.5:
            state = self.step(state) * 0.5
        return state


def bert() -> tuple[Any, torch.Tensor]:
    """BERT-base, captured."""
    torch.manual_seed(0)
    tokens = torch.randint(0, 1000, (1, 128))
    return clew.trace(BertModel(BertConfig()).eval(), (tokens,)), tokens


def resnet() -> tuple[Any, torch.Tensor]:
    """ResNet-50, captured."""
    torch.manual_seed(0)
    image = torch.randn(1, 3, 224, 224)
    return clew.trace(ResNetModel(ResNetConfig()).eval(), (image,)), image


def bert_collapsed(browser: Browser, page: Path) -> None:
    """The first look."""
    clew.view(bert()[0], page)
    browser.open(page)


def bert_expanded(browser: Browser, page: Path) -> None:
    """Into the attention of a layer, with a step selected."""
    clew.view(bert()[0], page)
    browser.open(page)
    browser.press("/")
    browser.write("scaled_dot_product_attention")
    frame(browser)
    browser.press("Enter")
    frame(browser)
    browser.run("clewApp.current.fit(clewApp.current.model.parents[clewApp.selected.number])")


def resnet_collapsed(browser: Browser, page: Path) -> None:
    """Stages and blocks."""
    clew.view(resnet()[0], page)
    browser.open(page)


def resnet_expanded(browser: Browser, page: Path) -> None:
    """Into a block with a shortcut."""
    clew.view(resnet()[0], page)
    browser.open(page)
    browser.press("/")
    browser.write("shortcut ResNetShortCut")
    frame(browser)
    browser.press("Enter")
    browser.press("c")
    browser.press("e")
    frame(browser)
    browser.press("z")


def profile(browser: Browser, page: Path) -> None:
    """Colours by time."""
    captured, tokens = bert()
    clew.profile(captured, tokens)
    clew.view(captured, page, profile=clew.profile(captured, tokens))
    browser.open(page)
    browser.run(
        "clewApp.toggle(clewApp.current, clewApp.current.model.order.find((one) => "
        "clewApp.current.model.parts[one].copies)) "
    )
    browser.run("clewApp.toggle(clewApp.current, clewApp.current.model.parts[clewApp.selected.number].items[0])")
    browser.press("f")


def diff(browser: Browser, page: Path) -> None:
    """What folding batch norms does to ResNet-50."""
    clew.view(clew.fold_batch_norm(resnet()[0]), page, before=resnet()[0])
    browser.open(page)


def control_flow(browser: Browser, page: Path) -> None:
    """A branch and a loop, in the dark."""
    clew.view(clew.trace(Decoder(), (torch.randn(2, 16),)), page)
    browser.media(prefers_color_scheme="dark")
    browser.open(page)
    browser.press("e")
    browser.press("Escape")
    browser.run("clewApp.current.start()")


def dark(browser: Browser, page: Path) -> None:
    """The first look at BERT-base, in the dark."""
    browser.media(prefers_color_scheme="dark")
    bert_expanded(browser, page)


PICTURES: dict[str, Callable[[Browser, Path], None]] = {
    "bert": bert_collapsed, "bert_expanded": bert_expanded, "resnet": resnet_collapsed, "resnet_expanded":
    resnet_expanded, "profile": profile, "diff": diff, "control_flow": control_flow, "dark": dark,
}  # fmt: skip


def frame(browser: Browser) -> None:
    """Wait until what was asked for is drawn."""
    browser.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def smaller(image: bytes) -> bytes:
    """The same PNG, packed as tightly as zlib can."""
    start, chunks, data = image[:8], [], b""
    place = 8
    while place < len(image):
        (length,) = struct.unpack(">I", image[place : place + 4])
        kind, body = image[place + 4 : place + 8], image[place + 8 : place + 8 + length]
        if kind == b"IDAT":
            data += body
        elif kind in (b"IHDR", b"IEND"):
            chunks.append((kind, body))
        place += 12 + length
    packed = zlib.compress(zlib.decompress(data), 9)
    chunks.insert(1, (b"IDAT", packed))
    return start + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def photographed(browser: Browser) -> bytes:
    """The page, as sharp as the size of a file allows."""
    for scale in (1.5, 1.25, 1.1, 1.0):
        browser.resize(*SIZE, scale=scale)
        image = smaller(browser.screenshot())
        if len(image) <= MOST_BYTES:
            return image
    raise SystemExit(f"{len(image)} bytes, more than {MOST_BYTES}")


def main() -> None:
    """Make the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=PICTURES, default=list(PICTURES))
    wanted = parser.parse_args().only
    FOLDER.mkdir(exist_ok=True)
    with Browser(*SIZE) as browser, tempfile.TemporaryDirectory() as folder:
        for name in wanted:
            browser.media()
            PICTURES[name](browser, Path(folder) / f"{name}.html")
            image = photographed(browser)
            (FOLDER / f"{name}.png").write_bytes(image)
            print(f"{name}.png: {len(image) / 1000:.0f} kB", flush=True)
        if browser.errors():
            raise SystemExit("\n".join(browser.errors()))


if __name__ == "__main__":
    main()
