"""Being traced is a mode: what a library skips under a compiler, an exporter, a tracer or in a CUDA graph is a way of
its own, so that its captures compile, export and trace as the original does."""

from __future__ import annotations

import copy
import importlib
import pickle
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode

import clew
from clew.capture.control_flow import explore
from clew.frameworks.torch import tracing_tools
from clew.ir.arguments import all_nodes
from clew.ir.control_flow import cond

SOURCE = '''
import torch
from torch import nn

def is_compiling():
    try:
        import torch
        return torch.compiler.is_compiling()
    except Exception:
        return False

def is_capturing():
    try:
        return torch.cuda.is_current_stream_capturing()
    except Exception:
        return False

def is_tracing(tensor):
    traced = is_compiling() or torch.jit.is_tracing() or is_capturing()
    traced |= isinstance(tensor, torch.fx.Proxy)
    return traced

class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.linears = nn.ModuleList(nn.Linear(4, 4) for _ in range(10))

    def layers(self, x, mask):
        for linear in self.linears:
            x = torch.nn.functional.scaled_dot_product_attention(linear(x), x, x, attn_mask=mask)
        return x

class Masked(Base):
    def forward(self, x, mask):
        x = x * 2
        if not (torch.compiler.is_exporting() or is_tracing(mask)) and mask.all():
            mask = None
        else:
            mask = mask[:, None, :].expand(-1, x.shape[1], -1)
        return self.layers(x, mask)

class Stepwise(Base):
    """Asks for the mask in two steps, and does something else at the end without it."""
    writes = False

    def forward(self, x, mask):
        x = torch.relu(x * 2) + 1
        if self.writes:
            x.mul_(3)
        keep = mask.to(torch.bool)
        if is_tracing(mask) or not (keep.all() or (keep[:, :3].all() and (~keep[:, 3:]).all())):
            mask = keep[:, None, :].expand(-1, x.shape[1], -1)
        else:
            mask = None
        with torch.no_grad():
            scale = x.abs().mean().to(x.dtype)
        x = self.layers(x, mask) * scale
        return x if mask is None else x.cos() + mask.sum()

class Writing(Stepwise):
    writes = True

class Small(nn.Module):
    def forward(self, x, mask):
        if not is_tracing(mask) and mask.all():
            mask = None
        else:
            mask = mask[:, None, :].expand(-1, x.shape[1], -1)
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)

class ByTool(Base):
    """Each tool gets something else."""
    def forward(self, x, mask):
        scale = 2.0 if torch.compiler.is_compiling() else 3.0 if torch.jit.is_tracing() else 1.0
        keep = None if scale == 1.0 and mask.all() else mask[:, None, :].expand(-1, x.shape[1], -1)
        return self.layers(x, keep) * scale

class Raising(Base):
    def forward(self, x, mask):
        if torch.compiler.is_compiling():
            raise RuntimeError("not under a compiler")
        return self.layers(x, None if mask.all() else mask[:, None, :].expand(-1, x.shape[1], -1))

class Failing(Base):
    """What is done under a tool cannot be done with the example."""
    def forward(self, x, mask):
        if torch.compiler.is_compiling():
            mask = mask.view(7, 7)
        return self.layers(x, None if mask.all() else mask[:, None, :].expand(-1, x.shape[1], -1))

class Other(Base):
    """What is done under a tool has nothing in common with the rest."""
    def forward(self, x, mask):
        if torch.jit.is_tracing():
            for _ in range(20):
                x = x.sin() + x.cos() * x.tanh() - x.exp() / x.abs().add(1)
            return x
        return self.layers(x, None if mask.all() else mask[:, None, :].expand(-1, x.shape[1], -1))

class Alternating(Base):
    """As ``Other``, with another question for data, and for another tool."""
    def forward(self, x, mask):
        is_traced = torch.jit.is_tracing()
        if not torch.compiler.is_compiling() and (x > -100).all():
            x = x + mask.shape[1]
        keep = None if mask.all() else mask[:, None, :].expand(-1, x.shape[1], -1)
        if is_traced:
            for _ in range(20):
                x = x.sin() + x.cos() * x.tanh() - x.exp() / x.abs().add(1)
        return self.layers(x, keep)

class NoData(Base):
    def forward(self, x):
        return self.layers(x, None) if not torch.compiler.is_compiling() else self.layers(x, None) * 1
'''


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("lib") / "site-packages"
    folder.mkdir()
    (folder / "tracing_library.py").write_text(SOURCE)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("tracing_library")
    sys.path.remove(str(folder))
    del sys.modules["tracing_library"]


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _inputs(kind: str) -> tuple[Tensor, Tensor]:
    mask = torch.ones(2, 5, dtype=torch.bool)
    if kind == "padded":
        mask[-1, 3:] = False
    return torch.randn(2, 5, 4), mask


def _made(library: ModuleType, name: str, example: str = "full") -> tuple[nn.Module, Any]:
    torch.manual_seed(0)
    model = getattr(library, name)().eval()
    return model, clew.trace(model, _inputs(example))


def _agree(captured: Any, model: Any) -> None:
    for kind in ("full", "padded"):
        inputs = _inputs(kind)
        torch.testing.assert_close(captured(*inputs), model(*inputs), rtol=0, atol=0)


def _asked(captured: Any) -> set[Any]:
    return {node.target for node in all_nodes(captured.graph) if tracing_tools.is_tracer(node)}


@pytest.mark.parametrize("example", ["full", "padded"])
@pytest.mark.parametrize("name", ["Masked", "Small"])
def test_both_answers_are_in_the_graph(library: ModuleType, name: str, example: str) -> None:
    model, captured = _made(library, name, example)
    _agree(captured, model)
    assert torch.jit.is_tracing in _asked(captured)
    branches = [node for node in all_nodes(captured.graph) if node.target is cond]
    assert len(branches) == 2, "one that asks, one that makes the mask"
    assert "is_tracing()" in captured.code and captured.code.count("expand(") == 1
    assert " or not " in captured.code
    assert "computed" not in str(captured.guards)


@pytest.mark.parametrize("example", ["full", "padded"])
@pytest.mark.parametrize("name", ["Masked", "Small", "ByTool"])
def test_compiled_as_one_graph(library: ModuleType, name: str, example: str) -> None:
    model, captured = _made(library, name, example)
    compiled = [torch.compile(program, backend="eager", fullgraph=True) for program in (model, captured)]
    for kind in ("full", "padded"):
        inputs = _inputs(kind)
        torch.testing.assert_close(compiled[1](*inputs), compiled[0](*inputs))
    _agree(captured, model)


class Own(nn.Module):
    """The user's own program asks, too."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.inner(x, mask)
        if torch.compiler.is_compiling():
            x = x + 1
        return x - 1 if torch.jit.is_tracing() else x


def test_beside_questions_of_the_user(library: ModuleType) -> None:
    torch.manual_seed(0)
    model = Own(library.Masked()).eval()
    captured = clew.trace(model, _inputs("full"))
    _agree(captured, model)
    compiled = [torch.compile(program, backend="eager", fullgraph=True) for program in (model, captured)]
    traced = [torch.jit.trace(program, _inputs("full"), check_trace=False) for program in (model, captured)]
    for kind in ("full", "padded"):
        inputs = _inputs(kind)
        torch.testing.assert_close(compiled[1](*inputs), compiled[0](*inputs))
        torch.testing.assert_close(traced[1](*inputs), traced[0](*inputs))


def test_saved_and_interpreted(library: ModuleType) -> None:
    model, captured = _made(library, "Masked")
    for twin in (pickle.loads(pickle.dumps(captured)), copy.deepcopy(captured), clew.Interpreter(captured).run):
        _agree(twin, model)


def test_exported(library: ModuleType) -> None:
    model, captured = _made(library, "Masked")
    exported = torch.export.export(captured, _inputs("full")).module()
    for kind in ("full", "padded"):
        inputs = _inputs(kind)
        torch.testing.assert_close(exported(*inputs), model(*inputs))


def test_captured_as_exporters_see_it(library: ModuleType) -> None:
    """Nothing is asked of the mask, the answer is the same for any mask, and nobody is told afterwards."""
    model = library.Masked().eval()
    with clew.exporting():
        captured = clew.trace(model, _inputs("full"))
        assert torch.compiler.is_exporting()
    assert not torch.compiler.is_exporting() and not torch.compiler.is_compiling()
    assert not any(node.target is cond or node.target is clew.guard for node in all_nodes(captured.graph))
    for kind in ("full", "padded"):
        inputs = _inputs(kind)
        torch.testing.assert_close(captured(*inputs), model(*inputs))


@pytest.mark.parametrize("name", ["Masked", "ByTool"])
def test_traced(library: ModuleType, name: str) -> None:
    model, captured = _made(library, name)
    traced = [torch.jit.trace(program, _inputs("full"), check_trace=False) for program in (model, captured)]
    for kind in ("full", "padded"):  # which the trace of a question about the mask would not tell apart
        inputs = _inputs(kind)
        torch.testing.assert_close(traced[1](*inputs), traced[0](*inputs))


def test_each_tool_gets_its_own(library: ModuleType) -> None:
    model, captured = _made(library, "ByTool")
    _agree(captured, model)
    assert {torch.compiler.is_compiling, torch.jit.is_tracing} <= _asked(captured)


def test_a_stream_that_is_captured_asks_for_no_data(library: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    _, captured = _made(library, "Masked")
    x, mask = _inputs("full")
    expected = captured(x, mask)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    asked: list[str] = []
    monkeypatch.setattr(torch.Tensor, "all", lambda self: asked.append("all"))
    torch.testing.assert_close(captured(x, mask), expected)
    assert not asked


def test_fake_tensors_are_not_asked(library: ModuleType) -> None:
    _, captured = _made(library, "Masked")
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        x, mask = map(mode.from_tensor, _inputs("full"))
        assert captured(x, mask).shape == x.shape


@pytest.mark.parametrize("name", ["Failing", "Other"])
def test_ways_that_cannot_be_recorded_are_left(library: ModuleType, name: str) -> None:
    model, captured = _made(library, name)
    _agree(captured, model)
    assert not _asked(captured)


@pytest.mark.parametrize("name", ["Failing", "Other", "Alternating"])
def test_what_was_recorded_without_tools_is_not_recorded_again(
    library: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph is the one that a capture makes which never follows the tools, but for numbers in names."""
    runs, run_apart = [], explore._run_apart
    monkeypatch.setattr(explore, "_run_apart", lambda *given: (runs.append(given[0]), run_apart(*given)))
    model, captured = _made(library, name)
    under_tools, without = {"Failing": (1, 2), "Other": (1, 2), "Alternating": (6, 4)}[name]
    assert len(runs) == 1 + under_tools + without  # the first one only finds out that tools are asked for
    _agree(captured, model)
    monkeypatch.setattr(tracing_tools.Tracers, "before_question", lambda self, place: None)
    _, plain = _made(library, name)
    texts = [re.sub(r"_\d+", "", f"{one.graph}{one.guards}{one.code}") for one in (captured, plain)]
    assert texts[0] == texts[1] and not _asked(captured)


def test_an_error_under_a_tool_is_raised(library: ModuleType) -> None:
    model, captured = _made(library, "Raising")
    _agree(captured, model)
    for program in (model, captured):
        with pytest.raises(Exception, match="not under a compiler"):
            torch.compile(program, backend="eager", fullgraph=True)(*_inputs("full"))


def test_without_a_question_for_data_there_is_one_way(library: ModuleType) -> None:
    model = library.NoData().eval()
    x, _ = _inputs("full")
    captured = clew.trace(model, (x,))
    torch.testing.assert_close(captured(x), model(x), rtol=0, atol=0)
    assert not _asked(captured) and not [node for node in captured.graph.nodes if node.target is cond]


@pytest.mark.parametrize("example", ["full", "padded"])
@pytest.mark.parametrize(("name", "most"), [("Stepwise", 1), ("Writing", 2)])
def test_what_is_asked_in_steps_is_done_once(library: ModuleType, name: str, most: int, example: str) -> None:
    model, captured = _made(library, name, example)
    _agree(captured, model)
    assert 1 <= captured.code.count(".expand(") <= most  # what follows a write is not moved
    compiled = torch.compile(captured, fullgraph=True, backend="eager")
    for kind in ("full", "padded"):
        x, mask = _inputs(kind)
        assert torch.equal(compiled(x.clone(), mask), torch.compile(model, fullgraph=True, backend="eager")(x, mask))
