"""Whether nothing may ask what tensors hold: while calls are recorded as a CUDA graph, and while tensors are fake.

Both questions can be asked of any torch. One that was built without CUDA, or that finds no GPU, raises an error when it
is asked for streams; no stream is recorded before CUDA has started.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import _symbolic_trace

from clew.capture.control_flow.paths import Provenance
from clew.capture.control_flow.runtime import current as current_regions
from clew.capture.patches import Patches
from clew.capture.recording.run import Findings, LibraryTracers
from clew.ir.effects import pure
from clew.ir.node import Node
from clew.ir.source import is_hidden, is_installed, user_frame

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

_FAKE = torch._C._TorchDispatchModeKey.FAKE


def is_capturing_stream() -> bool:
    """Whether the calls on the current stream become a CUDA graph."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


@pure
def cannot_read_tensors() -> bool:
    """Whether a CUDA graph is being recorded, or tensors are fake."""
    has_modes = bool(torch._C._len_torch_dispatch_stack())
    return is_capturing_stream() or (has_modes and torch._C._get_dispatch_mode(_FAKE) is not None)


cannot_read_tensors._dynamo_marked_constant = True  # type: ignore[attr-defined]  # the compiler asks while it reads


TRACERS: tuple[Any, ...] = (
    torch.compiler.is_exporting,
    torch.compiler.is_dynamo_compiling,
    torch.compiler.is_compiling,
    torch.jit.is_tracing,
    torch.cuda.is_current_stream_capturing,
    _symbolic_trace.is_fx_tracing,
)
"""Functions of torch that tell whether the program is being traced by another tool."""
_IMPLIED: dict[Any, tuple[Any, ...]] = {
    torch.compiler.is_exporting: (torch.compiler.is_compiling,),
    torch.compiler.is_dynamo_compiling: (torch.compiler.is_compiling,),
    torch.compiler.is_compiling: (torch.compiler.is_dynamo_compiling,),
}
_ASKED_BY: dict[Any, Any] = {torch.cuda.is_current_stream_capturing: cannot_read_tensors}
"""What a graph calls instead: a library that asks for streams wants to know whether it may ask for data."""
COMPILING = "_ready_compiling"
"""What bound code calls the function that tells whether torch's compiler reads it."""
_OTHER_NAMES = frozenset({"is_compiling", "is_dynamo_compiling"})
"""Functions of torch that do nothing but ask one of these."""


_QUESTIONS = frozenset({*TRACERS, *_ASKED_BY.values()})


def is_tracer(node: Node) -> bool:
    """Whether a node asks if a tool traces the program."""
    return node.op == "call_function" and type(node.target) is FunctionType and node.target in _QUESTIONS


_FLAGS = ("_is_exporting_flag", "_is_compiling_flag")
"""What ``torch.export`` sets while it works; not every version of torch has both."""


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """In this block libraries that ask whether a program is being exported are told that it is, as by ``torch.export``.

    What is captured in here has the way that libraries keep for exporters, which asks for no data: masks of attention
    are used whatever they hold. It does the same as the plain way, but for the kernels that compute it.
    """
    flags = [name for name in _FLAGS if hasattr(torch.compiler, name)]
    before = [getattr(torch.compiler, name) for name in flags]
    try:
        for name in flags:
            setattr(torch.compiler, name, True)
        yield
    finally:
        for name, value in zip(flags, before, strict=True):
            setattr(torch.compiler, name, value)


def install(patches: Patches, current: Callable[[], Any]) -> None:
    """Let the program find traced bools where it asks whether it is traced."""
    for function in TRACERS:
        patches.in_body(function, functools.partial(_asking, current, function))


def _asking(current: Callable[[], Any], function: FunctionType, original: Callable[[], bool]) -> Callable[[], Any]:
    """A question whether the program is being traced, which a graph asks again at each call; the call of a captured
    program, and torch itself, get the answer of now."""

    def ask() -> Any:
        recorder, frame = current(), sys._getframe(2)  # the first frame is that of the function itself
        asks = frame.f_code
        if is_hidden(asks) and asks.co_name in _OTHER_NAMES and frame.f_back is not None:
            asks = frame.f_back.f_code
        if recorder is None or not recorder.running or COMPILING in asks.co_names or is_hidden(asks):
            return original()
        if _is_of_library(asks):
            return recorder.tracers.asked_by_library(function, original)
        return recorder.result(original(), recorder.asked_tracer(function))

    return ask


def _is_of_library(code: CodeType) -> bool:
    return is_installed(code)


class Tracers:
    """What libraries ask of tracers in one run of a program.

    A run in which they are followed begins with the question what is at work; all that libraries ask is answered by
    that.
    """

    def __init__(self, recorder: TorchRecorder, findings: Findings) -> None:
        self._recorder = recorder
        self._findings = findings
        self._asked: set[FunctionType] = set()
        self._at_work: tuple[FunctionType, ...] = ()
        self.nodes: set[Node] = set()
        """The nodes that ask in the place of a library."""

    def asked_by_library(self, function: FunctionType, original: Callable[[], bool]) -> bool:
        """The answer to what a library asks; what is at work during the capture itself is no path of its own."""
        if function in self._at_work:
            return True
        self._asked.add(function)
        answer = original()  # which raises an error if there are no streams
        if answer:
            self._asked.discard(function)
        return answer

    def begin(self) -> None:
        """Find out what is at work in this run: a question for each tracer of which libraries have asked before."""
        follows = self._findings.tracers is LibraryTracers.FOLLOWED and self._recorder.paths is not None
        for function in [one for one in TRACERS if follows and one in self._findings.asked_tracers]:
            node = self._recorder.asked_tracer(_ASKED_BY.get(function, function))
            self.nodes.add(node)
            if self._recorder.truth(node, False, is_data=True, is_fixed=True):
                self._at_work = (function, *_IMPLIED.get(function, ()))
                return

    def before_question(self, place: Any) -> None:
        """A library asks for data, not for what follows from sizes alone: if tracers were asked for that are not
        followed, the capture starts over."""
        findings = self._findings
        if findings.tracers is LibraryTracers.LEFT or self._asked <= findings.asked_tracers:
            return
        paths = self._recorder.paths
        if paths is None or not Provenance(paths.bodies, paths.root).depends_on_data(self._recorder.resolve(place)):
            return
        frame, regions = user_frame(2), current_regions.get()
        if regions is not None and frame is not None and _is_of_library(frame.f_code):
            findings.tracers = LibraryTracers.FOLLOWED
            findings.asked_tracers |= self._asked
            regions.start_over()
