"""What the tests of the zoo ask of a graph and of a module, in words that fit torch.fx and clew alike.

Graphs become lists of rows of plain text, so that graphs of two libraries can be compared; results, gradients and
state become nests of tensors, which `same` compares bit for bit and whose first difference it names.
"""

import copy
import operator
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

Row = tuple[str, str, Any, str, str]
PLAIN_OPERATORS: dict[Any, Any] = {
    operator.iadd: operator.add,
    operator.isub: operator.sub,
    operator.imul: operator.mul,
    operator.itruediv: operator.truediv,
}


def is_node(value: object) -> bool:
    return hasattr(value, "all_input_nodes") and hasattr(value, "op")


def spell(value: Any, places: Mapping[Any, int] | None = None) -> str:
    """The value as text that does not depend on whose node or whose immutable list it is.

    Nodes are called by their names, or by their places where these are given.
    """
    if is_node(value):
        return f"%{value.name if places is None else places[value]}"
    if isinstance(value, slice):
        return f"slice{spell((value.start, value.stop, value.step), places)}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {spell(item, places)}" for key, item in value.items()) + "}"
    if isinstance(value, tuple):
        return "(" + "".join(f"{spell(item, places)}, " for item in value) + ")"
    if isinstance(value, list):
        return "[" + ", ".join(spell(item, places) for item in value) + "]"
    return f"{type(value).__name__} {value!r}"


def rows(graph: Any) -> list[Row]:
    """One row per node, in order. Targets stay objects: a function must be the very same function."""
    return [(node.op, node.name, node.target, spell(node.args), spell(call_kwargs(node))) for node in graph.nodes]


def call_kwargs(node: Any) -> dict[str, Any]:
    """The keyword arguments of a call; those of a placeholder tell how it is passed, which torch.fx does not keep."""
    return {} if node.op == "placeholder" else node.kwargs


def without_in_place(graph: Any) -> list[Row]:
    """The rows as torch.fx would have them, which writes `y += x` down as `y + x` and so forgets the effect on y.

    Such a node has another name, and shifts the numbers of its namesakes, so the names of additions and the like are
    left out and nodes are referred to by their place.
    """
    places = {node: index for index, node in enumerate(graph.nodes)}
    listed = []
    for node in graph.nodes:
        target = PLAIN_OPERATORS.get(node.target, node.target)
        name = "" if target in PLAIN_OPERATORS.values() else node.name
        listed.append((node.op, name, target, spell(node.args, places), spell(call_kwargs(node), places)))
    return listed


def annotations(graph: Any) -> list[tuple[str, Any]]:
    return [(node.name, node.type) for node in graph.nodes]


def run(module: Any, inputs: tuple[Any, ...], seed: int = 7) -> Any:
    """Call with copies of the inputs, drawing random numbers from a fixed seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return module(*copy.deepcopy(inputs))


def same(left: Any, right: Any, where: str = "result") -> None:
    """Assert that two nests have the same structure and types, and equal tensors in the same places."""
    assert type(left) is type(right), f"{where}: {type(left)} against {type(right)}"
    if isinstance(left, Tensor):
        assert left.dtype == right.dtype and left.shape == right.shape, f"{where}: another dtype or shape"
        assert torch.equal(left, right), f"{where}: values differ by up to {(left - right).abs().max()}"
    elif isinstance(left, Mapping):
        assert list(left) == list(right), f"{where}: keys {list(left)} against {list(right)}"
        for key in left:
            same(left[key], right[key], f"{where}[{key!r}]")
    elif isinstance(left, list | tuple):
        assert len(left) == len(right), f"{where}: {len(left)} items against {len(right)}"
        for index, (one, other) in enumerate(zip(left, right, strict=True)):
            same(one, other, f"{where}[{index}]")
    else:
        assert left == right, f"{where}: {left!r} against {right!r}"


def tensors(nest: Any) -> Iterator[Tensor]:
    if isinstance(nest, Tensor):
        yield nest
    elif isinstance(nest, Mapping):
        for item in nest.values():
            yield from tensors(item)
    elif isinstance(nest, list | tuple):
        for item in nest:
            yield from tensors(item)


def gradients(module: nn.Module, inputs: tuple[Any, ...]) -> dict[str, Any]:
    """Gradients of the summed squares of all results, by parameter name and for each floating point input."""
    inputs = copy.deepcopy(inputs)
    leaves = [leaf for leaf in tensors(inputs) if leaf.is_floating_point()]
    for leaf in leaves:
        leaf.requires_grad_()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        results = [result for result in tensors(module(*inputs)) if result.requires_grad]
    torch.stack([result.square().sum() for result in results]).sum().backward()
    found = {name: parameter.grad for name, parameter in module.named_parameters() if parameter.grad is not None}
    return {"parameters": dict(sorted(found.items())), "inputs": [leaf.grad for leaf in leaves]}


def attributes(module: nn.Module) -> dict[str, list[str]]:
    """The names that each module inside keeps, to see whether something was added or taken away."""
    return {path: sorted(vars(part)) for path, part in module.named_modules()}


def state(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in sorted(module.state_dict().items())}
