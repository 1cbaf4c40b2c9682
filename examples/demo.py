"""Captures a real model and shows what one can do with the graph; this is what `make demo` runs.

A small ResNet comes in; its table and its code go out on the screen. Then every claim is checked: the capture computes
the same, an edit changes code and results together, and the graph's text reads back as the same graph. A check that
fails is printed as such and makes the program exit with status 1.
"""

import copy
import difflib
import sys
from collections.abc import Callable

import torch
from models.resnet import BasicBlock, ResNet, resnet18
from rich.console import Console
from rich.syntax import Syntax
from torch import Tensor, nn
from torch.nn import functional

import clew


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

    def code(self, text: str, language: str = "python") -> None:
        if self.console.is_terminal:
            self.console.print(Syntax(text.strip("\n"), language, theme="ansi_dark", background_color="default"))
        else:
            print(text.strip("\n"))


def agrees(one: Callable[[Tensor], Tensor], other: Callable[[Tensor], Tensor], size: int) -> bool:
    """Whether both give bit for bit the same for new random images, several batch sizes in turn."""
    batches = [torch.randn(count, 3, size, size) for count in (1, 2, 5)]
    with torch.no_grad():
        return all(torch.equal(one(batch), other(batch)) for batch in batches)


def with_gelu(model: nn.Module) -> nn.Module:
    """The same edit done by hand on the module: the reference for the edit of the graph."""
    changed = copy.deepcopy(model)
    for part in list(changed.modules()):
        if isinstance(getattr(part, "relu", None), nn.ReLU):
            part.relu = nn.GELU()
    return changed


def replace_relu_by_gelu(captured: clew.GraphModule) -> int:
    graph = captured.graph
    found = [node for node in graph.nodes if node.op == "call_module" and "relu" in node.target]
    for node in found:
        with graph.inserting_after(node):
            gelu = graph.call_function(functional.gelu, node.args)
        node.replace_all_uses_with(gelu)
        graph.erase_node(node)
    graph.lint()
    return len(found)


def show_capture(report: Report, model: nn.Module) -> clew.GraphModule:
    captured = clew.symbolic_trace(model)
    report.heading("captured = clew.symbolic_trace(model); captured.graph.print_tabular()")
    captured.graph.print_tabular()
    report.heading("captured.code: the same graph as Python")
    report.code(captured.code)
    report.heading("Does it compute the same, bit for bit, for new images?")
    report.check(f"small ResNet, {len(captured.graph.nodes)} nodes", agrees(model, captured, 32))
    large = resnet18(classes=10).eval()
    graph = clew.symbolic_trace(large)
    report.check(f"full-width ResNet-18, {len(graph.graph.nodes)} nodes", agrees(large, graph, 64))
    report.check("same parameters under the same names", set(captured.state_dict()) == set(model.state_dict()))
    return captured


def show_edit(report: Report, model: nn.Module, captured: clew.GraphModule) -> None:
    before = captured.code
    count = replace_relu_by_gelu(captured)
    report.heading(f"An edit: {count} calls of relu become gelu; the code follows by itself")
    changes = difflib.unified_diff(before.splitlines(), captured.code.splitlines(), "before", "after", "", "", 0, "")
    report.code("\n".join(list(changes)[:14]), "diff")
    reference = with_gelu(model)
    report.check("no relu is left in the code", "relu" not in captured.code)
    report.check("the edited graph equals the module edited by hand", agrees(reference, captured, 32))
    report.check("and differs from the original", not agrees(model, captured, 32))


def show_text(report: Report, model: nn.Module, captured: clew.GraphModule) -> None:
    text = clew.to_text(captured.graph)
    report.heading("clew.to_text(captured.graph): text that reads back (its first lines)")
    print("\n".join(text.splitlines()[:6]))
    read = clew.GraphModule(captured, clew.parse(text))
    report.check("text -> graph -> text is the same text", clew.to_text(read.graph) == text)
    report.check("the graph that was read computes the same", agrees(captured, read, 32))
    report.check("and as edited", agrees(with_gelu(model), read, 32))


def main() -> int:
    torch.manual_seed(0)
    report = Report()
    model = ResNet(BasicBlock, depths=(1, 1), width=16, classes=10).eval()
    captured = show_capture(report, model)
    show_edit(report, model, captured)
    show_text(report, model, captured)
    report.console.print()
    if report.failures:
        report.console.print(f"[bold red]{report.failures} checks failed")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
