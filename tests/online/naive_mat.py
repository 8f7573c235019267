# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Naive reference of MAT with the tensor names of released checkpoints."""
import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn


class Sizes(NamedTuple):
    rgb: int = 6
    flow: int = 4
    width: int = 8
    hidden: int = 12
    heads: int = 2
    classes: int = 5
    verbs: int | None = None
    nouns: int | None = None
    queries: int = 4
    refining: int = 2
    decoding: int = 2
    first: int = 6
    future: int = 9
    rounds: int = 2
    groups: int = 3
    ahead: slice = slice(0, 2)


def shapes_of(sizes):
    """Return the shapes of tensors by their names in released checkpoints."""
    C = sizes.width

    def stack(layers, with_memory=True):
        kind, layer = (
            (nn.TransformerDecoder, nn.TransformerDecoderLayer) if with_memory
            else (nn.TransformerEncoder, nn.TransformerEncoderLayer))
        return kind(layer(C, sizes.heads, sizes.hidden), layers,
                    norm=nn.LayerNorm(C))

    with torch.device('meta'):
        model = nn.ModuleDict({
            f'feature_head_{which}': nn.ModuleDict({
                f'{kind}_linear': nn.Sequential(
                    nn.Linear(inputs, C), nn.LayerNorm(C))
                for kind, inputs in dict(visual=sizes.rgb, motion=sizes.flow,
                                         input=2 * C).items()})
            for which in ('long', 'work')})
        model.update(dict(
            enc_queries=nn.ModuleList([nn.Embedding(sizes.queries, C)]),
            enc_modules=nn.ModuleList(
                [stack(1), stack(sizes.refining, False)]),
            dec_modules=stack(sizes.decoding),
            gen_query=nn.Embedding(sizes.first, C), gen_layer=stack(2),
            final_query=nn.Embedding(sizes.future, C),
            work_fusions=nn.ModuleList(
                stack(1) for _ in range(sizes.rounds)),
            fut_fusions=nn.ModuleList(
                stack(1) for _ in range(sizes.rounds - 1)),
            **{f'classifier{name}': nn.Linear(C, number) for name, number in (
                ('', sizes.classes), ('_verb', sizes.verbs),
                ('_noun', sizes.nouns)) if number}))
    return {'pos_encoding.pe': (5000, 1, C), **{
        name: tuple(x.shape) for name, x in model.state_dict().items()}}


def random_weights(sizes):
    gen = torch.Generator().manual_seed(0)
    return {
        name: ('norm' in name and name.endswith('weight')) + torch.randn(
            shape, generator=gen, dtype=torch.float64) * 0.5
        for name, shape in shapes_of(sizes).items()
        if name != 'pos_encoding.pe'}


class NaiveMAT:
    """MAT for one window, without batches, caches and masks of absent keys."""

    def __init__(self, weights, sizes=Sizes()):
        self.weights, self.sizes = weights, sizes

    def of(self, name):
        return self.weights[f'{name}.weight'], self.weights[f'{name}.bias']

    def linear(self, name, x):
        return F.linear(x, *self.of(name))

    def norm(self, name, x):
        return F.layer_norm(x, x.shape[1:], *self.of(name))

    def features(self, which, rgb, flow):
        def part(kind, x):
            where = f'feature_head_{which}.{kind}_linear'
            return self.norm(f'{where}.1', self.linear(f'{where}.0', x)).relu()

        return part('input', torch.cat(
            [part('visual', rgb), part('motion', flow)], dim=1))

    def attention(self, name, x, y, hidden):
        """Attend from x [N, C] to y [M, C], except where hidden [N, M]."""
        w = self.weights[f'{name}.in_proj_weight'].chunk(3)
        b = self.weights[f'{name}.in_proj_bias'].chunk(3)
        q, k, v = x @ w[0].T + b[0], y @ w[1].T + b[1], y @ w[2].T + b[2]
        D = self.sizes.width // self.sizes.heads
        rows = []
        for i in range(len(x)):
            heads = []
            for at in torch.arange(self.sizes.width).split(D):
                scores = k[:, at] @ q[i, at] / math.sqrt(D)
                scores[hidden[i]] = -torch.inf
                # Only the largest three quarters count.
                best = scores.argsort(descending=True)[:len(y) * 3 // 4]
                heads.append(scores[best].softmax(0) @ v[best][:, at])
            rows.append(torch.cat(heads))
        return self.linear(f'{name}.out_proj', torch.stack(rows))

    def stack(self, name, x, hidden=None, memory=None, memory_hidden=None):
        layers = len({key.split('.layers.')[1].split('.')[0]
                      for key in self.weights
                      if key.startswith(f'{name}.layers.')})
        if hidden is None:
            hidden = torch.zeros(len(x), len(x), dtype=torch.bool)
        if memory is not None and memory_hidden is None:
            memory_hidden = torch.zeros(len(x), len(memory), dtype=torch.bool)
        for i in range(layers):
            at = f'{name}.layers.{i}'
            x = self.norm(f'{at}.norm1', x + self.attention(
                f'{at}.self_attn', x, x, hidden))
            if memory is not None:
                x = self.norm(f'{at}.norm2', x + self.attention(
                    f'{at}.multihead_attn', x, memory, memory_hidden))
            y = F.gelu(self.linear(f'{at}.linear1', x))
            x = self.norm(f'{at}.norm{2 if memory is None else 3}',
                          x + self.linear(f'{at}.linear2', y))
        return self.norm(f'{name}.norm', x)

    def compress(self, long, padded):
        queries = self.weights['enc_queries.0.weight']

        def read(part, mask):
            return self.stack('enc_modules.0', queries, None, part,
                              mask.expand(len(queries), -1))

        if padded.sum() < self.sizes.groups:
            parts = zip(long.chunk(self.sizes.groups),
                        padded.chunk(self.sizes.groups))
            tokens = torch.stack([read(*part).mean(0) for part in parts])
        else:
            tokens = read(long, padded)
        return self.stack('enc_modules.1', tokens)

    def positions(self, length):
        C = self.sizes.width
        return torch.tensor([[
            (math.cos if c % 2 else math.sin)(place / 1e4**((c - c % 2) / C))
            for c in range(C)
        ] for place in range(length)], dtype=torch.float64)

    def __call__(self, rgb, flow, padded):
        """Map features [N + L, .] of a window to the outputs of all rounds."""
        N = len(padded)
        memory = self.compress(
            self.features('long', rgb[:N], flow[:N]), padded)
        x = self.features('work', rgb[N:], flow[N:])
        tokens = self.weights['final_query.weight']
        x = torch.cat([x, tokens[self.sizes.ahead]])
        x = x + self.positions(len(x))
        causal = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
        x = self.stack('dec_modules', x, causal, memory)
        works = [x]
        future = self.stack('gen_layer', self.weights['gen_query.weight'],
                            None, torch.cat([memory, x]))
        futures = [future]
        for i in range(self.sizes.rounds):
            open_to = torch.zeros(len(x), 1, dtype=torch.bool)
            x = self.stack(
                f'work_fusions.{i}', x, causal,
                torch.cat([memory, x, future]), torch.cat([
                    open_to.expand(-1, len(memory)), causal,
                    open_to.expand(-1, len(future))], dim=1))
            works.append(x)
            if i == self.sizes.rounds - 1:
                break
            seen = torch.cat([memory, x, future])
            hidden = memory_hidden = None
            if i:
                num = len(future)
                hidden = torch.ones(num, num, dtype=torch.bool).triu(1)
                memory_hidden = torch.cat([
                    hidden.new_zeros(num, len(seen) - num), hidden], dim=1)
            future = self.stack(f'fut_fusions.{i}', future if i else tokens,
                                hidden, seen, memory_hidden)
            futures.append(future)
        return works, futures
