"""One architecture under examination: does it run, is it captured, and is the graph right on other inputs too?

In comes a suite's name of an architecture; out comes one row of the results, plain data. A suite offers candidates, a
model with a way to make inputs, until one runs eagerly. Then it is captured from the example, compared on it, and
called with other values, batch sizes, lengths, image sizes and a padded mask without a new capture. Nothing is raised.
"""

from __future__ import annotations

import copy
import gc
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from torch import nn

import clew
from benchmarks.equality import difference, tensors
from clew.errors import CaptureError, GuardError

BATCH, LENGTH, STEP = 2, 12, 32


class Variation(NamedTuple):
    """How the inputs of a call differ from the example's."""

    batch: int = BATCH
    length: int = LENGTH
    grow: int = 0
    seed: int = 1
    padded: bool = False


EXAMPLE = Variation(seed=0)
VARIATIONS = {
    "values": Variation(),
    "batch": Variation(batch=3),
    "one": Variation(batch=1),
    "length": Variation(length=17),
    "size": Variation(grow=STEP),
}
PADDED = Variation(padded=True)


class Candidate(NamedTuple):
    """A model in eval mode, and how to make the arguments of a call."""

    label: str
    model: nn.Module
    make: Callable[[Variation], tuple[tuple[Any, ...], dict[str, Any]]]


class Suite(Protocol):
    """A set of architectures."""

    def names(self) -> list[str]:
        """All of them."""

    def candidates(self, name: str, reasons: list[str]) -> Iterator[Candidate]:
        """Ways to build and call one, the best first; what could not even be built is noted in ``reasons``."""


class TimeLimit(BaseException):
    """One architecture took too long; not an Exception, so that no model swallows it."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise TimeLimit in the body when it has run for this long."""

    def ring(number: int, frame: Any) -> None:
        raise TimeLimit(f"over {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def examine(suite: Suite, name: str, seconds: int) -> dict[str, Any]:
    """Everything that is found out about one architecture, as one line of the results."""
    row: dict[str, Any] = {"name": name, "outcome": "skipped"}
    start = time.monotonic()
    try:
        with time_limit(seconds), torch.no_grad():
            _examine(suite, name, row)
    except TimeLimit as error:
        row["outcome"] = "timeout" if "class" in row else "skipped"
        row["reason"] = f"time limit: {error}"
    except Exception as error:
        row["outcome"] = "failed" if "nodes" in row else "skipped"
        _note(row, error)
    gc.collect()
    row["seconds"] = round(time.monotonic() - start, 1)
    return row


def _examine(suite: Suite, name: str, row: dict[str, Any]) -> None:
    found = runnable(suite, name, row)
    if found is None:
        return
    model, inputs = found.model, found.make(EXAMPLE)
    row["class"] = type(model).__name__
    row["label"] = found.label
    row["parameters"] = sum(parameter.numel() for parameter in model.parameters())
    row["inputs"] = _shapes(inputs)
    row["eager_ms"] = _best_ms(lambda: run_once(model, inputs))
    _look_for_blindness(run_once(model, inputs), run_once(model, found.make(VARIATIONS["values"])), row)
    captured = _captured(model, inputs, row)
    if captured is None:
        return
    row["capture_ms"] = _best_ms(lambda: clew.trace(model, args=inputs[0], kwargs=inputs[1]))
    row["nodes"] = len(list(captured.graph.nodes))
    row["guards"] = [str(guard).splitlines()[0] for guard in captured.guards]
    row["example"] = _same(model, captured, inputs, row)
    for key, variation in VARIATIONS.items():
        row[key] = _vary(model, captured, found.make(variation), row)
    row["padded"] = _padded(model, captured, found, row)
    row["outcome"] = _outcome(row)
    if row["outcome"] == "guarded":
        row["dynamic"] = _with_free_sizes(found, row)


def _with_free_sizes(found: Candidate, row: dict[str, Any]) -> str:
    """What becomes of a model that relied on sizes if the capture is asked not to."""
    inputs, notes = found.make(EXAMPLE), {"inputs": row["inputs"]}
    captured = _captured(found.model, inputs, notes, dynamic=True)
    if captured is not None:
        notes["example"] = _same(found.model, captured, inputs, notes)
        for key, variation in VARIATIONS.items():
            notes[key] = _vary(found.model, captured, found.make(variation), notes)
        notes["padded"] = _padded(found.model, captured, found, notes)
        notes["outcome"] = _outcome(notes)
    row["dynamic_reason"] = notes.get("reason", "")
    return str(notes["outcome"])


def runnable(suite: Suite, name: str, row: dict[str, Any]) -> Candidate | None:
    """The first candidate that runs eagerly, twice alike; the reasons why the others do not are kept in the row."""
    reasons: list[str] = []
    for candidate in suite.candidates(name, reasons):
        try:
            run_once(candidate.model, candidate.make(EXAMPLE))
            return candidate
        except Exception as error:
            reasons.append(f"{candidate.label}: {first_line(error)}")
    row["reason"] = reasons[0] if reasons else "no candidate"
    row["reasons"] = reasons[:40]
    return None


def _look_for_blindness(one: Any, other: Any, row: dict[str, Any]) -> None:
    """Note where a comparison would say little: results that are not finite, or the same for other inputs."""
    values = [tensor for tensor in tensors(one) if tensor.is_floating_point()]
    if not any(bool(torch.isfinite(tensor).any()) for tensor in values):
        row["blind"] = "no finite number in the result"
    elif not difference(one, other):
        row["blind"] = "the same result for other inputs"


def _captured(model: nn.Module, inputs: Any, row: dict[str, Any], **options: Any) -> Any:
    try:
        return clew.trace(model, args=inputs[0], kwargs=inputs[1], **options)
    except CaptureError as error:
        row["outcome"] = "refused"
        _note(row, error)
    except Exception as error:
        row["outcome"] = "failed"
        _note(row, error)
    return None


def _same(model: nn.Module, captured: Any, inputs: Any, row: dict[str, Any]) -> str:
    """``equal``, ``guarded``, ``WRONG`` or ``failed``: the captured graph beside the model on these inputs."""
    expected = run_once(model, inputs)
    try:
        actual = run_once(captured, inputs)
    except GuardError as error:
        _note(row, error)
        return "guarded"
    except Exception as error:
        _note(row, error)
        return "failed"
    different = difference(expected, actual)
    if different and difference(expected, run_once(model, inputs)):
        row["unstable"] = "the model itself gives another result each time"
        return "n/a"
    if different:
        row["reason"] = f"differs at {different}"
        return "WRONG"
    return "equal"


def _vary(model: nn.Module, captured: Any, inputs: Any, row: dict[str, Any]) -> str:
    """The same on other inputs; ``n/a`` where the model itself does not take them, or no size varies."""
    if _shapes(inputs) == row["inputs"] and "values" in row:
        return "n/a"
    try:
        run_once(model, inputs)
    except Exception:
        return "n/a"
    found = _same(model, captured, inputs, row)
    return "general" if found == "equal" else found


def _padded(model: nn.Module, captured: Any, found: Candidate, row: dict[str, Any]) -> str:
    """What becomes of a padded mask; why is kept apart from the other reasons, unless it is a finding."""
    inputs = found.make(PADDED)
    if not difference(inputs, found.make(VARIATIONS["values"])):
        return "n/a"
    notes: dict[str, Any] = {"inputs": row["inputs"]}
    outcome = _vary(model, captured, inputs, notes)
    row.update(notes if outcome in ("WRONG", "failed") else {"padded_reason": notes.get("reason", "")})
    return outcome


def _outcome(row: dict[str, Any]) -> str:
    """The worst that was found; that another image size or a padded mask is guarded has columns of its own."""
    found = [row["example"], *(row[variation] for variation in (*VARIATIONS, "padded"))]
    for outcome in ("WRONG", "failed"):
        if outcome in found:
            return outcome
    counted = [key for key in VARIATIONS if key != "size" or not _has_images(row["inputs"])]
    return "guarded" if any(row[key] == "guarded" for key in ("example", *counted)) else "general"


def _has_images(shapes: Any) -> bool:
    """Whether some input is an image or a film: it has height, width and channels, or patches of those."""
    if isinstance(shapes, dict):
        return any("pixel" in str(key) or _has_images(value) for key, value in shapes.items())
    is_nest = isinstance(shapes, list) and not all(isinstance(size, int) for size in shapes)
    return any(map(_has_images, shapes)) if is_nest else isinstance(shapes, list) and len(shapes) > 3


def _shapes(inputs: Any) -> Any:
    """The inputs with shapes in the place of tensors."""
    if isinstance(inputs, torch.Tensor):
        return list(inputs.shape)
    if isinstance(inputs, dict):
        return {key: _shapes(value) for key, value in inputs.items()}
    return [_shapes(value) for value in inputs] if isinstance(inputs, (list, tuple)) else inputs


def run_once(model: Any, inputs: Any) -> Any:
    """One call with its own copy of the inputs and a fixed seed."""
    torch.manual_seed(7)
    args, kwargs = copy.deepcopy(inputs)
    return model(*args, **kwargs)


def _best_ms(run: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(2):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return round(best * 1000, 2)


def first_line(error: BaseException) -> str:
    """The kind of an error and the first line that it says."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


def _note(row: dict[str, Any], error: Exception) -> None:
    """Keep what an error says, where in the user's code it is, and where it was raised."""
    row["reason"] = first_line(error)
    row["where"] = str(getattr(error, "where", "")).strip()
    row["why"] = str(getattr(error, "why", ""))
    frames = traceback.extract_tb(error.__traceback__)
    row["frames"] = [f"{Path(frame.filename).name}:{frame.lineno} {frame.line}" for frame in frames[-6:]]
