"""A graph as the source of one Python function.

In comes a graph and the name of its root (``self``); out comes ``PythonCode``: source text, the globals it needs, and
the map from lines to nodes. Locals are freed at their last use. ``CodeGen`` may be subclassed to give the function
another signature; ``PyTreeCodeGen`` is such a subclass, for nests as arguments and results.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clew import tree
from clew.codegen.annotations import annotation
from clew.codegen.comments import Commentator
from clew.codegen.locals import Locals
from clew.codegen.scope import Scope
from clew.codegen.statements import statement
from clew.errors import CodegenError
from clew.ir.graph import Graph
from clew.ir.guests import present
from clew.ir.interpreter import last_uses
from clew.ir.names import Namespace
from clew.ir.node import Node

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


@dataclass
class _Draft:
    """What is known of a function while it is written."""

    parameters: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    owners: list[int | None] = field(default_factory=list)
    returns: str = ""
    keywords: list[str] = field(default_factory=list)
    rest: str = ""
    has_default: bool = False
    stars: set[str] = field(default_factory=set)

    def add_parameter(self, text: str, default: str, keyword_only: bool) -> None:
        """Note a parameter where Python wants it: positional ones, ``*args``, keyword-only ones, ``**kwargs``."""
        # A parameter without a default cannot follow one with a default, but for ``*args``.
        misplaced = self.has_default and not default and text[0] != "*"
        if text.startswith("**"):
            self.rest = text
        elif keyword_only or misplaced:
            self.keywords.append(text + default)
        else:
            self.has_default = self.has_default or bool(default)
            self.parameters.append(text + default)

    def signature(self) -> list[str]:
        """All parameters in order."""
        has_star = any(text.startswith("*") for text in self.parameters)
        star = ["*"] if self.keywords and not has_star else []
        return [*self.parameters, *star, *self.keywords, *([self.rest] if self.rest else [])]


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
        """The whole function; ``verbose=True`` adds comments that tell types and source lines."""
        return self._gen_python_code(graph.nodes, root_module, Namespace(), **options)

    def _gen_python_code(self, nodes: Any, root_module: str, namespace: Namespace, **options: Any) -> PythonCode:
        scope = self._scope(nodes, root_module, namespace)
        draft = self._draft(nodes, root_module, scope, Commentator(**options))
        body = draft.body or ["pass\n"]
        owners = draft.owners
        if self._body_transformer is not None:
            body = self._body_transformer(list(body))
            owners = _owners_after(draft.body, owners, body)
        extra = _accepted(self.gen_fn_def, expanded_def=options.get("expanded_def", False))
        definition = self.gen_fn_def(draft.signature(), draft.returns, **extra)
        text = "".join(body)
        skipped = len(text) - len(text.lstrip("\n"))
        indented = "\n".join(f"    {line}" if line else "" for line in text.strip("\n").split("\n"))
        head = "".join(f"{line}\n" for line in scope.imports) + "\n\n"
        prologue = head.count("\n")
        source = f"{head}{definition}\n{indented}\n"
        first = definition.count("\n") + 1
        lines = {first + place: owner for place, owner in enumerate(owners[skipped:])}
        return PythonCode(source, scope.globals, lines, prologue + 1, self._func_name, tuple(scope.imports))

    def _scope(self, nodes: Any, root: str, namespace: Namespace) -> Scope:
        extra = [*self._names_for_users(), *self.additional_globals()]
        scope = Scope(namespace, Locals(nodes, {root, *(name for name, _ in extra)}, namespace))
        namespace.reserve(self._func_name)
        for name, thing in extra:
            scope.bind_exactly(name, thing)
        return scope

    def _names_for_users(self) -> list[tuple[str, Any]]:
        """What the text that a user's subclass writes may take for granted: the frameworks that are imported."""
        if type(self).__module__.startswith("clew.codegen"):
            return []
        return [(guest.package, sys.modules[guest.package]) for guest in present()]

    def _draft(self, nodes: Any, root: str, scope: Scope, comments: Commentator) -> _Draft:
        draft = _Draft()
        frees = last_uses(nodes)
        for place, node in enumerate(nodes):
            text = self._line(node, draft, scope, root, comments)
            if text is None:
                continue
            freed = frees.get(node)
            if freed and node.op != "output":
                text += f";  {' = '.join(map(scope.locals.name, freed))} = None"
            lines = comments.around(node, scope.locals.name(node), text)
            draft.body += [f"{line}\n" for line in lines]
            draft.owners += [place] * sum(line.count("\n") + 1 for line in lines)
        return draft

    def _line(self, node: Node, draft: _Draft, scope: Scope, root: str, comments: Commentator) -> str | None:
        if node.op == "placeholder":
            return self._parameter(node, draft, scope, comments)
        if node.op == "output":
            if node.type is not None:
                draft.returns = f" -> {annotation(node.type, scope)}"
            extra = _accepted(self.generate_output, repr_fn=scope.spell)
            return self.generate_output(node.args[0] if node.args else None, **extra)
        return statement(node, scope, root)

    def _parameter(self, node: Node, draft: _Draft, scope: Scope, comments: Commentator) -> str | None:
        """Note a parameter of the function; the line that renames it, if the node bears another name."""
        stars, name = scope.locals.parameters[node]
        if stars in draft.stars:
            raise CodegenError(f"node {node.name} is a second {stars}{name}", why="a Python function can have only one")
        draft.stars |= {stars} - {""}
        default = "" if not node.args or stars else f" = {scope.spell(node.args[0])}"
        kind = "" if node.type is None else f" : {annotation(node.type, scope)}"
        kind = comments.parameter_annotation(node) or kind
        draft.add_parameter(f"{stars}{name}{kind}", default, bool(node.kwargs.get("keyword_only")))
        local = scope.locals.name(node)
        return None if name == local else f"{local} = {name}"

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


def _owners_after(before: list[str], owners: list[int | None], after: list[str]) -> list[int | None]:
    """Which node each line belongs to after a transformer: its own lines belong to none."""
    known: dict[str, list[int | None]] = {}
    for line, owner in zip("".join(before).split("\n"), owners, strict=False):
        known.setdefault(line, []).append(owner)
    return [known[line].pop(0) if known.get(line) else None for line in "".join(after).split("\n")]


def _accepted(function: Callable[..., Any], **options: Any) -> dict[str, Any]:
    """Those keyword options that an overriding function takes."""
    parameters = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in parameters}


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
