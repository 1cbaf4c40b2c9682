"""What a user does with a capture in a day, one function for each step.

In comes a ``Case``: a model, its capture, its inputs. A step returns when the capture did what the original does in the
same step; it raises ``Wrong`` where something else came out, ``NotForOriginal`` where the original cannot do the step
either, and lets any other error through: that is a refusal. A step may change everything: it runs in its own process.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import io
import logging
import pickle
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx.experimental import proxy_tensor

import clew
from benchmarks import day_elsewhere
from benchmarks.day_models import SUBJECTS, Arguments, Program, Shape, Subject
from benchmarks.equality import difference, tensors
from benchmarks.examination import first_line

EXAMPLE = Shape()
MASK = "attention_mask"
TOLERANCES = {torch.bfloat16: 3e-2, torch.float16: 5e-3, torch.float32: 1e-5, torch.float64: 1e-9}
LIBRARIES: tuple[str, ...] = (
    "scipy.stats",
    "scipy.signal",
    "einops",
    "sqlite3",
    "asyncio",
    "networkx",
    "torch.distributions",
)
LIBRARIES += ("torch.ao.quantization", "numpy.polynomial", "xml.dom.minidom", "json.tool")
THREADS = 16


class Wrong(Exception):
    """The capture gave something else than the original."""


class NotForOriginal(Exception):
    """The original cannot do the step, or the step is none for this kind of model."""


class WrongByTool(Exception):
    """A tool gave something else for the original as well."""


class Case:
    """A model with its capture, as they are when a step begins."""

    def __init__(self, subject: Subject, without: str = "") -> None:
        self.subject = subject
        self.program = subject.build()
        self.inputs = _left_out(subject.arguments(EXAMPLE), without)
        self.captured = captured_from(self.program, self.inputs)

    def original(self) -> Program:
        """A copy of the original that shares nothing with the capture."""
        if self.program.call is not self.program.module:
            return self.subject.build()
        made = copy.deepcopy(self.program.module)
        return Program(made, made)

    def capture(self, shape: Shape) -> Any:
        """Another capture, from another example."""
        return captured_from(self.original(), self.subject.arguments(shape))

    def without_mask(self) -> Case:
        """The same without a mask: to read one is what meta tensors and some tools cannot do."""
        return Case(self.subject, MASK) if MASK in self.inputs[1] else self

    def holder(self) -> nn.Module:
        """What a user moves, trains and evaluates: the capture, or the module that a function closes over."""
        return self.captured if isinstance(self.captured, nn.Module) else self.program.module

    def needs_module(self) -> None:
        """Steps for modules are no steps for functions."""
        if not isinstance(self.program.call, nn.Module):
            raise NotForOriginal("a function is no module")


def _left_out(inputs: Arguments, name: str) -> Arguments:
    return inputs[0], {key: value for key, value in inputs[1].items() if key != name}


def captured_from(program: Program, inputs: Arguments) -> Any:
    """The capture of a program from an example."""
    torch.manual_seed(3)
    args, kwargs = copy.deepcopy(inputs)
    return clew.trace(program.call, args=args, kwargs=kwargs)


# ---- comparing -------------------------------------------------------------------------------------------------------


def run(program: Callable[..., Any], inputs: Arguments) -> Any:
    """One call with its own copy of the inputs and a fixed seed."""
    args, kwargs = copy.deepcopy(inputs)
    torch.manual_seed(7)
    return program(*args, **kwargs)


def by_original(action: Callable[[], Any]) -> Any:
    """What the original does; where it raises, the step is none for it."""
    try:
        return action()
    except Exception as error:
        raise NotForOriginal(first_line(error)) from error


def same(expected: Any, actual: Any, near: bool = False) -> None:
    """Raise ``Wrong`` unless both are alike: bit for bit, or ``near`` within what their precision allows."""
    if any(tensor.device.type == "meta" for tensor in tensors(expected)):
        found = difference(_described(expected), _described(actual))
    else:
        found = difference(expected, actual)
    if found and not (near and "values differ" in found and _are_near(expected, actual)):
        raise Wrong(found)


def _described(value: Any) -> Any:
    return type(value).__name__, [(tuple(one.shape), one.dtype, one.device) for one in tensors(value)]


def _are_near(expected: Any, actual: Any) -> bool:
    pairs = zip(tensors(expected), tensors(actual), strict=True)
    return all(_near(one, other) for one, other in pairs)


def _near(expected: Tensor, actual: Tensor) -> bool:
    tolerance = TOLERANCES.get(expected.dtype, 0.0)
    return torch.allclose(expected, actual, rtol=tolerance, atol=tolerance, equal_nan=True)


def same_values(expected: Any, actual: Any) -> None:
    """Raise ``Wrong`` unless the tensors are alike; for tools that change containers."""
    same(tensors(expected), tensors(actual), near=True)


def same_call(
    original: Callable[..., Any], captured: Callable[..., Any], inputs: Arguments, near: bool = False
) -> None:
    """Call both and compare."""
    expected = by_original(lambda: run(original, inputs))
    same(expected, run(captured, inputs), near)


# ---- calls with other inputs -----------------------------------------------------------------------------------------


def again(case: Case) -> None:
    """The same input, often enough that any fast way of calling is taken."""
    expected = by_original(lambda: run(case.original().call, case.inputs))
    for _ in range(12):
        same(expected, run(case.captured, case.inputs))


def another(case: Case, **changes: Any) -> None:
    """Inputs of other values or sizes."""
    inputs = case.subject.arguments(Shape(seed=2)._replace(**changes))
    if changes and _shapes(inputs) == _shapes(case.inputs):
        raise NotForOriginal("the inputs have no such size")
    same_call(case.original().call, case.captured, inputs)


def _shapes(inputs: Arguments) -> list[Any]:
    return [tensor.shape for tensor in tensors(inputs)]


def from_batch_1(case: Case) -> None:
    """Captured with one row, called with three."""
    captured = case.capture(Shape(batch=1))
    same_call(case.original().call, captured, case.subject.arguments(Shape(batch=3)))


def under(case: Case, mode: Callable[[], contextlib.AbstractContextManager[Any]]) -> None:
    """Called in another mode of torch than it was captured in."""
    with mode():
        same_call(case.original().call, case.captured, case.inputs, near=True)


def masks(case: Case, before: bool, after: bool) -> None:
    """Captured with a mask with padding or without, called with the other."""
    _needs_mask(case)
    captured = case.capture(Shape(padded=before))
    same_call(case.original().call, captured, case.subject.arguments(Shape(padded=after, seed=2)))


def no_mask(case: Case) -> None:
    """Captured with a mask, called without: the original takes another way, so that a guard may say so."""
    _needs_mask(case)
    same_call(case.original().call, case.captured, _left_out(case.inputs, MASK))


def _needs_mask(case: Case) -> None:
    if MASK not in case.inputs[1]:
        raise NotForOriginal("it takes no mask")


# ---- the surroundings change -----------------------------------------------------------------------------------------


def another_model(case: Case) -> None:
    """Another model of the same library is built and called."""
    if case.subject.library:
        other = SUBJECTS["bert" if case.subject.name == "gpt2" else "gpt2"]
    else:
        other = SUBJECTS["lstm_tagger" if case.subject.name == "encoder" else "encoder"]
    run(other.build().call, other.arguments(EXAMPLE))
    same_call(case.original().call, case.captured, case.inputs)


def imports(case: Case) -> None:
    """Other libraries are imported."""
    for name in LIBRARIES:
        importlib.import_module(name)
    same_call(case.original().call, case.captured, case.inputs)


def log_levels(case: Case) -> None:
    """Levels of loggers, and the filters of warnings, are changed."""
    logging.getLogger().setLevel(logging.DEBUG)
    for name in ("torch", "transformers", case.program.module.__class__.__module__):
        logging.getLogger(name).setLevel(logging.INFO)
    if case.subject.library:
        importlib.import_module("transformers").logging.set_verbosity_info()
    logging.disable(logging.NOTSET)
    warnings.simplefilter("always")
    same_call(case.original().call, case.captured, case.inputs)


# ---- training --------------------------------------------------------------------------------------------------------


def _train(call: Callable[..., Any], module: nn.Module, inputs: Arguments, steps: int = 3) -> list[float]:
    """The losses of some steps of gradient descent."""
    module.train()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    losses = []
    torch.manual_seed(11)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = _loss(call(*inputs[0], **inputs[1]))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def _loss(output: Any) -> Tensor:
    own = getattr(output, "loss", None)
    if isinstance(own, Tensor):
        return own
    parts = [tensor.square().mean() for tensor in tensors(output) if tensor.requires_grad]
    return torch.stack(parts).sum()


def _same_training(case: Case, original: Program, captured: Callable[..., Any], holder: nn.Module) -> None:
    expected = by_original(lambda: _train(original.call, original.module, case.inputs))
    actual = _train(captured, holder, case.inputs)
    if expected != actual:
        raise Wrong(f"losses {expected} became {actual}")
    _same_state(original.module, holder)


def _same_state(original: nn.Module, holder: nn.Module) -> None:
    """Weights and buffers are alike; the capture need not have what no call of the original uses."""
    expected, actual = original.state_dict(), holder.state_dict()
    for name, parameter in original.named_parameters():
        if parameter.grad is not None and name not in actual:
            raise Wrong(f"the weight {name} is missing")
    common = [name for name in expected if name in actual]
    same({name: expected[name] for name in common}, {name: actual[name] for name in common})


def train(case: Case) -> None:
    """Captured in evaluation, trained for three steps: losses, weights and buffers."""
    _same_training(case, case.original(), case.captured, case.holder())


def train_eval(case: Case) -> None:
    """Trained for three steps, then evaluated."""
    original, holder = case.original(), case.holder()
    _same_training(case, original, case.captured, holder)
    original.module.eval()
    holder.eval()
    same_call(original.call, case.captured, case.inputs)


def train_again(case: Case) -> None:
    """Trained, evaluated, trained again."""
    original, holder = case.original(), case.holder()
    for _ in range(2):
        _same_training(case, original, case.captured, holder)
        original.module.eval()
        holder.eval()
        same_call(original.call, case.captured, case.inputs)


def train_first(case: Case) -> None:
    """Captured in training, then evaluated."""
    trial, program = case.original(), case.original()
    trial.module.train()
    by_original(lambda: run(trial.call, case.inputs))
    program.module.train()
    captured = captured_from(program, case.inputs)
    (captured if isinstance(captured, nn.Module) else program.module).eval()
    same_call(case.original().call, captured, case.inputs)


# ---- dtypes and devices ----------------------------------------------------------------------------------------------


def moved(case: Case, target: torch.dtype | str) -> None:
    """Weights and inputs are moved to another dtype or device."""
    if target == "cuda" and not torch.cuda.is_available():
        raise NotForOriginal("there is no GPU")
    case = case.without_mask() if target == "meta" else case
    original, holder = case.original(), case.holder()
    inputs = _moved(case.inputs, target)
    original.module.to(target)
    expected = by_original(lambda: run(original.call, inputs))
    holder.to(target)
    same(expected, run(case.captured, inputs), near=target in (torch.bfloat16, torch.half, "cuda"))


def _moved(inputs: Arguments, target: torch.dtype | str) -> Arguments:
    def one(value: Any) -> Any:
        if isinstance(value, Tensor) and (isinstance(target, str) or value.is_floating_point()):
            return value.to(target)
        return value

    return tuple(map(one, inputs[0])), {name: one(value) for name, value in inputs[1].items()}


# ---- saving ----------------------------------------------------------------------------------------------------------


def pickled(case: Case) -> None:
    """Pickled and loaded in the same process."""
    _needs_pickle(case)
    loaded = pickle.loads(pickle.dumps(case.captured))
    same_call(case.original().call, loaded, case.inputs)


def _needs_pickle(case: Case) -> None:
    by_original(lambda: pickle.dumps(case.program.call))


def saved(case: Case) -> None:
    """Saved and loaded in the same process by torch."""
    _needs_pickle(case)
    file = io.BytesIO()
    torch.save(case.captured, file)
    file.seek(0)
    same_call(case.original().call, torch.load(file, weights_only=False), case.inputs)


def copied(case: Case) -> None:
    """A deep copy."""
    same_call(case.original().call, copy.deepcopy(case.captured), case.inputs)


def elsewhere(case: Case, absent: tuple[str, ...] = ()) -> None:
    """Saved, and loaded in a fresh process that does not have the user's source."""
    _needs_pickle(case)
    expected = by_original(lambda: run(case.original().call, case.inputs))
    with tempfile.TemporaryDirectory() as folder:
        torch.save(case.captured, Path(folder) / "saved.pt")
        actual = _result_elsewhere("saved", Path(folder), case.inputs, absent)
    same_values(expected, actual) if absent else same(expected, actual)


def folder(case: Case) -> None:
    """Written as a Python package, and loaded in a fresh process."""
    if not hasattr(case.captured, "to_folder"):
        raise NotForOriginal("no module, so no folder")
    expected = by_original(lambda: run(case.original().call, case.inputs))
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings(action="ignore"):
        case.captured.to_folder(Path(scratch) / "package", "Captured")
        actual = _result_elsewhere("package", Path(scratch), case.inputs)
    same(expected, actual)


def _result_elsewhere(name: str, scratch: Path, inputs: Arguments, absent: tuple[str, ...] = ()) -> Any:
    """The result of a call in another process, whose only way to Clew is its installed package."""
    torch.save(inputs, scratch / "arguments.pt")
    server = elsewhere_server()
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write("\t".join([str(scratch), *absent]).encode() + b"\n")
    while (answer := server.stdout.readline().decode().rstrip("\n")) != str(scratch):
        if not answer:
            raise ElsewhereError("the other process is gone")
    error = scratch / f"{name}.error"
    if error.exists():
        raise ElsewhereError(error.read_text())
    if not (scratch / f"{name}.result.pt").exists():
        raise ElsewhereError("no result: the process died, or took too long")
    return torch.load(scratch / f"{name}.result.pt", weights_only=False)


@functools.cache
def elsewhere_server() -> subprocess.Popen[bytes]:
    """The process that has torch and Clew and nothing else; unbuffered, since forked children speak to it, too."""
    command = [sys.executable, "-P", "-W", "ignore", day_elsewhere.__file__]
    source = str(Path(clew.__file__).parents[1])
    environment = {"PYTHONPATH": source, "OMP_NUM_THREADS": "1", "HOME": tempfile.gettempdir()}
    pipe, silent = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, stderr=silent, env=environment, cwd="/")


class ElsewhereError(Exception):
    """What went wrong in the other process, in its own words."""


def load_state(case: Case) -> None:
    """The weights of another copy of the original are loaded."""
    case.needs_module()
    other = _noisy(case.original())
    case.holder().load_state_dict(other.module.state_dict())
    same_call(other.call, case.captured, case.inputs)


def _noisy(program: Program) -> Program:
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in program.module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return program


# ---- tools -----------------------------------------------------------------------------------------------------------


def by_tool(case: Case, use: Callable[[Any, Arguments], Any]) -> None:
    """A tool takes the capture, and what it makes is called; the original is asked where that fails."""
    expected = by_original(lambda: run(case.original().call, case.inputs))
    original = case.original()
    try:
        same_values(expected, use(case.captured, case.inputs))
    except Wrong:
        with contextlib.suppress(NotForOriginal):
            _right_for_original(expected, lambda: use(original.call, case.inputs))
        raise
    except Exception:
        _right_for_original(expected, lambda: use(original.call, case.inputs))
        raise


def _right_for_original(expected: Any, action: Callable[[], Any]) -> None:
    """Raise where the tool does not do it with the original, or does it wrong there too: that proves nothing."""
    found = by_original(action)
    try:
        same_values(expected, found)
    except Wrong as wrong:
        raise WrongByTool(f"the tool's result for the original is wrong, too: {wrong}") from wrong


def by_fx(program: Any, inputs: Arguments) -> Any:
    """As a graph module of torch.fx."""
    return run(clew.to_fx(program), inputs)


def to_fx(case: Case) -> None:
    """Converted to torch.fx, and called."""
    expected = by_original(lambda: run(case.original().call, case.inputs))
    same(expected, by_fx(case.captured, case.inputs))


def by_export(program: Any, inputs: Arguments) -> Any:
    """Exported by torch.export."""
    args, kwargs = copy.deepcopy(inputs)
    return run(torch.export.export(program, args, kwargs).module(), inputs)


def by_compile(program: Any, inputs: Arguments, backend: str) -> Any:
    """Compiled without a graph break."""
    return run(torch.compile(program, fullgraph=True, backend=backend), inputs)


def by_jit(program: Any, inputs: Arguments) -> Any:
    """Traced by torch.jit."""
    args, kwargs = copy.deepcopy(inputs)
    example: dict[str, Any] = {"example_kwarg_inputs": kwargs} if kwargs else {"example_inputs": args}
    return run(torch.jit.trace(program, strict=False, check_trace=False, **example), inputs)


def make_fx(case: Case) -> None:
    """Traced by make_fx, which cannot follow a way that depends on a mask."""
    by_tool(case.without_mask(), by_make_fx)


def by_make_fx(program: Any, inputs: Arguments) -> Any:
    """Traced by make_fx, which takes positional arguments."""
    args, kwargs = copy.deepcopy(inputs)

    def positional(*given: Any) -> list[Tensor]:
        return tensors(program(*given[: len(args)], **dict(zip(kwargs, given[len(args) :], strict=True))))

    return run(proxy_tensor.make_fx(positional)(*args, *kwargs.values()), ((*args, *kwargs.values()), {}))


def functional(case: Case) -> None:
    """Called with other weights by torch.func."""
    case.needs_module()
    other = _noisy(case.original())
    weights = {name: weight.detach() for name, weight in other.module.named_parameters()}

    def call(module: nn.Module) -> Any:
        args, kwargs = copy.deepcopy(case.inputs)
        return torch.func.functional_call(module, weights, args, kwargs)

    expected = by_original(lambda: call(case.original().module))
    same(expected, call(case.holder()))


# ---- lazy graphs and checking ----------------------------------------------------------------------------------------


def lazy_modes(case: Case) -> None:
    """A lazy graph is called, set to training and back, and called again; its methods return itself."""
    program, original = case.original(), case.original()
    lazy = clew.trace(program.call)
    same_call(original.call, lazy, case.inputs)
    if isinstance(program.call, nn.Module) and (lazy.train() is not lazy or lazy.eval() is not lazy):
        raise TypeError("train() and eval() of a lazy graph do not return it")
    same_call(original.call, lazy, case.inputs)


def lazy_pickled(case: Case) -> None:
    """A lazy graph is pickled and loaded."""
    case.needs_module()
    _needs_pickle(case)
    lazy = clew.trace(case.original().call)
    run(lazy, case.inputs)
    same_call(case.original().call, pickle.loads(pickle.dumps(lazy)), case.inputs)


def threads(case: Case) -> None:
    """A lazy graph whose first calls come from many threads at once."""
    expected = by_original(lambda: run(case.original().call, case.inputs))
    lazy = clew.trace(case.original().call)
    barrier, errors = threading.Barrier(THREADS), list[Exception]()

    def work() -> None:
        try:
            args, kwargs = copy.deepcopy(case.inputs)
            barrier.wait()
            same(expected, lazy(*args, **kwargs))
        except Exception as error:
            errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for error in sorted(errors, key=lambda error: not isinstance(error, Wrong)):
        raise error


def verify(case: Case) -> None:
    """Clew's own comparison finds nothing wrong."""
    found = clew.verify(case.captured, case.program.call, case.inputs)
    if not found.ok:
        raise Wrong(next(case.detail for case in found.cases if case.status == "WRONG"))


@contextlib.contextmanager
def autocast() -> Iterator[None]:
    """Mixed precision on the CPU."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        yield


STEPS: dict[str, Callable[[Case], None]] = {
    "again": again,
    "values": another,
    "batch_1": functools.partial(another, batch=1),
    "batch_3": functools.partial(another, batch=3),
    "length": functools.partial(another, length=11),
    "from_batch_1": from_batch_1,
    "no_grad": functools.partial(under, mode=torch.no_grad),
    "inference": functools.partial(under, mode=torch.inference_mode),
    "autocast": functools.partial(under, mode=autocast),
    "unpadded": functools.partial(masks, before=True, after=False),
    "padded": functools.partial(masks, before=False, after=True),
    "no_mask": no_mask,
    "another_model": another_model,
    "imports": imports,
    "log_levels": log_levels,
    "train": train,
    "train_eval": train_eval,
    "train_again": train_again,
    "train_first": train_first,
    "bfloat16": functools.partial(moved, target=torch.bfloat16),
    "half": functools.partial(moved, target=torch.half),
    "float64": functools.partial(moved, target=torch.float64),
    "meta": functools.partial(moved, target="meta"),
    "cuda": functools.partial(moved, target="cuda"),
    "pickle": pickled,
    "save": saved,
    "deepcopy": copied,
    "elsewhere": elsewhere,
    "folder": folder,
    "load_state": load_state,
    "functional": functional,
    "to_fx": to_fx,
    "export": functools.partial(by_tool, use=by_export),
    "compile": functools.partial(by_tool, use=functools.partial(by_compile, backend="eager")),
    "jit_trace": functools.partial(by_tool, use=by_jit),
    "make_fx": make_fx,
    "lazy_modes": lazy_modes,
    "lazy_pickle": lazy_pickled,
    "threads": threads,
    "verify": verify,
}
OPTIONAL: dict[str, Callable[[Case], None]] = {
    "inductor": functools.partial(by_tool, use=functools.partial(by_compile, backend="inductor")),
    "bare": functools.partial(elsewhere, absent=("transformers", "einops")),
}
"""Steps that take long, or that the original cannot do at all: asked for by name."""
MAY_BE_GUARDED = frozenset({"no_mask"})
"""Steps in which the original takes another way than in the example: that a guard says so is right, too."""
