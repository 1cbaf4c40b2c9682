"""CodeGen: the hooks that change the generated function, and on_generate_code."""

import typing

import pytest
import torch

from .helpers import of, targets


def add_two(x, y):
    return torch.relu(x) + y


class ListCodeGen_:
    """Makes the function take its inputs as one list."""

    def gen_fn_def(self, free_vars, maybe_return_annotation):
        lines = [f"def forward(self, args_list: List[torch.Tensor]){maybe_return_annotation}:"]
        lines.append(f"    {', '.join(free_vars)} = args_list")
        return "\n".join(lines)

    def additional_globals(self):
        return [("List", typing.List)]

    def process_inputs(self, *inputs):
        assert len(inputs) == 1
        return inputs[0]


def list_codegen(fx):
    return type("ListCodeGen", (ListCodeGen_, fx.CodeGen), {})()


def test_default_codegen(fx):
    codegen = fx.CodeGen()
    assert codegen.gen_fn_def(["a", "b"], "") == "def forward(self, a, b):"
    assert codegen.gen_fn_def(["self", "a"], " -> int") == "def forward(self, a) -> int:"
    assert codegen.process_inputs(1, 2) == (1, 2)
    assert codegen.process_outputs(3) == 3
    assert codegen.additional_globals() == []


def test_default_generate_output(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    assert fx.CodeGen().generate_output(x) == "return x"


def test_custom_signature(fx):
    traced = fx.symbolic_trace(add_two)
    x, y = torch.randn(3), torch.randn(3)
    traced.graph.set_codegen(list_codegen(fx))
    traced.recompile()
    torch.testing.assert_close(traced([x, y]), add_two(x, y))
    assert "args_list" in traced.code


def test_additional_globals_are_in_the_python_code(fx):
    traced = fx.symbolic_trace(add_two)
    traced.graph.set_codegen(list_codegen(fx))
    assert traced.graph.python_code("self").globals["List"] is typing.List


def test_custom_signature_in_the_interpreter(fx):
    traced = fx.symbolic_trace(add_two)
    traced.graph.set_codegen(list_codegen(fx))
    x, y = torch.randn(3), torch.randn(3)
    torch.testing.assert_close(fx.Interpreter(traced).run([x, y]), add_two(x, y))


def test_custom_signature_through_the_transformer(fx):
    traced = fx.symbolic_trace(add_two)
    traced.graph.set_codegen(list_codegen(fx))
    traced.recompile()
    x, y = torch.randn(3), torch.randn(3)
    transformed = fx.Transformer(traced).transform()
    torch.testing.assert_close(transformed([x, y]), add_two(x, y))


def test_custom_output(fx):
    class Doubled(fx.CodeGen):
        def generate_output(self, output_args):
            return f"return 2 * {output_args!r}"

        def process_outputs(self, outputs):
            return outputs * 2

    traced = fx.symbolic_trace(add_two)
    traced.graph.set_codegen(Doubled())
    traced.recompile()
    one = torch.tensor(1.0)
    assert traced(one, one) == 4.0
    assert fx.Interpreter(traced).run(one, one) == 4.0


def test_custom_output_with_keyword_options(fx):
    class Tagged(fx.CodeGen):
        def generate_output(self, output_args, *, descs=None, repr_fn=None):
            return f"return ('tag', {output_args!r})"

    traced = fx.symbolic_trace(add_two)
    traced.graph.set_codegen(Tagged())
    traced.recompile()
    assert traced(torch.tensor(1.0), 1)[0] == "tag"


def test_custom_fn_def_may_add_lines(fx):
    class Checked(fx.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            return super().gen_fn_def(free_vars, maybe_return_annotation) + "\n    assert x is not None"

    traced = fx.symbolic_trace(add_two)
    traced.graph.set_codegen(Checked())
    traced.recompile()
    with pytest.raises(AssertionError):
        traced(None, 1)


def test_codegen_survives_a_recompile(fx):
    traced = fx.symbolic_trace(add_two)
    traced.graph.set_codegen(list_codegen(fx))
    traced.recompile()
    first = traced.code
    traced.recompile()
    assert traced.code == first


def insert_before_body(line):
    return lambda _: lambda body: [line + "\n", *body]


def test_on_generate_code(fx):
    traced = fx.symbolic_trace(add_two)
    traced.graph.on_generate_code(insert_before_body("x = x * 10"))
    traced.recompile()
    assert traced(torch.tensor(1.0), 1) == 11.0
    assert "x = x * 10" in traced.code


def test_on_generate_code_is_given_the_current_transformer(fx):
    traced = fx.symbolic_trace(add_two)
    seen = []

    def make(current):
        seen.append(current)
        return lambda body: body

    traced.graph.on_generate_code(make)
    traced.graph.on_generate_code(make)
    assert seen[0] is None and callable(seen[1])


def test_on_generate_code_can_be_chained(fx):
    traced = fx.symbolic_trace(add_two)
    traced.graph.on_generate_code(insert_before_body("x = x + 1"))
    traced.graph.on_generate_code(lambda current: lambda body: ["x = x * 10\n", *current(body)])
    traced.recompile()
    assert traced(torch.tensor(1.0), 0) == 11.0


def test_on_generate_code_as_context_manager(fx):
    traced = fx.symbolic_trace(add_two)
    with traced.graph.on_generate_code(insert_before_body("x = x * 10")):
        traced.recompile()
        assert "x * 10" in traced.code
    traced.recompile()
    assert "x * 10" not in traced.code
    assert traced(torch.tensor(1.0), 1) == 2.0


def test_on_generate_code_context_managers_nest(fx):
    traced = fx.symbolic_trace(add_two)
    with traced.graph.on_generate_code(insert_before_body("a = 1")):
        with traced.graph.on_generate_code(lambda current: lambda body: ["b = 2\n", *current(body)]):
            traced.recompile()
            assert "a = 1" in traced.code and "b = 2" in traced.code
        traced.recompile()
        assert "a = 1" in traced.code and "b = 2" not in traced.code
    traced.recompile()
    assert "a = 1" not in traced.code


def test_on_generate_code_is_undone_after_an_error(fx):
    traced = fx.symbolic_trace(add_two)
    with pytest.raises(KeyError):
        with traced.graph.on_generate_code(insert_before_body("a = 1")):
            raise KeyError
    traced.recompile()
    assert "a = 1" not in traced.code


def test_body_transformer_receives_strings(fx):
    traced = fx.symbolic_trace(add_two)
    bodies = []
    traced.graph.on_generate_code(lambda _: lambda body: bodies.append(list(body)) or body)
    traced.recompile()
    assert bodies and all(isinstance(line, str) for line in bodies[-1])
    assert "torch.relu" in "".join(bodies[-1])


def test_python_code_of_a_graph_without_module(fx):
    graph = fx.Tracer().trace(add_two)
    assert "torch.relu(x)" in graph.python_code("self").src


def test_pytree_codegen_by_hand(fx):
    traced = fx.symbolic_trace(lambda a, b: a + b)
    _, spec = torch.utils._pytree.tree_flatten(({"a": 0, "b": 0},))
    traced.graph.set_codegen(fx._PyTreeCodeGen(fx._PyTreeInfo(["inputs"], spec, None)))
    traced.recompile()
    assert traced({"a": 1, "b": 2}) == 3


def test_pytree_codegen_with_an_output_spec(fx):
    graph = fx.Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    graph.output([a, b])
    _, inputs = torch.utils._pytree.tree_flatten(((0, 0),))
    _, outputs = torch.utils._pytree.tree_flatten({"x": 0, "y": (0,)})
    graph.set_codegen(fx._PyTreeCodeGen(fx._PyTreeInfo(["pair"], inputs, outputs)))
    assert fx.GraphModule({}, graph)((1, 2)) == {"x": 1, "y": (2,)}


def test_set_codegen_does_not_touch_the_nodes(fx):
    traced = fx.symbolic_trace(add_two)
    before = targets(traced.graph)
    traced.graph.set_codegen(list_codegen(fx))
    assert targets(traced.graph) == before
    assert len(of(traced.graph, "placeholder")) == 2


def test_line_numbers_lead_back_to_nodes(fx):
    traced = fx.symbolic_trace(lambda x: torch.neg(torch.relu(x)))
    python_code = traced.graph.python_code("self")
    nodes = list(traced.graph.nodes)
    lines = python_code.src.splitlines()
    start = python_code._prologue_start
    assert "def forward" in lines[start - 1]
    for offset, index in python_code._lineno_map.items():
        if index is not None and nodes[index].op == "call_function":
            assert nodes[index].name in lines[start - 1 + offset]
