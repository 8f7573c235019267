# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Cross-attention to a memory whose samples lose weight with age."""
import torch
from torch import Tensor

from .attention_inputs import check_attention_inputs
from .precision import at_least_float32, without_autocast
from .softmax_attention import naive_softmax_attention, softmax_attention

# Added to the weights before the logarithm, as in the released code.
FLOOR = 1e-10


def log_temporal_kernel(length: int,
                        decay: float,
                        device: torch.device | None = None,
                        dtype: torch.dtype = torch.float32) -> Tensor:
    """Return log(decay ** age) for the samples of a memory, oldest first.

    Args:
        length: Number of samples M; the newest has age 0.
        decay: Weight of a sample relative to the next newer one, in (0, 1].
        device: Device of the result. Defaults to the CPU.
        dtype: Dtype of the result, at least float32, because the logarithms
            go down to -23. Rounded to half precision, they would change the
            weights by some percent. Defaults to float32.

    Returns:
        [M].

    Raises:
        ValueError: If ``decay`` is not in (0, 1].
    """
    if not 0 < decay <= 1:
        raise ValueError(f'decay must be in (0, 1], got {decay}')
    age = torch.arange(length - 1, -1, -1, device=device)
    return (decay**age.double() + FLOOR).log().to(dtype)


def temporal_smoothing_attention(q: Tensor,
                                 k: Tensor,
                                 v: Tensor,
                                 *,
                                 decay: float = 1.,
                                 scale: float | None = None,
                                 dropout_p: float = 0.,
                                 key_mask: Tensor | None = None) -> Tensor:
    """Attend to a window of samples under a temporal kernel.

    This is Eq. 9 of `Real-time Online Video Detection with Temporal Smoothing
    Transformers <https://arxiv.org/abs/2209.09236>`_. ``decay < 1`` gives its
    Laplace kernel, ``decay = exp(-lambda)``, truncated at the end of the
    memory; ``decay = 1`` gives its box kernel, which is plain attention.

    Differs from the paper: as in the released code, ``scale`` does not apply
    to the logarithm of the kernel. Otherwise Eq. 9 would contradict the
    recursion of Eq. 6.

    Args:
        q: Queries, [*, N, G, D].
        k: Keys of the memory, oldest first, [*, M, G, D].
        v: Values of the memory, [*, M, G, E].
        decay: Weight of a sample relative to the next newer one, in (0, 1].
            Defaults to 1.
        scale: Factor of the scores. Defaults to ``D ** -0.5``.
        dropout_p: Probability of dropping an attention weight. Defaults to 0.
        key_mask: Bool, [*, M], False for masked samples, whose ages still
            count. If all samples are masked, the result is zero.

    Returns:
        [*, N, G, E], in the dtype of ``v``.

    Raises:
        ValueError: If the shapes do not match, or ``decay`` is not in (0, 1].
    """
    check_attention_inputs('temporal_smoothing_attention', q, k, v, key_mask)
    if decay == 1:
        return softmax_attention(
            q, k, v, scale=scale, dropout_p=dropout_p, key_mask=key_mask)
    dtype = v.dtype
    q, k, v = at_least_float32(q, k, v)
    bias = log_temporal_kernel(k.shape[-3], decay, k.device, k.dtype)
    with without_autocast(k.device.type):
        y = softmax_attention(
            q,
            k,
            v,
            scale=scale, dropout_p=dropout_p, key_mask=key_mask, bias=bias)
    return y.to(dtype)


def naive_temporal_smoothing_attention(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        decay: float = 1.,
        scale: float | None = None,
        key_mask: Tensor | None = None) -> Tensor:
    """Reference of :func:`temporal_smoothing_attention`.

    It needs an unmasked key.
    """
    age = torch.arange(k.shape[-3] - 1, -1, -1, device=k.device, dtype=q.dtype)
    return naive_softmax_attention(
        q, k, v, scale, key_mask, bias=(decay**age + 1e-10).log())
