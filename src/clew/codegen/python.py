"""A graph as the source of one Python function.

In comes a graph and the name of its root (``self``); out comes ``PythonCode``: source text, the globals it needs, and
the map from lines to nodes. Locals are freed at their last use. ``CodeGen`` may be subclassed to give the function
another signature; ``PyTreeCodeGen`` is such a subclass, for nests as arguments and results.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clew import tree
from clew.codegen.comments import Commentator
from clew.codegen.scope import Scope, is_plain_identifier
from clew.codegen.statements import statement
from clew.ir.graph import Graph
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

    def add_parameter(self, text: str, keyword_only: bool) -> None:
        """Note a parameter where Python wants it: positional ones, ``*args``, keyword-only ones, ``**kwargs``."""
        if text.startswith("**"):
            self.rest = text
        elif keyword_only or (self._needs_keyword(text)):
            self.keywords.append(text)
        else:
            self.parameters.append(text)

    def _needs_keyword(self, text: str) -> bool:
        """A parameter without a default cannot follow one with a default, but for ``*args``."""
        return " = " not in text and text[0] != "*" and any(" = " in before for before in self.parameters)

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
        return self._gen_python_code(graph.nodes, root_module, graph._names.copy(), **options)

    def _gen_python_code(self, nodes: Any, root_module: str, namespace: Namespace, **options: Any) -> PythonCode:
        scope = Scope(namespace)
        for name, thing in self.additional_globals():
            scope.bind_exactly(name, thing)
        draft = self._draft(nodes, root_module, scope, Commentator(**options))
        body = draft.body or ["pass\n"]
        owners = draft.owners
        if self._body_transformer is not None:
            body = self._body_transformer(list(body))
            owners = _owners_after(draft.body, owners, body)
        extra = _accepted(self.gen_fn_def, expanded_def=options.get("expanded_def", False))
        definition = self.gen_fn_def(draft.signature(), draft.returns, **extra)
        text = "".join(body).strip("\n")
        indented = "\n".join(f"    {line}" if line else "" for line in text.split("\n"))
        head = "".join(f"{line}\n" for line in scope.imports) + "\n\n"
        prologue = head.count("\n")
        source = f"{head}{definition}\n{indented}\n"
        first = definition.count("\n") + 1
        lines = {first + place: owner for place, owner in enumerate(owners)}
        return PythonCode(source, scope.globals, lines, prologue + 1, self._func_name, tuple(scope.imports))

    def _draft(self, nodes: Any, root: str, scope: Scope, comments: Commentator) -> _Draft:
        draft = _Draft()
        frees = last_uses(nodes)
        for place, node in enumerate(nodes):
            text = self._line(node, draft, scope, root, comments)
            if text is None:
                continue
            freed = frees.get(node)
            if freed and node.op != "output":
                text += f";  {' = '.join(used.name for used in freed)} = None"
            lines = comments.around(node, text)
            draft.body += [f"{line}\n" for line in lines]
            draft.owners += [place] * sum(line.count("\n") + 1 for line in lines)
        return draft

    def _line(self, node: Node, draft: _Draft, scope: Scope, root: str, comments: Commentator) -> str | None:
        if node.op == "placeholder":
            return self._parameter(node, draft, scope, comments)
        if node.op == "output":
            if node.type is not None:
                draft.returns = f" -> {scope.annotation(node.type)}"
            extra = _accepted(self.generate_output, repr_fn=scope.spell)
            return self.generate_output(node.args[0] if node.args else None, **extra)
        return statement(node, scope, root)

    def _parameter(self, node: Node, draft: _Draft, scope: Scope, comments: Commentator) -> str | None:
        """Note a parameter of the function; the line that renames it, if the node bears another name."""
        stars = node.target[: len(node.target) - len(node.target.lstrip("*"))]
        name = node.target[len(stars) :]
        if not is_plain_identifier(name) or stars not in ("", "*", "**"):
            stars, name = "", node.name
        default = "" if not node.args or stars else f" = {scope.spell(node.args[0])}"
        annotation = "" if node.type is None else f" : {scope.annotation(node.type)}"
        annotation = comments.parameter_annotation(node) or annotation
        draft.add_parameter(f"{stars}{name}{annotation}{default}", bool(node.kwargs.get("keyword_only")))
        return None if name == node.name else f"{node.name} = {name}"

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
    known = dict(zip("".join(before).split("\n"), owners, strict=False))
    return [known.get(line) for line in "".join(after).split("\n")]


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
        parameters = list(self.pytree_info.orig_args)
        names = [parameter.split(":")[0].split("=")[0].strip() for parameter in parameters if parameter != "self"]
        definition = super().gen_fn_def(parameters, maybe_return_annotation, expanded_def=expanded_def)
        inputs = [variable.split(":")[0].split("=")[0].strip() for variable in free_vars if variable != "self"]
        if not inputs:
            return definition
        leaves = ", ".join(inputs) + ("," if len(inputs) == 1 else "")
        arguments = ", ".join(names) + ("," if len(names) == 1 else "")
        return f"{definition}\n    {leaves} = tree.flatten_up_to(({arguments}), self._in_spec)"

    def generate_output(
        self, output_args: Any, *, descs: Any = None, repr_fn: Callable[[Any], str] | None = None
    ) -> str:
        """The leaves of the result put back in their nest."""
        text = (repr_fn or repr)(output_args)
        if self.pytree_info.out_spec is None:
            return f"return {text}"
        return f"return tree.unflatten({text}, self._out_spec)"

    def additional_globals(self) -> list[tuple[str, Any]]:
        """The module of nests."""
        return [("tree", tree)]


Graph.default_codegen = CodeGen
