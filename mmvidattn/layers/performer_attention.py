# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from mmaction.registry import MODELS
from torch import Tensor

from ..ops import performer_attention, random_projection
from ..ops.linear_attention import Order
from ..ops.performer import Kind
from ..utils.arguments import Count, Natural, Positive, check_arguments
from .base_attention import BaseAttention


@MODELS.register_module()
@check_arguments
class PerformerAttention(BaseAttention):
    """Attention of `Performer <https://arxiv.org/abs/2009.14794>`_.

    Linear attention with random features; no parameters. The projection is
    drawn once and belongs to the checkpoint.

    Differs from the paper: the projection is never drawn anew in training.

    Args:
        head_dims: Width D of a head.
        num_heads: See :class:`BaseAttention`, also for ``seq_shape``.
        seq_shape: Likewise.
        num_features: Features m of a query or key. 64 explains the paper's
            FLOPs of the linear video transformer.
        kind: 'favor', which approximates softmax, or 'relu'.
        seed: Draws the projection; attentions of one seed have the same.
            None draws by torch's own generator, as parameters are.
        order: Order of the product: 'auto', 'left' or 'right'.
        eps: Added to the features; 1e-6 for 'favor' and 1e-3 for 'relu' by
            default.
    """

    def __init__(self,
                 head_dims: Count,
                 num_heads: Count,
                 seq_shape: tuple[Count, ...],
                 num_features: Count = 64,
                 kind: Kind = 'favor',
                 seed: Natural | None = None,
                 order: Order = 'auto',
                 eps: Positive | None = None) -> None:
        super().__init__(head_dims, num_heads, seq_shape)
        generator = None if seed is None else torch.Generator().manual_seed(
            seed)
        self.register_buffer(
            'projection', random_projection(num_features, head_dims,
                                            generator))
        self.kind = kind
        self.order = order
        self.eps = eps

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return performer_attention(
            q,
            k,
            v,
            self.projection,
            kind=self.kind,
            order=self.order,
            eps=self.eps)

    def extra_repr(self) -> str:
        return (f'num_features={len(self.projection)}, kind={self.kind!r}, '
                f'order={self.order!r}')
