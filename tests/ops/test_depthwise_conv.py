# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from helpers import with_gradients

from mmvidattn.ops.depthwise_conv import (
    depthwise_conv,
    frame_conv,
    naive_depthwise_conv,
)


@pytest.mark.parametrize('dtype, tolerance', [
    pytest.param(torch.float64, 1e-12, id='fp64'),
    pytest.param(torch.float32, 1e-5, id='fp32'),
    pytest.param(torch.bfloat16, 2e-2, id='bf16')])
@pytest.mark.parametrize('shape, kernel, with_bias', [
    pytest.param((2, 4, 5, 6, 8), (3, 3, 3), True, id='333'),
    pytest.param((1, 1, 7, 3, 5), (3, 3, 3), True, id='one-frame'),
    pytest.param((2, 2, 3, 4, 3), (5, 3, 1), True, id='531'),
    pytest.param((1, 3, 4, 4, 16), (1, 3, 3), True, id='space'),
    pytest.param((1, 3, 3, 3, 2), (3, 3, 3), False, id='no-bias')])
def test_matches_naive(shape, kernel, with_bias, dtype, tolerance):
    """Compare training, which runs frame by frame, and inference."""
    torch.manual_seed(0)
    C = shape[-1]
    inputs = [torch.randn(*shape), torch.randn(C, 1, *kernel)]
    inputs += [torch.randn(C)] if with_bias else []
    given = [x.to(dtype) for x in inputs]
    got = with_gradients(depthwise_conv, given)
    want = with_gradients(naive_depthwise_conv, [x.double() for x in inputs])
    for a, b in zip((*got, depthwise_conv(*given)), (*want, want[0])):
        assert a.shape == b.shape and a.dtype == dtype
        assert (a - b).norm() <= tolerance * b.norm()


def test_weight_gradient_is_right_under_autocast():
    """torch 2.13 computes a wrong one in 3D, in bfloat16 with few frames."""
    torch.manual_seed(0)
    inputs = [torch.randn(2, 4, 5, 6, 8), torch.randn(8, 1, 5, 3, 1)]
    want = with_gradients(naive_depthwise_conv, [x.double() for x in inputs])
    with torch.autocast('cpu', dtype=torch.bfloat16):
        got = with_gradients(depthwise_conv, inputs)
    for a, b in zip(got, want):
        assert (a - b).norm() <= 2e-2 * b.norm()


def test_compiled_equals_naive():
    torch.manual_seed(0)
    inputs = [torch.randn(2, 3, 4, 5, 8), torch.randn(8, 1, 3, 3, 3),
              torch.randn(8)]
    compiled = torch.compile(
        depthwise_conv, fullgraph=True, backend='aot_eager')
    got = with_gradients(compiled, inputs)
    want = with_gradients(naive_depthwise_conv, [x.double() for x in inputs])
    for a, b in zip(got, want):
        assert (a - b).norm() <= 1e-5 * b.norm()
    with torch.no_grad():
        assert torch.allclose(
            compiled(*inputs), depthwise_conv(*inputs), atol=1e-5)


def test_compiled_operator_has_right_strides():
    """torch.library's own checks, of the fake implementation too."""
    x = torch.randn(2, 3, 4, 5, 8, requires_grad=True)
    weight = torch.randn(8, 1, 3, 3, requires_grad=True)
    torch.library.opcheck(frame_conv, (x, weight, None))
    torch.library.opcheck(frame_conv, (x[:, 1:], weight, weight[:, 0, 0, 0]))
