# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Attentions of other papers that approximate softmax attention."""
import math

import torch
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..ops import (
    landmark_grid,
    landmark_pool,
    lara_attention,
    linformer_attention,
    orthoformer_attention,
    orthogonal_landmarks,
)
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


@MODELS.register_module()
@check_arguments
class LinformerAttention(BaseAttention):
    """Attention of `Linformer <https://arxiv.org/abs/2006.04768>`_.

    Softmax attention to P learned mixtures of the keys. It saves computation
    only if P is smaller than the sequence length. The default, from the
    paper's comparison, is larger than the number of frames of a clip.

    The projections have a row for each key position. A shorter sequence uses
    the first rows; a longer sequence is an error.

    Args:
        head_dims, num_heads: See :class:`BaseAttention`.
        seq_shape: Axes of the longest sequence of keys.
        num_projections: Number of mixtures P. Defaults to 256.
    """

    def __init__(self,
                 head_dims: Count,
                 num_heads: Count,
                 seq_shape: tuple[Count, ...],
                 num_projections: Count = 256) -> None:
        super().__init__(head_dims, num_heads, seq_shape)
        self.num_projections = num_projections
        shape = math.prod(self.seq_shape), num_projections
        self.key_projection, self.value_projection = (
            nn.Parameter(torch.empty(shape)) for _ in range(2))
        for projection in self.parameters():
            bound = num_projections**-0.5
            nn.init.uniform_(projection, -bound, bound)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        length, longest = k.shape[-3], len(self.key_projection)
        if length > longest:
            raise ValueError(
                f'LinformerAttention was built for {longest} keys '
                f'{self.seq_shape}, got {length}; set num_frames and img_size '
                'of the model to the size of the clips')
        return linformer_attention(q, k, v, self.key_projection[:length],
                                   self.value_projection[:length])


@MODELS.register_module()
@check_arguments
class OrthoformerAttention(BaseAttention):
    """`Orthoformer <https://arxiv.org/abs/2106.05392>`_, without parameters.

    The landmarks are detached queries, chosen greedily. The choice starts with
    a random query in training, and with the first query in evaluation, so that
    evaluation is deterministic.

    Differs from the released code: the released code also starts with a random
    query in evaluation. In Motionformer, the network of the same authors, each
    query attends to each frame separately, with landmarks of the whole clip.
    Here, queries attend to the keys of the same sequence, as in the released
    code of the linear video transformer.

    Args:
        head_dims, num_heads, seq_shape: See :class:`BaseAttention`.
        num_landmarks: Number of landmarks for each head of a sequence. A
            shorter sequence uses all of its queries. Defaults to 64.
    """

    def __init__(self,
                 head_dims: Count,
                 num_heads: Count,
                 seq_shape: tuple[Count, ...],
                 num_landmarks: Count = 64) -> None:
        super().__init__(head_dims, num_heads, seq_shape)
        self.num_landmarks = num_landmarks

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        chosen = orthogonal_landmarks(
            q, self.num_landmarks, None if self.training else 0)
        # take_along_dim would fix the batch size of an exported program.
        landmarks = q.detach().gather(
            -3, chosen.unsqueeze(-1).expand(*chosen.shape, q.shape[-1]))
        return orthoformer_attention(q, k, v, landmarks)
