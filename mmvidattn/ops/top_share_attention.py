# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Softmax attention to a fraction of the keys."""
import torch
from torch import Tensor

from .attention_inputs import check_attention_inputs
from .precision import at_least_float32


def top_share_attention(q: Tensor,
                        k: Tensor,
                        v: Tensor,
                        *,
                        share: float,
                        num_keys: Tensor | None = None,
                        key_mask: Tensor | None = None,
                        bias: Tensor | None = None,
                        dropout_p: float = 0.) -> Tensor:
    """Softmax attention of each query to its best-matching keys.

    The softmax uses the ``share * M`` keys with the highest scores, out of M
    keys (rounded down, at least one). Masked keys rank last, but are counted
    in M. Keys whose score equals the lowest selected score are selected as
    well.

    Differs from the released code of `Memory-and-Anticipation Transformer
    <https://arxiv.org/abs/2308.07893>`_: that code breaks ties arbitrarily.

    Args:
        q: Queries, [B, N, G, D].
        k: Keys, [B, M, G, D].
        v: Values, [B, M, G, E].
        share: Fraction of the keys to select, in (0, 1].
        num_keys: Number of keys that replaces M for each row of the batch,
            int64 [B], if the other keys are padding. The padding must be
            masked. Defaults to M.
        key_mask: Bool, [B, M], False for masked keys.
        bias: Added to the scaled scores; its shape broadcasts to
            [B, G, N, M]. -inf masks a key; each query needs at least one
            unmasked key.
        dropout_p: Probability of dropping an attention weight. Defaults to 0.

    Returns:
        [B, N, G, E].

    Raises:
        ValueError: If the shapes do not match or ``share`` is out of range.
    """
    check_attention_inputs('top_share_attention', q, k, v, key_mask)
    if not 0 < share <= 1:
        raise ValueError(f'share must be in (0, 1], got {share}')
    query, key, value = at_least_float32(q, k, v)
    scores = torch.einsum('bngd,bmgd->bgnm', query * q.shape[-1]**-0.5, key)
    if bias is not None:
        scores = scores + bias
    if key_mask is not None:
        scores = scores.masked_fill(~key_mask[:, None, None], -torch.inf)
    if num_keys is None:
        kept = max(1, int(share * k.shape[1]))
        least = scores.topk(kept, dim=-1).values[..., -1:]
    else:
        kept = (share * num_keys.double()).long().clamp(min=1)
        place = (kept - 1)[:, None, None, None].expand(*scores.shape[:-1], 1)
        least = scores.sort(dim=-1, descending=True).values.gather(-1, place)
    scores = scores.masked_fill(scores < least, -torch.inf)
    weights = torch.nn.functional.dropout(scores.softmax(dim=-1), dropout_p)
    return torch.einsum('bgnm,bmge->bnge', weights, value).to(v.dtype)
