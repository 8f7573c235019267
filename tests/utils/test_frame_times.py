# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest

from mmvidattn.utils.frame_times import ConstantRate


class Reader:
    """Reader like decord's, of frames that begin at given times.

    The last two frames have the same duration.
    """

    def __init__(self, begins, fps):
        self.bounds = np.append(begins, 2 * begins[-1] - begins[-2])
        self.get_avg_fps = lambda: fps

    def __len__(self):
        return len(self.bounds) - 1

    def get_frame_timestamp(self, numbers):
        return np.stack([self.bounds[:-1], self.bounds[1:]], 1)[numbers]


@pytest.mark.parametrize('begins, fps', [
    (0.2 + np.arange(90) / 29.97, 29.97),
    # Some containers round to milliseconds.
    (np.round(np.arange(90) / 30, 3), 30),
    ((np.arange(90) + np.random.default_rng(0).uniform(-.4, .4, 90)) / 30, 30),
    # Without time stamps.
    (np.zeros(90), 25)], ids=['late', 'rounded', 'jitter', 'none'])
def test_constant_rate_is_unchanged(begins, fps):
    video = ConstantRate(Reader(begins, fps))
    assert (video.fps, len(video)) == (fps, 90)
    assert (video.frames(np.arange(90)) == np.arange(90)).all()


@pytest.mark.parametrize('intervals, fps', [
    ([1 / 12] * 36 + [1 / 3] * 12, 12), ([1 / 3] * 40 + [1 / 12] * 12, 12),
    # Two frames at almost the same time do not determine the rate.
    ([1 / 30] * 20 + [0.5] + [0.001] + [1 / 30] * 20, 30),
    ([1 / 24] * 30 + [7] + [1 / 24] * 30, 24),
    ([1 / 500] * 30 + [1] * 3, 240),
], ids=['slower', 'faster', 'twins', 'pause', 'much faster'])
def test_ticks_show_the_frame_at_their_time(intervals, fps):
    times = np.append(0, np.cumsum(intervals))
    video = ConstantRate(Reader(3 + times, len(times) / sum(intervals)))
    assert video.fps == pytest.approx(fps)
    assert len(video) == round((times[-1] + intervals[-1]) * fps)
    at = (np.arange(len(video)) + .5) / video.fps
    # The last frame that begins before the middle of the tick.
    assert (video.frames(np.arange(len(video))) == (
        times <= at[:, None]).sum(1) - 1).all()


def test_first_frame_is_shown_from_the_start_of_the_file():
    late = Reader(np.arange(50), 25.)
    # As our own reader, from the start of the file.
    late.times = 2 + np.arange(51) / 25
    video = ConstantRate(late)
    assert (video.fps, len(video)) == (pytest.approx(25), 100)
    frames = video.frames(np.arange(100))
    assert (frames == np.arange(-50, 50).clip(0)).all()
