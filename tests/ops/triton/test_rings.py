# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Kernel of ring buffers, also run by the interpreter in a process."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from mmvidattn.ops.temporal_smoothing import push_row, read_rows
from mmvidattn.ops.triton import available
from mmvidattn.ops.triton import rings as triton_rings

ROOT = Path(__file__).resolve().parents[3]
# Streams, ring length, shape of an entry; odd sizes, and more than one block.
SHAPES = [(3, 5, (7, )), (1, 1, (4, )), (2, 4, (3, 5)), (5, 3, (1030, )),
          (4, 9, ())]
SCRIPT = f'''
import json, sys, warnings
sys.path.insert(0, {str(Path(__file__).parent)!r})
import torch
import test_rings
print(json.dumps(test_rings.differences()))
'''


def naive_read(ring, steps):
    """Read [B, M, *] at steps [B, K], entry by entry."""
    return torch.stack([
        torch.stack([rows[int(t) % len(rows)] for t in stream_steps])
        for rows, stream_steps in zip(ring, steps)])


def naive_push(ring, step, row, keep):
    for rows, t, new, kept in zip(ring, step.tolist(), row, keep.tolist()):
        last = rows[(t - 1) % len(rows)].clone()
        rows[t % len(rows)] = new if kept else last


def differences():
    """Return the cases in which a kernel differs from the naive result."""
    gen = torch.Generator().manual_seed(0)
    wrong, cases = [], 0
    for dtype in torch.float64, torch.float32, torch.bfloat16:
        for streams, length, shape in SHAPES:
            ring = torch.randn(streams, length, *shape, generator=gen)
            ring = ring.to(dtype)
            # Steps from before the first entry to far beyond one round.
            step = torch.randint(0, 4 * length, (streams, ), generator=gen)
            step[0] = 0
            step[-1] = 2**33 + 1
            row = torch.randn(streams, *shape, generator=gen)
            keep = torch.rand(streams, generator=gen) < 0.5
            keep[0] = False
            row[~keep] = torch.nan
            name = f'{dtype}, {streams} of {length}, {shape}'
            for kind in dtype, torch.float32:
                got, want = ring.clone(), ring.clone()
                assert triton_rings.why_not(
                    got, step, row, keep) is None
                push_row(got, step, row.to(kind), keep)
                naive_push(want, step, row.to(kind), keep)
                cases += 1
                if not torch.equal(got, want):
                    wrong.append(f'push, {name}, {kind}')
    torch.library.opcheck(triton_rings.triton_push_row, (
        torch.randn(2, 3, 4), torch.tensor([0, 7]), torch.randn(2, 4),
        torch.tensor([True, False])))
    return dict(wrong=wrong, cases=cases)


def test_kernels_equal_naive():
    pytest.importorskip('triton', reason='Triton is not installed')
    done = subprocess.run(
        [sys.executable, '-c', SCRIPT], capture_output=True, text=True,
        timeout=300, env=dict(
            os.environ, TRITON_INTERPRET='1', MMVIDATTN_DISPATCH='all',
            PYTHONPATH=os.pathsep.join(
            [str(ROOT), str(ROOT / 'tests'), os.environ['PYTHONPATH']])))
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result['cases'] == 6 * len(SHAPES) and not result['wrong']


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
