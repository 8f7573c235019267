# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Transforms that read the rows of a window, and pack them for a model."""
from typing import Any

import numpy as np
import torch
from mmaction.registry import TRANSFORMS
from mmaction.structures import ActionDataSample
from mmcv.transforms import BaseTransform

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
