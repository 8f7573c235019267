# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The reference: Linformer with its attention matrix formed."""
import torch
from torch import Tensor


def naive_linformer_attention(q: Tensor,
                              k: Tensor,
                              v: Tensor,
                              key_projection: Tensor,
                              value_projection: Tensor,
                              scale: float | None = None,
                              key_mask: Tensor | None = None) -> Tensor:
    """Args and result as :func:`linformer_attention`."""
    if key_mask is not None:
        k, v = (x * key_mask[..., None, None] for x in (k, v))
    k = torch.einsum('mp,...mgd->...pgd', key_projection, k)
    v = torch.einsum('mp,...mge->...pge', value_projection, v)
    scale = q.shape[-1]**-0.5 if scale is None else scale
    scores = torch.einsum('...ngd,...pgd->...gnp', q, k) * scale
    return torch.einsum('...gnp,...pge->...nge', scores.softmax(-1), v)
