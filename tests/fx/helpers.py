"""Small readers of graphs and a few modules that several files of the suite use."""

from typing import Any

import torch


def opcodes(graph: Any) -> list[str]:
    """The opcodes of the nodes, in order."""
    return [node.op for node in graph.nodes]


def targets(graph: Any) -> list[Any]:
    """The targets of the nodes, in order."""
    return [node.target for node in graph.nodes]


def names(graph: Any) -> list[str]:
    """The names of the nodes, in order."""
    return [node.name for node in graph.nodes]


def of(graph: Any, op: str) -> list[Any]:
    """The nodes with that opcode, in order."""
    return [node for node in graph.nodes if node.op == op]


def only(graph: Any, op: str) -> Any:
    """The one node with that opcode."""
    (node,) = of(graph, op)
    return node


def node_called(graph: Any, name: str) -> Any:
    """The one node with that name."""
    (node,) = [node for node in graph.nodes if node.name == name]
    return node


def traced_same(fx: Any, root: Any, *inputs: Any, **options: Any) -> Any:
    """Trace ``root``, lint, check that it computes what ``root`` computes, and give the traced module back."""
    traced = fx.symbolic_trace(root, **options)
    traced.graph.lint()
    torch.testing.assert_close(traced(*inputs), root(*inputs))
    return traced


class Inner(torch.nn.Module):
    """A module of the user's own, which tracing goes through."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.scale = torch.nn.Parameter(torch.full((4,), 2.0))
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x):
        return self.linear(x) * self.scale + self.shift


class Outer(torch.nn.Module):
    """A module with a traced-through child, a leaf and a Sequential."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.norm = torch.nn.LayerNorm(4)
        self.tail = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())

    def forward(self, x):
        return self.tail(self.norm(self.inner(x)).relu())


class LinearOnly(torch.nn.Module):
    """The smallest module with state."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.linear(x)
