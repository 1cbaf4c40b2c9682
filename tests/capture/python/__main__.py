"""Prints how captures deal with the world outside: `python -m tests.capture.python [framework ...] [program ...]`."""

from __future__ import annotations

import sys

from tests.capture.python.outside import FRAMEWORKS, verdict
from tests.capture.python.outside_programs import PROGRAMS


def main(asked: list[str]) -> int:
    """Prints the table of all programs, or of those that are asked for; the exit status is 1 when a cell is wrong."""
    frameworks = [one for one in FRAMEWORKS if one in asked] or list(FRAMEWORKS)
    names = [one for one in asked if one in PROGRAMS] or list(PROGRAMS)
    wrong = 0
    print(f"{'':<30}" + "".join(f"{name:<12}" for name in frameworks))
    for name in names:
        found = [
            verdict(PROGRAMS[name], framework) if PROGRAMS[name].only in ("", framework) else ""
            for framework in frameworks
        ]
        print(
            f"{name:<30}" + "".join(f"{one[:5] if one.startswith('WRONG') else one:<12}" for one in found), flush=True
        )
        for framework, one in zip(frameworks, found, strict=True):
            if one.startswith("WRONG"):
                wrong += 1
                print(f"    {framework}: {one[:300]!r}", file=sys.stderr)
    print(f"{wrong} of {len(names) * len(frameworks)} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
