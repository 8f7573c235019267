# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""MALA: linear attention that depends on the magnitude of the queries."""
from torch import Tensor

from .attention_inputs import check_attention_inputs
from .linear_attention import linear_attention
from .precision import at_least_float32, without_autocast


def mala_attention(q: Tensor, k: Tensor, v: Tensor, *, order: str = 'auto',
                   eps: float = 1e-6) -> Tensor:
    r"""Linear attention with weights that sharpen as a query grows.

    .. math:: y_i = \sum_j ((1 + \frac{1}{z_i + eps}) s_{ij} -
              \frac{z_i}{M}) v_j, \quad s_{ij} = \frac{q_i k_j^T}{M \sqrt D},
              \quad z_i = \sum_j s_{ij}

    These are the scale and the offset of `Rectifying Magnitude Neglect in
    Linear Attention <https://arxiv.org/abs/2507.00698>`_ (Sec. 3.2). The
    factor of the scores, one over M and the root of D, is the released code's
    (https://github.com/qhfan/MALA); the paper has none. Weights add up to 1
    and may be negative.

    The result equals ``v`` averaged over the keys plus the attention to the
    deviations from this average. This form avoids the difference of two large
    sums.

    Args:
        q: Queries after a positive feature map, [*, N, G, D].
        k: Keys after the same feature map, [*, M, G, D].
        v: Values, [*, M, G, E].
        order: See :func:`linear_attention`. Defaults to 'auto'.
        eps: Added to the denominator, so that the result for an all-zero query
            is zero. Defaults to 1e-6.

    Returns:
        [*, N, G, E], in the dtype of ``v``.

    Raises:
        ValueError: If the shapes do not fit or ``order`` is unknown.
    """
    check_attention_inputs('mala_attention', q, k, v)
    dtype, num_keys = v.dtype, v.shape[-3]
    q, k, v = at_least_float32(q, k, v)
    q = q * q.shape[-1]**-0.5
    with without_autocast(q.device.type):
        mean = v.mean(dim=-3, keepdim=True)
        z = (q * k.mean(dim=-3, keepdim=True)).sum(dim=-1, keepdim=True)
        y = linear_attention(q, k, v - mean, order=order, eps=eps * num_keys)
        y = y * (1 + z + eps) + mean * (z / (z + eps))
    return y.to(dtype)


def naive_mala_attention(q: Tensor, k: Tensor, v: Tensor,
                         eps: float = 1e-6) -> Tensor:
    """Reference of :func:`mala_attention` with the full matrix."""
    q, k, v = (x.transpose(-3, -2) for x in (q, k, v))
    num_keys = k.shape[-2]
    scores = q @ k.mT * q.shape[-1]**-0.5 / num_keys
    z = scores.sum(dim=-1, keepdim=True)
    weights = (1 + 1 / (z + eps)) * scores - z / num_keys
    return (weights @ v).transpose(-3, -2)
