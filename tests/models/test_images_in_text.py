"""Models that take images among their text, captured with one image: any text, any image, any number of both.

The libraries group the tokens of each row by their kinds in plain Python, and walk through the sizes of the images by
hand; a row that is made of other kinds in another order is refused.
"""

import pytest
import torch

import clew

transformers = pytest.importorskip("transformers")

TEXT = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4, "head_dim": 8,
    "num_key_value_heads": 2, "vocab_size": 120, "max_position_embeddings": 256, "pad_token_id": 0,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]},
}  # fmt: skip
VISION = {"depth": 1, "num_heads": 2, "in_channels": 3, "patch_size": 4, "spatial_merge_size": 2, "out_hidden_size": 32}
OWN = {
    "qwen2_vl": {"embed_dim": 16, "hidden_size": 32, "mlp_ratio": 2},
    "qwen2_5_vl": {"hidden_size": 16, "intermediate_size": 24, "window_size": 16, "fullatt_block_indexes": [0]},
    "glm4v": {"hidden_size": 16, "intermediate_size": 24, "image_size": 16},
}
IMAGE, START, END = 100, 102, 103


def model(kind):
    torch.manual_seed(0)
    names = {"image_token_id": IMAGE, "vision_start_token_id": START, "vision_end_token_id": END}
    names |= {"image_start_token_id": START, "image_end_token_id": END, "video_token_id": 101}
    config = transformers.AutoConfig.for_model(kind, text_config=TEXT, vision_config=VISION | OWN[kind], **names)
    made = transformers.AutoModel.from_config(config).eval()
    made(**inputs())  # which leaves in the model what all later calls find there
    return made


def inputs(batch=1, before=5, after=3, grid=(4, 4)):
    """Rows of text with one image each."""
    ids = torch.randint(1, 90, (batch, before + after + 2 + grid[0] * grid[1] // 4))
    ids[:, before], ids[:, before + 1 : -after - 1], ids[:, -after - 1] = START, IMAGE, END
    return {
        "input_ids": ids,
        "pixel_values": torch.randn(batch * grid[0] * grid[1], 3 * 2 * 4 * 4),
        "image_grid_thw": torch.tensor([[1, *grid]] * batch),
        "mm_token_type_ids": (ids == IMAGE).int(),
    }


@pytest.mark.parametrize("kind", OWN)
def test_text_images_and_batches_of_other_sizes_run(kind):
    original = model(kind)
    with torch.no_grad():
        captured = clew.trace(original, kwargs=inputs())
        for sizes in ({}, {"before": 8}, {"batch": 2}, {"batch": 3, "after": 1}, {"grid": (4, 8)}):
            given = inputs(**sizes)
            expected = original(**given).last_hidden_state
            assert torch.allclose(captured(**given).last_hidden_state, expected, atol=1e-6), sizes


def test_rows_that_are_made_otherwise_are_refused():
    original = model("qwen2_vl")
    given = inputs(after=1)
    with torch.no_grad():
        captured = clew.trace(original, kwargs=inputs())
        for name in ("input_ids", "mm_token_type_ids"):
            given[name] = given[name][:, :-2]
        original(**given)
        with pytest.raises(clew.GuardError, match="keys_of"):
            captured(**given)
