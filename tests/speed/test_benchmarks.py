"""The harness of the benchmarks: tools take turns, a tool that fails says so, and the page tells what was reached."""

from __future__ import annotations

from benchmarks.figures import Contestant, Effort, Figure, contest, failure_of
from benchmarks.page import markdown
from benchmarks.targets import TARGETS, Target, value


def test_contestants_take_turns_and_a_failure_is_a_figure():
    order: list[str] = []

    def failing() -> None:
        raise ValueError("no such thing in /some/folder/of/mine.py\nmore")

    contestants = [
        Contestant("first", lambda: order.append("first")),
        Contestant("second", lambda: order.append("second"), turns=2),
        Contestant("third", failing),
    ]
    found = contest("capture", "program", contestants, Effort(turns=4, seconds=1e9))
    assert order == ["first", "second", "first", "second", "first", "second", "first", "first"]
    assert [one.turns for one in found] == [4, 2, 0]
    assert found[2].value is None and found[2].note == "ValueError: no such thing in mine.py"


def test_quick_functions_are_called_many_times_in_a_turn():
    calls: list[int] = []
    contest("replay", "program", [Contestant("one", lambda: calls.append(1))], Effort(turns=1, seconds=1e9, turn=0.02))
    assert len(calls) > 20


def test_errors_without_text_have_a_name():
    assert failure_of(KeyError()).startswith("KeyError")


def test_targets_tell_by_how_much_they_are_missed():
    figures = [Figure("replay", "program", "Clew", 3.0, "us")]
    read = value("replay", "program", "Clew")
    assert Target("at most 4", 4.0, read).verdict(figures) == ("3", "reached", "")
    assert Target("at most 2", 2.0, read, " us", "because").verdict(figures) == ("3 us", "missed by 50%", "because")
    assert Target("at least 6", 6.0, read, at_least=True).verdict(figures)[1] == "missed by 100%"
    assert Target("other", 1.0, value("replay", "other", "Clew")).verdict(figures)[1] == "not measured"


def test_the_page_has_tables_targets_and_failures():
    figures = [
        Figure("replay", "MLP of 50 layers", "by hand", 100.0, "us", turns=5),
        Figure("replay", "MLP of 50 layers", "Clew", 103.0, "us", turns=5),
        Figure("replay", "MLP of 50 layers", "torch.fx", None, "us", "TypeError: no"),
        Figure("graph work", "build, 1,000", "clew", 2.0, "us per node"),
        Figure("graph work", "build, 1,000", "torch.fx", 8.0, "us per node"),
    ]
    page = markdown({"processor": "a good one"}, figures)
    assert (
        "| Clew | 1.03 |" in page
        and "| torch.fx | fails |" in page
        and "torch.fx on MLP of 50 layers: TypeError" in page
    )
    assert "| build | 2 / 8 / 4.0x |" in page and "| processor | a good one |" in page
    assert page.count("| reached |") == 2 and page.count("| not measured |") == len(TARGETS) - 2
