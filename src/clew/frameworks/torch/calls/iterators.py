"""Programs that give an iterator over tensors: what the walk through it must not do, and must find unchanged.

See ``clew.capture.recording.outputs``. The modes of torch in which the values were computed belong to what must stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from clew.capture.recording import outputs
from clew.capture.recording.outputs import DrainedIterator
from clew.errors import CaptureError

if TYPE_CHECKING:
    from clew.frameworks.torch.run import Run


def hand_out(kind: str, items: list[Any], value: Any, watched: list[Any]) -> Any:
    """An iterator over values that were computed; it relies on the modes of torch staying what they are."""
    return outputs.hand_out(kind, items, value, watched, modes)


def modes() -> tuple[Any, ...]:
    """What decides how torch computes, besides arguments."""
    autocast = tuple((torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in ("cpu", "cuda"))
    return torch._C.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype(), autocast


def drain(run: Run, result: Any) -> Any:
    """The result of a program, an iterator walked to its end; raise if that does more than compute."""
    if type(result) not in outputs.KINDS.values():
        return result
    recorder = run.recorder
    with recorder.paused():
        before = torch.get_rng_state()
    stream = recorder.streams.expected
    found = outputs.drain(result)
    if found is None:
        return result
    with recorder.paused():
        draws = not before.equal(torch.get_rng_state()) or recorder.streams.expected is not stream
    if draws or run.rollback.has_saved() or run.state.entries or run.state.changed():
        raise _refused(found)
    found.watched = [*recorder.rollback.watched(), *(held.value for held in run.inputs.containers)]
    return found


def _refused(found: DrainedIterator) -> CaptureError:
    return CaptureError(
        f"the program gives a {found.kind} that does more than compute",
        why="the original would do so when the values are asked for, the graph when it is called",
        fixes=("give a list",),
    )
