"""Facts about a value that two ways made, asked after they have met: dtype, shape, identity, gradients, length."""

import torch
from torch import nn

from tests.control_flow.register import built, program, s, v

SIGNS = lambda: [v(1, 2), v(-1, -2), v(0, 0), v(3, -4), v(-3, 9)]


@program("merged", SIGNS)
def dtype_of_either(x):
    y = x.long() if x.sum() > 0 else x
    if y.is_floating_point():
        return y / 2
    return y * 2, y.dtype


@program("merged", SIGNS)
def shape_of_either(x):
    if x.sum() > 0:
        y = x[:1]
    else:
        y = torch.cat([x, x])
    return y.shape[0], y.numel() * 2, torch.zeros(len(y))


@program("merged", SIGNS)
def rank_of_either(x):
    y = x.unsqueeze(0) if x.sum() > 0 else x
    return y.dim(), y.ndim == 1, y.shape


@program("merged", SIGNS)
def identity_of_either(x):
    y = x if x.sum() > 0 else x.clone()
    return y is x, y


@program("merged", SIGNS)
def aliased_on_one_way(x):
    y = x.view(-1) if x.sum() > 0 else x.clone()
    y.add_(1)
    return x * 2


@program("merged", SIGNS)
def type_of_either(x):
    y = x.sum() if x.max() > 2 else 1.5
    return isinstance(y, torch.Tensor), type(y).__name__, y


@program("merged", SIGNS)
def contiguous_on_one_way(x):
    pair = torch.stack([x, x * 2])
    y = pair.t() if x.sum() > 0 else pair.t().contiguous()
    return y.is_contiguous(), y.stride()


@program("merged", SIGNS)
def history_of_either(x):
    w = torch.ones(2, requires_grad=True)
    y = x * w if x.sum() > 0 else x * w.detach()
    return y.requires_grad, y.grad_fn is None, y.is_leaf


@program("merged", SIGNS)
def length_of_either(x):
    parts = [x] if x.sum() > 0 else [x, x, x]
    return len(parts), parts


@program("merged", SIGNS)
def keys_of_either(x):
    found = {"a": x}
    if x.sum() > 0:
        found["b"] = x * 2
    return sorted(found), "b" in found, found


@program("merged", SIGNS)
def none_on_one_way(x):
    y = None if x.sum() > 0 else x
    return y is None, y


@program("merged", SIGNS)
def text_of_either(x):
    name = "up" if x.sum() > 0 else "down"
    return f"went {name}", {name: x}, name == "up"


@program("merged", SIGNS)
def function_of_either(x):
    act = torch.relu if x.sum() > 0 else torch.tanh
    return act(x), act.__name__


@program("merged", SIGNS)
def number_used_as_size(x):
    n = 2 if x.sum() > 0 else 3
    return torch.arange(n), x.repeat(n), list(range(n))


@program("merged", SIGNS)
def number_used_as_index(x):
    place = 0 if x[0] > x[1] else 1
    return x[place], [10, 20][place], (x * 2)[place:]


@program("merged", SIGNS)
def truth_kept_for_later(x):
    large = bool(x.max() > 2)
    y = x * 2
    if large:
        y = y + 1
    return y, large, large is True, int(large)


@program("merged", SIGNS)
def device_and_layout_of_either(x):
    y = x.to_sparse() if x.sum() > 0 else x
    return y.is_sparse, y.layout, y.device.type


@program("merged", SIGNS)
def gradient_mode_after_a_branch(x):
    w = torch.ones(2, requires_grad=True)
    if x.sum() > 0:
        torch.set_grad_enabled(False)
    y = x * w
    torch.set_grad_enabled(True)
    return y.requires_grad, y


@built("merged", SIGNS)
def writes_a_list_it_closes_over():
    history = []

    def f(x):
        if x.max() > 2:
            history.append(x.max())
        return x + sum(history), len(history)

    return f


@built("merged", SIGNS)
def writes_its_own_attribute():
    def f(x):
        if x.sum() > 0:
            f.calls += 1
            f.last = x
        return x * f.calls, f.last

    f.calls, f.last = 0, torch.zeros(2)
    return f


@built("merged", SIGNS)
def writes_an_attribute_of_its_class():
    class Model(nn.Module):
        best = torch.zeros(())

        def forward(self, x):
            if x.max() > Model.best:
                Model.best = x.max()
            return x - Model.best

    return Model()


@built("merged", SIGNS)
def writes_a_default_argument():
    def f(x, memory={"n": 0}):
        if x.sum() > 0:
            memory["n"] += 1
        return x + memory["n"]

    f.__kwdefaults__ = None
    f.__defaults__ = ({"n": 0},)
    return f


@built("merged", lambda: [v(3, 4), v(30, 40), v(0.1, 0), v(0, 0), v(-30, 4)])
def writes_outside_from_a_loop():
    steps, sizes = 0, torch.zeros(())

    def f(x):
        nonlocal steps, sizes
        while x.norm() > 1:
            x = x / 2
            steps += 1
            sizes = sizes + x.norm()
        return x, steps, sizes

    return f


@built("merged", SIGNS)
def swaps_two_outside():
    low, high = torch.zeros(()), torch.ones(())

    def f(x):
        nonlocal low, high
        if x.sum() > 0:
            low, high = high, low + 1
        return x * high + low

    return f


class _Box:
    def __init__(self):
        self.last = None


@program("merged", lambda: [(x, s(n), _Box()) for x, n in zip(SIGNS(), (2, 3, 0, 1, 2))])
def writes_an_attribute_in_a_range(x, n, box):
    for i in range(n.item()):
        box.last = x * i
    if x.sum() > 0:
        return x
    return x + 1
