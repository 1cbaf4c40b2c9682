"""Captured programs under torch's other tools: its compiler, its exporter, its tracer, its transforms, its copies."""

from __future__ import annotations

import copy
import gc
import io
import operator
import pickle
import shutil
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import clew
from clew.runtime.torch_compile import look
from tests.speed.counts import calls_in

CALLS = pytest.mark.parametrize("calls", [0, 3], ids=["fresh", "called"])
BACKENDS = pytest.mark.parametrize("backend", ["eager", "aot_eager"])


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Model(nn.Module):
    """A layer, a buffer, numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.layer(x)) * 2 + self.shift


class Counting(nn.Module):
    """Counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x * self.calls


class Switching(nn.Module):
    """Asks for its mode and for data of the loop."""

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(2):
            x = torch.dropout(x, 0.5, False) if self.training else x + 1
        return x


def plain(x: Tensor) -> Tensor:
    return torch.relu(x * 2 + 1).sum()


def branch(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x - 1


def sized(x: Tensor) -> Tensor:
    return x * 2 if operator.index(x.shape[0]) == 2 else x - 1


MODES = {"first": [1.0]}


def outside(x: Tensor) -> Tensor:
    return x * 2 if len(MODES["first"]) == 1 else x


def feed() -> Tensor:
    return torch.linspace(-1, 2, 6).reshape(2, 3)


def traced(program: Any, calls: int, *args: Any) -> Any:
    captured = clew.trace(program, args=args)
    for _ in range(calls):
        captured(*args)
    return captured


def edit(captured: Any) -> None:
    """Negate the result."""
    output = captured.graph.output_node()
    with captured.graph.inserting_before(output):
        output.args = (captured.graph.call_function(torch.neg, (output.args[0],)),)


@CALLS
@BACKENDS
@pytest.mark.parametrize("make", [lambda: plain, Model], ids=["function", "module"])
def test_compiled_as_one_graph(make: Callable[[], Any], backend: str, calls: int):
    program, x = make(), feed()
    compiled = torch.compile(traced(program, calls, x), backend=backend, fullgraph=True)
    for given in (x, -x, torch.ones(5, 3)):
        torch.testing.assert_close(compiled(given), program(given))


@CALLS
@BACKENDS
def test_compiled_with_a_branch(backend: str, calls: int):
    x = feed()
    compiled = torch.compile(traced(branch, calls, x), backend=backend)
    for given in (x, -x):
        torch.testing.assert_close(compiled(given), branch(given))


@pytest.mark.skipif(shutil.which("c++") is None, reason="inductor needs a C++ compiler")
def test_compiled_by_inductor():
    x = feed()
    torch.testing.assert_close(torch.compile(traced(plain, 0, x), fullgraph=True)(x), plain(x))


@CALLS
def test_guards_hold_in_compiled_code(calls: int):
    compiled = torch.compile(traced(sized, calls, feed()), backend="eager")
    torch.testing.assert_close(compiled(feed()), sized(feed()))
    with pytest.raises(clew.GuardError, match=r"x\.shape\[0\] == 2"):
        compiled(torch.ones(5, 3))
    with pytest.raises(clew.GuardError, match="type"):
        compiled(nn.Parameter(feed()))


def test_objects_outside_are_looked_at_before_compiled_code(monkeypatch: pytest.MonkeyPatch):
    compiled = torch.compile(traced(outside, 0, feed()), backend="eager")
    torch.testing.assert_close(compiled(feed()), outside(feed()))
    monkeypatch.setitem(MODES, "first", [1.0, 2.0])
    with pytest.raises(clew.GuardError, match="MODES"):
        compiled(feed())


def test_objects_outside_are_looked_for_once(monkeypatch: pytest.MonkeyPatch):
    captured = traced(outside, 0, feed())
    searching, looking = (calls_in(lambda: look(captured)) for _ in range(2))
    assert looking < searching
    monkeypatch.setitem(MODES, "first", [1.0, 2.0])
    with pytest.raises(clew.GuardError, match="MODES"):
        look(captured)
    captured.guards.drop(kind="variable")
    look(captured)


@CALLS
def test_objects_outside_are_looked_at_when_one_graph_is_compiled(monkeypatch: pytest.MonkeyPatch, calls: int):
    captured = traced(outside, calls, feed())
    compiled = torch.compile(captured, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(feed()), outside(feed()))
    monkeypatch.setitem(MODES, "first", [1.0, 2.0])
    torch._dynamo.reset()
    with pytest.raises(clew.GuardError, match="MODES"):
        torch.compile(captured, backend="eager", fullgraph=True)(feed())
    with pytest.raises(clew.GuardError, match="MODES"):
        captured(feed())


class Scaled(torch.nn.Module):
    def __init__(self, scale: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("scale", scale)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * (self.scale + 1).abs().sum()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.complex128, torch.bool])
def test_a_folded_buffer_is_compared_in_one_compiled_graph(backend: str, dtype: torch.dtype):
    model, x = Scaled(torch.tensor([0, 1], dtype=dtype)), feed()
    captured = clew.trace(model, args=(x,))
    clew.constant_folding(captured)
    compiled = torch.compile(captured, backend=backend, fullgraph=True)
    torch.testing.assert_close(compiled(x), model(x))
    captured.scale.fill_(1)
    with pytest.raises(RuntimeError, match="the graph assumed self.scale is unchanged"):
        compiled(x)
    torch._dynamo.reset()
    with pytest.raises(clew.GuardError, match="self.scale is unchanged"):
        torch.compile(captured, backend=backend, fullgraph=True)(x)


@pytest.mark.parametrize("change", [torch.set_default_dtype, torch.set_default_device])
def test_settings_are_looked_at_when_a_changed_one_is_compiled_as_one_graph(change: Callable[[Any], None]):
    captured, x = clew.trace(Scaled(torch.ones(2)), args=(feed(),)), feed()
    clew.constant_folding(captured)
    compiled = torch.compile(captured, backend="eager", fullgraph=True)
    compiled(x)
    try:
        change(torch.float64 if change is torch.set_default_dtype else "meta")
        with pytest.raises(clew.GuardError, match="default dtype and device"):
            compiled(x)
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)


@CALLS
def test_guards_hold_in_one_compiled_graph(calls: int):
    compiled = torch.compile(traced(sized, calls, feed()), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(feed()), sized(feed()))
    with pytest.raises(clew.GuardError, match=r"x\.shape\[0\] == 2"):
        compiled(torch.ones(5, 3))


@CALLS
def test_modules_around_a_function_are_compiled_as_one_graph(calls: int):
    model, x = Model(), feed()
    captured = traced(lambda x: model(x) + 1, calls, x)
    torch.testing.assert_close(torch.compile(captured, backend="eager", fullgraph=True)(x), model(x) + 1)


def test_state_is_written_by_one_compiled_graph():
    model, x = Counting(), feed()
    captured = clew.trace(model, args=(x,))
    compiled = torch.compile(captured, backend="eager", fullgraph=True)
    for count in range(1, 4):
        torch.testing.assert_close(compiled(x), x * count)
    assert captured.calls == 3 and model.calls == 0


def test_hooks_run_in_one_compiled_graph():
    captured, x = traced(Model(), 0, feed()), feed()
    expected = captured(x) + 1
    captured.register_forward_hook(lambda module, args, result: result + 1)
    torch.testing.assert_close(torch.compile(captured, backend="eager", fullgraph=True)(x), expected)


def test_an_original_compiles_after_its_capture():
    model, x = Switching(), feed()
    clew.trace(model, args=(x,))
    torch.testing.assert_close(torch.compile(model, backend="eager", fullgraph=True)(x), model(x))


def test_state_changes_once_a_call():
    model, x = Counting(), feed()
    captured = clew.trace(model, args=(x,))
    compiled = torch.compile(captured, backend="eager")
    for count in range(1, 4):
        torch.testing.assert_close(compiled(x), x * count)
    assert captured.calls == 3 and model.calls == 0


@pytest.mark.parametrize("make", [lambda: plain, Model], ids=["function", "module"])
def test_an_edit_reaches_compiled_code(make: Callable[[], Any]):
    program, x = make(), feed()
    captured = traced(program, 0, x)
    compiled = torch.compile(captured, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), program(x))
    edit(captured)
    torch.testing.assert_close(compiled(x), -program(x))


@CALLS
def test_inside_of_a_compiled_function(calls: int):
    captured = traced(plain, calls, feed())
    compiled = torch.compile(lambda x: captured(x.sin()) + 1, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(feed()), plain(feed().sin()) + 1)


def test_gradients_of_compiled_code():
    model, x = Model(), feed()
    torch.compile(traced(model, 3, x), backend="aot_eager", fullgraph=True)(x).sum().backward()
    mine = model.layer.weight.grad.clone()
    model.zero_grad()
    model(x).sum().backward()
    torch.testing.assert_close(mine, model.layer.weight.grad)


def test_a_module_that_compiles_itself():
    model, x = Model(), feed()
    captured = traced(model, 3, x)
    captured.compile(backend="eager", fullgraph=True)
    for _ in range(3):
        torch.testing.assert_close(captured(x), model(x))


@CALLS
@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_exported(strict: bool, calls: int):
    model, x, batch = Model(), feed(), torch.export.Dim("batch")
    exported = torch.export.export(traced(model, calls, x), (x,), dynamic_shapes=({0: batch},), strict=strict)
    torch.testing.assert_close(exported.module()(torch.ones(7, 3)), model(torch.ones(7, 3)))


@CALLS
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("make", [lambda: plain, Model], ids=["function", "module"])
def test_traced_by_torch(make: Callable[[], Any], calls: int):
    program, x = make(), feed()
    again = torch.jit.trace(traced(program, calls, x), (x,))
    torch.testing.assert_close(again(torch.ones(5, 3)), program(torch.ones(5, 3)))


@CALLS
def test_called_with_other_parameters(calls: int):
    model, x = Model(), feed()
    captured = traced(model, calls, x)
    parameters = {name: torch.randn_like(value) for name, value in model.named_parameters()}

    def total(module: nn.Module, values: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(module, values, (x,)).sum()

    torch.testing.assert_close(total(captured, parameters), total(model, parameters))
    mine, theirs = (torch.func.grad(lambda values, m=m: total(m, values))(parameters) for m in (captured, model))
    torch.testing.assert_close(mine, theirs)
    torch.testing.assert_close(captured(x), model(x))


def saved(value: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "save": saved,
}


@CALLS
@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("make", [lambda: plain, lambda: branch, Model], ids=["function", "branch", "module"])
def test_copies_run(make: Callable[[], Any], how: str, calls: int):
    program, x = make(), feed()
    captured = traced(program, calls, x)
    twin = COPIES[how](captured)
    for given in (x, -x, x, -x):
        torch.testing.assert_close(twin(given), program(given))
    edit(twin) if how != "copy" else None
    torch.testing.assert_close(captured(x), program(x))


def test_replicas_and_moves():
    model, x = Model(), feed()
    captured = traced(model, 3, x)
    torch.testing.assert_close(captured._replicate_for_data_parallel()(x), model(x))
    torch.testing.assert_close(nn.DataParallel(captured)(x), model(x))
    captured.load_state_dict({name: value + 1 for name, value in captured.state_dict().items()})
    torch.testing.assert_close(captured(x), model(x))
    captured.to(torch.float64)
    torch.testing.assert_close(captured(x.double()), model(x.double()))
    captured.to("meta")
    assert captured(x.double().to("meta")).device.type == "meta"


@pytest.mark.parametrize("make", [lambda: plain, Model], ids=["function", "module"])
def test_what_is_called_in_one_step_is_collected(make: Callable[[], Any]):
    captured = traced(make(), 3, feed())
    assert "__call__" in vars(type(captured))
    gone = [weakref.ref(captured), weakref.ref(type(captured))]
    del captured
    gc.collect()
    assert [reference() for reference in gone] == [None, None]
