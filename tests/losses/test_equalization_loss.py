# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest
import torch
from mmaction.registry import MODELS

from mmvidattn.losses import (
    EqualizationLoss,
    MultiClassCrossEntropyLoss,
)

# The background, two frequent classes and three rare ones.
COUNTS = [0, 600, 395, 2, 2, 1]


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 6, 6, generator=generator)
    return logits, torch.arange(24).reshape(4, 6) % 6


def test_matches_naive(batch):
    logits, ids = batch
    loss = EqualizationLoss(COUNTS, gamma=0.6)
    # The softmax leaves out the background.
    assert loss.tail.tolist() == [0, 0, 1, 1, 1]
    torch.manual_seed(3)
    ours = loss(logits, ids)
    torch.manual_seed(3)
    uniform = torch.rand(24, 5)
    total, steps = 0, 0
    for row, label, draw in zip(logits.flatten(0, 1).double(), ids.flatten(),
                                uniform):
        if label == 0:
            continue
        row = row.clone()
        for c in range(1, 6):
            if draw[c - 1] < 0.6 and COUNTS[c] < 3 and c != label:
                row[c] += np.log(1e-8)
        total += torch.logsumexp(row[1:], 0) - row[label]
        steps += 1
    torch.testing.assert_close(ours.double(), total / steps)


@pytest.mark.parametrize('gamma, tail_below', [(0, 3e-3), (0.95, 1e-9)])
def test_equals_cross_entropy_without_rare_classes(batch, gamma, tail_below):
    loss = EqualizationLoss([1] * 6, gamma, tail_below)
    # The logarithm of 1 + 1e-8 is 0 in float32.
    assert loss(*batch) == MultiClassCrossEntropyLoss(0)(*batch)


def test_golden(golden):
    reference = golden('testra/golden_losses.pt')
    counts = [0, *reference['eql_class_counts']]
    assert len(reference['eql']) == 6
    for name, expected in reference['eql'].items():
        gamma, _, tail_below = name.removeprefix('gamma').partition('_lambda')
        loss = EqualizationLoss(counts, float(gamma), float(tail_below))
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
        assert torch.equal(loss.tail, EqualizationLoss(COUNTS).tail)


def test_needs_the_file_only_in_training():
    loss = EqualizationLoss('none.npy')
    with pytest.raises(ValueError, match='no file none.npy'):
        loss(torch.zeros(2, 3), torch.tensor([1, 2]))
