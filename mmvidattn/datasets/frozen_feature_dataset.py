# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from typing import Any

import torch
from mmaction.registry import DATASETS
from mmaction.structures import ActionDataSample
from mmengine.dataset import BaseDataset
from safetensors.torch import load_file

from ..utils.arguments import check_arguments


@DATASETS.register_module()
@check_arguments
class FrozenFeatureDataset(BaseDataset):
    """Features of the frozen layers of a network, one entry for each clip.

    A :class:`~mmvidattn.recognizers.FineTunedRecognizer3D` trains its other
    layers on them. Each sample has ``frozen_features`` [V, *] for V views, the
    label, and zeros as ``inputs``.

    Args:
        ann_file: File with the tensors ``features`` [N, V, *] and ``labels``
            [N, 1], or [N, K] for several labels per clip. ``mmvidattn
            finetune --freeze`` writes it.
        **kwargs: Arguments of ``BaseDataset``.
    """

    def __init__(self, ann_file: str, **kwargs: Any) -> None:
        super().__init__(ann_file, serialize_data=False, **kwargs)

    def load_data_list(self) -> list[dict]:
        tensors = load_file(self.ann_file)
        return [dict(features=features, label=label) for features, label in
                zip(tensors['features'], tensors['labels'])]

    def get_cat_ids(self, idx: int) -> list[int]:
        """Return the classes of a clip."""
        label = self.data_list[idx]['label']
        return (label if len(label) == 1 else label.nonzero()[:, 0]).tolist()

    def prepare_data(self, idx: int) -> dict:
        """Return a sample."""
        entry = self.data_list[idx]
        sample = ActionDataSample().set_gt_label(entry['label'])
        sample.set_data(dict(frozen_features=entry['features']))
        # Shaped like views of a clip, [V, C, T, H, W].
        inputs = torch.zeros(len(entry['features']), 1, 1, 1, 1,
                             dtype=torch.uint8)
        return dict(inputs=inputs, data_samples=sample)
