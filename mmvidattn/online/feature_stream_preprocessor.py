# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from mmaction.registry import MODELS
from mmengine.model import BaseDataPreprocessor
from torch import Tensor


@MODELS.register_module()
class FeatureStreamPreprocessor(BaseDataPreprocessor):
    """Batches windows of feature streams, on the model's device.

    Features become float32. The inputs of the samples have one form: they
    are stacked if they are single windows; whole videos, for dense
    evaluation (with ``long_indices``) or as streams (with ``long_rate``),
    differ in length and stay apart.
    """

    def forward(self,
                data: Mapping[str, Any],
                training: bool = False) -> dict[str, Any]:
        """Batch.

        Args:
            data: ``inputs``: ``{name: B tensors}``, or B of ``{name:
                tensor}``; ``data_samples``: of each.
            training: Not used.

        Returns:
            ``inputs``: ``{name: [B, ...]}``, or of whole videos a list of B
            of ``{name: tensor}``; and ``data_samples``.

        Raises:
            ValueError: If the windows of a batch differ in shape.
        """
        data = self.cast_data(dict(data))
        inputs = data['inputs']
        if not isinstance(inputs, Mapping):
            inputs = {
                name: [sample[name] for sample in inputs]
                for name in inputs[0]
            }
        if 'long_indices' in inputs or 'long_rate' in inputs:
            samples = [dict(zip(inputs, x)) for x in zip(*inputs.values())]
            inputs = [{name: _as_float(x) for name, x in sample.items()}
                      for sample in samples]
        else:
            inputs = {
                name: _as_float(_stack(name, x)) for name, x in inputs.items()
            }
        return dict(inputs=inputs, data_samples=data.get('data_samples'))


def _stack(name: str, tensors: Tensor | Sequence[Tensor]) -> Tensor:
    if isinstance(tensors, Tensor):
        return tensors
    shapes = {tuple(x.shape) for x in tensors}
    if len(shapes) > 1:
        raise ValueError(f'the windows of a batch differ in the shape of '
                         f'{name!r}: {", ".join(map(str, sorted(shapes)))}')
    return torch.stack(list(tensors))


def _as_float(x: Any) -> Any:
    is_float = isinstance(x, Tensor) and x.is_floating_point()
    return x.float() if is_float else x
