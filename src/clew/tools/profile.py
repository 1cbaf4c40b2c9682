"""``profile``: where the time, the arithmetic and the memory of a captured program go, by node and by module.

A captured program and the arguments of one call come in; the call is made, node by node, and a ``Profile`` comes out.
Branches and loops count as they were run. On arrays without data (torch's meta device) nothing is computed, and there
are no times; weights need not be there: those of the program count as if they had none either. What no formula is known
for is told as unknown and never counted as nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clew import tree
from clew.errors import ClewError
from clew.ir.arguments import all_nodes, bodies_of
from clew.ir.control_flow import is_control
from clew.ir.effects import effect_of, resolve
from clew.ir.format import format_target
from clew.ir.guests import Effect, Guest, guest, guest_of
from clew.ir.node import Node
from clew.tools.cost_formulas import Call, Cost, arrays_in, count, is_array
from clew.tools.costs import TABLE, cost_of, operation_name, operation_of
from clew.tools.tables import Row, amount, duration, table
from clew.tools.watching import Watching, line_of, memory_in, module_of

_STEPS = ("call_function", "call_method", "call_module")


@dataclass
class NodeProfile:
    """What one node took, over all its calls."""

    node: Node
    operation: str
    module: str
    line: str
    calls: int = 0
    seconds: float | None = None
    macs: int = 0
    others: int = 0
    bytes: int = 0
    allocated: int = 0
    """How many bytes of new memory its values took at most."""
    unknown: set[str] = field(default_factory=set)
    """Operations in it for which there is no formula; ``flops`` leaves them out."""

    @property
    def flops(self) -> int:
        """Arithmetic operations, as far as they are known; a multiply-add counts as two."""
        return 2 * self.macs + self.others

    def add(self, step: Step) -> None:
        """Count a call in."""
        self.calls += 1
        self.macs += step.cost.macs
        self.others += step.cost.others
        self.bytes += step.traffic
        self.unknown |= step.unknown

    def to_dict(self) -> Row:
        """The same as plain data; an unknown number is None."""
        known = not self.unknown
        return {
            "node": self.node.name,
            "operation": self.operation,
            "module": self.module,
            "calls": self.calls,
            "seconds": self.seconds,
            "flops": self.flops if known else None,
            "macs": self.macs if known else None,
            "bytes": self.bytes,
            "allocated": self.allocated,
            "line": self.line,
        }


@dataclass
class ModuleProfile:
    """What the nodes inside of a module took, those of its parts included."""

    path: str
    kind: str
    parameters: int
    seconds: float | None = None
    macs: int = 0
    others: int = 0
    bytes: int = 0
    unknown: set[str] = field(default_factory=set)

    @property
    def flops(self) -> int:
        """Arithmetic operations, as far as they are known; a multiply-add counts as two."""
        return 2 * self.macs + self.others

    @property
    def intensity(self) -> float | None:
        """Arithmetic operations for each byte read or written; None where nothing is."""
        return self.flops / self.bytes if self.bytes else None

    def add(self, row: NodeProfile) -> None:
        """Count a node in."""
        if row.seconds is not None:
            self.seconds = (self.seconds or 0.0) + row.seconds
        self.macs += row.macs
        self.others += row.others
        self.bytes += row.bytes
        self.unknown |= row.unknown

    def to_dict(self) -> Row:
        """The same as plain data."""
        return {
            "module": self.path,
            "class": self.kind,
            "parameters": self.parameters,
            "seconds": self.seconds,
            "flops": self.flops,
            "macs": self.macs,
            "bytes": self.bytes,
            "intensity": self.intensity,
            "unknown": sorted(self.unknown),
        }


@dataclass(frozen=True)
class Held:
    """A value that was alive at the peak."""

    node: str
    bytes: int
    line: str


@dataclass
class Profile:
    """What one call of a captured program took. Prints as tables; ``to_dict`` is plain data."""

    name: str
    nodes: list[NodeProfile]
    modules: list[ModuleProfile]
    peak_bytes: int
    """The most memory that weights, arguments and values took at one time."""
    peak_node: str
    peak_values: list[Held]
    """The values, arguments included, that were alive then, largest first."""
    weight_bytes: int
    parameters: int
    events: list[tuple[NodeProfile, float, float, int]] = field(repr=False)
    """Each call of a node: when it began and ended, and the memory in use after it."""

    @property
    def macs(self) -> int:
        """Multiply-adds of products, convolutions and attention."""
        return sum(row.macs for row in self.nodes)

    @property
    def flops(self) -> int:
        """Arithmetic operations, as far as they are known; a multiply-add counts as two."""
        return sum(row.flops for row in self.nodes)

    @property
    def bytes(self) -> int:
        """Bytes that are read and written."""
        return sum(row.bytes for row in self.nodes)

    @property
    def seconds(self) -> float | None:
        """The time of all nodes; None where nothing was computed."""
        times = [row.seconds for row in self.nodes if row.seconds is not None]
        return sum(times) if times else None

    @property
    def intensity(self) -> float | None:
        """Arithmetic operations for each byte read or written."""
        return self.flops / self.bytes if self.bytes else None

    @property
    def unknown(self) -> list[str]:
        """Operations that no formula is known for: they are missing in the sums."""
        return sorted({name for row in self.nodes for name in row.unknown})

    def by_module(self, depth: int | None = None) -> list[ModuleProfile]:
        """The modules, in the order in which they ran; parts count for those around them. ``depth`` limits the paths:
        1 is the program and its direct parts."""
        return [one for one in self.modules if depth is None or not one.path or one.path.count(".") < depth]

    def table(self, by: str = "", limit: int | None = None) -> str:
        """One line for each node that took something, in the order of the program, or largest first by a column:
        ``seconds``, ``flops``, ``macs``, ``bytes`` or ``allocated``."""
        rows = [row for row in self.nodes if row.flops or row.bytes or row.unknown or row.seconds]
        if by:
            rows.sort(key=lambda row: getattr(row, by) or 0, reverse=True)
        return table([_node_row(row) for row in rows[:limit]], _NUMBERS)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, for ``json``."""
        totals = "flops macs bytes seconds intensity peak_bytes peak_node weight_bytes unknown".split()
        return {
            "name": self.name,
            **{total: getattr(self, total) for total in totals},
            "parameters": self.parameters,
            "peak_values": [vars(value) for value in self.peak_values],
            "modules": [one.to_dict() for one in self.modules],
            "nodes": [row.to_dict() for row in self.nodes],
        }

    def chrome_trace(self, path: str | Path | None = None) -> dict[str, Any]:
        """What chrome://tracing and Perfetto show: nodes, the modules around them, and the memory in use."""
        if self.seconds is None:
            raise ClewError(
                "there is no trace of a profile without times",
                why="the arguments held no data, so nothing was computed",
                fixes=["profile a call with real arguments"],
            )
        trace = {"traceEvents": list(_trace_events(self.events)), "displayTimeUnit": "ms"}
        if path is not None:
            Path(path).write_text(json.dumps(trace))
        return trace

    def __str__(self) -> str:
        at_least = "at least " if self.unknown else ""
        lines = [
            f"{self.name}: {at_least}{amount(self.flops, 'FLOPs')} ({amount(self.macs, 'MACs')}), "
            f"{amount(self.bytes, 'B')} read and written, {amount(self.parameters)} parameters"
            + (f", {duration(self.seconds)}" if self.seconds is not None else ""),
            f"peak memory {amount(self.peak_bytes, 'B')} at {self.peak_node}, "
            f"{amount(self.weight_bytes, 'B')} of it weights",
        ]
        if self.unknown:
            lines.append(f"no formula is known for {', '.join(self.unknown)}")
        return "\n".join([*lines, "", table([_module_row(one) for one in self.modules], _NUMBERS)])


_NUMBERS = ("calls", "parameters", "time", "FLOPs", "MACs", "bytes", "FLOPs/B")


def _node_row(row: NodeProfile) -> Row:
    unknown = bool(row.unknown)
    return {
        "node": row.node.name,
        "operation": row.operation,
        "module": row.module,
        "calls": row.calls,
        "time": duration(row.seconds),
        "FLOPs": amount(None if unknown else row.flops),
        "MACs": amount(None if unknown else row.macs),
        "bytes": amount(row.bytes, "B"),
        "FLOPs/B": "" if unknown or not row.bytes else f"{row.flops / row.bytes:.3g}",
        "line": row.line,
    }


def _module_row(one: ModuleProfile) -> Row:
    at_least = ">= " if one.unknown else ""
    return {
        "module": one.path or "(all)",
        "class": one.kind,
        "parameters": amount(one.parameters),
        "time": duration(one.seconds),
        "FLOPs": at_least + amount(one.flops),
        "MACs": at_least + amount(one.macs),
        "bytes": amount(one.bytes, "B"),
        "FLOPs/B": "" if one.intensity is None else f"{one.intensity:.3g}",
    }


def _trace_events(events: list[tuple[NodeProfile, float, float, int]]) -> Iterable[Row]:
    start = events[0][1]
    open_modules: list[tuple[str, float]] = []
    end = start
    for row, begun, ended, memory in events:
        stack = [f"{path or '(all)'}" for path, _ in (row.node.meta.get("nn_module_stack") or {}).values()]
        while open_modules and [name for name, _ in open_modules] != stack[: len(open_modules)]:
            name, opened = open_modules.pop()
            yield _span(name, "module", opened - start, end - start, {})
        open_modules += [(name, begun) for name in stack[len(open_modules) :]]
        yield _span(row.node.name, row.operation, begun - start, ended - start, {"line": row.line, "flops": row.flops})
        yield {"name": "memory", "ph": "C", "pid": 0, "ts": (ended - start) * 1e6, "args": {"bytes": memory}}
        end = ended
    for name, opened in reversed(open_modules):
        yield _span(name, "module", opened - start, end - start, {})


def _span(name: str, kind: str, begun: float, ended: float, facts: Row) -> Row:
    times = {"ts": begun * 1e6, "dur": (ended - begun) * 1e6}
    return {"name": name, "cat": kind, "ph": "X", "pid": 0, "tid": 0, **times, "args": facts}


# ---- memory in use ---------------------------------------------------------------------------------------------------


class Memory:
    """Which memory is in use: each is held by the values that lie in it, and free when the last of them is gone."""

    def __init__(self, weights: dict[Any, int]) -> None:
        self.weights = weights
        self.sizes: dict[Any, int] = {}
        self.holders: dict[Any, int] = {}
        self.makers: dict[Any, Node] = {}
        self.in_use = self.peak = sum(weights.values())
        self.peak_node: Node | None = None
        self.peak_values: list[Held] = []

    def hold(self, node: Node, memories: dict[Any, int]) -> int:
        """A value lies in these; how many bytes of them are new."""
        new = 0
        for key, size in memories.items():
            if key in self.weights:
                continue
            self.holders[key] = self.holders.get(key, 0) + 1
            new += size - self.sizes.get(key, 0)
            self.sizes[key] = size
            self.makers.setdefault(key, node)
        self.in_use += new
        if self.in_use > self.peak or self.peak_node is None:
            self.peak, self.peak_node = self.in_use, node
            held = [Held(self.makers[key].name, size, line_of(self.makers[key])) for key, size in self.sizes.items()]
            self.peak_values = sorted(held, key=lambda one: -one.bytes)
        return new

    def release(self, memories: Iterable[Any]) -> None:
        """A value that lies in these is gone."""
        for key in memories:
            if key in self.weights:
                continue
            self.holders[key] -= 1
            if not self.holders[key]:
                self.in_use -= self.sizes.pop(key)
                del self.holders[key], self.makers[key]


# ---- one call --------------------------------------------------------------------------------------------------------

GATHERS = frozenset("getitem gather index index_select take take_along_dim take_along_axis embedding gather_nd".split())
"""What reads of its first argument as many elements as it gives back."""
SCATTERS = frozenset("scatter scatter_add scatter_reduce index_add index_copy index_put index_fill".split())
"""What writes as many elements into its first argument as it is given."""
ONLY_WRITES = frozenset("copy fill zero normal uniform bernoulli exponential random fill_diagonal".split())
"""What does not read its first argument when it writes into it."""
_SIZED = frozenset("matmul mm bmm addmm baddbmm grouped_mm linear scaled_dot_product_attention".split())
"""What gives sizes that the sizes of its arguments decide, so that zeros will do for these."""
READS = frozenset("item tolist bool float int complex equal allclose".split())
"""What gives a plain value that depends on elements."""


class Step:
    """One call of a node: what it takes, and which bytes it reads and writes."""

    def __init__(self, node: Node, args: tuple[Any, ...], kwargs: dict[str, Any], module: Any) -> None:
        self.node, self.args, self.kwargs, self.module = node, args, kwargs, module
        self.cost, self.unknown, self.traffic = Cost(), set[str](), 0
        self.arrays = [*arrays_in((args, kwargs)), *_arrays_of(module)]
        self.versions = [_guest(array).version_of(array) for array in self.arrays]
        self.framework = self._framework()
        self.name, self.settings = operation_of(node, module, self.framework)
        listener = self._listener()
        self.listens = listener is not None
        self.listener: AbstractContextManager[Any] = nullcontext() if listener is None else listener

    def _framework(self) -> str:
        guest = guest_of(self.node.target) if self.node.op == "call_function" else None
        guest = guest or next((_guest(array) for array in self.arrays), None)
        return "" if guest is None else guest.package

    def _is_known(self) -> bool:
        if self.module is not None:
            return self.name in TABLE
        return is_control(self.node) or self.name in TABLE or f"{self.framework}.{self.name}" in TABLE

    def _listener(self) -> AbstractContextManager[Any] | None:
        """What counts the operators inside of a call that the table does not have; None where nothing can."""
        if self._is_known() or bodies_of(self.node):
            return None
        found = next(iter(map(_guest, self.arrays)), None) or guest("torch")
        return None if found is None else found.operators_inside(self._inside)

    def _inside(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Count an operator that runs inside of the call."""
        known = operation_name(name)
        cost = cost_of(Call("torch", known, args, kwargs, result))
        if cost is not None:
            self.cost += cost
        elif memory_in(result).keys() - memory_in((args, kwargs)).keys():
            self.unknown.add(name)

    def wait_for(self, value: Any) -> None:
        """Return when all that the call started has been computed."""
        for array in (*arrays_in(value), *self.arrays[:1]):
            _guest(array).wait_for(array)

    def finish(self, value: Any) -> None:
        """Find what the call took, now that its result is there."""
        if is_control(self.node):
            return
        before, after = memory_in(self.arrays), list(arrays_in(value))
        new = [array for array in after if not memory_in(array).keys() <= before.keys()]
        written = self._written()
        if not new and not written:
            self.traffic = sum(map(_bytes, self.arrays)) if self.name in READS and not after else 0
            self.unknown = set() if after or not self.listens else self.unknown
            self.cost = self.cost if self.listens and not after else Cost()
            return
        self.traffic = self._traffic(new, written)
        if self.listens:
            return
        cost = cost_of(Call(self.framework, self.name, self.args, self.kwargs, value, self.settings))
        if self._is_known() and cost is not None:
            self.cost = cost
        else:
            self.unknown.add(self.name)

    def _written(self) -> list[Any]:
        """The arrays that the call has written to, one for each memory."""
        found: dict[Any, Any] = {}
        for array, version in zip(self.arrays, self.versions, strict=True):
            if version is not None and version != _guest(array).version_of(array):
                found.setdefault(next(iter(memory_in(array))), array)
        uncounted = [array for array, version in zip(self.arrays, self.versions, strict=True) if version is None]
        if uncounted and effect_of(self.node) is Effect.WRITE:
            target = self.kwargs.get("out", uncounted[0])
            found.setdefault(next(iter(memory_in(target)), None), target)
        return list(found.values())

    def _traffic(self, new: list[Any], written: list[Any]) -> int:
        name = self.name.rstrip("_")
        results = sum(map(_bytes, new))
        if name in GATHERS and new:
            places = self.arrays[:1] if name == "embedding" else self.arrays[1:]
            return 2 * results + sum(map(_bytes, places))
        if name == "setitem":
            return 2 * _bytes_at(self.args[0], self.args[1])
        if name in SCATTERS and written:
            return 2 * sum(map(_bytes, self.arrays[1:]))
        read = self.arrays[1:] if name in ONLY_WRITES and written else self.arrays
        return sum(map(_bytes, read)) + results + sum(map(_bytes, written))


def _guest(array: Any) -> Guest:
    found = guest_of(array)
    assert found is not None, "an array is one of a framework"
    return found


def _bytes(array: Any) -> int:
    """How many bytes the elements of an array take; those that lie in the same place count once."""
    return _guest(array).bytes_of(array)


def _bytes_at(array: Any, index: Any) -> int:
    """How many bytes the elements at an index take."""
    if not list(arrays_in(array)):
        return 0
    return count(array[index]) * _bytes(array) // max(1, count(array))


def _arrays_of(value: Any) -> list[Any]:
    """The arrays of a module, or those inside of a value."""
    if not hasattr(value, "parameters") or isinstance(value, type):
        return list(arrays_in(value))
    return [*value.parameters(), *getattr(value, "buffers", tuple)()]


def _has_data(array: Any) -> bool:
    return _guest(array).has_data(array)


def _zeros_for(value: Any) -> Any:
    return _guest(value).zeros_for(value) if is_array(value) else value


def _without_data(value: Any) -> Any:
    return _guest(value).without_data(value) if is_array(value) else value


# ---- the run ---------------------------------------------------------------------------------------------------------


@dataclass
class Ledger:
    """What is known so far of a run, by all interpreters of it."""

    memory: Memory
    timed: bool
    rows: dict[Node, NodeProfile] = field(default_factory=dict)
    events: list[tuple[NodeProfile, float, float, int]] = field(default_factory=list)
    inner_seconds: list[float] = field(default_factory=lambda: [0.0])
    """The time of nodes inside of the nodes that run now."""


class Profiler(Watching):
    """Runs a captured program once and measures each node."""

    def __init__(self, captured: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__(captured)
        self.program = self.graph
        self.held: dict[Node, dict[Any, int]] = {}
        self._empty: dict[str, Any] = {}
        used = {node.target for node in all_nodes(self.graph) if node.op in ("get_attr", "call_module")}
        weights = [array for path in used for array in _arrays_of(super(Profiler, self).fetch_attr(str(path)))]
        self.has_data = all(_has_data(array) for array in (*arrays_in((args, kwargs)), *weights[:1]))
        weights = [array for path in used for array in _arrays_of(self.fetch_attr(str(path)))]
        self.ledger = Ledger(Memory(memory_in(weights)), self.has_data)

    def fetch_attr(self, target: str) -> Any:
        """An attribute of the module; without its data where the arguments have none."""
        found = super().fetch_attr(target)
        if self.has_data or not (list(arrays_in(found)) or hasattr(found, "parameters")):
            return found
        guest = guest_of(found) or next(iter(map(guest_of, _arrays_of(found))), None)
        if guest is not None and target not in self._empty:
            self._empty[target] = guest.without_data(found)
        return self._empty.get(target, found)

    def _run_all(self) -> Any:
        self.held = {}
        try:
            return super()._run_all()
        finally:
            for memories in self.held.values():
                self.ledger.memory.release(memories)

    def called(self, node: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a node, and note its time, its arithmetic and its traffic."""
        if node.op not in _STEPS:
            return super().called(node, args, kwargs)
        module = self.fetch_attr(str(node.target)) if node.op == "call_module" else None
        step = Step(node, args, kwargs, module)
        ledger, row = self.ledger, self._row(node)
        ledger.inner_seconds.append(0.0)
        begun = time.perf_counter()
        with step.listener:
            value = self._value_of(step)
        if ledger.timed:
            step.wait_for(value)
        ended = time.perf_counter()
        inside = ledger.inner_seconds.pop()
        ledger.inner_seconds[-1] += ended - begun
        if ledger.timed:
            row.seconds = (row.seconds or 0.0) + (0.0 if is_control(node) else ended - begun - inside)
        step.finish(value)
        row.add(step)
        ledger.events.append((row, begun, ended, 0))
        return value

    def _value_of(self, step: Step) -> Any:
        """The value of a node; of a product that refuses arrays without data, that of zeros, without its data."""
        try:
            return super().called(step.node, step.args, step.kwargs)
        except Exception as error:
            if self.has_data or step.name not in _SIZED or step.module is not None:
                raise
            refused = error
        try:
            value = super().called(step.node, *tree.tree_map(_zeros_for, (step.args, step.kwargs)))
        except Exception:
            raise refused from None
        return tree.tree_map(_without_data, value)

    def seen(self, node: Node, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        """The value of a node takes memory from now on, and the values that it used last take none any more."""
        memory = self.ledger.memory
        if node.op == "output":
            return
        memories = memory_in(value)
        new = memory.hold(node, memories)
        self.held[node] = memories
        if node.op in _STEPS:
            row = self._row(node)
            row.allocated = max(row.allocated, new)
            event = self.ledger.events[-1]
            if event[0] is row:
                self.ledger.events[-1] = (*event[:3], memory.in_use)
        for used in (*self.user_to_last_uses.get(node, ()), *(() if node.users else (node,))):
            if used in self.held and (self.graph is not self.program or used.op != "placeholder"):
                memory.release(self.held.pop(used))

    def _row(self, node: Node) -> NodeProfile:
        rows = self.ledger.rows
        if node not in rows:
            kind = module_of(node)[1] if node.op == "call_module" else format_target(node.target)
            rows[node] = NodeProfile(node, kind, module_of(node)[0], line_of(node))
        return rows[node]

    def report(self) -> Profile:
        """What the run took."""
        ledger, memory = self.ledger, self.ledger.memory
        root = getattr(self.module, "root", self.module)
        modules = [ModuleProfile("", type(root).__name__, _parameters(root))]
        by_path = {"": modules[0]}
        for row in ledger.rows.values():
            for path, kind in {"": None, **dict((row.node.meta.get("nn_module_stack") or {}).values())}.items():
                if path not in by_path:
                    name = getattr(kind, "__name__", str(kind).rpartition(".")[2])
                    by_path[path] = ModuleProfile(path, name, _parameters(resolve(root, path)))
                by_path[path].add(row)
        return Profile(
            name=getattr(self.module, "__name__", type(root).__name__),
            nodes=list(ledger.rows.values()),
            modules=list(by_path.values()),
            peak_bytes=memory.peak,
            peak_node="" if memory.peak_node is None else memory.peak_node.name,
            peak_values=memory.peak_values,
            weight_bytes=sum(memory.weights.values()),
            parameters=_parameters(root),
            events=ledger.events,
        )


def _parameters(module: Any) -> int:
    """How many parameters a module has; shared ones count once."""
    return sum(map(count, module.parameters())) if hasattr(module, "parameters") else 0


def profile(captured: Any, /, *args: Any, **kwargs: Any) -> Profile:
    """Call a captured program with these arguments and tell where time, arithmetic and memory go.

    With arguments that hold no data (``device="meta"``) nothing is computed and no time is measured.
    """
    profiler = Profiler(captured, args, kwargs)
    profiler.run(*args, **kwargs)
    return profiler.report()
