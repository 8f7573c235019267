# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
from mmaction.datasets import SampleFrames
from mmaction.registry import TRANSFORMS

from ...utils.arguments import check_arguments


@TRANSFORMS.register_module()
@check_arguments
class ScenicSampleFrames(SampleFrames):
    """Sample clips as scenic does, in which ViViT is released.

    A clip has every ``frame_interval``-th frame; after the end a video starts
    again. In training a clip ends at the latest with the video's last frame.
    Several test clips are spread evenly, the first of which begins with the
    video and the last of which is ``clip_len * frame_interval`` frames before
    its end; a single one is in the middle.

    Args:
        clip_len: Frames of a clip.
        frame_interval: Distance of two frames.
        num_clips: Clips of a video.
        test_mode: Whether the starts are the fixed ones of testing.
    """

    def __init__(self,
                 clip_len: int,
                 frame_interval: int = 1,
                 num_clips: int = 1,
                 test_mode: bool = False) -> None:
        super().__init__(
            clip_len, frame_interval, num_clips, test_mode=test_mode)

    def _get_train_clips(self, num_frames: int,
                         ori_clip_len: float) -> np.ndarray:
        span = (self.clip_len - 1) * self.frame_interval
        return np.random.randint(max(num_frames - span, 1),
                                 size=self.num_clips)

    def _get_test_clips(self, num_frames: int,
                        ori_clip_len: float) -> np.ndarray:
        latest = max(num_frames - self.clip_len * self.frame_interval, 0)
        if self.num_clips == 1:
            return np.array([latest // 2])
        return np.linspace(0, latest, self.num_clips).astype(int)
