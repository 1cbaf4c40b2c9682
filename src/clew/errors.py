"""Every exception that Clew raises at users, one class per kind of mistake.

An error says what went wrong, where (the user's file, line and source text), why, and what to change. The four
parts are kept as attributes and composed into one message. Where torch.fx raises a builtin exception for the same
mistake, the class here derives from that builtin too, so code that catches it goes on working. Errors by which a
capture starts over (``CannotFollow`` and its like) stand beside the code that raises them: to users they are refusals.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

raised_inside: ContextVar[list[BaseException] | None] = ContextVar("clew_raised_inside", default=None)
"""What Clew has raised inside of the program that is being captured, if one is: no handler of it may keep that."""


def note_raised(error: BaseException) -> None:
    """Remember an error that may reach handlers of a captured program."""
    noted = raised_inside.get()
    if noted is not None:
        noted.append(error)


class ClewError(Exception):
    """The root of all errors of Clew, made of four parts: what, where, why and the ways out."""

    def __init__(self, what: str, *, where: str = "", why: str = "", fixes: Sequence[str] = ()) -> None:
        self.what = what
        self.where = where
        self.why = why
        self.fixes = tuple(fixes)
        super().__init__(compose(what, where, why, self.fixes))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.where, self.why, self.fixes)


def _rebuild(kind: type[ClewError], what: str, where: str, why: str, fixes: tuple[str, ...]) -> ClewError:
    return kind(what, where=where, why=why, fixes=fixes)


def compose(what: str, where: str, why: str, fixes: Sequence[str]) -> str:
    """The message of an error: one line each for what, where and why, then the ways out as a list."""
    lines = [what]
    if where:
        lines += [f"  where: {where.strip()}"]
    if why:
        lines += [f"  why: {why}"]
    if len(fixes) == 1:
        lines += [f"  what to do: {fixes[0]}"]
    elif fixes:
        lines += ["  what to do, one of:", *(f"    - {fix}" for fix in fixes)]
    return "\n".join(lines)


def as_cause(error: BaseException) -> BaseException:
    """An exception as the cause of one of Clew's. A StopIteration is a copy of itself: where a RuntimeError is raised
    from the very StopIteration that a ``@contextmanager`` was left by, contextlib takes it for that StopIteration."""
    if isinstance(error, StopIteration):
        return StopIteration(*error.args).with_traceback(error.__traceback__)
    return error


def a_or_an(value: object) -> str:
    """The class of a value with its article, for messages: "a list", "an int"."""
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeioAEIO" or name.startswith("nd") else f"a {name}"


def counted(count: int, what: str) -> str:
    """A number of things, for messages: "1 guard", "2 guards"."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


class GraphError(ClewError, RuntimeError):
    """A graph, or an edit of one, that breaks a rule of the IR."""


class UseBeforeDefinition(GraphError):
    """A node uses a value that is computed only after it (a cycle is one case of this)."""


class ForeignNode(GraphError, AssertionError):
    """A node of another graph was used, moved or erased in this one."""


class ErasedNode(GraphError, AssertionError):
    """A node that was erased from its graph is used again."""


class StillUsed(GraphError):
    """A node cannot be erased because other nodes use its value."""


class UnknownOpcode(GraphError, AssertionError):
    """An opcode that is not one of the six."""


class BadTarget(GraphError, ValueError):
    """A target that does not fit the node's opcode."""


class BadArgument(GraphError, TypeError):
    """An argument that the IR cannot hold, or an argument position that is not there."""


class BadArgumentIndex(BadArgument, AssertionError):
    """An argument position that is not there."""


class BadMeta(BadArgument, AssertionError):
    """A meta dictionary that would be overwritten."""


class DuplicateName(GraphError):
    """Two nodes of one graph bear the same name."""


class OutputCount(GraphError):
    """A graph with no output, with two, or with nodes behind its output."""


class BodyMismatch(GraphError):
    """A branch or loop whose bodies do not take what they are given, or do not return what is asked for."""


class MissingAttribute(GraphError, AttributeError):
    """A node refers to a submodule, parameter or buffer that the owning module does not have."""


class MissingInput(MissingAttribute):
    """An argument that the graph needs was not passed, or one that it does not know was."""


class MutableOperation(GraphError):
    """An operation that writes to its arguments, where only functional ones are wanted."""


class AmbiguousOverload(ClewError, RuntimeError):
    """Several overloads of a function take the arguments, and nothing tells which is meant."""


class TextError(ClewError, ValueError):
    """A text that is not a graph, or a graph that cannot be written as text."""


class NotAllowed(ClewError, PermissionError):
    """A name that the text of a graph may not use, unless the caller allows it."""


class CodegenError(ClewError, RuntimeError):
    """A graph that cannot be written as Python."""


class InteropError(ClewError, RuntimeError):
    """A graph of another tool that cannot be converted."""


class InputMismatch(InteropError, AssertionError, ValueError):
    """A call with inputs that the graph was not made for."""


class PatternError(ClewError, RuntimeError):
    """A pattern, or its replacement, that cannot be matched soundly."""


class EmptyPattern(PatternError, ValueError):
    """A pattern without an operation, which would match everywhere."""


class DeadPattern(PatternError, AssertionError):
    """A pattern that computes something and throws it away."""


class ReplacementMismatch(PatternError, AssertionError):
    """A replacement whose inputs or outputs do not fit the pattern's."""


class TraceError(ClewError, ValueError):
    """A program that symbolic tracing cannot follow."""


class TraceWarning(UserWarning):
    """Something that a trace froze as it was, and that the graph will not follow when it changes."""


class EqualItemsWarning(UserWarning):
    """A translated program took some of several equal items, where its source may take others."""


class SymbolicValueError(TraceError, TypeError):
    """A symbolic value was asked for a concrete number: int(), float(), range(), ``**``."""


class SymbolicLengthError(TraceError, RuntimeError):
    """The length of a symbolic value was asked for."""


class SymbolicKey(TraceError, RuntimeError):
    """A dictionary that reached a traced call has a symbolic value as a key."""


class MixedTracers(TraceError, RuntimeError):
    """Values of two traces met in one call."""


class UnsupportedArgument(TraceError, NotImplementedError):
    """A value that reached a traced call cannot be held by a graph."""


class ModuleNotFound(TraceError, NameError):
    """A module that was called, or a parameter that was used, is not a part of the root module."""


class NotTraceable(TraceError, AssertionError):
    """Something that is no Python function or module was given to be traced."""


class ConcreteArgumentsMismatch(TraceError, RuntimeError):
    """The concrete arguments do not fit the function's signature."""


class AlreadyAnnotated(TraceError, RuntimeError):
    """A value that has an annotation was given another one."""


class GuardError(ClewError, RuntimeError):
    """An assumption of the capture does not hold for this input."""


class CompiledGuardError(GuardError, AssertionError):
    """A guard that does not hold for what is being compiled: torch's compiler lets errors of this second kind through,
    and says of any other one that it is a fault of its own."""


class CaptureError(ClewError, RuntimeError):
    """A program that capture from an example cannot record faithfully, so it refuses."""

    def __new__(cls, *args: Any, **kwargs: Any) -> CaptureError:
        made = super().__new__(cls, *args)
        note_raised(made)
        return made


class ExampleMismatch(CaptureError, TypeError):
    """The arguments of the example are not those of one call of the program."""


class StateError(ClewError, RuntimeError):
    """A call failed midway and what it had done by then could not be taken back: the state is not what it should be."""


class MissingFramework(ClewError, ImportError):
    """A framework that is needed here is not installed."""


class NoExample(ClewError, ValueError):
    """There is nothing to run a program on."""


class VerificationError(ClewError, AssertionError):
    """A captured program that does not do what its original does."""


class BundleError(ClewError, ValueError):
    """A file that is no bundle, a damaged or hostile one, or a program that no bundle can hold."""


class UsageError(ClewError, ValueError):
    """A command line that names a target or an input in a way that is not known."""


class TargetError(ClewError, RuntimeError):
    """The program's own code failed before anything was captured: its import, or its constructor."""


class TranslationError(ClewError, NotImplementedError):
    """A program cannot be carried over to another framework."""


class BackendError(ClewError, RuntimeError):
    """A back end that is not there, or that cannot compile a program."""
