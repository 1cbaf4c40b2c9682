"""The recorder of torch programs: every call that reaches torch becomes a node, and every question a guard.

`RecordingMode` hands over the calls, `TorchRecorder` writes them down with what they mean for sizes, aliases, state and
random numbers. Answers that a program can see (is this the tensor that I gave? does it require a gradient?) are guarded
where the inputs alone do not decide them.
"""

from __future__ import annotations

import operator
import sys
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy
import torch
from torch.overrides import TorchFunctionMode

from clew.capture.bytecode.try_blocks import NEVER
from clew.capture.control_flow.body_recorder import Abandon
from clew.capture.control_flow.runtime import before_guard
from clew.capture.guards.sizes import Size, compare
from clew.capture.recording.example_recorder import ExampleRecorder
from clew.capture.recording.list_proxies import ListProxy, TupleProxy
from clew.capture.recording.opaque_calls import CannotFollow, Unseen
from clew.capture.recording.recorder import Pending, Scalar
from clew.capture.recording.unused_calls import is_own
from clew.frameworks.numpy.array_proxy import Traced
from clew.frameworks.torch import facts
from clew.frameworks.torch.caches import TorchCachedCalls
from clew.frameworks.torch.calls import dispatch, fast_path, tensor_mutation
from clew.frameworks.torch.calls.constructors import MadeGenerator
from clew.frameworks.torch.calls.dispatch import (
    ESCAPES,
    FACTS,
    HANDLERS,
    RANKED,
    REFUSED,
    RESHAPING,
    SPLITS,
    UNUSUAL,
    USUAL,
    VARYING,
    may_switch,
    takes_operands,
    traits_of,
)
from clew.frameworks.torch.calls.opaque_calls import ENDS, guard_switches, make_whole
from clew.frameworks.torch.calls.tensor_attributes import Carriers
from clew.frameworks.torch.effects import OPERATORS, function_effect
from clew.frameworks.torch.modules.optimizers import Trainers
from clew.frameworks.torch.modules.training_mode import Modes
from clew.frameworks.torch.numpy_bridge.arrays import OF_NUMPY, ArrayRecorder, is_followed
from clew.frameworks.torch.numpy_bridge.packages import MetFunctions, Packages
from clew.frameworks.torch.numpy_bridge.random_streams import Generators, Streams
from clew.frameworks.torch.refusals import not_followed, refusal, where
from clew.frameworks.torch.scalars import TracedSize, compute, is_decided, is_free, is_of_modes, traced
from clew.frameworks.torch.sizes.sizes import Sizes, is_only_repeated, names_each_dimension
from clew.frameworks.torch.tracing_tools import Tracers
from clew.frameworks.torch.types import tensor_type
from clew.frameworks.torch.undo import Region, Rollback, region_of
from clew.ir.arguments import leaves
from clew.ir.guests import Effect
from clew.ir.node import Node, set_type
from clew.ir.source import SourceLine, user_source

MAY_GIVE_BACK = frozenset(
    "contiguous to type type_as float double half bfloat16 int long short char byte bool cpu cuda cfloat cdouble conj "
    "resolve_conj resolve_neg coalesce dropout alpha_dropout feature_dropout feature_alpha_dropout real positive pad "
    "to_dense atleast_1d atleast_2d atleast_3d sum_to_size cat concat reshape view_as_real".split()
)
"""Functions that give back the very tensor that they are given, if nothing is left to be done to it."""


def given_back(recorder: TorchRecorder, value: torch.Tensor, node: Any, args: tuple[Any, ...]) -> Any:
    """In a program that asks which object a tensor is: the argument that a call gave back, guarded as such; None
    if it gave back none."""
    name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
    found = None
    for arg in args:
        if isinstance(arg, torch.Tensor) and (arg is value or name in MAY_GIVE_BACK):
            recorder.guard(recorder.create(operator.is_, (node, recorder.node_of(arg))), arg is value)
            found = arg if arg is value else found
    return found


def ask_history(recorder: TorchRecorder, tensor: Any, name: str, func: Any) -> Any:
    """Whether a tensor has a gradient follows from the inputs, unless parameters have a part in it."""
    recorder.rely("requires_grad")
    answer = func(tensor)
    if name != "grad_fn" and _is_of_parameters(recorder, tensor):
        recorder.guard(recorder.create(getattr, (recorder.node_of(tensor), name)), answer)
    return answer


def _is_of_parameters(recorder: TorchRecorder, tensor: Any) -> bool:
    """Whether a tensor is one of the program's surroundings, or was computed from such."""
    waiting, seen = [recorder.node_of(tensor)], set()
    while waiting:
        node = waiting.pop()
        if node not in seen:
            if node.op in ("get_attr", "call_module"):
                return True
            seen.add(node)
            waiting += node.all_input_nodes
    return False


def alias_of_sparse(value: torch.Tensor) -> torch.Tensor:
    """Another object for a sparse tensor, of which torch makes no views."""
    if value.requires_grad:
        raise refusal("a sparse tensor with a gradient that a call gives back as it is")
    return value.detach()


_MOST_ELEMENTS = 1 << 20


def can_be_kept(value: Any) -> bool:
    """Whether a result may be kept for all calls: a plain tensor of moderate size that holds data."""
    if type(value) is not torch.Tensor or value.requires_grad or value.is_inference():
        return False
    return not value.is_meta and value.layout is torch.strided and value.numel() <= _MOST_ELEMENTS


def is_small(tensor: Any) -> bool:
    """Whether it costs little to see at each call that a tensor still holds what it held; NaN equals nothing."""
    if tensor.is_inference() or not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided:
        return False
    with torch._C.DisableTorchFunction():
        if tensor.is_meta or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return True  # fake ones hold nothing
        return tensor.numel() <= _MOST_COMPARED and bool(torch.equal(tensor, tensor.clone()))


_MOST_COMPARED = 1 << 14


def share_memory(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether a write to one tensor may be seen in the other."""
    return bool(torch._C._is_alias_of(left, right))  # type: ignore[attr-defined]


class ReliedFacts:
    """What of the inputs, and of the mode of gradients, the program has seen: it is checked where a call enters."""

    __slots__ = ("facts", "gradients", "hashed")

    def __init__(self) -> None:
        self.facts: dict[str, SourceLine | None] = {}
        self.gradients = torch.is_grad_enabled()
        self.hashed = False  # whether tensors were keys


class FactProxies:
    """Whether proxies stand for dtypes and devices, and whether the program has got any."""

    are_plain = False  # given as they are, and guarded where they are read
    were_given = False


class Managers:
    """Context managers of torch, by their identity."""

    __slots__ = ("entered", "made")

    def __init__(self) -> None:
        self.entered: dict[int, tuple[Any, list[Node]]] = {}
        self.made: dict[int, tuple[Any, tuple[Any, Any]]] = {}  # with what the graph gives to those made of proxies


class Properties:
    """What the program has read of tensors, each property made once."""

    __slots__ = ("mixed_at", "read", "reshapes_inside", "shapes")

    def __init__(self) -> None:
        self.read: dict[tuple[int, str, str], tuple[Any, Any]] = {}
        self.shapes: list[tuple[Node, Any]] = []
        self.reshapes_inside = False
        """Whether a shape was changed in place inside of a branch: what is asked then is asked there."""
        self.mixed_at: Any = None
        """The branch after which it depends on the path whether a tensor requires a gradient."""


class NumpyUse:
    """What a torch program may do with NumPy, and which packages do it."""

    follows_arrays = False
    packages: Packages | None = None
    met: MetFunctions
    errors: Any
    """NumPy's settings for errors of floating point before the run."""


_JOINS = frozenset({"stack", "cat", "concat", "concatenate"})


class TorchRecorder(ExampleRecorder):
    """A recorder of torch's calls."""

    array_kinds = frozenset({torch.Tensor, torch.nn.Parameter})
    leaf_kinds = frozenset({torch.dtype, torch.device})
    opens_lists = True
    hand_out = staticmethod(dispatch.hand_out)
    tracers: Tracers
    streams: Streams
    rollback: Rollback
    array_attributes: Carriers

    def __init__(self) -> None:
        super().__init__()
        self.modes = Modes(self)
        self.relied = ReliedFacts()
        self.fact_proxies = FactProxies()
        self.caches = TorchCachedCalls(self)
        self.streams = Streams(self)
        self.generators = Generators()
        self.trainers = Trainers()
        self.array_attributes = Carriers(self)
        self.touched: set[int] = set()
        self.managers = Managers()
        self.properties = Properties()
        self.numpy_use = NumpyUse()
        self.numpy_use.errors = numpy.geterr()
        self.arrays: ArrayRecorder | None = None
        self.root: torch.nn.Module | None = None
        self.sizes = Sizes(self)

    def alike_items(self, items: list[Any], place: Any) -> Node | None:
        """A node that tells whether all items of a list of the state, which is joined, are tensors like these."""
        found = {facts.kind_of_item(item) for item in items}
        if len(found) != 1 or None in found:
            return None
        return self.create(facts.are_alike, (self.resolve(place), *found))

    def operate(self, function: Callable[..., Any], *values: Any) -> Any:
        """Apply a function to numbers, some of them traced, and record that."""
        return compute(self, function, *values)

    def is_array(self, value: Any) -> bool:
        """True for a tensor, a generator that the program has made, and values of NumPy's where these are followed."""
        if isinstance(value, torch.Tensor) or issubclass(type(value), MadeGenerator):  # the latter without torch's code
            return True
        return self.numpy_use.follows_arrays and isinstance(value, OF_NUMPY) and is_followed(value)

    def is_end(self, value: Any) -> bool:
        """True for tensors, arrays, modules and optimizers: what is in them is followed by other means."""
        if isinstance(value, ENDS) or issubclass(type(value), Traced):
            return True
        return isinstance(value, numpy.ndarray) and self.is_array(value)

    def enter(self, value: Any, place: Any) -> Any:
        """An array from outside as the program shall see it, tied to its node."""
        return self.border().enter(value, place) if isinstance(value, OF_NUMPY) else super().enter(value, place)

    def note_type(self, node: Node, array: Any) -> None:
        """Note dtype, shape and device of a tensor on its node, past all that watches edits: the graph is new."""
        if type(array) in self.array_kinds or isinstance(array, torch.Tensor):
            with torch._C.DisableTorchFunction():
                set_type(node, tensor_type(array))

    def concrete_tuple(self, value: Any) -> Any:
        """A tuple with plain numbers; a traced size becomes a plain one."""
        if type(value) is TracedSize:
            return torch.Size([self.concrete(item) for item in value])
        return super().concrete_tuple(value)

    def new_constant(self, value: Any) -> str:
        """A constant is only what the program's surroundings hold: anything else was made by means nobody saw."""
        held = self.surroundings.holds(value) or self.state.want(value)
        held = held or self.state.is_in_module(value) or self.state.had(value)
        if self.finishing:  # by now the program may have put there what a call made that nobody looks into
            held = self.state.had(value)
        if not held:
            raise not_followed(
                "a tensor that was made by means that the capture does not see",
                "it may depend on the inputs (torch.func, torch.from_numpy, a constructor of torch's C library)",
                Unseen,
            )
        self.rollback.watch_tensor(value)
        return super().new_constant(value)

    def node_of(self, value: Any) -> Any:
        """The node of a tensor; one that the program's surroundings hold is a source of constants. A number of NumPy's
        that is no proxy is what it is."""
        if isinstance(value, OF_NUMPY):
            return value if isinstance(value, numpy.generic) else self.border().node_of(value)
        known = len(self.attributes.constants)
        node = super().node_of(value)
        if len(self.attributes.constants) > known and not value.requires_grad and is_small(value):
            self.folding.add_source(node)
        return node

    # ---- results -------------------------------------------------------------------------------------------------

    def result(self, value: Any, place: Any) -> Any:
        """The result of a recorded call as the program shall see it."""
        kind = type(value)
        if isinstance(value, torch.Tensor):
            self.track(value, place)
            return value
        if kind in (int, float, bool):
            return traced(value, place, self)
        if kind is torch.Size:
            return TracedSize(traced(size, Pending(operator.getitem, (place, i)), self) for i, size in enumerate(value))
        if isinstance(value, tuple):
            items = [self.result(item, Pending(operator.getitem, (place, i))) for i, item in enumerate(value)]
            return tuple(items) if kind is tuple else kind(*items) if hasattr(value, "_fields") else kind(items)
        if kind is list:
            return [self.result(item, Pending(operator.getitem, (place, i))) for i, item in enumerate(value)]
        if kind is complex:  # no traced number stands for it
            self.guard(place, value)
            return value
        if value is None or value is NotImplemented:
            return value
        if isinstance(value, (torch.dtype, torch.device, torch.layout, str)):
            return facts.fact(value, place, self)
        if self.numpy_use.follows_arrays and isinstance(value, OF_NUMPY):
            return self.border().result(value, place)
        raise CannotFollow(
            f"a call gave a {kind.__name__}, which cannot be followed",
            where=where(),
            fixes=("keep the function as one call: clew.wrap",),
        )

    def fresh(self, tensor: torch.Tensor) -> torch.Tensor:
        """Another tensor object over the same memory."""
        with self.paused():
            alias: torch.Tensor = torch.ops.aten.alias(tensor)
            vars(alias).update(vars(tensor))
        self.aliases[id(alias)] = (alias, self.original(tensor))
        return alias

    def apart(self, value: Any) -> Any:
        """What is taken out of a list: other objects for tensors that belong to a node already, which keep it."""
        if isinstance(value, torch.Tensor):
            return value if self.held(value) is None else self.fresh(value)
        return super().apart(value)

    # ---- calls ---------------------------------------------------------------------------------------------------

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a call for real and record it."""
        name = getattr(func, "__name__", "")
        if name not in UNUSUAL:
            return self.record(func, name, args, kwargs)
        if name == "__get__":
            return self._get(func.__self__.__name__, func, args[0])
        if name == "__set__":
            return tensor_mutation.set_property(self, func, args)
        if name in ("item", "tolist"):  # of which type the numbers are decides what comes of them
            self.rely("number_kind")
        handler = HANDLERS.get(name)
        if handler is not None:
            return handler(self, func, args, kwargs)
        if name == "numpy" and self.numpy_use.follows_arrays and len(args) == 1:
            return self.border().taken(args[0], kwargs)
        if name in ESCAPES:
            raise not_followed(f"a tensor's data left torch through {name}", "numbers that leave would be frozen")
        if name in REFUSED:
            raise not_followed(f"{name} inside the captured program")
        return self.record(func, name, args, kwargs)

    def note_failure(self, error: Exception, call: Any = None, args: tuple[Any, ...] = (), kwargs: Any = None) -> None:
        """A call has failed, on plain values, and so by itself."""
        self.raised = error
        super().note_failure(error, call, args, kwargs)

    def border(self) -> ArrayRecorder:
        """The recorder of NumPy's calls on what leaves torch."""
        self.arrays = self.arrays or ArrayRecorder(self)
        return self.arrays

    def record(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        dispatch.check_flags(self, func, args, kwargs)
        self.joins_lists = name in _JOINS
        node_args, node_kwargs = self.argument(args), self.argument(kwargs) if kwargs else {}
        self.joins_lists = False
        if kwargs.get("generator") is not None:
            self._use_generator(kwargs["generator"])
        unranked = self.sizes.unranked.get(node_args[0]) if name == "repeat" and type(node_args[0]) is Node else None
        if unranked is not None and not names_each_dimension((args[1:], kwargs), unranked[1]):
            self._guard_equal(unranked[0], 1)
        traits, writes = traits_of(func), self.is_writing(func, args, kwargs)
        if writes:
            if name in RESHAPING:
                tensor_mutation.before_reshaping(self, name, args[0])
            is_known = name not in RESHAPING and "resize" not in name and kwargs.get("out") is None
            for tensor in leaves((args, kwargs)):
                if isinstance(tensor, torch.Tensor):
                    self.is_written(tensor, partial(self._region, name, tensor, args) if is_known else None)
            self.check_frozen((args[:1], kwargs.get("out")))
        places = tensor_mutation.places_of(self, kwargs["out"]) if kwargs.get("out") is not None else ()
        value = tensor_mutation.perform(self, traits, writes, func, (args, kwargs), (node_args, node_kwargs))
        if kwargs.get("generator") is not None:
            self.generators.drawn(kwargs["generator"])
        self.error_notes.follows = self.paths is not None and not writes and not self.options.refuses_questions
        if traits.is_method:
            form = traits.form if not kwargs and traits.form and takes_operands(traits.form, args) else None
            node = self.create_node("call_method", name, node_args, node_kwargs, is_result=True, form=form)
        else:
            node = self.create_node("call_function", func, node_args, node_kwargs, is_result=True)
        self.ask_for_failure(node)
        if writes:
            self._forget_shapes()
            if kwargs.get("out") is not None or "resize" in name:  # which may have got another shape by that
                tensor_mutation.check_resized(self, places)
                self.sizes.stop()
        elif not self.bodies.open and self.folding.is_constant(node):
            self.fold_later(node, value)
        if name in RANKED and (name[:7] == "squeeze" or _has_number((args, kwargs))):  # the rank depends on numbers
            self._guard_rank(name, node, value)
        for given in (*args, *kwargs.values()) if name in SPLITS else ():
            if type(given) is ListProxy and given.is_local:
                return (
                    TupleProxy.of(value, node, self) if given.gives_parts else ListProxy(list(value), node, self, True)
                )
        if name == "tensor" and args and type(args[0]) is ListProxy:  # an empty list has a type and a rank of its own
            self.guard(self.create(bool, (node_args[0],)), True)
        if type(value) is tuple or value is None:
            guard_switches(self, (args, kwargs))
        if name in VARYING and isinstance(value, (tuple, list)):  # and so does the number of parts here
            self._guard_count(node, len(value))
        return self.settle(node, value, args, writes)

    def settle(self, node: Node, value: Any, args: tuple[Any, ...], writes: bool = False) -> Any:
        """What a recorded call gave, as the program shall see it."""
        if type(value) is list:
            self._guard_lengths(node, value)
        return self._aliased(self.result, value, node, args, writes)

    def fold_later(self, node: Node, value: Any) -> None:
        """A call on constants alone was made."""
        self.folding.add(node, value if can_be_kept(value) else None)

    def _region(self, name: str, tensor: torch.Tensor, args: tuple[Any, ...]) -> Region:
        """The part of a tensor that a call in place may write to."""
        return region_of(name, tensor, (args[0], *self.concrete(args[1:])))

    def is_writing(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call writes to tensors among its arguments."""
        if traits_of(func).writes or kwargs.get("out") is not None:
            return True
        if type(func) in OPERATORS:  # whose schema tells, and not their name
            return function_effect(func, args, kwargs) is Effect.WRITE
        return may_switch(args, kwargs) and function_effect(func, args, kwargs) is Effect.WRITE

    def is_written(self, tensor: torch.Tensor, find_region: Callable[[], Region] | None = None) -> None:
        """A tensor is about to be written to: what it holds is kept, and no longer a constant of the capture."""
        if self.arrays is not None:
            self.arrays.before_write(tensor)
        self.rollback.save(tensor, find_region)
        node = self.known(tensor) if self.open else self.held(tensor)  # a round that is not recorded makes no nodes
        if isinstance(node, Node):
            self.folding.spoil(node)

    def check_frozen(self, written: Any) -> None:
        """The tensors that caches give must not be written to."""
        for value in leaves(written) if self.caches.arrays else ():
            if isinstance(value, torch.Tensor):
                self.caches.check_written(value, share_memory)

    def twin_of(self, value: Any) -> Any:
        """For a generator of random numbers one that stands where it stands; the given one is left alone."""
        return self.generators.twin(value, self) if type(value) is torch._C.Generator else None

    def _use_generator(self, generator: Any) -> None:
        """A generator must be one that the program's surroundings hold: one made inside would be frozen."""
        if self.known(generator) is not None:
            return
        if not (self.surroundings.holds(generator) or self.generators.watches(generator)):
            raise not_followed(
                "a torch.Generator that is made inside the program", "the graph would use one for all calls"
            )
        self.rollback.save_generator(generator)
        if self.generators.moved_unseen():
            raise not_followed(
                "a torch.Generator that is seeded, or drawn from, by means that the capture does not see"
            )

    def _guard_rank(self, name: str, node: Node, value: torch.Tensor) -> None:
        """The rank of what a call gave; where the sizes are known that decide it, these are relied on instead."""
        sizes = self.sizes.squeezed(node) if name == "squeeze" and "rank" in self.relied.facts else None
        if sizes is None:
            self.guard(self.create(getattr, (node, "ndim")), value.ndim)
        elif sizes and self.sizes.example(sizes[0]) != 1 and is_only_repeated(node):
            self.sizes.unranked[node] = sizes.pop(0), 1 + sum(self.sizes.example(size) != 1 for size in sizes)
        for size in sizes or ():
            self._guard_equal(size, 1)

    def _guard_count(self, node: Node, count: int) -> None:
        """The number of tensors that a call gave; where the size is known that decides it, that is relied on."""
        size = self.sizes.count(node) if "rank" in self.relied.facts else None
        if size is None:
            self.guard(self.create(len, (node,)), count)
        elif compare(operator.eq, size, count) is None:
            self.guard(self.sizes.place(size), count)

    def _guard_equal(self, size: Size, plain: int) -> None:
        """Rely on a size being a number, or not being it, as in the example, unless it is always so."""
        answer = self.sizes.compared(operator.eq, size, plain)
        if isinstance(answer, Node):
            self.guard(answer, self.sizes.example(size) == plain)

    def _guard_lengths(self, place: Any, value: list[Any]) -> None:
        """The lengths of nested lists that came out of a tensor: the program may walk them."""
        self.guard(self.create(len, (self.resolve(place),)), len(value))
        for index, item in enumerate(value):
            if type(item) is list:
                self._guard_lengths(Pending(operator.getitem, (place, index)), item)

    def _aliased(self, result: Any, value: Any, node: Any, args: tuple[Any, ...], writes: bool) -> Any:
        """The result; where a call gave one of its own arguments back, an object of its own stands for it.

        ``x.contiguous()`` is ``x`` for some inputs and a copy for others, so the two must not share a node. A call
        that writes gives its argument back always, and that stays tied to where it was.
        """
        if self.identity.is_asked and not writes and isinstance(value, torch.Tensor):
            same = given_back(self, value, node, args)
            if same is not None:
                return same
        if isinstance(value, torch.Tensor) and id(value) in map(id, args):
            if writes:
                return value
            with self.paused():
                alias = torch.ops.aten.alias(value) if value.layout is torch.strided else alias_of_sparse(value)
                vars(alias).update(vars(value))
            self.aliases[id(alias)] = (alias, self.original(value))
            value = alias
        return result(value, node)

    def given_back(self, value: Any, node: Any, args: tuple[Any, ...]) -> Any:
        """What a call that stays one node gave, which may be an argument of it this time."""
        return self._aliased(self.result, value, node, args, False)

    def whole(
        self,
        op: str,
        target: Any,
        call: Any,
        args: Any,
        kwargs: Any,
        written: Iterable[Any],
        opaque: str = "",
        inside: Any = None,
    ) -> Any:
        """Make a call that stays one node; ``written`` it may write to, ``opaque`` says why nobody looks inside.

        ``inside`` is the user's function or module that runs, if one does.
        """
        return make_whole(self, op, target, call, (args, kwargs), written, opaque, inside)

    def perform(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], is_plain: bool = False) -> Any:
        """Make the call on plain values; an error is the user's, but a program that catches it cannot be captured."""
        self.depth += 1
        try:
            if is_plain:
                return func(*args, **kwargs)
            return func(*self.concrete(args), **(self.concrete(kwargs) if kwargs else {}))
        except Exception as error:
            self.note_failure(error)
            raise
        finally:
            self.depth -= 1

    def _get(self, name: str, func: Any, tensor: Any) -> Any:
        """A property of a tensor."""
        if self.properties.mixed_at is not None and name in ("requires_grad", "is_leaf", "grad_fn"):
            raise Abandon(self.properties.mixed_at, "whether a tensor requires a gradient depends on the way")
        if name == "shape":
            return self.shape(tensor)
        if name == "ndim":
            return self.rank(tensor)
        if name in FACTS:
            return facts.read(self, tensor, name, func)
        if name == "requires_grad":
            return ask_history(self, tensor, name, func)
        if name in tensor_mutation.READ:
            node, value = self.create(getattr, (self.node_of(tensor), name)), func(tensor)
            if name == "grad":
                self.rollback.undo.keep_gradient(tensor)
                self.guard(self.create(operator.is_, (node, None)), value is None)
            return self.result(value, node)
        if name in ("is_leaf", "grad_fn"):
            self.rely("is_leaf")
            return ask_history(self, tensor, name, func)
        raise not_followed(f"reading the property {name} of a tensor")

    def shape(self, tensor: Any) -> Any:
        """The shape of a tensor, its sizes traced; made once for each tensor."""
        return self.once(tensor, "shape", lambda place: self._shape(tensor, place))

    def _shape(self, tensor: Any, place: Any) -> Any:
        self.rank(tensor)
        owner = self.node_of(tensor)
        if self.sizes.covers(owner, tensor):
            size = self._expressed(self.sizes.ask(owner), tensor, place)
        else:
            size = self.result(tensor.shape, place)
        self.properties.shapes.append((owner, size))
        return size

    def count(self, func: Any, tensor: Any) -> Any:
        """How many numbers a tensor holds."""
        owner, name = self.node_of(tensor), func.__name__
        is_known = self.sizes.covers(owner, tensor) and "rank" in self.relied.facts
        place = self.sizes.number_of_items(owner, name) if is_known else None
        return self.record(func, name, (tensor,), {}) if place is None else traced(tensor.numel(), place, self)

    def _expressed(self, sizes: tuple[Size, ...], tensor: Any, place: Any) -> Any:
        """The sizes of a tensor, each in terms of those that came in, or read from itself."""
        own = () if all(map(self.sizes.is_expressed, sizes)) else self.result(tensor.shape, place)
        found = [
            self._traced_size(size, plain) if not own or self.sizes.is_expressed(size) else own[axis]
            for axis, (size, plain) in enumerate(zip(sizes, tensor.shape, strict=True))
        ]
        return TracedSize(found)

    def once(self, tensor: Any, name: str, make: Callable[[Any], Any]) -> Any:
        """A property of a tensor as the program shall see it, made of its place; kept until something is written. Each
        module reads dtypes and devices for itself, so that equal layers are recorded alike."""
        reader = "" if name == "shape" else next(reversed(self.module_stack.open), "")
        known = self.properties.read.get((id(tensor), name, reader))
        if known is not None and known[0]() is tensor:
            return known[1]
        owner = self.node_of(tensor)
        place = Pending(getattr, (owner, name), None if name == "shape" else name)
        made = make(self.create(getattr, (owner, name)) if self.properties.reshapes_inside else place)
        self.properties.read[id(tensor), name, reader] = (weakref.ref(tensor), made)
        return made

    def _forget_shapes(self) -> None:
        """Something was written to: dtypes and devices stay what they were read to be."""
        for key in [key for key in self.properties.read if key[1] not in ("dtype", "device")]:
            del self.properties.read[key]

    def _traced_size(self, size: Size, plain: int) -> Any:
        return plain if isinstance(size, int) else traced(plain, self.sizes.place(size), self)

    def calculate(self, function: Any, values: tuple[Any, ...]) -> Any:
        """What follows from the expressions of sizes, which the example is one case of."""
        return self.sizes.calculated(function, values)

    def layer_at(self, path: str) -> Any:
        """The part of the captured module at a path."""
        return None if self.root is None else self.root.get_submodule(path)

    def rank(self, tensor: Any) -> int:
        """The rank of a tensor: a fact that the capture relies on."""
        self.rely("rank")
        return int(tensor.ndim)

    def new_mode(self) -> RecordingMode:
        """The mode once more, for functions of the user's that are run inside a call."""
        return RecordingMode(self)

    def settle_shapes(self) -> None:
        """Shapes are about to change: sizes that were asked for until now are read from the tensors now."""
        for owner, size in self.properties.shapes:
            if self.bodies.is_open(owner.graph):
                for item in size:
                    self.argument(item)
        self.sizes.stop()
        self.properties.shapes.clear()
        self.properties.read.clear()
        self.properties.reshapes_inside = self.properties.reshapes_inside or bool(self.bodies.open)

    def pass_no_return(self, tensor: Any, done: str) -> None:
        """The program does to a tensor of the outside what a guard that fails later could not take back."""
        if self.is_outside(tensor):
            self.rollback.no_return = done

    def guard(self, place: Any, answer: Any, why: str = "") -> None:
        """Note that the program relied on a value; not after a step that a failing guard could not take back."""
        if self.open and (is_decided(self, place) or self._is_told(place, answer)):
            return
        known = (self.resolve(place), (type(answer), answer)) in self.guarded
        if self.paths is not None and self.open and not known and type(answer) is int:
            before_guard(self, is_free(self.resolve(place), self))
        if self.rollback.no_return and not known:
            raise not_followed(f"a program that {self.rollback.no_return} an argument, and then asks for a value,")
        super().guard(place, answer, why)

    def _is_told(self, place: Any, answer: Any) -> bool:
        """Whether the path of the run has this answer."""
        return self.paths is not None and type(answer) is bool and self.paths.is_told(self.resolve(place), answer)

    def is_of_modes(self, place: Any) -> bool:
        """Whether a value hangs on modes of parts, and on dtypes, alone."""
        return is_of_modes(self.resolve(place), self)

    def is_of_tracers(self, place: Any) -> bool:
        """Whether a value is what a library has asked of the tools that may trace the program."""
        return place in self.tracers.nodes

    def may_raise(self, target: Any, kind: type[Exception]) -> bool:
        """Whether torch raises errors of the class; those of linear algebra come from its functions alone."""
        name = target if isinstance(target, str) else getattr(target, "__name__", "")
        if kind is torch.linalg.LinAlgError:
            return any(word in name for word in _LINEAR_ALGEBRA)
        return kind in (Exception, RuntimeError, IndexError, ValueError, TypeError)

    def asked_tracer(self, function: Any) -> Node:
        """The node that asks whether a tool traces the program, which never fails."""
        name = "is_capturing" if is_own(function) else None
        return self.create_node("call_function", function, (), {}, errors=NEVER, name=name)

    def truth(self, place: Any, answer: bool, is_data: bool, is_fixed: bool = False) -> bool:
        """The program asks whether a value is true: the path that the run takes, recorded or guarded."""
        if is_data and self.paths is not None and not self.is_of_modes(place):
            self.tracers.before_question(place)
        return super().truth(place, answer, is_data, is_fixed)

    def asks_for_batch(self, node: Node) -> bool:
        """Whether a question is about nothing but how many examples there are; both of its answers are tried then."""
        if self.paths is None or self.options.refuses_questions or not self.sizes.is_about_batch(node):
            return False
        self.paths.sizes_asked.add(node)
        return True

    def is_outside(self, tensor: Any) -> bool:
        """Whether a tensor was there before the program ran."""
        return any(tensor is known for known in self.rollback.watched())

    def rely(self, fact: str) -> None:
        """Note that the program asked for a fact that follows from the inputs: it will be guarded on them."""
        if fact not in self.relied.facts:
            self.relied.facts[fact] = user_source()


def _has_number(arguments: Any) -> bool:
    return any(issubclass(type(leaf), Scalar) for leaf in leaves(arguments))


_LINEAR_ALGEBRA = ("linalg", "cholesky", "inverse", "solve", "svd", "eig", "lu", "det", "lstsq", "qr")
"""What stands in the names of functions that may find a matrix singular, or not positive definite."""


class RecordingMode(TorchFunctionMode):
    """Hands every call of torch to the recorder; inside a call, and inside leaf modules, it is off."""

    def __init__(self, recorder: TorchRecorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        recorder = self.recorder
        if recorder.depth:
            return func(*args, **(kwargs or {}))
        traits = USUAL.get(func)
        if traits is not None:
            value = fast_path.record(recorder, traits, func, args, kwargs or {}, sys._getframe(1))
            if value is not fast_path.UNUSUAL:
                return value
        return recorder.call(func, args, kwargs or {})
