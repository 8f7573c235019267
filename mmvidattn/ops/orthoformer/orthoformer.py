# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Attention by way of landmarks, through torch's fused kernels."""
from torch import Tensor

from ..attention_inputs import check_attention_inputs
from ..softmax_attention import softmax_attention


def orthoformer_attention(q: Tensor,
                          k: Tensor,
                          v: Tensor,
                          landmarks: Tensor,
                          *,
                          num_frames: int | None = None,
                          key_mask: Tensor | None = None) -> Tensor:
    r"""Softmax attention factorised by landmarks, linear in N and in M.

    .. math:: Y = softmax(Q L^T / \sqrt D) softmax(L K^T / \sqrt D) V

    Each softmax is an attention of its own: that of the landmarks to the
    keys, then that of the queries to the landmarks.

    Args:
        q: Queries, [*, N, G, D].
        k: Keys, [*, M, G, D].
        v: Values, [*, M, G, E].
        landmarks: Some of the queries, see :func:`orthogonal_landmarks`,
            [*, L, G, D].
        num_frames: Frames F that the M keys are made of, in order. If given,
            the landmarks attend to each frame by itself, as in Motionformer.
        key_mask: Bool, [*, M], True where a key counts. Where none does, the
            result is zero.

    Returns:
        [*, N, G, E], or [*, N, F, G, E] with ``num_frames``.

    Raises:
        ValueError: If the shapes do not fit.
    """
    check_attention_inputs('orthoformer_attention', q, k, v, key_mask)
    if (landmarks.shape[:-3] != q.shape[:-3]
            or landmarks.shape[-2:] != q.shape[-2:]):
        raise ValueError(
            'orthoformer_attention takes landmarks [*, L, G, D] for q '
            f'{tuple(q.shape)}, got {tuple(landmarks.shape)}')
    if num_frames is None:
        return softmax_attention(
            q, landmarks,
            softmax_attention(landmarks, k, v, key_mask=key_mask))
    if num_frames < 1 or k.shape[-3] % num_frames:
        raise ValueError(f'num_frames={num_frames} does not divide the '
                         f'{k.shape[-3]} keys')
    frames = (num_frames, k.shape[-3] // num_frames)
    k, v = (x.unflatten(-3, frames) for x in (k, v))
    if key_mask is not None:
        key_mask = key_mask.unflatten(-1, frames)
    of_landmarks = softmax_attention(
        landmarks.unsqueeze(-4).expand(
            *k.shape[:-3], *landmarks.shape[-3:]),
        k,
        v,
        key_mask=key_mask)
    # The frames side by side as one wide value, [*, L, G, F E].
    wide = of_landmarks.movedim(-4, -2).flatten(-2)
    y = softmax_attention(q, landmarks, wide)
    return y.unflatten(-1, (num_frames, -1)).transpose(-3, -2)
