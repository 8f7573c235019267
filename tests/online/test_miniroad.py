# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""MiniROAD against a naive reference."""
import pytest
import torch
from helpers import relative
from online.networks import random_detector, video_of

from mmvidattn.online import dense_features, make_stream_step


@pytest.fixture
def model():
    return random_detector('miniroad')


def linear(weights, name, x):
    return x @ weights[f'{name}.weight'].T + weights[f'{name}.bias']


def layer_norm(weights, name, x):
    x = x - x.mean(-1, keepdim=True)
    x = x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return x * weights[f'{name}.weight'] + weights[f'{name}.bias']


def naive_rows(weights, video):
    x = torch.cat([video['rgb'], video['flow']], dim=1)
    x = linear(weights, 'projection.projection', x)
    return layer_norm(weights, 'projection.norm', x).clamp(min=0)


def naive_miniroad(weights, rows):
    """Compute one frame, layer and gate at a time."""
    for layer in range(2):
        h, outputs = torch.zeros(8, dtype=rows.dtype), []
        w, u, b, c = (weights[f'gru.{name}_l{layer}'].chunk(3) for name in (
            'weight_ih', 'weight_hh', 'bias_ih', 'bias_hh'))
        for x in rows:
            r = torch.sigmoid(w[0] @ x + b[0] + u[0] @ h + c[0])
            z = torch.sigmoid(w[1] @ x + b[1] + u[1] @ h + c[1])
            n = torch.tanh(w[2] @ x + b[2] + r * (u[2] @ h + c[2]))
            h = (1 - z) * n + z * h
            outputs.append(h)
        rows = torch.stack(outputs)
    return rows.clamp(min=0)


@torch.no_grad()
def test_matches_naive(model):
    weights = dict(model.backbone.named_parameters())
    # Longer than a window.
    video = video_of(model, 14)
    want = naive_miniroad(weights, naive_rows(weights, video))
    got = model.backbone({name: x[None] for name, x in video.items()})[0]
    assert relative(got, want) < 1e-12


def test_rejects_inputs_and_options(model):
    L = model.backbone.work_memory_length
    work = torch.arange(20 - L + 1)[:, None] + torch.arange(L)
    with pytest.raises(ValueError, match='consecutive windows'):
        dense_features(model.backbone, video_of(model, 20),
                       work.new_zeros(8, 0), work[::2])
    with pytest.raises(ValueError, match=r"inputs\['flow'\] must be"):
        model(dict(rgb=torch.zeros(1, 3, 6), flow=torch.zeros(1, 2, 4)))
    with pytest.raises(ValueError, match=r"inputs\['rgb'\] must be .*nothing"):
        model(dict(flow=torch.zeros(1, 2, 4)))
    model.backbone = torch.nn.Linear(1, 1)
    with pytest.raises(ValueError, match='backbone .* one of .* got Linear'):
        make_stream_step(model)
