# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest

from mmvidattn.utils.frame_times import ConstantRate, find_frames


class Reader:
    """Reader of decord of frames that begin at given times.

    The last two frames have the same duration.
    """

    def __init__(self, begins, fps):
        self.bounds = np.append(begins, 2 * begins[-1] - begins[-2])
        self.fps = fps

    def __len__(self):
        return len(self.bounds) - 1

    def get_frame_timestamp(self, numbers):
        return np.stack([self.bounds[:-1], self.bounds[1:]], 1)[numbers]

    def get_avg_fps(self):
        return self.fps


RNG = np.random.default_rng(0)


@pytest.mark.parametrize('begins, fps', [
    (0.2 + np.arange(90) / 29.97, 29.97),
    # Some containers round to milliseconds.
    (np.round(np.arange(90) / 30, 3), 30),
    (np.arange(90) / 30 + RNG.uniform(-0.4, 0.4, 90) / 30, 30),
], ids=['late', 'rounded', 'jitter'])
def test_constant_rate_is_unchanged(begins, fps):
    video = ConstantRate(Reader(begins, fps))
    assert (video.fps, len(video)) == (fps, 90)
    assert (video.frames(np.arange(90)) == np.arange(90)).all()


@pytest.mark.parametrize('intervals, fps', [
    ([1 / 12] * 36 + [1 / 3] * 12, 12),
    ([1 / 3] * 40 + [1 / 12] * 12, 12),
    # Two frames at almost the same time do not determine the rate.
    ([1 / 30] * 20 + [0.5] + [0.001] + [1 / 30] * 20, 30),
    ([1 / 24] * 30 + [7] + [1 / 24] * 30, 24),
    ([1 / 500] * 30 + [1] * 3, 240),
], ids=['slower', 'faster', 'twins', 'pause', 'much faster'])
def test_ticks_show_the_frame_at_their_time(intervals, fps):
    begins = 3 + np.append(0, np.cumsum(intervals))
    video = ConstantRate(Reader(begins, len(begins) / sum(intervals)))
    assert video.fps == pytest.approx(fps)
    times = begins - begins[0]
    assert len(video) == round((times[-1] + intervals[-1]) * fps)
    for tick, frame in enumerate(video.frames(np.arange(len(video)))):
        at = (tick + 0.5) / video.fps
        assert times[frame] <= at
        assert frame == len(times) - 1 or times[frame + 1] > at


def test_first_frame_is_shown_from_the_start_of_the_file():
    class Late:
        times = 2 + np.arange(51) / 25

        def __len__(self):
            return 50

        def get_avg_fps(self):
            return 25.

    video = ConstantRate(Late())
    assert (video.fps, len(video)) == (pytest.approx(25), 100)
    frames = video.frames(np.arange(100))
    assert (frames == np.arange(-50, 50).clip(0)).all()
    assert find_frames(Late(), [0., 2.5]) == ([0, 13], pytest.approx(4.))
