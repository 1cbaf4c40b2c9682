"""Names, spellings and types of torch's functions and values."""

from __future__ import annotations

import enum
import math
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch.overrides import get_overridable_functions

import clew
from clew.frameworks.torch.names import find
from clew.ir.format import qualified_name
from clew.ir.guests import guest
from clew.ir.literals import Speller
from clew.ir.types import ArrayType, ObjectType, ScalarType, TupleType, type_of

NAMES = {
    "torch.relu": torch.relu,
    "torch.cat": torch.cat,
    "torch.einsum": torch.einsum,
    "torch.conv2d": F.conv2d,
    "torch.nn.functional.relu": F.relu,
    "torch.nn.functional.gelu": torch._C._nn.gelu,
    "torch.nn.functional.linear": torch._C._nn.linear,
    "torch.nn.functional.max_pool2d": F.max_pool2d,
    "torch.Tensor.add": torch.Tensor.add,
    "torch.Tensor.__add__": torch.Tensor.__add__,
    "torch.Tensor.__pow__": torch.Tensor.__pow__,
    "torch.fft.fft": torch.fft.fft,
    "torch.linalg.norm": torch.linalg.norm,
    "torch.special.expit": torch.special.expit,
    "torch.ops.aten.add.Tensor": torch.ops.aten.add.Tensor,
    "torch.ops.aten.relu.default": torch.ops.aten.relu.default,
    "torch.ops.aten.add": torch.ops.aten.add,
    "torch.ops.higher_order.cond": torch.ops.higher_order.cond,
    "torch.nn.Linear": torch.nn.Linear,
    "torch.nn.Parameter": torch.nn.Parameter,
    "torch.Tensor": torch.Tensor,
    "torch.Size": torch.Size,
    "torch.device": torch.device,
    "torch.dtype": torch.dtype,
    "torch.no_grad": torch.no_grad,
    "torch._assert": torch._assert,
    "torch._C._set_grad_enabled": torch._C._set_grad_enabled,
    "torch.return_types.max": torch.return_types.max,
    "torch.nn.init.ones_": torch.nn.init.ones_,
    "torch.optim.SGD": torch.optim.SGD,
}


@pytest.mark.parametrize("name", NAMES)
def test_public_names(name):
    assert qualified_name(NAMES[name]) == name


def test_named_values():
    assert guest("torch").qualified_name(torch.float32) == "torch.float32"
    assert guest("torch").qualified_name(torch.half) in ("torch.half", "torch.float16")


def test_every_name_leads_back_to_its_function():
    listed = {function for functions in get_overridable_functions().values() for function in functions}
    named = {function: guest("torch").qualified_name(function) for function in listed}
    assert sum(name is not None for name in named.values()) > 1200
    assert [name for function, name in named.items() if name is not None and find(name) is not function] == []


def test_no_name_without_a_way_back():
    def local():
        return None

    local.__module__, local.__qualname__ = "torch", "relu"
    assert guest("torch").qualified_name(local) is None


def test_a_replaced_function_loses_its_name(monkeypatch):
    original = F.softplus
    assert guest("torch").qualified_name(original) == "torch.nn.functional.softplus"
    monkeypatch.setattr(F, "softplus", lambda x: x)
    assert guest("torch").qualified_name(original) != "torch.nn.functional.softplus"


def test_a_function_that_was_put_in_the_place_of_another_has_its_name(monkeypatch):
    def softplus(x):
        return x

    softplus.__module__ = "torch.somewhere"
    monkeypatch.setattr(F, "softplus", softplus)
    assert guest("torch").qualified_name(softplus) == "torch.nn.functional.softplus"


def name_of(thing):
    return "torch" if thing is torch else qualified_name(thing)


def spell(value):
    return Speller(name_of, lambda node: node.name).spell(value)


SPELLED = {
    "torch.float32": torch.float32,
    "torch.bfloat16": torch.bfloat16,
    "torch.strided": torch.strided,
    "torch.sparse_coo": torch.sparse_coo,
    "torch.channels_last": torch.channels_last,
    "torch.per_tensor_affine": torch.per_tensor_affine,
    "torch.device('cpu')": torch.device("cpu"),
    "torch.device('cuda:1')": torch.device("cuda", 1),
    "torch.device('meta')": torch.device("meta"),
    "torch.Size([2, 3])": torch.Size([2, 3]),
    "torch.Size([])": torch.Size([]),
    "torch.ops.aten.add.Tensor": torch.ops.aten.add.Tensor,
}


@pytest.mark.parametrize("text", SPELLED)
def test_spelling_evaluates_back(text):
    value = SPELLED[text]
    assert spell(value) == text
    again = eval(text, {"torch": torch})
    assert again == value and type(again) is type(value)


def test_all_dtypes_evaluate_back():
    dtypes = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    assert len(dtypes) > 15
    assert [dtype for dtype in dtypes if eval(spell(dtype), {"torch": torch}) is not dtype] == []


@pytest.mark.parametrize("value", [torch.finfo(torch.float16), torch.iinfo(torch.int8)], ids=["finfo", "iinfo"])
def test_limits_evaluate_back(value):
    again = eval(spell(value), {"torch": torch})
    assert type(again) is type(value) and again.max == value.max and again.dtype == value.dtype


@pytest.mark.parametrize("value", [torch.ones(2), torch.nn.Parameter(torch.ones(2)), torch.Generator()])
def test_objects_have_no_spelling(value):
    assert guest("torch").spell(value, name_of) is None


def test_types():
    assert type_of(torch.zeros(2, 3)) == ArrayType("float32", (2, 3))
    assert str(type_of(torch.zeros(2, dtype=torch.int64))) == "i64[2]"
    assert type_of(torch.zeros((), device="meta")) == ArrayType("float32", (), "meta")
    assert type_of(torch.nn.Parameter(torch.zeros(2))) == ArrayType("float32", (2,))
    assert type_of(torch.float32) == ObjectType("torch.dtype")
    assert type_of(torch.device("cpu")) == ObjectType("torch.device")
    assert type_of(torch.Size([1])) == ObjectType("torch.Size")
    assert type_of(torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])) == ObjectType("torch.Tensor")
    pair = TupleType((ArrayType("float32", (2,)), ArrayType("int64", (2,))))
    assert type_of(torch.zeros(2, 3).max(dim=1)) == pair
    assert type_of([torch.zeros(1), 2]).items == (ArrayType("float32", (1,)), ScalarType("int"))


def test_types_of_symbolic_sizes():
    program = torch.export.export(
        torch.nn.ReLU(), (torch.zeros(4, 3),), dynamic_shapes={"input": {0: torch.export.Dim("batch")}}
    )
    found = type_of(next(node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"))
    assert isinstance(found.shape[0], str) and found.shape[1] == 3


def same(left, right):
    return guest("torch").same_value(left, right)


def test_same_constants():
    assert same(torch.ones(2), torch.ones(2))
    assert same(torch.tensor([math.nan, 1.0]), torch.tensor([math.nan, 1.0]))
    assert same(torch.tensor([1 + 2j]), torch.tensor([1 + 2j]))
    assert same(torch.tensor([True]), torch.tensor([True]))
    assert same(torch.float32, torch.float32) and same(torch.device("cpu"), torch.device("cpu"))
    shared = torch.zeros(2, device="meta")
    assert same(shared, shared)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (torch.ones(2), torch.zeros(2)),
        (torch.ones(2), torch.ones(2, 1)),
        (torch.ones(2), torch.ones(2, dtype=torch.float64)),
        (torch.ones(2), 1.0),
        (torch.ones(2), torch.ones(2, requires_grad=True)),
        (torch.ones(2), torch.nn.Parameter(torch.ones(2), requires_grad=False)),
        (torch.tensor([0.0]), torch.tensor([-0.0])),
        (torch.tensor([math.nan]), torch.tensor([1.0])),
        (torch.zeros(2, device="meta"), torch.zeros(2, device="meta")),
        (torch.ones(2), torch.ones(2).to_sparse()),
        (torch.float32, torch.float64),
        (torch.Size([1]), (1,)),
    ],
)
def test_different_constants(left, right):
    assert same(left, right) is False and same(right, left) is False


class Colour(enum.Enum):
    RED = 1


def test_foreign_values_are_nobodys_business():
    assert same(1, 1) is None and same(Colour.RED, Colour.RED) is None


def test_waking_hides_torchs_frames():
    traced = clew.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))
    calls = traced.graph.find_nodes(op="call_module")
    assert [node.source.filename for node in calls] == [__file__, __file__]


def test_announcing_imports_no_framework():
    program = "import sys, clew.frameworks; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
