"""Backward passes as graphs: gradients, results, buffers and random numbers are those of autograd."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

import clew
from clew import tree
from tests.backends.differentiated import MODELS, TOKENS, Tied


def parts(value: Any) -> list[Any]:
    """The tensors in a result, and the classes around them; caches of transformers are looked into."""
    if isinstance(value, torch.Tensor) or not (isinstance(value, (list, tuple, dict)) or hasattr(value, "__dict__")):
        return [value]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *(part for one in value for part in parts(one))]
    held = value if isinstance(value, dict) else vars(value)
    return [type(value).__name__, *(part for key, one in held.items() for part in (key, *parts(one)))]


def loss_of(result: Any) -> torch.Tensor:
    """One number that all differentiable parts of a result go into."""
    leaves = [leaf for leaf in parts(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    assert leaves, "something depends on the parameters"
    weighted = [(leaf * torch.linspace(0.5, 1.5, leaf.numel()).view(leaf.shape)).sum() for leaf in leaves]
    return torch.stack(weighted).sum()


def trained(program: Any, model: nn.Module, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """The result, all gradients, the buffers behind it, and the next random number."""
    torch.manual_seed(1)
    model.zero_grad()
    given = [leaf for leaf in tree.flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    for one in given:
        one.grad = None
    result = program(*args, **kwargs)
    loss_of(result).backward()
    gradients = {name: None if one.grad is None else one.grad.clone() for name, one in model.named_parameters()}
    values = [leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in parts(result)]
    buffers = {name: one.clone() for name, one in model.named_buffers()}
    return values, gradients, [one.grad for one in given], buffers, torch.rand(())


def assert_trained_alike(found: tuple[Any, ...], wanted: tuple[Any, ...], tolerance: float = 0.0) -> None:
    for one, other in zip(found[0], wanted[0], strict=True):
        assert type(one) is type(other)
        assert torch.allclose(one, other, tolerance, tolerance) if isinstance(one, torch.Tensor) else one == other
    for one, other in zip(found[1:], wanted[1:], strict=True):
        torch.testing.assert_close(_zeros(one, other), other, rtol=tolerance, atol=tolerance)


def _zeros(found: Any, wanted: Any) -> Any:
    """Gradients of zeros where autograd has none, as none."""
    if not isinstance(found, dict):
        return found
    return {key: None if wanted[key] is None and not value.any() else value for key, value in found.items()}


@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_those_of_autograd(name: str) -> None:
    torch.manual_seed(0)
    model, args, kwargs = MODELS[name]()
    twin = copy.deepcopy(model)
    made = clew.backward(clew.trace(model, args, kwargs), args, kwargs)
    tolerance = 1e-5 if name == "recurrent" else 0.0  # whose layers are one operator of oneDNN's elsewhere
    assert_trained_alike(trained(made, model, args, kwargs), trained(twin, twin, args, kwargs), tolerance)
    fewer = clew.checkpoint(made, budget=0.9)
    assert fewer.saved_bytes <= 0.9 * made.saved_bytes
    assert_trained_alike(trained(fewer, model, args, kwargs), trained(twin, twin, args, kwargs), tolerance)


def test_the_graphs_are_readable() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            hidden = torch.tanh(self.first(x))
            return self.second(hidden).mean()

    made = clew.backward(Net(), (torch.randn(3, 4),))
    assert (
        made.backward.code
        == """import torch


def forward(self, tangents, x, second_weight, hidden):
    tangent = tangents[0]
    expand = torch.ops.aten.expand.default(tangent, [3, 1])
    div = torch.ops.aten.div.Scalar(expand, 3)
    # second
    mm = torch.ops.aten.mm.default(div, second_weight)
    t_3 = torch.ops.aten.t.default(div)
    mm_1 = torch.ops.aten.mm.default(t_3, hidden)
    sum_1 = torch.ops.aten.sum.dim_IntList(div, [0], True)
    view = torch.ops.aten.reshape.default(sum_1, [1])
    tanh_backward = torch.ops.aten.tanh_backward.default(mm, hidden)
    # first
    t_3 = torch.ops.aten.t.default(tanh_backward)
    mm = torch.ops.aten.mm.default(t_3, x)
    sum_1 = torch.ops.aten.sum.dim_IntList(tanh_backward, [0], True)
    view_1 = torch.ops.aten.reshape.default(sum_1, [8])
    return {'first.weight': mm, 'first.bias': view_1, 'second.weight': mm_1, 'second.bias': view}
"""
    )
    assert made.saved == ("x", "second_weight", "hidden")
    assert made.saved_bytes == 3 * 8 * 4
    line = made.joint.graph.find(name="tanh_backward")[0].source
    assert line is not None and line.text == "hidden = torch.tanh(self.first(x))"


def test_value_and_gradients() -> None:
    torch.manual_seed(0)
    model, given = Tied(), (TOKENS, torch.randn(16))
    made = clew.backward(model, given, wrt=["last.weight", "scale"])
    value, gradients = made.value_and_gradients(*given)
    scale = given[1].clone().requires_grad_()
    model(TOKENS, scale).backward()
    torch.testing.assert_close(
        gradients, {"first.weight": model.first.weight.grad, "scale": scale.grad}, rtol=0, atol=0
    )
    torch.testing.assert_close(value, model(*given))
    result, saved = made.forward(*given)
    torch.testing.assert_close(made.backward((torch.ones(()),), *saved), gradients)


def test_functions_nests_and_results_that_were_given() -> None:
    def program(pair: Any, named: Any, scale: float) -> Any:
        first, second = pair
        total = first * named["x"] + second.sin()
        return {"total": total, "given": first, "twice": (total, total.detach(), scale), "pair": pair}

    tensors = [torch.randn(3, requires_grad=True) for _ in range(3)]
    args = ((tensors[0], tensors[1]), {"x": tensors[2]}, 2.5)
    made = clew.backward(program, args)
    assert made.wrt == ("pair[0]", "pair[1]", "named['x']")
    found, wanted = made(*args), program(*args)
    assert found["given"] is tensors[0] and found["pair"][1] is tensors[1] and found["twice"][2] == 2.5
    assert found["twice"][0] is found["total"] and not found["twice"][1].requires_grad
    for result in (found, wanted):
        for one in tensors:
            one.grad = None
        (result["total"].sum() + (result["given"] * 3).sum()).backward()
        gradients = [one.grad for one in tensors]
        if result is found:
            kept = gradients
    torch.testing.assert_close(kept, gradients, rtol=0, atol=0)


def test_calls_of_another_kind_are_refused() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    x = torch.randn(3, 4)
    made = clew.backward(model, (x,))
    for other in (torch.randn(2, 4), x.double(), torch.randn(4, 3).t()):
        with pytest.raises(clew.GuardError, match="kind_of_tensor"):
            made(other)
    with pytest.raises(clew.GuardError, match="input needs no gradient"):
        made(x.clone().requires_grad_())
    with pytest.raises(clew.GuardError, match="no autocast"), torch.autocast("cpu"):
        made(x)
    model.eval()
    with pytest.raises(clew.GuardError, match="training=True"):
        made(x)
    with torch.no_grad():
        torch.testing.assert_close(made(x), model(x))  # without gradients it is the captured program
    model.train()
    model[0].register_forward_hook(lambda *given: None)
    with pytest.raises(clew.GuardError, match="kind_of_layer"):
        made(x)


def test_the_way_of_the_example_is_guarded() -> None:
    def program(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            if not (scale > 2).any():
                x = x * scale
        else:
            x = x - 1
        while x.sum() < 10:
            x = x * 2
        return x * scale

    x = torch.rand(3, requires_grad=True)
    scale = torch.tensor([0.5, 1.0, 1.5])
    for control_flow in ("capture", "guard"):
        made = clew.backward(clew.trace(program, (x, scale), control_flow=control_flow), (x, scale))
        results = []
        for one in (made, program):
            x.grad = None
            one(x, scale).sum().backward()
            results.append(x.grad)
        torch.testing.assert_close(*results, rtol=0, atol=0)
        for other in ((-x, scale), (x, scale + 2), (x * 100, scale)):
            with pytest.raises(clew.GuardError, match=r"x.sum\(\)|any|<|>"):
                made(other[0].detach().requires_grad_(), other[1])


def test_numbers_that_tensors_hold_are_guarded() -> None:
    def program(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        first, second = lengths.tolist()
        return x[:first].sum() * 2 + x[:second].cos().sum()

    given = (torch.rand(5, requires_grad=True), torch.tensor([2, 4]))
    made = clew.backward(clew.trace(program, given), given)
    made(*given).backward()
    wanted = given[0].detach().clone().requires_grad_()
    program(wanted, given[1]).backward()
    torch.testing.assert_close(given[0].grad, wanted.grad, rtol=0, atol=0)
    with pytest.raises(clew.GuardError):
        made(given[0], torch.tensor([2, 3]))


def test_asking_the_example_leaves_no_mark() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = nn.functional.dropout(self.norm(x), 0.5)
            return x * 2 if x.abs().sum() > 0 else x

    model, x = Net(), torch.randn(4, 3)
    captured = clew.trace(model, (x,))
    before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    clew.backward(captured, (x,))
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    assert torch.equal(torch.get_rng_state(), state)


def test_what_has_no_backward_graph_is_refused() -> None:
    def asking(x: torch.Tensor) -> torch.Tensor:
        return x * x.max().item()

    def counting(x: torch.Tensor) -> torch.Tensor:
        return x * torch.nonzero(x).sum()

    x = torch.rand(3, requires_grad=True)
    with pytest.raises(clew.ClewError, match="a fraction that is computed") as caught:
        clew.backward(asking, (x,))
    assert "x.max().item()" in str(caught.value)
    with pytest.raises(clew.ClewError, match="nonzero needs the real tensor"):
        clew.backward(counting, (x,))
    with pytest.raises(clew.ClewError, match="no result depends"):
        clew.backward(lambda x: x * 2, (x.detach(),))
    with pytest.raises(clew.ClewError, match="names no argument"):
        clew.backward(lambda x: x * 2, (x,), wrt="y")
    with pytest.raises(clew.ClewError, match="needs an example"):
        clew.backward(asking)


def test_budgets() -> None:
    model = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8)) for _ in range(4)])
    x = torch.randn(16, 8)
    plain = clew.backward(model, (x,))
    sizes = [clew.checkpoint(model, (x,), budget=budget).saved_bytes for budget in (1.0, 0.6, 0.3, 0)]
    assert sizes[0] == plain.saved_bytes and sizes == sorted(sizes, reverse=True) and sizes[3] == 0
    assert clew.checkpoint(plain, budget=1000).saved_bytes <= 1000
    with pytest.raises(clew.ClewError, match="is no budget"):
        clew.checkpoint(plain, budget=1.5)
    dropping = clew.backward(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)), (x,))
    with pytest.raises(clew.ClewError, match="at least 512 must be saved"):
        clew.checkpoint(dropping, budget=100)


def test_a_value_that_is_written_later_is_not_computed_again() -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        kept = x * w
        scale = x.detach().clone()
        first = kept * scale
        kept.exp_()
        scale = scale + 1
        return (first.sin() * kept).sum() + scale.sum()

    given = (torch.randn(5), torch.randn(5, requires_grad=True))
    made = clew.checkpoint(program, given, budget=0.7)
    made(*given).backward()
    found, given[1].grad = given[1].grad, None
    program(*given).backward()
    torch.testing.assert_close(found, given[1].grad, rtol=0, atol=0)
