# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Cross-entropy with several targets, and equalization loss."""
import numpy as np
import pytest
import torch
from mmaction.registry import MODELS
from torch.nn import functional as F

from mmvidattn.losses import EqualizationLoss, MultiClassCrossEntropyLoss

# The background, two frequent classes and three rare ones.
COUNTS = [0, 600, 395, 2, 2, 1]


def naive(logits, targets, ignore_index):
    """Compute the loss of each step in float64."""
    losses = []
    for row, hot in zip(logits.double(), targets.double()):
        keep = [c for c in range(len(row)) if c != ignore_index]
        if ignore_index is not None and hot[ignore_index] == 1:
            continue
        row, hot = row[keep], hot[keep]
        losses.append(sum(
            -hot[c] * (row[c] - torch.logsumexp(row, 0))
            for c in range(len(keep))))
    return sum(losses) / len(losses) if losses else logits.double().sum() * 0


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
    loss = MultiClassCrossEntropyLoss(ignore_index)(ours, targets)
    expected = naive(naive_logits.flatten(0, 1), targets.flatten(0, 1),
                     ignore_index)
    torch.testing.assert_close(loss.double(), expected, rtol=1e-6, atol=1e-6)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(
        ours.grad.double(), naive_logits.grad, rtol=1e-5, atol=1e-7)


def test_single_class_matches_torch(batch):
    logits, _ = batch
    ids = torch.arange(21).reshape(3, 7) % 5
    loss = MultiClassCrossEntropyLoss()(logits, ids)
    torch.testing.assert_close(
        loss, F.cross_entropy(logits.flatten(0, 1), ids.flatten()))
    hot = F.one_hot(ids, 5).float()
    torch.testing.assert_close(MultiClassCrossEntropyLoss()(logits, hot), loss)


def test_negative_ids_do_not_count(batch):
    logits, _ = batch
    ids = torch.arange(21).reshape(3, 7) % 5
    padded = ids.clone()
    padded[:, 5:] = -1
    loss = MultiClassCrossEntropyLoss()(logits, padded)
    torch.testing.assert_close(
        loss, MultiClassCrossEntropyLoss()(logits[:, :5], ids[:, :5]))


def test_is_zero_with_gradient_if_all_steps_are_ignored(batch):
    logits = batch[0].requires_grad_()
    ids = torch.full((3, 7), 2)
    loss = MultiClassCrossEntropyLoss(2)(logits, ids)
    loss.backward()
    assert loss == 0 and not logits.grad.any()


def test_normalizes_targets(batch):
    loss = MultiClassCrossEntropyLoss(normalize_targets=True)
    targets = torch.tensor([0., 1, 0, 1, 0]).expand(3, 7, 5)
    torch.testing.assert_close(
        loss(batch[0], targets),
        MultiClassCrossEntropyLoss()(batch[0], targets) * 0.5**0.5)


@pytest.mark.parametrize('ignore_index', [None, 0, 9])
def test_golden(golden, ignore_index):
    reference = golden('testra/golden_losses.pt')
    name = -100 if ignore_index is None else ignore_index
    loss = MultiClassCrossEntropyLoss(ignore_index)
    value = loss(reference['logits'], reference['target'])
    assert value.item() == pytest.approx(
        reference['mce'][f'mce_ignore{name}_mean'], rel=1e-5)


def test_equalization_leaves_out_rare_classes():
    logits, ids = torch.randn(24, 6), torch.arange(24) % 6
    loss = EqualizationLoss(COUNTS, gamma=0.6)
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
    loss = EqualizationLoss([1] * 5, gamma, tail_below)
    # The logarithm of 1 + 1e-8 is 0 in float32.
    assert loss(*batch) == MultiClassCrossEntropyLoss(0)(*batch)


def test_golden_equalization(golden):
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
