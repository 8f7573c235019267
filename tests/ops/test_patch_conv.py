# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from helpers import with_gradients

from mmvidattn.ops.patch_conv import (
    fit_patches,
    naive_patch_conv,
    patch_conv,
)

CASES = {
    'dense': ((2, 4, 6, 8, 3), (5, 3, 2, 3, 4)),
    'dense-rest': ((1, 5, 7, 9, 3), (4, 3, 2, 3, 4)),
    'depth-wise': ((2, 4, 6, 8, 6), (6, 1, 2, 3, 4)),
    'depth-wise-rest': ((1, 5, 7, 9, 6), (6, 1, 2, 3, 4)),
    'one-channel': ((1, 4, 4, 4, 1), (3, 1, 2, 2, 2)),
    'one-patch': ((1, 2, 3, 4, 5), (5, 1, 2, 3, 4)),
}


@pytest.mark.parametrize('dtype, tolerance', [
    pytest.param(torch.float64, 1e-12, id='fp64'),
    pytest.param(torch.float32, 1e-5, id='fp32'),
    pytest.param(torch.bfloat16, 2e-2, id='bf16')])
@pytest.mark.parametrize('order', ['channels-last', 'channels-first'])
@pytest.mark.parametrize('shape, kernel', CASES.values(), ids=CASES)
def test_matches_naive(shape, kernel, order, dtype, tolerance):
    """Compare training, which multiplies patches, and inference."""
    torch.manual_seed(0)
    inputs = [torch.randn(*shape), torch.randn(*kernel),
              torch.randn(kernel[0])]
    if order == 'channels-first':
        inputs[0] = inputs[0].movedim(-1, 1).contiguous().movedim(1, -1)
    given = [x.to(dtype) for x in inputs]
    got = with_gradients(patch_conv, given)
    want = with_gradients(naive_patch_conv, [x.double() for x in inputs])
    for a, b in zip((*got, patch_conv(*given)), (*want, want[0])):
        assert a.shape == b.shape and a.dtype == dtype
        assert (a - b).norm() <= tolerance * b.norm()


@pytest.mark.parametrize('training', [False, True])
def test_compiled_equals_eager(training):
    x, weight = torch.randn(1, 4, 4, 4, 8), torch.randn(8, 1, 2, 2, 2)
    weight.requires_grad_(training)
    compiled = torch.compile(patch_conv, fullgraph=True, backend='aot_eager')
    assert torch.allclose(compiled(x, weight), patch_conv(x, weight),
                          atol=1e-5)


@pytest.mark.parametrize('keep_rest', [True, False])
def test_incomplete_patches_are_padded_or_cropped(keep_rest):
    """The last axis has no whole patch, so it is always padded."""
    x = torch.rand(1, 5, 6, 1, 3) + 1
    y = fit_patches(x, (2, 2, 2), keep_rest)
    assert y.shape[1:4] == ((6, 6, 2) if keep_rest else (4, 6, 2))
    inside = y[:, :min(5, y.shape[1]), :6, :1]
    assert torch.equal(inside, x[:, :y.shape[1]][:, :5])
    assert y.sum() == pytest.approx(inside.sum().item())
