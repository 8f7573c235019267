# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope
from online.detectors import VARIANTS, detector_of
from online.torch_testra import TorchTeSTra

from mmvidattn.convert import convert

GOLDENS = 'box', 'decay', 'decay_anti', 'ek100', 'lstr'


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


@pytest.fixture
def windows():
    """Function that makes random windows for a model."""

    def make(model, batch=3, padded=4, dtype=torch.float64, seed=0):
        gen = torch.Generator().manual_seed(seed)
        model = getattr(model, 'backbone', model)
        N = model.long_memory_length
        inputs = {
            name: torch.randn(batch, N + model.work_memory_length, channels,
                              generator=gen, dtype=dtype)
            for name, channels in model.in_channels.items()
        }
        mask = torch.zeros(batch, N, dtype=torch.bool)
        mask[0, :padded] = True
        return dict(inputs, padding_mask=mask)

    return make


@pytest.fixture(scope='module', params=GOLDENS)
def case(request, golden):
    """Recorded outputs, and our model with the same weights."""
    G = golden(f'testra/golden_{request.param}.pt')
    c = G['config']
    fusion = 'compressed' if c['include_work'] else 'none'
    init_default_scope('mmaction')
    model = MODELS.build(dict(
        type='OnlineActionDetector',
        backbone=dict(
            type='TeSTra',
            in_channels=dict(rgb=c['visual_dim'], flow=c['motion_dim']),
            embed_dims=c['d_model'], num_heads=c['num_heads'],
            ffn_dims=c['dim_feedforward'],
            long_memory_length=c['long_n'], work_memory_length=c['work_n'],
            num_anticipation_tokens=c['anti_n'],
            encoder=[dict(num_queries=stage[0], num_layers=stage[1])
                     for stage in c['enc_module']],
            num_layers=c['dec_module'][1],
            decay=c['decay'], fusion=fusion,
            long_memory_pos_embed=c['long_use_pe'],
            work_memory_pos_embed=c['work_use_pe'], act=c['activation']),
        cls_head=dict(
            type='OnlineActionHead', num_classes=c['num_classes'],
            in_channels=c['d_model'], cosine=c['fc_norm'], score='logit',
            **(dict(num_verbs=98, num_nouns=301) if c['verb_noun'] else {}))))
    source = 'lstr' if request.param == 'lstr' else 'testra'
    model.load_state_dict(convert(source, G['state_dict']), strict=True)
    return G, model.eval()
