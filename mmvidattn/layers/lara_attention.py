# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..ops import landmark_grid, landmark_pool, lara_attention
from ..ops.precision import at_least_float32
from ..utils.arguments import Count, check_arguments
from .base_attention import BaseAttention


@MODELS.register_module()
@check_arguments
class LARAAttention(BaseAttention):
    """`Linear randomized attention <https://arxiv.org/abs/2204.04667>`_.

    The landmarks are pooled queries and keys, see
    :func:`mmvidattn.ops.landmark_grid`, after a linear map and a LayerNorm
    that all heads share (released as 'pool', 'light'). In training, samples
    are drawn around the landmarks at each call; in evaluation, the samples are
    the landmarks. A table of the paper on feature fixation calls this
    attention RALA; see :class:`RALAAttention`.

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
    """

    takes_shapes = True

    def __init__(self,
                 head_dims: Count,
                 num_heads: Count,
                 seq_shape: tuple[Count, ...],
                 num_landmarks: Count = 49) -> None:
        super().__init__(head_dims, num_heads, seq_shape)
        # Raise an error early if the number does not suit the axes.
        landmark_grid(self.seq_shape, num_landmarks)
        self.num_landmarks = num_landmarks
        self.q_generator, self.k_generator = (
            nn.Sequential(nn.Linear(head_dims, head_dims),
                          nn.LayerNorm(head_dims)) for _ in range(2))

    def forward(self, q: Tensor, k: Tensor, v: Tensor,
                query_shape: tuple[int, ...],
                key_shape: tuple[int, ...]) -> Tensor:
        # Queries and keys share the grid of landmarks. If only the keys have a
        # leading axis (the frames of a window), it is a single cell.
        grid = landmark_grid(
            min(query_shape, key_shape, key=len), self.num_landmarks)
        query_landmarks, key_landmarks = (
            generator(landmark_pool(
                x, shape, (1, ) * (len(shape) - len(grid)) + grid))
            for x, shape, generator in ((q, query_shape, self.q_generator),
                                        (k, key_shape, self.k_generator)))
        omega = None
        if self.training:
            # In half precision, most of the noise would be lost by rounding.
            query_landmarks, key_landmarks = at_least_float32(
                query_landmarks, key_landmarks)
            omega = query_landmarks + key_landmarks
            omega = omega + torch.randn_like(omega)
        return lara_attention(q, k, v, query_landmarks, key_landmarks, omega)
