# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Properties of all heads of clip models."""
import pytest
import torch
from mmaction.structures import ActionDataSample

from mmvidattn.heads import (
    LAPSHead,
    LinearVideoTransformerHead,
    ViViTHead,
    XViTHead,
)

# Options of a small head, and the shape of its features.
HEADS = {
    LAPSHead: ({}, (8, 3)),
    LinearVideoTransformerHead: (dict(hidden_dims=6), (8, 3, 2, 2)),
    ViViTHead: ({}, (8, )),
    XViTHead: (dict(num_heads=2, hidden_dims=6), (8, 3)),
}
ALL = pytest.mark.parametrize('kind', HEADS, ids=lambda x: x.__name__)


def build(kind, **kwargs):
    torch.manual_seed(0)
    options, shape = HEADS[kind]
    head = kind(5, 8, init_std=0.5, **options, **kwargs)
    head.init_weights()
    return head.eval(), torch.randn(6, *shape)


@ALL
@pytest.mark.parametrize('options, average', [
    ({}, lambda y: y.mean(1)),
    (dict(average_clips='prob'), lambda y: y.softmax(-1).mean(1)),
    (dict(average_clips='max'), lambda y: y.amax(1))],
    ids=['mean', 'prob', 'max'])
def test_averages_views(kind, options, average):
    head, x = build(kind, **options)
    samples = head.predict(x, [ActionDataSample(), ActionDataSample()])
    for sample, score in zip(samples, average(head(x).view(2, 3, 5))):
        assert torch.allclose(sample.pred_score, score)
        assert sample.pred_label == score.argmax()


@ALL
def test_dropout_is_only_active_in_training(kind):
    head, x = build(kind, dropout_ratio=0.5)
    assert torch.equal(head(x), head(x))
    head.train()
    assert not torch.equal(head(x), head(x))


@pytest.mark.parametrize('kind', [
    LAPSHead, LinearVideoTransformerHead, XViTHead], ids=lambda x: x.__name__)
def test_initialization_has_documented_std(kind):
    head = kind(400, 384)
    head.init_weights()
    for name, p in head.named_parameters():
        if name.endswith('bias'):
            assert not p.any(), name
        elif 'norm' not in name:
            assert p.std().item() == pytest.approx(0.02, rel=0.1), name
