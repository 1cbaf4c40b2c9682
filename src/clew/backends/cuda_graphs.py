"""CUDA graphs: segments of torch programs that the GPU runs again without Python in between.

One graph is recorded for each kind of arguments, up to the number of variants that a segment may have; sizes are fixed.
What is given is copied into memory of the graph, results are copied out of it, so that they may be kept, and what the
segment writes into is copied back. Weights are used where they lie: when one has moved the graph is recorded anew. A
guard on a computed value is looked at behind all segments, where what follows it can be computed whatever it says.
Always holds: recording leaves values and random numbers as they were. Importing this file imports torch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from clew.backends.result_views import ResultViews, share
from clew.backends.torch_backend import TorchBackend
from clew.backends.torch_segment import Flat
from clew.errors import BackendError
from clew.ir.graph import Graph
from clew.ir.guards import can_wait, is_guard

Recorded = tuple[Callable[[], None], Sequence[torch.Tensor]]


class Recording:
    """What records work for the GPU; another class in its place lets the rest be tried without one."""

    kind = "cuda"

    def __init__(self) -> None:
        self._pool: Any = None
        self._lock = threading.RLock()
        self._last: Any = None

    def is_there(self) -> bool:
        """Whether there is a GPU."""
        return bool(torch.cuda.is_available())

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Work in here is done besides, and draws random numbers that nobody misses."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.random.fork_rng([torch.cuda.current_device()]), torch.cuda.stream(stream):
            yield
        torch.cuda.current_stream().wait_stream(stream)

    def is_recording(self) -> bool:
        """Whether a graph of somebody else's is being recorded, in which no other can be launched."""
        return bool(torch.cuda.is_current_stream_capturing())

    @contextmanager
    def in_order(self) -> Iterator[None]:
        """Work in here comes after the work of other calls, of other threads and streams too: memory is shared."""
        with self._lock:
            stream = torch.cuda.current_stream()
            if self._last is not None:
                stream.wait_event(self._last)
            yield
            self._last = stream.record_event()

    def record(self, run: Callable[[], Sequence[torch.Tensor]]) -> Recorded:
        """What does the work of ``run`` again, and the results, which it fills each time."""
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool), _without_kept_casts():
            results = run()
        return graph.replay, results


@contextmanager
def _without_kept_casts() -> Iterator[None]:
    """Casts that autocast makes in here are made anew outside: their memory is the graph's."""
    keeps = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(keeps)


class CudaGraphs(TorchBackend):
    """Work that is recorded once and launched as a whole."""

    name = "cudagraphs"
    takes_symbols = False
    needs_fakes = False

    def __init__(self, recording: Recording | None = None) -> None:
        self.recording = recording or Recording()

    def prepare(self, captured: Any) -> Any:
        if not self.recording.is_there():
            raise BackendError(
                'backend="cudagraphs" needs a GPU with CUDA, and torch finds none here',
                fixes=('backend="inductor" compiles for the CPU',),
            )
        return super().prepare(captured)

    def arrange(self, graph: Graph, root: Any) -> None:
        """Put the guards that can wait behind everything else, so that they tear no segment."""
        output = graph.output_node()
        for check in [node for node in graph.nodes if is_guard(node) and can_wait(node, root)]:
            truth = check.args[0]
            output.prepend(truth)  # type: ignore[arg-type]
            output.prepend(check)

    def compiled(self, flat: Flat, fakes: list[Any], mode: Any, example: list[Any]) -> Callable[..., Any]:
        self.check(flat, example)
        return _Launch(self.recording, flat, example)

    def check(self, flat: Flat, example: list[Any]) -> None:
        """Raise if a segment cannot be recorded with such arguments."""
        if torch.is_grad_enabled() and any(one.requires_grad for one in example):
            raise BackendError(
                "cudagraphs has no backward pass, and something here requires gradients",
                fixes=("call it under torch.no_grad()", 'backend="inductor" compiles the backward pass too'),
            )
        elsewhere = [str(one.device) for one in example if one.device.type != self.recording.kind]
        if elsewhere or not example:
            raise BackendError(
                f"a CUDA graph works on tensors of the GPU alone, and here is one on {elsewhere[0]}"
                if elsewhere
                else "a CUDA graph must be given a tensor",
                fixes=("move all of the program to the GPU", "give fallback=True: this piece then runs in Python"),
            )
        given = example[: flat.given]
        sharing = [one for place, one in enumerate(given) for other in example[:place] if share(one, other)]
        if flat.writes and sharing:
            raise BackendError("a segment writes into its arguments, and two of them lie in the same memory")


class _Launch:
    """One recorded graph."""

    def __init__(self, recording: Recording, flat: Flat, example: list[torch.Tensor]) -> None:
        self.recording, self.flat = recording, flat
        self.static = [_like(one) for one in example[: flat.given]]
        """Memory of the graph that takes copies of what is given."""
        self.moves = 0
        self.used: list[torch.Tensor] = []
        self.places: list[int] = []
        self._record(example)

    @property
    def copied(self) -> list[int]:
        """The places of what is copied: all that is given but what is written into, a cache say, which is used where it
        lies, as weights are, unless it lies elsewhere again and again."""
        in_place = self.flat.written if self.moves < _MOVES else ()
        return [place for place in range(self.flat.given) if place not in in_place]

    def _record(self, example: Sequence[torch.Tensor]) -> None:
        """Record the work on the tensors that are used where they lie as they lie now."""
        with self.recording.apart(), torch.no_grad():
            copies = [_like(one).copy_(one) if self._may_be_written(place, one) else one.detach()
                      for place, one in enumerate(example)]  # fmt: skip
            self.views = ResultViews(copies, self.flat.run(*copies))  # kernels are chosen and loaded by now
        self.used = [one.detach() for one in example]
        for place in self.copied:
            self.used[place] = self.static[place].copy_(self.used[place])
        self.places = [one.data_ptr() for one in self.used]
        for place in self.copied:
            self.places[place] = 0
        with torch.no_grad():
            self.launch, self.results = self.recording.record(lambda: self.flat.run(*self.used))

    def _may_be_written(self, place: int, tensor: torch.Tensor) -> bool:
        """Whether a run may write into one of the tensors that it is given or reads; into weights it does not."""
        is_weight = place >= self.flat.given and isinstance(tensor, torch.nn.Parameter)
        return self.flat.writes and (not is_weight or place in self.flat.written)

    def __call__(self, *given: torch.Tensor) -> Sequence[torch.Tensor]:
        if self.recording.is_recording():
            return self.flat.run(*given)
        with self.recording.in_order():
            return self._launched(given)

    def _launched(self, given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        places = [one.data_ptr() for one in given]
        copied = self.copied
        for place in copied:
            places[place] = 0
        if places != self.places:
            self.moves += places[: self.flat.given] != self.places[: self.flat.given]
            self._record(given)
            copied = self.copied
        with torch.no_grad():
            for place in copied:
                self.static[place].copy_(given[place])
            self.launch()
            if self.flat.writes:
                for place in copied:
                    given[place].copy_(self.static[place])
            return self.views.made(given, lambda place: _like(self.results[place]).copy_(self.results[place]))


_MOVES = 3
"""What is written into, and has moved so often, is copied from then on."""


def _like(tensor: torch.Tensor) -> torch.Tensor:
    """Memory for a tensor of these sizes and strides."""
    size, stride = tensor.shape, tensor.stride()
    return torch.empty_strided(size, stride, dtype=tensor.dtype, device=tensor.device)
