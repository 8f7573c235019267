# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
from mmaction.datasets import SampleFrames
from mmaction.registry import TRANSFORMS

from ...utils.arguments import check_arguments


@TRANSFORMS.register_module(
    name=['CenteredSampleFrames', 'CentredSampleFrames'])
@check_arguments
class CenteredSampleFrames(SampleFrames):
    """``SampleFrames`` with the test clips of mmaction 0.x.

    Several clips of a video lie in the middles of equal parts. mmaction2's
    first clip starts with the video and its last one ends with it.
    """

    def _get_test_clips(self, num_frames: int,
                        ori_clip_len: float) -> np.ndarray:
        offsets = max(num_frames - self.clip_len * self.frame_interval + 1, 0)
        middles = np.arange(self.num_clips) + 0.5
        return (middles * offsets / self.num_clips).astype(np.int32)
