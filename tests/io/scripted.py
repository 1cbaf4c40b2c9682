"""Programs for TorchScript: every construct that its compiler lowers in a way of its own."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple  # noqa: UP035  TorchScript reads these names

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.3), nn.LayerNorm(8), nn.Linear(8, 3))

    def forward(self, x):
        return F.log_softmax(self.layers(x), dim=-1)


class ConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(6)
        self.pool = nn.AdaptiveAvgPool2d((2, 2))
        self.head = nn.Linear(24, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.head(torch.flatten(self.pool(x), 1))


class Recurrent(nn.Module):
    """A cell in a loop over time, and the states of all steps in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)

    def forward(self, x, state: Optional[Tuple[Tensor, Tensor]] = None):
        if state is None:
            zeros = torch.zeros(x.size(1), 4, dtype=x.dtype, device=x.device)
            state = (zeros, zeros)
        outputs: List[Tensor] = []
        for step in range(x.size(0)):
            state = self.cell(x[step], state)
            outputs.append(state[0])
        return torch.stack(outputs), state


class Layered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, num_layers=2, batch_first=True)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        hidden, _ = self.lstm(x)
        return self.attention(hidden, hidden, hidden, need_weights=False)[0]


class Branches(nn.Module):
    def forward(self, x, flag: bool = True, scale: Optional[float] = None, names: Optional[List[str]] = None):
        if x.sum() > 0 and flag:
            y = x * 2
        elif x.dim() == 1:
            y = x - 1
        else:
            y = -x
        if scale is not None:
            y = y * scale
        count = 0 if names is None else len(names)
        return y if count > 1 else y + 1, count


class EarlyExit(nn.Module):
    def forward(self, x, limit: int):
        total = torch.zeros([])
        for i in range(limit):
            if i == 2:
                continue
            total = total + x[i % x.size(0)].sum()
            if total > 3:
                return total, i
            if total < -3:
                break
        return total * 10, -1


class Halving(nn.Module):
    def forward(self, x):
        steps = 0
        while x.abs().max() > 1:
            x = x / 2
            steps += 1
            if steps > 20:
                break
        return x, steps


class Counting(nn.Module):
    """State: a number, a list's length, a buffer that is set anew and one that is changed in place."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.gain: float = 1.5
        self.names: List[str] = ["a", "b"]
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("total", torch.zeros(2))

    def forward(self, x):
        before = self.calls
        self.calls += 1
        self.mean = self.mean + (x - self.mean) / self.calls
        self.total += x
        return x * self.gain + before, self.calls, len(self.names)

    @torch.jit.export
    def reset(self, value: int):
        self.calls = value
        return self.calls


class Containers(nn.Module):
    def forward(self, parts: Dict[str, Tensor], order: List[str], pair: Tuple[int, Tensor]):
        found: Dict[str, Tensor] = {}
        for name in order:
            if name in parts:
                found[name] = parts[name] * pair[0]
        order.append("end")
        sizes = [value.size(0) for value in found.values()]
        sizes.reverse()
        first, second = torch.cat([pair[1], pair[1] + 1]).chunk(2)
        return found, sizes, order, (first, second), len(order)


def dtypes(x: Tensor, y: Tensor):
    if x.dtype == torch.float64:
        return y.to(torch.int64), x.dtype
    return y.to(x.dtype), y.dtype


def numbers(x: Tensor, n: int, scale: float):
    halves = n // 2 + n % 3
    return x * (n * n - halves) / scale, float(n) ** 2, min(n, 3), bool(n), n / 2, -n, abs(n - 10)


def guarded(x: Tensor, n: int):
    assert n > 0, "n must be positive"
    if x.dim() > 2:
        raise ValueError(f"too many dimensions: {x.dim()}")
    return x[:n, 1:].clamp_(min=0.0)


def indexed(x: Tensor, where: Tensor):
    y = x.clone()
    y[where > 0] = 0.5
    y[0] += 1
    picked = x[where.nonzero().squeeze(1)]
    return y, picked, x[..., -1], x[None]


def texts(x: Tensor, name: str):
    label = f"{name}-{x.size(0)}"
    return label + "!" if "a" in name else label, f"{float(x[0])} {x} {[0.5, 2.0]} {x.size()} {name}"


def noisy(x: Tensor):
    return x + torch.rand_like(x) + torch.randn([2, 1])


def einsum(x: Tensor, w: Tensor):
    return torch.einsum("bi,oi->bo", x, w), torch.norm(x, dim=1), torch.split(x, [1, 1], dim=1)


def nested_lists(x: Tensor, n: int):
    rows: List[List[int]] = []
    for i in range(n):
        row: List[int] = []
        for j in range(i):
            if j == 3:
                break
            row.append(i * j)
        rows.append(row)
    k = 0
    while k < len(rows):
        rows[k].extend([k, k])
        k += 1
    before = len(rows)
    rows.pop()
    return rows, before, len(rows)


def shared_lists(x: Tensor, xs: List[int], flag: bool):
    ys = xs if flag else [7]
    ys.append(5)
    z = xs[0] if len(xs) > 0 else -1
    xs += [3]
    return ys, xs, z, sorted(xs)


def dicts(x: Tensor, d: Dict[str, int]):
    e = {"a": 1, "b": 2}
    e.update(d)
    for k, v in d.items():
        e[k] = v + 1
    if "a" in e:
        del e["a"]
    return e, list(e.keys()), e.get("zz", 3), len(e)


def leaving(x: Tensor, n: int):
    s = 0
    for i in range(n):
        x = x + 1
        if bool(x.sum() > 10):
            s = i
            break
    else_ = s
    return x, else_


def continuing(x: Tensor, n: int):
    i = 0
    while i < n and bool(x.sum() < 100):
        x = x * 2
        i += 1
        if i == 5:
            continue
        x = x + 1
    return x, i


def written(x: Tensor, y: Tensor):
    a = x.sum()
    x.add_(y)
    x[0] = 5
    b = x.sum()
    v = x.view(-1)
    v.mul_(2)
    return a, b, x, v


def pairs(xs: List[Tensor], ys: List[Tensor]):
    out: List[Tensor] = []
    for i, (a, b) in enumerate(zip(xs, ys)):
        out.append(a * b + i)
    return out, [t.sum() for t in out]


def optional(x: Optional[Tensor], y: Optional[int]):
    if x is None:
        return torch.zeros(1)
    if y is not None and y > 3:
        x = x * y
    else:
        x = x - 1
    return x


def made(n: int, x: Tensor):
    return (
        torch.zeros(n, 2),
        torch.arange(n),
        torch.ones([n], dtype=torch.float64),
        torch.full((n,), 2.5),
        torch.empty(0, dtype=x.dtype),
        torch.tensor([1, 2]),
        torch.tensor(2.0),
        torch.eye(n),
        torch.linspace(0.0, 1.0, n),
    )


def assorted(x: Tensor):
    a, b = x.max(dim=0)
    q = torch.where(x > 0, x, -x)
    u = x.unsqueeze(0).expand(2, -1, -1).permute(2, 0, 1).contiguous()
    return (
        a,
        b,
        q,
        u,
        x.std(),
        x.t() @ x,
        x.mean(1, keepdim=True),
        torch.topk(x, 1),
        x.argmax(),
        F.softmax(x, 1),
        F.interpolate(x[None, None], scale_factor=2.0),
        x.numel(),
    )


def wrapping(x: Tensor, seed: int):
    for i in range(5):
        seed = seed * 6364136223846793005 + 1442695040888963407
    return seed


def divided(x: Tensor, a: float, b: float):
    return (
        a / b if b != 0.0 else a * float("inf"),
        max(a, b),
        a // 2.0 if b > 1 else a % 2.0,
        round(a),
        int(a) << 2,
        a**2,
    )


def losses(x: Tensor, labels: Tensor):
    scores = F.log_softmax(x, dim=1).unsqueeze(1)
    lengths = torch.tensor([4])
    found = F.ctc_loss(scores, labels[:2].unsqueeze(0), lengths, torch.tensor([2]))
    return (
        found,
        F.cross_entropy(x, labels),
        F.mse_loss(x, x * 2, reduction="sum"),
        F.nll_loss(x, labels),
        F.l1_loss(x, x + 1),
    )
