# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Configs are tested in configs/test_released_laps_dualformer_testra.py."""
import numpy as np
import pytest
import torch

from mmvidattn.datasets.transforms import SpreadSampleFrames


def _frames(total, clip_len, interval, num_clips=1, start=0, test=True):
    transform = SpreadSampleFrames(
        clip_len=clip_len, frame_interval=interval, num_clips=num_clips,
        test_mode=test)
    results = transform(dict(total_frames=total, start_index=start))
    assert results['frame_inds'].dtype == np.int32
    return results['frame_inds'].reshape(num_clips, clip_len)


@pytest.mark.parametrize('clip_len, interval', [
    (8, 8), (12, 32), (64, 8)])
@pytest.mark.parametrize('total', [45, 200, 300, 500])
def test_frames_match_torch_linspace(clip_len, interval, total):
    """Frames are spread over the frames after the start, as released."""
    length = clip_len * interval
    within = torch.linspace(0, length - 1, clip_len).long()
    for k, clip in enumerate(_frames(total, clip_len, interval, 10)):
        start = max(total - length, 0) * k / 10
        frames = torch.arange(int(np.ceil(start)), total)
        assert clip.tolist() == frames[within % len(frames)].tolist()


def test_training_leaves_room_for_the_clip():
    np.random.seed(0)
    starts = {_frames(70, 8, 8, test=False)[0, 0] for _ in range(200)}
    assert starts <= set(range(7)) and {1, 6} <= starts


def test_adds_the_start_of_a_segment():
    assert _frames(100, 1, 8, start=1).tolist() == [[1]]
    assert _frames(200, 8, 8, start=1)[0].tolist() == [
        1, 10, 19, 28, 37, 46, 55, 64]
