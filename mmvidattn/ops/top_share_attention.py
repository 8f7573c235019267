# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
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
    """Softmax attention of each query to the keys that fit it best.

    Of M keys the ``share * M`` (rounded down, at least one) with the highest
    scores stay in the softmax. Keys that are hidden are the last in this
    order, but count in M. Keys whose scores are equal to the last that stays
    stay as well.

    As in the released code of `Memory-and-Anticipation Transformer
    <https://arxiv.org/abs/2308.07893>`_, which breaks such ties arbitrarily.

    Args:
        q: Queries, [B, N, G, D].
        k: Keys, [B, M, G, D].
        v: Values, [B, M, G, E].
        share: Which share of the keys stays, in (0, 1].
        num_keys: How many keys there are, int64 [B], where some of the M are
            none; those are to be hidden. M by default.
        key_mask: Bool, [B, M], True where a key is not hidden.
        bias: Added to the scaled scores, of a shape that broadcasts to
            [B, G, N, M]; -inf hides a key. A query has one that is not.
        dropout_p: Probability of dropping an attention weight.

    Returns:
        [B, N, G, E].

    Raises:
        ValueError: If the shapes do not fit, or the share is none.
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
        place = (kept - 1)[:, None, None, None].expand(
            *scores.shape[:-1], 1)
        least = scores.sort(
            dim=-1, descending=True).values.gather(-1, place)
    scores = scores.masked_fill(scores < least, -torch.inf)
    weights = torch.nn.functional.dropout(scores.softmax(dim=-1), dropout_p)
    return torch.einsum('bgnm,bmge->bnge', weights, value).to(v.dtype)
