"""Dtypes and devices are facts of the graph: a capture follows those that it is given, as the original does, and is
guarded only where the program relied on one."""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import clew
from clew.errors import GuardError

FLOATS = ("float64", "bfloat16", "float16")
X = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
TABLE = torch.tensor([0.1, 0.2, 0.3])
WEIGHT = nn.Parameter(torch.tensor([0.1, 0.2, 0.3]))


def converted(value: Any, to: str) -> Any:
    return value.to(to if to in ("meta", "cuda") else getattr(torch, to))


def outcome(fn: Callable[..., Any], args: Any) -> Any:
    """What a call gives and what it did to its arguments, or the class of its error."""
    given = copy.deepcopy(args)
    try:
        return fn(*given), given
    except GuardError:
        raise
    except Exception as error:
        return type(error)


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        alike = (one.dtype, one.shape, one.device) == (other.dtype, other.shape, other.device)
        return alike and (one.is_meta or torch.equal(one, other))
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(equal, one, other))
    return type(one) is type(other) and bool(one == other)


def zeros(x: Tensor) -> Tensor:
    return x + torch.zeros(x.shape, dtype=x.dtype, device=x.device)


def places(x: Tensor) -> Tensor:
    return x * torch.arange(x.shape[-1], device=x.device)


def filled(x: Tensor) -> Tensor:
    return torch.full((2, 3), 1.5, device=x.device, dtype=x.dtype) * x


def least(x: Tensor) -> Tensor:
    return x.masked_fill(x > 0, torch.finfo(x.dtype).min)


def clamped(x: Tensor) -> Tensor:
    limits = torch.finfo(x.dtype)
    return x.clamp(min=limits.eps, max=limits.max / 2) * (limits.bits // 8)


def chosen(x: Tensor) -> Tensor:
    return torch.where(x > 0, x, torch.tensor(torch.finfo(x.dtype).min, dtype=x.dtype, device=x.device))


def wide(x: Tensor) -> Tensor:
    return torch.nn.functional.softmax(x, -1, dtype=torch.float32).to(x.dtype)


def promoted(x: Tensor) -> Tensor:
    return x.type(torch.promote_types(x.dtype, torch.float32)) + torch.ones(3, dtype=torch.result_type(x, 1.0)).to(x)


def counted(x: Tensor) -> Tensor:
    return x * x.element_size() + x.itemsize + x.dtype.itemsize


def by_type_of_device(x: Tensor) -> Tensor:
    return x + torch.zeros(3, device=torch.device(x.device.type))


def told(x: Tensor) -> Any:
    return x.dtype, x.device, x.device.type, x + 1


def in_place(x: Tensor) -> Any:
    return x.to(torch.float32).add_(1), x.to(x.dtype).mul_(2), x


def on_one_way(x: Tensor) -> Tensor:
    if x.shape[0] < 5 and x.new_ones(1) > 0:
        dtype = x.dtype
        x = x + 1
    else:
        dtype = x.dtype
        x = x - 1
    return x.to(dtype) * torch.finfo(dtype).eps


def in_a_loop(x: Tensor) -> Tensor:
    for step in range(x.shape[0]):
        x = x + torch.ones(x.shape[-1], dtype=x.dtype, device=x.device) * step
    return x


def with_limits_of_either_kind(x: Tensor) -> Tensor:
    try:
        most = torch.finfo(x.dtype).max
    except TypeError:
        most = torch.iinfo(x.dtype).max
    return x * 0 + most


def floating(x: Tensor) -> Tensor:
    asked = x.is_floating_point() and x.dtype.is_floating_point and torch.is_floating_point(x)
    return x * 2 if asked and not x.is_cuda else x


def without_autocast(x: Tensor) -> Tensor:
    with torch.autocast(device_type=x.device.type, enabled=False):
        return x @ x.T


FOLLOWED = (
    zeros, places, filled, least, clamped, chosen, wide, promoted, counted, by_type_of_device, told, in_place,
    in_a_loop, with_limits_of_either_kind, floating, without_autocast,
)  # fmt: skip


@pytest.mark.parametrize("to", [*FLOATS, "meta"])
@pytest.mark.parametrize("program", FOLLOWED, ids=lambda program: program.__name__)
def test_a_capture_follows_what_it_is_given(program: Any, to: str) -> None:
    captured = clew.trace(program, (X,))
    assert not [guard for guard in captured.guards if "x.dtype ==" in str(guard) or "x.device ==" in str(guard)]
    assert equal(outcome(captured, (converted(X, to),)), outcome(program, (converted(X, to),)))


@pytest.mark.parametrize("to", FLOATS)
def test_a_dtype_may_come_out_of_a_branch(to: str) -> None:
    captured = clew.trace(on_one_way, (X,))
    assert equal(captured(converted(X, to)), on_one_way(converted(X, to)))


def compared(x: Tensor) -> Tensor:
    return x * 2 if x.dtype == torch.float32 else x * 3


def is_among(x: Tensor) -> Tensor:
    return x * 2 if x.dtype in (torch.float16, torch.bfloat16) else x * 3


def looked_up(x: Tensor) -> Tensor:
    return x * {torch.float32: 2, torch.float64: 3}.get(x.dtype, 5)


def identical(x: Tensor) -> Tensor:
    return x * 2 if x.dtype is torch.float32 else x * 3


def not_identical(x: Tensor) -> Tensor:
    dtype = x.dtype
    return x * 2 if dtype is not torch.float64 else x * 3


def written(x: Tensor) -> Tensor:
    return x * 2 if "float32" in f"{x.dtype}" else x * 3


def matched(x: Tensor) -> Tensor:
    match x.dtype:
        case torch.float32:
            return x * 2
        case torch.float64:
            return x * 3
    return x * 4


@functools.lru_cache
def factor(dtype: torch.dtype) -> int:
    return 3 if dtype == torch.float32 else 4


def cached(x: Tensor) -> Tensor:
    return x * factor(x.dtype)


def pickled(x: Tensor) -> Tensor:
    return x.to(pickle.loads(pickle.dumps(x.dtype)))


def of_bits(x: Tensor) -> Tensor:
    return x * (2 if torch.finfo(x.dtype).bits == 32 else 3)


def of_its_class(x: Tensor) -> Tensor:
    return x * 2 if x.type() == "torch.FloatTensor" else x * 3


def refusing(x: Tensor) -> Tensor:
    if x.dtype not in (torch.float32, torch.bfloat16):
        raise ValueError(f"no {x.dtype}")
    return x * 2


BRANCHING = (compared, is_among, of_bits, refusing)
RELYING = (looked_up, identical, not_identical, written, matched, cached, pickled, of_its_class)


@pytest.mark.parametrize("program", BRANCHING, ids=lambda program: program.__name__)
def test_a_branch_on_a_dtype_is_one_of_the_graph(program: Any) -> None:
    captured = clew.trace(program, (X,))
    assert not [guard for guard in captured.guards if "dtype" in str(guard)]
    for to in (*FLOATS, "float32", *(() if program is of_bits else ("int64",))):
        given = (converted(X, to),)
        assert equal(outcome(captured, given), outcome(program, given))


@pytest.mark.parametrize("program", RELYING, ids=lambda program: program.__name__)
def test_a_program_that_branches_on_a_dtype_is_guarded(program: Any) -> None:
    captured, guarded = clew.trace(program, (X,)), 0
    for to in (*FLOATS, "int64"):
        given = (converted(X, to),)
        try:
            assert equal(outcome(captured, given), outcome(program, given))
        except GuardError:
            guarded += 1
    assert guarded
    assert equal(outcome(captured, (X,)), outcome(program, (X,)))


def by_device(x: Tensor) -> Tensor:
    return x * 2 if x.device == torch.device("cpu") else x * 3


def by_text(x: Tensor) -> Tensor:
    return x * 2 if x.device.type == "cpu" else x * 3


def by_beginning(x: Tensor) -> Tensor:
    return x * 2 if x.device.type.startswith("c") else x * 3


def by_flag(x: Tensor) -> Tensor:
    return x * 2 if x.is_meta else x * 3


def entered(x: Tensor) -> Tensor:
    with x.device:
        return x + torch.ones(3)


def joined(x: Tensor) -> Tensor:
    return x * len("-".join([x.device.type, "a"]))


@pytest.mark.parametrize("program", [by_device, by_text, by_beginning, by_flag, entered, joined])
def test_a_program_that_branches_on_a_device_is_guarded(program: Any) -> None:
    captured = clew.trace(program, (X,))
    assert equal(captured(X.double()), program(X.double()))
    with pytest.raises(GuardError, match="x.device|x.is_meta"):
        captured(converted(X, "meta"))


def test_the_guard_names_what_was_asked_and_where() -> None:
    captured = clew.trace(looked_up, (X,))
    with pytest.raises(GuardError, match=r"assumed x\.dtype == torch\.float32.*\n.*test_facts\.py.*in looked_up"):
        captured(X.double())


def same_dtype(x: Tensor, y: Tensor) -> Tensor:
    return x * 2 if x.dtype == y.dtype else x * y.to(x.dtype)


def test_two_dtypes_are_compared_with_each_other() -> None:
    captured = clew.trace(same_dtype, (X, X + 1))
    for given in ((X.double(), X.double()), (X, X.double()), (X.half(), X)):
        assert equal(captured(*given), same_dtype(*given))


def number(x: Tensor) -> Any:
    return x.sum().item() * 2


def numbers(x: Tensor) -> Any:
    return [one + 1 for one in x.flatten().tolist()]


@pytest.mark.parametrize("program", [number, numbers])
def test_numbers_that_leave_a_tensor_keep_their_class(program: Any) -> None:
    captured = clew.trace(program, (X,))
    for to in FLOATS:
        assert equal(captured(converted(X, to)), program(converted(X, to)))
    with pytest.raises(GuardError, match="the numbers in x are of class float"):
        captured(X.long())


def picked(x: Tensor, index: Tensor) -> Tensor:
    found = x[index]
    return found * 2 if found.dim() == 1 else found * 3


def test_a_mask_is_no_list_of_places() -> None:
    captured = clew.trace(picked, (X, X > 0))
    assert equal(captured(X, X < 0), picked(X, X < 0))
    with pytest.raises(GuardError, match=r"index\.dtype in \(torch\.bool, torch\.uint8\)"):
        captured(X, torch.tensor([[0, 1], [1, 0]]))


class Net(nn.Module):
    """A layer, and what its subclasses do with it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.plain = torch.tensor([0.1, 0.2, 0.3])
        self.register_buffer("kept", torch.tensor([0.1, 0.2, 0.3]))
        self.register_buffer("hidden", torch.tensor([0.1, 0.2, 0.3]), persistent=False)

    @property
    def dtype(self) -> torch.dtype:
        return next(one.dtype for one in self.parameters() if one.is_floating_point())


class WithTable(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) * torch.tensor([0.1, 0.2, 0.3])


class WithNumber(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) * torch.tensor(0.1)


class WithGlobal(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) * TABLE * WEIGHT


class WithAttributes(Net):
    def forward(self, x: Tensor) -> Tensor:
        return (self.layer(x) * self.plain).to(self.kept.dtype) * self.kept * self.hidden


class OfItsDtype(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.to(self.dtype)) + torch.finfo(self.dtype).eps


class WithCache(Net):
    cache: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.cache is None or self.cache.dtype != x.dtype or self.cache.device != x.device:
            self.cache = torch.arange(3, dtype=x.dtype, device=x.device)
        return self.layer(x) + self.cache


class WithHeads(Net):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.MultiheadAttention(3, 1, batch_first=True)
        self.block = nn.TransformerEncoderLayer(3, 1, 8, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.block(self.heads(x[None], x[None], x[None])[0])


NETS = (WithTable, WithNumber, WithGlobal, WithAttributes, OfItsDtype, WithCache, WithHeads)


@pytest.mark.parametrize("to", [*FLOATS, "meta"])
@pytest.mark.parametrize("kind", NETS)
def test_a_captured_module_is_converted_like_the_original(kind: type[Net], to: str) -> None:
    torch.manual_seed(0)
    net = kind().eval()
    captured = clew.trace(net, (X,))
    original = converted(copy.deepcopy(net), to)
    assert list(captured.state_dict()) == list(original.state_dict())
    assert equal(outcome(converted(captured, to), (converted(X, to),)), outcome(original, (converted(X, to),)))


def test_tensors_that_are_no_buffers_stay_as_they_are() -> None:
    for kind in (WithTable, WithGlobal):
        captured = clew.trace(kind(), (X,))
        held = [value for name, value in vars(captured).items() if name.startswith("_constant")]
        assert held
        captured.bfloat16()
        after = [value for name, value in vars(captured).items() if name.startswith("_constant")]
        assert all(one is other and one.dtype is torch.float32 for one, other in zip(held, after, strict=True))
    assert TABLE.dtype is WEIGHT.dtype is torch.float32


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no such device")
@pytest.mark.parametrize("kind", [WithNumber, OfItsDtype, WithCache, WithHeads])
def test_a_captured_module_moves_to_another_device(kind: type[Net]) -> None:
    net = kind().eval()
    captured = clew.trace(net, (X,))
    original = copy.deepcopy(net).cuda()
    assert torch.allclose(captured.cuda()(X.cuda()), original(X.cuda()))


SOURCE = "def hidden(x):\n    dtype = x.dtype\n    return x * 2 if dtype is torch.float32 else x * 3\n"


def made_as_it_runs(x: Tensor) -> Tensor:
    names: dict[str, Any] = {"torch": torch}
    exec(SOURCE, names)
    made: Tensor = names["hidden"](x)
    return made


def test_a_function_that_nobody_knew_of_before_compares_dtypes() -> None:
    captured = clew.trace(made_as_it_runs, (X,))
    assert equal(captured(X), X * 2)
    with pytest.raises(GuardError, match=r"x\.dtype == torch\.float32"):
        captured(X.double())


@pytest.mark.parametrize("program", [compared, identical, zeros, least])
def test_a_capture_is_captured_again(program: Any) -> None:
    first = clew.trace(program, (X,))
    again = clew.trace(first, (X,))
    for to in ("float32", *FLOATS):
        given = (converted(X, to),)
        try:
            wanted = outcome(first, given)
        except GuardError:
            with pytest.raises(GuardError):
                again(*given)
        else:
            assert equal(outcome(again, given), wanted)
