"""XLA: segments of JAX programs under ``jax.jit``, between islands of Python.

A run of nodes is one jitted function for each kind of arguments: sizes, dtypes and weak types of arrays, and the values
of plain numbers, which stay plain. What XLA needs to know and only a run tells (the value of an array) makes an island
of the segment. Programs of torch go through ``clew.translate`` first. Always holds: results that are no arrays are
those of Python. Importing this file imports jax.
"""

from __future__ import annotations

import operator
import threading
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy

from clew import tree
from clew.backends.partition import ISLAND
from clew.backends.registry import Backend
from clew.errors import BackendError
from clew.ir.effects import effect_of
from clew.ir.graph import Graph
from clew.ir.guests import Effect, package_of
from clew.ir.node import Node
from clew.runtime.build import compile_function

LIMIT = 16
"""So many variants a segment may have; then it runs in Python."""
_PACKAGES = frozenset(("jax", "jaxlib", "operator", "_operator", "builtins", "math", "clew"))
_METHODS = frozenset(
    "item tolist block_until_ready copy_to_host_async devices device addressable_data delete is_deleted "
    "is_fully_addressable on_device_size_in_bytes unsafe_buffer_pointer __array__ __dlpack__".split()
)
_ASKING = (bool, int, float, complex, print, id, hash, operator.index, operator.not_, operator.truth)
_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(...), slice)
_SMALL = 1024
"""Arrays of NumPy with so few bytes are constants of a variant."""


class Xla(Backend):
    """JAX's compiler."""

    name = "xla"

    def prepare(self, captured: Any) -> Any:
        if getattr(type(captured), "framework", "") != "jax":
            raise BackendError(
                "xla compiles programs of JAX, and this is none",
                fixes=('translate it first: clew.compile(clew.translate(captured, to="jax"), "xla")',),
            )
        return captured

    def reason_against(self, node: Node) -> str:
        effect = effect_of(node)
        if effect is not Effect.NONE:
            return "it draws random numbers" if effect is Effect.RANDOM else "it has effects"
        if node.op == "call_method":
            return f".{node.target}() needs the real array" if node.target in _METHODS else ""
        if node.target in _ASKING:
            return f"{node.target.__name__}() asks for a plain value"
        package = package_of(node.target)
        return "" if package in _PACKAGES else f"it is a function of {package}"

    def segment(self, graph: Graph, name: str, fallback: bool) -> Callable[..., Any]:
        return JaxSegment(graph, name, fallback)


class _Variant:
    """A jitted function, and how the result of the segment is made of what it gives."""

    def __init__(self, run: Callable[..., Any], leaves: list[Any], places: list[int], structure: Any) -> None:
        self.places = places
        self.constants: list[Any] = []
        self.structure: Any = None

        def traced(*arrays: Any) -> list[Any]:
            filled = list(leaves)
            for place, array in zip(places, arrays, strict=True):
                filled[place] = array
            found, self.structure = tree.flatten(run(*tree.unflatten(filled, structure)))
            self.constants = [None if isinstance(one, jax.Array) else (one,) for one in found]
            odd = [one for one in found if not isinstance(one, (jax.Array, *_PLAIN))]
            if odd:
                raise TypeError(f"it gives a {type(odd[0]).__name__}")
            return [one for one in found if isinstance(one, jax.Array)]

        self.jitted = jax.jit(traced)

    def __call__(self, leaves: list[Any]) -> Any:
        rest = iter(self.jitted(*[leaves[place] for place in self.places]))
        found = [next(rest) if one is None else one[0] for one in self.constants]
        return tree.unflatten(found, self.structure)


class JaxSegment:
    """Runs some nodes of a JAX program; ``islands`` lists them once they turned out to need Python."""

    takes_root = False

    def __init__(self, graph: Graph, name: str, fallback: bool) -> None:
        self.graph, self.name, self.fallback = graph, name, fallback
        self.__name__ = self.__qualname__ = name
        self.islands: list[tuple[Node, str]] = []
        self.in_python = ""
        self._variants: dict[Any, _Variant] = {}
        self._lock = threading.RLock()
        self._run = compile_function(graph.python_code("self"), name)

    def __call__(self, *values: Any) -> Any:
        if self.in_python:
            return self._run(None, *values)
        leaves, structure = tree.flatten(values)
        kinds = [_kind(leaf) for leaf in leaves]
        if None in kinds:
            return self._run(None, *values)
        key = (structure, *kinds)
        variant = self._variants.get(key)
        if variant is not None:
            return variant(leaves)
        with self._lock:
            return self._first_call(key, values, leaves, structure)

    def __deepcopy__(self, memo: dict[int, Any]) -> JaxSegment:
        return JaxSegment(self.graph, self.name, self.fallback)

    def __reduce__(self) -> Any:
        raise BackendError(
            "a compiled program cannot be saved", why="what a back end made lives in this process",
            fixes=("save the captured program, and compile it again after loading",),
        )  # fmt: skip

    def _first_call(self, key: Any, values: Any, leaves: list[Any], structure: Any) -> Any:
        if len(self._variants) == LIMIT:
            self._give_up(f"it was compiled for {LIMIT} kinds of arguments")
            warnings.warn(f"{self.name} runs in Python: {self.in_python}", RuntimeWarning, stacklevel=4)
            return self._run(None, *values)
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]
        constants = [None if isinstance(leaf, jax.Array) else leaf for leaf in leaves]
        variant = _Variant(lambda *given: self._run(None, *given), constants, places, structure)
        try:
            found = variant(leaves)
        except Exception as error:
            return self._failed(error, values)
        self._variants[key] = variant
        return found

    def _failed(self, error: Exception, values: Any) -> Any:
        """The program itself may fail so; else it cannot be compiled."""
        found = self._run(None, *values)
        line = (str(error).strip() or type(error).__name__).split("\n")[0]
        if not (self.fallback or isinstance(error, (jax.errors.JAXTypeError, TypeError))):
            source = next((node.source for node in self.graph.nodes if node.source is not None), None)
            raise BackendError(
                f"xla cannot compile {self.name}: {type(error).__name__}: {line}",
                where="" if source is None else source.describe(),
                fixes=("give fallback=True: the segment then runs in Python",),
            ) from error
        self._give_up(f"it needs what only a run tells: {line}")
        if self.fallback:
            warnings.warn(f"{self.name} runs in Python: {self.in_python}", RuntimeWarning, stacklevel=5)
        return found

    def _give_up(self, reason: str) -> None:
        self.in_python = reason
        self.islands = [(node, reason) for node in self.graph.nodes if node.op.startswith("call")]
        for node, _ in self.islands:
            node.meta[ISLAND] = reason


def _kind(leaf: Any) -> Any:
    """What a variant relies on of a value; None if there can be no variant."""
    if isinstance(leaf, jax.core.Tracer):
        return None  # somebody else's transformation is at work
    if isinstance(leaf, jax.Array):
        return leaf.shape, leaf.dtype, leaf.weak_type
    if isinstance(leaf, numpy.ndarray) and leaf.nbytes <= _SMALL and not leaf.dtype.hasobject:
        return leaf.shape, leaf.dtype, leaf.tobytes()
    return (type(leaf), repr(leaf)) if isinstance(leaf, _PLAIN) else None
