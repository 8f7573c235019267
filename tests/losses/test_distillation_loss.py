# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math

import pytest
import torch

from mmvidattn.losses import FeatureDistillationLoss, LogitDistillationLoss


def naive_feature_loss(student, teacher):
    """Compute 2 (1 - cosine) of each token."""
    total = 0.
    tokens = [*zip(student.double().flatten(0, -2).tolist(),
                   teacher.double().flatten(0, -2).tolist())]
    for a, b in tokens:
        dot = sum(x * y for x, y in zip(a, b))
        norms = math.hypot(*a) * math.hypot(*b)
        total += 2 * (1 - dot / norms)
    return total / len(tokens)


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
def test_matches_naive(dtype, rel):
    torch.manual_seed(0)
    a, b = (3 * torch.randn(2, 3, 5, 7) for _ in range(2))
    a, b = a.to(dtype), b.to(dtype)
    assert FeatureDistillationLoss(0.5)(a, b).item() == pytest.approx(
        naive_feature_loss(a, b) / 2, rel=rel)
    a, b = a[:, 0, 0], b[:, 0, 0]
    assert LogitDistillationLoss(2.5, 3.)(a, b).item() == pytest.approx(
        3 * naive_logit_loss(a, b, 2.5), rel=rel)
