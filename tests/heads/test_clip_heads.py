# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Formulas and losses of the heads for clips."""
import pytest
import torch
import torch.nn.functional as F
from mmaction.models.heads import I3DHead
from mmaction.structures import ActionDataSample
from ops.attentions import naive
from torch import nn

from mmvidattn.heads import (
    LAPSHead,
    LinearVideoTransformerHead,
    TokenLabelHead,
    VerbNounHead,
    ViViTHead,
    XViTHead,
)
from mmvidattn.heads.token_label_head import classify_tokens

FEATURES = torch.randn(2, 6, 3, 4, 5,
                       generator=torch.Generator().manual_seed(0))
IDS = torch.tensor([1, 4])


def _random(head):
    torch.manual_seed(0)
    for p in head.parameters():
        nn.init.normal_(p, std=.5)
    return head.double().eval()


def _samples(labels):
    return [ActionDataSample().set_gt_label(label) for label in labels]


def _norm(x, eps=1e-5):
    x = x - x.mean(-1, keepdim=True)
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt()


def _laps(head, x):
    frames = (x if x.dim() == 3 else x.flatten(3).mean(-1)).mT
    scores = frames @ head.fc_cls.weight.T + head.fc_cls.bias
    assert torch.allclose(head.frame_scores(x), scores)
    return scores.mean(1)


def _linear_ff(head, x):
    x = x if head.pooling == 'mean' else x[:, :, -1:]
    x = _norm(x.flatten(2).mean(-1)) * head.norm.weight + head.norm.bias
    return head.fc_cls(F.gelu(head.fc_hidden(x)))


def _xvit(head, x):
    block, norms = head.block, []
    for norm in block.attn_norm, block.mlp_norm, head.norm:
        norms.append(lambda x, norm=norm: _norm(x) * norm.weight + norm.bias)
    x = torch.cat([head.cls_token.expand(len(x), -1, -1), x.mT], 1)
    q, k, v = (norms[0](x) @ block.attn.qkv.weight.T).unflatten(
        -1, (3, 2, -1)).unbind(2)
    x = x + block.attn.proj(naive.softmax_attention(q, k, v).flatten(2))
    x = x + block.mlp.fc2(F.gelu(block.mlp.fc1(norms[1](x))))
    return head.fc_cls(F.gelu(head.fc_hidden(norms[2](x[:, 0]))))


@pytest.mark.parametrize('head, formula, shape', [
    (LAPSHead(5, 6), _laps, (6, 7)), (LAPSHead(5, 6), _laps, (6, 7, 3, 4)),
    *((LinearVideoTransformerHead(5, 6, 4, pooling=pooling), _linear_ff,
       (6, 3, 4, 5)) for pooling in ('mean', 'last')),
    *((XViTHead(5, 6, 2, hidden_dims=4), _xvit, (6, frames))
      for frames in (1, 5, 16))])
def test_equals_its_formula(head, formula, shape):
    head, x = _random(head), torch.randn(2, *shape, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(head(x), formula(head, x))


def test_xvit_head_drops_frames_and_hidden_features():
    head, shapes = XViTHead(5, 8, 2, hidden_dims=6), []
    head.dropout.register_forward_hook(
        lambda m, args, out: shapes.append(out.shape))
    head(torch.randn(2, 8, 3))
    assert shapes == [(2, 3, 8), (2, 6)] and head.dropout.p == 0.5


def test_vivit_head_starts_with_zero_logits_and_learns():
    head, x = ViViTHead(5, 6), FEATURES[..., 0, 0, 0]
    head.init_weights()
    assert not head(x).any()
    loss = head.loss(x, _samples(IDS[:, None]))['loss_cls']
    loss.backward()
    assert loss.item() == pytest.approx(torch.tensor(5.).log())
    assert all(p.grad.abs().max() > 0 for p in head.parameters())


@pytest.mark.parametrize('eps', [0., 0.2])
@pytest.mark.parametrize('mixed', [False, True])
def test_loss_is_mean_of_nouns_and_verbs(eps, mixed):
    head = _random(VerbNounHead(3, 2, in_channels=6, label_smooth_eps=eps))
    x = FEATURES[..., 0, 0, 0].double()
    labels = torch.tensor([[0., 1, 0, 0, 1], [1, 0, 0, 1, 0]]).double()
    if mixed:
        labels = .7 * labels + .3 * labels.flip(0)
    losses = head.loss(x, _samples(labels))
    for name, part, share in (('noun', slice(3), eps / 3),
                              ('verb', slice(3, 5), eps / 2)):
        expected = F.cross_entropy(
            head(x)[:, part], (1 - eps) * labels[:, part] + share)
        assert torch.allclose(losses[f'loss_{name}'], expected / 2)
        right = head(x)[:, part].argmax(1) == labels[:, part].argmax(1)
        assert losses[f'{name}_top1_acc'] == right.float().mean()


def test_token_branch_is_an_mlp_per_token():
    head = _random(TokenLabelHead(7, 6))
    got = head.forward_tokens(FEATURES.double())
    first, second, third = (head.token_linear[i] for i in (0, 3, 6))
    want = third(second(first(
        FEATURES.double().movedim(1, -1)).relu()).relu())
    torch.testing.assert_close(got, want)
    assert [first.out_features, second.out_features] == [12, 24]


@pytest.mark.parametrize('gamma', [0., 0.3, 1.])
def test_loss_weights_clip_and_tokens(gamma):
    head = TokenLabelHead(7, 6, gamma=gamma).eval()
    labels = torch.randn(2, 3, 4, 5, 7).softmax(-1)
    losses = head.loss(FEATURES, _samples(IDS), token_labels=labels)
    assert torch.allclose(losses['loss_cls'], gamma * F.cross_entropy(
        head(FEATURES), IDS))
    token = F.cross_entropy(head.forward_tokens(FEATURES).flatten(0, 3),
                            labels.flatten(0, 3))
    assert torch.allclose(losses['loss_token'], (1 - gamma) * token)


def test_clip_classifier_classifies_tokens():
    head = I3DHead(7, 6).eval()
    got = classify_tokens(head, FEATURES)
    assert torch.allclose(got[0, 1, 2, 3], head.fc_cls(
        FEATURES[0, :, 1, 2, 3]), atol=1e-6)
    # The classifier is linear, so the mean of logits equals the head.
    assert torch.allclose(got.mean((1, 2, 3)), head(FEATURES), atol=1e-6)


@pytest.mark.parametrize('call, message', [
    (lambda: VerbNounHead(3, 2, num_classes=6), 'num_nouns.*= 5, got 6'),
    (lambda: VerbNounHead(3, 2, in_channels=6).loss(
        FEATURES[..., 0, 0, 0], _samples(IDS[:, None])),
     r'\(2, 5\).*multi_class.*\(2, 1\)'),
    (lambda: TokenLabelHead(7, 6, gamma=1.5), 'gamma.*got 1.5'),
    (lambda: TokenLabelHead(7, 6).loss(FEATURES, _samples(IDS)),
     'token_labels, .*got None')])
def test_rejects(call, message):
    with pytest.raises(ValueError, match=message):
        call()
