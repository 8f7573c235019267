# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.ops.depthwise_conv import depthwise_conv


def _both(shape, kernel, dtype, with_bias=True):
    """Output and gradients of ours, and of the reference in fp64."""
    torch.manual_seed(0)
    C = shape[-1]
    inputs = [torch.randn(*shape), torch.randn(C, 1, *kernel)]
    inputs += [torch.randn(C)] if with_bias else []
    weight = torch.randn(*shape, dtype=torch.float64)
    results = []
    for function, kind in ((depthwise_conv, dtype),
                           (depthwise_conv.plain, torch.float64)):
        args = [x.clone().to(kind).requires_grad_() for x in inputs]
        y = function(*args)
        (y.double() * weight).sum().backward()
        results.append([y.detach(), *(x.grad for x in args)])
    return results


@pytest.mark.parametrize('dtype, tolerance', [(torch.float64, 1e-12),
                                              (torch.float32, 1e-5),
                                              (torch.bfloat16, 2e-2)],
                         ids=['fp64', 'fp32', 'bf16'])
@pytest.mark.parametrize('shape, kernel', [
    ((2, 4, 5, 6, 8), (3, 3, 3)), ((1, 1, 7, 3, 5), (3, 3, 3)),
    ((2, 2, 3, 4, 3), (5, 3, 1)), ((1, 3, 4, 4, 16), (1, 3, 3))],
    ids=['333', 'one-frame', '531', 'space'])
def test_matches_naive(shape, kernel, dtype, tolerance):
    for got, want in zip(*_both(shape, kernel, dtype)):
        assert (got - want).norm() <= tolerance * want.norm()


def test_takes_no_bias():
    for got, want in zip(*_both((1, 3, 3, 3, 2), (3, 3, 3), torch.float64,
                                with_bias=False)):
        assert torch.allclose(got, want)


def test_takes_tokens_that_lie_otherwise():
    x = torch.randn(2, 4, 3, 5, 6)
    weight = torch.randn(4, 1, 3, 3, 3)
    want = depthwise_conv.plain(x.movedim(1, -1).contiguous(), weight)
    assert torch.allclose(
        depthwise_conv(x.movedim(1, -1), weight), want, atol=1e-5)


@pytest.mark.parametrize('training', [False, True])
def test_compiles_to_the_same(training):
    x, weight = torch.randn(1, 3, 4, 4, 8), torch.randn(8, 1, 3, 3, 3)
    weight.requires_grad_(training)
    compiled = torch.compile(depthwise_conv, fullgraph=True,
                             backend='aot_eager')
    assert torch.allclose(
        compiled(x, weight), depthwise_conv(x, weight), atol=1e-5)


@pytest.mark.parametrize('shape', [(4, 1, 3, 3, 2), (5, 1, 3, 3, 3),
                                   (4, 4, 3, 3, 3)],
                         ids=['even', 'channels', 'dense'])
def test_rejects(shape):
    with pytest.raises(ValueError, match='depthwise_conv takes'):
        depthwise_conv(torch.zeros(1, 2, 2, 2, 4), torch.zeros(shape))
