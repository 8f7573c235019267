# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.structures import ActionDataSample

from mmvidattn.heads import LAPSHead


def _head(**kwargs):
    torch.manual_seed(0)
    head = LAPSHead(5, 12, **kwargs)
    head.init_weights()
    torch.nn.init.normal_(head.fc_cls.bias)
    return head


@pytest.mark.parametrize('shape', [(2, 12, 7), (2, 12, 7, 3, 4)], ids=str)
def test_averages_predictions_of_frames(shape):
    head, x = _head(), torch.randn(shape)
    frames = x if len(shape) == 3 else x.flatten(3).mean(-1)
    scores = torch.stack([
        torch.stack([head.fc_cls.weight @ frames[b, :, t] + head.fc_cls.bias
                     for t in range(7)]) for b in range(2)])
    assert torch.allclose(head.frame_scores(x), scores, atol=1e-6)
    assert torch.allclose(head(x), scores.mean(1), atol=1e-6)


def test_loss_smooths_labels():
    head, x = _head(label_smooth_eps=0.1), torch.randn(2, 12, 7)
    samples = [ActionDataSample().set_gt_label(label) for label in (1, 4)]
    loss = head.loss(x, samples)['loss_cls']
    expected = torch.nn.functional.cross_entropy(
        head(x), torch.tensor([1, 4]), label_smoothing=0.1)
    assert torch.allclose(loss, expected)
