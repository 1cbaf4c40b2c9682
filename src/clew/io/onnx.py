"""ONNX: a captured torch program as a file that other engines run.

In come a captured program, a path and an example (that of the capture, while it is there); out comes a ``Written``, and
the file. Clew's graph is run node by node under ``torch.export``, so that branches and loops on data become ``If`` and
``Loop``, and torch's exporter, which is made of onnxscript and onnx-ir, writes the operators. Sizes that the capture
leaves free stay free, and have its names. ONNX has no guards, no state and no random numbers that others could draw
again: programs that need these are refused, or the file says what they assume. What was written is run by onnxruntime,
where that is installed, and compared. Importing this file imports torch.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import importlib.util
import operator
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.nn.utils.stateless import _reparametrize_module

from clew import tree
from clew.errors import InteropError, MissingFramework, NoExample
from clew.ir.arguments import all_nodes
from clew.ir.control_flow import cond, for_loop, while_loop
from clew.ir.effects import is_impure, resolve, sets_state
from clew.ir.graph import Graph
from clew.ir.guards import Guard, guard_of, is_guard
from clew.ir.interpreter import Interpreter
from clew.ir.node import Node
from clew.passes.program import graph_in, opened
from clew.passes.remove_prints import remove_prints

_NEEDED, _ENGINE = ("onnx", "onnx_ir", "onnxscript"), "onnxruntime"
_LARGEST = 2**31 - 2**20
"""A file holds less than 2 GB; larger weights lie beside it."""
_RANDOM = frozenset(
    "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial Dropout".split()
)
"""A dropout is there only if it drops something."""
_TOLD = ("size", "mode", "structure", "computed")
"""The kinds of guards that a file says it assumes: it has no inputs for what the others are about."""
_AUTO = torch.export.Dim.AUTO


@dataclass(frozen=True)
class Written:
    """What was written: the names of inputs and outputs, the sizes that are free, what the file assumes."""

    path: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sizes: tuple[str, ...]
    assumed: tuple[str, ...]
    checked: bool
    """Whether onnxruntime has run it, and gave what the program gives."""


def to_onnx(
    captured: Any,
    path: str | os.PathLike[str],
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    *,
    unchecked: bool = False,
    check: bool = True,
    opset: int | None = None,
) -> Written:
    """Write a captured torch program as ONNX.

    Arrays of the example are the inputs of the file, under the names of the program's arguments; all else is constant.
    A guard on a value that the program computes is refused, because ONNX cannot raise its error; with ``unchecked``
    such guards are left out. With ``check`` onnxruntime runs the file on the example, and ``InteropError`` tells where
    it gives something else.
    """
    for package in _NEEDED:
        if importlib.util.find_spec(package) is None:
            raise MissingFramework(
                f"to_onnx needs {package}, which is not installed", fixes=("pip install clew[onnx]",)
            )
    graph = graph_in(captured)
    _check_given(captured, os.fspath(path))
    _refuse_state(graph)
    program = _Program(captured, _without_prints(graph), unchecked, *_example(captured, args, kwargs))
    made = _exported(program, opset)
    model = made.model
    drawn = sorted({node.op_type for node in model.graph.all_nodes()} & _RANDOM)
    if drawn:
        raise InteropError(
            f"the program draws random numbers ({', '.join(drawn)})",
            why="engines of ONNX draw others",
            fixes=("capture the module in evaluation mode", "pass random values as arguments"),
        )
    free, named = _rename_sizes(model, program.names)
    sizes = tuple(dict.fromkeys(free.values()))
    assumed = tuple(str(one) for one in graph.guards.entry if one.kind in _TOLD)
    assumed += tuple(map(named, program.noted.conditions))
    model.metadata_props["clew.assumes"] = "\n".join(assumed)
    held = [value.const_value for value in model.graph.initializers.values()]
    weights = sum(one.nbytes for one in held if one is not None)
    made.save(os.fspath(path), external_data=weights > _LARGEST)
    outputs = tuple(str(value.name) for value in model.graph.outputs)
    has_engine = check and importlib.util.find_spec(_ENGINE) is not None
    if has_engine:
        _check(os.fspath(path), program, free)
    return Written(os.fspath(path), tuple(program.names), outputs, sizes, assumed, has_engine)


def _check_given(captured: Any, path: str) -> None:
    """Raise for a program or a path that nothing can be written of or to, before any work is done."""
    framework = getattr(type(captured), "framework", "torch") or "torch"
    if framework != "torch":
        raise InteropError(
            f"this is a program of {framework}, and ONNX is written of programs of torch",
            fixes=('translate it first: clew.translate(captured, to="torch")',),
        )
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise InteropError(f"there is no folder {folder} to write to")


def _exported(program: _Program, opset: int | None) -> Any:
    try:
        with torch.no_grad(), contextlib.redirect_stdout(None):
            return program.exported(opset)
    except InteropError:
        raise
    except Exception as error:  # torch's exporter has errors of many classes
        refused = _refusal_behind(error)
        if refused is not None:
            raise refused from None
        raise InteropError(
            f"torch's exporter cannot write the program: {type(error).__name__}: {str(error).strip().splitlines()[0]}",
            why="it makes all sizes and plain numbers symbols, and runs no kernel",
            fixes=(
                "if a library asks for data, capture it as exporters do, under clew.exporting()",
                "compute what it needs outside of the program, and pass it as an argument",
            ),
        ) from error


def _refusal_behind(error: BaseException | None) -> InteropError | None:
    """Our own error that torch's exporter has wrapped into one of its own, if it has."""
    while error is not None and not isinstance(error, InteropError):
        error = error.__cause__ or error.__context__
    return error


# ---- what cannot be written ------------------------------------------------------------------------------------------


def _refuse_state(graph: Graph) -> None:
    for node in all_nodes(graph):
        if node.op == "call_function" and sets_state(node.target):
            raise InteropError(
                "the program changes state besides its arguments, which a file of ONNX does not have",
                where=_where(node),
                fixes=("take the state as an argument and return the new one",),
            )


def _where(node: Node) -> str:
    return "" if node.source is None else node.source.describe()


def _without_prints(graph: Graph) -> Graph:
    """A copy without prints, and without what only they look at."""
    made = copy.deepcopy(graph)
    made.owning_module = graph.owning_module
    remove_prints(made)
    with opened(made) as graphs:
        for one in graphs:
            for node in reversed(list(one.nodes)):
                if not node.users and not is_impure(node):
                    one.erase_node(node)
    return made


def _example(captured: Any, args: tuple[Any, ...] | None, kwargs: dict[str, Any] | None) -> tuple[Any, ...]:
    if args is not None or kwargs is not None:
        return args or (), kwargs or {}
    known = vars(captured).get("_example")
    if known is None:
        raise NoExample("there is no example to write the program for", fixes=("to_onnx(captured, path, args)",))
    found: tuple[Any, ...] = known.call(_gone)
    return found


def _gone(kind: Any) -> Any:
    raise NoExample(
        f"the example of the capture is gone: its {kind} was let go", fixes=("give one: to_onnx(captured, path, args)",)
    )


# ---- the program under torch's exporter ------------------------------------------------------------------------------


class _Noted:
    """What is found out while the program runs; torch's exporter takes back what a module sets of its own."""

    outputs: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    """On sizes, in torch's symbols."""


class _Program(torch.nn.Module):
    """A captured program as a module whose inputs and outputs are flat lists of tensors."""

    owner: Any
    captured: Any
    program: Graph
    unchecked: bool
    noted: _Noted
    leaves: list[Any]
    places: list[int]
    call: tuple[Any, ...]
    names: list[str]

    def __init__(
        self, captured: Any, graph: Graph, unchecked: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        super().__init__()
        root = graph.owning_module
        self.root = getattr(root, "_self", root)
        vars(self)["owner"] = root  # its tensors are those of the root above, or constants
        vars(self).update(captured=captured, program=graph, unchecked=unchecked, noted=_Noted())
        args, kwargs = _widened(captured, args, kwargs)
        bound = captured._entered()[0].bind(*args, **kwargs)
        bound.apply_defaults()
        values = [bound.arguments[str(node.target).lstrip("*")] for node in graph.find_nodes(op="placeholder")]
        leaves, self.structure = tree.flatten(values)
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        vars(self).update(leaves=leaves, places=places, call=(args, kwargs))
        named = [(str(node.target).lstrip("*"), len(tree.flatten(value)[0]))
                 for node, value in zip(graph.find_nodes(op="placeholder"), values, strict=True)]  # fmt: skip
        every = [name if count == 1 else f"{name}_{number}" for name, count in named for number in range(count)]
        self.names = [every[place] for place in places]

    def forward(self, *given: torch.Tensor) -> list[Any]:
        leaves = list(self.leaves)
        for place, value in zip(self.places, given, strict=True):
            leaves[place] = value
        result = _Exporting(self.owner, self.program, self.unchecked).run(*tree.unflatten(leaves, self.structure))
        self.noted.outputs = tuple(_output_names(result))
        return [leaf for leaf in tree.flatten(_plain(result))[0] if isinstance(leaf, (torch.Tensor, torch.SymInt))]

    def exported(self, opset: int | None) -> Any:
        """The program as torch's exporter has it in ONNX."""
        given = tuple(self.leaves[place] for place in self.places)
        free = tuple({axis: _AUTO for axis, size in enumerate(one.shape) if size > 1} for one in given)
        program = torch.export.export(self, given, dynamic_shapes=(free,), strict=False)
        self.noted.conditions = _conditions(program)
        return torch.onnx.export(program, dynamo=True, verbose=False, input_names=self.names, opset_version=opset,
                                 output_names=list(self.noted.outputs))  # fmt: skip

    def expected(self, leaves: list[Any]) -> list[Any] | None:
        """What the captured program gives for other tensors than those of the example; None if it refuses them."""
        others = {id(old): new for old, new in zip(self.leaves, leaves, strict=True) if isinstance(new, torch.Tensor)}
        args, kwargs = tree.tree_map(lambda leaf: others.get(id(leaf), leaf), self.call)
        if self.captured.check(*args, **kwargs) is not None:
            return None
        try:
            with torch.no_grad():
                found = tree.flatten(_plain(self.captured(*args, **kwargs)))[0]
        except Exception:  # sizes that do not fit together, of which no guard has to know
            return None
        return [leaf for leaf in found if isinstance(leaf, torch.Tensor) or type(leaf) is int]


def _widened(captured: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The example with sizes of one made two where the program allows it: torch's exporter takes a one for fixed."""
    leaves, structure = tree.flatten((args, kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.dim()]
    for axes in (range(4), [0]):
        wider = [_wider(leaf, axes) if any(leaf is one for one in tensors) else leaf for leaf in leaves]
        wide_args, wide_kwargs = tree.unflatten(wider, structure)
        with contextlib.suppress(Exception), torch.no_grad():  # a program may need a size of one: then that is fixed
            if captured.check(*wide_args, **wide_kwargs) is None:
                captured(*wide_args, **wide_kwargs)
                return wide_args, wide_kwargs
    return args, kwargs


def _wider(tensor: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
    repeats = [2 if size == 1 and axis in axes else 1 for axis, size in enumerate(tensor.shape)]
    return tensor.repeat(repeats) if 2 in repeats else tensor


def _plain(result: Any) -> Any:
    """A result without classes of the program around it: what is no container keeps its tensors in attributes."""
    if isinstance(result, dict):
        return {key: _plain(value) for key, value in result.items()}
    if isinstance(result, (list, tuple)):
        return [_plain(value) for value in result]
    if isinstance(result, (torch.Tensor, torch.SymInt)) or not hasattr(result, "__dict__") or isinstance(result, type):
        return result
    return _plain({key: value for key, value in vars(result).items() if _holds_values(value)})


def _holds_values(value: Any) -> bool:
    """Whether an attribute of a result is worth a look: a list of layers of a cache, say."""
    if isinstance(value, (list, tuple)):
        return any(_holds_values(one) for one in value)
    return isinstance(value, torch.Tensor) or (hasattr(value, "keys") and hasattr(value, "values"))


def _output_names(result: Any) -> list[str]:
    names: list[str] = []

    def walk(value: Any, name: str) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                walk(item, f"{name}_{key}" if name else str(key))
        elif isinstance(value, list):
            for place, item in enumerate(value):
                walk(item, f"{name or 'output'}_{place}")
        elif isinstance(value, (torch.Tensor, torch.SymInt)):
            names.append(name or "output")

    walk(_plain(result), "")
    return names


class _OfData:
    """In the place of a value that depends on data and that only guards look at."""


_OF_DATA = _OfData()
_PLAIN_OF_DATA = (bool, int, float, complex, operator.index, "item", "tolist")
"""What makes a plain value of a tensor's data."""
_ASKING_VALUES = ("equals", "either")
"""The tests of guards that ask what a value is; others ask about its kind."""
_SETTLED = {torch.SymBool: bool, torch.SymInt: int, torch.SymFloat: float}


class _Exporting(Interpreter):
    """Runs a graph so that torch's exporter sees its branches and loops.

    The guards of the entrance were looked at before. Those on computed values are looked at here: what ranks, dtypes
    and modes answer is settled for the file, an answer that sizes give becomes a condition on them, which torch's
    exporter notes, and one that data gives is refused, or left out.
    """

    def __init__(self, module: Any, graph: Graph, unchecked: bool) -> None:
        super().__init__(module, graph=graph)
        self.unchecked = unchecked
        self.attributes: dict[str, Any] = {}
        self.layers: dict[str, Any] = {}
        self.extra_traceback = False
        self._for_guards = _used_by_guards_alone(graph)

    def run_node(self, n: Node) -> Any:
        if is_guard(n):
            return self._look_at(n)
        if n in self._for_guards:
            return self._for_a_guard(n)
        return super().run_node(n)

    def _for_a_guard(self, node: Node) -> Any:
        """A value that only guards look at; what data decides is not asked for."""
        args, kwargs = self.fetch_args_kwargs_from_env(node)
        given = tree.flatten((args, kwargs))[0]
        if any(one is _OF_DATA for one in given):
            return _OF_DATA
        if node.target in _PLAIN_OF_DATA and any(isinstance(one, torch.Tensor) for one in given):
            return _OF_DATA
        return super().run_node(node)

    def _look_at(self, node: Node) -> None:
        value = self.fetch_args_kwargs_from_env(node)[0][0]
        found = guard_of(node)
        is_of_data = value is _OF_DATA or (isinstance(value, torch.Tensor) and found.test in _ASKING_VALUES)
        if self.unchecked or not (is_of_data or not _holds(found, value)):
            return
        raise InteropError(
            f"the program relies on a value that it computes: {node.args[0]}",
            where=_where(node),
            why="ONNX cannot raise an error that depends on data",
            fixes=(
                "capture it as exporters do: with clew.exporting(): captured = clew.trace(...)",
                "leave such guards out: to_onnx(..., unchecked=True)",
                "capture with clew.trace's default",
            ),
        )

    def _check(self, guards: Any) -> None:
        """The file says what it assumes."""

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.attributes[target] if target in self.attributes else super().get_attr(target, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if target is cond and isinstance(args[0], torch.Tensor):
            return self._branch(*args)
        if target is cond and isinstance(args[0], torch.SymBool):
            return self._branch_on_a_size(*args)
        if target is while_loop:
            return self._loop(*args, **kwargs)
        if getattr(target, "__name__", "") in _GROUPED and args[0].dim() == 2 and args[1].dim() == 3:
            return _grouped_product(*args, **kwargs)
        if target is for_loop and args and isinstance(args[0], range):
            return for_loop(*args, **kwargs)
        return super().call_function(target, args, kwargs)

    def body(self, graph: Graph) -> Any:
        """A body, with what it reads of the root."""
        return _Body(self, graph, super().body(graph))

    def _branch_on_a_size(self, pred: torch.SymBool, true: _Body, false: _Body, operands: Sequence[Any] = ()) -> Any:
        """A branch of the file, or, where the sides give other things than each other or one of them cannot be written,
        the side that the example takes: torch's exporter notes the condition, and the file says it."""
        try:
            return self._branch(pred, true, false, operands)
        except Exception:  # torch's exporter has errors of many classes
            return (true if bool(pred) else false)(*operands)

    def _branch(
        self, pred: torch.Tensor | torch.SymBool, true: _Body, false: _Body, operands: Sequence[Any] = ()
    ) -> Any:
        given = [*operands, *true.tensors(), *false.tensors()]
        passed = [place for place, value in enumerate(given) if isinstance(value, (torch.Tensor, torch.SymInt))]
        forms: list[_Form] = []

        def side(body: _Body, start: int) -> Callable[..., Any]:
            def run(*values: Any) -> tuple[torch.Tensor, ...]:
                filled = list(given)
                for place, value in zip(passed, values, strict=True):
                    filled[place] = value
                count = len(body.tensors())
                found = body.run(filled[: len(operands)], filled[start : start + count])
                form, arrays = _form(found)
                forms.append(form)
                return arrays

            return run

        first = len(operands)
        sides = side(true, first), side(false, first + len(true.tensors()))
        found = torch.ops.higher_order.cond(pred, *sides, tuple(given[place] for place in passed))
        if any(form != forms[0] for form in forms):
            raise InteropError("the sides of a branch give other things than each other, and ONNX has arrays alone")
        return forms[0].filled(found)

    def _loop(
        self, test: _Body, body: _Body, carried: Sequence[Any], operands: Sequence[Any] = (), outputs: int = 0,
        breaks: bool = False,
    ) -> Any:  # fmt: skip
        if outputs or breaks:
            raise InteropError(
                "a loop that collects values or is left by break has no form in ONNX that torch's exporter knows",
                fixes=("carry a tensor with the results", "let the condition of the loop say when it ends"),
            )
        rest = [*operands, *test.tensors(), *body.tensors()]
        tensors = [place for place, value in enumerate(rest) if isinstance(value, torch.Tensor)]
        middle = len(operands) + len(test.tensors())

        def piece(one: _Body, start: int) -> Callable[..., Any]:
            def run(*values: torch.Tensor) -> Any:
                filled = list(rest)
                for place, value in zip(tensors, values[len(carried) :], strict=True):
                    filled[place] = value
                read = filled[start : start + len(one.tensors())]
                return one.run([*values[: len(carried)], *filled[: len(operands)]], read)

            return run

        ask, step = piece(test, len(operands)), piece(body, middle)
        return torch.ops.higher_order.while_loop(
            lambda *values: _tensor(ask(*values)),
            lambda *values: tuple(_tensor(value) for value in step(*values)),
            tuple(_tensor(value) for value in carried),
            tuple(rest[place] for place in tensors),
        )


_GROUPED = frozenset({"grouped_mm", "_grouped_mm", "grouped_mm_fallback"})
"""Torch's products of groups of rows, and the operator that transformers has registered for the same."""


def _grouped_product(rows: torch.Tensor, matrices: torch.Tensor, offs: torch.Tensor, **options: Any) -> torch.Tensor:
    """Each row times the matrix of its group, which ``offs`` ends. ONNX has no such operator: all products are made."""
    given = sorted(name for name, value in options.items() if value is not None)
    if given:
        raise InteropError(f"grouped_mm with {', '.join(given)} has no form in ONNX")
    numbers = torch.arange(rows.shape[0], device=rows.device)
    groups = (numbers.unsqueeze(1) >= offs).sum(1).clamp(max=matrices.shape[0] - 1)
    return torch.matmul(rows, matrices)[groups, numbers]


class _Form(NamedTuple):
    """What a side of a branch gives besides arrays."""

    structure: Any
    rest: tuple[tuple[int, Any], ...]
    """The places of what is no array, with what is there: None, a dtype."""

    def filled(self, arrays: Sequence[Any]) -> Any:
        """The result, with these arrays."""
        leaves = list(arrays)
        for place, value in self.rest:
            leaves.insert(place, value)
        return tree.unflatten(leaves, self.structure)


def _form(result: Any) -> tuple[_Form, tuple[torch.Tensor, ...]]:
    leaves, structure = tree.flatten(result)
    rest = tuple((place, leaf) for place, leaf in enumerate(leaves) if not isinstance(leaf, _ARRAYS))
    return _Form(structure, rest), tuple(_tensor(leaf) for leaf in leaves if isinstance(leaf, _ARRAYS))


_ARRAYS = (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool, bool, int, float, complex)
"""What is an array when a branch gives it."""


def _used_by_guards_alone(graph: Graph) -> set[Node]:
    """What is computed only for guards on computed values."""
    found: set[Node] = set()
    for node in reversed(list(graph.nodes)):
        is_wanted = node.op == "placeholder" or is_impure(node) or not node.users
        if not is_wanted and all(user in found or is_guard(user) for user in node.users):
            found.add(node)
    return found


def _holds(guard: Guard, value: Any) -> bool:
    """Whether a guard holds; a symbol is what it stands for in the example, on which torch's exporter relies then."""
    if guard.test in ("type", "array"):
        of_array = isinstance(value, torch.Tensor) and issubclass(guard.expected, torch.Tensor)
        return of_array or _SETTLED.get(type(value), type(value)) is guard.expected
    return guard.holds(tree.tree_map(lambda leaf: _SETTLED.get(type(leaf), lambda one: one)(leaf), value))


def _tensor(value: Any) -> torch.Tensor:
    """A value of its own, since branches and loops may not give back what they were given."""
    return value.clone() if isinstance(value, torch.Tensor) else torch.tensor(value)


class _Body:
    """The body of a branch or loop; what it reads of the root is given to it as well."""

    def __init__(self, outer: _Exporting, graph: Graph, plain: Callable[..., Any]) -> None:
        self.outer, self.graph, self.plain = outer, graph, plain
        nodes = list(all_nodes(graph))
        paths = dict.fromkeys(str(node.target) for node in nodes if node.op == "get_attr")
        layers = dict.fromkeys(str(node.target) for node in nodes if node.op == "call_module")
        self.paths = [path for path in paths if isinstance(self._read(path), torch.Tensor)]
        self.layers = {path: self._read(path) for path in layers}
        self.inside = [(path, name) for path, layer in self.layers.items() for name, _ in _tensors_of(layer)]

    def _read(self, path: str) -> Any:
        return self.outer.attributes.get(path, resolve(self.outer.module, path))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.plain(*args, **kwargs)

    def tensors(self) -> list[torch.Tensor]:
        """What it reads."""
        inside = [dict(_tensors_of(self.layers[path]))[name] for path, name in self.inside]
        return [*(self._read(path) for path in self.paths), *inside]

    def run(self, values: Sequence[Any], read: Sequence[torch.Tensor]) -> Any:
        """What it gives, with these in the place of what it reads."""
        inner = _Exporting(self.outer.module, self.graph, self.outer.unchecked)
        inner.attributes = {**self.outer.attributes, **dict(zip(self.paths, read, strict=False))}
        of_layers: dict[str, dict[str, torch.Tensor]] = {}
        for (path, name), tensor in zip(self.inside, read[len(self.paths) :], strict=True):
            of_layers.setdefault(path, {})[name] = tensor
        with contextlib.ExitStack() as stack:
            for path, tensors in of_layers.items():
                stack.enter_context(_reparametrize_module(self.layers[path], tensors))
            return inner.run(*values, enable_io_processing=False)


def _tensors_of(layer: Any) -> list[tuple[str, torch.Tensor]]:
    return [*layer.named_parameters(), *layer.named_buffers()]


# ---- names and the check ---------------------------------------------------------------------------------------------


def _conditions(program: Any) -> tuple[str, ...]:
    """What torch's exporter has relied on of the sizes that are free."""
    values = [node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"]
    sizes: list[Any] = [size for one in values if isinstance(one, torch.Tensor) for size in one.shape]
    found = next((size.node.shape_env for size in sizes if isinstance(size, torch.SymInt)), None)
    texts = [] if found is None else [str(one.expr) for one in found.guards]
    return tuple(dict.fromkeys(texts))


def _rename_sizes(model: Any, names: Sequence[str]) -> tuple[dict[tuple[str, int], str], Callable[[str], str]]:
    """Give the sizes that are free the names that the capture has for them.

    Which axes of inputs have which comes out, and what puts the names into a text.
    """
    found: dict[str, str] = {}
    free: dict[tuple[str, int], str] = {}
    for value, name in zip(model.graph.inputs, names, strict=True):
        for axis, size in enumerate(value.shape or ()):
            if not _is_fixed(size):
                free[name, axis] = found.setdefault(str(size.value), f"{name}_{axis}")
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, found)) or '(?!)'})\b")
    inner = [value for node in model.graph.all_nodes() for value in node.outputs]
    for value in (*model.graph.inputs, *model.graph.outputs, *inner):
        for axis, size in enumerate(value.shape or ()):
            if isinstance(size, int) or size.value is None:
                continue
            text = str(size.value)
            value.shape[axis] = int(text) if _is_fixed(size) else pattern.sub(lambda match: found[match[0]], text)
    return free, lambda text: pattern.sub(lambda match: found[match[0]], text)


def _is_fixed(size: Any) -> bool:
    """Whether a size is a number; torch's exporter may write one as the name of a size."""
    return isinstance(size, int) or str(size.value).isdigit()


def _check(path: str, program: _Program, free: dict[tuple[str, int], str]) -> None:
    """Compare what onnxruntime gives with what the program gives: on the example, and on one with other free sizes."""
    engine = importlib.import_module(_ENGINE).InferenceSession(path, providers=["CPUExecutionProvider"])
    known = {one.name for one in engine.get_inputs()}
    for leaves in (program.leaves, _longer(program, free)):
        wanted = program.expected(leaves)
        if wanted is None:
            continue  # the program takes no such sizes
        given = {name: leaves[place] for name, place in zip(program.names, program.places, strict=True)}
        try:
            results = engine.run(None, {name: one.detach().numpy() for name, one in given.items() if name in known})
        except Exception as error:  # the engine has errors of many classes
            raise InteropError(f"onnxruntime cannot run what was written: {error}") from error
        for number, (found, one) in enumerate(zip(results, wanted, strict=True)):
            _compare(program.noted.outputs[number], torch.as_tensor(found), torch.as_tensor(one))


def _compare(name: str, found: torch.Tensor, wanted: torch.Tensor) -> None:
    try:
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3, equal_nan=True)
    except AssertionError as error:
        raise InteropError(
            f"onnxruntime gives another {name} than the program",
            why=str(error).replace("\n", " ").strip(),
            fixes=("check=False writes the file as it is",),
        ) from error


def _longer(program: _Program, free: dict[tuple[str, int], str]) -> list[Any]:
    """The example with one more along each axis that is free."""
    leaves = list(program.leaves)
    for name, place in zip(program.names, program.places, strict=True):
        for axis in [axis for one, axis in free if one == name]:
            leaves[place] = torch.cat([leaves[place], leaves[place].narrow(axis, 0, 1)], axis)
    return leaves
