# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math

import pytest
import torch

from mmvidattn.losses import AsymmetricLoss


def naive(logits, labels, gamma_neg, gamma_pos, margin):
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
def test_matches_naive(gamma_neg, gamma_pos, margin):
    torch.manual_seed(0)
    logits = 4 * torch.randn(5, 7)
    labels = (torch.rand(5, 7) < .3).float()
    loss = AsymmetricLoss(gamma_neg, gamma_pos, margin, loss_weight=2.)
    expected = 2 * naive(logits.double(), labels, gamma_neg, gamma_pos, margin)
    torch.testing.assert_close(loss(logits, labels).item(), expected,
                               rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize('margin', [0., .05, .5])
@pytest.mark.parametrize('gamma', [0., .3, .5, 1., 1.5, 4.])
def test_gradients_are_finite_and_those_of_the_definition(margin, gamma):
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
            slope = (naive(logits[i].double() + 1e-6, labels[i], gamma, gamma,
                           margin)
                     - naive(logits[i].double() - 1e-6, labels[i], gamma,
                             gamma, margin)) / 2e-6
            assert x.grad[i] * len(logits) == pytest.approx(
                slope, rel=1e-4, abs=1e-6)
