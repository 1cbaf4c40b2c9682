"""Segments of torch programs: a run of nodes, compiled once for each kind of arguments.

A segment is called with the root of the program and the values that it is given. What is compiled is a *variant*: a
function of tensors, and of the sizes and whole numbers that differed between calls, which are symbols. A variant is
kept with what it relies on: types, dtypes, devices, strides and sizes of its tensors, which of them are one, torch's
global modes, plain values, settings of layers, and conditions on its symbols. Before it is compiled the segment is run
on fake tensors: a node that cannot be run so becomes an island, and the segment two. Importing this file imports torch.
"""

from __future__ import annotations

import contextlib
import operator
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import (
    SYMPY_INTERP,
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
)
from torch.nn.utils.stateless import _reparametrize_module

from clew import tree
from clew.backends.partition import ISLAND, inner_graph
from clew.backends.torch_attributes import Attributes, Moved
from clew.capture.bytecode.try_blocks import attempted, refusing
from clew.errors import BackendError
from clew.ir.effects import effect_of
from clew.ir.graph import Graph
from clew.ir.guests import Effect
from clew.ir.interpreter import Interpreter
from clew.ir.node import Node
from clew.runtime.build import compile_function

_LOCK = threading.RLock()
_PLAIN = (int, float, complex, bool, str, bytes, type(None), torch.dtype, torch.device, torch.layout,
          torch.memory_format, type(...))  # fmt: skip
"""What may stand in a variant as a constant."""
LIMIT = 16
"""So many variants a segment may have; then it runs in Python."""

# ---- what comes in ---------------------------------------------------------------------------------------------------


class Inputs(NamedTuple):
    """The values of a call, taken apart."""

    leaves: list[Any]
    """Of the values given, then the tensors of attributes and layers."""
    given: int
    """How many of them are of the values given."""
    structure: Any
    settings: list[Any]


class Variant(NamedTuple):
    """A compiled function, and what it relies on."""

    run: Callable[[list[Any]], Any]
    tensors: list[int]
    """The places of tensors among the leaves."""
    numbers: list[int]
    """The places of whole numbers that are symbols."""
    constants: list[tuple[int, Any]]
    structure: Any
    settings: list[Any]
    tests: tuple[Any, Any]
    """Torch's own: of its modes, and of all tensors."""
    holds: Callable[[dict[str, Any]], bool] | None
    """The conditions on symbols."""

    def fits(self, inputs: Inputs) -> bool:
        """Whether it may run on these."""
        leaves = inputs.leaves
        if self.structure != inputs.structure or self.settings != inputs.settings:
            return False
        if any(type(leaves[place]) is not type(value) or leaves[place] != value for place, value in self.constants):
            return False
        if any(type(leaves[place]) is not int for place in self.numbers):
            return False
        if not self.tests[0].check() or not self.tests[1].check(*[leaves[place] for place in self.tensors]):
            return False
        return self.holds is None or self.holds(
            {f"v{place}": leaves[place] for place in (*self.tensors, *self.numbers)}
        )


class Flat(NamedTuple):
    """What a back end compiles: a function of tensors and numbers that gives a tuple of so many."""

    run: Callable[..., tuple[Any, ...]]
    results: int
    given: int = 0
    """So many of the tensors and numbers, the first ones, were given; the others are read of the program."""
    writes: bool = False
    """Whether it writes into what is there."""
    written: tuple[int, ...] = ()
    """The places of what it is seen to write into."""


class Torn(Exception):
    """A node cannot be compiled; it becomes an island."""

    def __init__(self, node: Node, reason: str) -> None:
        super().__init__(reason)
        self.node, self.reason = node, reason


# ---- segments --------------------------------------------------------------------------------------------------------


class TorchSegment:
    """Runs some nodes of a torch program; ``islands`` lists those that it found it cannot compile, with the reasons."""

    def __init__(self, graph: Graph, name: str, fallback: bool, engine: Any) -> None:
        self.graph, self.name, self.fallback, self.engine = graph, name, fallback, engine
        self.__name__ = self.__qualname__ = name
        self.islands: list[tuple[Node, str]] = []
        self.variants: list[Variant] = []
        self.in_python = ""
        """Why the whole segment runs in Python, if it does."""
        self._attributes: Attributes | None = None
        self._torn: Graph | None = None
        self._plain: Callable[..., Any] | None = None
        self._seen: dict[Any, set[int]] = {}

    def __call__(self, root: Any, *values: Any) -> Any:
        if self._torn is not None:
            return _Torn(root, graph=self._torn).run(root, *values)
        if self.in_python:
            return self._run_plainly(root, values)
        inputs = self._inputs(root, values)
        if inputs is None:
            return self._run_plainly(root, values)
        for place, variant in enumerate(self.variants):
            if variant.fits(inputs):
                if place:
                    self.variants = [variant, *self.variants[:place], *self.variants[place + 1 :]]
                return variant.run(inputs.leaves)
        with _LOCK:
            made = self._make_variant(root, inputs)
        return self(root, *values) if made is None else made.run(inputs.leaves)

    def __deepcopy__(self, memo: dict[int, Any]) -> TorchSegment:
        return TorchSegment(self.graph, self.name, self.fallback, self.engine)

    def __reduce__(self) -> Any:
        raise BackendError(
            "a compiled program cannot be saved", why="what a back end made lives in this process",
            fixes=("save the captured program, and compile it again after loading",),
        )  # fmt: skip

    def _inputs(self, root: Any, values: tuple[Any, ...]) -> Inputs | None:
        """The values and what is read of the root; None where the layers must be called as they are."""
        try:
            if self._attributes is None:
                self._attributes = Attributes(self.graph, root)
            read = self._attributes.read(root)
        except Moved:
            self._attributes = Attributes(self.graph, root)
            read = self._attributes.read(root)
        if read is None:
            return None
        structure: Any = len(values)
        leaves = list(values)
        if any(type(value) in _NESTS for value in values):
            leaves, structure = tree.flatten(values)
        return Inputs([*leaves, *read[0]], len(leaves), structure, read[1])

    def _run_plainly(self, root: Any, values: tuple[Any, ...]) -> Any:
        if self._plain is None:
            self._plain = compile_function(self.graph.python_code("self"), self.name)
        return self._plain(root, *values)

    # ---- compiling -----------------------------------------------------------------------------------------------

    def _make_variant(self, root: Any, inputs: Inputs) -> Variant | None:
        """A variant for these; None if the segment has found out that it must do otherwise."""
        if len(self.variants) >= LIMIT:
            self._give_up(f"it was compiled for {LIMIT} kinds of arguments, and none of them fits", warn=True)
            return None
        self._note_sizes(inputs)
        try:
            self._check_leaves(inputs)
            kinds = self._kinds(inputs)
            program = Program(self.graph, root, self._attributes, inputs)
            program.try_on_fakes(*self._fakes(inputs, kinds)[:2])
            variant = self._compiled(program, inputs, kinds)
        except Torn as torn:
            self._tear(torn)
            return None
        except Exception as error:
            if not self.fallback and isinstance(error, BackendError):
                raise
            if not self.fallback:
                raise BackendError(
                    f"{self.engine.name} cannot compile {self.name}: {type(error).__name__}: {_first_line(error)}",
                    where=_where(self.graph),
                    fixes=("give fallback=True: the segment then runs in Python",),
                ) from error
            self._give_up(f"{self.engine.name} cannot compile it: {_first_line(error)}", warn=True)
            return None
        self.variants = [variant, *self.variants]
        return variant

    def _give_up(self, reason: str, warn: bool) -> None:
        self.in_python = reason
        self.islands = [(node, reason) for node in self.graph.nodes if node.op.startswith("call")]
        if warn:
            warnings.warn(f"{self.name} runs in Python: {reason}", RuntimeWarning, stacklevel=5)

    def _tear(self, torn: Torn) -> None:
        """Let a node be an island, between two segments."""
        nodes = [node for node in self.graph.nodes if node.op.startswith("call")]
        place = nodes.index(torn.node)
        self.islands.append((torn.node, torn.reason))
        torn.node.meta[ISLAND] = torn.reason
        self._torn = self._pieces([nodes[:place], [torn.node], nodes[place + 1 :]], torn.node)

    def _pieces(self, runs: list[list[Node]], alone: Node) -> Graph:
        graph = Graph()
        known: dict[Node, Node] = {}
        root = graph.placeholder("_root")
        for node in self.graph.find_nodes(op="placeholder"):
            known[node] = graph.placeholder(node.name)
        returned = self.graph.output_node()
        for number, run in enumerate(run for run in runs if run):
            members = set(run)
            gives = [node for node in run if any(user not in members for user in node.users)]
            given = list(dict.fromkeys(used for node in run for used in node.all_input_nodes
                                       if used not in members and used.op != "get_attr"))  # fmt: skip
            part = inner_graph(run, given, gives or run[-1:])
            part.owning_module = self.graph.owning_module
            made = TorchSegment(part, f"{self.name}_{number}", self.fallback, self.engine)
            made.islands = self.islands  # one list for all pieces
            made.in_python = "it is an island" if run == [alone] else ""
            called = graph.call_function(made, (root, *(known[node] for node in given)))
            for place, node in enumerate(gives):
                known[node] = called if len(gives) == 1 else graph.call_function(operator.getitem, (called, place))
        graph.output(tree.tree_map(lambda leaf: known.get(leaf, leaf), returned.args[0]))
        return graph

    def _note_sizes(self, inputs: Inputs) -> None:
        """Remember the sizes and numbers of this call: what differs between calls becomes a symbol."""
        for place, leaf in enumerate(inputs.leaves):
            if isinstance(leaf, torch.Tensor) and place < inputs.given:
                for axis, size in enumerate(leaf.shape):
                    self._seen.setdefault((place, axis), set()).add(size)
            elif type(leaf) is int:
                self._seen.setdefault(place, set()).add(leaf)

    def _check_leaves(self, inputs: Inputs) -> None:
        """Let what uses a value of a kind that no variant can rely on be an island."""
        taken = tree.flatten(self.graph.find_nodes(op="placeholder"))[0]
        structure = inputs.structure
        for place, leaf in enumerate(inputs.leaves):
            is_tensor = isinstance(leaf, torch.Tensor)
            if is_tensor and type(leaf) in (torch.Tensor, torch.nn.Parameter) and leaf.layout is torch.strided:
                continue
            if type(leaf) in _PLAIN:
                continue
            reason = f"it is given a {type(leaf).__name__}"
            if type(structure) is int and place < inputs.given:
                raise Torn(next(iter(taken[place].users)), reason)
            raise Torn(next(node for node in self.graph.nodes if node.op.startswith("call")), reason)

    def _kinds(self, inputs: Inputs) -> list[Any]:
        """For each leaf: which axes are symbols; whether a number is one; None for constants."""
        kinds: list[Any] = []
        for place, leaf in enumerate(inputs.leaves):
            if isinstance(leaf, torch.Tensor):
                kinds.append([self._is_symbol((place, axis), size) for axis, size in enumerate(leaf.shape)])
            elif type(leaf) is int and self._is_symbol(place, leaf):
                kinds.append(True)
            else:
                kinds.append(None)
        return kinds

    def _is_symbol(self, key: Any, value: int) -> bool:
        return self.engine.takes_symbols and value > 1 and len(self._seen.get(key, ())) > 1

    def _fakes(self, inputs: Inputs, kinds: list[Any]) -> tuple[list[Any], FakeTensorMode, list[Any]]:
        """A fake of each tensor, a symbol for each number that is one; the sources by which conditions name them."""
        shapes = ShapeEnv(allow_scalar_outputs=False, allow_dynamic_output_shape_ops=False)
        mode = FakeTensorMode(shape_env=shapes, allow_non_fake_inputs=True)
        fakes: list[Any] = []
        sources: list[Any] = []
        for place, (leaf, kind) in enumerate(zip(inputs.leaves, kinds, strict=True)):
            source = torch._dynamo.source.ConstantSource(f"v{place}")
            if isinstance(kind, list):
                dims = [DimDynamic.DYNAMIC if is_symbol else DimDynamic.STATIC for is_symbol in kind]
                context: Any = StatelessSymbolicContext(dims)
                fakes.append(mode.from_tensor(leaf, source=source, symbolic_context=context))
                sources.append(source)
            elif kind:
                symbol = shapes.create_symbol(leaf, source, DimDynamic.DYNAMIC)
                fakes.append(shapes.create_symintnode(symbol, hint=leaf, source=source))
                sources.append(source)
            else:
                fakes.append(leaf)
        return fakes, mode, sources

    def _compiled(self, program: Program, inputs: Inputs, kinds: list[Any]) -> Variant:
        fakes, mode, sources = self._fakes(inputs, kinds) if self.engine.needs_fakes else ([], None, [])
        symbolic = [fake for fake, kind in zip(fakes, kinds, strict=bool(fakes)) if kind is not None]
        tensors = [place for place, kind in enumerate(kinds) if isinstance(kind, list)]
        numbers = [place for place, kind in enumerate(kinds) if kind is True]
        rest = [place for place, kind in enumerate(kinds) if kind is None]

        def run(*given: Any) -> tuple[Any, ...]:
            leaves = list(inputs.leaves)
            for place, value in zip(order, given, strict=True):
                leaves[place] = value
            return program.run_flat(leaves)

        order = sorted((*tensors, *numbers))
        example = [inputs.leaves[place] for place in order]
        root = getattr(self.graph.owning_module, "_self", None)
        writes = any(effect_of(attempted(node), root) is Effect.WRITE for node in self.graph.nodes)
        given = sum(place < inputs.given for place in order)
        written = tuple(number for number, place in enumerate(order) if place in program.written)
        made = self.engine.compiled(Flat(run, program.count, given, writes, written), symbolic, mode, example)
        tests = (torch._C._dynamo.guards.GlobalStateGuard(), _tensor_tests(inputs.leaves, tensors, kinds, writes))
        constants = [(place, inputs.leaves[place]) for place in rest]
        holds = None if mode is None else _conditions(mode, symbolic, sources)
        finish = program.finisher()

        def plain_call(leaves: list[Any]) -> Any:
            return finish(made(*[leaves[place] for place in order]))

        tries = any(attempted(node) is not node for node in self.graph.nodes)
        call = refusing(plain_call, f"a call in {self.name}") if tries else plain_call
        return Variant(call, tensors, numbers, constants, inputs.structure, inputs.settings, tests, holds)


_NESTS = (list, tuple, dict, torch.Size)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).split("\n")[0]


def _where(graph: Graph) -> str:
    found = next((node.source for node in graph.nodes if node.source is not None), None)
    return "" if found is None else found.describe()


def _tensor_tests(leaves: list[Any], places: list[int], kinds: list[Any], writes: bool) -> Any:
    """Torch's own test of tensors: types, dispatch keys, dtypes, devices, sizes, strides, and that none is another."""
    tensors = [leaves[place] for place in places]
    sizes = [[None if is_symbol else size for size, is_symbol in zip(leaves[place].shape, kinds[place], strict=True)]
             for place in places]  # fmt: skip
    strides = [[None] * leaves[place].dim() if any(kinds[place]) else list(leaves[place].stride()) for place in places]
    return _TensorTests(tensors, sizes, strides, writes)


class _TensorTests:
    """That test, for tensors some of which may be one object: each object is tested once.

    Where the segment writes, also which tensors share memory, and where they begin in it.
    """

    def __init__(self, tensors: list[torch.Tensor], sizes: list[Any], strides: list[Any], writes: bool) -> None:
        self.same = _same(tensors)
        self.memory = _memory(tensors) if writes else None
        self.pointers = [tensor.data_ptr() for tensor in tensors] if writes else None
        """Where tensors began when they were last found to share memory as they should."""
        once = [place for place, first in enumerate(self.same) if place == first]
        self.once = None if len(once) == len(tensors) else once
        self.test = torch._C._dynamo.guards.TensorGuards(
            *[tensors[place] for place in once],
            dynamic_dims_sizes=[sizes[place] for place in once],
            dynamic_dims_strides=[strides[place] for place in once],
        )

    def check(self, *tensors: Any) -> bool:
        if self.once is None:
            fits = bool(self.test.check(*tensors))  # which is false where two are one
        else:
            fits = _same(tensors) == self.same and bool(self.test.check(*[tensors[place] for place in self.once]))
        return fits and (self.memory is None or self._shares_memory_as_before(tensors))

    def _shares_memory_as_before(self, tensors: Sequence[torch.Tensor]) -> bool:
        pointers = [tensor.data_ptr() for tensor in tensors]
        if pointers == self.pointers:
            return True
        if _memory(tensors) != self.memory:
            return False
        self.pointers = pointers
        return True


def _same(tensors: Sequence[Any]) -> list[int]:
    """For each tensor the place of the first that is the same object."""
    first: dict[int, int] = {}
    return [first.setdefault(id(tensor), place) for place, tensor in enumerate(tensors)]


def _memory(tensors: Sequence[torch.Tensor]) -> list[tuple[int, int]]:
    """For each tensor that shares its memory: with which first one, and its place in it."""
    groups: dict[int, list[int]] = {}
    for place, tensor in enumerate(tensors):
        groups.setdefault(tensor.untyped_storage()._cdata, []).append(place)
    shared = [group for group in groups.values() if len(group) > 1]
    return [(group[0], int(tensors[place].storage_offset())) for group in shared for place in group]


def _conditions(
    mode: FakeTensorMode, symbolic: list[Any], sources: list[Any]
) -> Callable[[dict[str, Any]], bool] | None:
    """A test of the sizes and numbers that are symbols; None if there are none."""
    shapes: Any = mode.shape_env
    if not shapes.var_to_range and not shapes.guards:
        return None
    found = shapes.produce_guards_verbose(symbolic, sources, langs=("python",))
    texts = [text for one in found for text in one.exprs]
    if not texts:
        return None
    code = compile(" and ".join(f"({text})" for text in texts), "<clew sizes>", "eval")
    return lambda values: bool(eval(code, SYMPY_INTERP, values))


class _Torn(Interpreter):
    """Runs the pieces of a segment."""

    def __init__(self, root: Any, graph: Graph) -> None:
        super().__init__(root, graph=graph)
        self.extra_traceback = False


# ---- a segment as a function of tensors ------------------------------------------------------------------------------


class Program:
    """The nodes of a segment, run on stand-ins for the tensors that were given and read."""

    def __init__(self, graph: Graph, root: Any, attributes: Attributes | None, inputs: Inputs) -> None:
        assert attributes is not None, "they were just read"
        self.graph, self.root, self.attributes, self.inputs = graph, root, attributes, inputs
        self.structure: Any = None
        self.constants: list[Any] = []
        self.written: set[int] = set()
        """The places of what is seen to be written into; kernels that write statistics do so unseen."""

    def try_on_fakes(self, leaves: list[Any], mode: FakeTensorMode) -> None:
        """Raise ``Torn`` for the first node that cannot be run on fake tensors; find out what is given back."""
        before = [_version(leaf) for leaf in leaves]
        with mode:
            found, self.structure = tree.flatten(self._run(leaves, _Checking))
        self.constants = [None if _is_symbolic(leaf) else (leaf,) for leaf in found]
        self.written = {place for place, leaf in enumerate(leaves) if _version(leaf) != before[place]}

    @property
    def count(self) -> int:
        """How many values are given back that are no constants."""
        return self.constants.count(None)

    def run_flat(self, leaves: list[Any]) -> tuple[Any, ...]:
        """What is given back that is no constant, in order."""
        found = tree.flatten(self._run(leaves, _Running))[0]
        return tuple(leaf for leaf, constant in zip(found, self.constants, strict=True) if constant is None)

    def finisher(self) -> Callable[[Sequence[Any]], Any]:
        """What makes the result of the segment of what ``run_flat`` gives."""
        structure, constants = self.structure, self.constants
        if constants == [None] and structure.is_leaf():
            return operator.itemgetter(0)
        if self.count == len(constants):
            return lambda found: tree.unflatten(found, structure)

        def finish(found: Sequence[Any]) -> Any:
            rest = iter(found)
            return tree.unflatten([next(rest) if one is None else one[0] for one in constants], structure)

        return finish

    def _run(self, leaves: list[Any], kind: type[_Running]) -> Any:
        given, read = leaves[: self.inputs.given], leaves[self.inputs.given :]
        structure = self.inputs.structure
        values = given if type(structure) is int else tree.unflatten(given, structure)
        attributes: dict[str, Any] = dict(zip(self.attributes.plain_paths, self.inputs.settings, strict=False))
        layers: dict[str, dict[str, Any]] = {path: {} for path in self.attributes.layers}
        for (layer, path), tensor in zip(self.attributes.names, read, strict=True):
            (layers[layer] if layer else attributes)[path] = tensor
        with contextlib.ExitStack() as stack:
            for path, tensors in layers.items():
                if tensors:
                    stack.enter_context(_reparametrize_module(self.attributes.layers[path], tensors))
            return kind(self.root, self.graph, attributes, self.attributes.layers).run(*values)


def _version(leaf: Any) -> int | None:
    """How often a tensor has been written; None if nobody counts."""
    return leaf._version if isinstance(leaf, torch.Tensor) and not leaf.is_inference() else None


def _is_symbolic(leaf: Any) -> bool:
    return isinstance(leaf, (torch.Tensor, torch.SymInt))


class _Running(Interpreter):
    """Runs the nodes; attributes and layers are those that were read."""

    def __init__(self, root: Any, graph: Graph, attributes: dict[str, Any], layers: dict[str, Any]) -> None:
        super().__init__(root, graph=graph)
        self.attributes, self.layers = attributes, layers
        self.extra_traceback = False

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.attributes[target]

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.layers[target](*args, **kwargs)


class _Checking(_Running):
    """The same on fake tensors; tells which node cannot be compiled."""

    def run(self, *args: Any, **kwargs: Any) -> Any:
        self.given = [arg for arg in args if isinstance(arg, (list, dict))]
        return super().run(*args, **kwargs)

    def run_node(self, n: Node) -> Any:
        if not n.op.startswith("call"):
            return super().run_node(n)
        args, _ = self.fetch_args_kwargs_from_env(n)
        if effect_of(n) is Effect.WRITE and n.op != "call_module" and args and isinstance(args[0], (list, dict)):
            raise Torn(n, "it changes a container")
        try:
            value = super().run_node(n)
        except Exception as error:
            raise Torn(n, f"it needs what only a run tells: {_first_line(error)}") from error
        if any(value is one for one in self.given):
            raise Torn(n, "it gives a container that it was given")
        if any(user.op == "output" for user in n.users):
            for leaf in tree.flatten(value)[0]:
                if not _is_symbolic(leaf) and type(leaf) not in _PLAIN:
                    raise Torn(n, f"it gives a {type(leaf).__name__}")
        return value
