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
{M} * len(format({I}))
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
{M}.int() / 2
{M} + ({M} > {g})
{M}.long().div(2, rounding_mode='floor') + {M}
{M}.bool() | ({M} > {g})
{M} % 2
{M} // 1
{M}.to(torch.promote_types({m}.dtype, torch.int32))
torch.true_divide({M}, 2)
{M}.diagonal()[0] + {M}
{M}.unbind(0)[-1] + {M}
{M}.as_strided({m}.shape, (1, 0)) + {M}
{M}.detach().numpy() + np.float32(1) + {M}
torch.from_numpy(np.tanh({M}.detach().numpy()))
torch.func.vmap(lambda z: z * {g})({M})
torch.func.grad(lambda z: (z * z).sum())({M}.float())
torch.cond({S} > {g}, lambda z: z + 1, lambda z: z - 1, ({M},))
torch.utils.checkpoint.checkpoint(lambda z: z.sin(), {M}, use_reentrant=False)
Straight.apply({M})
{M}.unique().sum() + {M}
{M}[{M} > {g}].sum() + {M}
{M}.masked_select({M} > {g}).numel() * {M}
torch.bincount(({M} > {g}).long().flatten()).amax() + {M}
repeated({M}, {I} % 4)
summed({M}, {M})
summed(*{l}, extra={M})
summed(**{d})
summed({M}, *{l}, **{d})
{M} * cached_power({I} % 4)
{M} * cached_power(float({n}))
{M} * fibonacci({I} % 6)
next(doubled_rows({M})) + {M}
sum(running([{M}, {M}]), {M})
sum(guarded_rows({M}), {M})
Level({I} % 2).scaled({M})
{M} * Settings(by={F}).both
replace(Settings(), by={F}).applied({M})
Meter({F})({M})
attempted({M})
attempted({M}, {I})
(lambda *z, **w: z[0] + len(w))({M}, by={F})
functools.partial(shifted, by={F}, sign=-1)({M})
[{M} for _ in range(2) if {B}][-1] if {B} else {M}
{{0: {M}, 1: {M}}}.get({I}, {M})
(again := {M}) + again
max([{M}, {M}], key=lambda z: z.sum().item())
next((z for z in {l} if z.sum() > {g}), {M})
functools.reduce(lambda a, b: a + b * {g}, {l}, {M})
dict(enumerate({l})).get({I}, {M})
[*{l}, {M}][-1]
({l} + [{M}])[{I} % 2]
{M} * sum(range({I} % 5))
{M} + int('{n}' + str({I} % 3))
{M} * (not {l})
{M} * ({m} is {m})
{M} + any(z is {m} for z in {l})
{M} * len({{*{d}, 'a'}})
{M} * len(str({I}))
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
self.cell({M})
self.cell.peek({M})
self.bound({M})
self.forward_twice({M})
getattr(self, 'linear')({M})
{M} * self.cell.count
{M} + self.cell.memory
{M} * len(list(self.children()))
[one({M}) for one in self.layers][-1]
functools.reduce(lambda z, one: one(z), self.layers, {M})
torch.func.functional_call(self.linear, dict(self.linear.named_parameters()), ({M},))
{M} * self.doubled_scale
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
{I} ** 2
{I} - {I}
-{I}
{I} & 3
{I} ^ 1
{I} << 1
abs({I} - 2)
divmod({I}, 2)[1]
min({I}, {I}, 3)
sum(range({I} % 4))
math.floor({F})
math.ceil({F})
int(math.copysign(1, {F}))
({I} or 2)
({I} and 2)
({I} if {B} else {I})
(1, 2, 3)[{I} % 3]
len(format({F}, '.1f'))
len(range({I} % 5))
int(str({I}))
sorted([{I}, {I}])[0]
cached_power({I} % 4)
fibonacci({I} % 6)
TABLE.get({I}, {n})
({I}).bit_length()
list(range(3)).index({I} % 3)
[{I}, {I}].count({I})
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
{F} / 2
{F} // 1
{F} % 1
-{F}
{F} ** 2
{I} / 2
round({F}, 1)
math.fmod({F}, 2)
math.exp(min({F}, 2.0))
math.isnan({F}) * 1.0
sum([{F}, {F}])
max([{F}, {F}, {g}])
float(format({F}, '.2f'))
float({I} > {n})
Settings(by={F}).both
statistics_of({F}, {F})
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
{F} == {g}
{F} != {F}
{I} == {I}
{I} in (1, 2)
{F} in (0.5, 1.5)
{I} in {d}
{I} in range({n}, 4)
type({F}) is float
isinstance({I}, (bool, int))
isinstance({F}, int)
float({F}).is_integer()
{I} is None
{I} and {B}
({B}) != ({B})
({B}) ^ ({B})
{n} < {I} < 4
{l} is {l}
{l} == []
{d} == {{}}
{m} is {l}
any(z is {m} for z in {l})
all(z.shape == {m}.shape for z in {l})
len(set({d})) > {n}
sorted({d}) == ['a']
list({d}) == ['a', 'b']
{d}.get('{k}') is None
{d}.get('{k}') is {m}
callable({m})
format({I}) == '2'
str({B}) == 'True'
(found := {I}) > {n} or found == 0
Level({I} % 2) is Level.LOW
max({l}, key=lambda z: z.sum(), default=None) is None
next(iter({d}), None) == 'a'
id({m}) == id({m})
"""

MODULE_INTEGERS = """
self.count
len(self.history)
len(self.cache)
self.width
type(self).calls
self.cell.count
sum(1 for _ in self.parameters())
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
self.cell.count > {n}
self.cell.training
self.last is {m}
isinstance(self.layers[{I} % 2], nn.Linear)
self.doubled_scale > {g}
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
M new = {m}.view({m}.shape)
M new = {m}[:]
M new = {m}.detach()
M new = {m}.t().t()
M new = {m}.view(-1).view({m}.shape)
M new = {m}.unsqueeze(0)[0]
M new = torch.from_numpy({m}.detach().numpy())
M new = {m}.expand_as({m})
M new = {m}.contiguous()
M new = {m}.to({m}.dtype)
M new = {m}.reshape({m}.shape)
M new = {m}.data
R new = {m}.diagonal()
R new = {m}.t()[0]
R new = {m}.unbind(0)[0]
R new = {m}.detach().numpy()[0]
L new = list({m}.chunk(1))
L new = [{m}, {m}]
L new = [{m}] * 2
L new = [z.view(z.shape) for z in {l}]
L new = list(map(lambda z: z + {g}, {l}))
L new = list(filter(lambda z: z.sum() > {g}, {l}))
L new = [*{l}, *{l}][:3]
L new = list(reversed({l}))
L new = list(running({l}))
L new = [a + b for a, b in zip({l}, [{m}, {m}])]
L new = [z for j, z in enumerate({l}) if j != {I}]
L new = list(itertools.chain({l}, [{M}]))
L new = [(a, b)[{I} % 2] for a, b in itertools.product({l}[:2], {l}[:2])]
L new = copy.copy({l})
L new = copy.deepcopy({l})
L new = list(dict.fromkeys('aba', {m}).values())
L new = list(collections.deque({l}, maxlen=2))
D new = collections.OrderedDict(a={M}, b={M})
D new = dict(sorted({d}.items()))
D new = {{key: value for key, value in {d}.items() if value.sum() > {g}}}
D new = {{**{d}, **dict(b={M})}}
D new = copy.copy({d})
D new = {d} | dict(c={M})
D new = dict(collections.defaultdict(lambda: 0, {d}))
I new = divmod({I}, 3)[0]
I new = min({I}, 3)
I new = sum(1 for z in {l} if z.sum() > {g})
I new = len({{one for one in {d}}})
M new = copy.deepcopy({m})
M new = copy.copy({m})
  {m}[...] = {M}
  {m}.t()[0] = {F}
  {m}[:, 0] *= {F}
  {m}[:1].copy_({m}[-1:])
  {m}.view(-1)[1:] -= {g}
  {m}.diagonal().fill_({F})
  {m}.transpose(0, 1).add_({g})
  {m}.detach().numpy()[0] = {F}
  {m}.detach().numpy()[:] += 1
  {m}.scatter_(1, torch.zeros({m}.shape[0], 1, dtype=torch.long), {F})
  {m}[{M} > {g}] += {F}
  {m}[[0, -1]] = {m}[[-1, 0]]
  {m}.index_add_(0, torch.tensor([0]), {m}[:1].clone())
  {m}.bernoulli_(0.5)
  {m}.normal_()
  torch._foreach_add_({l}, {g})
  {m}.requires_grad_(False)
  {m} = {m}.requires_grad_()
  {r}.fill_({F})
  {r} += {r}
  {i} -= 1
  {i} %= 3
  {i} = ({i}, {I})[{I} % 2]
  {i} = {i} if {B} else {I}
  {m}, {i} = {M}, {I}
  {i}, {m} = {i} + 1, {m} * {i}
  *_, {m} = [{m}, *{l}]
  {l}[0], {l}[-1] = {l}[-1], {l}[0]
  {l}[{I} % 2] = {M}
  {l}[-1][0] = {R}
  {l}[1:] = [{M}]
  {l} *= 2
  {l}.remove({l}[0])
  {l}[0].mul_({F})
  {l}.insert({I} % 2, {m})
  {l}.append({l}[0])
  {l} = [*{l}, {m}]
  {l} = {l} and {l}[:-1]
  {d}['{k}'] = {d}.pop('{k}', {m})
  {d}[{I} % 3] = {M}
  {d}['{k}'][0] = {F}
  {d}['{k}'].add_({g})
  {d}.popitem()
  {d}.clear()
  {m} = next(iter({d}.values()), {m})
  COUNT -= 1
  COUNT = COUNT * 2 if {B} else 0
  TABLE['{k}'] = TABLE.get('{k}', 0) + 1
  HISTORY[:] = HISTORY[-2:]
  HISTORY.pop() if HISTORY else None
  del HISTORY[:-1]
  KEPT.pop('{k}', None)
  KEPT['{k}'] = KEPT.get('{k}', 0) + {m}
  LATEST = {m}
  LATEST = {M}
  LATEST = None
M new = (LATEST if LATEST is not None else {m})
M new = {m} if LATEST is None else LATEST + {m}
  SEEN.add({I} % 3)
  SEEN.add({m}.shape[0])
  SEEN.discard({I})
M new = {M} * len(SEEN)
  QUEUE.append({F})
  QUEUE.append({m})
M new = {M} + sum(QUEUE)
  METER.total += {F}
  METER.latest = {m}
  METER.note({M})
M new = METER({M})
M new = {M} * METER.level
  METER.level = {F}
M new = {m} if METER.latest is None else METER.latest + {m}
  setattr(METER, 'total', {F})
  STACK.push({M})
  STACK.push({m})
M new = STACK.pop({m})
M new = {M} * len(STACK)
M new = STACK.top({m})
  Settings.shared.append({F})
M new = {M} * len(Settings.shared)
  print({I}, {F})
  print('at', {m}.shape[0])
  print(f"{{{F}:.2f}} {{{B}}}")
  print({S} > {g})
  print({m}.shape, sep=', ')
  print('{k}', end=' ')
M new = {M} + random.uniform(0, 1)
M new = {M} * random.choice([1, 2, {g}])
M new = {M} + random.Random({I}).random()
I new = random.randint(0, 3)
  random.shuffle({l})
  random.seed({n})
M new = {M} * np.random.rand()
M new = attempted({m}, {I})
  attempted({m})
L new = list(guarded_rows({m}))
M new = Cursor({l}).walked({m})
M new = summed(*[{m}] * ({I} % 3), {M})
  assert {m} is not None, f"{{{I}}}"
  del {i}
  {m} = {m} + {i} if {B} else {m}
M new = {m} if isinstance({m}, torch.Tensor) else torch.ones(2)
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
M new = self.cell({M})
  self.cell.count += 1
  self.cell.memory.add_({g})
  self.cell.memory = {R}.detach()
  self.cell.reset()
M new = {M} + self.cell.memory
M new = self.bound({m})
  self.doubled_scale = {F}
  self.total = {R}.detach()
  self.total, self.count = self.total + 1, self.count + 1
  setattr(self, 'last', {m})
  self.history[:] = self.history[-2:]
  self.history += [{I}]
  self.cache = {{**self.cache, '{k}': {m}.detach()}}
  self.cache.pop('{k}', None)
  self.options = {{'{k}': {F}}}
  self.options.update({k}={F})
  self.linear.weight.data.mul_(0.9)
  self.linear.bias.data[0] = {F}
  self.norm.momentum = 0.2
  self.drop.p = 0.25
  self.layers[-1].seen = {I}
M new = {M} * getattr(self.layers[-1], 'seen', 1)
M new = {m} if self.last is None else self.last * 0.5 + {m}
M new = self.total.detach() + {M}
M new = self.total.view(-1) * {M}
R new = self.total
R new = self.total[:]
R new = self.linear.bias
  self.total.copy_({R}.detach())
  self.total[:2] = {g}
  self.count = {i}
  self.count, self.scale = {I}, {F}
  self.last = ({m}, {I})[0]
  self.offset.data.add_({g})
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
({m}, {m}[0])
({m}, {m}.view(-1))
({l}, {l})
({d}, list({d}))
{{'n': {I}, 'f': {F}}}
[{m}] * 2
(z * {g} for z in [{m}, {m}])
(*{l}, {m})
{l}[:{I} % 3]
({m}, None if {B} else {I})
Settings(by={F})
({m}, {I}, {F}, {S})
{m}.tolist()
{m}.detach().numpy()
({m}.dtype, {m}.shape, {m}.requires_grad)
sorted({d})
None
{B}
({m}, [{I} for _ in range(2)])
"""


def lines(table: str) -> list[str]:
    """The templates of a table."""
    return [line for line in table.splitlines() if line.strip()]
