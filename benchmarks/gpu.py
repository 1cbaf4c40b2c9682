"""Back ends on real models: ``python -m benchmarks.gpu [--models M ...] [--ways W ...] [--together] [--markdown]``.

Each model is called as it is, by torch's own means (a CUDA graph, ``torch.compile``) and by those of ``clew.compile``,
each in a process of its own with empty caches of compilers. The table tells the seconds until the first result is
there, with those of the capture among them, the time of a call (the median of some rounds of many), and how far
results are from those of the original, on the example and on other values. On a GPU models are in half precision and
of batch one; without one the same models run in float32 on the CPU, without CUDA graphs. ``--small`` tries the program
itself with narrow models.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

import clew

Call = Callable[..., torch.Tensor]
Made = tuple[Any, tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]
"""A model, the example that it is captured from, and other values of these sizes."""
_ROUNDS, _WARM_UP = 5, 3
ON_GPU = torch.cuda.is_available()
_DEVICE = "cuda" if ON_GPU else "cpu"


# ---- models ----------------------------------------------------------------------------------------------------------


class Logits(torch.nn.Module):
    """A model of transformers, called with one tensor, that gives its logits alone."""

    def __init__(self, model: torch.nn.Module, name: str) -> None:
        super().__init__()
        self.model, self.name = model, name

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.model(**{self.name: given}).logits
        return logits


class Decoder(torch.nn.Module):
    """One step of decoding: a token, and a cache of fixed size that the step writes into, with the position in it."""

    def __init__(self, model: Any, length: int) -> None:
        super().__init__()
        transformers = importlib.import_module("transformers")
        self.model = model
        self.cache = transformers.StaticCache(config=model.config, max_cache_len=length)

    def begin(self) -> None:
        """Forget what was decoded."""
        self.cache.reset()

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.model(input_ids=ids, past_key_values=self.cache, use_cache=True).logits
        return logits


def _placed(model: torch.nn.Module) -> torch.nn.Module:
    return model.eval().to(device=_DEVICE, dtype=torch.float16 if ON_GPU else torch.float32)


def _tokens(*shape: int) -> torch.Tensor:
    return torch.randint(0, 500, shape, device=_DEVICE)


def _images(size: int) -> torch.Tensor:
    return torch.randn(1, 3, size, size, device=_DEVICE, dtype=torch.float16 if ON_GPU else torch.float32)


def gpt2(small: bool) -> Made:
    """GPT-2 without a cache, on 128 tokens."""
    transformers = importlib.import_module("transformers")
    sizes = {"n_layer": 2, "n_embd": 64, "n_head": 4} if small else {}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False, **sizes))
    return Logits(_placed(model), "input_ids"), (_tokens(1, 128),), (_tokens(1, 128),)


def bert(small: bool) -> Made:
    """BERT-base with a head for tokens, on 128 of them."""
    transformers = importlib.import_module("transformers")
    sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4} if small else {}
    model = transformers.BertForMaskedLM(transformers.BertConfig(**sizes))
    return Logits(_placed(model), "input_ids"), (_tokens(1, 128),), (_tokens(1, 128),)


def resnet(small: bool) -> Made:
    """ResNet-50 of transformers, on an image of 224 pixels."""
    transformers = importlib.import_module("transformers")
    sizes = {"embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1]} if small else {}
    model = transformers.ResNetForImageClassification(transformers.ResNetConfig(num_labels=1000, **sizes))
    return Logits(_placed(model), "pixel_values"), (_images(224),), (_images(224),)


def vit(small: bool) -> Made:
    """ViT-B/16, on an image of 224 pixels."""
    transformers = importlib.import_module("transformers")
    sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4} if small else {}
    model = transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=1000, **sizes))
    return Logits(_placed(model), "pixel_values"), (_images(224),), (_images(224),)


def llama(small: bool) -> Made:
    """A Llama of 16 layers that decodes one token with a cache of 1024."""
    transformers = importlib.import_module("transformers")
    wide = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32}
    narrow = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = transformers.LlamaConfig(
        vocab_size=32000,
        num_key_value_heads=4 if small else 8,
        max_position_embeddings=2048,
        **(narrow if small else wide),
    )
    model = Decoder(_placed(transformers.LlamaForCausalLM(config)), 64 if small else 1024)
    model(_tokens(1, 1))  # the cache is made
    return model, (_tokens(1, 1),), (_tokens(1, 1),)


MODELS: dict[str, Callable[[bool], Made]] = {"gpt2": gpt2, "bert": bert, "resnet": resnet, "vit": vit, "llama": llama}


# ---- ways ------------------------------------------------------------------------------------------------------------


def in_cuda_graph(program: Call, *args: torch.Tensor) -> Call:
    """Replayed from a CUDA graph, recorded after some calls on a stream of their own; what it is given is copied in."""
    static = tuple(arg.clone() for arg in args)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(_WARM_UP):
            program(*static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = program(*static)

    def replay(*given: torch.Tensor) -> torch.Tensor:
        for place, one in zip(static, given, strict=True):
            place.copy_(one)
        graph.replay()
        return result

    return replay


def _recognized(program: Call, *args: torch.Tensor) -> Call:
    """Recorded after ``clew.recognize`` has put torch's fused functions in the place of their parts."""
    made: Call = clew.compile(clew.recognize(clew.trace(program, args)), "cudagraphs")
    return made


def _by_clew(backend: str) -> Callable[..., Call]:
    return lambda program, *args: clew.compile(program, backend, args=args)


WAYS: dict[str, Callable[..., Call]] = {
    "original": lambda program, *args: program,
    "CUDA graph by hand": in_cuda_graph,
    "torch.compile": lambda program, *args: torch.compile(program, fullgraph=True),
    "torch.compile, reduce-overhead": lambda program, *args: torch.compile(
        program, fullgraph=True, mode="reduce-overhead"
    ),
    "capture": lambda program, *args: clew.trace(program, args),
    "clew.compile, cudagraphs": _by_clew("cudagraphs"),
    "clew.recognize, cudagraphs": _recognized,
    "clew.compile, inductor": _by_clew("inductor"),
    "clew.compile, inductor-cudagraphs": _by_clew("inductor-cudagraphs"),
}
_OF_A_GPU = (
    "CUDA graph by hand",
    "torch.compile, reduce-overhead",
    "clew.compile, cudagraphs",
    "clew.recognize, cudagraphs",
    "clew.compile, inductor-cudagraphs",
)


def _wait() -> None:
    if ON_GPU:
        torch.cuda.synchronize()


def _seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    _wait()
    start = time.perf_counter()
    found = work()
    _wait()
    return time.perf_counter() - start, found


def _call_time(call: Call, args: tuple[torch.Tensor, ...], calls: int) -> float:
    """The seconds of a call: the median of some rounds of many, after a few to get warm."""

    def some(count: int) -> None:
        for _ in range(count):
            call(*args)

    some(_WARM_UP)
    return statistics.median(_seconds(lambda: some(calls))[0] / calls for _ in range(_ROUNDS))


def _results(program: Any, call: Call, *inputs: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    """What one call after the other gives, from the beginning of what the program keeps."""
    if isinstance(program, Decoder):
        program.begin()
    return [call(*given).float().clone() for given in inputs]


class Turns:
    """Several processes that work side by side, and then one after the other; a folder tells how far each is."""

    def __init__(self, folder: str, turn: int, processes: int) -> None:
        self.folder, self.turn, self.processes = Path(folder), turn, processes

    def wait(self) -> None:
        """This process is ready for its turn; wait until all are, and those before it are done."""
        (self.folder / f"ready{self.turn}").touch()
        while len([*self.folder.glob("ready*")]) < self.processes:
            time.sleep(0.1)
        while not all((self.folder / f"done{turn}").exists() for turn in range(self.turn)):
            time.sleep(0.02)

    def end(self) -> None:
        """The turn is over, or this process has failed before."""
        (self.folder / f"ready{self.turn}").touch()
        (self.folder / f"done{self.turn}").touch()


def measure(model: str, way: str, small: bool, calls: int, turns: Turns | None) -> dict[str, float]:
    """One way for one model."""
    torch.manual_seed(0)
    program, args, others = MODELS[model](small)
    expected = _results(program, program, args, others)
    made, call = _seconds(lambda: WAYS[way](program, *args))
    first = _seconds(lambda: call(*args))[0]
    if way.startswith("torch.compile"):
        call(*args)  # with reduce-overhead the second call records
    found = _results(program, call, args, others)
    difference = max((a - b).abs().max().item() for a, b in zip(found, expected, strict=True))
    gc.collect()
    if turns is not None:
        turns.wait()
    return {"made": made, "first": first, "call": _call_time(call, args, calls), "difference": difference}


def _apart(model: str, way: str, chosen: argparse.Namespace, turns: Sequence[str] = ()) -> dict[str, Any]:
    """The same in a process of its own, whose compilers find no caches."""
    command = [sys.executable, "-m", "benchmarks.gpu", "--one", model, way, "--calls", str(chosen.calls)]
    command += ["--turns", *turns] if turns else []
    with tempfile.TemporaryDirectory() as caches:
        environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": caches, "TRITON_CACHE_DIR": f"{caches}/triton"}
        done = subprocess.run(
            command + ["--small"] * chosen.small, env=environment, capture_output=True, text=True, check=False
        )
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        return {"error": (done.stderr.strip().splitlines() or ["no word"])[-1][:160]}
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def _measured(chosen: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """The rows of the table, as they are ready."""
    for model, way, found in track(_found(chosen), "measuring", total=len(chosen.models) * len(chosen.ways)):
        if "error" in found:
            yield model, way, "-", "-", "-", found["error"]
            continue
        times = (f"{found['made']:.2f}", f"{found['first']:.2f}", f"{found['call'] * 1e6:.0f}")
        yield model, way, *times, f"{found['difference']:.1e}"


def _found(chosen: argparse.Namespace) -> Iterator[tuple[str, str, dict[str, Any]]]:
    pairs = [(model, way) for model in chosen.models for way in chosen.ways]
    if not chosen.together:
        for model, way in pairs:
            yield model, way, _apart(model, way, chosen)
        return
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(pairs)) as pool:
        waiting = [
            pool.submit(_apart, model, way, chosen, (folder, str(turn), str(len(pairs))))
            for turn, (model, way) in enumerate(pairs)
        ]
        for (model, way), one in zip(pairs, waiting, strict=True):
            yield model, way, one.result()


def _show(title: str, rows: Iterator[tuple[str, ...]], markdown: bool) -> None:
    titles = ("model", "way", "made (s)", "first call (s)", "a call (us)", "largest difference")
    if markdown:
        print(f"{title}\n")
        for row in itertools.chain([titles, ("---", "---", "--:", "--:", "--:", "--:")], rows):
            print("| " + " | ".join(row) + " |", flush=True)
        return
    table = Table(title=title)
    for place, name in enumerate(titles):
        table.add_column(name, justify="left" if place < 2 else "right")
    for row in rows:
        table.add_row(*row)
    Console(width=140).print(table)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument(
        "--ways", nargs="+", choices=WAYS, default=[way for way in WAYS if ON_GPU or way not in _OF_A_GPU]
    )
    parser.add_argument("--calls", type=int, default=50, help="calls in each of five rounds")
    parser.add_argument("--small", action="store_true", help="narrow models")
    parser.add_argument("--markdown", action="store_true", help="the table as one of a page")
    parser.add_argument("--together", action="store_true", help="make all side by side, then time one after the other")
    parser.add_argument("--turns", nargs=3, metavar=("FOLDER", "TURN", "PROCESSES"), help=argparse.SUPPRESS)
    parser.add_argument("--one", nargs=2, metavar=("MODEL", "WAY"), help="measure one in this process, as JSON")
    chosen = parser.parse_args()
    if chosen.one:
        warnings.simplefilter("ignore")
        turns = Turns(chosen.turns[0], *map(int, chosen.turns[1:])) if chosen.turns else None
        try:
            with torch.no_grad():
                print(json.dumps(measure(*chosen.one, chosen.small, chosen.calls, turns)))
        finally:
            if turns is not None:
                turns.end()
        return
    where = torch.cuda.get_device_name() + ", float16" if ON_GPU else f"CPU, {torch.get_num_threads()} threads, float32"
    _show(f"{where}, torch {torch.__version__}", _measured(chosen), chosen.markdown)


if __name__ == "__main__":
    main()
