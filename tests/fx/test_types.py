"""Type annotations: kept on nodes, printed in the code, and the helper ``annotate``."""

import inspect
import typing

import pytest
import torch

from .helpers import names, of, only


class Point(typing.NamedTuple):
    x: torch.Tensor
    y: torch.Tensor


def test_input_annotations_are_kept(fx):
    def typed(x: torch.Tensor, n: int):
        return x + n

    placeholders = of(fx.symbolic_trace(typed).graph, "placeholder")
    assert [node.type for node in placeholders] == [torch.Tensor, int]


def test_missing_annotation_is_none(fx):
    assert of(fx.symbolic_trace(lambda x: x).graph, "placeholder")[0].type is None


def test_return_annotation_is_kept(fx):
    def typed(x) -> torch.Tensor:
        return x

    assert only(fx.symbolic_trace(typed).graph, "output").type is torch.Tensor


@pytest.mark.parametrize(
    "annotation",
    [
        torch.Tensor, int, float, bool, str, typing.Optional[torch.Tensor], typing.List[torch.Tensor],
        typing.Dict[str, torch.Tensor], typing.Tuple[int, str], typing.Tuple[int, ...], typing.Any, list[int],
        dict[str, torch.Tensor], tuple[int, str], int | None, typing.List[typing.Optional[torch.Tensor]],
        typing.Union[int, str], torch.dtype, torch.device, type(None), torch.nn.Module,
        Point, typing.List[typing.Tuple[int, int]], torch.Size,
    ],
    ids=repr,
)  # fmt: skip
def test_annotation_survives_code(fx, annotation):
    def typed(x):
        return x

    typed.__annotations__ = {"x": annotation, "return": annotation}
    traced = fx.symbolic_trace(typed)
    assert only(traced.graph, "placeholder").type == annotation
    assert traced(3) == 3
    parameter = inspect.signature(traced.forward).parameters["x"]
    assert parameter.annotation is not inspect.Parameter.empty
    again = fx.symbolic_trace(traced)
    assert only(again.graph, "placeholder").type == annotation
    assert only(again.graph, "output").type == annotation


def test_annotation_text_in_code(fx):
    def typed(x: torch.Tensor) -> torch.Tensor:
        return x

    code = fx.symbolic_trace(typed).code
    assert "torch.Tensor" in code and "->" in code


def test_annotation_with_default(fx):
    def typed(x: torch.Tensor, n: int = 3):
        return x + n

    traced = fx.symbolic_trace(typed)
    assert traced(1) == 4
    assert inspect.signature(traced.forward).parameters["n"].default == 3


def test_module_annotations(fx):
    class Typed(torch.nn.Module):
        def forward(self, x: typing.List[torch.Tensor]) -> torch.Tensor:
            return x[0]

    traced = fx.symbolic_trace(Typed())
    assert only(traced.graph, "placeholder").type == typing.List[torch.Tensor]


def test_scripting_uses_the_annotations(fx):
    class Typed(torch.nn.Module):
        def forward(self, x: typing.List[torch.Tensor], n: int) -> torch.Tensor:
            return x[0] + x[1] * n

    scripted = torch.jit.script(fx.symbolic_trace(Typed()))
    assert scripted([torch.ones(1), torch.ones(1)], 3).item() == 4.0


def test_scripting_a_dict_annotation(fx):
    class Typed(torch.nn.Module):
        def forward(self, x: typing.Dict[str, torch.Tensor]) -> torch.Tensor:
            return x["a"] + x["b"]

    scripted = torch.jit.script(fx.symbolic_trace(Typed()))
    assert scripted({"a": torch.ones(1), "b": torch.ones(1)}).item() == 2.0


def test_node_type_can_be_set(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(x))
    node = only(traced.graph, "call_function")
    node.type = torch.Tensor
    traced.recompile()
    assert "torch.Tensor" in traced.code
    assert traced(torch.tensor(-1.0)) == 0.0


def test_type_expr_of_created_nodes(fx):
    graph = fx.Graph()
    x = graph.placeholder("x", type_expr=torch.Tensor)
    y = graph.create_node("call_function", torch.relu, (x,), type_expr=torch.Tensor)
    out = graph.output(y, type_expr=torch.Tensor)
    assert [node.type for node in (x, y, out)] == [torch.Tensor] * 3


def test_type_is_kept_by_node_copy(fx):
    graph = fx.Graph()
    x = graph.placeholder("x", type_expr=int)
    assert fx.Graph().node_copy(x).type is int


def test_annotate_sets_the_type(fx):
    def annotated(x):
        y = fx.annotate(x + 1, torch.Tensor)
        return y

    traced = fx.symbolic_trace(annotated)
    assert only(traced.graph, "call_function").type is torch.Tensor


def test_annotate_passes_other_values_through(fx):
    assert fx.annotate(3, int) == 3


def test_annotate_twice_is_refused(fx):
    def annotated(x):
        y = fx.annotate(x + 1, torch.Tensor)
        return fx.annotate(y, int)

    with pytest.raises(RuntimeError, match="already"):
        fx.symbolic_trace(annotated)


def test_annotate_on_a_typed_parameter_is_refused(fx):
    def annotated(x: torch.Tensor):
        return fx.annotate(x, torch.Tensor)

    with pytest.raises(RuntimeError, match="already"):
        fx.symbolic_trace(annotated)


def test_annotation_in_the_printed_node(fx):
    def typed(x: torch.Tensor):
        return x

    assert "torch.Tensor" in only(fx.symbolic_trace(typed).graph, "placeholder").format_node()


def test_string_annotations_do_not_break(fx):
    def typed(x: "torch.Tensor") -> "torch.Tensor":
        return x

    traced = fx.symbolic_trace(typed)
    assert only(traced.graph, "placeholder").type in ("torch.Tensor", torch.Tensor)
    assert traced(2) == 2


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ([int, int], list[int]), ((int, int), tuple[int, ...]), ([], list[typing.Any]), ((), tuple[typing.Any, ...]),
        ([int, str], list[typing.Any]), ([bool, int], list[int]), ([int, bool], list[int]), (int, int),
    ],
    ids=repr,
)  # fmt: skip
def test_create_type_hint(fx, value, hint):
    assert fx.create_type_hint(value) == hint


def test_create_type_hint_warns_on_failure(fx):
    with pytest.warns(UserWarning, match="type hint"):
        assert fx.create_type_hint([3]) == [3]


@pytest.mark.parametrize(
    ("signature", "argument", "matches"),
    [
        (int, int, True), (int, str, False), (torch.Tensor, torch.nn.Parameter, True),
        (typing.Union[int, str], str, True), (typing.Union[int, str], float, False),
        (typing.Optional[torch.Tensor], torch.Tensor, True), (typing.Optional[int], type(None), True),
        (typing.List[int], int, True), (typing.List[int], typing.List[int], True),
        (typing.List[int], typing.Tuple[int, int], True), (typing.List[int], typing.Tuple[int, ...], True),
        (typing.List[int], typing.Tuple[str, int], False), (typing.List[torch.Tensor], int, False),
        (int, torch.dtype, True), (torch.Tensor, int, False), (int, bool, True),
    ],
    ids=repr,
)  # fmt: skip
def test_type_matches(fx, signature, argument, matches):
    assert fx.type_matches(signature, argument) is matches


def test_typed_names_stay_readable(fx):
    def typed(x: Point):
        return x.x + x.y

    traced = fx.symbolic_trace(typed)
    assert names(traced.graph)[0] == "x"
    assert traced(Point(1, 2)) == 3
