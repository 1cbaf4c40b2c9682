"""The best of Clew in a minute; this is what `make demo` runs.

A BERT of Hugging Face's transformers, small and with random weights, comes in. It is captured from one example, read,
edited, verified, drawn, saved, loaded in a process without transformers, and written as plain Python. Each claim is
checked; one that fails is printed as such, and the exit status is 1.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.syntax import Syntax
from transformers import BertConfig, BertModel

import clew

ELSEWHERE = """
import sys
sys.modules["transformers"] = None  # this process cannot import it
import torch, clew
ids, wanted = torch.load(sys.argv[2])
print(torch.equal(clew.load(sys.argv[1])(input_ids=ids).last_hidden_state, wanted))
"""
WITHOUT_CLEW = """
import sys
sys.modules["transformers"] = sys.modules["clew"] = None
sys.path.insert(0, sys.argv[1])
import torch, model
ids, wanted = torch.load(sys.argv[2])
print(torch.equal(model.load()(input_ids=ids).last_hidden_state, wanted))
"""


class Report:
    """Prints headings and checks, and remembers whether any check failed."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self.failures = 0

    def heading(self, text: str) -> None:
        self.console.print()
        self.console.rule(f"[bold]{text}", align="left")

    def check(self, claim: str, holds: bool) -> None:
        self.failures += not holds
        self.console.print("[green]  ok  [/]" if holds else "[bold red]FAILED[/]", claim)

    def code(self, text: str) -> None:
        if self.console.is_terminal:
            self.console.print(Syntax(text.strip("\n"), "python", theme="ansi_dark", background_color="default"))
        else:
            print(text.strip("\n"))


def small_bert() -> BertModel:
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    return BertModel(BertConfig(vocab_size=500, **sizes)).eval()


def runs(script: str, *arguments: object) -> bool:
    """Whether a script of another process prints that its result is the same."""
    found = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True)
    return found.stdout.strip() == "True"


def capture(report: Report, model: BertModel, ids: torch.Tensor) -> Any:
    report.heading("1. Capture: one example, any batch and length")
    start = time.perf_counter()
    captured = clew.trace(model, kwargs={"input_ids": ids})
    seconds = time.perf_counter() - start
    report.console.print(f"{len(captured.graph.nodes)} nodes in {seconds:.1f} s. From the attention:")
    lines = captured.code.splitlines()
    first = next(place for place, line in enumerate(lines) if "attention.self.query" in line)
    report.code("\n".join(line[4:] for line in lines[first : first + 8]))
    other = torch.randint(0, 500, (5, 19))
    with torch.no_grad():
        same = torch.equal(captured(input_ids=other).last_hidden_state, model(input_ids=other).last_hidden_state)
    report.check("5 sentences of 19 words instead of 2 of 8: bit for bit the same", same)
    try:
        captured(input_ids=other, attention_mask=torch.ones(5, 19))
        report.check("an argument that the example did not have is refused", False)
    except clew.GuardError as error:
        told = error.what.partition(", but")[0]
        report.check(f"an argument that the example did not have is refused: {told}", True)
    return captured


def verify(report: Report, captured: Any, model: BertModel, ids: torch.Tensor) -> None:
    report.heading("2. Verify: values, structure, effects, gradients")
    found = clew.verify(captured, model, ((), {"input_ids": ids}))
    report.console.print(str(found))
    report.check("no case is wrong", found.ok)


def edit(report: Report, captured: Any, ids: torch.Tensor) -> None:
    report.heading("3. Edit: the graph changes, the code follows")
    with torch.no_grad():
        wanted = captured(input_ids=ids).last_hidden_state
        found = captured.graph.find_nodes(op="call_function", target=torch.nn.functional.gelu)
        for node in found:
            node.target = torch.nn.functional.silu
        changed = captured(input_ids=ids).last_hidden_state
    report.console.print(f"gelu becomes silu in {len(found)} places, each from the line `{found[0].source.text}`")
    report.check("results change with the graph", not torch.equal(wanted, changed))
    for node in found:
        node.target = torch.nn.functional.gelu
    with torch.no_grad():
        report.check("and change back", torch.equal(captured(input_ids=ids).last_hidden_state, wanted))


def keep(report: Report, captured: Any, model: BertModel, ids: torch.Tensor, folder: Path) -> None:
    report.heading("4. See it, keep it, ship it")
    captured.view(folder / "bert.html")
    report.check(f"a picture in one file: {(folder / 'bert.html').stat().st_size >> 10} kB of HTML", True)
    with torch.no_grad():
        torch.save((ids, model(input_ids=ids).last_hidden_state), folder / "wanted.pt")
    clew.save(captured, folder / "bert.clew")
    same = runs(ELSEWHERE, folder / "bert.clew", folder / "wanted.pt")
    report.check("saved, and loaded in a process without transformers: the same", same)
    captured.to_python(folder / "plain")
    same = runs(WITHOUT_CLEW, folder / "plain", folder / "wanted.pt")
    report.check("written as plain Python, and run without Clew: the same", same)


def main() -> int:
    report, model = Report(), small_bert()
    ids = torch.randint(0, 500, (2, 8))
    captured = capture(report, model, ids)
    verify(report, captured, model, ids)
    edit(report, captured, ids)
    with tempfile.TemporaryDirectory() as folder:
        keep(report, captured, model, ids, Path(folder))
    report.console.print()
    report.console.print("All of it holds." if not report.failures else f"{report.failures} checks failed.")
    return bool(report.failures)


if __name__ == "__main__":
    sys.exit(main())
