"""What tracing a JAX program cannot see through, told in the user's terms.

A program that asks an array for its value cannot be traced; one that catches the error which JAX raises then would go
another way than it goes with values. Random numbers of Python and NumPy, drawn during a trace, would be drawn once.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import jax
import numpy
import numpy.random
from jax.extend import core

from clew.capture.bytecode.try_blocks import is_tried
from clew.capture.patches import Patches
from clew.errors import CaptureError, ClewError
from clew.ir.source import SourceLine, is_hidden, user_frame, user_source

if TYPE_CHECKING:
    from clew.frameworks.jax.recorder import JaxRecorder

_ERRORS = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
_CALLBACKS = ("callback", "debug_print", "ffi_call", "custom_call")
_PYTHONIC_NARROW = 4


class PlainNumbers(Exception):
    """Numbers among the arguments went where JAX takes only plain ones: the run is made again with plain ones."""


class Raised:
    """An error of JAX's tracing that the program may have caught."""

    def __init__(self) -> None:
        self.caught: SourceLine | None = None
        self.kind = ""

    def note(self, kind: str) -> None:
        """Such an error is being made: remember the user's line if something around it would catch it."""
        frame = user_frame(3)
        if self.caught is None and frame is not None and is_tried(frame, {}):
            self.caught, self.kind = user_source(3), kind

    def check(self) -> None:
        """Raise if the program has caught one."""
        if self.kind:
            raise CaptureError(
                f"the program catches a {self.kind} that JAX raises because it is being traced",
                where="" if self.caught is None else self.caught.describe(),
                why="with values it would go another way",
                fixes=("decide by shapes or arguments, or with jax.lax.cond",),
            )


def watch_errors(patches: Patches, failure: Raised) -> None:
    """Let the errors of tracing report that they are made."""
    for kind in _ERRORS:

        def make(original: Any, kind: type = kind) -> Any:
            def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
                failure.note(type(self).__name__)
                original(self, *args, **kwargs)

            return __init__

        patches.on_class(kind, "__init__", make, inherited=True)


@contextmanager
def no_random_numbers() -> Iterator[None]:
    """Refuse a program that draws random numbers of Python or NumPy; put their generators back."""
    python, of_numpy = random.getstate(), numpy.random.get_state(legacy=False)
    try:
        yield
        drawn = random.getstate() != python or repr(numpy.random.get_state(legacy=False)) != repr(of_numpy)
    finally:
        random.setstate(python)
        numpy.random.set_state(of_numpy)
    if drawn:
        raise CaptureError(
            "the program draws random numbers of Python or NumPy",
            why="the jaxpr would hold the numbers of this one run",
            fixes=("draw them with jax.random and a key", "pass them as arguments"),
        )


def explained(error: Exception) -> Exception:
    """An error of tracing as a refusal with the user's line; any other as it is."""
    is_of_tracing = isinstance(error, (*_ERRORS, jax.errors.UnexpectedTracerError)) or "Tracer" in str(error)
    if isinstance(error, ClewError) or not is_of_tracing:
        return error
    frames = [entry for entry in traceback.walk_tb(error.__traceback__) if not is_hidden(entry[0].f_code)]
    place = ""
    if frames:
        frame, line = frames[-1]
        place = SourceLine(frame.f_code.co_filename, line, frame.f_code.co_name).describe()
    return CaptureError(
        f"the program asks an array for its value: {str(error).strip().splitlines()[0]}",
        where=place,
        why="JAX traces a program without values, so an if, a loop, float() or NumPy cannot look at one",
        fixes=(
            "use jax.lax.cond, jax.lax.while_loop or jax.numpy.where",
            'make the argument a plain number and name it in static=("name",)',
        ),
    )


def check_numbers(jaxpr: Any, variables: Sequence[Any], serials: Sequence[int], recorder: JaxRecorder) -> None:
    """A number that becomes a narrower array would be rounded twice: such a program gets plain numbers."""
    taken = {
        variable: recorder.taken[serial]
        for variable, serial in zip(variables, serials, strict=True)
        if serial in recorder.taken
    }
    for eqn in jaxpr.eqns:
        if eqn.primitive.name != "convert_element_type":
            continue
        source = eqn.invars[0]
        standing = None if isinstance(source, core.Literal) else taken.get(source)
        if standing is None or type(standing).__name__ == "HostArray":
            continue
        if numpy.dtype(eqn.params["new_dtype"]).itemsize < _PYTHONIC_NARROW:
            raise PlainNumbers


def check_callbacks(jaxpr: Any) -> None:
    """Raise where a function of Python stays a call inside the program."""
    for eqn in jaxpr.eqns:
        if any(word in eqn.primitive.name for word in _CALLBACKS):
            raise CaptureError(
                f"the program calls Python through {eqn.primitive.name}",
                why='opaque="error" refuses calls that the capture cannot look into',
                fixes=("take the callback out",),
            )
        for inner in core.jaxprs_in_params(eqn.params):
            check_callbacks(inner)
