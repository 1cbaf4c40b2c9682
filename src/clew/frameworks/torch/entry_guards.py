"""The guards at the entrance of a captured torch program: checked before the graph does anything.

What the program asked of tensors is checked on the inputs it follows from: dtype, device, rank, layout, gradient. What
it took from around itself must still be so: variables, modules and their mode.
"""

from __future__ import annotations

import operator
import traceback
from collections.abc import Callable, Collection, Iterable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy
import torch

from clew.capture.guards import notes
from clew.capture.guards.notes import expression_of
from clew.capture.guards.variables import NEVER, GuardsOfRun
from clew.capture.recording.alternatives import Choice, Kind
from clew.capture.recording.inputs import ExampleInputs
from clew.capture.state.containers import is_of_library
from clew.capture.state.reachable import compares_objects
from clew.codegen.guards import by_equality
from clew.errors import CaptureError
from clew.frameworks.numpy.entry_guards import array_guards
from clew.frameworks.torch.calls.tensor_attributes import Carrier, attributes_on, described
from clew.frameworks.torch.facts import is_mask, number_kind, used_as_indices
from clew.frameworks.torch.modules.optimizers import settings_of
from clew.frameworks.torch.modules.state import OWN, ClosedOver, ModulesAround, all_places, are_as_they_were, tensors_in
from clew.frameworks.torch.modules.training_mode import asked_for_mode
from clew.frameworks.torch.recorder import TorchRecorder
from clew.frameworks.torch.scalars import MODE, traced
from clew.ir.arguments import leaves
from clew.ir.effects import pure
from clew.ir.node import Node
from clew.ir.source import is_installed

PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)
"""Classes whose instances carry attributes only if a user put them there."""

by_equality.add(torch.device)


def is_plain_tensor(value: Any) -> bool:
    """Whether a value is a tensor of torch's own classes."""
    return type(value) in PLAIN_TENSORS


@pure
def is_of(value: Any, kind: type) -> bool:
    """Whether a value is of a class of plain numbers."""
    return type(value) is kind


@pure
def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of torch's own class."""
    return type(value) is torch.Tensor


_GUESSES: tuple[Callable[[list[torch.Tensor]], tuple[Any, torch.dtype]], ...] = (
    lambda tensors: (tensors[0].shape, tensors[0].dtype),
    lambda tensors: (tensors[0].shape[:1], torch.int64),
    lambda tensors: (tensors[0].shape[-1:], tensors[0].dtype),
    lambda tensors: (tensors[-1].shape, tensors[-1].dtype),
)
"""Shapes and dtypes of a tensor that a program might take besides those that it is given."""


class TorchInputs(ExampleInputs):
    """What enters a capture. Arguments may be one text or another, None, a number or a tensor."""

    recorder: TorchRecorder

    def __init__(self, recorder: TorchRecorder, static: frozenset[str], opens_lists: bool = False) -> None:
        super().__init__(recorder, lambda value, place: traced(value, place, recorder), static)
        self.opens_lists = opens_lists
        """Whether lists may be of any length."""
        self.kinds_in_lists: list[Any] = []
        """Of which kind the items of each such list are, as they came in."""
        self.examples: list[Any] = []
        """The arguments of the example where another may be None or not, for guesses what tensors may be like."""
        self.kinds_chosen: dict[int, Any] = {}
        """Of which kind the tensors are that may be of another one, by their identity."""

    def kind_in_list(self, value: Any) -> Any:
        """Of which kind an item of a list is; None for what a list of any length may not hold."""
        return item_kind(value) if self.opens_lists else None

    def opened(self, value: Any, place: Any) -> Any:
        """The proxy of what may have any length."""
        self.kinds_in_lists.append(item_kind(value[0]))
        return super().opened(value, place)

    def watch_items(self, values: list[Any]) -> None:
        """Let tensors that lists of any length hold be put back after the run."""
        for tensor in [leaf for leaf in leaves(values) if isinstance(leaf, torch.Tensor)]:
            self.recorder.rollback.watch_attributes(tensor)
            self.recorder.rollback.watch_tensor(tensor)

    def number_kind(self, value: Any = 1.0) -> Kind:
        """A number of the class of ``value``."""
        return Kind("number", is_of, (type(value),), value)

    def array_kind(self, name: str, tries: int) -> Kind | None:
        """A tensor that might do for an argument of this name."""
        examples = [one for one in self.examples if type(one) is torch.Tensor]
        if not examples or tries >= len(_GUESSES):
            return None
        shape, dtype = _GUESSES[tries](examples)
        return Kind("array", is_tensor, (), torch.ones(shape, dtype=torch.bool if "mask" in name else dtype))

    def own_array_kind(self, value: Any) -> Kind | None:
        """The kind of a tensor that the example gives."""
        is_plain = type(value) is torch.Tensor and not vars(value)
        return Kind("array", is_tensor, (), value) if is_plain and self.examples else None

    def kind_left(self, value: Any) -> Kind | None:
        """The kind of what a run has left where nothing was, with a value to run with; None if it is not followed."""
        plain = self.recorder.concrete(value)
        if type(plain) in (int, float):
            return None if self.is_plain(type(plain)) else self.number_kind(plain)
        if type(value) is not torch.Tensor or vars(value):
            return None
        with torch._C.DisableTorchFunction(), torch.no_grad():
            return Kind("array", is_tensor, (), value.detach().clone().requires_grad_(value.requires_grad))

    def entered(self, value: Any, place: Any) -> Any:
        """The proxy of a number or a tensor."""
        if not isinstance(value, torch.Tensor):
            return self.wrap_number(value, place)
        self.kinds_chosen[id(value)] = item_kind(value)
        self.watch_items([value])
        return self.recorder.enter(value, place)

    def chosen(self) -> list[Choice]:
        """The tensors that may be of another kind, which have guards of their own."""
        made = [] if self.choices is None else self.choices.made
        return [one for one in made if one.marker is not None and id(one.chosen.value) in self.kinds_chosen]


def _is_module(value: Any) -> bool:
    return isinstance(value, torch.nn.Module)


_FACTS = {
    "dtype": "dtype",
    "device": "device",
    "rank": "ndim",
    "requires_grad": "requires_grad",
    "layout": "layout",
    "is_leaf": "is_leaf",
}
_OF_ITEMS: dict[str, Callable[[torch.Tensor], Any]] = {
    **{fact: operator.attrgetter(name) for fact, name in _FACTS.items()},
    "number_kind": number_kind,
    "mask": is_mask,
}
"""What a program may rely on of the tensors in a list of any length."""


def item_kind(value: Any, facts: Collection[str] = _OF_ITEMS) -> Any:
    """Of which kind an item of a list is, told by these facts; None for what a list of any length may not hold."""
    if type(value) is torch.Tensor:
        return None if vars(value) else ("Tensor", *((fact, _OF_ITEMS[fact](value)) for fact in facts))
    if type(value) is tuple:
        kinds = tuple([item_kind(one, facts) for one in value])
        return None if None in kinds else ("tuple", *kinds)
    return (type(value).__name__,) if type(value) in (int, float) else None


def _told_by(kind: tuple[Any, ...], facts: Collection[str]) -> tuple[Any, ...]:
    """A kind, told by fewer facts."""
    name, *parts = kind
    if name == "tuple":
        return name, *(_told_by(part, facts) for part in parts)
    return name, *(part for part in parts if part[0] in facts)


def _text_of(kind: tuple[Any, ...]) -> str:
    """A kind as people read it."""
    name, *parts = kind
    if name == "tuple":
        return f"({', '.join(map(_text_of, parts))})"
    facts = [f"{part[0]} {part[1]}" for part in parts]
    return f"{name} ({', '.join(facts)})" if facts else str(name)


@pure
def items_are(values: Any, kind: Any, facts: tuple[str, ...]) -> bool:
    """Whether all items of a list are of a kind that these facts tell."""
    return all(item_kind(value, facts) == kind for value in values)


@pure
def attribute_at(owner: Any, path: str) -> Any:
    """The attribute of an object at a dotted path, as it is now."""
    return operator.attrgetter(path)(owner)


@pure
def defaults() -> tuple[Any, ...]:
    """What a call of torch with constant arguments hangs on besides them."""
    return torch.get_default_dtype(), torch.get_default_device(), torch.is_autocast_enabled()


@pure
def same_items(array: Any, other: Any) -> bool:
    """Whether two arrays are alike in dtype, shape and all bytes."""
    alike = (array.dtype, array.shape) == (other.dtype, other.shape)
    return bool(alike and array.tobytes() == other.tobytes())


@pure
def carried(tensor: torch.Tensor, *names: str) -> tuple[tuple[str, str, Any], ...]:
    """The attributes of these names, or all, that a tensor carries, such as the marks of ``torch.nn.Buffer``: name,
    type and value of each; torch's compiler, which has no tensor yet, reads on as if it had none."""
    held = {} if torch.compiler.is_dynamo_compiling() else vars(tensor)
    return _in_order({name: held[name] for name in names if name in held} if names else held)


def _in_order(attributes: dict[str, Any]) -> tuple[tuple[str, str, Any], ...]:
    return tuple((name, type(value).__name__, value) for name, value in sorted(attributes.items()))


def _attributes_text(of: str, names: list[str] | None, held: dict[str, Any]) -> str:
    """What is asked of the attributes of these names that a tensor carries, as people read it."""
    if names is None:
        return f"the attributes of {of} are unchanged"
    return " and ".join(
        f"{of}.{name} == {held[name]!r}" if name in held else f"not hasattr({of}, {name!r})" for name in names
    )


FUNCTIONS = (FunctionType, BuiltinFunctionType)
_WHOLE = frozenset({"vars", "__dict__"})
_BY_TEXT = frozenset({"getattr", "hasattr", "attrgetter"})
_COMPARED = (bool, int, str, type(None))
"""What a tensor may carry as attributes that the program asks for: values that a guard can compare."""
_code = operator.attrgetter("__code__")


class EntryGuards(GuardsOfRun[TorchRecorder]):
    """Writes the entry guards of one capture into its graph; ``module`` is the one that was captured, if it was one."""

    inputs: TorchInputs
    module: Any = None
    _asking: tuple[bool, bool, set[str]] | None = None

    def write(self, after: Node, entered: Iterable[tuple[str, torch.nn.Module]] = ()) -> None:
        """Put all guards right after the node ``after``, the last of those that take the arguments apart.

        ``entered`` are the parts of the module whose inside is recorded, by their paths.
        """
        with self.graph.inserting_before(after._next):
            self._inputs()
            if self.inputs.lists:
                self._lists()
            self._gradients()
            ran = self.surroundings.ran(self.recorder.code.executed.values())
            names = self.surroundings.names(self.recorder.code.executed.values())
            if self.watches_variables:
                self.variables.write(self.recorder.code.executed.values())
                self._classes(ran, names, lambda value: isinstance(value, numpy.ndarray))
                self._owners(names)
                self.recorder.code.outside_reads.write(self.graph)
            self._modules_around(names)
            self._trainers(names)
            self._carried_around()
            self._same_objects(one for one in self.inputs.arrays if not isinstance(one[0], numpy.generic))
            comparing = [function.__code__ for function in ran if compares_objects(function.__code__)]
            if self.recorder.relied.hashed or comparing:
                self._different_objects(self.inputs.arrays, "tensors among the arguments")
            if self.module is not None and comparing:
                is_own = not all(map(is_installed, comparing))
                self._tensors_compared(names if is_own else {name for code in comparing for name in code.co_names})
            self._parameters()
            self._arrays_of_modules()
            if self.module is not None:
                self._modes(ran, entered)

    def _modes(self, ran: Iterable[FunctionType], entered: Iterable[tuple[str, torch.nn.Module]]) -> None:
        """The parts that the program may have asked for their mode, and whose mode is no data, must be in it."""
        callers = {frame.f_code for frame, _ in traceback.walk_stack(None)}
        codes = {*self.recorder.code.executed.values()} - callers | {function.__code__ for function in ran}
        lifted = {entry.slot.key for entry in self.state.entries}
        modes = self.recorder.modes
        fixed = [(path, part) for path, part in entered if (id(vars(part)), MODE) not in lifted and not modes.has(part)]
        for path, mode in asked_for_mode(self.module, fixed, codes):
            place = f"{path}.{MODE}" if path else MODE
            self._require(self.graph.get_attr(place), mode, f"self.{place} is {mode}")

    def _require(self, node: Node, expected: Any, text: str, fact: str = "") -> None:
        """Guard a value; ``fact`` is what the program asked for: the guard names the line that asked first."""
        source = self.recorder.relied.facts.get(fact)
        place = () if source is None else (source.describe(),)
        self.graph.call_function(notes.require, (node, expected, text, *place)).source = source

    def _inputs(self) -> None:
        indices = used_as_indices(self.graph) if "rank" in self.recorder.relied.facts else set()
        for tensor, place in self.inputs.arrays:
            node = self.recorder.resolve(place)
            if not isinstance(tensor, torch.Tensor) and self.recorder.arrays is not None:
                array_guards(self.graph, tensor, node)
                continue
            text = f"type({expression_of(node)}) is {type(tensor).__name__}"
            is_plain = type(tensor) in PLAIN_TENSORS
            check = notes.require_array if is_plain else notes.require_type
            self.graph.call_function(check, (node, type(tensor), text))
            if is_plain:
                self._carried(tensor, node)
            # A class of its own, such as that of fake tensors, answers for its device without asking torch.
            relied = {*self.recorder.relied.facts, *(() if type(tensor) in PLAIN_TENSORS else ("device",))}
            before = self.recorder.rollback.undo.facts.get(id(tensor), {})
            for fact, name in _FACTS.items():
                if fact in relied:
                    self._attribute(node, name, before.get(name, getattr(tensor, name)), fact)
            if "number_kind" in relied:
                self._number_kind(node, tensor)
            if node in indices and not (tensor.is_floating_point() or tensor.is_complex()):
                text = f"{expression_of(node)}.dtype {'in' if is_mask(tensor) else 'not in'} (torch.bool, torch.uint8)"
                self._require(self.graph.call_function(is_mask, (node,)), is_mask(tensor), text, "rank")

    def _lists(self) -> None:
        """All items of a list of any length must be of the kind that they were, as far as the program relies on it."""
        facts = self._facts_of_items()
        for (_, place), kind in zip(self.inputs.lists, self.inputs.kinds_in_lists, strict=True):
            node, told = self.recorder.resolve(place), _told_by(kind, facts)
            found = self.graph.call_function(items_are, (node, told, facts))
            self._require(found, True, f"each item of {expression_of(node)} is {_text_of(told)}")

    def write_choices(self, runs: Iterable[TorchInputs]) -> None:
        """Guard what the program relies on of tensors that may be of another kind, where their kind is known."""
        found = {one.marker: (one, inputs) for inputs in runs for one in inputs.chosen()}
        facts = self._facts_of_items() if found else ()
        for marker, (one, inputs) in found.items():
            assert marker is not None
            node, told = one.node, _told_by(inputs.kinds_chosen[id(one.chosen.value)], facts)
            test: Any = marker.args[0]
            test.target, test.args = items_are, ((node,), told, facts)
            marker.args = (test, True, f"{expression_of(node)} is {_text_of(told)}")

    def _facts_of_items(self) -> tuple[str, ...]:
        """What the program relies on of tensors that are told apart by their kinds alone."""
        relied = self.recorder.relied.facts.keys() | ({"mask"} if "rank" in self.recorder.relied.facts else set())
        return tuple(fact for fact in _OF_ITEMS if fact in relied)

    def _carried(self, tensor: torch.Tensor, node: Node) -> None:
        """Attributes that others have put on a tensor matter if the program asks for them."""
        before = self.recorder.array_attributes.before(tensor)
        names = self._asked_of(before)
        if names is None or names:
            held = before if names is None else {name: before[name] for name in names if name in before}
            if any(type(value) not in _COMPARED for value in held.values()):
                raise CaptureError(f"an argument carries attributes of its own: {sorted(held)}")
            found = self.graph.call_function(carried, (node, *(names or ())))
            self._require(found, _in_order(held), _attributes_text(expression_of(node), names, held))

    def _asked_of(self, held: dict[str, Any]) -> list[str] | None:
        """Which of the attributes that a tensor carries, or might, the program asks for; None if it may be any."""
        if self._asking is None:
            codes = {
                *self.recorder.code.executed.values(),
                *map(_code, self.surroundings.ran(self.recorder.code.executed.values())),
            }
            own = [code for code in codes if not is_installed(code)]
            by_text = any(not _BY_TEXT.isdisjoint(code.co_names) for code in own)
            named = {text for code in codes for text in (*code.co_names, *code.co_consts) if isinstance(text, str)}
            self._asking = (any(not _WHOLE.isdisjoint(code.co_names) for code in own), by_text, named)
        anything, by_text, named = self._asking
        if anything:
            return None
        return sorted(self.recorder.array_attributes.asked | (held.keys() if by_text else held.keys() & named))

    def _gradients(self) -> None:
        """Whether a result requires a gradient depends on the mode as well as on the inputs."""
        fact = next((fact for fact in ("requires_grad", "is_leaf") if fact in self.recorder.relied.facts), None)
        if fact is not None:
            mode = self.recorder.relied.gradients
            asked = self.graph.call_function(torch.is_grad_enabled)
            self._require(asked, mode, f"torch.is_grad_enabled() is {mode}", fact)

    def constants(self, sources: set[str], after: Node) -> None:
        """Constants that were computed in the capture hold while what they came from is the same."""
        with self.graph.inserting_before(after._next):
            for path in sorted(sources):
                held = self.recorder.attributes.constants[path]
                (self._same_values if isinstance(held, torch.Tensor) else self._same_items)(path, held)
            self._require(self.graph.call_function(defaults), defaults(), "the defaults of torch are unchanged")

    def _same_values(self, path: str, tensor: torch.Tensor) -> None:
        """A tensor must hold what it held; its version alone does not tell of changes through ``.data`` or NumPy."""
        if not tensor.is_inference():  # those have none
            self._attribute(self.graph.get_attr(path), "_version", tensor._version)
        if not tensor.is_meta and type(tensor) in PLAIN_TENSORS:
            kept = self.recorder.attributes.add_constant(tensor.detach().clone())
            same = self.graph.call_function(torch.equal, (self.graph.get_attr(path), self.graph.get_attr(kept)))
            self._require(same, True, f"{path} holds what it held")

    def _same_items(self, path: str, array: Any) -> None:
        """An array must hold what it held."""
        if type(array) is numpy.ndarray:
            kept = self.recorder.attributes.add_constant(array.copy())
            same = self.graph.call_function(same_items, (self.graph.get_attr(path), self.graph.get_attr(kept)))
            self._require(same, True, f"{path} holds what it held")

    def _owners(self, names: frozenset[str]) -> None:
        """Attributes that the program names of the plain objects that it belongs to, tensors among them."""
        lifted = {entry.slot.key for entry in self.state.entries}
        for group in self.state._groups:
            owner, is_function = group.owner, isinstance(group.owner, FunctionType)
            if owner is None or group.is_inner or isinstance(owner, torch.nn.Module):
                continue
            if is_function and is_of_library(owner):
                continue
            asked = group.before.keys() if names & {"getattr", "__dict__"} else names & group.before.keys()
            for name in sorted(asked):
                value = group.before[name]
                if not isinstance(value, NEVER) and group.key(name) not in lifted:
                    self._variable(group.owner, name, value, f"{type(group.owner).__name__}.{name}")

    def _modules_around(self, names: frozenset[str]) -> None:
        """A program may use modules that are no parts of it: their mode, their settings, and the parameters that it
        read must still be theirs."""
        around = self.surroundings.used(_is_module, self.recorder.code.executed.values())
        hidden = [module for module in self.state.hidden_ends() if isinstance(module, torch.nn.Module)]
        if not around and not hidden:
            return
        closed = isinstance(self.module, ClosedOver)
        parts = set() if self.module is None or closed else set(self.module.modules())
        for name, module in [*around, *((type(module).__name__, module) for module in hidden)]:
            if module not in parts:
                parts.update(module.modules())
                self._module_around(name, module, names)

    def _module_around(self, name: str, module: torch.nn.Module, names: frozenset[str]) -> None:
        lifted = self._in_graph(module)
        if (id(module), MODE) not in lifted:
            mode = self.graph.call_function(getattr, (module, MODE))
            self._require(mode, module.training, f"{name}.training is {module.training}")
        same = self.graph.call_function(are_as_they_were, (ModulesAround(module, lifted, names),))
        self._require(same, True, f"the parts and settings of {name} are unchanged")
        self._parameters_of(name, module)
        for path, part in module.named_modules():
            if type(part).__module__.startswith("torch."):
                continue
            for key in sorted(names & vars(part).keys() - OWN):
                value = vars(part)[key]
                counts = not isinstance(value, (torch.Tensor, numpy.ndarray, *NEVER))
                if counts and (id(part), key) not in lifted:
                    self._variable(part, key, value, ".".join(filter(None, (name, path, key))))

    def _in_graph(self, module: torch.nn.Module) -> set[tuple[int, str]]:
        """The keys of places that the graph itself reads, or writes: those of parts by the parts."""
        found = {entry.slot.key for entry in self.state.entries}
        for part in module.modules():
            found |= {(id(part), name) for holder, name in found if holder == id(vars(part))}
            if self.recorder.modes.has(part):
                found.add((id(part), MODE))
        return found

    def _carried_around(self) -> None:
        """Tensors around the program carried attributes, or none, and a program that may ask for them has seen that."""
        for name, tensor in self.surroundings.held(is_plain_tensor):
            before = self.recorder.array_attributes.before(tensor)
            asked = self._asked_of(before)
            if asked is None or asked or vars(tensor) != before:
                node = self.graph.call_function(attributes_on, (Carrier(tensor),))
                self._require(node, described(before), f"the attributes of {name} are unchanged")

    def _trainers(self, names: frozenset[str]) -> None:
        """What the program may have read of optimizers and schedulers must still be so."""
        for trainer, settings in self.recorder.trainers.asked(names):
            text = f"the settings of the {type(trainer).__name__} are unchanged"
            self._require(self.graph.call_function(settings_of, (trainer,)), settings, text)

    def _parameters_of(self, name: str, module: torch.nn.Module) -> None:
        held = {
            id(value): f"{path}.{key}" if path else key
            for path, part in module.named_modules()
            for key, value in tensors_in(part)
        }
        for constant, value in self.recorder.attributes.constants.items():
            path = held.get(id(value))
            if path is not None:
                now = self.graph.call_function(attribute_at, (module, path))
                same = self.graph.call_function(operator.is_, (now, self.graph.get_attr(constant)))
                self._require(same, True, f"{name}.{path} is the parameter that was captured")

    def _parameters(self) -> None:
        """Where dtypes or devices were asked for, those of the module count too: one of each kind stands for all."""
        wanted = [name for name in ("dtype", "device", "number_kind") if name in self.recorder.relied.facts]
        seen: set[tuple[Any, Any]] = set()
        for path, part in all_places(self.module) if self.module is not None and wanted else ():
            for key, parameter in part._parameters.items():
                if parameter is None or (parameter.dtype, parameter.device) in seen:
                    continue
                seen.add((parameter.dtype, parameter.device))
                node = self.graph.get_attr(f"{path}.{key}" if path else key)
                for name in wanted:
                    if name == "number_kind":
                        self._number_kind(node, parameter)
                    else:
                        self._attribute(node, name, getattr(parameter, name), name)

    def _tensors_compared(self, names: Collection[str]) -> None:
        """Tensors of these names, of a module whose program compares objects, are one where they were one."""
        lifted = {entry.slot.key for entry in self.state.entries}
        found: list[tuple[Any, Any]] = []
        for path, part in all_places(self.module):
            for name, tensor in tensors_in(part) if not isinstance(self.module, ClosedOver) else ():
                if name in names and self._key(part, name) not in lifted:
                    found.append((tensor, self.graph.get_attr(f"{path}.{name}" if path else name)))
        self._same_objects(found)
        self._different_objects(found, "tensors of the module")

    @staticmethod
    def _key(part: torch.nn.Module, name: str) -> tuple[int, str]:
        """The key of the place of an attribute."""
        holders = (part._parameters, part._buffers)
        return next((id(holder) for holder in holders if name in holder), id(vars(part))), name

    def _number_kind(self, node: Node, tensor: torch.Tensor) -> None:
        """Numbers that leave a tensor must be of the class that they were of: it follows from those that went in."""
        kind = number_kind(tensor)
        text = f"the numbers in {expression_of(node)} are of class {kind.__name__}"
        self._require(self.graph.call_function(number_kind, (node,)), kind, text, "number_kind")

    def _arrays_of_modules(self) -> None:
        """Arrays that modules of the program hold, and that it used, must still be theirs."""
        used = {
            id(value): value
            for value in self.recorder.attributes.constants.values()
            if isinstance(value, numpy.ndarray)
        }
        for path, part in all_places(self.module) if used and self.module is not None else ():
            for name, value in vars(part).items():
                if name not in OWN and used.get(id(value), used) is value:
                    self._variable(part, name, value, ".".join(filter(None, (path, name))))

    def _attribute(self, node: Node, name: str, value: Any, fact: str = "") -> None:
        found = self.graph.call_function(getattr, (node, name))
        self._require(found, value, f"{expression_of(node)}.{name} == {value}", fact)
