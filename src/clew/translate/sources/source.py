"""What the translator has to know of a source framework: the names of its functions, and its plain values.

In comes a node or a constant of the source; out come the names under which a row may stand, and values that rows
understand: dtypes and devices are their names. Nothing of the framework is left in what comes out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from clew.ir.guests import guest, package_of
from clew.ir.node import Node
from clew.translate.rows.table import Table
from clew.translate.values import Opaque

if TYPE_CHECKING:
    from clew.translate.translator import Translator
    from clew.translate.writer import Writer


Special = Callable[["Translator", Node, Any, Any], Any]


class Source:
    """One source framework."""

    framework = ""
    table: Table
    implied: tuple[str, ...] = ()
    """Functions of guards that say no more than the dtypes and ranks which the translation is guarded on."""
    enters_nests = False
    """Whether containers of arrays among the arguments are taken apart as the example has them."""

    def names(self, node: Node) -> list[str]:
        """The names under which the row of a call may stand, the most exact one first."""
        target: Any = node.target
        if node.op == "call_method":
            return [str(target)]
        if target is getattr:
            return [f"attribute.{node.args[1]}"]
        module = getattr(target, "__module__", None) or ""
        if module in ("_operator", "operator"):
            return [f"operator.{target.__name__}"]
        if module in ("builtins", "math"):
            return [f"{module}.{target.__name__}"]
        found = guest(package_of(target))
        full = found.qualified_name(target) if found is not None else None
        full = full or f"{module}.{getattr(target, '__qualname__', getattr(target, '__name__', str(target)))}"
        short = full.removeprefix(f"{self.framework}.")
        return self.spellings(short)

    def names_of(self, function: Any) -> list[str]:
        """The names under which the row of a function may stand."""
        return self.spellings(getattr(function, "__name__", str(function)))

    def spellings(self, name: str) -> list[str]:
        """A name without the package, and shorter forms of it."""
        return [name, name.rpartition(".")[2]]

    def special(self, node: Node) -> Special | None:
        """What translates a call that needs to know the translator: those that are given functions."""
        return None

    def constant(self, value: Any) -> Any:
        """A plain value of the source as rows understand it."""
        return value

    def folded(self, node: Node, args: Any, kwargs: Any) -> Any:
        """The result of a call of the framework's own on plain values, if that is plain; else ``NOTHING``."""
        return NOTHING

    def is_opaque(self, dtype: str) -> bool:
        """Whether arrays of a dtype hold no numbers."""
        return False

    def opaque(self, writer: Writer, made: Node) -> Any:
        """What stands for an array that holds no numbers."""
        return Opaque(writer, made)

    def completed(self, writer: Writer, wanted: Any, value: Any) -> Any:
        """What a row gave, as the source has it."""
        return value

    def written(self, node: Node) -> tuple[str, int] | None:
        """The name of the function that gives what a call writes, and which argument it is written into."""
        return None

    def counts(self, node: Node) -> bool:
        """Whether how many items a call gives depends on the data."""
        return False

    def target(self, node: Node) -> Any:
        """What a call writes into."""
        return node.args[0]

    def may_share(self, node: Node) -> bool:
        """Whether what a call gives may lie in the memory of its first argument."""
        return True

    # ---- arrays of the source ----------------------------------------------------------------------------------------

    def is_array(self, value: Any) -> bool:
        """Whether a value is an array of the source."""
        found = guest(self.framework)
        return found is not None and found.array_class is not None and isinstance(value, found.array_class)

    def is_parameter(self, value: Any) -> bool:
        """Whether an array is a weight that is trained."""
        return False

    def identity(self, value: Any) -> Any:
        """Equal for arrays that are the same memory."""
        return id(value)

    def dtype_of(self, value: Any) -> str:
        """The name of the dtype of an array."""
        return str(value.dtype)

    def without_gradients(self) -> AbstractContextManager[Any]:
        """A context in which the source computes no gradients."""
        return contextlib.nullcontext()

    def from_numpy(self, value: Any) -> Any:
        """An array of the source with these numbers."""
        return value

    def to_numpy(self, value: Any) -> Any:
        """The numbers of an array as an array of NumPy's."""
        return value.__array__()


NOTHING = object()
"""No answer, where None is one."""
