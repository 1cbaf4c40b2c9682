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
from clew.translate.refusals import Untranslatable
from clew.translate.rows.table import Table
from clew.translate.values import Opaque, Value

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
    reads_calls = False
    """Whether calls that the program tries, and those in guards on inputs, are translated by their rows."""
    marks: tuple[str, ...] = ()
    """How the names of attributes begin that the framework's own tools put on arrays."""
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

    def taken_apart(self, node: Node, args: Any, kwargs: Any, given: list[tuple[Any, bool, Any]]) -> Any:
        """A call as steps (``apart.Apart``); for each array its type and whether its sizes are fixed, for each number
        the example's. None where the source cannot take it apart."""
        return None

    def plain_result(self, writer: Writer, node: Node, given: tuple[Any, Any], dtype: str) -> Any:
        """The plain number that the array which a call gives is known to hold; None if it is not."""
        return None

    def as_array(self, xp: Any, value: Any) -> Any:
        """A leaf of what a function is given or gives, as an array where the source makes one of it."""
        if isinstance(value, Value) or value is None:
            return value
        raise Untranslatable("a function that is given something else than arrays, or gives it")

    def plain_attribute(self, root: Any, path: str, value: Any) -> Any:
        """The plain number that an attribute without axes holds, if that is a constant of the program."""
        return None

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

    def undisturbed(self, program: Any = None) -> AbstractContextManager[Any]:
        """A context that leaves the source's random numbers, and the state of a program, as they were."""
        return contextlib.nullcontext()

    def restore(self, array: Any, earlier: Any) -> None:
        """Put back what an array of the program held, if the source writes into arrays."""

    def like(self, array: Any, numbers: Any) -> Any:
        """An array of the kind of another one, with these numbers."""
        return self.from_numpy(numbers.astype(self.to_numpy(array).dtype))

    def slopes(self, program: Any, call: Any) -> dict[str, Any]:
        """The gradients of the sum of all float results for the weights of a program, by their names."""
        return {}

    def from_numpy(self, value: Any) -> Any:
        """An array of the source with these numbers."""
        return value

    def to_numpy(self, value: Any) -> Any:
        """The numbers of an array as an array of NumPy's."""
        return value.__array__()


NOTHING = object()
"""No answer, where None is one."""
