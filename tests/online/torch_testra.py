# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reference of TeSTra and LSTR with torch's transformer layers."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class TorchTeSTra(nn.Module):
    """Network with the tensor names of released checkpoints."""

    def __init__(self, *, in_channels=(10, 6), embed_dims=16, num_heads=2,
                 ffn_dims=24, long=12, work=5, tokens=0,
                 encoder=((4, 1), (6, 2)), num_layers=2, decay=1.,
                 fusion='compressed', long_pos=False, work_pos=True,
                 act='relu', classes=7, verbs=None, nouns=None):
        super().__init__()
        self.long, self.decay, self.fusion = long, decay, fusion
        self.long_pos, self.work_pos = long_pos, work_pos

        def head():
            return nn.ModuleDict(dict(input_linear=nn.Sequential(
                nn.Linear(sum(in_channels), embed_dims), nn.ReLU())))

        def stack(depth, memory=True):
            kwargs = dict(d_model=embed_dims, nhead=num_heads,
                          dim_feedforward=ffn_dims, dropout=0.,
                          activation=act, batch_first=True)
            norm = nn.LayerNorm(embed_dims)
            if memory:
                return nn.TransformerDecoder(
                    nn.TransformerDecoderLayer(**kwargs), depth, norm)
            return nn.TransformerEncoder(
                nn.TransformerEncoderLayer(**kwargs), depth, norm,
                enable_nested_tensor=False)

        self.feature_head_work = head()
        if long:
            self.feature_head_long = head()
            self.enc_queries = nn.ModuleList(
                n and nn.Embedding(n, embed_dims) for n, _ in encoder)
            self.enc_modules = nn.ModuleList(
                stack(depth, memory=bool(n)) for n, depth in encoder)
        self.dec_modules = stack(num_layers, memory=bool(long))
        if tokens:
            self.dec_query = nn.Embedding(tokens, embed_dims)
        self.classifier = nn.Linear(embed_dims, classes)
        if verbs:
            self.classifier_verb = nn.Linear(embed_dims, verbs)
        if nouns:
            self.classifier_noun = nn.Linear(embed_dims, nouns)
        for p in self.parameters():
            nn.init.normal_(p, std=0.3)

    @staticmethod
    def position(index, like):
        half = torch.arange(0, like.shape[-1], 2, dtype=torch.float64)
        angle = index / 10000**(half / like.shape[-1])
        out = torch.zeros_like(like)
        out[..., 0::2], out[..., 1::2] = angle.sin(), angle.cos()
        return out

    def with_positions(self, x, first):
        return torch.stack([
            x[:, i] + self.position(first + i, x[:, i])
            for i in range(x.shape[1])
        ], dim=1)

    def forward(self, visual, motion, padding_mask=None):
        x = torch.cat([visual, motion], dim=-1)
        B, work = len(x), x[:, self.long:]
        memory = None
        if self.long:
            long = x if self.fusion == 'long' else x[:, :self.long]
            memory = self.feature_head_long['input_linear'](long)
            if self.long_pos:
                memory = self.with_positions(memory, 0)
            N = memory.shape[1]
            bias = x.new_tensor([math.log(
                self.decay**(N - 1 - j) + 1e-10) for j in range(N)]
            ).expand(B, N).clone()
            if padding_mask is not None:
                bias[:, :self.long][padding_mask] = -torch.inf
            for i, (query, module) in enumerate(
                    zip(self.enc_queries, self.enc_modules)):
                if query is None:
                    memory = module(memory)
                    continue
                # One mask for each head of each sample.
                heads = module.layers[0].self_attn.num_heads
                mask = bias[:, None].repeat_interleave(heads, 0).expand(
                    -1, len(query.weight), -1) if i == 0 else None
                memory = module(
                    query.weight.expand(B, -1, -1), memory, memory_mask=mask)
        first = self.long if self.long_pos else 0
        work = self.feature_head_work['input_linear'](work)
        L = work.shape[1]
        if self.work_pos:
            work = self.with_positions(work, first)
        if hasattr(self, 'dec_query'):
            tokens = self.with_positions(
                self.dec_query.weight.expand(B, -1, -1), first + L)
            work = torch.cat([work, tokens], dim=1)
        S = work.shape[1]
        causal = x.new_full((S, S), -torch.inf).triu(1)
        if memory is None:
            y = self.dec_modules(work, mask=causal)
        else:
            mask = None
            if self.fusion == 'compressed':
                mask = F.pad(causal, (memory.shape[1], 0))
                memory = torch.cat([memory, work], dim=1)
            y = self.dec_modules(
                work, memory, tgt_mask=causal, memory_mask=mask)
        return {name.partition('_')[2] or 'action': layer(y)
                for name, layer in self.named_children()
                if name.startswith('classifier')}
