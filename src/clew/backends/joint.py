"""Joint graphs: the forward and the backward pass of a captured torch program in one graph of torch's operators.

A captured program and an example come in; out comes a ``Joint``. The program is run once on fake tensors under torch's
own tracer, and autograd is asked for the gradients in the same run, so that the nodes are the operators that autograd
itself would call, in its order, with all writes. What stands in for a tensor has the program's name for it. Everything
that the run has seen and a later call may have otherwise is guarded: kinds of tensors, numbers, layers, modes. Always
holds: a program whose way depends on data is refused with the line that asks. Importing this file imports torch.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot, make_fx
from torch.nn.utils.stateless import _reparametrize_module

from clew import tree
from clew.backends.torch_attributes import is_plain_layer
from clew.backends.torch_backend import reason_against
from clew.capture.bytecode.try_blocks import attempted
from clew.capture.state.slots import ROOT
from clew.errors import BackendError, a_or_an
from clew.frameworks.torch.tracing_tools import is_tracer
from clew.ir.arguments import all_nodes, bodies_of, references
from clew.ir.control_flow import cond, is_control, while_loop
from clew.ir.effects import effect_of, resolve, sets_state
from clew.ir.graph import Graph
from clew.ir.guards import Attribute, Call, Guard, guard_of, is_guard
from clew.ir.guests import Effect, is_plain_value, package_of
from clew.ir.interpreter import Interpreter
from clew.ir.node import Node

# ---- what the guards of a joint graph ask for ------------------------------------------------------------------------


def kind_of_tensor(tensor: Any) -> str:
    """All that operators may rely on: class, dtype, sizes, strides and device, in one text."""
    if not isinstance(tensor, torch.Tensor):
        return type(tensor).__name__
    kind = type(tensor)
    name = "" if kind in (torch.Tensor, torch.nn.Parameter, FakeTensor) else f"{kind.__name__} "
    return name + _layout_of(tensor)


def _layout_of(tensor: torch.Tensor) -> str:
    if tensor.layout is not torch.strided:
        return f"{tensor.dtype} {tuple(tensor.shape)} {tensor.layout} {tensor.device}"
    marks = (" conj" if tensor.is_conj() else "") + (" neg" if tensor.is_neg() else "")
    return f"{tensor.dtype} {tuple(tensor.shape)} by {tensor.stride()} {tensor.device}{marks}"


def kind_of_layer(layer: Any) -> str:
    """The classes, modes and settings of a layer of torch's and its parts; empty if somebody listens to it."""
    if not is_plain_layer(layer):
        return ""
    return "; ".join(f"{path}{type(one).__name__}({_settings(one)})" for path, one in layer.named_modules())


def _settings(module: torch.nn.Module) -> str:
    held = vars(module)
    shown = {name: value for name, value in held.items() if not name.startswith("_") and _is_shown(value)}
    missing = [name for kind in ("_parameters", "_buffers") for name, value in held[kind].items() if value is None]
    return ", ".join([*(f"{name}={value!r}" for name, value in shown.items()), *missing])


def _is_shown(value: Any) -> bool:
    return not isinstance(value, (torch.Tensor, torch.nn.Module))


def modes() -> str:
    """The modes of torch that change which operators a program calls, other than those of gradients."""
    devices = [kind for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)]
    casts = ", ".join(f"autocast on {kind} to {torch.get_autocast_dtype(kind)}" for kind in devices)
    default = f"{torch.get_default_dtype()} on {torch.get_default_device()}"
    is_strict = torch.are_deterministic_algorithms_enabled()
    return f"{casts or 'no autocast'}, {default}{', deterministic' if is_strict else ''}"


# ---- the program that is run -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Primal:
    """A tensor that comes in: of an argument, or an attribute of the program."""

    name: str
    subject: Any
    """Where it is found: an expression over inputs of the captured graph, or an attribute."""
    tensor: torch.Tensor
    aliases: tuple[str, ...] = ()
    """Further paths of the same parameter."""

    @property
    def is_attribute(self) -> bool:
        return isinstance(self.subject, Attribute)


@dataclass
class Program:
    """A captured program, taken apart: its tensors, what is fixed, and the nodes that only build the result."""

    captured: Any
    graph: Graph
    root: Any
    values: list[Any]
    """Of the inputs of the graph, in order."""
    primals: list[Primal] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    layers: dict[str, Any] = field(default_factory=dict)

    @property
    def is_tried(self) -> bool:
        """Whether the program catches errors of some of its calls, which then goes another way."""
        return any(attempted(node) is not node for node in all_nodes(self.graph))

    @property
    def tail(self) -> list[Node]:
        """The nodes at the end that build the result, the output last."""
        return [node for node in self.graph.nodes if node.op == "output" or _is_building(node)]


def _is_building(node: Node) -> bool:
    return getattr(node.target, "__module__", "") == "clew.capture.recording.outputs"


def program_of(captured: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
    """A captured program with an example of its arguments; an error if it cannot have a joint graph."""
    graph = captured.graph
    for node in all_nodes(graph):
        reason = _reason(node, graph.owning_module)
        if reason:
            raise refusal(node, reason)
    failing = captured.check(*args, **kwargs)
    if failing is not None:
        raise BackendError(f"the example does not fit the capture, which assumed {failing}")
    bound = captured._entered()[0].bind(*args, **kwargs)
    bound.apply_defaults()
    inputs = graph.find_nodes(op="placeholder")
    values = [bound.arguments[str(node.target).lstrip("*")] for node in inputs]
    found = Program(captured, graph, graph.owning_module, values)
    for node, value in zip(inputs, values, strict=True):
        _take_apart(found, node, value, str(node.target).lstrip("*"))
    _read_attributes(found)
    tracers = dict.fromkeys(node.target for node in all_nodes(graph) if is_tracer(node))
    found.guards += [Guard(Call(one, ()), "equals", False, "mode") for one in tracers]
    found.guards.append(Guard(Call(modes, ()), "equals", modes(), "mode"))
    return found


def refusal(node: Node, reason: str) -> BackendError:
    """Why a program has no joint graph."""
    return BackendError(
        f"the backward pass cannot be made: {reason}",
        where="" if node.source is None else node.source.describe(),
        why="forward and backward are one list of operators, which is the same for all values of the tensors",
        fixes=('capture the way of the example: clew.trace(..., control_flow="guard")',
               "leave this part out of the program, and let autograd join the rest"),
    )  # fmt: skip


_ASKING = (bool, int, operator.truth, operator.not_, operator.index)
_ASKING_METHODS = ("item", "tolist", "__bool__", "__int__", "__index__")
_ENDS = ("__enter__", "__exit__")
_BLOCKS = (torch.no_grad, torch.enable_grad, torch.set_grad_enabled)


def _is_block(node: Any) -> bool:
    """Whether a node makes the manager of a ``with`` block about gradients or autocast."""
    target = getattr(node, "target", None)
    is_known = target in _BLOCKS or (isinstance(target, type) and issubclass(target, torch.autocast))
    return is_known and all(user.target in _ENDS for user in node.users)


def _reason(node: Node, root: Any) -> str:
    tried = attempted(node)
    if tried is not node:
        return reason_against(tried) or _unknown(effect_of(tried))
    if not node.op.startswith("call") or is_guard(node) or is_control(node) or _is_building(node):
        return ""
    if node.op == "call_module":
        return "" if is_plain_layer(resolve(root, str(node.target))) else "somebody listens to this layer"
    if bodies_of(node):
        return "a function is given a function"
    if node.op == "call_method" and node.target in _ENDS:
        return "" if _is_block(node.args[0]) else "a block that sets more than gradients and autocast"
    if _is_block(node):
        return ""
    if node.op == "call_function" and sets_state(node.target):
        return "the program sets state that is no tensor's"
    if node.target is getattr and node.args[1] == "requires_grad":
        return "the program asks whether a tensor requires gradients"
    if is_question(node) or is_tracer(node):
        return ""
    effect = effect_of(node, root)
    if package_of(node.target) == "clew" and effect is Effect.NONE:
        return ""
    return str(node.meta.get("opaque") or reason_against(node) or _unknown(effect))


def _unknown(effect: Effect) -> str:
    return "nobody vouches for what it does" if effect is Effect.UNKNOWN else ""


def is_question(node: Node) -> bool:
    """Whether a node asks what a tensor holds; the answer of the example becomes a guard."""
    asks = node.target in _ASKING if node.op == "call_function" else node.target in _ASKING_METHODS
    return asks and not node.kwargs and len(node.args) == 1


def _take_apart(found: Program, subject: Any, value: Any, name: str) -> None:
    """The tensors in the value of an input, and guards for all else that is in it."""
    if isinstance(value, torch.Tensor):
        found.primals.append(Primal(name, subject, value))
        found.guards.append(_kind(subject, value))
    elif type(value) in (list, tuple, dict):
        is_dict = type(value) is dict
        test, told = ("keys", tuple(value)) if is_dict else ("length", len(value))
        found.guards += [Guard(subject, "type", type(value), "type"), Guard(subject, test, told, "structure")]
        for key, item in value.items() if is_dict else enumerate(value):
            _take_apart(found, Call(operator.getitem, (subject, key)), item, f"{name}[{key!r}]")
    elif _is_plain(value):
        found.guards.append(Guard(subject, "equals", value, "value"))
    elif not (isinstance(subject, Node) and not subject.users):
        raise BackendError(
            f"the backward pass cannot be made: the argument {name!r} has {a_or_an(value)}",
            why="tensors come in as arguments, or in lists, tuples and dicts",
            fixes=("pass its tensors",),
        )


_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def _is_plain(value: Any) -> bool:
    return type(value) in _PLAIN or is_plain_value(value)


def _kind(subject: Any, tensor: torch.Tensor) -> Guard:
    return Guard(Call(kind_of_tensor, (subject,)), "equals", kind_of_tensor(tensor), "type")


def _read_attributes(found: Program) -> None:
    """The tensors, settings and layers that the graph reads of the program."""
    paths: dict[str, Any] = {}
    for node in all_nodes(found.graph):
        path = str(node.target)
        if node.op == "get_attr" and path != ROOT:
            paths[path] = resolve(found.root, path)
        elif node.op == "call_module" and path not in found.layers:
            layer = found.layers[path] = resolve(found.root, path)
            found.guards.append(Guard(Call(kind_of_layer, (Attribute(path),)), "equals", kind_of_layer(layer), "mode"))
            tensors = [*layer.named_parameters(remove_duplicate=False), *layer.named_buffers(remove_duplicate=False)]
            paths |= {f"{path}.{name}": tensor for name, tensor in tensors}
    names: dict[int, list[str]] = {}
    for path, value in paths.items():
        subject = Attribute(path)
        if isinstance(value, torch.Tensor):
            names.setdefault(id(value), []).append(path)
            found.guards.append(_kind(subject, value))
        elif _is_plain(value):
            kind = "mode" if path.rpartition(".")[2] == "training" else "variable"
            found.guards.append(Guard(subject, "equals", value, kind))
        else:
            raise BackendError(f"the backward pass cannot be made: {path!r} is {a_or_an(value)}")
    for first, *others in names.values():
        found.primals.append(Primal(first, Attribute(first), paths[first], tuple(others)))
        same = [Call(operator.is_, (Attribute(first), Attribute(other))) for other in others]
        found.guards += [Guard(subject, "equals", True, "variable") for subject in same]


@dataclass(frozen=True)
class Assumption:
    """An answer that the example gives to a question about a tensor."""

    node: Node
    """That asks."""
    value: Any
    how: Any
    """The function that asks, or the name of the method."""
    answer: Any


class Asked(Exception):
    """The program asks what a tensor holds."""


def _is_kind(one: Guard) -> bool:
    """Whether a guard is answered by the kind of a tensor."""
    return one.test == "type" and one.expected is torch.Tensor


class _Running(Interpreter):
    """Runs a program up to its tail on stand-ins for its tensors."""

    def __init__(self, program: Program, tensors: Sequence[Any], answers: Iterator[Any] | None = None) -> None:
        super().__init__(program.root, graph=program.graph)
        self.extra_traceback = False
        self.program = program
        self.tail = frozenset(program.tail)
        self.results: dict[Node, Any] = {
            used: None
            for node in program.tail
            for used in references((node.args, node.kwargs))
            if used not in self.tail
        }
        self.entered: list[Any] = []
        self.assumed: list[Assumption] = []
        self.answers = answers
        """What the example answers; None if nobody knows yet."""
        self.noted: list[Any] = []
        """The answers of a run on tensors that are no stand-ins."""
        self.node: Node
        self.tensors: dict[str, Any] = {}
        for primal, tensor in zip(program.primals, tensors, strict=True):
            if primal.is_attribute:
                self.tensors |= dict.fromkeys((primal.name, *primal.aliases), tensor)

    def run_on(self, tensors: Sequence[Any]) -> dict[Node, Any]:
        """The values that the tail is given."""
        given = iter(
            [one for one, primal in zip(tensors, self.program.primals, strict=True) if not primal.is_attribute]
        )
        values = [_with_tensors(value, given) for value in self.program.values]
        try:
            self.run(*values, enable_io_processing=False)
        finally:
            for manager in reversed(self.entered):  # those that an error has kept from being left
                manager.__exit__(None, None, None)
        return self.results

    def _check(self, guards: Any) -> None:
        """They were looked at before."""

    def run_node(self, n: Node) -> Any:
        if n in self.tail:
            return None
        if is_tracer(n):
            return False  # as in a plain call
        if is_guard(n) or is_question(n):
            value = self.fetch_args_kwargs_from_env(n)[0][0]
            if isinstance(value, torch.Tensor) and (is_question(n) or _is_kind(guard_of(n))):
                return self.ask(n, value, n.target) if is_question(n) else None
        self.node = n
        try:
            value = super().run_node(n)
        except Exception as error:
            if isinstance(error, (BackendError, Asked)) or not n.op.startswith("call"):
                raise
            line = (str(error).strip() or type(error).__name__).split("\n")[0]
            raise refusal(n, f"{n.name} needs what only a run tells: {line}") from error
        if n in self.results:
            self.results[n] = value
        return value

    def ask(self, n: Node, value: torch.Tensor, how: Any) -> Any:
        """What the example answers to a question about a tensor."""
        if self.answers is None:
            raise Asked
        if isinstance(value, FakeTensor):
            answer = next(self.answers)
            self.assumed.append(Assumption(n, value, how, answer))
            return answer
        answer = how(value) if callable(how) else getattr(value, how)()
        if not all(type(leaf) in (bool, int) for leaf in tree.flatten(answer)[0]):
            raise refusal(n, f"{n.name} asks for a fraction that is computed")
        self.noted.append(answer)
        return answer

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if target is cond and isinstance(args[0], torch.Tensor):
            args = (self.ask(self.node, args[0], bool), *args[1:])
        elif target is while_loop:
            args = (functools.partial(self._goes_on, self.node, args[0]), *args[1:])
        return super().call_function(target, args, kwargs)

    def _goes_on(self, n: Node, test: Any, *values: Any) -> bool:
        found = test(*values)
        return bool(self.ask(n, found, bool) if isinstance(found, torch.Tensor) else found)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return next(self.args_iter)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tensors[target] if target in self.tensors else resolve(self.program.root, target)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if target == "__exit__":
            self.entered.remove(args[0])
        value = super().call_method(target, args, kwargs)
        if target == "__enter__":
            self.entered.append(args[0])
        return value

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        layer, prefix = self.program.layers[target], f"{target}."
        held = {path[len(prefix) :]: value for path, value in self.tensors.items() if path.startswith(prefix)}
        with _reparametrize_module(layer, held) if held else contextlib.nullcontext():
            return layer(*args, **kwargs)


def _with_tensors(value: Any, given: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return next(given)
    if type(value) in (list, tuple):
        return type(value)([_with_tensors(item, given) for item in value])
    return {key: _with_tensors(item, given) for key, item in value.items()} if type(value) is dict else value


# ---- the trace -------------------------------------------------------------------------------------------------------


@dataclass
class Trace:
    """Forward and backward of a program as torch's tracer has written them down."""

    program: Program
    wrt: list[int]
    """The places of the primals whose gradients are wanted."""
    module: torch.fx.GraphModule
    results: dict[Node, Any]
    """What the tail is given: nests with numbers of results in the place of tensors."""
    tangents: list[int]
    """The results that need gradients."""
    assumed: list[Assumption]
    owners: dict[str, tuple[Node | None, bool]]
    """For each node of torch's: the node that it comes from, and whether it is of the backward pass."""
    names: dict[str, str]


class _Noting(_Running):
    """Runs a program under torch's tracer and notes which of its nodes the operators come from."""

    def __init__(self, program: Program, tensors: Sequence[Any], answers: Iterator[Any]) -> None:
        super().__init__(program, tensors, answers)
        mode = get_proxy_mode()
        assert mode is not None, "it runs under the tracer"
        self.tracer = mode.tracer
        self.owners: dict[str, tuple[Node | None, bool]] = {}
        self.names: dict[str, str] = {}
        self.current: list[tuple[Node | None, bool]] = [(None, False)]
        self.known: dict[Any, Node] = {}

    def run_node(self, n: Node) -> Any:
        self.go_on((n, False))
        value = super().run_node(n)
        self.go_on((None, False))
        for leaf in tree.flatten(value)[0] if n.op.startswith("call") else ():
            if isinstance(leaf, torch.Tensor):
                self._name(leaf, n)
                self._own(leaf.grad_fn, n)
        return value

    def go_on(self, owner: tuple[Node | None, bool]) -> None:
        """What was written down up to now has the owner of before."""
        for node in reversed(self.tracer.graph.nodes):
            if node.name in self.owners:
                break
            self.owners[node.name] = self.current[0]
        self.current[0] = owner

    def _name(self, leaf: torch.Tensor, node: Node) -> None:
        found = get_proxy_slot(leaf, self.tracer, None, lambda one: one.proxy.node)
        if found is not None and found.op != "placeholder":
            self.names.setdefault(found.name, node.name)

    def _own(self, function: Any, node: Node) -> None:
        """Let the operators of this step of autograd be those of a node."""
        waiting = [function]
        while waiting:
            one = waiting.pop()
            if one is not None and one not in self.known:
                self.known[one] = node
                one.register_prehook(lambda gradients: self.go_on((node, True)))
                waiting += [before for before, _ in one.next_functions]


class _Standing(FakeTensorMode):
    """Stand-ins for tensors, also for operators whose fake kernels take less than their real ones: those run on zeros
    of the same sizes and strides, and their results tell of what kind the stand-in is."""

    def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._grouped_mm.default and args[0].dtype is not torch.bfloat16:
            return self._as_on_zeros(func, args, kwargs or {})
        return super().dispatch(func, types, args, kwargs)

    def _as_on_zeros(self, func: Any, args: Any, kwargs: Any) -> Any:
        zeros, named = tree.tree_map(_zeros_like, (args, kwargs))
        made = func(*zeros, **named)
        empty = torch.empty_strided(made.shape, made.stride(), dtype=made.dtype, device="meta")
        return FakeTensor(self, empty, made.device)


def _zeros_like(value: Any) -> Any:
    """A tensor of zeros in the place of a stand-in."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device).zero_()


def trace(program: Program, wrt: list[int]) -> Trace:
    """Run a program forward and backward on fake tensors."""
    mode = _Standing()
    found, answers = _first_run(mode, program, wrt)
    outcomes = [leaf for leaf in tree.flatten(list(found.values()))[0] if isinstance(leaf, torch.Tensor)]
    _check_results(found)
    tangents = [place for place, leaf in enumerate(outcomes) if leaf.requires_grad]
    if not tangents:
        raise BackendError(
            "the backward pass cannot be made: no result depends on what gradients are wanted of",
            fixes=("name others: wrt=[...]", "let parameters require gradients"),
        )
    noted: list[Any] = []

    def joint(*given: Any) -> Any:
        primals, gradients = given[: len(fakes)], given[len(fakes) :]
        run = _Noting(program, primals, iter(answers))
        with torch.enable_grad():
            results = run.run_on(primals)
            leaves, structure = tree.flatten(list(results.values()))
            tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
            run.go_on((None, True))
            wanted = [primals[place] for place in wrt]
            outs = [tensors[place] for place in tangents]
            found = torch.autograd.grad(outs, wanted, gradients, allow_unused=True)
        run.go_on((None, True))
        noted.append((run, leaves, structure))
        return tensors, [one.value for one in run.assumed], found

    fakes = _fakes(mode, program, wrt)
    with mode, _plain_layers():
        starts = [torch.empty_like(outcomes[place], requires_grad=False) for place in tangents]
        module = make_fx(joint)(*fakes, *starts)
    run, leaves, structure = noted[-1]
    numbers = iter(range(len(outcomes)))
    places = [Result(next(numbers)) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    results = dict(zip(run.results, tree.unflatten(places, structure), strict=True))
    return Trace(program, wrt, module, results, tangents, run.assumed, run.owners, run.names)


def _first_run(mode: FakeTensorMode, program: Program, wrt: list[int]) -> tuple[dict[Node, Any], list[Any]]:
    """What the tail is given, as stand-ins, and what the example answers where the program asks."""
    answers: list[Any] = []
    for may_ask in (True, False):
        fakes = _fakes(mode, program, wrt)
        try:
            with mode, torch.enable_grad(), _plain_layers():
                return _Running(program, fakes, None if may_ask else iter(answers)).run_on(fakes), answers
        except Asked:
            answers = _answers(program)
    raise AssertionError("a run that has all answers asks nobody")


def _answers(program: Program) -> list[Any]:
    """What the example answers: the program is run on copies, and random numbers are put back."""
    copies = [primal.tensor.detach().clone() for primal in program.primals]
    run = _Running(program, copies, iter(()))
    with torch.random.fork_rng(), torch.no_grad():
        run.run_on(copies)
    return run.noted


@contextlib.contextmanager
def _plain_layers() -> Iterator[None]:
    """Recurrent layers as operators on tensors: oneDNN's one for whole layers has results that no graph can hold."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def _check_results(found: dict[Node, Any]) -> None:
    for node, value in found.items():
        odd = [leaf for leaf in tree.flatten(value)[0] if not isinstance(leaf, torch.Tensor) and not _is_plain(leaf)]
        if odd and node.op != "placeholder":
            raise refusal(node, f"the result has {a_or_an(odd[0])}")


@dataclass(frozen=True)
class Result:
    """Stands for a tensor among the results."""

    number: int


def _fakes(mode: FakeTensorMode, program: Program, wrt: list[int]) -> list[Any]:
    """Stand-ins for the tensors of a program; those of which gradients are wanted require them."""
    return [
        mode.from_tensor(primal.tensor.detach(), static_shapes=True).detach().requires_grad_(place in wrt)
        for place, primal in enumerate(program.primals)
    ]
