# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Contract of all losses that are registered in MODELS.

A new loss needs no test code if it takes logits [B, K] and class ids [B];
other arguments are in TARGETS and OPTIONS.
"""
import pytest
import torch
from registered import classes_of

from mmvidattn import losses

B, K = 6, 5
OPTIONS = {losses.EqualizationLoss: dict(class_counts=[0, 600, 395, 2, 1])}
SOFT = torch.randn(B, K, generator=torch.Generator().manual_seed(1))
TARGETS = {
    losses.AsymmetricLoss: (SOFT > 0).float(),
    losses.FeatureDistillationLoss: SOFT, losses.LogitDistillationLoss: SOFT,
    losses.TokenLabelLoss: SOFT.softmax(-1)}
EACH = pytest.mark.parametrize('kind', classes_of('losses'),
                               ids=lambda x: x.__name__)


def compute(kind, logits, **options):
    torch.manual_seed(0)
    loss = kind(**OPTIONS.get(kind, {}), **options)
    return loss(logits, TARGETS.get(kind, torch.arange(B) % K))


@pytest.fixture
def logits():
    return torch.randn(B, K, generator=torch.Generator().manual_seed(0))


@EACH
def test_is_a_positive_scalar_with_gradients_of_all_logits(kind, logits):
    logits.requires_grad_()
    loss = compute(kind, logits)
    assert loss.shape == () and loss > 0
    loss.backward()
    assert logits.grad.isfinite().all()
    assert (logits.grad.abs().amax(0) > 0).sum() >= K - 1


@EACH
def test_gradient_descent_lowers_it(kind, logits):
    logits.requires_grad_()
    first = compute(kind, logits)
    gradient, = torch.autograd.grad(first, logits)
    assert compute(kind, logits - .1 * gradient) < first


@EACH
def test_loss_weight_is_a_factor(kind, logits):
    torch.testing.assert_close(
        compute(kind, logits, loss_weight=.5), compute(kind, logits) / 2)


@EACH
@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_logits_are_summed_in_float32(kind, logits, dtype):
    coarse = (8 * logits).to(dtype)
    loss = compute(kind, coarse)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, compute(kind, coarse.float()))


@pytest.mark.parametrize('call, message', [
    *((lambda kind=kind: kind()(torch.zeros(2, 8), torch.zeros(2, 9)),
       r'\(2, 8\).*got .*\(2, 9\)|got \(2, 8\) and \(2, 9\)') for kind in (
          losses.AsymmetricLoss, losses.LogitDistillationLoss,
          losses.FeatureDistillationLoss, losses.TokenLabelLoss)),
    (lambda: losses.soft_token_labels(SOFT, 0), 'topk.*got 0'),
    (lambda: losses.EqualizationLoss([0, 0]), 'class_counts must be'),
    # The file is needed in training only.
    (lambda loss=losses.EqualizationLoss('none.npy'): loss(
        SOFT, torch.ones(B).long()), 'no file none.npy'),
    (lambda: losses.EqualizationLoss([0, 1, 2])(SOFT, torch.ones(B).long()),
     '4 classes of .*, got 2'),
    (lambda: losses.MultiClassCrossEntropyLoss(K)(SOFT, SOFT),
     'below the 5 classes, got 5'),
    (lambda: losses.MultiClassCrossEntropyLoss()(SOFT, SOFT[:, 0]),
     r'floats \(6, 5\), got \(6,\) '),
    (lambda: losses.multi_hot(torch.tensor([9]), K),
     '5 classes of the logits, .* 9'),
])
def test_rejects(call, message):
    with pytest.raises(ValueError, match=message):
        call()
