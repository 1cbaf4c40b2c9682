"""What a capture has read of the world outside, and the guards that it is still so.

Each entry is a function of plain arguments that can be asked again, and its answer in the capture. The graph asks all
of them at its entrance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.capture.guards.notes import require
from clew.ir.graph import Graph

Question = Callable[..., Any]
OUTSIDE = (
    "environment", "environment_names", "file_contents", "file_status", "file_kind", "folder_contents", "process_fact",
    "logger_level", "logger_settings",
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
