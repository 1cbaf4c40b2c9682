"""What a capture has read of the world outside, and the guards that it is still so.

Each entry is a function of plain arguments that can be asked again, and its answer in the capture. The graph asks all
of them at its entrance.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from clew.capture.bytecode.call_sites import original_of
from clew.capture.bytecode.instructions import called_at, instructions_at
from clew.capture.guards.notes import require
from clew.ir.graph import Graph
from clew.ir.node import Node

if TYPE_CHECKING:
    from clew.capture.recording.recorder import Recorder

Question = Callable[..., Any]
OUTSIDE = (
    "environment", "environment_has", "environment_names", "file_contents", "file_status", "file_kind",
    "folder_contents", "process_fact", "logger_level", "logger_settings",
)  # fmt: skip
"""The names of the questions that can be asked again."""


class OutsideReads:
    """The questions that the runs of one program have asked."""

    def __init__(self) -> None:
        self._answers: dict[tuple[Question, tuple[Any, ...]], tuple[Any, str]] = {}

    def note(self, question: Question, args: tuple[Any, ...], text: str) -> None:
        """The program has asked; the answer is that of now. ``text`` says in the user's words what is guarded; one that
        ends with ``==`` is completed by the answer."""
        if (question, args) not in self._answers:
            answer = question(*args)
            self._answers[question, args] = (answer, f"{text} {answer!r}" if text.endswith("==") else text)

    def add(self, others: OutsideReads) -> None:
        """What another run has asked counts too."""
        self._answers = others._answers | self._answers

    def write(self, graph: Graph) -> None:
        """Write the guards where the graph inserts nodes now."""
        for (question, args), (answer, text) in sorted(self._answers.items(), key=lambda entry: entry[1][1]):
            graph.call_function(require, (graph.call_function(question, args), answer, text))


# ---- texts of which the program makes numbers ------------------------------------------------------------------------


class NumberText(str):
    """A text from outside that goes into ``int`` or ``float``, and to nobody else: the graph reads it again."""

    recorder: Recorder
    place: Node
    rely: Callable[[], None]
    """Guards that the text is what it was."""

    @classmethod
    def of(cls, text: str, recorder: Recorder, place: Node, rely: Callable[[], None]) -> NumberText:
        """The text of the example, the node that reads it, and what to do if it is looked at otherwise."""
        made = cls(text)
        made.recorder, made.place, made.rely = recorder, place, rely
        return made

    def __float__(self) -> float:
        self.rely()
        return float(self[:])

    def __int__(self) -> int:
        self.rely()
        return int(self[:])

    def converted(self, kind: type) -> Any:
        """The number that is made of it, which the graph makes too."""
        try:
            value = kind(self[:])
        except ValueError:
            self.rely()
            raise
        return self.recorder.result(value, self.recorder.create(kind, (self.place,)))


def goes_into_number(frame: FrameType | None) -> bool:
    """Whether a frame of the program's hands what it is given next to ``int`` or ``float``, and to nobody else."""
    if frame is None:
        return False
    steps, place = instructions_at(frame.f_code, frame.f_lasti)
    following = steps[place + 1]
    if following.opname != "CALL" or following.arg != 1:
        return False
    name = called_at(original_of(frame.f_code), following.offset)
    return name in (("int",), ("float",)) and name[0] not in frame.f_globals and name[0] not in frame.f_locals
