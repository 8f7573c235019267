# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sample the frames of a part of a stream, and pack them as inputs."""
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from mmaction.registry import TRANSFORMS
from mmaction.structures import ActionDataSample
from mmcv.transforms import BaseTransform

from ...utils.frame_times import ConstantRate, middle_frames
from .feature_window import META_KEYS


@TRANSFORMS.register_module()
class StreamSampleFrames(BaseTransform):
    """Sample a frame for each step of an opened video.

    Like a live detector, the transform reads the video at a constant rate, and
    takes the frame in the middle of each step. It is for samples of
    :class:`~mmvidattn.datasets.VideoStreamDataset`.
    """

    def transform(self, results: dict) -> dict:
        """Set ``frame_inds`` of the ``work_indices``, [T]."""
        video = ConstantRate(results['video_reader'])
        ticks = middle_frames(results['work_indices'], video.fps,
                              results['rate'])
        frames = video.frames(ticks.clip(max=len(video) - 1))
        results.update(
            frame_inds=frames.clip(0, results['total_frames'] - 1),
            clip_len=len(frames), num_clips=1, frame_interval=1)
        return results


@TRANSFORMS.register_module()
class PackStreamInputs(BaseTransform):
    """Pack frames as inputs of a model and a data sample.

    The previous transform must be ``FormatShape(input_format='NCTHW')``.
    """

    def transform(self, results: dict) -> dict[str, Any]:
        """Return ``dict(inputs=..., data_samples=...)``.

        ``inputs`` are ``frames`` [C, T, H, W] and ``elapsed`` [T], the time
        since the previous frame in nominal frame intervals.

        Raises:
            ValueError: If the pipeline made several views of the frames.
        """
        frames = results['imgs']
        steps = len(results['work_indices'])
        if frames.ndim != 5 or len(frames) != 1 or frames.shape[2] != steps:
            raise ValueError(
                f'imgs must be one view [1, C, {steps}, H, W], got '
                f'{list(frames.shape)}; use one crop, and '
                "FormatShape(input_format='NCTHW')")
        return dict(
            inputs=dict(
                frames=torch.from_numpy(np.ascontiguousarray(frames[0])),
                elapsed=torch.full([steps], results['elapsed'])),
            data_samples=pack_stream_sample(results))


def pack_stream_sample(results: Mapping[str, Any]) -> ActionDataSample:
    """Return the data sample of a part of a stream, with its targets."""
    sample = ActionDataSample(
        metainfo={key: results[key] for key in META_KEYS})
    sample.set_data({key: torch.from_numpy(y)
                     for key, y in results['targets'].items()})
    return sample
