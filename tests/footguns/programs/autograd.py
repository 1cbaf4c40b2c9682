"""Autograd: functions with their own backward, no_grad, gradients taken inside, hooks, checkpoint, vmap and grad."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.footguns.ledger import Case, call, program


class ReverseGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -gradient * ctx.scale, None


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * (x.abs() < 1)


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


@program("own_backward", kind="autograd")
def _():
    def f(x, scale=2.0):
        return ReverseGradient.apply(x * 3, scale)

    return Case(
        f,
        example=lambda: call(leaf(1.0, 2.0)),
        others=[lambda: call(leaf(1.0, 2.0), scale=5.0), lambda: call(torch.ones(3))],
        gradients=True,
    )


@program("own_backward_saves_input", kind="autograd")
def _():
    def f(x):
        return StraightThrough.apply(x) * x

    return Case(f, example=lambda: call(leaf(0.5, -0.5)), others=[lambda: call(leaf(0.5, -3.0, 4.0))], gradients=True)


@program("no_grad_block", kind="autograd")
def _():
    def f(x):
        with torch.no_grad():
            target = x.softmax(-1)
        return (x * target).sum()

    return Case(
        f,
        example=lambda: call(leaf(1.0, 2.0)),
        others=[lambda: call(leaf(5.0, 2.0, 1.0)), lambda: call(torch.ones(2))],
        gradients=True,
    )


@program("no_grad_decorator", kind="autograd")
def _():
    @torch.no_grad()
    def f(x):
        return x * 2

    return Case(f, example=lambda: call(leaf(1.0, 2.0)), others=[lambda: call(leaf(5.0))], gradients=True)


@program("enable_grad_inside_no_grad", kind="autograd")
def _():
    def f(x):
        with torch.no_grad():
            y = x * 2
            with torch.enable_grad():
                z = x * 3
        return y + z

    return Case(f, example=lambda: call(leaf(1.0)), others=[lambda: call(leaf(5.0))], gradients=True)


@program("grad_mode_argument", kind="autograd")
def _():
    def f(x, train=True):
        with torch.set_grad_enabled(train):
            return x * 2

    return Case(f, example=lambda: call(leaf(1.0)), others=[lambda: call(leaf(5.0), train=False)], gradients=True)


@program("grad_mode_of_caller", kind="autograd")
def _():
    def f(x, quiet):
        with torch.no_grad() if quiet else torch.enable_grad():
            if torch.is_grad_enabled():
                return x * 2
            return x * 3

    return Case(f, example=lambda: call(leaf(1.0), False), others=[lambda: call(leaf(1.0), True)], gradients=True)


@program("called_under_no_grad", kind="autograd")
def _():
    def f(x):
        return x * 2 if torch.is_grad_enabled() else x * 3

    def under_no_grad():
        torch.set_grad_enabled(False)
        return call(torch.ones(2))

    return Case(f, example=lambda: call(leaf(1.0)), others=[under_no_grad], reset=lambda: torch.set_grad_enabled(True))


@program("called_under_autocast", kind="autograd")
def _():
    def f(x):
        if torch.is_autocast_enabled("cpu"):
            return (x @ x).to(torch.get_autocast_dtype("cpu")) * 3
        return x @ x

    def under_autocast():
        torch.set_autocast_enabled("cpu", True)
        return call(torch.ones(2, 2))

    reset = lambda: torch.set_autocast_enabled("cpu", False)
    return Case(f, example=lambda: call(torch.ones(2, 2)), others=[under_autocast], reset=reset)


@program("detach_part", kind="autograd")
def _():
    def f(x):
        return x * x.detach() + x.clone().detach().requires_grad_()

    return Case(f, example=lambda: call(leaf(1.0, 2.0)), others=[lambda: call(leaf(3.0))], gradients=True)


@program("detach_by_flag", kind="autograd")
def _():
    def f(x, freeze):
        hidden = x * 2
        if freeze:
            hidden = hidden.detach()
        return hidden * x

    return Case(f, example=lambda: call(leaf(2.0), False), others=[lambda: call(leaf(2.0), True)], gradients=True)


@program("gradient_taken_inside", kind="autograd")
def _():
    def f(x):
        x = x.detach().requires_grad_(True)
        (gradient,) = torch.autograd.grad((x**3).sum(), x)
        return gradient

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3) * 2)])


@program("gradient_penalty", kind="autograd")
def _():
    def f(x, weight):
        x = x.requires_grad_(True)
        score = (x * weight).pow(2).sum()
        (gradient,) = torch.autograd.grad(score, x, create_graph=True)
        return (gradient.norm() - 1) ** 2

    return Case(
        f,
        example=lambda: call(torch.ones(2), leaf(1.0, 2.0)),
        others=[lambda: call(torch.ones(2) * 3, leaf(1.0, 1.0))],
        gradients=True,
    )


@program("backward_inside", kind="autograd")
def _():
    def f(x, weight):
        loss = (x * weight).sum()
        loss.backward()
        return weight.grad.clone()

    return Case(
        f, example=lambda: call(torch.ones(2), leaf(1.0, 2.0)), others=[lambda: call(torch.ones(2) * 4, leaf(1.0, 2.0))]
    )


@program("training_step", kind="autograd")
def _():
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def f(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Case(
        f,
        example=lambda: call(torch.ones(2, 2), torch.ones(2, 1)),
        others=[lambda: call(torch.ones(3, 2) * 2, torch.zeros(3, 1))],
        state=lambda: list(model.parameters()),
    )


@program("tensor_hook", kind="autograd")
def _():
    def f(x, factor):
        y = x * 2
        if y.requires_grad:
            y.register_hook(lambda gradient: gradient * factor)
        return y * x

    return Case(
        f,
        example=lambda: call(leaf(1.0, 2.0), 3.0),
        others=[lambda: call(leaf(1.0, 2.0), 7.0), lambda: call(torch.ones(2), 3.0)],
        gradients=True,
    )


@program("gradient_log_in_hook", kind="autograd")
def _():
    seen = []

    def f(x):
        y = x * 2
        y.register_hook(lambda gradient: seen.append(gradient.sum().item()))
        return y.sum()

    return Case(
        f,
        example=lambda: call(leaf(1.0, 2.0)),
        others=[lambda: call(leaf(1.0, 2.0, 3.0))],
        gradients=True,
        state=lambda: seen,
    )


@program("retain_grad", kind="autograd")
def _():
    kept = []

    def f(x):
        y = x * 2
        y.retain_grad()
        kept.append(y)
        return y.pow(2)

    return Case(
        f,
        example=lambda: call(leaf(1.0)),
        others=[lambda: call(leaf(3.0))],
        gradients=True,
        state=lambda: [y.grad for y in kept],
    )


@program("requires_grad_branch", kind="autograd")
def _():
    def f(x):
        if x.requires_grad:
            return x * 2
        return x * 3

    return Case(f, example=lambda: call(leaf(1.0)), others=[lambda: call(torch.ones(1))], gradients=True)


@program("grad_fn_branch", kind="autograd")
def _():
    def f(x):
        return x * 2 if x.is_leaf or x.grad_fn is None else x * 3

    return Case(f, example=lambda: call(leaf(1.0)), others=[lambda: call(leaf(1.0) * 1)])


@program("checkpointed_block", kind="autograd")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            return checkpoint(lambda y: self.layer(y).tanh(), x, use_reentrant=False)

    return Case(
        Model(), example=lambda: call(torch.ones(1, 2)), others=[lambda: call(torch.ones(3, 2) * 2)], gradients=True
    )


@program("checkpoint_by_flag", kind="autograd")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.drop = nn.Dropout(0.5)

        def forward(self, x, save_memory=False):
            def block(y):
                return self.drop(self.layer(y))

            return checkpoint(block, x, use_reentrant=False) if save_memory else block(x) * 2

    return Case(
        Model(),
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(3, 2), save_memory=True)],
        gradients=True,
    )


@program("vmap_over_rows", kind="autograd")
def _():
    def f(x, weight):
        return torch.vmap(lambda row: (row * weight).sum() / row.shape[0])(x)

    return Case(
        f,
        example=lambda: call(torch.ones(2, 3), torch.ones(3)),
        others=[lambda: call(torch.ones(4, 3), torch.arange(3.0)), lambda: call(torch.ones(2, 5), torch.arange(5.0))],
    )


@program("func_grad", kind="autograd")
def _():
    def f(x, power):
        return torch.func.grad(lambda y: (y**power).sum())(x)

    return Case(
        f,
        example=lambda: call(torch.ones(2) * 2, 2),
        others=[lambda: call(torch.ones(2) * 2, 3), lambda: call(torch.ones(3), 2)],
    )


@program("per_sample_gradients", kind="autograd")
def _():
    def loss(weight, x):
        return (x @ weight).pow(2).sum()

    def f(weight, x):
        return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weight, x)

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.randn(3, 2)),
        others=[lambda: call(torch.ones(2) * 3, torch.randn(5, 2))],
    )


@program("jacobian_inside", kind="autograd")
def _():
    def f(x):
        return torch.func.jacrev(lambda y: y * y.sum())(x)

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.arange(3.0))])


@program("functional_call_with_new_weights", kind="autograd")
def _():
    layer = nn.Linear(2, 1)

    def f(weights, x):
        return torch.func.functional_call(layer, weights, (x,))

    return Case(
        f,
        example=lambda: call({"weight": torch.ones(1, 2), "bias": torch.zeros(1)}, torch.ones(1, 2)),
        others=[
            lambda: call({"weight": torch.ones(1, 2) * 5, "bias": torch.ones(1)}, torch.ones(3, 2)),
            lambda: call({"weight": torch.ones(1, 2)}, torch.ones(1, 2)),
        ],
    )


@program("inference_mode_inside", kind="autograd")
def _():
    def f(x):
        with torch.inference_mode():
            y = x * 2
        return y.is_inference(), y.clone()

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3))])


@program("autocast_block", kind="autograd")
def _():
    def f(x, weight, low=True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=low):
            y = x @ weight
        return y, y.dtype

    return Case(
        f,
        example=lambda: call(torch.ones(2, 2), torch.ones(2, 2)),
        others=[
            lambda: call(torch.ones(2, 2), torch.ones(2, 2), low=False),
            lambda: call(torch.ones(3, 2), torch.ones(2, 4)),
        ],
    )


@program("higher_order_cond", kind="autograd")
def _():
    def f(x):
        return torch.cond(x.sum() > 0, lambda y: y.sin(), lambda y: y.cos(), (x,))

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(-torch.ones(2))])


@program("maml_inner_loop", kind="autograd")
def _():
    def f(weight, x, y, steps=1):
        for _ in range(steps):
            loss = (x * weight - y).pow(2).sum()
            (gradient,) = torch.autograd.grad(loss, weight, create_graph=True)
            weight = weight - 0.1 * gradient
        return (x * weight).sum()

    return Case(
        f,
        example=lambda: call(leaf(1.0, 1.0), torch.ones(2), torch.zeros(2)),
        others=[
            lambda: call(leaf(1.0, 1.0), torch.ones(2), torch.zeros(2), steps=3),
            lambda: call(leaf(2.0), torch.ones(1), torch.ones(1)),
        ],
        gradients=True,
    )
