# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from online.networks import VARIANTS, detector_of
from online.torch_testra import TorchTeSTra

from mmvidattn.convert import convert


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS)
def pair(request):
    """Reference and our model with the same weights, in float64."""
    torch.manual_seed(0)
    reference = TorchTeSTra(**request.param).double().eval()
    ours = detector_of(request.param)
    ours.load_state_dict(
        convert('testra', reference.state_dict()), strict=True)
    return reference, ours.double().eval()


@pytest.fixture
def detector():
    """Function that builds our model with a variant of options."""

    def build(name='box', **kwargs):
        torch.manual_seed(0)
        return detector_of(VARIANTS[name], **kwargs)

    return build
