# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Asymmetric, distillation and token label losses, number by number."""
import math

import pytest
import torch
import torch.nn.functional as F

from mmvidattn.losses import (
    AsymmetricLoss,
    FeatureDistillationLoss,
    LogitDistillationLoss,
    TokenLabelLoss,
    soft_token_labels,
)


def naive_asymmetric(logits, labels, gamma_neg, gamma_pos, margin):
    """Follow the paper's equations, number by number."""
    losses = []
    for x, y in zip(logits.flatten().tolist(), labels.flatten().tolist()):
        p = 1 / (1 + math.exp(-x))
        m = max(p - margin, 0)
        losses.append(-(1 - p)**gamma_pos * math.log(p) if y else
                      -m**gamma_neg * math.log(1 - m))
    return sum(losses) / len(losses)


@pytest.mark.parametrize('gamma_neg, gamma_pos, margin', [
    (4., 1., .05), (2., 0., .2), (1., 1., 0.)])
def test_asymmetric_loss_matches_naive(gamma_neg, gamma_pos, margin):
    torch.manual_seed(0)
    logits = 4 * torch.randn(5, 7)
    labels = (torch.rand(5, 7) < .3).float()
    # The first row has the defaults.
    options = dict(gamma_neg=gamma_neg, gamma_pos=gamma_pos, margin=margin)
    loss = AsymmetricLoss(
        **options if gamma_neg < 4 else {}, loss_weight=2.)
    expected = naive_asymmetric(logits.double(), labels, gamma_neg, gamma_pos,
                                margin)
    assert loss(logits, labels).item() == pytest.approx(2 * expected)


def test_focal_loss_of_v_jepa_2():
    """Sum of -alpha (1 - p)^2 log p over samples and classes."""
    torch.manual_seed(0)
    logits = 4 * torch.randn(5, 7).double()
    labels = (torch.rand(5, 7) < .3).double()
    p = logits.sigmoid()
    want = -(labels * .25 * (1 - p)**2 * p.log()
             + (1 - labels) * .75 * p**2 * (1 - p).log()).sum()
    loss = AsymmetricLoss(2, 2, 0, alpha=.25, reduction='sum')
    assert loss(logits, labels).item() == pytest.approx(want.item())


@pytest.mark.parametrize('margin', [0., .05, .5])
@pytest.mark.parametrize('gamma', [0., .3, .5, 1., 1.5, 4.])
def test_asymmetric_gradients_are_finite_and_right(margin, gamma):
    logits = torch.tensor([90., -90., 17., -17., 3., -3., 0., 120., -120.])
    for label in 0., 1.:
        labels = torch.full_like(logits, label)
        x = logits.clone().requires_grad_()
        loss = AsymmetricLoss(gamma, gamma, margin)(x, labels)
        loss.backward()
        assert loss.isfinite() and x.grad.isfinite().all()
        # Central differences of the definition, away from the margin's kink
        # and from rounding to 0 and 1.
        for i in 4, 5:
            high, low = (
                naive_asymmetric(logits[i].double() + step, labels[i], gamma,
                                 gamma, margin) for step in (1e-6, -1e-6))
            slope = (high - low) / 2e-6
            assert x.grad[i] * len(logits) == pytest.approx(
                slope, rel=1e-4, abs=1e-6)


def naive_feature_loss(student, teacher):
    """Compute 2 (1 - cosine) of each token."""
    a, b = student.double(), teacher.double()
    cosine = (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))
    return (2 * (1 - cosine)).mean().item()


def naive_logit_loss(student, teacher, temperature):
    """Compute T^2 sum_k p_k log(p_k / q_k) of each clip."""
    total = 0.
    for a, b in zip(student.double().tolist(), teacher.double().tolist()):
        q, p = ([math.exp(x / temperature) for x in row] for row in (a, b))
        q, p = ([x / sum(row) for x in row] for row in (q, p))
        total += sum(x * math.log(x / y) for x, y in zip(p, q))
    return temperature**2 * total / len(student)


@pytest.mark.parametrize('dtype, rel', [
    (torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 1e-5)])
def test_distillation_losses_match_naive(dtype, rel):
    torch.manual_seed(0)
    a, b = (3 * torch.randn(2, 3, 5, 7) for _ in range(2))
    a, b = a.to(dtype), b.to(dtype)
    assert FeatureDistillationLoss(0.5)(a, b).item() == pytest.approx(
        naive_feature_loss(a, b) / 2, rel=rel)
    a, b = a[:, 0, 0], b[:, 0, 0]
    assert LogitDistillationLoss(2.5, 3.)(a, b).item() == pytest.approx(
        3 * naive_logit_loss(a, b, 2.5), rel=rel)


def naive_labels(logits, topk):
    """Compute the labels of each token."""
    out = []
    for row in logits.flatten(0, -2).tolist():
        least = sorted(row)[-min(topk, len(row))]
        kept = [x if x >= least else 0. for x in row]
        out.append(torch.tensor(kept, dtype=torch.float64).softmax(-1))
    return torch.stack(out).view(logits.shape)


@pytest.mark.parametrize('topk', [1, 3, 5, 9])
@pytest.mark.parametrize('kind', ['random', 'negative', 'ties'])
def test_labels_matchnaive_labels(kind, topk):
    torch.manual_seed(0)
    logits = torch.randn(2, 3, 4, 7, dtype=torch.float64)
    if kind == 'negative':
        logits = -3 - logits.abs()
    elif kind == 'ties':
        logits = logits.round()
    assert torch.allclose(
        soft_token_labels(logits, topk), naive_labels(logits, topk))


def test_golden_token_label_loss(golden):
    """The logits have negative values, and ties of the fifth best."""
    g = golden('dualformer/golden_tl_loss.pt')
    soft = soft_token_labels(g['teacher_preds'])
    assert torch.allclose(soft, g['soft_label'], rtol=1e-5, atol=1e-8)
    loss_cls = F.cross_entropy(g['cls_score'], g['label'])
    loss_token = TokenLabelLoss()(g['token_preds'], soft)
    assert torch.allclose(loss_cls, g['loss_cls_only'], rtol=1e-5)
    assert torch.allclose(loss_token, g['loss_token_only'], rtol=1e-5)
    assert torch.allclose(
        g['gamma'] * loss_cls + (1 - g['gamma']) * loss_token, g['loss'],
        rtol=1e-5)
