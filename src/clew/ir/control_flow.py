"""Control flow in graphs: branches and loops whose bodies are nested graphs, and the rules that they keep.

``cond``, ``while_loop`` and ``for_loop`` are the targets of such nodes. Called with Python functions in the place of
graphs they just run, so they are at the same time the meaning of those nodes. A body sees nothing but what it is given:
loop-carried values first, then the item of a ``for``, then the operands. ``control_of`` reads a node and gives a
``Branch`` or a ``Loop``; ``check_control`` raises unless the bodies take and return what the node says.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from clew.errors import BodyMismatch, GraphError, a_or_an
from clew.ir.arguments import Body, Reference
from clew.ir.types import ArrayType, DictType, ListType, TupleType, type_of

Runnable = Callable[..., Any]


def cond(pred: Any, true_graph: Runnable, false_graph: Runnable, operands: Sequence[Any] = ()) -> Any:
    """``true_graph(*operands)`` if ``pred`` is true, otherwise ``false_graph(*operands)``."""
    return true_graph(*operands) if pred else false_graph(*operands)


def choose(pred: Any, first: Any, second: Any) -> Any:
    """``first if pred else second``: two values that are there already, unlike the bodies of a branch."""
    return first if pred else second


def while_loop(
    cond_graph: Runnable,
    body_graph: Runnable,
    carried: Sequence[Any],
    operands: Sequence[Any] = (),
    outputs: int = 0,
    breaks: bool = False,
) -> tuple[Any, ...]:
    """Run ``body_graph(*carried, *operands)`` for new carried values while ``cond_graph`` of the same says so.

    The body returns a tuple: the carried values, then ``outputs`` values that are collected, then, with ``breaks``,
    whether the loop ends here. The result is a tuple of the carried values and of one list for each output.
    """
    values = tuple(carried)
    lists: tuple[list[Any], ...] = tuple([] for _ in range(outputs))
    while cond_graph(*values, *operands):
        values, stop = _step(body_graph(*values, *operands), len(values), lists, breaks)
        if stop:
            break
    return (*values, *lists)


def for_loop(
    iterable: Iterable[Any],
    body_graph: Runnable,
    carried: Sequence[Any] = (),
    operands: Sequence[Any] = (),
    outputs: int = 0,
    breaks: bool = False,
) -> tuple[Any, ...]:
    """Run ``body_graph(*carried, item, *operands)`` for new carried values with every item of ``iterable``.

    What the body returns, and the result, are as for ``while_loop``.
    """
    values = tuple(carried)
    lists: tuple[list[Any], ...] = tuple([] for _ in range(outputs))
    for item in iterable:
        values, stop = _step(body_graph(*values, item, *operands), len(values), lists, breaks)
        if stop:
            break
    return (*values, *lists)


def _step(result: Any, count: int, lists: tuple[list[Any], ...], breaks: bool) -> tuple[tuple[Any, ...], Any]:
    """The new carried values and whether to stop; what is collected goes into its list."""
    wanted = count + len(lists) + breaks
    result = () if result is None and not wanted else result
    if not isinstance(result, tuple) or len(result) != wanted:
        raise GraphError(
            f"the body of a loop returned {_counted(result)} instead of a tuple of {wanted}",
            why=f"it has {count} carried values, {len(lists)} outputs and {'a' if breaks else 'no'} flag that stops it",
        )
    for values, value in zip(lists, result[count:], strict=False):
        values.append(value)
    return result[:count], breaks and result[-1]


def _counted(result: Any) -> str:
    return f"a tuple of {len(result)}" if isinstance(result, tuple) else a_or_an(result)


CONTROL = (cond, while_loop, for_loop)
"""The functions of this file, which are public under the name of the package: that is how code and text name them."""
for _function in (*CONTROL, choose):
    _function.__module__ = "clew"

_SIGNATURES = {function: inspect.signature(function) for function in CONTROL}


@dataclass(frozen=True)
class Branch:
    """A node that calls ``cond``."""

    predicate: Any
    bodies: tuple[Any, Any]
    operands: tuple[Any, ...]


@dataclass(frozen=True)
class Loop:
    """A node that calls ``while_loop``, which has a ``test``, or ``for_loop``, which has none."""

    test: Any
    iterable: Any
    body: Any
    carried: tuple[Any, ...]
    operands: tuple[Any, ...]
    outputs: int
    breaks: bool

    @property
    def bodies(self) -> tuple[Any, ...]:
        """The test, if there is one, and the body."""
        return (self.body,) if self.test is None else (self.test, self.body)

    @property
    def is_for(self) -> bool:
        """True for a ``for_loop``."""
        return self.test is None

    @property
    def returns(self) -> int:
        """How many values the body returns."""
        return len(self.carried) + self.outputs + self.breaks

    @property
    def results(self) -> int:
        """How many values the loop itself returns."""
        return len(self.carried) + self.outputs


def is_control(node: Any) -> bool:
    """True for a node that calls one of the three functions."""
    target = node.target
    return (target is cond or target is while_loop or target is for_loop) and node.op == "call_function"


def control_of(node: Any) -> Branch | Loop | None:
    """The branch or loop that a node is; None for any other node, and for one whose parts are not written out.

    Written out means: bodies are graphs, operands and carried values are tuples or lists, counts are numbers.
    """
    if not is_control(node):
        return None
    try:
        found = _SIGNATURES[node.target].bind(*node.args, **node.kwargs)
    except TypeError:
        return None
    found.apply_defaults()
    given = found.arguments
    operands, carried = given["operands"], given.get("carried", ())
    if not (isinstance(operands, (tuple, list)) and isinstance(carried, (tuple, list))):
        return None
    if node.target is cond:
        control: Branch | Loop = Branch(given["pred"], (given["true_graph"], given["false_graph"]), tuple(operands))
    elif type(given["outputs"]) is not int or type(given["breaks"]) is not bool:
        return None
    else:
        parts = given.get("cond_graph"), given.get("iterable"), given["body_graph"]
        control = Loop(*parts, tuple(carried), tuple(operands), given["outputs"], given["breaks"])
    return control if all(isinstance(body, Body) for body in control.bodies) else None


def give_values(node: Any, carried: tuple[Any, ...], operands: tuple[Any, ...]) -> None:
    """Give a loop other carried values and operands, which its bodies must take."""
    found = _SIGNATURES[node.target].bind(*node.args, **node.kwargs)
    found.arguments.update(carried=carried, operands=operands)
    node.args, node.kwargs = found.args, found.kwargs


def drop_unused_operands(node: Any) -> None:
    """Take from a branch or loop the operands that none of its bodies uses, and from the bodies their inputs."""
    control = control_of(node)
    if control is None or not control.operands:
        return
    count = len(control.operands)
    inputs = [inputs_of(body)[-count:] for body in control.bodies]
    needed = {one for body in control.bodies for guard in body.guards.entry for one in guard.inputs}
    kept = [any(row[place].users or row[place] in needed for row in inputs) for place in range(count)]
    if all(kept) or any(len(row) != count for row in inputs):
        return
    found = _SIGNATURES[node.target].bind(*node.args, **node.kwargs)
    operands = tuple(one for one, stays in zip(control.operands, kept, strict=True) if stays)
    found.arguments.update(operands=operands)
    node.args, node.kwargs = found.args, found.kwargs
    for body, row in zip(control.bodies, inputs, strict=True):
        for one, stays in zip(row, kept, strict=True):
            if not stays:
                body.erase_node(one)


def inputs_of(body: Any) -> list[Any]:
    """The parameters of a body, in order."""
    return [node for node in body.nodes if node.op == "placeholder"]


def output_of(body: Any) -> Any:
    """The output node of a body, or None."""
    last = body._root._prev
    return last if last.op == "output" else None


def returned(body: Any) -> Any:
    """What a body returns, as a nest of its nodes; None if it has no output."""
    output = output_of(body)
    return output.args[0] if output is not None and output.args else None


def closing_branch(body: Any) -> Any:
    """The branch at the very end of a body whose result is all that the body returns; None if there is none."""
    node = returned(body)
    if not isinstance(node, Reference) or not is_control(node) or node.target is not cond:  # type: ignore[attr-defined]
        return None
    is_last = node._next is output_of(body) and len(node.users) == 1  # type: ignore[attr-defined]
    return node if is_last and control_of(node) is not None else None


def ends_of(body: Any) -> list[Any]:
    """All that a body may return: what it returns itself, or what the branches return with which it closes."""
    node = closing_branch(body)
    if node is None:
        return [returned(body)]
    branch = control_of(node)
    assert isinstance(branch, Branch)
    return [end for inner in branch.bodies for end in ends_of(inner)]


# ---- the rules: what bodies take and return --------------------------------------------------------------------------

_NEST_TYPES = (TupleType, ListType, DictType)


def check_control(node: Any) -> None:
    """Raise the first broken rule of a node that is a branch or a loop; return for all others."""
    if not is_control(node):
        return
    control = control_of(node)
    if control is None:
        _check_form(node)
    elif isinstance(control, Branch):
        for which, body in zip(("true", "false"), control.bodies, strict=True):
            _check_inputs(node, f"the {which} side", body, len(control.operands))
        _check_sides(node, control)
    else:
        _check_loop(node, control)


def _check_form(node: Any) -> None:
    """Plain functions may stand in the place of graphs, with any arguments; with graphs all must be written out."""
    if not any(isinstance(value, Body) for value in (*node.args, *node.kwargs.values())):
        return
    raise _mismatch(
        node,
        "does not say all that it does",
        why="bodies must be graphs, operands and carried values tuples, outputs a number, breaks True or False",
        fix=f"see help(clew.{node.target.__name__}) for the arguments",
    )


def _check_inputs(node: Any, which: str, body: Any, count: int) -> None:
    inputs = inputs_of(body)
    starred = next((found for found in inputs if found.target.startswith("*")), None)
    if starred is not None:
        raise _mismatch(node, f"has a body with a parameter {starred.target}", why="a body takes plain values only")
    if len(inputs) != count:
        names = ", ".join(found.name for found in inputs) or "none"
        raise _mismatch(
            node,
            f"gives {which} {count} values, but it takes {len(inputs)}: {names}",
            why="a body takes the carried values, then the item of a for_loop, then the operands",
        )


def _check_sides(node: Any, branch: Branch) -> None:
    if len(node.users) == 1 and returned(node.graph) is node:
        return
    problem = sides_differ(branch)
    if problem:
        shown = [_shown(end) for body in branch.bodies for end in ends_of(body)]
        raise _mismatch(
            node,
            f"has sides that do not fit together: {problem}",
            why=f"one side returns {shown[0]}, another {next((one for one in shown if one != shown[0]), shown[-1])}",
            fix="let both return the same number of values, in the same nest, of the same dtype and rank",
        )


def sides_differ(branch: Branch) -> str:
    """The first difference in what the sides of a branch return, in words; empty if it is one nest of one type."""
    first, *others = (end for body in branch.bodies for end in ends_of(body))
    return next(filter(None, (_difference(first, other, "the result") for other in others)), "")


def _check_loop(node: Any, loop: Loop) -> None:
    count = len(loop.carried) + len(loop.operands)
    if loop.test is not None:
        _check_inputs(node, "the condition", loop.test, count)
    _check_inputs(node, "the body", loop.body, count + loop.is_for)
    for end in ends_of(loop.body):
        if _is_unknown(end):
            continue
        end = () if end is None and not loop.returns else end
        if type(end) is not tuple or len(end) != loop.returns:
            raise _mismatch(
                node,
                f"has a body that returns {_shown(end)} instead of a tuple of {loop.returns}",
                why=f"it has {len(loop.carried)} carried values, {loop.outputs} outputs and "
                f"{'a' if loop.breaks else 'no'} flag that stops it",
            )
        for place, (before, after) in enumerate(zip(loop.carried, end, strict=False)):
            problem = _type_conflict(before, after, f"carried value {place}")
            if problem:
                raise _mismatch(node, f"changes a value: {problem}", why="a carried value keeps its dtype and rank")


def _difference(left: Any, right: Any, path: str) -> str:
    """The first difference of two nests of results in words; nothing where it is not known."""
    if _is_unknown(left) or _is_unknown(right):
        return ""
    if _kind(left) is not _kind(right):
        return f"{path} is {_shown(left)} in one and {_shown(right)} in the other"
    if isinstance(left, dict):
        if list(left) != list(right):
            return f"{path} has the keys {list(left)} in one and {list(right)} in the other"
        pairs = [(f"{path}[{key!r}]", left[key], right[key]) for key in left]
    elif isinstance(left, (tuple, list)):
        if len(left) != len(right):
            return f"{path} has {len(left)} values in one and {len(right)} in the other"
        pairs = [(f"{path}[{place}]", *values) for place, values in enumerate(zip(left, right, strict=True))]
    else:
        return _type_conflict(left, right, path)
    return next(filter(None, (_difference(one, other, inner) for inner, one, other in pairs)), "")


def _is_unknown(value: Any) -> bool:
    """A node whose value may be a nest."""
    if not isinstance(value, Reference):
        return False
    kind = getattr(value, "value_type", None)
    return kind is None or isinstance(kind, _NEST_TYPES)


def _kind(value: Any) -> type:
    """The class of a nest; all that is no nest is of one kind."""
    for kind in (tuple, list, dict):
        if isinstance(value, kind):
            return type(value) if kind is tuple else kind
    return object


def _type_conflict(left: Any, right: Any, path: str) -> str:
    one, other = _type(left), _type(right)
    if not isinstance(one, ArrayType) or not isinstance(other, ArrayType):
        return ""
    if one.dtype == other.dtype and len(one.shape) == len(other.shape):
        return ""
    return f"{path} is {one} and {other}"


def _type(value: Any) -> Any:
    return value.value_type if isinstance(value, Reference) else type_of(value)  # type: ignore[attr-defined]


def _shown(value: Any) -> str:
    """A nest in words, with nodes by their names."""
    if isinstance(value, Reference):
        return f"%{value.name}"
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(_shown, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_shown(item)}' for key, item in value.items())}}}"
    return repr(value)


def _mismatch(node: Any, what: str, why: str = "", fix: str = "") -> BodyMismatch:
    place = "" if node.source is None else node.source.describe()
    return BodyMismatch(f"Node {node.name} {what}", where=place, why=why, fixes=[fix] if fix else [])
