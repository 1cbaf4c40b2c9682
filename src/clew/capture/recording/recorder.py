"""The recorder of one run: which value belongs to which node, and how calls and guards become nodes.

A framework reports a call; the node gets the user's line, the name of the variable that gets the result, and the
modules being called, all read from the innermost frame of the user's (``Site``, each instruction read once). Values
are known by identity; items and attributes are ``Pending`` until somebody needs their nodes. A call inside of a
``try`` is recorded as an attempt, because the program would catch its error and go on.
"""

from __future__ import annotations

import operator
import sys
import weakref
from collections.abc import Callable, Iterable
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MethodDescriptorType,
    WrapperDescriptorType,
)
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from clew.capture.bytecode.handled_errors import may_see_error
from clew.capture.bytecode.instructions import RETURNED, returned_by, stored_in, variable_for
from clew.capture.bytecode.try_blocks import (
    ARITHMETIC,
    FRAMEWORK,
    NEVER,
    Errors,
    Gate,
    assumed_error,
    attempt,
    attempt_method,
    catches_only,
    class_caught,
    has_failed,
    is_tried,
    outcome_of,
    outcome_of_method,
)
from clew.capture.guards.notes import CHECKS, describe, require
from clew.capture.options import Options
from clew.capture.python.outside_reads import OutsideReads
from clew.capture.recording.list_proxies import ListProxy, StateListProxy, TupleProxy
from clew.capture.recording.nested_programs import Bodies
from clew.capture.recording.operators import Operation, OperatorForm, as_written, operation_at
from clew.errors import CaptureError
from clew.ir.arguments import rebuilt_tuple
from clew.ir.effects import pure
from clew.ir.graph import Graph
from clew.ir.node import Node, set_meta, set_source, set_type
from clew.ir.source import (
    PACKAGE_FOLDER,
    SourceLine,
    forgotten_with_folders,
    is_hidden,
    source_of_frame,
    user_frame,
    user_source,
)
from clew.ir.types import ScalarType

if TYPE_CHECKING:
    from clew.capture.control_flow.paths import Paths


class Site:
    """One instruction of the user's program; ``code`` is kept, so that its identity stays its own."""

    __slots__ = ("code", "operation", "source", "variable")

    def __init__(self, frame: FrameType) -> None:
        code, offset = frame.f_code, frame.f_lasti
        self.code: CodeType = code
        self.source: SourceLine = source_of_frame(frame)
        self.variable: str | None = stored_in(code, offset) or returned_by(code, offset) or None
        self.operation: Operation | None = operation_at(code, offset)


SITES: dict[tuple[int, int], Site] = {}
"""All that are known, by the identity of their code and the offset."""
forgotten_with_folders(SITES)


def site_of(frame: FrameType) -> Site | None:
    """The place where a frame stands; None if it is not the user's, or only hands the call on."""
    code = frame.f_code
    known = SITES.get((id(code), frame.f_lasti))
    if known is None:
        if is_hidden(code) or only_forwards(code):
            return None
        known = SITES[id(code), frame.f_lasti] = Site(frame)
    return known


DISPATCHERS = {"wrapped"}
"""Functions that only hand a call on; frameworks add theirs."""
_forwarding: dict[int, tuple[bool, bool, CodeType]] = {}
"""By the identity of code, which is kept, so that it stays its own."""

UserFrames = tuple[FrameType | None, FrameType | None, tuple[str, ...]]


def user_frames(frame: FrameType | None) -> UserFrames:
    """The user's innermost frame, the innermost one that does not merely hand a call on, and the names of functions
    of frameworks that stand between the user and the recorder."""
    outside: FrameType | None = None
    strangers: tuple[str, ...] = ()
    while frame is not None:
        code = frame.f_code
        is_ours, only_hands_on, _ = _forwarding.get(id(code)) or _look_at(code)
        if not is_ours:
            if not is_hidden(code):
                return frame, outside or past_forwarding(frame), strangers
            if not only_hands_on:
                outside, strangers = outside or frame, (*strangers, code.co_name)
        frame = frame.f_back
    return None, outside, strangers


def past_forwarding(frame: FrameType | None) -> FrameType | None:
    """A frame, or if it only hands calls on, the next one further out that does more."""
    while frame is not None and only_forwards(frame.f_code):
        frame = frame.f_back
    return frame


def only_forwards(code: CodeType) -> bool:
    """True for code that only hands a call on: Clew's own, and the dispatchers of frameworks."""
    return (_forwarding.get(id(code)) or _look_at(code))[1]


def _look_at(code: CodeType) -> tuple[bool, bool, CodeType]:
    """Whether code is Clew's own, and whether it only hands calls on; looked at once."""
    is_ours = code.co_filename.startswith(PACKAGE_FOLDER)
    found = _forwarding[id(code)] = (is_ours, is_ours or code.co_name in DISPATCHERS, code)
    return found


@pure
def failure_of(call: Callable[..., Any] | str, with_text: bool, *args: Any, **kwargs: Any) -> tuple[str, ...] | None:
    """The class, and the text, of the error that a call raises, or the method of this name; None if it does not."""
    try:
        if isinstance(call, str):
            getattr(args[0], call)(*args[1:], **kwargs)
        else:
            call(*args, **kwargs)
    except Exception as error:
        return described(error, with_text)
    return None


def described(error: Exception, with_text: bool) -> tuple[str, ...]:
    """An error as a guard compares it."""
    kind = f"{type(error).__module__}.{type(error).__qualname__}"
    return (kind, str(error)) if with_text else (kind,)


_MOST_BEFORE = 8
"""After so many questions on one path, calls under an ``except`` are not asked whether they fail: it may be a loop that
tries again."""
_BOOL = ScalarType("bool")
_OWN_LISTS = ("builtins", "clew.capture.recording.list_proxies", "clew.capture.recording.list_proxies")
_CHECKS = frozenset(CHECKS)
_BUILTIN = frozenset({BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType, GetSetDescriptorType})
_NOWHERE: UserFrames = (None, None, ())
PLAIN = frozenset({int, float, bool, str, type(None), complex, bytes, type(...)})
_FACTS = frozenset({"shape", "ndim", "dtype", "device"})
"""What every array has, so that asking for it does not fail."""


def _is_fact(target: Any, args: tuple[Any, ...]) -> bool:
    """Whether a call reads a fact about an array, or one of its sizes: how many it has is guarded."""
    if target is getattr:
        return args[1] in _FACTS
    return target is operator.getitem and getattr(args[0], "target", None) is getattr and args[0].args[1] == "shape"


def _is_of_framework(op: str, target: Any) -> bool:
    """Whether a call runs no code but the framework's and Python's own."""
    return op == "call_method" or type(target) in _BUILTIN


class Scalar:
    """The mark of a proxy of a number: ``plain`` is its value in the example, ``place`` its node."""

    __slots__ = ()
    plain: Any
    place: Any
    recorder: Recorder
    is_of_python: ClassVar[bool] = True
    """Whether it is the proxy of a number or a fact of Python's, and not for what a framework has of its own."""

    def relied_on(self) -> Any:
        """The number itself, on which the capture relies from now on."""
        self.recorder.guard(self.place, self.plain)
        return self.plain


def _no_reason(filename: str, line: int) -> str:
    return ""


def _anywhere(node: Node, why: str) -> None:
    """Outside of a piece that is undone, what stands for any node may change."""


class Pending:
    """A node that is made only when somebody needs it, and then once: an item of a result, or an attribute."""

    __slots__ = ("_meta", "args", "name", "node", "target")

    def __init__(self, target: Callable[..., Any], args: tuple[Any, ...], name: str | None = None) -> None:
        self.target = target
        self.args = args
        self.name = name
        self.node: Node | None = None
        self._meta: dict[str, Any] | None = None

    @property
    def meta(self) -> dict[str, Any]:
        """Notes that the node will have."""
        if self._meta is None:
            self._meta = {}
        return self._meta

    def made_by(self, recorder: Recorder) -> Node:
        """The node, made where what it is taken from was made."""
        owner, *rest = self.args
        node = recorder.resolve(owner)
        return recorder.create_in(node.graph, "call_function", self.target, (node, *rest), name=self.name)


class ModuleStack:
    """The modules whose calls the program is in, the innermost last; nodes that are made inside note them."""

    __slots__ = ("_calls", "_noted", "gate", "leaf", "open")

    def __init__(self) -> None:
        self.open: dict[str, tuple[str, Any]] = {}
        self.gate: Gate | None = None  # the frames that wait for these calls
        self.leaf: type | None = None  # the class of the module that stays one node and is called now
        self._calls: dict[str, int] = {}
        self._noted: dict[str, tuple[str, Any]] | None = None  # a copy that all nodes made now share

    def note_on(self, node: Node) -> None:
        """Note on a node the modules inside of which the program is."""
        if self._noted is None:
            self._noted = dict(self.open)
        stack = self._with_leaf(node) if node.op == "call_module" else self._noted
        if node._meta is None:
            set_meta(node, {"nn_module_stack": stack})
        else:
            node._meta["nn_module_stack"] = stack

    def _with_leaf(self, node: Node) -> dict[str, tuple[str, Any]]:
        """The modules around a call of a module that stays one node, and that one, as it is in symbolic captures."""
        path = str(node.target)
        calls = self._calls[path] = self._calls.get(path, -1) + 1
        return {**self.open, f"{path}@{calls}" if calls else path: (path, self.leaf)}

    def enter(self, key: str, path: str, kind: type, frame: FrameType) -> str:
        """What is recorded from now on is inside of a module, called by a frame that waits; the key to leave it."""
        calls = self._calls[key] = self._calls.get(key, -1) + 1
        self.open[key := f"{key}@{calls}" if calls else key] = (path, kind)  # as torch.fx tells calls apart
        self._noted = None
        self.gate = Gate(frame, self.gate)
        return key

    def leave(self, key: str) -> None:
        """The call of the innermost module is over."""
        del self.open[key]
        self._noted = None
        if self.gate is not None:
            self.gate.frame = None
            self.gate = self.gate.outer


class RootAttributes:
    """The arrays that the graph reads from its root: attributes of the program's module, and constants.

    Constants and paths are the same for all runs of a program, the nodes that read them are of one run.
    """

    __slots__ = ("constants", "nodes", "paths")

    def __init__(self, known: RootAttributes | None = None) -> None:
        self.constants: dict[str, Any] = {} if known is None else known.constants
        self.paths: dict[int, tuple[str, Any]] = {} if known is None else known.paths
        self.nodes: dict[str, Node] = {}

    def add_constant(self, value: Any) -> str:
        """The path of an array that the root gets."""
        path = f"_constant{len(self.constants)}"
        self.constants[path] = value
        self.paths[id(value)] = (path, value)
        return path


class IdentityQuestions(NamedTuple):
    """What the code of a program asks about objects as such; then no other object may stand for a value."""

    is_asked: bool = False
    """Whether it asks which object a value is, in one of the ways below."""
    of_truths: bool = False
    """Whether it asks for True or False as such, which nothing can stand for."""
    of_objects: bool = False
    """Whether it compares objects."""


_USUAL_OPTIONS, _NO_QUESTIONS = Options(), IdentityQuestions()


class ErrorNotes:
    """What the errors of a program depend on."""

    __slots__ = ("failed", "failure", "follows", "told")

    def __init__(self) -> None:
        self.failed: list[BaseException] = []  # what recorded calls have raised, on plain values
        self.told: list[tuple[Any, Any]] = []  # numbers, and their places, in texts that are for errors alone
        self.failure: tuple[str, str] | None = None  # a call that has failed: the error, and the line
        self.follows = False  # whether the call at hand may fail on a path of its own


class ControlFlowHooks:
    """What the recording of loops and branches tells a recorder."""

    reason_at: Callable[[str, int], str] = staticmethod(_no_reason)
    """Why the loop or branch in a line of a file is no node; empty where nothing is known."""
    check_piece: Callable[[Node, str], None] = staticmethod(_anywhere)
    """Raises if what stands for a node must not change in the piece that is being recorded."""


class ArrayAttributes(Protocol):
    """The arrays on which the program has put attributes, where arrays can carry any."""

    def put_on(self, array: Any) -> dict[str, Any]:
        """The attributes that the program has put on an array of its own."""

    def changed(self) -> Iterable[tuple[Any, dict[str, Any], dict[str, Any]]]:
        """Arrays that are not the program's own, with what they carried before, and what they carry now."""


class RunCode:
    """The code that a run executes: who has asked for the capture, what has run since, and what it has been told."""

    __slots__ = ("caller", "executed", "gets_plain_numbers", "outside_reads")

    def __init__(self) -> None:
        self.caller = 0  # identifies the frame that has asked for the capture, which is none of the program's
        self.executed: dict[int, CodeType] = {}
        self.gets_plain_numbers = False  # each of them guarded
        self.outside_reads = OutsideReads()  # what it has learnt of the world outside


class Recorder:
    """Records one run of a program."""

    hand_out: Callable[..., Any]
    """The function of the graph that gives an iterator over values that were computed."""
    owner: Recorder | None = None
    """The recorder into whose graph this one writes, if it is not its own."""
    array_kinds: frozenset[type] = frozenset()
    """The classes of most arrays, which are known without a question to the framework."""

    opens_lists = False
    branches_in_functions = False  # whether functions that are handed to others may have branches and loops inside
    """Whether the list of a range of any length may be of any length, too."""
    joins_lists = False
    """Whether the arguments are those of a call that joins all items of a list, of whatever length."""
    leaf_kinds: frozenset[type] = frozenset()  # of plain values, besides numbers, that may differ from path to path

    def __init__(self) -> None:
        self.bodies = Bodies(Graph())
        self.paths: Paths | None = None
        self.options = _USUAL_OPTIONS
        self.identity = _NO_QUESTIONS
        self.error_notes = ErrorNotes()
        self.aliases: dict[int, tuple[Any, Any]] = {}
        self.attributes = RootAttributes()
        self.objects: dict[int, tuple[Any, Any]] = {}
        self.array_attributes: ArrayAttributes | None = None
        self.open = True
        self.hooks = ControlFlowHooks()
        self.running = False  # whether the program runs now: only then its lines have to do with what is recorded
        self.nodes: dict[int, tuple[weakref.ref[Any], Any]] = {}
        self.guarded: set[tuple[Node, Any]] = set()
        self.code = RunCode()
        self.module_stack = ModuleStack()

    @property
    def graph(self) -> Graph:
        """The graph that new nodes go into: the program's, or the body of a function that it hands to another one."""
        return self.bodies.current

    # ---- values and nodes ----------------------------------------------------------------------------------------

    def track(self, value: Any, place: Node | Pending) -> None:
        """From now on ``value`` belongs to this node."""
        self.nodes[id(value)] = (weakref.ref(value), place)
        if type(place) is Node:
            self.note_type(place, value)

    def enter(self, value: Any, place: Any) -> Any:
        """An array from outside as the program shall see it, tied to its node."""
        self.track(value, place)
        return value

    def twin_of(self, value: Any) -> Any:
        """The proxy of an object that came in and whose own methods must be recorded; None for all others."""
        return None

    def known(self, value: Any) -> Node | None:
        """The node of a value that was recorded, or None."""
        entry = self.nodes.get(id(value))
        if entry is None or entry[0]() is not value:
            return None
        if isinstance(entry[1], Pending):
            node = self.resolve(entry[1])
            self.nodes[id(value)] = (entry[0], node)
            self.note_type(node, value)
            return node
        found: Node = entry[1]
        return found

    def held(self, value: Any) -> Node | Pending | None:
        """The node of a value, or the one that it has once somebody needs it; none is made for it."""
        kind = type(value)
        if issubclass(kind, (Scalar, TupleProxy, ListProxy)):
            place = value.place
        else:
            entry = self.nodes.get(id(value))
            kept = self.objects.get(id(value))
            if entry is not None and entry[0]() is value:
                place = entry[1]
            elif kept is not None and kept[0] is value:
                place = kept[1]
            else:
                known = self.attributes.paths.get(id(value))
                place = None if known is None or known[1] is not value else self.attributes.nodes.get(known[0])
        if isinstance(place, Pending):
            return place if place.node is None else place.node
        return place if isinstance(place, Node) else None

    def resolve(self, place: Node | Pending) -> Node:
        """The node itself, made now if it was pending."""
        if isinstance(place, Node):
            return place
        if place.node is None:
            place.node = place.made_by(self)
            if place._meta:
                place.node.meta.update(place._meta)
        return place.node

    def calculate(self, function: Any, values: tuple[Any, ...]) -> Any:
        """What a function gives for numbers of which more is known than their value in the example: a plain value if
        it is always so, the place of a traced one otherwise; None if no more is known."""
        return None

    def operate(self, function: Callable[..., Any], *values: Any) -> Any:
        """Apply a function of Python's to values, some of them proxies of numbers, and record that."""
        raise NotImplementedError

    def node_of(self, value: Any) -> Node:
        """The node of an array: recorded, an attribute of the root, or a constant."""
        node = self.known(value)
        if node is not None:
            return node
        known = self.attributes.paths.get(id(value))
        path = known[0] if known is not None and known[1] is value else self.new_constant(value)
        return self.attribute_node(path, value)

    def attribute_node(self, path: str, value: Any = None) -> Node:
        """The node that reads an attribute of the root; one for all who read it."""
        node = self.attributes.nodes.get(path)
        if node is None:
            node = self.attributes.nodes[path] = self.create_in(self.bodies.outermost, "get_attr", path)
        if value is not None and node.value_type is None:
            self.note_type(node, value)
        return node

    def new_constant(self, value: Any) -> str:
        return self.attributes.add_constant(value)

    # ---- recording -----------------------------------------------------------------------------------------------

    def create(
        self,
        target: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
        is_result: bool = False,
        errors: Errors | None = None,
    ) -> Node:
        """Add a call of a function, which can raise these ``errors``, or any if it is not known."""
        return self.create_node("call_function", target, args, kwargs or {}, is_result=is_result, errors=errors)

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        errors: Errors | None = None,
        is_result: bool = False,
        form: OperatorForm | None = None,
        name: str | None = None,
    ) -> Node:
        """Add a node; one that is the result of what the user called just now bears the name of the user's variable.

        ``errors`` are those that the call may raise, any if it is None.
        """
        if not self.open:
            raise CaptureError("a value of a capture that has ended was used in another one")
        frame, outside, strangers = user_frames(sys._getframe(1)) if self.running else _NOWHERE
        if form is not None:
            written = as_written(form, outside, args)
            if written is not None:
                op, (target, args) = "call_function", written
        source = None if frame is None else source_of_frame(frame)
        if is_result and frame is not None and source is not None:
            variable = variable_for(frame, source, strangers, target)
            name = (self.variable_in_the_end(frame) if variable == RETURNED else variable) or name
        is_call = op in ("call_function", "call_method") and not (type(target) is FunctionType and target in _CHECKS)
        if errors is None and is_call and _is_of_framework(op, target):
            errors = FRAMEWORK
        never_fails = errors is NEVER or _is_fact(target, args)
        is_own = id(frame) != self.code.caller
        graph = self.bodies.take_graph()
        may_fail, gate = is_own and (is_call or op == "call_module"), self.module_stack.gate
        if may_fail and is_tried(frame, self.code.executed, errors, gate) and not never_fails:
            op, target, args = self._attempted(op, target, args, frame, errors)
        if self.bodies.is_used:
            args, kwargs = self.bodies.localized((args, kwargs), graph)
        node = graph.create_node(op, target, args, kwargs, name)
        set_source(node, source)
        if self.module_stack.open or node.op == "call_module":
            self.module_stack.note_on(node)
        return node

    def create_in(
        self,
        graph: Graph,
        op: str,
        target: Any,
        args: tuple[Any, ...] = (),
        errors: Errors | None = None,
        is_result: bool = False,
        name: str | None = None,
    ) -> Node:
        """Add a node to this graph, one of those that nodes can be added to."""
        self.bodies.chosen = graph
        try:
            return self.create_node(op, target, args, {}, errors=errors, is_result=is_result, name=name)
        finally:
            self.bodies.chosen = None

    def variable_in_the_end(self, frame: FrameType | None) -> str | None:
        """The variable that gets what a function, and perhaps those that have called it, only return."""
        name, caller = RETURNED, user_frames(frame and frame.f_back)[0]
        while name == RETURNED and caller is not None and id(caller) != self.code.caller:
            code, offset = caller.f_code, caller.f_lasti
            name = stored_in(code, offset) or returned_by(code, offset)
            caller = user_frames(caller.f_back)[0]
        return None if name == RETURNED else name or None

    def create_at(
        self,
        site: Site,
        frame: FrameType,
        op: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        errors: Errors,
    ) -> Node:
        """Add a call that the user's program makes at a known place, whose frame this is; there are no bodies yet."""
        if id(frame) != self.code.caller and is_tried(frame, self.code.executed, errors, self.module_stack.gate):
            op, target, args = self._attempted(op, target, args, frame, errors)
        name = self.variable_in_the_end(frame) if site.variable == RETURNED else site.variable
        node = self.bodies.outermost.create_node(op, target, args, kwargs, name)
        set_source(node, site.source)
        if self.module_stack.open or node.op == "call_module":
            self.module_stack.note_on(node)
        return node

    def _attempted(
        self, op: str, target: Any, args: tuple[Any, ...], frame: FrameType | None, errors: Errors | None
    ) -> tuple[str, Any, tuple[Any, ...]]:
        """A call under an ``except``: the path of its handler is recorded too, or guarded against."""
        if op == "call_module":
            return "call_function", attempt, (self.create_node("get_attr", target, (), {}), *args)
        if self._is_implemented(target, frame, errors):
            return op, target, args
        is_function = op == "call_function"
        is_followed = self.error_notes.follows and self.paths is not None and self.paths.count < _MOST_BEFORE
        kind = class_caught(frame, errors) if is_followed and not may_see_error(frame) else None
        if kind is None or not self.may_raise(target, kind):
            return "call_function", attempt if is_function else attempt_method, (target, *args)
        return "call_function", outcome_of if is_function else outcome_of_method, (kind, target, *args)

    def _is_implemented(self, target: Any, frame: FrameType | None, errors: Errors | None) -> bool:
        """Whether all that the program catches here is that there is no such function for these arrays, and the graph
        has attempted the same before: what that was given tells. Other errors pass, as they do in the program."""
        if not catches_only(NotImplementedError, frame, errors):
            return False
        attempts = (node for node in reversed(self.bodies.outermost.nodes) if node.target in (attempt, attempt_method))
        return any(node.args[0] == target for node in attempts)

    def may_raise(self, target: Any, kind: type[Exception]) -> bool:
        """Whether a path on which a function, or the method of a name, raises an error of this class is worth a try."""
        return True

    def ask_for_failure(self, node: Node) -> None:
        """A call that may fail under an ``except`` was recorded: on one path it has, and the program catches that."""
        self.error_notes.follows = False
        if node.target is not outcome_of and node.target is not outcome_of_method:
            return
        failed = self.create_node("call_function", has_failed, (node,), {}, errors=NEVER)
        set_type(failed, _BOOL)
        if self.truth(failed, False, is_data=True, is_fixed=True):
            raise assumed_error(node.args[0])  # type: ignore[arg-type]

    def note_place(self, node: Node, site: Site) -> None:
        """Note on a node where the program stands."""
        set_source(node, site.source)
        if self.module_stack.open or node.op == "call_module":
            self.module_stack.note_on(node)

    def argument(self, value: Any) -> Any:
        """What a node holds for a value: nodes for arrays and traced numbers, all else as it is."""
        kind = type(value)
        if kind in PLAIN:
            return value
        if kind in self.array_kinds:
            entry = self.nodes.get(id(value))
            if entry is not None and type(entry[1]) is Node and entry[0]() is value:
                return entry[1]
            return self.node_of(value)
        if kind is tuple:
            return tuple([self.argument(item) for item in value])
        if issubclass(kind, Scalar):
            # A number of an earlier capture, kept in some cache, is a plain one by now.
            is_own = value.recorder is self or value.recorder.owner is self
            return self.resolve(value.place) if is_own else value.plain
        if self.is_array(value):
            return self.node_of(value)
        if issubclass(kind, TupleProxy):
            return self.resolve(value.place) if value.is_whole else self.argument(value.plain)
        if isinstance(value, tuple):
            items = [self.argument(item) for item in value]
            return tuple(items) if not hasattr(value, "_fields") else rebuilt_tuple(value, items)
        if isinstance(value, list):
            if isinstance(value, ListProxy) and value.is_whole:
                return self.resolve(value.place)
            whole = value.argument() if type(value) is StateListProxy else None
            return [self.argument(item) for item in value] if whole is None else whole
        if isinstance(value, dict):
            return {key: self.argument(item) for key, item in value.items()}
        if isinstance(value, slice):
            return slice(self.argument(value.start), self.argument(value.stop), self.argument(value.step))
        known = self.objects.get(id(value))  # an object that came in is given on as such, whichever it is
        return value if known is None or known[0] is not value else self.resolve(known[1])

    def concrete(self, value: Any) -> Any:
        """The value with plain numbers in the place of traced ones."""
        kind = type(value)
        if kind in PLAIN or kind in self.array_kinds:
            return value
        if kind is tuple:
            for item in value:
                if type(item) not in PLAIN and type(item) not in self.array_kinds:
                    return tuple([self.concrete(item) for item in value])
            return value
        if issubclass(kind, Scalar):
            return value.plain
        if issubclass(kind, TupleProxy):
            return self.concrete(value.plain)
        if isinstance(value, tuple):
            return self.concrete_tuple(value)
        if issubclass(kind, list) and kind.__module__ in _OWN_LISTS:
            return [self.concrete(item) for item in list.__iter__(value)]
        if kind is dict:
            return {key: self.concrete(item) for key, item in value.items()}
        if kind is slice:
            return slice(self.concrete(value.start), self.concrete(value.stop), self.concrete(value.step))
        return value

    def concrete_tuple(self, value: Any) -> Any:
        """A tuple with plain numbers; frameworks override it for their own kinds."""
        return rebuilt_tuple(value, [self.concrete(item) for item in value])

    def alike_items(self, items: list[Any], place: Any) -> Node | None:
        """A node that tells whether all items of a list are arrays like these; None where they are not alike."""
        return None

    def original(self, value: Any) -> Any:
        """The array that the program itself has where the capture put an object of its own."""
        known = self.aliases.get(id(value))
        return value if known is None else known[1]

    def note_type(self, node: Node, array: Any) -> None:
        """Note the type that an array had in the example on its node."""

    def result(self, value: Any, place: Node | Pending) -> Any:
        """A value of the example as the program shall see it: what it holds belongs to nodes from now on."""
        raise NotImplementedError

    def is_array(self, value: Any) -> bool:
        """True for an array of the framework."""
        raise NotImplementedError

    def is_end(self, value: Any) -> bool:
        """True for values whose inside is never looked at: arrays, modules of the framework."""
        return self.is_array(value)

    def note_failure(self, error: Exception, call: Any = None, args: tuple[Any, ...] = (), kwargs: Any = None) -> None:
        """A call has failed: that is the program's own error. One that catches it is captured if the ``call``, which
        does nothing but compute, can be made again on these arguments of nodes; else it cannot be."""
        frame = user_frame(1)
        self.error_notes.failed.append(error)
        if (
            call is not None
            and self.open
            and is_tried(frame, self.code.executed, (type(error),), self.module_stack.gate)
        ):
            with_text = may_see_error(frame)
            node = self.create_node("call_function", failure_of, (call, with_text, *args), kwargs or {}, errors=NEVER)
            self.guard(node, described(error, with_text))
        elif self.error_notes.failure is None and self.open:
            source = user_source()
            self.error_notes.failure = (type(error).__name__, "" if source is None else source.describe())

    # ---- guards --------------------------------------------------------------------------------------------------

    def guard(self, place: Node | Pending, answer: Any, why: str = "") -> None:
        """Note that the program relied on the value of a node being ``answer``; once for each node and answer.

        ``why`` it could not be captured instead; else what is known of the loop or branch in this line is said.
        """
        node = self.resolve(place)
        key = (node, (type(answer), answer))
        if key in self.guarded or not self.open:
            return
        self.guarded.add(key)
        source = user_source() if self.running else None
        expression = describe(node, answer)
        where = "" if source is None else source.describe()
        why = why or ("" if source is None else self.hooks.reason_at(source.filename, source.lineno))
        args = (node, answer, expression, where, *((why,) if why else ()))
        self.create_in(self.bodies.home_of_guard(node.graph), "call_function", require, args)

    def is_of_modes(self, place: Node | Pending) -> bool:
        """Whether a value depends on modes, of training say, and on nothing else."""
        return False

    def is_of_tracers(self, place: Node | Pending) -> bool:
        """Whether a value is what a library has asked of the tools that may trace the program."""
        return False

    def truth(self, place: Node | Pending, answer: bool, is_data: bool, is_fixed: bool = False) -> bool:
        """The program asks whether a value is true: the path that the run takes, recorded or guarded.

        A value that ``is_fixed`` has one answer, however often it is asked; ``is_data`` if it comes out of arrays.
        """
        if is_data and self.options.refuses_questions:
            source = user_source()
            raise CaptureError(
                "the program asks for the truth of its data",
                where="" if source is None else source.describe(),
                why='control_flow="error" allows no branch on data',
                fixes=('capture the branch: control_flow="capture"', 'rely on the way it goes: control_flow="guard"'),
            )
        if self.paths is not None and is_data and self.open and not self.bodies.is_in_function:
            frame = user_frame(2)
            if not is_fixed and id(frame) != self.code.caller and is_tried(frame, self.code.executed):  # that fails too
                place = self.create(bool, (self.resolve(place),))
            kind = self.is_of_modes(place), self.is_of_tracers(place)
            chosen = self.paths.ask(self.resolve(place), answer, is_fixed, *kind)
            if chosen is not None:
                return bool(chosen)
        node = self.resolve(place)
        why = self.paths.declined if self.paths is not None and is_data else ""
        if not is_fixed or node.value_type != _BOOL:
            node = self.create(bool, (node,), errors=ARITHMETIC if is_fixed else None)
        self.guard(node, answer, why)
        return answer
