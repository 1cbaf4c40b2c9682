"""A random program as data: the text of a module, and the calls that it is judged by.

The text defines `make()`, which gives the function or `nn.Module` under test. A probe is the text of the arguments of
one call, with what is done beforehand to the world (`module`, the program's own module) or to the callable (`subject`).
The first probe is the example of the capture. All of it is text, so that a program can be stored, shown and shrunk.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

FUNCTION, MODULE = "function", "module"
KINDS = (FUNCTION, MODULE)


@dataclass(frozen=True)
class Probe:
    """One call: its name, its arguments, and the statement that comes before it."""

    name: str
    arguments: str
    action: str = ""


@dataclass(frozen=True)
class RandomProgram:
    """A program with its probes; the seed and the index tell which one it is."""

    seed: int
    index: int
    kind: str
    source: str
    probes: tuple[Probe, ...]
    framework: str = "torch"

    @property
    def name(self) -> str:
        """The name of the module that the text becomes."""
        return f"random_program_{self.framework}_{self.seed}_{self.index}"

    def text(self) -> str:
        """Everything about the program, for a reader."""
        calls = [f"# {one.name}: {one.action + '; ' if one.action else ''}({one.arguments})" for one in self.probes]
        return "\n".join([self.source.strip(), *calls])

    def as_json(self) -> dict[str, Any]:
        """Plain data for a file."""
        return asdict(self) | {"probes": [asdict(probe) for probe in self.probes]}


def from_json(data: dict[str, Any]) -> RandomProgram:
    """The program that `as_json` was asked of."""
    probes = tuple(Probe(**probe) for probe in data["probes"])
    framework = data.get("framework", "torch")
    return RandomProgram(data["seed"], data["index"], data["kind"], data["source"], probes, framework)
