# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linformer: softmax attention to a fixed number of mixed keys."""
import torch
from torch import Tensor

from .attention_inputs import check_attention_inputs
from .precision import at_least_float32, without_autocast
from .softmax_attention import softmax_attention


def linformer_attention(q: Tensor,
                        k: Tensor,
                        v: Tensor,
                        key_projection: Tensor,
                        value_projection: Tensor) -> Tensor:
    """Compute ``softmax(Q (E^T K)^T / sqrt(D)) (F^T V)``.

    The computation is at least in float32, also under autocast.

    Args:
        q: Queries, [*, N, G, D].
        k: Keys, [*, M, G, D].
        v: Values, [*, M, G, D'].
        key_projection: E, mixes M keys to P in every head, [M, P].
        value_projection: F, mixes M values to P in every head, [M, P].

    Returns:
        [*, N, G, D'], in the dtype of ``v``.

    Raises:
        ValueError: If the shapes do not fit.
    """
    check_attention_inputs('linformer_attention', q, k, v)
    M, shape = k.shape[-3], key_projection.shape
    if len(shape) != 2 or shape[0] != M or shape != value_projection.shape:
        raise ValueError(
            'key_projection and value_projection must both be [M, P] with '
            f'M={M} from k, got {tuple(shape)} and '
            f'{tuple(value_projection.shape)}')
    dtype = v.dtype
    q, k, v, key_projection, value_projection = at_least_float32(
        q, k, v, key_projection, value_projection)
    with without_autocast(q.device.type):
        y = softmax_attention(q, _project(k, key_projection),
                              _project(v, value_projection))
    return y.to(dtype)


def _project(x: Tensor, projection: Tensor) -> Tensor:
    """[*, M, G, D] to [*, P, G, D]."""
    return (projection.T @ x.flatten(-2)).unflatten(-1, x.shape[-2:])


def naive_linformer_attention(q: Tensor,
                              k: Tensor,
                              v: Tensor,
                              key_projection: Tensor,
                              value_projection: Tensor) -> Tensor:
    """Reference of :func:`linformer_attention` with the full matrix."""
    k = torch.einsum('mp,...mgd->...pgd', key_projection, k)
    v = torch.einsum('mp,...mge->...pge', value_projection, v)
    scores = torch.einsum('...ngd,...pgd->...gnp', q, k) * q.shape[-1]**-0.5
    return torch.einsum('...gnp,...pge->...nge', scores.softmax(-1), v)
