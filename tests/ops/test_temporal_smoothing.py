# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch

from mmvidattn.ops import temporal_smoothing_attention
from mmvidattn.ops.temporal_smoothing import (
    log_temporal_kernel,
    naive_temporal_smoothing_attention,
    window_smoothing,
)


def _qkv(lead=(2, ), dtype=torch.float64, n=5, m=31, width=12):
    gen = torch.Generator().manual_seed(0)
    q, k = (torch.randn(*lead, length, 3, width, generator=gen,
                        dtype=torch.float64) for length in (n, m))
    v = torch.randn(*lead, m, 3, 7, generator=gen, dtype=torch.float64)
    return [x.to(dtype).requires_grad_() for x in (q, k, v)]


def test_kernel_has_the_floor_of_the_released_code():
    kernel = log_temporal_kernel(512, 0.9)
    assert kernel.dtype == torch.float32 and kernel[-1].abs() < 1e-6
    assert (kernel[0] - torch.tensor(1e-10).log()).abs() < 1e-3
    assert (kernel[-11] - 10 * torch.tensor(0.9).log()).abs() < 1e-5


def test_float64_keeps_the_kernel_exact():
    """A kernel in float32 would be wrong by 1e-8."""
    q, k, v = _qkv(m=512)
    got = temporal_smoothing_attention(q, k, v, decay=0.97)
    scores = torch.einsum('bkgd,bngd->bkng', k, q) * q.shape[-1]**-0.5
    want = naive_temporal_smoothing_attention(q, k, v, decay=0.97)
    for y in got, window_smoothing(scores, v, decay=0.97):
        assert (y - want).norm() < 1e-13 * want.norm()


def test_half_precision_keeps_the_kernel_exact():
    """bfloat16 logarithms would be wrong by up to 6 %."""
    q = torch.zeros(1, 1, 1, 4, dtype=torch.bfloat16)
    k = torch.zeros(1, 512, 1, 4, dtype=torch.bfloat16)
    v = torch.eye(512, dtype=torch.bfloat16)[None, :, None]
    with torch.autocast('cpu', torch.bfloat16):
        y = temporal_smoothing_attention(q, k, v, decay=0.97)
    want = 0.97**torch.arange(511, -1, -1).double()
    want /= want.sum()
    assert ((y.flatten() - want).abs() / want).max() < 5e-3
