# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmengine.structures import BaseDataElement

from mmvidattn.heads import OnlineActionHead

CROSS_ENTROPY = dict(type='MultiClassCrossEntropyLoss')


def _sample(**targets):
    sample = BaseDataElement()
    sample.set_data({f'gt_{k}': v for k, v in targets.items()})
    return sample


def test_scores_have_separate_dropout():
    torch.manual_seed(0)
    head = OnlineActionHead(4, in_channels=64, num_verbs=4, dropout_ratio=0.8)
    head.fc_verb.load_state_dict(head.fc_cls.state_dict())
    x = torch.randn(5, 64)
    out = head.train()(x)
    assert not torch.allclose(out['action'], out['verb'])
    out = head.eval()(x)
    assert torch.equal(out['action'], out['verb'])


def test_losses_may_differ():
    torch.manual_seed(0)
    head = OnlineActionHead(
        4, in_channels=6, num_verbs=3, num_nouns=5, loss_cls=CROSS_ENTROPY,
        loss_verb=dict(CROSS_ENTROPY, ignore_index=0),
        loss_noun=dict(CROSS_ENTROPY, loss_weight=2.)).eval()
    x = torch.randn(2, 3, 6)
    ids = torch.tensor([[0, 1, 2], [2, 0, 1]])
    losses = head.loss(x, [_sample(action=i, verb=i, noun=i) for i in ids])
    logits = {name: y.flatten(0, 1) for name, y in head(x).items()}
    cross_entropy = torch.nn.functional.cross_entropy
    keep = ids.flatten() > 0
    expected = dict(
        action=cross_entropy(logits['action'], ids.flatten()),
        verb=cross_entropy(logits['verb'][keep][:, 1:],
                           ids.flatten()[keep] - 1),
        noun=2 * cross_entropy(logits['noun'], ids.flatten()))
    assert losses.keys() == {f'loss_{name}' for name in expected}
    for name, value in expected.items():
        assert torch.allclose(losses[f'loss_{name}'], value)


@pytest.mark.parametrize('number', [1, 3, 9])
def test_loss_of_last_steps(number):
    torch.manual_seed(0)
    head = OnlineActionHead(4, in_channels=6, num_loss_steps=number)
    x = torch.randn(2, 5, 6)
    ids = torch.randint(4, (2, 5))
    got = head.loss(x, [_sample(action=row) for row in ids])['loss_action']
    expected = torch.nn.functional.cross_entropy(
        head.fc_cls(x[:, -number:]).flatten(0, 1), ids[:, -number:].flatten())
    assert torch.allclose(got, expected)


def test_names_missing_targets():
    head = OnlineActionHead(4, in_channels=6, num_verbs=3)
    sample = _sample(action=torch.zeros(3, dtype=torch.long))
    with pytest.raises(ValueError, match='a sample lacks gt_verb'):
        head.loss(torch.randn(1, 3, 6), [sample])


def test_probabilities_leave_out_ignored_class():
    torch.manual_seed(0)
    head = OnlineActionHead(
        4, in_channels=6, num_verbs=3, num_nouns=5,
        loss_cls=dict(CROSS_ENTROPY, ignore_index=0),
        loss_verb=dict(CROSS_ENTROPY, ignore_index=2),
        loss_noun=CROSS_ENTROPY).eval()
    logits = {k: 9 * y for k, y in head(torch.randn(2, 3, 6)).items()}
    # The untrained logit has a large value.
    logits['action'][..., 0] = 50.
    result = head.probabilities(logits)
    action, verb = logits['action'][..., 1:], logits['verb'][..., :2]
    for got, expected in (
            (result['action'][..., 1:], action.exp() / action.exp().sum(
                -1, keepdim=True)),
            (result['verb'][..., :2], verb.exp() / verb.exp().sum(
                -1, keepdim=True)),
            (result['noun'], logits['noun'].softmax(-1))):
        torch.testing.assert_close(got, expected)
    assert not result['action'][..., 0].any()
    assert not result['verb'][..., 2].any()
