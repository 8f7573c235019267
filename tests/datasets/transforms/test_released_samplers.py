# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Frames that the released code reads from videos with 30 fps."""
import functools

import numpy as np
import pytest
import torch
from mmaction.registry import TRANSFORMS

from mmvidattn.apis import load_config
from mmvidattn.datasets.transforms import (
    AnticipationSampleFrames,
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
CLIP = range(0, 256, 17)
SCENIC = {
    (45, 2): [0] * 4, (300, 2): [0, 78, 157, 236],
    (45, 1): [0, 4, 8, 13], (300, 1): [0, 89, 178, 268]}
LENGTHS = list(SEGMENTS)

load = functools.cache(load_config)


def frames(sampler, length, start_index=0, **results):
    results = sampler(
        dict(total_frames=length, start_index=start_index, **results))
    frames = results['frame_inds']
    assert frames.dtype == np.int32
    return frames.reshape(-1, results['clip_len']).tolist()


def last_kept(start, length):
    return [min(start + frame, length - 1) for frame in CLIP]


def from_config(name, split):
    """Build the sampler of a config."""
    step, = (step for step in load(name)[f'{split}_pipeline']
             if 'clip_len' in step)
    return TRANSFORMS.build(step)


@pytest.mark.parametrize('length', LENGTHS)
def test_test_clips_of_configs_are_the_released_ones(length):
    middles, starts = SEGMENTS[length]
    # Short videos start again.
    vivit = {interval: [[(start + interval * i) % length for i in range(32)]
                        for start in SCENIC[length, interval]]
             for interval in (1, 2)}
    for name, want in dict(
            linear_ff_ssv2=[middles, starts],
            xvit_ssv2_released=[middles, starts],
            linear_ff_k400=[last_kept(start, length)
                            for start in SLOWFAST[length]],
            xvit_k400_released=[last_kept(0, length)],
            vivit_l16x2_fact_encoder_ssv2=vivit[1],
            vivit_b16x2_joint_k400=vivit[2]).items():
        assert frames(from_config(name, 'test'), length) == want, name
    assert frames(SegmentSampleFrames(16, 3, test_mode=True), length) == [
        middles, starts, [*starts[1:], length - 1]]
    if length == 300:
        # The clip for validation is in the middle.
        val = from_config('vivit_b16x2_joint_k400', 'val')
        assert frames(val, length) == [list(range(118, 182, 2))]


@pytest.mark.parametrize('length', LENGTHS)
def test_training_clips_of_configs_are_drawn_as_released(length, monkeypatch):
    sampler = from_config('linear_ff_ssv2', 'train')
    starts = SEGMENTS[length][1]
    for draw, want in (
            (lambda low, high: low, starts),
            # The last frame of a segment can be drawn, too.
            (lambda low, high: high - 1, [*starts[1:], length - 1])):
        monkeypatch.setattr(np.random, 'randint', draw)
        assert frames(sampler, length) == [want]
    # Kinetics' clips start anywhere.
    sampler = from_config('xvit_k400', 'train')
    for view, start in enumerate(SLOWFAST[length]):
        monkeypatch.setattr(
            np.random, 'uniform',
            lambda low, high, size: np.full(size, high * view / 4))
        assert frames(sampler, length) == [last_kept(start, length)]
    # A start between two frames: the sums 0.75 + (0, 2.5, 5) are truncated.
    monkeypatch.setattr(np.random, 'uniform',
                        lambda low, high, size: np.array([0.75]))
    assert frames(SlowFastSampleFrames(3, 2), length) == [[0, 3, 5]]


def test_kinetics_is_sampled_at_30_fps():
    sampler = SlowFastSampleFrames(16, 16, num_clips=2, test_mode=True)
    # Half as many frames in the same time; starts range over 300 - 128.
    assert frames(sampler, 300, avg_fps=15.) == [
        [start + 127 * i // 15 for i in range(16)] for start in (0, 86)]
    # Unknown rates and target_fps=None change nothing.
    assert frames(sampler, 300) == frames(sampler, 300, avg_fps=30.)
    any_rate = SlowFastSampleFrames(
        16, 16, num_clips=2, target_fps=None, test_mode=True)
    assert frames(any_rate, 300, avg_fps=15.) == frames(sampler, 300)


@pytest.mark.parametrize('length, interval', SCENIC, ids=str)
def test_vivit_training_clips_end_within_the_video(length, interval,
                                                   monkeypatch):
    name = ('b16x2_joint_k400' if interval == 2 else
            'l16x2_fact_encoder_epic_released')
    sampler = from_config(f'vivit_{name}', 'train')
    highs = []
    monkeypatch.setattr(
        np.random, 'randint',
        lambda high, size: highs.append(high) or np.array([high - 1]))
    got, = frames(sampler, length)
    # Short videos start again; long ones end with their last frame.
    last = max(length - 31 * interval, 1)
    assert highs == [last]
    assert got == [(last - 1 + interval * i) % length for i in range(32)]
    if length > 62:
        assert got[-1] == length - 1


CHARADES = functools.partial(CharadesSampleFrames, 16, 8, test_mode=True)
CENTERED = functools.partial(CenteredSampleFrames, 32, 2, test_mode=True)


@pytest.mark.parametrize('sampler, total, starts', [
    (CHARADES, 45, [0] * 10),
    (CHARADES, 200, [0, 9, 18, 26, 35, 44, 53, 61, 70, 79]),
    (CHARADES, 300, [0, 20, 40, 60, 80, 99, 119, 139, 159, 179]),
    (CHARADES, 500, [0, 42, 84, 126, 168, 211, 253, 295, 337, 379]),
    # mmaction 0.x
    (CENTERED, 300, [29, 88, 148, 207]), (CENTERED, 64, [0, 0, 0, 0]),
    (CENTERED, 68, [0, 1, 3, 4]), (CENTERED, 300, [118])])
def test_starts_of_test_clips(sampler, total, starts):
    step = sampler(num_clips=len(starts))
    assert frames(step, total) == [
        [min(start + step.frame_interval * i, total - 1)
         for i in range(step.clip_len)] for start in starts]


@pytest.mark.parametrize('total, low, high', [
    (45, -76, 0), (121, 0, 0), (300, 0, 179)])
def test_charades_training_clips(total, low, high, monkeypatch):
    step, ranges = CharadesSampleFrames(16, 8), []
    for start in (low, high):
        monkeypatch.setattr(np.random, 'randint', lambda *args: (
            ranges.append(args[:2]), np.full(args[2], start))[1])
        assert frames(step, total) == [[
            max(min(start + 8 * i, total - 1), 0) for i in range(16)]]
    # numpy's upper end is exclusive.
    assert ranges == [(low, high + 1)] * 2


@pytest.mark.parametrize('clip_len, interval', [(8, 8), (12, 32), (64, 8)])
@pytest.mark.parametrize('total', LENGTHS)
def test_laps_frames_match_torch_linspace(clip_len, interval, total):
    """Frames are spread over the frames after the start, as released."""
    length = clip_len * interval
    within = torch.linspace(0, length - 1, clip_len).long()
    sampler = SpreadSampleFrames(clip_len, interval, 10, test_mode=True)
    for k, clip in enumerate(frames(sampler, total)):
        start = max(total - length, 0) * k / 10
        after = torch.arange(int(np.ceil(start)), total)
        assert clip == after[within % len(after)].tolist()


def test_laps_training_leaves_room_for_the_clip():
    np.random.seed(0)
    starts = {frames(SpreadSampleFrames(8, 8), 70)[0][0] for _ in range(200)}
    assert starts <= set(range(7)) and {1, 6} <= starts


@pytest.mark.parametrize('sampler', [
    SegmentSampleFrames(4, 1, test_mode=True),
    SlowFastSampleFrames(4, 2, test_mode=True),
    ScenicSampleFrames(4, 2, test_mode=True),
    CharadesSampleFrames(4, 2, num_clips=1, test_mode=True),
    SpreadSampleFrames(8, 8, test_mode=True)],
    ids=lambda x: type(x).__name__)
def test_adds_the_start_of_a_segment(sampler):
    first, = frames(sampler, 40)
    later, = frames(sampler, 40, start_index=7)
    assert later == [frame + 7 for frame in first]


def test_anticipation_clips_end_before_the_action():
    """Frames of V-JEPA 2's released code, for 8 frames per second."""
    segment = dict(start_index=300, total_frames=120, avg_fps=59.94,
                   segment=(5., 7., 's'))
    build = functools.partial(AnticipationSampleFrames, 4)
    for step, end in ((build(), 241), (build(seconds=(.5, .5)), 271),
                      (build(point=(1, 1)), 361), (build(fps=30), 241)):
        got = step(dict(segment))
        gap = 1 if step.fps == 30 else 7
        assert got['frame_inds'].tolist() == [
            end - gap * i for i in (4, 3, 2, 1)]
        assert got['seconds_ahead'] == step.seconds[0]
    # Before the video, the first frame is repeated.
    early = build()(segment | dict(start_index=75))['frame_inds']
    assert early.tolist() == [0, 0, 2, 9]
    # Training draws the time and the moment; a whole video is before them.
    step = build(seconds=(.25, 1.75), point=(.75, 1))
    drawn = [step(dict(segment)) for _ in range(100)]
    ahead = np.array([one['seconds_ahead'] for one in drawn])
    moments = [one['frame_inds'][-1] + 7 + int(s * 59.94)
               for one, s in zip(drawn, ahead)]
    assert .25 <= ahead.min() < .5 and 1.5 < ahead.max() < 1.75
    assert 390 <= min(moments) < 395 and 415 < max(moments) < 420
    whole = build()(dict(start_index=0, total_frames=50, avg_fps=30))
    assert whole['frame_inds'].tolist() == [38, 41, 44, 47]
