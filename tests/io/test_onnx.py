"""What is written as ONNX does what the program does, in onnxruntime, for other sizes and on every way."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

import clew

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxscript", "onnxruntime")),
    reason="pip install clew[onnx]",
)


def written(fn: Any, folder: Path, *args: Any, calls: Any = (), **options: Any) -> Any:
    """Write a program, and compare it in onnxruntime for these calls as well."""
    found = clew.to_onnx(clew.trace(fn, args), folder / "program.onnx", args, **options)
    engine = importlib.import_module("onnxruntime").InferenceSession(found.path)
    assert found.checked
    for call in (args, *calls):
        with torch.no_grad():
            wanted = fn(*call)
        given = dict(zip(found.inputs, (one.numpy() for one in call if isinstance(one, torch.Tensor)), strict=True))
        results = engine.run(None, {one.name: given[one.name] for one in engine.get_inputs()})
        wanted = list(wanted.values()) if isinstance(wanted, dict) else wanted
        wanted = wanted if isinstance(wanted, (list, tuple)) else [wanted]
        for one, other in zip(results, wanted, strict=True):
            torch.testing.assert_close(torch.as_tensor(one), torch.as_tensor(other), rtol=1e-4, atol=1e-4)
    return found


X = torch.rand(3, 4)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.scale = torch.nn.Linear(4, 4), torch.nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> Any:
        if x.sum() > 0:
            return self.fc(x), x
        return x * self.scale, x + 1


def ops(path: str) -> list[str]:
    return [node.op_type for node in importlib.import_module("onnx").load(path).graph.node]


def test_a_branch_is_an_if(tmp_path: Path) -> None:
    found = written(Net().eval(), tmp_path, X, calls=[(-X,), (torch.rand(7, 4),), (-torch.rand(2, 4),)])
    assert "If" in ops(found.path)


def test_a_loop_is_a_loop(tmp_path: Path) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        while x.sum() < 100:
            x = x * 2 + 1
        return x - 1

    found = written(program, tmp_path, X, calls=[(X + 50,), (torch.rand(5, 2),), (X / 100,)])
    assert "Loop" in ops(found.path)


def test_sizes_are_named_and_results_too(tmp_path: Path) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> Any:
        return {"sum": (x @ y).sum(0) + x.shape[0], "rows": x.shape[0]}

    found = written(program, tmp_path, X, torch.rand(4, 2), calls=[(torch.rand(5, 6), torch.rand(6, 3))])
    assert found.outputs == ("sum", "rows")
    assert found.inputs == ("x", "y")
    assert set(found.sizes) == {"x_0", "x_1", "y_1"}


def test_a_size_of_one_in_the_example_stays_free(tmp_path: Path) -> None:
    written(torch.nn.Linear(4, 2).eval(), tmp_path, torch.rand(1, 4), calls=[(torch.rand(6, 4),)])


def test_a_size_that_is_unrolled_is_fixed(tmp_path: Path) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        for i in range(x.shape[0]):
            x = x + i * x[i]
        return x

    found = written(program, tmp_path, X, calls=[(torch.rand(3, 6),)])
    assert found.sizes == ("x_1",)
    assert importlib.import_module("onnx").load(found.path).graph.input[0].type.tensor_type.shape.dim[0].dim_value == 3


def test_a_branch_on_a_size(tmp_path: Path) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] < 10 else x + 1

    found = written(program, tmp_path, X, calls=[(torch.rand(20, 4),)])
    assert "If" in ops(found.path)


def test_what_it_assumes_is_in_the_file(tmp_path: Path) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(-1, 2)

    captured = clew.trace(lambda x: x * 2 if x.shape[0] < 10 else x + 1, (X,), control_flow="guard")
    found = clew.to_onnx(captured, tmp_path / "program.onnx", (X,))
    assert any("x.shape[0] < 10" in one for one in found.assumed)
    entry = importlib.import_module("onnx").load(found.path).metadata_props[0]
    assert entry.key == "clew.assumes" and "x.shape[0] < 10" in entry.value
    assert clew.to_onnx(clew.trace(program, (X,)), tmp_path / "program.onnx", (X,)).checked


def test_guards_on_ranks_dtypes_and_sizes_are_settled(tmp_path: Path) -> None:
    """Only an answer that data gives is refused; one that sizes give is a condition that the file tells."""

    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        both = torch.cat([x, y])
        first, second = both.split(2, -1)
        if both.dtype == torch.float32 and both.ndim == 2 and not torch.is_autocast_enabled("cpu"):
            return first + second
        return both

    y = torch.rand(2, 4)
    captured = clew.trace(program, (X, y), control_flow="guard")
    assert any(node.target is clew.guard for node in captured.graph.nodes)
    found = clew.to_onnx(captured, tmp_path / "program.onnx", (X, y))
    assert found.checked and set(found.sizes) == {"x_0", "y_0"}

    def longer(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        both = torch.cat([x, y])
        return both * 2 if both.shape[0] > 5 else both

    found = clew.to_onnx(clew.trace(longer, (X, y)), tmp_path / "longer.onnx", (X, y))
    assert found.checked and {"x_0", "y_0"} <= set(found.sizes)
    found = clew.to_onnx(clew.trace(longer, (X, y), control_flow="guard"), tmp_path / "longer.onnx", (X, y))
    assert found.checked and "(x.shape[0] + y.shape[0]) <= 5" in found.assumed


def test_arguments_that_are_one_array_are_told(tmp_path: Path) -> None:
    found = clew.to_onnx(clew.trace(lambda x, y: x - y * 2, (X, X)), tmp_path / "program.onnx", (X, X))
    assert "x is y" in found.assumed


def test_a_branch_on_a_size_whose_sides_give_other_things_is_settled(tmp_path: Path) -> None:
    def program(x: torch.Tensor) -> Any:
        return (x, None) if x.shape[0] < 10 else (x, x + 1)

    found = clew.to_onnx(clew.trace(program, (X,)), tmp_path / "program.onnx", (X,))
    assert found.checked and "If" not in ops(found.path) and "x_0 < 10" in found.assumed


def test_products_of_groups_of_rows(tmp_path: Path) -> None:
    """The experts of a mixture: rows lie group by group, and each group has its matrix; one of them is empty."""

    def program(rows: torch.Tensor, matrices: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.grouped_mm(rows, matrices, offs=offs)

    ends = torch.tensor([2, 2, 6], dtype=torch.int32)
    args = torch.rand(6, 4), torch.rand(3, 4, 8), ends
    written(program, tmp_path, *args, calls=[(torch.rand(8, 4), torch.rand(3, 4, 8), ends + 2)])


def test_refusals(tmp_path: Path) -> None:
    class Counting(torch.nn.Module):
        calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x * self.calls

    for program, message in [
        (Counting(), "changes state"),
        (torch.nn.Sequential(torch.nn.Dropout(0.5)).train(), "random"),
    ]:
        with pytest.raises(clew.errors.InteropError, match=message):
            clew.to_onnx(clew.trace(program, (X,)), tmp_path / "program.onnx", (X,))
    guarded = clew.trace(lambda x: x * 2 if x.sum() > 0 else x + 1, (X,), control_flow="guard")
    with pytest.raises(clew.errors.InteropError, match="relies on a value"):
        clew.to_onnx(guarded, tmp_path / "program.onnx", (X,))
    assert clew.to_onnx(guarded, tmp_path / "program.onnx", (X,), unchecked=True).checked
    slicing = clew.trace(lambda x: torch.ones(3) * int(x.sum()).bit_length(), (X,))
    with pytest.raises(clew.errors.InteropError, match="exporter cannot write"):
        clew.to_onnx(slicing, tmp_path / "program.onnx", (X,))


def test_a_transformer(tmp_path: Path) -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        written(layer, tmp_path, torch.rand(2, 5, 8), calls=[(torch.rand(3, 7, 8),)])


def test_mistakes_are_told_before_any_work(tmp_path: Path) -> None:
    captured = clew.trace(torch.sin, (torch.ones(2),))
    with pytest.raises(clew.errors.InteropError, match="there is no folder"):
        clew.to_onnx(captured, tmp_path / "missing" / "x.onnx")
    with pytest.raises(clew.errors.InteropError, match="a program of numpy"):
        clew.to_onnx(clew.trace(lambda x: x + 1, (numpy.ones(2),)), tmp_path / "x.onnx")
