# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from helpers import relative, with_gradients
from torch.utils.flop_counter import FlopCounterMode

from mmvidattn.ops import bfloat16_attention, softmax_attention
from mmvidattn.ops.bfloat16_attention import (
    attention_by_blocks,
    softmax_attention_by_blocks,
)
from mmvidattn.ops.dispatch import use_backends
from mmvidattn.ops.softmax_attention import naive_softmax_attention


@pytest.fixture(autouse=True)
def any_cpu(monkeypatch):
    """It is right, if not fast, without AVX512_BF16."""
    monkeypatch.setattr(bfloat16_attention, '_IS_FASTER', True)
    monkeypatch.setattr(bfloat16_attention, 'LEAST_SCORES', 1)


def qkv(lead=(2, ), num_queries=63, num_keys=31, heads=3, dims=24, values=16):
    gen = torch.Generator().manual_seed(0)
    return [torch.randn(*lead, n, heads, d, generator=gen).bfloat16()
            for n, d in ((num_queries, dims), (num_keys, dims),
                         (num_keys, values))]


@pytest.mark.parametrize('most', [2**20, 63 * 31 * 2, 500, 1],
                         ids=['one', 'of-heads', 'of-queries', 'of-one'])
@pytest.mark.parametrize('lead', [(), (2, ), (2, 2)], ids=str)
@pytest.mark.parametrize('scale', [None, 0.7])
def test_matches_naive(monkeypatch, most, lead, scale):
    monkeypatch.setattr(bfloat16_attention, 'MOST_SCORES', most)
    inputs = qkv(lead)
    got = with_gradients(
        lambda *x: softmax_attention_by_blocks(*x, scale=scale), inputs)
    want = with_gradients(
        lambda *x: naive_softmax_attention(*x, scale=scale),
        [x.double() for x in inputs])
    for a, b in zip(got, want):
        assert a.dtype == torch.bfloat16 and a.shape == b.shape
        assert relative(a, b) < 2e-2


def test_is_taken_in_bfloat16_alone(monkeypatch):
    calls = []
    monkeypatch.setattr(
        bfloat16_attention, 'attention_by_blocks',
        lambda *args: calls.append(1) or attention_by_blocks(*args))
    q, k, v = qkv()
    mask = torch.ones(2, 31, dtype=torch.bool)
    for kwargs in dict(key_mask=mask), dict(dropout_p=.1), dict(
            bias=torch.zeros(31)):
        softmax_attention(q, k, v, **kwargs)
    softmax_attention(q.float(), k.float(), v.float())
    softmax_attention(q.half(), k.half(), v.half())
    with use_backends(False):
        softmax_attention(q, k, v)
    assert not calls
    softmax_attention(q, k, v)
    assert len(calls) == 1
    with pytest.raises(ValueError, match='softmax_attention takes q'):
        softmax_attention(q, k[:, :5], v)


def test_autocast_does_not_change_it():
    inputs = qkv()
    want = with_gradients(softmax_attention, inputs)
    with torch.autocast('cpu', torch.bfloat16):
        got = with_gradients(softmax_attention, inputs)
    assert all(map(torch.equal, got, want))


def test_is_a_whole_operator():
    q, k, v = (x.flatten(0, 1).transpose(0, 1).contiguous().requires_grad_()
               for x in qkv())
    torch.library.opcheck(attention_by_blocks, (q, k, v, 0.2), atol=2e-2,
                          rtol=2e-2)


def test_compiles_to_the_same_with_gradients():
    compiled = torch.compile(
        softmax_attention, fullgraph=True, backend='aot_eager')
    for a, b in zip(with_gradients(compiled, qkv()),
                    with_gradients(softmax_attention, qkv())):
        assert relative(a, b) < 2e-2


def test_counts_its_flops():
    inputs = qkv()
    counts = []
    for enabled in True, False:
        with FlopCounterMode(display=False) as counter:
            with use_backends(enabled):
                with_gradients(
                    softmax_attention if enabled else naive_softmax_attention,
                    inputs)
        counts.append(counter.get_total_flops())
    # The scores are computed once more.
    scores = 2 * 3 * 63 * 31
    assert counts[0] == counts[1] + 2 * scores * 24
