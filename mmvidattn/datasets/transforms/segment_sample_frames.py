# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
from mmaction.datasets import UniformSample
from mmaction.registry import TRANSFORMS

from ...utils.arguments import check_arguments


@TRANSFORMS.register_module()
@check_arguments
class SegmentSampleFrames(UniformSample):
    """Sample a frame of each of ``clip_len`` equal segments of a video.

    In training it is any frame of a segment, as in mmaction2's
    ``UniformSample``. The test clips are those of XViT: the middles of the
    segments, then their starts, then their ends. ``UniformSample`` cuts each
    segment into equal parts instead.

    Args:
        clip_len: Frames of a clip.
        num_clips: Clips of a video in testing, from 1 to 3.
        test_mode: Whether the frames are the fixed ones of testing.
    """

    def __init__(self,
                 clip_len: int,
                 num_clips: int = 1,
                 test_mode: bool = False) -> None:
        if num_clips not in (1, 2, 3):
            raise ValueError(f'num_clips must be 1, 2 or 3, got {num_clips}')
        super().__init__(clip_len, num_clips, test_mode)

    def _get_sample_clips(self, num_frames: int) -> np.ndarray:
        if not self.test_mode:
            return super()._get_sample_clips(num_frames)
        length = (num_frames - 1) / self.clip_len
        bounds = np.round(np.arange(self.clip_len + 1) * length).astype(int)
        starts, ends = bounds[:-1], bounds[1:]
        views = (starts + ends) // 2, starts, ends
        return np.concatenate(views[:self.num_clips])
