# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convolutions of tokens: autocast, compiling, and incomplete patches."""
import pytest
import torch
from helpers import with_gradients
from ops.attentions import naive

from mmvidattn.ops.depthwise_conv import depthwise_conv, frame_conv
from mmvidattn.ops.patch_conv import fit_patches, patch_conv


def test_weight_gradient_is_right_under_autocast():
    """torch 2.13 computes a wrong one in 3D, in bfloat16 with few frames."""
    torch.manual_seed(0)
    inputs = [torch.randn(2, 4, 5, 6, 8), torch.randn(8, 1, 5, 3, 1)]
    want = with_gradients(naive.depthwise_conv, [x.double() for x in inputs])
    with torch.autocast('cpu', dtype=torch.bfloat16):
        got = with_gradients(depthwise_conv, inputs)
    for a, b in zip(got, want):
        assert (a - b).norm() <= 2e-2 * b.norm()


@pytest.mark.parametrize('op, reference, kernel', [
    (depthwise_conv, naive.depthwise_conv, (8, 1, 3, 3, 3)),
    (patch_conv, naive.patch_conv, (8, 1, 2, 2, 2))])
def test_compiled_equals_naive(op, reference, kernel):
    torch.manual_seed(0)
    inputs = [torch.randn(2, 3, 4, 5, 8), torch.randn(kernel), torch.randn(8)]
    compiled = torch.compile(op, fullgraph=True, backend='aot_eager')
    got = with_gradients(compiled, inputs)
    want = with_gradients(reference, [x.double() for x in inputs])
    for a, b in zip(got, want):
        assert (a - b).norm() <= 1e-5 * b.norm()
    with torch.no_grad():
        assert torch.allclose(compiled(*inputs), op(*inputs), atol=1e-5)


def test_compiled_operator_has_right_strides():
    """torch.library's own checks, of the fake implementation too."""
    x = torch.randn(2, 3, 4, 5, 8, requires_grad=True)
    weight = torch.randn(8, 1, 3, 3, requires_grad=True)
    torch.library.opcheck(frame_conv, (x[:, 1:], weight, None))


@pytest.mark.parametrize('keep_rest', [True, False])
def test_incomplete_patches_are_padded_or_cropped(keep_rest):
    """The last axis has no whole patch, so it is always padded."""
    x = torch.rand(1, 5, 6, 1, 3) + 1
    y = fit_patches(x, (2, 2, 2), keep_rest)
    assert y.shape[1:4] == ((6, 6, 2) if keep_rest else (4, 6, 2))
    inside = y[:, :min(5, y.shape[1]), :6, :1]
    assert torch.equal(inside, x[:, :y.shape[1]][:, :5])
    assert y.sum() == pytest.approx(inside.sum().item())
