# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest

from mmvidattn.datasets.transforms import CenteredSampleFrames


def _offsets(num_frames, num_clips, clip_len=32):
    transform = CenteredSampleFrames(
        clip_len=clip_len, frame_interval=2, num_clips=num_clips,
        test_mode=True)
    results = transform(dict(total_frames=num_frames, start_index=0))
    frames = results['frame_inds'].reshape(num_clips, clip_len)
    assert (np.diff(frames, axis=1) == 2).all() or num_frames < 64
    return frames[:, 0].tolist()


@pytest.mark.parametrize('num_frames, want', [
    (300, [29, 88, 148, 207]), (64, [0, 0, 0, 0]), (68, [0, 1, 3, 4]),
    (20, [0, 0, 0, 0])])
def test_test_clips_match_mmaction_0(num_frames, want):
    assert _offsets(num_frames, 4) == want


def test_single_clip_is_in_the_middle():
    assert _offsets(300, 1) == [118]
