"""The example of a capture, run on both sides: a translation that gives something else is not handed out.

Comes in: the captured program and its translation, and what converts between their arrays. Programs that draw random
numbers or change state, and captures whose example is gone, are not run. Goes out: whether both were compared; the
error names the result that differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from clew import tree
from clew.errors import GuardError, TranslationError
from clew.ir.arguments import all_nodes
from clew.ir.interpreter import Interpreter
from clew.translate.sources.source import Source

TOLERANCES = {
    "float16": 1e-2,
    "bfloat16": 5e-2,
    "float32": 1e-4,
    "float64": 1e-9,
    "complex64": 1e-4,
    "complex128": 1e-9,
}
"""How far two results may lie apart, for numbers around one and, relative to them, for larger ones."""


class Gone(Exception):
    """An array of the example is no longer there."""


def check_example(program: Any, made: Any, source: Source, convert: Callable[[Any], Any]) -> bool:
    """Raise if the translation gives something else for the example than the captured program."""
    example = vars(program).get("_example")
    if example is None or made.draws or made.changes_state:
        return False
    try:
        args, kwargs = example.call(gone)
    except Gone:
        return False
    there_args, there_kwargs = _there(source, convert, (args, kwargs))
    with source.without_gradients():
        found = tree.flatten(made(*there_args, **there_kwargs))[0]
        wanted = tree.flatten(program(*args, **kwargs))[0]
    if len(found) != len(wanted):
        raise TranslationError(f"the translation returns {len(found)} values, and the original {len(wanted)}")
    for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
        if source.is_array(other):
            _compare(place, one, source.to_numpy(other))
    return True


def _there(source: Source, convert: Callable[[Any], Any], call: Any) -> Any:
    """A call with arrays of the target."""
    leaves, structure = tree.flatten(call)
    arrays = {id(leaf): convert(source.to_numpy(leaf)) for leaf in leaves if source.is_array(leaf)}
    return tree.unflatten([arrays.get(id(leaf), leaf) for leaf in leaves], structure)


def compiled_difference(
    program: Any, made: Any, source: Source, convert: Callable[[Any], Any], is_compiling: Any
) -> str:
    """How what a program gives for the example when a compiler traces it differs from what a plain call gives; empty if
    it does not, or does not ask for compilers. The compiled side runs plainly, with the answer that a compiler gets."""
    asks = any(node.target is is_compiling for node in all_nodes(made._graph))
    example = vars(program).get("_example")
    if not asks or example is None or made.draws or made.changes_state:
        return ""
    try:
        args, kwargs = _there(source, convert, example.call(gone))
        compiled = _AsCompiled(made, is_compiling).run(*args, **kwargs)
    except (Gone, GuardError):
        return ""
    found, wanted = (tree.flatten(one)[0] for one in (compiled, made(*args, **kwargs)))
    if len(found) != len(wanted):
        return f"{len(found)} results, not {len(wanted)}"
    told = (difference(numpy.asarray(one), numpy.asarray(other)) for one, other in zip(found, wanted, strict=True)
            if hasattr(other, "dtype"))  # fmt: skip
    return next(filter(None, told), "")


class _AsCompiled(Interpreter):
    """Runs a translated program with the answer that a compiler is there."""

    def __init__(self, made: Any, is_compiling: Any) -> None:
        super().__init__(made.root, False, made._graph)
        self.is_compiling = is_compiling
        self.extra_traceback = False

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return True if target is self.is_compiling else super().call_function(target, args, kwargs)


def gone(kind: Any) -> Any:
    """Stands for an array of the example that is no longer there."""
    raise Gone


def _compare(place: int, one: Any, other: Any) -> None:
    problem = difference(numpy.asarray(one.detach() if hasattr(one, "detach") else one), other)
    if problem:
        raise TranslationError(
            f"the translation gives another result {place} for the example: {problem}",
            why="a row of the translation is wrong, or rounding errors grow in this program",
            fixes=("report it", "check=False gives the translation as it is"),
        )


def difference(have: Any, want: Any, atol: float = 0.0, rtol: float = 0.0) -> str:
    """How two arrays of NumPy's differ beyond what rounding explains, or the tolerances; empty if they do not."""
    if have.shape != want.shape:
        return f"shape {have.shape}, not {want.shape}"
    if have.dtype.kind != want.dtype.kind and not {have.dtype.kind, want.dtype.kind} <= set("fV"):
        return f"dtype {have.dtype}, not {want.dtype}"
    if not (atol or rtol):
        atol = rtol = TOLERANCES.get(want.dtype.name, 0.0)
    wide = "complex128" if want.dtype.kind == "c" else "float64"
    left, right = have.astype(wide), want.astype(wide)
    with numpy.errstate(all="ignore"):
        same = numpy.isclose(left, right, rtol=rtol, atol=atol, equal_nan=True)
        if same.all():
            return ""
        furthest = numpy.nanmax(numpy.where(same, 0.0, abs(left - right)))
    count, allowed = int((~same).sum()), max(atol, rtol)
    return f"{count} of {same.size} numbers differ, by up to {furthest:.3g} (allowed: {allowed:g})"
