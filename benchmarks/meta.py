"""How long the capture of a model without data takes: ``python -m benchmarks.meta``.

The Llama of transformers with eight billion parameters is built on the meta device and captured; printed are the time,
beside one eager call, the nodes, the guards and the memory that the process came to use.
"""

from __future__ import annotations

import resource
import time
import warnings
from collections.abc import Callable

import torch
import transformers
from rich.console import Console
from transformers import LlamaConfig, LlamaForCausalLM

import clew

BATCH, LENGTH = 1, 16


def eight_billion() -> LlamaConfig:
    """The configuration of the Llama with eight billion parameters."""
    return LlamaConfig(
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        vocab_size=128256,
        attn_implementation="eager",  # the others look into the mask, which holds no data here
    )


def main() -> None:
    """Build, capture and report."""
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    console = Console()
    with console.status("building on the meta device ..."), torch.device("meta"):
        model = LlamaForCausalLM(eight_billion()).eval()
        tokens = torch.zeros(BATCH, LENGTH, dtype=torch.int64)
        inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "use_cache": False}
    with torch.no_grad():
        eager = _seconds(lambda: model(**inputs))
        with console.status("capturing ..."):
            capture = _seconds(lambda: clew.trace(model, kwargs=inputs))
            captured = clew.trace(model, kwargs=inputs)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    console.print(f"{parameters / 1e9:.2f} billion parameters, {len(captured.graph.nodes):,} nodes,", end=" ")
    console.print(f"{len(captured.guards)} guards; one eager call {eager:.2f} s, one capture {capture:.2f} s;", end=" ")
    console.print(f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB of memory in all")


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
