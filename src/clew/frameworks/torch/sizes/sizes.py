"""The sizes of a torch program that is being captured, expressed by the sizes of what came in.

In comes a node whose value is a tensor; out goes its shape as expressions over symbols. A symbol is a dimension of an
input, of an attribute, or of a tensor that no shape rule knows anything about. Shapes are found when somebody asks, by
walking back over the nodes, once for each; and a size becomes a node of the graph only where it is used, once for each
expression. It is computed in the program's own graph, or in the body that holds the rest of it after a question of a
library. Tensors in the bodies of branches and loops have sizes there too, as far as these follow from what was handed
to the body; those that do not are read inside.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from clew.capture.bytecode.instructions import instructions_at, is_users_name, variables_of
from clew.capture.bytecode.try_blocks import NEVER
from clew.capture.guards.lifting import Dependence
from clew.capture.guards.notes import describe, require
from clew.capture.guards.sizes import (
    ARITHMETIC,
    COMPARISONS,
    Atom,
    Expression,
    Size,
    Symbol,
    as_symbol,
    atoms_of,
    compare,
    in_example,
    of_atom,
    product,
    symbols_of,
)
from clew.capture.recording.nested_programs import OpenBody
from clew.capture.recording.recorder import Pending, Recorder, Scalar, user_frames
from clew.frameworks.torch.sizes.rules import Call, Several, Shape, Unknown, squeezed_axes
from clew.frameworks.torch.sizes.table import answer_of
from clew.ir.arguments import all_with_bodies, leaves
from clew.ir.effects import effect_of
from clew.ir.graph import Graph
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.source import user_source
from clew.ir.types import ArrayType, ScalarType

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder


_INT = ScalarType("int")
_NODES_OF: dict[str, Callable[..., Any]] = {"//": operator.floordiv, "%": operator.mod, "min": min, "max": max}


_MOST_FRAMES = 6
"""How many functions of the user's, from the innermost outwards, are searched for a variable that holds a size."""
_OF_NUMBERS = frozenset({*ARITHMETIC, operator.neg, operator.getitem})
"""What sizes are computed by."""


class SizePlace(Pending):
    """The place of a size that is an expression: its node computes it from the sizes of what came in."""

    __slots__ = ("size", "sizes")

    def __init__(self, size: Size, sizes: Sizes) -> None:
        super().__init__(operator.index, ())
        self.size = size
        self.sizes = sizes

    def made_by(self, recorder: Recorder) -> Node:
        """The node, made in the program's own graph, or after the question that it hangs on."""
        return self.sizes.node(self.size)


class CountPlace(SizePlace):
    """The place of the number of a tensor's items: compared by its expression, and asked of the tensor elsewhere."""

    __slots__ = ("method", "owner")

    def __init__(self, size: Size, sizes: Sizes, owner: Node, method: str) -> None:
        super().__init__(size, sizes)
        self.owner = owner
        self.method = method

    def made_by(self, recorder: Recorder) -> Node:
        """The call that asks the tensor."""
        node: Node = recorder.create_in(self.owner.graph, "call_method", self.method, (self.owner,))
        object.__setattr__(node, "value_type", _INT)
        return node


class Sizes:
    """What is known of the sizes in one run of a program."""

    def __init__(self, recorder: TorchRecorder) -> None:
        self._recorder = recorder
        self._is_on = True
        self._shapes: dict[Node, tuple[Size, ...]] = {}
        self._several: dict[Node, Sequence[Any]] = {}
        self._symbols: dict[tuple[Any, int], Size] = {}
        self._attributes: dict[str, torch.Tensor] = {}
        self._nodes: dict[Size, Node] = {}
        self._sizes: dict[Node, Size] = {}
        self._comparisons: dict[Any, Node] = {}
        self._read_shapes: dict[Node, Node] = {}
        self._relied: set[Node] = set()
        self._assumed: set[Node] = set()
        self._asked: list[Node] = []
        self.unranked: dict[Node, tuple[Size, int]] = {}
        """Tensors that are repeated and nothing else: the size that decides their rank, and the most that it may be."""
        self.is_assuming = False
        """Whether the rule that is being applied holds only because the call would raise otherwise."""

    @functools.cached_property
    def _dependence(self) -> Dependence:
        return Dependence(self._recorder.bodies)

    # ---- shapes --------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Shapes may change in place from now on: each tensor is asked for its own."""
        self._is_on = False

    def covers(self, node: Node, tensor: Any) -> bool:
        """Whether the sizes of a tensor are expressed here."""
        recorder = self._recorder
        is_plain = type(tensor) in recorder.array_kinds or isinstance(tensor, FakeTensor)
        is_plain = is_plain and recorder.arrays is None and self._is_on
        return is_plain and self._is_seen(node) and isinstance(node.value_type, ArrayType)

    def _is_seen(self, node: Node) -> bool:
        """Whether a node is of the program itself, or of a branch or loop that is being recorded."""
        bodies = self._recorder.bodies
        if self._level(node) is not None:
            return True
        return not bodies.is_in_function and any(body.graph is node.graph for body in bodies.open)

    def is_expressed(self, size: Size) -> bool:
        """Whether a size can be computed outside of branches and loops."""
        return isinstance(size, int) or all(map(self._is_outside, symbols_of(size)))

    def _is_outside(self, symbol: Symbol) -> bool:
        owner = symbol.place[0]
        return not isinstance(owner, Node) or self._level(owner) is not None

    def _level(self, node: Node) -> int | None:
        """After how many questions a node stands; None if it is of a part of the program, a branch or loop."""
        bodies = self._recorder.bodies
        if node.graph is bodies.outermost:
            return 0
        ways = enumerate(bodies.path_bodies, 1) if bodies.open else ()
        return next((level for level, body in ways if body.graph is node.graph), None)

    @property
    def _is_inside(self) -> bool:
        """Whether a branch, a loop or a function that was handed on is being recorded."""
        bodies = self._recorder.bodies
        return len(bodies.path_bodies) < len(bodies.open)

    def shape_of(self, node: Node) -> tuple[Size, ...]:
        """The sizes of a tensor of the program."""
        known = self._shapes.get(node)
        if known is None:
            for one in self._not_known(node):
                self._learn(one)
            known = self._shapes[node]
        return known

    def _not_known(self, node: Node) -> Iterator[Node]:
        """The nodes that a shape may depend on, each after those that it depends on."""
        waiting: list[tuple[Node, bool]] = [(node, False)]
        while waiting:
            one, is_ready = waiting.pop()
            if one in self._shapes or one in self._several:
                continue
            if is_ready:
                yield one
            else:
                waiting.append((one, True))
                outer = self._dependence.outer(one)
                given = one._inputs if outer is None else [outer]
                given = [*given, *(side for side in self._dependence.sides(one) if isinstance(side, Node))]
                waiting += [(used, False) for used in given if _has_shape(used)]

    def _learn(self, node: Node) -> None:
        self.is_assuming = False
        outer = self._dependence.outer(node)
        if outer is None:
            self._learn_shape(node)
        elif outer in self._shapes:
            self._shapes[node] = self._shapes[outer]
        elif isinstance(node.value_type, ArrayType):  # outside of the body it may be something else than a tensor
            self._learn_shape(node)
        else:
            self._several[node] = self._several.get(outer, ())  # nothing for a dtype that was handed to a body
        if self.is_assuming:
            self._assumed.add(node)

    def _learn_shape(self, node: Node) -> None:
        if not isinstance(node.value_type, ArrayType):
            answer = self._answer(node)
            self._several[node] = answer if isinstance(answer, Several) else ()
            return
        real = node.value_type.shape
        said = self._said(node)
        try:
            if said is not None and not self._agrees(said, real):
                said = None
        except LookupError:  # a number whose value in the example nobody has noted
            said = None
        shape = [None] * len(real) if said is None else said
        self._shapes[node] = tuple(self._own(node, place) if size is None else size for place, size in enumerate(shape))

    def _said(self, node: Node) -> Shape | None:
        """What a rule says of a tensor, by itself or among several that a call gave, or a branch."""
        sides = self._dependence.sides(node)
        if sides:
            return self._joined(sides)
        if node.target is operator.getitem and not isinstance(node.args[0].value_type, ArrayType):
            several = self._several.get(node.args[0], ())
            place = node.args[1]
            return several[place] if type(place) is int and -len(several) <= place < len(several) else None
        answer = self._answer(node)
        return None if isinstance(answer, Several) else answer

    def _joined(self, sides: list[Any]) -> Shape | None:
        """The sizes that all sides of a branch agree on."""
        shapes = [self._shapes.get(side, ()) for side in sides]
        if len({len(shape) for shape in shapes}) > 1:
            return None
        alike = [sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*shapes, strict=True)]
        return [size if size is not None and self.is_expressed(size) else None for size in alike]

    def _answer(self, node: Node) -> Any:
        if node.op in ("placeholder", "get_attr", "output"):
            return None
        return answer_of(self, node, self._recorder.layer_at)

    def _agrees(self, said: Shape, real: Sequence[Any]) -> bool:
        """Whether a rule is right about the example."""
        if len(said) != len(real):
            return False
        for size, one in zip(said, real, strict=True):
            if size is not None and size != one and self._example_or(size, one) != one:
                return False
        return True

    def _example_or(self, size: Size, real: int) -> int:
        """What a size was in the example, where a number of which nobody has noted that is what it must be."""
        symbol = as_symbol(size)
        if symbol is not None and symbol.example is None:
            symbol.example = real
        return self.example(size)

    def example(self, size: Size) -> int:
        """What a size was in the example."""
        return in_example(size)

    def is_one(self, size: Size) -> bool:
        """Whether a size is one in the example; the caller knows that this is guarded."""
        return self.example(size) == 1

    def _own(self, owner: Any, place: int, real: int | None = None) -> Size:
        """The symbol of a dimension: of a node's value, or of an attribute by its path."""
        example: Any = owner.value_type.shape[place] if real is None else real
        if isinstance(owner, Node) and owner.op == "get_attr":
            owner = str(owner.target)
        known = self._symbols.get((owner, place))
        if known is None:
            known = self._symbols[owner, place] = of_atom(Symbol((owner, place), int(example)))
        return known

    def shape_of_attribute(self, tensor: torch.Tensor) -> tuple[Size, ...]:
        """The sizes of a parameter of the root: a symbol each, so that another of another size may take its place."""
        path, held = self._recorder.attributes.paths.get(id(tensor), ("", None))
        if held is not tensor:
            raise Unknown
        self._attributes[path] = tensor
        return tuple(self._own(path, place, size) for place, size in enumerate(tensor.shape))

    def count(self, node: Node) -> Size | None:
        """How many tensors a call of the program gives; None if no rule knows."""
        if not self._is_on or not self._is_seen(node):
            return None
        for one in self._not_known(node):
            self._learn(one)
        found = self._several[node]
        number = found.number if isinstance(found, Several) else None
        return number if number is not None and self.is_expressed(number) else None

    def squeezed(self, node: Node) -> list[Size] | None:
        """The sizes that decide what the rank of a squeezed tensor is; None if no rule knows."""
        if not self._is_on or not self._is_seen(node):
            return None
        call = Call(self, node.args, node.kwargs)
        try:
            shape = call.shape(call.get(0, "input"))
            found = [shape[axis] for axis in squeezed_axes(call)]
        except Unknown:
            return None
        return found if all(map(self.is_expressed, found)) else None

    def ask(self, node: Node) -> tuple[Size, ...]:
        """The sizes of a tensor that the program asks for."""
        self._asked.append(node)
        return self.shape_of(node)

    def number_of_items(self, tensor: Node, method: str) -> CountPlace | None:
        """The place of the number of a tensor's items; None if not all of its sizes are known."""
        size = product(self.ask(tensor))
        return CountPlace(size, self, tensor, method) if self.is_expressed(size) else None

    def keep_asked(self, of_paths: bool = False) -> None:
        """Let calls stay in the graph whose sizes were asked for, even if only these were used: a size is what a rule
        says if the call does not raise. Those that follow a question come first, before the ways become one."""
        bodies = self._recorder.bodies
        ways = bodies.path_bodies if of_paths else []
        nested = () if of_paths else all_with_bodies(bodies.outermost)
        around = {body: node for node, found in nested for body in found}
        graphs = {way.graph for way in ways} if of_paths else {bodies.outermost, *around}
        live = set[Node]() if self._recorder.paths is None else self._recorder.paths.asked()
        for node in self._assumed_for(self._asked):
            if node._erased or node.graph not in graphs:
                continue
            if isinstance(node.value_type, ArrayType) and not _is_live(node, live, ways, around):
                with node.graph.inserting_after(node):
                    rank = Graph.create_node(node.graph, "call_function", getattr, (node, "ndim"))
                with node.graph.inserting_after(rank):
                    expected = len(node.value_type.shape)
                    args = (rank, expected, describe(rank, expected))
                    Graph.create_node(node.graph, "call_function", require, args)

    def _assumed_for(self, asked: Iterable[Node]) -> Iterable[Node]:
        """The calls that must not raise for what the rules say of the sizes of some tensors."""
        waiting, seen = list(asked), dict[Node, None]()
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen[node] = None
                given = [*node._inputs, self._dependence.outer(node), *self._dependence.sides(node)]
                waiting += [one for one in given if isinstance(one, Node) and _has_shape(one)]
        return [node for node in seen if node in self._assumed]

    def is_held(self, size: Size) -> bool:
        """Whether a size is a dimension of an attribute of the root."""
        symbol = as_symbol(size)
        return symbol is not None and self.is_held_symbol(symbol)

    def is_held_symbol(self, symbol: Symbol) -> bool:
        """Whether a symbol is a dimension of an attribute of the root."""
        return isinstance(symbol.place[0], str)

    def relies_on(self, function: Any, left: Size, right: Size) -> bool:
        """Whether a comparison holds: always, or because a guard on an attribute of the root says so from now on."""
        answer = compare(function, left, right)
        if answer is not None or not all(map(self.is_held_symbol, symbols_of(left))):
            return bool(answer)
        if not function(self.example(left), self.example(right)) or self._recorder.rollback.no_return:
            return False
        node = self._comparison(function, left, right)
        if node not in self._relied:
            self._relied.add(node)
            source = user_source()
            where = "" if source is None else source.describe()
            self._make(require, (node, True, describe(node, True), where))
        return True

    # ---- numbers -------------------------------------------------------------------------------------------------

    def number(self, node: Node) -> Size | None:
        """The whole number that a node of the program stands for."""
        known = self._sizes.get(node)
        if known is None and node.value_type == _INT:
            outer = self._dependence.outer(node)
            if outer is not None:
                return self.number(outer)
            known = None if self._level(node) is None else self._new_number(node, None)
        return known

    def _new_number(self, node: Node, example: int | None) -> Size:
        size = self._sizes[node] = of_atom(Symbol((node, None), example, least=None))
        self._nodes[size] = node
        return size

    def place(self, size: Size) -> SizePlace:
        """The place of a traced number that is this size."""
        return SizePlace(size, self)

    def of(self, value: Any) -> Size | None:
        """The expression of a number of the program's; None if it is none, or not of this run."""
        if type(value) is int:
            return value
        if not issubclass(type(value), Scalar) or value.recorder is not self._recorder or type(value.plain) is not int:
            return None
        place = value.place
        if isinstance(place, SizePlace):
            return place.size
        if type(place) is not Node or self._level(place) is None or self._is_inside:  # where a number may be data
            return None
        known = self._sizes.get(place)
        if known is None:
            return self._new_number(place, value.plain)
        symbol = as_symbol(known)
        if symbol is not None:
            symbol.example = value.plain
        return known

    def node(self, size: Size) -> Node:
        """The node that computes a size; made once."""
        known = self._nodes.get(size)
        if known is None:
            symbol = as_symbol(size)
            known = self._computed(size) if symbol is None else self._read(symbol)
            self._note(known, size)
        return known

    def _note(self, node: Node, size: Size) -> None:
        self._nodes[size] = node
        self._sizes[node] = size
        if node.value_type is None:
            object.__setattr__(node, "value_type", _INT)

    def _read(self, symbol: Symbol) -> Node:
        """A dimension, read from what has it."""
        owner, place = symbol.place
        recorder = self._recorder
        if not isinstance(owner, Node):
            owner = recorder.attribute_node(owner, self._attributes.get(owner))
        shape = self._read_shapes.get(owner)
        if shape is None:
            shape = self._read_shapes[owner] = self._make(getattr, (owner, "shape"))
        name = self._variable_of(of_atom(symbol)) or f"{owner.name}_dim{place}"
        return self._make(operator.getitem, (shape, place), name=name)

    def _variable_of(self, size: Size) -> str | None:
        """The variable of the user's, the innermost one, that holds a size: the node is made after it was assigned."""
        frame = user_frames(sys._getframe(1))[0] if self._recorder.running else None
        for _ in range(_MOST_FRAMES):
            if frame is None:
                return None
            for name, value in variables_of(frame).items():
                is_size = issubclass(type(value), Scalar) and isinstance(value.place, SizePlace)
                if is_size and value.place.size == size and is_users_name(name):
                    return name
            frame = user_frames(frame.f_back)[0]
        return None

    def _computed(self, size: Any) -> Node:
        """A sum of products."""
        total: Any = None
        for monomial, factor in sorted(size.terms.items(), key=lambda term: (term[1] < 0, not term[0])):
            atoms = [self._of_atom(atom) for atom in atoms_of(monomial)]
            product: Any = atoms.pop(0) if atoms else abs(factor)
            for atom in atoms:
                product = self._make(operator.mul, (product, atom))
            if monomial and abs(factor) != 1:
                product = self._make(operator.mul, (product, abs(factor)))
            if total is None:
                total = product if factor > 0 else self._make(operator.neg, (product,))
            else:
                total = self._make(operator.add if factor > 0 else operator.sub, (total, product))
        return total  # type: ignore[no-any-return]

    def _of_atom(self, atom: Atom) -> Node:
        if isinstance(atom, Symbol):
            return self.node(of_atom(atom))
        whole = of_atom(atom)
        known = self._nodes.get(whole)
        if known is None:
            args = tuple(one if isinstance(one, int) else self.node(one) for one in atom.args)
            known = self._make(_NODES_OF[atom.kind], args)
            self._note(known, whole)
        return known

    def _make(
        self, function: Callable[..., Any], args: tuple[Any, ...], is_result: bool = False, name: str | None = None
    ) -> Node:
        recorder, bodies = self._recorder, self._recorder.bodies
        level = max((self._level(arg) or 0 for arg in args if isinstance(arg, Node)), default=0) if bodies.open else 0
        graph = bodies.open[level - 1].graph if level else bodies.outermost
        node = recorder.create_in(graph, "call_function", function, args, NEVER, is_result, name)
        if function in _OF_NUMBERS and node.value_type is None:
            object.__setattr__(node, "value_type", _INT)
        return node

    # ---- what programs do with sizes -----------------------------------------------------------------------------

    def calculated(self, function: Any, values: tuple[Any, ...]) -> Any:
        """What a function of Python's gives for whole numbers: a number or a truth that is plain if it is always so,
        a place for a traced one otherwise; None if nothing is known of the function or the numbers."""
        if function is operator.neg and len(values) == 1:
            function, values = operator.sub, (0, *values)
        is_comparison = function in COMPARISONS
        if len(values) != 2 or not (is_comparison or function in ARITHMETIC):
            return None
        left, right = map(self.of, values)
        if left is None or right is None:
            return None
        if is_comparison:
            return self.compared(function, left, right)
        found = ARITHMETIC[function](left, right)
        return found if found is None or isinstance(found, int) else self._calculation(function, values, found)

    def compared(self, function: Any, left: Size, right: Size) -> bool | Node:
        """The answer to a comparison if it is always the same, its node otherwise."""
        answer = compare(function, left, right)
        return self._comparison(function, left, right) if answer is None else answer

    def _calculation(self, function: Any, values: tuple[Any, ...], size: Size) -> Any:
        """The place of a number that the program calculates: a node that bears its name, unless there is one."""
        recorder = self._recorder
        if size not in self._nodes and as_symbol(size) is None and not self._is_inside:
            given = tuple(recorder.argument(value) for value in values)
            self._note(self._make(function, given, is_result=True), size)
        return self.place(size)

    def is_about_batch(self, node: Node) -> bool:
        """Whether a node asks of the first size of an input, which has others too, whether it is one."""
        sizes = [self._sizes.get(arg) if isinstance(arg, Node) else arg for arg in node.args]
        symbols = [as_symbol(size) for size in sizes if isinstance(size, Expression)]
        if node.target not in COMPARISONS or len(symbols) != 1 or len(sizes) != 2 or 1 not in sizes:
            return False
        if symbols[0] is None:
            return False
        owner, place = symbols[0].place
        is_input = isinstance(owner, Node) and owner.op == "placeholder" and place == 0
        return is_input and isinstance(owner.value_type, ArrayType) and len(owner.value_type.shape) > 1

    def _comparison(self, function: Any, left: Size, right: Size) -> Node:
        key = (function, left, right)
        known = self._comparisons.get(key)
        if known is None:
            args = tuple(one if isinstance(one, int) else self.node(one) for one in (left, right))
            known = self._comparisons[key] = self._make(function, args, is_result=not self._is_inside)
        return known


def _has_shape(node: Node) -> bool:
    """Whether a node gives a tensor, or several: no number, and no dtype or device that was read."""
    is_read = node.target is getattr and not isinstance(node.value_type, ArrayType)
    return not is_read and not isinstance(node.value_type, ScalarType)


def _is_live(node: Node, live: set[Node], ways: Sequence[OpenBody], around: Mapping[Graph, Node]) -> bool:
    """Whether a result, or a call that does more than compute, depends on a node; those of which it is known are
    ``live``. Where there are ``ways``, one inside of the other, a parameter of an inner one depends on its node; what
    the node ``around`` a body gives depends on what the body gives."""
    waiting, seen = [node], {node}
    while waiting:
        one = waiting.pop()
        if (one.op == "output" and one.graph not in around) or one in live:
            live.add(node)
            return True
        users = [*one.users, *(body.free[one] for body in ways if one in body.free)]
        users += around[one.graph].users if one.op == "output" else ()
        waiting += [user for user in users if user not in seen]
        seen.update(users)
    return any(effect_of(one) is not Effect.NONE for one in seen)


_OWN = "clew."


def is_only_repeated(node: Node) -> bool:
    """Whether what the program is about to get from ``squeeze()`` goes into ``repeat`` alone."""
    if node.op != "call_method" or len(node.args) != 1 or node.kwargs:
        return False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_OWN):
        frame = frame.f_back
    if frame is None:
        return False
    steps, place = instructions_at(frame.f_code, frame.f_lasti)
    following = steps[place + 1]
    return steps[place].opname == "CALL" and (following.opname, following.argval) == ("LOAD_METHOD", "repeat")


def names_each_dimension(repeats: tuple[Any, ...], rank: int) -> bool:
    """Whether the arguments of ``repeat`` are numbers, at least as many as a tensor has dimensions."""
    return sum(1 for _ in leaves(repeats)) >= rank
