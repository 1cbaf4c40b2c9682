"""Classes whose members appear as literals in the graphs of the suite."""

import enum


class Colour(enum.Enum):
    """Two members, one with a number and one with a text."""

    RED = 1
    BLUE = "b"
