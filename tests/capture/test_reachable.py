"""What a program reaches comes in the order in which it was found, whatever the addresses and hashes of a process."""

from clew.capture.state.reachable import ReachableFunctions
from clew.capture.state.surroundings import Surroundings


def _reads() -> float:
    return sum((_FIRST, _SECOND, _THIRD))


_FIRST, _SECOND, _THIRD = 1.0, 2.0, 3.0


def test_classes_come_in_the_order_in_which_they_were_added() -> None:
    kinds = [type(f"Kind{number}", (), {"__module__": __name__}) for number in range(64)]
    reached = ReachableFunctions()
    for kind in kinds:
        reached.add_own_class(kind)
    assert [kind for kind in reached.classes() if kind is not object] == kinds


def test_surroundings_keep_the_order_of_their_classes() -> None:
    kinds = [type(f"Kind{number}", (), {"__module__": __name__}) for number in range(64)]
    around = Surroundings([_reads], reversed(kinds))
    assert list(around.program[1]) == kinds[::-1]
    assert [name for _, name, _ in around.found] == ["_FIRST", "_SECOND", "_THIRD"]
