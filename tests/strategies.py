"""Random graphs for property tests.

``random_graphs()`` draws valid graphs of every shape that the IR allows: all opcodes, all kinds of literals, nests,
nested graphs, annotations, types and sources; they are data and not meant to run. ``runnable_graphs()`` draws small
programs over float tensors of one shape, with the attributes of their root and inputs to run them on.
"""

from __future__ import annotations

import builtins
import collections
import enum
import math
import operator
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - the name that everybody uses
from hypothesis import strategies as st

from clew.ir.arguments import map_aggregate
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.source import SourceLine
from clew.ir.types import ArrayType, DictType, ListType, ObjectType, ScalarType, TupleType


class Colour(enum.Enum):
    RED = "red"
    GREEN = 2


class Access(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 4


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 10


class Span(NamedTuple):
    start: Any
    stop: Any


@dataclass
class Point:
    x: Any
    y: Any = 0


@dataclass(frozen=True, slots=True)
class Label:
    text: str
    colour: Colour = Colour.RED


def user_function(x: Any) -> Any:
    """A function of a user, importable by its name."""
    return x


FUNCTIONS: list[Callable[..., Any]] = [
    torch.relu,
    torch.add,
    torch.cat,
    F.relu,
    F.linear,
    torch.ops.aten.add.Tensor,
    torch.Tensor.add,
    operator.add,
    operator.getitem,
    operator.setitem,
    math.sqrt,
    builtins.len,
    builtins.getattr,
    dict.fromkeys,
    user_function,
    Point,
]
METHODS = ["view", "add_", "sum", "__getitem__", "relu"]
PATHS = ["linear", "layer1.0.conv", "a.b", "0", "we ird", "x\n}", "ünï", "", "a..b", "'", "%x", "return"]
PARAMETERS = ["x", "y", "input", "self", "*args", "**kwargs", "x_1", "from", "_", "", "odd name\n", "*"]
KEYWORDS = ["dim", "inplace", "in", "a b", "x\n=1", "ö", "", "graph", "None"]
NAMES = [None, None, "x", "relu_1", "graph", "output", "as", "return", "torch", "_", "_1", "a" * 40]
ANNOTATIONS = [
    None,
    None,
    int,
    torch.Tensor,
    type(None),
    Any,
    "Tensor",
    list[int],
    tuple[()],
    tuple[int, ...],
    dict[str, list[torch.Tensor]],
    int | None,
    list[int] | str | None,
    typing.Optional[torch.Tensor],
    typing.Union[int, str, None],
    typing.List[typing.Tuple[int, ...]],
    typing.List,
    typing.Callable[[int, str], bool],
    typing.Callable[..., torch.Tensor],
    collections.abc.Callable[[int], str],
    typing.Literal["a", 1, None, b"x"],
    typing.Annotated[int, "metres", 3],
    collections.OrderedDict[str, int],
    Point,
    type[int],
]
TORCH_LITERALS = [
    torch.float32,
    torch.bfloat16,
    torch.bool,
    torch.device("cpu"),
    torch.device("cuda", 1),
    torch.Size([]),
    torch.Size([2, 3]),
    torch.strided,
    torch.contiguous_format,
    torch.channels_last,
]
OTHER_LITERALS = [
    Colour.RED,
    Colour.GREEN,
    Access.READ | Access.RUN,
    Access(0),
    Level.HIGH,
    Label("a'\"\n"),
    Label("", Colour.GREEN),
    range(3),
    range(10, -2, -3),
    ...,
    int,
    torch.Tensor,
    operator.add,
    torch.nn.ReLU,
    float("nan"),
    float("inf"),
    -math.inf,
    -0.0,
    complex(-0.0, math.inf),
    10**5000,
    -(10**5000),
    frozenset(),
    frozenset({1, "a", (2, 3)}),
]

_text = st.text(st.characters(codec=None), max_size=6)
_plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.complex_numbers(max_magnitude=1e6),
    _text,
    st.binary(max_size=5),
)
_constants = st.sampled_from(TORCH_LITERALS + OTHER_LITERALS)
_keys = st.one_of(_text, st.integers(-3, 3), st.sampled_from([None, (1, "a"), b"k", Colour.RED, 2.5]))

_sizes = st.one_of(st.integers(-1, 600), st.sampled_from(["n", "2*n + 1", "n//2", "s0", "-3", "a]b", "", "ü", " n"]))
_arrays = st.builds(
    ArrayType,
    st.sampled_from(["float32", "bfloat16", "bool", "int64", "float8_e4m3fn", "f32", "<U3", "int"]),
    st.lists(_sizes, max_size=3).map(tuple),
    st.sampled_from(["cpu", "cpu", "cuda:0", "meta", "", "/job:worker/gpu:0"]),
)
_scalars = st.sampled_from(["int", "float", "bool", "complex", "str", "bytes", "None"]).map(ScalarType)
_objects = st.sampled_from(["a.B", "m.f.<locals>.C", "x>y", "", "a\n"]).map(ObjectType)
value_types = st.recursive(
    st.one_of(_arrays, _scalars, _objects),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: TupleType(tuple(items))),
        st.lists(inner, max_size=3).map(lambda items: ListType(tuple(items))),
        st.lists(st.tuples(_text, inner), max_size=2).map(lambda items: DictType(tuple(items))),
    ),
    max_leaves=4,
)
"""Types of values, nested ones included."""

_sources = st.builds(
    SourceLine,
    st.sampled_from(["model.py", "C:\\my files\\a.py", "<stdin>", "odd\n# x.py:3", ""]),
    st.integers(0, 9999),
    st.sampled_from(["", "forward", "<lambda>", "a b"]),
)


class Unnamed:
    """An object that no name reaches and no text can spell."""


@dataclass(frozen=True)
class Earlier:
    """Stands in a drawn argument for one of the earlier nodes; a strategy that knows no nodes is built only once."""

    place: int


def _put_nodes(value: Any, nodes: list[Node]) -> Any:
    """The drawn argument with real nodes; None where there is none yet."""
    return map_aggregate(
        value, lambda leaf: (nodes[leaf.place % len(nodes)] if nodes else None) if isinstance(leaf, Earlier) else leaf
    )


def _arguments(leaf: Any, *more: Any) -> Any:
    """Arguments: leaves, nests of these, and whatever else is given."""
    some = st.lists(leaf, max_size=3)
    nests = [
        some,
        some.map(tuple),
        st.dictionaries(_keys, leaf, max_size=2),
        st.builds(slice, leaf, leaf, leaf),
        st.builds(Span, leaf, some.map(tuple)),
        st.builds(Point, _plain, _plain),
        st.lists(some.map(tuple), max_size=2),
    ]
    return st.one_of(leaf, leaf, leaf, *nests, *more)


@dataclass(frozen=True)
class Parts:
    """The strategies of which the nodes of one kind of graph are drawn."""

    functions: Any
    argument: Any
    arguments: Any
    keywords: Any
    default: Any


def _parts(nameless: bool, depth: int) -> Parts:
    leaf = st.one_of(_constants, _plain, _earlier, _earlier, *([_nameless] if nameless else []))
    inner = [st.deferred(lambda: random_graphs(nameless=nameless, depth=depth - 1))] if depth else []
    argument = _arguments(leaf, *inner)
    return Parts(
        functions=st.sampled_from(FUNCTIONS + (NAMELESS_FUNCTIONS if nameless else [])),
        argument=argument,
        arguments=st.lists(argument, max_size=2).map(tuple),
        keywords=st.one_of(st.just({}), st.dictionaries(st.sampled_from(KEYWORDS), argument, max_size=2)),
        default=st.one_of(st.just(()), st.just(()), st.tuples(_arguments(st.one_of(_plain, _constants)))),
    )


_earlier = st.integers(0, 9).map(Earlier)
NAMELESS_FUNCTIONS: list[Callable[..., Any]] = [lambda x: x, Unnamed, operator.itemgetter(0)]
_nameless = st.sampled_from([Unnamed(), lambda: 0, torch.ones(2), Unnamed, Point(1, Unnamed())])
_PARTS = {(nameless, depth): _parts(nameless, depth) for nameless in (False, True) for depth in range(3)}
_MOST_NODES = {0: 2, 1: 3, 2: 7}
_opcodes = st.sampled_from(["call_function"] * 3 + ["call_method", "call_module", "get_attr", "placeholder"])
_names = st.sampled_from(NAMES)


@st.composite
def random_graphs(draw: st.DrawFn, *, nameless: bool = False, depth: int = 2) -> Graph:
    """A valid graph, with others nested in it down to ``depth``.

    With ``nameless`` it may hold objects that no name reaches, which text alone cannot hold and pickle refuses.
    """
    parts = _PARTS[nameless, depth]
    graph = Graph()
    nodes: list[Node] = []
    for _ in range(draw(st.integers(0, 3))):
        nodes.append(_draw_placeholder(draw, graph, parts))
    for _ in range(draw(st.integers(0, _MOST_NODES[depth]))):
        nodes.append(_draw_node(draw, graph, parts, nodes))
    if draw(st.integers(0, 9)):
        nodes.append(graph.output(_put_nodes(draw(parts.argument), nodes)))
        if draw(st.integers(0, 4)) == 4:
            nodes[-1].name = "result"
    for node in nodes:
        _draw_notes(draw, node)
    return graph


def _draw_placeholder(draw: st.DrawFn, graph: Graph, parts: Parts) -> Node:
    target = draw(st.sampled_from(PARAMETERS))
    return graph.create_node("placeholder", target, draw(parts.default), {}, draw(_names))


def _draw_node(draw: st.DrawFn, graph: Graph, parts: Parts, nodes: list[Node]) -> Node:
    opcode = draw(_opcodes)
    if opcode == "placeholder":
        return _draw_placeholder(draw, graph, parts)
    if opcode == "get_attr":
        return graph.create_node("get_attr", draw(st.sampled_from(PATHS)))
    if opcode == "call_function":
        target = draw(parts.functions)
    else:
        target = draw(st.sampled_from(METHODS if opcode == "call_method" else PATHS))
    args, kwargs = _put_nodes((draw(parts.arguments), draw(parts.keywords)), nodes)
    return graph.create_node(opcode, target, args, kwargs, draw(_names))


def _draw_notes(draw: st.DrawFn, node: Node) -> None:
    kind = draw(st.integers(0, 5))
    if kind in (1, 2):
        node.value_type = draw(value_types)
    if kind in (2, 3):
        node.type = draw(st.sampled_from(ANNOTATIONS))
    if kind == 4:
        node.source = draw(_sources)


# ---- programs that run ---------------------------------------------------------------------------------------------

SHAPE = (2, 3)
_UNARY: list[tuple[str, Any, dict[str, Any]]] = [
    ("call_function", torch.relu, {}),
    ("call_function", torch.sigmoid, {}),
    ("call_function", F.gelu, {}),
    ("call_function", F.leaky_relu, {"negative_slope": 0.25}),
    ("call_function", torch.clamp, {"min": -1.5, "max": 2}),
    ("call_function", operator.neg, {}),
    ("call_function", torch.sum, {"dim": (0, 1), "keepdim": True}),
    ("call_method", "abs", {}),
    ("call_method", "tanh", {}),
    ("call_method", "clamp", {"max": 0.5}),
    ("call_method", "to", {"dtype": torch.float32}),
    ("call_module", "linear", {}),
    ("call_module", "block.0", {}),
    ("call_module", "block.act", {}),
    ("call_module", "norm", {}),
]
_BINARY: list[tuple[str, Any, dict[str, Any]]] = [
    ("call_function", torch.add, {"alpha": 2}),
    ("call_function", torch.maximum, {}),
    ("call_function", operator.add, {}),
    ("call_function", operator.sub, {}),
    ("call_function", operator.mul, {}),
    ("call_method", "add", {}),
    ("call_method", "mul", {}),
]


def root_attributes(seed: int) -> dict[str, Any]:
    """What the paths of a runnable graph refer to: three small modules, one of them nested, and two tensors."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        block = torch.nn.Sequential()
        block.add_module("0", torch.nn.Linear(SHAPE[1], SHAPE[1], bias=False))
        block.add_module("act", torch.nn.Hardtanh())
        return {
            "linear": torch.nn.Linear(SHAPE[1], SHAPE[1]),
            "block": block,
            "norm": torch.nn.LayerNorm(SHAPE[1]),
            "weight": torch.nn.Parameter(torch.randn(SHAPE)),
            "constant": torch.randn(SHAPE),
        }


@st.composite
def runnable_graphs(draw: st.DrawFn, *, most_nodes: int = 8) -> tuple[Graph, dict[str, Any], list[torch.Tensor]]:
    """A graph that runs, the attributes of its root by name, and one input for each placeholder."""
    seed = draw(st.integers(0, 1000))
    graph = Graph()
    count = draw(st.integers(1, 3))
    nodes = [graph.placeholder(name) for name in ("x", "input", "y")[:count]]
    for _ in range(draw(st.integers(1, most_nodes))):
        nodes.append(_draw_runnable(draw, graph, nodes))
    some = st.sampled_from(nodes)
    graph.output(
        draw(
            st.one_of(
                some,
                st.tuples(some, some),
                st.lists(some, min_size=1, max_size=3),
                st.fixed_dictionaries({"out": some, "rest": st.tuples(some, st.just(3))}),
            )
        )
    )
    numbers = torch.Generator().manual_seed(seed)
    return graph, root_attributes(seed), [torch.randn(SHAPE, generator=numbers) for _ in range(count)]


def _draw_runnable(draw: st.DrawFn, graph: Graph, nodes: list[Node]) -> Node:
    some = st.sampled_from(nodes)
    kind = draw(st.sampled_from(["unary", "unary", "binary", "number", "attribute", "nest"]))
    if kind == "attribute":
        return graph.get_attr(draw(st.sampled_from(["weight", "constant", "linear.bias", "norm.weight"])))
    if kind == "nest":
        return graph.call_function(operator.getitem, ([draw(some), draw(some)], draw(st.sampled_from([0, 1, -1]))))
    if kind == "unary":
        opcode, target, kwargs = draw(st.sampled_from(_UNARY))
        node = draw(some)
        if opcode == "call_module" or target is torch.sum:  # these need the full shape, which adding gives
            node = graph.call_function(torch.add, (node, nodes[0]))
        return graph.create_node(opcode, target, (node,), kwargs)
    opcode, target, kwargs = draw(st.sampled_from(_BINARY))
    other = draw(some) if kind == "binary" or target is torch.maximum else draw(st.sampled_from([2, 0.5, -1.25]))
    return graph.create_node(opcode, target, (draw(some), other), kwargs)
