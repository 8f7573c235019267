# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math

import torch
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..ops import linformer_attention
from ..utils.arguments import Count, check_arguments
from .base_attention import BaseAttention


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
