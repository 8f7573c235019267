# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Loss of token labeling, where every token learns from a teacher's logits."""
import torch.nn.functional as F
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..ops.precision import at_least_float32
from ..utils.arguments import Count, NotNegative, check_arguments


@check_arguments
def soft_token_labels(logits: Tensor, topk: Count = 5) -> Tensor:
    """Convert the logits of a teacher to one distribution per token.

    As in DualFormer's released code, logits outside the best ``topk`` become 0
    instead of minus infinity. The other classes therefore keep some
    probability, and more of it if the best logits are low. Logits equal to the
    k-th best logit are kept.

    Args:
        logits: Logits of the teacher, [*, K].
        topk: Number of classes to keep. Defaults to 5.

    Returns:
        [*, K] in float32 or wider, with the sum 1.
    """
    last = logits.topk(min(topk, logits.shape[-1])).values[..., -1:]
    logits, = at_least_float32(logits.masked_fill(logits < last, 0))
    return logits.softmax(-1)


@MODELS.register_module()
@check_arguments
class TokenLabelLoss(nn.Module):
    """Mean cross-entropy of token logits and soft labels.

    Args:
        loss_weight: Factor of the loss. Defaults to 1.
    """

    def __init__(self, loss_weight: NotNegative = 1.) -> None:
        super().__init__()
        self.loss_weight = loss_weight

    def forward(self, token_scores: Tensor, token_labels: Tensor) -> Tensor:
        """Compute the scalar loss of logits and distributions, [*, K] each.

        Raises:
            ValueError: If the shapes differ.
        """
        if token_scores.shape != token_labels.shape:
            raise ValueError(
                'token_scores and token_labels must have the same shape, got '
                f'{tuple(token_scores.shape)} and '
                f'{tuple(token_labels.shape)}')
        token_scores, = at_least_float32(token_scores)
        log_scores = F.log_softmax(token_scores, dim=-1)
        loss = -(token_labels * log_scores).sum(-1).mean()
        return self.loss_weight * loss
