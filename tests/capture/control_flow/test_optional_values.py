"""Values that are there or not: what a library, or the user, asks of a mask becomes a small branch, and no copy of what
follows. The library is written into a folder of packages; its models have so many parts that they count as large."""

from __future__ import annotations

import copy
import importlib
import pickle
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

import clew
from clew.capture.control_flow import explore
from clew.errors import GuardError
from clew.ir.arguments import all_nodes
from clew.ir.control_flow import cond
from clew.ir.equality import same_graph
from tests.capture.control_flow.alignment_checks import checked_alignments

SOURCE = '''
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, x, mask, is_causal, bias=0.0):
        query, key, value = self.query(x), self.key(x), self.value(x)
        if mask is None and is_causal:
            assert key.shape[1] <= query.shape[1]
        found = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=is_causal and mask is None)
        return x + self.out(found) + bias


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.register_buffer("seen", torch.zeros(()))

    def layers(self, x, mask, is_causal=False, bias=0.0):
        for block in self.blocks:
            x = block(x, mask, is_causal, bias)
        return x


def expanded(mask):
    return mask[:, None, :].expand(-1, mask.shape[1], -1)


class Masked(Base):
    def forward(self, x, mask):
        if mask.all():
            mask = None
        else:
            mask = expanded(mask)
        return self.layers(x, mask)


class Twice(Base):
    def forward(self, x, mask, scale):
        mask = None if mask.all() else expanded(mask)
        if scale.max() > 1:
            scale = scale / scale.max()
        return self.layers(x, mask) * scale


class Leaving(Base):
    def forward(self, x, mask, scale, shift):
        mask = None if mask.all() else expanded(mask)
        if scale.max() > 1:
            scale = scale / scale.max()
        if shift.max() > 1:
            shift = shift / shift.max()
        x = self.layers(x, mask) * scale + shift
        if shift.min() < 0:
            for _ in range(70):
                x = torch.tanh(x)
        return x


def is_full(mask, length):
    if mask.sum() == mask.numel():
        return True
    if mask[:, :length].all() and (~mask[:, length:]).all():
        return True
    return False


class Causal(Base):
    def forward(self, x, mask):
        if is_full(mask, x.shape[1]):
            mask = None
        else:
            mask = expanded(mask) & torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        return self.layers(x, mask, is_causal=True)


class Numbered(Base):
    def forward(self, x, mask):
        bias, flag = (1.5, True) if mask.all() else (-0.0, False)
        return self.layers(x, None, flag, bias), flag, bias


class Counting(Base):
    def forward(self, x, mask):
        if mask.all():
            self.seen += 1
            mask = None
        else:
            mask = expanded(mask)
        x = self.layers(x, mask) + self.seen
        if mask is None:
            self.seen *= 2
        return x


class Drawing(Base):
    def forward(self, x, mask):
        if mask.all():
            x, mask = x + torch.rand_like(x), None
        else:
            mask = expanded(mask)
        return self.layers(x, mask) + torch.rand_like(x)


class AskedAgain(Base):
    def forward(self, x, mask):
        first = None if mask.all() else expanded(mask)
        x = self.layers(x, first)
        second = None if mask.all() else expanded(mask)
        return self.layers(x, second)


class AskedAfterWrite(Base):
    def forward(self, x, mask):
        first = None if mask.all() else expanded(mask)
        x = self.layers(x, first)
        mask[:, 0] = True
        second = None if mask.all() else expanded(mask)
        return self.layers(x, second)


class Written(Base):
    """What is asked for is written to before the second difference."""

    def forward(self, x, mask):
        keep = mask.clone()
        full = keep.all()
        if full:
            mask, bias = None, 2.0
        else:
            mask, bias = expanded(mask), 3.0
        x = self.layers(x, mask)
        full.logical_not_()
        if mask is None:
            x = x * 2 + full
        return x + bias


class Raising(Base):
    def forward(self, x, mask):
        if not mask.any():
            raise ValueError("nothing is left")
        return self.layers(x, None)


class Other(Base):
    """Two ways that have nothing in common."""

    def forward(self, x, mask):
        if mask.all():
            return self.layers(x, None)
        for _ in range(12):
            x = x.sin() + x.cos() * x.tanh() - x.exp() / x.abs().add(1)
        return x


class Sized(Base):
    """What is asked follows from sizes alone."""

    def forward(self, x):
        mask = torch.arange(x.shape[1])[None].expand(x.shape[0], -1) < 4
        return self.layers(x, None if mask.all() else expanded(mask))


class Refusing(Base):
    """One way cannot be run on the example."""

    def forward(self, x, mask):
        if mask.all():
            mask = None
        else:
            mask = expanded(mask.view(x.shape[0], 5))
        return self.layers(x, mask)
'''


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("lib") / "site-packages"
    folder.mkdir()
    (folder / "optional_library.py").write_text(SOURCE)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("optional_library")
    sys.path.remove(str(folder))
    del sys.modules["optional_library"]


def _masks(rows: int = 2, length: int = 5) -> dict[str, Tensor]:
    full = torch.ones(rows, length, dtype=torch.bool)
    padded, left = full.clone(), full.clone()
    padded[-1, 3:], left[0, :2] = False, False
    return {"full": full, "padded": padded, "left": left}


def _made(library: ModuleType, name: str) -> tuple[Any, Any]:
    """A model and its twin, which has the same weights and state of its own."""
    torch.manual_seed(0)
    model, twin = getattr(library, name)().eval(), getattr(library, name)().eval()
    twin.load_state_dict(model.state_dict())
    return model, twin


def _agree(captured: Any, twin: Any, args: tuple[Any, ...]) -> None:
    """Both give the same, draw the same and leave their arguments the same."""
    mine, theirs = ([one.clone() if isinstance(one, Tensor) else one for one in args] for _ in range(2))
    torch.manual_seed(1)
    found = captured(*mine)
    after = torch.rand(())
    torch.manual_seed(1)
    torch.testing.assert_close(found, twin(*theirs), rtol=0, atol=0)
    assert torch.equal(after, torch.rand(()))
    torch.testing.assert_close(mine, theirs, rtol=0, atol=0)


def _branches(captured: Any) -> list[Any]:
    return [node for node in all_nodes(captured.graph) if node.target is cond]


ALIGNED = ("Masked", "Causal", "Numbered", "Counting", "Drawing", "AskedAgain", "AskedAfterWrite", "Written")


@pytest.mark.parametrize("example", ["full", "padded"])
@pytest.mark.parametrize("name", ALIGNED)
def test_each_answer_is_in_the_graph(library: ModuleType, name: str, example: str) -> None:
    model, twin = _made(library, name)
    with checked_alignments() as alignments:
        captured = clew.trace(model, args=(torch.randn(2, 5, 8), _masks()[example]))
    assert alignments
    linears = [node for node in all_nodes(captured.graph) if node.op == "call_module"]
    assert len(linears) == (24 if name.startswith("Asked") else 12)  # as many as one way has
    for rows in (2, 3):
        for mask in (*_masks(rows).values(), torch.zeros(rows, 5, dtype=torch.bool)):
            _agree(captured, twin, (torch.randn(rows, 5, 8), mask))
    for held, other in zip(captured.buffers(), twin.buffers(), strict=True):
        assert torch.equal(held, other)


@pytest.mark.parametrize("name", ALIGNED)
def test_saved_printed_and_interpreted(library: ModuleType, name: str) -> None:
    model, twin = _made(library, name)
    captured = clew.trace(model, args=(torch.randn(2, 5, 8), _masks()["full"]))
    captured.graph.lint()
    text, objects = clew.text_and_objects(captured.graph)
    assert same_graph(clew.parse(text, objects=objects), captured.graph)
    loaded = pickle.loads(pickle.dumps(captured))
    interpreted = clew.Interpreter(pickle.loads(pickle.dumps(captured)))
    others = [copy.deepcopy(twin) for _ in range(2)]
    for mask in _masks().values():
        args = (torch.randn(2, 5, 8), mask)
        _agree(loaded, others[0], args)
        _agree(interpreted.run, others[1], args)


def test_code_reads_like_the_program(library: ModuleType) -> None:
    model, _ = _made(library, "Masked")
    captured = clew.trace(model, args=(torch.randn(2, 5, 8), _masks()["full"]))
    lines = [line.split(";")[0].strip() for line in captured.code.splitlines()]
    start = lines.index("if mask.all():")
    assert lines[start + 1 : start + 3] == ["mask_1 = None", "else:"]
    assert sum("attn_mask=mask_1" in line for line in lines) == 3
    assert len(_branches(captured)) == 1


def test_two_optional_values(library: ModuleType) -> None:
    model, twin = _made(library, "Twice")
    captured = clew.trace(model, args=(torch.randn(2, 5, 8), _masks()["full"], torch.ones(8) * 2))
    assert len([node for node in all_nodes(captured.graph) if node.op == "call_module"]) == 12
    for mask in _masks().values():
        for scale in (0.5, 3.0):
            _agree(captured, twin, (torch.randn(2, 5, 8), mask, torch.rand(8) * scale))


def test_several_questions_are_one(library: ModuleType) -> None:
    model, _ = _made(library, "Causal")
    captured = clew.trace(model, args=(torch.randn(2, 5, 8), _masks()["full"]))
    assert sum(node.target == "tril" for node in all_nodes(captured.graph)) == 1
    assert sum("attn_mask=" in line for line in captured.code.splitlines()) == 3


def test_what_was_asked_before_is_known(library: ModuleType) -> None:
    model, _ = _made(library, "AskedAgain")
    captured = clew.trace(model, args=(torch.randn(2, 5, 8), _masks()["full"]))
    assert sum(node.target == "all" for node in all_nodes(captured.graph)) == 1


def test_a_library_that_raises(library: ModuleType) -> None:
    model, twin = _made(library, "Raising")
    captured = clew.trace(model, args=(torch.randn(2, 5, 8), _masks()["full"]))
    _agree(captured, twin, (torch.randn(2, 5, 8), _masks()["padded"]))
    with pytest.raises(ValueError, match="nothing is left"):
        captured(torch.randn(2, 5, 8), torch.zeros(2, 5, dtype=torch.bool))


@pytest.mark.parametrize("example", ["full", "padded"])
def test_ways_without_much_in_common_are_guarded(library: ModuleType, example: str) -> None:
    model, twin = _made(library, "Other")
    captured = clew.trace(model, args=(torch.randn(2, 5, 8), _masks()[example]))
    _agree(captured, twin, (torch.randn(2, 5, 8), _masks()[example]))
    with pytest.raises(GuardError, match="library"):
        captured(torch.randn(2, 5, 8), _masks()["padded" if example == "full" else "full"])


def test_ways_without_much_in_common_spare_the_runs_that_are_left(
    library: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three questions after which all is the same have eight ways, and a fourth sixteen: it is guarded after nine."""
    ways: list[Any] = []
    run_apart = explore._run_apart
    monkeypatch.setattr(explore, "_run_apart", lambda run, *given: (ways.append(run.paths), run_apart(run, *given)))
    model, twin = _made(library, "Leaving")
    example = (torch.randn(2, 5, 8), _masks()["full"], torch.ones(8) * 2, torch.ones(8) * 3)
    captured = clew.trace(model, args=example)
    counts = [ways.count(paths) for paths in dict.fromkeys(ways)]
    assert max(counts) == 9 and counts[-1] == 8
    _agree(captured, twin, (torch.randn(2, 5, 8), _masks()["padded"], torch.rand(8), torch.ones(8) * 3))
    with pytest.raises(GuardError, match="library"):
        captured(*example[:3], -torch.ones(8))


def test_answers_that_follow_from_sizes(library: ModuleType) -> None:
    model, twin = _made(library, "Sized")
    captured = clew.trace(model, args=(torch.randn(2, 3, 8),))
    _agree(captured, twin, (torch.randn(4, 4, 8),))
    with pytest.raises(GuardError):
        captured(torch.randn(2, 6, 8))


def test_a_way_that_cannot_be_run_is_guarded(library: ModuleType) -> None:
    model, twin = _made(library, "Refusing")
    captured = clew.trace(model, args=(torch.randn(2, 4, 8), _masks(length=4)["full"]))
    _agree(captured, twin, (torch.randn(2, 4, 8), _masks(length=4)["full"]))
    with pytest.raises(GuardError, match="could not be run"):
        captured(torch.randn(2, 4, 8), _masks(length=4)["padded"])


# ---- the user's own ----------------------------------------------------------------------------------------------


def attention(x: Tensor, mask: Tensor | None) -> Tensor:
    query, key, value = x * 2, x + 1, x.tanh()
    found = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return ((found * 3 + x).relu().sigmoid() - 1).exp()


def own(x: Tensor, mask: Tensor | None) -> Tensor:
    if mask.all():  # type: ignore[union-attr]
        mask = None
    return attention(x, mask)


@pytest.mark.parametrize("example", ["full", "padded"])
def test_own_optional_value(example: str) -> None:
    masks = {name: mask[:, None, :].expand(-1, 5, -1) for name, mask in _masks().items()}
    captured = clew.trace(own, args=(torch.randn(2, 5, 8), masks[example]))
    for mask in masks.values():
        x = torch.randn(2, 5, 8)
        assert torch.equal(captured(x, mask), own(x, mask))
    assert captured.code.count("scaled_dot_product_attention(") == 1
    assert len(_branches(captured)) == 1
