# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
from mmaction.datasets import SampleFrames
from mmaction.registry import TRANSFORMS

from ...utils.arguments import check_arguments


@TRANSFORMS.register_module()
@check_arguments
class CharadesSampleFrames(SampleFrames):
    """``SampleFrames`` with the clips that SlowFast takes from Charades.

    A clip of T frames, r apart, spans (T - 1) r + 1. Training starts anywhere
    that leaves them, or, in a shorter video, as far before it; frames before
    and behind a video are its first and its last one. The first clip in
    testing starts with the video, the last one ends with it.
    """

    def transform(self, results: dict) -> dict:
        """Add ``frame_inds``, int32 [num_clips * clip_len], and the rest."""
        total = results['total_frames']
        room = total - (self.clip_len - 1) * self.frame_interval - 1
        if self.test_mode:
            # As released: round() of Python, which halves to the even number.
            gap = max(room, 0) / max(self.num_clips - 1, 1)
            starts = np.round(gap * np.arange(self.num_clips)).astype(int)
        else:
            starts = np.random.randint(
                min(room, 0), max(room, 0) + 1, self.num_clips)
        within = np.arange(self.clip_len) * self.frame_interval
        frames = (starts[:, None] + within).clip(0, total - 1)
        results.update(
            frame_inds=(frames.ravel()
                        + results['start_index']).astype(np.int32),
            clip_len=self.clip_len,
            frame_interval=self.frame_interval,
            num_clips=self.num_clips)
        return results
