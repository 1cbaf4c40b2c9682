"""Each kind of statement, as a colleague would have written it."""

import math
import operator
import textwrap
import typing

import torch
import torch.nn.functional as F

import clew
from clew import tree
from clew.codegen.python import PyTreeCodeGen, PyTreeInfo

from . import odd_names, shapes
from .running import code_of, keep, new_graph


def shown(graph, expected):
    assert code_of(graph) == textwrap.dedent(expected).lstrip("\n")


def test_a_function():
    graph, x = new_graph("x")
    graph.output(graph.call_function(torch.relu, (x,)))
    shown(graph, """
        import torch


        def forward(self, x):
            relu = torch.relu(x);  x = None
            return relu
    """)


def test_operators():
    graph, x, y = new_graph("x", "y")
    total = graph.call_function(operator.add, (x, y))
    power = graph.call_function(operator.pow, (-1, total))
    graph.output(graph.call_function(operator.invert, (graph.call_function(operator.le, (power, 2.5)),)))
    shown(graph, """
        def forward(self, x, y):
            add = x + y;  x = y = None
            pow_1 = (-1) ** add;  add = None
            le = pow_1 <= 2.5;  pow_1 = None
            invert = ~le;  le = None
            return invert
    """)


def test_methods_and_attributes():
    graph, x = new_graph("x")
    viewed = graph.call_method("view", (x, -1), {"dtype": torch.float32})
    graph.output((graph.call_function(getattr, (viewed, "shape")), graph.call_function(getattr, (viewed, "odd name"))))
    shown(graph, """
        import torch


        def forward(self, x):
            view = x.view(-1, dtype = torch.float32);  x = None
            getattr_1 = view.shape
            getattr_2 = getattr(view, "odd name");  view = None
            return (getattr_1, getattr_2)
    """)


def test_modules_and_parameters():
    graph, x = new_graph("x")
    called = graph.call_module("block.0.conv", (x,), {"scale": 2})
    graph.output(graph.call_function(operator.mul, (called, graph.get_attr("block.weight"))))
    shown(graph, """
        def forward(self, x):
            block_0_conv = getattr(self.block, "0").conv(x, scale = 2);  x = None
            block_weight = self.block.weight
            mul = block_0_conv * block_weight;  block_0_conv = block_weight = None
            return mul
    """)


def test_subscripts():
    graph, x, n = new_graph("x", "n")
    first = graph.call_function(operator.getitem, (x, (slice(None), 0, ..., None, slice(n, -1, 2))))
    graph.call_function(operator.setitem, (first, slice(None, 2), math.inf))
    graph.output(first)
    shown(graph, """
        def forward(self, x, n):
            getitem = x[:, 0, ..., None, n:-1:2];  x = n = None
            getitem[:2] = float('inf')
            return getitem
    """)


def test_in_place_operators():
    graph, x = new_graph("x")
    graph.output(graph.call_function(operator.iadd, (x, 1)))
    shown(graph, """
        def forward(self, x):
            iadd = x;  iadd += 1;  x = None
            return iadd
    """)


def test_unused_values_are_not_named():
    graph, x = new_graph("x")
    graph.call_method("add_", (x, 1))
    graph.call_module("log", (x,))
    graph.get_attr("weight")
    graph.output(x)
    shown(graph, """
        def forward(self, x):
            x.add_(1)
            self.log(x)
            self.weight
            return x
    """)


def test_parameters():
    graph = clew.Graph()
    x = graph.create_node("placeholder", "x", type_expr=torch.Tensor)
    shape = graph.create_node("placeholder", "shape", ([1, 2],), type_expr=typing.List[int])
    flag = graph.create_node("placeholder", "flag", (None,), {"keyword_only": True})
    rest = graph.create_node("placeholder", "*args")
    graph.output((x, shape, flag, rest)).type = tuple
    shown(graph, """
        import torch
        from typing import List


        def forward(self, x : torch.Tensor, shape : List[int] = [1, 2], *args, flag = None) -> tuple:
            _args = args
            return (x, shape, flag, _args)
    """)


def test_a_parameter_called_like_a_builtin():
    graph, x = new_graph("input")
    graph.output(graph.call_function(operator.neg, (x,)))
    shown(graph, """
        def forward(self, input):
            input_1 = input
            neg = -input_1;  input_1 = None
            return neg
    """)


def test_functions_of_users():
    graph, x = new_graph("x")
    graph.output(graph.call_function(keep, (x, odd_names.sqrt), {"class": graph.call_function(math.sqrt, (x,))}))
    shown(graph, f"""
        import math
        from {keep.__module__} import keep as keep_1
        from {odd_names.__name__} import sqrt as sqrt_1


        def forward(self, x):
            sqrt = math.sqrt(x)
            keep = keep_1(x, sqrt_1, **{{"class": sqrt}});  x = sqrt = None
            return keep
    """)


def test_literals():
    graph, x = new_graph("x")
    values = ({"a": [1, (2.5,)]}, slice(1), shapes.Point(1), shapes.Outer.Inner.ONE, torch.Size([2]), math.nan)
    graph.output(graph.create_node("call_function", keep, (x, *values), {}, "y"))
    shown(graph, f"""
        from {keep.__module__} import keep
        from {shapes.__name__} import Point
        from {shapes.__name__} import Outer
        import torch


        def forward(self, x):
            y = keep(x, {{'a': [1, (2.5,)]}}, slice(None, 1, None), Point(x=1, y=0), Outer.Inner.ONE, torch.Size([2]), float('nan'));  x = None
            return y
    """)  # noqa: E501


def test_a_local_in_the_way_of_a_package():
    graph, math_node = new_graph("math")
    graph.output(graph.call_function(math.sqrt, (math_node,)))
    shown(graph, """
        import math as math_1


        def forward(self, math):
            sqrt = math_1.sqrt(math);  math = None
            return sqrt
    """)


def test_annotated_values():
    graph, x = new_graph("x")
    graph.output(graph.create_node("call_function", F.relu, (x,), {"inplace": False}, type_expr=torch.Tensor))
    shown(graph, """
        import torch


        def forward(self, x):
            relu : torch.Tensor = torch.nn.functional.relu(x, inplace = False);  x = None
            return relu
    """)


def test_nests():
    graph, x = new_graph("x_1")
    y = graph.create_node("placeholder", "y", (3,))
    graph.output([x, y])
    graph.set_codegen(PyTreeCodeGen(PyTreeInfo(["x", "y"], tree.flatten(({"a": 0}, 0))[1], tree.flatten([0, 0])[1])))
    shown(graph, """
        def forward(self, x, y = 3):
            x_1, y = tree.tree_flatten_spec((x, y), _in_spec)
            return tree.unflatten([x_1, y], _out_spec)
    """)


def test_a_nested_result():
    graph, x = new_graph("x")
    graph.output({"out": (x, [x, None]), "none": None, "text": "it's"})
    shown(graph, """
        def forward(self, x):
            return {'out': (x, [x, None]), 'none': None, 'text': "it's"}
    """)


def test_a_chain_of_modules():
    traced = clew.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))
    shown(traced.graph, """
        def forward(self, input):
            input_1 = input
            _0 = getattr(self, "0")(input_1);  input_1 = None
            _1 = getattr(self, "1")(_0);  _0 = None
            return _1
    """)
