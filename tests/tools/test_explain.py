"""explain: reports what was captured, what it relies on, and why something is not captured."""

from __future__ import annotations

import io
import json
from typing import Any

import torch
from rich.console import Console

import clew
from clew.tools.explain import explain

from . import programs
from .programs import Net


def values(rows: list[dict[str, Any]], column: str) -> list[Any]:
    return [row[column] for row in rows]


def test_a_module() -> None:
    model = Net()
    found = explain(model, (torch.randn(3, 4),))
    assert found.captured and found.name == "Net" and found.refusal is None
    rows = {row["module"]: (row["class"], row["nodes"]) for row in found.modules}
    assert rows["layer"] == ("Linear", 1) and rows["norm"] == ("BatchNorm1d", 1) and rows["(top)"][0] == "Net"
    effects = [(row["effect"], row["call"]) for row in found.effects]
    assert effects == [("write", "add_"), ("write", "norm"), ("random", "drop")]
    assert "self.count.add_(1)" in found.effects[0]["line"]
    assert found.constants == [] and found.attempts == [] and found.opaque == []
    assert float(model.count) == 0


def test_nodes_by_the_path_of_nested_modules() -> None:
    found = explain(
        torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.ReLU())), (torch.ones(1, 2),)
    )
    assert values(found.modules, "module") == ["0", "1.0"]


def test_guards_have_kind_line_and_hint() -> None:
    found = explain(programs.branching, (torch.randn(2, 3),), control_flow="guard")
    sizes = {row["guard"]: row["line"] for row in found.guards if row["kind"] == "size"}
    assert "if x.shape[0] > 3:" in sizes["x.shape[0] <= 3"]
    assert values(found.hints, "guard") == [*sizes]
    assert "do without this size here" in found.hints[0]["what to do"]


def test_guards_on_values_and_arguments() -> None:
    def choose(x: torch.Tensor, flag: bool = True, name: str = "a", n: int = 3) -> torch.Tensor:
        if x.sum() > 0:
            x = x + 1
        return x if n > 2 else -x

    found = explain(choose, (torch.ones(2),), {"n": 3}, control_flow="guard")
    kinds = {row["guard"]: row["kind"] for row in found.guards}
    assert kinds["x.sum() > 0"] == "computed" and kinds["n > 2"] == "value" and "flag" not in kinds
    hints = {row["guard"]: row["what to do"] for row in found.hints}
    assert "where" in hints["x.sum() > 0"] and "do without this number" in hints["n > 2"]
    assert "flag" not in hints and "name == 'a'" not in hints  # which nobody reads


def test_constants_and_variables() -> None:
    found = explain(programs.scaled, (torch.ones(2, 3),))
    assert found.constants[0]["type"] == "f32[3]" and found.constants[0]["bytes"] == 12
    assert "x * SCALE" in found.constants[0]["line"]
    assert [row["what to do"] for row in found.hints if row["guard"].startswith("SCALE")] == ["pass it as an argument"]


def test_attempts() -> None:
    found = explain(programs.catching, (torch.ones(2, 2),), control_flow="guard")
    assert values(found.attempts, "call") == ["operator.matmul"]
    assert found.opaque == []
    assert explain(programs.catching, (torch.ones(2, 2),)).attempts == []  # the handler is a path of the graph


def test_opaque_calls() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    def program(x: torch.Tensor) -> torch.Tensor:
        return Twice.apply(x)

    found = explain(program, (torch.ones(2),))
    assert len(found.opaque) == 1 and "Twice.apply(x)" in found.opaque[0]["line"]
    assert found.opaque[0]["why"] == "it has a backward of its own"


def test_a_refused_program_is_a_report() -> None:
    found = explain(programs.refused, (torch.ones(2),))
    assert not found.captured
    assert found.refusal.what.startswith("functionalize inside the program")
    assert "torch.func.functionalize(torch.sin)(x)" in found.refusal.where and found.refusal.why and found.refusal.fixes
    assert "refused is not captured" in str(found) and "what to do" in str(found)


def test_a_refusal_always_says_what_to_do() -> None:
    x = torch.ones(2)
    x.note = "mine"
    found = explain(programs.scaled, (x,))
    assert found.refusal.fixes


def test_a_program_that_fails_is_a_report() -> None:
    found = explain(programs.failing, (torch.ones(2),))
    assert found.refusal.what.startswith("the program raised RuntimeError: shape")
    assert "x.reshape(-1, 5)" in found.refusal.where
    assert explain(programs.failing, ()).refusal.what.startswith("the example does not fit failing(x")


def test_what_was_captured_already() -> None:
    captured = clew.trace(programs.branching, args=(torch.ones(2, 3),))
    assert explain(captured).guards == explain(programs.branching, (torch.ones(2, 3),)).guards
    assert explain(clew.trace(programs.scaled), (torch.ones(3),)).captured


def test_text_data_terminal_and_notebook() -> None:
    found = explain(programs.branching, (torch.randn(2, 3),), control_flow="guard")
    data = json.loads(json.dumps(found.to_dict()))
    assert data["captured"] is True and data["nodes"] == found.nodes
    assert "guards: what the graph relies on:" in str(found) and "to make it more general:" in str(found)
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(found)
    assert "x.shape[0] <= 3" in console.export_text()
    assert found._repr_html_().startswith("<pre>") and "x.shape[0] &gt; 3" in found._repr_html_()
