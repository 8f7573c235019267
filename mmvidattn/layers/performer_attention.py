# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from mmaction.registry import MODELS
from torch import Tensor

from ..ops import linear_attention, performer_features, random_projection
from ..ops.linear_attention import Order
from ..ops.performer import Kind
from ..utils.arguments import Count, Natural, Positive, check_arguments
from .base_attention import BaseAttention


@MODELS.register_module()
@check_arguments
class PerformerAttention(BaseAttention):
    """Attention of `Performer <https://arxiv.org/abs/2009.14794>`_.

    Linear attention with random features, without parameters. The projection
    is drawn once and stored in the checkpoint.

    Differs from the paper: training never redraws the projection. In the
    pattern 'window', the maximum that is subtracted from the exponents of keys
    is taken over the clip.

    Args:
        head_dims, num_heads, seq_shape: See :class:`BaseAttention`.
        num_features: Number of features m of a query or key. Defaults to 64,
            which explains the FLOPs in the paper of the linear video
            transformer.
        kind: 'favor' (approximates softmax) or 'relu'. Defaults to 'favor'.
        seed: Seed of the projection; attentions with the same seed have the
            same projection. Defaults to torch's global generator.
        order: See :func:`mmvidattn.ops.linear_attention`. Defaults to 'auto'.
        eps: Added to each feature. Defaults to 1e-6 for 'favor' and 1e-3 for
            'relu'.
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
        self.feature_dims = num_features
        self.kind = kind
        self.order = order
        self.eps = eps

    def feature_map(self, q: Tensor) -> Tensor:
        return performer_features(
            q, self.projection, kind=self.kind, is_query=True, eps=self.eps)

    def key_map(self, k: Tensor, token_axes: tuple[int, ...]) -> Tensor:
        return performer_features(
            k,
            self.projection,
            kind=self.kind,
            is_query=False,
            token_axes=token_axes,
            eps=self.eps)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return linear_attention(q, k, v, order=self.order, eps=0.)

    def extra_repr(self) -> str:
        return (f'num_features={len(self.projection)}, kind={self.kind!r}, '
                f'order={self.order!r}')
