"""Makes the example models importable as `models`, and gives every test here one thread and a fixed seed.

The models are tiny, so threads cost more than they give; both settings are put back after each test.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

EXAMPLES = str(Path(__file__).resolve().parents[2] / "examples")
if EXAMPLES not in sys.path:
    sys.path.insert(0, EXAMPLES)


@pytest.fixture(autouse=True)
def quiet_torch() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield
    torch.set_num_threads(threads)
