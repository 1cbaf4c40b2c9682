"""How often a program is run for one capture: questions that cannot change the rest of it cost no further runs."""

import pytest
import torch

import clew
from clew.capture.control_flow import explore

transformers = pytest.importorskip("transformers")


def _bart(layers):
    sizes = {"d_model": 16, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "vocab_size": 50, "decoder_layers": 1}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config = transformers.BartConfig(encoder_layers=layers, **heads, **sizes)
    return transformers.BartModel(config).eval()


def _runs(monkeypatch, model):
    count, run_apart = [], explore._run_apart
    monkeypatch.setattr(explore, "_run_apart", lambda *given: (count.append(1), run_apart(*given)))
    ids = torch.randint(4, 50, (2, 5))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "decoder_input_ids": ids}
    captured = clew.trace(model, kwargs=inputs)
    monkeypatch.undo()
    return captured, inputs, len(count)


def test_a_question_about_data_that_a_dtype_lets_through_costs_no_run(monkeypatch):
    """Each layer asks ``x.dtype == torch.float16 and not torch.isfinite(x).all()``, and clamps: a branch in place."""
    _, _, runs = _runs(monkeypatch, _bart(1))
    model = _bart(3)
    captured, inputs, same = _runs(monkeypatch, model)
    assert same == runs
    assert torch.equal(captured(**inputs).last_hidden_state, model(**inputs).last_hidden_state)
    with torch.no_grad():
        model.encoder.layers[2].final_layer_norm.weight.fill_(6e4)
    expected = model.half()(**inputs).encoder_last_hidden_state
    assert expected.max() == torch.finfo(torch.float16).max - 1000
    assert torch.equal(captured.half()(**inputs).encoder_last_hidden_state, expected)
