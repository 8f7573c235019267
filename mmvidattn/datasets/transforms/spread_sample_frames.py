# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import torch
from mmaction.datasets import SampleFrames
from mmaction.registry import TRANSFORMS

from ...utils.arguments import check_arguments


@TRANSFORMS.register_module()
@check_arguments
class SpreadSampleFrames(SampleFrames):
    """``SampleFrames`` with the clips of LAPS' released code.

    A clip of T frames, ``frame_interval`` r, is spread over T r frames with
    both ends in, so that its frames are (T r - 1) / (T - 1) apart: 9 for 8 x
    8. Training starts anywhere that leaves T r frames; clip k of K in testing
    starts at k / K of these places, so that the last one does not end with
    the video. mmaction2's frames are r apart, and its last clip ends with it.
    """

    def _get_train_clips(self, num_frames: int,
                         ori_clip_len: float) -> np.ndarray:
        return np.random.uniform(0, self._room(num_frames), self.num_clips)

    def _get_test_clips(self, num_frames: int,
                        ori_clip_len: float) -> np.ndarray:
        # Divided last: 140 * 7 / 10 is 98, where 0.7 * 140 is not.
        return np.arange(
            self.num_clips) * self._room(num_frames) / self.num_clips

    def _room(self, num_frames: int) -> int:
        return max(num_frames - self.clip_len * self.frame_interval, 0)

    def transform(self, results: dict) -> dict:
        """Choose the frames of the clips.

        Args:
            results: ``total_frames`` and ``start_index``.

        Returns:
            It with ``frame_inds``, int32 [num_clips * clip_len], and what
            ``SampleFrames`` adds.
        """
        total = results['total_frames']
        starts = np.ceil(self._sample_clips(total, self.clip_len))
        # As released, rounding of float32 included.
        within = torch.linspace(0, self.clip_len * self.frame_interval - 1,
                                self.clip_len).long().numpy()
        frames = (starts.astype(np.int64)[:, None] + within) % max(total, 1)
        results.update(
            frame_inds=(frames.reshape(-1)
                        + results['start_index']).astype(np.int32),
            clip_len=self.clip_len,
            frame_interval=self.frame_interval,
            num_clips=self.num_clips)
        return results
