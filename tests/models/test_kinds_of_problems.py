"""Classifiers that tell from their first labels what kind of problem they have, as those of transformers do."""

from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

import clew


class Classifier(nn.Module):
    """Keeps the kind of problem in its settings; its second call asks for dtypes in another line than its first."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(problem=None)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        logits = self.head(x)
        if self.config.problem is None:
            self.config.problem = "one" if labels.dtype == torch.long else "many"
        if self.config.problem == "one":
            return nn.functional.cross_entropy(logits, labels)
        assert labels.is_floating_point() and labels.dtype == logits.dtype
        return nn.functional.binary_cross_entropy_with_logits(logits, labels)


@pytest.mark.parametrize("many", [False, True])
def test_one_capture_for_all_calls(many: bool) -> None:
    torch.manual_seed(0)
    module, twin = Classifier(), Classifier()
    twin.load_state_dict(module.state_dict())
    captured = clew.trace(twin, args=(torch.ones(2, 4), torch.rand(2, 3) if many else torch.tensor([0, 2])))
    assert twin.config.problem is None
    for rows in (2, 1, 5):
        x, labels = torch.randn(rows, 4), torch.rand(rows, 3) if many else torch.arange(rows) % 3
        assert torch.equal(captured(x, labels), module(x, labels))
        assert captured.config.problem == module.config.problem
