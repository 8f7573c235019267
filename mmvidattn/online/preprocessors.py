# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Preprocessors of feature streams and of streams of frames."""
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from mmaction.registry import MODELS
from mmengine.model import BaseDataPreprocessor
from torch import Tensor

from ..utils.arguments import Positive, check_arguments


@MODELS.register_module()
class FeatureStreamPreprocessor(BaseDataPreprocessor):
    """Preprocessor that batches feature streams on the model's device.

    Features are converted to float32. Windows are stacked. Entire videos, for
    dense evaluation (with ``long_indices``) or as streams (with
    ``long_rate``), stay a list, because they differ in length.
    """

    def forward(self, data: Mapping[str, Any],
                training: bool = False) -> dict[str, Any]:
        """Create a batch.

        Args:
            data: ``inputs``, ``{name: B tensors}``; and optionally
                ``data_samples``.
            training: Unused.

        Returns:
            ``inputs``, ``{name: [B, ...]}`` for windows or a list of B dicts
            ``{name: tensor}`` for entire videos; and ``data_samples``.
        """
        data = self.cast_data(dict(data))
        inputs = data['inputs']
        if 'long_indices' in inputs or 'long_rate' in inputs:
            samples = [dict(zip(inputs, x)) for x in zip(*inputs.values())]
            inputs = [{name: _as_float(x) for name, x in sample.items()}
                      for sample in samples]
        else:
            inputs = {name: _as_float(torch.stack(list(x)))
                      for name, x in inputs.items()}
        return dict(inputs=inputs, data_samples=data.get('data_samples'))


def _as_float(x: Any) -> Any:
    is_float = isinstance(x, Tensor) and x.is_floating_point()
    return x.float() if is_float else x


@MODELS.register_module()
@check_arguments
class VideoStreamPreprocessor(FeatureStreamPreprocessor):
    """Batch and normalize the frames of streams on the model's device.

    The chunks of entire videos
    (:class:`~mmvidattn.datasets.VideoStreamDataset` in test mode) are
    normalized when the model asks for them.

    Args:
        mean, std: Mean and standard deviation of each channel, for values from
            0 to 255.
    """

    def __init__(self, mean: Sequence[float] = (127.5, 127.5, 127.5),
                 std: Sequence[Positive] = (127.5, 127.5, 127.5)) -> None:
        super().__init__()
        if len(mean) != len(std):
            raise ValueError('mean and std must have one value for each '
                             f'channel, got {len(mean)} and {len(std)}')
        for name, values in dict(mean=mean, std=std).items():
            self.register_buffer(name, torch.tensor(
                values, dtype=torch.float32), persistent=False)

    def normalize(self, frames: Tensor) -> Tensor:
        """Normalize frames of bytes or floats, [*, C, T, H, W], to float32."""
        mean, std = (x[:, None, None, None] for x in (self.mean, self.std))
        return (frames.float() - mean) / std

    def forward(self, data: Mapping[str, Any],
                training: bool = False) -> dict[str, Any]:
        """Create a batch.

        Args:
            data: ``inputs``, ``frames`` [C, T, H, W] and ``elapsed`` [T] of B
                clips of one shape. In an entire video, ``frames`` is an
                iterable of such dicts. Optionally ``data_samples``.
            training: Unused.

        Returns:
            ``inputs``: ``frames`` [B, C, T, H, W], float32, and ``elapsed``
            [B, T]; or for entire videos B dicts with ``chunks``, an iterator
            of inputs with B = 1. And ``data_samples``.
        """
        frames = data['inputs']['frames']
        if isinstance(frames[0], Tensor):
            batch = super().forward(data, training)
            batch['inputs']['frames'] = self.normalize(
                batch['inputs']['frames'])
            return batch
        return dict(inputs=[dict(chunks=self._chunks(x)) for x in frames],
                    data_samples=self.cast_data(data.get('data_samples')))

    def _chunks(self, video: Iterable[Mapping[str, Tensor]]
                ) -> Iterator[dict[str, Tensor]]:
        for chunk in video:
            chunk = self.cast_data(dict(chunk))
            yield {**{key: x[None] for key, x in chunk.items()},
                   'frames': self.normalize(chunk['frames'])[None]}
