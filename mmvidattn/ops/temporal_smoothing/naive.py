# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The reference: the kernels of Eq. 3 of the paper, written out."""
import torch
from torch import Tensor


def naive_temporal_smoothing_attention(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        decay: float = 1.,
        scale: float | None = None,
        key_mask: Tensor | None = None) -> Tensor:
    """Args and result as :func:`temporal_smoothing_attention`.

    Nothing is subtracted before the exponential: for small scores, and some
    key must count.
    """
    scale = q.shape[-1]**-0.5 if scale is None else scale
    age = torch.arange(k.shape[-3] - 1, -1, -1, device=k.device, dtype=q.dtype)
    temporal = decay**age + 1e-10
    features = (torch.einsum('...mgd,...ngd->...gmn', q, k) * scale).exp()
    kernel = temporal * features
    if key_mask is not None:
        kernel = kernel * key_mask[..., None, None, :]
    y = torch.einsum('...gmn,...ngd->...mgd', kernel, v)
    return y / kernel.sum(dim=-1).transpose(-1, -2)[..., None]


def naive_exponential_smoothing(q: Tensor,
                                k: Tensor,
                                v: Tensor,
                                *,
                                decay: float = 1.,
                                scale: float | None = None,
                                length: int | None = None) -> Tensor:
    """Every step of a stream, each from its whole past.

    Args:
        q: Queries, [*, N, G, D].
        k: Keys of the stream, [*, T, G, D].
        v: Values of the stream, [*, T, G, E].
        decay: Weight of a sample relative to the next newer one, in (0, 1].
        scale: Of the scores; ``D ** -0.5`` by default.
        length: How many samples back a step looks; None for all.

    Returns:
        [T, *, N, G, E].
    """
    steps = []
    scale = q.shape[-1]**-0.5 if scale is None else scale
    for t in range(1, k.shape[-3] + 1):
        first = 0 if length is None else max(0, t - length)
        past, values = k[..., first:t, :, :], v[..., first:t, :, :]
        age = torch.arange(t - first - 1, -1, -1, dtype=q.dtype)
        # Eq. 6 has no floor; that of a window is the released code's.
        floor = 0 if length is None else 1e-10
        kernel = (decay**age + floor).log()
        scores = torch.einsum('...mgd,...ngd->...gmn', q, past) * scale
        weights = (scores + kernel).softmax(dim=-1)
        steps.append(torch.einsum('...gmn,...ngd->...mgd', weights, values))
    return torch.stack(steps)
