"""A graph as the source of one Python function.

In comes a graph and the name of its root (``self``); out comes ``PythonCode``: source text, the globals it needs, and
the map from lines to nodes. ``Writer`` writes the inside of a function, one statement a node, in order: graphs among
the arguments as inner functions, context managers as ``with`` blocks, guards as ``if``. Locals are freed at their last
use. ``CodeGen`` may be subclassed to give the function another signature; ``PyTreeCodeGen`` is such a subclass, for
nests as arguments and results.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clew import tree
from clew.codegen.block_results import Finish, Return, Returning
from clew.codegen.control_flow import ControlWriter, among
from clew.codegen.guards import (
    entry_checks,
    inlined_into,
    is_check,
    is_entry_check,
    shown_check,
    without_bookkeeping,
    write_check,
)
from clew.codegen.inline import inlined_for_reading, renamed_for_reading, wrapped
from clew.codegen.layout import Planner
from clew.codegen.lines import Commentator, Draft, Line, import_lines, line_of
from clew.codegen.plan import Plan
from clew.codegen.scope import VARIABLES, Locals, Scope
from clew.codegen.statements import annotation, expression, is_raise, statement, unread_roots
from clew.codegen.with_blocks import Blocks
from clew.errors import CodegenError
from clew.ir.arguments import bodies_of
from clew.ir.gc_pause import CollectorPaused
from clew.ir.graph import Graph
from clew.ir.guards import can_wait, guard, is_guard
from clew.ir.guests import present
from clew.ir.names import Namespace
from clew.ir.node import Node
from clew.ir.source import SourceLine

# ---- the whole function ----------------------------------------------------------------------------------------------

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
            own = () if options.get("portable") else graph._code_guards
            guards = options.pop("guards", (*own, *graph._guards))
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
        draft = self._draft(nodes, root_module, scope, plan, Commentator(options))
        texts, owners = self._body(draft)
        is_long = bool(options.get("shown")) and sum(map(len, draft.signature())) > _WIDEST_DEFINITION
        extra = _accepted(self.gen_fn_def, expanded_def=options.get("expanded_def", is_long))
        definition = self.gen_fn_def(draft.signature(), draft.returns, **extra)
        indented = "\n".join([f"    {text}" if text else "" for text in texts])
        constants = tuple(f"{name} = {made}" for name, made in scope.constants.items())
        blank = [""] if scope.imports and constants else []
        imports = import_lines(scope.imports) if scope.is_shown else scope.imports
        head = "".join(f"{line}\n" for line in (*imports, *blank, *constants)) + "\n\n"
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
        return tree.tree_flatten_spec(tuple(inputs), self.pytree_info.in_spec)

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
        return f"{definition}\n    {_tuple(inputs)} = {tree_name}.tree_flatten_spec(({_tuple(arguments)}), {in_spec})"

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


# ---- the inside of a function ----------------------------------------------------------------------------------------


class Writer(ControlWriter):
    """Writes the functions of one piece of code, inner ones included; attributes are read from the name ``root``."""

    def lines_of(self, node: Node, text: str) -> list[Line]:
        """A statement with its comments; in code for people a long call stands in several lines."""
        return super().lines_of(node, wrapped(text) if self.comments.shown else text)

    def function(self, nodes: Any, returning: Returning) -> Draft:
        """The parameters and the lines of the function over ``nodes``."""
        draft = Draft()
        draft.lines = self.block(nodes, Return(returning), draft)
        last = next(iter(reversed(nodes)), None)
        if last is not None and last.op == "output" and last.type is not None:
            draft.returns = f" -> {annotation(last.type, self.scope)}"
        return draft

    def block(self, nodes: Any, finish: Finish, draft: Draft | None = None) -> list[Line]:
        """The statements of a function, or of a part of it that ``finish`` ends."""
        nodes = without_bookkeeping(nodes) if self.comments.shown else list(nodes)
        blocks, frees = self.plan.blocks, self.plan.frees
        checks = {node: inlined_into(node, self.plan.bound) for node in nodes if not node.users and is_check(node)}
        roots = unread_roots(nodes)
        skipped = self.skipped(nodes, finish).union(roots, *checks.values())
        around = (blocks.ends, blocks.closing, blocks.watched)
        special = among(nodes, *around, checks, self.plan.layouts, self.plan.handing, skipped)
        if self.comments.inline:
            ends = [node for node in nodes if node.op == "output" and not isinstance(finish, Return)]
            inlined = inlined_for_reading(nodes, {*special, *ends}, self.scope, self.root)
            if draft is not None:
                renamed_for_reading(nodes, inlined, self._fixed_names(nodes), self.scope)
                inlined = inlined_for_reading(nodes, {*special, *ends}, self.scope, self.root)
            skipped |= inlined
            special |= inlined
        lines: list[Line] = []
        outside: list[list[Line]] = []
        watched: list[Node] = []
        for node in nodes:
            if node not in special:
                lines += self._plain(node, draft, finish, roots)
            elif node in blocks.ends:
                lines += self._head_of_block(node, blocks)
                outside.append(lines)
                lines = list(self.free(node, frees.get(node.args[0], []) if node.args[0] in blocks.inline else []))
            elif node in blocks.watched:
                lines += self._head_of_watched(node, blocks)
                outside.append(lines)
                lines = []
                watched.append(node)
            elif node in blocks.closing:
                inside, lines = lines, outside.pop()
                lines += [line.indented() for line in inside or [Line("pass", node, node)]]
                lines += self.free(node, [used for used in frees.get(node, []) if used not in blocks.inline])
            elif node in checks:
                lines += self._check(node, checks[node], frees)
            elif node in self.plan.layouts:
                lines += self.control(node, finish)
            elif node not in skipped:
                lines += self._inner_functions(node) if node.op != "placeholder" else ()
                lines += self._plain(node, draft, finish, roots)
        for node in reversed(watched):
            lines = [*outside.pop(), *self._watching(node, lines)]
        return lines

    def _fixed_names(self, nodes: list[Node]) -> set[Node]:
        """The values whose variables other statements set, or the bodies of branches and loops read."""
        controls = [node for node in nodes if node in self.plan.layouts]
        handed = (used for node in controls for used in node.all_input_nodes)
        return {*among(nodes, self.plan.silent), *controls, *handed}

    def _head_of_watched(self, node: Node, blocks: Blocks) -> Iterable[Line]:
        """What begins a block that is left inside a branch."""
        is_whole = node in blocks.whole
        self.left[self.scope.locals.name(node.args[0])] = None if is_whole else 0
        if is_whole:
            return self._head_of_block(node, blocks)
        return (Line(statement(node, self.scope, self.root), node, node),)

    def _leaving(self, node: Node, local: str, freed: list[Node]) -> list[Node]:
        """What is set free with a call of ``__exit__``: the context manager as well if it is watched."""
        if local not in self.left:
            return freed
        self.left[local] = (self.left[local] or 0) + 1
        return freed if local in map(self.scope.locals.name, freed) else [*freed, node.args[0]]

    def _watching(self, node: Node, inside: list[Line]) -> Iterator[Line]:
        """Statements in which a context manager is left; if an error comes first, it is left then."""
        local = self.scope.locals.name(node.args[0])
        count = self.left.pop(local)
        if not count:
            yield from inside if count == 0 else (line.indented() for line in inside)
            return
        yield Line("try:", node, node)
        yield from (line.indented() for line in inside)
        yield Line("finally:", node, node)
        yield Line(f"if {local} is not None:", node, node).indented()
        yield Line(f"{local}.__exit__(None, None, None)", node, node).indented().indented()

    def _check(self, node: Node, inlined: list[Node], frees: dict[Node, list[Node]]) -> Iterator[Line]:
        """An ``if`` with the call that raises, then the locals that the two were the last to use."""
        if self.comments.shown:
            yield from self.lines_of(node, shown_check(node, inlined, self.scope, self.root))
            return
        test, call = write_check(node, inlined, self.scope, self.root, self.comments.asking)
        yield from self.lines_of(node, test)
        yield Line(call, node, node).indented()
        if is_entry_check(node):  # what it reads are inputs, which the caller holds
            return
        used = [value for part in (*reversed(inlined), node) for value in frees.get(part, [])]
        yield from self.free(node, [value for value in used if value not in inlined])

    def _plain(self, node: Node, draft: Draft | None, finish: Finish, roots: set[Node]) -> Iterable[Line]:
        """A statement on its own, with the locals that it sets free: all but the ``roots``, which have no locals."""
        op = node.op
        if op == "output":
            return self.end(node, finish)
        if op == "placeholder":
            assert draft is not None
            text = self._parameter(node, draft)
            if text is None:
                return ()
        else:
            text = statement(node, self.scope, self.root)
        freed = self.plan.frees.get(node)
        if self.left and node.target == "__exit__":
            local = self.scope.locals.name(node.args[0])
            if self.left.get(local) is None and local in self.left:
                return self.free(node, [used for used in freed or [] if used is not node.args[0]])
            freed = self._leaving(node, local, freed or [])
        if freed and (node.users or not is_raise(node)):
            text += self.freeing([used for used in freed if used not in roots] if roots else freed)
        if self.comments.verbose or self.comments.modules or "\n" in text:
            return self.lines_of(node, text)
        return (line_of(text, node),)

    def _head_of_block(self, node: Node, blocks: Blocks) -> Iterator[Line]:
        """The ``with`` for a call of ``__enter__``."""
        manager = node.args[0]
        if manager in blocks.inline:
            yield from self._inner_functions(manager)
        text = expression(manager, self.scope, self.root) if manager in blocks.inline else self.scope.spell(manager)
        local = f" as {self.scope.locals.name(node)}" if node.users else ""
        yield from self.lines_of(node, f"with {text}{local}:")

    def _parameter(self, node: Node, draft: Draft) -> str | None:
        """Note a parameter of the function; the line that renames it, if the node bears another name."""
        scope = self.scope
        stars, name = scope.locals.parameters[node]
        if stars in draft.stars:
            raise CodegenError(f"node {node.name} is a second {stars}{name}", why="a Python function can have only one")
        draft.stars |= {stars} - {""}
        kind = "" if node.type is None else f" : {annotation(node.type, scope)}"
        kind = self.comments.parameter_annotation(node) or kind
        equals = " = " if kind else scope.equals
        default = "" if not node.args or stars else f"{equals}{scope.spell(node.args[0])}"
        draft.add_parameter(f"{stars}{name}{kind}", default, bool(node.kwargs.get("keyword_only")))
        if node.kwargs.get("positional_only"):
            draft.nameless = len(draft.parameters)
        local = scope.locals.name(node)
        return None if name == local else f"{local} = {name}"

    def _inner_functions(self, node: Node) -> Iterator[Line]:
        """The functions that ``node`` hands over for its graphs: the placeholders of a graph in, its output out."""
        named = [(body, self.scope.names.create_name(f"{node.name}_body")) for body in bodies_of(node)]
        for body, name in named:
            draft = self.function(body.nodes, lambda value: f"return {self.scope.spell(value)}")
            yield Line(f"def {name}({', '.join(draft.signature())}){draft.returns}:", node, node)
            for line in draft.lines or [Line("pass", node, node)]:
                yield line.indented()._replace(node=node)
        # Only now, because one of them may have handed another one over by a name of its own.
        for body, name in named:
            self.scope.name_body(body, name)
