# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""RALA: linear attention with weighted keys, for a sum of higher rank."""
from torch import Tensor

from .attention_inputs import check_attention_inputs
from .linear_attention import linear_attention
from .precision import at_least_float32, without_autocast


def rala_attention(q: Tensor, k: Tensor, v: Tensor, *, order: str = 'auto',
                   eps: float = 1e-6) -> Tensor:
    r"""Linear attention to keys that the mean query weights.

    .. math:: y_i = \frac{q_i \sum_j w_j k_j^T v_j}
              {q_i \sum_j w_j k_j^T + eps}, \quad
              w = softmax(\frac{k \bar q^T}{\sqrt D})

    :math:`\bar q` is the mean of the queries. This is the first part of
    rank-augmented linear attention, `Breaking the Low-Rank Dilemma of Linear
    Attention <https://arxiv.org/abs/2411.07635>`_, which raises the rank of
    the sum of ``k^T v``; the factor M of its weights cancels. The second part
    multiplies the result by a map of the token, see
    :class:`mmvidattn.layers.RALAAttention`. Like the released code
    (https://github.com/qhfan/RALA), it uses the mapped queries and keys for
    the weights.

    Args:
        q: Queries after a positive feature map, [*, N, G, D].
        k: Keys after the same feature map, [*, M, G, D].
        v: Values, [*, M, G, E].
        order: See :func:`linear_attention`. Defaults to 'auto'.
        eps: Added to the denominator. Defaults to 1e-6.

    Returns:
        [*, N, G, E], in the dtype of ``v``.

    Raises:
        ValueError: If the shapes do not fit or ``order`` is unknown.
    """
    check_attention_inputs('rala_attention', q, k, v)
    dtype = v.dtype
    q, k, v = at_least_float32(q, k, v)
    with without_autocast(q.device.type):
        mean = q.mean(dim=-3, keepdim=True) * q.shape[-1]**-0.5
        weights = (mean * k).sum(dim=-1, keepdim=True).softmax(dim=-3)
    return linear_attention(q, weights * k, v, order=order, eps=eps).to(dtype)


def naive_rala_attention(q: Tensor, k: Tensor, v: Tensor,
                         eps: float = 1e-6) -> Tensor:
    """Reference of :func:`rala_attention` with the full matrix."""
    q, k, v = (x.transpose(-3, -2) for x in (q, k, v))
    scale = q.shape[-1]**-0.5
    weights = (scale * q.mean(dim=-2, keepdim=True) @ k.mT).exp()
    scores = q @ k.mT * weights / weights.sum(dim=-1, keepdim=True)
    y = scores @ v / (scores.sum(dim=-1, keepdim=True) + eps)
    return y.transpose(-3, -2)
