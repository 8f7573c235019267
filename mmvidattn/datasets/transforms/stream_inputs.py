# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Transforms that read a part of a stream, and pack it for a model."""
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from mmaction.registry import TRANSFORMS
from mmaction.structures import ActionDataSample
from mmcv.transforms import BaseTransform

from ...utils.frame_times import ConstantRate, middle_frames

META_KEYS = ('sample_idx', 'video_name', 'video_length', 'work_indices',
             'num_work', 'anticipation_steps', 'horizons', 'segment_id',
             'segment_labels', 'is_first_window', 'is_whole_video',
             'score_rows', 'score_steps', 'evaluation_mode')


@TRANSFORMS.register_module()
class LoadFeatureWindow(BaseTransform):
    """Read the rows of a window's long and work memory, and its targets.

    A step outside of the video has the features of the nearest step, and zero
    targets. If the dataset has ``pad_start``, the features of steps before the
    video are zeros.
    """

    def transform(self, results: dict) -> dict:
        """Add each modality ``(N + L, D)`` and target ``(L + A, K)``."""
        streams, video = results['streams'], results['video']
        length = results['video_length']
        if results['is_whole_video']:
            # Labels of segments come from the segment file, not from targets.
            targets = streams.targets if results['segment_id'] is None else []
            for key in (*streams.features, *targets):
                results[key] = streams.read(key, video, np.arange(length))
            return results
        work = results['work_indices']
        steps = np.concatenate(
            [results['long_indices'], work.clip(0, length - 1)])
        videos = np.concatenate(
            [results['long_videos'], np.full(len(work), video)])
        labeled = np.concatenate([work, results['anticipation_steps']])
        for key in streams.features:
            results[key] = streams.read(key, videos, steps)
            if results['pad_start']:
                results[key][len(results['long_indices']):][work < 0] = 0
        for key in streams.targets:
            targets = streams.read(key, video, labeled.clip(0, length - 1))
            targets[(labeled < 0) | (labeled >= length)] = 0
            results[key] = targets
            if len(results['future_steps']):
                results[key.replace('gt_', 'gt_future_')] = streams.read(
                    key, video, results['future_steps'])
        num_long = len(results['long_indices'])
        for rows, other_video, other_steps, weight in results.get(
                'blends', ()):
            for key in (*streams.features, *streams.targets):
                at = rows + (0 if key in streams.targets else num_long)
                results[key][at] = (1 - weight) * results[key][at] + (
                    weight * streams.read(key, other_video, other_steps))
        return results


@TRANSFORMS.register_module()
class PackFeatureInputs(BaseTransform):
    """Pack a window as inputs of the model and a data sample."""

    def transform(self, results: dict) -> dict[str, Any]:
        """Return ``dict(inputs=..., data_samples=...)`` with tensors."""
        streams = results['streams']
        inputs = {key: torch.from_numpy(results[key])
                  for key in streams.features}
        if 'stream' in results:
            inputs.update(results['stream'])
        else:
            inputs['padding_mask'] = torch.from_numpy(results['padding_mask'])
            if results['is_whole_video']:
                for key in 'long_indices', 'work_indices':
                    inputs[key] = torch.from_numpy(results[key])
        sample = ActionDataSample(
            metainfo={key: results[key] for key in META_KEYS})
        sample.set_data({
            key: torch.from_numpy(results[key])
            for name in streams.targets
            for key in (name, name.replace('gt_', 'gt_future_'))
            if key in results})
        return dict(inputs=inputs, data_samples=sample)


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
