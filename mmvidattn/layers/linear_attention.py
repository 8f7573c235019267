# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..ops import FEATURE_MAPS, feature_map, linear_attention
from ..ops.linear_attention import ORDERS
from ..utils.arguments import check_arguments
from .base_attention import BaseAttention


@MODELS.register_module()
@check_arguments
class LinearAttention(BaseAttention):
    """Kernelized attention for :class:`VideoSelfAttention`, no parameters.

    With ``kernel='elu+1'`` and no offset it is the `Linear Transformer
    <https://arxiv.org/abs/2006.16236>`_.

    Args:
        head_dims: Width D of a head.
        num_heads: See :class:`BaseAttention`, also for ``seq_shape``.
        seq_shape: Likewise.
        kernel: Feature map of queries and keys: 'relu', 'elu+1', 'sigmoid'
            or 'identity'.
        offset: Added to the mapped queries and keys; 'auto' is
            ``head_dims ** -0.5``, as the released code adds to ReLU.
        order: Order of the product: 'auto', 'left' or 'right'.
        dropout: Dropout of the queries and keys. (There are no attention
            weights to drop; the released code does the same.)
        eps: Added to the denominator.
    """

    def __init__(self,
                 head_dims: int,
                 num_heads: int,
                 seq_shape: tuple[int, ...],
                 kernel: str = 'relu',
                 offset: float | str = 0.,
                 order: str = 'auto',
                 dropout: float = 0.,
                 eps: float = 1e-6) -> None:
        super().__init__(head_dims, num_heads, seq_shape)
        if kernel not in FEATURE_MAPS:
            raise ValueError(
                f'kernel must be one of {FEATURE_MAPS}, got {kernel!r}')
        if order not in ORDERS:
            raise ValueError(f'order must be one of {ORDERS}, got {order!r}')
        self.kernel = kernel
        self.offset = head_dims**-0.5 if offset == 'auto' else float(offset)
        self.order = order
        self.eps = eps
        self.dropout = nn.Dropout(dropout)

    def feature_map(self, x: Tensor) -> Tensor:
        return feature_map(x, self.kernel, self.offset)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return linear_attention(
            self.dropout(q),
            self.dropout(k),
            v,
            order=self.order,
            eps=self.eps)

    def extra_repr(self) -> str:
        return (f'kernel={self.kernel!r}, offset={self.offset:g}, '
                f'order={self.order!r}')
