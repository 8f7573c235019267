# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from mmaction.registry import MODELS
from mmengine.structures import BaseDataElement
from torch import Tensor

from ..utils.arguments import Count, NotNegative, check_arguments
from .online_action_head import OnlineActionHead


@MODELS.register_module()
@check_arguments
class MATHead(OnlineActionHead):
    """Head of MAT, with losses for all rounds of the network.

    The head of `Memory-and-Anticipation Transformer
    <https://arxiv.org/abs/2308.07893>`_, as released. The network refines the
    features of the work memory and of the future in several rounds. After each
    round, one linear layer scores the actions of both. Verbs and nouns are
    scored only after the last round. If the future and its targets differ in
    length, the future is resized by nearest-neighbor interpolation. Dropout
    applies only to the actions of the work memory in the last round.

    Args:
        num_classes: Number of actions K.
        in_channels: Channels C of the features. Defaults to 1024.
        work_weights: Weights of the action losses of the work memory, for the
            decoder and then for each round. Defaults to (0.2, 0.2, 1).
        future_weight: Weight of each loss of the future. Defaults to 0.1.
        **kwargs: Arguments of :class:`OnlineActionHead`.
    """

    def __init__(self,
                 num_classes: Count,
                 in_channels: Count = 1024,
                 work_weights: Sequence[NotNegative] = (0.2, 0.2, 1.),
                 future_weight: NotNegative = 0.1,
                 **kwargs: Any) -> None:
        super().__init__(num_classes, in_channels, **kwargs)
        self.work_weights = tuple(work_weights)
        self.future_weight = future_weight

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Map features [*, C] to logits of action [*, K], verb and noun."""
        return {name: layer(self.dropout(x) if name == 'action' else x)
                for name, layer in self.layers.items()}

    def loss(self, x: Any,
             data_samples: Sequence[BaseDataElement]) -> dict[str, Tensor]:
        """Compute the losses of all rounds.

        Args:
            x: Features, :class:`mmvidattn.online.mat.MATStages`.
            data_samples: As in :class:`OnlineActionHead`, and with
                ``gt_future_action`` [F, K], ``gt_future_verb`` and
                ``gt_future_noun``.

        Returns:
            Scalars ``loss_action``, ``loss_future_action`` and so on.

        Raises:
            ValueError: If a sample lacks targets, or the number of rounds
                differs from the number of weights.
        """
        if len(x.work) != len(self.work_weights):
            raise ValueError(
                f'work_weights must have {len(x.work)} weights, for the '
                f'decoder and each round, got {len(self.work_weights)}')
        losses = defaultdict(int)
        for kind, stages, weights in (
            ('', x.work, self.work_weights),
            ('future_', x.future, [self.future_weight] * len(x.future))):
            for i, (features, weight) in enumerate(zip(stages, weights)):
                is_last = i == len(stages) - 1
                for name, layer in self.layers.items():
                    if name != 'action' and not is_last:
                        continue
                    targets = self._targets(
                        f'gt_{kind}{name}', data_samples, features.device)
                    y = features
                    if kind and y.shape[1] != targets.shape[1]:
                        y = F.interpolate(y.mT, size=targets.shape[1]).mT
                    if name == 'action' and is_last and not kind:
                        y = self.dropout(y)
                    losses[f'loss_{kind}{name}'] += weight * getattr(
                        self, f'loss_{name}')(layer(y), targets)
        return dict(losses)
