# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from mmaction.registry import MODELS
from mmengine.model import BaseModule
from mmengine.structures import BaseDataElement
from torch import Tensor, nn

from ..utils.arguments import Count, Fraction, check_arguments


@MODELS.register_module()
@check_arguments
class OnlineActionHead(BaseModule):
    """Classifier of the action, and optionally verb and noun, of each step.

    As in the released code of `TeSTra <https://arxiv.org/abs/2209.09236>`_,
    the action, the verb and the noun each have a dropout and a linear layer.
    The classes include the background, class 0.

    Args:
        num_classes: Number of actions K.
        in_channels: Channels C of the features. Defaults to 1024.
        num_verbs: Number of verbs. Defaults to no verb scores.
        num_nouns: Number of nouns. Defaults to no noun scores.
        dropout_ratio: Dropout of the features. Defaults to 0.
        loss_cls: Loss of the actions. Defaults to
            ``MultiClassCrossEntropyLoss``.
        loss_verb: Loss of the verbs. Defaults to ``loss_cls``.
        loss_noun: Loss of the nouns. Defaults to ``loss_cls``.
        score: Scores of :meth:`predict`: 'prob', the softmax over all classes
            (THUMOS'14, TVSeries), or 'logit' (EPIC-Kitchens-100). Defaults to
            'prob'.
        num_loss_steps: Number of steps at the end of a window that the loss
            uses; 1 is MiniROAD's non-uniform loss. Defaults to all steps.
        init_cfg: Initialization config of ``BaseModule``.
    """

    def __init__(self,
                 num_classes: Count,
                 in_channels: Count = 1024,
                 num_verbs: Count | None = None,
                 num_nouns: Count | None = None,
                 dropout_ratio: Fraction = 0.,
                 loss_cls: dict = dict(type='MultiClassCrossEntropyLoss'),
                 loss_verb: dict | None = None,
                 loss_noun: dict | None = None,
                 score: Literal['prob', 'logit'] = 'prob',
                 num_loss_steps: Count | None = None,
                 init_cfg: dict | None = None) -> None:
        super().__init__(init_cfg=init_cfg)
        self.num_classes = num_classes
        self.in_channels = in_channels
        self.score = score
        self.num_loss_steps = num_loss_steps
        self.dropout = nn.Dropout(dropout_ratio)
        self.fc_cls = nn.Linear(in_channels, num_classes)
        self.loss_action = MODELS.build(loss_cls)
        for name, classes, loss in (('verb', num_verbs, loss_verb),
                                    ('noun', num_nouns, loss_noun)):
            if classes is not None:
                setattr(self, f'fc_{name}', nn.Linear(in_channels, classes))
                setattr(self, f'loss_{name}', MODELS.build(loss or loss_cls))

    @property
    def layers(self) -> dict[str, nn.Linear]:
        """Return the classifiers of action, verb and noun."""
        layers = dict(action='fc_cls', verb='fc_verb', noun='fc_noun')
        return {name: getattr(self, layer) for name, layer in layers.items()
                if hasattr(self, layer)}

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Map features [*, C] to logits of action [*, K], verb and noun."""
        return {name: layer(self.dropout(x))
                for name, layer in self.layers.items()}

    def loss(self, x: Tensor,
             data_samples: Sequence[BaseDataElement]) -> dict[str, Tensor]:
        """Compute the losses of features.

        Args:
            x: [B, L+A, C].
            data_samples: Samples with ``gt_action``, and with ``gt_verb`` and
                ``gt_noun`` if the head scores them, each [L+A] class ids or
                [L+A, classes] targets.

        Returns:
            Scalars ``loss_action``, ``loss_verb`` and ``loss_noun``.

        Raises:
            ValueError: If a sample lacks targets.
        """
        losses, first = {}, 0
        if self.num_loss_steps is not None:
            first = max(0, x.shape[1] - self.num_loss_steps)
        for name, logits in self(x[:, first:]).items():
            targets = self._targets(f'gt_{name}', data_samples, x.device)
            losses[f'loss_{name}'] = getattr(self, f'loss_{name}')(
                logits, targets[:, first:])
        return losses

    def _targets(self, key: str, data_samples: Sequence[BaseDataElement],
                 device: torch.device) -> Tensor:
        """Stack the targets of all samples."""
        if not all(key in sample for sample in data_samples):
            raise ValueError(
                f'the head scores {key.split("_")[-1]}s, but a sample lacks '
                f'{key}; set the targets of the dataset or the classes of the '
                'head')
        return torch.stack([
            torch.as_tensor(sample.get(key)) for sample in data_samples
        ]).to(device)

    def predict(self, x: Tensor) -> dict[str, Tensor]:
        """Map features [*, C] to scores of action [*, K], verb and noun."""
        return self.scores(self(x))

    def scores(self, logits: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Map logits of :meth:`forward` to the scores for evaluation."""
        scores = {name: y.float() for name, y in logits.items()}
        if self.score == 'prob':
            scores = {name: y.softmax(dim=-1) for name, y in scores.items()}
        return scores

    def probabilities(self, logits: Mapping[str, Tensor]
                      ) -> dict[str, Tensor]:
        """Map logits of :meth:`forward` to probabilities for display.

        As in training, the softmax leaves out the class that the loss ignores
        (EPIC-Kitchens-100's background, THUMOS'14's "Ambiguous"), because its
        logit is not trained. Its probability is 0. (Unlike here,
        :meth:`scores` includes this class, as released.)
        """
        probabilities = {}
        for name, y in logits.items():
            y = y.float()
            ignored = getattr(
                getattr(self, f'loss_{name}'), 'ignore_index', None)
            if ignored is not None and 0 <= ignored < y.shape[-1]:
                classes = torch.arange(y.shape[-1], device=y.device)
                y = y.masked_fill(classes == ignored, -torch.inf)
            probabilities[name] = y.softmax(dim=-1)
        return probabilities
