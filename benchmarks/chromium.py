"""A headless Chromium, spoken to by the DevTools protocol over a pipe: for screenshots and for tests of pages.

In come the path of a page and what to do there; out come values of JavaScript and PNGs. No package is needed, and no
port is opened. Always holds: the browser and its folder are gone when the ``with`` block is left.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --remote-debugging-pipe --no-first-run --disable-extensions "
    "--hide-scrollbars --disable-dev-shm-usage --disable-background-networking --force-color-profile=srgb"
).split()
TIMEOUT = 20.0


def find() -> str | None:
    """The browser's program; None if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page in a browser that nobody sees."""

    def __init__(self, width: int = 1440, height: int = 900) -> None:
        self.size = (width, height)
        self._buffer = b""
        self._number = 0
        self.messages: list[dict[str, Any]] = []
        """What the browser told without being asked: errors, requests."""

    def __enter__(self) -> Browser:
        program = find()
        if program is None:
            raise FileNotFoundError("no Chromium was found")
        self._folder = tempfile.mkdtemp()
        reads, self._out = os.pipe()
        self._in, writes = os.pipe()
        size = f"--window-size={self.size[0]},{self.size[1]}"
        words = " ".join([program, *FLAGS, size, f"--user-data-dir={self._folder}", "about:blank"])
        command = ["bash", "-c", f"exec {words} 3<&{reads} 4>&{writes}"]
        self._process = subprocess.Popen(
            command, pass_fds=(reads, writes), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(reads)
        os.close(writes)
        self._session = ""
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(*self.size)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError, TimeoutError, ConnectionError):
            self.call("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        self._process.kill()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._folder, ignore_errors=True)

    # ---- the protocol --------------------------------------------------------------------------------------------

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Ask the browser for something, and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        for answer in self._answers():
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])
            self.messages.append(answer)
        raise ConnectionError("the browser is gone")

    def _answers(self) -> Iterator[dict[str, Any]]:
        until = time.monotonic() + TIMEOUT
        while True:
            while b"\0" not in self._buffer:
                if not select.select([self._in], [], [], max(until - time.monotonic(), 0))[0]:
                    raise TimeoutError("the browser did not answer")
                data = os.read(self._in, 1 << 20)
                if not data:
                    return
                self._buffer += data
            text, self._buffer = self._buffer.split(b"\0", 1)
            yield json.loads(text)

    # ---- what is done in a page ----------------------------------------------------------------------------------

    def resize(self, width: int, height: int, scale: float = 1) -> None:
        """Give the page another size."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )

    def open(self, path: Path, ready: str = "document.documentElement?.dataset.ready") -> None:
        """Open a file, and wait until it is ready."""
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait(ready)

    def wait(self, condition: str) -> None:
        """Wait until an expression of JavaScript is true."""
        until = time.monotonic() + TIMEOUT
        while not self.run(f"Boolean({condition})"):
            if time.monotonic() > until:
                raise TimeoutError(f"{condition} did not become true; {self.errors()}")
            time.sleep(0.02)

    def run(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return found["result"].get("value")

    def click(self, x: float, y: float) -> None:
        """Click at a point of the page."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1, buttons=1)

    def move(self, x: float, y: float, buttons: int = 0) -> None:
        """Move the mouse, with its first button held down if ``buttons`` is 1."""
        self.call(
            "Input.dispatchMouseEvent",
            type="mouseMoved",
            x=x,
            y=y,
            buttons=buttons,
            button="left" if buttons else "none",
        )

    def press(self, key: str, text: str = "", shift: bool = False) -> None:
        """Press a key: a character, or one with a name, such as ``Enter``."""
        given = {"key": key, "modifiers": 8 if shift else 0, "windowsVirtualKeyCode": _CODES.get(key, 0)}
        text = text or (key if len(key) == 1 else {"Enter": "\r"}.get(key, ""))
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **given)
        self.call("Input.dispatchKeyEvent", type="keyUp", **given)

    def write(self, text: str) -> None:
        """Put text where the caret is."""
        self.call("Input.insertText", text=text)

    def media(self, **features: str) -> None:
        """Let the page believe that the user has wishes: ``prefers_color_scheme="dark"``."""
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", features=named)

    def screenshot(self, path: Path | None = None) -> bytes:
        """The page as a PNG."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        image = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        if path is not None:
            path.write_bytes(image)
        return image

    def errors(self) -> list[str]:
        """What went wrong in the page."""
        self.run("1")
        found = [one["params"] for one in self.messages if one.get("method") == "Runtime.exceptionThrown"]
        texts = [one["exceptionDetails"].get("exception", {}).get("description", "?") for one in found]
        entries = [one["params"]["entry"] for one in self.messages if one.get("method") == "Log.entryAdded"]
        return texts + [entry["text"] for entry in entries if entry["level"] == "error"]

    def requests(self) -> list[str]:
        """Addresses that the page has asked for."""
        self.run("1")
        sent = [one["params"] for one in self.messages if one.get("method") == "Network.requestWillBeSent"]
        return [str(one["request"]["url"]) for one in sent]


_CODES = {
    "Enter": 13,
    "Escape": 27,
    "ArrowUp": 38,
    "ArrowDown": 40,
    "ArrowLeft": 37,
    "ArrowRight": 39,
    "Tab": 9,
    "Home": 36,
}
