# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest

from mmvidattn.apis.video_clips import PassingFrames, _frames_clip
from mmvidattn.sources import Frame


def test_a_source_is_read_no_further_than_wanted():
    read = []

    def source():
        for index in range(9):
            read.append(index)
            yield Frame(np.full((2, 2, 3), index, np.uint8), index, 0., 0.)

    frames = PassingFrames(source()).take(np.array([4, 1, 4]))
    assert [frame.max() for frame in frames] == [4, 1, 4]
    assert read == [0, 1, 2, 3, 4]


@pytest.mark.parametrize('fps', [0, -1., float('nan')])
def test_frames_in_memory_need_a_rate_above_0(fps):
    with pytest.raises(ValueError, match=f'fps .*{fps}'):
        _frames_clip('frames', None, 3, fps)
