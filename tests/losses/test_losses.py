# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Losses by their definitions."""
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from mmaction.registry import MODELS

from mmvidattn import losses


def naive_asymmetric(logits, labels, gamma_neg, gamma_pos, margin):
    """Return the loss of each number by the paper's equations."""
    p = logits.double().sigmoid()
    m = (p - margin).clamp(min=0)
    return -(labels * (1 - p)**gamma_pos * p.log()
             + (1 - labels) * m**gamma_neg * (1 - m).log())


@pytest.mark.parametrize('options', [
    {}, dict(gamma_neg=2., gamma_pos=0., margin=.2, loss_weight=2.),
    # The focal loss of V-JEPA 2.
    dict(gamma_neg=2., gamma_pos=2., margin=0., alpha=.25, reduction='sum')])
def test_asymmetric_loss_matches_naive(options):
    torch.manual_seed(0)
    logits = 4 * torch.randn(5, 7)
    labels = (torch.rand(5, 7) < .3).double()
    named = dict(gamma_neg=4., gamma_pos=1., margin=.05, loss_weight=1.,
                 alpha=None, reduction='mean') | options
    *numbers, weight, alpha, reduction = named.values()
    want = weight * naive_asymmetric(logits, labels, *numbers)
    if alpha is not None:
        want = want * torch.where(labels > 0, alpha, 1 - alpha)
    loss = losses.AsymmetricLoss(**options)(logits, labels)
    assert loss.item() == pytest.approx(getattr(want, reduction)().item())


@pytest.mark.parametrize('margin', [0., .05, .5])
@pytest.mark.parametrize('gamma', [0., .3, 1., 4.])
def test_asymmetric_gradients_are_finite_and_right(margin, gamma):
    logits = torch.tensor([90., -90., 17., -17., 3., -3., 0., 120., -120.])
    for label in 0., 1.:
        labels = torch.full_like(logits, label)
        x, y = (logits.clone().requires_grad_() for _ in range(2))
        loss = losses.AsymmetricLoss(gamma, gamma, margin, reduction='sum')(
            x, labels)
        loss.backward()
        assert loss.isfinite() and x.grad.isfinite().all()
        # Away from the margin's kink and from rounding to 0 and 1.
        naive_asymmetric(y, labels, gamma, gamma, margin)[4:6].sum().backward()
        torch.testing.assert_close(x.grad[4:6], y.grad[4:6], rtol=1e-4,
                                   atol=1e-6)


@pytest.mark.parametrize('dtype, rel', [
    (torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 1e-5)])
def test_distillation_losses_match_naive(dtype, rel):
    torch.manual_seed(0)
    a, b = (3 * torch.randn(2, 3, 5, 7).to(dtype) for _ in range(2))
    cosine = F.cosine_similarity(a.double(), b.double(), dim=-1)
    assert losses.FeatureDistillationLoss(0.5)(a, b).item() == pytest.approx(
        (1 - cosine).mean().item(), rel=rel)
    a, b = a[:, 0, 0], b[:, 0, 0]
    # T^2 sum_k p_k log(p_k / q_k) of each clip.
    q, p = ((x.double() / 2.5).softmax(-1) for x in (a, b))
    want = 2.5**2 * (p * (p / q).log()).sum(-1).mean()
    assert losses.LogitDistillationLoss(2.5, 3.)(a, b).item() == pytest.approx(
        3 * want.item(), rel=rel)


def naive_labels(logits, topk):
    """Compute the labels of each token."""
    least = logits.sort(descending=True).values[
        ..., min(topk, logits.shape[-1]) - 1, None]
    return torch.where(logits >= least, logits, 0.).softmax(-1)


@pytest.mark.parametrize('topk', [1, 3, 5, 9])
@pytest.mark.parametrize('kind', ['random', 'negative', 'ties'])
def test_labels_match_naive_labels(kind, topk):
    torch.manual_seed(0)
    logits = torch.randn(2, 3, 4, 7, dtype=torch.float64)
    if kind == 'negative':
        logits = -3 - logits.abs()
    elif kind == 'ties':
        logits = logits.round()
    assert torch.allclose(
        losses.soft_token_labels(logits, topk), naive_labels(logits, topk))


def test_golden_token_label_loss(golden):
    """The logits have negative values, and ties of the fifth best."""
    g = golden('dualformer/golden_tl_loss.pt')
    soft = losses.soft_token_labels(g['teacher_preds'])
    assert torch.allclose(soft, g['soft_label'], rtol=1e-5, atol=1e-8)
    loss_cls = F.cross_entropy(g['cls_score'], g['label'])
    loss_token = losses.TokenLabelLoss()(g['token_preds'], soft)
    assert torch.allclose(loss_cls, g['loss_cls_only'], rtol=1e-5)
    assert torch.allclose(loss_token, g['loss_token_only'], rtol=1e-5)
    assert torch.allclose(
        g['gamma'] * loss_cls + (1 - g['gamma']) * loss_token, g['loss'],
        rtol=1e-5)


# The background, two frequent classes and three rare ones.
COUNTS = [0, 600, 395, 2, 2, 1]


def naive(logits, targets, ignore_index):
    """Compute the loss in float64, without steps of the ignored class."""
    classes = [c for c in range(logits.shape[-1]) if c != ignore_index]
    if ignore_index is not None:
        steps = targets[:, ignore_index] != 1
        logits, targets = logits[steps], targets[steps]
    scores = logits.double()[:, classes].log_softmax(-1)
    return -(targets[:, classes] * scores).sum(-1).mean()


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(3, 7, 5, generator=generator)
    targets = (torch.rand(3, 7, 5, generator=generator) < 0.3).float()
    return logits, targets


@pytest.mark.parametrize('ignore_index', [None, 0, 4])
def test_matches_naive_with_gradients(batch, ignore_index):
    logits, targets = batch
    ours = logits.clone().requires_grad_()
    naive_logits = logits.double().requires_grad_()
    loss = losses.MultiClassCrossEntropyLoss(ignore_index)(ours, targets)
    expected = naive(naive_logits.flatten(0, 1), targets.flatten(0, 1),
                     ignore_index)
    torch.testing.assert_close(loss.double(), expected, rtol=1e-6, atol=1e-6)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(
        ours.grad.double(), naive_logits.grad, rtol=1e-5, atol=1e-7)


def test_class_ids_match_torch_and_negative_ids_do_not_count(batch):
    logits, _ = batch
    ids = torch.arange(21).reshape(3, 7) % 5
    loss = losses.MultiClassCrossEntropyLoss()(logits, ids)
    torch.testing.assert_close(
        loss, F.cross_entropy(logits.flatten(0, 1), ids.flatten()))
    hot = F.one_hot(ids, 5).float()
    torch.testing.assert_close(
        losses.MultiClassCrossEntropyLoss()(logits, hot), loss)
    ids[:, 5:] = -1
    torch.testing.assert_close(
        losses.MultiClassCrossEntropyLoss()(logits, ids), F.cross_entropy(
            logits.flatten(0, 1), ids.flatten(), ignore_index=-1))


def test_is_zero_with_gradient_if_all_steps_are_ignored(batch):
    logits = batch[0].requires_grad_()
    ids = torch.full((3, 7), 2)
    loss = losses.MultiClassCrossEntropyLoss(2)(logits, ids)
    loss.backward()
    assert loss == 0 and not logits.grad.any()


def test_normalizes_targets(batch):
    loss = losses.MultiClassCrossEntropyLoss(normalize_targets=True)
    targets = torch.tensor([0., 1, 0, 1, 0]).expand(3, 7, 5)
    torch.testing.assert_close(
        loss(batch[0], targets),
        losses.MultiClassCrossEntropyLoss()(batch[0], targets) * 0.5**0.5)


@pytest.mark.parametrize('ignore_index', [None, 0, 9])
def test_golden(golden, ignore_index):
    reference = golden('testra/golden_losses.pt')
    name = -100 if ignore_index is None else ignore_index
    loss = losses.MultiClassCrossEntropyLoss(ignore_index)
    value = loss(reference['logits'], reference['target'])
    assert value.item() == pytest.approx(
        reference['mce'][f'mce_ignore{name}_mean'], rel=1e-5)


def test_equalization_leaves_out_rare_classes():
    logits, ids = torch.randn(24, 6), torch.arange(24) % 6
    loss = losses.EqualizationLoss(COUNTS, gamma=0.6)
    # The softmax leaves out the background.
    assert loss.tail.tolist() == [0, 0, 1, 1, 1]
    torch.manual_seed(3)
    ours = loss(logits.view(4, 6, 6), ids.view(4, 6))
    torch.manual_seed(3)
    hot = F.one_hot(ids, 6)
    left_out = (torch.rand(24, 5) < 0.6) & (hot[:, 1:] == 0)
    left_out[:, :2] = False
    logits = logits.double()
    logits[:, 1:] += left_out * np.log(1e-8)
    torch.testing.assert_close(ours.double(), naive(logits, hot, 0))


@pytest.mark.parametrize('gamma, tail_below', [(0, 3e-3), (0.95, 1e-9)])
def test_equalization_without_rare_classes_is_cross_entropy(
        batch, gamma, tail_below):
    loss = losses.EqualizationLoss([1] * 5, gamma, tail_below)
    # The logarithm of 1 + 1e-8 is 0 in float32.
    assert loss(*batch) == losses.MultiClassCrossEntropyLoss(0)(*batch)


def test_golden_equalization(golden):
    reference = golden('testra/golden_losses.pt')
    counts = [0, *reference['eql_class_counts']]
    assert len(reference['eql']) == 6
    for name, expected in reference['eql'].items():
        gamma, _, tail_below = name.removeprefix('gamma').partition('_lambda')
        loss = losses.EqualizationLoss(counts, float(gamma), float(tail_below))
        torch.manual_seed(0)
        logits = reference['logits'].clone().requires_grad_()
        value = loss(logits, reference['target'])
        value.backward()
        assert value.item() == pytest.approx(expected['value'], rel=1e-5)
        torch.testing.assert_close(
            logits.grad, expected['grad'], rtol=1e-5, atol=1e-7)


def test_reads_counts_from_files(tmp_path):
    np.save(tmp_path / 'counts.npy', COUNTS)
    np.savetxt(tmp_path / 'counts.txt', COUNTS, fmt='%d')
    for name in 'counts.npy', 'counts.txt':
        loss = MODELS.build(
            dict(type='EqualizationLoss', class_counts=str(tmp_path / name)))
        assert torch.equal(loss.tail, losses.EqualizationLoss(COUNTS).tail)
