# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from online.detectors import thumos_detector
from online.networks import video_like

from mmvidattn.apis.complexity import count_complexity
from mmvidattn.online import dense_features


def _tables(model, length=40, rate=2):
    """Return the frames of a window for each step, as in a dataset."""
    N, L = model.long_memory_length, model.work_memory_length
    long, mask = [], []
    for start in range(length - L + 1):
        frames = [start - rate * (N - j) for j in range(N)]
        long.append([max(t, 0) for t in frames])
        mask.append([t < 0 for t in frames])
    work = torch.arange(length - L + 1)[:, None] + torch.arange(L)
    return (torch.tensor(long, dtype=torch.long).reshape(len(work), N), work,
            torch.tensor(mask, dtype=torch.bool).reshape(len(work), N))


def _windows(video, long, work):
    return {
        name: torch.cat([x[long], x[work]], dim=1)
        for name, x in video.items()
    }


def test_matches_a_loop_over_windows(pair):
    model = pair[1].backbone
    video, (long, work, mask) = video_like(model.in_channels), _tables(model)
    got = dense_features(model, video, long, work, mask, 7)
    want = model(dict(_windows(video, long, work), padding_mask=mask))
    want = want[:, model.work_memory_length - 1:]
    assert got.shape == want.shape
    assert (got - want).norm() / want.norm() < 1e-11
    # No graph of an entire video is kept for gradients.
    assert want.requires_grad and not got.requires_grad


def test_frames_are_projected_once():
    """With THUMOS'14 sizes, the cost of each additional window is low."""
    with torch.device('meta'):
        model = thumos_detector().backbone
        one = _macs_of_dense(model, 33)
        many = _macs_of_dense(model, 43)
        window = count_complexity(model, dict(
            rgb=torch.empty(1, 544, 2048), flow=torch.empty(1, 544, 1024)))
    assert (many - one) / 10 < window.macs / 4.5


def _macs_of_dense(model, length):
    video = {
        name: torch.empty(length, channels)
        for name, channels in model.in_channels.items()
    }
    num = length - 31
    long = torch.empty(num, 512, dtype=torch.long)
    work = torch.empty(num, 32, dtype=torch.long)

    class Dense(torch.nn.Module):

        def forward(self):
            return dense_features(model, video, long, work)

    return count_complexity(Dense()).macs


def test_rejects_training_mode_and_other_windows(detector):
    model = detector().backbone
    video, (long, work, mask) = video_like(model.in_channels), _tables(model)
    with pytest.raises(ValueError, match='must be in eval mode'):
        dense_features(model.train(), video, long, work, mask)
    model.eval()
    with pytest.raises(ValueError, match=r'long_indices must be \[W, 12\]'):
        dense_features(model, video, long[:, 1:], work, mask)
    with pytest.raises(ValueError, match=r'work_indices must be \[W, 5\]'):
        dense_features(model, video, long, work[:, 1:], mask)
