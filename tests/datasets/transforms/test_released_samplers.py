# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Frames that the released code reads from videos with 30 fps."""
import functools

import numpy as np
import pytest
import torch

from mmvidattn.apis import load_config
from mmvidattn.datasets.transforms import (
    CenteredSampleFrames,
    CharadesSampleFrames,
    ScenicSampleFrames,
    SegmentSampleFrames,
    SlowFastSampleFrames,
    SpreadSampleFrames,
)

# Middles and starts of 16 segments, by the length of a video.
SEGMENTS = {
    45: ([1, 4, 7, 9, 12, 15, 17, 20, 23, 26, 29, 31, 34, 37, 39, 42],
         [0, 3, 6, 8, 11, 14, 16, 19, 22, 25, 28, 30, 33, 36, 38, 41]),
    300: ([9, 28, 46, 65, 84, 102, 121, 140, 159, 177, 196, 215, 233, 252,
           271, 289],
          [0, 19, 37, 56, 75, 93, 112, 131, 150, 168, 187, 206, 224, 243, 262,
           280])}
# Starts of four clips.
SLOWFAST = {45: [0] * 4, 300: [0, 11, 22, 33]}
CLIP = [0, 17, 34, 51, 68, 85, 102, 119, 136, 153, 170, 187, 204, 221, 238,
        255]
SCENIC = {
    (45, 2): [0] * 4, (300, 2): [0, 78, 157, 236],
    (45, 1): [0, 4, 8, 13], (300, 1): [0, 89, 178, 268]}
LENGTHS = list(SEGMENTS)

_load = functools.cache(load_config)


def _frames(sampler, length, start_index=0, **results):
    results = sampler(
        dict(total_frames=length, start_index=start_index, **results))
    frames = results['frame_inds']
    assert frames.dtype == np.int32
    return frames.reshape(-1, results['clip_len']).tolist()


def _last_kept(start, length):
    return [min(start + frame, length - 1) for frame in CLIP]


def _from_config(name, split):
    """Build the sampler of a config."""
    step, = (step for step in _load(name)[f'{split}_pipeline']
             if 'clip_len' in step)
    step = dict(step)
    return dict(
        SegmentSampleFrames=SegmentSampleFrames,
        SlowFastSampleFrames=SlowFastSampleFrames,
        ScenicSampleFrames=ScenicSampleFrames)[step.pop('type')](**step)


@pytest.mark.parametrize('length', LENGTHS)
def test_something_test_clips_are_middles_then_starts(length):
    middles, starts = SEGMENTS[length]
    assert _frames(_from_config('linear_ff_ssv2', 'test'), length) == [
        middles, starts]
    assert _frames(_from_config('xvit_ssv2_released', 'test'), length) == [
        middles, starts]
    ends = [*starts[1:], length - 1]
    assert _frames(SegmentSampleFrames(16, 3, test_mode=True), length) == [
        middles, starts, ends]


@pytest.mark.parametrize('length', LENGTHS)
def test_something_trains_on_random_frames_of_segments(length, monkeypatch):
    sampler = _from_config('linear_ff_ssv2', 'train')
    starts = SEGMENTS[length][1]
    for draw, want in (
        (lambda low, high: low, starts),
            # The last frame of a segment can be drawn, too.
        (lambda low, high: high - 1, [*starts[1:], length - 1])):
        monkeypatch.setattr(np.random, 'randint', draw)
        assert _frames(sampler, length) == [want]


@pytest.mark.parametrize('length', LENGTHS)
def test_kinetics_test_clips_start_at_fractions_of_the_range(length):
    assert _frames(_from_config('linear_ff_k400', 'test'), length) == [
        _last_kept(start, length) for start in SLOWFAST[length]]
    assert _frames(_from_config('xvit_k400_released', 'test'), length) == [
        _last_kept(0, length)]


@pytest.mark.parametrize('length', LENGTHS)
def test_kinetics_training_clips_start_anywhere(length, monkeypatch):
    sampler = _from_config('xvit_k400', 'train')
    for view, start in enumerate(SLOWFAST[length]):
        monkeypatch.setattr(
            np.random, 'uniform',
            lambda low, high, size: np.full(size, high * view / 4))
        assert _frames(sampler, length) == [_last_kept(start, length)]
    # A start between two frames: the sums 0.75 + (0, 2.5, 5) are truncated.
    monkeypatch.setattr(np.random, 'uniform',
                        lambda low, high, size: np.array([0.75]))
    assert _frames(SlowFastSampleFrames(3, 2), length) == [[0, 3, 5]]


def test_kinetics_is_sampled_at_30_fps():
    sampler = SlowFastSampleFrames(16, 16, num_clips=2, test_mode=True)
    # Half as many frames in the same time; starts range over 300 - 128.
    got = _frames(sampler, 300, avg_fps=15.)
    assert got[0] == [0, 8, 16, 25, 33, 42, 50, 59, 67, 76, 84, 93, 101, 110,
                      118, 127]
    assert got[1] == [86 + frame for frame in got[0]]
    # Unknown rates and target_fps=None change nothing.
    assert _frames(sampler, 300) == _frames(sampler, 300, avg_fps=30.)
    any_rate = SlowFastSampleFrames(
        16, 16, num_clips=2, target_fps=None, test_mode=True)
    assert _frames(any_rate, 300, avg_fps=15.) == _frames(sampler, 300)


@pytest.mark.parametrize('length, interval', SCENIC, ids=str)
def test_vivit_test_clips_cover_the_video(length, interval):
    name = 'b16x2_joint_k400' if interval == 2 else 'l16x2_fact_encoder_ssv2'
    assert _frames(_from_config(f'vivit_{name}', 'test'), length) == [
        [(start + interval * i) % length for i in range(32)]
        for start in SCENIC[length, interval]]


@pytest.mark.parametrize('length, interval', SCENIC, ids=str)
def test_vivit_training_clips_end_within_the_video(length, interval,
                                                   monkeypatch):
    name = ('b16x2_joint_k400' if interval == 2 else
            'l16x2_fact_encoder_epic_released')
    sampler = _from_config(f'vivit_{name}', 'train')
    highs = []
    monkeypatch.setattr(
        np.random, 'randint',
        lambda high, size: highs.append(high) or np.array([high - 1]))
    got, = _frames(sampler, length)
    # Short videos start again; long ones end with their last frame.
    last = max(length - 31 * interval, 1)
    assert highs == [last]
    assert got == [(last - 1 + interval * i) % length for i in range(32)]
    if length > 62:
        assert got[-1] == length - 1


def test_vivit_validation_clip_is_in_the_middle():
    assert _frames(_from_config('vivit_b16x2_joint_k400', 'val'), 300) == [
        list(range(118, 182, 2))]


@pytest.mark.parametrize('sampler', [
    SegmentSampleFrames(4, 1, test_mode=True),
    SlowFastSampleFrames(4, 2, test_mode=True),
    ScenicSampleFrames(4, 2, test_mode=True),
    CharadesSampleFrames(4, 2, num_clips=1, test_mode=True),
    SpreadSampleFrames(8, 8, test_mode=True)],
    ids=lambda x: type(x).__name__)
def test_adds_the_start_of_a_segment(sampler):
    first, = _frames(sampler, 40)
    later, = _frames(sampler, 40, start_index=7)
    assert later == [frame + 7 for frame in first]


@pytest.mark.parametrize('num_frames, num_clips, want', [
    (300, 4, [29, 88, 148, 207]), (64, 4, [0, 0, 0, 0]), (68, 4, [0, 1, 3, 4]),
    (20, 4, [0, 0, 0, 0]), (300, 1, [118])])
def test_centered_test_clips_match_mmaction_0(num_frames, num_clips, want):
    frames = CenteredSampleFrames(
        32, 2, num_clips, test_mode=True)(
            dict(total_frames=num_frames, start_index=0))['frame_inds']
    frames = frames.reshape(num_clips, 32)
    assert (np.diff(frames, axis=1) == 2).all() or num_frames < 64
    assert frames[:, 0].tolist() == want


# configs/test_released.py tests the configs of LAPS.
@pytest.mark.parametrize('clip_len, interval', [(8, 8), (12, 32), (64, 8)])
@pytest.mark.parametrize('total', LENGTHS)
def test_laps_frames_match_torch_linspace(clip_len, interval, total):
    """Frames are spread over the frames after the start, as released."""
    length = clip_len * interval
    within = torch.linspace(0, length - 1, clip_len).long()
    sampler = SpreadSampleFrames(clip_len, interval, 10, test_mode=True)
    for k, clip in enumerate(_frames(sampler, total)):
        start = max(total - length, 0) * k / 10
        frames = torch.arange(int(np.ceil(start)), total)
        assert clip == frames[within % len(frames)].tolist()


def test_laps_training_leaves_room_for_the_clip():
    np.random.seed(0)
    sampler = SpreadSampleFrames(8, 8)
    starts = {_frames(sampler, 70)[0][0] for _ in range(200)}
    assert starts <= set(range(7)) and {1, 6} <= starts
