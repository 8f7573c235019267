# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linear attentions of other papers; ours is in ``linear_attention.py``."""
import torch
import torch.nn.functional as F
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..ops import (
    cosformer_attention,
    feature_map,
    linear_attention,
    mala_attention,
    performer_features,
    polaformer_attention,
    rala_attention,
    random_projection,
)
from ..ops.linear_attention import Order
from ..utils.arguments import Count, Positive, check_arguments
from .base_attention import BaseAttention

Axes = tuple[Count, ...]


@check_arguments
class KernelAttention(BaseAttention):
    """Base class of linear attentions with an order and a denominator.

    Args:
        head_dims, num_heads, seq_shape: See :class:`BaseAttention`.
        order: See :func:`mmvidattn.ops.linear_attention`. Defaults to 'auto'.
        eps: Added to the denominator. Defaults to 1e-6.

    Attributes:
        kernel: Feature map of queries and keys, see
            :func:`mmvidattn.ops.feature_map`.
    """
    kernel = 'elu+1'

    def __init__(self, head_dims: Count, num_heads: Count, seq_shape: Axes,
                 order: Order = 'auto', eps: Positive = 1e-6) -> None:
        super().__init__(head_dims, num_heads, seq_shape)
        self.order = order
        self.eps = eps

    def feature_map(self, x: Tensor) -> Tensor:
        return feature_map(x, self.kernel)


@MODELS.register_module()
class CosFormerAttention(KernelAttention):
    """Attention of `cosFormer <https://arxiv.org/abs/2202.08791>`_.

    Linear attention with ReLU that favors nearby tokens. It has no parameters.
    The distance is counted in row-major order, so vertical neighbors are a
    whole row apart. In the pattern 'window', queries have the positions of the
    window's first frame. ``eps`` is the lower bound of the denominator.
    """
    kernel = 'relu'

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return cosformer_attention(q, k, v, order=self.order, eps=self.eps)


@MODELS.register_module()
class MALAAttention(KernelAttention):
    """Magnitude-aware linear attention, `MALA
    <https://arxiv.org/abs/2507.00698>`_.

    Linear attention with ELU + 1 that concentrates on fewer keys if a query
    is large. It has no parameters.

    Differs from the released code, whose block has three more parts: rotary
    positions of queries and keys, a depth-wise convolution of the values, and
    a linear map of the token that multiplies the result.
    """

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return mala_attention(q, k, v, order=self.order, eps=self.eps)


@MODELS.register_module()
@check_arguments
class RALAAttention(KernelAttention):
    """Rank-augmented linear attention, `RALA
    <https://arxiv.org/abs/2411.07635>`_.

    Linear attention with ELU + 1 to keys that the mean query weights, whose
    result is multiplied by a linear map of the token. (The paper on feature
    fixation calls another attention RALA: :class:`LARAAttention`.)

    Differs from the paper: the linear map reads the mapped query of its head
    instead of the token, and all heads share it, like a gate of
    :class:`FeatureFixation`.

    Differs from the released code, whose block has two more parts: rotary
    positions of queries and keys, and a depth-wise convolution of the values.
    """

    def __init__(self, head_dims: Count, num_heads: Count, seq_shape: Axes,
                 order: Order = 'auto', eps: Positive = 1e-6) -> None:
        super().__init__(head_dims, num_heads, seq_shape, order, eps)
        self.gate = nn.Linear(head_dims, head_dims)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        y = rala_attention(q, k, v, order=self.order, eps=self.eps)
        return y * self.gate(q)


@MODELS.register_module()
@check_arguments
class PolaFormerAttention(KernelAttention):
    """Polarity-aware linear attention, `PolaFormer
    <https://arxiv.org/abs/2501.15061>`_.

    Linear attention that also multiplies negative channels. Each channel of
    queries and keys has a learned scale and a learned exponent between 1 and
    1 + ``alpha``. A linear map multiplies the result (the coefficients
    :math:`G^s` and :math:`G^o`).

    Differs from the paper: the linear map reads the query of its head instead
    of the token, and all heads share it, like a gate of
    :class:`FeatureFixation`.

    Differs from the released code, whose block has two more parts: positions
    of the keys, and a depth-wise convolution of the values.

    Args:
        head_dims: Width D of a head, even.
        num_heads, seq_shape, order: See :class:`KernelAttention`.
        eps: Added to the mean of the scores. Defaults to 1e-6.
        alpha: Range of the exponents. Defaults to 4.
    """

    def __init__(self, head_dims: Count, num_heads: Count, seq_shape: Axes,
                 order: Order = 'auto', eps: Positive = 1e-6,
                 alpha: Positive = 4.) -> None:
        super().__init__(head_dims, num_heads, seq_shape, order, eps)
        self.alpha = alpha
        self.scale, self.power = (
            nn.Parameter(torch.zeros(num_heads, head_dims)) for _ in range(2))
        self.gate = nn.Linear(head_dims, head_dims)

    def feature_map(self, x: Tensor) -> Tensor:
        return x / F.softplus(self.scale).to(x.dtype)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        y = polaformer_attention(
            q, k, v, 1 + self.alpha * self.power.sigmoid(), order=self.order,
            eps=self.eps)
        return y * self.gate(q)


@MODELS.register_module()
@check_arguments
class PerformerAttention(KernelAttention):
    """Attention of `Performer <https://arxiv.org/abs/2009.14794>`_.

    Linear attention with random features, without parameters. The projection
    is drawn once and stored in the checkpoint.

    Differs from the paper: training never redraws the projection. In the
    pattern 'window', the maximum that is subtracted from the exponents of keys
    is taken over the clip.

    Args:
        head_dims, num_heads, seq_shape, order: See :class:`KernelAttention`.
        eps: Added to each feature. Defaults to 1e-6.
        num_features: Number of features m of a query or key. Defaults to 64,
            which explains the FLOPs in the paper of the linear video
            transformer.
    """

    def __init__(self, head_dims: Count, num_heads: Count, seq_shape: Axes,
                 order: Order = 'auto', eps: Positive = 1e-6,
                 num_features: Count = 64) -> None:
        super().__init__(head_dims, num_heads, seq_shape, order, eps)
        self.feature_dims = num_features
        self.register_buffer('projection', random_projection(
            num_features, head_dims))

    def feature_map(self, q: Tensor) -> Tensor:
        return performer_features(
            q, self.projection, is_query=True, eps=self.eps)

    def key_map(self, k: Tensor, token_axes: tuple[int, ...]) -> Tensor:
        return performer_features(
            k, self.projection, is_query=False, token_axes=token_axes,
            eps=self.eps)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return linear_attention(q, k, v, order=self.order, eps=0.)
