# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..utils.arguments import Count, NotNegative, check_arguments
from .base import VideoHead


@MODELS.register_module()
@check_arguments
class ViViTHead(VideoHead):
    """Head of ViViT: a linear classifier, initialized with zeros.

    This is the classifier of `ViViT: A Video Vision Transformer
    <https://arxiv.org/abs/2103.15691>`_.

    Args:
        num_classes: Number of classes K.
        in_channels: Channels C of the backbone's features. Defaults to 768.
        init_std: Standard deviation of the classifier at initialization.
            Defaults to 0, as released; the backbone then does not learn in
            the first step.
        **kwargs: Arguments of :class:`~mmvidattn.heads.base.VideoHead`.
    """

    def __init__(self,
                 num_classes: Count,
                 in_channels: Count = 768,
                 init_std: NotNegative = 0.,
                 **kwargs) -> None:
        super().__init__(
            num_classes, in_channels, init_std=init_std, **kwargs)
        self.fc_cls = nn.Linear(in_channels, num_classes)

    def init_weights(self) -> None:
        nn.init.normal_(self.fc_cls.weight, std=self.init_std)
        nn.init.zeros_(self.fc_cls.bias)

    def forward(self, x: Tensor, **kwargs) -> Tensor:
        """Map features [B, C] to logits [B, K]."""
        return self.fc_cls(self.dropout(x))


@MODELS.register_module()
@check_arguments
class VerbNounHead(ViViTHead):
    """Head for EPIC-Kitchens, with one linear layer for nouns and verbs.

    As in the released code, the logits of nouns come before the logits of
    verbs, and the loss is the mean of the noun loss and the verb loss. A label
    vector is 1 for the noun and 1 for the verb (``multi_class`` of the
    dataset), or fractional after blending.

    Args:
        num_nouns: Number of noun classes. Defaults to 300.
        num_verbs: Number of verb classes. Defaults to 97.
        num_classes: Must be ``num_nouns + num_verbs``, the default.
        **kwargs: Arguments of :class:`ViViTHead`.
    """

    def __init__(self,
                 num_nouns: Count = 300,
                 num_verbs: Count = 97,
                 num_classes: Count | None = None,
                 **kwargs) -> None:
        if num_classes not in (None, num_nouns + num_verbs):
            raise ValueError(f'num_classes must be num_nouns + num_verbs = '
                             f'{num_nouns + num_verbs}, got {num_classes}')
        super().__init__(
            num_nouns + num_verbs,
            parts=dict(noun=num_nouns, verb=num_verbs), **kwargs)
