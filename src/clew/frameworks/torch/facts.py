"""Dtypes and devices that remember where they were read: ``x.dtype``, ``x.device``, and what follows from them.

A captured program gets a proxy for each, which torch takes in the place of a dtype or device and hands to the
recorder; there it becomes the node that reads the fact, so the graph follows the dtype and device of what it is given.
Wherever Python wants the plain value (a comparison, a hash, a text) that is guarded, and nothing else is. ``is`` cannot
be seen: a program whose code may compare dtypes so gets plain ones, each guarded where it is read.
"""

from __future__ import annotations

import dis
import functools
import itertools
import operator
import sys
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from clew.capture.bytecode.instructions import instructions_of
from clew.capture.bytecode.try_blocks import ARITHMETIC
from clew.capture.patches import Patches
from clew.capture.python.imported_names import noted
from clew.capture.recording.recorder import Pending, Scalar
from clew.capture.state.reachable import compares_objects
from clew.frameworks.torch.scalars import text_of_value, traced
from clew.ir.arguments import all_nodes, bodies_of, leaves
from clew.ir.effects import pure
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.source import is_installed

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

Current: TypeAlias = "Callable[[], TorchRecorder | None]"


def fact(value: Any, place: Node | Pending, recorder: TorchRecorder) -> Any:
    """What the program gets for a dtype, device, layout or text that a node gives: a proxy if there is one for its
    class. What follows from literals alone is the same at each call, and is given as it is."""
    if isinstance(place, Node) and not place._inputs:
        return value
    kind = KINDS.get(type(value))
    if kind is None or recorder.fact_proxies.are_plain:
        recorder.guard(place, value)
        return value
    recorder.fact_proxies.were_given = True
    return kind(value, place, recorder)


class Fact(Scalar):
    """A proxy of a plain value: ``plain`` is its value in the example."""

    recorder: TorchRecorder
    spoofed: type
    __class__ = property(lambda self: self.spoofed)  # type: ignore[assignment, misc]

    def __init__(self, plain: Any, place: Node | Pending, recorder: TorchRecorder) -> None:
        self.plain, self.place, self.recorder = plain, place, recorder

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """torch got one past the capture: it takes the plain value, which is relied on."""
        args, kwargs = _relied((args, kwargs or {}))
        return func(*args, **kwargs)

    def force(self) -> Any:
        """The plain value, on which the program relies from now on."""
        self.recorder.guard(self.place, self.plain)
        return self.plain

    def __eq__(self, other: object) -> Any:
        return _compared(operator.eq, self, other)

    def __ne__(self, other: object) -> Any:
        return _compared(operator.ne, self, other)

    def __hash__(self) -> int:
        if self.recorder.running:
            self.recorder.caches.before_hash(sys._getframe(1))
        return hash(self.plain if self.recorder.finishing else self.force())

    def __repr__(self) -> str:
        return text_of_value(self, "{!r}") or repr(self.plain)

    def __str__(self) -> str:
        return text_of_value(self, "{}") or str(self.plain)

    def __format__(self, spec: str) -> str:
        return text_of_value(self, f"{{:{spec}}}") or format(self.plain, spec)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _itself, (self.force(),)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        """An attribute is a node of its own; what is no number, dtype, device or text is relied on."""
        if name in ("plain", "place", "recorder") or name.startswith("__"):
            raise AttributeError(name)
        value, recorder = getattr(self.plain, name), self.recorder
        if callable(value):
            return functools.partial(_call_method, self, name)
        if not recorder.open:
            return value
        return _of(recorder, value, recorder.resolve(Pending(getattr, (self.place, name))))


class TracedDtype(Fact):
    """A proxy of a dtype."""

    spoofed = torch.dtype


class TracedDevice(Fact):
    """A proxy of a device."""

    spoofed = torch.device


class TracedLimits(Fact):
    """A proxy of what ``torch.finfo`` or ``torch.iinfo`` gives."""

    spoofed = property(lambda self: type(self.plain))  # type: ignore[assignment]


class TracedText(Fact):
    """A proxy of a text that follows from a fact: the type of a device, the name of a legacy type."""

    spoofed = str

    def __contains__(self, part: Any) -> bool:
        return bool(_computed(self.recorder, operator.contains, self, part))

    def __len__(self) -> int:
        return len(self.force())

    def __bool__(self) -> bool:
        return bool(self.plain)  # none of them is empty

    def __iter__(self) -> Any:
        return iter(self.force())

    def __getitem__(self, index: Any) -> Any:
        return self.force()[index]

    def __add__(self, other: Any) -> Any:
        return self.force() + other

    def __radd__(self, other: Any) -> Any:
        return other + self.force()


KINDS: dict[type, type[Fact]] = {
    torch.dtype: TracedDtype,
    torch.device: TracedDevice,
    torch.finfo: TracedLimits,
    torch.iinfo: TracedLimits,
    str: TracedText,
}
"""The class of proxies for the values of each class."""


def _itself(value: Any) -> Any:
    return value


def _relied(value: Any) -> Any:
    """The same arguments with plain values, on which the program relies."""
    found = [leaf for leaf in leaves(value) if issubclass(type(leaf), Fact)]
    for leaf in found:
        leaf.force()
    return found[0].recorder.concrete(value) if found else value


def _of(recorder: TorchRecorder, value: Any, place: Node) -> Any:
    """What the program gets for a part of a fact."""
    if type(value) in (bool, int, float):
        return traced(value, place, recorder)
    return fact(value, place, recorder)


def _call_method(owner: Fact, name: str, *args: Any, **kwargs: Any) -> Any:
    """A method of a dtype, device or text: recorded if its result can be followed, else the owner is relied on."""
    recorder = owner.recorder
    value = getattr(owner.plain, name)(*recorder.concrete(args), **recorder.concrete(kwargs))
    if not recorder.open or (type(value) is not bool and type(value) not in KINDS):
        owner.force()
        return value
    given = (recorder.resolve(owner.place), *recorder.argument(args))
    return _of(recorder, value, recorder.create_node("call_method", name, given, recorder.argument(kwargs)))


def _compared(function: Callable[[Any, Any], Any], one: Fact, other: Any) -> Any:
    """Whether two facts are equal: a number of the graph, guarded where it is asked for its truth."""
    plain = other.plain if issubclass(type(other), Fact) else other
    if type(plain) is not type(one.plain):
        return function(one.plain, plain)
    return _computed(one.recorder, function, one, other)


def _computed(recorder: TorchRecorder, function: Callable[..., Any], *values: Any) -> Any:
    result = function(*recorder.concrete(values))
    if not recorder.open:
        return result
    return traced(result, recorder.create(function, recorder.argument(values), errors=ARITHMETIC), recorder)


# ---- what the program asks of a tensor -------------------------------------------------------------------------------


def read(recorder: TorchRecorder, tensor: Any, name: str, func: Any) -> Any:
    """A property of a tensor that programs branch on: read by a node, and guarded if the program relies on it."""
    return recorder.once(tensor, name, lambda place: _of(recorder, func(tensor), recorder.resolve(place)))


@pure
def number_kind(tensor: torch.Tensor) -> type:
    """Of which class the numbers in a tensor are when they leave it."""
    if tensor.dtype is torch.bool:
        return bool
    return complex if tensor.is_complex() else float if tensor.is_floating_point() else int


def kind_of_item(value: Any) -> Any:
    """What the items of a list have in common that is joined whatever its length; None for no plain tensor."""
    if type(value) is not torch.Tensor:
        return None
    return value.dtype, value.device, value.dim(), value.requires_grad, value.layout


@pure
def are_alike(values: list[Any], kind: Any) -> bool:
    """Whether all items of a list are tensors of a kind."""
    return all(kind_of_item(value) == kind for value in values)


@pure
def is_mask(tensor: torch.Tensor) -> bool:
    """Whether a tensor chooses items where it is true, when it is an index; others hold the places of items."""
    return tensor.dtype in (torch.bool, torch.uint8)


_BOOLS = frozenset("lt le gt ge eq ne isnan isinf isfinite isin logical_and logical_or logical_not logical_xor".split())
_PLACES = frozenset("long int argmax argmin argsort nonzero arange searchsorted bucketize multinomial".split())


def used_as_indices(graph: Graph) -> set[Node]:
    """The nodes of a graph, and of those inside it, that tensors used as indices may have their dtype from."""
    nodes = list(all_nodes(graph))
    around = {id(body): node for node in nodes for body in bodies_of(node)}
    waiting = [one for node in nodes if node.target in _INDEXING for one in leaves(node.args[1])]
    found: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, Node) and node not in found and _name_of(node) not in _BOOLS | _PLACES:
            found.add(node)
            is_given = node.op == "placeholder" and id(node.graph) in around
            waiting += (around[id(node.graph)] if is_given else node).all_input_nodes
    return found


_INDEXING = (operator.getitem, operator.setitem)


def _name_of(node: Node) -> str:
    return str(node.target if node.op == "call_method" else getattr(node.target, "__name__", ""))


# ---- limits of dtypes ------------------------------------------------------------------------------------------------


def install(patches: Patches, current: Current) -> None:
    """Let ``torch.finfo`` and ``torch.iinfo`` take dtypes of the capture that ``current`` names, if there is one."""
    for name in ("finfo", "iinfo"):
        patches.in_dict(vars(torch), name, noted(lambda original: _limits_class(original, current)))


@functools.lru_cache(maxsize=4)
def _limits_class(original: Any, current: Current) -> Any:
    """The replacement of ``torch.finfo``: recorded for a dtype that was read, and the class otherwise."""

    class Standing(type):
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, original)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            given = [value for value in (*args, *kwargs.values()) if issubclass(type(value), TracedDtype)]
            recorder = current() if given else None
            if recorder is None or given[0].recorder is not recorder:
                return original(*_relied(args), **_relied(kwargs))
            nodes = recorder.argument(args), recorder.argument(kwargs)
            try:
                value = original(*recorder.concrete(args), **recorder.concrete(kwargs))
            except Exception as error:
                recorder.note_failure(error, original, *nodes)
                raise
            return fact(value, recorder.create(original, *nodes), recorder)

    held = {"__module__": "torch", "__doc__": original.__doc__, "__wrapped__": original}
    return Standing(original.__name__, (), held)


# ---- comparisons that nobody sees ------------------------------------------------------------------------------------

_DTYPES = frozenset(name for name, value in vars(torch).items() if isinstance(value, torch.dtype)) | {"dtype"}
_IS = "IS_OP"
_NEAR = 3
_LIBRARY = (sysconfig.get_path("stdlib"), str(Path(__file__).parents[2]), "<clew ")
"""How the names of files begin whose functions are Python's or Clew's own, or were generated."""


def may_compare_unseen(codes: Iterable[CodeType]) -> bool:
    """Whether some functions may ask if a dtype ``is`` another one. The program's own may do so wherever they compare
    objects; those of installed packages are judged by what the names before the question tell."""
    return any(_compares_dtypes(one) if _is_of_library(one) else compares_objects(one) for one in codes)


def _is_of_library(code: CodeType) -> bool:
    return is_installed(code) or code.co_filename.startswith(_LIBRARY)


@functools.lru_cache(maxsize=16384)
def _compares_dtypes(code: CodeType) -> bool:
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return _names_dtypes_before_is(code) or any(map(_compares_dtypes, inner))


def _names_dtypes_before_is(code: CodeType) -> bool:
    if dis.opmap[_IS] not in code.co_code[::2]:
        return False
    steps = [step for step in instructions_of(code) if step.opname not in ("COPY", "SWAP")]
    stored = {
        step.argval
        for before, step in itertools.pairwise(steps)
        if step.opname.startswith("STORE") and before.argval in _DTYPES
    }
    asked = [place for place, step in enumerate(steps) if step.opname == _IS]
    asked = [place for place in asked if steps[place - 1].opname != "LOAD_CONST"]  # which is None, most often
    named = [before.argval for place in asked for before in steps[max(place - _NEAR, 0) : place]]
    return any(name in _DTYPES or name in stored or "dtype" in str(name) for name in named)
