"""Branches and loops on data that change what the capture must undo, or share what a copy would not share."""

import types
from collections import OrderedDict

import torch

from tests.footguns.ledger import Case, call, program


def _case(fn, state=None, **options):
    def given(*numbers):
        return lambda: call(torch.tensor(numbers))

    others = [given(-1.0, -2.0, 0.5), given(30.0, 2.0, 3.0)]
    return Case(fn, example=given(1.0, 2.0, 3.0), others=others, state=state, aliasing=True, **options)


@program("branch_binds_one_list_to_two_names", kind="captured_control_flow")
def _():
    def f(x):
        if x.sum() > 0:
            a = b = [x]
        else:
            a = b = [x * 2]
        a.append(x)
        return b

    return _case(f)


@program("branch_chooses_between_lists_then_writes", kind="captured_control_flow")
def _():
    def f(x):
        first, second = [x], [x * 2]
        if x.sum() > 0:
            chosen = first
        else:
            chosen = second
        chosen[0] = x * 7
        return first, second, chosen

    return _case(f)


@program("branch_chooses_between_empty_lists", kind="captured_control_flow")
def _():
    def f(x):
        first, second = [], []
        chosen = first if x.sum() > 0 else second
        chosen.append(x)
        return first, second

    return _case(f)


@program("loop_of_no_rounds_keeps_its_list", kind="captured_control_flow")
def _():
    def f(x):
        state = [x, x]
        before = state
        while 0 < state[0].sum() < 20:
            state = [state[1], state[0] + 1]
        state[0] = x * 0
        return before, state

    return _case(f)


@program("loop_counts_in_a_class", kind="captured_control_flow")
def _():
    def f(x):
        class Counter:
            rounds = 0

        while x.sum() < 20:
            Counter.rounds += 1
            x = x + 2
        return x + Counter.rounds

    return _case(f)


@program("branch_logs_in_a_list_of_a_class", kind="captured_control_flow")
def _():
    class Log:
        lines = []

    def f(x):
        if x.sum() > 0:
            Log.lines.append(1)
        else:
            Log.lines.append(2)
        return x + len(Log.lines)

    return _case(f, lambda: list(Log.lines))


@program("branch_sets_attribute_of_a_tensor", kind="captured_control_flow")
def _():
    weight = torch.ones(3)

    def f(x):
        if x.sum() > 0:
            weight.tag = 1
        else:
            weight.tag = 2
        return x + weight.tag

    return _case(f, lambda: getattr(weight, "tag", None))


@program("branch_changes_rank_in_place", kind="captured_control_flow")
def _():
    def f(x):
        y = x.clone()
        if x.sum() > 0:
            y.unsqueeze_(0)
        return y, y.dim()

    return _case(f)


@program("branch_transposes_in_place_then_size", kind="captured_control_flow")
def _():
    def f(x):
        y = x.clone().reshape(1, 3)
        if x.sum() > 0:
            y.t_()
            y.mul_(2)
        else:
            y.t_()
        return y, y.shape[0]

    return _case(f)


@program("branch_gives_a_leaf_or_not", kind="captured_control_flow")
def _():
    def f(x):
        weight = torch.ones(3, requires_grad=True)
        if x.sum() > 0:
            y = weight
        else:
            y = weight * 2
        return (y + (1 if y.is_leaf else 0) + (3 if y.grad_fn is None else 0)).detach()

    return _case(f)


@program("branch_sets_a_negative_zero", kind="captured_control_flow")
def _():
    def f(x):
        sign = 0.0
        if x.sum() > 0:
            sign = -0.0
        return torch.copysign(torch.ones(3), torch.tensor(sign)), sign

    return _case(f)


@program("branch_clears_gradients", kind="captured_control_flow")
def _():
    weight = torch.ones(3, requires_grad=True)
    weight.grad = torch.ones(3)

    def f(x):
        if weight.grad is None:
            return x * 2
        if x.sum() > 0:
            weight.grad.zero_()
        else:
            weight.grad = None
        return x * 1

    return _case(f, lambda: weight.grad)


@program("ways_write_a_tensor_around_the_program", kind="captured_control_flow")
def _():
    buffer = torch.zeros(3)

    def f(x):
        if x.sum() > 10:
            buffer.add_(x)
            return buffer * 2
        if x.sum() > 0:
            buffer[0] = 4
            return x
        buffer.fill_(3)
        return buffer + 1

    return _case(f, lambda: buffer)


@program("branch_writes_a_constant_read_after", kind="captured_control_flow")
def _():
    buffer = torch.ones(3)

    def f(x):
        y = buffer * 2
        if x.sum() > 0:
            z = y + 1
        else:
            z = y - 1
            buffer.add_(1)
        return z + buffer * 3

    return _case(f, lambda: buffer)


@program("branch_reorders_a_dict", kind="captured_control_flow")
def _():
    def f(x):
        parts = {"a": x, "b": x * 2}
        ordered = OrderedDict(parts)
        if x.sum() > 0:
            parts["a"] = parts.pop("a") + 1
            ordered.move_to_end("a")
        return list(parts), ordered

    return _case(f)


@program("loop_stores_its_list_in_an_object", kind="captured_control_flow")
def _():
    holder = types.SimpleNamespace(state=[torch.zeros(3), torch.zeros(3)])

    def f(x):
        state = [x, x]
        while x.sum() < 20:
            state = [state[1], state[0] + 1]
            x = x + 2
            holder.state = state
        state[0] = x
        return state, holder.state

    return _case(f, lambda: holder.state)


@program("branch_calls_a_norm_around_the_program", kind="captured_control_flow")
def _():
    norm = torch.nn.BatchNorm1d(3)

    def f(x):
        rows = torch.stack([x, x * 2])
        before = norm.running_mean * 2
        if x.sum() > 0:
            rows = norm(rows)
        return rows.detach(), norm.running_mean * 2, before

    return _case(f, lambda: [buffer.clone() for buffer in norm.buffers()])


@program("truth_of_an_item_asked_with_is", kind="captured_control_flow")
def _():
    def f(x):
        flag = (x > 0).all().item()
        return x + 1 if flag is True else x - 1

    return _case(f)


@program("comparison_of_items_asked_with_is", kind="captured_control_flow")
def _():
    def f(x):
        return describe(x, x.sum().item() > x.max().item())

    def describe(x, grows):
        match grows:
            case True:
                return x * 2
            case False:
                return x * 3

    return _case(f)


@program("branch_frees_what_another_way_reads", kind="captured_control_flow")
def _():
    def f(x):
        y = x * 2
        if x.sum() > 0:
            z = y + 1
            y = None
        else:
            z = y
        return z if y is None else z + y

    return _case(f)


@program("handler_reads_what_a_branch_set", kind="captured_control_flow")
def _():
    def f(x):
        step = "before"
        try:
            if x.sum() > 0:
                step = "positive"
            else:
                step = "negative"
            raise ValueError(step)
        except ValueError:
            return step, x

    return _case(f)


@program("generator_reads_what_a_branch_set_later", kind="captured_control_flow")
def _():
    def f(x):
        scale = 1.0
        scaled = (part * scale for part in (x, x))
        if x.sum() > 0:
            scale = 2.0
        else:
            scale = 3.0
        return list(scaled)

    return _case(f)


@program("loop_reads_its_variable_of_the_round_before", kind="captured_control_flow")
def _():
    def f(x):
        last = x * 0
        while x.sum() < 50 and x.sum() > -50:
            if x[0] > 1:
                x = x + last
            last = x
            x = x * 2
        return x

    return _case(f)


def _counted(fn, **options):
    def given(*numbers):
        return lambda: call(torch.ones(2), torch.tensor(numbers[0]))

    return Case(fn, example=given(2), others=[given(3), given(0), given(1), given(4)], **options)


@program("zip_of_a_range_and_a_list", kind="captured_control_flow")
def _():
    def f(x, n):
        for i, weight in zip(range(n.item()), [1.0, 2.0, 3.0, 4.0]):
            x = x + (i + 1) * weight
        return x

    return _counted(f)


@program("enumerate_of_a_range_from_a_start", kind="captured_control_flow")
def _():
    def f(x, n):
        for place, i in enumerate(range(n.item()), start=3):
            x = x * place + i
        return x

    return _counted(f)


@program("zip_of_a_range_and_layers", kind="captured_control_flow")
def _():
    layers = [torch.relu, torch.exp, torch.neg, torch.tanh]

    def f(x, n):
        for i, layer in zip(range(int(n)), layers):
            if x.sum() < 20:
                x = layer(x) + i
        return x

    return _counted(f)


@program("strict_zip_of_ranges", kind="captured_control_flow")
def _():
    def f(x, n):
        try:
            for i, j in zip(range(n.item()), range(1, 3), strict=True):
                x = x + i * j
        except ValueError:
            return x * 100
        return x

    return _counted(f)
