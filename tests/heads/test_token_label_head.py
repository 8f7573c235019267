# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
import torch.nn.functional as F
from mmaction.models.heads import I3DHead
from mmaction.structures import ActionDataSample

from mmvidattn.heads import TokenLabelHead
from mmvidattn.heads.token_label_head import classify_tokens


def _samples(labels):
    return [ActionDataSample().set_gt_label(label) for label in labels]


def _features():
    torch.manual_seed(0)
    return torch.randn(2, 6, 3, 4, 5)


def test_token_branch_is_an_mlp_per_token():
    head = TokenLabelHead(7, 6).eval()
    x = _features()
    got = head.forward_tokens(x)
    assert got.shape == (2, 3, 4, 5, 7)
    y = x[1, :, 2, 3, 4]
    for i in (0, 3, 6):
        layer = head.token_linear[i]
        y = layer.weight @ (y if i == 0 else y.relu()) + layer.bias
    assert torch.allclose(got[1, 2, 3, 4], y, atol=1e-6)
    assert [head.token_linear[i].out_features for i in (0, 3, 6)] == [
        12, 24, 7]


@pytest.mark.parametrize('gamma', [0., 0.3, 1.])
def test_loss_weights_clip_and_tokens(gamma):
    head = TokenLabelHead(7, 6, gamma=gamma).eval()
    x = _features()
    labels = torch.randn(2, 3, 4, 5, 7).softmax(-1)
    losses = head.loss(x, _samples([1, 4]), token_labels=labels)
    assert torch.allclose(
        losses['loss_cls'],
        gamma * F.cross_entropy(head(x), torch.tensor([1, 4])))
    token = F.cross_entropy(
        head.forward_tokens(x).flatten(0, 3), labels.flatten(0, 3))
    assert torch.allclose(losses['loss_token'], (1 - gamma) * token)


def test_clip_classifier_classifies_tokens():
    head = I3DHead(7, 6).eval()
    x = _features()
    got = classify_tokens(head, x)
    assert torch.allclose(got[0, 1, 2, 3], head.fc_cls(x[0, :, 1, 2, 3]),
                          atol=1e-6)
    # The classifier is linear, so the mean of logits equals the head.
    assert torch.allclose(got.mean((1, 2, 3)), head(x), atol=1e-6)


def test_rejects():
    with pytest.raises(ValueError, match='gamma.*got 1.5'):
        TokenLabelHead(7, 6, gamma=1.5)
    with pytest.raises(ValueError, match='token_labels, .*got None'):
        TokenLabelHead(7, 6).loss(_features(), _samples([1, 4]))
