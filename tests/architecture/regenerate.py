"""Writes the golden file of the public surface anew: `python -m tests.architecture.regenerate`, then read the diff."""

from __future__ import annotations

from tests.architecture.surface import GOLDEN, surface

if __name__ == "__main__":
    text = surface()
    GOLDEN.write_text(text, encoding="utf-8")
    print(f"{GOLDEN.name}: {len(text.splitlines())} lines")
