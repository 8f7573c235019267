# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from mmaction.registry import MODELS
from torch import Tensor

from ..ops import orthoformer_attention, orthogonal_landmarks
from ..utils.arguments import Count, check_arguments
from .base_attention import BaseAttention


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
