# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""PolaFormer: linear attention that also uses negative channels."""
import torch
from torch import Tensor

from .attention_inputs import check_attention_inputs
from .linear_attention import linear_attention
from .precision import at_least_float32


def polaformer_attention(q: Tensor, k: Tensor, v: Tensor, power: Tensor, *,
                         order: str = 'auto', eps: float = 1e-6) -> Tensor:
    r"""Linear attention with scores of equal and of opposite signs.

    With :math:`x^\pm = relu(\pm x)^p`, the first half of the channels of the
    values has the scores :math:`q^+ k^{+T} + q^- k^{-T}`, the second half has
    :math:`q^+ k^{-T} + q^- k^{+T}`. The scores are divided by their sum.

    This is the attention of `PolaFormer <https://arxiv.org/abs/2501.15061>`_
    (Sec. 4), without the coefficients of its results, see
    :class:`mmvidattn.layers.PolaFormerAttention`. Like the released code
    (https://github.com/ZacharyMeng/PolaFormer), it adds ``eps`` to the mean of
    the scores.

    Args:
        q: Queries, [*, N, G, D].
        k: Keys, [*, M, G, D].
        v: Values, [*, M, G, E], for an even E.
        power: Exponent p of each channel, above 1, [G, D].
        order: See :func:`linear_attention`. Defaults to 'auto'.
        eps: Added to the mean of the scores. Defaults to 1e-6.

    Returns:
        [*, N, G, E], in the dtype of ``v``.

    Raises:
        ValueError: If the shapes do not fit, E is odd, or ``order`` is
            unknown.
    """
    check_attention_inputs('polaformer_attention', q, k, v)
    if v.shape[-1] % 2 or power.shape != k.shape[-2:]:
        raise ValueError(
            'polaformer_attention takes v [*, M, G, E] with an even E and '
            f'power [G, D], got {tuple(v.shape)} and {tuple(power.shape)}')
    dtype = v.dtype
    q, k, v, power = at_least_float32(q, k, v, power)
    (q_plus, q_minus), (k_plus, k_minus) = (
        (x.relu()**power, (-x).relu()**power) for x in (q, k))
    k = torch.cat([k_plus, k_minus], dim=-1)
    parts = [
        linear_attention(torch.cat(q, dim=-1), k, part, order=order,
                         eps=eps * k.shape[-3])
        for q, part in zip(((q_plus, q_minus), (q_minus, q_plus)),
                           v.chunk(2, dim=-1))]
    return torch.cat(parts, dim=-1).to(dtype)


def naive_polaformer_attention(q: Tensor, k: Tensor, v: Tensor, power: Tensor,
                               eps: float = 1e-6) -> Tensor:
    """Reference of :func:`polaformer_attention`: sums by pairs of signs."""
    power = power.unsqueeze(-2)
    q, k, v = (x.transpose(-3, -2) for x in (q, k, v))
    scores = {}
    for a in 1, -1:
        for b in 1, -1:
            scores[a, b] = ((a * q).clamp(min=0)**power) @ (
                (b * k).clamp(min=0)**power).mT
    same, opposite = (
        (s + t) / ((s + t).sum(dim=-1, keepdim=True) + eps * k.shape[-2])
        for s, t in ((scores[1, 1], scores[-1, -1]),
                     (scores[1, -1], scores[-1, 1])))
    first, second = v.chunk(2, dim=-1)
    return torch.cat([same @ first, opposite @ second],
                     dim=-1).transpose(-3, -2)
