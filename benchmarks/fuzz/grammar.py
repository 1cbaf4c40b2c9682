"""What random programs are made of: templates of expressions and statements with holes, as data.

A hole names what may stand there. Capital letters are expressions: `M` a matrix of the inputs' shape, `R` a row of it,
`C` a column, `S` a tensor of one number, `I` an int, `F` a float, `B` a condition. Small ones are variables: `m` a
matrix, `r` a row, `l` a list of matrices, `d` a dict of them, `i` an int. `n` and `g` are literals, `k` is a key.
"""

from __future__ import annotations

MATRICES = """
{M} + {M}
{M} - {M}
{M} * {M}
{M} * {g}
{M} + {S}
{M} * {R}
{M} / ({M}.abs() + 1)
{F} - {M}
{M} * {I}
{M} ** 2
-{M}
torch.relu({M})
F.gelu({M})
{M}.tanh()
{M}.clone()
{M}.detach()
{M}.contiguous()
{M}.softmax(-1)
{M}.softmax(dim={M}.ndim - 1)
{M}.flip(0)
{M}.roll(1, 0)
{M}.cumsum(0)
{M}.sort(-1).values
{M}.t().t()
{M}.transpose(0, 1).contiguous().transpose(0, 1)
{M}.view(-1).view({m}.shape)
{M}.reshape({m}.shape[0], -1)
{M}.reshape(-1, {m}.size(1))
{M}.unsqueeze(0).squeeze(0)
{M}[:]
{M}[:, :]
{M}[::1]
{M}[..., :]
{M}.view_as({m})
{M} @ {M}.t() @ {M}
torch.matmul({M}, {M}.T).softmax(-1) @ {M}
torch.einsum('ij,ij->ij', {M}, {M})
torch.where({M} > {g}, {M}, {M})
torch.where({B}, {M}, {M})
{M}.masked_fill({M} > {g}, {g})
torch.maximum({M}, {M})
{M}.clamp(-2, {g} + 3)
torch.zeros_like({M})
torch.full_like({M}, {g})
torch.ones({m}.shape) + {M}
torch.zeros({m}.shape[0], {m}.shape[1])
{M}.new_ones({m}.shape)
torch.arange({m}.shape[1]) + {M}
torch.arange({m}.numel()).view({m}.shape) * {M}
torch.tensor([[{g}]]) + {M}
torch.tensor({F}) * {M}
{M} * ({M} > {M})
{M} * ({M} > {g}).to({m}.dtype)
{M}.to({m}.dtype)
{M}.float()
{M}.double().float()
{M}.to(torch.float64)
{M}.type_as({m})
torch.cat([{M}, {M}])[:{m}.shape[0]]
torch.cat([{M}, {M}], dim=1)[:, :{m}.shape[1]]
torch.stack([{M}, {M}]).sum(0)
torch.stack([{M}, {M}]).amax(dim=0)
{M}.expand({m}.shape)
{M}.mean(0, keepdim=True).expand_as({m})
{M} - {M}.mean(-1, keepdim=True)
F.layer_norm({M}, {m}.shape[1:])
F.dropout({M}, 0.5, {B})
torch.rand_like({M}) + {M}
torch.randn({m}.shape) * {M}
{M} * random.random()
{M} if {B} else {M}
({M} if {B} else {M}) + {M}
max({M}, {M}, key=lambda z: z.sum())
sum({l}, {M})
(torch.stack({l}).mean(0) if {l} else {M})
({l}[-1] if len({l}) > {n} else {M})
({l} or [{M}])[0]
{d}.get('{k}', {M})
sum({d}.values(), {M})
functools.reduce(torch.add, {l}, {M})
halves({M})
chosen({M}, {M})
shifted({M})
shifted({M}, by={F})
scaled_in_place({M}.clone())
scaled_in_place({M})
Pair({M}, {M}).left
Pair({M}, {M})[1]
Box({M}).doubled()
Box({M}).value
make_adder({F})({M})
(lambda z: z * {g})({M})
[{M}, {M}][{I} % 2]
({M}, {M})[int({B})]
{{'a': {M}, 'b': {M}}}['a' if {B} else 'b']
{M}.nan_to_num()
{M}.apply_twice if hasattr({m}, 'apply_twice') else {M}
getattr({M}, 'relu')()
operator.add({M}, {M})
{M} * len(f"{{{I}}}")
torch.nn.functional.normalize({M}, dim=-1)
torch.quantile({M}.float(), 0.5, dim=0) + {M}
{M}.index_select(0, torch.arange({m}.shape[0]))
{M}[torch.arange({m}.shape[0] - 1, -1, -1)]
{M}[[{n} % {m}.shape[0]]] + {M}
{M}.gather(1, {M}.argsort(-1))
torch.nonzero({M} > {g}).sum() + {M}
{M} * {M}.stride(0)
{M}.requires_grad_({M}.is_floating_point()).detach()
{M} * torch.finfo({m}.dtype).eps
torch.nn.functional.pad({M}, (1, 0))[:, 1:]
torch.outer({C}, {R}) + {M}
{M} + {C}.unsqueeze(-1)
{M} + {C}[:, None]
torch.stack([row * {g} for row in {m}])
torch.stack([{M}[j] for j in range({m}.shape[0])])
torch.tensor({m}.tolist()) + {M}
{M}.numpy(force=True).sum() * {M}
torch.stack(sorted({m}, key=lambda z: float(z.sum())))
torch.stack(list(reversed({m}.unbind(0))))
torch.stack({m}.split(1)).view({m}.shape)
torch.cat({m}.chunk(2))
"""

MODULE_MATRICES = """
self.linear({M})
self.norm({M})
self.drop({M})
self.block({M})
self.act({M})
self.layers[0]({M})
self.layers[{I} % len(self.layers)]({M})
self.twice({M})
{M} * self.scale
{M} + self.total
{M} + self.offset
{M} @ self.linear.weight
{M} * self.factor
{M} + self.count
self.cache.get('{k}', {M})
(self.last if self.last is not None else {M})
F.linear({M}, self.linear.weight, self.linear.bias)
F.dropout({M}, self.rate, self.training)
(self.linear if {B} else self.act)({M})
{M} * next(self.parameters()).sum()
sum((p.sum() for p in self.parameters()), {M})
self.linear(self.drop({M}))
{M} * self.named['up'].weight.sum()
"""

ROWS = """
{M}[0]
{M}[-1]
{M}.sum(0)
{M}.mean(dim=0)
{M}.amax(0)
{M}[{I} % {m}.shape[0]]
torch.arange({m}.shape[1])
{R} + {R}
{R} * {F}
{M}.squeeze(0).sum(0)
"""

COLUMNS = """
{M}.sum(1)
{M}[:, 0]
{M}[:, -1]
{M}.mean(-1)
{M}.argmax(-1)
{C} * {F}
{C} + {C}
"""

SCALARS = """
{M}.sum()
{M}.mean()
{M}.max()
{M}[0, 0]
{M}[0][-1]
{M}.norm()
torch.tensor({F})
{S} + {S}
{S} * {F}
{M}.float().std()
torch.tensor({I})
{M}.flatten()[{I} % {m}.numel()]
"""

INTEGERS = """
{n}
{n}
{m}.shape[0]
{m}.shape[-1]
{m}.size(0)
{m}.ndim
{m}.numel()
len({m})
len({l})
len({d})
len({m}.shape)
int({B})
int({F})
{I} + {I}
{I} * 2
{I} // 2
{I} % 3
max({I}, {I})
({M} > {g}).sum().item()
{M}.argmax().item()
int({S})
round({F})
n
COUNT
Config.calls
len(HISTORY)
len(TABLE)
len(mode)
hash({I}) % 5
"""

FLOATS = """
{g}
{g}
{S}.item()
float({S})
float({I})
{F} + {g}
{F} * {F}
min({F}, {g})
abs({F})
math.sqrt(abs({F}))
math.sqrt({m}.shape[1])
scale
SCALE
Config.factor
TABLE.get('{k}', {g})
(HISTORY[-1] if HISTORY else {g})
{F} if {B} else {F}
1.0 / {m}.shape[0]
"""

CONDITIONS = """
{S} > {g}
{S} > {S}
bool({S} > {g})
{S}.item() > {g}
{F} > {g}
({M} > {g}).any()
({M} > {g}).all()
{I} > {n}
{I} % 2 == 0
{m}.shape[0] > {n}
{m}.shape[0] == {m}.shape[1]
{m}.shape == {m}.shape
{m}.size(0) > 1
{m}.dtype == torch.float32
{m}.dtype.is_floating_point
{m}.is_floating_point()
{m}.requires_grad
{m}.is_contiguous()
{m}.device.type == 'cpu'
torch.is_grad_enabled()
{m} is {m}
torch.equal({M}, {M})
torch.allclose({M}.float(), {M}.float())
isinstance({m}, torch.Tensor)
isinstance({S}, float)
'{k}' in {d}
'{k}' in TABLE
{l}
not {d}
len({l}) > {n}
not {B}
{B} and {B}
{B} or {B}
flag
not flag
mask is None
mask is not None
isinstance(items, list)
len(items) > {n}
mode == 'add'
mode.startswith('a')
mode in ('add', 'mul')
n > {n}
scale > {g}
COUNT > {n}
SCALE == 2.0
any(z.sum() > {g} for z in {l})
all({B} for _ in range(1))
-1 < {F} < 3
"""

MODULE_INTEGERS = """
self.count
len(self.history)
len(self.cache)
self.width
type(self).calls
"""
MODULE_FLOATS = """
self.scale
self.total.sum().item()
self.rate
"""
MODULE_CONDITIONS = """
self.training
self.count > {n}
self.count % 2 == 0
self.last is None
'{k}' in self.cache
self.total.sum() > {g}
hasattr(self, 'linear')
self.linear.weight.requires_grad
"""

STATEMENTS = """
M new = {M}
M new = {M}
M new = {M}
M new = {m}
M new = {m}
  {m} = {M}
  {m} = {M}
  {m} = {m}
  {m} += {M}
  {m} += {g}
  {m} *= {F}
  {m} -= {R}
  {m}, {m} = {m}, {M}
  {m}.add_({M})
  {m}.mul_({F})
  {m}.zero_()
  {m}.fill_({F})
  {m}.copy_({M})
  {m}.clamp_(-2, 2)
  {m}.relu_()
  {m}[0] = {R}
  {m}[0, 0] = {F}
  {m}[0] += 1
  {m}[:, 0] = {C}
  {m}[{I} % {m}.shape[0]] = {g}
  {m}[{M} > {g}] = {g}
  {m}[-1] = {m}[0]
  {m}[1:] = {g}
  {m}.t().mul_(2)
  {m}[0].add_({g})
  {m}.view(-1)[0] = {F}
  {m}.data.mul_(2)
  {m}.index_fill_(0, torch.tensor([0]), {g})
  {m}.masked_fill_({M} > {g}, {g})
  torch.add({m}, {M}, out={m})
  F.relu({m}, inplace=True)
R new = {m}[0]
R new = {m}.view(-1)[:{m}.shape[1]]
R new = {R}
  {r} += {g}
  {r}.mul_({F})
  {r}[0] = {F}
  {r} = {R}
I new = {I}
I new = {n}
  {i} += 1
  {i} = {I}
  {i} = {i} * 2 + 1
L new = [{M}, {M}]
L new = []
L new = [{M} for _ in range({I} % 4)]
L new = {l}
L new = list({m})
L new = list({l})
L new = [z * {g} for z in {l}]
L new = [z for z in {l} if z.sum() > {g}]
L new = sorted({l}, key=lambda z: z.sum().item())
L new = {l} + [{M}]
L new = list({d}.values())
  {l}.append({M})
  {l}.append({m})
  {l} += [{M}]
  {l}.insert(0, {M})
  {l}.extend([{M}, {M}])
  {l}.reverse()
  {l}.clear()
  {l}[0] = {M}
  {l}[-1].add_({g})
  {l}[0] += {g}
  {l}.pop()
  {m} = {l}.pop() if {l} else {m}
  del {l}[0]
  {l}[:] = [{M}]
  {m}, *_ = {l} or [{m}]
  {l} = {l}[1:]
  {l}.sort(key=lambda z: float(z.sum()))
D new = {{'a': {M}}}
D new = {{}}
D new = {d}
D new = dict({d})
D new = {{key: value * {g} for key, value in {d}.items()}}
D new = {{f"{{j}}": z for j, z in enumerate({l})}}
D new = dict(zip('abc', {l}))
D new = {{**{d}, '{k}': {M}}}
D new = {{key: {d}[key] for key in sorted({d})}}
  {d}['{k}'] = {M}
  {d}['{k}'] = {m}
  {d}[f"{{{I}}}"] = {M}
  {d}[f"{{{m}.shape[0]}}_{{{I}}}"] = {M}
  {d}[str({B})] = {M}
  {d}.update(a={M})
  {d}.setdefault('{k}', {M})
  {d}.pop('{k}', None)
  {m} = {d}.pop('{k}', {m})
  {m} = {d}['{k}']
  del {d}['{k}']
  {d}['{k}'] = {d}.get('{k}', 0) + {M}
  {d}['{k}'] += {g}
  {d} |= {{'{k}': {M}}}
  COUNT += 1
  COUNT = COUNT + {I}
  SCALE = {F}
  SCALE *= 1.5
  TABLE['{k}'] = {F}
  TABLE[f"{{{I}}}"] = {m}.shape[0]
  TABLE.setdefault('{k}', {g})
  HISTORY.append({F})
  HISTORY.append({I})
  HISTORY.append({S})
  HISTORY.append({m})
  KEPT['{k}'] = {M}
  KEPT['{k}'] = {m}
M new = KEPT.get('{k}', {m})
M new = KEPT.setdefault('{k}', {M})
  WEIGHT.add_({g})
M new = {M} * WEIGHT
  Config.calls += 1
  Config.factor = {F}
  Config.calls = {I}
M new = remembered({m})
M new = counted({M})
  scaled_in_place({m})
  collect({m}, {l})
  collect({m})
  torch.manual_seed({n})
M new = {M} + torch.rand(1)
M new = torch.rand({m}.shape, generator=torch.Generator().manual_seed({I})) + {M}
  assert {I} < 100
  assert {B} or True, 'never'
L new = [*pairs({m}, {l})]
M new = sum(doubled_rows({m}), {M})
M new = Point({m}, {I}).move({M}).where
M new = (lambda z, by={F}: z + by)({m})
"""
"""The first letter says what kind of variable `new` becomes; a blank: none."""

MODULE_STATEMENTS = """
  self.count += 1
  self.count += {I}
  self.count = {I}
  self.scale = {F}
  self.scale *= 1.5
  self.total += {R}.detach()
  self.total.add_({R}.detach())
  self.total = self.total * 0.9 + {R}.detach()
  self.total.mul_(0.5)
  self.total[0] = {g}
  self.cache['{k}'] = {M}
  self.cache['{k}'] = {m}
  self.cache[{m}.shape[0]] = {I}
  self.cache.setdefault('{k}', {M})
M new = self.cache.setdefault('{k}', {m})
  self.history.append({I})
  self.history.append({F})
  self.history.append({S}.detach())
  self.last = {m}
  self.last = {M}.detach()
  self.last = None
  self.factor = {F}
  type(self).calls += 1
  Model.calls += 1
M new = self.block({M})
M new = self.norm({M})
M new = self.drop({M})
M new = self.linear({M})
M new = self.layers[-1]({M})
  self.note({M})
M new = self.remember({m})
  self.steps += 1
  self.steps.add_(1)
  self.options['{k}'] = {F}
M new = {M} * self.options.get('{k}', {g})
"""

RESULTS = """
{m}
{M}
({m}, {m})
({m}, {i})
[{m}, {l}]
{{'out': {m}, 'rest': ({l}, {d})}}
{{'a': {m}, 'b': [{m}, {{'c': {m}}}]}}
Pair({m}, {M})
({m}, Pair({m}, {I}))
({m}, {F}, {B})
({m}, {m}.shape, {m}.dtype)
{l}
{d}
(x, y, {m})
{m}.squeeze()
{S}
{S}.item()
Box({m})
({l}, {d}, {i}, {r})
f"{{{I}}} {{{m}.shape[0]}}"
({m}, {r})
Point({m}, {I})
({m}, str({i}), {B})
"""

HELPERS: dict[str, str] = {
    "halves": """
def halves(value):
    if value.sum() > 0:
        return value / 2
    return value * 0.5 - 1
""",
    "chosen": """
def chosen(first, second):
    best = first
    for one in (first, second):
        if one.mean() > best.mean():
            best = one
    return best
""",
    "shifted": """
def shifted(value, by=0.5, *rest, sign=1, **options):
    return value + by * sign + len(rest) + len(options)
""",
    "scaled_in_place": """
def scaled_in_place(value):
    value *= 2
    return value
""",
    "make_adder": """
def make_adder(amount):
    def add(value):
        return value + amount
    return add
""",
    "remembered": """
def remembered(value):
    key = tuple(value.shape)
    if key not in KEPT:
        KEPT[key] = value * 2
    return KEPT[key]
""",
    "counted": """
def counted(value):
    global COUNT
    COUNT += 1
    return value * COUNT
""",
    "collect": """
def collect(value, into=[]):
    into.append(value)
    return into
""",
    "pairs": """
def pairs(value, others):
    for place, other in enumerate(others):
        yield value + other * place
""",
    "doubled_rows": """
def doubled_rows(value):
    for row in value:
        yield row * 2
""",
    "Pair": """
class Pair(NamedTuple):
    left: object
    right: object
""",
    "Box": """
class Box:
    made = 0

    def __init__(self, value):
        self.value = value
        self.size = value.shape[0]

    def doubled(self):
        return self.value * 2 if self.size > 1 else self.value
""",
    "Point": """
@dataclass
class Point:
    where: object
    steps: int = 0

    def move(self, by):
        self.steps += 1
        self.where = self.where + by
        return self
""",
}
"""By name; those that a program uses, directly or through another, stand before it."""


def lines(table: str) -> list[str]:
    """The templates of a table."""
    return [line for line in table.splitlines() if line.strip()]
