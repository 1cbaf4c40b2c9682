"""Bundles: what is saved comes back equal, in a process without the source, and no file can make Clew run anything."""

from __future__ import annotations

import functools
import json
import random
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.torch
import tensorflow as tf
import torch
from torch import nn
from torch.nn import functional as F

import clew
from clew.errors import BundleError, ClewError
from clew.frameworks.torch.entry_facts import follows_from_sizes
from clew.io.bundle import files, weights
from tests.io.custom_gradients import Once, OwnGradients


class Tied(nn.Module):
    """Tied weights, a buffer that is not saved by torch, a view, a part that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.norm = nn.LayerNorm(4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("table", torch.arange(12.0).reshape(3, 4).t(), persistent=False)
        self.scale = 2.0

    def forward(self, ids: torch.Tensor, shift: float = 0.5) -> dict[str, torch.Tensor]:
        hidden = self.norm(self.norm(self.embed(ids)) + self.table[:, 0] * self.scale)
        return {"logits": self.head(hidden) + shift, "hidden": hidden}


def branching(x: torch.Tensor, n: int = 3) -> torch.Tensor:
    total = x.sum()
    for row in x:
        if row.sum() > 0:
            total = total + row.sum() * n
    return total


def sorted_by_numpy(x: np.ndarray, weights: np.ndarray = np.ones(3)) -> Any:  # noqa: B008  a default of its own
    return np.sort(x * weights, axis=-1), x.shape[0]


def of_jax(x: Any) -> Any:
    return jnp.where(x > 0, x, 0.0) @ jnp.arange(3.0)


class Counting(tf.Module):
    """A variable that a program writes to, one that it multiplies with, and a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.weight = tf.Variable(0), tf.Variable([[1.0, 2], [3, 4], [5, 6]])

    def __call__(self, x: Any) -> Any:
        self.calls.assign_add(1)
        for _ in tf.range(2):
            x = tf.nn.relu(x @ self.weight @ tf.transpose(self.weight)) / 9.0
        return {"x": x, "calls": self.calls.read_value()}


@torch.jit.script
def scripted(x: torch.Tensor) -> torch.Tensor:
    for row in range(len(x)):
        x = x + row if float(x.sum()) > 0 else x * 2
    return x


class OddParts(nn.Module):
    """What safetensors and pickles of weights do not have: sparse tensors, wide complex numbers, a generator; modules
    that torch.jit compiled; a module with a hook that is read, and never called."""

    def __init__(self) -> None:
        super().__init__()
        self.compiled = torch.jit.script(nn.Linear(3, 3))
        self.sparse, self.rows = torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr()
        self.wide = torch.full((3,), 2 + 1j, dtype=torch.complex128)
        self.draws = torch.Generator().manual_seed(3)
        self.quiet = nn.Linear(3, 3)
        self.quiet.register_forward_hook(lambda *args: None)
        for place, one in enumerate(self.parameters()):
            nn.init.constant_(one, place - 1.5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        hidden = scripted(self.compiled(x)) + self.quiet.weight[0]
        drawn = torch.rand(3, generator=self.draws)
        return self.sparse @ hidden.T, self.rows @ hidden.T, hidden * self.wide, drawn


def with_texts_and_times(x: np.ndarray) -> Any:
    return x * WIDE, NAMES[: len(x)], TIMES + np.timedelta64(1, "D")


WIDE, NAMES = np.array([1 + 2j, 3]), np.array(["a", "bcd"])
TIMES = np.array(["2020-01-01"], "M8[D]")
NARROW = jnp.ones((3, 2), jnp.bfloat16)


def of_jax_in_bfloat16(x: Any) -> Any:
    return (x @ NARROW).astype(jnp.float32)


LINEAR = nn.Linear(3, 3)


def closing_over(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(LINEAR(x))


class Scaled(nn.Module):
    """Classes of the user's, whose parts functions outside of them call."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.scale, self.mean = nn.Sequential(nn.Linear(3, 3), nn.ReLU()), 2.0, torch.ones(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) * self.scale - self.mean

    def twice(self, x: torch.Tensor) -> torch.Tensor:
        return self(self(x))


class Settings:
    """An object that is no module, with a method."""

    def __init__(self) -> None:
        self.weight, self.power = torch.arange(3.0), 2

    def scaled(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight**self.power


SCALED = Scaled()
PROGRAMS_OF_MODULES: dict[str, Callable[..., Any]] = {
    "method": SCALED.twice,
    "function around": lambda x: SCALED(x) + SCALED.inner[0].weight.sum(),
    "method of an object": Settings().scaled,
}
CASES: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "tied": (Tied().eval(), [(torch.tensor([[1, 2]]),), (torch.tensor([[3, 0, 6], [1, 1, 1]]), 2.5)]),
    "lstm": (nn.LSTM(3, 2, 2, batch_first=True), [(torch.randn(2, 4, 3),), (torch.randn(1, 6, 3),)]),
    "attention": (nn.TransformerEncoderLayer(8, 2, 16).eval(), [(torch.randn(3, 2, 8),), (torch.randn(5, 1, 8),)]),
    "branching": (branching, [(torch.randn(4, 3),), (torch.randn(2, 3), 5)]),
    "closure": (closing_over, [(torch.randn(2, 3),), (torch.randn(5, 3),)]),
    **{name: (one, [(torch.randn(2, 3),), (torch.randn(5, 3),)]) for name, one in PROGRAMS_OF_MODULES.items()},
    "numpy": (sorted_by_numpy, [(np.array([[3.0, 1, 2]]),), (np.random.rand(4, 3), np.arange(3.0))]),
    "jax": (of_jax, [(jnp.array([1.0, -2, 3]),), (jnp.ones((2, 3)),)]),
    "narrow": (of_jax_in_bfloat16, [(jnp.ones((4, 3), jnp.bfloat16),)]),
    "odd": (with_texts_and_times, [(np.ones((1, 2)),), (np.ones((2, 2)),)]),
    "tensorflow": (Counting(), [(tf.ones((2, 3)),), (tf.reshape(tf.range(-6.0, 6.0), (4, 3)),)]),
    "parts": (OddParts().eval(), [(torch.randn(2, 3),), (torch.randn(5, 3),)]),
    "gradients": (OwnGradients(), [(torch.randn(2, 3),), (torch.randn(5, 3),)]),
}


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in leaves(part)]
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def same(one: Any, other: Any) -> bool:
    left, right = leaves(one), leaves(other)
    return len(left) == len(right) and all(
        type(a) is type(b) and np.array_equal(np.asarray(_plain(a)), np.asarray(_plain(b)))
        for a, b in zip(left, right, strict=True)
    )


def _plain(value: Any) -> Any:
    return value.detach().numpy() if isinstance(value, torch.Tensor) else value


def saved(name: str, folder: Path) -> tuple[Any, Path]:
    program, calls = CASES[name]
    captured = clew.trace(program, calls[0])
    clew.save(captured, folder / "model.clew")
    return captured, folder / "model.clew"


@pytest.mark.parametrize("name", CASES)
def test_it_comes_back(name: str, tmp_path: Path) -> None:
    captured, path = saved(name, tmp_path)
    loaded = clew.load(path)
    program, calls = CASES[name]
    for call in calls:
        assert same(loaded(*call), program(*call))
    assert loaded.code == captured.code or name in ("parts", "gradients")  # where functions have no names any more
    of_the_file = ("parts and settings", "Settings.", "of counting")  # which nobody else can change
    own = [str(one) for one in captured.guards if not any(text in str(one) for text in of_the_file)]
    assert [str(one) for one in loaded.guards] == own
    assert [one.source for one in loaded.graph.nodes] == [one.source for one in captured.graph.nodes]


class Stepping(nn.Module):
    """State that calls of all kinds change."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.count = nn.Linear(3, 3), 0
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: torch.Tensor, mode: Any = "twice") -> torch.Tensor:
        self.seen += 1
        self.count += 1
        hidden = self.body(x) + self.seen
        return hidden * 2 if isinstance(mode, str) else hidden - self.count


def test_captures_of_a_lazy_graph_share_their_state(tmp_path: Path) -> None:
    program, x = Stepping(), torch.randn(2, 3)
    lazy = clew.trace(program)
    for call in ((x,), (x, 1)):
        lazy(*call)
    clew.save(lazy, tmp_path / "lazy.clew")
    loaded = clew.load(tmp_path / "lazy.clew")
    assert len(loaded.captures) == 2 and set(loaded.state_dict()) == set(program.state_dict())
    clew.save(loaded, tmp_path / "again.clew")
    for call in ((x, 3), (x,), (2 * x, 1), (x[:1],)):
        assert torch.equal(loaded(*call), program(*call)) and loaded.count == program.count
    with pytest.raises(clew.GuardError, match="none of the 2 captures"):
        loaded(x, "once")
    assert loaded.count == program.count and torch.equal(loaded.seen, program.seen)
    again = clew.load(tmp_path / "again.clew").half()
    assert again(x.half()).dtype is torch.float16 and again.count == 3


@functools.lru_cache
def masked(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return x * mask


def test_caches_that_are_given_new_tensors_are_entered(tmp_path: Path) -> None:
    """An item of a tensor is a new tensor each time, which is in no cache."""
    program, x = lambda x: masked(x[0], (x > 0)[1]) + 1, torch.randn(2, 3)
    clew.save(clew.trace(program, (x,)), tmp_path / "model.clew")
    assert torch.equal(clew.load(tmp_path / "model.clew")(2 * x), program(2 * x))


def test_captures_of_a_lazy_function(tmp_path: Path) -> None:
    lazy = clew.trace(lambda x, k: np.sort(x) * k if isinstance(k, int) else x.shape)
    wanted = [lazy(np.array([2.0, 1]), 3), lazy(np.ones(2), None)]
    clew.save(lazy, tmp_path / "lazy.clew")
    loaded = clew.load(tmp_path / "lazy.clew")
    assert np.array_equal(loaded(np.array([2.0, 1]), 3), wanted[0]) and loaded(np.ones(2), None) == wanted[1]


class Doubling(nn.Module):
    """Calls a function of the user's where it trains, and only there."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(Once.apply(x) if self.training else x)


def test_a_branch_may_call_what_is_not_there(tmp_path: Path) -> None:
    model, x = Doubling().eval(), torch.randn(3, 2)
    with pytest.warns(UserWarning, match="Once"):
        clew.save(clew.trace(model, (x,)), tmp_path / "model.clew")
    with pytest.warns(UserWarning, match="calls that reach .*Once.apply, which is not allowed, will raise"):
        loaded = clew.load(tmp_path / "model.clew")
    assert torch.equal(loaded(x), model(x))
    with pytest.raises(ClewError, match=r"cannot be found here: .*Once.apply\n(.*\n)*.*allow=\('torch', "):
        loaded.train()(x)
    clew.save(loaded, tmp_path / "again.clew")
    with pytest.raises(ClewError, match="Once.apply"):
        clew.load(tmp_path / "again.clew").train()(x)
    trusting = clew.load(tmp_path / "model.clew", allow=("torch", Once.__module__))
    assert torch.equal(trusting.train()(x), model.train()(x))


class Choices:
    """Settings of a module that stays one call."""

    def __init__(self) -> None:
        self.scale, self.itself = 3.0, self


class Chosen(nn.Module):
    def __init__(self, choices: Choices) -> None:
        super().__init__()
        self.choices = choices

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.choices.itself.scale


@pytest.mark.filterwarnings("ignore:the file names")
def test_objects_of_named_classes_come_back(tmp_path: Path) -> None:
    choices = Choices()
    model, x = nn.Sequential(Chosen(choices), Chosen(choices)), torch.ones(2)
    captured = clew.trace(model, (x,), leaves=lambda part, path: isinstance(part, Chosen))
    clew.save(captured, tmp_path / "model.clew")
    with pytest.raises(BundleError, match="Chosen is no class of modules that may be loaded"):
        clew.load(tmp_path / "model.clew")
    loaded = clew.load(tmp_path / "model.clew", allow=("torch", __name__))
    assert torch.equal(loaded(x), model(x)) and loaded.get_submodule("0").choices is loaded.get_submodule("1").choices


@pytest.mark.parametrize("part", ["torch.Generator", "torch.nn.Linear", "tests.io.test_bundle.Choices"])
def test_no_object_is_made_of_a_class_that_the_caller_has_not_named(part: str, tmp_path: Path) -> None:
    _, path = saved("tied", tmp_path)

    def with_object(manifest: Any) -> Any:
        manifest["tensors"].append({"class": part, "attributes": {}})
        manifest["modules"][0]["attributes"]["made"] = {"object": len(manifest["tensors"]) - 1}
        return manifest

    with pytest.raises(BundleError):
        clew.load(rewritten(path, manifest=with_object))


def test_hooks_that_would_run_are_refused(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model[0].register_full_backward_hook(lambda *args: None)
    with pytest.raises(BundleError, match="the module '0' has hooks"):
        clew.save(clew.trace(model, (torch.ones(2, 2),)), tmp_path / "model.clew")


class Own(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, training=self.training) + 1 if self.training else x * 2


SHARED = {"own": Own().eval()}


class UsesShared(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return SHARED["own"](x)


def test_modes_of_modules_in_variables_need_no_class(tmp_path: Path) -> None:
    model, x = UsesShared().eval(), torch.randn(2)
    clew.save(clew.trace(model, (x,)), tmp_path / "model.clew")
    assert torch.equal(clew.load(tmp_path / "model.clew")(x), model(x))


def test_parametrizations_come_back(tmp_path: Path) -> None:
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)))
    x = torch.randn(2, 3)
    clew.save(clew.trace(model, (x,)), tmp_path / "model.clew")
    assert torch.equal(clew.load(tmp_path / "model.clew")(x), model(x))


def test_no_guard_is_on_files_that_a_framework_imports() -> None:
    captured = clew.trace(Counting(), (tf.ones((2, 3)),))  # AutoGraph writes modules, and imports them
    assert not [one for one in captured.guards if "file" in str(one)]


def test_a_guard_holds_after_loading(tmp_path: Path) -> None:
    _, path = saved("tied", tmp_path)
    with pytest.raises(clew.GuardError):
        clew.load(path)([[1, 2]])


def test_weights_that_are_one_stay_one_and_train(tmp_path: Path) -> None:
    _, path = saved("tied", tmp_path)
    loaded = clew.load(path)
    assert loaded.head.weight is loaded.embed.weight
    assert "table" not in loaded.state_dict() and set(loaded.state_dict()) == set(Tied().state_dict())
    before = loaded.norm.weight.detach().clone()
    optimizer = torch.optim.SGD(loaded.parameters(), 0.1)
    loaded(torch.tensor([[1, 2]]))["logits"].square().sum().backward()
    optimizer.step()
    assert not torch.equal(before, loaded.norm.weight)
    assert torch.equal(clew.load(path).norm.weight, before)  # what is written stays in memory


def test_modules_around_nodes_are_kept(tmp_path: Path) -> None:
    captured, path = saved("tied", tmp_path)
    stacks = [list(node.meta.get("nn_module_stack", {})) for node in clew.load(path).graph.nodes]
    assert stacks == [list(node.meta.get("nn_module_stack", {})) for node in captured.graph.nodes]
    assert any(stacks)


def test_it_runs_where_the_source_is_not(tmp_path: Path) -> None:
    _, path = saved("tied", tmp_path)
    script = (
        "import sys, torch, clew; model = clew.load(sys.argv[1]);"
        "print(model(torch.tensor([[1, 2]]))['logits'].tolist()); print('tests' in sys.modules)"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    wanted = CASES["tied"][0](torch.tensor([[1, 2]]))["logits"]
    first, second = finished.stdout.splitlines()
    assert torch.allclose(torch.tensor(json.loads(first)), wanted) and second == "False"


@pytest.mark.parametrize("name", PROGRAMS_OF_MODULES)
def test_nothing_is_asked_of_the_classes_around_a_program(name: str, tmp_path: Path) -> None:
    captured, path = saved(name, tmp_path)
    loaded = clew.load(path, allow=("torch",))
    x = torch.randn(4, 3)
    assert torch.equal(loaded(x), captured(x)) and loaded.code == captured.code
    with zipfile.ZipFile(path) as file:
        classes = {one["class"] for one in json.loads(file.read("manifest.json"))["modules"]}
    assert not any(one.startswith("tests.") for one in classes)


def test_a_class_that_is_not_allowed_becomes_a_record(tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel  # noqa: PLC0415  slow to import

    config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, vocab_size=11)
    model = BertModel(config).eval()
    ids = torch.randint(0, 11, (2, 5))
    clew.save(clew.trace(model, kwargs={"input_ids": ids}), tmp_path / "bert.clew")
    wanted, other = model(input_ids=ids[:1]), clew.load(tmp_path / "bert.clew")(input_ids=ids[:1])
    torch.testing.assert_close(wanted.last_hidden_state, other["last_hidden_state"])
    assert type(other) is not type(wanted) and type(other).__name__ == type(wanted).__name__
    trusting = clew.load(tmp_path / "bert.clew", allow=("torch", "transformers"))(input_ids=ids[:1])
    assert type(trusting) is type(wanted)
    torch.testing.assert_close(trusting.pooler_output, wanted.pooler_output)


GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.clew"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_files_of_each_schema_load(path: Path) -> None:
    """Files that were saved by earlier versions of Clew, and are never written anew: schema<version>_<case>.clew."""
    loaded = clew.load(path)
    program, calls = CASES[path.stem.partition("_")[2]]
    if isinstance(program, (Tied, OddParts, Counting, OwnGradients)):
        program = type(program)()  # whose state no test has changed
    if isinstance(program, Tied):
        program.eval().load_state_dict(loaded.state_dict())
    for call in calls:
        assert same(loaded(*call), program(*call))


def test_there_is_a_file_of_each_schema() -> None:
    assert {path.stem.partition("_")[0] for path in GOLDEN} == {f"schema{one}" for one in range(1, files.SCHEMA + 1)}


# ---- files that are not what they should be --------------------------------------------------------------------------


def rewritten(path: Path, **changes: Any) -> Path:
    """The bundle with other contents: text instead of the graph, a function from manifest to manifest."""
    with zipfile.ZipFile(path) as file:
        held = {name: file.read(name) for name in file.namelist()}
    if "graph" in changes:
        held["graph.txt"] = changes["graph"].encode()
    if "manifest" in changes:
        held["manifest.json"] = json.dumps(changes["manifest"](json.loads(held["manifest.json"]))).encode()
    held |= changes.get("files", {})
    target = path.with_name("hostile.clew")
    with zipfile.ZipFile(target, "w") as file:
        for name, content in held.items():
            file.writestr(name, content)
    return target


HOSTILE = {
    "another package": "%y = function os.system('true')",
    "what a package has imported": "%y = function torch.os.system('true')",
    "a loader": "%y = function torch.load('file')",
    "the same by another way": "%y = function torch.nn.modules.module.torch.load('file')",
    "evaluation": "%y = function builtins.eval('1')",
    "opening": "%y = function builtins.open('file')",
    "the class of an object": "%y = method __class__(%x)",
    "the globals of a function": "%y = function builtins.getattr(torch.relu, '__globals__')",
    "a name that is not written": "%y = function builtins.getattr(%x, %x)",
    "writing to a file": "%y = method tofile(%x, 'file')",
    "Clew's own loader": "%y = function clew.load('file')",
    "a module": "%y = function builtins.getattr(torch.nn, 'x')",
    "running source": "%y = function torch.fx.graph_module._exec_with_source('import os', {})",
    "a reader of attributes as a value": "%y = function builtins.map(builtins.getattr, [%x], ['__class__'])",
    "a method by a computed name": "%y = function clew.capture.python.random_numbers.draw_from(%x, %x)",
    "a draw of another module": "%y = function clew.frameworks.torch.numpy_bridge.random_streams.draw('os', 'system')",
}


@pytest.mark.parametrize("line", HOSTILE.values(), ids=HOSTILE)
def test_a_graph_names_only_functions_on_arrays(line: str, tmp_path: Path) -> None:
    clew.save(clew.trace(lambda x: x + 1, (torch.ones(2),)), tmp_path / "model.clew")
    graph = f"graph(%x) {{\n  {line}\n  return %y\n}}"
    with pytest.raises(BundleError, match=r"is not allowed|reaches beyond|name is not written"):
        clew.load(rewritten(tmp_path / "model.clew", graph=graph))


def _with_variable(manifest: Any) -> Any:
    path = {"HolderPath": ["module", "os"]}
    manifest["objects"] = {"@0": {"Variable": [path, "system", None]}}
    manifest["stacks"] = [[], [-1, -1, -1, -1]]
    return manifest


@pytest.mark.parametrize("guarded", [False, True])
def test_a_variable_is_no_way_to_a_function(guarded: bool, tmp_path: Path) -> None:
    clew.save(clew.trace(lambda x: x + 1, (torch.ones(2),)), tmp_path / "model.clew")
    read = "clew.capture.guards.notes.read_variable(@0)"
    graph = f"graph(%x) {{\n  %f = function {read}\n  %y = function operator.call(%f, 'true')\n  return %y\n}}"
    if guarded:
        guard = f"  value function operator.call(function {read}, 'true') equals 0"
        graph = f"graph(%x) {{\n  return %x\n}} where {{\n{guard}\n}}"
    with pytest.raises(BundleError, match=r"the graph names os\.system, which is not allowed"):
        clew.load(rewritten(tmp_path / "model.clew", graph=graph, manifest=_with_variable))


def test_a_guard_on_sizes_holds_no_source() -> None:
    with pytest.raises(clew.errors.TextError):
        follows_from_sizes("def forward(self, n):\n    import os\n    return os.getpid()\n", 3)
    with pytest.raises(clew.errors.TextError, match="not allowed"):
        follows_from_sizes("graph(%n) {\n  %p = function os.getpid()\n  return %p\n}", 3)


def test_what_is_refused_can_be_allowed(tmp_path: Path) -> None:
    clew.save(clew.trace(lambda x: x + 1, (torch.ones(2),)), tmp_path / "model.clew")

    def of_one(manifest: Any) -> Any:
        manifest["stacks"] = [[], [-1, -1, -1]]
        return manifest

    hostile = rewritten(
        tmp_path / "model.clew", graph="graph(%x) {\n  %y = function os.getpid()\n  return %y\n}", manifest=of_one
    )
    with pytest.raises(BundleError, match=r"allow=\('torch', 'os\.getpid',\)"):
        clew.load(hostile)
    assert isinstance(clew.load(hostile, allow=("torch", "os.getpid"))(1), int)


def _cyclic(manifest: Any) -> Any:
    manifest["modules"][0]["modules"] = {"again": 0}
    return manifest


def _of_class(name: str) -> Callable[[Any], Any]:
    def change(manifest: Any) -> Any:
        manifest["modules"][1]["class"] = name
        return manifest

    return change


def _beyond(manifest: Any) -> Any:
    manifest["tensors"][0] |= {"shape": [1 << 30], "stride": [1], "offset": 0}
    return manifest


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: {**manifest, "schema": files.SCHEMA + 1},
        lambda manifest: {**manifest, "schema": "1"},
        lambda manifest: {**manifest, "kind": "program"},
        lambda manifest: {**manifest, "name": "x; import os"},
        lambda manifest: {**manifest, "tensors": []},
        lambda manifest: {**manifest, "objects": {"@0": {"pickle": "x"}}, "classes": 3},
        lambda manifest: [],
        _cyclic,
        _of_class("subprocess.Popen"),
        _of_class("torch.relu"),
        _beyond,
    ],
)
def test_a_manifest_that_is_wrong_is_refused(change: Any, tmp_path: Path) -> None:
    _, path = saved("tied", tmp_path)
    with pytest.raises(BundleError):
        clew.load(rewritten(path, manifest=change))


def test_files_that_are_no_bundles(tmp_path: Path) -> None:
    _, path = saved("tied", tmp_path)
    with pytest.raises(BundleError, match="no file"):
        clew.load(tmp_path / "nothing.clew")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(BundleError):
        clew.load(tmp_path / "text")
    whole = path.read_bytes()
    for part in (0, 10, len(whole) // 2, len(whole) - 5):
        (tmp_path / "cut").write_bytes(whole[:part])
        with pytest.raises(BundleError):
            clew.load(tmp_path / "cut")
    with pytest.raises(BundleError, match="no bundle"):
        clew.load(rewritten(path, files={"../outside": b"x"}))
    assert not (tmp_path.parent / "outside").exists()


def test_what_unpacks_to_too_much_is_not_unpacked(tmp_path: Path, monkeypatch: Any) -> None:
    _, path = saved("tied", tmp_path)
    target = tmp_path / "bomb.clew"
    with zipfile.ZipFile(path) as file, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as bomb:
        for name in file.namelist():
            bomb.writestr(name, b" " * (3 << 20) if name == "manifest.json" else file.read(name))
    monkeypatch.setitem(files._LIMITS, "manifest.json", 1 << 20)
    with pytest.raises(BundleError, match="larger than 1 MB"):
        clew.load(target)


def test_weights_with_an_impossible_header(tmp_path: Path) -> None:
    _, path = saved("tied", tmp_path)
    for header in (
        b'{"a": {"dtype": "F32", "shape": [1000000], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [900, 904]}}',
        b'{"a": {"dtype": "X", "shape": [1], "data_offsets": [0, 4]}}',
        b"[]",
        b"[" * 100_000,
    ):
        content = struct.pack("<Q", len(header)) + header + bytes(4)
        with pytest.raises(BundleError):
            clew.load(rewritten(path, files={"weights.safetensors": content}))
    with pytest.raises(BundleError):
        clew.load(rewritten(path, files={"weights.safetensors": struct.pack("<Q", 1 << 62)}))


def mutated(content: bytes, seed: int) -> bytes:
    """The content with a few bytes set, taken out or repeated."""
    draw = random.Random(seed)
    found = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        place = draw.randrange(len(found) or 1)
        way = draw.randrange(3)
        if way == 0:
            found[place : place + 1] = bytes([draw.randrange(256)])
        elif way == 1:
            del found[place : place + draw.randint(1, 9)]
        else:
            found[place:place] = found[place : place + draw.randint(1, 30)]
    return bytes(found)


_WATCHED = ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "pickle.find_class", "socket.connect")
_seen: list[str] = []
_hooked = False


def _watch() -> None:
    """Note what a process does that loading must never do; hooks of audits stay for ever."""
    global _hooked  # noqa: PLW0603
    if not _hooked:
        sys.addaudithook(lambda event, args: _seen.append(event) if event in _WATCHED else None)
        _hooked = True


def check_mutations(path: Path, seeds: range) -> int:
    """Load mutations of a bundle, of its parts, and of its text alone; how many were refused."""
    with zipfile.ZipFile(path) as file:
        held = {name: file.read(name) for name in file.namelist()}
    _watch()
    refused = 0
    for seed in seeds:
        if seed % 5 == 4:
            refused += not _parses(mutated(held["graph.txt"], seed))
            continue
        part = ("graph.txt", "manifest.json", "weights.safetensors", "")[seed % 5]
        if part:
            target = rewritten(path, files={part: mutated(held[part], seed)})
        else:
            target = path.with_name("mutated.clew")
            target.write_bytes(mutated(path.read_bytes(), seed))
        _seen.clear()
        try:
            clew.load(target)
        except ClewError:
            refused += 1
        assert not _seen, (seed, _seen)
    return refused


def _parses(text: bytes) -> bool:
    """Whether a text is that of a graph; nothing but an error of Clew's says that it is none."""
    _seen.clear()
    try:
        clew.parse(text.decode("utf-8", "replace"))
    except ClewError:
        return False
    finally:
        assert not _seen, text
    return True


def test_damaged_files_raise_nothing_but_errors_of_clew(tmp_path: Path) -> None:
    _, path = saved("tied", tmp_path)
    assert check_mutations(path, range(200)) > 50


def test_the_first_number_is_aligned(tmp_path: Path) -> None:
    _, path = saved("tied", tmp_path)
    with zipfile.ZipFile(path) as file:
        start, length = files._place_of_weights(file, path)
        content = file.read("weights.safetensors")
    assert path.read_bytes()[start : start + length] == content
    assert (start + 8 + struct.unpack_from("<Q", content)[0]) % 64 == 0


def test_weights_of_odd_sizes_are_aligned_too(tmp_path: Path) -> None:
    model, x = nn.Sequential(nn.Linear(16, 5), nn.Linear(5, 32), nn.Linear(32, 16)), torch.randn(3, 16)
    clew.save(clew.trace(model, (x,)), tmp_path / "model.clew")
    loaded = clew.load(tmp_path / "model.clew")
    assert {one.data_ptr() % 64 for one in loaded.parameters()} == {0}
    assert torch.equal(loaded(x), model(x))
    with zipfile.ZipFile(tmp_path / "model.clew") as file:
        stored = safetensors.torch.load(file.read("weights.safetensors"))
    assert list(stored) and all(torch.equal(stored[name], one) for name, one in model.state_dict().items())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.complex64, torch.float8_e4m3fn, torch.bool, torch.int16])
def test_numbers_of_every_kind_come_back(dtype: torch.dtype, tmp_path: Path) -> None:
    arrays = {name: torch.ones(shape).to(dtype) for name, shape in {"row": (3,), "none": (0, 2), "one": ()}.items()}
    weights.write(arrays, tmp_path / "weights.safetensors")
    stored = safetensors.torch.load_file(tmp_path / "weights.safetensors")
    for name, one in arrays.items():
        assert stored[name].dtype is dtype and stored[name].shape == one.shape
        assert torch.equal(stored[name].reshape(-1).view(torch.uint8), one.reshape(-1).view(torch.uint8))


def test_saving_is_all_or_nothing(tmp_path: Path) -> None:
    _, path = saved("tied", tmp_path)
    before = path.read_bytes()
    module = clew.trace(nn.Linear(2, 2), (torch.ones(2),))
    module.register_forward_hook(lambda *args: None)
    with pytest.raises(BundleError, match="hooks"):
        clew.save(module, path)
    assert path.read_bytes() == before and sorted(one.name for one in tmp_path.iterdir()) == ["model.clew"]
    with pytest.raises(BundleError, match="no capture of its program"):
        clew.save(clew.trace(nn.Linear(2, 2)), path)
    with pytest.raises(BundleError, match="cannot be saved"):
        clew.save(torch.relu, path)
    assert path.read_bytes() == before
