"""The nodes and blocks of a TorchScript graph as nodes and nested graphs of Clew.

``Blocks`` walks one block and keeps what each of its values is here: a node, a constant, a literal nest of these, or
the path of a submodule. A block inside a branch or loop becomes a graph of its own; what it uses of the blocks around
it is handed to it as operands, in the order in which it is first used.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from clew.capture.example.slots import ROOT, assign
from clew.io import torchscript_values as values
from clew.io.torchscript_facts import (
    changes_lists,
    check_text,
    constant_of,
    kind_of,
    outer_values,
    source_of,
    written_paths,
)
from clew.io.torchscript_ops import call_of, unknown
from clew.ir.arguments import leaves
from clew.ir.control_flow import cond, for_loop, while_loop
from clew.ir.graph import Graph
from clew.ir.node import Node

_FOREVER = 2**63 - 1
_FOLDED = frozenset({operator.is_, operator.is_not, operator.eq, operator.ne, operator.not_, operator.lt, operator.gt})
"""What is computed at once where all is known: questions about defaults and constants."""


class _Path(str):
    """The value of a submodule: where it is, seen from the root."""


class Blocks:
    """One block on its way into ``graph``. Bodies share the constants and the list of attributes of the outermost."""

    def __init__(self, graph: Graph, source: Any, outer: Blocks | None = None) -> None:
        self.graph = graph
        self.constants: dict[str, torch.Tensor] = {} if outer is None else outer.constants
        self.attributes: dict[str, None] = {} if outer is None else outer.attributes
        self.written: frozenset[str] = written_paths(source) if outer is None else outer.written
        self.changes_lists: bool = changes_lists(source) if outer is None else outer.changes_lists
        self._values: dict[str, Any] = {}

    # ---- values --------------------------------------------------------------------------------------------------

    def bind(self, value: Any, meaning: Any) -> None:
        """From now on a value of TorchScript is this."""
        self._values[value.debugName()] = meaning

    def bind_module(self, value: Any) -> None:
        """The module itself comes in as this value."""
        self.bind(value, _Path(""))

    def value(self, value: Any) -> Any:
        """What a value is here."""
        return self._values[value.debugName()]

    def has(self, value: Any) -> bool:
        """Whether the value is of this block."""
        return value.debugName() in self._values

    def run(self, block: Any) -> None:
        """Convert the nodes of a block in order."""
        for node in block.nodes():
            self._convert(node)

    def _convert(self, node: Any) -> None:
        kind = node.kind()
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, node)
            return
        text = node.schema()
        if text == "(no schema)":
            raise unknown(kind)
        schema = torch._C.parse_schema(text)
        given = [self.value(value) for value in node.inputs()]
        kinds = [kind_of(value.type()) for value in node.inputs()]
        if schema.name in ("aten::format", "aten::str"):
            check_text(node, kinds)
        call = call_of(schema, given, kinds)
        if call.target in _FOLDED and not any(isinstance(leaf, Node) for leaf in leaves(call.args)):
            self.bind(node.output(), call.target(*call.args))
            return
        made = self._create(node, call.op, call.target, call.args, dict(call.kwargs))
        if schema.name in ("aten::keys", "aten::values", "aten::items"):
            made = self._create(node, "call_function", list, (made,), {})
        self._bind_outputs(node, made)

    def _bind_outputs(self, node: Any, made: Node) -> None:
        outputs = list(node.outputs())
        if len(outputs) == 1:
            self.bind(outputs[0], made)
            return
        for place, output in enumerate(outputs):
            self.bind(output, self._create(output.node(), "call_function", operator.getitem, (made, place), {}, output))

    def _create(
        self, origin: Any, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any = None
    ) -> Node:
        outputs = list(origin.outputs()) if output is None else [output]
        name = outputs[0].debugName().partition(".")[0] if len(outputs) == 1 else ""
        made = self.graph.create_node(op, target, args, kwargs, name if name.isidentifier() else None)
        object.__setattr__(made, "source", source_of(origin))
        return made

    # ---- single kinds of nodes -----------------------------------------------------------------------------------

    def constant(self, node: Any) -> None:
        """A number, a text, None, or a tensor, which becomes an attribute of the root."""
        output = node.output()
        value = None if output.type().kind() == "NoneType" else output.toIValue()
        if any(isinstance(leaf, torch.Tensor) for leaf in leaves(value)):
            value = self._with_attributes(value)
        self.bind(output, value)

    def _with_attributes(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            path = next((known for known, tensor in self.constants.items() if tensor is value), None)
            path = f"_constant{len(self.constants)}" if path is None else path
            self.constants[path] = value
            return self.graph.create_node("get_attr", path, (), {})
        if isinstance(value, dict):
            return {key: self._with_attributes(item) for key, item in value.items()}
        return type(value)(map(self._with_attributes, value)) if isinstance(value, (list, tuple)) else value

    def attribute(self, node: Any) -> None:
        """A submodule, or an attribute of one."""
        output = node.output()
        owner = self.value(node.input())
        if not isinstance(owner, _Path):
            raise unknown(node.kind(), f"it reads the attribute {node.s('name')} of an object that is no module")
        path = f"{owner}.{node.s('name')}" if owner else node.s("name")
        if output.type().kind() == "ClassType" and output.type().annotation_str.startswith("__torch__."):
            self.bind(output, _Path(path))
            return
        self.attributes[path] = None
        if path in self.written:
            root = self.graph.create_node("get_attr", ROOT, (), {})
            self.bind(output, self._create(node, "call_function", values.read_attribute, (root, path), {}))
        else:
            self.bind(output, self._create(node, "get_attr", path, (), {}))

    def set_attribute(self, node: Any) -> None:
        """An attribute of a module is set."""
        owner, value = node.inputs()
        holder = self.value(owner)
        if not isinstance(holder, _Path):
            raise unknown(node.kind(), f"it sets the attribute {node.s('name')} of an object that is no module")
        path = f"{holder}.{node.s('name')}" if holder else node.s("name")
        root = self.graph.create_node("get_attr", ROOT, (), {})
        self._create(node, "call_function", assign, (root, path, self.value(value)), {})

    def make_list(self, node: Any) -> None:
        """A list: a literal, unless the program changes lists; then an object of its own."""
        items = [self.value(value) for value in node.inputs()]
        if self.changes_lists:
            self.bind(node.output(), self._create(node, "call_function", list, (tuple(items),), {}))
        else:
            self.bind(node.output(), items)

    def make_tuple(self, node: Any) -> None:
        """A tuple, always a literal."""
        if node.output().type().annotation_str.startswith("__torch__."):
            raise unknown(node.kind(), "it makes a named tuple")
        self.bind(node.output(), tuple(self.value(value) for value in node.inputs()))

    def make_dict(self, node: Any) -> None:
        """A dict, from keys and values in turn."""
        given = [self.value(value) for value in node.inputs()]
        pairs = tuple(zip(given[::2], given[1::2], strict=True))
        self.bind(node.output(), self._create(node, "call_function", dict, (pairs,), {}))

    def unpack(self, node: Any) -> None:
        """The items of a tuple or list become values of their own."""
        outputs, found = list(node.outputs()), self.value(node.input())
        if isinstance(found, (tuple, list)) and not isinstance(found, Node):
            for output, item in zip(outputs, found, strict=True):
                self.bind(output, item)
            return
        if node.kind() == "prim::ListUnpack":
            found = self.graph.call_function(values.unpacked, (found, len(outputs)))
        for place, output in enumerate(outputs):
            self.bind(output, self._create(node, "call_function", operator.getitem, (found, place), {}, output))

    def tuple_item(self, node: Any) -> None:
        """One item of a tuple."""
        found, place = (self.value(value) for value in node.inputs())
        if isinstance(found, tuple) and type(place) is int:
            self.bind(node.output(), found[place])
        else:
            self.bind(node.output(), self._create(node, "call_function", operator.getitem, (found, place), {}))

    def same(self, node: Any) -> None:
        """A value under another type."""
        self.bind(node.output(), self.value(node.input()))

    def open_value(self, node: Any) -> None:
        """A value that nobody will look at."""
        self.bind(node.output(), self.graph.call_function(values.uninitialized, ()))

    def error(self, node: Any) -> None:
        """The program raises."""
        self._create(node, "call_function", values.raise_error, tuple(self.value(value) for value in node.inputs()), {})

    def text_out(self, node: Any) -> None:
        """The program prints."""
        self._create(node, "call_function", print, tuple(self.value(value) for value in node.inputs()), {})

    # ---- branches and loops --------------------------------------------------------------------------------------

    def branch(self, node: Any) -> None:
        """An ``if`` with both its sides."""
        blocks = list(node.blocks())
        decided = self.value(node.input())
        if type(decided) is bool:
            self._inline(node, blocks[0 if decided else 1])
            return
        used = self._used(blocks)
        bodies = [self._body(block, used) for block in blocks]
        sides = [body.results(block) for body, block in zip(bodies, blocks, strict=True)]
        for body, mine, theirs in zip(bodies, sides, reversed(sides), strict=True):
            fitted = [_fitted(body.graph, one, other) for one, other in zip(mine, theirs, strict=True)]
            body.graph.output(fitted[0] if len(fitted) == 1 else tuple(fitted) if fitted else None)
        args = (decided, *(body.graph for body in bodies), tuple(used.values()))
        made = self._create(node, "call_function", cond, args, {})
        self._bind_outputs(node, made)

    def _inline(self, node: Any, block: Any) -> None:
        """The only side of a branch that can be taken."""
        self.run(block)
        for output, result in zip(node.outputs(), self.results(block), strict=True):
            self.bind(output, result)

    def results(self, block: Any) -> list[Any]:
        """What a block gives to the node that it belongs to."""
        return [self.value(value) for value in block.outputs()]

    def _used(self, blocks: list[Any]) -> dict[str, Any]:
        """The values of this block and those around it that are computed and that inner blocks use."""
        found: dict[str, Any] = {}
        for block in blocks:
            for value in outer_values(block):
                meaning = self._values.get(value)
                if any(isinstance(leaf, Node) for leaf in leaves(meaning)):
                    found[value] = meaning
        return found

    def _body(self, block: Any, used: dict[str, Any], first: tuple[Any, ...] = (), flag: str = "") -> Blocks:
        """A block as a graph: first the values that it is given anew at each round, then what it uses from outside."""
        body = Blocks(Graph(), block, self)
        body._values.update(self._values)
        if flag:
            body._input(flag)
        for value in first:
            body.bind(value, body._input(value.debugName()))
        for value in used:
            body._values[value] = body._input(value)
        body.run(block)
        return body

    def _input(self, name: str) -> Node:
        stem = name.partition(".")[0]
        return self.graph.placeholder(stem if stem.isidentifier() else "value")

    def loop(self, node: Any) -> None:
        """A ``for`` over a range, one that may be left, or a ``while``."""
        count, start, *carried = (self.value(value) for value in node.inputs())
        (block,) = node.blocks()
        goes_on, *_ = block.outputs()
        always = constant_of(goes_on, self._values) is True
        used = self._used([block])
        if start is True and count != _FOREVER:
            self._for(node, block, count, carried, used, always)
        else:
            self._while(node, block, count, start, carried, used)

    def _for(self, node: Any, block: Any, count: Any, carried: list[Any], used: dict[str, Any], always: bool) -> None:
        index, *inputs = block.inputs()
        body = self._body(block, used, (*inputs, index))
        goes_on, *results = body.results(block)
        stop = () if always else (body.graph.call_function(operator.not_, (goes_on,)),)
        body.graph.output((*map(body.packed, results), *stop))
        steps = self.graph.call_function(range, (count,))
        starts = tuple(map(self.packed, carried))
        options = {} if always else {"breaks": True}
        made = self._create(node, "call_function", for_loop, (steps, body.graph, starts, tuple(used.values())), options)
        self._bind_items(node, made)

    def _while(self, node: Any, block: Any, count: Any, start: Any, carried: list[Any], used: dict[str, Any]) -> None:
        """The flag that goes on is carried too, and so is the number of the round where somebody asks for it."""
        index, *inputs = block.inputs()
        counts = count != _FOREVER or bool(index.uses())
        body = self._body(block, used, (index, *inputs) if counts else tuple(inputs), "goes_on")
        goes_on, *results = body.results(block)
        following = [body.graph.call_function(operator.add, (body.value(index), 1))] if counts else []
        body.graph.output((goes_on, *following, *map(body.packed, results)))
        limit = () if count == _FOREVER else (count,)
        if limit:
            _add_input(body.graph)
        starts = (start, *([0] if counts else []), *map(self.packed, carried))
        test = _test(len(starts) + len(used), bool(limit))
        args = (test, body.graph, starts, (*used.values(), *limit))
        made = self._create(node, "call_function", while_loop, args, {})
        self._bind_items(node, made, 1 + counts)

    def packed(self, value: Any) -> Any:
        """A literal list or dict as an object, where it may meet one of another length."""
        return _packed(self.graph, value)

    def _bind_items(self, node: Any, made: Node, skipped: int = 0) -> None:
        for place, output in enumerate(node.outputs()):
            item = (made, place + skipped)
            self.bind(output, self._create(node, "call_function", operator.getitem, item, {}, output))


def _packed(graph: Graph, value: Any) -> Any:
    if isinstance(value, list):
        return graph.call_function(list, (tuple(value),))
    if isinstance(value, dict):
        return graph.call_function(dict, (tuple(value.items()),))
    return graph.call_function(tuple, (value,)) if isinstance(value, tuple) else value


def _fitted(graph: Graph, mine: Any, theirs: Any) -> Any:
    """A result of one side of a branch, in a form that fits to that of the other side."""
    both_tuples = type(mine) is tuple and type(theirs) is tuple and len(mine) == len(theirs)
    if both_tuples:
        return tuple(_fitted(graph, one, two) for one, two in zip(mine, theirs, strict=True))
    return _packed(graph, mine)


def _test(count: int, limited: bool) -> Graph:
    """The condition of a while loop: the flag that its last round left, and how many rounds there may be."""
    graph = Graph()
    flag, *rest = [graph.placeholder("goes_on"), *(graph.placeholder("value") for _ in range(count - 1))]
    if limited:
        below = graph.call_function(operator.lt, (rest[0], graph.placeholder("limit")))
        graph.output(graph.call_function(operator.and_, (flag, below)))
    else:
        graph.output(flag)
    return graph


def _add_input(graph: Graph) -> None:
    """Let a body take one more value, which it does not use."""
    last = [node for node in graph.nodes if node.op == "placeholder"][-1]
    with graph.inserting_after(last):
        graph.placeholder("limit")


_HANDLERS: dict[str, Callable[[Blocks, Any], None]] = {
    "prim::Constant": Blocks.constant,
    "prim::GetAttr": Blocks.attribute,
    "prim::SetAttr": Blocks.set_attribute,
    "prim::ListConstruct": Blocks.make_list,
    "prim::TupleConstruct": Blocks.make_tuple,
    "prim::DictConstruct": Blocks.make_dict,
    "prim::TupleUnpack": Blocks.unpack,
    "prim::ListUnpack": Blocks.unpack,
    "prim::TupleIndex": Blocks.tuple_item,
    "prim::unchecked_cast": Blocks.same,
    "prim::unchecked_unwrap_optional": Blocks.same,
    "prim::Uninitialized": Blocks.open_value,
    "prim::RaiseException": Blocks.error,
    "prim::Print": Blocks.text_out,
    "prim::If": Blocks.branch,
    "prim::Loop": Blocks.loop,
}
