# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The reference: all cosines at once, both attention matrices formed."""
import torch
from torch import Tensor


def naive_orthogonal_landmarks(q: Tensor, num_landmarks: int,
                               first_index: Tensor) -> Tensor:
    """The greedy choice of one head, a set at a time.

    Args:
        q: Queries of one head, [N, D].
        num_landmarks: Landmarks L.
        first_index: The token to begin with, [].

    Returns:
        [L] or, where N < L, [N].
    """
    lengths = q.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    cosines = (q / lengths @ (q / lengths).T).abs()
    chosen = [int(first_index)]
    while len(chosen) < min(num_landmarks, len(q)):
        rest = [n for n in range(len(q)) if n not in chosen]
        chosen.append(min(rest, key=lambda n: cosines[n, chosen].max()))
    return torch.tensor(sorted(chosen))


def naive_orthoformer_attention(q: Tensor,
                                k: Tensor,
                                v: Tensor,
                                landmarks: Tensor,
                                num_frames: int | None = None,
                                key_mask: Tensor | None = None) -> Tensor:
    """Args and result as :func:`orthoformer_attention`."""
    q, k, landmarks = (
        x.transpose(-3, -2) * x.shape[-1]**-0.25 for x in (q, k, landmarks))
    # Keys and values by frames, [*, G, F, M / F, D].
    k, v = (
        x.unflatten(-2, (num_frames or 1, -1))
        for x in (k, v.transpose(-3, -2)))
    scores = torch.einsum('...ld,...fmd->...flm', landmarks, k)
    if key_mask is not None:
        key_mask = key_mask.unflatten(-1, (num_frames or 1, 1, -1))
        scores = scores.masked_fill(~key_mask.unsqueeze(-4), -torch.inf)
    # A frame without keys has no weights: NaN here, 0 by definition.
    of_landmarks = scores.softmax(dim=-1).nan_to_num(0) @ v
    weights = (q @ landmarks.transpose(-2, -1)).softmax(dim=-1)
    y = torch.einsum('...gnl,...gfle->...nfge', weights, of_landmarks)
    return y if num_frames else y.squeeze(-3)
