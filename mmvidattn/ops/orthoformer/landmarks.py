# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The most orthogonal queries, greedily chosen."""
import torch
import torch.nn.functional as F
from torch import Tensor

from ..precision import at_least_float32, without_autocast


@torch.no_grad()
def orthogonal_landmarks(q: Tensor,
                         num_landmarks: int,
                         first_index: int | Tensor | None = None,
                         generator: torch.Generator | None = None) -> Tensor:
    """Queries that point in directions as different as possible.

    Beginning with one query, the query whose largest absolute cosine with
    those chosen is smallest is added, until there are enough. A head of a
    sequence chooses for itself. Cosines are formed in float32 at least,
    whatever the dtype of ``q``.

    Args:
        q: Queries, [*, N, G, D].
        num_landmarks: Landmarks L; all tokens where there are no more.
        first_index: The token to begin with, one for all or [*, G]; each
            draws its own by default.
        generator: Draws ``first_index``.

    Returns:
        Indices of tokens in ascending order, [*, min(L, N), G].

    Raises:
        ValueError: If there is no landmark to choose or ``first_index``
            does not fit.
    """
    *lead, N, G, _ = q.shape
    if num_landmarks < 1:
        raise ValueError(f'num_landmarks must be positive, got '
                         f'{num_landmarks}')
    if num_landmarks >= N:
        tokens = torch.arange(N, device=q.device)
        return tokens[:, None].expand(*lead, N, G)
    if first_index is None:
        last = torch.randint(
            N, (*lead, G), generator=generator, device=q.device)
    else:
        last = torch.as_tensor(first_index, device=q.device)
        if last.dim() and last.shape != (*lead, G):
            raise ValueError(f'first_index must be one or {(*lead, G)}, got '
                             f'{tuple(last.shape)}')
        last = last.expand(*lead, G)
    x, = at_least_float32(q)
    # To [*, G, D, N]: contiguous over the tokens the products are faster.
    x = F.normalize(x, dim=-1, eps=1e-12).movedim(-3, -1).contiguous()
    # The largest cosine with those chosen so far, [*, G, N]. No cosine
    # reaches that of a chosen token, so that none is chosen twice.
    largest = x.new_zeros(*lead, G, N)
    chosen = []
    with without_autocast(q.device.type):
        for _ in range(num_landmarks - 1):
            chosen.append(last)
            index = last.unsqueeze(-1)
            direction = torch.take_along_dim(x, index.unsqueeze(-2), dim=-1)
            cosines = (direction.mT @ x).squeeze(-2)
            largest = torch.maximum(largest, cosines.abs())
            largest.scatter_(-1, index, torch.inf)
            last = largest.argmin(dim=-1)
    chosen.append(last)
    return torch.stack(chosen, dim=-2).sort(dim=-2).values
