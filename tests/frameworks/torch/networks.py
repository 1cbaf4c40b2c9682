"""Parts of networks, losses and optimisers as functions of tensors."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.frameworks.torch.register import integers, normal, on, uniform


@on((normal(2, 4, 8), 2), (normal(3, 6, 8), 2), (normal(2, 4, 8), 4))
def self_attention(x, heads):
    batch, length, width = x.shape
    parts = x.view(batch, length, heads, width // heads).transpose(1, 2)
    scores = parts @ parts.transpose(-1, -2) / (width // heads) ** 0.5
    mask = torch.ones(length, length, dtype=torch.bool).tril()
    weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
    return (weights @ parts).transpose(1, 2).reshape(batch, length, width)


@on((normal(2, 5, 6),), (normal(1, 7, 8),))
def rotary_positions(x):
    length, width = x.shape[1], x.shape[2]
    rates = 1 / 100 ** (torch.arange(0, width, 2) / width)
    angles = torch.arange(length)[:, None] * rates[None]
    first, second = x[..., 0::2], x[..., 1::2]
    turned = first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos()
    return torch.stack(turned, -1).flatten(-2)


@on((normal(3, 5), normal(5), normal(5)), (normal(2, 7), normal(7), normal(7)))
def layer_norm(x, scale, shift):
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
    return (x - mean) / (variance + 1e-5).sqrt() * scale + shift


@on((normal(2, 4, 3), normal(3, 8), normal(2, 8), normal(8)), (normal(5, 6, 3), normal(3, 8), normal(2, 8), normal(8)))
def long_memory(sequence, into, back, bias):
    hidden = sequence.new_zeros(sequence.shape[0], back.shape[0])
    cell, outputs = hidden, []
    for place in range(sequence.shape[1]):
        enter, forget, update, leave = (sequence[:, place] @ into + hidden @ back + bias).chunk(4, dim=1)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(enter) * torch.tanh(update)
        hidden = torch.sigmoid(leave) * torch.tanh(cell)
        outputs.append(hidden)
    return torch.stack(outputs, 1), cell


@on((normal(4, 3), normal(4, 3)), (normal(7, 5), normal(7, 5)))
def contrastive_loss(left, right):
    left, right = F.normalize(left, dim=1), F.normalize(right, dim=1)
    scores = left @ right.T * 10
    targets = torch.arange(scores.shape[0])
    return (F.cross_entropy(scores, targets) + F.cross_entropy(scores.T, targets)) / 2


@on((normal(5, 4), integers(4, 5)), (normal(9, 3), integers(3, 9)))
def focal_loss(scores, labels):
    logs = scores.log_softmax(-1).gather(1, labels[:, None]).squeeze(1)
    return (-((1 - logs.exp()) ** 2) * logs).mean()


@on((normal(2, 3, 8, 8), normal(4, 3, 3, 3)), (normal(1, 3, 10, 6), normal(2, 3, 3, 3)))
def convolution_block(image, kernel):
    out = F.conv2d(image, kernel, padding=1)
    mean, variance = out.mean((0, 2, 3), keepdim=True), out.var((0, 2, 3), keepdim=True)
    return F.max_pool2d(F.relu((out - mean) * torch.rsqrt(variance + 1e-5)), 2)


@on((normal(2, 3, 6, 6),), (normal(1, 2, 8, 4),))
def squeeze_and_excite(image):
    weights = torch.sigmoid(image.mean((2, 3)))
    return image * weights[:, :, None, None]


@on((normal(6), normal(6), normal(6), uniform(6), 3), (normal(2, 3), normal(2, 3), normal(2, 3), uniform(2, 3), 10))
def adam_step(weight, gradient, first, second, step):
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient**2
    fixed = first / (1 - 0.9**step), second / (1 - 0.999**step)
    return weight - 0.01 * fixed[0] / (fixed[1].sqrt() + 1e-8), first, second


@on((normal(5), 1.0), (normal(9), 0.1), (normal(5) * 100, 2.0))
def clipped_gradient(gradient, limit):
    norm = gradient.norm()
    if norm > limit:
        gradient = gradient * (limit / norm)
    return gradient, norm


@on((normal(6, 4), 2), (normal(3, 7), 3))
def mixture_of_experts(x, count):
    scores, chosen = x.softmax(-1).topk(count, dim=-1)
    return torch.zeros_like(x).scatter(1, chosen, scores / scores.sum(-1, keepdim=True)), chosen


@on((uniform(5, 4), uniform(5)), (uniform(8, 4), uniform(8)))
def suppressed_boxes(corners, scores):
    low = torch.minimum(corners[:, :2], corners[:, 2:])
    high = torch.maximum(corners[:, :2], corners[:, 2:])
    area = (high - low).prod(1)
    shared = (torch.minimum(high[:, None], high[None]) - torch.maximum(low[:, None], low[None])).clamp(min=0).prod(2)
    overlap = shared / (area[:, None] + area[None] - shared)
    order = scores.argsort(descending=True)
    kept = torch.ones_like(scores, dtype=torch.bool)
    for place in range(scores.shape[0]):
        here = order[place]
        kept = torch.where(kept[here], kept & ((overlap[here] < 0.3) | (torch.arange(len(kept)) == here)), kept)
    return kept


@on((normal(3, 10),), (normal(2, 25),))
def nucleus(scores):
    ordered, places = scores.softmax(-1).sort(descending=True)
    kept = ordered.cumsum(-1) - ordered < 0.8
    return torch.zeros_like(scores).scatter(1, places, ordered * kept)


@on((normal(4, 6), integers(4, 6)), (normal(7, 6), integers(7, 6)))
def viterbi(scores, _):
    best, back = scores[:, 0], []
    for place in range(1, scores.shape[1]):
        total = best[:, None] + scores[:, place][None]
        best, came = total.max(0)
        back.append(came)
    path = [best.argmax()]
    for came in reversed(back):
        path.append(came[path[-1]])
    return torch.stack(path[::-1]), best.max()


@on((normal(5), normal(5)), (normal(8), normal(8)))
def variational_loss(mean, spread):
    noise = torch.randn_like(mean)
    sample = mean + noise * (0.5 * spread).exp()
    return sample, -0.5 * (1 + spread - mean**2 - spread.exp()).sum()


@on((normal(4, 3), normal(3, 5), normal(5, 2)), (normal(7, 3), normal(3, 5), normal(5, 2)))
def gradient_of_network(x, first, second):
    def loss(first, second):
        return ((torch.relu(x @ first) @ second) ** 2).mean()

    return torch.func.grad(loss, argnums=(0, 1))(first, second)


@on((normal(3, 4), normal(5, 4)), (normal(2, 6), normal(7, 6)))
def optimal_transport(left, right):
    kernel = (-(torch.cdist(left, right) ** 2)).exp()
    row, column = torch.ones(left.shape[0]), torch.ones(right.shape[0])
    for _ in range(6):
        row = 1 / (kernel @ column)
        column = 1 / (kernel.T @ row)
    return row[:, None] * kernel * column[None]


@on((integers(5, 3, 4), normal(5, 6)), (integers(5, 2, 7), normal(5, 6)))
def bag_of_words(tokens, table):
    embedded = table[tokens]
    mask = (tokens > 0)[..., None].to(table.dtype)
    return (embedded * mask).sum(1) / mask.sum(1).clamp(min=1)
