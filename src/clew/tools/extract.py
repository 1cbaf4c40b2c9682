"""Parts of captured programs as callables of their own: ``extract`` and ``feature_extractor``.

In come a captured program and addresses: paths of modules (their values, in the first call or, as ``(path, 2)``, in
another), names of inputs, of nodes or of the user's variables, or nodes. Out comes a program of the same kind that
computes these values and nothing else. It shares parameters, buffers and leaf modules with the whole, under the same
names; it has the guards of the whole as far as it can check them, and lists the others as ``assumed``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clew.capture.options import Options, given, static_names
from clew.errors import GraphError, a_or_an
from clew.ir.arguments import references
from clew.ir.graph import Graph
from clew.ir.module_calls import ModuleCall, Unheld, all_calls, as_returned, calls_at, held_in, nearest, path_pattern
from clew.ir.node import Node
from clew.passes.extract import Part, extract_part
from clew.runtime.choose import capture_with, framework_of
from clew.runtime.function import HoldsGraph, free_name

Address = str | tuple[str, int] | Node


def extract(captured: Any, outputs: Any, inputs: Sequence[Address] | None = None, *, name: str | None = None) -> Any:
    """A part of a captured program: what computes ``outputs``, from ``inputs`` if they are given.

    ``outputs`` is one address, whose value the part returns, a list (a tuple is returned; a pattern stands for all
    that fit) or a dict of them. ``inputs`` become the parameters of the part, in this order; without them it is called
    as the whole is.
    """
    if not isinstance(captured, HoldsGraph):
        raise GraphError(
            f"{a_or_an(captured)} has no graph to take a part of", fixes=["capture it first: clew.trace(model, args)"]
        )
    found = _Addresses(captured.graph)
    results = found.nest(outputs)
    given = None if inputs is None else found.inputs(inputs)
    part = extract_part(captured.graph, _root_of(captured), results, found.ends, given)
    return part_of(captured, part, name or _name_of(captured))


def feature_extractor(
    model: Any,
    features: Sequence[str] | Mapping[str, Address],
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    """A module that is called as ``model`` is and returns a dict of what its modules at these paths return.

    ``model`` is captured on the example, with the options of ``clew.trace``, unless it is captured already. A pattern
    such as ``layer*`` stands for all paths that fit.
    """
    captured = model if isinstance(model, HoldsGraph) else _captured(model, *given(args, kwargs), options)
    if isinstance(features, str):
        features = [features]
    wanted = dict(features) if isinstance(features, Mapping) else {}
    for one in () if isinstance(features, Mapping) else features:
        calls = calls_at(captured.graph, one) if _is_pattern(one) else ()
        wanted.update({call.path: call.path for call in calls} or {one: one})
    return extract(captured, wanted)


def _captured(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: dict[str, Any]) -> Any:
    """What ``clew.trace`` gives."""
    asked = Options.of(static=static_names(model, options.pop("static", ())), **options)
    framework = framework_of(model, args, kwargs)
    name = getattr(model, "__name__", type(model).__name__)
    return capture_with(framework, model, args, kwargs, asked, name)[0]


def _is_pattern(address: Address) -> bool:
    return isinstance(address, str) and "*" in address


def _root_of(captured: Any) -> Any:
    return captured.graph.owning_module


def _name_of(captured: Any) -> str:
    return str(getattr(captured, "__name__", None) or type(captured).__name__)


def part_of(captured: Any, part: Part, name: str) -> Any:
    """A part as a program of the kind of the one that it was cut out of."""
    made = captured._part(part.graph, name)
    vars(made)["assumed"] = part.assumed
    return made


# ---- addresses -------------------------------------------------------------------------------------------------------


class _Addresses:
    """Finds the nodes that addresses mean; ``ends`` has the places behind which their values are meant."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.places = {node: place for place, node in enumerate(graph.nodes)}
        self.ends: dict[Node, int] = {}

    def nest(self, outputs: Any) -> Any:
        """The nodes of what is wanted, in the containers in which it is wanted."""
        if isinstance(outputs, Mapping):
            return {key: self.value(one) for key, one in outputs.items()}
        if isinstance(outputs, (str, Node)) or _is_numbered(outputs):
            return self.value(outputs)
        if not isinstance(outputs, Sequence) or not outputs:
            raise GraphError(
                f"outputs is {a_or_an(outputs)}, which names nothing", fixes=["give paths: outputs=['layer1', 'head']"]
            )
        found: list[Any] = []
        for one in outputs:
            found += [self._of_call(call) for call in self._fitting(one)] if _is_pattern(one) else [self.value(one)]
        return tuple(found)

    def inputs(self, addresses: Sequence[Address]) -> dict[str, Node]:
        """The nodes that become parameters, by their names."""
        found: dict[str, Node] = {}
        for one in [addresses] if isinstance(addresses, (str, Node)) else addresses:
            nodes = references(self.value(one))
            wanted = one.name if isinstance(one, Node) else one[0] if isinstance(one, tuple) else one
            for place, node in enumerate(nodes):
                name = wanted if len(nodes) == 1 else f"{wanted}_{place}"
                found[free_name(name, found.__contains__)] = node
        return found

    def value(self, address: Address) -> Any:
        """The nodes of one address."""
        if isinstance(address, Node):
            if address.graph is not self.graph:
                raise GraphError(f"the node {address.name!r} is of another graph, or inside of control flow")
            return address
        path, number = address if isinstance(address, tuple) else (address, None)
        named = None if number is not None else self._named(path)
        if named is not None:
            return named
        return self._of_call(self._fitting(path, number or 1)[0])

    def _named(self, name: str) -> Node | None:
        """An input by its parameter, or else what no module is called: a node, or a variable of the user's."""
        for node in self.graph.find_nodes(op="placeholder"):
            if str(node.target).lstrip("*") == name:
                return node
        wanted = path_pattern(name)
        if any(wanted.fullmatch(call.path) for call in all_calls(self.graph)):
            return None
        found = [node for node in self.graph.find(name=name) if node.op != "output"]
        exact = [node for node in found if node.name == name] or found
        if len(exact) > 1:
            names = ", ".join(node.name for node in exact[:6])
            raise GraphError(f"{name!r} is the name of {len(exact)} values: {names}", fixes=["name one of the nodes"])
        return exact[0] if exact and exact[0].graph is self.graph else None

    def _fitting(self, path: str, number: int | None = None) -> list[ModuleCall]:
        calls = calls_at(self.graph, path, number)
        for call in calls:
            if call.graph is not self.graph:
                raise GraphError(
                    f"the module {call.path!r} is called inside of a branch or a loop",
                    why="its value is not there whenever the program runs, or is there several times",
                    fixes=[
                        "take the value of a module around the branch or loop",
                        "keep a module around it as one call: clew.trace(..., leaves=path)",
                        'rely on the way that the example went: clew.trace(..., control_flow="guard")',
                    ],
                )
        return calls

    def _of_call(self, call: ModuleCall) -> Any:
        unheld = [leaf for leaf in held_in((call.result,)) if isinstance(leaf, Unheld)]
        if unheld:
            raise GraphError(
                f"the module {call.path!r} returns a {unheld[0].kind}, of which the graph has no node",
                fixes=["take the value of a module inside of it", nearest(self._paths(call.path), call.path)],
            )
        last = max((place for node, place in self.places.items() if call.contains(node)), default=0)
        for node in call.results:
            self.ends[node] = max(self.ends.get(node, 0), 1 + max(last, self.places[node]))
        return as_returned(call.result)

    def _paths(self, path: str) -> list[str]:
        return [call.path for call in all_calls(self.graph) if call.path.startswith(f"{path}.")]


def _is_numbered(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and type(value[1]) is int
