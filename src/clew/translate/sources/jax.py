"""JAX as a source: the names of its functions, its dtypes, keys and functions that take functions.

Arrays of JAX are never written to, so there are no writes. Importing this file imports JAX.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy

from clew.frameworks.jax.names import qualified_name
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.translate.refusals import Refusal, Untranslatable
from clew.translate.rows.jax import JAX
from clew.translate.rows.jax_random import Key
from clew.translate.sources.jax_functions import CALLED, as_array
from clew.translate.sources.source import Source, Special
from clew.translate.translator import Translator
from clew.translate.values import Dtype, Number
from clew.translate.writer import Writer

_ONE_NAME = ("lax.", "nn.", "random.", "scipy.", "ops.", "image.", "clew.", "dtypes.", "tree_util.")


class JaxSource(Source):
    """JAX."""

    framework = "jax"
    table = JAX
    enters_nests = True
    implied = ("array_kind", "ranked_kind", "class_kind", "settings", "is_number_or_array", "holds_numbers",
               "has_an_axis", "has_axes", "is_number")  # fmt: skip

    def spellings(self, name: str) -> list[str]:
        name = name.removeprefix("numpy.")
        return [name] if name.startswith(_ONE_NAME) else [name, name.removeprefix("jax.").removeprefix("numpy.")]

    def names_of(self, function: Any) -> list[str]:
        """The names under which the row of a function may stand."""
        return self.spellings((qualified_name(function) or "").removeprefix("jax."))

    def special(self, node: Node) -> Special | None:
        found = CALLED.get(self.names(node)[0]) if node.op == "call_function" else None
        if found is None:
            return None

        def run(translator: Translator, node: Node, args: Any, kwargs: Any) -> Any:
            try:
                return found(translator, *args, **kwargs)
            except (TypeError, AttributeError, ValueError, KeyError, IndexError) as error:
                raise Untranslatable(f"the row does not take these arguments: {error}") from error

        return run

    def constant(self, value: Any) -> Any:
        if isinstance(value, numpy.dtype):
            return Dtype(value.name)
        if type(value) is type(jnp.float32) or (isinstance(value, type) and issubclass(value, numpy.generic)):
            return Dtype(numpy.dtype(value).name)
        return value

    def is_opaque(self, dtype: str) -> bool:
        return dtype.startswith("key<")

    def completed(self, writer: Writer, wanted: Any, value: Any) -> Any:
        is_number = isinstance(value, (Number, bool, int, float))
        if is_number and wanted is not None and not wanted.shape:
            return writer.namespace.as_array(value, wanted.dtype)
        return value

    def opaque(self, writer: Writer, made: Node) -> Any:
        return Key(writer)

    def as_array(self, xp: Any, value: Any) -> Any:
        return as_array(xp, value)

    def is_array(self, value: Any) -> bool:
        return isinstance(value, (jax.Array, numpy.ndarray))

    def dtype_of(self, value: Any) -> str:
        return str(value.dtype.name) if hasattr(value.dtype, "name") else str(value.dtype)

    def from_numpy(self, value: Any) -> Any:
        return jnp.asarray(value)

    def to_numpy(self, value: Any) -> Any:
        if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            return numpy.asarray(jax.random.key_data(value))
        return numpy.asarray(value)

    def may_share(self, node: Node) -> bool:
        return False


def prepare(graph: Graph, constants: dict[str, Any]) -> list[Refusal]:
    """Nothing has to be done before."""
    return []


SOURCE = JaxSource
