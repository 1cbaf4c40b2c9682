"""Nothing has become slower, in counts that do not depend on the machine; ``python -m tests.speed`` shows them all.

They are counted in a process of their own: what else is imported and patched in this one would count too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.architecture.project import SOURCE
from tests.speed.counts import COUNTS
from tests.speed.limits import LIMITS

MEASURED_WITH = (3, 11)
ELSEWHERE = 1.4
"""Other versions of Python have other bytecode and other sizes of objects: there only a leap is noticed."""


@pytest.fixture(scope="module")
def counted() -> dict[str, float]:
    """All counts."""
    path = os.pathsep.join(map(str, (SOURCE, SOURCE.parent)))
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.speed", "--json"]
    finished = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert finished.returncode == 0, finished.stderr
    found: dict[str, float] = json.loads(finished.stdout)
    return found


@pytest.mark.parametrize("name", COUNTS)
def test_count_stays_within_its_limit(name: str, counted: dict[str, float]):
    limit = LIMITS[name] * (1.0 if sys.version_info[:2] == MEASURED_WITH else ELSEWHERE)
    assert counted[name] <= limit, (
        f"{name}: {counted[name]:.2f}, and the limit is {limit:.2f}. Something now does more work each time. Look for "
        "a call, an attribute or an object that came in with your change (tests/speed/counts.py says what is counted), "
        "and take it out of the way that every operation goes. If it is worth its price, say why in the commit that "
        "raises the limit: python -m tests.speed --write"
    )


def test_every_limit_is_of_a_count():
    assert list(LIMITS) == list(COUNTS)


def test_a_capture_does_not_load_torchs_compiler() -> None:
    told = "import sys, torch, clew; clew.trace(lambda x: x + 1, (torch.ones(2),)); "
    told += "print('torch._dynamo' in sys.modules)"
    finished = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "False"  # it takes a second and more to load
