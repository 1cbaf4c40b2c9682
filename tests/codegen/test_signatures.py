"""Parameters of the generated function: defaults, kinds, annotations, nests and signatures of the user's own."""

import collections
import inspect
import math
import operator
import typing

import numpy
import pytest
import torch

import clew
from clew.codegen.python import CodeGen, PyTreeCodeGen, PyTreeInfo

from . import shapes
from .running import body_of, code_of, keep, module_of, new_graph, run_both


def signature_of(graph):
    return str(inspect.signature(module_of(graph).forward))


def test_every_kind_of_parameter():
    def f(a, b=2, *args, c, d=4, **kwargs):
        return keep(a, b, args, c, d, kwargs)

    clew_keep = clew.symbolic_trace(f)
    assert str(inspect.signature(clew_keep.forward)) == "(a, b=2, *args, c, d=4, **kwargs)"
    assert clew_keep(1, c=3)[0] == (1, 2, (), 3, 4, {})
    assert clew_keep(1, 5, 6, 7, c=3, d=8, e=9)[0] == (1, 5, (6, 7), 3, 8, {"e": 9})


def test_defaults_that_are_mutable_or_have_no_spelling():
    marker = object()
    graph = clew.Graph()
    listed = graph.create_node("placeholder", "listed", ([1, {"a": 2}],))
    odd = graph.create_node("placeholder", "odd", (marker,))
    bound = graph.create_node("placeholder", "bound", (-math.inf,))
    graph.output((listed, odd, bound))
    found, thing, low = module_of(graph)()
    assert found == [1, {"a": 2}] and type(found) is list and type(found[1]) is dict
    assert thing is marker and low == -math.inf


def test_an_annotation_with_an_equals_sign_is_no_default():
    graph, x, y = new_graph("x", "y")
    x.type = "a = b"
    graph.output((x, y))
    assert module_of(graph)(1, 2) == (1, 2)


def test_a_parameter_without_default_behind_one_with():
    graph = clew.Graph()
    x = graph.create_node("placeholder", "x", (1,))
    y = graph.placeholder("y")
    graph.output((x, y))
    assert signature_of(graph) == "(x=1, *, y)"
    assert module_of(graph)(y=2) == (1, 2)


class Alike(typing.Generic[typing.TypeVar("T")]):
    """A generic class of a user."""


class Sequence(typing.Generic[typing.TypeVar("T")]):
    """A generic class with the name of one of typing's."""


ANNOTATIONS = [
    int, None.__class__, "Tensor", torch.Tensor, typing.Any, typing.List, typing.List[int], list[int], tuple[()],
    typing.Tuple[int, ...], typing.Optional[int], typing.Union[None, int], typing.Union[int, str], int | None,
    typing.Dict[str, typing.List[torch.Tensor]], typing.Callable[[int, str], bool], typing.Callable[..., int],
    collections.abc.Callable[[int], str], typing.Literal["a", 1, None, b"'"], typing.Annotated[int, "m", 3],
    typing.Annotated[int, object()], typing.TypeVar("T"), typing.NewType("New", int), Alike[int], Sequence[int],
    shapes.Outer.Inner, type[int], typing.Type[int], typing.ClassVar[int], (int, str), (int,), [int], 5,
    typing.NoReturn, typing.ForwardRef("a.b"), typing.Union[int, "Sequence"], list["Alike"],
    collections.OrderedDict[str, int],
    typing.Literal[shapes.Colour.RED], numpy.ndarray, typing.NamedTuple("Odd", [("x", int)]), typing.Self,
]  # fmt: skip


@pytest.mark.parametrize("kind", ANNOTATIONS, ids=map(str, range(len(ANNOTATIONS))))
def test_annotations_evaluate_back(kind):
    graph, x = new_graph("x")
    x.type = kind
    y = graph.create_node("call_function", operator.neg, (x,), type_expr=kind)
    graph.output(y).type = kind
    module = module_of(graph)
    assert module(3) == -3
    signature = inspect.signature(module.forward)
    for found in (signature.parameters["x"].annotation, signature.return_annotation):
        wanted = kind.__forward_arg__ if isinstance(kind, typing.ForwardRef) else kind
        assert found == wanted or (found is None and kind is type(None))


def test_optional_prints_as_optional():
    graph, x = new_graph("x")
    x.type = typing.Optional[torch.Tensor]
    graph.output(x).type = typing.List[int]
    assert "def forward(self, x : Optional[torch.Tensor]) -> List[int]:" in code_of(graph)


Thing = collections.namedtuple("Thing", ["left", "right"])


def nested(x, flag=3, *, scale=2.0):
    return {"sum": x["a"] + x["b"][0], "pair": Thing(x["b"][1] * scale, None), "flag": [flag]}


def trace_nested():
    concrete = {"x": {"a": clew.PH, "b": [clew.PH, clew.PH]}}
    return clew.symbolic_trace(nested, concrete_args=concrete)


def test_nests_of_every_kind_in_and_out():
    traced = trace_nested()
    x = {"a": 1, "b": [2, 3]}
    expected = {"sum": 3, "pair": Thing(12, None), "flag": [7]}
    assert traced(x, 7, 4) == expected
    assert clew.Interpreter(traced).run(x, 7, 4) == expected
    assert type(traced(x, 7, 4)["pair"]) is Thing


def test_nests_keep_the_defaults_of_the_parameters():
    traced = trace_nested()
    assert traced({"a": 1, "b": [2, 3]}) == {"sum": 3, "pair": Thing(6.0, None), "flag": [3]}


def test_nests_with_another_structure_are_refused():
    with pytest.raises(ValueError):
        trace_nested()({"a": 1, "c": [2, 3]}, 7, 4)


@pytest.mark.parametrize("name", ["tree", "_in_spec", "_out_spec", "math"])
def test_nests_with_parameters_called_like_the_helpers(name):
    space: dict[str, typing.Any] = {"math": math}
    exec(f"def f({name}):\n    return [{name}[0] + 1, {name}[1]]", space)
    traced = clew.symbolic_trace(space["f"], concrete_args={name: [clew.PH, clew.PH]})
    assert traced([1, 2]) == [2, 2]


def test_nests_over_nodes_called_like_the_helpers():
    traced = clew.symbolic_trace(lambda x: [x[0] + 1, x[1]], concrete_args={"x": [clew.PH, clew.PH]})
    traced.graph.find_nodes(op="call_function")[0].name = "tree"
    traced.graph.find_nodes(op="placeholder")[0].name = "_out_spec"
    assert traced([1, 2]) == [2, 2]


def test_a_single_leaf_and_none():
    info = PyTreeInfo(["x"], clew.tree.flatten(({"a": 0},))[1], clew.tree.flatten(0)[1])
    graph, x = new_graph("x_1")
    graph.output([x])
    graph.set_codegen(PyTreeCodeGen(info))
    assert module_of(graph)({"a": None}) is None
    assert module_of(graph)({"a": 5}) == 5


class OneList(CodeGen):
    """A signature in torch.fx's style: all inputs in one list."""

    def gen_fn_def(self, free_vars, maybe_return_annotation):
        return f"def forward(self, inputs: List){maybe_return_annotation}:\n    {', '.join(free_vars)} = inputs"

    def additional_globals(self):
        return [("List", typing.List)]

    def process_inputs(self, *inputs):
        return inputs[0]


@pytest.mark.parametrize("name", ["List", "y"])
def test_a_signature_of_the_users_own(name):
    graph, x, y = new_graph("x", "y")
    added = graph.create_node("call_function", operator.add, (x, y), {}, name)
    graph.output((added, graph.call_function(operator.neg, (added,))))
    graph.set_codegen(OneList())
    assert run_both(graph, [1, 2]) == (3, -3)


def test_code_transformers_see_the_lines():
    graph, x = new_graph("x")
    graph.output(graph.call_function(operator.neg, (x,)))
    module = module_of(graph)
    seen = []

    def make(before):
        def change(body):
            seen.extend(body)
            return ["x = x * 10\n", *body]

        return change

    with graph.on_generate_code(make):
        assert module(1) == -10
    assert seen == ["neg = -x;  x = None\n", "return neg\n"]
    assert module(1) == -1


def test_more_than_255_arguments():
    graph = clew.Graph()
    inputs = [graph.placeholder(f"p{number}") for number in range(400)]
    graph.output(graph.call_function(keep, tuple(inputs), {f"k{number}": inputs[0] for number in range(300)}))
    args, kwargs = module_of(graph)(*range(400))
    assert args == tuple(range(400)) and len(kwargs) == 300


def test_a_graph_without_anything():
    graph = clew.Graph()
    assert body_of(graph) == ["pass"]
    assert clew.GraphModule({}, graph)() is None
