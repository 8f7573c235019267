# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Backbones equal independent transcriptions of the papers, in float64."""
import pytest
import torch
from backbones.families import build, clips_for
from helpers import relative
from torch import nn

from mmvidattn.backbones import LinearVideoTransformer, ViViT
from tools.benchmark.references import linear_ff
from tools.benchmark.references.vivit import TranscribedViViT


def linear_ff_of(model):
    return linear_ff.transcribe(
        model, num_frames=4, embed_dims=32, num_layers=2, num_heads=2,
        softmax=model.blocks[0].spatial_attn.fixation is None)


def vivit_of(model):
    network = TranscribedViViT(8, 32, 2, 32, 4).double()
    network.load_state_dict(model.state_dict())
    return network


# The denominators of linear attention differ by 1e-6.
CASES = {
    'linear_ff': (LinearVideoTransformer, {}, linear_ff_of, 1e-6),
    'linear_ff-softmax': (LinearVideoTransformer, dict(
        attention=dict(type='SoftmaxAttention'), fixation=None),
        linear_ff_of, 1e-6),
    'vivit': (ViViT, dict(img_size=32), vivit_of, 1e-10),
}


@pytest.mark.parametrize('backbone, options, transcribe, tolerance',
                         CASES.values(), ids=CASES)
def test_equals_its_transcription(backbone, options, transcribe, tolerance):
    model = build(backbone, **options).double().eval()
    for p in model.parameters():
        if p.dim() == 1 or backbone is LinearVideoTransformer:
            nn.init.normal_(p, std=0.3)
    reference = transcribe(model).double().eval()
    clips = clips_for(model, **options).double()
    with torch.no_grad():
        assert relative(model(clips), reference(clips)) < tolerance
