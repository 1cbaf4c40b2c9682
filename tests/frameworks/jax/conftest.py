"""JAX on the CPU, whatever the machine has: set before anything imports it."""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
