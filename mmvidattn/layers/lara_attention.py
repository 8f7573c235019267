# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from typing import Literal

import torch
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..ops import (
    landmark_grid,
    landmark_pool,
    lara_attention,
    softmax_attention,
)
from ..ops.lara import Weighting
from ..ops.precision import at_least_float32
from ..utils.arguments import Count, check_arguments
from .base_attention import BaseAttention


@MODELS.register_module()
@check_arguments
class LARAAttention(BaseAttention):
    """`Linear randomized attention <https://arxiv.org/abs/2204.04667>`_.

    The landmarks are pooled queries and keys, see
    :func:`mmvidattn.ops.landmark_grid`. In training, samples are drawn around
    the landmarks at each call; in evaluation, the samples are the landmarks. A
    table of the paper on feature fixation calls this attention RALA.

    Differs from the released code:

    * It also supports sequences with three axes.
    * If an axis of a sequence with two axes has fewer tokens than cells, it
      has one cell for each token; the released code repeats cells.
    * Sequences with one axis are pooled before the linear map, like sequences
      with two axes; the released code pools them after it.

    Args:
        head_dims, num_heads, seq_shape: See :class:`BaseAttention`.
        num_landmarks: Number of landmarks; a square for sequences with two
            axes. Defaults to 49.
        pooling: Layers after the mean of tokens. 'per-head': a linear map
            shared by all heads, and a LayerNorm (released as 'pool', 'light').
            'all-heads': a linear map of the channels of all heads, and a
            LayerNorm (released as 'pool', 'dense'). 'no-param': no layers
            (released as 'no-param-pool'). Defaults to 'per-head'.
        mix_keys: Let the key landmarks attend to each other (released as
            '-mixed'). Defaults to False.
        weighting: See :func:`mmvidattn.ops.lara_attention`. Defaults to
            'mis-opt'.
        alpha: Strength of the correction term of 'mis-opt'. Defaults to 1.
    """

    takes_shapes = True

    def __init__(self,
                 head_dims: Count,
                 num_heads: Count,
                 seq_shape: tuple[Count, ...],
                 num_landmarks: Count = 49,
                 pooling: Literal['per-head', 'all-heads',
                                  'no-param'] = 'per-head',
                 mix_keys: bool = False,
                 weighting: Weighting = 'mis-opt',
                 alpha: float = 1.) -> None:
        super().__init__(head_dims, num_heads, seq_shape)
        # Raise an error early if the number does not suit the axes.
        landmark_grid(self.seq_shape, num_landmarks)
        self.num_landmarks = num_landmarks
        self.pooling = pooling
        self.mix_keys = mix_keys
        self.weighting = weighting
        self.alpha = alpha
        self.q_generator = self._generator()
        self.k_generator = self._generator()

    def forward(self, q: Tensor, k: Tensor, v: Tensor,
                query_shape: tuple[int, ...],
                key_shape: tuple[int, ...]) -> Tensor:
        # Queries and keys share the grid of landmarks. If only the keys have a
        # leading axis (the frames of a window), it is a single cell.
        grid = landmark_grid(
            min(query_shape, key_shape, key=len), self.num_landmarks)
        query_landmarks = self._landmarks(q, query_shape, grid,
                                          self.q_generator)
        key_landmarks = self._landmarks(k, key_shape, grid, self.k_generator)
        if self.mix_keys:
            key_landmarks = softmax_attention(key_landmarks, key_landmarks,
                                              key_landmarks)
        omega = None
        if self.training:
            # In half precision, most of the noise would be lost by rounding.
            query_landmarks, key_landmarks = at_least_float32(
                query_landmarks, key_landmarks)
            omega = query_landmarks + key_landmarks
            omega = omega + torch.randn_like(omega)
        return lara_attention(
            q,
            k,
            v,
            query_landmarks,
            key_landmarks,
            omega,
            weighting=self.weighting,
            alpha=self.alpha)

    def _generator(self) -> nn.Module:
        if self.pooling == 'no-param':
            return nn.Identity()
        width = self.head_dims
        if self.pooling == 'all-heads':
            width *= self.num_heads
        return nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width))

    def _landmarks(self, x: Tensor, shape: tuple[int, ...],
                   grid: tuple[int, ...], generator: nn.Module) -> Tensor:
        """Pool and map tokens [*, N, G, D] to landmarks [*, C, G, D]."""
        x = landmark_pool(x, shape, (1, ) * (len(shape) - len(grid)) + grid)
        if self.pooling == 'all-heads':
            return generator(x.flatten(-2)).view_as(x)
        return generator(x)

    def extra_repr(self) -> str:
        return (f'num_landmarks={self.num_landmarks}, '
                f'pooling={self.pooling!r}, mix_keys={self.mix_keys}, '
                f'weighting={self.weighting!r}, alpha={self.alpha:g}')
