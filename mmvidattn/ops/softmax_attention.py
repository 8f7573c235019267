# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Softmax attention through torch's fused kernels."""
import torch
import torch.nn.functional as F
from torch import Tensor

from .attention_inputs import check_attention_inputs

# On a CPU, torch 2.4 computes float16 scores in float16, where they overflow.
# Torch 2.5, which introduced this switch, computes them in float32.
_SUMS_IN_HALF = not hasattr(torch.backends.cuda,
                            'allow_fp16_bf16_reduction_math_sdp')


def softmax_attention(q: Tensor,
                      k: Tensor,
                      v: Tensor,
                      *,
                      scale: float | None = None,
                      dropout_p: float = 0.,
                      key_mask: Tensor | None = None,
                      bias: Tensor | None = None) -> Tensor:
    """Compute ``softmax(scale Q K^T) V`` for each head.

    Args:
        q: Queries, [*, N, G, D].
        k: Keys, [*, M, G, D].
        v: Values, [*, M, G, E].
        scale: Factor of the scores. Defaults to ``D ** -0.5``.
        dropout_p: Probability of dropping an attention weight. Defaults to 0.
        key_mask: Bool, [*, M], False for masked keys. If all keys are
            masked, the result is zero.
        bias: Added to the scaled scores; its shape broadcasts to
            [*, G, N, M]. -inf masks a key; each query needs at least one
            finite entry.

    Returns:
        [*, N, G, E].

    Raises:
        ValueError: If the shapes do not fit.
    """
    check_attention_inputs('softmax_attention', q, k, v, key_mask)
    lead, dtype = q.shape[:-3], q.dtype
    if dtype == torch.float16 and q.device.type == 'cpu' and _SUMS_IN_HALF:
        q, k, v = q.float(), k.float(), v.float()
    if key_mask is not None:
        # Fill instead of multiplying, so that NaN in a masked token affects
        # neither the result nor a gradient.
        masked = ~key_mask[..., None, None]
        k, v = k.masked_fill(masked, 0), v.masked_fill(masked, 0)
    q, k, v = (x.flatten(0, -4) if x.dim() > 3 else x.unsqueeze(0)
               for x in (q, k, v))
    if key_mask is not None:
        # Some kernels return NaN if all keys are masked. Unmask such keys,
        # whose values are zeros now.
        key_mask = key_mask | ~key_mask.any(dim=-1, keepdim=True)
        key_mask = key_mask.reshape(k.shape[0], 1, 1, k.shape[1])
    mask = key_mask
    if bias is not None:
        mask = _flat_bias(
            bias, (*lead, q.shape[2], q.shape[1], k.shape[1]), q.dtype)
        if key_mask is not None:
            mask = mask.masked_fill(~key_mask, -torch.inf)
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    y = F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, dropout_p=dropout_p, scale=scale).to(dtype)
    return y.transpose(1, 2).unflatten(0, lead) if lead else \
        y.transpose(1, 2).squeeze(0)


def _flat_bias(bias: Tensor, shape: tuple[int, ...],
               dtype: torch.dtype) -> Tensor:
    """Reshape a bias that broadcasts to ``shape`` to four axes."""
    if bias.dim() > len(shape) or any(
            have not in (1, want)
            for have, want in zip(bias.shape[::-1], shape[::-1])):
        raise ValueError('the bias of softmax_attention must broadcast to '
                         f'[*, G, N, M] = {shape}, got {tuple(bias.shape)}')
    bias = bias.to(dtype)
    if bias.dim() > 3:
        return bias.expand(*shape[:-3], *bias.shape[-3:]).flatten(0, -4)
    return bias[(None, ) * (4 - bias.dim())]


def naive_softmax_attention(q: Tensor,
                            k: Tensor,
                            v: Tensor,
                            scale: float | None = None,
                            key_mask: Tensor | None = None,
                            bias: Tensor | None = None) -> Tensor:
    """Reference of :func:`softmax_attention` with the full matrix.

    Each query needs an unmasked key.
    """
    q, k, v = (x.transpose(-3, -2) for x in (q, k, v))
    scale = q.shape[-1]**-0.5 if scale is None else scale
    scores = q @ k.transpose(-2, -1) * scale
    if bias is not None:
        scores = scores + bias
    if key_mask is not None:
        scores = scores.masked_fill(~key_mask[..., None, None, :], -torch.inf)
    return (scores.softmax(dim=-1) @ v).transpose(-3, -2)
