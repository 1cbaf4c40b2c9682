"""``explain``: what a capture holds, what it relies on, and what would make it more general.

A program and an example come in; an ``Explanation`` comes out, also for a program that cannot be captured: then it says
why, where, and what to change. It prints as text, in colours in a terminal, as HTML in a notebook, and is plain data.
For each guard ``advice_for`` says what a user can change so that it is needed no more; what a guard is about is read
from its kind and subject, never from its text.
"""

from __future__ import annotations

import io
import traceback
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from clew.capture.bytecode.try_blocks import attempt, attempt_method
from clew.capture.guards.notes import CHECKS
from clew.capture.options import LEFT_OUT, Options, check_callable, given, static_names
from clew.errors import ClewError, counted
from clew.ir.arguments import all_nodes
from clew.ir.control_flow import is_control
from clew.ir.effects import effect_of, resolve
from clew.ir.format import format_target
from clew.ir.graph import Graph
from clew.ir.guards import Guard
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.source import SourceLine, is_hidden
from clew.ir.types import type_of
from clew.runtime.choose import capture_with, framework_of
from clew.runtime.lazy import LazyGraph

# ---- the explanation -------------------------------------------------------------------------------------------------


Row = dict[str, Any]
_WAYS_OUT = ("take that part out of the captured program",)


_BLOCK = ("__enter__", "__exit__")


@dataclass(frozen=True)
class Refusal:
    """Why there is no capture: what happened, on which line, for what reason, and the ways out."""

    what: str
    where: str = ""
    why: str = ""
    fixes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """The report. Every list holds rows, dicts with the same keys, in the order of the graph."""

    name: str
    refusal: Refusal | None = None
    nodes: int = 0
    modules: list[Row] = field(default_factory=list)
    guards: list[Row] = field(default_factory=list)
    left_out: list[Row] = field(default_factory=list)
    effects: list[Row] = field(default_factory=list)
    constants: list[Row] = field(default_factory=list)
    attempts: list[Row] = field(default_factory=list)
    opaque: list[Row] = field(default_factory=list)
    islands: list[Row] = field(default_factory=list)
    hints: list[Row] = field(default_factory=list)

    @property
    def captured(self) -> bool:
        """Whether the program can be captured on this example."""
        return self.refusal is None

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"captured": self.captured, **asdict(self)}

    def __str__(self) -> str:
        lines = [self._title()]
        for title, rows in self._sections():
            lines += ["", f"{title}:", *_as_text(rows)]
        return "\n".join(lines)

    def __rich__(self) -> Group:
        title = Text(self._title(), style="bold" if self.captured else "bold red")
        return Group(title, *(_as_table(title, rows) for title, rows in self._sections()))

    def _repr_html_(self) -> str:
        console = Console(record=True, file=io.StringIO(), width=160)
        console.print(self)
        return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")

    def _title(self) -> str:
        if self.captured:
            return f"{self.name} is captured: {counted(self.nodes, 'node')}, {counted(len(self.guards), 'guard')}"
        return f"{self.name} is not captured"

    def _sections(self) -> list[tuple[str, list[Row]]]:
        if self.refusal is not None:
            parts = {"what": self.refusal.what, "where": self.refusal.where, "why": self.refusal.why}
            said = [{"": key, "reason": text} for key, text in parts.items() if text]
            return [("why", [*said, *({"": "what to do", "reason": fix} for fix in self.refusal.fixes)])]
        found = {
            "captured, by module": self.modules,
            "guards: what the graph relies on": self.guards,
            "guards left out, as was asked": self.left_out,
            "effects": self.effects,
            "constants": self.constants,
            "calls that must not fail, since the program catches their errors": self.attempts,
            "calls that nobody vouches for, kept as they are": self.opaque,
            "islands: what the back end leaves to Python": self.islands,
            "to make it more general": self.hints,
        }
        return [(title, rows) for title, rows in found.items() if rows]


def explain(fn: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None, **options: Any) -> Explanation:
    """Capture a program on an example and report on it; what ``clew.trace`` returned is reported on as it is
    if no example is given. Options are those of ``clew.trace``."""
    fn = fn.fn if isinstance(fn, LazyGraph) else fn
    check_callable(fn)
    name = getattr(fn, "__name__", type(fn).__name__)
    if isinstance(getattr(fn, "graph", None), Graph) and not args and not kwargs:
        return _explained(name, fn.graph)
    args, kwargs = given(args, kwargs)
    asked = Options.of(static=static_names(fn, options.pop("static", ())), **options)
    framework = framework_of(fn, args, kwargs)
    try:
        made, _ = capture_with(framework, fn, args, kwargs, asked, name)
    except ClewError as error:
        return Explanation(name, Refusal(error.what, error.where, error.why, error.fixes or _WAYS_OUT))
    except Exception as error:
        return Explanation(name, _failure(error))
    return _explained(name, made.graph)


def _failure(error: Exception) -> Refusal:
    """The program itself failed on the example."""
    frames = [entry for entry in traceback.walk_tb(error.__traceback__) if not is_hidden(entry[0].f_code)]
    place = (
        SourceLine(frames[-1][0].f_code.co_filename, frames[-1][1], frames[-1][0].f_code.co_name) if frames else None
    )
    return Refusal(
        f"the program raised {type(error).__name__}: {error}",
        "" if place is None else place.describe(),
        "a capture is one run of the program, and this run did not end",
        ("give an example that the program accepts",),
    )


def _explained(name: str, graph: Graph) -> Explanation:
    aside = _serving_guards(graph)
    working = [node for node in graph.nodes if node not in aside]
    tried = [node for node in working if node.target in (attempt, attempt_method)]
    found = [(node, effect_of(node)) for node in working if node not in tried]
    guards = [(guard, _line(guard.source)) for guard in graph.guards]
    hints = [
        {"guard": str(guard), "why": guard.reason, "what to do": advice_for(guard), "line": line}
        for guard, line in guards
    ]
    kinds = (Effect.WRITE, Effect.RANDOM)
    return Explanation(
        name,
        nodes=len(graph.nodes),
        modules=_by_module(name, working),
        guards=[{"guard": str(guard), "kind": kind_of(guard), "line": line} for guard, line in guards],
        left_out=[{"guards": node.meta[LEFT_OUT]} for node in graph.nodes if LEFT_OUT in node.meta],
        effects=[{"effect": effect.value, **_call(node, node.target)} for node, effect in found if effect in kinds],
        constants=_constants(graph, working),
        attempts=[_call(node, node.args[0]) for node in tried],
        opaque=_opaque(graph, aside | set(tried)),
        islands=_islands(graph),
        hints=[hint for place, hint in enumerate(hints) if hint["what to do"] and hint not in hints[:place]],
    )


def _islands(graph: Graph) -> list[Row]:
    """The calls that a back end does not make, also those that its segments have found out so far."""
    nodes = list(all_nodes(graph))
    found = [(node, node.meta["island"]) for node in nodes if "island" in node.meta]
    found += [one for node in nodes for one in getattr(node.target, "islands", ())]
    return [{"why": why, **_call(node, node.target)} for node, why in found]


def _opaque(graph: Graph, aside: set[Node]) -> list[Row]:
    """The calls, also inside bodies, that the capture did not look into, or whose effect nobody knows; and why."""
    calls = [node for node in all_nodes(graph) if not (node in aside or is_control(node) or _is_of_block(node))]
    found = {node: node.meta.get("opaque", "") for node in calls if node.target not in CHECKS}
    unknown = {node: "nobody vouches for it" for node in found if effect_of(node) is Effect.UNKNOWN}
    rows = [(node, why or unknown.get(node, "")) for node, why in found.items()]
    return [{"why": why, **_call(node, node.target)} for node, why in rows if why]


def _is_of_block(node: Node) -> bool:
    """Whether a node makes, enters or leaves a context manager: it is followed, as a ``with`` block of the code."""
    if node.op == "call_method" and node.target in _BLOCK:
        return True
    return any(user.op == "call_method" and user.target in _BLOCK for user in node.users)


def _serving_guards(graph: Graph) -> set[Node]:
    """The guards, and the nodes whose values only guards look at."""
    found: set[Node] = set()
    for node in reversed(graph.nodes):
        is_guard = node.op == "call_function" and node.target in CHECKS
        serves = node.op not in ("placeholder", "output") and bool(node.users) and found.issuperset(node.users)
        if is_guard or serves:
            found.add(node)
    return found


def _by_module(name: str, nodes: list[Node]) -> list[Row]:
    """How many nodes each module has; a module that stays a call counts under its own path."""
    counted: dict[tuple[str, str], int] = {}
    for node in nodes:
        if node.op in ("placeholder", "output"):
            continue
        path, kind = _innermost_module(node) or ("", name)
        if node.op == "call_module":
            path, kind = str(node.target), type(resolve(node.graph.owning_module, str(node.target))).__name__
        counted[path, kind] = counted.get((path, kind), 0) + 1
    return [{"module": path or "(top)", "class": kind, "nodes": count} for (path, kind), count in counted.items()]


def _innermost_module(node: Node) -> tuple[str, str] | None:
    """The path and class of the module that made a node; a module that is no part of the root has no path."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return None
    key, (path, kind) = list(stack.items())[-1]
    return path or ("(around)" if key.startswith("<") else ""), getattr(kind, "__name__", str(kind))


def _constants(graph: Graph, nodes: list[Node]) -> list[Row]:
    """The values that the graph holds and that are no parameters or buffers of the module."""
    rows = {}
    for node in nodes:
        path = str(node.target)
        if node.op == "get_attr" and path not in rows and not _is_state(graph.owning_module, path):
            value = resolve(graph.owning_module, path)
            kind, size = str(type_of(value)), getattr(value, "nbytes", None)
            rows[path] = {"name": path, "type": kind, "bytes": size, "line": _line(node.source)}
    return list(rows.values())


def _is_state(root: Any, path: str) -> bool:
    holder, _, name = path.rpartition(".")
    owner = resolve(root, holder) if holder else root
    return name in getattr(owner, "_parameters", ()) or name in getattr(owner, "_buffers", ())


def _call(node: Node, target: Any) -> Row:
    return {"call": format_target(target), "node": node.name, "line": _line(node.source)}


def _line(source: SourceLine | None) -> str:
    return "" if source is None else source.describe()


def _as_text(rows: list[Row]) -> list[str]:
    """Rows as columns of plain text; the last column is as long as it is."""
    columns = _columns(rows)
    cells = [[str(row[column]) for column in columns] for row in rows]
    widths = [min(max(len(line[place]) for line in cells), 90) for place in range(len(columns) - 1)]
    padded = ([cell.ljust(width) for cell, width in zip(line[:-1], widths, strict=True)] + line[-1:] for line in cells)
    return ["  " + "  ".join(line).rstrip() for line in padded]


def _as_table(title: str, rows: list[Row]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    columns = _columns(rows)
    for column in columns:
        table.add_column(column, justify="right" if isinstance(rows[0][column], int) else "left")
    for row in rows:
        table.add_row(*(Text(str(row[column])) for column in columns))
    return table


def _columns(rows: list[Row]) -> list[str]:
    """The columns that say something in some row, and the last one."""
    *others, last = rows[0]
    return [*(column for column in others if any(row[column] != "" for row in rows)), last]


# ---- advice for guards -----------------------------------------------------------------------------------------------

_OTHERWISE = "or use clew.trace(fn), which captures each way"
_ADVICE = {
    "size": f"leave sizes free with dynamic=True, do without this size here, {_OTHERWISE}",
    "computed": f"choose with the framework's where, {_OTHERWISE}",
    "value": f"do without this number here, {_OTHERWISE}",
    "variable": "pass it as an argument",
}
_CHANGES = {
    "is set on one way only": "set the variable on both ways, or before the branch",
    "holds different things": "leave the same structure in the variable on both ways",
    "is of another type": "leave the same type, dtype and rank in the variable on both ways",
    "is set in the loop and read after it": "set the variable before the loop",
    "holds an iterator": "make a list of the iterator before",
    "not simply appended to": "append as many items in each round, or keep a tensor with a mask",
    "adds to a container": "set the key or attribute before the loop",
    "relies on a value": "do without the plain number in the loop: index with tensors, or use the framework's where",
    "no item to record": "capture with an example that has an item",
    "that another one holds too": "give each variable a list or dict of its own",
    "hold the same list": "give each variable a list or dict of its own",
    "a later round changes": "let each round change the same variables",
    "could not be run": "capture with an example on which this way can be run",
    "cannot be recorded": "take that part out of the branch or loop",
    "more than": "ask once for all: with any, all, or the framework's where",
    "a library asks": "ask before the library is called",
}
"""What to change, by a part of the reason why a branch or loop was not captured."""
_DEFAULT_ADVICE = "pass it in the example: numbers stay inputs of the graph"
_SIZES = frozenset({"shape", "size", "numel", "nelement", "ndimension", "dim"})


def kind_of(guard: Guard) -> str:
    """What the guard is about; one on a size that the program computes is about a size."""
    if guard.kind == "computed" and isinstance(guard.subject, Node) and _follows_from_size(guard.subject):
        return "size"
    return guard.kind


def _follows_from_size(checked: Node) -> bool:
    """Whether a number comes from sizes, and not from what arrays hold; what is nearest to the guard decides."""
    waiting, seen = [checked], {checked}
    while waiting:
        node = waiting.pop(0)
        if _name(node) in _SIZES or node.target is len:
            return True
        if node.op in ("call_method", "call_module"):
            return False
        inputs = [used for used in node.all_input_nodes if used not in seen]
        seen.update(inputs)
        waiting += inputs
    return False


def _name(node: Node) -> str:
    """The attribute, method or path that a node asks for; empty for calls of functions."""
    if node.target is getattr and len(node.args) > 1:
        return str(node.args[1])
    return node.target if isinstance(node.target, str) and node.op != "placeholder" else ""


def advice_for(guard: Guard) -> str:
    """What would make the capture hold without this guard; empty where nothing need be done."""
    kind = kind_of(guard)
    change = next((change for phrase, change in _CHANGES.items() if phrase in guard.reason), "")
    if change:
        return f"{change}, {_OTHERWISE}"
    if kind == "value" and guard.source is None:
        return _DEFAULT_ADVICE if type(guard.expected) in (int, float, bool) else ""
    return _ADVICE.get(kind, "")
