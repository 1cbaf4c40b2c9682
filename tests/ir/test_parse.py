"""Reading text: what is accepted, what is refused and with which words, and that nothing is ever run."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import pytest

from clew.errors import TextError
from clew.ir.equality import difference
from clew.ir.graph import Graph
from clew.ir.text import parse, to_text
from clew.ir.verify import verify
from tests.strategies import Colour

ran: list[str] = []


def notice(*args: Any) -> None:
    """A function that must not be called while a text is read."""
    ran.append("function")


@dataclasses.dataclass
class Busy:
    """A dataclass that does something when it is made, so text may not make it."""

    x: int

    def __post_init__(self) -> None:
        ran.append("class")


def value_of(text: str) -> Any:
    """The value that stands behind ``return``."""
    return parse(f"graph() {{\n  return {text}\n}}", allow=("tests",)).output_node().args[0]


def complaint(text: str, **options: Any) -> str:
    with pytest.raises(TextError) as caught:
        parse(text, **options)
    return str(caught.value)


def test_text_by_hand() -> None:
    graph = parse(
        """
        # A comment.
        graph( %x : f32[2,n] as torch.Tensor,
               %y = 3 ,  # another
        ) {
            # one more
            %add=function operator.add( %x,  %y )   # the sum

            return [ %add, ]
        }
        # the end
        """
    )
    verify(graph)
    assert to_text(graph) == (
        "graph(%x: f32[2, n] as torch.Tensor, %y = 3) {\n  %add = function operator.add(%x, %y)\n  return [%add]\n}"
    )
    assert all(node.source is None for node in graph.nodes)


def test_windows_line_ends() -> None:
    text = "graph(%x) {\n  %neg = function operator.neg(%x)  # m.py:3 in f\n  return %neg\n}"
    graph = parse(text.replace("\n", "\r\n"))
    assert to_text(graph, sources=True) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-0x10", -16),
        ("1e3", 1000.0),
        ("-0.5", -0.5),
        ('"a\\x41\\u00e9"', "aAé"),
        ("b'\\xff'", b"\xff"),
        ("()", ()),
        ("(1,)", (1,)),
        ("[1, [2]]", [1, [2]]),
        ("{1: 2, 'a': {}}", {1: 2, "a": {}}),
        ("{1, 2,}", {1, 2}),
        ("complex(1.0, 2.0)", 1 + 2j),
        ("range(3)", range(3)),
        ("frozenset([1])", frozenset({1})),
        ("builtins.int", int),
        ("tests.strategies.Colour('red')", Colour.RED),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert value_of(text) == value
    assert type(value_of(text)).__name__.removeprefix("immutable_") == type(value).__name__


FAULTS = [
    ("", "line 1: expected the word 'graph', found the end of the text"),
    ("grph() {\n}", "line 1: expected the word 'graph', found 'grph() {'"),
    ("graph() {", "line 1: expected a node such as %x, found the end of the text"),
    ("graph() {\n} }", "line 2: expected the end of the text, found '}'"),
    ("graph(%x", "line 1: expected ',' or ')', found the end of the text"),
    ("graph(x) {\n}", "line 1: expected a node such as %x, found 'x) {'"),
    ("graph(%x) { return %x }", "line 1: expected the end of the line behind '{', found ' return %x }'"),
    ("graph(%x: f33) {\n}", "line 1: this is not a type: expected the shape of an array: [, found ') {'"),
    ("graph(%x as nowhere) {\n}", "line 1: builtins.nowhere is not known: builtins has no member 'nowhere'"),
    ("graph(%x, %x) {\n}", "line 1: the name %x is given twice"),
    ("graph() {\n  %a = fly b()\n}", "line 2: unknown operation 'fly': expected one of placeholder, attr, function"),
    ("graph() {\n  %a = function b()\n}", "line 2: expected the full name of a function, such as torch.relu"),
    ("graph() {\n  %a = function math.pi()\n}", "line 2: a function is expected, but this is a float"),
    ("graph() {\n  %a = function math.nothing()\n}", "line 2: math.nothing is not known: math has no member 'nothing'"),
    ("graph() {\n  %a = method view\n}", "line 2: expected '(' and the arguments, found the end of the line"),
    ("graph() {\n  %a = attr w %b = attr v\n}", "line 2: expected the end of the line, found ' %b = attr v'"),
    ("graph() {\n  %a = method f(1 2)\n}", "line 2: expected ',' or ')', found '2)'"),
    ("graph() {\n  %a = method f(k=1, 2)\n}", "line 2: expected a keyword argument, because one stands before this"),
    ("graph() {\n  %a = method f(k=1, k=2)\n}", "line 2: the keyword 'k' is given twice"),
    ("graph() {\n  %a = method f('x\n')\n}", "line 2: expected a string in quotes on one line"),
    ("graph() {\n  return %a\n}", "line 2: %a is not defined in this graph"),
    ("graph() {\n  %b = method f(%a)\n  %a = attr w\n}", "line 2: %a is used before it is defined"),
    ("graph() {\n  %a = method f(%b)\n  %b = method f(%a)\n}", "line 2: %b is used before it is defined"),
    ("graph() {\n  %a = method f(%a)\n}", "line 2: %a is not defined in this graph"),
    ("graph() {\n  return 1\n  return 2\n}", "line 3: nothing may stand behind the output of a graph"),
    ("graph() {\n  return 1\n  %a = attr w\n}", "line 3: nothing may stand behind the output of a graph"),
    ("graph() {\n  %torch = attr w\n}", "line 2: no node can be named %torch"),
    ("graph() {\n  %class = attr w\n}", "line 2: no node can be named %class"),
    ("graph() {\n  %'a b' = attr w\n}", "line 2: no node can be named %a b"),
    ("graph(%x) {\n  return graph() {\n    return %x\n  }\n}", "line 3: %x is not defined in this graph"),
    ("graph() {\n  return @7\n}", "line 2: the object @7 is not given"),
    ("graph() {\n  return @x\n}", "line 2: expected an object such as @0, found '@x'"),
    ("graph() {\n  return (1)\n}", "line 2: a tuple of one value needs a comma"),
    ("graph() {\n  return {1: 2, 1: 3}\n}", "line 2: the key 1 stands twice"),
    ("graph() {\n  return {[1]: 2}\n}", "line 2: a key cannot be held: unhashable type"),
    ("graph() {\n  return {[1]}\n}", "line 2: a key cannot be held: unhashable type"),
    ("graph() {\n  return '\\q'\n}", "line 2: this is not a string: unknown escape \\q"),
    ("graph() {\n  return b'\\u1234'\n}", "line 2: bytes hold no characters above"),
    ("graph() {\n  return range('a')\n}", "line 2: range cannot be built of these values"),
    ("graph() {\n  return torch.device('moon')\n}", "line 2: torch.device cannot be built of these values"),
    ("graph() {\n  return nosuchpackage.thing\n}", "line 2: the graph names nosuchpackage.thing, which is not"),
    ("graph() {\n  return " + "1" * 5000 + "\n}", "line 2: Exceeds the limit (4300 digits)"),
    ("graph(%x: f32[" + "1" * 5000 + "]) {\n}", "line 1: this is not a type: expected a size"),
    ("graph() {\n  return +1\n}", "line 2: expected a value, found '+1'"),
    ("graph() {\n  return -\n}", "line 2: expected a number, found '-'"),
    ("graph() {\n  %a: int as int[str] = attr w\n}", "line 2: these types do not fit together"),
    ("graph() {\n  %a as list[int = attr w\n}", "line 2: expected ',' or ']', found '= attr w'"),
    ("graph() {\n  %a as 'x' | 'y' = attr w\n}", "line 2: these types form no union"),
]


@pytest.mark.parametrize(("text", "message"), FAULTS, ids=[message[:60] for _, message in FAULTS])
def test_faults_name_the_line_and_what_was_expected(text: str, message: str) -> None:
    found = complaint(text)
    assert found.startswith(message)
    number = message.partition(":")[0]
    assert f"\n  where: {number}:" in found


def test_a_fault_shows_the_line_and_the_way_out() -> None:
    assert complaint("graph() {\n  %b = method f(%a)\n  %a = attr w\n}") == (
        "line 2: %a is used before it is defined\n"
        "  where: line 2: %b = method f(%a)\n"
        "  why: it is defined only in line 3, and nodes run in the order in which they stand\n"
        "  what to do: move its line up"
    )
    long = complaint("graph() {\n  return [" + "1, " * 1000 + "\x1b oops]\n}")
    assert max(map(len, long.splitlines())) < 200
    assert "\x1b" not in long


def test_every_prefix_of_a_text_is_refused_cleanly() -> None:
    text = (
        "graph(%x: {'a': f32[2, n]@cuda:0} as typing.Dict[str, int | None], %k = (1, [2.5, {'a': b'x'}])) {\n"
        "  %f: int = function operator.add(%x, graph(%a) {\n    return slice(None, 3, None)\n  }, key={1, 2})"
        "  # m.py:3 in f\n"
        "  return (%f, torch.device('cpu'))\n}"
    )
    parse(text)
    for end in range(len(text)):
        with pytest.raises(TextError):
            parse(text[:end])


@pytest.mark.parametrize(
    "call",
    [
        "tests.ir.test_parse.notice(1)",
        "tests.ir.test_parse.Busy(1)",
        "tests.ir.test_parse.Busy(x=1)",
        "builtins.eval('1')",
        "builtins.open('x', 'w')",
        "os.system('true')",
        "builtins.type('X', (), {})",
        "torch.load('x')",
        "operator.attrgetter('x')",
    ],
)
def test_values_call_nothing(call: str) -> None:
    ran.clear()
    text = f"graph() {{\n  return {call}\n}}"
    assert "may not be called in a value" in complaint(text, allow=("tests", call.partition("(")[0]))
    assert ran == []


def test_functions_are_named_but_not_called() -> None:
    ran.clear()
    graph = parse("graph() {\n  %a = function tests.ir.test_parse.notice(1)\n}", allow="tests")
    assert next(iter(graph.nodes)).target is notice
    assert ran == []


def test_builtin_names_need_their_package() -> None:
    assert "expected the full name of a function" in complaint("graph() {\n  %a = function eval('1')\n}")


def test_only_vouched_packages_are_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stranger_of_the_test.py").write_text("def hello(): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "stranger_of_the_test", raising=False)
    text = "graph() {\n  %a = function stranger_of_the_test.hello()\n}"
    found = complaint(text)
    assert "the graph names stranger_of_the_test.hello, which is not allowed" in found
    assert "parse(text, allow=('stranger_of_the_test.hello',))" in found
    assert "stranger_of_the_test" not in sys.modules
    graph = parse(text, allow=("stranger_of_the_test",))
    assert next(iter(graph.nodes)).target.__name__ == "hello"
    monkeypatch.delitem(sys.modules, "stranger_of_the_test")


@pytest.mark.parametrize(
    "name",
    [
        "os.system", "builtins.eval", "builtins.exec", "builtins.open", "builtins.__import__", "torch.load",
        "torch.hub.load",
        "torch.fx.graph_module._exec_with_source", "torch._import_dotted_name", "torch.nn.modules.module.torch.load",
        "torch.import_ir_module", "torch.jit.load", "torch.ops.load_library", "torch.ops.aten.from_file",
        "torch.compile", "numpy.load", "numpy.ndarray.tofile", "numpy.lib.npyio.os.system", "jax.numpy.load",
        "jax.pure_callback", "tensorflow.raw_ops.ReadFile", "tensorflow.py_function", "operator.attrgetter",
        "typing.get_type_hints", "clew.load", "clew.ir.names.find", "clew.passes.simplify._rule",
        "clew.runtime.build.compile_function", "clew.capture.patches.Patches", "torch.nn.Module.__reduce__",
    ],
)  # fmt: skip
def test_what_reaches_beyond_arrays_is_not_allowed(name: str) -> None:
    found = complaint(f"graph(%x) {{\n  %a = function {name}(%x)\n}}")
    assert found.startswith(f"line 2: the graph names {name}, which is not allowed")
    assert f"allow=('{name}',)" in found


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("method __reduce_ex__(%x, 2)", "the graph uses __reduce_ex__"),
        ("method tofile(%x, 'a')", "the graph uses tofile"),
        ("function builtins.getattr(%x, '__class__')", "the graph uses __class__"),
        ("function builtins.getattr(%x, %x)", "whose name is not written"),
        ("function builtins.map(builtins.getattr, [%x], ['__class__'])", "the graph names builtins.getattr"),
        ("function clew.capture.python.random_numbers.draw_from(%x, 'tofile', 'a')", "the graph uses tofile"),
        ("function clew.capture.python.random_numbers.draw_from(%x, %x)", "whose name is not written"),
    ],
)
def test_members_that_reach_beyond_arrays_are_not_allowed(line: str, why: str) -> None:
    assert why in complaint(f"graph(%x) {{\n  %a = {line}\n  return %a\n}}")


def test_functions_on_arrays_are_allowed() -> None:
    names = (
        "torch.relu torch._assert torch.nn.functional.gelu torch.Tensor.add_ torch.ops.aten.add.Tensor torch.fft.fft "
        "torch.no_grad torch._C._nn.gelu numpy.add.reduce numpy.linalg.inv numpy.random.rand jax.numpy.sin "
        "jax.lax.scan jax.nn.relu tensorflow.raw_ops.MatMul tensorflow.math.sin operator.add math.sqrt clew.cond "
        "builtins.len"
    )
    for name in names.split():
        parse(f"graph(%x) {{\n  %a = function {name}(%x)\n}}")


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    assert "nested too deeply" in complaint("graph() {\n  return " + "[" * 100_000)
    deep: Any = []
    for _ in range(60):
        deep = [deep]
    graph = Graph()
    graph.output(deep)
    assert difference(parse(to_text(graph)), graph) is None


def test_parse_takes_a_string() -> None:
    with pytest.raises(TextError, match="parse takes the text of a graph, not a bytes"):
        parse(b"graph() {\n}")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("graph(%x, %n) {\n  %a = method sum(%x)\n  %b = function builtins.getattr(%x, %n)\n}", 3),
        ("graph(%x) {\n  %a = function clew.cond(%x, graph() {\n    %b = method __reduce__(3)\n  })\n}", 3),
        ("graph(%x) {\n  %a = method sum(%x)\n} where {\n  value %x.T equals 1\n  value %x.__dict__ equals 1\n}", 5),
    ],
    ids=["name_not_written", "in_a_body", "guard_of_a_graph_without_output"],
)
def test_an_attribute_that_is_not_allowed_is_named_with_its_line(text: str, line: int) -> None:
    assert complaint(text).startswith(f"line {line}: the graph uses ")


def test_names_that_are_not_written_can_be_allowed() -> None:
    text = "graph(%x, %n) {\n  %b = function builtins.getattr(%x, %n)\n}"
    assert "allow=('builtins.getattr',)" in complaint(text)
    assert to_text(parse(text, allow="builtins.getattr")) == text


def test_a_function_that_takes_names_is_no_value() -> None:
    reading = "clew.io.torchscript_operators.read_attribute"
    found = complaint(f"graph(%x, %names) {{\n  %a = function builtins.map({reading}, [%x], %names)\n}}")
    assert found.startswith(f"line 2: the graph names {reading}, which is not allowed")
    assert "__class__" in complaint(f"graph(%x) {{\n  %a = function {reading}(%x, 'y.__class__')\n}}")
