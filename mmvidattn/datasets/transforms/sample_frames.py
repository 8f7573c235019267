# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Frames of clips, as other repositories sample them."""
from typing import Literal

import numpy as np
import torch
from mmaction.datasets import SampleFrames, UniformSample
from mmaction.registry import TRANSFORMS

from ...utils.arguments import Count, Positive, check_arguments

# Ranges of the arguments of mmaction2's SampleFrames.
SAMPLE_FRAMES = dict(clip_len=Count, frame_interval=Count, num_clips=Count,
                     target_fps=Count | None)


@TRANSFORMS.register_module(
    name=['CenteredSampleFrames', 'CentredSampleFrames'])
@check_arguments(**SAMPLE_FRAMES)
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


@TRANSFORMS.register_module()
@check_arguments
class SegmentSampleFrames(UniformSample):
    """Sample a frame of each of ``clip_len`` equal segments of a video.

    In training it is any frame of a segment, as in mmaction2's
    ``UniformSample``. The test clips follow XViT: the middles of the
    segments, then their starts, then their ends. ``UniformSample`` cuts each
    segment into equal parts instead.

    Args:
        clip_len: Frames of a clip.
        num_clips: Clips of a video in testing, from 1 to 3.
        test_mode: Take fixed frames.
    """

    def __init__(self,
                 clip_len: Count,
                 num_clips: Literal[1, 2, 3] = 1,
                 test_mode: bool = False) -> None:
        super().__init__(clip_len, num_clips, test_mode)

    def _get_sample_clips(self, num_frames: int) -> np.ndarray:
        if not self.test_mode:
            return super()._get_sample_clips(num_frames)
        length = (num_frames - 1) / self.clip_len
        bounds = np.round(np.arange(self.clip_len + 1) * length).astype(int)
        starts, ends = bounds[:-1], bounds[1:]
        views = (starts + ends) // 2, starts, ends
        return np.concatenate(views[:self.num_clips])


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
        test_mode: Take fixed starts.
    """

    def __init__(self,
                 clip_len: Count,
                 frame_interval: Count = 1,
                 num_clips: Count = 1,
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


class _OwnSpacing(SampleFrames):
    """``SampleFrames`` whose frames are not ``frame_interval`` apart."""

    def _with_frames(self, results: dict, frames: np.ndarray) -> dict:
        """Add ``frame_inds`` and the other keys of ``SampleFrames``.

        Args:
            results: The sample, whose segment starts at ``start_index``.
            frames: Numbers from the start of the segment, [num_clips,
                clip_len]; rounded down.
        """
        results.update(
            frame_inds=frames.astype(np.int32).ravel()
            + np.int32(results['start_index']),
            clip_len=self.clip_len,
            frame_interval=self.frame_interval,
            num_clips=self.num_clips)
        return results


@TRANSFORMS.register_module()
@check_arguments
class SlowFastSampleFrames(_OwnSpacing):
    """Sample clips as SlowFast does, and code derived from it.

    A clip spans ``clip_len * frame_interval`` frames at ``target_fps``, and
    its frames are spread evenly from the first to the last of these: 16
    frames at an interval of 16 are 17 apart. Frames after the end of a video
    are its last one. In training a clip begins anywhere; in testing clip
    ``k`` of ``K`` begins at ``k / K`` of the way to the last possible start.

    ``SampleFrames`` leaves ``frame_interval`` between two frames, starts
    short videos again, and ends its last test clip with the video.

    Args:
        clip_len: Frames of a clip.
        frame_interval: Frames of the span for each frame of a clip.
        num_clips: Clips of a video.
        target_fps: Rate of the frames that are spanned. None: the video's
            own. A video of unknown rate is taken to have it.
        test_mode: Take fixed starts.
    """

    def __init__(self,
                 clip_len: Count,
                 frame_interval: Count = 1,
                 num_clips: Count = 1,
                 target_fps: Positive | None = 30,
                 test_mode: bool = False) -> None:
        super().__init__(
            clip_len,
            frame_interval,
            num_clips,
            out_of_bound_opt='repeat_last',
            test_mode=test_mode,
            target_fps=target_fps)

    def transform(self, results: dict) -> dict:
        """Choose the frames of the clips."""
        total = results['total_frames']
        fps = results.get('avg_fps') or self.target_fps
        scale = fps / self.target_fps if self.target_fps else 1
        span = max(self.clip_len * self.frame_interval * scale, 1)
        latest = max(total - span, 0)
        if self.test_mode:
            starts = latest * np.arange(self.num_clips) / self.num_clips
        else:
            starts = np.random.uniform(0, latest, self.num_clips)
        frames = starts[:, None] + np.linspace(0, span - 1, self.clip_len)
        return self._with_frames(results, frames.clip(0, total - 1))


@TRANSFORMS.register_module()
@check_arguments(**SAMPLE_FRAMES)
class CharadesSampleFrames(_OwnSpacing):
    """``SampleFrames`` with the clips that SlowFast takes from Charades.

    A clip of T frames, r apart, spans (T - 1) r + 1. Training starts anywhere
    that leaves them, or, in a shorter video, as far before it; frames before
    and behind a video are its first and its last one. The first clip in
    testing starts with the video, the last one ends with it.
    """

    def transform(self, results: dict) -> dict:
        """Choose the frames of the clips."""
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
        return self._with_frames(
            results, (starts[:, None] + within).clip(0, total - 1))


@TRANSFORMS.register_module()
@check_arguments(**SAMPLE_FRAMES)
class SpreadSampleFrames(_OwnSpacing):
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
        """Choose the frames of the clips."""
        total = results['total_frames']
        starts = np.ceil(self._sample_clips(total, self.clip_len))
        # As released, rounding of float32 included.
        within = torch.linspace(0, self.clip_len * self.frame_interval - 1,
                                self.clip_len).long().numpy()
        frames = starts.astype(np.int64)[:, None] + within
        return self._with_frames(results, frames % max(total, 1))
