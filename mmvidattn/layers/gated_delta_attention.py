# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
import torch.nn.functional as F
from mmaction.registry import MODELS
from torch import Tensor, nn

from ..ops import frame_delta_rule
from ..ops.frame_delta_rule import initial_memory
from ..utils.arguments import Count, check_arguments
from ..utils.modules import State
from .base_attention import BaseAttention


@MODELS.register_module()
@check_arguments
class GatedDeltaAttention(BaseAttention):
    """Gated delta rule over frames, after `Gated Delta Networks
    <https://arxiv.org/abs/2412.06464>`_.

    For causal networks. Each head has a memory that maps keys to values. A
    frame decays it, corrects it at its keys, and reads it. Queries and keys
    are SiLU of the projections, with norm 1. The result is normalized and
    multiplied by SiLU of a linear map. In other patterns, each sequence is one
    frame with an empty memory.

    Differs from the paper:

    * The tokens of a frame correct the memory at once, see
      :func:`mmvidattn.ops.frame_delta_rule`.
    * The rate of correction and the decay are linear maps of key and value
      instead of the token, and the map for the result reads the query. All
      heads share them, like a gate of :class:`FeatureFixation`.
    * The decay of a frame is the mean over its tokens. It does not depend on
      the time between frames; :class:`FrameDecay` (option ``decay`` of the
      network) adds a decay that does.
    * There is no convolution in time before the attention; the shifts of the
      network mix neighboring frames.

    Args:
        head_dims, num_heads, seq_shape: See :class:`BaseAttention`.
        forget: Initial logit of the decay: the first frames multiply the
            memory by about ``1 - sigmoid(forget)``. Defaults to -4, for 0.98.
    """
    is_causal = True

    def __init__(self, head_dims: Count, num_heads: Count,
                 seq_shape: tuple[Count, ...], forget: float = -4.) -> None:
        super().__init__(head_dims, num_heads, seq_shape)
        self.forget = forget
        self.rates = nn.Linear(2 * head_dims, 2)
        self.gate = nn.Linear(head_dims, head_dims)
        self.norm = nn.RMSNorm(head_dims, eps=1e-6)

    def feature_map(self, x: Tensor) -> Tensor:
        return F.normalize(F.silu(x), dim=-1, eps=1e-6)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        y, _ = self._attend(*(x.flatten(0, -4).unsqueeze(1) if x.dim() > 3
                              else x[None, None] for x in (q, k, v)))
        return y.reshape(*q.shape[:-1], v.shape[-1])

    def forward_causal(self, q: Tensor, k: Tensor, v: Tensor,
                       decay: Tensor | None, state: State,
                       elapsed: Tensor | None) -> tuple[Tensor, State]:
        y, memory = self._attend(q, k, v, decay, state['memory'], elapsed)
        return y, dict(memory=memory)

    def initial_state(self, v: Tensor) -> State:
        return dict(memory=initial_memory(v, self.head_dims))

    def decay_state(self, state: State, decay: Tensor | None,
                    elapsed: Tensor) -> State:
        if decay is None:
            return dict(state)
        memory = state['memory']
        kept = (-decay * elapsed.unsqueeze(-1)).to(memory.dtype).exp()
        return dict(memory=memory * kept[..., None, None])

    def _attend(self, q: Tensor, k: Tensor, v: Tensor,
                decay: Tensor | None = None, memory: Tensor | None = None,
                elapsed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Attend to frames [B, T, N, G, D]; see :meth:`forward_causal`."""
        beta, forget = self.rates(torch.cat([k, v], dim=-1)).unbind(-1)
        log_gate = -F.softplus(forget.mean(dim=2) + self.forget)
        if decay is not None:
            log_gate = log_gate - (decay if elapsed is None else
                                   decay * elapsed.unsqueeze(-1))
        y, memory = frame_delta_rule(q, k, v, beta.sigmoid(), log_gate, memory)
        return self.norm(y) * F.silu(self.gate(q)), memory
