# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmaction.registry import MODELS
from torch import Tensor

from ..ops import orthoformer_attention, orthogonal_landmarks
from ..utils.arguments import Count, check_arguments
from .base_attention import BaseAttention


@MODELS.register_module()
@check_arguments
class OrthoformerAttention(BaseAttention):
    """`Orthoformer <https://arxiv.org/abs/2106.05392>`_, no parameters.

    For :class:`VideoSelfAttention`. The landmarks are queries, through which
    no gradient flows back. They are chosen greedily, beginning with a random
    query in training and with the first in evaluation, so that the same
    video gives the same result.

    Differs from the released code: that begins with a random query in
    evaluation also. In the network of its authors, Motionformer, each query
    of a clip attends to every frame by itself, with landmarks of the whole
    clip; here queries attend to the keys of their own sequence, as in the
    code of the linear video transformer.

    Args:
        head_dims: Width D of a head.
        num_heads: See :class:`BaseAttention`, also for ``seq_shape``.
        seq_shape: Likewise.
        num_landmarks: Landmarks of a head of a sequence; all its queries
            where there are no more.
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
        # take_along_dim would fix the batch of an exported program.
        landmarks = q.detach().gather(
            -3, chosen.unsqueeze(-1).expand(*chosen.shape, q.shape[-1]))
        return orthoformer_attention(q, k, v, landmarks)

    def extra_repr(self) -> str:
        return f'num_landmarks={self.num_landmarks}'
