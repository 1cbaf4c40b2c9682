"""Programs of TorchScript, scripted or traced, as graphs of torch functions that are called like the original.

The graph of a module or function comes in, with all its calls inlined; out comes a graph module with the same
parameters, or a graph function. ``Blocks`` walks one block and keeps what each of its values is here; a block inside a
branch or loop becomes a nested graph, which is handed what it uses of the blocks around it. So generated code has
``if``, ``for``, ``while``. Arguments are checked and converted as the program declares them. An operator that has no
counterpart (``torchscript_operators``) is an error.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

from clew.capture.state.slots import ROOT, assign
from clew.errors import InteropError
from clew.io.torch_fx import share_registers
from clew.io.torchscript_operators import (
    as_declared,
    call_of,
    raise_error,
    read_attribute,
    require_tensor,
    uninitialized,
    unknown,
    unpacked,
)
from clew.ir.arguments import all_nodes, leaves
from clew.ir.control_flow import cond, for_loop, while_loop
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.source import SourceLine
from clew.runtime.function import GraphFunction
from clew.runtime.module import GraphModule

# ---- modules and functions -------------------------------------------------------------------------------------------


class ScriptedModule(GraphModule):
    """The module of a TorchScript program."""

    @property
    def _self(self) -> Any:
        """The object whose attributes the graph sets."""
        return self


def from_torchscript(source: Any, method: str = "forward") -> Any:
    """A module or function that computes what a scripted or traced one does, called in the same way.

    Of a module one method is taken, ``forward`` or one that was exported to TorchScript.
    """
    if isinstance(source, torch.jit.ScriptFunction):
        blocks = _converted(source.inlined_graph, source.schema, None)
        root = _root_of(None, blocks)
        return GraphFunction(root, blocks.graph, str(source.name))
    if not isinstance(source, torch.jit.ScriptModule):
        raise InteropError(
            f"a {type(source).__module__}.{type(source).__qualname__} is no program of TorchScript",
            fixes=["torch.jit.script(model) or torch.jit.trace(model, args) makes one", "clew.trace captures Python"],
        )
    if not source._c._has_method(method):
        raise InteropError(f"the TorchScript module {source.original_name} has no method {method!r}")
    compiled = source._c._get_method(method)
    blocks = _converted(compiled.inlined_graph, compiled.schema, source)
    root = _root_of(source, blocks)
    module = ScriptedModule(root, blocks.graph, source.original_name)
    share_registers(root, module)
    for path in blocks.written:
        _copy_attribute(source, module, path)
    _copy_modes(source, module)
    return module


def _converted(graph: Any, schema: Any, module: Any) -> Blocks:
    """The graph of a TorchScript program as one of Clew."""
    blocks = Blocks(Graph(), graph)
    inputs = list(graph.inputs())
    arguments = list(schema.arguments)
    if module is not None:
        blocks.bind_module(inputs.pop(0))
        arguments.pop(0)
    placed = []
    for value, argument in zip(inputs, arguments, strict=True):
        default = (argument.default_value,) if argument.has_default_value() else ()
        kind = {"keyword_only": True} if argument.kwarg_only else {}
        placed.append((value, argument, blocks.graph.create_node("placeholder", argument.name, default, kind)))
    for value, argument, node in placed:
        spec = spec_of(argument.type)
        if spec == "Tensor":
            blocks.graph.call_function(require_tensor, (node, argument.name))
        elif spec != "Any":
            declared = (node, spec, argument.name)
            node = blocks.graph.create_node("call_function", as_declared, declared, {}, argument.name)
        blocks.bind(value, node)
    blocks.run(graph)
    results = [blocks.value(output) for output in graph.outputs()]
    blocks.graph.output(results[0] if len(results) == 1 else tuple(results) or None)
    blocks.graph.eliminate_dead_code(is_impure_node=_is_kept)
    return blocks


def _is_kept(node: Any) -> bool:
    """What checks an argument stays, also where the argument is not used."""
    return node.target is as_declared or node.is_impure()


def _root_of(source: Any, blocks: Blocks) -> Any:
    """A plain module with the parameters, buffers and attributes of a TorchScript module, and the constants."""
    root = torch.nn.Module() if source is None else _mirrored(source)
    for path in dict.fromkeys(node.target for node in all_nodes(blocks.graph) if node.op == "get_attr"):
        if path in blocks.constants:
            root.register_buffer(path, blocks.constants[path], persistent=False)
    for path in blocks.attributes:
        _copy_attribute(source, root, path)
    return root


def _mirrored(source: Any) -> torch.nn.Module:
    module = torch.nn.Module()
    module.training = getattr(source, "training", False)  # a frozen module has no mode any more
    for name, value in source.named_parameters(recurse=False):
        is_parameter = isinstance(value, torch.nn.Parameter)
        module.register_parameter(name, value if is_parameter else torch.nn.Parameter(value, value.requires_grad))
    for name, value in source.named_buffers(recurse=False):
        module.register_buffer(name, value)
    for name, child in source.named_children():
        module.add_module(name, _mirrored(child))
    return module


def _copy_attribute(source: Any, root: torch.nn.Module, path: str) -> None:
    """Give the root an attribute that is neither a parameter nor a buffer: a number, a text, a list."""
    holder, _, name = path.rpartition(".")
    owner = root.get_submodule(holder)
    if name not in owner._parameters and name not in owner._buffers and name != "training":
        value = getattr(operator.attrgetter(holder)(source) if holder else source, name)
        object.__setattr__(owner, name, list(value) if isinstance(value, list) else value)


def _copy_modes(source: Any, module: torch.nn.Module) -> None:
    for path, part in source.named_modules():
        module.get_submodule(path).training = getattr(part, "training", False)


# ---- nodes and blocks ------------------------------------------------------------------------------------------------

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
            self.bind(output, self._create(node, "call_function", read_attribute, (root, path), {}))
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
            found = self.graph.call_function(unpacked, (found, len(outputs)))
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
        self.bind(node.output(), self.graph.call_function(uninitialized, ()))

    def error(self, node: Any) -> None:
        """The program raises."""
        self._create(node, "call_function", raise_error, tuple(self.value(value) for value in node.inputs()), {})

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


# ---- facts about a graph of TorchScript ------------------------------------------------------------------------------

_INTEGERS = re.compile(r"Tuple\[int(, int)*\]")
_FRAME = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)')


def outer_values(block: Any) -> Iterator[str]:
    """The names of the values that a block uses and does not make, in the order of first use."""
    made = {value.debugName() for value in block.inputs()}
    for node in block.nodes():
        names = [value.debugName() for value in node.inputs()]
        names += [name for inner in node.blocks() for name in outer_values(inner)]
        yield from (name for name in names if name not in made)
        made |= {value.debugName() for value in node.outputs()}
    yield from (value.debugName() for value in block.outputs() if value.debugName() not in made)


def constant_of(value: Any, known: dict[str, Any]) -> Any:
    """The value of a constant, made in this block or known from outside; None if it is computed."""
    if value.node().kind() == "prim::Constant":
        return value.toIValue()
    found = known.get(value.debugName())
    return None if isinstance(found, Node) else found


def _all_nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _all_nodes(inner)


def written_paths(graph: Any) -> frozenset[str]:
    """The paths of the attributes that a program sets."""
    return frozenset(
        _path_of(next(iter(node.inputs())), node.s("name"))
        for node in _all_nodes(graph)
        if node.kind() == "prim::SetAttr"
    )


def _path_of(owner: Any, name: str) -> str:
    made = owner.node()
    if made.kind() == "prim::GetAttr":
        return f"{_path_of(made.input(), made.s('name'))}.{name}"
    return name


def changes_lists(graph: Any) -> bool:
    """Whether some operator of a program changes a list or dict in place."""
    for node in _all_nodes(graph):
        text = node.schema()
        if text != "(no schema)":
            for argument in torch._C.parse_schema(text).arguments:
                kind = str(argument.type)
                is_write = argument.alias_info is not None and argument.alias_info.is_write
                if is_write and kind.startswith(("List[", "Dict[")):
                    return True
    return False


_WRITABLE = frozenset("str int bool float Tensor NoneType Device List[int] List[float] List[bool] List[str]".split())


def check_text(node: Any, kinds: list[str]) -> None:
    """Refuse to write values in a text of which it is not known how TorchScript writes them."""
    for kind in kinds:
        inner = kind.removeprefix("Optional[").removesuffix("]") if kind.startswith("Optional[") else kind
        if inner not in _WRITABLE and not _INTEGERS.fullmatch(inner):
            raise unknown(node.kind(), f"it writes a {kind} in a text, which TorchScript does otherwise than Python")


def source_of(node: Any) -> SourceLine | None:
    """The line of the user's program that a node comes from."""
    found = _FRAME.search(node.sourceRange())
    return None if found is None else SourceLine(found["file"], int(found["line"]), "forward")


def kind_of(kind: Any) -> str:
    """The type of a value in TorchScript's words, whatever else is known of a tensor."""
    return "Tensor" if kind.kind() == "TensorType" else str(kind.annotation_str)


# ---- types, as plain nests of texts ----------------------------------------------------------------------------------

_SIMPLE = {
    "TensorType": "Tensor",
    "IntType": "int",
    "FloatType": "float",
    "BoolType": "bool",
    "StringType": "str",
    "NumberType": "number",
    "ComplexType": "complex",
    "DeviceObjType": "Device",
    "GeneratorType": "Generator",
    "NoneType": "NoneType",
    "AnyType": "Any",
}


def spec_of(kind: Any) -> Any:
    """The nest for a type; an error for one that Python has no plain value for."""
    name = kind.kind()
    if name in _SIMPLE:
        return _SIMPLE[name]
    if name == "OptionalType":
        return ("optional", spec_of(kind.getElementType()))
    if name == "ListType":
        return ("list", spec_of(kind.getElementType()))
    if name == "TupleType":
        return ("tuple", *(spec_of(part) for part in kind.elements()))
    if name == "DictType":
        return ("dict", spec_of(kind.getKeyType()), spec_of(kind.getValueType()))
    raise InteropError(
        f"a value of the TorchScript type {kind.annotation_str} cannot be converted",
        why="only tensors, numbers, texts and nests of these are",
    )
