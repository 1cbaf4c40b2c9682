"""NumPy inside of a torch program: arrays are followed by a recorder of their own that writes to the same graph.

Comes in: arrays and tensors that the program makes of each other. Goes out: nodes of the torch program's graph. Memory
that tensors and arrays have in common is one: what is written through one is seen through the other. What has no memory
of the CPU's (meta and fake tensors, sparse ones, those of other devices) overlaps with no array.
"""

from __future__ import annotations

import builtins
import functools
import operator
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy
import torch

from clew.capture.guards.notes import Variable
from clew.capture.patches import Patches
from clew.capture.python.imported_names import noted
from clew.capture.recording.example_recorder import Paused
from clew.capture.recording.operators import operation_at
from clew.capture.recording.recorder import Scalar
from clew.capture.state.reachable import attribute_names, global_names, package_of
from clew.errors import ClewError
from clew.frameworks.numpy import call_sites, constructors, opaque_calls, random_streams, undo
from clew.frameworks.numpy.array_proxy import Places, TracedArray, TracedGeneric, TracedPython, is_traced
from clew.frameworks.numpy.attributes import check_followed
from clew.frameworks.numpy.caches import RecordedBodies
from clew.frameworks.numpy.facts import guard_kind
from clew.frameworks.numpy.number_functions import BUILTINS
from clew.frameworks.numpy.opaque_calls import cannot_follow
from clew.frameworks.numpy.recorder import STREAMS, NumpyRecorder
from clew.frameworks.torch.modules.state import OWN
from clew.frameworks.torch.number_functions import FOR_PYTHON, builtins_for
from clew.frameworks.torch.scalars import NODE, TracedBool, is_decided
from clew.ir.arguments import leaves
from clew.ir.effects import effect_of
from clew.ir.guests import Effect, guest
from clew.ir.node import Node
from clew.ir.source import is_installed

if TYPE_CHECKING:
    from clew.frameworks.torch.capture import Run
    from clew.frameworks.torch.recorder import TorchRecorder


def bytes_of(tensor: torch.Tensor) -> Any:
    """All bytes of the memory that a tensor is a part of, as an array; None for a tensor that no array can share."""
    with torch._C.DisableTorchFunction():
        while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            tensor = torch._C._functorch.get_unwrapped(tensor)
        if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
            return None
        storage = tensor.untyped_storage()
        if storage.device.type != "cpu" or not storage.nbytes():
            return None
        return torch._C.TensorBase.set_(torch.empty(0, dtype=torch.uint8), storage).numpy()


def overlap(array: Any, value: Any) -> bool:
    """Whether an array may share memory with another one, or with a tensor."""
    if isinstance(value, torch.Tensor):
        value = bytes_of(value)
    return isinstance(value, numpy.ndarray) and numpy.may_share_memory(array, value)


def _members(kind: type) -> dict[str, Any]:
    """The public names of a symbolic number, each asked of the number of NumPy's instead."""
    names = [name for base in kind.__mro__[:-1] for name in vars(base) if not name.startswith("_")]
    found: dict[str, Any] = {name: _asking(name) for name in names}
    return {**found, "node": NODE, "__hash__": TracedGeneric.__hash__}


def _asking(name: str) -> property:
    return property(lambda self: self.recorder.attribute(self, name))


TracedNumpyInt = type("TracedNumpyInt", (TracedGeneric, torch.SymInt), _members(torch.SymInt))
TracedNumpyFloat = type("TracedNumpyFloat", (TracedGeneric, torch.SymFloat), _members(torch.SymFloat))


def class_for(value: Any) -> Any:
    """The class of the proxy of a number of NumPy's; None for all other values."""
    if isinstance(value, numpy.integer) and not isinstance(value, numpy.timedelta64):
        return TracedNumpyInt
    return TracedNumpyFloat if isinstance(value, numpy.floating) else None


Current: TypeAlias = "Callable[[], TorchRecorder | None]"
_AWAY = ("asarray", "array", "ascontiguousarray")
_SAME = (numpy.asarray,)
_BACK = ("from_numpy", "as_tensor", "asarray")
ARRAYS = (numpy.ndarray, *STREAMS)
OF_NUMPY = (*ARRAYS, numpy.generic)
_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)
_FACTS = ("dtype", "device", "rank", "layout")


def is_followed(value: Any) -> bool:
    """Whether a value of NumPy's is no proxy, and of a class for which one can stand."""
    return not is_traced(value) and (type(value) is numpy.ndarray or not isinstance(value, numpy.ndarray))


def guard_kinds(recorder: TorchRecorder, value: Any, node: Node) -> None:
    """What a call gave that nobody looks into: dtype and rank of arrays in it are relied on."""
    if recorder.numpy_use.follows_arrays and any(
        isinstance(leaf, (numpy.ndarray, numpy.generic)) for leaf in leaves(value)
    ):
        guard_kind(recorder.border(), value, node)


class ArrayStreams(random_streams.NumpyStreams):
    """NumPy's generators in a torch program; where the streams of Python and NumPy stand is known to that program."""

    recorder: ArrayRecorder

    def __init__(self, recorder: ArrayRecorder) -> None:
        self.rollback = recorder
        self.recorder = recorder
        self.followed_ones = []
        self.known = []

    def moved_unseen(self) -> bool:
        """Whether something else than a recorded draw has moved a stream."""
        return bool(self.recorder.owner.streams.moved_unseen())

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Draws inside belong to a call of the graph, which draws them again."""
        with self.recorder.owner.streams.followed():
            yield


def _is_indexing(frame: FrameType) -> bool:
    """Whether a frame stands at ``x[...]``, to read or to write."""
    found = operation_at(frame.f_code, frame.f_lasti)
    return found is not None and found.function in (operator.getitem, operator.setitem)


def _of_owner(name: str) -> Any:
    """An attribute that a recorder of arrays has in common with its owner."""
    return property(operator.attrgetter(f"owner.{name}"))


class ArrayRecorder(NumpyRecorder):
    """Records NumPy's calls for a recorder of torch's, in its graph."""

    owner: TorchRecorder
    traces_facts = False
    # The graph, the run and the program are the owner's.
    bodies = _of_owner("bodies")
    nodes = _of_owner("nodes")
    attributes = _of_owner("attributes")
    objects = _of_owner("objects")
    aliases = _of_owner("aliases")
    array_attributes = _of_owner("array_attributes")
    guarded = _of_owner("guarded")
    folding = _of_owner("folding")
    module_stack = _of_owner("module_stack")
    options = _of_owner("options")
    code = _of_owner("code")
    paths = _of_owner("paths")
    hooks = _of_owner("hooks")
    error_notes = _of_owner("error_notes")
    state = _of_owner("state")
    surroundings = _of_owner("surroundings")
    call_variables = _of_owner("call_variables")
    open = _of_owner("open")
    running = _of_owner("running")
    finishing = _of_owner("finishing")
    depth = _of_owner("depth")
    acts = _of_owner("acts")

    def __init__(self, owner: TorchRecorder) -> None:
        self.owner = owner
        self.identity = owner.identity._replace(of_objects=owner.identity.is_asked)
        self.errors = owner.numpy_use.errors
        self.errstates: list[tuple[Any, Node]] = []
        self.listed: list[Any] = []
        self.proxies: dict[int, tuple[Any, Any]] = {}
        self.cached = RecordedBodies(self)
        self.raised: Exception | None = None
        self.rollback = self
        with owner.paused():
            self.kept = undo.Rollback()
        """What arrays and generators from outside were before the run."""
        self.streams = ArrayStreams(self)
        self.places = Places(self, depth=9)
        self._latest: Node | None = None
        self._thread = threading.get_ident()
        self._memory: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        guest("numpy")  # which lets frames of NumPy's be hidden

    # ---- what the recorder of torch's calls does -----------------------------------------------------------------

    def paused(self) -> Paused:
        """What happens inside is one recorded call, and is not recorded again."""
        return self.owner.paused()

    def create_node(self, *args: Any, **kwargs: Any) -> Node:
        self._latest = node = self.owner.create_node(*args, **kwargs)
        return node  # type: ignore[no-any-return]

    def resolve(self, place: Any) -> Node:
        """The node itself, made now if it was pending."""
        node: Node = self.owner.resolve(place)
        return node

    def guard(self, place: Any, answer: Any, why: str = "") -> None:
        """Note that the program relied on a value."""
        self.owner.guard(place, answer, why)

    def truth(self, place: Any, answer: bool, is_data: bool, is_fixed: bool = False) -> bool:
        """The program asks whether a value is true."""
        if self.open and is_decided(self.owner, place):
            return answer
        return bool(self.owner.truth(place, answer, is_data, is_fixed))

    def note_failure(self, error: Exception, call: Any = None, args: tuple[Any, ...] = (), kwargs: Any = None) -> None:
        """A call has failed."""
        self.owner.note_failure(error, call, args, kwargs)

    def check_opaque(self, target: Any, why: str) -> None:
        """A call is about to be kept whose inside the graph does not hold."""
        self.owner.check_opaque(target, why)

    def concrete(self, value: Any) -> Any:
        """The value with plain arrays and numbers in the place of proxies."""
        return self.owner.concrete(value)

    def argument(self, value: Any) -> Any:
        """What a node holds for a value; an array that nobody follows is refused."""
        return self.owner.argument(value)

    # ---- values --------------------------------------------------------------------------------------------------

    def class_for(self, value: Any) -> Any:
        """The class of the proxy of a number that torch takes too."""
        return class_for(value)

    def follows(self, value: Any) -> bool:
        """Whether a call on this value is recorded: also on tensors and on torch's numbers."""
        return issubclass(type(value), Scalar) or isinstance(value, torch.Tensor)

    def takes(self, value: Any) -> bool:
        """Whether a call may be given a value: a tensor, which NumPy makes an array of."""
        return isinstance(value, torch.Tensor)

    def looks_into(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a function of another package is entered: if its use of NumPy is followed, or it works on tensors."""
        packages = self.owner.numpy_use.packages
        if packages is not None and package_of(function) in packages.names:
            return True
        given = list(leaves((args, kwargs)))
        return any(isinstance(leaf, torch.Tensor) for leaf in given) and not any(map(is_traced, given))

    def result(self, value: Any, place: Any) -> Any:
        """The result of a call: tensors, and numbers of Python's, are those of torch's captures."""
        if type(value) in (bool, int, float, torch.Size) or isinstance(value, torch.Tensor):
            return self.owner.result(value, place)
        check_followed(value)
        return super().result(value, place)

    def forced(self, function: Callable[..., Any], traced: Any) -> Any:
        """Python wants a plain number: in a package its builtins may keep the number traced, if they are replaced.

        torch asks an index for its length, to walk it if it is a short list; what has none it takes as it is.
        """
        if function is len and _is_indexing(sys._getframe(2)):
            raise TypeError("an array that is an index is no list of indices")
        if self.open and self.owner.running and self.owner.numpy_use.packages is not None:
            self.owner.numpy_use.packages.check_number(sys._getframe(2), is_numpy=True)
        return super().forced(function, traced)

    def can_operate(self, traced: Any, other: Any) -> bool:
        """Whether an operator between a proxy and this is NumPy's business."""
        return self.follows(other) or super().can_operate(traced, other)

    def _settled(self, nest: Any) -> Any:
        """Flags decide what a call gives, so a traced one is relied on."""
        if isinstance(nest, dict):
            return {key: bool(value) if type(value) is TracedBool else value for key, value in nest.items()}
        return tuple(bool(value) if type(value) is TracedBool else value for value in nest)

    # ---- calls ---------------------------------------------------------------------------------------------------

    def ufunc(self, ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a ufunc; NumPy hands its own numbers over as arrays that it has just made of them."""
        inputs = tuple([self._number(value) for value in inputs])
        return super().ufunc(ufunc, method, inputs, kwargs)

    def _number(self, value: Any) -> Any:
        is_made = type(value) is numpy.ndarray and value.ndim == 0 and not self.surroundings.holds(value)
        return value[()] if is_made and id(value) not in self.proxies else value

    def record(self, op: str, target: Any, args: Any, kwargs: Any, written: Any = (), form: Any = None) -> Any:
        tensors = [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if tensors and self.open:
            self._are_given(tensors)
        written = [*written]
        value = super().record(op, target, args, kwargs, written, form)
        if written and self.open and self._latest is not None and effect_of(self._latest) is Effect.NONE:
            raise cannot_follow(f"the method {target}, which torch takes for another one,")
        return value

    def _given_back(self, value: Any, node: Node, args: tuple[Any, ...], written: list[Any]) -> Any:
        if isinstance(value, torch.Tensor):
            return self.owner.settle(node, value, tuple(leaf for leaf in leaves(args) if leaf is value))
        return super()._given_back(value, node, args, written)

    def _are_given(self, tensors: Iterable[Any]) -> None:
        """NumPy makes arrays of tensors, so what these are decides what comes out."""
        if self.owner.bodies.is_in_function or any(type(tensor) not in _PLAIN_TENSORS for tensor in tensors):
            raise cannot_follow("an array that is made of a tensor here")
        if not all(is_decided(self.owner, self.owner.node_of(tensor)) for tensor in tensors):
            for fact in _FACTS:
                self.owner.rely(fact)

    def whole(self, target: Any, args: Any, kwargs: Any, opaque: str, run: Callable[..., Any] | None = None) -> Any:
        """A call that stays one node, whatever is inside; it may write to any array or tensor that it is given."""
        self.check_used()
        written = [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        with self.streams.followed():
            return self.owner.whole("call_function", target, run or target, args, kwargs, written, opaque, target)

    # ---- memory --------------------------------------------------------------------------------------------------

    def watch(self, array: Any) -> None:
        """Remember an array that the program did not make."""
        self.kept.watch(array)

    def watch_stream(self, stream: Any) -> None:
        """Remember where a generator of random numbers stands."""
        self.kept.watch_stream(stream)

    def save(self, array: Any) -> None:
        """An array is about to be written to: what its memory holds is kept, and no longer a constant."""
        self.kept.save(array)
        for tensor in self.owner.rollback.watched():
            if overlap(array, tensor):
                self.owner.rollback.save(tensor)
        self.owner.caches.check_written(array, overlap)
        self._spoil(array)

    def comparing(self) -> AbstractContextManager[None]:
        """Keep copies of what is written to inside, by whatever means."""
        return self.kept.comparing()

    def before_write(self, tensor: torch.Tensor) -> None:
        """A tensor is about to be written to: the same for arrays that share its memory."""
        array = bytes_of(tensor)
        if array is not None:
            self._check_unlisted(array)
            self.kept.save(array)
            self._spoil(array)

    def will_write(self, nest: Any) -> None:
        """A call that nobody looks into may write to these arrays."""
        for leaf in leaves(nest):
            if type(leaf) is TracedArray:
                self._check_unlisted(leaf.plain)
                self.save(leaf.plain)
                self.folding.spoil(self.resolve(leaf.place))

    def _spoil(self, array: Any) -> None:
        """What lies in memory that is written to is not the same at each call."""
        for node in [node for node, value in self.folding.values.items() if overlap(array, value)]:
            self.folding.spoil(node)

    # ---- the border ----------------------------------------------------------------------------------------------

    def taken(self, tensor: Any, kwargs: dict[str, Any]) -> Any:
        """``tensor.numpy()``."""
        self._are_given([tensor])
        nodes = (self.owner.argument(tensor),), self.owner.argument(kwargs)
        value = self._across(torch.Tensor.numpy, "numpy", ((tensor,), kwargs), nodes)
        node = self.owner.create_node("call_method", "numpy", *nodes, is_result=True, name="array")
        return self._crossed(value, node)

    def given(self, function: Any, array: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A tensor that is made of an array."""
        nodes = self.owner.argument((array, *args)), self.owner.argument(kwargs)
        value = self._across(function, function, ((array, *args), kwargs), nodes)
        return self._crossed(value, self.owner.create(function, *nodes, is_result=True))

    def _across(self, function: Any, target: Any, given: Any, nodes: Any) -> Any:
        """Make a call that leads from one framework to the other; one that fails is made again by the graph."""
        args, kwargs = self.concrete(given)
        try:
            with self.paused():
                return function(*args, **kwargs)
        except Exception as error:
            self.note_failure(error, target, *nodes)
            raise

    def _crossed(self, value: Any, node: Node) -> Any:
        if not self.bodies.open and self.folding.is_constant(node):
            with self.paused():
                self.owner.fold_later(node, value)
        return self.result(value, node)

    # ---- how a run ends ------------------------------------------------------------------------------------------

    def has_raised(self, error: Exception) -> bool:
        """Whether a call on plain values has raised an error, which the program itself would have raised."""
        return not isinstance(error, ClewError) and any(error is one for one in (self.raised, self.owner.raised))

    def check(self) -> None:
        """Raise if the program did something to arrays that no node of the graph does again."""
        self.kept.check_unseen()
        self.cached.check()

    def put_back(self) -> None:
        """Let arrays, generators and settings be as they were."""
        self.kept.put_back()


def install(patches: Patches, current: Current) -> None:
    """Let the functions that make tensors of arrays report to the capture that ``current`` names."""
    for name in _AWAY:
        patches.in_dict(vars(numpy), name, noted(functools.partial(_leading_away, current=current)))
    for name in _BACK:
        patches.in_dict(vars(torch), name, noted(functools.partial(_leading_back, current=current)))


@functools.cache
def _leading_away(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None or not recorder.numpy_use.follows_arrays or not args:
            return original(*args, **kwargs)
        if original in _SAME and len(args) == 1 and not kwargs and type(args[0]) is TracedArray:
            return args[0]
        is_here = recorder.arrays is not None or isinstance(args[0], torch.Tensor)
        return recorder.border().site(original, args, kwargs) if is_here else original(*args, **kwargs)

    make.__clew_original__ = original  # type: ignore[attr-defined]
    return make


@functools.cache
def _leading_back(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        recorder = current() if args and isinstance(args[0], (numpy.ndarray, numpy.generic)) else None
        if recorder is None or not recorder.numpy_use.follows_arrays or isinstance(args[0], TracedPython):
            return original(*args, **kwargs)
        if is_traced(args[0]) and args[0].recorder.owner is not recorder:
            return original(*args, **kwargs)
        return recorder.border().given(original, args[0], args[1:], kwargs)

    return make


# ---- what is replaced in NumPy ---------------------------------------------------------------------------------------
#
# Programs that use torch and NumPy: what is replaced for the time of a capture besides what every capture replaces.
# Only where the program names NumPy, or a value of NumPy's has come in, its functions are led to the recorder of
# arrays: those that make arrays, that draw random numbers, and all calls of NumPy in the program's own code. Builtins
# keep numbers of both traced. Arrays around the program are proxies for the time of the run.


CurrentArrays: TypeAlias = Callable[[], ArrayRecorder | None]


def reaches_numpy(functions: Iterable[FunctionType]) -> bool:
    """Whether some of the user's functions name NumPy, something of it, or ``x.numpy()``."""
    return any(_names_numpy(function) for function in functions if not is_installed(function.__code__))


def _names_numpy(function: FunctionType) -> bool:
    if "numpy" in attribute_names(function.__code__):
        return True
    named = [function.__globals__.get(name) for name in global_names(function.__code__)]
    held = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    return any(map(_is_of_numpy, [*named, *held, *(function.__defaults__ or ())]))


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _is_of_numpy(value: Any) -> bool:
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return isinstance(value, OF_NUMPY) or str(home).partition(".")[0] == "numpy"


def install_in(patches: Patches, current: CurrentArrays, of_torch: Current, functions: list[FunctionType]) -> None:
    """Let NumPy report to the recorder of arrays that ``current`` names, if one is recording, whose owner is the one
    that ``of_torch`` names."""
    functions = [*functions, *opaque_calls.functions()]
    constructors.install(patches, current, functions)

    def streams() -> random_streams.NumpyStreams | None:
        recorder = current()
        return None if recorder is None else recorder.streams

    random_streams.install(patches, streams, random_streams.NumpyStreams, functions)
    call_sites.install(patches, current, functions, _substitutes(of_torch))


def enter_arrays(run: Run, parts: Iterable[Any]) -> None:
    """Put proxies in the place of arrays around a program that uses NumPy too; ``parts`` are its modules and the
    objects behind it. All that is held there, however deep, must be found."""
    recorder, around = run.recorder, run.surroundings
    ends = [*run.state.memory.ends.values(), *(stream for _, stream in run.state.streams)]
    held = [value for value in ends if isinstance(value, ARRAYS) and recorder.is_array(value)]
    if not held and recorder.arrays is None:
        return
    variables = [Variable(holder, name) for holder, name in around.everything()]
    kinds = [kind for kind in around.classes() if around.may_vary(kind)]
    variables += [Variable(kind, name) for kind in kinds for name in vars(kind) if not name.startswith("__")]
    spaces = [_attributes_of(part) for part in parts]
    variables += [Variable(names, name) for names in spaces for name in list(names) if name not in OWN]
    variables += run.findings.packages.variables()
    arrays = recorder.border()
    arrays.places.enter(variables, around.functions, ())
    if any(id(value) not in arrays.proxies for value in held):
        raise cannot_follow("an array in a deque or a set around the program")


def _attributes_of(part: Any) -> dict[str, Any]:
    """The attributes of a module, past the watch on what is read, or of any other object."""
    is_module = isinstance(part, torch.nn.Module)
    found: dict[str, Any] = object.__getattribute__(part, "__dict__") if is_module else getattr(part, "__dict__", {})
    return found


@functools.cache
def _substitutes(current: Current) -> dict[str, Callable[..., Any]]:
    """What stands for each builtin in the program's functions."""
    ours = builtins_for(current)
    names = [name for name in BUILTINS if name != "type"]  # which answers for all proxies by other means
    return {name: _either(vars(builtins)[name], BUILTINS[name], ours.get(name)) for name in names}


def _either(plain: Any, of_numpy: Callable[..., Any], of_torch: Any) -> Callable[..., Any]:
    """A builtin that keeps numbers of both traced."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if of_torch is not None and sys._getframe(1).f_code.co_name in FOR_PYTHON:
            return plain(*args, **kwargs)
        if any(map(is_traced, args)) or of_torch is None:
            return of_numpy(*args, **kwargs)
        return of_torch(*args, **kwargs)

    return call
