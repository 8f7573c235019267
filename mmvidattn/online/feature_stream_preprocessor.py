# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from mmaction.registry import MODELS
from mmengine.model import BaseDataPreprocessor
from torch import Tensor


@MODELS.register_module()
class FeatureStreamPreprocessor(BaseDataPreprocessor):
    """Preprocessor that batches feature streams on the model's device.

    Features are converted to float32. Windows are stacked. Entire videos, for
    dense evaluation (with ``long_indices``) or as streams (with
    ``long_rate``), stay a list, because they differ in length.
    """

    def forward(self,
                data: Mapping[str, Any],
                training: bool = False) -> dict[str, Any]:
        """Create a batch.

        Args:
            data: ``inputs``, either ``{name: B tensors}`` or B dicts ``{name:
                tensor}``; and optionally ``data_samples``.
            training: Unused.

        Returns:
            ``inputs``, ``{name: [B, ...]}`` for windows or a list of B dicts
            ``{name: tensor}`` for entire videos; and ``data_samples``.

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
        raise ValueError(f'{name} must have one shape in all windows of a '
                         f'batch, got {", ".join(map(str, sorted(shapes)))}')
    return torch.stack(list(tensors))


def _as_float(x: Any) -> Any:
    is_float = isinstance(x, Tensor) and x.is_floating_point()
    return x.float() if is_float else x
