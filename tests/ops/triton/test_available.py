# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.ops import shift_plan
from mmvidattn.ops.feature_fixation import Gate
from mmvidattn.ops.triton import available
from mmvidattn.ops.triton import linear_attention_backend as module
from mmvidattn.ops.video_linear_attention import Options

bf16, fp16, fp32 = torch.bfloat16, torch.float16, torch.float32


@pytest.mark.parametrize('dtype, head_dims, gate, training, capability', [
    (bf16, 64, 'shared', True, 80), (bf16, 64, 'unshared', True, 100),
    (bf16, 128, 'none', True, 90), (fp16, 64, 'shared', True, 80),
    (fp32, 32, 'shared', True, 80), (fp32, 64, 'shared', False, 90),
])
def test_fits(dtype, head_dims, gate, training, capability):
    assert available.why_not_fits(dtype, head_dims, gate, training,
                                  capability) is None


@pytest.mark.parametrize('dtype, head_dims, gate, training, capability', [
    (bf16, 128, 'shared', False, 90), (bf16, 128, 'none', True, 80),
    (fp16, 64, 'unshared', True, 90), (fp16, 128, 'none', False, 90),
    (fp32, 64, 'shared', True, 90), (fp32, 64, 'shared', False, 80),
])
def test_does_not_fit(dtype, head_dims, gate, training, capability):
    reason = available.why_not_fits(dtype, head_dims, gate, training,
                                    capability)
    assert f'heads of {head_dims} channels in {dtype}' in reason
    assert ('training' if training else 'inference') in reason


@pytest.mark.parametrize('major, expected', [
    (7, 0), (8, 80), (9, 90), (10, 100), (12, 100)])
def test_capability(monkeypatch, major, expected):
    monkeypatch.setattr(torch.cuda, 'get_device_capability',
                        lambda device: (major, 0))
    assert available.capability(torch.device('cuda')) == expected
    assert (available.why_not_fits(bf16, 64, 'none', False, expected)
            is None) == (expected > 0)


def why_not(qkv=None, **options):
    qkv = torch.zeros(1, 2, 3, 3, 96) if qkv is None else qkv
    return module._why_not_triton(qkv, Options(**dict(num_heads=2) | options))


def test_verifier_gives_reasons(monkeypatch):
    weight, bias = torch.zeros(16, 16), torch.zeros(16)
    monkeypatch.delenv('TRITON_INTERPRET', raising=False)
    monkeypatch.setattr(available, 'HAS_TRITON', False)
    assert why_not() == 'Triton is not installed'
    monkeypatch.setattr(available, 'HAS_TRITON', True)
    assert why_not() == 'not on a CUDA device'
    monkeypatch.setenv('TRITON_INTERPRET', '1')
    assert why_not() is None
    assert why_not(pattern='space', gate=Gate(
        weight, bias, weight, bias, mode='separate')) is None
    assert 'float64' in why_not(torch.zeros(1, 2, 3, 3, 96).double())
    assert 'narrower than 16' in why_not(num_heads=4)
    assert 'wider than 128' in why_not(torch.zeros(1, 2, 3, 3, 3 * 136),
                                       num_heads=1)
    assert 'do not fit' in why_not(
        torch.zeros(1, 2, 3, 3, 192, requires_grad=True), num_heads=1)
    assert 'replicated' in why_not(
        folds=shift_plan('tsm', 32, divisor=4, boundary='replicate'))
    assert "'mul'" in why_not(gate=Gate(weight, bias, aggregate='mul'))
    assert 'eps' in why_not(eps=0.)
    assert 'segment_frames' in why_not(segment_frames=3)
    assert 'shape or pattern' in why_not(pattern='window')
    with torch.autograd.forward_ad.dual_level():
        assert 'forward-mode' in why_not()
