# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Kernel of ring buffers, run by test_interpreter.py in the interpreter."""
import pytest
import torch
from ops.triton.test_rings import SHAPES, naive_push

from mmvidattn.ops.temporal_smoothing import push_row
from mmvidattn.ops.triton import rings


@pytest.mark.parametrize('dtype', [
    torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_kernels_equal_naive(dtype):
    gen = torch.Generator().manual_seed(0)
    for streams, length, shape in SHAPES:
        ring = torch.randn(streams, length, *shape, generator=gen).to(dtype)
        # Steps from before the first entry to far beyond one round.
        step = torch.randint(0, 4 * length, (streams, ), generator=gen)
        step[0] = 0
        step[-1] = 2**33 + 1
        row = torch.randn(streams, *shape, generator=gen)
        keep = torch.rand(streams, generator=gen) < 0.5
        keep[0] = False
        row[~keep] = torch.nan
        for kind in dtype, torch.float32:
            got, want = ring.clone(), ring.clone()
            assert rings.why_not(got, step, row, keep) is None
            push_row(got, step, row.to(kind), keep)
            naive_push(want, step, row.to(kind), keep)
            assert torch.equal(got, want), shape


def test_operator_passes_opcheck():
    torch.library.opcheck(rings.triton_push_row, (
        torch.randn(2, 3, 4), torch.tensor([0, 7]), torch.randn(2, 4),
        torch.tensor([True, False])))
