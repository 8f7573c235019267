# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import importlib

import pytest
import torch
import torch.nn.functional as F

from mmvidattn.ops import linear


@pytest.fixture(params=['onednn', 'torch'], autouse=True)
def library(request, monkeypatch):
    """Both ways, whichever this processor would choose."""
    module = importlib.import_module('mmvidattn.ops.linear')
    if request.param == 'torch':
        monkeypatch.setattr(module, '_ONEDNN', False)
    else:
        chosen = module._through_onednn
        monkeypatch.setattr(module, '_ONEDNN', True)
        monkeypatch.setattr(torch, 'get_num_threads', lambda: 2)
        assert chosen(torch.ones(64, 64), torch.ones(32, 64))


@pytest.mark.parametrize('shape', [(200, 64), (3, 5, 40, 64), (2, 64)],
                         ids=['2d', '4d', 'few-rows'])
@pytest.mark.parametrize('with_bias', [True, False])
def test_matches_float64(shape, with_bias):
    x = torch.randn(shape, requires_grad=True)
    w = torch.randn(48, 64, requires_grad=True)
    b = torch.randn(48, requires_grad=True) if with_bias else None
    args = [x, w] + ([b] if with_bias else [])
    y = linear(*args)
    ref = [a.detach().double().requires_grad_() for a in args]
    y_ref = F.linear(*ref)
    assert y.shape == y_ref.shape
    assert torch.allclose(y.double(), y_ref, atol=1e-4)
    for a, g in zip(
            torch.autograd.grad(y.square().sum(), args),
            torch.autograd.grad(y_ref.square().sum(), ref)):
        assert (a.double() - g).norm() < 1e-5 * g.norm()


def test_strided_input():
    x = torch.randn(10, 20, 128)[..., ::2]
    w = torch.randn(32, 64)
    assert torch.allclose(linear(x, w), F.linear(x, w), atol=1e-4)


def test_autocast_computes_in_bfloat16():
    with torch.autocast('cpu', dtype=torch.bfloat16):
        y = linear(torch.randn(100, 64), torch.randn(32, 64))
    assert y.dtype == torch.bfloat16
