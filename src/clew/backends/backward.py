"""``backward`` and ``checkpoint``: the gradients of a captured torch program, as graphs.

In come a captured program, or a callable, and an example; out comes a ``Backward``: the joint graph of forward and
backward pass, the two halves, and what the one hands to the other. It is called like the program, and autograd then
runs the backward graph. ``checkpoint`` gives the same with less to save. Always holds: a call that is not of the kind
of the example raises ``GuardError``. Importing this file imports torch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from clew.api import trace as capture
from clew.backends.checkpoint import Checkpoints, bytes_of
from clew.backends.joint import Program, program_of, trace
from clew.backends.joint_graph import Halves, Joint, cut, is_given, joint_of, saved_of
from clew.capture.bytecode.try_blocks import refusing
from clew.errors import BackendError, GuardError, NoExample
from clew.ir.graph import Graph
from clew.ir.guards import evaluate
from clew.ir.module_calls import path_pattern
from clew.runtime.function import HoldsGraph
from clew.runtime.lazy import LazyGraph
from clew.runtime.torch_captured import CapturedFunction


def backward(
    program: Any,
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    *,
    wrt: str | Sequence[str] | None = None,
) -> Backward:
    """The forward and the backward pass of a torch program as graphs.

    A callable is captured from ``args`` and ``kwargs`` first; for a captured program they are the example, which is
    that of its capture if they are left out. ``wrt`` names the parameters and arguments whose gradients are wanted, by
    name or pattern (``"encoder.**"``): those that require gradients, unless it is given. The graphs hold for sizes,
    dtypes and modes of the example, which are guarded.
    """
    captured, args, kwargs = _captured(program, args, kwargs)
    taken = program_of(captured, args, kwargs)
    found = trace(taken, _chosen(taken, wrt))
    joint = joint_of(found)
    return Backward(taken, joint, found.wrt, cut(joint, saved_of(joint)))


def checkpoint(
    program: Any,
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    *,
    budget: float = 0.5,
    wrt: str | Sequence[str] | None = None,
) -> Backward:
    """A program whose backward pass computes values again, so that it saves no more than ``budget``.

    The budget is a number of bytes, or a fraction (a float up to 1.0) of what is saved otherwise. What is cheap to
    compute for its size is given up first; random numbers are never drawn again. The rest is as for ``backward``, whose
    result can be given as the program too.
    """
    is_budget = type(budget) in (int, float) and budget >= 0 and not (type(budget) is float and budget > 1)
    if not is_budget:
        raise BackendError(
            f"budget={budget!r} is no budget", fixes=("a fraction: budget=0.5", "a number of bytes: budget=2**30")
        )
    plain = program if isinstance(program, Backward) else backward(program, args, kwargs, wrt=wrt)
    found = Checkpoints(plain._joint, budget)
    halves = cut(plain._joint, sorted(found.saved, key=found.places.__getitem__), found.again())
    return Backward(plain._program, plain._joint, plain._places, halves)


def _captured(program: Any, args: Any, kwargs: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    if isinstance(program, LazyGraph) or (not isinstance(program, HoldsGraph) and args is None and kwargs is None):
        raise NoExample("a backward pass needs an example", fixes=("give one: clew.backward(model, args)",))
    if not isinstance(program, HoldsGraph):
        program = capture(program, args, kwargs)
    if getattr(type(program), "framework", "torch" if hasattr(program, "state_dict") else "") != "torch":
        raise BackendError("a backward pass is made of programs of torch, and this is none")
    if args is None and kwargs is None:
        args, kwargs = _example_of(program)
    return program, args or (), kwargs or {}


def _example_of(captured: Any) -> Any:
    known = vars(captured).get("_example")
    if known is None:
        raise NoExample("there is no example to make a backward pass for", fixes=("clew.backward(captured, args)",))
    return known.call(_gone)


def _gone(kind: Any) -> Any:
    raise NoExample(
        f"the example of the capture is gone: its {kind} was let go", fixes=("give one: clew.backward(captured, args)",)
    )


def _chosen(program: Program, wrt: str | Sequence[str] | None) -> list[int]:
    """The places of the primals whose gradients are wanted."""
    known = list(enumerate(program.primals))
    if wrt is None:
        return [place for place, primal in known if primal.tensor.requires_grad]
    found: dict[int, None] = {}
    for name in [wrt] if isinstance(wrt, str) else wrt:
        wanted = path_pattern(name)
        fitting = [place for place, one in known if any(map(wanted.fullmatch, (one.name, *one.aliases)))]
        fitting = [place for place in fitting if _has_gradients(program.primals[place].tensor)]
        if not fitting:
            raise BackendError(
                f"wrt={name!r} names no argument or parameter of floating point",
                fixes=(f"one of {', '.join(one.name for _, one in known if _has_gradients(one.tensor))}",),
            )
        found |= dict.fromkeys(fitting)
    return sorted(found)


def _has_gradients(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


# ---- what comes out --------------------------------------------------------------------------------------------------


class Backward:
    """A program with its backward pass. Called like the program; autograd runs ``backward`` for its results."""

    def __init__(self, program: Program, joint: Joint, places: list[int], halves: Halves) -> None:
        self._program, self._joint, self._places, self._halves = program, joint, places, halves
        self.wrt = tuple(program.primals[place].name for place in places)
        left_out = [place for place, one in enumerate(program.primals) if place not in places]
        self._unneeded = [place for place in left_out if not program.primals[place].tensor.requires_grad]
        """The tensors that needed no gradient in the example."""
        self.joint = self._callable(joint.graph, "joint")
        """Called with a tuple of tangents, one for each tensor in the result that needs a gradient, and then like the
        program; gives its result, and the gradients by name."""
        self.forward = self._callable(halves.forward, "forward")
        """Called like the program; gives its result, and a tuple of what is saved for the backward pass."""
        self.backward = self._callable(halves.backward, "backward")
        """Called with the tangents and what was saved; gives the gradients by name, None where nothing depends."""
        self._flat = self._callable(halves.flat, "forward")
        self._finish = self._callable(halves.finish, "result")

    @property
    def saved(self) -> tuple[str, ...]:
        """The names of what is saved for the backward pass."""
        return tuple(node.name for node in self._halves.saved)

    @property
    def saved_bytes(self) -> int:
        """The memory of what is saved, without arguments and parameters, which are there anyway."""
        return bytes_of(self._joint, self._halves.saved)

    def value_and_gradients(self, /, *args: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """The result of a program that gives one number, and the gradients of that by name."""
        if [tuple(one.shape) for one in self._joint.tangents] != [()]:
            raise BackendError(
                "the program gives more than one number that needs a gradient",
                fixes=("give tangents: joint((tangent, ...), *args)", "return the loss alone"),
            )
        kind = self._joint.tangents[0]
        with torch.no_grad():
            found: tuple[Any, dict[str, Any]] = self.joint(
                (torch.ones((), dtype=kind.dtype, device=kind.device),), *args, **kwargs
            )
        return found

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return self._program.captured(*args, **kwargs)
        given, tensors = self._tensors(args, kwargs)
        if tensors is None:
            self._flat(*args, **kwargs)  # which tells what does not fit
            raise GuardError("the arguments are nested in another way than in the example")
        self._check_gradients(tensors)
        forward = functools.partial(self._flat, *args, **kwargs)
        call = _Call(self, refusing(forward, "a call of the program") if self._program.is_tried else forward)
        own = _Passes.apply(call, *[tensors[place] for place in self._places])  # type: ignore[no-untyped-call]
        return self._finish(*call.results(own), *[given[name] for name in self._halves.rest])

    # ---- pieces of a call ----------------------------------------------------------------------------------------

    def _callable(self, graph: Graph, name: str) -> CapturedFunction:
        made: CapturedFunction = self._program.captured._with_graph(graph)
        made.__name__ = name
        if self._joint.constants:
            made.root = graph.owning_module = self._joint.root
        return made

    def _tensors(self, args: Any, kwargs: Any) -> tuple[dict[str, Any], list[Any] | None]:
        """The values of the inputs, and the tensors that come in."""
        captured, program = self._program.captured, self._program
        bound = captured._entered()[0].bind(*args, **kwargs)
        bound.apply_defaults()
        inputs = program.graph.find_nodes(op="placeholder")
        by_name = {str(node.target): bound.arguments[str(node.target).lstrip("*")] for node in inputs}
        values = {node: by_name[str(node.target)] for node in inputs}
        try:
            return by_name, [evaluate(one.subject, values, program.root) for one in program.primals]
        except (LookupError, TypeError, AttributeError):
            return by_name, None

    def _check_gradients(self, tensors: list[Any]) -> None:
        """What needs a gradient now must have needed one in the example."""
        for place in self._unneeded:
            if isinstance(tensors[place], torch.Tensor) and tensors[place].requires_grad:
                name = self._program.primals[place].name
                raise GuardError(
                    f"the graph assumed that {name} needs no gradient, but it requires one",
                    fixes=("make the backward pass again: clew.backward(program, args)",),
                )


# ---- calls under autograd --------------------------------------------------------------------------------------------


class _Call:
    """One call, between its forward and its backward pass."""

    def __init__(self, owner: Backward, run: Callable[[], Any]) -> None:
        self.owner, self.run = owner, run
        self.places: dict[int, int] = {}
        """For the tensors of the result that the forward pass makes: their numbers among what it hands out."""
        self.values: list[Any] = []

    def forward(self) -> tuple[list[Any], tuple[Any, ...], list[Any]]:
        """What is handed out, what is saved, and what of the former needs no gradient."""
        results, saved = self.run()
        handed: list[Any] = []
        numbers: dict[int, int] = {}
        joint = self.owner._joint
        for place, (node, value) in enumerate(zip(joint.results, results, strict=True)):
            if is_given(node):
                self.values.append(value)
                continue
            if id(value) not in numbers:
                numbers[id(value)] = len(handed)
                handed.append(value)
            self.places[place] = numbers[id(value)]
            self.values.append(None)
        needed = {self.places[place] for place in joint.differentiable if place in self.places}
        return handed, saved, [value for number, value in enumerate(handed) if number not in needed]

    def results(self, handed: Sequence[Any]) -> list[Any]:
        """The tensors of the result."""
        return [handed[self.places[place]] if place in self.places else one for place, one in enumerate(self.values)]

    def backward(self, gradients: Sequence[Any], saved: Sequence[Any]) -> list[Any]:
        """The gradients, for those of what was handed out."""
        joint, left = self.owner._joint, list(gradients)
        tangents = []
        for place, kind in zip(joint.differentiable, joint.tangents, strict=True):
            number = self.places.get(place)
            tangents.append(_as_kind(None if number is None else left[number], kind))
            if number is not None:
                left[number] = None
        found = self.owner.backward(tuple(tangents), *saved)
        return [found[name] for name in self.owner.wrt]


def _as_kind(gradient: Any, kind: torch.Tensor) -> torch.Tensor:
    """A gradient with the strides for which the backward pass was made; zeros if there is none."""
    if gradient is not None and type(gradient) is torch.Tensor and gradient.stride() == kind.stride():
        return gradient
    made = torch.empty_strided(kind.shape, kind.stride(), dtype=kind.dtype, device=kind.device)
    return made.zero_() if gradient is None else made.copy_(gradient)


class _Passes(torch.autograd.Function):
    """The forward graph, for which autograd runs the backward graph."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *wanted: torch.Tensor) -> Any:
        handed, saved, constant = call.forward()
        ctx.call = call
        ctx.mark_non_differentiable(*constant)
        ctx.save_for_backward(*saved)
        return tuple(handed)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, *ctx.call.backward(gradients, ctx.saved_tensors))
