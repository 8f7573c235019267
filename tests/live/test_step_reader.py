# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mmvidattn.live.step_reader import (
    Frame,
    StepMaker,
    frame_indices,
    last_frame,
    num_steps,
    source_frames,
)

RATES = [(24, 4), (25, 4), (29.97, 4), (30, 7.5), (5, 5)]


def frames(indices):
    """Make frames with their index in each pixel."""
    return [Frame(np.full((1, 1, 3), i), i, 0., float(i)) for i in indices]


def cut(maker, indices):
    return [step for frame in frames(indices) for step in maker.add(frame)]


def indices_of(frames):
    return [frame.index for frame in frames]


def test_frames_of_steps():
    # At 24 frames per second a step has 6 frames, and a single frame is the
    # 4th. Clips end with the step, and start with the video.
    for step, fps, num, interval, want in (
            (0, 24, 1, 1, [3]), (2, 24, 1, 1, [15]),
            (0, 24, 4, 2, [0, 1, 3, 5]), (2, 24, 4, 2, [11, 13, 15, 17]),
            (2, 30, 2, 1, [21, 22])):
        assert frame_indices(step, fps, 4, num, interval).tolist() == want
    assert (num_steps(72, 24, 4), num_steps(71, 24, 4)) == (12, 11)
    # At 12 frames per second each is used twice, at 48 every other one.
    for fps, want in ((24, [*range(18, 24)]), (12, [9, 9, 10, 10, 11, 11]),
                      (48, [36, 38, 40, 42, 44, 46])):
        assert source_frames(np.arange(18, 24), 24, fps, 3, 4).tolist() == want
    # No frame is later than the step; at 30 per second it has 8 frames.
    assert source_frames(np.arange(8), 24, 30, 0, 4).max() == 7


@pytest.mark.parametrize('fps, rate', RATES)
@pytest.mark.parametrize('clip_len, interval', [(1, 1), (2, 1), (5, 3)])
def test_live_clips_match_clips_of_the_file(fps, rate, clip_len, interval):
    """Also of a reader that starts later."""
    reach = (clip_len - 1) * interval
    maker = StepMaker(fps, rate, reach)
    exact = Fraction(str(rate)) / Fraction(str(fps))
    steps = cut(maker, range(150))
    assert [step.number for step in steps] == list(
        range(num_steps(150, fps, rate)))
    assert len(steps) >= 20 and maker.missing == 0
    for step in steps:
        assert {math.floor(frame.index * exact) for frame in step.new_frames
                } == {step.number}
        assert len(step.frames) <= reach + math.ceil(fps / rate) + 1
        expected = frame_indices(step.number, fps, rate, clip_len, interval)
        images = step.images_at(expected)
        assert [int(image[0, 0, 0]) for image in images] == expected.tolist()
    assert [i for step in steps for i in indices_of(step.new_frames)] == [
        *range(last_frame(steps[-1].number, fps, rate) + 1)]
    for step in steps[::3]:
        maker = StepMaker(fps, rate, reach)
        later = cut(maker, range(maker.start_at(step.number), 150))
        for each, want in zip(later, steps[step.number:], strict=True):
            assert (each.number, each.num_new, indices_of(each.frames)) == (
                want.number, want.num_new, indices_of(want.frames))


def test_earlier_frame_replaces_missing_frame():
    """Late frames are ignored."""
    steps = cut(StepMaker(24, 4, 12), [0, 1, 4, 4, 3, 5, 7, 9, 10, 13, 17])
    assert [indices_of(step.new_frames) for step in steps] == [
        [0, 1, 4, 5], [7, 9, 10], [13, 17]]
    images = steps[1].images_at([0, 3, 6, 8, 9, 11])
    assert [int(x[0, 0, 0]) for x in images] == [0, 1, 5, 7, 9, 10]


def test_steps_without_frames_are_missing():
    maker = StepMaker(24, 4, 0)
    steps = cut(maker, [*range(6), 7, 40, 41, 60])
    assert [(step.number, indices_of(step.new_frames)) for step in steps] == [
        (0, [*range(6)]), (1, [7]), (6, [40, 41])]
    # Steps 2 to 5, and 7 to 9.
    assert maker.missing == 4 + 3


def test_old_frame_does_not_replace_missing_frames():
    *_, last = cut(StepMaker(24, 4, 12), [*range(24), *range(48, 54)])
    assert indices_of(last.frames) == [*range(48, 54)]
    *_, last = cut(StepMaker(24, 4, 12), [*range(24), *range(36, 42)])
    assert int(last.images_at([35])[0][0, 0, 0]) == 23
    maker = StepMaker(24, 4, 12)
    cut(maker, range(24))
    maker.add(replace(*frames([24]), jumped_back=True))
    *_, last = cut(maker, range(25, 30))
    assert indices_of(last.frames) == [*range(24, 30)]
    assert last.jumped_back
