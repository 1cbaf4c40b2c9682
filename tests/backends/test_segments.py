"""Segments of torch programs do what the program does.

The engine of these tests compiles nothing, but takes the program apart as Inductor does, through AOTAutograd: that is
fast, and what may go wrong in a segment goes wrong there.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._guards import TracingContext, tracing

import clew
from clew.backends.inductor import fx_module
from clew.backends.torch_backend import TorchBackend


class Aot(TorchBackend):
    """Runs the graphs that AOTAutograd makes as they are."""

    name = "aot"

    def __init__(self) -> None:
        self.compiled_programs = 0

    def compiled(self, flat: Any, fakes: list[Any], mode: Any, example: list[Any]) -> Any:
        self.compiled_programs += 1
        with tracing(TracingContext(mode)):
            return aot_autograd(
                fw_compiler=lambda graph, inputs: make_boxed_func(graph.forward), keep_inference_input_mutations=True
            )(fx_module(flat, len(fakes)), fakes)


def compiled(fn: Any, *args: Any, engine: Any = None, **options: Any) -> Any:
    return clew.compile(fn, engine or Aot(), args, **options)


def check(fn: Any, *calls: tuple[Any, ...], engine: Any = None, example: tuple[Any, ...] | None = None) -> Any:
    """The compiled program gives what the original gives, for each of these calls, and leaves its arguments alike."""
    made = compiled(copy.deepcopy(fn), *copy.deepcopy(example or calls[0]), engine=engine)
    for args in calls:
        theirs, ours = copy.deepcopy(args), copy.deepcopy(args)
        torch.manual_seed(0)
        wanted = fn(*theirs)
        drawn = torch.rand(())
        torch.manual_seed(0)
        found = made(*ours)
        torch.testing.assert_close(found, wanted)
        assert torch.equal(torch.rand(()), drawn), "another use of random numbers"
        torch.testing.assert_close(ours, theirs)
    return made


def segments(made: Any) -> list[Any]:
    return [node.target for node in made.graph.nodes if type(node.target).__name__ == "TorchSegment"]


X = torch.arange(12.0).reshape(3, 4)


def test_a_program_is_one_segment() -> None:
    made = check(lambda x: torch.relu(x - 5).sum(-1) * x.shape[0], (X,), (X + 1,))
    assert len(segments(made)) == 1 and not segments(made)[0].islands


def test_sizes_that_differ_become_symbols() -> None:
    engine = Aot()
    calls = [(torch.randn(n, 4),) for n in (3, 5, 6, 7, 8)]
    check(lambda x: (x.softmax(0) / x.shape[0], x.shape[0] * 2), *calls, engine=engine)
    assert engine.compiled_programs == 2


def test_a_condition_on_a_symbol_is_looked_at() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(-1, 2).sum(0) if x.shape[0] % 2 == 0 else x * 2

    lazy = clew.compile(clew.trace(program), Aot())
    for n in (4, 6, 8, 5, 7, 10, 3):
        x = torch.randn(n)
        torch.testing.assert_close(lazy(x), program(x))


def test_numbers_are_constants_until_they_differ() -> None:
    engine = Aot()
    check(lambda x, n: x[:n] * n, *[(X, n) for n in (2, 3, 2, 1, 0)], engine=engine)
    assert engine.compiled_programs <= 4


def test_floats_are_constants_and_their_number_is_bounded() -> None:
    made = compiled(lambda x, f: x * f, X, 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(20):
            torch.testing.assert_close(made(X, number / 8), X * (number / 8))
    assert "16 kinds" in segments(made)[0].in_python


def test_strides_dtypes_and_gradients_make_other_variants() -> None:
    engine = Aot()
    square = torch.randn(4, 4)
    made = compiled(lambda x: (x * 2).t().contiguous(), square, engine=engine)
    for x in (square, square.t(), square.double(), square[::2], square.requires_grad_()):
        torch.testing.assert_close(made(x), (x * 2).t().contiguous())
    assert made(square).requires_grad
    assert engine.compiled_programs >= 4


def test_gradients_are_those_of_the_original() -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ w).pow(2).sum()

    made = compiled(program, X, torch.randn(4, 2))
    one = torch.randn(4, 2, requires_grad=True)
    other = one.detach().clone().requires_grad_()
    made(X, one).backward()
    program(X, other).backward()
    torch.testing.assert_close(one.grad, other.grad)


def test_no_grad_of_the_caller_is_another_variant() -> None:
    made = compiled(lambda x: x * 2, X)
    x = X.clone().requires_grad_()
    assert made(x).requires_grad
    with torch.no_grad():
        assert not made(x).requires_grad
    assert made(x).requires_grad


def test_blocks_of_the_program() -> None:
    def program(x: torch.Tensor) -> Any:
        with torch.no_grad():
            y = x * 2
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = x @ x.t()
        return y, z, x * 3

    x = X.clone().requires_grad_()
    made = compiled(program, x)
    for found, wanted in zip(made(x), program(x), strict=True):
        torch.testing.assert_close(found, wanted)
        assert found.requires_grad == wanted.requires_grad


def test_branches_stay_pythons_and_their_sides_are_compiled() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return torch.relu(x) + 1
        return x.exp() * 2

    made = check(program, (X,), (-X,))
    assert "branch" in str(clew.explain(made))
    assert "if " in made.code


def test_loops_on_data() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        while x.sum() < 100:
            x = x * 2 + 1
        return x - 1

    check(program, (X,), (X + 50,))


def test_guards_are_kept() -> None:
    made = compiled(lambda parts: parts[0] * 2 if len(parts) == 1 else parts[0] + 1, [X])
    with pytest.raises(clew.GuardError, match="parts"):
        made([X, X])


def test_a_guard_on_a_computed_value_is_checked_where_it_stands() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        if int(x.sum()) != 78:
            raise ValueError
        return x * 2

    made = clew.compile(program, Aot(), (X.clone(),), control_flow="guard")
    torch.testing.assert_close(made(X.clone()), (X + 1) * 2)
    other = X + 1
    with pytest.raises(clew.GuardError):
        made(other)
    torch.testing.assert_close(other, X + 1)  # what was written is undone


def test_lazy_graphs_capture_again() -> None:
    lazy = clew.compile(lambda parts: parts[0] * 2 if len(parts) == 1 else parts[0] + 1, Aot())
    for count in (1, 2, 1):
        torch.testing.assert_close(lazy([X] * count), X * 2 if count == 1 else X + 1)
    assert len(lazy.captures) == 2


def test_sizes_that_depend_on_data_are_islands() -> None:
    def program(x: torch.Tensor) -> Any:
        y = torch.relu(x) * 2
        rows = y[y.sum(-1) > 20]
        return rows * 2, rows.shape[0], y + 1

    made = check(program, (X,), (X + 1,), (X * 0,))
    assert "needs" in str(clew.explain(made))


def test_random_numbers_are_torchs() -> None:
    check(lambda x: torch.nn.functional.dropout(x, 0.5) + torch.randn(4), (X,))


def test_outputs_that_are_inputs_or_views_stay_so() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> Any:
        x.mul_(2)
        z = y * 3
        return x, y[1:], z, z[0]

    made = compiled(program, X.clone(), X.clone())
    x, y = X.clone(), X.clone()
    a, b, c, d = made(x, y)
    assert a is x
    y[1] = 7
    assert torch.equal(b[0], y[1])
    c[0] = 5
    assert torch.equal(d, c[0])


def test_arguments_that_are_one_object() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x + y

    lazy = clew.compile(program, Aot())
    for one, other in ((X.clone(), X.clone()), (None, None), (X.clone(), X.clone())):
        x = X.clone()
        pair = (x, x) if one is None else (one, other)
        wanted = program(*[X.clone()] * 2) if one is None else program(X.clone(), X.clone())
        torch.testing.assert_close(lazy(*pair), wanted)


def test_arguments_that_share_memory() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2 + y

    lazy = clew.compile(program, Aot())
    for shares in (False, True, False):
        base, other = torch.zeros(6), torch.zeros(6)
        wanted = program(base[:4], base[2:] if shares else other[2:])
        base, other = torch.zeros(6), torch.zeros(6)
        torch.testing.assert_close(lazy(base[:4], base[2:] if shares else other[2:]), wanted)


def outside(x: torch.Tensor) -> torch.Tensor:
    return x * float(x.sum())


clew.wrap("outside")


class Counting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5))
        self.register_buffer("total", torch.zeros(4))
        self.calls = 0
        self.last: Any = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.total.add_(x.mean(0))
        self.last = x * 2
        return self.layers(x) + self.total * self.calls


def test_state_modes_and_parameters_of_a_module() -> None:
    model = Counting()
    made = compiled(copy.deepcopy(model), X)
    for step in range(6):
        if step == 2:
            model.eval(), made.eval()
        if step == 4:
            model.train(), made.train()
            model.layers[2].p = made.get_submodule("layers.2").p = 0.1
        if step == 5:
            state = {name: value + 1 for name, value in model.state_dict().items()}
            model.load_state_dict(state), made.load_state_dict(state)
        torch.manual_seed(step)
        wanted = model(X + step)
        torch.manual_seed(step)
        torch.testing.assert_close(made(X + step), wanted)
        assert made.calls == model.calls
        torch.testing.assert_close(made.last, model.last)
        torch.testing.assert_close(dict(made.named_buffers()), dict(model.named_buffers()))


def test_a_module_moves() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4))
    made = compiled(copy.deepcopy(model), X)
    made(X)
    torch.testing.assert_close(made.double()(X.double()), model.double()(X.double()))


def test_a_layer_that_is_replaced_or_listened_to() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    made = compiled(model, X)
    made(X)
    heard = []
    layer = made.get_submodule("0")
    handle = layer.register_forward_hook(lambda module, args, result: heard.append(result) or result + 1)
    torch.testing.assert_close(made(X), torch.relu(model[0](X)))
    assert len(heard) == 2
    handle.remove()
    made.set_submodule("0", torch.nn.Linear(4, 4))
    torch.testing.assert_close(made(X), torch.relu(made.get_submodule("0")(X)))


def test_copies_are_compiled_programs_of_their_own() -> None:
    made = compiled(torch.nn.Linear(4, 2), X)
    made(X)
    twin = copy.deepcopy(made)
    with torch.no_grad():
        twin.get_parameter("weight").zero_()
    torch.testing.assert_close(twin(X), twin.get_parameter("bias").expand(3, 2))
    assert not torch.equal(made(X), twin(X))


def test_functions_of_the_user_are_islands() -> None:
    made = check(lambda x: outside(x * 2) + 1, (X,))
    assert len(segments(made)) == 2


def test_what_passes_put_in_is_compiled() -> None:
    """A rotary embedding that was recognised, and a write that became a function, are no islands."""

    def turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        halves = torch.cat((-x[..., 2:], x[..., :2]), dim=-1)
        return x * cos + halves * sin

    def written(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y[0] = 1.0
        return y.sum(-1)

    for fn, args, change in ((turned, (X, X.cos(), X.sin()), clew.recognize), (written, (X,), clew.functionalize)):
        changed = change(clew.trace(fn, args))
        homes = {(getattr(node.target, "__module__", None) or "").split(".")[0] for node in changed.graph.nodes}
        assert "clew" in homes
        made = clew.compile(changed, Aot())
        torch.testing.assert_close(made(*args), fn(*args))
        assert len(segments(made)) == 1 and not segments(made)[0].islands


def test_an_error_of_the_back_end() -> None:
    class Failing(Aot):
        def compiled(self, *args: Any) -> Any:
            raise NotImplementedError("no relu here")

    with pytest.raises(clew.errors.BackendError, match="cannot compile segment_0: NotImplementedError: no relu"):
        compiled(torch.relu, X, engine=Failing())(X)
    made = compiled(torch.relu, X, engine=Failing(), fallback=True)
    with pytest.warns(RuntimeWarning, match="runs in Python"):
        torch.testing.assert_close(made(X), torch.relu(X))
    assert "no relu here" in str(clew.explain(made))


def test_unknown_names_and_programs_that_are_captured() -> None:
    with pytest.raises(clew.errors.BackendError, match="there is no back end 'nvrtc'"):
        clew.compile(torch.relu, "nvrtc", (X,))
    captured = clew.trace(torch.relu, (X,))
    with pytest.raises(clew.errors.BackendError, match="captured already.*: dynamic"):
        clew.compile(captured, "python", dynamic=True)
    assert torch.equal(clew.compile(captured, "python", (X,))(X), torch.relu(X))
    assert clew.compile(torch.relu, "python", (X,))(X).shape == X.shape


def test_a_step_of_training_is_one_program() -> None:
    def make(model: torch.nn.Module) -> Any:
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

        def step(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), target)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Dropout(0.2), torch.nn.Linear(8, 2))
    twin = copy.deepcopy(model)
    example = torch.randn(3, 4), torch.randn(3, 2)
    made, step = compiled(make(model), *example), make(twin)
    assert segments(made)
    for _ in range(4):
        given = torch.randn(3, 4), torch.randn(3, 2)
        state = torch.get_rng_state()
        found = made(*given)
        torch.set_rng_state(state)
        torch.testing.assert_close(found, step(*given))
    torch.testing.assert_close(model.state_dict(), twin.state_dict())
