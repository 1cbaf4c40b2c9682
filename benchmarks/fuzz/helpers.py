"""What random programs may use: functions and classes as texts.

Each stands in the programs that name it, and before what names it itself, so that the order of the table matters.
"""

from __future__ import annotations

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
    "repeated": """
def repeated(value, times):
    if times <= 0:
        return value
    return repeated(value * 0.5 + times, times - 1)
""",
    "summed": """
def summed(*values, **named):
    total = 0.5
    for one in (*values, *named.values()):
        total = total + one
    return total * len(named) if named else total
""",
    "cached_power": """
@functools.lru_cache(maxsize=None)
def cached_power(number):
    return number ** 2 + 1
""",
    "fibonacci": """
@functools.lru_cache
def fibonacci(number):
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)
""",
    "running": """
def running(values):
    total = 0
    for one in values:
        total = total + one
        yield total
""",
    "guarded_rows": """
def guarded_rows(value):
    try:
        for row in value:
            yield row + 1
    finally:
        Config.calls += 1
""",
    "Level": """
class Level(Enum):
    LOW = 0
    HIGH = 1

    def scaled(self, value):
        return value * 2 if self is Level.HIGH else value + self.value
""",
    "Settings": """
@dataclass(frozen=True)
class Settings:
    by: float = 1.5
    names: tuple = ('a', 'b')
    shared: ClassVar[list] = []

    @property
    def both(self):
        return self.by * len(self.names)

    def applied(self, value):
        return value * self.by
""",
    "Meter": """
class Meter:
    def __init__(self, factor=2.0):
        self.factor, self.total, self.latest, self._level = factor, 0, None, 1.0

    def __call__(self, value):
        self.total += 1
        return value * self.factor + self.total

    def note(self, value):
        self.latest = value
        return self

    @property
    def level(self):
        return self._level * 2

    @level.setter
    def level(self, value):
        self._level = value
        self.total += 1


METER = Meter()
""",
    "Stack": """
class Stack:
    def __init__(self):
        self.items = []

    def push(self, value):
        self.items.append(value)
        if len(self.items) > 3:
            del self.items[0]

    def pop(self, otherwise):
        return self.items.pop() if self.items else otherwise

    def top(self, otherwise):
        try:
            return self.items[-1]
        except IndexError:
            return otherwise

    def __len__(self):
        return len(self.items)


STACK = Stack()
""",
    "Cursor": """
class Cursor:
    def __init__(self, values):
        self.values, self.place = values, -1

    def __iter__(self):
        return self

    def __next__(self):
        self.place += 1
        if self.place >= len(self.values):
            raise StopIteration
        return self.values[self.place]

    def walked(self, value):
        for one in self:
            value = value + one * self.place
        return value
""",
    "Stop": """
class Stop(Exception):
    def __init__(self, value, place=0):
        super().__init__('stop', place)
        self.value, self.place = value, place
""",
    "attempted": """
def attempted(value, limit=2):
    try:
        if value.sum() > limit:
            raise Stop(value * 2, limit)
        return value + 1
    except Stop as stop:
        return stop.value + stop.place
    finally:
        Config.calls += 1
""",
    "statistics_of": """
def statistics_of(*numbers):
    middle = sum(numbers) / len(numbers)
    return math.sqrt(sum((one - middle) ** 2 for one in numbers))
""",
    "other_factor": """
@contextlib.contextmanager
def other_factor(factor):
    before, Config.factor = Config.factor, factor
    try:
        yield factor
    finally:
        Config.factor = before
""",
    "Noted": """
class Noted:
    def __init__(self, name, swallows=False):
        self.name, self.swallows = name, swallows

    def __enter__(self):
        Config.calls += 1
        return self

    def __exit__(self, kind, error, trace):
        HISTORY.append(len(self.name))
        return self.swallows and kind is not None and issubclass(kind, Exception)
""",
    "Straight": """
class Straight(torch.autograd.Function):
    @staticmethod
    def forward(context, value):
        context.save_for_backward(value)
        return value.sign() + value

    @staticmethod
    def backward(context, given):
        (value,) = context.saved_tensors
        return given * value.cos()
""",
}
"""By name; those that a program uses, directly or through another, stand before it."""
