# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Cross-attention to a memory whose samples count less as they age."""
import torch
from torch import Tensor

from ..attention_inputs import check_attention_inputs
from ..precision import at_least_float32, without_autocast
from ..softmax_attention import softmax_attention

# The released code adds it to the weight before the logarithm.
FLOOR = 1e-10


def log_temporal_kernel(length: int,
                        decay: float,
                        device: torch.device | None = None) -> Tensor:
    """Logarithm of the weights ``decay ** age`` of a memory, oldest first.

    Args:
        length: Samples M of the memory; the newest has age 0.
        decay: Weight of a sample relative to the next newer one, in (0, 1].
        device: Where to make it.

    Returns:
        float32, [M].

    Raises:
        ValueError: If ``decay`` is not in (0, 1].
    """
    if not 0 < decay <= 1:
        raise ValueError(f'decay must be in (0, 1], got {decay}')
    age = torch.arange(length - 1, -1, -1, device=device)
    return (decay**age.double() + FLOOR).log().float()


def temporal_smoothing_attention(q: Tensor,
                                 k: Tensor,
                                 v: Tensor,
                                 *,
                                 decay: float = 1.,
                                 scale: float | None = None,
                                 dropout_p: float = 0.,
                                 key_mask: Tensor | None = None) -> Tensor:
    """Attention under a temporal kernel, a window of it at once.

    `Real-time Online Video Detection with Temporal Smoothing Transformers
    <https://arxiv.org/abs/2209.09236>`_, Eq. 9: with ``decay < 1`` its
    Laplace kernel, ``decay = exp(-lambda)``, cut off where the memory ends;
    with ``decay = 1`` its box kernel, which is plain attention.

    Differs from the paper: the logarithm of the kernel is not scaled, as in
    the released code; scaled, Eq. 9 would not be the recursion of Eq. 6.

    Args:
        q: Queries, [*, N, G, D].
        k: Keys of the memory, oldest first, [*, M, G, D].
        v: Values of the memory, [*, M, G, E].
        decay: Weight of a sample relative to the next newer one, in (0, 1].
        scale: Of the scores; ``D ** -0.5`` by default.
        dropout_p: Probability of dropping an attention weight.
        key_mask: Bool, [*, M], True where a key counts. Masked samples age
            all the same. Where none counts, the result is zero.

    Returns:
        [*, N, G, E], in the dtype of ``v``.

    Raises:
        ValueError: If the shapes do not fit, or ``decay`` is not in (0, 1].
    """
    check_attention_inputs('temporal_smoothing_attention', q, k, v, key_mask)
    if decay == 1:
        return softmax_attention(
            q, k, v, scale=scale, dropout_p=dropout_p, key_mask=key_mask)
    bias = log_temporal_kernel(k.shape[-3], decay, k.device)
    # Half precision would round the logarithms, down to -23, to some percent.
    with without_autocast(k.device.type):
        y = softmax_attention(
            *at_least_float32(q, k, v),
            scale=scale,
            dropout_p=dropout_p,
            key_mask=key_mask,
            bias=bias)
    return y.to(v.dtype)


def naive_temporal_smoothing_attention(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        decay: float = 1.,
        scale: float | None = None,
        key_mask: Tensor | None = None) -> Tensor:
    """The kernel of Eq. 3 of the paper, written out.

    Args and result as :func:`temporal_smoothing_attention`. Nothing is
    subtracted before the exponential: for small scores, and some key must
    count.
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
