"""Dropout removal: layers, functions and chances of attention go in evaluation mode, and training is refused."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import clew
from tests.passes.programs import passed, targets

X = torch.rand(2, 4, 4)


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.linear = nn.Dropout(0.5), nn.Linear(4, 4)

    def forward(self, x):
        x = F.dropout(self.layer(x), 0.3, self.training)
        x = F.scaled_dot_product_attention(x, x, x, dropout_p=0.1 if self.training else 0.0)
        if x.sum() > 0:
            x = self.layer(self.linear(x))
        return torch.dropout(x, 0.5, False)


def test_all_kinds():
    captured = passed(clew.remove_dropout, Dropping().eval(), X)
    assert "dropout" not in captured.code.replace("dropout_p", "") and "layer" not in captured.code
    assert "dropout_p=0.0" in captured.code
    assert {str(one) for one in captured.guards if one.kind == "mode"} == {
        "not self.layer.training",
        "not self.training",
    }
    captured.train()
    with pytest.raises(clew.GuardError, match=r"not self\.(layer\.)?training"):
        captured(X)


def test_golden_symbolic():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.AlphaDropout(0.5), nn.Dropout2d(), nn.ReLU()).eval()
    captured = passed(clew.remove_dropout, model, X, symbolic=True)
    assert targets(captured) == ["0", "4"]


def test_training_keeps_it():
    assert targets(clew.remove_dropout(clew.symbolic_trace(nn.Sequential(nn.Dropout(0.5))))) == ["0"]


@pytest.mark.parametrize("kind", [nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout])
@pytest.mark.parametrize("inplace", [False, True])
def test_dropout_that_is_off_gives_its_input_itself(kind, inplace):
    layer = kind(0.5, inplace=inplace).eval()
    assert layer(X) is X or layer(X).data_ptr() == X.data_ptr()
    assert torch.equal(layer(X), X)


def test_a_hooked_layer_stays():
    model = nn.Sequential(nn.Dropout(0.5)).eval()
    model[0].register_forward_hook(lambda module, args, result: result * 2)
    assert targets(clew.remove_dropout(clew.symbolic_trace(model))) == ["0"]
