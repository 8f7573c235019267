# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check of arguments for all attention ops."""
import torch
from torch import Tensor


def check_attention_inputs(name: str,
                           q: Tensor,
                           k: Tensor,
                           v: Tensor,
                           key_mask: Tensor | None = None,
                           **landmarks: Tensor) -> None:
    """Check that the shapes of queries, keys, values and mask match.

    Args:
        name: Name of the attention, for the error message.
        q: [*, N, G, D].
        k: [*, M, G, D].
        v: [*, M, G, E].
        key_mask: Bool, [*, M], or None.
        **landmarks: Landmarks by argument, [*, C, G, D].

    Raises:
        ValueError: If the shapes do not match or the mask is not bool.
    """
    if (min(q.dim(), k.dim()) < 3 or q.shape[-2:] != k.shape[-2:]
            or q.shape[:-3] != k.shape[:-3] or k.shape[:-1] != v.shape[:-1]):
        raise ValueError(
            f'{name} takes q [*, N, G, D], k [*, M, G, D] and v '
            f'[*, M, G, E], got {tuple(q.shape)}, {tuple(k.shape)} and '
            f'{tuple(v.shape)}')
    if key_mask is not None and (key_mask.dtype != torch.bool
                                 or key_mask.shape != k.shape[:-2]):
        raise ValueError(
            f'the key_mask of {name} must be bool of the shape [*, M] = '
            f'{tuple(k.shape[:-2])}, got {key_mask.dtype} '
            f'{tuple(key_mask.shape)}')
    shapes = [x.shape for x in landmarks.values()]
    if any(x[:-3] != q.shape[:-3] or x[-2:] != q.shape[-2:]
           or x[-3] != shapes[0][-3] for x in shapes):
        raise ValueError(
            f'{name} takes {", ".join(landmarks)} [*, C, G, D] for q '
            f'{tuple(q.shape)}, got {", ".join(str(tuple(x)) for x in shapes)}'
        )
