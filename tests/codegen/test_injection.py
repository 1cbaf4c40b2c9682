"""No name, string, annotation or value of a graph gets into the code as code."""

import enum
import inspect
import types
import typing

import pytest
import torch

import clew
from clew.ir.source import SourceLine
from clew.ir.types import ArrayType

from .running import code_of, exact_node, keep, module_of, new_graph

EVIL = "x'\"\n    );__import__('builtins').EVIL.append(1)#\\"


@pytest.fixture(autouse=True)
def nothing_ran(monkeypatch):
    """Hostile text would append to a list; it must be empty at the end."""
    ran: list[int] = []
    monkeypatch.setattr("builtins.EVIL", ran, raising=False)
    yield
    assert ran == []


ATTACK = "__import__('builtins').EVIL.append(1)"


class EvilText(str):
    """A string that claims to be code."""

    def __repr__(self):
        return ATTACK

    __str__ = __repr__

    def __format__(self, spec):
        return ATTACK

    def isidentifier(self):
        return True

    def isascii(self):
        return True

    def split(self, *args):
        return [self]

    def lstrip(self, *args):
        return self


class EvilNumber(int):
    def __repr__(self):
        return ATTACK

    __str__ = __repr__

    def __format__(self, spec):
        return ATTACK


class EvilFloat(float):
    def __repr__(self):
        return ATTACK


class EvilObject:
    __name__ = ATTACK
    __qualname__ = ATTACK
    __module__ = ATTACK

    def __repr__(self):
        return ATTACK

    def __call__(self, *args):
        return args


EvilClass = type(ATTACK, (), {"__module__": "builtins", "__qualname__": ATTACK})
EvilMember = enum.Enum("EvilMember", {ATTACK: 1, "class": 2, "None": 3, "ﬁ": 4, "odd name": 5})
TEXTS = [EVIL, ATTACK, EvilText("harmless"), EvilText(EVIL)]


@pytest.mark.parametrize("text", TEXTS)
def test_parameters(text):
    graph, x = new_graph(text)
    graph.output(x)
    assert module_of(graph)(3) == 3


@pytest.mark.parametrize("text", TEXTS)
def test_names_of_nodes(text):
    graph, x = new_graph("x")
    first = graph.create_node("call_function", keep, (x,), {}, text)
    second = graph.call_function(keep, (first,))
    second.name = text
    third = exact_node(graph, "call_function", type(text)(str.__str__(text) + "z"), keep, (second,))
    graph.output(third)
    assert module_of(graph)(3) == (((((((3,), {}),), {}),), {}))


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("op", ["get_attr", "call_module", "call_method"])
def test_targets(op, text):
    graph, x = new_graph("x")
    graph.output(graph.create_node(op, text, () if op == "get_attr" else (x,)))
    code = graph.python_code("self")
    compile(code.src, "generated", "exec")
    space = dict(code.globals)
    exec(code.src, space)
    with pytest.raises(AttributeError):
        space["forward"](object(), 3)


@pytest.mark.parametrize("text", TEXTS)
def test_keywords_strings_and_defaults(text):
    graph = clew.Graph()
    x = graph.create_node("placeholder", "x", (text,))
    made = graph.call_function(keep, (text, {text: x}), {text: slice(text)})
    graph.output(made)
    result = module_of(graph)()
    assert result == ((str.__str__(text), {text: text}), {text: slice(text)})


@pytest.mark.parametrize("text", TEXTS)
def test_annotations(text):
    graph, x = new_graph("x")
    x.type = text
    y = graph.create_node("call_function", keep, (x,), type_expr=list[text])
    out = graph.output(y)
    out.type = typing.ForwardRef("List[int]") if type(text) is EvilText else typing.Literal[text]
    module = module_of(graph)
    assert module(3) == ((3,), {})
    assert inspect.signature(module.forward).parameters["x"].annotation == text


@pytest.mark.parametrize("text", TEXTS)
def test_the_names_of_classes(text):
    graph, x = new_graph("x")
    graph.output(x)
    module = clew.GraphModule({}, graph, class_name=text.replace("\0", ""))
    assert module(3) == 3
    assert ATTACK not in module.code or type(text) is not EvilText


@pytest.mark.parametrize(
    "value",
    [EvilNumber(3), EvilFloat(2.5), EvilObject(), EvilClass, EvilClass(), *EvilMember, range(EvilNumber(3))],
    ids=lambda value: type(value).__name__,
)
def test_values_with_hostile_accounts_of_themselves(value):
    graph, x = new_graph("x")
    kept = graph.call_function(keep, (value, [value], {1: (value,)}, slice(value)), {"key": value})
    graph.output(kept)
    (found, listed, mapped, part), keywords = module_of(graph)(3)
    assert type(found) is type(value) and found == value
    assert listed[0] == mapped[1][0] == part.stop == keywords["key"] == value
    assert ATTACK not in code_of(graph).replace(repr(ATTACK), "")


def test_hostile_functions_as_targets():
    graph, x = new_graph("x")
    graph.output(graph.call_function(EvilObject(), (x,)))
    assert module_of(graph)(3) == (3,)


def test_hostile_types_in_readable_code():
    graph, x = new_graph("x")
    y = graph.call_function(keep, (x,))
    graph.output(y)
    x.value_type = y.value_type = ArrayType(EVIL, ("\\",), "cpu\n")
    space: dict[str, object] = {}
    exec(graph.python_code("self", verbose=True, include_device=True).src, space)
    assert space["forward"](None, 3) == ((3,), {})


def test_hostile_source_lines_stay_comments():
    graph, x = new_graph("x")
    y = graph.call_function(keep, (x,))
    graph.output(y)
    y.source = SourceLine(f"a.py\n{ATTACK}", 3, f"f\n{ATTACK}\r\x0c\u2028{ATTACK}")
    space: dict[str, object] = {}
    exec(graph.python_code("self", verbose=True).src, space)
    assert space["forward"](None, 3) == ((3,), {})


def test_a_module_object_that_lies_about_its_name():
    liar = types.ModuleType("torch; " + ATTACK)
    other = types.ModuleType("math")
    graph, x = new_graph("x")
    graph.output((liar, other, torch))
    assert module_of(graph)(3) == (liar, other, torch)
