"""Tools of the standard library around tensors: functools, itertools, collections, heapq, contextlib, operator."""

import bisect
import collections
import contextlib
import copy
import functools
import heapq
import itertools
import math
import operator
import statistics
import string

import torch

from tests.footguns.ledger import Case, call, program


@program("heap_of_values", kind="standard_library")
def _():
    def f(x):
        heap = []
        for place, value in enumerate(x.tolist()):
            heapq.heappush(heap, (-value, place))
        return [heapq.heappop(heap)[1] for _ in range(2)], x.sum()

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 5.0, 3.0])),
        others=[lambda: call(torch.tensor([9.0, 5.0, 3.0])), lambda: call(torch.tensor([1.0, 2.0, 3.0, 4.0]))],
    )


@program("nlargest_by_a_tensor_key", kind="standard_library")
def _():
    def f(rows):
        best = heapq.nlargest(2, rows, key=lambda row: row.sum().item())
        return torch.stack(best)

    return Case(
        f,
        example=lambda: call([torch.ones(2), torch.zeros(2), torch.ones(2) * 3]),
        others=[
            lambda: call([torch.ones(2) * 9, torch.zeros(2), torch.ones(2) * 3]),
            lambda: call([torch.ones(2), torch.ones(2) * 4]),
        ],
    )


@program("bisect_in_a_tensor", kind="standard_library")
def _():
    def f(x, at):
        place = bisect.bisect_left(x.tolist(), at)
        return x[:place], place

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 3.0, 5.0]), 4.0),
        others=[lambda: call(torch.tensor([1.0, 3.0, 5.0]), 2.0), lambda: call(torch.tensor([1.0, 8.0, 9.0]), 4.0)],
    )


@program("defaultdict_of_rows_by_label", kind="standard_library")
def _():
    def f(x, labels):
        groups = collections.defaultdict(list)
        for row, label in zip(x, labels.tolist(), strict=True):
            groups[label].append(row)
        return {label: torch.stack(rows).mean(0) for label, rows in sorted(groups.items())}

    return Case(
        f,
        example=lambda: call(torch.arange(6.0).view(3, 2), torch.tensor([0, 1, 0])),
        others=[
            lambda: call(torch.arange(6.0).view(3, 2), torch.tensor([1, 1, 0])),
            lambda: call(torch.arange(6.0).view(3, 2), torch.tensor([2, 1, 0])),
        ],
    )


@program("counter_of_values", kind="standard_library")
def _():
    def f(x):
        counted = collections.Counter(x.tolist())
        (value, times), *_ = counted.most_common(1)
        return x[x == value] * times, dict(counted)

    return Case(
        f,
        example=lambda: call(torch.tensor([1, 2, 2])),
        others=[lambda: call(torch.tensor([1, 1, 2])), lambda: call(torch.tensor([3, 3, 3, 1]))],
    )


@program("deque_as_a_window", kind="standard_library")
def _():
    def f(x, width):
        window, out = collections.deque(maxlen=width), []
        for value in x:
            window.append(value)
            out.append(sum(window) / len(window))
        return torch.stack(out)

    return Case(
        f,
        example=lambda: call(torch.arange(5.0), 3),
        others=[lambda: call(torch.arange(5.0), 2), lambda: call(torch.arange(7.0), 3)],
    )


@program("chain_map_of_settings", kind="standard_library")
def _():
    defaults = {"scale": 2.0, "shift": 0.5}

    def f(x, given):
        settings = collections.ChainMap(given, defaults)
        return x * settings["scale"] + settings["shift"]

    return Case(
        f,
        example=lambda: call(torch.ones(2), {"scale": 3.0}),
        others=[
            lambda: call(torch.ones(2), {"scale": 4.0}),
            lambda: call(torch.ones(2), {"shift": 4.0}),
            lambda: call(torch.ones(2), {}),
        ],
    )


@program("namedtuple_replaced", kind="standard_library")
def _():
    State = collections.namedtuple("State", "hidden step")

    def f(state, x):
        return state._replace(hidden=state.hidden + x, step=state.step + 1)

    return Case(
        f,
        example=lambda: call(State(torch.zeros(2), 0), torch.ones(2)),
        others=[lambda: call(State(torch.ones(3), 7), torch.ones(3))],
    )


@program("reduce_with_a_start", kind="standard_library")
def _():
    def f(tensors, start):
        return functools.reduce(lambda a, b: a * b + 1, tensors, start)

    return Case(
        f,
        example=lambda: call([torch.ones(2), torch.ones(2) * 2], torch.zeros(2)),
        others=[
            lambda: call([torch.ones(2) * 3], torch.zeros(2)),
            lambda: call([], torch.zeros(2)),
            lambda: call([torch.ones(2)] * 4, torch.ones(2)),
        ],
    )


@program("singledispatch_by_class", kind="standard_library")
def _():
    @functools.singledispatch
    def scaled(how, x):
        return x

    @scaled.register
    def _(how: int, x):
        return x * how

    @scaled.register
    def _(how: str, x):
        return x + len(how)

    @scaled.register
    def _(how: torch.Tensor, x):
        return x - how

    def f(x, how):
        return scaled(how, x)

    return Case(
        f,
        example=lambda: call(torch.ones(2), 3),
        others=[
            lambda: call(torch.ones(2), 5),
            lambda: call(torch.ones(2), "ab"),
            lambda: call(torch.ones(2), torch.ones(2)),
            lambda: call(torch.ones(2), None),
        ],
    )


@program("partial_of_a_method_with_keywords", kind="standard_library")
def _():
    def f(x, **settings):
        clamp = functools.partial(torch.Tensor.clamp, **settings)
        return functools.partial(clamp, x)()

    return Case(
        f,
        example=lambda: call(torch.tensor([-1.0, 2.0]), min=0.0),
        others=[
            lambda: call(torch.tensor([-1.0, 2.0]), min=0.5),
            lambda: call(torch.tensor([-1.0, 2.0]), max=0.5),
            lambda: call(torch.tensor([-1.0, 2.0]), min=0.0, max=1.0),
        ],
    )


@program("cached_by_size", kind="standard_library")
def _():
    @functools.lru_cache
    def table(n):
        return torch.arange(n).float() / n

    def f(x):
        return x + table(x.shape[0])

    return Case(
        f, example=lambda: call(torch.ones(3)), others=[lambda: call(torch.ones(5)), lambda: call(torch.ones(3) * 2)]
    )


@program("pairwise_differences", kind="standard_library")
def _():
    def f(x):
        return [b - a for a, b in itertools.pairwise(x)]

    return Case(
        f,
        example=lambda: call(torch.arange(4.0)),
        others=[lambda: call(torch.arange(6.0) ** 2), lambda: call(torch.ones(1))],
    )


@program("accumulate_with_a_function", kind="standard_library")
def _():
    def f(x):
        return torch.stack(list(itertools.accumulate(x, torch.maximum)))

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 3.0, 2.0])),
        others=[lambda: call(torch.tensor([5.0, 3.0, 2.0, 7.0]))],
    )


@program("product_of_ranges", kind="standard_library")
def _():
    def f(x):
        total = 0
        for i, j in itertools.product(range(x.shape[0]), range(x.shape[1])):
            if i <= j:
                total = total + x[i, j] * (i + j)
        return total

    return Case(
        f,
        example=lambda: call(torch.arange(4.0).view(2, 2)),
        others=[lambda: call(torch.arange(6.0).view(2, 3)), lambda: call(torch.ones(3, 1))],
    )


@program("takewhile_on_values", kind="standard_library")
def _():
    def f(x):
        return list(itertools.takewhile(lambda value: value > 0, x)), list(
            itertools.dropwhile(lambda value: value > 0, x)
        )

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 2.0, -1.0, 3.0])),
        others=[lambda: call(torch.tensor([-1.0, 2.0])), lambda: call(torch.tensor([1.0, 2.0]))],
    )


@program("exit_stack_of_modes", kind="standard_library")
def _():
    def f(x, quiet):
        with contextlib.ExitStack() as stack:
            if quiet:
                stack.enter_context(torch.no_grad())
            y = x * 2
        return y, y.requires_grad

    def inputs(quiet):
        return lambda: call(torch.ones(2, requires_grad=True), quiet)

    return Case(f, example=inputs(True), others=[inputs(False), inputs(True)])


@program("suppressed_errors_of_shapes", kind="standard_library")
def _():
    def f(x, shapes):
        for shape in shapes:
            with contextlib.suppress(RuntimeError):
                return x.view(shape) + 1
        return x

    return Case(
        f,
        example=lambda: call(torch.ones(6), [(4, 2), (2, 3)]),
        others=[lambda: call(torch.ones(8), [(4, 2), (2, 3)]), lambda: call(torch.ones(5), [(4, 2), (2, 3)])],
    )


@program("median_of_the_standard_library", kind="standard_library")
def _():
    def f(x):
        return x - statistics.median(x.tolist()), math.fsum(x.tolist())

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 3.0, 2.0])),
        others=[lambda: call(torch.tensor([5.0, 1.0, 2.0])), lambda: call(torch.tensor([5.0, 1.0]))],
    )


@program("attrgetter_and_methodcaller", kind="standard_library")
def _():
    shape, total = operator.attrgetter("shape"), operator.methodcaller("sum", 0)

    def f(x):
        return total(x) * operator.itemgetter(0)(shape(x))

    return Case(
        f, example=lambda: call(torch.ones(2, 3)), others=[lambda: call(torch.ones(4, 3)), lambda: call(torch.ones(3))]
    )


@program("template_names_a_function", kind="standard_library")
def _():
    name = string.Template("${how}_like")

    def f(x, how):
        return getattr(torch, name.substitute(how=how))(x) + x

    return Case(
        f,
        example=lambda: call(torch.ones(2), "zeros"),
        others=[lambda: call(torch.ones(2), "ones"), lambda: call(torch.ones(3), "zeros")],
    )


@program("deepcopy_of_an_argument", kind="standard_library")
def _():
    def f(state):
        before = copy.deepcopy(state)
        state["x"].add_(1)
        state["log"].append(1)
        return before, state["x"] - before["x"]

    return Case(
        f,
        example=lambda: call({"x": torch.ones(2), "log": []}),
        others=[lambda: call({"x": torch.zeros(3), "log": []}), lambda: call({"x": torch.zeros(3), "log": [4]})],
        aliasing=True,
    )


@program("heap_kept_by_a_helper", kind="standard_library")
def _():
    def keep(heap, value):
        heapq.heappush(heap, value)

    def f(x):
        heap = []
        for value in x.tolist():
            keep(heap, value)
        return heap

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 5.0, 3.0])),
        others=[lambda: call(torch.tensor([9.0, 5.0, 3.0])), lambda: call(torch.tensor([4.0, 3.0, 2.0, 1.0]))],
    )


@program("heap_of_the_program", kind="standard_library")
def _():
    kept = []

    def f(x):
        heapq.heappush(kept, x.sum().item())
        return x + 1

    return Case(
        f,
        example=lambda: call(torch.tensor([4.0])),
        others=[
            lambda: call(torch.tensor([3.0])),
            lambda: call(torch.tensor([9.0])),
            lambda: call(torch.tensor([1.0])),
        ],
        state=lambda: list(kept),
        reset=kept.clear,
    )
