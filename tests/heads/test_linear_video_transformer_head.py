# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch
from torch import nn

from mmvidattn.heads import LinearVideoTransformerHead


def _head(**kwargs):
    torch.manual_seed(0)
    head = LinearVideoTransformerHead(5, 8, hidden_dims=6, **kwargs)
    head.init_weights()
    return head.eval()


def test_matches_its_formula():
    head, x = _head(), torch.randn(2, 8, 3, 4, 4)
    pooled = x.flatten(2).mean(-1)
    pooled = (pooled - pooled.mean(-1, keepdim=True)) / (
        pooled.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()
    hidden = nn.functional.gelu(pooled @ head.fc_hidden.weight.T)
    assert torch.allclose(head(x), hidden @ head.fc_cls.weight.T, atol=1e-6)
