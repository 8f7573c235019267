# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Orthoformer: attention through landmarks, the most orthogonal queries."""
import torch
import torch.nn.functional as F
from torch import Tensor

from .attention_inputs import check_attention_inputs
from .precision import at_least_float32, without_autocast
from .softmax_attention import softmax_attention


@torch.no_grad()
def orthogonal_landmarks(q: Tensor, num_landmarks: int,
                         first_index: int | Tensor | None = None) -> Tensor:
    """Choose queries whose directions differ as much as possible.

    Starts with one query, and repeatedly adds the query whose largest
    absolute cosine with the chosen queries is smallest. Each head of each
    sequence chooses independently. Cosines are at least float32.

    Args:
        q: Queries, [*, N, G, D].
        num_landmarks: Number of landmarks L. If L >= N, all tokens are
            chosen.
        first_index: First token, one for all or [*, G]. By default, it is
            drawn for each head of each sequence.

    Returns:
        Indices of tokens in ascending order, [*, min(L, N), G].

    Raises:
        ValueError: If ``num_landmarks`` is not positive or ``first_index``
            has the wrong shape.
    """
    *lead, N, G, _ = q.shape
    if num_landmarks < 1:
        raise ValueError(f'num_landmarks must be positive, got '
                         f'{num_landmarks}')
    if num_landmarks >= N:
        tokens = torch.arange(N, device=q.device)
        return tokens[:, None].expand(*lead, N, G)
    if first_index is None:
        last = torch.randint(N, (*lead, G), device=q.device)
    else:
        last = torch.as_tensor(first_index, device=q.device)
        if last.dim() and last.shape != (*lead, G):
            raise ValueError(f'first_index must be one or {(*lead, G)}, got '
                             f'{tuple(last.shape)}')
        last = last.expand(*lead, G)
    x, = at_least_float32(q)
    # To [*, G, D, N]: the products are faster with contiguous tokens.
    x = F.normalize(x, dim=-1, eps=1e-12).movedim(-3, -1).contiguous()
    # Largest cosine with the tokens chosen so far, [*, G, N]. It is infinite
    # for chosen tokens, so that they are not chosen again.
    largest = x.new_zeros(*lead, G, N)
    chosen = []
    with without_autocast(q.device.type):
        for _ in range(num_landmarks - 1):
            chosen.append(last)
            index = last.unsqueeze(-1)
            direction = x.gather(
                -1, index.unsqueeze(-2).expand(*x.shape[:-1], 1))
            cosines = (direction.mT @ x).squeeze(-2)
            largest = torch.maximum(largest, cosines.abs())
            largest.scatter_(-1, index, torch.inf)
            last = largest.argmin(dim=-1)
    chosen.append(last)
    return torch.stack(chosen, dim=-2).sort(dim=-2).values


def orthoformer_attention(q: Tensor, k: Tensor, v: Tensor,
                          landmarks: Tensor) -> Tensor:
    r"""Attend by softmax through landmarks, at a cost linear in N and in M.

    .. math:: Y = softmax(Q L^T / \sqrt D) softmax(L K^T / \sqrt D) V

    The landmarks attend to the keys, then the queries to the landmarks.

    Args:
        q: Queries, [*, N, G, D].
        k: Keys, [*, M, G, D].
        v: Values, [*, M, G, E].
        landmarks: Queries at :func:`orthogonal_landmarks`, [*, L, G, D].

    Returns:
        [*, N, G, E].

    Raises:
        ValueError: If the shapes do not fit.
    """
    check_attention_inputs('orthoformer_attention', q, k, v,
                           landmarks=landmarks)
    return softmax_attention(q, landmarks, softmax_attention(landmarks, k, v))


def naive_orthogonal_landmarks(q: Tensor, num_landmarks: int,
                               first_index: Tensor) -> Tensor:
    """Reference of :func:`orthogonal_landmarks` for one head, q [N, D]."""
    lengths = q.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    cosines = (q / lengths @ (q / lengths).T).abs()
    chosen = [int(first_index)]
    while len(chosen) < min(num_landmarks, len(q)):
        rest = [n for n in range(len(q)) if n not in chosen]
        chosen.append(min(rest, key=lambda n: cosines[n, chosen].max()))
    return torch.tensor(sorted(chosen))


def naive_orthoformer_attention(q: Tensor, k: Tensor, v: Tensor,
                                landmarks: Tensor) -> Tensor:
    """Reference of :func:`orthoformer_attention` with both full matrices."""
    q, k, v, landmarks = (x.transpose(-3, -2) for x in (q, k, v, landmarks))
    scale = q.shape[-1]**-0.5
    of_keys = (scale * landmarks @ k.transpose(-2, -1)).softmax(dim=-1)
    of_landmarks = (scale * q @ landmarks.transpose(-2, -1)).softmax(dim=-1)
    return (of_landmarks @ (of_keys @ v)).transpose(-3, -2)
