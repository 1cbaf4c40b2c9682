"""A graph as the source of one Python function.

In comes a graph and the name of its root (``self``); out comes ``PythonCode``: source text, the globals it needs, and
the map from lines to nodes. Locals are freed at their last use. ``CodeGen`` may be subclassed to give the function
another signature; ``PyTreeCodeGen`` is such a subclass, for nests as arguments and results.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clew import tree
from clew.codegen.checks import entry_checks
from clew.codegen.comments import Commentator
from clew.codegen.layout import Planner
from clew.codegen.lines import Draft, Line
from clew.codegen.locals import Locals
from clew.codegen.plan import Plan
from clew.codegen.scope import VARIABLES, Scope
from clew.codegen.writer import Writer
from clew.ir.gc_pause import CollectorPaused
from clew.ir.graph import Graph
from clew.ir.guards import can_wait, guard, is_guard
from clew.ir.guests import present
from clew.ir.names import Namespace
from clew.ir.node import Node
from clew.ir.source import SourceLine

_WIDEST_DEFINITION = 90
"""Parameters of more characters stand in lines of their own, in code for people."""

Transformer = Callable[[list[str]], list[str]]


@dataclass
class PythonCode:
    """Source text of a function and what it needs to run."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0
    name: str = "forward"
    imports: tuple[str, ...] = ()
    _origins: dict[int, SourceLine | None] = field(default_factory=dict, init=False)
    """Where the lines of inner functions come from, by the same numbers as ``_lineno_map``."""
    _constants: tuple[str, ...] = field(default=(), init=False)
    """The lines above the function that make the globals which no import brings."""
    _checks: slice = field(default_factory=lambda: slice(0, 0), init=False)
    """Which of the first statements of the function are guards: an ``if`` each."""


class CodeGen:
    """Writes the Python of a graph. Override the public methods to change the function's shape."""

    def __init__(self) -> None:
        self._body_transformer: Transformer | None = None
        self._func_name = "forward"

    # ---- the methods to override ---------------------------------------------------------------------------------

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """The ``def`` line, and lines that unpack the arguments if need be. ``self`` is put first if it is missing."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        if expanded_def:
            inner = "".join(f"    {parameter},\n" for parameter in free_vars)
            return f"def {self._func_name}(\n{inner}){maybe_return_annotation}:"
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(
        self, output_args: Any, *, descs: Any = None, repr_fn: Callable[[Any], str] | None = None
    ) -> str:
        """The ``return`` statement."""
        return f"return {(repr_fn or repr)(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, from the arguments of the function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The function's result, from the value of the output node."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names, with their values, that the overridden methods use."""
        return []

    # ---- writing -------------------------------------------------------------------------------------------------

    def python_code(self, graph: Graph, root_module: str = "self", **options: Any) -> PythonCode:
        """The whole function, as it runs: guards first, locals set free at their last use.

        ``shown=True`` gives the program alone, for people; ``verbose=True`` adds types and source lines as comments;
        ``portable=True`` needs no object of this process but the guards, for code that is saved; ``guards`` are those
        that it checks, if not all of the graph's.
        """
        with CollectorPaused():
            guards = options.pop("guards", graph._guards)
            checks = [] if options.get("shown") or not guards else entry_checks(guards)
            return self._gen_python_code(
                graph.nodes, root_module, Namespace(), checks=checks, owner=graph.owning_module, **options
            )

    def check_code(self, graph: Graph, root_module: str = "self") -> PythonCode:
        """A function of the same parameters that is true where all guards hold that are checked before the program."""
        inputs = [node for node in graph.nodes if node.op == "placeholder"]
        checks = [*entry_checks(graph._guards), Graph().output(True)]
        return self._gen_python_code(inputs, root_module, Namespace(), checks=checks, asking=True)

    def _gen_python_code(
        self, nodes: Any, root_module: str, namespace: Namespace, checks: Sequence[Node] = (), **options: Any
    ) -> PythonCode:
        own = list(nodes)
        nodes = _after_inputs(own, checks)
        variables = frozenset(getattr(options.get("owner"), VARIABLES, ())) if options.get("shown") else frozenset()
        scope, plan = self._scope(nodes, root_module, namespace, variables)
        scope.is_portable = bool(options.get("portable"))
        guards = [node for node in own if node.target is guard]
        scope.waiting = frozenset(node for node in guards if can_wait(node, options.get("owner")))
        if options.get("shown"):
            plan.frees.clear()
            scope.owner, scope.equals, scope.is_shown = options.get("owner"), "=", True
            scope.variables = variables
        draft = self._draft(nodes, root_module, scope, plan, Commentator(**options))
        texts, owners = self._body(draft)
        is_long = bool(options.get("shown")) and sum(map(len, draft.signature())) > _WIDEST_DEFINITION
        extra = _accepted(self.gen_fn_def, expanded_def=options.get("expanded_def", is_long))
        definition = self.gen_fn_def(draft.signature(), draft.returns, **extra)
        indented = "\n".join([f"    {text}" if text else "" for text in texts])
        constants = tuple(f"{name} = {made}" for name, made in scope.constants.items())
        blank = [""] if scope.imports and constants else []
        head = "".join(f"{line}\n" for line in (*scope.imports, *blank, *constants)) + "\n\n"
        source = f"{head}{definition}\n{indented}\n"
        first = definition.count("\n") + 1
        places: dict[Node | None, int] = dict(zip(own, itertools.count()))
        lines = {number: places.get(line and line[1]) for number, line in enumerate(owners, first)}
        code = PythonCode(source, scope.globals, lines, head.count("\n") + 1, self._func_name, tuple(scope.imports))
        code._constants = constants
        renames = sum(scope.locals.parameters[node][1] != scope.locals.name(node) for node in own[: _inputs(own)])
        code._checks = slice(renames, renames + sum(map(is_guard, checks)))
        code._origins = {
            number: line.origin.source
            for number, line in enumerate(owners, first)
            if line is not None and line[1] is not line[2]
        }
        return code

    def _body(self, draft: Draft) -> tuple[list[str], list[Line | None]]:
        """The lines of the body, without empty ones around it, and the line of ours that each of them is."""
        owners: list[Line | None] = [*draft.lines]
        body = [line.text for line in draft.lines] or ["pass"]
        if self._body_transformer is not None:
            transformed = self._body_transformer([f"{text}\n" for text in body])
            owners = _owners_after(draft.lines, transformed)
            body = "".join(transformed).split("\n")
        while len(body) > 1 and not body[-1]:
            body.pop()
        skipped = next((place for place, text in enumerate(body) if text), 0)
        return body[skipped:], owners[skipped:]

    def _scope(
        self, nodes: Any, root: str, namespace: Namespace, variables: frozenset[str] = frozenset()
    ) -> tuple[Scope, Plan]:
        extra = [*self._names_for_users(), *self.additional_globals()]
        local_names = Locals({root, *variables, *(name for name, _ in extra)}, namespace)
        planner = Planner(local_names)
        planner.function(nodes)
        scope = Scope(namespace, local_names)
        namespace.reserve(self._func_name)
        for name, thing in extra:
            scope.bind_exactly(name, thing)
        return scope, planner.plan

    def _names_for_users(self) -> list[tuple[str, Any]]:
        """What the text that a user's subclass writes may take for granted: the frameworks that are imported."""
        if type(self).__module__.startswith("clew.codegen"):
            return []
        return [(guest.package, sys.modules[guest.package]) for guest in present()]

    def _draft(self, nodes: Any, root: str, scope: Scope, plan: Plan, comments: Commentator) -> Draft:
        extra = _accepted(self.generate_output, repr_fn=scope.spell_argument)
        return Writer(scope, root, plan, comments).function(nodes, lambda value: self.generate_output(value, **extra))

    def install_transformer(self, graph: Graph, make_transformer: Callable[[Any], Any]) -> Any:
        """Set the function that rewrites the lines of the body; leaving the context puts the old one back."""
        before = self._body_transformer
        self._body_transformer = make_transformer(before)

        @contextmanager
        def installed() -> Iterator[None]:
            try:
                yield
            finally:
                self._body_transformer = before
                graph._announce()

        return installed()


def _after_inputs(nodes: list[Node], checks: Sequence[Node]) -> list[Node]:
    """The nodes of a function with the checks of its guards behind its inputs."""
    if not checks:
        return nodes
    first = _inputs(nodes)
    return [*nodes[:first], *checks, *nodes[first:]]


def _inputs(nodes: list[Node]) -> int:
    """How many inputs stand at the beginning."""
    return next((place for place, node in enumerate(nodes) if node.op != "placeholder"), len(nodes))


def _owners_after(before: list[Line], after: list[str]) -> list[Line | None]:
    """Which line of ours each line is after a transformer: its own lines are none."""
    known: dict[str, list[Line]] = {}
    for line in before:
        known.setdefault(line.text, []).append(line)
    return [known[text].pop(0) if known.get(text) else None for text in "".join(after).split("\n")]


def _accepted(function: Callable[..., Any], **options: Any) -> dict[str, Any]:
    """Those keyword options that an overriding function takes."""
    parameters = _parameters(getattr(function, "__func__", function))
    return {name: value for name, value in options.items() if name in parameters}


@functools.lru_cache(maxsize=256)
def _parameters(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


class PyTreeInfo(NamedTuple):
    """The user's parameters and the structures of nested arguments and results."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


class PyTreeCodeGen(CodeGen):
    """A function that takes and gives nests, over a graph that knows only their leaves."""

    def __init__(self, pytree_info: PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        """The leaves of the arguments."""
        return tree.flatten_up_to(tuple(inputs), self.pytree_info.in_spec)

    def process_outputs(self, out: Any) -> Any:
        """The nest of the results."""
        if self.pytree_info.out_spec is None:
            return out
        leaves = out if isinstance(out, (list, tuple)) else [out]
        return tree.unflatten(leaves, self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """The user's own parameters, flattened in the first line."""
        leaves = [_split(variable) for variable in free_vars if variable not in ("self", "*")]
        names = [_split(parameter)[0] for parameter in self.pytree_info.orig_args if parameter != "self"]
        parameters = self._with_defaults(list(self.pytree_info.orig_args), [default for _, default in leaves])
        definition = super().gen_fn_def(parameters, maybe_return_annotation, expanded_def=expanded_def)
        if not leaves:
            return definition
        inputs = "".join(f"{name}, " for name, _ in leaves)
        arguments = "".join(f"{name}, " for name in names)
        tree_name, in_spec, _ = self._global_names()
        return f"{definition}\n    {_tuple(inputs)} = {tree_name}.flatten_up_to(({_tuple(arguments)}), {in_spec})"

    def _with_defaults(self, parameters: list[str], defaults: list[str]) -> list[str]:
        """The parameters with the defaults that their leaves carry, as far as Python allows from the last one on."""
        found = []
        for child in self.pytree_info.in_spec.children():
            found.append(defaults[0] if child.num_leaves and defaults else "")
            defaults = defaults[child.num_leaves :]
        for place in range(1, min(len(found), len(parameters)) + 1):
            if "=" in parameters[-place] or not found[-place] or parameters[-place] == "self":
                break
            parameters[-place] += f" = {found[-place]}"
        return parameters

    def _global_names(self) -> list[str]:
        """What the code calls the module of nests and the two structures; no parameter has these names."""
        taken = {_split(parameter)[0] for parameter in self.pytree_info.orig_args}
        stems = ("tree", "_in_spec", "_out_spec")
        return [next(name for name in _numbered(stem) if name not in taken) for stem in stems]

    def generate_output(
        self, output_args: Any, *, descs: Any = None, repr_fn: Callable[[Any], str] | None = None
    ) -> str:
        """The leaves of the result put back in their nest."""
        text = (repr_fn or repr)(output_args)
        if self.pytree_info.out_spec is None:
            return f"return {text}"
        tree_name, _, out_spec = self._global_names()
        return f"return {tree_name}.unflatten({text}, {out_spec})"

    def additional_globals(self) -> list[tuple[str, Any]]:
        """The module of nests and the structures of arguments and results."""
        things = (tree, self.pytree_info.in_spec, self.pytree_info.out_spec)
        return list(zip(self._global_names(), things, strict=True))


def _split(parameter: str) -> tuple[str, str]:
    """The name of a written parameter, and its default value or nothing."""
    try:
        (definition,) = ast.parse(f"def f({parameter}): pass").body
    except SyntaxError:
        return parameter.split(":")[0].split("=")[0].strip(), ""
    arguments = next(part for part in ast.walk(definition) if isinstance(part, ast.arguments))
    names = [*arguments.args, arguments.vararg, arguments.kwarg]
    default = ast.unparse(arguments.defaults[0]) if arguments.defaults else ""
    return next((name.arg for name in names if name is not None), parameter), default


def _numbered(stem: str) -> Iterator[str]:
    yield stem
    yield from (f"{stem}_{number}" for number in itertools.count(1))


def _tuple(listed: str) -> str:
    """``a, b, `` as the inside of a tuple: with a comma at the end only if that is what makes it one."""
    return listed[:-2] if listed.count(", ") > 1 else listed[:-1]


Graph.default_codegen = CodeGen
