# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np

from mmvidattn.apis.video_clips import SourceFrames
from mmvidattn.sources import Frame


def test_source_is_only_read_up_to_the_last_frame_needed():
    read = []

    def source():
        for index in range(9):
            read.append(index)
            yield Frame(np.full((2, 2, 3), index, np.uint8), index, 0., 0.)

    frames = SourceFrames(source()).take(np.array([4, 1, 4]))
    assert [frame.max() for frame in frames] == [4, 1, 4]
    assert read == [0, 1, 2, 3, 4]
