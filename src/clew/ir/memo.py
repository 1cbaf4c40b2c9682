"""Answers that are asked for again and again: a dict that finds out by itself what it does not know yet.

A question that was asked before costs one lookup and no call. When there are too many answers all are forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Memo(dict[Question, Answer]):
    """``memo[question]`` is what ``function`` answers; ``most`` answers are kept."""

    __slots__ = ("_function", "_most")

    def __init__(self, function: Callable[[Question], Answer], most: int) -> None:
        self._function = function
        self._most = most

    def __missing__(self, question: Question) -> Answer:
        answer = self._function(question)
        if len(self) >= self._most:
            self.clear()
        self[question] = answer
        return answer
