"""The fixture ``fx``: the flat namespace under test, once torch.fx's and once clew.fx's."""

import pytest
import torch

from .facades import load


@pytest.fixture(params=["torch", "clew"])
def fx(request):
    return load(request.param)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
