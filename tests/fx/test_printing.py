"""Text: str(graph), format_node, print_tabular, print_readable, code, str(module)."""

import importlib.util
import linecache
import re
import traceback

import pytest
import torch

from .helpers import Inner, LinearOnly, Outer, of, only

HAS_TABULATE = importlib.util.find_spec("tabulate") is not None


def test_str_of_graph_lists_the_calls(fx):
    text = str(fx.symbolic_trace(lambda x: torch.relu(x) + 1).graph)
    assert text.startswith("graph(")
    assert "%relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})" in text
    assert "%add : [num_users=1] = call_function[target=operator.add](args = (%relu, 1), kwargs = {})" in text
    assert text.rstrip().endswith("return add")


def test_str_of_a_graph_with_every_opcode(fx):
    text = str(fx.symbolic_trace(Outer()).graph)
    assert "call_module[target=inner.linear]" in text
    assert "get_attr[target=inner.scale]" in text
    assert "call_method[target=relu]" in text


def test_format_node_of_a_call_function(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(torch.add, (x, 1), {"alpha": 2})
    assert node.format_node() == (
        "%add : [num_users=0] = call_function[target=torch.add](args = (%x, 1), kwargs = {alpha: 2})"
    )


def test_format_node_of_a_placeholder(fx):
    graph = fx.Graph()
    assert graph.placeholder("x").format_node() == "%x : [num_users=0] = placeholder[target=x]"
    assert graph.placeholder("y", default_value=3).format_node().endswith("placeholder[target=y](default=3)")


def test_format_node_of_a_get_attr(fx):
    assert fx.Graph().get_attr("a.b").format_node() == "%a_b : [num_users=0] = get_attr[target=a.b]"


def test_format_node_of_a_call_method(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    assert "call_method[target=view](args = (%x, -1), kwargs = {})" in graph.call_method("view", (x, -1)).format_node()


def test_format_node_of_a_call_module(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    assert "call_module[target=a.b](args = (%x,), kwargs = {})" in graph.call_module("a.b", (x,)).format_node()


def test_format_node_of_the_output(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    assert graph.output(x).format_node() == "return x"


def test_format_node_with_nested_arguments(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    text = graph.call_function(torch.cat, ([x, (x,)],), {"d": {"k": x}}).format_node()
    assert "args = ([%x, (%x,)],), kwargs = {d: {k: %x}}" in text


def test_format_node_names_builtins(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    assert "target=builtins.getattr" in graph.call_function(getattr, (x, "shape")).format_node()


def test_format_node_counts_users(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(torch.neg, (x,))
    graph.call_function(torch.abs, (x,))
    assert "[num_users=2]" in x.format_node()


def test_format_node_shows_the_type(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.create_node("call_function", torch.neg, (x,), type_expr=torch.Tensor)
    assert node.format_node().startswith("%neg : torch.Tensor [num_users=0]")


def test_print_tabular(fx, capsys):
    graph = fx.symbolic_trace(lambda x: torch.relu(x)).graph
    if not HAS_TABULATE and graph.__class__.__module__.startswith("torch."):
        with pytest.raises(ImportError):
            graph.print_tabular()
        assert "tabulate" in capsys.readouterr().out
        return
    graph.print_tabular()
    text = capsys.readouterr().out
    header = text.splitlines()[0].split()
    assert header == ["opcode", "name", "target", "args", "kwargs"]
    assert re.search(r"placeholder\s+x\s+x\s+\(\)\s+\{\}", text)
    assert re.search(r"call_function\s+relu\s+\S.*relu.*\s\(x,\)\s+\{\}", text)
    assert re.search(r"output\s+output\s+output\s+\(relu,\)\s+\{\}", text)


def test_code_is_a_forward_method(fx):
    code = fx.symbolic_trace(lambda x, y: torch.relu(x) + y).code
    assert "def forward(self, x, y):" in code
    assert "torch.relu(x)" in code
    assert "return add" in code


def test_code_frees_locals_at_last_use(fx):
    code = fx.symbolic_trace(lambda x: torch.neg(torch.relu(x))).graph.python_code("self").src
    assert "x = None" in code and "relu = None" in code


def test_code_does_not_free_what_is_used_later(fx):
    code = fx.symbolic_trace(lambda x: torch.relu(x) + x).graph.python_code("self").src
    relu_line = [line for line in code.splitlines() if "torch.relu" in line][0]
    assert "x = None" not in relu_line


def test_code_of_operators_is_infix(fx):
    code = fx.symbolic_trace(lambda x, y: -(x + y) * x[0] @ y).code
    for text in ("x + y", "-add", "x[0]", "@ y"):
        assert text in code


def test_code_of_attributes_is_dotted(fx):
    assert "x.shape" in fx.symbolic_trace(lambda x: x.shape).code


def test_code_of_methods(fx):
    assert "x.view(-1, 2)" in fx.symbolic_trace(lambda x: x.view(-1, 2)).code


def test_code_of_keywords(fx):
    assert re.search(r"torch\.sum\(x, dim ?= ?1\)", fx.symbolic_trace(lambda x: torch.sum(x, dim=1)).code)


def test_code_of_modules_and_parameters(fx):
    code = fx.symbolic_trace(Outer()).code
    assert "self.inner.linear(x)" in code
    assert "self.inner.scale" in code
    assert 'getattr(self.tail, "0")' in code or "self.tail[0]" in code


def test_code_of_defaults(fx):
    def with_default(x, n=3):
        return x + n

    assert re.search(r"def forward\(self, x, n ?= ?3\):", fx.symbolic_trace(with_default).code)


def test_code_of_star_arguments(fx):
    class Star(torch.nn.Module):
        def forward(self, *args, **kwargs):
            return args[0] + kwargs["k"]

    assert "def forward(self, *args, **kwargs):" in fx.symbolic_trace(Star()).code


def test_code_of_an_empty_graph(fx):
    module = fx.GraphModule({}, fx.Graph())
    assert "def forward(self):" in module.code
    assert module() is None


def test_code_compiles_alone(fx):
    compile(fx.symbolic_trace(Outer()).code, "<test>", "exec")


def test_python_code(fx):
    python_code = fx.symbolic_trace(lambda x: torch.relu(x)).graph.python_code("self")
    assert isinstance(python_code, fx.PythonCode)
    assert "def forward(self, x):" in python_code.src
    assert python_code.globals["torch"] is torch


def test_python_code_with_another_root_name(fx):
    src = fx.symbolic_trace(LinearOnly()).graph.python_code("owner").src
    assert "owner.linear(" in src


def test_python_code_can_be_executed(fx):
    python_code = fx.symbolic_trace(lambda x: torch.relu(x) + 1).graph.python_code("self")
    namespace = dict(python_code.globals)
    exec(python_code.src, namespace)
    assert namespace["forward"](None, torch.tensor(-1.0)) == 1.0


def test_print_readable(fx, capsys):
    traced = fx.symbolic_trace(LinearOnly())
    text = traced.print_readable()
    assert capsys.readouterr().out.strip() == text.strip()
    assert "class LinearOnly(torch.nn.Module):" in text
    assert "self.linear(x)" in text


def test_print_readable_can_be_silent(fx, capsys):
    text = fx.symbolic_trace(LinearOnly()).print_readable(print_output=False)
    assert capsys.readouterr().out == ""
    assert "def forward(self, x):" in text


def test_print_readable_shows_nested_graph_modules(fx):
    class Holder(torch.nn.Module):
        def __init__(self, child):
            super().__init__()
            self.child = child

        def forward(self, x):
            return self.child(x)

    class Leaves(fx.Tracer):
        def is_leaf_module(self, m, name):
            return True

    module = Holder(fx.symbolic_trace(Inner()))
    text = fx.GraphModule(module, Leaves().trace(module)).print_readable(print_output=False)
    assert "class child(torch.nn.Module):" in text


def test_print_readable_shows_tensor_metadata(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(x))
    fx.ShapeProp(traced).propagate(torch.ones(2, 3))
    assert "f32[2, 3]" in traced.print_readable(print_output=False)


def test_str_of_the_module_holds_the_code(fx):
    traced = fx.symbolic_trace(LinearOnly())
    text = str(traced)
    assert "LinearOnly(" in text and "(linear): Linear" in text
    assert "def forward(self, x):" in text


def mismatched(x):
    return torch.matmul(x, x)


def test_failing_line_of_the_generated_code_is_shown(fx, capsys):
    traced = fx.symbolic_trace(mismatched)
    with pytest.raises(RuntimeError) as caught:
        traced(torch.ones(2, 3))
    assert "torch.matmul(x, x)" in "".join(traceback.format_exception(caught.value)) + capsys.readouterr().err


def test_failing_call_says_that_it_is_generated_code(fx, capsys):
    traced = fx.symbolic_trace(mismatched)
    with pytest.raises(RuntimeError) as caught:
        traced(torch.ones(2, 3))
    # torch.fx prints it to stderr; here it is a note on the exception itself, with the user's own line.
    printed = capsys.readouterr().err + "\n".join(getattr(caught.value, "__notes__", []))
    assert re.search(r"line \d+ of the traced Module's generated|In the generated forward of \w+, line \d+", printed)


def test_failing_call_of_a_leaf_has_no_such_note(fx, capsys):
    traced = fx.symbolic_trace(LinearOnly())
    with pytest.raises(RuntimeError):
        traced(torch.ones(2, 7))
    assert "FX-traced Module" not in capsys.readouterr().err


def test_generated_source_is_in_linecache(fx):
    traced = fx.symbolic_trace(mismatched)
    filename = traced.forward.__code__.co_filename
    assert any("torch.matmul" in line for line in linecache.getlines(filename))


def test_printing_leaves_the_graph_alone(fx):
    traced = fx.symbolic_trace(Outer())
    before = [(node.name, node.args, dict(node.meta)) for node in traced.graph.nodes]
    str(traced.graph), traced.code, traced.print_readable(print_output=False), str(traced)
    assert before == [(node.name, node.args, dict(node.meta)) for node in traced.graph.nodes]


def test_repr_of_the_arguments_of_a_node(fx):
    traced = fx.symbolic_trace(lambda x, y: torch.cat([x, y], dim=0))
    assert repr(only(traced.graph, "call_function").args) == "([x, y],)"


def test_code_names_stay_in_order(fx):
    traced = fx.symbolic_trace(lambda a, b: (a + b) * (a - b))
    positions = [traced.code.index(f"{node.name} = ") for node in of(traced.graph, "call_function")]
    assert positions == sorted(positions)
