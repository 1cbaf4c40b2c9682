"""Stages of a split program in processes of their own: ``stages.pipeline`` on ``torch.distributed.pipelining``.

Each process has the whole split program, and calls ``pipeline`` with an example; it then runs the stage of its rank.
What a stage needs of stages further back is handed on by those between. What is no tensor must be as in the example,
and is checked where it is made. Always holds: forward, gradients and losses are those of the whole on each microbatch,
tensors that several stages hold get the sum of their gradients, and where one worker fails the others raise an error.
Importing this file imports torch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from clew import tree
from clew.errors import BackendError, ClewError, GraphError
from clew.ir.arguments import map_arg
from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.node import Node

_SCHEDULES: dict[str, Any] = {"1f1b": Schedule1F1B, "gpipe": ScheduleGPipe}
Loss = Callable[[Any, Any], torch.Tensor]

# ---- what is handed from stage to stage ------------------------------------------------------------------------------


class Form:
    """How values are handed on as a list of tensors: their nests, and what in them is no tensor."""

    def __init__(self, values: list[Any]) -> None:
        leaves, self._structure = tree.flatten(values)
        self._constants = [None if isinstance(leaf, torch.Tensor) else (leaf,) for leaf in leaves]

    def tensors(self, values: list[Any]) -> tuple[torch.Tensor, ...]:
        """The tensors in values of this form; an error if they are of another."""
        leaves, structure = tree.flatten(values)
        if structure != self._structure:
            raise BackendError("a stage hands on another nest of values than in the example")
        for leaf, constant in zip(leaves, self._constants, strict=True):
            is_same = isinstance(leaf, torch.Tensor) if constant is None else _is_same(leaf, constant[0])
            if not is_same:
                told = "a tensor" if constant is None else repr(constant[0])
                raise BackendError(
                    f"a value between stages was {told} in the example, and is {leaf!r} now",
                    why="only tensors travel between processes; all else must be as in the example",
                    fixes=("make the pipeline again with arguments of this kind",),
                )
        return tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))

    def values(self, tensors: tuple[Any, ...]) -> list[Any]:
        """Values of this form with these tensors."""
        rest = iter(tensors)
        leaves = [next(rest) if one is None else one[0] for one in self._constants]
        found: list[Any] = tree.unflatten(leaves, self._structure)
        return found


def _is_same(value: Any, other: Any) -> bool:
    return value is other or (type(value) is type(other) and bool(value == other))


class Chain:
    """The stages of a split program as a chain: which values go into each of them, and which come out."""

    def __init__(self, whole: Any) -> None:
        graph: Graph = whole.graph
        self.modules = list(whole.stages)
        self.inputs = graph.find_nodes(op="placeholder")
        self.calls = graph.find_nodes(op="call_module")
        places = {node: place for place, node in enumerate(self.calls)}
        self.made = {node: places[self._call(node)] for node in graph.nodes if node.op.startswith("call")}
        self.result = graph.output_node().args[0]
        last = len(self.calls) - 1
        self.carried = [
            [
                node
                for node in (*self.inputs, *self.made)
                if self.made.get(node, -1) < place and self._is_used(node, place)
            ]
            for place in range(last + 1)
        ]
        """For each stage the values that come in, of all stages before."""

    def _call(self, node: Node) -> Node:
        return node if node.op == "call_module" else self._call(node.args[0])  # type: ignore[arg-type]

    def _is_used(self, node: Node, place: int) -> bool:
        """Whether a stage at this place or behind needs a value itself."""
        return any(user.op == "call_module" and self.made[user] >= place for user in node.users)

    def run(self, place: int, values: dict[Node, Any]) -> None:
        """Run one stage, and note what it makes."""
        call = self.calls[place]
        values[call] = self.modules[place](*map_arg(list(call.args), values.__getitem__))
        for node in [node for node in self.made if self.made[node] == place and node is not call]:
            values[node] = values[node.args[0]][node.args[1]]  # type: ignore[index]

    def gives(self, place: int) -> list[Node]:
        """The values that come out of a stage: those for the next, or the result."""
        return self.carried[place + 1] if place + 1 < len(self.calls) else [self.calls[-1]]


class Link(torch.nn.Module):
    """A stage that takes and gives tensors alone."""

    def __init__(self, chain: Chain, place: int, forms: list[Form]) -> None:
        super().__init__()
        self.stage = chain.modules[place]
        vars(self).update(chain=chain, place=place, taken=forms[place], given=forms[place + 1])

    chain: Chain
    place: int
    taken: Form
    given: Form

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = dict(zip(self.chain.carried[self.place], self.taken.values(tensors), strict=True))
        self.chain.run(self.place, values)
        found = self.given.tensors([values[node] for node in self.chain.gives(self.place)])
        return tuple(one.contiguous() for one in found)


# ---- the pipeline ----------------------------------------------------------------------------------------------------


class Pipelined:
    """The stage of this process in a pipeline: ``module``, whose parameters the optimizer of this process is given."""

    def __init__(self, whole: Any, args: Any, kwargs: Any, options: dict[str, Any]) -> None:
        self.group, self.microbatches = options["group"], options["microbatches"]
        self.rank, self.count = dist.get_rank(self.group), dist.get_world_size(self.group)
        self.chain = Chain(whole)
        _check(whole, self.chain, self.count, options)
        self.module = whole.stages[self.rank]
        self.losses: list[torch.Tensor] = []
        """Of the microbatches of the last step; in the last process alone."""
        given = self._given(whole, args, kwargs)
        self._whole_form, self._batch = Form(given), _batch(given, self.microbatches)
        self._forms, taken, made = self._example(_part(given, self.microbatches))
        link = Link(self.chain, self.rank, self._forms)
        self._whole = whole
        self._stage = PipelineStage(
            link, self.rank, self.count, options["device"], input_args=taken, output_args=made, group=self.group
        )
        loss = None if options["loss"] is None else self._loss(options["loss"])
        self._schedule = _SCHEDULES[options["schedule"].lower()](
            self._stage, self.microbatches, loss_fn=loss, scale_grads=False
        )
        self._shared = self._groups(whole)
        distributed_c10d._set_pg_timeout(timedelta(seconds=options["timeout"]), self.group)

    def step(self, /, *args: Any, target: Any = None, **kwargs: Any) -> Any:
        """Run all stages on a batch, forward and, with a loss, backward.

        The arguments count in the first process, ``target`` in the last, where the result comes out; its loss is the
        mean over the microbatches, as it is for the whole where the loss is a mean over rows.
        """
        self.losses = []
        has_loss = self._schedule._loss_fn is not None
        tensors = self._tensors(args, kwargs) if self.rank == 0 else ()
        named = {"target": target, "losses": self.losses} if has_loss and self.rank == self.count - 1 else {}
        with self._together(), torch.set_grad_enabled(has_loss):
            found = self._schedule.step(*tensors, **named)
            for tensor, ranks in self._shared:
                if tensor.requires_grad and has_loss:
                    tensor.grad = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
                    dist.all_reduce(tensor.grad, group=ranks)
        self.losses = [loss.detach() * self.microbatches for loss in self.losses]
        if self.rank != self.count - 1:
            return None
        return self._forms[-1].values(tuple(found) if isinstance(found, (tuple, list)) else (found,))[0]

    # ---- pieces --------------------------------------------------------------------------------------------------

    def _given(self, whole: Any, args: Any, kwargs: Any) -> list[Any]:
        """The values of the inputs of the whole."""
        bound = whole._entered()[0].bind(*args, **kwargs)
        bound.apply_defaults()
        named = [str(node.target).lstrip("*") for node in self.chain.inputs]
        return [bound.arguments[name] for name in named]

    def _tensors(self, args: Any, kwargs: Any) -> tuple[torch.Tensor, ...]:
        """The tensors of a batch for the first stage."""
        given = self._given(self._whole, args, kwargs)
        self._whole_form.tensors(given)  # which looks whether they are as in the example
        if _batch(given, self.microbatches) != self._batch:
            raise BackendError(
                f"the pipeline was made for {self._batch} rows, and this batch has {_batch(given, self.microbatches)}",
                fixes=("make the pipeline with a batch of this size",),
            )
        wanted = [node for node in self.chain.inputs if node in self.chain.carried[0]]
        places = {node: place for place, node in enumerate(self.chain.inputs)}
        return tuple(
            leaf for node in wanted for leaf in tree.flatten(given[places[node]])[0] if isinstance(leaf, torch.Tensor)
        )

    def _example(self, given: list[Any]) -> tuple[list[Form], Any, Any]:
        """How values are handed on, and examples of what this stage takes and gives; nothing is changed by it."""
        values = dict(zip(self.chain.inputs, given, strict=True))
        forms = [Form([values[node] for node in self.chain.carried[0]])]
        taken = forms[0].tensors([values[node] for node in self.chain.carried[0]])
        made: Any = ()
        with _unchanged(self.chain.modules), torch.enable_grad():
            for place in range(self.count):
                self.chain.run(place, values)
                found = [values[node] for node in self.chain.gives(place)]
                forms.append(Form(found))
                if place + 1 == self.rank:
                    taken = forms[-1].tensors(found)
                if place == self.rank:
                    made = tuple(one.contiguous() for one in forms[-1].tensors(found))
        return forms, tuple(one.contiguous() for one in taken), made

    def _loss(self, loss: Loss) -> Loss:
        form = self._forms[-1]

        def of_part(found: Any, target: Any) -> torch.Tensor:
            tensors = found if isinstance(found, (tuple, list)) else (found,)
            return loss(form.values(tuple(tensors))[0], target) / self.microbatches

        return of_part

    def _groups(self, whole: Any) -> list[tuple[torch.Tensor, Any]]:
        """The tensors of this stage that others hold too, with the processes that do; all processes make all groups."""
        found = []
        everybody = dist.get_process_group_ranks(self.group or dist.group.WORLD)
        for names in whole.shared:
            ranks = [everybody[place] for place in sorted(names)]
            made = dist.new_group(ranks)
            if self.rank in names:
                found.append((resolve(self.module, names[self.rank]), made))
        return found

    @contextlib.contextmanager
    def _together(self) -> Iterator[None]:
        """Where this process fails, let the others know: they wait for it."""
        try:
            yield
        except Exception as error:
            with contextlib.suppress(Exception):
                distributed_c10d._abort_process_group(self.group)
            own: BaseException | None = error
            while own is not None and not isinstance(own, ClewError):
                own = own.__cause__
            if own is not None:
                raise own from None
            if not isinstance(error, (RuntimeError, dist.DistError)):
                raise
            text = (str(error).strip() or type(error).__name__).split("\n")[0]
            raise BackendError(
                f"stage {self.rank} of {self.count} cannot go on: {text}",
                why="a worker that this one waits for has failed or is gone, or this one has failed",
                fixes=("see what the other workers say", "start all of them again"),
            ) from error


def _check(whole: Any, chain: Chain, count: int, options: dict[str, Any]) -> None:
    if options["schedule"].lower() not in _SCHEDULES:
        raise GraphError(f"schedule={options['schedule']!r} is none that is known", fixes=('"1F1B" or "gpipe"',))
    if count != len(chain.calls):
        raise GraphError(
            f"there are {len(chain.calls)} stages and {count} processes",
            fixes=(f"split the program anew: clew.split(captured, stages={count})",),
        )
    if options["microbatches"] < count and options["schedule"].lower() == "1f1b":
        raise GraphError(
            f"{options['microbatches']} microbatches are too few for {count} stages",
            fixes=(f"microbatches={count}, or more", 'schedule="gpipe"'),
        )


def _batch(given: list[Any], microbatches: int) -> int:
    """The number of rows of all tensors, which must be one, and can be divided."""
    tensors = [leaf for leaf in tree.flatten(given)[0] if isinstance(leaf, torch.Tensor)]
    rows = {one.shape[0] if one.dim() else 0 for one in tensors}
    if len(rows) != 1 or next(iter(rows)) % microbatches or not next(iter(rows)):
        raise BackendError(
            f"the batch cannot be cut into {microbatches} equal parts: its tensors have {sorted(rows)} rows",
            fixes=("give tensors whose first axis is the batch, and another number of microbatches",),
        )
    return int(next(iter(rows)))


def _part(given: list[Any], microbatches: int) -> list[Any]:
    """The first microbatch."""
    found: list[Any] = tree.tree_map(
        lambda leaf: leaf.chunk(microbatches)[0] if isinstance(leaf, torch.Tensor) else leaf, given
    )
    return found


@contextlib.contextmanager
def _unchanged(modules: list[torch.nn.Module]) -> Iterator[None]:
    """Put buffers and random numbers back."""
    buffers = [buffer for module in modules for buffer in module.buffers()]
    before = [buffer.clone() for buffer in buffers]
    with torch.random.fork_rng():
        yield
    with torch.no_grad():
        for buffer, value in zip(buffers, before, strict=True):
            buffer.copy_(value)


def pipeline(
    whole: Any,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    *,
    schedule: str = "1F1B",
    microbatches: int,
    loss: Loss | None = None,
    group: Any = None,
    timeout: float = 60.0,
) -> Pipelined:
    """The stage of this process, in a pipeline with the stages of the others, of which there are as many as stages.

    ``torch.distributed`` must be started. ``args`` and ``kwargs`` are an example of a whole batch, the same in all
    processes; ``loss(result, target)`` gives a number, which the step goes backward from. ``schedule`` is "1F1B" or
    "gpipe". A worker that waits for longer than ``timeout`` seconds raises an error.
    """
    if not dist.is_available() or not dist.is_initialized():
        raise BackendError(
            "a pipeline needs processes that know each other", fixes=("torch.distributed.init_process_group(...)",)
        )
    device = next((one.device for one in whole.parameters()), torch.device("cpu"))
    options = {"schedule": schedule, "microbatches": microbatches, "loss": loss, "group": group, "timeout": timeout}
    return Pipelined(whole, args, kwargs or {}, {**options, "device": device})
