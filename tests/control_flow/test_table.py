"""The benchmark of constructs: its cells are measured as the page says, and the page leaves no program out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import control_flow_page, control_flow_table
from benchmarks.control_flow_tools import TOOLS, measure
from tests.control_flow.register import CONSTRUCTS, all_constructs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "control_flow_table.md"


@pytest.mark.parametrize(
    ("tool", "outcome"), [("fx", "refused"), ("jit.trace", "wrong"), ("jit.script", "captured"), ("export", "refused")]
)
def test_a_branch_on_a_sum_in_other_tools(tool: str, outcome: str) -> None:
    row = measure(f"{tool}:return_untouched", seconds=60.0)
    assert (row["outcome"], row["construct"]) == (outcome, "early_return")


def test_the_last_row_of_a_name_counts(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    rows = [{"name": "fx:a", "outcome": "refused"}, {"name": "fx:a", "outcome": "wrong"}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert control_flow_table.read(file) == {"fx:a": rows[1]}
    assert control_flow_table.read(tmp_path / "missing") == {}


def test_cells_give_one_word_or_counts() -> None:
    names = [program.name for program in all_constructs("while")]
    rows = {f"fx:{name}": {"outcome": "refused"} for name in names}
    assert control_flow_page.summary(rows, "fx") == f"refused {len(names)}"
    line = next(line for line in control_flow_page.markdown(rows).splitlines() if line.startswith("| `while` |"))
    assert line.split(" | ")[6] == "refused" and line.split(" | ")[2] == "not measured"
    rows[f"fx:{names[0]}"] = {"outcome": "wrong"}
    line = next(line for line in control_flow_page.markdown(rows).splitlines() if line.startswith("| `while` |"))
    assert line.split(" | ")[6] == f"refused {len(names) - 1}, **wrong** 1"


def test_the_page_shows_what_was_measured() -> None:
    rows = control_flow_table.read(control_flow_table.RESULTS)
    assert set(rows) == {f"{tool}:{program.name}" for tool in TOOLS for program in all_constructs()}
    text = PAGE.read_text()
    assert all(f"| {title} |" in text for title in CONSTRUCTS.values())
    counts = control_flow_page.summary(rows, "clew")
    assert f"| Clew | {counts.split(',')[0].split()[1]} |" in text
