"""Generated code bound to its modules: attributes out of their dicts, calls of small modules as expressions.

The source of a graph and its root come in; out come the same function with the same lines, and a function that tells
whether it still does what the first one does. That holds while the modules are those that were found, of the same
classes, without hooks, and torch's own functions are as they were. Parameters, buffers and settings
of modules are read anew at each call, each once where none can change meanwhile; a plain number beside a tensor is a
tensor made once. Where nothing can be bound there is no bound code.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch.nn.modules import module as hooks_of_all

from clew.capture.guards.notes import CHECKS
from clew.capture.symbolic.wrap import is_wrapped
from clew.codegen.python import CodeGen, PythonCode
from clew.frameworks.torch.modules.leaf_expressions import Spelling, spelling_of
from clew.ir.arguments import all_nodes
from clew.ir.effects import effect_of, is_declared, resolve
from clew.ir.graph import Graph
from clew.ir.guests import Effect
from clew.runtime.fast.direct import Body, compiled
from clew.runtime.fast.module_fingerprint import HOOKS

# ---- binding ---------------------------------------------------------------------------------------------------------


PREFIX = "_bound_"
"""What names of this file begin with in the globals of generated code."""
ARGUMENT = f"{PREFIX}argument"
NAMES = {"torch": torch, "F": F, "Tensor": torch.Tensor, "type": type, "len": len}

USUAL_LOOKUPS: set[Any] = {torch.nn.Module.__getattr__}
"""The ``__getattr__`` of classes that find parameters, buffers and parts in their dicts."""


class Bound(NamedTuple):
    """The bound function, and one that tells whether it may be called: None if only not now, False if no more."""

    runs: Callable[..., Any]
    ready: Callable[[], bool | None]
    body: Body
    """The same for a call in one step."""


def bind(
    graph: Graph, code: PythonCode, function: FunctionType, root: Any, own: dict[str, Any] | None = None
) -> Bound | None:
    """Bound code for a graph; None where there is nothing to gain, or where a call could change what it relies on.

    ``own`` are attributes that go before those of ``root``. Without them the function is the ``forward`` of the root,
    and is ready only if a call of the root is nothing but that.
    """
    if not isinstance(root, torch.nn.Module) or type(graph._codegen) is not CodeGen:
        return None
    if graph._codegen._body_transformer is not None:
        return None
    if not all(_leaves_modules_alone(node, root) for node in all_nodes(graph)):
        return None
    (definition,) = (part for part in ast.parse(code.src).body if isinstance(part, ast.FunctionDef))
    if sum(isinstance(part, ast.arg) and part.arg == "self" for part in ast.walk(definition)) != 1:
        return None  # an inner function has a root of its own
    binder = _Binder(root, own)
    definition = ast.fix_missing_locations(binder.visit(definition))
    numbers = Numbers(PREFIX, definition)
    numbers.generic_visit(definition)
    ast.fix_missing_locations(definition)
    if not binder.modules and own is not None and not numbers.names:
        return None
    forward = None if own is not None else function
    found = binder.found(forward)  # which may name the root
    names = function.__globals__ | binder.globals() | numbers.names | surroundings()
    bound = compiled(definition, function.__code__.co_filename, names)
    if not binder.modules and own is not None:
        return Bound(bound, _usual, Body(definition, names, UNUSUAL, code._checks))
    ready = ready_while(found, names)
    if ready() is False:
        return None
    dicts = {name for _, name in binder.modules.values()}
    reads = read_once(definition, dicts, PREFIX, OWN) if _sets_nothing(graph) else None
    first = statements(binder.found(forward, are_read=reads is not None), names, reads or {})
    return Bound(bound, ready, Body(definition, names, ELSEWHERE, code._checks, first))


def body_of(code: PythonCode, function: FunctionType, bound: Bound | None) -> Body | None:
    """What a call in one step may run: the bound code, or else the plain one."""
    if any(callable(value) and is_wrapped(value) for value in code.globals.values()):
        return None  # a tracer exchanges such functions, among the globals of the plain code
    if bound is not None:
        return bound.body
    definitions = [part for part in ast.parse(code.src).body if isinstance(part, ast.FunctionDef)]
    names = function.__globals__ | surroundings()
    return Body(definitions[0], names, LOOKED_AT, code._checks) if len(definitions) == 1 else None


def _usual() -> bool | None:
    """Whether nobody does."""
    return True if not any(ask() for ask in SURROUNDINGS.values()) else None


def may_bind() -> bool:
    """Whether tensors that are made now are plain ones, which no mode, tracer or transform has seen."""
    return _usual() is True and torch._C._functorch.peek_interpreter_stack() is None


def _leaves_modules_alone(node: Any, root: torch.nn.Module) -> bool:
    """Whether a node cannot give modules hooks, or others in their place, while the graph runs."""
    if node.op == "call_module":
        found = _module_at(root, node.target)
        return found is not None and type(found).__module__.startswith("torch.nn.")
    if node.op != "call_function" and node.op != "call_method":
        return True
    return node.target in CHECKS or _is_without_gradients(node) or effect_of(node) is not Effect.UNKNOWN


def _is_without_gradients(node: Any) -> bool:
    """Whether a node opens or closes ``with torch.no_grad()``, which touches no module and never adds gradients."""
    if node.op == "call_method" and node.target in ("__enter__", "__exit__"):
        node = node.args[0]
    return getattr(node, "op", "") == "call_function" and node.target is torch.no_grad


def _sets_nothing(graph: Graph) -> bool:
    """Whether no attribute is another object in the middle of a call than at its beginning: what sets attributes has
    an unknown effect, unless somebody has declared that it has one."""
    calls = (node.target for node in all_nodes(graph) if node.op == "call_function")
    return not any(target not in CHECKS and is_declared(target) for target in calls)


def _module_at(root: torch.nn.Module, path: str) -> torch.nn.Module | None:
    try:
        found = resolve(root, path)
    except AttributeError:
        return None
    return found if isinstance(found, torch.nn.Module) else None


class _Binder(ast.NodeTransformer):
    """Rewrites reads and calls that start at ``self``, and notes what they rely on."""

    def __init__(self, root: torch.nn.Module, own: dict[str, Any] | None) -> None:
        self.root = root
        self.own = {} if own is None else own
        self.first: set[str] = set()
        self.modules: dict[int, tuple[torch.nn.Module, str]] = {}
        self.edges: dict[tuple[str, str], str] = {}
        self.spellings: dict[str, Spelling] = {}
        self.sizes: set[str] = set()

    # ---- rewriting -----------------------------------------------------------------------------------------------

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """``self.a.b`` as a look into the dict that holds it."""
        path = _path(node) if isinstance(node.ctx, ast.Load) else None
        found = None if path is None else self._reading(path)
        if found is None:
            self.generic_visit(node)
            return node
        return _at(node, found)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """A call of a module as the expression for it; of another module without the way to it."""
        path = _path(node)
        found = None if path is None else self._reading(path)
        if found is not None:
            return _at(node, found)
        path = _path(node.func)
        module = None if path is None else self._module(path)
        if module is None:
            self.generic_visit(node)
            return node
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return self._call(node, module, self.modules[id(module)][1])

    def _call(self, node: ast.Call, module: torch.nn.Module, name: str) -> ast.expr:
        spelling = spelling_of(type(module))
        if spelling is not None and not node.keywords and len(node.args) == 1 and isinstance(node.args[0], ast.Name):
            fields = _Fields(self, module, {"x": ARGUMENT, "call": f"{name}_module({ARGUMENT})"})
            text = spelling.text.format_map(fields)
            if not fields.is_missing and not _is_special(module):
                self.spellings[name] = spelling
                return _at(node, text, node.args[0].id)
        node.func = _at(node.func, f"{name}_module")
        return node

    def _reading(self, path: list[str]) -> str | None:
        """The expression for an attribute that is no module."""
        *way, name = path
        if not way and name in self.own:
            return f"{PREFIX}own[{name!r}]"
        holder = self._module(way)
        self.first.add(path[0])
        found = None if holder is None else self.place(holder, name)
        if found is not None and holder is not None:
            self.sizes.add(self.modules[id(holder)][1])
        return found

    def place(self, holder: torch.nn.Module, name: str) -> str | None:
        """Where a module keeps an attribute: in its dict, among its parameters or its buffers."""
        own = self._name(holder)
        if not _finds_its_own(holder, name):
            return None
        if name in vars(holder):
            return f"{own}[{name!r}]"
        for kind in ("_parameters", "_buffers"):
            if name in vars(holder)[kind]:
                return f"{own}[{kind!r}][{name!r}]"
        return None

    def _module(self, path: list[str]) -> torch.nn.Module | None:
        """The module at a path, each step of which is noted."""
        if path and path[0] in self.own:
            return None
        self.first.update(path[:1])
        found = self.root
        steps = []
        for name in path:
            child = vars(found)["_modules"].get(name)
            if not isinstance(child, torch.nn.Module) or name in vars(found) or not _finds_its_own(found, name):
                return None
            steps.append((found, name, child))
            found = child
        for holder, name, child in steps:
            self.edges[self._name(holder), name] = self._name(child)
        self._name(found)
        return found

    def _name(self, module: torch.nn.Module) -> str:
        """What the code calls the dict of a module."""
        return self.modules.setdefault(id(module), (module, f"{PREFIX}{len(self.modules)}"))[1]

    # ---- what the code needs, and relies on ----------------------------------------------------------------------

    def globals(self) -> dict[str, Any]:
        """The names of the bound code."""
        names: dict[str, Any] = {f"{PREFIX}{name}": value for name, value in NAMES.items()}
        names[f"{PREFIX}own"] = self.own
        for module, name in self.modules.values():
            names[name] = vars(module)
            names[f"{name}_module"] = module
        return names

    def found(self, forward: FunctionType | None, are_read: bool = False) -> Found:
        """What the code relies on; ``forward`` is the root's, if the root is called.

        With ``are_read`` whoever looks finds out by itself whether an attribute is gone.
        """
        found = Found(own=self.own, not_own=frozenset(self.first) if self.own else frozenset())
        if forward is not None:
            self.sizes.add(self._name(self.root))
            found.called[self._name(self.root)] = False
            found.functions[type(self.root), "forward"] = forward
        for module, name in self.modules.values():
            self._add_module(found, module, name, are_read)
        for (holder, step), child in self.edges.items():
            found.parts.setdefault(holder, {})[step] = child
        passed_by = {one for spelling in self.spellings.values() for one in spelling.passes_by}
        found.functions |= {(F, name): getattr(F, name) for name in sorted(passed_by)}
        return found

    def _add_module(self, found: Found, module: torch.nn.Module, name: str, are_read: bool) -> None:
        """What a module must stay whose calls or attributes are written otherwise."""
        spelling = self.spellings.get(name)
        if spelling is not None:
            found.called[name] = spelling.is_new
            kind = type(module)
            methods = ("forward", "__call__", *spelling.methods)
            found.functions |= {(kind, method): getattr(kind, method) for method in methods}
        if spelling is None and name not in self.sizes:
            return
        found.modules[name] = module
        kinds = [kind for kind in ("_parameters", "_buffers") if vars(module)[kind]]
        if kinds or not are_read:
            found.lengths[name] = len(vars(module))
        hiding = ["_parameters"] if "_buffers" in kinds else []  # a buffer could become hidden behind a parameter
        kinds = hiding if are_read else [*dict.fromkeys([*hiding, *kinds])]  # all else is noticed by who reads it
        found.inner_lengths[name] = {kind: len(vars(module)[kind]) for kind in kinds}


class _Fields(dict[str, str]):
    """The attributes of a module as the text of a spelling asks for them."""

    def __init__(self, binder: _Binder, module: torch.nn.Module, known: dict[str, str]) -> None:
        super().__init__(known)
        self.binder = binder
        self.module = module
        self.is_missing = False

    def __missing__(self, name: str) -> str:
        found = self.binder.place(self.module, name)
        self.is_missing |= found is None
        return found or "None"


def _finds_its_own(holder: torch.nn.Module, name: str) -> bool:
    """Whether an attribute is looked up in the dicts of a module, and nowhere in its class."""
    kind: Any = type(holder)
    is_usual = kind.__getattr__ in USUAL_LOOKUPS and kind.__getattribute__ is object.__getattribute__
    return is_usual and not hasattr(kind, name)


def _is_special(module: torch.nn.Module) -> bool:
    """Whether one module is called in a way of its own."""
    return "forward" in vars(module) or getattr(module, "_compiled_call_impl", None) is not None


def _path(node: ast.AST) -> list[str] | None:
    """The names from ``self`` to an attribute; None for any other expression."""
    names: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        elif _is_getattr(node):
            names.append(node.args[1].value)  # type: ignore[attr-defined]
            node = node.args[0]  # type: ignore[attr-defined]
        else:
            break
    return names[::-1] if isinstance(node, ast.Name) and node.id == "self" and names else None


def _is_getattr(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "getattr":
        return False
    return len(node.args) == 2 and isinstance(node.args[1], ast.Constant) and type(node.args[1].value) is str


def _at(place: ast.AST, text: str, argument: str = "") -> ast.expr:
    """An expression, at the place of another in the source."""
    found = ast.parse(text, mode="eval").body
    for node in ast.walk(found):
        if isinstance(node, ast.Name) and node.id == ARGUMENT:
            node.id = argument
        elif isinstance(node, ast.Name) and node.id in NAMES:
            node.id = f"{PREFIX}{node.id}"
        ast.copy_location(node, place)
    return found


# ---- attributes read once, at the beginning of a call ----------------------------------------------------------------


def read_once(definition: ast.FunctionDef, dicts: Collection[str], prefix: str, own: str) -> dict[str, list[str]]:
    """The statements that read what ``definition`` reads of these dicts, by the dict, which they call ``own``;
    ``definition`` has locals in their place afterwards."""
    reader = _Reader(dicts, prefix, own)
    definition.body = [reader.visit(statement) for statement in definition.body]
    return reader.statements


class OuterStatements(ast.NodeTransformer):
    """Changes a function, but not the functions and comprehensions inside of it: a name that is bound there is theirs,
    and what they share with the function around them is slower than a dict."""

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        """Stays as it is."""
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        """The same."""
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        """The same, and for all that is written like it."""
        return node

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp  # type: ignore[assignment]


class _Reader(OuterStatements):
    """Puts locals in the place of reads, and notes what they stand for."""

    def __init__(self, dicts: Collection[str], prefix: str, own: str) -> None:
        self.dicts = dicts
        self.prefix = prefix
        self.own = own
        self.locals: dict[str, str] = {}
        self.statements: dict[str, list[str]] = {}

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """``module["_parameters"]["weight"]`` as one name."""
        name = self._name(node) if isinstance(node.ctx, ast.Load) else None
        if name is None:
            self.generic_visit(node)
            return node
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def _name(self, node: ast.Subscript) -> str | None:
        """The local for what is read, which a statement fills; None for what is in none of the dicts."""
        holder, key = node.value, node.slice
        if not isinstance(key, ast.Constant):
            return None
        base = self._base(node)
        if base is None:
            return None
        read = ast.unparse(node)
        if read not in self.locals:
            within = self._name(holder) if isinstance(holder, ast.Subscript) else self.own
            self.locals[read] = f"{self.prefix}read{len(self.locals)}"
            self.statements.setdefault(base, []).append(f"{self.locals[read]} = {within}[{key.value!r}]")
        return self.locals[read]

    def _base(self, node: ast.expr) -> str | None:
        """The dict that a chain of subscripts starts at."""
        while isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            node = node.value
        return node.id if isinstance(node, ast.Name) and node.id in self.dicts else None


# ---- numbers beside tensors ------------------------------------------------------------------------------------------

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_SWAPPED: dict[type[ast.operator | ast.cmpop], type[ast.operator | ast.cmpop]] = {
    ast.Add: ast.Add, ast.Mult: ast.Mult, ast.Eq: ast.Eq, ast.NotEq: ast.NotEq,
    ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE,
}  # fmt: skip
"""Operators that Python asks of the second operand when the first is a number: what it asks then."""
_COMPARING = (ast.Eq, ast.NotEq, ast.Lt, ast.Gt, ast.LtE, ast.GtE)
_METHODS = frozenset({"add", "sub", "mul", "div", "gt", "ge", "lt", "le", "eq", "ne", "add_", "sub_", "mul_", "div_"})
_SIZES = frozenset({"dim", "numel", "nelement", "ndimension", "size", "item", "__len__"})
_EXACT = 2**24
"""Up to here whole numbers have a value of their own in each class of floats."""
_SMALLEST, _LARGEST = 1e-30, 1e30


class Numbers(OuterStatements):
    """Puts tensors in the place of numbers; ``names`` are the globals that the code needs then."""

    def __init__(self, prefix: str, definition: ast.FunctionDef) -> None:
        self.prefix = prefix
        self.names: dict[str, Any] = {}
        self._known: dict[tuple[type, str], str] = {}
        self._plain = _numbers_among(definition)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """``x + 1``; ``2 * x`` as ``x * 2``, which is what Python makes of it."""
        self.generic_visit(node)
        if not isinstance(node.op, _ARITHMETIC) or not any(
            isinstance(one, ast.Name) for one in (node.left, node.right)
        ):
            return node  # a result without a name would be kept for longer than it lives
        if _value(node.left) is not None and type(node.op) in _SWAPPED and self._is_usable(node.right, node.left):
            node.left, node.right = node.right, node.left
        if self._is_usable(node.left, node.right):
            node.left, node.right = self._pair(node.left, node.right)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """``x > 0``, and ``0 < x`` as that."""
        self.generic_visit(node)
        if len(node.ops) != 1 or not isinstance(node.ops[0], _COMPARING):
            return node
        (right,) = node.comparators
        if _value(node.left) is not None and self._is_usable(right, node.left):
            node.left, right = right, node.left
            node.ops = [_SWAPPED[type(node.ops[0])]()]  # type: ignore[list-item]
        if self._is_usable(node.left, right):
            node.left, right = self._pair(node.left, right)
        node.comparators = [right]
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        """``x += 1``."""
        self.generic_visit(node)
        target = node.target
        if isinstance(node.op, _ARITHMETIC) and isinstance(target, ast.Name):
            read = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            if self._is_usable(read, node.value):
                node.value = self._pair(read, node.value)[1]
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """``x.add(1)``."""
        self.generic_visit(node)
        method = node.func
        if not isinstance(method, ast.Attribute) or method.attr not in _METHODS or len(node.args) != 1 or node.keywords:
            return node
        if isinstance(method.value, ast.Name) and self._is_usable(method.value, node.args[0]):
            method.value, node.args[0] = self._pair(method.value, node.args[0])
        return node

    # ---- writing -------------------------------------------------------------------------------------------------

    def _is_usable(self, operand: ast.expr, number: ast.expr) -> bool:
        """Whether a number may stand beside a tensor here."""
        value = _value(number)
        if value is None or _value(operand) is not None or _is_number(operand, self._plain):
            return False
        if type(value) is int:
            return abs(value) <= _EXACT
        return value == 0 or _SMALLEST < abs(value) < _LARGEST

    def _pair(self, operand: ast.expr, number: ast.expr) -> tuple[ast.expr, ast.expr]:
        """The operand, read once, and what stands for the number beside it."""
        value: Any = _value(number)
        tensors = self._tensors(value)
        first, again = operand, ast.Name(f"{self.prefix}operand", ast.Load())
        if isinstance(operand, ast.Name):
            again = ast.Name(operand.id, ast.Load())
        else:
            first = ast.NamedExpr(ast.Name(again.id, ast.Store()), operand)
        test = f"{self.prefix}type({again.id}) is {self.prefix}Tensor and {again.id}.is_cpu"
        chosen = ast.parse(f"{tensors}({again.id}.dtype, {value!r}) if {test} else {value!r}", mode="eval").body
        for part in ast.walk(chosen):
            ast.copy_location(part, number)
        return ast.copy_location(first, operand), chosen

    def _tensors(self, value: float) -> str:
        """The name of the function that gives the tensor for a class of the other operand."""
        key = (type(value), repr(value))  # a zero has a sign
        if key not in self._known:
            name = self._known[key] = f"{self.prefix}number{len(self._known)}"
            kinds = [torch.float32, torch.float64, *([torch.int64] if type(value) is int else [])]
            with torch.inference_mode(False):
                made = {kind: torch.tensor(value, dtype=kind, device="cpu") for kind in kinds}
            self.names[name] = made.get
        return self._known[key]


def _value(node: ast.expr) -> float | None:
    """The number that an expression writes out; None for any other."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _value(node.operand)
        return None if inner is None else -inner
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int | float) and type(value) is not bool else None


def _numbers_among(definition: ast.FunctionDef) -> frozenset[str]:
    """The local names that only ever hold numbers or sizes, so that no tensor needs to be looked for."""
    assigned: dict[str, list[ast.expr]] = {}
    stored: list[str] = [node.arg for node in ast.walk(definition) if isinstance(node, ast.arg)]
    for node in ast.walk(definition):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored.append(node.id)
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.NamedExpr)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    assigned.setdefault(target.id, []).append(node.value)
    times = Counter(stored)
    found = frozenset(name for name, values in assigned.items() if len(values) == times[name])
    while True:
        kept = frozenset(name for name in found if all(_is_number(value, found) for value in assigned[name]))
        if kept == found:
            return found
        found = kept


def _is_number(node: ast.expr, names: frozenset[str]) -> bool:
    """Whether an expression is a number, a size or a shape, or nothing at all."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Subscript):
        return _is_number(node.value, names)
    if isinstance(node, ast.Attribute):
        return node.attr in ("shape", "ndim")
    if isinstance(node, ast.BinOp):
        return _is_number(node.left, names) and _is_number(node.right, names)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand, names)
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute):
            return function.attr in _SIZES
        return isinstance(function, ast.Name) and function.id in ("len", "int", "float", "bool")
    return False


# ---- what a bound call relies on -------------------------------------------------------------------------------------
#
# ``Found`` comes in; out come statements that raise where something has changed, and a function of them. They run
# before each call, when little of what they look at is in the processor's cache: so they are written out, without
# loops, and what belongs to one module stands together.


_CALL, _CALL_IMPL, _GETATTR = torch.nn.Module.__call__, torch.nn.Module._call_impl, torch.nn.Module.__getattr__
"""What stands between a call of a module and its ``forward``; a tool that traces puts its own there."""
_FILE = f"{__file__} (ready)"  # a file of Clew's: whoever captures a program passes over it
_everywhere = tuple(getattr(hooks_of_all, f"_global{name}") for name in HOOKS)
SURROUNDINGS: dict[str, Callable[[], Any]] = {
    "compiling": torch.compiler.is_dynamo_compiling,
    "modes": torch._C._len_torch_function_stack,
    "dispatching": torch._C._len_torch_dispatch_stack,
    "tracing": torch._C._is_tracing,
}
"""What tells whether somebody looks at each call of torch."""


@dataclass
class Found:
    """What bound code relies on. Modules have names: the one of a dict, ``vars(module)``, is its module's too."""

    modules: dict[str, torch.nn.Module] = field(default_factory=dict)
    """Modules that must stay of their classes."""
    functions: dict[tuple[Any, str], Any] = field(default_factory=dict)
    """Attributes of classes and of Python modules that must stay what they are."""
    lengths: dict[str, int] = field(default_factory=dict)
    """Dicts that must not become longer or shorter."""
    inner_lengths: dict[str, dict[str, int]] = field(default_factory=dict)
    """The same for dicts in such a dict."""
    called: dict[str, bool] = field(default_factory=dict)
    """Dicts of modules whose calls are written otherwise: they must have no hooks, and no ``forward`` of their own.
    True for those that never give back what they are given."""
    parts: dict[str, dict[str, str]] = field(default_factory=dict)
    """Which modules must stay the parts of a module, by their names there."""
    own: dict[str, Any] = field(default_factory=dict)
    """A dict in which there must be none of these"""
    not_own: frozenset[str] = frozenset()


_READY = "_ready_"
"""What names of this file begin with in the globals of generated code."""
OWN = f"{_READY}own"
"""The local that is the dict of the module which the statements are about."""
FAILED = (KeyError, AttributeError)
"""What is raised where something is not as it was found."""
_RAISE = f"raise {_READY}KeyError"
UNUSUAL = " or ".join(f"{_READY}{name}()" for name in SURROUNDINGS)
"""True while somebody looks at each call of torch: then the plain code runs."""
LOOKED_AT = " or ".join(f"{_READY}{name}()" for name in ("compiling", "modes"))
"""True while somebody looks at the code itself, in order to capture it."""
ELSEWHERE = (
    f"{UNUSUAL} or {_READY}any({_READY}everywhere) or {_READY}Module.__call__ is not {_READY}call "
    f"or {_READY}Module._call_impl is not {_READY}call_impl or {_READY}Module.__getattr__ is not {_READY}find"
)
"""True while a call of a module is something else than its ``forward``, for all modules."""


def surroundings() -> dict[str, Any]:
    """The globals of the expressions of this file."""
    usual = {"Module": torch.nn.Module, "call": _CALL, "call_impl": _CALL_IMPL, "find": _GETATTR}
    plain = {one.__name__: one for one in (any, getattr, len, map, type, KeyError)}  # the program may have such names
    found = {"everywhere": _everywhere, **plain, **usual, **SURROUNDINGS}
    return {f"{_READY}{name}": value for name, value in found.items()}


def ready_while(found: Found, names: dict[str, Any]) -> Callable[[], bool | None]:
    """A function that is true while all is as it was found; None if that is so, but somebody looks at each call."""
    lines = "".join(f"        {line}\n" for line in statements(found, names, {}))
    text = f"def ready():\n    if {ELSEWHERE}: return None\n    try:\n{lines}    except {_READY}failed: return False\n"
    made = {**names, f"{_READY}failed": FAILED}
    exec(compile(f"{text}    return True\n", _FILE, "exec", dont_inherit=True), made)
    ready: Callable[[], bool | None] = made["ready"]
    return ready


def statements(found: Found, names: dict[str, Any], reads: Mapping[str, Sequence[str]]) -> list[str]:
    """Statements that raise one of ``FAILED`` where something has changed; their names are put among ``names``.

    ``reads`` are statements to do with a dict, by its name; they call it ``OWN``.
    """
    names.update(surroundings())
    lines = []
    for own in dict.fromkeys([*found.called, *found.modules, *found.parts, *reads]):
        tests = _tests_of(own, found, names)
        lines += [f"{OWN} = {own}", *([f"if {' or '.join(tests)}: {_RAISE}"] if tests else ()), *reads.get(own, ())]
    hooks = " or ".join(f"{own}[{kind!r}]" for own, is_new in found.called.items() if is_new for kind in HOOKS[2:])
    if hooks:  # without gradients, hooks of the backward pass are put on nothing but what has come in
        names[f"{_READY}is_grad_enabled"] = torch.is_grad_enabled
        lines.append(f"if {_READY}is_grad_enabled() and ({hooks}): {_RAISE}")
    return lines + _tests_of_functions(found, names)


def _tests_of(own: str, found: Found, names: dict[str, Any]) -> list[str]:
    """What must not be true of a module and its dict."""
    tests = []
    if own in found.modules:
        names[f"{own}_class"] = type(found.modules[own])
        tests.append(f"{_READY}type({own}_module) is not {own}_class")
    if own in found.called:
        kinds = HOOKS[:2] if found.called[own] else HOOKS
        tests += [*(f"{OWN}[{kind!r}]" for kind in kinds), f'"forward" in {OWN}']
    if own in found.lengths:
        tests.append(f"{_READY}len({OWN}) != {found.lengths[own]}")
    sizes = found.inner_lengths.get(own, {})
    tests += [f"{_READY}len({OWN}[{kind!r}]) != {size}" for kind, size in sizes.items()]
    parts = [f"[{step!r}] is not {part}_module" for step, part in found.parts.get(own, {}).items()]
    if parts:
        tests.append(f'({_READY}parts := {OWN}["_modules"]){parts[0]}')
        tests += [f"{_READY}parts{one}" for one in parts[1:]]
    return tests


def _tests_of_functions(found: Found, names: dict[str, Any]) -> list[str]:
    """The statements about what stands in classes and Python modules, and about attributes that go before others."""
    tests = []
    if found.functions:
        owners, attributes = zip(*found.functions, strict=True)
        names |= {f"{_READY}owners": owners, f"{_READY}attributes": attributes}
        names[f"{_READY}functions"] = [*found.functions.values()]
        tests.append(f"[*{_READY}map({_READY}getattr, {_READY}owners, {_READY}attributes)] != {_READY}functions")
    if found.not_own:
        names |= {f"{_READY}own_attributes": found.own, f"{_READY}not_own": found.not_own}
        tests.append(f"not {_READY}not_own.isdisjoint({_READY}own_attributes)")
    return [f"if {' or '.join(tests)}: {_RAISE}"] if tests else []
