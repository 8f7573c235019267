# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from helpers import relative

from mmvidattn.ops import rotary_positions
from mmvidattn.ops.rotary_positions import naive_rotary_positions

EACH_SHAPE = pytest.mark.parametrize('shape, D', [
    ((7, ), 6), ((3, 5), 8), ((2, 3, 4), 20), ((2, 3, 1), 13)], ids=str)


@EACH_SHAPE
@pytest.mark.parametrize('options', [
    {}, dict(paired=False), dict(span=16), dict(num_axes=1)], ids=str)
def test_equals_naive(shape, D, options):
    torch.manual_seed(0)
    x = torch.randn(torch.Size(shape).numel(), 3, D, dtype=torch.float64,
                    requires_grad=True)
    got = rotary_positions(torch.stack([x, 2 * x]), shape, **options)
    want = naive_rotary_positions(x, shape, **options)
    assert relative(got, torch.stack([want, 2 * want])) < 1e-12
    grads = [torch.autograd.grad((y * y.detach().cos()).sum(), x)[0]
             for y in (got[0], want)]
    assert relative(*grads) < 1e-12
    half = rotary_positions(x.bfloat16(), shape, **options)
    assert half.dtype == torch.bfloat16 and relative(half, want) < 1e-2


@EACH_SHAPE
def test_scores_depend_on_differences_of_positions(shape, D):
    q, k = torch.randn(2, D, dtype=torch.float64)
    q, k = (rotary_positions(x.expand(torch.Size(shape).numel(), 1, D), shape)
            for x in (q, k))
    scores = (q[:, 0] @ k[:, 0].mT).reshape(*shape, *shape)
    # Shift both tokens by one along the first axis.
    axes = len(shape)
    moved = scores.narrow(0, 1, shape[0] - 1).narrow(axes, 1, shape[0] - 1)
    kept = scores.narrow(0, 0, shape[0] - 1).narrow(axes, 0, shape[0] - 1)
    torch.testing.assert_close(moved, kept)
    with pytest.raises(ValueError, match='shape must have .* tokens, got'):
        rotary_positions(q, (*shape, 2))
