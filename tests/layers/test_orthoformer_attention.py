# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.layers import OrthoformerAttention, VideoSelfAttention
from mmvidattn.ops.orthoformer import (
    naive_orthoformer_attention,
    naive_orthogonal_landmarks,
)

GRID = (4, 3, 5)
PATTERNS = [('time', None), ('space', None), ('joint', None), ('window', 3)]


def _module(pattern='joint', window=None, **kwargs):
    torch.manual_seed(0)
    return VideoSelfAttention(
        12,
        3,
        dict(type='OrthoformerAttention', **kwargs),
        GRID,
        pattern=pattern,
        window_frames=window).double()


def _captured(module, x):
    """Return the arguments and the result of the inner attention."""
    calls = []
    handle = module.attention.register_forward_hook(
        lambda _, args, y: calls.append((args, y)))
    module(x)
    handle.remove()
    (args, y), = calls
    return args, y


def _by_hand(q, k, v, num_landmarks):
    """Attend head by head; the first landmark is token 0."""
    *lead, N, G, D = q.shape
    y = []
    for q, k, v in zip(*(x.flatten(0, -4) for x in (q, k, v))):
        heads = []
        for g in range(G):
            chosen = naive_orthogonal_landmarks(q[:, g], num_landmarks, 0)
            heads.append(
                naive_orthoformer_attention(*(
                    x[:, g:g + 1] for x in (q, k, v, q[chosen].detach()))))
        y.append(torch.cat(heads, dim=1))
    return torch.stack(y).view(*lead, N, G, D)


@pytest.mark.parametrize('pattern, window', PATTERNS)
@pytest.mark.parametrize('num_landmarks', [1, 3, 64])
def test_matches_naive_in_every_pattern(pattern, window, num_landmarks):
    module = _module(pattern, window, num_landmarks=num_landmarks).eval()
    x = torch.randn(2, *GRID, 12, dtype=torch.float64)
    (q, k, v, *_), y = _captured(module, x)
    assert torch.allclose(y, _by_hand(q, k, v, num_landmarks), atol=1e-12)


def test_landmarks_pass_no_gradient():
    attention = OrthoformerAttention(4, 3, (9, ), num_landmarks=4).eval()
    tensors = [
        torch.randn(2, 9, 3, 4, dtype=torch.float64, requires_grad=True)
        for _ in range(3)
    ]
    grads = (
        torch.autograd.grad(y.square().sum(), tensors)
        for y in (attention(*tensors), _by_hand(*tensors, 4)))
    for got, want in zip(*grads):
        assert torch.allclose(got, want, atol=1e-12)


def test_first_landmark_is_random_in_training_only():
    module = _module(num_landmarks=2)
    x = torch.randn(2, *GRID, 12, dtype=torch.float64)

    def run(seed):
        torch.manual_seed(seed)
        return module(x)

    assert torch.equal(run(0), run(0)) and not torch.equal(run(0), run(1))
    module.eval()
    assert torch.equal(run(0), run(1))
