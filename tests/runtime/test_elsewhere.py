"""Saved captures run in a fresh process: without the user's source, and without the library's model classes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import clew
from clew.errors import GraphError
from clew.ir.pickling import Missing, Record, dumps, loads, record_class

ROOT = Path(__file__).parents[2]
SCRIPT = '''
import collections, dataclasses, pickle, sys, torch, clew

SCALE = 2.0
CONFIG = {"shift": 3.0, "other": 1.0}
Pair = collections.namedtuple("Pair", ["first", "second"])

@dataclasses.dataclass
class Result:
    value: torch.Tensor
    count: int = 3

class Activation(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * SCALE

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.activation = Activation()
        self.unused = Activation()
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x):
        hidden = self.activation(self.layer(x) + self.shift) * CONFIG["shift"]
        return Result(hidden), Pair(hidden, hidden + 1)

folder = sys.argv[1]
net, x = Net(), torch.randn(2, 3)
captured = clew.trace(net, (x,))
pickle.dump(captured, open(folder + "/captured.pkl", "wb"))
torch.save(captured, folder + "/captured.pt")
captured.to_folder(folder + "/written", "Written")
torch.save((x, net(x)[0].value), folder + "/expected.pt")
'''
LOADING = '''
import pickle, sys, torch, clew

sys.path.insert(0, sys.argv[1])
import written

folder = sys.argv[1]
x, expected = torch.load(folder + "/expected.pt")
for captured in (
    pickle.load(open(folder + "/captured.pkl", "rb")),
    torch.load(folder + "/captured.pt", weights_only=False),
    written.Written(),
):
    result, pair = captured(x)
    assert torch.equal(result.value, expected) and result.count == 3 and result["count"] == 3
    assert torch.equal(pair.first, expected) and pair._fields == ("first", "second") and len(pair) == 2
    assert sorted(captured.state_dict()) == ["layer.bias", "layer.weight", "shift"]
    again = pickle.loads(pickle.dumps(captured)) if hasattr(captured, "graph") else captured
    assert torch.equal(again(x)[0].value, expected)
print("equal")
'''
MODELS = '''
import pickle, sys, torch, transformers, clew

folder, ids = sys.argv[1], torch.arange(6).view(2, 3)
sizes = dict(vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
image = {key: value for key, value in sizes.items() if key != "vocab_size"}
models = {
    "bert": transformers.BertModel(transformers.BertConfig(**sizes)),
    "gpt2": transformers.GPT2Model(transformers.GPT2Config(vocab_size=30, n_embd=16, n_layer=1, n_head=2)),
    "llama": transformers.LlamaModel(transformers.LlamaConfig(**sizes, num_key_value_heads=2)),
    "t5": transformers.T5Model(
        transformers.T5Config(vocab_size=30, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    ),
    "vit": transformers.ViTModel(transformers.ViTConfig(**image, image_size=16, patch_size=8)),
}
for name, model in models.items():
    given = {"pixel_values": torch.rand(2, 3, 16, 16)} if name == "vit" else {"input_ids": ids}
    given |= {"decoder_input_ids": ids} if name == "t5" else {}
    captured = clew.trace(model.eval(), kwargs=given)
    pickle.dump(captured, open(f"{folder}/{name}.pkl", "wb"))
    torch.save(captured, f"{folder}/{name}.pt")
    captured.to_folder(f"{folder}/{name}_written", "Written")
    torch.save((given, model(**given)[0]), f"{folder}/{name}.expected")
'''
LOADING_MODELS = '''
import importlib, pickle, sys, torch, clew

folder = sys.argv[1]
sys.path.insert(0, folder)
if sys.argv[2] == "without":
    class Blocking:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "transformers":
                raise ModuleNotFoundError(name)
    sys.meta_path.insert(0, Blocking())
if sys.argv[2] == "in use":
    import transformers
    sizes = dict(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    transformers.BertModel(transformers.BertConfig(**sizes))(input_ids=torch.arange(4)[None])
    transformers.AttentionInterface.register("another", print)
for name in ("bert", "gpt2", "llama", "t5", "vit"):
    given, expected = torch.load(f"{folder}/{name}.expected")
    for captured in (
        pickle.load(open(f"{folder}/{name}.pkl", "rb")),
        torch.load(f"{folder}/{name}.pt", weights_only=False),
        importlib.import_module(f"{name}_written").Written(),
    ):
        result = captured(**given)
        assert torch.equal(result[0], expected) and torch.equal(result.last_hidden_state, expected), name
        assert torch.equal(result["last_hidden_state"], expected), name
if sys.argv[2] != "in use":
    assert not [module for module in sys.modules if module.startswith("transformers.models.bert.modeling")]
print("equal")
'''


def run(tmp_path: Path, script: str, *args: str, cwd: Path | None = None) -> str:
    """Run a script that lies in a folder of its own."""
    home = tmp_path / f"home{len(list(tmp_path.iterdir()))}"
    home.mkdir()
    (home / "script.py").write_text(script, encoding="utf-8")
    command = [sys.executable, str(home / "script.py"), str(tmp_path), *args]
    environment = {"PYTHONPATH": str(ROOT / "src"), "PATH": "", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    ran = subprocess.run(command, cwd=home, capture_output=True, text=True, env=environment, timeout=600, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_module_of_a_script_runs_without_the_script(tmp_path: Path) -> None:
    run(tmp_path, SCRIPT)
    assert run(tmp_path, LOADING) == "equal\n"


@pytest.fixture(scope="module")
def saved_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("models")
    run(folder, MODELS)
    return folder


@pytest.mark.parametrize("library", ["with", "without", "in use"])
def test_models_of_a_library_run_elsewhere(saved_models: Path, library: str) -> None:
    assert run(saved_models, LOADING_MODELS, library).endswith("equal\n")


def helper(x: Any) -> Any:
    return x + 1


def other_helper(x: Any) -> Any:
    return x + 2


def test_functions_that_are_missing_are_named_in_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = clew.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(other_helper, (graph.call_function(helper, (x,)),)))
    saved = pickle.dumps(clew.GraphModule(torch.nn.Module(), graph))
    assert pickle.loads(saved)(1) == 4
    monkeypatch.delattr(sys.modules[__name__], "helper")
    monkeypatch.delattr(sys.modules[__name__], "other_helper")
    with pytest.raises(GraphError, match="helper, .*other_helper"):
        pickle.loads(saved)


class Held:
    def __init__(self) -> None:
        self.tensor = torch.ones(2)
        self.name = "held"


def test_values_of_missing_classes_are_records(monkeypatch: pytest.MonkeyPatch) -> None:
    data, beside = dumps([Held(), helper])
    assert len(beside) == 1 and beside[0].shape == (2,)
    assert type(loads(data, beside)[0]) is Held
    monkeypatch.delattr(sys.modules[__name__], "Held")
    monkeypatch.delattr(sys.modules[__name__], "helper")
    record, function = loads(data, beside)
    assert isinstance(record, Record) and record.name == "held" and record["tensor"] is beside[0]
    assert repr(record).startswith("Held(tensor=") and isinstance(function, Missing)
    with pytest.raises(GraphError, match="helper"):
        function(1)


def test_records_of_tuples_and_dicts() -> None:
    pair = record_class("gone", "Pair", "tuple", ("first", "second"))(1, 2)
    assert pair == (1, 2) and pair.second == 2 and type(pair).__module__ == "gone"
    made = record_class("gone", "Output", "mapping", ("a", "b"))()
    made["a"] = 5
    assert made[0] == 5 and made["a"] == 5 and made.to_tuple() == (5,)


def test_records_can_be_pickled() -> None:
    made = record_class("gone", "Output", "mapping", ("a",))(a=5)
    twin = pickle.loads(pickle.dumps(made))
    assert type(twin) is type(made) and twin == made and twin[0] == 5
    record = record_class("gone", "Plain", "object", ("name",))("held")
    assert repr(pickle.loads(pickle.dumps(record))) == "Plain(name='held')"


@torch.jit.script
def doubled_by_script(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def calls_script(x: torch.Tensor) -> torch.Tensor:
    return doubled_by_script(x) + 1


def test_compiled_functions_are_saved_by_name() -> None:
    captured = clew.trace(calls_script, (torch.ones(2),))
    loaded = pickle.loads(pickle.dumps(captured))
    assert torch.equal(loaded(torch.full((3,), 4.0)), torch.full((3,), 9.0))
    assert [node.target for node in loaded.graph.nodes if node.op == "call_function"][0] is doubled_by_script


def test_compiled_functions_without_a_name_cannot_be_saved() -> None:
    def tripled(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    with pytest.raises(pickle.PickleError, match="ScriptFunction"):
        dumps(torch.jit.script(tripled))


def test_classes_in_notes_are_names() -> None:
    graph = clew.Graph()
    x = graph.placeholder("x")
    x.meta["nn_module_stack"] = {"held": ("held", Held), "layer": ("layer", torch.nn.Linear)}
    graph.output(x)
    (twin, _) = pickle.loads(pickle.dumps(graph)).nodes
    assert twin.meta["nn_module_stack"]["held"] == ("held", f"{__name__}.Held")
    assert twin.meta["nn_module_stack"]["layer"] == ("layer", torch.nn.Linear)
