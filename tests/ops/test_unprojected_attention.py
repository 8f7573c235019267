# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
import torch.nn.functional as F
from helpers import relative

from mmvidattn.ops.softmax_attention import naive_softmax_attention
from mmvidattn.ops.unprojected_attention import (
    few_queries,
    unprojected_attention,
)


@pytest.mark.parametrize('queries, tokens, more', [
    (1, 5, 7), (3, 4, 0), (2, 1, 3)], ids=str)
@pytest.mark.parametrize('dtype, tolerance', [
    (torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 2e-2)],
    ids=str)
def test_matches_attention_to_projected_tokens(queries, tokens, more, dtype,
                                               tolerance):
    gen = torch.Generator().manual_seed(0)
    B, G, D, C = 3, 2, 5, 11
    q, x, weight, bias, k, v, score_bias = (
        torch.randn(shape, generator=gen, dtype=torch.float64).to(dtype)
        for shape in [(B, queries, G, D), (B, tokens, C), (2 * G * D, C),
                      (2 * G * D, ), (B, more, G, D), (B, more, G, D),
                      (B, 1, queries, tokens + more)])
    score_bias[0, ..., 0] = -torch.inf if tokens > 1 else 0
    wide = [t.double() for t in (q, x, weight, bias, k, v, score_bias)]
    keys, values = F.linear(*wide[1:4]).unflatten(
        -1, (2 * G, D)).chunk(2, dim=-2)
    want = naive_softmax_attention(
        wide[0], torch.cat([keys, wide[4]], dim=1),
        torch.cat([values, wide[5]], dim=1), bias=wide[6])
    got = unprojected_attention(q, x, weight, bias, k, v, score_bias)
    assert got.dtype == dtype and relative(got, want) < tolerance


def test_few_queries_counts_multiplications():
    # A query of 16 heads costs as much as the projections of 1.5 tokens.
    assert few_queries(21, 32, 16, 1024) and not few_queries(22, 32, 16, 1024)
