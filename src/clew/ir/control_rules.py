"""The rules of branches and loops: what their bodies take and return.

A node comes in and is left as it is; the first broken rule is raised as an error that names the node.

1. A body takes what it is given: carried values, the item of a ``for``, operands.
2. Both sides of a branch return the same nest, unless their results are those of the whole graph: then each is a
   ``return`` of its own. Where two arrays meet whose types are known, they have the same dtype and rank.
3. The body of a loop returns a tuple: carried values (same dtype and rank as before), outputs, the flag that stops it.
"""

from __future__ import annotations

from typing import Any

from clew.errors import BodyMismatch
from clew.ir.arguments import Body, Reference
from clew.ir.control import Branch, Loop, control_of, ends_of, inputs_of, is_control, returned
from clew.ir.types import ArrayType, DictType, ListType, TupleType, type_of

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
    first, *others = (end for body in branch.bodies for end in ends_of(body))
    for other in others:
        problem = _difference(first, other, "the result")
        if problem:
            raise _mismatch(
                node,
                f"has sides that do not fit together: {problem}",
                why=f"one side returns {_shown(first)}, another {_shown(other)}",
                fix="let both return the same number of values, in the same nest, of the same dtype and rank",
            )


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
