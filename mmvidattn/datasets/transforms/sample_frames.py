# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Frame samplers with the rules of other repositories."""
from typing import Literal

import numpy as np
import torch
from mmaction.datasets import SampleFrames, UniformSample
from mmaction.registry import TRANSFORMS
from mmcv.transforms import BaseTransform

from ...utils.arguments import (
    Count,
    Fraction,
    NotNegative,
    Positive,
    check_arguments,
)

# Argument types of mmaction2's SampleFrames.
SAMPLE_FRAMES = dict(clip_len=Count, frame_interval=Count, num_clips=Count,
                     target_fps=Count | None)


@TRANSFORMS.register_module()
@check_arguments(**SAMPLE_FRAMES)
class CenteredSampleFrames(SampleFrames):
    """``SampleFrames`` with the test clips of mmaction 0.x.

    The video is divided into equal parts, and each clip is centered in a part.
    In mmaction2, the first clip starts with the video and the last one ends
    with it.
    """

    def _get_test_clips(self, num_frames: int,
                        ori_clip_len: float) -> np.ndarray:
        offsets = max(num_frames - self.clip_len * self.frame_interval + 1, 0)
        middles = np.arange(self.num_clips) + 0.5
        return (middles * offsets / self.num_clips).astype(np.int32)


@TRANSFORMS.register_module()
@check_arguments
class SegmentSampleFrames(UniformSample):
    """Sample one frame from each of ``clip_len`` equal segments of a video.

    Training clips have a random frame of each segment, as in mmaction2's
    ``UniformSample``. Test clips follow XViT: the first clip has the middle
    frames of the segments, the second the first frames, and the third the last
    frames. In ``UniformSample``, test clips divide each segment into equal
    parts.

    Args:
        clip_len: Number of frames per clip.
        num_clips: Number of test clips per video, from 1 to 3.
        test_mode: Take fixed instead of random frames.
    """

    def __init__(self, clip_len: Count, num_clips: Literal[1, 2, 3] = 1,
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
    """Sample clips like scenic, the framework of the released ViViT.

    Frames are ``frame_interval`` apart. A video that is shorter than a clip is
    repeated from its start. A training clip ends within the video. Test clips
    are spread evenly: the first one starts with the video, and the last one
    starts ``clip_len * frame_interval`` frames before its end. A single test
    clip is in the middle.

    Args:
        clip_len: Number of frames per clip.
        frame_interval: Distance between frames.
        num_clips: Number of clips per video.
        test_mode: Take fixed instead of random clips.
    """

    def __init__(self, clip_len: Count, frame_interval: Count = 1,
                 num_clips: Count = 1, test_mode: bool = False) -> None:
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


class _CustomSpacing(SampleFrames):
    """``SampleFrames`` with its own computation of frame indices."""

    def transform(self, results: dict) -> dict:
        """Add ``frame_inds`` and the other keys of ``SampleFrames``."""
        frames = self._frames(results['total_frames'], results.get('avg_fps'))
        results.update(
            frame_inds=frames.astype(np.int32).ravel()
            + np.int32(results['start_index']), clip_len=self.clip_len,
            frame_interval=self.frame_interval, num_clips=self.num_clips)
        return results

    def _frames(self, total: int, fps: float | None) -> np.ndarray:
        """Return indices in a segment of ``total`` frames; rounded down.

        Their shape is [num_clips, clip_len].
        """
        raise NotImplementedError


@TRANSFORMS.register_module()
@check_arguments
class SlowFastSampleFrames(_CustomSpacing):
    """Sample clips like SlowFast and code derived from it.

    A clip spans ``clip_len * frame_interval`` frames at ``target_fps``. Its
    frames are spread evenly over the span, including both ends. For example,
    16 frames with an interval of 16 are 17 frames apart. After the end of a
    video, its last frame is repeated. Training clips start at a random frame.
    Test clip ``k`` of ``K`` starts at ``k / K`` of the last possible start,
    with ``k`` from 0.

    In mmaction2's ``SampleFrames``, frames are ``frame_interval`` apart, short
    videos are repeated, and the last test clip ends with the video.

    Args:
        clip_len: Number of frames per clip.
        frame_interval: Length of the span, divided by ``clip_len``.
        num_clips: Number of clips per video.
        target_fps: Frame rate at which the span is measured. Videos with an
            unknown rate are assumed to have this rate. None for the video's
            rate. Defaults to 30.
        test_mode: Take fixed instead of random clips.
    """

    def __init__(self, clip_len: Count, frame_interval: Count = 1,
                 num_clips: Count = 1, target_fps: Positive | None = 30,
                 test_mode: bool = False) -> None:
        super().__init__(
            clip_len, frame_interval, num_clips,
            out_of_bound_opt='repeat_last', test_mode=test_mode,
            target_fps=target_fps)

    def _frames(self, total: int, fps: float | None) -> np.ndarray:
        fps = fps or self.target_fps
        scale = fps / self.target_fps if self.target_fps else 1
        span = max(self.clip_len * self.frame_interval * scale, 1)
        latest = max(total - span, 0)
        if self.test_mode:
            starts = latest * np.arange(self.num_clips) / self.num_clips
        else:
            starts = np.random.uniform(0, latest, self.num_clips)
        frames = starts[:, None] + np.linspace(0, span - 1, self.clip_len)
        return frames.clip(0, total - 1)


@TRANSFORMS.register_module()
@check_arguments(**SAMPLE_FRAMES)
class CharadesSampleFrames(_CustomSpacing):
    """``SampleFrames`` with SlowFast's clips for Charades.

    A clip of T frames, r apart, spans S = (T - 1) r + 1 frames. In a video of
    N frames, a training clip starts between 0 and N - S, which is negative
    for a short video. Before the start and after the end of the video, its
    first and last frames are repeated. The first test clip starts with the
    video, and the last one ends with it.
    """

    def _frames(self, total: int, fps: float | None) -> np.ndarray:
        room = total - (self.clip_len - 1) * self.frame_interval - 1
        if self.test_mode:
            # np.round rounds halves to even, like round() in the released
            # code.
            gap = max(room, 0) / max(self.num_clips - 1, 1)
            starts = np.round(gap * np.arange(self.num_clips)).astype(int)
        else:
            starts = np.random.randint(
                min(room, 0), max(room, 0) + 1, self.num_clips)
        within = np.arange(self.clip_len) * self.frame_interval
        return (starts[:, None] + within).clip(0, total - 1)


@TRANSFORMS.register_module()
@check_arguments
class AnticipationSampleFrames(BaseTransform):
    """Sample a clip that ends before an action, to anticipate it.

    As in the released code of V-JEPA 2, the frames are ``int(rate / fps)``
    apart, and the first frame of the video is repeated before its start. The
    actions are segments of :class:`~mmvidattn.datasets.VideoSegmentDataset`.
    Without segments, the clip ends with the video.

    Args:
        clip_len: Number of frames.
        fps: Nominal frames per second of the clip. Defaults to 8.
        seconds: Range of the time between the clip and the action. It is
            drawn at random and stored as ``seconds_ahead``. Defaults to
            (1, 1).
        point: Range of the moment in the action that the clip precedes: 0 is
            its start and 1 its end. Defaults to (0, 0).
    """

    def __init__(self, clip_len: Count, fps: Positive = 8.,
                 seconds: tuple[NotNegative, NotNegative] = (1., 1.),
                 point: tuple[Fraction, Fraction] = (0., 0.)) -> None:
        self.clip_len = clip_len
        self.fps = fps
        self.seconds = seconds
        self.point = point

    def transform(self, results: dict) -> dict:
        """Add ``frame_inds``, ``seconds_ahead`` and SampleFrames' keys."""
        rate = results['avg_fps']
        seconds = np.random.uniform(*self.seconds)
        start, length = results['start_index'], results['total_frames']
        end = start + length
        if results.get('segment') is not None:
            moment = start + np.random.uniform(*self.point) * length
            end = int(moment - int(seconds * rate))
        step = max(int(rate / self.fps), 1)
        frames = np.arange(end - self.clip_len * step, end, step)
        results.update(
            frame_inds=frames.clip(0).astype(np.int32), seconds_ahead=seconds,
            clip_len=self.clip_len, frame_interval=step, num_clips=1)
        return results


@TRANSFORMS.register_module()
class ClipLabels(BaseTransform):
    """Label a clip with the classes that occur in it.

    Used to train the linear video transformer on Charades. Insert it after the
    step that samples frames. Without it, as in testing, a clip has all classes
    of its video.
    """

    def transform(self, results: dict) -> dict:
        """Set ``label``, float32 [K], to ones for the clip's classes.

        ``segments`` are (class, first frame, last frame).
        """
        frames = results['frame_inds'] - results['start_index']
        present = [label for label, first, last in results['segments']
                   if first <= frames.max() and last >= frames.min()]
        label = torch.zeros(len(results['label']))
        label[present] = 1.
        results['label'] = label
        return results


@TRANSFORMS.register_module()
@check_arguments(**SAMPLE_FRAMES)
class SpreadSampleFrames(_CustomSpacing):
    """``SampleFrames`` with the clips of LAPS' released code.

    With r the ``frame_interval``, the T frames of a clip are spread evenly
    over T r frames, including both ends. They are therefore
    (T r - 1) / (T - 1) apart: 9 for T = r = 8. A training clip starts at a
    random frame that has at least T r frames left. Test clip k of K (from 0)
    starts at k / K of the last such frame, so the last clip does not end with
    the video. In mmaction2, frames are r apart, and the last clip ends with
    the video.
    """

    def _frames(self, total: int, fps: float | None) -> np.ndarray:
        room = max(total - self.clip_len * self.frame_interval, 0)
        if self.test_mode:
            # Divide last, to avoid rounding: 140 * 7 / 10 is 98, but 0.7 * 140
            # is not.
            starts = np.arange(self.num_clips) * room / self.num_clips
        else:
            starts = np.random.uniform(0, room, self.num_clips)
        # Same result as the released code, including float32 rounding.
        within = torch.linspace(0, self.clip_len * self.frame_interval - 1,
                                self.clip_len).long().numpy()
        return (np.ceil(starts)[:, None] + within) % max(total, 1)
