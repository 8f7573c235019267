# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Formulas and losses of the heads."""
import pytest
import torch
import torch.nn.functional as F
from mmaction.models.heads import I3DHead
from mmaction.structures import ActionDataSample
from mmengine.structures import BaseDataElement
from torch import nn

from mmvidattn import heads
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


@pytest.mark.parametrize('shape', [(6, 7), (6, 7, 3, 4)])
def test_laps_head_averages_the_scores_of_frames(shape):
    head, x = _random(heads.LAPSHead(5, 6)), torch.randn(2, *shape).double()
    frames = x.flatten(2).unflatten(2, (7, -1)).mean(-1).mT
    scores = frames @ head.fc_cls.weight.T + head.fc_cls.bias
    torch.testing.assert_close(head.frame_scores(x), scores)
    torch.testing.assert_close(head(x), scores.mean(1))


def test_linear_ff_head_pools_all_frames_or_the_last():
    head, last = (_random(heads.LinearVideoTransformerHead(
        5, 6, 4, pooling=pooling)) for pooling in ('mean', 'last'))
    x = FEATURES.double()
    torch.testing.assert_close(last(x), head(x[:, :, -1:]))
    torch.testing.assert_close(head(x), head(x.mean((2, 3, 4), True)))


def test_xvit_head_drops_frames_and_hidden_features():
    head, shapes = heads.XViTHead(5, 8, 2, hidden_dims=6), []
    head.dropout.register_forward_hook(
        lambda m, args, out: shapes.append(out.shape))
    head(torch.randn(2, 8, 3))
    assert shapes == [(2, 3, 8), (2, 6)] and head.dropout.p == 0.5


def test_vivit_head_starts_with_zero_logits_and_learns():
    head, x = heads.ViViTHead(5, 6), FEATURES[..., 0, 0, 0]
    head.init_weights()
    assert not head(x).any()
    loss = head.loss(x, _samples(IDS[:, None]))['loss_cls']
    loss.backward()
    assert loss.item() == pytest.approx(torch.tensor(5.).log())
    assert all(p.grad.abs().max() > 0 for p in head.parameters())


@pytest.mark.parametrize('eps', [0., 0.2])
@pytest.mark.parametrize('mixed', [False, True])
def test_loss_is_mean_of_nouns_and_verbs(eps, mixed):
    head = _random(heads.VerbNounHead(
        3, 2, in_channels=6, label_smooth_eps=eps))
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
    head = _random(heads.TokenLabelHead(7, 6))
    got = head.forward_tokens(FEATURES.double())
    first, second, third = (head.token_linear[i] for i in (0, 3, 6))
    want = third(second(first(FEATURES.double().movedim(1, -1)).relu()).relu())
    torch.testing.assert_close(got, want)
    assert [first.out_features, second.out_features] == [12, 24]


@pytest.mark.parametrize('gamma', [0., 0.3, 1.])
def test_loss_weights_clip_and_tokens(gamma):
    head = heads.TokenLabelHead(7, 6, gamma=gamma).eval()
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
    (lambda: heads.VerbNounHead(3, 2, num_classes=6), 'num_nouns.*= 5, got 6'),
    (lambda: heads.VerbNounHead(3, 2, in_channels=6).loss(
        FEATURES[..., 0, 0, 0], _samples(IDS[:, None])),
     r'\(2, 5\).*multi_class.*\(2, 1\)'),
    (lambda: heads.TokenLabelHead(7, 6).loss(FEATURES, _samples(IDS)),
     'token_labels, .*got None'),
    (lambda: heads.OnlineActionHead(4, in_channels=6, num_verbs=3).loss(
        torch.randn(1, 3, 6), [_sample(action=torch.zeros(3).long())]),
     'a sample lacks gt_verb')])
def test_rejects(call, message):
    with pytest.raises(ValueError, match=message):
        call()


CROSS_ENTROPY = dict(type='MultiClassCrossEntropyLoss')


def _sample(**targets):
    sample = BaseDataElement()
    sample.set_data({f'gt_{k}': v for k, v in targets.items()})
    return sample


def test_scores_have_separate_dropout():
    torch.manual_seed(0)
    head = heads.OnlineActionHead(
        4, in_channels=64, num_verbs=4, dropout_ratio=0.8)
    head.fc_verb.load_state_dict(head.fc_cls.state_dict())
    x = torch.randn(5, 64)
    out = head.train()(x)
    assert not torch.allclose(out['action'], out['verb'])
    out = head.eval()(x)
    assert torch.equal(out['action'], out['verb'])


def test_losses_may_differ():
    torch.manual_seed(0)
    head = heads.OnlineActionHead(
        4, in_channels=6, num_verbs=3, num_nouns=5, loss_cls=CROSS_ENTROPY,
        loss_verb=dict(CROSS_ENTROPY, ignore_index=0),
        loss_noun=dict(CROSS_ENTROPY, loss_weight=2.)).eval()
    x = torch.randn(2, 3, 6)
    ids = torch.tensor([[0, 1, 2], [2, 0, 1]])
    losses = head.loss(x, [_sample(action=i, verb=i, noun=i) for i in ids])
    logits = {name: y.flatten(0, 1) for name, y in head(x).items()}
    keep = ids.flatten() > 0
    expected = dict(
        action=F.cross_entropy(logits['action'], ids.flatten()),
        verb=F.cross_entropy(logits['verb'][keep][:, 1:],
                             ids.flatten()[keep] - 1),
        noun=2 * F.cross_entropy(logits['noun'], ids.flatten()))
    assert losses.keys() == {f'loss_{name}' for name in expected}
    for name, value in expected.items():
        assert torch.allclose(losses[f'loss_{name}'], value)


@pytest.mark.parametrize('number', [1, 3, 9])
def test_loss_of_last_steps(number):
    torch.manual_seed(0)
    head = heads.OnlineActionHead(4, in_channels=6, num_loss_steps=number)
    x = torch.randn(2, 5, 6)
    ids = torch.randint(4, (2, 5))
    got = head.loss(x, [_sample(action=row) for row in ids])['loss_action']
    expected = F.cross_entropy(
        head.fc_cls(x[:, -number:]).flatten(0, 1), ids[:, -number:].flatten())
    assert torch.allclose(got, expected)


def test_probabilities_leave_out_ignored_class():
    torch.manual_seed(0)
    head = heads.OnlineActionHead(
        4, in_channels=6, num_verbs=3, num_nouns=5,
        loss_cls=dict(CROSS_ENTROPY, ignore_index=0),
        loss_verb=dict(CROSS_ENTROPY, ignore_index=2),
        loss_noun=CROSS_ENTROPY).eval()
    logits = {k: 9 * y for k, y in head(torch.randn(2, 3, 6)).items()}
    # The untrained logit has a large value.
    logits['action'][..., 0] = 50.
    result = head.probabilities(logits)
    for name, ignored in dict(action=[0], verb=[2], noun=[]).items():
        kept = logits[name].clone()
        kept[..., ignored] = -torch.inf
        torch.testing.assert_close(result[name], kept.softmax(-1))
