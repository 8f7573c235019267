# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.structures import ActionDataSample
from torch import nn

from mmvidattn.heads import VerbNounHead, ViViTHead


def _samples(labels):
    return [ActionDataSample().set_gt_label(label) for label in labels]


def _verb_noun(**kwargs):
    torch.manual_seed(0)
    head = VerbNounHead(3, 2, in_channels=4, init_std=1., **kwargs)
    head.init_weights()
    return head


def test_starts_with_zero_logits_and_learns():
    head = ViViTHead(5, 4)
    head.init_weights()
    x = torch.randn(2, 4)
    assert head(x).abs().max() == 0
    losses = head.loss(x, _samples(torch.tensor([[1], [2]])))
    losses['loss_cls'].backward()
    assert losses['loss_cls'].item() == pytest.approx(torch.tensor(5.).log())
    for p in head.parameters():
        assert p.grad.abs().max() > 0


@pytest.mark.parametrize('eps', [0., 0.2])
@pytest.mark.parametrize('mixed', [False, True])
def test_loss_is_mean_of_nouns_and_verbs(eps, mixed):
    head, x = _verb_noun(label_smooth_eps=eps), torch.randn(2, 4)
    labels = torch.tensor([[0., 1, 0, 0, 1], [1, 0, 0, 1, 0]])
    if mixed:
        labels = .7 * labels + .3 * labels.flip(0)
    losses = head.loss(x, _samples(labels))
    for name, part, share in (('noun', slice(3), eps / 3),
                              ('verb', slice(3, 5), eps / 2)):
        expected = nn.functional.cross_entropy(
            head(x)[:, part], (1 - eps) * labels[:, part] + share)
        assert torch.allclose(losses[f'loss_{name}'], expected / 2)
        right = head(x)[:, part].argmax(1) == labels[:, part].argmax(1)
        assert losses[f'{name}_top1_acc'] == right.float().mean()


def test_rejects_wrong_labels_and_counts():
    with pytest.raises(ValueError, match=r'\(2, 5\).*multi_class.*\(2, 1\)'):
        _verb_noun().loss(
            torch.randn(2, 4), _samples(torch.tensor([[1], [2]])))
    with pytest.raises(ValueError, match='num_nouns.*= 5, got 6'):
        _verb_noun(num_classes=6)
