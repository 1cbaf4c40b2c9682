"""Language models of transformers: captured with a padded mask they run with a full one, and the other way round.

What follows the library's question whether the mask can be left out stands in the graph once.
"""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch

import clew
from clew.ir.arguments import all_nodes
from tests.capture.control_flow.alignment_checks import checked_alignments
from tests.speed.counts import calls_in

transformers = pytest.importorskip("transformers")

SMALL = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
GPT2 = {"vocab_size": 50, "n_embd": 16, "n_layer": 2, "n_head": 2, "bos_token_id": 1, "eos_token_id": 1}
DISTILBERT = {"vocab_size": 50, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}
T5 = {"vocab_size": 50, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
MODELS = {
    "BertModel": ("BertConfig", SMALL),
    "RobertaModel": ("RobertaConfig", SMALL),
    "DistilBertModel": ("DistilBertConfig", DISTILBERT),
    "T5EncoderModel": ("T5Config", T5),
    "GPT2Model": ("GPT2Config", GPT2),
    "LlamaModel": ("LlamaConfig", SMALL | {"num_key_value_heads": 2}),
}
GROUPED = SMALL | {"num_attention_heads": 4, "num_key_value_heads": 2}
GROUPED_MODELS = {f"{name}Model": (f"{name}Config", GROUPED) for name in ("Llama", "Mistral", "Qwen2")}


def _model(name: str, models: dict[str, Any] = MODELS) -> Any:
    config, options = models[name]
    torch.manual_seed(0)
    return getattr(transformers, name)(getattr(transformers, config)(**options)).eval()


def _inputs(name: str, mask: str, rows: int = 2, length: int = 7) -> dict[str, Any]:
    masks = torch.ones(rows, length, dtype=torch.long)
    if mask == "right":
        masks[-1, 4:] = 0
    elif mask == "left":
        masks[0, :2] = 0
    more = {"use_cache": False} if name in ("GPT2Model", *GROUPED_MODELS) else {}
    return {"input_ids": torch.randint(1, 50, (rows, length)), "attention_mask": masks, **more}


@pytest.mark.parametrize("example", ["full", "right"])
@pytest.mark.parametrize("name", MODELS)
def test_masks_with_and_without_padding(name: str, example: str) -> None:
    model = _model(name)
    with checked_alignments() as alignments:
        captured = clew.trace(model, kwargs=_inputs(name, example))
    assert len(alignments) <= 2  # of what tools skip, and of the mask
    for mask in ("full", "right", "left"):
        inputs = _inputs(name, mask)
        with torch.no_grad():
            assert torch.equal(captured(**inputs).last_hidden_state, model(**inputs).last_hidden_state)
    guarded = clew.trace(model, kwargs=_inputs(name, "right"), control_flow="guard")
    assert len(captured.graph.nodes) <= len(guarded.graph.nodes) + 27
    inside = len(list(all_nodes(captured.graph))) - len(captured.graph.nodes)
    assert inside <= (100 if name != "T5EncoderModel" else 200)  # the mask is built once; T5 asks for dtypes besides


@pytest.mark.parametrize("example", ["full", "right"])
@pytest.mark.parametrize("name", GROUPED_MODELS)
def test_layers_that_differ_by_the_mask(name: str, example: str) -> None:
    model = _model(name, GROUPED_MODELS)  # without a mask, grouped heads are left to the attention itself
    with checked_alignments() as alignments:
        captured = clew.trace(model, kwargs=_inputs(name, example))
    assert len(alignments) <= 2  # of what tools skip, and of the mask
    assert captured.code.count("if answer") <= 1 + 2  # for the mask, and for what differs in each of the two layers
    assert captured.code.count("batch_arange = ") == 1  # the mask is built once, for tools and for plain calls
    assert len(list(all_nodes(captured.graph))) <= 340
    for mask, length in [("full", 7), ("right", 7), ("left", 7), ("full", 5), ("left", 9)]:
        inputs = _inputs(name, mask, rows=3, length=length)
        with torch.no_grad():
            assert torch.equal(captured(**inputs).last_hidden_state, model(**inputs).last_hidden_state)


OPT = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 32}
OTHER_MODELS = {
    "GPTNeoXModel": ("GPTNeoXConfig", SMALL),  # rotates as much of the heads as a table of the module is wide
    "OPTModel": ("OPTConfig", OPT | {"word_embed_proj_dim": 16}),  # leaves layers out by chance in training
}


@pytest.mark.parametrize("example", ["full", "right"])
@pytest.mark.parametrize("name", OTHER_MODELS)
def test_masks_among_other_questions(name: str, example: str) -> None:
    model = _model(name, OTHER_MODELS)
    captured = clew.trace(model, kwargs=_inputs(name, example))
    for mask in ("full", "right", "left"):
        inputs = _inputs(name, mask)
        with torch.no_grad():
            assert torch.equal(captured(**inputs).last_hidden_state, model(**inputs).last_hidden_state)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_positions_are_packed_whatever_the_batch(rows: int) -> None:
    model = _model("GPT2Model")
    inputs = {"input_ids": torch.randint(1, 50, (rows, 7)), "use_cache": False}
    captured = clew.trace(model, kwargs=inputs)
    assert not [one for one in captured.guards if one.kind == "computed"]
    for other in (1, 2, 4):
        inputs = {"input_ids": torch.randint(1, 50, (other, 6)), "use_cache": False}
        with torch.no_grad():
            assert torch.equal(captured(**inputs).last_hidden_state, model(**inputs).last_hidden_state)


def test_what_masks_hold_cannot_be_asked_without_data() -> None:
    model = _model("LlamaModel")
    captured = clew.trace(model, kwargs=_inputs("LlamaModel", "right"))
    inputs = {name: value for name, value in _inputs("LlamaModel", "full").items() if name != "use_cache"}
    inputs = {name: value.to("meta") for name, value in inputs.items()}
    for program in (model.to("meta"), captured.to("meta")):
        with pytest.raises(RuntimeError, match="meta tensors"):
            program(**inputs, use_cache=False)


@pytest.mark.parametrize("name", ["BertModel", "LlamaModel"])
def test_captures_take_a_few_runs(name: str) -> None:
    model, inputs = _model(name), _inputs(name, "right")
    calls = {}
    for how in ("capture", "guard"):
        clew.trace(model, kwargs=inputs, control_flow=how)  # what is read of the program's code is kept
        calls[how] = calls_in(functools.partial(clew.trace, model, kwargs=inputs, control_flow=how))
    assert calls["capture"] < 10 * calls["guard"], calls


def test_without_a_mask_nothing_is_asked() -> None:
    configuration = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(0)
    model = transformers.ViTModel(transformers.ViTConfig(**configuration, image_size=16, patch_size=8)).eval()
    pixels = torch.randn(2, 3, 16, 16)
    with checked_alignments() as alignments:
        captured = clew.trace(model, kwargs={"pixel_values": pixels})
    assert not alignments
    assert torch.equal(captured(pixel_values=pixels).last_hidden_state, model(pixel_values=pixels).last_hidden_state)


def test_hooks_set_up_at_the_first_call() -> None:
    model, inputs = _model("BertModel"), _inputs("BertModel", "right")
    captured = clew.trace(model, kwargs=inputs | {"output_hidden_states": True})
    for mask in ("right", "full"):
        inputs = _inputs("BertModel", mask) | {"output_hidden_states": True}
        for found, wanted in zip(captured(**inputs).hidden_states, model(**inputs).hidden_states, strict=True):
            assert torch.equal(found, wanted)


def test_kind_of_problem_told_from_the_first_labels() -> None:
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(transformers.BertConfig(**SMALL)).eval()
    labels = torch.tensor([0, 1])
    captured = clew.trace(model, kwargs=_inputs("BertModel", "right") | {"labels": labels})
    for mask in ("right", "full", "left"):
        inputs = _inputs("BertModel", mask) | {"labels": labels}
        assert torch.equal(captured(**inputs).loss, model(**inputs).loss)
