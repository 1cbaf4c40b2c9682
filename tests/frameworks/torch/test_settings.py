"""Settings of torch and facts of the machine: what a program asks is guarded, what it switches is refused."""

from __future__ import annotations

import pytest
import torch

import clew
from clew.errors import CaptureError, GuardError

X = torch.ones(2, 2)


def _uses_benchmarks(x):
    return x * (2 if torch.backends.cudnn.benchmark else 3)


def test_a_setting_that_the_program_reads_is_guarded(monkeypatch: pytest.MonkeyPatch):
    captured = clew.trace(_uses_benchmarks, (X,))
    assert torch.equal(captured(X), X * 3)
    monkeypatch.setitem(clew.capture.python.system.FACTS, "torch.backends.cudnn.benchmark", lambda: True)
    with pytest.raises(GuardError, match=r"torch.backends.cudnn.benchmark == False"):
        captured(X)
    monkeypatch.undo()
    assert torch.equal(captured(X), X * 3)


def test_a_fact_of_the_machine_is_guarded(monkeypatch: pytest.MonkeyPatch):
    captured = clew.trace(lambda x: x + torch.get_num_threads(), (X,))
    monkeypatch.setitem(clew.capture.python.system.FACTS, "torch.get_num_threads", lambda: 1000)
    with pytest.raises(GuardError, match=r"torch.get_num_threads\(\) =="):
        captured(X)


def test_what_libraries_ask_is_not_guarded():
    layer = torch.nn.MultiheadAttention(4, 2, batch_first=True).eval()
    text = str(clew.trace(layer, (torch.ones(1, 3, 4),) * 3).guards)
    assert "is_available" not in text and "backends" not in text


def _set_benchmark(x):
    torch.backends.cudnn.benchmark = not torch.backends.cudnn.benchmark
    return x + 1


def _set_precision_of_products(x):
    torch.backends.cuda.matmul.allow_tf32 = True
    return x @ x


def _set_number_of_threads(x):
    torch.set_num_threads(1)
    return x + 1


def _set_options_of_text(x):
    torch.set_printoptions(precision=2)
    return x + 1


def _settings() -> tuple[object, ...]:
    matmul = torch.backends.cuda.matmul.allow_tf32
    return torch.backends.cudnn.benchmark, matmul, torch.get_num_threads(), repr(torch.tensor(1 / 3))


@pytest.mark.parametrize(
    "program", [_set_benchmark, _set_precision_of_products, _set_number_of_threads, _set_options_of_text]
)
def test_what_switches_torch_is_refused_and_leaves_nothing(program):
    before = _settings()
    with pytest.raises(CaptureError, match="inside the program cannot be captured yet") as found:
        clew.trace(program, (X,))
    assert _settings() == before
    assert "test_settings.py" in str(found.value)
