# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Batch augmentation with reversed clips."""
from collections.abc import Sequence

import torch
from mmaction.registry import MODELS
from mmaction.structures import ActionDataSample
from torch import Tensor

from ..utils.arguments import Natural, check_arguments


@MODELS.register_module()
@check_arguments
class AppendReversedClips:
    """Batch augmentation that appends a time-reversed copy of each clip.

    Use it if a reversed clip shows another class, such as 'close' for 'open':
    a model then learns the direction of time in far fewer steps. Set it as
    ``blending`` of mmaction2's ``ActionDataPreprocessor``::

        data_preprocessor = dict(
            blending=dict(type='AppendReversedClips', opposites=[1, 0]))

    Args:
        opposites: Class of the reversed clip, for each class.

    Raises:
        ValueError: If the opposite of a class's opposite is not the class.
    """

    def __init__(self, opposites: Sequence[Natural]) -> None:
        count = len(opposites)
        if any(opposite >= count or opposites[opposite] != i
               for i, opposite in enumerate(opposites)):
            raise ValueError(
                'opposites must list the class of each reversed clip, and the '
                'opposite of an opposite must be the class itself, got '
                f'{list(opposites)}')
        self.opposites = torch.tensor(opposites)

    def __call__(
        self, inputs: Tensor, data_samples: Sequence[ActionDataSample]
    ) -> tuple[Tensor, list[ActionDataSample]]:
        """Append the reversed clips to a batch.

        Args:
            inputs: Clips, [B, views, C, T, H, W].
            data_samples: B samples with ``gt_label``, [1].

        Returns:
            Clips [2B, views, C, T, H, W] and 2B samples; the reversed clips
            come last.

        Raises:
            ValueError: If the inputs do not have 6 dimensions.
        """
        if inputs.dim() != 6:
            raise ValueError('inputs must be clips [B, views, C, T, H, W], '
                             f'got shape {list(inputs.shape)}')
        reversed_samples = []
        for sample in data_samples:
            label = sample.gt_label
            opposite = self.opposites.to(label.device)[label]
            reversed_samples.append(sample.new().set_gt_label(opposite))
        return (torch.cat([inputs, inputs.flip(3)]),
                [*data_samples, *reversed_samples])
