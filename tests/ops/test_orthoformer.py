# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from helpers import relative

from mmvidattn.ops import orthoformer_attention, orthogonal_landmarks


def test_landmarks_have_different_directions():
    """Select one landmark per group: multiples of e0, of e1, and e0 + e1."""
    e = torch.eye(4)
    q = torch.stack([e[0], 3 * e[0], -e[0], e[1], e[0] + e[1], -2 * e[1]])
    q = q.view(1, 6, 1, 4)
    assert orthogonal_landmarks(q, 2, 0).flatten().tolist() == [0, 3]
    assert orthogonal_landmarks(q, 3, 0).flatten().tolist() == [0, 3, 4]


def test_no_token_is_chosen_twice():
    for q in (torch.zeros(2, 9, 1, 4), torch.ones(2, 9, 1, 4)):
        chosen = orthogonal_landmarks(q, 6)
        assert (chosen.diff(dim=1) > 0).all()


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_half_precision_landmarks_are_chosen_in_float32(dtype):
    # Among 400 queries, some are nearly tied.
    q = torch.randn(
        2, 400, 2, 16, generator=torch.Generator().manual_seed(0)).to(dtype)
    want = orthogonal_landmarks(q.float(), 60, 5)
    assert torch.equal(orthogonal_landmarks(q, 60, 5), want)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        assert torch.equal(orthogonal_landmarks(q.float(), 60, 5), want)


def test_first_landmark_is_random_by_default():
    q = torch.randn(64, 31, 2, 8)

    def draw(seed):
        return orthogonal_landmarks(
            q, 1, generator=torch.Generator().manual_seed(seed))

    assert torch.equal(draw(0), draw(0)) and not torch.equal(draw(0), draw(1))
    assert len(draw(0).unique()) > 20
    assert (orthogonal_landmarks(q, 1, 3) == 3).all()


@pytest.mark.parametrize('name', [
    'orthoformer_lvt', 'orthoformer_motionformer_shared1'])
@pytest.mark.parametrize('dtype, tolerance', [
    pytest.param(torch.float64, 1e-10, id='fp64'),
    pytest.param(torch.float32, 1e-5, id='fp32')])
def test_golden_attention(golden, name, dtype, tolerance):
    """Both forms of the released code, with its landmarks."""
    G = golden('linear/golden_attn.pt')
    g = G[name]
    q, k, v = (G[x].transpose(1, 2).to(dtype) for x in 'qkv')
    chosen = orthogonal_landmarks(q, g['num_landmarks'],
                                  g['first_index'].view(2, 3))
    landmarks = torch.take_along_dim(q, chosen.unsqueeze(-1), dim=1)
    scaled = landmarks.transpose(1, 2).flatten(0, 1) * 16**-0.25
    assert relative(scaled, g['landmarks_scaled']) < tolerance
    if 'num_frames' in g:
        # In Motionformer, landmarks attend to each frame separately.
        frames = zip(*(x.chunk(g['num_frames'], dim=1) for x in (k, v)))
        y = torch.stack([orthoformer_attention(q, *kv, landmarks)
                         for kv in frames], dim=2)
    else:
        y = orthoformer_attention(q, k, v, landmarks)
    # [B, N, (F, ) G, D] to [B, G, N, (F, ) D].
    y = y.movedim(-2, 1)
    assert y.shape == g['out'].shape
    assert relative(y, g['out']) < tolerance
