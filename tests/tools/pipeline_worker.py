"""What one process of several does in the tests: ``python -m tests.tools.pipeline_worker rank count port modes``.

It trains a small GPT-2, in stages, with DDP, FSDP2 or tensor parallelism, and compares what comes out with the whole,
which each process trains for itself. ``python -m tests.tools.pipeline_worker 4 gpipe``, without a rank, starts so many
processes and waits.
"""

from __future__ import annotations

import contextlib
import copy
import os
import socket
import subprocess
import sys
import time
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
from transformers.models.gpt2.modeling_gpt2 import GPT2Block

import clew

STEPS, ROWS, LENGTH = 10, 4, 6


def model() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(n_layer=4, n_head=2, n_embd=16, vocab_size=50, n_positions=32, bos_token_id=0, eos_token_id=0)
    config.resid_pdrop = config.embd_pdrop = config.attn_pdrop = 0.0
    return GPT2LMHeadModel(config)


def loss_of(result: Any, target: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(result.logits.flatten(0, 1), target.flatten())


def staged(count: int) -> Any:
    tokens = torch.zeros(ROWS, LENGTH, dtype=torch.long)
    captured = clew.trace(model(), kwargs={"input_ids": tokens, "use_cache": False})
    return clew.split(captured, stages=count), {"input_ids": tokens, "use_cache": False}


def train(rank: int, count: int, schedule: str) -> None:
    whole = model()
    stages, example = staged(count)
    run = stages.pipeline(kwargs=example, schedule=schedule, microbatches=2, loss=loss_of)
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.1, momentum=0.9) for one in (run.module, whole)]
    generator = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        tokens = torch.randint(0, 50, (ROWS, LENGTH), generator=generator)
        for one in optimizers:
            one.zero_grad()
        result = run.step(input_ids=tokens, use_cache=False, target=tokens)
        wanted = whole(input_ids=tokens, use_cache=False)
        loss = loss_of(wanted, tokens)
        loss.backward()
        if rank == count - 1:
            assert type(result) is type(wanted)
            torch.testing.assert_close(result.logits, wanted.logits, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(torch.stack(run.losses).mean(), loss.detach(), rtol=1e-4, atol=1e-5)
        for one in optimizers:
            one.step()
    names = dict(whole.named_parameters(remove_duplicate=False))
    for name, parameter in run.module.named_parameters():
        torch.testing.assert_close(parameter, names[name], rtol=1e-4, atol=1e-5)


def replicated(rank: int, count: int) -> None:
    """DDP over a captured model."""
    captured = _captured(count)
    _train_on_parts(rank, count, captured, torch.nn.parallel.DistributedDataParallel(captured))


def sharded(rank: int, count: int) -> None:
    """FSDP2 over a captured model, whole; and over its layers, where these stay calls."""
    mesh = init_device_mesh("cpu", (count,))
    captured = _captured(count)
    fully_shard(captured, mesh=mesh)
    _train_on_parts(rank, count, captured, captured)
    captured = _captured(count, leaves=[None, GPT2Block])
    for layer in captured.transformer.h:
        fully_shard(layer, mesh=mesh)
    fully_shard(captured, mesh=mesh)
    _train_on_parts(rank, count, captured, captured)
    try:
        clew.trace(captured, kwargs={"input_ids": torch.zeros(1, 2, dtype=torch.long), "use_cache": False})
    except clew.CaptureError as error:
        print("SAID", str(error).split("\n")[0], flush=True)


def parallel(rank: int, count: int) -> None:
    """Tensor parallelism on the paths of a captured model: each process has a part of each layer."""
    torch.manual_seed(0)
    config = LlamaConfig(hidden_size=16, intermediate_size=32, num_hidden_layers=2, vocab_size=50,
                         num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=32)  # fmt: skip
    whole = LlamaForCausalLM(config).eval()
    tokens = torch.arange(2 * LENGTH).view(2, LENGTH)
    captured = clew.trace(copy.deepcopy(whole), kwargs={"input_ids": tokens, "use_cache": False})
    split = {"self_attn.q_proj": ColwiseParallel, "self_attn.k_proj": ColwiseParallel, "mlp.up_proj": ColwiseParallel,
             "self_attn.v_proj": ColwiseParallel, "self_attn.o_proj": RowwiseParallel,
             "mlp.gate_proj": ColwiseParallel, "mlp.down_proj": RowwiseParallel}  # fmt: skip
    plan = {f"model.layers.{layer}.{name}": kind() for layer in range(2) for name, kind in split.items()}
    parallelize_module(captured, init_device_mesh("cpu", (count,)), plan)
    for given in (tokens, tokens.flip(1)[:, 1:]):
        losses = [loss_of(one(input_ids=given, use_cache=False), given) for one in (captured, whole)]
        torch.testing.assert_close(*losses)
        for one, loss in zip((captured, whole), losses, strict=True):
            one.zero_grad()
            loss.backward()
    found = dict(captured.named_parameters())
    assert found["model.layers.0.mlp.up_proj.weight"].to_local().shape == (32 // count, 16)
    for name, parameter in whole.named_parameters():
        torch.testing.assert_close(_full(found[name].grad), parameter.grad, rtol=1e-4, atol=1e-5)


def _captured(count: int, **options: Any) -> Any:
    tokens = torch.zeros(ROWS // count, LENGTH, dtype=torch.long)
    return clew.trace(model(), kwargs={"input_ids": tokens, "use_cache": False}, **options)


def _full(tensor: Any) -> torch.Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def _train_on_parts(rank: int, count: int, captured: Any, run: Any) -> None:
    """Each process has a part of the batch, and all take the step of the whole."""
    whole = model()
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (run, whole)]
    generator = torch.Generator().manual_seed(1)
    for _ in range(3):
        tokens = torch.randint(0, 50, (ROWS, LENGTH), generator=generator)
        part = tokens.chunk(count)[rank]
        for program, given, optimizer in zip((run, whole), (part, tokens), optimizers, strict=True):
            optimizer.zero_grad()
            loss_of(program(input_ids=given, use_cache=False), given).backward()
            optimizer.step()
    found = dict(captured.named_parameters())
    for name, parameter in whole.named_parameters():
        torch.testing.assert_close(_full(found[name]), parameter, rtol=1e-4, atol=1e-5)


def die(rank: int, count: int) -> None:
    """The last process goes away in the middle; the others say so."""
    stages, example = staged(count)
    run = stages.pipeline(kwargs=example, microbatches=2, loss=loss_of)
    tokens = example["input_ids"]
    run.step(input_ids=tokens, use_cache=False, target=tokens)
    if rank == count - 1:
        os._exit(3)
    start = time.monotonic()
    try:
        for _ in range(3):
            run.step(input_ids=tokens, use_cache=False, target=tokens)
    except clew.ClewError as error:
        print("SAID", str(error).split("\n")[0], "in time" if time.monotonic() - start < 30 else "late", flush=True)
        os._exit(0)


def refuse(rank: int, count: int) -> None:
    """The first process is given what does not fit; the others do not wait for ever."""
    stages, example = staged(count)
    run = stages.pipeline(kwargs=example, microbatches=2, loss=loss_of)
    tokens = torch.zeros(ROWS, LENGTH + 1 if rank == 0 else LENGTH, dtype=torch.long)
    try:
        run.step(input_ids=tokens, use_cache=False, target=tokens)
    except clew.ClewError as error:
        print("REFUSED", str(error).split("\n")[0], flush=True)


MODES = {"ddp": replicated, "fsdp": sharded, "tensor": parallel, "die": die, "refuse": refuse}


def work(rank: int, count: int, port: int, modes: list[str]) -> None:
    torch.set_num_threads(1)
    for number, mode in enumerate(modes):
        address = f"tcp://127.0.0.1:{port + number}"
        dist.init_process_group("gloo", address, rank=rank, world_size=count, timeout=timedelta(seconds=120))
        if mode in MODES:
            MODES[mode](rank, count)
        else:
            train(rank, count, mode)
        with contextlib.suppress(Exception):  # a pipeline that failed has ended the group
            dist.destroy_process_group()
        print("DONE", mode, flush=True)


def start(count: int, modes: list[str]) -> list[str]:
    """Run so many processes, and give what each has printed."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [sys.executable, "-m", "tests.tools.pipeline_worker"]
    processes = [
        subprocess.Popen([*command, str(rank), str(count), str(port), *modes], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for rank in range(count)
    ]  # fmt: skip
    try:
        return [process.communicate(timeout=300)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()


def main() -> None:
    if not sys.argv[2].isdigit():
        print(*start(int(sys.argv[1]), sys.argv[2:]), sep="\n")
    else:
        work(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])


if __name__ == "__main__":
    main()
