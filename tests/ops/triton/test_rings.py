# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Plain code of the rings; interpreted/rings.py tests the kernels."""
import pytest
import torch

from mmvidattn.ops.temporal_smoothing import push_row, read_rows
from mmvidattn.ops.triton import available
from mmvidattn.ops.triton import rings as triton_rings

# Streams, ring length, shape of an entry; odd sizes, and more than one block.
SHAPES = [(3, 5, (7, )), (1, 1, (4, )), (2, 4, (3, 5)), (5, 3, (1030, )),
          (4, 9, ())]


def naive_read(ring, steps):
    """Read [B, M, *] at steps [B, K], entry by entry."""
    return torch.stack([
        torch.stack([rows[int(t) % len(rows)] for t in stream_steps])
        for rows, stream_steps in zip(ring, steps)])


def naive_push(ring, step, row, keep):
    for rows, t, new, kept in zip(ring, step.tolist(), row, keep.tolist()):
        last = rows[(t - 1) % len(rows)].clone()
        rows[t % len(rows)] = new if kept else last


@pytest.mark.parametrize('streams, length, shape', SHAPES, ids=str)
def test_plain_code_equals_naive(streams, length, shape):
    gen = torch.Generator().manual_seed(0)
    ring = torch.randn(streams, length, *shape, generator=gen)
    step = torch.randint(0, 4 * length, (streams, ), generator=gen)
    step[0] = 0
    row = torch.randn(streams, *shape, generator=gen)
    keep = torch.rand(streams, generator=gen) < 0.5
    got, want = ring.clone(), ring.clone()
    push_row.plain(got, step, row, keep)
    naive_push(want, step, row, keep)
    assert torch.equal(got, want)
    steps = step[:, None] - torch.arange(length + 2, 0, -1)
    assert torch.equal(read_rows(ring, steps), naive_read(ring, steps))


def test_verifier_gives_reasons(monkeypatch):
    ring, step = torch.zeros(2, 3, 4), torch.zeros(2, dtype=torch.int64)
    others = torch.zeros(2, 4), torch.ones(2, dtype=torch.bool)
    monkeypatch.delenv('TRITON_INTERPRET', raising=False)
    monkeypatch.setattr(available, 'HAS_TRITON', True)
    why_not = triton_rings.why_not
    assert why_not(ring, step, *others) == 'not on a CUDA device'
    monkeypatch.setenv('TRITON_INTERPRET', '1')
    assert why_not(ring, step, *others) is None
    assert why_not(ring.requires_grad_(), step, *others) == 'with gradients'
    with torch.no_grad():
        assert why_not(ring, step, *others) is None
        assert 'contiguous' in why_not(ring.mT, step, *others)
        assert 'int64' in why_not(ring, step.int(), *others)
    monkeypatch.setattr(available, 'HAS_TRITON', False)
    assert why_not(ring, step, *others) == 'Triton is not installed'
