"""The translator: goes through a graph of the source and writes one of the target, row by row.

A ``Program`` is what all graphs of one translation share: the weights, the state, what was refused. A ``Translator``
goes through one graph, the program's or the body of a branch or loop. What is plain while the program is translated
(dtypes, flags, arguments that a guard fixes) is computed at once and leaves no node. Always holds: what a row gives has
the dtype and the shape that the source gives for the example, or it is refused.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable
from typing import Any

from clew.capture.control_flow.raising import raise_error, text_of
from clew.capture.guards.notes import are_distinct, read_variable, remember
from clew.capture.recording.opaque_calls import as_given
from clew.capture.recording.outputs import rebuild, rebuild_mapping
from clew.capture.state.slots import ROOT, assign, assign_buffer, has_attribute
from clew.ir.control_flow import choose, is_control
from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.guards import guard, guard_of
from clew.ir.node import Node
from clew.ir.types import ArrayType, DictType, ListType, ScalarType, TupleType, Type
from clew.translate.apart import NO_ROW, in_parts
from clew.translate.control_flow import run_both_ways, translate_control
from clew.translate.nests import entered, spec_of
from clew.translate.refusals import Refusal, Undecided, Untranslatable
from clew.translate.sources.source import NOTHING, Source
from clew.translate.targets.namespace import Namespace
from clew.translate.values import Array, Chosen, Dtype, Items, Number, Opaque, Optional, Place, Plain, Spec, Value
from clew.translate.writer import Writer, leaves_of, mapped

_EXAMPLES = {"int": 2, "float": 2.5, "bool": True, "complex": 1j, "str": "", "bytes": b"", "None": None}
_FOLDED = (
    operator.getitem,
    operator.contains,
    operator.is_,
    operator.is_not,
    operator.not_,
    operator.truth,
    len,
    getattr,
)
_CONTEXTS = {"no_grad": False, "inference_mode": False, "enable_grad": True}


class Program:
    """What the graphs of one translation share."""

    def __init__(
        self, source: Source, namespace: Callable[[Writer], Namespace], root: Any, constants: dict[str, Any]
    ) -> None:
        self.source = source
        self.namespace = namespace
        self.root = root
        self.constants = constants
        """Attributes that the root does not have."""
        self.examples: dict[str, Any] = {}
        """The arguments of the example by name, as far as they are known."""
        self.params: dict[str, Any] = {}
        self.state: dict[str, Any] = {}
        self.observe: Callable[[], dict[Node, Any]] = dict
        """Runs the source for the example, and gives the plain numbers that its nodes give."""
        self._observed: dict[Node, Any] | None = None
        self.refusals: list[Refusal] = []
        self.notes: dict[str, None] = {}
        self.assigned: set[str] = set()
        """The attributes that the program sets."""
        self.read_paths: set[str] = set()
        """The attributes that the program reads."""
        self.versions: dict[str, Any] = {}
        """The arrays that attributes are after what was written so far."""
        self.kinds: dict[type, None] = {}
        """The classes of objects that the program makes."""
        self._paths: dict[Any, str] = {}

    def refuse(self, node: Node, reason: str) -> None:
        """Note that a node cannot be carried over."""
        names = self.source.names(node) if node.op.startswith("call") else [str(node.target)]
        where = "" if node.source is None else node.source.describe()
        self.refusals.append(Refusal(names[0], where, reason))

    def observed(self, node: Node | None) -> Any:
        """The plain number, or the nest of them, that a node gives for the example; None if that is not known."""
        if self._observed is None:
            self._observed = self.observe()
        return None if node is None else self._observed.get(node)

    def attribute(self, writer: Writer, path: str) -> Any:
        """What an attribute of the source is in the target."""
        if path == ROOT:
            return Opaque(writer, writer.graph.get_attr(ROOT))
        if path in self.versions:
            return self.versions[path]
        value = self.constants[path] if path in self.constants else resolve(self.root, path)
        if not self.source.is_array(value):
            return self._plain_attribute(writer, path, value)
        return self.held(writer, value, path)

    def held(self, writer: Writer, value: Any, path: str = "") -> Array:
        """An array of the source as one of the target, under the first path that it was found at."""
        path = self._paths.setdefault(self.source.identity(value), path or f"held_{len(self._paths)}")
        is_param = self.source.is_parameter(value)
        held = self.params if is_param else self.state
        if path not in held:
            held[path] = writer.namespace.convert(self.source.to_numpy(value))
        node = writer.node("get_attr", path, ())
        spec = Spec(tuple(value.shape), writer.namespace.dtype(self.source.dtype_of(value)))
        made: Array = writer.wrap(node, spec, is_param)
        made.fixed, made.path = path not in self.assigned, path
        made.plain = self.source.plain_attribute(self.root, path, value) if made.fixed else None
        return made

    def _plain_attribute(self, writer: Writer, path: str, value: Any) -> Any:
        if path not in self.assigned:
            return self.source.constant(value)
        if not isinstance(value, (bool, int, float)):
            raise Untranslatable(f"the program sets the attribute {path}, which is {type(value).__name__}")
        self.state.setdefault(path, value)
        return Number(writer, writer.node("get_attr", path, ()), value)


class Translator:
    """Translates one graph."""

    def __init__(self, program: Program, graph: Graph, writer: Writer, known: dict[Node, Any]) -> None:
        self.program = program
        self.source = program.source
        self.graph = graph
        self.writer = writer
        self.xp = writer.namespace
        writer.observed = program.observed
        self.env: dict[Node, Any] = dict(known)
        self.modes = [True]
        """Whether gradients are on, for each block that has been entered."""
        self.sizes_differ = False
        """Whether arrays have other sizes here than where the source's types were found; the ranks are the same."""
        self.leaves: list[tuple[Any, Any]] = []
        """What the arguments hold that are containers, and the expressions that reach it."""
        self.writable: set[Node] = set()
        """The inputs that may be written to, since the caller goes on with what they are then."""
        self._written: dict[Node, Node] = {}
        """For the results of writes the node of the array that was written to."""
        self._reads: dict[str, Node] = {}

    def run(self) -> Any:
        """Translate all nodes; what the graph returns comes out, as a nest of values."""
        result = None
        for node in self.graph.nodes:
            if node in self.env:
                continue
            if node.op == "output":
                result = self.arguments(node.args[0])
                continue
            self.env[node] = self._one(node)
        return result

    def _one(self, node: Node) -> Any:
        self.writer.origin = node
        last = self.writer.graph._root._prev
        try:
            self.xp.wanted = None  # rows of other nodes must not see it
            self.xp.wanted = self.wanted(node.value_type)
            value = mapped(self._there(self._translated(node)), self._held)
            value = self.source.completed(self.writer, self.wanted(node.value_type), value)
            self._check(node.value_type, value)
            if isinstance(value, Array) and value.origin is None:
                value.origin = node
        except Untranslatable as error:
            if not self._is_consequence(node):
                self.program.refuse(node, str(error))
            value = self._stand_in(node)
        if node.op != "placeholder":
            self._name(node, value, last)
        return self._frozen(value) if not self.modes[-1] else value

    def _held(self, leaf: Any) -> Any:
        """An array of the source that a plain attribute holds, in a dict say: part of the state."""
        return self.program.held(self.writer, leaf) if self.source.is_array(leaf) else leaf

    def _there(self, value: Any) -> Any:
        """An array where the source has one, and the translation an array or None: a guard says so."""
        if not isinstance(value, Optional) or self.xp.wanted is None:
            return value
        writer = self.writer
        is_there = Number(writer, writer.node("call_function", operator.is_not, (value, None)), True)
        writer.require(is_there, True, "there is an array here, and not None")
        return Array(writer, value.node, value.spec, True)

    def _is_consequence(self, node: Node) -> bool:
        """Whether what a node is given was refused already."""
        given = [self.env.get(one) for one in node._inputs]
        return any(isinstance(leaf, Opaque) and leaf.reason == REFUSED for one in given for leaf in leaves_of(one))

    def wanted(self, kind: Type | None) -> Any:
        """What a type of the source is in the target; None if that tells nothing."""
        if isinstance(kind, ArrayType) and not self.source.is_opaque(kind.dtype):
            shape = tuple(one if isinstance(one, int) else 2 for one in kind.shape)
            return Spec(shape, self.xp.dtype(kind.dtype))
        return None

    def _stand_in(self, node: Node) -> Any:
        """A value to go on with after a refusal."""
        made = self.writer.node("call_function", stand_in, ())
        try:
            found = self.wanted(node.value_type)
        except Untranslatable:
            found = None
        return Opaque(self.writer, made, REFUSED) if found is None else self.writer.wrap(made, found, True)

    def _check(self, kind: Type | None, value: Any) -> None:
        """Whether a value is what the source gives for the example."""
        wanted = self.xp.wanted
        if wanted is None or not isinstance(value, Array):
            if wanted is not None and not isinstance(value, (Opaque, Plain, tuple, list)):
                raise Untranslatable(f"the source gives an array, and the row {type(value).__name__}")
            return
        have = value.spec
        if have.dtype != wanted.dtype or not _fits(have.shape, kind, self.sizes_differ or self.writer.guessed):
            raise Untranslatable(
                f"{self.xp.framework} would give {have.dtype}{list(have.shape)}, "
                f"and the source gives {wanted.dtype}{list(wanted.shape)}"
            )

    def _name(self, node: Node, value: Any, last: Node) -> None:
        """Let the last node that was made bear the name of the source's."""
        made = value.node if isinstance(value, Value) else None
        if (
            made is not None
            and made.graph is self.writer.graph
            and made is self.writer.graph._root._prev
            and made is not last
        ):
            made._rename(node.name)

    def _frozen(self, value: Any) -> Any:
        """Values that were computed where gradients are off."""
        known = {id(leaf) for one in self.env.values() for leaf in leaves_of(one)} if leaves_of(value) else set()

        def freeze(leaf: Any) -> Any:
            if not isinstance(leaf, Array) or not leaf.differentiable:
                return leaf
            if id(leaf) in known:
                return self.xp.stop_gradient(leaf)
            leaf.frozen = True
            return leaf

        return mapped(value, freeze)

    # ---- arguments ---------------------------------------------------------------------------------------------------

    def arguments(self, nest: Any) -> Any:
        """A nest of arguments with values in the place of nodes, and plain values as rows understand them."""
        return mapped(nest, self._argument)

    def _argument(self, leaf: Any) -> Any:
        if not isinstance(leaf, Node):
            return self.source.constant(leaf)
        value = self.env[leaf]
        if isinstance(value, Array):
            if value.path in self.program.versions:
                return self.program.versions[value.path]
            if value.frozen and self.modes[-1]:
                value = self.env[leaf] = self.xp.stop_gradient(value)
        elif isinstance(value, (tuple, list, dict)):
            return mapped(value, lambda one: one)
        return value

    # ---- one node ----------------------------------------------------------------------------------------------------

    def _translated(self, node: Node) -> Any:
        if node.op == "placeholder":
            return self._input(node)
        if node.op == "get_attr":
            return self.program.attribute(self.writer, str(node.target))
        if node.op == "call_module":
            raise Untranslatable(
                f"the layer {type(resolve(self.program.root, node.target)).__name__} cannot be entered"
            )
        special = self._SPECIAL.get(node.target) if node.op == "call_function" else None
        special = special or self.source.special(node)
        if special is None and is_control(node):
            return translate_control(self, node)
        args, kwargs = self.arguments(node.args), self.arguments(node.kwargs)
        if special is not None:
            return special(self, node, args, kwargs)
        return self._call(node, args, kwargs)

    def _input(self, node: Node) -> Any:
        made = (
            self.writer.graph.placeholder(str(node.target), default_value=node.args[0])
            if node.args
            else (self.writer.graph.placeholder(str(node.target)))
        )
        made._rename(node.name)
        if self.writer.outermost and self.source.enters_nests:
            return self._entered(node, made)
        example = self.program.examples.get(str(node.target)) if self.writer.outermost else None
        if type(example) in (bool, int, float) and not isinstance(node.value_type, ArrayType):
            return Number(self.writer, made, example)
        return self.typed(made, node.value_type)

    def _entered(self, node: Node, made: Node) -> Any:
        """An argument as the example has it."""
        example = self.program.examples.get(str(node.target).lstrip("*"))
        if isinstance(node.value_type, ArrayType) and self.source.is_opaque(node.value_type.dtype):
            return self.source.opaque(self.writer, made)
        if isinstance(node.value_type, ArrayType):
            return self.writer.wrap(made, spec_of(self, example) or self.wanted(node.value_type), True)
        return entered(self, made, example, node)

    def typed(self, made: Node, kind: Type | None) -> Any:
        """The value of a node of the target that has a type of the source."""
        if isinstance(kind, ArrayType):
            return self.writer.wrap(made, self.wanted(kind), True)
        if isinstance(kind, (TupleType, ListType)):
            items = [
                self.typed(self.writer.node("call_function", operator.getitem, (made, place)), one)
                for place, one in enumerate(kind.items)
            ]
            return tuple(items) if isinstance(kind, TupleType) else items
        if isinstance(kind, DictType):
            return {
                key: self.typed(self.writer.node("call_function", operator.getitem, (made, key)), one)
                for key, one in kind.items
            }
        if isinstance(kind, ScalarType):
            return (
                Number(self.writer, made, _EXAMPLES[kind.name])
                if kind.name in ("int", "float", "bool")
                else Opaque(self.writer, made)
            )
        return Opaque(self.writer, made)

    def _call(self, node: Node, args: Any, kwargs: Any) -> Any:
        names = self.source.names(node)
        mode = self._mode(node, names, args, kwargs)
        if mode is not NOTHING:
            return mode
        fact = self._fact(node, args)
        if fact is not NOTHING:
            return fact
        if not any(isinstance(leaf, Value) for leaf in leaves_of((args, kwargs))):
            plain = self._folded(node, args, kwargs)
            if plain is not NOTHING:
                return plain
        if node.target is operator.getitem and type(args[0]) in (tuple, list) and isinstance(args[1], int):
            return self._of_branch(node, args[0][args[1]])
        if _is_named(args[0] if args else None) and node.target in (operator.getitem, getattr):
            return node.target(*args)
        if node.target is operator.getitem and type(args[0]) is dict and isinstance(args[1], (str, int)):
            return args[0][args[1]]
        if _is_named(node.target):
            return node.target(*args, **kwargs)  # type: ignore[operator]
        written = self.source.written(node)
        if written is not None:
            return self._write(node, written[0], args, kwargs)
        self.sizes_differ = self.sizes_differ or self.source.counts(node)
        return self._by_row(node, self.source.table.find(names), args[:1] if node.target is getattr else args, kwargs)

    def _by_row(self, node: Node, row: Callable[..., Any] | None, args: Any, kwargs: Any) -> Any:
        """What a row gives; where there is none, or it does not take this call, what the parts of the call give."""
        if not self.source.reads_calls:
            if row is None:
                raise Untranslatable(NO_ROW)
            return self._run(row, args, kwargs)
        wanted, last = self.xp.wanted, self.writer.graph._root._prev
        try:
            if row is None:
                raise Untranslatable(NO_ROW)
            found = self._run(row, args, kwargs)
            self._check(node.value_type, found)
            if isinstance(found, Array) and not found.ndim and found.plain is None:
                found.plain = self.source.plain_result(self.writer, node, (args, kwargs), found.dtype)
            return found
        except Untranslatable as error:
            if any(isinstance(leaf, (Opaque, Optional)) for leaf in leaves_of((args, kwargs))):
                raise
            self.writer.forget_guards(last)
            self.xp.wanted = wanted
            return in_parts(self, node, error)

    def _of_branch(self, node: Node, value: Any) -> Any:
        """An item of a branch's results; the shape of the example's side is that which the source tells."""
        wanted = self.xp.wanted
        branch = node.args[0]
        told = node.value_type
        is_known = isinstance(told, ArrayType) and all(isinstance(one, int) for one in told.shape)
        if is_known and isinstance(value, Array) and isinstance(branch, Node) and is_control(branch):
            same = value.dtype == wanted.dtype and value.ndim == len(wanted.shape)
            value.spec = wanted if same else value.spec
        return value

    def _run(self, row: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        for leaf in leaves_of((args, kwargs)):
            if isinstance(leaf, Opaque) and leaf.reason:
                raise Untranslatable(leaf.reason)
        if kwargs.get("out") is not None:
            raise Untranslatable("it writes into out=")
        asked = next((leaf for leaf in leaves_of((args, kwargs)) if isinstance(leaf, Optional)), None)
        if asked is not None:
            return run_both_ways(self, row, args, kwargs, asked)
        try:
            return row(self.xp, *args, **kwargs)
        except Undecided as error:
            return run_both_ways(self, row, args, kwargs, error.value)
        except (TypeError, AttributeError, ValueError, KeyError, IndexError) as error:
            raise Untranslatable(f"the row does not take these arguments: {error}") from error

    def _folded(self, node: Node, args: Any, kwargs: Any) -> Any:
        """The result of a call of plain values, if it can be computed now."""
        module = getattr(node.target, "__module__", None) or ""
        if node.op != "call_function" or not (module in ("_operator", "math", "builtins") or node.target is choose):
            return self.source.folded(node, args, kwargs) if node.op == "call_function" else NOTHING
        if module == "builtins" and node.target not in (
            *_FOLDED,
            int,
            float,
            bool,
            max,
            min,
            range,
            abs,
            sum,
            round,
            isinstance,
        ):
            return NOTHING
        try:
            return node.target(*args, **kwargs)
        except Exception as error:
            raise Untranslatable(f"it fails on plain values: {error}") from error

    def _fact(self, node: Node, args: Any) -> Any:
        """What the source's own types tell: dtypes and devices."""
        if getattr(node.target, "__name__", "") in self.source.implied and args and isinstance(args[0], Array):
            return _IMPLIED
        if node.target is getattr and isinstance(node.args[0], Node):
            name, kind = node.args[1], node.args[0].value_type
            if name == "dtype" and isinstance(kind, ArrayType):
                return Dtype(kind.dtype)
            if name == "device" and isinstance(args[0], Array):
                return Place("cpu")
            if isinstance(args[0], Opaque):
                return self._part(node, args[0], getattr, args[1])
        if (
            node.target in (operator.is_, operator.is_not)
            and isinstance(args[0], Value)
            and not isinstance(args[0], Opaque)
            and args[1] is None
        ):
            if isinstance(args[0], Optional):
                return Number(self.writer, self.writer.node("call_function", node.target, args), False)
            return node.target is operator.is_not
        if node.target in (operator.is_, operator.is_not) and all(isinstance(one, Node) for one in node.args):
            return self._are_same(*node.args) is (node.target is operator.is_)
        return NOTHING

    def _are_same(self, one: Any, other: Any) -> bool:
        """Whether two nodes give one object, where that follows from the graph."""
        if one is other:
            return True
        if self._base(one) is self._base(other) or self._is_input(one) or self._is_input(other):
            raise Untranslatable("it asks which object a value is")
        return False

    def _are_distinct(self, node: Node, args: Any, kwargs: Any) -> Any:
        """Containers that the program makes, and arrays of different calls, are different objects."""
        nodes = list(node.args)
        if all(isinstance(one, Node) and self._is_input(one) and isinstance(self.env[one], Value) for one in nodes):
            made = self.writer.node("call_function", are_distinct, args)
            return Number(self.writer, made, True)
        return not any(self._are_same(one, other) for place, one in enumerate(nodes) for other in nodes[:place])

    def _part(self, node: Node, owner: Opaque, function: Any, name: Any) -> Any:
        """A part of an object of the user's, by the type that the source gives for it."""
        if owner.reason:
            raise Untranslatable(owner.reason)
        made = self.writer.node("call_function", function, (owner, name))
        return self.typed(made, node.value_type)

    # ---- modes, writes, objects --------------------------------------------------------------------------------------

    def _mode(self, node: Node, names: list[str], args: Any, kwargs: Any) -> Any:
        """Blocks in which gradients are off."""
        last = names[-1]
        if node.op == "call_function" and last in _CONTEXTS and not args:
            return _Mode(_CONTEXTS[last])
        if node.op == "call_function" and last == "set_grad_enabled" and args and isinstance(args[0], bool):
            return _Mode(args[0])
        if node.op == "call_function" and last == "errstate" and set(kwargs.values()) <= {"ignore", "warn"}:
            return _Mode(None)
        if node.op == "call_function" and last == "autocast":
            if kwargs.get("enabled") is False:
                return _Mode(None)
            raise Untranslatable("autocast")
        if args and isinstance(args[0], _Mode) and last == "__enter__":
            self.modes.append(self.modes[-1] if args[0].on is None else args[0].on)
            return None
        if args and isinstance(args[0], _Mode) and last == "__exit__":
            self.modes.pop()
            return None
        return NOTHING

    def _write(self, node: Node, name: str, args: Any, kwargs: Any) -> Any:
        """A write: from here on the array that is written to is another one."""
        written = self.source.target(node)
        owner = self.env.get(written) if isinstance(written, Node) else None
        kwargs = {name: one for name, one in kwargs.items() if name != "out"}
        if not isinstance(owner, Array) or not isinstance(written, Node):
            raise Untranslatable("it writes into something that is no array")
        row = self.source.table.find([name])
        if row is None:
            raise Untranslatable("no row stands for it")
        self.xp.wanted = owner.spec
        new = self._run(row, args, kwargs)
        if not isinstance(new, Array) or new.spec.shape != owner.spec.shape:
            new = self.xp.broadcast_to(self.xp.as_array(new, owner.dtype), owner.shape)
        found = self.replaced(node, written, self.xp.cast(new, owner.dtype))
        self._written[node] = self._written.get(written, written)
        return found

    def replaced(self, node: Node, written: Any, new: Array) -> Array:
        """From ``node`` on an array is another one, and so is the array that it is a part of."""
        if not isinstance(written, Node):
            raise Untranslatable("it writes into an array inside of a container")
        chain = self._parts(written)
        if self._is_input(written) and not (chain[-1] is self._base(written) and chain[-1] in self.writable):
            raise Untranslatable(f"it writes into an input, and arrays of {self.xp.framework} cannot be written to")
        self._check_views(node, chain)
        found = new
        for part, whole in itertools.zip_longest(chain, chain[1:]):
            owner = self.env[part]
            if owner.path:
                self.writer.rebind(owner, new)
                new = self.program.versions[owner.path]
                found = new if part is chain[0] else found
            for other in [part, *(one for one, of in self._written.items() if of is part)]:
                self.env[other] = new
            if whole is not None:
                index = self.arguments(part.args[1])
                row = self.source.table.find(["operator.setitem"])
                assert row is not None
                new = self.xp.cast(self._run(row, [self.env[whole], index, new], {}), self.env[whole].dtype)
        return found

    def _parts(self, written: Node) -> list[Node]:
        """An array that is written to, the array that it is a part of, and so on."""
        chain = [self._written.get(written, written)]
        while chain[-1].target is operator.getitem and self.source.may_share(chain[-1]):
            owner = chain[-1].args[0]
            if not isinstance(owner, Node) or not isinstance(self.env.get(owner), Array):
                break
            chain.append(self._written.get(owner, owner))
        return chain

    def _check_views(self, node: Node, chain: list[Node]) -> None:
        first = self._base(chain[0])
        for other in self.graph.nodes:
            is_same = self._written.get(other, other) in chain
            if other < node and not is_same and self._base(other) is first and any(one > node for one in other.users):
                raise Untranslatable("it writes into an array of which a view is used afterwards")
        for other, value in self.env.items():
            shares = any(isinstance(leaf, Items) and leaf.shares for leaf in leaves_of(value))
            if shares and any(one is node or one > node for one in other.users if one.graph is node.graph):
                raise Untranslatable(
                    "it writes, and a list of arrays that may be parts of what is written is used afterwards"
                )

    def _base(self, node: Node) -> Node:
        """The node that made the memory that a node's value lies in."""
        while True:
            node = self._written.get(node, node)
            if node.op == "get_attr":
                return self._reads.setdefault(str(node.target), node)
            if not node.op.startswith("call") or not self.source.may_share(node):
                return node
            base = next((one for one in node._inputs), None)
            if base is None:
                return node
            node = base

    def _is_input(self, node: Node) -> bool:
        return self._base(node).op == "placeholder"

    def _assign(self, node: Node, args: Any, kwargs: Any) -> Any:
        _, path, value, *_ = args
        is_plain = not any(isinstance(leaf, Value) or self.source.is_array(leaf) for leaf in leaves_of(value))
        if is_plain and not isinstance(value, (bool, int, float)) and path not in self.program.read_paths:
            return None  # a plain attribute that the program does not read, which is the original's own
        if self.writer.rebind.__name__ == "_cannot_rebind":
            raise Untranslatable("it sets an attribute inside of a branch or a loop")
        if path not in self.program.state and path not in self.program.params:
            before = resolve(self.program.root, path)
            is_array = self.source.is_array(before)
            self.program.state[path] = self.xp.convert(self.source.to_numpy(before)) if is_array else before
        if not isinstance(value, (Array, Number, bool, int, float)):
            raise Untranslatable(f"it sets the attribute {path} to something that is no array and no number")
        self.program.versions.pop(path, None)
        root = self.writer.graph.get_attr(ROOT)
        self.writer.node("call_function", assign, (root, path, value))
        return None

    def _has_attribute(self, node: Node, args: Any, kwargs: Any) -> Any:
        return has_attribute(self.program.root, args[1])

    def _rebuild(self, node: Node, args: Any, kwargs: Any) -> Any:
        kind, *rest = args
        self.program.kinds[kind] = None
        rest = mapped(rest, self.spelled)
        return Opaque(self.writer, self.writer.node("call_function", node.target, (kind, *rest)))

    def spelled(self, leaf: Any) -> Any:
        """A plain value as an argument of the target's functions."""
        if isinstance(leaf, Dtype):
            return self.xp.dtype_object(leaf)
        return str(leaf) if isinstance(leaf, Place) else leaf

    def _variable(self, node: Node, args: Any, kwargs: Any) -> Any:
        raise Untranslatable("it reads an object around the program, which it sets an attribute of")

    def _as_given(self, node: Node, args: Any, kwargs: Any) -> Any:
        return args[0]

    def _remember(self, node: Node, args: Any, kwargs: Any) -> Any:
        """What an opaque call shares with the program: rows change none of it."""
        return None

    def _guard(self, node: Node, args: Any, kwargs: Any) -> Any:
        told = guard_of(node)
        value = args[0]
        if value is _IMPLIED or told.test == "untouched" or (told.test == "array" and isinstance(value, Array)):
            return None
        if not isinstance(value, Value):
            if not told.holds(value) and value != self.source.constant(told.expected):
                raise Untranslatable(
                    f"the program relies on {told.expression}, which does not hold for the translation"
                )
            return None
        if isinstance(value, Array):
            value = self.xp.item(value)
        made = self.writer.node("call_function", guard, (value, *args[1:]), kwargs)
        made.meta["guard"] = dict(node.meta.get("guard", {})) or {"reason": told.reason}
        return None

    def _choose(self, node: Node, args: Any, kwargs: Any) -> Any:
        chosen, first, second = args
        if not isinstance(chosen, Value):
            return first if chosen else second
        if isinstance(chosen, Array) and isinstance(first, Array) and isinstance(second, Array):
            if first.spec == second.spec:
                return self.xp.where(chosen, first, second)
            raise Untranslatable("one of two arrays of different kinds, by data")
        if isinstance(chosen, Array):
            raise Untranslatable("one of two values that are not arrays, by data")
        made = self.writer.node("call_function", choose, (chosen, first, second))
        array, sides = first if second is None else second, Chosen(chosen, (first, second))
        if (first is None or second is None) and isinstance(array, (Array, Optional)):
            return Optional(self.writer, made, array.spec, sides)
        picked: Any = first if isinstance(chosen, Number) and chosen.value else second
        if (
            isinstance(first, Array)
            and isinstance(second, Array)
            and first.ndim == second.ndim
            and first.dtype == second.dtype
        ):
            return self.writer.wrap(made, picked.spec, True)
        if all(isinstance(one, (Number, bool, int, float)) for one in (first, second)):
            return Number(self.writer, made, picked.value if isinstance(picked, Number) else picked)
        return Opaque(self.writer, made, "it is one of two values of different kinds", sides)

    def _raise(self, node: Node, args: Any, kwargs: Any) -> Any:
        self.writer.node("call_function", raise_error, args, kwargs)
        return None

    def _text(self, node: Node, args: Any, kwargs: Any) -> Any:
        """The text of an error."""
        return Opaque(self.writer, self.writer.node("call_function", text_of, tuple(mapped(args, self.spelled))))

    def _mark(self, node: Node, args: Any, kwargs: Any) -> Any:
        """An attribute that is set on an array: those by which the source's tools know it have no meaning elsewhere."""
        owner, name, *_ = args
        if isinstance(owner, (Array, Optional)) and str(name).startswith(self.source.marks):
            return None
        raise Untranslatable(f"it sets the attribute {name} of an object")

    _SPECIAL: dict[Any, Callable[..., Any]] = {
        assign: _assign, assign_buffer: _assign, has_attribute: _has_attribute, rebuild: _rebuild,
        rebuild_mapping: _rebuild, guard: _guard, choose: _choose, are_distinct: _are_distinct,
        raise_error: _raise, text_of: _text, setattr: _mark,
        as_given: _as_given, remember: _remember, read_variable: _variable,
    }  # fmt: skip


_IMPLIED = object()
"""The answer to a question whose answer follows from the dtypes and ranks of the inputs, which are guarded."""


class _Mode:
    """A block that switches gradients on or off, or does nothing (None)."""

    def __init__(self, on: bool | None) -> None:
        self.on = on


def _is_named(value: Any) -> bool:
    """Whether a value is a named tuple, or a class of them."""
    kind = value if isinstance(value, type) else type(value)
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _fits(shape: tuple[Any, ...], kind: Any, is_free: bool) -> bool:
    """Whether a shape is that of a type of the source, as far as that tells."""
    if not isinstance(kind, ArrayType):
        return True
    return len(shape) == len(kind.shape) and all(
        is_free or not isinstance(wanted, int) or wanted == have for have, wanted in zip(shape, kind.shape, strict=True)
    )


REFUSED = "it was refused before"


def stand_in() -> None:
    """In graphs that are never run: the place of what was refused."""


def read_paths(graphs: Iterable[Graph]) -> set[str]:
    """The attributes that a program reads."""
    return {str(node.target) for graph in graphs for node in graph.find_nodes(op="get_attr")}


def assigned_paths(graphs: Iterable[Graph]) -> set[str]:
    """The attributes that a program sets."""
    return {
        str(node.args[1]) for graph in graphs for node in graph.nodes
        if node.op == "call_function" and node.target in (assign, assign_buffer)
    }  # fmt: skip
