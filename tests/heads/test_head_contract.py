# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Contract of all heads that are registered in MODELS.

A new head needs no test code if it takes features [B, C, T, H, W]; other
shapes and arguments are in FEATURES and OPTIONS.
"""
import pytest
import torch
import torch.nn.functional as F
from mmaction.structures import ActionDataSample
from registered import arguments_for, classes_of

from mmvidattn import heads
from mmvidattn.heads.base import VideoHead

K, C = 5, 8
SMALL = dict(num_classes=K, in_channels=C, hidden_dims=6)
OPTIONS = {
    heads.AttentiveHead: dict(num_heads=2),
    heads.VerbNounHead: dict(num_nouns=3, num_verbs=2),
    heads.XViTHead: dict(num_heads=2)}
# Shapes of a clip's features without the batch.
FEATURES = {heads.LAPSHead: (C, 3), heads.ViViTHead: (C, ),
            heads.VerbNounHead: (C, ), heads.XViTHead: (C, 3)}
HEADS = classes_of('heads')
# Heads of online networks take features [B, T, C] of streams.
CLIP_HEADS = [x for x in HEADS if not issubclass(x, heads.OnlineActionHead)]
EACH = pytest.mark.parametrize('kind', CLIP_HEADS, ids=lambda x: x.__name__)
EACH_VIDEO_HEAD = pytest.mark.parametrize(
    'kind', [x for x in CLIP_HEADS if issubclass(x, VideoHead)],
    ids=lambda x: x.__name__)


def build(kind, seed=0, **options):
    """Build a head and features of 6 clips."""
    torch.manual_seed(seed)
    if issubclass(kind, VideoHead):
        options.update(init_std=.5, in_channels=C)
    head = kind(**{**arguments_for(kind, **SMALL), **OPTIONS.get(kind, {}),
                   **options})
    head.init_weights()
    return head.eval(), torch.randn(6, *FEATURES.get(kind, (C, 3, 2, 2)))


@EACH
def test_scores_all_classes_and_every_parameter_learns(kind):
    head, x = build(kind)
    y = head.train()(x)
    assert y.shape == (6, K) and y.isfinite().all()
    (y * torch.randn_like(y)).sum().backward()
    for name, p in head.named_parameters():
        if not name.startswith('token_'):
            assert p.grad.isfinite().all() and p.grad.abs().max() > 0, name


@EACH
def test_clips_are_independent_and_a_checkpoint_restores_them(kind):
    head, x = build(kind)
    other, _ = build(kind, seed=1)
    y = head(x)
    assert torch.allclose(torch.cat([head(one[None]) for one in x]), y,
                          atol=1e-5)
    assert not torch.allclose(other(x), y)
    other.load_state_dict(head.state_dict(), strict=True)
    assert torch.equal(other(x), y)


@EACH
def test_dropout_is_only_active_in_training(kind):
    head, x = build(kind, dropout_ratio=0.5)
    assert torch.equal(head(x), head(x))
    head.train()
    assert not torch.equal(head(x), head(x))


@EACH_VIDEO_HEAD
@pytest.mark.parametrize('options, average', [
    ({}, lambda y: y.mean(1)),
    (dict(average_clips='prob'), lambda y: y.softmax(-1).mean(1)),
    (dict(average_clips='max'), lambda y: y.amax(1))],
    ids=['mean', 'prob', 'max'])
def test_averages_views(kind, options, average):
    head, x = build(kind, **options)
    samples = head.predict(x, [ActionDataSample(), ActionDataSample()])
    want = average(head(x).view(2, 3, K))
    if kind is heads.VerbNounHead and options.get('average_clips') == 'prob':
        # Nouns and verbs are separate decisions.
        want = torch.cat([part.softmax(-1).mean(1) for part in
                          head(x).view(2, 3, K).split([3, 2], -1)], -1)
    for sample, score in zip(samples, want):
        assert torch.allclose(sample.pred_score, score)
        assert sample.pred_label == score.argmax()


@EACH_VIDEO_HEAD
def test_loss_is_smoothed_cross_entropy(kind):
    head, x = build(kind, label_smooth_eps=0.1)
    if kind is heads.VerbNounHead:
        pytest.skip('its own test has the loss of two decisions')
    labels = torch.tensor([1, 4, 0, 2, 3, 1])
    samples = [ActionDataSample().set_gt_label(label) for label in labels]
    loss = head.loss(x, samples)['loss_cls']
    torch.testing.assert_close(
        loss, F.cross_entropy(head(x), labels, label_smoothing=0.1))


@pytest.mark.parametrize('kind', [
    x for x in CLIP_HEADS
    if issubclass(x, VideoHead) and not issubclass(x, heads.ViViTHead)],
    ids=lambda x: x.__name__)
def test_initialization_has_documented_std(kind):
    head = kind(400, 384)
    head.init_weights()
    for name, p in head.named_parameters():
        if name.endswith('bias'):
            assert not p.any(), name
        elif kind is heads.AttentiveHead and name.endswith(
                ('proj.weight', 'fc2.weight')):
            # The last layers of each branch are rescaled.
            assert p.std() < 0.018, name
        elif 'norm' not in name:
            assert p.std().item() == pytest.approx(0.02, rel=0.1), name


@pytest.mark.parametrize('kind', [
    x for x in HEADS if issubclass(x, heads.OnlineActionHead)],
    ids=lambda x: x.__name__)
def test_online_heads_score_each_step(kind):
    torch.manual_seed(0)
    head = kind(num_classes=K, in_channels=C, num_verbs=3, dropout_ratio=.5)
    x = torch.randn(2, 4, C)
    y = head.eval()(x)
    assert {name: tuple(z.shape) for name, z in y.items()} == dict(
        action=(2, 4, K), verb=(2, 4, 3))
    for t in range(4):
        torch.testing.assert_close(head(x[:, t])['action'], y['action'][:, t])
    scores = head.probabilities(y)
    torch.testing.assert_close(scores['verb'], y['verb'].softmax(-1))
    assert not torch.equal(head.train()(x)['action'], head(x)['action'])
