# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
import torch.nn.functional as F

from mmvidattn.losses import TokenLabelLoss, soft_token_labels


def _naive(logits, topk):
    """Compute the labels of each token."""
    out = []
    for row in logits.flatten(0, -2).tolist():
        least = sorted(row)[-min(topk, len(row))]
        kept = [x if x >= least else 0. for x in row]
        out.append(torch.tensor(kept, dtype=torch.float64).softmax(-1))
    return torch.stack(out).view(logits.shape)


@pytest.mark.parametrize('topk', [1, 3, 5, 9])
@pytest.mark.parametrize('kind', ['random', 'negative', 'ties'])
def test_labels_match_naive(kind, topk):
    torch.manual_seed(0)
    logits = torch.randn(2, 3, 4, 7, dtype=torch.float64)
    if kind == 'negative':
        logits = -3 - logits.abs()
    elif kind == 'ties':
        logits = logits.round()
    assert torch.allclose(
        soft_token_labels(logits, topk), _naive(logits, topk))


def test_golden_released_loss(golden):
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
