# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from mmaction.structures import ActionDataSample
from torch import nn

from mmvidattn.heads import LinearVideoTransformerHead


def _head(**kwargs):
    torch.manual_seed(0)
    head = LinearVideoTransformerHead(5, 8, hidden_dims=6, **kwargs)
    head.init_weights()
    return head.eval()


def test_matches_its_formula():
    head, x = _head(), torch.randn(2, 8, 3, 4, 4)
    pooled = x.flatten(2).mean(-1)
    pooled = (pooled - pooled.mean(-1, keepdim=True)) / (
        pooled.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()
    hidden = nn.functional.gelu(pooled @ head.fc_hidden.weight.T)
    assert torch.allclose(head(x), hidden @ head.fc_cls.weight.T, atol=1e-6)


def test_views_are_averaged_as_logits_by_default():
    head, x = _head(), torch.randn(6, 8, 3, 4, 4)
    samples = head.predict(x, [ActionDataSample(), ActionDataSample()])
    want = head(x).view(2, 3, 5).mean(1)
    for sample, score in zip(samples, want):
        assert torch.allclose(sample.pred_score, score)
        assert sample.pred_label == score.argmax()


def test_views_averaged_as_probabilities():
    head, x = _head(average_clips='prob'), torch.randn(2, 8, 3, 4, 4)
    sample, = head.predict(x, [ActionDataSample()])
    assert torch.allclose(sample.pred_score, head(x).softmax(-1).mean(0))


def test_dropout_acts_in_training_only():
    head, x = _head(), torch.randn(2, 8, 3, 4, 4)
    assert torch.equal(head(x), head(x))
    head.train()
    assert not torch.equal(head(x), head(x))


def test_initialization_has_the_documented_spread():
    head = LinearVideoTransformerHead(400, 512)
    head.init_weights()
    for fc in (head.fc_hidden, head.fc_cls):
        assert abs(fc.weight.std().item() - 0.02) < 0.002
        assert fc.bias.abs().max() == 0
